"""Notes kept beside runs; words found in transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.test_store import attempt, start
from tui_eval.model import Entry
from tui_eval.store.full_text import Hits, search
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader


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


def test_what_somebody_else_noted_meanwhile_stays(tmp_path: Path) -> None:
    """A star put in one app took the words that were typed in another away."""
    notes, seen = Notes(tmp_path), HumanNote("r", 1, "c")

    def now() -> tuple[str | None, bool, str]:
        note = notes.of_run("r").get(1, seen)
        return note.verdict, note.star, note.text

    notes.put(HumanNote("r", 1, "c", "wrong", "the policy is old"), seen)
    notes.put(HumanNote("r", 1, "c", star=True), seen)
    assert now() == ("wrong", True, "the policy is old")
    notes.put(HumanNote("r", 1, "c", "right", "mine"), seen)
    assert now() == ("right", True, "the policy is old; mine")
    known = notes.of_run("r")[1]
    notes.put(HumanNote("r", 1, "c", "right", "better", True), known)
    assert now() == ("right", True, "better")
    notes.put(HumanNote("r", 1, "c"), known)  # what stands there now was not seen
    assert now() == (None, False, "better")
    notes.put(HumanNote("r", 1, "c"), notes.of_run("r")[1])
    assert not notes.of_run("r")


def test_notes_of_a_project_that_cannot_be_written_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.chdir(root)
    writer, _ = start(root)
    writer.close()
    for number in (1, 2, 3):
        Notes(root).put(HumanNote("r", number, "c", "wrong", f"first {number}"))
    with monkeypatch.context() as patched:
        patched.setattr("tui_eval.config.project._can_be_written", lambda folder: False)
        notes = Notes(root)
        assert list(Notes.beside(writer.folder).of_run("r")) == [3, 2, 1]
        notes.put(HumanNote("r", 1, "c", "right", "second"))
        notes.put(HumanNote("r", 2, "c"))
        assert {ref: note.text for ref, note in notes.of_run("r").items()} == {1: "second", 3: "first 3"}
        assert [note.verdict for note in notes.verdicts()] == ["right", "wrong"]
        writer, _ = start(root)
        writer.close()
        assert writer.folder.is_relative_to(tmp_path / "state")
        assert list(Notes.beside(writer.folder).of_run("r")) == [1, 3]
    assert list(Notes(root).of_run("r")) == list(Notes.beside(writer.folder).of_run("r")) == [1, 3]


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
    assert [(hit.turn, hit.kind) for hit in search(reader, "cafe").best] == [(1, "user")]
    assert [hit.kind for hit in search(reader, "espre bar").best] == ["tool_call"]
    assert search(reader, 'reimb "three"').best[0].excerpt.count("\x02") == 2
    assert search(reader, "nothing") == search(reader, "  ") == search(reader, '"') == Hits([])
    writer.done(
        refs[0][1], attempt("suite.yaml::c0", 2, transcript=[Entry(1, "user", text="espresso again")])
    )
    writer.flush()
    assert {hit.attempt_ref for hit in search(reader, "espresso").best} == {refs[0][0], refs[0][1]}
    one = search(reader, "espresso", limit=1)
    assert (len(one.best), one.total) == (1, 2)
    writer.close()
    reader.close()


def test_an_excerpt_fills_a_wide_terminal(tmp_path: Path) -> None:
    writer, refs = start(tmp_path, 1, 1)
    words = " ".join(["answer"] * 40 + ["needle"] + ["beyond"] * 40)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1, transcript=[Entry(1, "assistant", text=words)]))
    writer.close()
    reader = RunReader(writer.folder)
    (hit,) = search(reader, "needle").best
    assert len(hit.excerpt) >= 200 and "\x02needle\x03" in hit.excerpt
    reader.close()


def test_results_are_searched_as_they_were_said(tmp_path: Path) -> None:
    writer, refs = start(tmp_path, 1, 1)
    entries = [
        Entry(1, "tool_result", name="look_up", result='first "line"\nsecond \u00e9tage', call_id="c"),
        Entry(1, "tool_result", result={"city": "Z\u00fcrich", "open": 7}),
        Entry(1, "tool_result", error="time limit"),
    ]
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1, transcript=entries))
    writer.close()
    reader = RunReader(writer.folder)
    assert (
        "second" in search(reader, "etage").best[0].excerpt
        and "\\n" not in search(reader, "etage").best[0].excerpt
    )
    assert len(search(reader, "zurich").best) == len(search(reader, "limit").best) == 1
    assert search(reader, "null").best == []
    reader.close()


def test_gathering_tells_how_far_it_is_can_be_ended_and_goes_on_where_it_was(tmp_path: Path) -> None:
    writer, refs = start(tmp_path, 600, 1)
    for number, (ref,) in enumerate(refs):
        said = [Entry(1, "assistant", text=f"answer {number}")]
        writer.done(ref, attempt(f"suite.yaml::c{number}", 1, transcript=said))
    writer.close()
    reader = RunReader(writer.folder)
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> bool:
        seen.append((done, total))
        return len(seen) < 2

    assert search(reader, "answer", progress=progress) == Hits([])
    assert seen == [(0, 600), (250, 600)]
    assert search(reader, "answer", 10, lambda done, total: not seen.append((done, total))).total == 600
    assert seen[2:] == [(250, 600), (500, 600)]
    (writer.folder / "search.db").write_bytes(b"not a database" * 999)
    assert search(reader, "answer 599").total == 1, "a damaged one is gathered anew"
    reader.close()
