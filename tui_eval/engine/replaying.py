"""Which recorded attempt `replay` answers a case with."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader
from tui_eval.store.runs import Store, StoreError

_LAST = ("", "last")


def recorded_answer(
    store: Store, reference: str, case_id: str, attempt: int, being_written: str
) -> Attempt | None:
    """The attempt of this number, else the last one of the case that has ended; None where the run has none.
    `last` is the newest run in which the case was answered; `being_written`, the run that asks, is never meant.

    Raises:
        StoreError: there is no such run, or it cannot be read.
    """
    if reference not in _LAST:
        folder = store.find(reference)
        if folder.name == being_written:
            raise StoreError(f"{being_written} is this run itself: name an earlier one")
        return _answer(folder, case_id, attempt)
    for folder in store.run_folders():
        if folder.name == being_written:
            continue
        try:
            found = _answer(folder, case_id, attempt, answered=True)
        except StoreError:  # one that is just being begun, or is damaged
            continue
        if found is not None:
            return found
    return None


def _answer(folder: Path, case_id: str, attempt: int, *, answered: bool = False) -> Attempt | None:
    with closing(RunReader(folder)) as reader:
        for case in reader.cases_of(case_id):
            rows = [row for row in reader.attempts(case.id) if row.state == "done"]
            wanted = [row for row in rows if row.attempt == attempt]
            others = [row for row in reversed(rows) if row.attempt != attempt]
            for row in (*wanted, *others):
                found = reader.attempt(row.id)
                if found is not None and (found.replies or not answered):
                    return found
    return None
