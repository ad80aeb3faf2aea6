"""Reading what became of a case over its runs, and how people judged; called in a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from tui_eval.model import Verdict
from tui_eval.store.index import Index
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import GUESTS, Store, StoreError
from tui_eval.tui.state.case.case_history import CasePast, PastAttempt, agreements

RUNS = 300
"""Runs of a case that are looked at, the newest ones."""
ANSWERS = 60
"""Answers that are read and compared, the newest ones."""


def load_past(root: Path, case_id: str, agent: str | None = None, model: str | None = None) -> CasePast:
    """The case's attempts in the newest runs (with this agent and model, where given) and how often
    people agree with judges. Runs that cannot be read are left out."""
    store = Store(root)
    runs = sorted({*GUESTS, *(one.run_id for one in Index(root).history(case_id))})[-RUNS:]
    notes = Notes(root)
    by_place = {(note.run_id, note.attempt_ref): note for note in notes.of_case(case_id)}
    found: list[PastAttempt] = []
    for run_id in reversed(runs):
        try:
            with closing(RunReader(store.folder_of(run_id))) as reader:
                of_run = list(_attempts(reader, run_id, case_id, agent, model, len(found)))
        except (StoreError, OSError):
            continue
        for one in of_run:
            one.note = by_place.get((run_id, one.row.id))
        found = [*of_run, *found]
    return CasePast(found, agreements(_judged(store, notes.verdicts())))


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
        for row in reader.attempts(case.id):
            if row.state != "done" or row.outcome in ("cancelled", "skipped", None):
                continue
            answer = reader.answer(row.id) if known < ANSWERS else None
            yield PastAttempt(run_id, row, case.agent, case.model, case.content_hash, answer)


def _judged(store: Store, notes: list[HumanNote]) -> Iterator[tuple[list[Verdict], str]]:
    """The verdicts of attempts that a person called right or wrong."""
    by_run: dict[str, list[HumanNote]] = {}
    for note in notes:
        by_run.setdefault(note.run_id, []).append(note)
    for run_id, of_run in by_run.items():
        try:
            with closing(RunReader(store.folder_of(run_id))) as reader:
                for note in of_run:
                    attempt = reader.attempt(note.attempt_ref)
                    if attempt is not None and note.verdict:
                        yield attempt.verdicts, note.verdict
        except (StoreError, OSError):
            continue
