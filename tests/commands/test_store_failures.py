"""The store fails in the middle of a run: the files that `-o` asks for are written, nothing of what was found is
taken for not run, and the exit code is the run's."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.commands.conftest import Cli
from tests.store.test_disk_full import Disk, no_room
from tui_eval.store import held_results, writer
from tui_eval.store.reader import RunReader
from tui_eval.store.write_thread import WriteThread

BITES = {
    "a table dropped": 'db.execute("DROP TABLE attempts")',
    "another dropped": 'db.execute("DROP TABLE bodies")',
    "every table dropped": '[db.execute(f"DROP TABLE {n}") for n in ("live", "bodies", "attempts", "cases", "meta")]',
    "the file overwritten": 'file.write_bytes(b"this is no database" * 9000)',
    "the file emptied": 'file.write_bytes(b"")',
    "the file taken away": "file.unlink()",
    "the folder taken away": "shutil.rmtree(file.parent)",
    "the store taken away": "shutil.rmtree(file.parents[2])",
}
BOT = """
import secrets, shutil, sqlite3
from pathlib import Path
def answer(message):
    if message == "two":
        (file,) = Path({root!r}).glob(".tui-eval/runs/*/run.db")
        db = sqlite3.connect(file, timeout=20, isolation_level=None)
        {bite}
        db.close()
    return "fine" + secrets.token_hex({size})
"""


FILES = "-o", "results.json", "-o", "junit.xml"
RUN = "run", "suite.yaml", "--trust", "-j", "1", "--display", "none", *FILES


def written(root: Path) -> None:
    """All four cases are in the files with their verdicts and answers, the one that failed as such."""
    found = json.loads((root / "results.json").read_text("utf-8"))["results"]
    assert [one["outcome"] for one in found] == ["passed", "passed", "failed", "passed"]
    suites = ElementTree.parse(root / "junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("4", "1", "0")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("agents:\n  it: {type: python, function: 'bot.py:answer'}\n")
    cases = "".join(
        f"  - {{name: {name}, input: {name}, expected: {{should_contain: [{said}]}}}}\n"
        for name, said in (("one", "fine"), ("two", "fine"), ("three", "nothing"), ("four", "fine"))
    )
    (tmp_path / "suite.yaml").write_text(f"agent: it\ntest_cases:\n{cases}")
    return tmp_path


def answers_of(root: Path, runs: str = "state/tui-eval/rescued") -> list[str]:
    (folder,) = (root / runs).iterdir()
    with contextlib.closing(RunReader(folder)) as reader:
        attempts = [reader.attempt(row.id) for row in reader.attempts()]
        assert reader.info().state == "finished"
    return [one.response_text[:4] if one is not None else "" for one in attempts]


@pytest.mark.usually(2)
@pytest.mark.parametrize("name", BITES)
def test_nothing_is_lost_whatever_became_of_the_store(name: str, cli: Cli, project: Path) -> None:
    (project / "bot.py").write_text(BOT.format(root=str(project), bite=BITES[name], size=8))
    given = cli(*RUN)
    assert given.code == 1 and "the whole run is kept in" in given.err, given
    assert "Traceback" not in given.err and "internal error" not in given.err
    written(project)
    # One that was taken away is made again in its place.
    runs = [".tui-eval/runs"] if name in ("the folder taken away", "the store taken away") else []
    assert (project / ".tui-eval" / ".gitignore").read_text() == "*\n"
    assert answers_of(project, *runs) == ["fine"] * 4


@pytest.mark.parametrize("to", ["nowhere", "elsewhere"])
def test_a_run_in_whose_place_a_link_stands_is_in_every_list(cli: Cli, project: Path, to: str) -> None:
    (project / "elsewhere").mkdir()
    bite = f'shutil.move(file.parents[1], "gone"); file.parents[1].symlink_to(Path("{to}").absolute())'
    (project / "bot.py").write_text(BOT.format(root=str(project), bite=bite, size=8))
    given = cli(*RUN)
    assert given.code == 1 and "the whole run is kept in" in given.err, given
    assert list((project / "elsewhere").iterdir()) == []
    written(project)
    for there in (True, False):
        if not there:  # the link is taken away
            (project / ".tui-eval" / "runs").unlink()
        (run,) = cli("runs", "--json").json
        assert (run["state"], run["passed"], run["failed"]) == ("finished", 3, 1)
        assert cli("show", "last").code == 1
    (project / "bot.py").write_text("def answer(message):\n    return 'fine'\n")
    again = cli("run", "suite.yaml", "--trust", "--failed", "--display", "json")
    assert again.code == 1 and [json.loads(line)["case_id"] for line in again.out.splitlines()] == [
        "suite.yaml::three"
    ]


def test_a_disk_that_fills_up(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "bot.py").write_text(BOT.format(root=str(project), bite="pass", size=40_000))
    Disk(monkeypatch).pages = 1
    given = cli(*RUN)
    assert given.code == 1 and "full" in given.err, given
    written(project)
    assert answers_of(project) == ["fine"] * 4
    # It is finished: resume has nothing to run, and brings it back all the same.
    again = cli("resume", "last", "-o", "again.json")
    assert again.code == 1 and "is back in the project" in again.err, again
    assert "kept in" not in cli("show", "last").out
    assert not any((project / "state" / "tui-eval" / "rescued").iterdir())
    assert len(json.loads((project / "again.json").read_text("utf-8"))["results"]) == 4


def test_a_run_that_no_disk_had_room_for_leaves_nothing_that_looks_like_one(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "bot.py").write_text("def answer(message):\n    return 'fine'\n")
    assert cli(*RUN).code == 1
    connect = writer.connect

    def full(folder: Path) -> sqlite3.Connection:
        connection = connect(folder)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(writer, "connect", full)
        given = cli(*RUN)
    assert given.code == 4 and "database or disk is full" in given.err, given
    (run,) = cli("runs", "--json").json
    assert run["state"] == "finished"
    assert cli("show", "last").code == 1, "the last run is the one that ran"


def test_transcripts_that_memory_has_no_room_for_cost_no_result(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_results, "_BODIES_KEPT", 1)
    bite = BITES["the file emptied"]
    (project / "bot.py").write_text(BOT.format(root=str(project), bite=bite, size=8))
    given = cli(*RUN)
    assert given.code == 1 and "the transcript is lost, not the result" in given.err, given
    written(project)


def nowhere_else(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """No other folder takes a run."""
    (root / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(root / "temporary"))
    monkeypatch.setattr(WriteThread, "_write_to", no_room)


ALL_PASS = "agent: it\ntest_cases:\n" + "".join(
    f"  - {{name: {name}, input: {name}, expected: {{should_contain: [fine]}}}}\n" for name in ("one", "two")
)


@pytest.mark.usually(1)
@pytest.mark.parametrize("display", ["none", "plain"])
def test_a_run_of_which_results_are_lost_is_no_success(
    display: str, cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "suite.yaml").write_text(ALL_PASS)
    (project / "bot.py").write_text(BOT.format(root=str(project), bite="pass", size=40_000))
    Disk(monkeypatch).pages = 1
    nowhere_else(monkeypatch, project)
    given = cli("run", "suite.yaml", "--trust", "-j", "1", "--display", display)
    assert given.code == 1 and "; 2 attempts are lost: " in given.err, given
    assert "\n2 attempts are lost; go on with: tui-eval resume " in given.err, given
    left = {one.name for one in (project / "temporary").iterdir()}
    assert left <= {f"tui-eval-{os.getuid()}"}, "no folder for a run that it does not have"
    assert cli("attach", "last").code == 1


@pytest.mark.real
def test_a_run_of_which_not_even_the_plan_could_be_written_is_no_success(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = "".join(
        f"  - {{name: {number} {'x' * 200}, input: hi, expected: {{should_contain: [fine]}}}}\n"
        for number in range(300)
    )
    (project / "suite.yaml").write_text(f"agent: it\ntest_cases:\n{cases}")
    (project / "bot.py").write_text("def answer(message):\n    return 'fine'\n")
    Disk(monkeypatch).pages = 1
    nowhere_else(monkeypatch, project)
    given = cli("run", "suite.yaml", "--trust", "--display", "none")
    assert given.code == 1 and "; 300 attempts are lost: " in given.err, given
    assert "300 attempts are lost; start it anew" in given.err and "tui-eval resume" not in given.err, given


@pytest.mark.usually(2)
@pytest.mark.parametrize("name", BITES)
def test_what_is_lost_with_the_store_is_counted(
    name: str, cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what had been written before: `0 attempts are lost` stood above a run of which nothing was left."""
    (project / "suite.yaml").write_text(ALL_PASS)
    (project / "bot.py").write_text(BOT.format(root=str(project), bite=BITES[name], size=8))
    nowhere_else(monkeypatch, project)
    given = cli("run", "suite.yaml", "--trust", "-j", "1", "--display", "none")
    assert given.code in (1, 4) and "; 2 attempts are lost: " in given.err, given
