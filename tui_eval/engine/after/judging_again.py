"""Recorded answers judged again: which answers those are, and the attempts that judge them.

An answer is judged from what was first recorded of it, however often it has been judged since, and each
judgement names it (`AttemptRow.judges`): that one answer is never counted twice rests on it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tui_eval.engine.changed import mark_then
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.kept_cases import KeptCases
from tui_eval.engine.plan import Job, refused
from tui_eval.engine.request import Recorded
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.selection import SelectionError
from tui_eval.formats import format_of
from tui_eval.guard.spelling import some_of
from tui_eval.model import Attempt, Case
from tui_eval.store.column_names import in_columns
from tui_eval.store.index import Index
from tui_eval.store.linked import Placed, answer_name, family, generations, replaced_by
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import FROM_FILE, AttemptRow, RunInfo, StoredCase
from tui_eval.store.writer import PlannedCase, RunWriter

_NO_RESULT = ("cancelled", "skipped")
_NAMED = 3
"""Of agents that changed, those that are named."""
_CHAIN = 20  # judgements of judgements, as earlier versions made them


class RecordedAnswer(NamedTuple):
    """A recorded answer: its name (`RUN/ATTEMPT`), the number of its attempt, what was first recorded, and the case as
    it was then; what its run says its agents were, where that is known."""

    name: str
    number: int
    attempt: Attempt
    case: Case
    asked: Mapping[str, Any]


class AnsweredAttempt(NamedTuple):
    """A case of a run with its column, its answers in order, and the numbers of its attempts that have none: they never
    ran, or not to their end. Judged again it lacks them as before."""

    row: StoredCase
    case: Case
    answers: list[RecordedAnswer]
    without: Sequence[int] = ()


class Judged(NamedTuple):
    """Answers that a job judges again, how many attempts must pass, and the numbers of those that have no answer."""

    job: Job
    required: int
    answers: list[RecordedAnswer]
    without: Sequence[int] = ()


SoFar = Callable[[str, int, int], Any]
"""Told what is being done, how far it is, and how much there is of it."""


class _OpenRuns:
    """Runs that answers are read from, each opened once: a run of twenty thousand is not opened twenty
    thousand times."""

    MOST = 16

    def __init__(self) -> None:
        self._readers: dict[Path, RunReader] = {}

    def __getitem__(self, folder: Path) -> RunReader:
        reader = self._readers.pop(folder, None) or RunReader(folder)
        self._readers[folder] = reader  # the last one used stands last
        if len(self._readers) > self.MOST:
            self._readers.pop(next(iter(self._readers))).close()
        return reader

    def close(self) -> None:
        """Close all of them."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()


def answers_of_run(
    store: Store, folder: Path, so_far: SoFar | None = None
) -> tuple[RunInfo, list[AnsweredAttempt]]:
    """What a run holds, each case with the answers of its attempts. An attempt that ended without an answer is
    among them, since it does not pass by being left out; one that was cancelled, or changed by hand, is no
    result. Cases without any answer are there, too: a run that lacks them is no whole one. Empty where no case has one.

    Raises:
        StoreError: it cannot be read.
    """
    found: list[AnsweredAttempt] = []
    with closing(RunReader(folder)) as reader, closing(_OpenRuns()) as runs:
        info, rows = reader.info(), reader.cases()
        for number, row in enumerate(rows):
            if so_far is not None:
                so_far("reading the recorded answers", number, len(rows))
            placed = [(folder, info, one) for one in reader.attempts(row.id)]
            answers, without = _answers(store, placed, runs), _without_answer(placed)
            found.append(AnsweredAttempt(row, reader.case(row.id), answers, without))
    return info, found if any(one.attempt.replies for case in found for one in case.answers) else []


def answers_of_cases(
    store: Store, folder: Path, case_ids: Collection[str]
) -> tuple[RunInfo, list[AnsweredAttempt]]:
    """As `answers_of_run`, of these cases of it alone, and with the answers of other runs that count together with
    theirs. Cases without a result are left out.

    Raises:
        StoreError: it cannot be read.
    """
    with closing(RunReader(folder)) as reader:
        info = reader.info()
        last = [
            next((one.id for one in reversed(reader.attempts(row.id)) if one.state == "done"), None)
            for row in reader.cases()
            if row.case_id in case_ids
        ]
    found: list[AnsweredAttempt] = []
    for ref in last:
        if ref is not None:
            with suppress(SelectionError):
                found.append(answers_beside(store, Recorded(str(folder), ref)))
    return info, found


def never_ran(folder: Path) -> int:
    """How many attempts of a run ended without being run to their end.

    Raises:
        StoreError: it cannot be read.
    """
    with closing(RunReader(folder)) as reader:
        return sum(row.state != "done" or row.outcome == "cancelled" for row in reader.attempts())


def answers_beside(store: Store, recorded: Recorded) -> AnsweredAttempt:
    """The attempts of a case that count together with a recorded one (`store.linked.generations`), of its run
    and of those linked to it, as `answers_of_run` has them.

    Raises:
        StoreError: there is no such run, or it cannot be read.
        SelectionError: the attempt has not ended, one beside it is being made, or none of them is a result.
    """
    folder = folder_of(store, recorded.run)
    with closing(RunReader(folder)) as reader:
        info = reader.info()
        row = next((one for one in reader.attempts_with([recorded.attempt]) if one.state == "done"), None)
        case = next((one for one in reader.cases() if row is not None and one.id == row.case_ref), None)
        if row is None or case is None:
            raise SelectionError(f"run {folder.name}: attempt {recorded.attempt} has not ended")
        body = reader.case(case.id)
    name = row.judges or answer_name(folder.name, row.id)
    sources: dict[str, tuple[Path, RunInfo]] = {}
    runs = [own for one in _family(store, folder, info) if (own := _attempts(one, case, sources))]
    together = next(
        (group for group in generations(runs) if any(one.answer == name for one in group)),
        [Placed(folder.name, row)],
    )
    for one in together:
        going_on = one.run_id in sources and sources[one.run_id][1].state in ("running", "paused")
        if going_on and one.row.state != "done":
            raise SelectionError(
                f"run {one.run_id} goes on with this case: judge it again when all of its attempts have ended"
            )
    sources.setdefault(folder.name, (folder, info))
    placed = [(*sources[one.run_id], one.row) for one in together]
    with closing(_OpenRuns()) as open_runs:
        answers = _answers(store, placed, open_runs)
    if not answers:
        raise SelectionError("there is no recorded answer to judge: run the case")
    return AnsweredAttempt(case, body, answers, _without_answer(placed))


def folder_of(store: Store, run: str) -> Path:
    """The folder of a run that is named by its id, or by where it is."""
    return Path(run) if "/" in run else store.folder_of(run)


def _family(store: Store, folder: Path, info: RunInfo) -> list[Path]:
    """The folders of the runs that a run belongs together with, oldest first."""
    links: dict[str, str | None] = {}
    with suppress(StoreError, OSError, sqlite3.Error):
        links = Index(store.root).links()
    links.setdefault(folder.name, info.linked_to)
    return [folder if name == folder.name else store.folder_of(name) for name in family(links, folder.name)]


def _attempts(folder: Path, column: StoredCase, sources: dict[str, tuple[Path, RunInfo]]) -> list[Placed]:
    """The attempts of a case and column in one run; none where it cannot be read, or where it was changed by
    hand on its way."""
    with suppress(StoreError, OSError), closing(RunReader(folder)) as reader:
        info = reader.info()
        sources[folder.name] = folder, info
        instead = replaced_by(info)
        rows = [
            row
            for case in reader.cases_of(column.case_id)
            if (case.agent, case.model) == (column.agent, column.model)
            for row in reader.attempts(case.id)
        ]
        if not any(row.state == "done" and row.outcome not in _NO_RESULT for row in rows):
            return []
        return [Placed(folder.name, row, instead) for row in rows]
    return []


def _answers(
    store: Store, placed: Iterable[tuple[Path, RunInfo, AttemptRow]], runs: _OpenRuns
) -> list[RecordedAnswer]:
    """The answers that these attempts are, or judge, each once."""
    found: dict[str, RecordedAnswer] = {}
    for folder, info, row in placed:
        if not _has_answer(row):
            continue
        attempt, case = runs[folder].attempt(row.id), runs[folder].case(row.case_ref)
        if attempt is None:
            continue
        name, first, asked, given_in = _first(store, folder, info, row, attempt, case, runs)
        agents = given_in.provenance.get("agents") if given_in is not None else None
        known = agents if isinstance(agents, dict) else {}
        found.setdefault(name, RecordedAnswer(name, row.attempt, first, asked, known))
    return list(found.values())


def _has_answer(row: AttemptRow) -> bool:
    return row.state == "done" and row.outcome not in _NO_RESULT


def _without_answer(placed: Iterable[tuple[Path, RunInfo, AttemptRow]]) -> list[int]:
    """The numbers of those of these attempts of a case that have none."""
    rows = [row for _, _, row in placed]
    known = {row.attempt for row in rows if _has_answer(row)}
    return sorted({row.attempt for row in rows} - known)


def _first(
    store: Store, folder: Path, info: RunInfo, row: AttemptRow, attempt: Attempt, case: Case, runs: _OpenRuns
) -> tuple[str, Attempt, Case, RunInfo | None]:
    """An answer's name, what was first recorded of it, the case that was asked, and the run; where that is
    gone, what the judgement kept."""
    name = answer_name(folder.name, row.id)
    for _ in range(_CHAIN):
        judged = _judged(info, row)
        if judged is None:
            return name, attempt, case, info
        name = judged
        run, _, number = judged.rpartition("/")
        folder = store.folder_of(Path(run).name)
        try:
            reader = runs[folder]
            found = reader.attempt(int(number))
            rows = reader.attempts_with([int(number)])
            info = reader.info()
            asked = reader.case(rows[0].case_ref) if rows else case
        except (StoreError, OSError, ValueError):
            break
        if found is None or not rows or found.case_id != attempt.case_id:
            break
        attempt, row, case = found, rows[0], asked
    return name, attempt, case, None


def _judged(info: RunInfo, row: AttemptRow) -> str | None:
    """The answer that an attempt judges again; None where the agent was asked."""
    if row.judges:
        return row.judges
    given = info.options.get("continue_from")
    instead = replaced_by(info)
    if instead is None or not isinstance(given, dict) or given.get("turn") is not None:
        return None
    return answer_name(*instead)


def judged_by(jobs: Sequence[Job], answered: AnsweredAttempt, run: str) -> Judged:
    """The job of the answers' own column, among those that today's files and configuration make of its case. Who gave
    them may be configured no more: nobody is asked.

    Raises:
        SelectionError: there is none.
    """
    row = answered.row
    own = [job for job in jobs if job.case.case_id == row.case_id]
    if not own:
        raise SelectionError(f"the recorded attempt is of {row.case_id}, which is not among the cases")
    job = next((job for job in own if (job.agent, job.model) == (row.agent, row.model)), None)
    if job is None:
        job = next((job for job in own if job.agent == row.agent), None)
        if job is None:
            job = msgspec.structs.replace(own[0], agent=row.agent, spec=None)
        job = msgspec.structs.replace(job, model=row.model)
    if job.spec is None:
        job = msgspec.structs.replace(job, problem=refused(job.case))
    if answered.case.column:  # it is judged in the column that it was answered in
        column = {"agent": answered.case.agent, "column": answered.case.column}
        job = msgspec.structs.replace(job, held=msgspec.structs.replace(job.case, **column))
    share = row.required / row.attempts if row.attempts else 1.0
    planned = len(answered.answers) + len(answered.without)
    return Judged(job, ceil(round(share * planned, 9)), answered.answers, answered.without)


def of_former_agents(judged: Iterable[Judged], marks: Fingerprints) -> str:
    """That answers are of agents which are others by now, for a person; empty: of none that is known.
    Blocking: it reads the agents' files."""
    changed: dict[str, str] = {}
    for job, _, answers, _ in judged:
        if job.spec is None and not _in_a_file_s_column(job.case):
            changed[job.agent] = "no longer configured"
        if job.spec is None or changed.get(job.agent):
            continue
        known = [then for one in answers if isinstance(then := mark_then(one.asked, job, marks.config), dict)]
        changed[job.agent] = next(filter(None, (marks.differs(job.spec, before) for before in known)), "")
    named = [f"agent {name} ({what})" for name, what in changed.items() if what]
    if not named:
        return ""
    return f"changed since these answers were given: {some_of(named, _NAMED)}; run the cases to ask anew"


def _in_a_file_s_column(case: Case) -> bool:
    """Whether a case is known from a results file alone that names its column's provider, and no more of it."""
    return case.content_hash.startswith(FROM_FILE) and in_columns(case)


def of_transformed(judged: Iterable[Judged]) -> str:
    """That answers were not transformed again, since their results file has nothing else, for a person; empty: none."""
    number = sum(
        any(reply.transformed for reply in one.attempt.replies)
        for job, _, answers, _ in judged
        if format_of(job.format).transforms(job.case)
        for one in answers
    )
    if not number:
        return ""
    what = "1 answer is" if number == 1 else f"{number:,} answers are"
    return f"{what} in the file only as transforms left them then: those of today were not applied"


def planned(
    writer: RunWriter,
    environment: RunContext,
    judged: Sequence[Judged],
    unanswered: Iterable[AnsweredAttempt] = (),
) -> tuple[list[Job], list[list[int]]]:
    """A job for each answer, and the attempt that is to hold its judgement. Attempts without an answer are planned with
    them, those of `unanswered` cases alone: nothing will come of them, and whatever counts or lists cases says so."""
    kept = KeptCases(environment.masker).kept
    plan: list[PlannedCase] = []
    places: list[list[int]] = []
    for one in judged:
        rows = [(answer.number, answer.name) for answer in one.answers]
        rows += [(number, "") for number in one.without]
        order = sorted(range(len(rows)), key=lambda at: rows[at][0])
        places.append([order.index(at) for at in range(len(one.answers))])
        plan.append(_planned(kept(one.job.case), one.job, one.required, [rows[at] for at in order]))
    for one in unanswered:
        rows = [(number, "") for number in one.without]
        plan.append(_planned(kept(one.case), one.row, one.row.required, rows))
    references = writer.plan(plan)
    jobs = [
        msgspec.structs.replace(
            one.job, attempts=1, required=1, first_attempt=answer.number, recorded=answer.attempt,
            asked_case=answer.case, from_turn=None, deadline_all=None, deadline_suite=None, pause=0.0,
            of_attempts=len(one.answers) + len(one.without),
        )
        for one in judged
        for answer in one.answers
    ]  # fmt: skip
    return jobs, [[refs[at]] for refs, own in zip(references, places, strict=False) for at in own]


def _planned(
    held: Case | bytes, column: Job | StoredCase, required: int, rows: Sequence[tuple[int, str]]
) -> PlannedCase:
    """A case with the numbers of its attempts and what each of them judges."""
    numbers, judges = [number for number, _ in rows], [name for _, name in rows]
    return PlannedCase(
        held, column.agent, column.model, len(rows), required, min(numbers, default=1), judges, numbers
    )
