"""People's notes in the results file."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl

from tests.support.attempts import text_failure, wrong_cell
from tests.support.case_host import write_run
from tui_eval.reports import results
from tui_eval.reports.export import export
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
    assert notes.by_case()[case_id][0].text == "the policy was cited"


def test_a_note_knows_of_whose_answer_it_is(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    known = HumanNote("r", 1, "s::a", "right", agent="bot", model="m")
    notes.put(known)
    with closing(sqlite3.connect(notes.path)) as connection, connection:  # as an earlier version writes
        connection.execute("INSERT INTO notes VALUES ('r', 2, 's::a', 'wrong', '', 0, 1.0)")
    found = {note.attempt_ref: (note.agent, note.model) for note in notes.of_case("s::a")}
    assert found == {1: ("bot", "m"), 2: ("", "")}
    with closing(sqlite3.connect(notes.path)) as connection, connection:
        connection.execute("DROP TABLE noted_columns")
    assert [note.agent for note in notes.of_case("s::a")] == ["", ""]
    notes.take_over([known])
    assert {note.agent for note in notes.by_case()["s::a"]} == {"bot", ""}


def test_notes_stand_in_every_export(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [[text_failure()], [wrong_cell()]])
    Notes(tmp_path).put(HumanNote(folder.name, 1, text_failure().case_id, "wrong", "=cites | the fee", True))
    with closing(RunReader(folder)) as reader:
        for ending in ("json", "jsonl", "html", "md", "csv", "parquet", "promptfoo.json"):
            export(reader, tmp_path / f"a.{ending}")
    for ending in ("json", "jsonl", "html"):
        assert "cites | the fee" in (tmp_path / f"a.{ending}").read_text()
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["person_verdict"], row["person_note"], row["starred"]) for row in rows] == [
        ("wrong", "'=cites | the fee", "True"),
        ("", "", "False"),
    ]
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert (
        frame["starred"].to_list() == [True, False]
        and frame["person_note"].to_list()[0] == "=cites | the fee"
    )
    page = (tmp_path / "a.md").read_text()
    assert "| a person says | note |" in page and "| ★ wrong | =cites &#124; the fee |" in page
    gradings = [
        one["gradingResult"]
        for one in json.loads((tmp_path / "a.promptfoo.json").read_text())["results"]["results"]
    ]
    assert gradings[0]["comment"] == "!highlight wrong: =cites | the fee" and "comment" not in gradings[1]


def test_a_run_without_notes_says_nothing_of_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [[text_failure()]])
    with closing(RunReader(folder)) as reader:
        export(reader, tmp_path / "a.md")
    assert "a person says" not in (tmp_path / "a.md").read_text()
