"""Why an assertion did not hold, drawn from the evidence of who judged it: for the Assertions and Transcript tabs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tui_eval.model import Attempt, Evidence, Verdict
from tui_eval.tui.state.case.calls_evidence import calls_explained, calls_of
from tui_eval.tui.state.case.case_history import CasePast, budget_of, usual
from tui_eval.tui.state.case.expectation_marks import reply_text
from tui_eval.tui.state.case.structure_evidence import (
    STRUCTURE,
    field_lines,
    path_explained,
    structure_explained,
)
from tui_eval.tui.state.case.text_evidence import nearest_line, text_explained
from tui_eval.tui.state.case.tool_pairing import pair
from tui_eval.tui.state.text.formatting import cost, duration
from tui_eval.tui.state.text.json_lines import short
from tui_eval.tui.state.text.lines import Line, Span, one_line
from tui_eval.tui.state.text.text_difference import differing_lines

FIELDS = ("differs", "absent-field", "extra-field", "compared")
SHORT = 4
"""Lines that stand beside a turn."""
_WRONG = ("failed", "differs", "missing")


def explained(verdict: Verdict, attempt: Attempt, past: CasePast | None = None) -> Iterator[Line]:
    """What was looked for, in the reply, the calls or the numbers. Nothing where the verdict's own expected and
    actual say it all, or in older runs. May take long for long replies: call it in a thread."""
    if budget_of(verdict.type) or budget_of(verdict.target):
        yield from budget_lines(verdict, past)
        return
    pieces = verdict.evidence or []
    reply = reply_text(attempt, verdict)
    if calls_of(verdict):
        yield from calls_explained(verdict, pair(attempt.transcript))
    elif any(one.code in STRUCTURE for one in pieces):
        yield from structure_explained(verdict)
        if any(one.code in ("no-call", "bad-call") for one in pieces):
            yield (Span("reply     ", "label"), Span(one_line(reply, 160), "muted"))
    elif any(one.code == "none" for one in pieces):
        yield from path_explained(verdict)
    elif any(one.code in FIELDS for one in pieces):
        yield from _fields(verdict, pieces, reply)
    elif any(one.kind == "field" and "." in one.path for one in pieces):
        for one in pieces[:1]:
            value = Span(short(one.actual if verdict.actual is None else verdict.actual, 200))
            yield (Span(one_line(one.path, 200), "json-key"), Span(" is ", "muted"), value)
    elif (words := next((one for one in pieces if one.code == "words"), None)) is not None:
        yield from _overlap(verdict, words, reply)
    else:
        yield from text_explained(verdict, reply, attempt)


def in_short(verdict: Verdict, attempt: Attempt) -> Iterator[Line]:
    """The same in at most four lines, for the Transcript."""
    if verdict.passed is not False:
        return
    line = nearest_line(verdict, reply_text(attempt, verdict), attempt)
    if line is not None:
        yield line
    elif calls_of(verdict):
        lines = explained(verdict, attempt)
        yield from [one for one in lines if any(span.style in _WRONG for span in one)][:SHORT]
    elif any(one.code in STRUCTURE or one.code in FIELDS for one in verdict.evidence or ()):
        yield from list(explained(verdict, attempt))[:SHORT]


def _fields(verdict: Verdict, pieces: list[Evidence], reply: str) -> Iterator[Line]:
    """Where an expected value and what is there differ: texts word by word, anything else by path."""
    expected, actual = verdict.expected, verdict.actual
    if verdict.passed is not False:
        return
    if isinstance(expected, str) and isinstance(actual, str) and (len(actual) > _LONG or "\n" in actual):
        yield from differing_lines(expected, reply if reply.startswith(actual[:1000]) else actual)
    elif isinstance(expected, dict | list) or len(pieces) > 1 or actual is None:
        yield from field_lines(pieces)
    elif isinstance(expected, str) and isinstance(actual, str) and not pieces[0].path.strip("$"):
        yield from differing_lines(expected, actual)


_LONG = 60


def _overlap(verdict: Verdict, words: Evidence, reply: str) -> Iterator[Line]:
    """Which of the expected words the reply lacks."""
    if verdict.passed is not False:
        return
    said = (
        f"{words.actual} of {words.expected} expected words are in the reply of {len(reply.split()):,} words"
    )
    yield (Span(said, "muted"),)
    if words.text:
        yield (Span("missing   ", "label"), Span(one_line(words.text, 1_000), "removed"))


def explanations(attempt: Attempt) -> dict[int, tuple[Line, ...]]:
    """What `explained` says of every verdict but budgets (whose usual range is read later), by place; what takes
    long is done here, in a thread."""
    found: dict[int, tuple[Line, ...]] = {}
    for index, verdict in enumerate(attempt.verdicts):
        if budget_of(verdict.type) is None and budget_of(verdict.target) is None:
            found[index] = tuple(explained(verdict, attempt))
    return found


# -- A number against its limit, as a bar, and what it usually is.


BAR = 24
"""Columns of a budget's bar."""


def budget_lines(verdict: Verdict, past: CasePast | None) -> Iterator[Line]:
    """A number against its limit as a bar, and the usual range."""
    limit, actual = verdict.expected, verdict.actual
    if not _number(limit) or not _number(actual):
        return
    column = budget_of(verdict.type) or budget_of(verdict.target) or ""
    show = {"duration_ms": duration, "price": cost}.get(column, lambda value: f"{value:,.0f}")
    top = max(limit, actual) or 1
    filled, mark = round(actual / top * BAR), min(round(limit / top * BAR), BAR)
    bar = "".join("█" if i < filled else "·" for i in range(BAR))
    over = actual > limit
    times = f", {actual / limit:.1f} times" if over and limit > 0 and actual / limit >= 1.2 else ""
    yield (
        Span(bar[:mark], "passed"),
        Span("▏", "strong"),
        Span(bar[mark:], "failed" if over else "muted"),
        Span(f" {show(actual)}", "failed" if over else ""),
        Span(f" of {show(limit)}" + (f": {show(actual - limit)} over{times}" if over else ""), "muted"),
    )
    values = past.values(column_name(verdict)) if past is not None else []
    found = usual(values)
    if found is not None:
        words = f"usually {show(found.middle)} ({show(found.low)} to {show(found.high)} in {found.count} attempts)"
        unlike = " this one is unlike them" if over and actual > found.high else ""
        yield (Span(words, "muted"), Span(f";{unlike}" if unlike else "", "note"))
    elif past is not None and values:
        yield (Span(f"before: {', '.join(show(value) for value in values[-3:])}", "muted"),)


def column_name(verdict: Verdict) -> str:
    """What of a budget verdict names the number it is about: its type, else its target."""
    return verdict.type if budget_of(verdict.type) else verdict.target


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
