"""Reading one case and one of its attempts from a run's folder, and what became of it over its runs; called
in a thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from typing import Any

from tui_eval.model import Verdict
from tui_eval.store.index import Index
from tui_eval.store.judged_under import compat_of
from tui_eval.store.linked import Placed, family, replaced_by
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.printed_commands import asked_again
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import GUESTS, Store, StoreError
from tui_eval.tui.state.app_state import Where
from tui_eval.tui.state.case.case_content import CaseContent, choose
from tui_eval.tui.state.case.case_history import CasePast, PastAttempt, agreements
from tui_eval.tui.state.case.copying import text_of
from tui_eval.tui.state.case.expectation_marks import listed_by
from tui_eval.tui.state.case.explain import explanations
from tui_eval.tui.state.case.transcript_view import build, prepared
from tui_eval.tui.state.runs.run_view import as_left
from tui_eval.tui.state.text.blocks import whole_text


def load(where: Where) -> CaseContent:
    """What the Case screen shows. What cannot be read is said in `problem`; never raises for it."""
    pointer = where.pointer
    content = CaseContent(pointer, case=where.case, today=where.today)
    if where.case is not None:
        content.name, content.suite = where.case.name, where.case.suite
    else:
        content.suite, _, content.name = pointer.case_id.partition("::")
    if where.folder is None:
        return content
    try:
        content.folder, content.run_id = where.folder, where.folder.name
        with closing(RunReader(where.folder)) as reader:
            _read(reader, where, content)
        if where.root is not None and content.row is not None:
            content.family = _family(where.root, where.folder, content)
            content.notes = notes_of(where.root, pointer.case_id)
    except (StoreError, OSError) as error:
        content.problem = str(error)
    return content


def read_text(where: Where, choice: str) -> str:
    """What a key of `COPY_CHOICES` copies of a case."""
    content = load(where)
    spoken = content.attempt if choice == "t" else None
    transcript = whole_text(build(spoken).blocks) if spoken is not None else ""
    return text_of(content, choice, transcript=transcript)


def _read(reader: RunReader, where: Where, content: CaseContent) -> None:
    pointer, case_ref = where.pointer, where.case_ref
    if case_ref is None:
        rows = reader.cases_of(pointer.case_id)
        fitting = [
            row
            for row in rows
            if pointer.agent in (None, row.agent) and (pointer.model is None or pointer.model == row.model)
        ]
        if (
            pointer.agent is None and pointer.attempt_ref is not None
        ):  # the attempt says which column is meant
            held = {one.case_ref for one in reader.attempts_with([pointer.attempt_ref])}
            fitting = [row for row in rows if row.id in held] or fitting
        found = next(iter(fitting or rows), None)
        if found is None:
            content.problem = f"this case is not in run {where.folder.name if where.folder else ''}"
            return
        case_ref = found.id
    info = reader.info()  # before its attempts: of a run that has ended all of them have
    content.rows = reader.attempts(case_ref)
    content.case = reader.case(case_ref)
    column = next((row for row in reader.cases_of(content.case.case_id) if row.id == case_ref), None)
    content.agent, content.model = (column.agent, column.model) if column else (None, None)
    content.recorded = column.content_hash if column else ""
    content.ended = info.state not in ("running", "paused")
    content.rows = as_left(content.rows, info)
    content.row = choose(content.rows, pointer.attempt_ref)
    content.options, content.replaces = asked_again(info), replaced_by(info)
    content.name, content.suite = content.case.name, content.case.suite
    content.compat = compat_of(info)(content.suite)
    if content.row is not None and content.row.state == "done":
        content.attempt = reader.attempt(content.row.id)
        if content.attempt is not None:
            if content.attempt.outcome == "failed":  # for the nearest to what is missing
                content.attempt.listed = listed_by(where.beside)
            content.transcript = prepared(content.attempt)
            content.explained = explanations(content.attempt)


def _family(root: Path, folder: Path, content: CaseContent) -> list[Placed]:
    """The case's attempts over its run and the runs linked to it: the same case (unchanged, or judged
    again after a change), agent and model. Runs that cannot be read are left out."""
    again = content.replaces
    own = [Placed(folder.name, row, again) for row in content.rows]
    try:
        names = family(Index(root).links(), folder.name)
    except (StoreError, OSError, sqlite3.Error):
        return own
    found: list[Placed] = []
    here = Store(root)
    for name in names:
        if name == folder.name:
            found.extend(own)
            continue
        try:
            with closing(
                RunReader(folder.parent / name if not here.holds(folder) else here.folder_of(name))
            ) as reader:
                instead = replaced_by(reader.info())
                for row in reader.cases_of(content.pointer.case_id):
                    same = (row.agent, row.model) == (content.agent, content.model)
                    unchanged = content.case is not None and row.content_hash == content.case.content_hash
                    if same and (unchanged or again is not None or instead is not None):
                        found.extend(Placed(name, attempt, instead) for attempt in reader.attempts(row.id))
        except (StoreError, OSError):
            continue
    return found


def notes_of(root: Path, case_id: str) -> dict[tuple[str, int], HumanNote]:
    """What people noted on the case's attempts, by run and attempt."""
    return {(note.run_id, note.attempt_ref): note for note in Notes(root).of_case(case_id)}


RUNS = 300
"""Runs of a case that are looked at, the newest ones."""
ANSWERS = 60
"""Answers that are read and compared, the newest ones."""


def load_past(root: Path, case_id: str, agent: str | None = None, model: str | None = None) -> CasePast:
    """The case's attempts in the newest runs (with this agent and model, where given), in the order in which they
    began, and how often people agree with judges. Runs that cannot be read are left out."""
    store = Store(root)
    runs = sorted({*GUESTS, *(one.run_id for one in Index(root).history(case_id))})[-RUNS:]
    notes = Notes(root)
    by_place = {(note.run_id, note.attempt_ref): note for note in notes.of_case(case_id)}
    by_run: dict[str, list[PastAttempt]] = {}
    seen: set[tuple[Any, ...]] = set()
    known = 0
    for run_id in sorted(runs, key=lambda name: (name not in GUESTS, name), reverse=True):
        try:
            with closing(RunReader(store.folder_of(run_id))) as reader:
                of_run = list(_attempts(reader, run_id, case_id, agent, model, known))
        except (StoreError, OSError):
            continue
        if (
            run_id in GUESTS
        ):  # shards that are looked at may have been merged here: an attempt is one all the same
            of_run = [one for one in of_run if _same(one) not in seen]
        seen.update(map(_same, of_run))
        for one in of_run:
            one.note = by_place.get((run_id, one.row.id))
        by_run[run_id] = of_run
        known += len(of_run)
    found = [one for run_id in sorted(by_run) for one in by_run[run_id]]
    # Not that of their runs: a merged run, or one that went on, has attempts from before others'. Those without a
    # time stay behind the one before them.
    began = accumulate((one.row.started_at or 0.0 for one in found), lambda before, own: own or before)
    in_time = sorted(zip(began, found, strict=True), key=lambda one: one[0])
    return CasePast([one for _, one in in_time], agreements(_judged(store, notes.verdicts())))


def _same(one: PastAttempt) -> tuple[Any, ...]:
    """What an attempt has in each run that holds it; one without a time is known from nowhere else."""
    row = one.row
    where = () if row.started_at else (one.run_id, row.id)
    return (*where, one.agent, one.model, row.attempt, row.started_at, row.duration_ms, row.judges)


def read_answers(root: Path, attempts: Sequence[PastAttempt]) -> None:
    """Read the answers of these attempts that were left out; one that cannot be read is empty."""
    store = Store(root)
    for one in attempts:
        if one.answer is None:
            one.answer = ""
            try:
                with closing(RunReader(store.folder_of(one.run_id))) as reader:
                    one.answer = reader.answer(one.row.id)
            except (StoreError, OSError):
                continue


def _attempts(
    reader: RunReader, run_id: str, case_id: str, agent: str | None, model: str | None, known: int
) -> Iterator[PastAttempt]:
    for case in reader.cases_of(case_id):
        # Where the agent is known, its model is, too: one without a name is not any.
        if agent and (case.agent != agent or (case.model or "") != (model or "")):
            continue
        if model and case.model != model:
            continue
        compat = compat_of(reader.info())(case.suite)
        for row in reader.attempts(case.id):
            if row.state != "done" or row.outcome in ("cancelled", "skipped", None):
                continue
            answer = reader.answer(row.id) if known < ANSWERS else None
            yield PastAttempt(run_id, row, case.agent, case.model, case.content_hash, answer, compat=compat)


def _judged(store: Store, notes: list[HumanNote]) -> Iterator[tuple[list[Verdict], str]]:
    """The verdicts of attempts that a person called right or wrong."""
    by_run: dict[str, list[HumanNote]] = {}
    for note in notes:
        by_run.setdefault(note.run_id, []).append(note)
    seen: set[tuple[str, str | None, int, float]] = set()
    for run_id, of_run in by_run.items():
        try:
            with closing(RunReader(store.folder_of(run_id))) as reader:
                for note in of_run:
                    attempt = reader.attempt(note.attempt_ref)
                    if attempt is None or not note.verdict:
                        continue
                    same = (note.case_id, attempt.agent, attempt.attempt, attempt.started_at)
                    if attempt.started_at and same in seen:
                        continue  # a part's, which stands in what it was merged to, too
                    seen.add(same)
                    yield attempt.verdicts, note.verdict
        except (StoreError, OSError):
            continue
