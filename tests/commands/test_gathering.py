"""A folder of shards is looked at as one run, also while they are written; nothing is written into it."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tui_eval.model import Attempt, Case
from tui_eval.store import gathering
from tui_eval.store.gathering import Gathering
from tui_eval.store.judged_under import other_rules
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import RunLock, Store, StoreError, holds_runs
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def shards(project: Path) -> Path:
    """Where the shards of a suite of eight cases are brought."""
    rows = "".join(
        f"  - {{name: case {n}, input: hello, expected: {{should_contain: [hi]}}}}\n" for n in range(8)
    )
    (project / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{rows}", "utf-8")
    (project / "shards").mkdir()
    return project / "shards"


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def bring(cli: Cli, shards: Path, shard: str, name: str) -> None:
    cli("run", "suite.yaml", "--shard", shard)
    newest = Store(Path.cwd()).find("last")
    shutil.copytree(newest, shards / name / newest.name)


def seen(place: Path) -> tuple[str, str, int, int]:
    """State, note, cases and ended attempts of a run."""
    reader = RunReader(place)
    try:
        info = reader.info()
        return info.state, info.note, len(reader.cases()), len(reader.ended())
    finally:
        reader.close()


def test_shards_that_come_one_after_the_other_become_one_run(cli: Cli, shards: Path) -> None:
    bring(cli, shards, "1/2", "one")
    before = sorted(shards.rglob("*"))
    looked = Gathering(shards, waits=True)
    state, note, first, ended = seen(looked.place)
    assert state == "paused" and "shard 2 missing" in note and 0 < first == ended < 8
    reader = RunReader(looked.place)
    stamp = reader.stamp()
    assert looked.look() and reader.stamp() == stamp  # nothing is new: viewers need not read
    reader.close()
    assert sorted(shards.rglob("*")) == before
    looked.start()
    bring(cli, shards, "2/2", "two")
    wait_until(lambda: seen(looked.place) == ("finished", "", 8, 8))
    reader = RunReader(looked.place)
    assert {reader.attempt(ref).response_text for ref in reader.ended()} == {"hi there"}  # type: ignore[union-attr]
    assert {row.case_id for row in reader.cases()} == {f"suite.yaml::case {n}" for n in range(8)}
    reader.close()
    looked.close()


def test_show_export_and_plain_lines_take_a_folder_of_shards(cli: Cli, shards: Path) -> None:
    bring(cli, shards, "1/2", "one")
    partly = cli("show", "shards")
    assert "shard 2 missing" in partly.out and "interrupted" in partly.out and partly.code == 1
    unfinished = cli("shards")
    assert unfinished.code == 1 and "incomplete: shard 2 missing" in unfinished.err
    bring(cli, shards, "2/2", "two")
    assert cli("show", "shards").code == 0 and "All 8 cases passed" in cli("show", "shards").out
    assert cli("export", "shards", "-o", "all.json").code == 0
    plain = cli("shards")  # no terminal: as attach
    assert plain.code == 0 and plain.out.count("passed    case") == 8
    for command in ("rescore", "resume"):
        refused = cli(command, "shards")
        assert refused.code == 4 and "merge them" in refused.err


def test_what_a_shard_is_doing_is_seen_while_it_does_it(tmp_path: Path) -> None:
    folder = tmp_path / "shards" / "a"
    folder.mkdir(parents=True)
    writer = RunWriter(folder, RunInfo("20260101-000000-aaaa", started_at=1.0))
    case = Case("s::one", "one", "s", "start_to_agent")
    (refs,) = writer.plan([PlannedCase(case, "bot", None, 2, 2)])
    writer.started(refs[0], 1.0)
    writer.live(refs[0], "assistant", "it is com")
    writer.flush()
    looked = Gathering(tmp_path / "shards", waits=False)
    wait_until(lambda: looked.look() and bool(RunReader(looked.place).live()))
    reader = RunReader(looked.place)
    assert [row.text for row in reader.live()] == ["it is com"] and reader.info().state == "running"
    assert [row.state for row in reader.attempts()] == ["running", "waiting"]
    for ref in refs:
        writer.done(ref, Attempt("s::one", 1, "passed", "bot", response_text="it is coming"))
    writer.state("finished", 2.0)
    writer.close()
    assert looked.look() is False
    assert [row.outcome for row in reader.attempts()] == ["passed", "passed"] and not reader.live()
    assert reader.info().state == "finished"
    reader.close()
    looked.close()


def test_a_shard_that_was_started_again_counts_once_and_what_is_of_another_plan_is_left_out(
    cli: Cli, shards: Path
) -> None:
    for shard, name in (("1/2", "old"), ("1/2", "new"), ("2/2", "two"), ("1/3", "other")):
        bring(cli, shards, shard, name)
    looked = Gathering(shards, waits=True)
    state, note, cases, ended = seen(looked.place)
    assert (state, cases, ended) == ("finished", 8, 8) and "left out: " in note and "3" in note
    looked.close()


def test_shards_of_two_plans_are_told_in_one_line_that_says_how_to_see_either(cli: Cli, shards: Path) -> None:
    """The first was shown, with a long line for each run of the other."""
    suite = shards.parent / "suite.yaml"
    for number in (1, 2, 3):
        bring(cli, shards, f"{number}/3", f"monday/{number}")
    suite.write_text(suite.read_text().replace("hello", "good day"))
    for number in (1, 2, 3):
        bring(cli, shards, f"{number}/3", f"tuesday/{number}")
    told = cli("show", "shards")
    assert (
        told.code == 4
        and told.out == ""
        and told.err.strip()
        == (
            "shards: shards of 2 plans (the suites' content differs: cases were edited between them): monday (3 runs), "
            "tuesday (3 runs); name one: tui-eval show shards/monday"
        )
    )
    assert cli("export", "shards", "-o", "x.json").err == told.err
    for day, outcome in (("monday", "All 8 cases passed"), ("tuesday", "0 passed, 8 failed, 8 total")):
        assert outcome in cli("show", f"shards/{day}").out
    looked = Gathering(shards, waits=True)  # the app: what comes there may be of either
    note = seen(looked.place)[1]
    looked.close()
    assert note == (
        "shards of 2 plans: shown is monday (3 runs); left out: tuesday (3 runs); to see the other: tui-eval show "
        "shards/tuesday; they differ: the suites' content differs: cases were edited between them"
    )
    for day, number in ((day, n) for day in ("monday", "tuesday") for n in (1, 2, 3)):
        (run,) = (shards / day / str(number)).iterdir()
        run.rename(shards / run.name)
    flat = cli("show", "shards")
    assert (
        flat.code == 4
        and flat.err.count(" and 2 more") == 2
        and "name one: tui-eval merge shards/" in flat.err
    )
    merged = cli(*shlex.split(flat.err.partition("name one: tui-eval ")[2]))
    assert "3 runs with 8 cases merged" in merged.err


def test_a_damaged_shard_is_called_that_and_not_only_missing(cli: Cli, shards: Path) -> None:
    for number in (1, 2, 3):
        bring(cli, shards, f"{number}/3", f"shard-{number}")
    (database,) = (shards / "shard-2").rglob("run.db")
    database.write_bytes(b"no database at all" * 1000)
    said = cli("show", shards).out
    assert "shard 2 missing" in said
    assert f"left out: {database.parent.relative_to(shards)}: damaged: file is not a database" in said
    looked = Gathering(shards, waits=True)
    try:
        assert "left out" not in seen(looked.place)[1]  # it may be one that is just being begun
        looked.look()
        assert f"left out: {database.parent.relative_to(shards)}" in seen(looked.place)[1]
    finally:
        looked.close()


def damage_results(database: Path) -> None:
    """Overwrite the page where the results begin: the facts and the cases stay readable."""
    with closing(sqlite3.connect(database)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        statement = "SELECT rootpage FROM sqlite_master WHERE name = 'bodies'"
        page = connection.execute(statement).fetchone()[0]
    with open(database, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 200)


def test_a_shard_that_is_damaged_in_its_middle_is_left_out_and_the_others_are_shown(
    cli: Cli, shards: Path
) -> None:
    for number in (1, 2, 3):
        bring(cli, shards, f"{number}/3", f"shard-{number}")
    (database,) = (shards / "shard-2").rglob("run.db")
    damage_results(database)
    said = cli("show", shards)
    assert said.code == 1 and "5 passed" in said.out and "3 not run, 8 total" in said.out
    assert f"left out: {database.parent.relative_to(shards)}: damaged" in said.out
    assert cli("export", shards, "-o", "all.json").code == 0
    merged = cli("merge", shards)
    assert merged.code == 4 and str(database) in merged.err


def no_end(database: Path) -> None:
    """As of a copy that broke off in the last page: SQLite reads zeros there."""
    with open(database, "r+b") as file:
        file.truncate(database.stat().st_size - 1)


def no_transcript(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE bodies SET body = substr(body, 1, length(body) - 9)")


@pytest.mark.parametrize("damage", [no_end, no_transcript])
def test_a_shard_that_lacks_the_end_of_its_file_or_of_a_transcript_is_damaged_and_no_merged_run_is_made_of_it(
    cli: Cli, shards: Path, damage: Callable[[Path], None]
) -> None:
    """The merged run was made, and was the one that was damaged."""
    for number in (1, 2, 3):
        bring(cli, shards, f"{number}/3", f"shard-{number}")
    (database,) = (shards / "shard-2").rglob("run.db")
    damage(database)
    said = cli("show", shards)
    assert said.code == 1 and f"left out: {database.parent.relative_to(shards)}: damaged" in said.out
    merged = cli("merge", shards)
    assert merged.code == 4 and f"{database}: damaged" in merged.err
    assert not any("of 3 shards" in run["what"] for run in cli("runs", "--json").json or ())


@pytest.mark.parametrize("copied", ["over it", "in its place"])
def test_a_shard_that_is_damaged_while_it_is_looked_at_hides_nothing_and_comes_back_when_it_is_copied_again(
    cli: Cli, shards: Path, monkeypatch: pytest.MonkeyPatch, copied: str
) -> None:
    monkeypatch.setattr(gathering, "_AGAIN_SECONDS", 0.0)
    for number in (2, 3):
        bring(cli, shards, f"{number}/3", f"shard-{number}")
    (database,) = (shards / "shard-2").rglob("run.db")
    whole = database.read_bytes()
    looked = Gathering(shards, waits=True)
    try:
        assert seen(looked.place)[3] == 4
        damage_results(database)
        bring(cli, shards, "1/3", "shard-1")
        # What had been read before may be shown on; nothing new is kept from being shown.
        looked.look()
        assert seen(looked.place)[3] >= 5
        database.write_bytes(b"no database at all" * 1000)
        os.utime(database, (1, 1))
        for _ in range(3):
            looked.look()
        state, note, _, ended = seen(looked.place)
        assert state == "paused" and "left out: shard-2" in note and ended == 5
        if copied == "over it":
            database.write_bytes(whole)
        else:
            (database.parent / "new").write_bytes(whole)
            (database.parent / "new").replace(database)
        wait_until(lambda: looked.look() is False)
        assert seen(looked.place) == ("finished", "", 8, 8)
    finally:
        looked.close()


def test_a_shard_that_was_cut_off_is_taken_in_again_when_it_goes_on(cli: Cli, shards: Path) -> None:
    bring(cli, shards, "1/2", "one")
    bring(cli, shards, "2/2", "two")
    (database,) = (shards / "two").rglob("run.db")
    with closing(sqlite3.connect(database)) as connection, connection:
        last = connection.execute("SELECT max(id) FROM attempts").fetchone()[0]
        statement = "UPDATE attempts SET state = 'running', outcome = NULL, detail = 'asks' WHERE id = ?"
        connection.execute(statement, (last,))
        connection.execute("UPDATE meta SET value = replace(value, '\"finished\"', '\"running\"')")
    looked = Gathering(shards, waits=True)
    try:
        state, note, cases, ended = seen(looked.place)
        assert (state, cases, ended) == ("paused", 8, 7)
        run = database.parent.relative_to(Path.cwd())
        told = f"shard 2/2 was cut off: tui-eval resume {run}; 1 case not run to the end ("
        assert note.startswith(told)
        assert told in cli("show", shards).out
        with closing(RunReader(looked.place)) as reader:
            assert [row.state for row in reader.attempts()].count("waiting") == 1  # nobody runs it
        assert looked.look()
        assert cli("resume", database.parent).code == 0
        wait_until(lambda: looked.look() is False)
        assert seen(looked.place) == ("finished", "", 8, 8)
    finally:
        looked.close()


def cut_off(database: Path) -> None:
    """As if its engine had been killed before anything was asked."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE attempts SET state = 'waiting', outcome = NULL")
        connection.execute("UPDATE meta SET value = replace(value, '\"finished\"', '\"running\"')")


@pytest.mark.parametrize("kept", ["alone", "as .tui-eval"])
def test_a_shard_goes_on_nowhere_but_in_its_project_and_says_where_that_is(
    cli: Cli,
    shards: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    kept: str,
) -> None:
    """Elsewhere its agent is none: what was left of it ended as errors, with nothing more to go on with."""
    project = shards.parent
    bring(cli, shards, "1/2", "one")
    (database,) = (shards / "one").rglob("run.db")
    cut_off(database)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run = elsewhere / ("one" if kept == "alone" else ".tui-eval/runs") / database.parent.name
    shutil.copytree(database.parent, run)
    monkeypatch.chdir(elsewhere)
    before = seen(run)
    told = cli("resume", run.relative_to(elsewhere))
    assert told.code == 4 and seen(run) == before and before[3] == 0
    if kept == "alone":
        way = f"go into a checkout of its project, and type there: tui-eval resume {run}"
    else:
        way = f"copy {run} into .tui-eval/runs of a checkout of that, and type there: tui-eval resume {run.name}"
    assert told.err.strip() == (
        f"run {run.name}: {elsewhere} is not the project that it was started in: {way}"
    )
    (elsewhere / "tui_eval.yaml").write_text("agents: {other: {type: echo}}\n")
    told = cli("resume", run.relative_to(elsewhere))
    why = f"its agent helper is not configured in {elsewhere / 'tui_eval.yaml'} any more: write it there again as it was"
    assert told.code == 4 and why in told.err and (way in told.err) == (kept == "alone")
    assert seen(run) == before
    monkeypatch.chdir(project)
    if kept == "as .tui-eval":
        shutil.copytree(run, project / ".tui-eval" / "runs" / run.name, dirs_exist_ok=True)
    assert (
        cli(*shlex.split(way.partition("tui-eval ")[2] if kept == "alone" else f"resume {run.name}")).code
        == 0
    )


def test_a_shard_that_was_cut_off_and_runs_again_is_not_said_to_be_cut_off(cli: Cli, shards: Path) -> None:
    """Another pod took its place: nobody need go on with the first one."""
    bring(cli, shards, "1/2", "one")
    bring(cli, shards, "2/2", "two")
    (database,) = (shards / "two").rglob("run.db")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE attempts SET state = 'waiting', outcome = NULL")
        connection.execute("UPDATE meta SET value = replace(value, '\"finished\"', '\"running\"')")
    again = shards / "again" / "20990101-000000-00000"
    shutil.copytree(database.parent, again)
    with closing(sqlite3.connect(again / "run.db")) as connection, connection:
        connection.execute(
            "UPDATE meta SET value = replace(value, ?, ?)", (database.parent.name, "20990101-000000-00000")
        )
    lock = RunLock(again)
    looked = Gathering(shards, waits=True)
    try:
        assert seen(looked.place)[0] == "running" and "cut off" not in seen(looked.place)[1]
        lock.release()  # and that one is killed, too
        looked.look()
        note = seen(looked.place)[1]
        assert "shard 2/2 was cut off: tui-eval resume shards/" in note
    finally:
        lock.release()
        looked.close()


def begin_again(cli: Cli, shards: Path, change: str, state: str) -> None:
    """Two shards, the second begun once more elsewhere: what became of its attempts there, and of its run."""
    for shard, name in (("1/2", "one"), ("2/2", "two"), ("2/2", "again")):
        bring(cli, shards, shard, name)
    (database,) = (shards / "again").rglob("run.db")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(f"UPDATE attempts SET {change}")
        connection.execute(f"UPDATE meta SET value = replace(value, '\"finished\"', '\"{state}\"')")


def test_of_a_shard_that_was_started_again_counts_the_same_when_looked_at_and_when_merged(
    cli: Cli, shards: Path
) -> None:
    begin_again(cli, shards, "state = 'waiting', outcome = NULL WHERE id > 1", "running")
    shown = cli("show", shards)
    merged = cli("merge", shards)
    assert shown.code == merged.code == 0
    assert "All 8 cases passed" in shown.out and "All 8 cases passed" in merged.out


def test_a_folder_of_suites_or_of_nothing_is_none_of_runs(cli: Cli, project: Path) -> None:
    cli("run", ".")
    assert not holds_runs(project)  # its own store is no shard
    (project / "empty").mkdir()
    with pytest.raises(StoreError, match="no run in this folder"):
        Gathering(project / "empty", waits=True)


def test_what_ci_keeps_of_each_job_is_a_folder_of_shards_and_a_project_is_none(
    cli: Cli, shards: Path
) -> None:
    """`.tui-eval/runs` with the results beside it, as an artifact has it."""
    for shard in ("1/2", "2/2"):
        cli("run", "suite.yaml", "--shard", shard)
        newest = Store(Path.cwd()).find("last")
        job = shards / shard.replace("/", "-")
        shutil.copytree(newest, job / ".tui-eval" / "runs" / newest.name)
        (job / "results.json").write_text("{}")
    # A job that waits, and one that had nothing to run: all folders are opened as one run all the same.
    (shards / "waits").mkdir()
    (shards / "empty" / ".tui-eval").mkdir(parents=True)
    assert holds_runs(shards) and holds_runs(shards / "1-2") and not holds_runs(Path.cwd())
    assert not holds_runs(shards / "empty") and not holds_runs(shards / "waits")
    assert "All 8 cases passed" in cli("show", "shards").out
    assert "shard 2 missing" in cli("show", "shards/1-2").out
    (shards / "1-2" / "suite.yaml").write_text("agent: helper\n")
    assert not holds_runs(shards)  # the projects of a repository: their suites are opened
    assert "All 8 cases passed" in cli("show", "shards").out
    deep = Path("far/down")
    deep.parent.mkdir()
    deep.symlink_to(shards)
    for command in ("show", "merge"):
        told = cli(command, "./far")
        assert told.code == 4 and "nor in what lies in it 5 deep (links are not followed)" in told.err


def test_runs_far_down_are_shown_by_either_command_and_a_project_stays_one(
    cli: Cli, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shard in ("1/2", "2/2"):
        cli("run", "suite.yaml", "--shard", shard)
        newest = Store(Path.cwd()).find("last")
        shutil.copytree(newest, shards / shard[0] / "runs" / newest.name)
    passed_over = shards / "1" / "node_modules" / "runs" / "x"
    passed_over.mkdir(parents=True)
    (passed_over / "run.db").write_bytes(b"no run")
    for words in (("show", "shards"), ("shards",)):
        shown = cli(*words)
        assert (
            shown.code == 0 and "left out" not in shown.out and "8" in shown.out and "passed" in shown.out
        ), shown
    # A project with runs in a folder of its own: still a project.
    (Path.cwd() / "shards").rename("kept")
    for place in list(Path("kept").glob("*/runs/*")):
        shutil.move(place, Path("kept") / place.name)
    for emptied in ("1", "2"):
        shutil.rmtree(Path("kept") / emptied)
    assert holds_runs(Path("kept")) and not holds_runs(Path.cwd())
    Path("tui_eval.yaml").rename("kept/suite.yaml")
    assert not holds_runs(Path.cwd()) and not holds_runs(Path("kept"))
    Path("kept/suite.yaml").rename("tui_eval.yaml")
    monkeypatch.chdir("kept")
    assert "All 8 cases passed" in cli("show", ".").out


@pytest.mark.parametrize("where", ["1/runs", "m1/.tui-eval/runs"])
def test_the_project_one_stands_in_is_shown_as_the_shards_in_its_folders(
    cli: Cli, project: Path, shards: Path, where: str
) -> None:
    """The app names `tui-eval show .` there; its own runs are no part of them."""
    assert "no run '.'" in cli("show", ".").err
    for shard in ("1/2", "2/2"):
        cli("run", "suite.yaml", "--shard", shard)
        newest = Store(Path.cwd()).find("last")
        shutil.copytree(newest, project / where.replace("1", shard[0]) / newest.name)
    shutil.rmtree(project / ".tui-eval")
    cli("run", "suite.yaml", "-s", "case 1")
    for words in (".", str(project)):
        shown = cli("show", words)
        assert shown.code == 0 and "All 8 cases passed" in shown.out and "is no shard" in shown.out
    assert "case 1" in cli("show", "last").out and "merge them" in cli("resume", ".").err
    shutil.rmtree(project / where.split("/")[0])
    shutil.rmtree(project / where.replace("1", "2").split("/")[0])
    assert "no run '.'" in cli("show", ".").err


def test_shards_that_are_looked_at_say_by_which_rules_they_were_judged(cli: Cli, shards: Path) -> None:
    for number in (1, 2):
        cli("run", "suite.yaml", "--shard", f"{number}/2", "--compat", "reference")
        newest = Store(Path.cwd()).find("last")
        shutil.copytree(newest, shards / newest.name)
    followed = Gathering(shards, waits=False)
    try:
        with closing(RunReader(followed.place)) as reader:
            assert other_rules(reader.info()) == "reference"
    finally:
        followed.close()


def test_what_was_cancelled_takes_no_verdict_away_of_a_shard_that_had_ended(cli: Cli, shards: Path) -> None:
    """It was begun again elsewhere, and cancelled there."""
    begin_again(cli, shards, "outcome = 'cancelled'", "cancelled")
    for command in ("show", "merge"):
        told = cli(command, shards)
        assert told.code == 0 and "All 8 cases passed" in told.out
    assert "cancelled" not in cli("show").out.splitlines()[0]
