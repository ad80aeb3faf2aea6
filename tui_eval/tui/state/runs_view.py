"""The list of runs and what is said of one: lines of styled text from what the store holds. Pure."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from tui_eval.store.failure_modes import Assessment, FailedAttempt, FailureMode
from tui_eval.store.schema import RunInfo, RunSummary
from tui_eval.store.summary import wilson
from tui_eval.tui.state import figures
from tui_eval.tui.state.amounts import duration
from tui_eval.tui.state.lines import Line, Span, fit, one_line, width_of
from tui_eval.tui.state.trends import Point, distribution_lines, share, shown, trend_lines

STATES: dict[str, tuple[str, str]] = {
    "running": ("●", "running"),
    "paused": ("●", "running"),
    "finished": ("✓", "muted"),
    "cancelled": ("⊘", "cancelled"),
    "interrupted": ("!", "error"),
}
"""Glyph and style of each state of a run."""
WHEN = "%a %d %b %Y %H:%M:%S"


class RunLine(msgspec.Struct, frozen=True):
    """One line of the list: the summary, mean latency in ms, tokens, and how many runs add to it."""

    run: RunSummary
    latency_ms: float | None = None
    tokens: int | None = None
    linked: int = 0

    @property
    def judged(self) -> int:
        """Attempts that passed, failed or erred."""
        return self.run.passed + self.run.failed + self.run.errors

    @property
    def pass_rate(self) -> float | None:
        """Share of those that passed (0–1); None while there are none."""
        return self.run.passed / self.judged if self.judged else None

    @property
    def active(self) -> bool:
        """Whether an engine is at work on it."""
        return self.run.state in ("running", "paused")


class RunFacts(msgspec.Struct):
    """What only the run's own folder says: its facts, each attempt's latency (ms) and tokens, how its
    attempts failed. `problem` where it cannot be read."""

    info: RunInfo | None = None
    durations: list[float] = []
    tokens: list[float] = []
    assessment: Assessment | None = None
    problem: str = ""


class DetailRow(NamedTuple):
    """A line of the figures; enter opens its example."""

    line: Line
    example: FailedAttempt | None = None


def titles(width: int) -> Line:
    """The line above the runs."""
    head = f"   {'age':>4} {'passed':>6} {'failed':>6} {'error':>5} {'rate':>4} {'cost':>9}  what"
    return fit((Span(head, "muted"),), width)


def row_line(one: RunLine, width: int, now: float, marks: Collection[str] = ()) -> Line:
    """One run: mark, state, age, attempts by outcome, pass rate, cost, what and with which agent."""
    run = one.run
    glyph, style = STATES.get(run.state, ("?", "muted"))
    rate = share(one.pass_rate) if one.pass_rate is not None else ""
    line: Line = (
        Span("*" if run.id in marks else " ", "note"),
        Span(f"{glyph} ", style),
        Span(f"{figures.age(now - run.started_at):>4} ", "muted"),
        Span(f"{run.passed:>6,} ", "passed" if run.passed else "muted"),
        Span(f"{run.failed:>6,} ", "failed" if run.failed else "muted"),
        Span(f"{run.errors:>5,} ", "error" if run.errors else "muted"),
        Span(f"{rate:>4} "),
        Span(f"{figures.cost(run.cost):>9}  ", "muted"),
    )
    if run.state != "finished":
        line = (*line, Span(f"{run.state} ", style))
    if run.linked_to:
        line = (*line, Span("↳ ", "note"))
    agents = one_line(run.agents, 60)
    line = (*line, Span(one_line(run.what, 200)), Span(f" · {agents}" if agents else "", "muted"))
    return fit(line, width)


def holds(one: RunLine, words: str) -> bool:
    """Whether a run's id, state, what or agents hold every one of the words."""
    run = one.run
    said = f"{run.id} {run.state} {run.what} {run.agents} {run.linked_to or ''}".casefold()
    return all(word in said for word in words.casefold().split())


def points(lines: Sequence[RunLine]) -> list[Point]:
    """The runs for the plots, oldest first; those that add to others are left out."""
    return [
        Point(one.run.id, one.run.started_at, one.pass_rate, one.run.cost, one.latency_ms, one.tokens)
        for one in reversed(lines)
        if not one.run.linked_to and one.judged
    ]


def action_of(one: RunLine, ours: Collection[str]) -> str:
    """What can be done with a run in its state; `ours` are runs of this app's own engine."""
    if one.active:
        return "enter follows it" if one.run.id in ours else "running elsewhere: enter attaches to it"
    if one.run.state == "interrupted":
        return "interrupted: u goes on with it"
    return "enter opens it"


def detail_rows(
    one: RunLine,
    facts: RunFacts | None,
    trend: Sequence[Point],
    width: int,
    *,
    height: int = 2,
    ours: Collection[str] = (),
) -> list[DetailRow]:
    """All that is said of the run under the cursor."""
    rows = [DetailRow(line) for line in _head(one, facts, width, ours)]
    if len(trend) > 1:
        newest = len(shown(trend, width))
        words = f"  the newest {newest:,} of {len(trend):,}, v shows all" if newest < len(trend) else ""
        rows.append(DetailRow(fit((Span("over the runs", "heading"), Span(words, "muted")), width)))
        rows += [DetailRow(line) for line in trend_lines(trend, width, height, one.run.id)]
    if facts is None:
        return [*rows, DetailRow(()), DetailRow((Span("Reading its figures.", "muted"),))]
    if facts.problem:
        return [*rows, DetailRow(()), DetailRow(fit((Span(one_line(facts.problem), "failed"),), width))]
    rows += _modes(facts.assessment, width)
    for name, values, show in (
        ("latency", facts.durations, duration),
        ("tokens", facts.tokens, lambda value: f"{value:,.0f}"),
    ):
        lines = distribution_lines(name, values, show, width)
        if lines:
            rows += [DetailRow(()), *(DetailRow(line) for line in lines)]
    return rows


def _head(one: RunLine, facts: RunFacts | None, width: int, ours: Collection[str]) -> list[Line]:
    run = one.run
    info = facts.info if facts is not None else None
    glyph, style = STATES.get(run.state, ("?", "muted"))
    end = run.finished_at
    took = f", took {figures.clock(end - run.started_at)}" if end and run.started_at else ""
    when = time.strftime(WHEN, time.localtime(run.started_at))
    lines: list[Line] = [
        (Span(f"{glyph} {run.state}", style), Span(f"  {one_line(run.id)}", "strong")),
        (Span(f"{when}{took}", "muted"),),
        (Span(one_line(run.what)), Span(f" · {one_line(run.agents)}" if run.agents else "", "muted")),
    ]
    if one.pass_rate is not None:
        low, high = wilson(run.passed, one.judged)
        words = f" ({share(low)} to {share(high)} at 95%)"
        lines.append(
            (
                Span(f"{run.passed:,} of {one.judged:,} attempts passed, {share(one.pass_rate)}", "strong"),
                Span(words, "muted"),
            )
        )
    usage = [figures.cost(run.cost), f"{one.tokens:,} tokens" if one.tokens is not None else ""]
    if one.latency_ms is not None:
        usage.append(f"{duration(one.latency_ms)} a case")
    if any(usage):
        lines.append((Span(" · ".join(word for word in usage if word), "muted"),))
    if run.linked_to:
        lines.append((Span(f"↳ adds to run {one_line(run.linked_to)}", "note"),))
    if one.linked:
        lines.append((Span(f"{one.linked} run{'s' * (one.linked > 1)} add to it", "note"),))
    if info is not None and info.note:
        lines.append((Span(one_line(info.note), "note"),))
    git = info.provenance.get("git") if info is not None else None
    if isinstance(git, dict) and git.get("commit"):
        dirty = " with changes" if git.get("dirty") else ""
        lines.append((Span(f"commit {one_line(git['commit'])[:12]}{dirty}", "muted"),))
    lines.append((Span(action_of(one, ours), "label"),))
    return [fit(line, width) for line in lines]


def _modes(assessment: Assessment | None, width: int) -> list[DetailRow]:
    if assessment is None or not assessment.modes:
        return []
    failed = assessment.attempts - assessment.passed
    head = f"  {failed:,} of {assessment.attempts:,} attempts, enter opens an example"
    rows = [DetailRow(()), DetailRow(fit((Span("how they failed", "heading"), Span(head, "muted")), width))]
    rows += [DetailRow(mode_line(mode, width), next(iter(mode.examples), None)) for mode in assessment.modes]
    if assessment.note:
        rows.append(DetailRow(fit((Span(one_line(assessment.note), "note"),), width)))
    return rows


def mode_line(mode: FailureMode, width: int) -> Line:
    """One way to fail: count, share, what failed (or the judge's words for it)."""
    cases = f" in {mode.cases} cases" if mode.cases > 1 else ""
    line: Line = (Span(f"{mode.count:>5,} {share(mode.share):>4}  ", "failed"),)
    words = one_line(mode.name or mode.what)
    room = max(width - width_of(line) - len(cases), 8)
    return fit((*line, *fit((Span(words),), room), Span(cases, "muted")), width)
