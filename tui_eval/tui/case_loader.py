"""Reading one case and one of its attempts from a run's folder; called in a thread."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tui_eval.model import Case
from tui_eval.store.reader import RunReader
from tui_eval.store.runs import StoreError
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.state.case_content import CaseContent, choose


@dataclass(frozen=True, slots=True)
class Where:
    """Where a pointer leads: the run's folder (None: it never ran) and what the app knows already.

    `case_ref` is the case's row in that run, `case` the case as the suite's file has it now.
    """

    pointer: CasePointer
    folder: Path | None = None
    case_ref: int | None = None
    case: Case | None = None


def load(where: Where) -> CaseContent:
    """What the Case screen shows. What cannot be read is said in `problem`; never raises for it."""
    pointer = where.pointer
    content = CaseContent(pointer, case=where.case)
    if where.case is not None:
        content.name, content.suite = where.case.name, where.case.suite
    else:
        content.suite, _, content.name = pointer.case_id.partition("::")
    if where.folder is None:
        return content
    try:
        with closing(RunReader(where.folder)) as reader:
            _read(reader, where, content)
    except (StoreError, OSError) as error:
        content.problem = str(error)
    return content


def _read(reader: RunReader, where: Where, content: CaseContent) -> None:
    pointer, case_ref = where.pointer, where.case_ref
    if case_ref is None:
        rows = [row for row in reader.cases() if row.case_id == pointer.case_id]
        fitting = [
            row
            for row in rows
            if pointer.agent in (None, row.agent) and (pointer.model is None or pointer.model == row.model)
        ]
        found = next(iter(fitting or rows), None)
        if found is None:
            content.problem = f"this case is not in run {where.folder.name if where.folder else ''}"
            return
        case_ref = found.id
    content.rows = reader.attempts(case_ref)
    content.row = choose(content.rows, pointer.attempt_ref)
    content.case = reader.case(case_ref)
    content.name, content.suite = content.case.name, content.case.suite
    if content.row is not None and content.row.state == "done":
        content.attempt = reader.attempt(content.row.id)
