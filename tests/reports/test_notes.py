"""People's notes in the results file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.tui.attempts import text_failure, wrong_cell
from tests.tui.case_host import write_run
from tui_eval.reports import results
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader


def test_a_note_stands_with_its_result_and_nowhere_else(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [[text_failure()], [wrong_cell()]])
    notes = Notes(tmp_path)
    with closing(RunReader(folder)) as reader:
        assert all("note" not in row for row in results.rows(reader))
        case_id = text_failure().case_id
        notes.put(HumanNote(folder.name, 1, case_id, "right", "the policy was cited", True))
        noted = [row.get("note") for row in results.rows(reader)]
    assert [bool(note) for note in noted].count(True) == 1
    note = next(note for note in noted if note)
    assert (note["verdict"], note["text"], note["star"]) == ("right", "the policy was cited", True)
    assert notes.latest()[case_id].text == "the policy was cited"
