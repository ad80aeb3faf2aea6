"""Two runs (or two columns of one) against each other as lines: worst first, honest about chance. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui_eval.reports.comparison import CHANGES, CaseChange, Change, Comparison
from tui_eval.store.summary import CaseSummary
from tui_eval.tui.state.amounts import count
from tui_eval.tui.state.lines import Line, Span, fit, one_line, width_of
from tui_eval.tui.state.trends import share
from tui_eval.tui.state.verdict_lines import GLYPHS

GLYPH: dict[Change, tuple[str, str]] = {
    "regressed": ("✗", "failed"),
    "fixed": ("✓", "passed"),
    "flaky": ("≈", "note"),
    "new": ("+", "running"),
    "gone": ("−", "muted"),
    "unchanged": ("·", "muted"),
}
"""Glyph and style of each change."""
WORDS: dict[Change, str] = {
    "regressed": "passed before, does not pass now",
    "fixed": "passes now",
    "flaky": "the same outcome, but passes only sometimes",
    "new": "only in the second",
    "gone": "only in the first",
    "unchanged": "the same outcome",
}
SURE = 0.05
"""A difference that chance alone gives less often than this is called one."""


class Row(NamedTuple):
    """A heading of a change (`case` None) or one case."""

    change: Change
    case: CaseChange | None
    number: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """The same whenever the same thing is shown again."""
        if self.case is None:
            return (self.change,)
        one = self.case.after or self.case.before
        return (self.change, self.case.case_id, one.agent if one else "", (one.model if one else "") or "")


def rows(comparison: Comparison, *, only_changed: bool = False) -> list[Row]:
    """Headings with their cases, regressed first; `only_changed` leaves out what is as it was."""
    found: list[Row] = []
    for change in CHANGES:
        cases = [case for case in comparison.cases if case.change == change]
        if not cases or (only_changed and change == "unchanged"):
            continue
        found.append(Row(change, None, len(cases)))
        found += [Row(change, case) for case in cases]
    return found


def chance(p_value: float | None) -> str:
    """What a test says, in words."""
    if p_value is None:
        return ""
    if p_value >= SURE:
        return f"may well be chance (p={p_value:.2f})"
    return (
        f"hardly chance (p={max(p_value, 0.0001):.4f})"
        if p_value < 0.01
        else f"hardly chance (p={p_value:.2f})"
    )


def summary_lines(comparison: Comparison, before: str, after: str, width: int) -> list[Line]:
    """What the two are and what they come to as wholes."""
    (old, *old_range), (new, *new_range) = comparison.pass_rates
    lost, won = comparison.count("regressed"), comparison.count("fixed")
    lines: list[Line] = [
        (
            Span("before ", "label"),
            Span(one_line(before)),
            Span(f"  {share(old)} of cases ({share(old_range[0])} to {share(old_range[1])})", "muted"),
        ),
        (
            Span("after  ", "label"),
            Span(one_line(after)),
            Span(f"  {share(new)} of cases ({share(new_range[0])} to {share(new_range[1])})", "muted"),
        ),
    ]
    style = "failed" if lost > won else "passed" if won > lost else "strong"
    told: Line = (Span(f"{count(lost, 'case')} regressed, {won:,} fixed", style),)
    if comparison.p_value is not None and lost + won:
        told = (*told, Span(f": {chance(comparison.p_value)}", "muted"))
    lines.append(told)
    return [fit(line, width) for line in lines]


def ratio(one: CaseSummary | None) -> str:
    """Attempts passed of those ended: `2/3`."""
    return f"{one.passed}/{one.attempts}" if one is not None else "–"


def steadiness(one: CaseSummary | None) -> str:
    """Flaky told from broken: only several attempts can tell."""
    if one is None or one.attempts < 2:
        return ""
    return "flaky" if one.flaky else "broken" if not one.passed else "steady"


def row_line(row: Row, width: int) -> Line:
    """A heading, or a case: its name, attempts passed before and after, how sure that is, why it fails."""
    glyph, style = GLYPH[row.change]
    if row.case is None:
        words = f"  {WORDS[row.change]}"
        return fit((Span(f"{glyph} {row.number:,} {row.change}", style), Span(words, "muted")), width)
    case = row.case
    before, after = case.before, case.after
    numbers = f"{ratio(before):>6} → {ratio(after):<6}"
    told = steadiness(after)
    took = f" p={case.p_value:.2f}" if case.p_value is not None else ""
    right: Line = (
        *_outcome(before),
        Span(numbers, "muted"),
        *_outcome(after),
        Span(f" {told:<7}" if width >= 70 else "", "note" if told == "flaky" else "muted"),
        Span(f"{took:<7}" if width >= 90 else "", "muted"),
    )
    room = max((width - width_of(right) - 4) if width < 100 else width * 2 // 5, 8)
    name = fit((Span(one_line(case.name)),), room)
    pad = Span(" " * max(room - width_of(name), 0))
    line: Line = (Span(f"  {glyph} ", style), *name, pad, *right)
    message = next((one.message for one in (after, before) if one and one.outcome != "passed"), "")
    if message and width >= 100:
        line = (*line, Span(f" {one_line(message, 200)}", "muted"))
    return fit(line, width)


def _outcome(one: CaseSummary | None) -> Line:
    outcome = one.outcome if one is not None else None
    return (Span(GLYPHS.get(outcome or "", "·"), outcome or "muted"),)


def titles(width: int) -> Line:
    """A line above the cases."""
    return fit((Span("case; attempts passed before → after", "muted"),), width)


def order(found: Sequence[Row]) -> list[CaseChange]:
    """The cases in the order shown."""
    return [row.case for row in found if row.case is not None]
