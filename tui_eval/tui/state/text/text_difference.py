"""Two texts against each other: which words and characters differ, and the nearest place in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui_eval.reports.together import LIMIT, WORDS, matcher, pieces
from tui_eval.tui.state.text.lines import Line, Span, text_lines

_SHORT = 80
"""Characters of a wanted text up to which whole words around a place are looked at."""
_WORD = re.compile(r"\w+|[^\w\s]")


def difference(expected: str, actual: str) -> tuple[list[Line], list[Line]]:
    """Expected and actual as lines whose differing words carry `removed` and `added`, and within
    words replaced by similar ones only the differing characters."""
    left, right = pieces(expected, actual)
    return (
        _lines([Span(text, "removed" if differs else "") for text, differs in left]),
        _lines([Span(text, "added" if differs else "") for text, differs in right]),
    )


def alike(expected: object, actual: object) -> bool:
    """Whether both are texts with enough in common that their difference says something."""
    if not isinstance(expected, str) or not isinstance(actual, str):
        return False
    a, b = WORDS.findall(expected[:LIMIT].lower()), WORDS.findall(actual[:LIMIT].lower())
    return matcher(a, b).ratio() >= 0.4


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
    return _fewest_changes(wanted, text, start, end) if len(wanted) <= _SHORT else (start, end)


def _fewest_changes(wanted: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Of the places of as many words around one that is alike, the one with the fewest changes: ` days` makes `days of`
    as much like `30 days` as `14 days` is."""
    from rapidfuzz.distance import Levenshtein

    around = len(wanted)
    low = max(0, start - around)
    words = [(low + one.start(), low + one.end()) for one in _WORD.finditer(text[low : end + around])]
    many = len(_WORD.findall(wanted))
    places = [(start, end)]
    places += [(words[at][0], words[at + many - 1][1]) for at in range(len(words) - many + 1) if many]
    left, right = wanted.lower(), text.lower()
    return min(places, key=lambda place: Levenshtein.distance(left, right[place[0] : place[1]].strip()))


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


def common(first: str, second: str) -> int:
    """How many characters at the beginning two texts share."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
