"""One HTML page of a run that needs nothing else: no script, no font and no link from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_eval.case_names import full_name
from tui_eval.guard import figures
from tui_eval.guard.text import clip
from tui_eval.model import Attempt
from tui_eval.reports import html_templates, results
from tui_eval.reports.html_templates import as_text, dollars
from tui_eval.reports.rows_shown import COLUMNS, ROWS, RowsShown, queries_beside, rows_shown
from tui_eval.store.column_names import suites_in_columns
from tui_eval.store.failure_modes import classified
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import shard_words
from tui_eval.store.summary import CaseSummary, cached_words, share, summarise_run, wilson

if TYPE_CHECKING:
    from tui_eval.frames.queries import QueryLine


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


# -- The spans that an attempt's agent exported, as the HTML page of a run shows them: a tree.


MOST_SPANS = 200
_DEEPEST = 30
_ERROR = 2


class SpanShown(NamedTuple):
    """A span; `milliseconds` is None where one of its times is not known."""

    name: str
    message: str
    attributes: dict[str, Any]
    milliseconds: float | None
    failed: bool


class TraceShown(NamedTuple):
    """The first spans with their depths, how many there are (`whole`), and why there are no more."""

    spans: list[tuple[SpanShown, int]]
    whole: int
    said: str


def trace_shown(trace: dict[str, Any] | None) -> TraceShown | None:
    """What is shown of a trace; None without one.

    Args:
        trace: `trace` of a results file's entry.
    """
    if not trace:
        return None
    spans = trace.get("spans") or []
    said = " · ".join(trace[key] for key in ("problem", "note") if trace.get(key))
    tree = [(_span(span), depth) for span, depth in _tree(spans)[:MOST_SPANS]]
    return TraceShown(tree, len(spans), said)


def _span(span: dict[str, Any]) -> SpanShown:
    start, end = span.get("start"), span.get("end")
    took = end - start if start is not None and end is not None else None
    failed = span.get("status") == _ERROR
    return SpanShown(span["name"], span.get("message") or "", span.get("attributes") or {}, took, failed)


def _tree(spans: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Every span with its depth, each after the one that it belongs to; ones that belong to none that is
    known come first. Each is shown once, whatever the parents say."""
    known = {span["span_id"] for span in spans}
    below: dict[str | None, list[dict[str, Any]]] = {}
    for span in sorted(spans, key=lambda span: span.get("start") or 0):
        parent = span.get("parent_id")
        below.setdefault(parent if parent in known and parent != span["span_id"] else None, []).append(span)
    found: list[tuple[dict[str, Any], int]] = []
    shown: set[int] = set()

    def walk(parent: str | None, depth: int) -> None:
        for span in below.get(parent, ()):
            if id(span) not in shown:
                shown.add(id(span))
                found.append((span, depth))
                if depth < _DEEPEST:
                    walk(span["span_id"], depth + 1)

    walk(None, 0)
    found += [(span, 0) for span in spans if id(span) not in shown]
    return found


# -- Rows that differ, as the HTML page of a run shows them: the one table, or both sides where there is
# none.


class FrameShown(NamedTuple):
    """The first rows of one side, and how many `more` there are."""

    columns: list[str]
    rows: list[list[Any]]
    more: int


class DataShown(NamedTuple):
    """What differs in words and as rows: the one table, else the `sides` by name; and the queries, line beside line
    where the record has both."""

    comparison: str
    reference_sql: str
    rows: RowsShown = RowsShown()
    sides: Sequence[tuple[str, FrameShown]] = ()
    queries: Sequence[QueryLine] = ()


def data_shown(details: Mapping[str, Any], attempt: Attempt | None, folder: Path | None = None) -> DataShown:
    """What is shown of a comparison.

    Args:
        attempt: with the rows as they were compared (None: only those in `details`, which then stand side by side).
        folder: the run's, where whole frames are kept.
    """
    data = attempt.data if attempt is not None else None
    shown = DataShown(
        details.get("comparison") or "",
        details.get("reference_sql") or "",
        rows_shown(data, folder, attempt=attempt),
    )
    if shown.rows.fault:
        given = details.get("actual_data")
        return shown._replace(sides=[("the answer's rows", _frame(given))] if given else ())
    if not shown.comparison:
        return shown
    if attempt is not None and attempt.outcome != "passed":
        shown = shown._replace(queries=queries_beside(attempt))
    if shown.rows.table is not None or shown.rows.order:
        return shown
    return shown._replace(
        sides=[(name, _frame(details.get(f"{name}_data"))) for name in ("expected", "actual")]
    )


def _frame(rows: Sequence[Mapping[str, Any]] | None) -> FrameShown:
    first = (rows or [])[:ROWS]
    columns = list(dict.fromkeys(str(name) for row in first for name in row))[:COLUMNS]
    cells = [[row.get(name) for name in columns] for row in first]
    return FrameShown(columns, cells, max(len(rows or []) - ROWS, 0))


# -- One case, as the HTML page of a run shows it.


_PROMPT, _NAME, _SHORT = 40, 80, 60

Result = dict[str, Any]
"""One entry of `results[]`; what is read from a run can be stored already."""


class VerdictShown(NamedTuple):
    """A verdict, its outcome in a word, and what was expected and what came: short values stand in a line."""

    verdict: Result
    outcome: str
    values: list[tuple[str, str]]
    in_a_line: bool


class AttemptShown(NamedTuple):
    """An attempt; `entries` and `trace` are empty where the page leaves them out."""

    row: Result
    verdicts: list[VerdictShown]
    data: DataShown
    entries: Sequence[Result]
    trace: TraceShown | None


class CaseShown(NamedTuple):
    """A case with its attempts; `number` is the one of its row in the run."""

    number: int
    summary: CaseSummary
    name: str
    who: str
    attempts: list[AttemptShown]


def case_shown(
    number: int,
    item: CaseSummary,
    results: Sequence[tuple[Result, Attempt | None]],
    *,
    passed_whole: bool = True,
    folder: Path | None = None,
) -> CaseShown:
    """A case with its results, each with its rows as they were compared; without `passed_whole` those that
    passed have no transcript. `folder` is the run's."""
    prompt = next((row["prompt"] for row, _ in results if row.get("prompt")), "")
    parts = (item.agent, item.model, clip(str(prompt or ""), _PROMPT))
    who = " · ".join(clip(str(part), _NAME) for part in parts if part)
    attempts = [
        _attempt(row, made, folder, passed_whole or row["outcome"] != "passed") for row, made in results
    ]
    return CaseShown(number, item, full_name(item.name, item.variant), who, attempts)


def _attempt(row: Result, attempt: Attempt | None, folder: Path | None, whole: bool) -> AttemptShown:
    return AttemptShown(
        row,
        [_verdict(verdict) for verdict in row["assertions"]],
        data_shown(row["details"], attempt, folder),
        row["transcript"] if whole else (),
        trace_shown(row.get("trace")) if whole else None,
    )


def _verdict(verdict: Result) -> VerdictShown:
    outcome = {True: "passed", False: "failed", None: "error"}[verdict["passed"]]
    told = () if outcome == "passed" else ("expected", "actual")
    values = [(name, as_text(verdict[name])) for name in told if verdict[name] not in (None, "")]
    in_a_line = all(len(text) <= _SHORT and "\n" not in text for _, text in values)
    return VerdictShown(verdict, outcome, values, in_a_line)
