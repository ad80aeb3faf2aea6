"""Columns of one test that are compared when all of them have run (select-best, max-score)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import chain, groupby
from math import ceil
from pathlib import Path
from typing import NamedTuple

import msgspec

from tui_eval.case_names import full_name
from tui_eval.engine import case_filters
from tui_eval.engine.attempt.attempt_judging import judge_services
from tui_eval.engine.attempt.continuing import JUDGED_AGAIN
from tui_eval.engine.cached_session import JudgeReplies
from tui_eval.engine.plan import Job
from tui_eval.engine.request import RequestCell, RunRequest
from tui_eval.engine.run_context import RunContext, judged_attempt, judges_take
from tui_eval.engine.schedule import Ticket
from tui_eval.engine.selection import failed_cells
from tui_eval.formats import format_of
from tui_eval.guard import figures
from tui_eval.model import NOT_COMPARED, Attempt, BeforeComparison, Case, Entry, JudgeUse, Suite
from tui_eval.store.case_state import Column, by_column
from tui_eval.store.column_names import column_agent
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import AttemptRow, CaseHistory, StoredCase
from tui_eval.store.writer import PlannedCase, RunWriter

Ended = tuple[Ticket, Attempt]
CaseColumn = tuple[str, str, str]
"""A case, and agent and model that are asked."""


class RowColumns:
    """Keeps ended attempts until those of all columns of their test have ended. `earlier` are columns that
    ended before this run (part) began; their tickets have orders below 0."""

    def __init__(self, tickets: Sequence[Ticket], earlier: Sequence[Ended] = ()) -> None:
        self._of: dict[int, bytes] = {}
        self._left: dict[bytes, int] = {}
        self._ended: dict[bytes, list[Ended]] = {}
        seen: dict[tuple[bytes, str, str | None, str | None], int] = {}
        job, case = None, None
        for ticket in chain((ticket for ticket, _ in earlier), tickets):
            if ticket.job is not job:  # the attempts of a job follow one another
                job = ticket.job
                case = job.case if compares(job.case) else None
            if case is None:
                continue
            same = test_mark(case) + b" %d" % ticket.number
            # A test that stands twice in the suite is two tests.
            column = (same, column_agent(case, ticket.job.agent), ticket.job.model, case.prompt)
            seen[column] = seen.get(column, 0) + 1
            key = same + b"%d" % seen[column]
            self._of[ticket.order] = key
            self._left[key] = self._left.get(key, 0) + (ticket.order >= 0)
        for ticket, attempt in earlier:
            key = self._of.get(ticket.order)
            if key is not None:
                self._ended.setdefault(key, []).append((ticket, _reopened(attempt)))
        whole = [key for key in self._ended if not self._left[key] and _never_compared(self._ended[key])]
        self.cut_off = [self._in_order(key) for key in whole]
        """The columns of each test that had all ended, and had not been compared, when the run was cut off."""

    def waits(self, ticket: Ticket) -> bool:
        """Whether an attempt is compared with others before it counts."""
        return ticket.order in self._of

    def take(self, ticket: Ticket, attempt: Attempt) -> list[Ended] | None:
        """All columns of the test, in order, once the last of them has ended; None before."""
        key = self._of[ticket.order]
        ended = self._ended.setdefault(key, [])
        ended.append((ticket, attempt))
        self._left[key] -= 1
        return None if self._left[key] else self._in_order(key)

    def _in_order(self, key: bytes) -> list[Ended]:
        return sorted(self._ended.pop(key), key=lambda item: item[0].job.case.order)


def compares(case: Case) -> bool:
    """Whether the columns of a case are compared with each other."""
    return format_of(case.format).compares_outputs(case)


def test_mark(case: Case) -> bytes:
    """What the columns of one test have in common; tests that stand twice in a suite have the same."""
    expected = [(assertion.type, assertion.line) for assertion in case.assertions]
    return msgspec.json.encode([case.suite, case.name, case.line, case.vars, expected], enc_hook=str)


def open_attempt(attempt: Attempt) -> Attempt:
    """An attempt as it is kept until its columns are compared: never a pass before."""
    if attempt.outcome != "passed":
        return attempt
    return msgspec.structs.replace(attempt, outcome="error", message=NOT_COMPARED)


def _never_compared(columns: Sequence[Ended]) -> bool:
    """Whether what compares columns has said nothing of them yet."""
    return any(verdict.reason == NOT_COMPARED for _, attempt in columns for verdict in attempt.verdicts)


def _reopened(attempt: Attempt) -> Attempt:
    """An attempt that was kept open, as it was judged."""
    if attempt.message != NOT_COMPARED:
        return attempt
    return msgspec.structs.replace(attempt, outcome="passed", message="passed")


def ended_columns(reader: RunReader, jobs: Sequence[Job]) -> list[Ended]:
    """The ended columns of a run that is gone on with, which are compared with those of `jobs`, or with each other
    where that was cut off: to be written again."""
    waiting = any(row.message == NOT_COMPARED for row in reader.attempts())
    jobs = jobs if waiting else [job for job in jobs if compares(job.case)]
    found = (
        Ticket(-number, job, entry.attempt, entry.id)
        for number, (job, entry, _) in enumerate(_compared_in(reader, jobs), 1)
    )
    attempts = ((ticket, reader.attempt(ticket.attempt_ref)) for ticket in found)
    return [(ticket, attempt) for ticket, attempt in attempts if attempt is not None]


class StoredColumn(NamedTuple):
    """What was said last of an answer of a column in the runs that a run is linked to. `answer` is its name
    (`AttemptRow.judges`), `share` how many of the column's attempts must pass."""

    job: Job
    number: int
    attempt: Attempt
    answer: str
    share: float

    @property
    def column(self) -> CaseColumn:
        """The case and who was asked."""
        return column_of(self.job)

    @property
    def comparable(self) -> bool:
        """Whether there is an answer that can be compared anew: what was compared by an earlier version and lost does
        not say what it had come to before."""
        attempt = self.attempt
        if not _answered(attempt):
            return False
        return (
            attempt.before_comparison is not None
            or attempt.message == NOT_COMPARED
            or attempt.outcome == "passed"
        )


def linked_columns(
    readers: Sequence[RunReader], jobs: Sequence[Job], asked: Collection[CaseColumn], today: Mapping[str, str]
) -> list[StoredColumn]:
    """The columns that those of `jobs` are compared with, from the runs (oldest first) that theirs is linked to: of
    each what was said last, where its case is the same `today` (its content hash by id). Those that are `asked` are
    not among them."""
    from tui_eval.store.linked import answer_name  # imported late: few suites compare columns

    begun: set[CaseColumn] = set()
    seen: set[tuple[CaseColumn, int]] = set()
    found: list[StoredColumn] = []
    for reader in reversed(readers):
        run_id = reader.info().id
        anew: set[CaseColumn] = set()
        for job, entry, row in _compared_in(reader, [job for job in jobs if compares(job.case)]):
            column = column_of(job)
            if column in asked or column in begun or (column, entry.attempt) in seen:
                continue
            attempt = reader.attempt(entry.id) if entry.outcome not in ("cancelled", "skipped") else None
            if attempt is None:
                continue
            seen.add((column, entry.attempt))
            if today.get(job.case.case_id) == job.case.content_hash:
                name = entry.judges or answer_name(run_id, entry.id)
                share = row.required / row.attempts if row.attempts else 1.0
                found.append(StoredColumn(job, entry.attempt, attempt, name, share))
            if entry.attempt == 1 and not entry.judges:
                anew.add(column)  # what was said of it before counts no more
        begun |= anew
    return found


def without_stored(
    jobs: Sequence[Job], asked: Collection[CaseColumn], stored: Sequence[StoredColumn]
) -> tuple[list[Job], list[Job]]:
    """The jobs without those whose answers are `stored`, which are compared and not asked anew; and those that nobody
    asked for and that have none."""
    there = {(one.column, one.number) for one in stored if one.comparable}
    left, added = list[Job](), list[Job]()
    for job in jobs:
        column = column_of(job)
        others = column not in asked and compares(job.case)
        numbers = range(job.first_attempt, job.first_attempt + job.attempts)
        if others and all((column, number) in there for number in numbers):
            continue
        left.append(job)
        if others:
            added.append(job)
    return left, added


def kept_beside(writer: RunWriter, stored: Sequence[StoredColumn], tickets: Sequence[Ticket]) -> list[Ended]:
    """Those stored columns that attempts of this run are compared with, as attempts of it that judge their answers
    again: until they have been compared they stand in it as they stood before. Nothing is sent for them."""
    if not stored:
        return []
    fresh = {column_of(ticket.job) for ticket in tickets}
    wanted = {
        (test_mark(case), ticket.number)
        for job, of_job in groupby(tickets, lambda ticket: ticket.job)
        if compares(case := job.case)
        for ticket in of_job
    }
    together: dict[CaseColumn, list[StoredColumn]] = {}
    for one in sorted(stored, key=lambda one: (one.job.case.order, one.number)):
        beside = one.comparable and one.column not in fresh
        if beside and (test_mark(one.job.case), one.number) in wanted:
            together.setdefault(one.column, []).append(one)
    references = writer.plan(
        [
            PlannedCase(
                ones[0].job.case, ones[0].job.agent, ones[0].job.model, len(ones),
                ceil(round(ones[0].share * len(ones), 9)), ones[0].number,
                [one.answer for one in ones], [one.number for one in ones],
            )
            for ones in together.values()
        ]
    )  # fmt: skip
    found: list[Ended] = []
    for ones, refs in zip(together.values(), references, strict=True):
        for one, ref in zip(ones, refs, strict=True):
            attempt = one.attempt
            attempt.judging = None  # that is with the run in which it was judged
            if not any(entry.kind == "note" and entry.text == JUDGED_AGAIN for entry in attempt.transcript):
                attempt.transcript.insert(0, Entry(turn=1, kind="note", text=JUDGED_AGAIN))
            writer.done(ref, attempt)
            found.append((Ticket(-1 - len(found), one.job, one.number, ref), attempt))
    return found


def _answered(attempt: Attempt) -> bool:
    return bool(attempt.verdicts) and attempt.error is None and attempt.outcome != "cancelled"


def column_of(job: Job) -> CaseColumn:
    """The column that a job asks."""
    return job.case.case_id, job.agent, job.model or ""


def _compared_in(reader: RunReader, jobs: Sequence[Job]) -> Iterator[tuple[Job, AttemptRow, StoredCase]]:
    """The attempts whose columns are compared and that ended, with a job each, in the suites of `jobs`."""
    of_suite = {job.suite: job for job in jobs}
    for row in reader.cases() if jobs else ():
        case = reader.case(row.id) if row.suite in of_suite else None
        if case is None or not compares(case):
            continue
        job = msgspec.structs.replace(of_suite[row.suite], held=case, agent=row.agent, model=row.model)
        for entry in reader.attempts(row.id):
            if entry.state == "done":
                yield job, entry, row


async def compared(
    columns: list[Ended], environment: RunContext, spent: Callable[[JudgeUse], None]
) -> list[str]:
    """Judge what compares these columns, in place; those of before that came to something else by it, in words.
    Without a new answer, columns that have been compared stay what they were. What the judge takes for all of them is
    `spent`, and with the first that is new (or of all)."""
    fresh = [(ticket, attempt) for ticket, attempt in columns if ticket.order >= 0]
    known = [attempt.before_comparison is not None for ticket, attempt in columns if ticket.order < 0]
    done = known and all(known) and not (not fresh and _never_compared(columns))
    if done and not any(_answered(attempt) for _, attempt in fresh):
        return []
    were = [(attempt.outcome, attempt.message) for _, attempt in columns]
    for _, attempt in columns:
        _as_before(attempt)
    ticket, first = (fresh or columns)[0]
    job = ticket.job

    def took(more: JudgeUse) -> None:
        first.judging = figures.judge_use(first.judging, more)
        spent(more)

    judges_take.set(took)
    renews = environment.answers is not None and not environment.answers.reads  # also of what is judged again
    replies = JudgeReplies(first.attempt, cached=job.recorded is None or renews)
    judged_attempt.set(replies)
    services = judge_services(job, environment)
    form = format_of(job.format)
    try:
        await form.compare_outputs(job.case, [attempt for _, attempt in columns], services, job.compat)
    except asyncio.CancelledError:
        if environment.answers is not None:  # what was answered is paid for
            await environment.answers.settle(replies, first.verdicts, environment.masker)
        raise
    if environment.answers is not None:
        await environment.answers.settle(replies, first.verdicts, environment.masker)
    return [
        f"{full_name(case.name, case.variant)}: {outcome} → {attempt.outcome}"
        for (ticket, attempt), (outcome, message) in zip(columns, were, strict=True)
        if ticket.order < 0
        and message != NOT_COMPARED
        and outcome != attempt.outcome
        and (case := ticket.job.case)
    ]


def _as_before(attempt: Attempt) -> None:
    """What an attempt came to before it was compared; remembered where it is compared for the first time."""
    before = attempt.before_comparison
    if before is None:
        attempt.before_comparison = BeforeComparison(
            attempt.outcome,
            attempt.message,
            attempt.score,
            dict(attempt.named_scores),
            dict(attempt.named_weights),
        )
        return
    attempt.outcome, attempt.message, attempt.score = before.outcome, before.message, before.score
    attempt.named_scores, attempt.named_weights = dict(before.named_scores), dict(before.named_weights)


# -- A test whose columns are compared is chosen whole: one of its columns alone has nobody to lose against,
# and where it wins anew, the one that had won has to lose. Who asks for a loser, or for what failed, asks for
# all columns of the test, as promptfoo's filters by failure do; of those that a run has answers of,
# `without_stored` asks none anew.


History = Mapping[str, Sequence[CaseHistory]]
_NAMES_COLUMNS = (
    "cells", "case_ids", "select", "failed_only", "filter_failing", "filter_failing_only", "filter_errors_only",
)  # fmt: skip


def names_columns(request: RunRequest) -> bool:
    """Whether a request may choose some columns of a test and not the others. A step, and what goes on from a
    recorded attempt, is one column by its nature."""
    alone = request.step or request.continue_from is not None or request.rescores is not None
    return not alone and any(getattr(request, name) for name in _NAMES_COLUMNS)


def whole_tests(
    chosen: Sequence[Case],
    loaded: Sequence[Suite],
    request: RunRequest,
    latest: Callable[[], History],
    store: Store,
) -> tuple[Sequence[Case], RunRequest]:
    """The chosen cases with the other columns of tests that compare them, and the request that asks for them: where
    it names columns, those that the run had in which they were compared."""
    marks = {test_mark(case) for case in chosen if compares(case)} if names_columns(request) else set[bytes]()
    if not marks:
        return chosen, request
    by_suite: dict[str, list[Case]] = {}
    for case in chosen:
        by_suite.setdefault(case.suite, []).append(case)
    members: dict[str, list[Case]] = {}
    for suite in loaded:
        own = by_suite.get(suite.path, [])
        if not any(map(compares, own)):
            continue
        ids = {case.case_id for case in own}
        tests = [case for case in suite.cases if compares(case) and test_mark(case) in marks]
        for case in case_filters.by_columns(tests, request):
            members.setdefault(case.case_id, []).append(case)
        ids |= members.keys()
        by_suite[suite.path] = [case for case in suite.cases if case.case_id in ids]
    found = [case for cases in by_suite.values() for case in cases]
    cells = request.cells
    if cells is None and request.failed_only and not (request.agents or request.models):
        cells = failed_cells(chosen, latest())
    if cells is None:
        return found, request
    tests = [case for cases in members.values() for case in cases]
    return found, msgspec.structs.replace(
        request, cells=_with_others(cells, tests, request.linked_to, latest, store)
    )


def _with_others(
    cells: Sequence[RequestCell],
    tests: Sequence[Case],
    linked_to: str | None,
    latest: Callable[[], History],
    store: Store,
) -> list[RequestCell]:
    """Cells of tests with those of their other columns."""
    by_test: dict[bytes, list[Case]] = {}
    for case in tests:
        by_test.setdefault(test_mark(case), []).append(case)
    named: dict[str, list[RequestCell]] = {}
    for cell in cells:
        named.setdefault(cell.case_id, []).append(cell)
    recorded = _RecordedColumns(store)
    found = {(cell.case_id, cell.agent, cell.model or ""): cell for cell in cells}
    for members in by_test.values():
        asked = [cell for case in members for cell in named.get(case.case_id, ())]
        runs = [linked_to] if linked_to else [_newest(cell, latest()) for cell in asked]
        own = all(cell.own for cell in asked)
        for case in members:
            columns = [column for run in dict.fromkeys(runs) if run for column in recorded.of(run, case)]
            others = [RequestCell(case.case_id, one.agent, one.model or None, own) for one in columns] or [
                RequestCell(case.case_id, cell.agent, cell.model, cell.own) for cell in asked
            ]
            for cell in others:
                found.setdefault((cell.case_id, cell.agent, cell.model or ""), cell)
    return list(found.values())


def _newest(cell: RequestCell, history: History) -> str | None:
    """The run of a column's newest result."""
    results = by_column(history.get(cell.case_id, ())).get(Column(cell.agent, cell.model or ""))
    return results[0].run_id if results else None


class _RecordedColumns:
    """Columns of cases as the runs had them that others are linked to: there tests ran whole."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._links: dict[str, str | None] | None = None
        self._runs: dict[str, dict[str, list[Column]]] = {}

    def of(self, run: str, case: Case) -> list[Column]:
        """Those that the first of a family of runs had that ran the case; none where none of them can be read."""
        from tui_eval.store.linked import family

        if self._links is None:
            self._links = Index(self._store.root).links()
        for one in family(self._links, run):
            if columns := self._of_run(one).get(case.case_id):
                return columns
        return []

    def _of_run(self, run: str) -> dict[str, list[Column]]:
        if run not in self._runs:
            columns: dict[str, list[Column]] = {}
            with suppress(StoreError), closing(RunReader(self._store.folder_of(run))) as reader:
                for row in reader.cases():
                    columns.setdefault(row.case_id, []).append(Column(row.agent, row.model or ""))
            self._runs[run] = columns
        return self._runs[run]


def recall(environment: RunContext, folder: Path, jobs: Sequence[Job]) -> list[Ended]:
    """What rows of a run that is gone on with need of those that ended: of a conversation, or with stored outputs,
    what came before them; of columns that are compared, the other columns, which are given back."""
    theirs = [job for job in jobs if format_of(job.format).templates]
    if not theirs:
        return []
    with closing(RunReader(folder)) as reader:
        environment.memory.recall(reader, theirs)
        return ended_columns(reader, theirs)


def recall_linked(
    environment: RunContext,
    store: Store,
    linked: str,
    jobs: Sequence[Job],
    asked: Collection[CaseColumn],
    today: Mapping[str, str],
) -> list[StoredColumn]:
    """As `recall`, of rows that are run again: from all runs that belong together with the one they were in, since a
    rerun of a rerun has but a part of them. `asked` and `today` as in `linked_columns`."""
    theirs = [job for job in jobs if format_of(job.format).templates]
    if not theirs:
        return []
    try:
        run = store.find(linked)
    except StoreError:
        return []  # the run is gone: its rows are, too
    from tui_eval.store.linked import family  # imported late: most runs are linked to none

    names = family(Index(store.root).links(), run.name)
    with ExitStack() as opened:
        readers: list[RunReader] = []
        for folder in [run if name == run.name else store.folder_of(name) for name in names]:
            with suppress(StoreError):  # of one that cannot be read nothing is known
                readers.append(opened.enter_context(closing(RunReader(folder))))
        for reader in readers:
            environment.memory.recall(reader, theirs)
        return linked_columns(readers, theirs, asked, today)
