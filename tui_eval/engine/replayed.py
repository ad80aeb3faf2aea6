"""Which run, and which attempt of it, `replay` answers a case with.

A run that a file names is one of this project's store, or a folder of the project: another one holds what a
person asked elsewhere, and is read only where they agree to that, like any other file outside the root.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from tui_eval.config.project import AgentSpec
from tui_eval.guard.paths import confine, inside
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import DATABASE, Store, StoreError

_LAST = ("", "last")


def run_of(store: Store, reference: str, spec: AgentSpec, trust: Trust) -> Path | None:
    """The folder of the run that an agent's entry names (an id, a prefix of one, or a path, relative to the entry's
    file); None: the last one. Nothing of the run is read to find it.

    Raises:
        NeedsTrust: a file names it, and it lies outside the project, also by way of a link.
        StoreError: there is no such run.
    """
    if reference in _LAST:
        return None
    # What was typed is meant from the current folder.
    path = Path(reference) if spec.typed else Path(spec.base or store.root) / reference
    if path.name == DATABASE:
        path = path.parent
    is_path = os.sep in reference or (path / DATABASE).is_file()
    folder = path.absolute() if is_path else _by_id(store, reference)
    if not spec.typed and not any(inside(place, folder) for place in store.places):
        try:
            confine(store.root, folder, trust)
        except OSError as error:
            raise StoreError(f"{reference}: {error.strerror or error}") from None
    if is_path and not (folder / DATABASE).is_file():
        raise StoreError(f"{reference}: not a run (no {DATABASE})")
    return folder.resolve()


def _by_id(store: Store, reference: str) -> Path:
    """A run of this store, never a folder of that name somewhere else."""
    if any(folder.name.startswith(reference) for folder in store.run_folders()):
        return store.find(reference)
    raise StoreError(f"no run {reference!r} under {store.runs_folder}; `tui-eval runs` lists them")


def recorded_answer(
    store: Store, run: Path | None, case_id: str, attempt: int, being_written: str
) -> Attempt | None:
    """The attempt of this number, else the last one of the case that has ended; None where the run has none.
    Without a run the newest in which the case was answered; `being_written`, the run that asks, is never meant.

    Raises:
        StoreError: the run cannot be read.
    """
    if run is not None:
        if run.name == being_written:
            raise StoreError(f"{being_written} is this run itself: name an earlier one")
        return _answer(run, case_id, attempt)
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
