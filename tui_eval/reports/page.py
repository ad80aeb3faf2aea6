"""One HTML page of a run that needs nothing else: no script, no font and no link from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tui_eval.case_names import full_name
from tui_eval.guard import figures
from tui_eval.guard.text import clip
from tui_eval.model import JUDGED, Attempt
from tui_eval.reports import html_templates, results
from tui_eval.reports.html_templates import as_text, dollars
from tui_eval.reports.rows_shown import COLUMNS, ROWS, RowsShown, queries_beside, rows_shown
from tui_eval.store import column_names
from tui_eval.store.failure_modes import classified
from tui_eval.store.missing_cases import unread_listed_of, unread_report
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import RunInfo, scripted_agents, scripted_words
from tui_eval.store.shard_runs import commit_words, merged_words, shard_words, unfinished_in
from tui_eval.store.summary import (
    CaseSummary,
    RunSums,
    share,
    summarise,
    unfinished_tokens,
    unfinished_words,
    wilson,
)

if TYPE_CHECKING:
    from tui_eval.frames.queries import QueryLine


WHOLE = 5_000
"""Attempts up to which those that passed have their transcript in the page."""


class PageColumn(NamedTuple):
    """An agent with a model and, where they differ, one of promptfoo's prompts; what an attempt takes in ms, and USD
    in all, of the `ended` ones (`left` came to nothing); `low` and `high` are Wilson's 95 % (0–1)."""

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
    info, counted = reader.info(), _Counted(reader)
    sums, columns = counted.sums, counted.shown_columns()
    passed = sums.count("passed")
    whole = counted.done <= WHOLE
    return html_templates.pieces(
        "run.html.j2",
        served_as=served_as,
        unread=unread_report(info),
        unread_files=[one.text for one in unread_listed_of(info)],
        several_columns=len(counted.asked) > 1,
        total=sums.cases,
        passed=passed,
        failed=sums.count("failed"),
        errors=sums.count("error"),
        facts=_facts(info, counted),
        columns=columns,
        prompts=len({column.prompt for column in columns}) > 1,
        modes=classified(reader.assessment()).modes,
        filters=[
            ("all", "all", sums.cases),
            ("bad", "not passed", sums.cases - passed),
            ("passed", "passed", passed),
            ("flaky", "flaky", sums.flaky),
        ],
        passed_whole=whole,
        most=WHOLE,
        cases=_cases(reader, whole),
    )


class _Counted:
    """What is said of all cases above them: they are gone through once before they are shown."""

    def __init__(self, reader: RunReader) -> None:
        self.sums = RunSums()
        self.asked: set[tuple[str, str | None]] = set()
        self.done = self.unfinished = 0
        self.tokens: int | None = None
        self.cost: float | None = None
        self._columns: dict[tuple[str, str, str], _ColumnSums] = {}
        in_columns: dict[str, bool] = {}
        for case, attempts in reader.by_case():
            item = summarise(case, attempts)
            self.sums.add(item)
            self.asked.add((case.agent, case.model))
            if case.suite not in in_columns:
                in_columns[case.suite] = column_names.in_columns(reader.case(case.id))
            prompt = (reader.case(case.id).prompt or "") if in_columns[case.suite] else ""
            column = self._columns.setdefault((item.agent, item.model or "", prompt), _ColumnSums())
            column.add(item)
            self.unfinished += unfinished_tokens(attempts)
            for row in attempts:
                if row.state == "done":
                    self.done += 1
                    tokens = figures.tokens(row.input_tokens, row.output_tokens)
                    self.tokens = self.tokens if tokens is None else (self.tokens or 0) + tokens
                    self.cost = self.cost if row.cost is None else (self.cost or 0.0) + row.cost

    def shown_columns(self) -> list[PageColumn]:
        """The columns against each other, the worst first; none where there is only one."""
        if len(self._columns) < 2:
            return []
        columns = [sums.column(*key) for key, sums in self._columns.items()]
        return sorted(columns, key=lambda one: one.passed / one.ended if one.ended else 2.0)


class _ColumnSums(msgspec.Struct):
    passed: int = 0
    ended: int = 0
    left: int = 0
    duration_ms: float = 0.0
    timed: int = 0
    cost: float | None = None

    def add(self, item: CaseSummary) -> None:
        self.passed += item.outcome == "passed"
        if item.cost is not None:
            self.cost = (self.cost or 0.0) + item.cost
        if item.outcome not in JUDGED:
            self.left += 1
            return
        self.ended += 1
        if item.duration_ms is not None:
            self.duration_ms += item.duration_ms
            self.timed += 1

    def column(self, agent: str, model: str, prompt: str) -> PageColumn:
        time_each = self.duration_ms / self.timed if self.timed else None
        low_high = wilson(self.passed, self.ended)
        return PageColumn(
            agent, model, prompt, self.passed, self.ended, self.left, *low_high, time_each, self.cost
        )


def _facts(info: RunInfo, counted: _Counted) -> list[tuple[str, str]]:
    """What is known of the run, by name; an empty text is left out."""
    sums = counted.sums
    passed, judged = sums.count("passed"), sums.judged
    low, high = wilson(passed, judged)
    errors = sums.count("error")
    counts = [
        f"{passed:,} passed",
        f"{sums.count('failed'):,} failed",
        f"{errors:,} error{'s' * (errors != 1)}",
    ]
    for outcome in ("cancelled", "skipped", None):
        number = sums.count(outcome)
        counts += [f"{number:,} {outcome or 'not run'}"] if number else []
    counts += [sums.left_words] if sums.left else []
    counts += [f"{sums.flaky:,} flaky"] if sums.flaky else []
    counts += [f"{sums.asserted_nothing:,} asserted nothing"] if sums.asserted_nothing else []
    counts += [cached] if (cached := sums.cached_words) else []
    tokens = figures.total([counted.tokens], "tokens of all attempts")
    put_back, lost = unfinished_in(info)
    more = unfinished_words(counted.unfinished + put_back, lost)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.started_at))
    took = f", took {info.elapsed(info.finished_at):,.0f} s" if info.finished_at else ""
    return [
        ("Cases", ", ".join(counts)),
        ("Pass rate", f"{share(passed / judged)} ({share(low)} to {share(high)} at 95 %)" if judged else ""),
        ("Attempts", f"{sums.attempts_passed:,} of {counted.done:,} passed"),
        ("Usage", " · ".join(part for part in (f"{tokens:,} tokens" if tokens else "",
                                              dollars(counted.cost), sums.judges_words, more) if part)),
        ("Run", f"{info.id}, {info.state}, {when}{took}"),
        ("Part", shard_words(info.provenance)),
        ("Merged of", merged_words(info.provenance)),
        ("Agents", ", ".join(info.agents) + scripted_words(info.agents, scripted_agents(info))),
        ("Command", str(info.provenance.get("command") or "")),
        ("Commit", commit_words(info.provenance)),
        ("Adds to", info.linked_to or ""),
        ("Note", info.note),
    ]  # fmt: skip


def _cases(reader: RunReader, whole: bool) -> Iterator[tuple[str | None, CaseShown]]:
    """Every case in the order of the results, the first of a suite with the suite's name."""
    suite = None
    for case, attempts, found in results.rows_by_case(reader):
        item = summarise(case, attempts)
        item.name = reader.listed([case])[0].name
        own = [(row, attempt) for attempt, row in found]
        shown = case_shown(case.id, item, own, passed_whole=whole, folder=reader.folder)
        yield (None if case.suite == suite else case.suite), shown
        suite = case.suite


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
