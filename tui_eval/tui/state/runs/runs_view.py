"""What is said of the run under the cursor: lines of styled text from what the store holds. Pure."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from tui_eval.guard.spelling import some_of, within
from tui_eval.store.failure_modes import Assessment, FailedAttempt, FailureMode, classified
from tui_eval.store.missing_cases import never_beside, unread_report
from tui_eval.store.schema import RunInfo
from tui_eval.store.shard_runs import commit_words
from tui_eval.store.summary import cached_of, judges_of, share, wilson
from tui_eval.tui.state.lists.run_line import RunLine, outcome_sign
from tui_eval.tui.state.runs.trends import Point, distribution_lines, shown, trend_lines
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.formatting import duration
from tui_eval.tui.state.text.lines import Line, Span, fit, one_line, width_of, wrap

AGENTS_ROOM = 300
"""Characters for the names of a run's agents: of hundreds some, its figures stand below them."""
WHEN = "%a %d %b %Y %H:%M:%S"


class RunFacts(msgspec.Struct):
    """What only the run's own folder says: its facts, each attempt's latency (ms) and tokens, how its
    attempts failed; `agents_meet`: two of its agents answered the same cases, so that they can be compared.
    `problem` where it cannot be read."""

    info: RunInfo | None = None
    durations: list[float] = []
    tokens: list[float] = []
    assessment: Assessment | None = None
    agents_meet: bool = False
    problem: str = ""
    names: dict[tuple[str, str], str] = {}
    """What lists call the cases of its examples, by id and agent: they may be in no suite that was read."""


class DetailRow(NamedTuple):
    """A line of the figures; enter opens its example."""

    line: Line
    example: FailedAttempt | None = None


def can_go_on(one: RunLine) -> bool:
    """Whether what of a run has not run can be run in it. One that a limit ended is finished; what is linked to another
    may be a judgement, which asks nobody."""
    ended = one.run.state == "finished" and one.run.never_ran and not one.run.linked_to
    return one.run.state in ("interrupted", "cancelled") or bool(ended)


def action_of(one: RunLine, ours: Collection[str]) -> str:
    """What can be done with a run in its state; `ours` are runs of this app's own engine."""
    if one.run.state == "newer":
        return "a newer tui-eval wrote it: update this one to open it"
    if one.unread:
        return "damaged: D deletes it; other runs are none the worse"
    if one.run.state == "paused" and one.run.id in ours:
        return "paused: enter follows it, P there goes on"
    if one.run.state == "waiting":
        return "waits for shards to come, or to go on where they run"
    if one.active:
        return "enter follows it" if one.run.id in ours else "running elsewhere: enter attaches to it"
    if one.run.state == "interrupted":
        return "interrupted: u goes on with it"
    if one.run.state == "cancelled":
        return "cancelled: u goes on with what had not begun; enter opens it"
    if can_go_on(one):
        return "not all has run: u goes on with it; enter opens it"
    if one.run.never_ran:
        return "not all has run: enter opens it"
    return "enter opens it"


def detail_rows(
    one: RunLine,
    facts: RunFacts | None,
    trend: Sequence[Point],
    width: int,
    *,
    height: int = 2,
    ours: Collection[str] = (),
    same: bool = False,
) -> list[DetailRow]:
    """All that is said of the run under the cursor; `same` says that the runs in `trend` are all of the same
    suites, and that there are others."""
    if one.unread:
        return [DetailRow(line) for line in _damage(one, width, ours)]
    rows = [DetailRow(line) for line in _head(one, facts, width, ours)]
    if len(trend) > 1:
        newest = len(shown(trend, width))
        words = f"  {newest:,} of {len(trend):,}" if newest < len(trend) else f"  {len(trend):,}"
        words += " of the same suites, s: all" if same else ""
        rows += [
            DetailRow(line)
            for line in _wrapped((Span("over the runs", "heading"), Span(words, "muted")), width)
        ]
        rows += [DetailRow(line) for line in trend_lines(trend, width, height, one.run.id)]
    if facts is None:
        return [*rows, DetailRow(()), DetailRow((Span("Reading its figures.", "muted"),))]
    if facts.problem:
        told = wrap((Span(one_line(facts.problem), "failed"),), width)
        return [*rows, DetailRow(()), *(DetailRow(piece) for _, _, piece in told)]
    rows += _modes(facts.assessment, width)
    for name, values, show in (
        ("latency", facts.durations, duration),
        ("tokens", facts.tokens, lambda value: f"{value:,.0f}"),
    ):
        lines = distribution_lines(name, values, show, width)
        if lines:
            rows += [DetailRow(()), *(DetailRow(line) for line in lines)]
    return rows


def _damage(one: RunLine, width: int, ours: Collection[str]) -> list[Line]:
    """A run that cannot be read: why, and what can be done."""
    lines: list[Line] = [
        (Span(f"! {one.run.state}", "error"), Span(f"  {one_line(one.run.id)}", "strong")),
        *(piece for _, _, piece in wrap((Span(one_line(one.run.what), "failed"),), width)),
        (Span(action_of(one, ours), "label"),),
    ]
    return [fit(line, width) for line in lines]


def _head(one: RunLine, facts: RunFacts | None, width: int, ours: Collection[str]) -> list[Line]:
    run = one.run
    info = facts.info if facts is not None else None
    glyph, style = outcome_sign(run)
    took = f", took {formatting.clock(run.took)}" if run.took is not None and run.started_at else ""
    when = time.strftime(WHEN, time.localtime(run.started_at))
    lines: list[Line] = [
        (Span(f"{glyph} {run.state}", style), Span(f"  {one_line(run.id)}", "strong")),
        (Span(f"{when}{took}", "muted"),),
        (
            Span(one_line(run.suite or run.what)),
            Span(f" › {one_line(run.only)}" if run.only else "", "strong"),
            Span(
                f" · {some_of(names := run.agents.split(', '), within(names, AGENTS_ROOM))}"
                if run.agents
                else "",
                "muted",
            ),
        ),
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
    if info is not None and info.stepped:
        by_hand = "" if one.judged else ": what was changed by hand is no result"
        lines.append((Span(f"stepped through turn by turn{by_hand}", "note"),))
    elif run.never_ran:
        lines.append((Span(f"{run.never_ran:,} of {run.total:,} attempts not run", "note"),))
    if run.cancelled:
        lines.append((Span(f"{run.cancelled:,} of {run.total:,} attempts cancelled", "note"),))
    tokens = f"{one.tokens:,} tokens" if one.tokens is not None else ""
    usage = [formatting.cost(run.cost), tokens, cached_of(run.cached, run.saved)]
    usage.append(judges_of(run.judge_tokens, run.judge_cost, run.judge_cached, run.judge_saved))
    if one.latency_ms is not None:
        usage.append(f"{duration(one.latency_ms)} an attempt")
    if any(usage):
        lines.append((Span(" · ".join(word for word in usage if word), "muted"),))
    if run.rules:
        lines.append((Span(f"judged by compat: {run.rules}", "note"),))
    if run.linked_to:
        lines.append((Span(f"↳ adds to run {one_line(run.linked_to)}", "note"),))
    elif one.run.part_of:
        lines.append((Span(f"↳ a part of what run {one_line(one.run.part_of)} ran", "note"),))
    if one.linked:
        adding = "1 run adds" if one.linked == 1 else f"{one.linked} runs add"
        lines.append((Span(f"{adding} to it", "note"),))
    if info is not None:
        for lack in filter(None, (never_beside(info), unread_report(info))):
            lines.append((Span(one_line(lack), "failed"),))
    if info is not None and info.note:
        lines.append((Span(one_line(info.note), "note"),))
    if info is not None and (commit := commit_words(info.provenance)):
        lines.append((Span(f"commit {one_line(commit)}", "muted"),))
    lines.append((Span(action_of(one, ours), "label"),))
    return [piece for line in lines for piece in _wrapped(line, width)]


def _wrapped(line: Line, width: int) -> list[Line]:
    """All of a line, below one another where it is wider."""
    return [piece for _, _, piece in wrap(line, width)]


def _modes(assessment: Assessment | None, width: int) -> list[DetailRow]:
    if assessment is None or not assessment.modes:
        return []
    assessment = classified(assessment)
    failed = assessment.attempts - assessment.passed
    named = any(mode.name for mode in assessment.modes)
    head = f"  {failed:,} of {assessment.attempts:,}, enter example{'' if named else ', n names'}"
    heading = (Span("how they failed", "heading"), Span(head, "muted"))
    rows = [DetailRow(()), *(DetailRow(line) for line in _wrapped(heading, width))]
    rows += [DetailRow(mode_line(mode, width), next(iter(mode.examples), None)) for mode in assessment.modes]
    if assessment.note:
        rows.append(DetailRow(fit((Span(one_line(assessment.note), "note"),), width)))
    return rows


def example_of(
    facts: RunFacts | None, wanted: FailedAttempt | None
) -> tuple[FailureMode, FailedAttempt] | None:
    """How `wanted` failed, or the first attempt of the most frequent way to fail; None where none is known."""
    modes = facts.assessment.modes if facts is not None and facts.assessment is not None else []
    pairs = [(mode, example) for mode in modes for example in mode.examples[:1]]
    return next((pair for pair in pairs if pair[1] == wanted), next(iter(pairs), None))


def mode_line(mode: FailureMode, width: int) -> Line:
    """One way to fail: count, share, what failed (or the judge's words for it)."""
    cases = f" in {mode.cases} cases" if mode.cases > 1 else ""
    line: Line = (Span(f"{mode.count:>5,} {share(mode.share):>4}  ", "failed"),)
    words = one_line(mode.name or mode.what)
    room = max(width - width_of(line) - len(cases), 8)
    return fit((*line, *fit((Span(words),), room), Span(cases, "muted")), width)
