"""A run's folder: what is written is read back, live text comes and goes, the dead are told apart."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from tests.support.waiting import until
from tui_eval.guard import private
from tui_eval.model import Attempt, Case, Entry, Evidence, Turn, Usage, Verdict
from tui_eval.store import index as index_module
from tui_eval.store import indexed_run, pending, write_thread
from tui_eval.store.encoding import encode_json, pack, unpack
from tui_eval.store.held_results import HeldResults
from tui_eval.store.index import Index
from tui_eval.store.indexed_run import what
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import (
    DamagedRun,
    RunLock,
    Store,
    StoreError,
    is_alive,
    journal_mode,
    new_run_id,
)
from tui_eval.store.schema import SCHEMA_VERSION, RunInfo
from tui_eval.store.summary import case_outcome, required_for, wilson
from tui_eval.store.writer import PlannedCase, RunWriter


def case(name: str) -> Case:
    return Case(f"suite.yaml::{name}", name, "suite.yaml", "start_to_agent", turns=[Turn("hello")])


def attempt(case_id: str, number: int, outcome: str = "passed", **values) -> Attempt:
    return Attempt(case_id, number, outcome, message=outcome, started_at=1000.0, duration_ms=5.0, **values)  # type: ignore[arg-type]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path


def start(project: Path, cases: int = 2, attempts: int = 2) -> tuple[RunWriter, list[range]]:
    run_id = new_run_id()
    writer = RunWriter(
        Store(project).create_folder(run_id), RunInfo(id=run_id, paths=["suite.yaml"], agents=["a"])
    )
    planned = [PlannedCase(case(f"c{i}"), "a", None, attempts, attempts) for i in range(cases)]
    return writer, writer.plan(planned)


def test_a_run_is_read_back_as_written(project: Path) -> None:
    writer, refs = start(project)
    writer.started(refs[0][0], 1000.0)
    body = attempt(
        "suite.yaml::c0", 1, usage=Usage(3, 4), cost=0.5, transcript=[Entry(1, "assistant", text="x" * 10_000)],
        verdicts=[Verdict("should_contain", True, expected="x")],
    )  # fmt: skip
    writer.done(refs[0][0], body)
    writer.close()
    reader = RunReader(writer.folder)
    assert reader.info().id == writer.info.id
    assert [row.case_id for row in reader.cases()] == ["suite.yaml::c0", "suite.yaml::c1"]
    rows = reader.attempts()
    assert [row.state for row in rows] == ["done", "waiting", "waiting", "waiting"]
    assert (rows[0].outcome, rows[0].input_tokens, rows[0].output_tokens, rows[0].cost) == (
        "passed",
        3,
        4,
        0.5,
    )
    assert reader.attempt(refs[0][0]) == body
    assert reader.attempt(refs[0][1]) is None
    assert reader.case(1).turns[0].text == "hello"
    reader.close()


@pytest.mark.parametrize("at_once", [True, False], ids=["many at once", "one by one"])
def test_attempts_that_end_together_are_written_as_each_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """Also where this SQLite cannot update many rows in one statement; one that ends twice is what it was last."""
    monkeypatch.setattr(pending, "MANY_AT_ONCE", at_once)
    writer, references = start(project, cases=60)
    with contextlib.closing(sqlite3.connect(writer.folder / "run.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # the writer waits, and has much to write then
        for number, (first, second) in enumerate(references):
            writer.turn(first, 2 + number % 3)
            writer.done(first, attempt(f"c{number}", 1, "passed", cost=float(number)), waits=number % 10 == 0)
            writer.done(second, attempt(f"c{number}", 2, "failed", cost=number + 0.25))
            if number % 10 == 0:
                writer.done(first, attempt(f"c{number}", 1, "error", cost=0.5))
    writer.close()
    with contextlib.closing(RunReader(writer.folder)) as reader:
        rows = {row.id: row for row in reader.attempts()}
        for number, (first, second) in enumerate(references):
            one, two = rows[first], rows[second]
            assert one.turn == 2 + number % 3 and two.turn == 0
            assert (two.state, two.outcome, two.cost) == ("done", "failed", number + 0.25)
            body = reader.attempt(first)
            assert body is not None
            if number % 10 == 0:
                assert (one.state, one.outcome, one.cost, body.outcome) == ("done", "error", 0.5, "error")
            else:
                assert (one.state, one.outcome, one.cost) == ("done", "passed", float(number))


async def test_a_viewer_sees_what_runs_also_beside_attempts_that_end(project: Path) -> None:
    """Whatever is written first: nothing that changed before is written behind what changed later."""
    writer, refs = start(project)
    assert writer.flush()
    reader = RunReader(writer.folder)
    seen, states = 0, {}

    def caught_up() -> bool:
        nonlocal seen
        for row in reader.changes(seen):
            seen, states[row.id] = row.changed, row.state
        return states[refs[0][0]] == "running" and states[refs[1][0]] == "done"

    writer.started(refs[0][0], 1000.0)
    writer.started(refs[1][0], 1000.0)
    writer.done(refs[1][0], attempt("suite.yaml::c1", 1))
    await until(caught_up, 10)
    reader.close()
    writer.close()


def test_viewers_read_only_what_changed_since(project: Path) -> None:
    writer, refs = start(project)
    assert writer.flush()
    reader = RunReader(writer.folder)
    first = reader.changes(0)
    assert len(first) == 4
    seen = first[-1].changed
    assert reader.changes(seen) == []
    writer.started(refs[1][0], 1.0)
    assert writer.flush()
    assert [row.id for row in reader.changes(seen)] == [refs[1][0]]
    reader.close()
    writer.close()


def test_what_ends_after_a_pause_is_on_disk_at_once_and_what_ends_close_behind_is_gathered(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed has kept what it has shown: an answer that was paid for does not wait for others."""
    waits: list[float] = []
    now = [1000.0]
    done = [threading.Event() for _ in range(3)]
    monkeypatch.setattr(write_thread, "_GATHER_SECONDS", 5.0)

    class Noted(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            if timeout is None or timeout < 1:
                return super().wait(timeout)
            waits.append(timeout)
            now[0] += timeout
            return False

    monkeypatch.setattr(write_thread.threading, "Condition", Noted)
    monkeypatch.setattr(write_thread.time, "monotonic", lambda: now[0])
    thread = write_thread.WriteThread(Store(project).create_folder(new_run_id()), HeldResults())
    try:
        thread.add(lambda connection: done[0].set())
        assert done[0].wait(30) and waits == [] and thread.flush(30)
        now[0] += 1
        thread.add(lambda connection: done[1].set())
        assert done[1].wait(30) and waits == [4.0] and thread.flush(30)
        now[0] += 6
        thread.add(lambda connection: done[2].set())
        assert done[2].wait(30) and waits == [4.0]
    finally:
        thread.close()


@pytest.mark.real
def test_an_attempt_that_has_just_begun_is_not_written_with_one_that_is_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It mostly ends before anybody could look at it: then it is written once, whole."""
    monkeypatch.setattr(write_thread, "_LIVE_SECONDS", 2.0)
    writer, refs = start(project)
    reader = RunReader(writer.folder)
    long, short = refs[0][0], refs[1][0]
    begun = time.monotonic()
    writer.started(long, 1000.0)
    writer.live(long, "assistant", "slowly")
    while time.monotonic() < begun + 1.4:
        time.sleep(0.05)
    writer.started(short, 1001.0)
    writer.live(short, "assistant", "quick")
    asyncio.run(until(lambda: reader.live(0)))
    assert [(row.attempt_ref, row.text) for row in reader.live(0)] == [(long, "slowly")]
    states = {row.id: row.state for row in reader.attempts()}
    assert (states[long], states[short]) == ("running", "waiting")
    asyncio.run(until(lambda: len(reader.live(0)) == 2))  # it has gone on for long enough
    assert {row.id: row.state for row in reader.attempts()}[short] == "running"
    writer.done(short, attempt("suite.yaml::c1", 1))
    writer.close()
    assert {row.id: row.state for row in reader.attempts()}[short] == "done"


def test_live_text_is_joined_followed_by_sequence_and_dropped_at_the_end(project: Path) -> None:
    writer, refs = start(project)
    ref = refs[0][0]
    with writer._thread._wake:  # all of it before the thread looks
        for piece in ("Hel", "lo ", "you"):
            writer.live(ref, "assistant", piece)
        writer.live(ref, "tool_call", "{}", name="search", call_id="1")
    reader = RunReader(writer.folder)
    asyncio.run(until(lambda: reader.live(0)))
    rows = reader.live(0)
    assert [(row.kind, row.text, row.name) for row in rows] == [
        ("assistant", "Hello you", ""),
        ("tool_call", "{}", "search"),
    ]
    assert reader.live(rows[-1].seq) == []
    writer.done(ref, attempt("suite.yaml::c0", 1))
    assert writer.flush()
    assert reader.live(0) == []
    reader.close()
    writer.close()


def test_a_run_whose_engine_is_gone_is_interrupted(project: Path) -> None:
    writer, _ = start(project)
    assert is_alive(writer.folder)
    writer.flush()
    reader = RunReader(writer.folder)
    assert reader.info().state == "running"
    writer.close()
    assert not is_alive(writer.folder)
    assert reader.info().state == "interrupted"
    reader.close()


def test_a_run_that_goes_on_again_is_not_called_interrupted(project: Path) -> None:
    writer, _ = start(project)
    writer.flush()
    writer.close()
    assert [run.state for run in Index(project).runs()] == ["interrupted"]
    lock = RunLock(writer.folder)
    assert [run.state for run in Index(project).runs()] == ["running"]
    lock.release()
    assert [run.state for run in Index(project).runs()] == ["interrupted"]


def test_a_run_that_went_on_and_was_killed_is_not_what_it_was_before(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, refs = start(project)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1))
    writer.state("interrupted", 2000.0)
    writer.close()
    index = Index(project)
    assert [(run.state, run.passed, run.failed) for run in index.runs()] == [("interrupted", 1, 0)]
    again = RunWriter(writer.folder, writer.info)
    again.state("running", None)
    again.done(refs[1][0], attempt("suite.yaml::c1", 1, "failed"))
    assert again.flush()
    again.close()  # as by kill -9: nobody says that it has ended
    assert [(run.state, run.passed, run.failed) for run in index.runs()] == [("interrupted", 1, 1)]
    assert index.latest()["suite.yaml::c1"][0].outcome == "failed"
    monkeypatch.setattr(index_module, "_record", lambda *_: pytest.fail("it is as it was, and read again"))
    assert len(index.runs()) == 1


def test_a_full_disk_makes_no_run_what_it_was_before(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, refs = start(project, cases=300, attempts=1)
    writer.state("interrupted", 2000.0)
    writer.close()
    index = Index(project)
    assert [run.passed for run in index.runs()] == [0]
    prepared = private.refuse_programs

    def full(connection: sqlite3.Connection) -> None:
        prepared(connection)
        if connection.execute("PRAGMA database_list").fetchone()[2] == str(index.path.resolve()):
            connection.execute("PRAGMA max_page_count = 1")  # no more than it has

    monkeypatch.setattr(private, "refuse_programs", full)
    again = RunWriter(writer.folder, writer.info)
    for number, (ref,) in enumerate(refs):
        again.done(ref, attempt(f"suite.yaml::c{number}", 1))
    again.state("finished", 3000.0)
    again.close()
    newer, _ = start(project)
    newer.close()
    assert [(run.state, run.passed) for run in index.runs()] == [("interrupted", 0), ("finished", 300)]
    assert len(index.latest()) == 300


def test_only_one_engine_writes_a_run(project: Path) -> None:
    writer, _ = start(project)
    with pytest.raises(StoreError, match="executed by another process"):
        RunLock(writer.folder)
    writer.close()


def test_why_an_attempt_failed_is_kept_in_few_words_from_its_evidence(project: Path) -> None:
    writer, refs = start(project, 1, 2)
    lacking = Evidence("missing", "not-contained", text="2 years \udc80")
    told = Verdict("contains", False, reason="Expected output to contain", evidence=[lacking])
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1, "failed", verdicts=[told]))
    writer.done(refs[0][1], attempt("suite.yaml::c0", 2, "failed", verdicts=[Verdict("contains", False)]))
    writer.close()
    reader = RunReader(writer.folder)
    first, second = reader.attempts(1)
    assert first.cause.startswith('lacks "2 years') and second.cause == ""  # one of before has its message
    reader.close()
    with sqlite3.connect(writer.folder / "run.db") as old:
        old.execute("ALTER TABLE attempts DROP COLUMN cause")
    reader = RunReader(writer.folder)
    assert [row.cause for row in reader.attempts(1)] == ["", ""]
    reader.close()


def test_going_on_with_a_run_keeps_what_is_there(project: Path) -> None:
    writer, refs = start(project)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1))
    writer.close()
    again = RunWriter(writer.folder, writer.info)
    assert [list(refs) for refs in again.plan([PlannedCase(case("new"), "a", None, 1, 1)])] == [[5]]
    again.done(refs[0][1], attempt("suite.yaml::c0", 2, "failed"))
    again.close()
    reader = RunReader(writer.folder)
    assert [row.outcome for row in reader.attempts(1)] == ["passed", "failed"]
    reader.close()


def test_when_the_limit_strikes_is_told_and_runs_without_that_column_open(project: Path) -> None:
    writer, refs = start(project)
    writer.started(refs[0][0], 1000.0)
    writer.limit(refs[0][0], 1030.0)
    assert writer.flush()
    reader = RunReader(writer.folder)
    assert [row.ends_at for row in reader.attempts(1)] == [1030.0, None]
    reader.close()
    writer.close()
    with sqlite3.connect(writer.folder / "run.db") as old:
        for name in ("ends_at", "answer"):
            old.execute(f"ALTER TABLE attempts DROP COLUMN {name}")
    reader = RunReader(writer.folder)
    assert [(row.answer, row.ends_at) for row in reader.attempts(1)] == [("", None)] * 2
    reader.close()
    again = RunWriter(writer.folder, writer.info)
    again.limit(refs[0][1], 1040.0)
    again.close()
    reader = RunReader(writer.folder)
    assert [row.ends_at for row in reader.attempts(1)] == [None, 1040.0]
    reader.close()


def test_hostile_text_is_stored(project: Path) -> None:
    writer, refs = start(project, 1, 1)
    text = "\x1b]52;c;x\x07 \ud800 \x00 \u202e"
    writer.live(refs[0][0], "assistant", text)
    writer.done(
        refs[0][0],
        attempt("suite.yaml::c0", 1, transcript=[Entry(1, "assistant", text=text)], output=float("nan")),
    )
    writer.close()
    reader = RunReader(writer.folder)
    body = reader.attempt(refs[0][0])
    assert body is not None and body.transcript[0].text.startswith("\x1b]52")
    assert writer.error is None
    reader.close()


@pytest.mark.parametrize(
    ("outcomes", "required", "came_out"),
    [
        (["failed", "passed", "error"], 1, (1, 1, 0, 0)),  # enough passed
        (["failed", "passed", "error"], 2, (1, 1, 1, 0)),
        (["error", "passed", "error"], 2, (0, 2, 0, 1)),
    ],
)
def test_the_list_of_runs_knows_how_cases_came_out_beside_attempts(
    project: Path, outcomes: list[str], required: int, came_out: tuple[int, ...]
) -> None:
    """Runs has a run red of which every case passed by its threshold, and which ended with 0."""
    run_id = new_run_id()
    writer = RunWriter(Store(project).create_folder(run_id), RunInfo(run_id))
    (refs,) = writer.plan([PlannedCase(case("c0"), "a", None, 3, required)])
    for number, outcome in enumerate(outcomes, 1):
        writer.done(refs[number - 1], attempt("suite.yaml::c0", number, outcome))
    writer.state("finished", 2000.0)
    writer.close()
    (run,) = Index(project).runs()
    assert (run.failed, run.errors, run.cases_failed, run.cases_errors) == came_out


def test_index_tells_history_and_survives_damage(project: Path) -> None:
    for outcome in ("failed", "passed"):
        writer, refs = start(project, 1, 2)
        writer.done(refs[0][0], attempt("suite.yaml::c0", 1))
        writer.done(refs[0][1], attempt("suite.yaml::c0", 2, outcome))
        writer.state("finished", 2000.0)
        writer.close()
    index = Index(project)
    newest = index.latest()["suite.yaml::c0"]
    assert {(entry.outcome, entry.passed, entry.attempts) for entry in newest} == {
        ("passed", 2, 2),
        ("failed", 1, 2),
    }
    assert len(index.runs()) == 2
    index.path.write_bytes(b"not a database, not at all" * 100)
    assert len(index.runs()) == 2
    with sqlite3.connect(index.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert len(index.history("suite.yaml::c0")) == 2
    for column in (
        "runs SET cost = '{}'",
        "runs SET state = 'x'",
        "runs SET tokens = 'x'",
        "results SET passed = 'x'",
        "case_sets SET marks = 7",
        "runs SET ahead = -1",
        "runs SET ahead = '[5]'",
        "case_sets SET marks = x'00'",
    ):
        with sqlite3.connect(index.path) as connection:
            connection.execute(f"UPDATE {column}")
        assert len(index.runs()) == len(index.figures()) == len(index.history("suite.yaml::c0")) == 2
        kept = [run.cost for run in index.runs()]
        with sqlite3.connect(index.path) as connection:  # it is made anew, not read beside itself each time
            assert [cost for (cost,) in connection.execute("SELECT cost FROM runs")] == kept


def test_a_name_in_a_runs_schema_that_is_no_text_is_damage(project: Path) -> None:
    """SQLite repeats it in its error, which Python then cannot read."""
    writer, _ = start(project, 1, 1)
    writer.close()
    place = writer.folder / "run.db"
    for kept in (place, Index(project).path):
        Index(project).runs()
        with sqlite3.connect(kept) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            table = "attempts" if kept == place else "results"
            sql = b"CREATE TABLE t (" + b"\xde\xff" + b" INTEGER CHECK"
            connection.execute("UPDATE sqlite_master SET sql = CAST(? AS TEXT) WHERE name = ?", (sql, table))
        connection.close()
    with pytest.raises(StoreError, match="damaged"):
        RunReader(writer.folder)
    assert [run.state for run in Index(project).runs()] == ["damaged"]


def judged_in_part(project: Path) -> tuple[RunInfo, RunInfo]:
    """A run of which one attempt of three ran and passed, and that answer judged again, as earlier versions kept it."""
    writer, refs = start(project, 1, 3)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1))
    writer.state("finished", 2000.0)
    writer.close()
    run_id = new_run_id()
    info = RunInfo(run_id, options={"rescores": writer.info.id}, linked_to=writer.info.id)
    again = RunWriter(Store(project).create_folder(run_id), info)
    answer = f"{writer.info.id}/{refs[0][0]}"
    (own,) = again.plan([PlannedCase(case("c0"), "a", None, 1, 1, judges=[answer], numbers=[1])])
    again.done(own[0], attempt("suite.yaml::c0", 1))
    again.state("finished", 2001.0)
    again.close()
    return writer.info, info


def test_a_judgement_of_a_part_of_a_case_is_no_result_of_it(project: Path) -> None:
    first, again = judged_in_part(project)
    index = Index(project)
    assert [run.id for run in index.runs()] == [again.id, first.id]
    assert not index.latest() and not index.history("suite.yaml::c0")


@pytest.mark.parametrize(
    ("value", "why"),
    [(None, "NOT NULL"), (object(), "rror binding"), (2**80, "too large"), ("\ud800", "surrogates")],
)
def test_a_run_whose_rows_do_not_fit_is_damaged_and_no_other(
    project: Path, monkeypatch: pytest.MonkeyPatch, value: object, why: str
) -> None:
    whole, refs = start(project, 1, 1)
    whole.done(refs[0][0], attempt("suite.yaml::c0", 1))
    whole.state("finished", 2000.0)
    whole.close()
    odd, refs = start(project, 1, 1)
    odd.done(refs[0][0], attempt("suite.yaml::c0", 1))
    odd.state("finished", 2001.0)
    odd.close()
    # Whatever it is that does not fit: here what was run.
    monkeypatch.setattr(
        indexed_run, "what", lambda info, *more: value if info.id == odd.info.id else what(info, *more)
    )
    index = Index(project)
    listed = {run.id: run for run in index.runs()}
    assert listed[whole.info.id].state == "finished" and listed[odd.info.id].state == "damaged"
    assert "cannot be listed: " in listed[odd.info.id].what and why in listed[odd.info.id].what
    assert [one.run_id for one in index.latest()["suite.yaml::c0"]] == [whole.info.id]
    assert not index.record(odd.folder)


def test_the_index_says_of_how_many_attempts_the_cost_is_known(project: Path) -> None:
    writer, refs = start(project, 1, 2)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1, cost=0.5))
    writer.done(refs[0][1], attempt("suite.yaml::c0", 2))
    writer.state("finished", 2000.0)
    writer.close()
    index = Index(project)
    (run,) = index.runs()
    assert (run.cost, run.cost_of, run.only, run.rules) == (0.5, 1, "c0", "")


def test_find_says_what_is_wrong(project: Path) -> None:
    store = Store(project)
    with pytest.raises(StoreError, match="no runs yet"):
        store.find()
    writer, _ = start(project)
    writer.close()
    assert store.find() == store.find(writer.info.id) == store.find(writer.info.id[:12]) == writer.folder
    with pytest.raises(StoreError, match="no run 'zzz'"):
        store.find("zzz")


def test_a_run_of_a_newer_version_is_not_called_damaged(project: Path) -> None:
    writer, _ = start(project)
    writer.close()
    with contextlib.closing(sqlite3.connect(writer.folder / "run.db")) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    (one,) = Index(project).runs()
    assert one.state == "newer" and one.unread and "written by a newer tui-eval" in one.what


def test_damaged_run_says_so(project: Path) -> None:
    writer, _ = start(project)
    writer.close()
    (writer.folder / "run.db").write_bytes(b"garbage" * 500)
    with pytest.raises(StoreError):
        RunReader(writer.folder).info()
    whole, _ = start(project)
    whole.state("finished", 2000.0)
    whole.close()
    listed = {run.id: run for run in Index(project).runs()}
    assert listed[whole.info.id].state == "finished"
    broken = listed[writer.info.id]
    assert broken.state == "damaged" and "file is not a database" in broken.what and broken.started_at > 0
    lock = RunLock(writer.folder)  # one that is just being begun has no tables yet
    assert [run.id for run in Index(project).runs()] == [whole.info.id]
    lock.release()


def test_what_a_damaged_run_holds_is_not_in_what_is_said_of_it(project: Path) -> None:
    writer, _ = start(project)
    writer.state("finished", 2000.0)
    writer.close()
    with contextlib.closing(sqlite3.connect(writer.folder / "run.db")) as connection, connection:
        connection.execute(
            "UPDATE meta SET value = CAST(CAST(value AS BLOB) || X'ff' AS TEXT) WHERE key = 'info'"
        )
    (one,) = Index(project).runs()
    assert one.state == "damaged" and one.what.startswith(
        f"{writer.folder / 'run.db'}: damaged: a text in it is"
    )
    assert '"id"' not in one.what and "copy the folder again" in one.what


@pytest.mark.parametrize("left", [0, 0.3, 0.9])
def test_a_finished_run_that_is_cut_short_is_damaged_and_what_was_known_of_it_goes(
    project: Path, left: float
) -> None:
    writer, refs = start(project)
    for case_refs, name in zip(refs, ("c0", "c1"), strict=True):
        for number, ref in enumerate(case_refs, 1):
            writer.done(ref, attempt(name, number, response_text=os.urandom(5000).hex()))
    writer.state("finished", 2000.0)
    writer.close()
    index, database = Index(project), writer.folder / "run.db"
    assert [(run.state, run.passed) for run in index.runs()] == [("finished", 4)] and index.latest()
    os.truncate(database, int(database.stat().st_size * left))
    (one,) = index.runs()
    assert one.state == "damaged" and "copy the folder again" in one.what and "or delete it" in one.what
    assert not index.latest()
    with pytest.raises(DamagedRun, match=r"run\.db: damaged: .*; copy the folder again"):
        RunReader(writer.folder).info()


def test_a_finished_run_is_read_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, _ = start(project)
    writer.state("finished", 2000.0)
    writer.close()
    index = Index(project)
    assert len(index.runs()) == 1
    monkeypatch.setattr("tui_eval.store.index._record", None)
    assert len(index.runs()) == 1
    RunReader(writer.folder).close()
    assert len(index.runs()) == 1


def test_a_run_is_compared_with_the_last_one_of_the_same_cases(project: Path) -> None:
    def ran(run_id: str, *names: str, linked_to: str | None = None, agent: str = "a") -> None:
        writer = RunWriter(Store(project).create_folder(run_id), RunInfo(run_id, linked_to=linked_to))
        cases = [Case(f"s.yaml::{name}", name, "s.yaml", "nao", turns=[Turn("x")]) for name in names]
        for case, (ref,) in zip(
            cases, writer.plan([PlannedCase(case, agent, None, 1, 1) for case in cases]), strict=True
        ):
            writer.done(ref, attempt(case.case_id, 1))
        writer.state("finished", 2000.0)
        writer.close()

    ran("20260101-1", "a", "b")
    ran("20260101-2", "a", "b", "c", "d", "e", "f")
    ran("20260101-3", "x")
    ran("20260101-4", "a", linked_to="20260101-1")
    ran("20260101-5", "a", "b")
    index = Index(project)
    assert index.before("20260101-5") == "20260101-1"  # not the larger one, another suite's, or a part
    assert index.before("20260101-2") == "20260101-1"
    assert index.before("20260101-3") is None and index.before("20260101-1") is None
    assert index.before("20260101-4") == "20260101-1"
    assert list(index.sharing("20260101-5")) == ["20260101-1", "20260101-2", "20260101-5"]
    assert index.sharing("20260101-5")["20260101-2"] == (2, 6)
    ran("20260101-6", "a", "b", agent="other")
    assert index.before("20260101-6") == "20260101-5"
    ran("20260101-7", "a", "b")
    assert index.before("20260101-7") == "20260101-5"  # of the same agent, though another's is newer


@pytest.mark.parametrize(
    ("mounts", "mode"),
    [
        ("/dev/sda1 / ext4 rw 0 0\n", "WAL"),
        ("/dev/sda1 / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\n", "DELETE"),
        ("", "DELETE"),
        ("/dev/sda1 / ext4 rw 0 0\nnone /data/sub tmpfs rw 0 0\n", "WAL"),
    ],
)
def test_journal_only_where_the_file_system_is_local(mounts: str, mode: str) -> None:
    assert journal_mode(Path("/data/sub/project"), mounts) == mode


def test_packing() -> None:
    value = {"text": "a" * 100_000}
    assert len(pack(value)) < 5_000
    assert unpack(pack(value), dict) == value
    assert unpack(pack({"a": 1}), dict) == {"a": 1}
    assert b"2024" in encode_json({"d": __import__("datetime").date(2024, 1, 5)})


def test_statistics() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert wilson(10, 10)[1] == 1.0 and wilson(0, 5)[0] == 0.0
    assert [required_for(n, 0.8) for n in (3, 5, 10)] == [3, 4, 8]
    assert required_for(10, 0.7) == 7
    assert case_outcome(["passed", "failed"], 1) == "passed"
    assert case_outcome(["error", "passed"], 2) == "error"
    assert case_outcome(["error", "failed"], 1) == "failed"
    assert case_outcome([], 1) is None


def test_an_index_that_many_open_at_once_is_made_once(project: Path) -> None:
    writer, refs = start(project, 1, 1)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1))
    writer.state("finished", 2000.0)
    writer.close()
    errors: list[BaseException] = []
    gate = threading.Barrier(8)

    def read() -> None:
        try:
            gate.wait()
            assert len(Index(project).runs()) == 1
            assert "suite.yaml::c0" in Index(project).latest()
        except BaseException as error:
            errors.append(error)

    for _ in range(5):
        Index(project).path.unlink(missing_ok=True)
        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ([], "my shop (2 cases)"),
        (["."], "my shop (2 cases)"),
        (["a.yaml", "."], "a.yaml, my shop (2 cases)"),
        (["a.yaml"], "a.yaml (2 cases)"),
    ],
)
def test_a_run_of_a_whole_project_goes_by_the_name_of_its_folder(
    tmp_path: Path, paths: list[str], said: str
) -> None:
    info = RunInfo("r", paths=paths)
    assert what(info, 2, tmp_path / "my shop" / ".tui-eval" / "runs" / "r") == said
    assert what(info, 2, tmp_path / "r") == said.replace("my shop", ".")  # of no project that is known
