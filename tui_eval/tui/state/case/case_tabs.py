"""The strip of tabs of the Case screen: their names and badges, and which of them have something to show."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tui_eval.guard import figures
from tui_eval.model import Attempt
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.prompt_view import has_prompt
from tui_eval.tui.state.case.span_view import spans_of
from tui_eval.tui.state.case.tools_view import reported
from tui_eval.tui.state.case.verdict_lines import about_rows, about_tools
from tui_eval.tui.state.text.lines import Line, Span, fit, width_of

TABS = ("Transcript", "Tools", "Assertions", "Data", "Raw", "History")
SHORTER = ("Transcript", "Tools", "Asserts", "Data", "Raw", "History")
SHORT = ("Trans", "Tools", "Asserts", "Data", "Raw", "Hist")
SHORTEST = tuple(name[:3] for name in TABS)
"""What those that are not open are called where there is less and less room."""


def filled(content: CaseContent) -> tuple[bool, ...]:
    """Which tabs have something to show. What is said first of a case always has: it says so where nothing was said."""
    attempt, past = content.attempt, content.past
    history = past is None or bool(past.attempts)  # not read yet: nobody knows
    if attempt is None:
        return (True, False, False, False, has_prompt(content.case, None), history)
    steps = any(entry.kind in ("tool_call", "tool_result", "hand_off") for entry in attempt.transcript)
    traced = attempt.trace is not None and bool(
        spans_of(attempt) or attempt.trace.problem or attempt.trace.note
    )
    wire = bool(
        attempt.exchanges or attempt.cached or attempt.ran_on or attempt.stdout or attempt.named_scores
    )
    kept = (
        attempt.output is not None
        or bool(attempt.vars)
        or any(reply.sly_data or reply.metadata for reply in attempt.replies)
    )
    return (
        True,
        steps
        or traced
        or bool(reported(attempt))
        or any(about_tools(verdict) for verdict in attempt.verdicts),
        bool(attempt.verdicts),
        attempt.data is not None,
        wire or kept or has_prompt(content.case, attempt),
        history,
    )


def next_filled(content: CaseContent, active: int, step: int) -> int:
    """The next or previous tab that has something to show, round the ends; the same where there is no other."""
    shown = filled(content)
    places = ((active + step * by) % len(TABS) for by in range(1, len(TABS)))
    return next((place for place in places if shown[place]), active)


def badges(attempt: Attempt | None) -> tuple[str, ...]:
    """What stands beside each tab's name: how much there is in it, and how much of it is bad."""
    if attempt is None:
        return ("",) * len(TABS)
    calls = figures.tool_calls(attempt.replies, attempt.transcript)
    failed = sum(1 for v in attempt.verdicts if v.passed is False)
    errors = sum(1 for v in attempt.verdicts if v.passed is None)
    bad = (f"{failed}✗" if failed else "") + (f"{errors}!" if errors else "")
    of_rows = [verdict.passed for verdict in attempt.verdicts if about_rows(verdict)]
    data = "" if attempt.data is None else "✗" if False in of_rows else "!" if None in of_rows else "✓"
    return (
        "",
        str(calls or ""),
        bad or (f"{len(attempt.verdicts)}✓" if attempt.verdicts else ""),
        data,
        str(len(attempt.exchanges) or ""),
        "",
    )


def tab_line(active: int, content: CaseContent, width: int) -> Line:
    """The strip of tabs; the active one is reversed as well as named, those with nothing to show are dim.
    Where there is little room they move together, then the names of the others are shortened, then only their numbers
    are left, then none of them."""
    for names, apart in ((TABS, 3), (TABS, 2), (SHORTER, 1), (SHORT, 1), (SHORTEST, 1)):
        line = _tab_line(active, content, names, apart)
        if width_of(line) <= width:
            return line
    here = _tab(active, active, badges(content.attempt)[active], TABS, " ", True)
    shown = filled(content)
    line = tuple(
        span
        for index in range(len(TABS))
        for span in (here if index == active else (Span(f" {index + 1} ", _style(shown[index])),))
    )
    return line if width_of(line) <= width else fit(here, width)


def tab_at(line: Line, column: int) -> int | None:
    """The tab that stands in this column of the strip; None between them and beside them."""
    index, end = None, 0
    for text, style in line:
        if not style.startswith("tab"):
            index = None
        elif text[:1] == " " and text[1:2].isdigit():  # not a badge, which is its tab's
            index = int(text[1]) - 1
        end += cell_len(text)
        if column < end:
            return index
    return None


def _tab_line(active: int, content: CaseContent, names: Sequence[str], apart: int) -> Line:
    """The tabs with so many blanks between them. Where there is one alone a badge is only what did not pass: beside a
    count the next tab's number reads as another."""
    spans: list[Span] = []
    for index, (badge, some) in enumerate(zip(badges(content.attempt), filled(content), strict=True)):
        counts = apart > 1 or index == active or not badge.isdigit()
        shown = _tab(index, active, badge if counts else "", names, " " * (apart > 1), some)
        spans += [*shown, Span(" " * (apart - 2))]
    return tuple(span for span in spans[:-1] if span.text)


def _style(some: bool) -> str:
    return "tab" if some else "tab-empty"


def _tab(index: int, active: int, badge: str, names: Sequence[str], end: str, some: bool) -> Line:
    name = TABS[index] if index == active else names[index]
    style = "tab-active" if index == active else _style(some)
    bad = " failed" if "✗" in badge or "!" in badge else ""
    if index == active:
        end = " "
    return (
        Span(f" {index + 1} {name}{' ' if badge else end}", style),
        *((Span(f"{badge}{end}", style + bad),) if badge else ()),
    )
