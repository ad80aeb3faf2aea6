"""Notes kept beside runs; words found in transcripts."""

from __future__ import annotations

from pathlib import Path

from tests.store.test_store import attempt, start
from tui_eval.model import Entry
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.search import search


def test_notes_are_kept_replaced_and_taken_away(tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    assert notes.of_run("r") == {} and notes.of_case("c") == []
    notes.put(HumanNote("r", 1, "c", "wrong", "the judge is too strict \ud800", True))
    notes.put(HumanNote("r", 2, "c", None, "look again"))
    assert notes.of_run("r")[1].verdict == "wrong" and notes.of_run("r")[1].star
    assert [note.attempt_ref for note in notes.of_case("c")] == [2, 1]
    notes.put(HumanNote("r", 1, "c", "right", ""))
    assert notes.of_run("r")[1].verdict == "right" and not notes.of_run("r")[1].star
    notes.put(HumanNote("r", 1, "c"))
    assert list(notes.of_run("r")) == [2]


def test_words_are_found_in_text_arguments_and_results(tmp_path: Path) -> None:
    writer, refs = start(tmp_path, 1, 2)
    entries = [
        Entry(1, "user", text="Where is the café?"),
        Entry(1, "tool_call", name="search", arguments={"query": "espresso bar"}),
        Entry(2, "assistant", text="The reimbursement takes 'three' days"),
    ]
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1, transcript=entries))
    writer.flush()
    reader = RunReader(writer.folder)
    assert [(hit.turn, hit.kind) for hit in search(reader, "cafe")] == [(1, "user")]
    assert [hit.kind for hit in search(reader, "espre bar")] == ["tool_call"]
    assert search(reader, 'reimb "three"')[0].excerpt.count("\x02") == 2
    assert search(reader, "nothing") == search(reader, "  ") == search(reader, '"') == []
    writer.done(
        refs[0][1], attempt("suite.yaml::c0", 2, transcript=[Entry(1, "user", text="espresso again")])
    )
    writer.flush()
    assert {hit.attempt_ref for hit in search(reader, "espresso")} == {refs[0][0], refs[0][1]}
    writer.close()
    reader.close()
