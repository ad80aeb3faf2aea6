"""Two texts against each other: which words and characters differ, and the nearest place in a text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, zip_longest

from tui_eval.guard.text import CUT_OFF
from tui_eval.reports.together import LIMIT, WORDS, matcher, pieces
from tui_eval.tui.state.text.lines import Line, Span, cut, one_line, plain, text_lines

_WORD = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]"
)
"""A word; of scripts that put none between blanks, a letter."""
_JOINS = "-'’./_"


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


def nearest(wanted: str, text: str, *, ignoring_case: bool = True) -> tuple[int, int] | None:
    """The place in `text`, of whole words and as many as `wanted` has, from which that is made with the fewest changes
    (a word may be written as two, or two as one); None where nothing is alike, or where either is too long to be
    looked through."""
    from rapidfuzz import fuzz  # imported late: only failed text assertions need it

    if not wanted.strip() or len(wanted) > 500 or len(text) > 50_000 or len(wanted) > len(text):
        return None
    lowered = text.lower()
    if len(lowered) != len(text):
        return None
    found = fuzz.partial_ratio_alignment(wanted.lower(), lowered, score_cutoff=65)
    if found is None:
        return None
    start, end = found.dest_start, found.dest_end
    while start > 0 and text[start - 1].isalnum() and text[start : start + 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end += 1
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if ignoring_case:
        return _fewest_changes(wanted.lower(), lowered, start, end)
    return _fewest_changes(wanted, text, start, end)


def _fewest_changes(wanted: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Of all places of as many words the first with the fewest changes; the one given where none has fewer. What is
    alike to a matcher of parts may not be the nearest: ` days` makes `days of` as much like `30 days` as `14 days` is.
    Fewer words would be nearer, and say less: `years` alone for `2 years`, where there are `three years`."""
    from rapidfuzz.distance import Levenshtein

    words = [one.span() for one in _WORD.finditer(text)]
    starts = [first for first, _ in words]
    counted = list(accumulate((_begins(text, first) for first in starts), initial=0))
    at_end = {last: counted[at + 1] for at, (_, last) in enumerate(words)}
    many = sum(_begins(wanted, one.start()) for one in _WORD.finditer(wanted))
    best, place = Levenshtein.distance(wanted, text[start:end]), (start, end)
    least = _least_changes(wanted, text)
    for last in sorted((last for _, last in words), key=least.__getitem__):
        if least[last] >= best:
            break
        # a place that is longer or shorter by so many characters has as many changes
        low = bisect_left(starts, last - len(wanted) - best + 1)
        high = bisect_right(starts, last - len(wanted) + best - 1)
        for at in range(low, high):
            first = starts[at]
            if first >= last:
                break
            if at_end[last] - counted[at] != many and abs(last - first - len(wanted)) > 1:
                continue
            changes = Levenshtein.distance(wanted, text[first:last], score_cutoff=best - 1)
            if changes < best:
                best, place = changes, (first, last)
    return place


def _begins(text: str, at: int) -> bool:
    """Whether what stands here is counted as a word: `e-mail` is one."""
    return text[at].isalnum() and not (at > 1 and text[at - 1] in _JOINS and text[at - 2].isalnum())


def _least_changes(wanted: str, text: str) -> list[int]:
    """For each end in `text`, the fewest changes that make `wanted` of what stands before it, wherever that begins: a
    row of the table of edit distances in the bits of one number (Myers 1999, "A fast bit-vector algorithm for
    approximate string matching")."""
    places: dict[str, int] = {}
    for at, letter in enumerate(wanted):
        places[letter] = places.get(letter, 0) | 1 << at
    every, top = (1 << len(wanted)) - 1, 1 << len(wanted) - 1
    up, down, changes = every, 0, len(wanted)
    found = [changes]
    for letter in text:
        same = places.get(letter, 0)
        across = (((same & up) + up) ^ up) | same | down
        more, less = down | (every & ~(across | up)), up & across
        changes += 1 if more & top else -1 if less & top else 0
        found.append(changes)
        more, less = more << 1 & every, less << 1 & every
        up, down = less | (every & ~(across | more)), more & across
    return found


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
    only_case: bool = False


def in_other_case(wanted: str, text: str, *, part_of_word: bool) -> NearMiss | None:
    """The place that is the wanted text but for upper and lower case, as words of its own where there is one."""
    if not wanted.strip():
        return None
    escaped = re.escape(wanted)
    found = re.search(rf"(?<!\w){escaped}(?!\w)", text, re.IGNORECASE)
    if found is None and part_of_word:
        found = re.search(escaped, text, re.IGNORECASE)
    if found is None or found[0] == wanted:
        return None
    marks = tuple((at, at + 1) for at, (a, b) in enumerate(zip(wanted, found[0], strict=True)) if a != b)
    return NearMiss(found.start(), found.end(), len(marks), marks, marks, only_case=True)


def near_miss(wanted: str, text: str, *, ignoring_case: bool = True) -> NearMiss | None:
    """The nearest miss, None where nothing is alike. With `ignoring_case`, letters that differ in case
    only count as the same."""
    from rapidfuzz.distance import Levenshtein  # imported late: only failed text assertions need it

    place = nearest(wanted, text, ignoring_case=ignoring_case)
    if place is None:
        return None
    start, end = place
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


# -- An expected text against a reply, only where they differ.

_LABEL = 10
"""Columns of `expected` and `reply` before their lines."""
_MOST = 12
"""Lines that are shown; how many more there are is said."""
_AROUND = 30
"""Characters of a long line that stand before its first difference."""
_LINES = 2_000


def differing_lines(expected: str, actual: str) -> Iterator[Line]:
    """Where two texts differ, line by line with the differing characters; in words where only blanks at the
    edges or only capitals do. Nothing where they have too little in common for that to say something."""
    cut_off = CUT_OFF.search(expected)
    if cut_off is not None:  # the verdict keeps only the beginning of a long text
        expected, actual = expected[: cut_off.start()], actual[: cut_off.start()]
    if expected.strip() == actual.strip():
        yield from _edges(expected, actual)
        return
    if not alike(expected, actual):
        return
    if expected.lower() == actual.lower():
        yield (Span("only capital and small letters differ", "note"),)
    shown = 0
    left, right = _split(expected), _split(actual)
    rest = 0
    for what, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        for number, (a, b) in enumerate(zip_longest(left[i1:i2], right[j1:j2]), 1):
            if shown + 3 > _MOST and shown:
                rest += 1
                continue
            shown += 3
            several = max(len(left), len(right)) > 1
            yield from _pair((i1 if a is not None else j1) + number if several else 0, a, b)
    if rest:
        yield (Span(f"and {rest:,} more lines differ", "muted"),)


def _split(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")[:_LINES]


def _pair(number: int, expected: str | None, actual: str | None) -> Iterator[Line]:
    """A line of each side; `number` is 0 where there is only one."""
    if expected is None or actual is None:
        words = "is only in the reply" if expected is None else "is not in the reply"
        style = "added" if expected is None else "removed"
        text = one_line(actual if expected is None else expected, 200)
        yield (Span(f"line {number} {words}", "muted"),)
        yield (Span(f"{'':<{_LABEL}}", "label"), Span(text or "an empty line", style))
        return
    first, second = difference(expected, actual)
    if number:
        yield (Span(f"line {number}", "muted"),)
    for word, sides in (("expected", first), ("reply", second)):
        line = tuple(span for one in sides for span in one)
        yield (Span(f"{word:<{_LABEL}}", "label"), *_from_difference(line))


def _from_difference(line: Line) -> Line:
    """A long line from shortly before its first difference."""
    at = 0
    for span in line:
        if span.style in ("removed", "added"):
            break
        at += len(span.text)
    length = len(plain(line))
    start = max(at - _AROUND, 0) if length > 2 * _AROUND else 0
    end = min(length, start + 8 * _AROUND)
    before = (Span("…", "muted"),) if start else ()
    after = (Span("…", "muted"),) if end < length else ()
    return (*before, *cut(line, start, end), *after)


def _edges(expected: str, actual: str) -> Iterator[Line]:
    yield (Span("only blanks and line ends at the beginning or the end differ", "note"),)
    for word, text in (("expected", expected), ("reply", actual)):
        line: list[Span] = [Span(f"{word:<{_LABEL}}", "label")]
        inner = text.strip()
        before = text[: len(text) - len(text.lstrip())] if inner else text
        after = text[len(text.rstrip()) :] if inner else ""
        if before:
            line.append(Span(_blanks(before), "differs"))
        line.append(Span(one_line(inner[:20] + ("…" if len(inner) > 20 else ""))))
        line.append(Span(_blanks(after) if after else " (nothing after it)", "differs" if after else "muted"))
        yield tuple(line)


def _blanks(text: str) -> str:
    return one_line(text[:20]).replace(" ", "␠") + ("…" if len(text) > 20 else "")
