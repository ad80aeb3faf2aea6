"""One HTML page of a run that needs nothing else: no script, no font and no link from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tui_eval.guard import figures
from tui_eval.model import Attempt
from tui_eval.reports import html_templates, results
from tui_eval.reports.html_templates import dollars
from tui_eval.reports.page_case import CaseShown, Result, case_shown
from tui_eval.store.column_names import suites_in_columns
from tui_eval.store.failure_modes import classified
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import shard_words
from tui_eval.store.summary import CaseSummary, cached_words, share, summarise_run, wilson

WHOLE = 5_000
"""Attempts up to which those that passed have their transcript in the page."""


class PageColumn(NamedTuple):
    """An agent with a model and, where they differ, one of promptfoo's prompts; means of a case, in ms and USD
    in all, of the `ended` ones; `low` and `high` are Wilson's 95 % (0–1)."""

    agent: str
    model: str
    prompt: str
    passed: int
    ended: int
    left: int
    low: float
    high: float
    duration_ms: float | None
    cost: float | None


def write(reader: RunReader, path: Path) -> None:
    """Write the page: counts, agents, ways to fail, and each case with its attempts, transcripts, verdicts."""
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.writelines(pieces(reader))


def pieces(reader: RunReader, served_as: str = "") -> Iterator[str]:
    """The page piece by piece; `served_as` is the run's id where the page is one of `tui-eval server`."""
    info, cases, attempts = reader.info(), reader.cases(), reader.attempts()
    summaries = summarise_run(cases, attempts)
    whole = sum(row.state == "done" for row in attempts) <= WHOLE
    passed, failed, errors = (_count(summaries, outcome) for outcome in ("passed", "failed", "error"))
    columns = _columns(reader, cases, summaries)
    return html_templates.pieces(
        "run.html.j2",
        served_as=served_as,
        several_columns=len({(case.agent, case.model) for case in cases}) > 1,
        summaries=summaries,
        passed=passed,
        failed=failed,
        errors=errors,
        facts=_facts(info, summaries, attempts),
        columns=columns,
        prompts=len({column.prompt for column in columns}) > 1,
        modes=classified(reader.assessment()).modes,
        filters=[
            ("all", "all", len(summaries)),
            ("bad", "not passed", len(summaries) - passed),
            ("passed", "passed", passed),
            ("flaky", "flaky", sum(item.flaky for item in summaries)),
        ],
        passed_whole=whole,
        most=WHOLE,
        cases=_cases(reader, cases, summaries, whole),
    )


def _count(summaries: Sequence[CaseSummary], outcome: str | None) -> int:
    return sum(item.outcome == outcome for item in summaries)


def _facts(
    info: RunInfo, summaries: Sequence[CaseSummary], attempts: Sequence[AttemptRow]
) -> list[tuple[str, str]]:
    """What is known of the run, by name; an empty text is left out."""
    passed = _count(summaries, "passed")
    ended = sum(item.outcome is not None for item in summaries)
    low, high = wilson(passed, ended)
    done = [row for row in attempts if row.state == "done"]
    flaky = sum(item.flaky for item in summaries)
    counts = [
        f"{passed:,} passed",
        f"{_count(summaries, 'failed'):,} failed",
        f"{_count(summaries, 'error'):,} errors",
    ]
    for outcome, word in (("cancelled", "cancelled"), ("skipped", "skipped"), (None, "not run")):
        number = _count(summaries, outcome)
        counts += [f"{number:,} {word}"] if number else []
    counts += [f"{flaky:,} flaky"] if flaky else []
    idle = sum(item.asserted_nothing for item in summaries)
    counts += [f"{idle:,} asserted nothing"] if idle else []
    counts += [cached] if (cached := cached_words(summaries)) else []
    tokens = figures.total(
        (figures.tokens(row.input_tokens, row.output_tokens) for row in done), "tokens of all attempts"
    )
    costs = [row.cost for row in done if row.cost is not None]
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.started_at))
    took = f", took {info.finished_at - info.started_at:,.0f} s" if info.finished_at else ""
    git = info.provenance.get("git")
    commit = ""
    if isinstance(git, dict) and git.get("commit"):
        commit = f"{str(git['commit'])[:12]}{' with changes' if git.get('dirty') else ''}"
    return [
        ("Cases", ", ".join(counts)),
        ("Pass rate", f"{share(passed / ended)} ({share(low)} to {share(high)} at 95 %)" if ended else ""),
        ("Attempts", f"{sum(row.outcome == 'passed' for row in done):,} of {len(done):,} passed"),
        ("Usage", " · ".join(part for part in (f"{tokens:,} tokens" if tokens else "",
                                              dollars(sum(costs)) if costs else "") if part)),
        ("Run", f"{info.id}, {info.state}, {when}{took}"),
        ("Part", shard_words(info.provenance)),
        ("Agents", ", ".join(info.agents) + (" (scripted)" if info.scripted else "")),
        ("Command", str(info.provenance.get("command") or "")),
        ("Commit", commit),
        ("Adds to", info.linked_to or ""),
        ("Note", info.note),
    ]  # fmt: skip


def _columns(
    reader: RunReader, cases: Sequence[StoredCase], summaries: Sequence[CaseSummary]
) -> list[PageColumn]:
    """The columns against each other, the worst first; none where there is only one."""
    groups: dict[tuple[str, str, str], list[CaseSummary]] = {}
    suites = suites_in_columns(reader, cases)
    for row, item in zip(cases, summaries, strict=True):
        prompt = (reader.case(row.id).prompt or "") if row.suite in suites else ""
        groups.setdefault((item.agent, item.model or "", prompt), []).append(item)
    if len(groups) < 2:
        return []
    columns = [_column(*key, items) for key, items in groups.items()]
    return sorted(columns, key=lambda one: one.passed / one.ended if one.ended else 2.0)


def _column(agent: str, model: str, prompt: str, items: Sequence[CaseSummary]) -> PageColumn:
    ended = [item for item in items if item.outcome is not None]
    passed = _count(ended, "passed")
    times = [item.duration_ms for item in ended if item.duration_ms is not None]
    costs = [item.cost for item in ended if item.cost is not None]
    return PageColumn(
        agent, model, prompt, passed, len(ended), len(items) - len(ended),
        *wilson(passed, len(ended)), sum(times) / len(times) if times else None, sum(costs) if costs else None,
    )  # fmt: skip


def _cases(
    reader: RunReader, cases: Sequence[StoredCase], summaries: Sequence[CaseSummary], whole: bool
) -> Iterator[tuple[str | None, CaseShown]]:
    """Every case in the order of the results, the first of a suite with the suite's name."""
    groups = groupby(results.rows_with_attempt(reader), key=lambda found: found[0])
    ref, rows = next(groups, (0, iter(())))
    suite = None
    order = sorted(range(len(cases)), key=lambda index: (cases[index].suite, cases[index].id))
    for index in order:
        item = summaries[index]
        own: list[tuple[Result, Attempt | None]] = []
        if cases[index].id == ref:
            own = [(row, attempt) for _, attempt, row in rows]
            ref, rows = next(groups, (0, iter(())))
        shown = case_shown(cases[index].id, item, own, passed_whole=whole, folder=reader.folder)
        yield (None if item.suite == suite else item.suite), shown
        suite = item.suite
