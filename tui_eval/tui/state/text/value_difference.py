"""An expected value against the actual one, only where they differ: lines of text, fields of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest

from tui_eval.guard.text import CUT_OFF
from tui_eval.tui.state.text.lines import Line, Span, cut, one_line, plain
from tui_eval.tui.state.text.text_difference import alike, difference

LABEL = 10
"""Columns of `expected` and `reply` before their lines."""
MOST = 12
"""Lines or fields that are shown; how many more there are is said."""
AROUND = 30
"""Characters of a long line that stand before its first difference."""
LINES = 2_000


def differing_lines(expected: str, actual: str, most: int = MOST) -> Iterator[Line]:
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
    left, right = _lines_of(expected), _lines_of(actual)
    rest = 0
    for what, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        for number, (a, b) in enumerate(zip_longest(left[i1:i2], right[j1:j2]), 1):
            if shown + 3 > most and shown:
                rest += 1
                continue
            shown += 3
            several = max(len(left), len(right)) > 1
            yield from _pair((i1 if a is not None else j1) + number if several else 0, a, b)
    if rest:
        yield (Span(f"and {rest:,} more lines differ", "muted"),)


def _lines_of(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")[:LINES]


def _pair(number: int, expected: str | None, actual: str | None) -> Iterator[Line]:
    """A line of each side; `number` is 0 where there is only one."""
    if expected is None or actual is None:
        words = "is only in the reply" if expected is None else "is not in the reply"
        style = "added" if expected is None else "removed"
        text = one_line(actual if expected is None else expected, 200)
        yield (Span(f"line {number} {words}", "muted"),)
        yield (Span(f"{'':<{LABEL}}", "label"), Span(text or "an empty line", style))
        return
    first, second = difference(expected, actual)
    if number:
        yield (Span(f"line {number}", "muted"),)
    for word, sides in (("expected", first), ("reply", second)):
        line = tuple(span for one in sides for span in one)
        yield (Span(f"{word:<{LABEL}}", "label"), *_from_difference(line))


def _from_difference(line: Line) -> Line:
    """A long line from shortly before its first difference."""
    at = 0
    for span in line:
        if span.style in ("removed", "added"):
            break
        at += len(span.text)
    length = len(plain(line))
    start = max(at - AROUND, 0) if length > 2 * AROUND else 0
    end = min(length, start + 8 * AROUND)
    before = (Span("…", "muted"),) if start else ()
    after = (Span("…", "muted"),) if end < length else ()
    return (*before, *cut(line, start, end), *after)


def _edges(expected: str, actual: str) -> Iterator[Line]:
    yield (Span("only blanks and line ends at the beginning or the end differ", "note"),)
    for word, text in (("expected", expected), ("reply", actual)):
        line: list[Span] = [Span(f"{word:<{LABEL}}", "label")]
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
