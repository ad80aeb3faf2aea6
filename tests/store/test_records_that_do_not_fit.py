"""A record that the database does not take: it is an error of its own, the writer and the others live."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.test_store import attempt, start
from tui_eval.formats.reading import open_results
from tui_eval.model import Attempt, Entry, Reply, Usage, Verdict
from tui_eval.reports import junit, results
from tui_eval.store import pending, writer
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.writer import RunWriter

HOSTILE: list[Any] = [
    2**63, 2**64, 10**400, 10**5000, -1, -(2**70), float("nan"), float("inf"), float("-inf"), 1e400, True, "12",
    "many", {"a": 1}, [1], b"x", 1.5,
]  # fmt: skip


def kept(folder: Path) -> list[tuple[str | None, str]]:
    with contextlib.closing(RunReader(folder)) as reader:
        rows = reader.attempts()
        assert all(row.state == "done" for row in rows)
        for row in rows:
            body = reader.attempt(row.id)
            assert body is not None and body.outcome == row.outcome
        return [(row.outcome, row.message) for row in rows]


def finish(writer: RunWriter, references: list[list[int]], bad: Attempt) -> None:
    """The bad one between good ones, all in one transaction."""
    (first, second), (third, fourth) = references
    for ref, number in ((first, 1), (third, 1), (fourth, 2)):
        writer.done(ref, attempt("suite.yaml::c", number, usage=Usage(3, 4), cost=0.5))
    writer.done(second, bad)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: f"{type(value).__name__} {str(value)[:12]!r}"
                         if not isinstance(value, int) or value.bit_length() < 9000 else "int of 5,000 digits")  # fmt: skip
def test_a_figure_that_is_none_ends_no_writer(tmp_path: Path, value: Any) -> None:
    run, references = start(tmp_path)
    told: list[str] = []
    run.tell(told.append)
    bad = attempt("suite.yaml::c", 2)
    bad.usage = Usage(value, value, value)
    bad.cost = bad.tool_call_count = bad.score = bad.duration_ms = bad.started_at = value
    bad.named_scores = {"tone": value}
    bad.verdicts = [Verdict("contains", True, score=value, weight=value)]
    bad.transcript = [
        Entry(1, "assistant", text="hi", usage=Usage(value), started_at=value, duration_ms=value)
    ]
    bad.replies = [Reply(1, "hi", usage=Usage(value), cost=value, latency_ms=value, log_probs=[value])]
    finish(run, references, bad)
    run.close()
    assert run.error is None and not told and run.folder == run.home
    assert kept(run.folder) == [("passed", "passed")] * 4
    with contextlib.closing(RunReader(run.folder)) as reader:
        body = reader.attempt(references[0][1])
        row = reader.attempts()[1]
    assert body is not None and body.transcript[0].text == "hi"
    if value != 1.5:
        assert body.usage == Usage() and row.input_tokens is None and row.cost is None
        notes = [entry.text for entry in body.transcript if entry.kind == "note"]
        assert any(note.startswith("input tokens unknown: ") for note in notes)
        assert all(len(note) < 200 for note in notes)


def test_what_the_database_does_not_take_is_an_error_and_keeps_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer.figures, "attempt", lambda one: one)
    run, references = start(tmp_path)
    bad = attempt("suite.yaml::c", 2, usage=Usage(2**63, 1), transcript=[Entry(1, "assistant", text="hi")])
    finish(run, references, bad)
    run.close()
    assert run.error is None and run.folder == run.home and not run.lost
    assert [outcome for outcome, _ in kept(run.folder)] == ["passed", "error", "passed", "passed"]
    with contextlib.closing(RunReader(run.folder)) as reader:
        body = reader.attempt(references[0][1])
        assert body is not None and body.transcript[0].text == "hi"
        assert body.error is not None and "could not be kept: OverflowError" in body.error
        assert "disk" not in body.error and reader.info().note == ""


def test_what_cannot_be_packed_is_an_error(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(200_000):
        deep = [deep]
    run, references = start(tmp_path)
    finish(run, references, attempt("suite.yaml::c", 2, output=deep))
    run.close()
    while deep:  # taken apart from outside: its destructor would go as deep
        deep = deep.pop()
    outcome, message = kept(run.folder)[1]
    assert outcome == "error" and "could not be kept: RecursionError" in message


def test_live_text_and_steps_that_do_not_fit_keep_nobody_waiting(tmp_path: Path) -> None:
    run, references = start(tmp_path)
    run.progress(references[1][0], (2**63, None), 1)
    run.live(references[1][0], "assistant", "hello")
    finish(run, references, attempt("suite.yaml::c", 2))
    assert run.flush()
    run.close()
    assert run.error is None and kept(run.folder) == [("passed", "passed")] * 4


def test_an_operation_that_fails_is_told_as_it_is(tmp_path: Path) -> None:
    run, references = start(tmp_path)
    told: list[str] = []
    run.tell(told.append)
    run._thread.add(lambda connection: connection.execute("INSERT INTO meta VALUES (?, ?)", ("x", {})))
    finish(run, references, attempt("suite.yaml::c", 2))
    assert run.flush()
    run.close()
    assert kept(run.folder) == [("passed", "passed")] * 4
    (line,) = told
    assert "could not be written" in line and "disk" not in line and "\n" not in line
    assert run.error == line and run.folder == run.home


def test_a_thread_that_meets_what_nobody_foresaw_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, references = start(tmp_path)
    assert run.flush()
    calls: list[int] = []
    written = pending.Pending.write

    def broken(self: pending.Pending, connection: sqlite3.Connection) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise MemoryError("no memory")
        written(self, connection)

    monkeypatch.setattr(pending.Pending, "write", broken)
    finish(run, references, attempt("suite.yaml::c", 2))
    run.close()
    assert kept(run.folder) == [("passed", "passed")] * 4


def test_a_rescue_for_another_reason_speaks_of_no_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run, references = start(tmp_path)
    assert run.flush()
    own = run.folder

    written = pending.Pending.write

    def refused(self: pending.Pending, connection: sqlite3.Connection) -> None:
        if str(own) in connection.execute("PRAGMA database_list").fetchone()[2]:
            raise sqlite3.OperationalError("attempt to write a readonly database")
        written(self, connection)

    monkeypatch.setattr(pending.Pending, "write", refused)
    finish(run, references, attempt("suite.yaml::c", 2))
    run.close()
    assert run.folder != own and kept(run.folder) == [("passed", "passed")] * 4
    with contextlib.closing(RunReader(run.folder)) as reader:
        note = reader.info().note
    assert "readonly database" in note and "full" not in note


def test_what_is_lost_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    monkeypatch.setattr("tempfile.tempdir", "/proc/none")
    monkeypatch.setattr("tui_eval.guard.private.MEMORY", Path("/proc/none"))
    run, references = start(tmp_path)
    assert run.flush()

    def refused(self: pending.Pending, connection: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(pending.Pending, "write", refused)
    finish(run, references, attempt("suite.yaml::c", 2))
    run.close()
    assert run.error is not None and "4 attempts are lost" in run.error
    assert sorted(run.lost) == [ref for ids in references for ref in ids]
    with contextlib.closing(RunReader(run.folder)) as reader:
        reader.lost = run.lost
        assert all(row.outcome == "error" and "lost" in row.message for row in reader.attempts())
        junit.write(reader, tmp_path / "junit.xml")
        results.write(reader, tmp_path / "results.json")
    written = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [one["outcome"] for one in written] == ["error"] * 4
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().get("errors") == "2"


def test_sums_of_counts_that_fit_do_not_overflow(tmp_path: Path) -> None:
    run, references = start(tmp_path, cases=3)
    most = 2**63 - 1
    for ids in references:
        for number, ref in enumerate(ids, 1):
            run.done(ref, attempt("suite.yaml::c", number, usage=Usage(most, most, most), cost=float(2**62)))
    run.close()
    assert run.error is None and kept(run.folder) == [("passed", "passed")] * 6
    index = Index(tmp_path)
    index.record(run.folder)
    assert run.info.id in index.figures() and Store(tmp_path).find()
    assert index.history("suite.yaml::c0")[0].outcome == "passed"


@pytest.mark.real
@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.integers(10**300, 10**500),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
)
def test_any_figure_is_kept_or_unknown(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    run, references = start(tmp_path_factory.mktemp("run"), cases=1, attempts=1)
    bad = attempt("suite.yaml::c0", 1)
    bad.usage, bad.cost, bad.score, bad.duration_ms, bad.started_at = Usage(value), value, value, value, value
    bad.verdicts = [Verdict("contains", True, score=value)]
    run.done(references[0][0], bad)
    run.close()
    assert run.error is None and kept(run.folder) == [("passed", "passed")]


@pytest.mark.parametrize("value", [*HOSTILE, "Infinity"], ids=lambda value: type(value).__name__)
def test_results_of_a_file_with_hostile_figures(
    tmp_path: Path, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if isinstance(value, bytes) or (isinstance(value, int) and value.bit_length() > 9000):
        value = "9" * 300
    entry = {
        "name": "one", "passed": False, "outcome": "failed", "message": "no", "attempt": value, "score": value,
        "cost": value, "tokens": value, "duration_ms": value, "started_at": value, "tool_call_count": value,
        "usage": {"input_tokens": value, "output_tokens": 3}, "named_scores": {"tone": value},
        "transcript": [{"turn": value, "kind": "assistant", "text": "hi", "usage": {"input_tokens": value}}],
        "assertions": [{"type": "contains", "passed": False, "score": value, "weight": value, "reason": "no"}],
    }  # fmt: skip
    ours = {"results": [entry, {**entry, "name": "two"}], "cases": [{"case_id": "tests::one", "required": value}],
            "run": {"id": "r", "started_at": value, "finished_at": value}}  # fmt: skip
    row = {
        "success": False, "testIdx": value, "promptIdx": value, "score": value, "cost": value, "latencyMs": value,
        "namedScores": {"tone": value}, "tokenUsage": {"prompt": value, "completion": value}, "vars": {},
        "response": {"output": "hi"}, "gradingResult": {"componentResults": [{"pass": False, "score": value}]},
    }  # fmt: skip
    theirs = {"evalId": "e", "results": {"timestamp": value, "results": [row], "prompts": []}}
    for name, document in (("ours.json", ours), ("promptfoo.json", theirs)):
        path = tmp_path / name
        path.write_text(json.dumps(document))
        with contextlib.closing(RunReader(open_results(path))) as reader:
            rows = reader.attempts()
            assert rows and all(one.outcome == "failed" for one in rows)
            for one in rows:
                body = reader.attempt(one.id)
                assert body is not None and [verdict.passed for verdict in body.verdicts] == [False]
                assert body.response_text == "hi" or body.transcript[0].text == "hi"


@pytest.mark.parametrize(
    "value", [2**63 - 1, -(2**63), "'12'", "'many'", "x'00ff'", "9e999", "-9e999", "1.5"]
)
def test_rows_that_somebody_else_wrote_are_survived(tmp_path: Path, value: Any) -> None:
    """A run's folder can come from anywhere, and SQLite keeps any value in any column."""
    run, references = start(tmp_path)
    for number, ref in enumerate(references[0], 1):
        run.done(ref, attempt("suite.yaml::c", number, usage=Usage(3, 4), cost=0.5))
    run.state("finished", 2000.0)
    run.close()
    names = (
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "cost",
        "duration_ms",
        "started_at",
        "tool_calls",
        "score",
    )
    with contextlib.closing(sqlite3.connect(run.folder / "run.db")) as connection:
        connection.execute(f"UPDATE attempts SET {', '.join(f'{name} = {value}' for name in names)}")
        connection.commit()
    index = Index(tmp_path)
    index.record(run.folder)
    assert [one.id for one in index.runs()] == [run.info.id]
    assert index.figures() and index.latest()
