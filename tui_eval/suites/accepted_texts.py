"""The part of an answer that comes nearest to a text that was expected in it."""

from __future__ import annotations

import re

from tui_eval.yaml.yaml_edit import EditError

LONGEST = 200_000
"""Characters of an answer that are looked through."""
_NEAR = 70.0
"""Similarity (0-100) from which a part counts as what was meant."""


def nearest(wanted: str, answer: str) -> str:
    """The whole words of the answer most like `wanted`; of numbers, the number in the place of it.

    Raises:
        EditError: no part of it is near.
    """
    from rapidfuzz import fuzz

    answer = answer[:LONGEST]
    if wanted and (at := answer.lower().find(wanted.lower())) >= 0:
        return answer[at : at + len(wanted)]
    number = _number(wanted, answer)
    if number is not None:
        return number
    found = fuzz.partial_ratio_alignment(wanted.lower(), answer.lower()) if wanted and answer else None
    if found is None or found.score < _NEAR or len(answer.lower()) != len(answer):
        raise EditError(f"no part of the answer is near {wanted[:60]!r}: edit the case (e)")
    start, end = found.dest_start, found.dest_end
    while start > 0 and _joined(answer, start):
        start -= 1
    while end < len(answer) and _joined(answer, end):
        end += 1
    near = " ".join(answer[start:end].split()) if "\n" not in wanted else answer[start:end].strip()
    near = _without_marks(near, wanted)
    if not near or (_DIGIT.search(wanted) and not _DIGIT.search(near)):
        raise EditError(f"no part of the answer is near {wanted[:60]!r}: edit the case (e)")
    return near


_DIGIT = re.compile(r"\d")
_MARKS = "*_`~\"'.,;:!?()[]{}<>|#"


def _without_marks(near: str, wanted: str) -> str:
    """The text without marks at its ends (of Markdown, of a sentence) that were not asked for."""
    while near and near[-1] in _MARKS and not wanted.endswith(near[-1]):
        near = near[:-1].rstrip()
    while near and near[0] in _MARKS and not wanted.startswith(near[0]):
        near = near[1:].lstrip()
    return near


_NUMBER = re.compile(r"[-+]?\d[\d,. ]*\d%?|\d%?")


def _number(wanted: str, answer: str) -> str | None:
    """The answer's only number, where a number was expected."""
    if not _NUMBER.fullmatch(wanted.strip()):
        return None
    numbers = list(dict.fromkeys(match[0].strip() for match in _NUMBER.finditer(answer)))
    return numbers[0] if len(numbers) == 1 else None


def _joined(text: str, at: int) -> bool:
    """Whether a word goes on across this place."""
    return (text[at - 1].isalnum() or text[at - 1] == "_") and (text[at].isalnum() or text[at] == "_")
