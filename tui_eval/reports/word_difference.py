"""Two texts against each other: the pieces that differ, by words, and within similar words by characters. Pure."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

LIMIT = 8_000
"""Characters of each side that are compared; what follows is taken as it is."""
WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Piece = tuple[str, bool]
"""Text, and whether the other side has other text in its place."""


def pieces(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces, told apart whether they differ; joined they are the texts again."""
    left: list[Piece] = []
    right: list[Piece] = []
    a, b = WORDS.findall(before[:LIMIT]), WORDS.findall(after[:LIMIT])
    for what, i1, i2, j1, j2 in matcher(a, b).get_opcodes():
        gone, come = "".join(a[i1:i2]), "".join(b[j1:j2])
        if what == "replace":
            _characters(gone, come, left, right)
        else:
            left.append((gone, what != "equal"))
            right.append((come, what != "equal"))
    left.append((before[LIMIT:], False))
    right.append((after[LIMIT:], False))
    return [piece for piece in left if piece[0]], [piece for piece in right if piece[0]]


def matcher(a: list[str], b: list[str]) -> SequenceMatcher[str]:
    """Frequent words of long texts are no anchors: comparing each with each takes seconds."""
    return SequenceMatcher(None, a, b, autojunk=len(a) + len(b) > 400)


def _characters(gone: str, come: str, left: list[Piece], right: list[Piece]) -> None:
    found = SequenceMatcher(None, gone, come, autojunk=False)
    if len(gone) + len(come) > 400 or found.ratio() < 0.5:
        left.append((gone, True))
        right.append((come, True))
        return
    for what, i1, i2, j1, j2 in found.get_opcodes():
        left.append((gone[i1:i2], what != "equal"))
        right.append((come[j1:j2], what != "equal"))
