"""Two texts against each other: which words and characters differ, and the nearest place in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from tui_eval.tui.state.lines import Line, Span, text_lines

LIMIT = 8_000
"""Characters of each side that are compared; what follows is shown as it is."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def difference(expected: str, actual: str) -> tuple[list[Line], list[Line]]:
    """Expected and actual as lines whose differing words carry `removed` and `added`, and within
    words replaced by similar ones only the differing characters."""
    left: list[Span] = []
    right: list[Span] = []
    first, second = expected[:LIMIT], actual[:LIMIT]
    a, b = _WORDS.findall(first), _WORDS.findall(second)
    for what, i1, i2, j1, j2 in _matcher(a, b).get_opcodes():
        gone, come = "".join(a[i1:i2]), "".join(b[j1:j2])
        if what == "equal":
            left.append(Span(gone))
            right.append(Span(come))
        elif what == "replace":
            _characters(gone, come, left, right)
        else:
            left.append(Span(gone, "removed"))
            right.append(Span(come, "added"))
    left.append(Span(expected[LIMIT:]))
    right.append(Span(actual[LIMIT:]))
    return _lines(left), _lines(right)


def _matcher(a: list[str], b: list[str]) -> SequenceMatcher[str]:
    """Frequent words of long texts are no anchors: comparing each with each takes seconds."""
    return SequenceMatcher(None, a, b, autojunk=len(a) + len(b) > 400)


def alike(expected: object, actual: object) -> bool:
    """Whether both are texts with enough in common that their difference says something."""
    if not isinstance(expected, str) or not isinstance(actual, str):
        return False
    a, b = _WORDS.findall(expected[:LIMIT].lower()), _WORDS.findall(actual[:LIMIT].lower())
    return _matcher(a, b).ratio() >= 0.4


def _characters(gone: str, come: str, left: list[Span], right: list[Span]) -> None:
    matcher = SequenceMatcher(None, gone, come, autojunk=False)
    if len(gone) + len(come) > 400 or matcher.ratio() < 0.5:
        left.append(Span(gone, "removed"))
        right.append(Span(come, "added"))
        return
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        same = what == "equal"
        left.append(Span(gone[i1:i2], "" if same else "removed"))
        right.append(Span(come[j1:j2], "" if same else "added"))


def _lines(spans: list[Span]) -> list[Line]:
    lines: list[list[Span]] = [[]]
    for text, style in spans:
        if not text:
            continue
        for index, line in enumerate(text_lines(text, style)):
            if index:
                lines.append([])
            lines[-1].extend(span for span in line if span.text)
    return [tuple(line) for line in lines]


def nearest(wanted: str, text: str) -> tuple[int, int] | None:
    """The place in `text` most like `wanted`, ignoring case, or None where nothing is alike."""
    from rapidfuzz import fuzz  # imported late: only failed text assertions need it

    if not wanted.strip() or len(wanted) > 500 or len(text) > 50_000:
        return None
    found = fuzz.partial_ratio_alignment(wanted.lower(), text.lower(), score_cutoff=65)
    if found is None or len(text.lower()) != len(text):
        return None
    if len(wanted) > len(text):
        return None
    start, end = found.dest_start, found.dest_end
    while start > 0 and text[start - 1].isalnum() and text[start : start + 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end += 1
    return start, end


@dataclass(frozen=True, slots=True)
class NearMiss:
    """The place in a text most like the wanted one.

    `start` and `end` are the place; `distance` the number of characters to insert, remove or replace;
    `wanted_marks` and `found_marks` the differing characters, counted within each.
    """

    start: int
    end: int
    distance: int
    wanted_marks: tuple[tuple[int, int], ...]
    found_marks: tuple[tuple[int, int], ...]


def near_miss(wanted: str, text: str, *, ignoring_case: bool = True) -> NearMiss | None:
    """The nearest miss, None where nothing is alike. With `ignoring_case`, letters that differ in case
    only count as the same."""
    from rapidfuzz.distance import Levenshtein  # imported late: only failed text assertions need it

    place = nearest(wanted, text)
    if place is None:
        return None
    start, end = place
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    found = text[start:end]
    left, right = (wanted.lower(), found.lower()) if ignoring_case else (wanted, found)
    if len(left) != len(wanted) or len(right) != len(found):
        left, right = wanted, found
    steps = [step for step in Levenshtein.opcodes(left, right) if step.tag != "equal"]
    return NearMiss(
        start,
        end,
        Levenshtein.distance(left, right),
        tuple((step.src_start, step.src_end) for step in steps if step.src_end > step.src_start),
        tuple((step.dest_start, step.dest_end) for step in steps if step.dest_end > step.dest_start),
    )
