"""A number against its limit, as a bar, and what it usually is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tui_eval.model import Verdict
from tui_eval.tui.state.case.case_history import CasePast, budget_of, usual
from tui_eval.tui.state.text.formatting import cost, duration
from tui_eval.tui.state.text.lines import Line, Span

BAR = 24
"""Columns of a budget's bar."""


def budget_lines(verdict: Verdict, past: CasePast | None) -> Iterator[Line]:
    """A number against its limit as a bar, and the usual range."""
    limit, actual = verdict.expected, verdict.actual
    if not _number(limit) or not _number(actual):
        return
    column = budget_of(verdict.type) or budget_of(verdict.target) or ""
    show = {"duration_ms": duration, "cost": cost}.get(column, lambda value: f"{value:,.0f}")
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
