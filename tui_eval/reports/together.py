"""Two transcripts of a case against each other: the entries that belong together, and of two texts the pieces
that differ, by words, and within similar words by characters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from tui_eval.causes import cause_of
from tui_eval.model import ENTRY_LABELS, Attempt, Entry
from tui_eval.store.encoding import encode_json

LIMIT = 8_000
"""Characters of each side that are compared; what follows differs where it is not the same."""
LONG = 2_000
"""Characters from which on what both texts begin and end with is not looked through by words."""
WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Piece = tuple[str, bool]
"""Text, and whether the other side has other text in its place."""


def pieces(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces, told apart whether they differ; joined they are the texts again."""
    left: list[Piece] = []
    right: list[Piece] = []
    begin = end = ""
    if max(len(before), len(after)) > LONG:
        begin, end = _shared_ends(before, after)
        before = before[len(begin) : len(before) - len(end)]
        after = after[len(begin) : len(after) - len(end)]
    left.append((begin, False))
    right.append((begin, False))
    a, b = WORDS.findall(before[:LIMIT]), WORDS.findall(after[:LIMIT])
    for what, i1, i2, j1, j2 in matcher(a, b).get_opcodes():
        gone, come = "".join(a[i1:i2]), "".join(b[j1:j2])
        if what == "replace":
            _characters(gone, come, left, right)
        else:
            left.append((gone, what != "equal"))
            right.append((come, what != "equal"))
    rests = before[LIMIT:], after[LIMIT:]
    left += [(rests[0], rests[0] != rests[1]), (end, False)]
    right += [(rests[1], rests[0] != rests[1]), (end, False)]
    return [piece for piece in left if piece[0]], [piece for piece in right if piece[0]]


def _shared_ends(before: str, after: str) -> tuple[str, str]:
    """What both texts begin and end with, in whole words: of long ones the matcher takes words that come often for no
    anchors, and one that was cut off had nothing in common with its whole."""
    from rapidfuzz.distance import Postfix, Prefix  # imported late: only long texts need it

    many = int(Prefix.similarity(before, after))
    while 0 < many < max(len(before), len(after)) and before[many - 1].isalnum():
        many -= 1
    last = int(Postfix.similarity(before[many:], after[many:]))
    while last and before[len(before) - last].isalnum():
        last -= 1
    return before[:many], before[len(before) - last :]


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


LONGEST = 20_000
"""Characters of one entry that are shown and compared."""


class Together(NamedTuple):
    """Two entries as text; one of them None where the other has no counterpart. Turn 0: why each attempt is
    judged as it is."""

    turn: int
    kind: str
    label: str
    before: str | None
    after: str | None

    @property
    def differs(self) -> bool:
        """Whether they are not the same."""
        return self.before != self.after


def together(before: Attempt, after: Attempt) -> list[Together]:
    """The entries of both transcripts, turn by turn, in their order; last, why each is judged as it is."""
    found: list[Together] = []
    for turn in sorted({entry.turn for entry in (*before.transcript, *after.transcript)}):
        old = [entry for entry in before.transcript if entry.turn == turn]
        new = [entry for entry in after.transcript if entry.turn == turn]
        for a, b in _aligned(old, new):
            one = a or b
            assert one is not None
            label = ENTRY_LABELS.get(one.kind, one.kind)
            found.append(Together(turn, one.kind, label, _cut(a), _cut(b)))
    if before.message or after.message:
        why = [(cause_of(one) or one.message or one.outcome)[:LONGEST] for one in (before, after)]
        found.append(Together(0, "note", "verdict", *why))
    return found


def _aligned(old: Sequence[Entry], new: Sequence[Entry]) -> Iterable[tuple[Entry | None, Entry | None]]:
    """Entries of the same kind and name belong together, in order."""
    names = [[(entry.kind, entry.name) for entry in entries] for entries in (old, new)]
    for what, i1, i2, j1, j2 in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if what == "equal":
            yield from zip(old[i1:i2], new[j1:j2], strict=True)
        else:
            yield from ((entry, None) for entry in old[i1:i2])
            yield from ((None, entry) for entry in new[j1:j2])


def _cut(entry: Entry | None) -> str | None:
    return None if entry is None else text_of(entry)[:LONGEST]


def text_of(entry: Entry) -> str:
    """What an entry says, in text."""
    parts = [entry.name] if entry.name else []
    for value in (entry.arguments, entry.result):
        if value is not None:
            parts.append(value if isinstance(value, str) else encode_json(value).decode())
    parts += [part for part in (entry.text, f"error: {entry.error}" if entry.error else "") if part]
    return "\n".join(parts)
