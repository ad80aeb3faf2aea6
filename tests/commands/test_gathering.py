"""A folder of shards is looked at as one run, also while they are written; nothing is written into it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tui_eval.model import Attempt, Case
from tui_eval.store.gathering import Gathering, holds_runs
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
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
    gathering = Gathering(shards, waits=True)
    state, note, first, ended = seen(gathering.place)
    assert state == "paused" and "shard 2 missing" in note and 0 < first == ended < 8
    reader = RunReader(gathering.place)
    stamp = reader.stamp()
    assert gathering.look() and reader.stamp() == stamp  # nothing is new: viewers need not read
    reader.close()
    assert sorted(shards.rglob("*")) == before
    gathering.start()
    bring(cli, shards, "2/2", "two")
    wait_until(lambda: seen(gathering.place) == ("finished", "", 8, 8))
    reader = RunReader(gathering.place)
    assert {reader.attempt(ref).response_text for ref in reader.ended()} == {"hi there"}  # type: ignore[union-attr]
    assert {row.case_id for row in reader.cases()} == {f"suite.yaml::case {n}" for n in range(8)}
    reader.close()
    gathering.close()


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


def test_what_a_shard_is_doing_is_seen_while_it_does_it(tmp_path: Path) -> None:
    folder = tmp_path / "shards" / "a"
    folder.mkdir(parents=True)
    writer = RunWriter(folder, RunInfo("20260101-000000-aaaa", started_at=1.0))
    case = Case("s::one", "one", "s", "start_to_agent")
    (refs,) = writer.plan([PlannedCase(case, "bot", None, 2, 2)])
    writer.started(refs[0], 1.0)
    writer.live(refs[0], "assistant", "it is com")
    writer.flush()
    gathering = Gathering(tmp_path / "shards", waits=False)
    wait_until(lambda: gathering.look() and bool(RunReader(gathering.place).live()))
    reader = RunReader(gathering.place)
    assert [row.text for row in reader.live()] == ["it is com"] and reader.info().state == "running"
    assert [row.state for row in reader.attempts()] == ["running", "waiting"]
    for ref in refs:
        writer.done(ref, Attempt("s::one", 1, "passed", "bot", response_text="it is coming"))
    writer.state("finished", 2.0)
    writer.close()
    assert gathering.look() is False
    assert [row.outcome for row in reader.attempts()] == ["passed", "passed"] and not reader.live()
    assert reader.info().state == "finished"
    reader.close()
    gathering.close()


def test_a_shard_that_was_started_again_counts_once_and_what_is_of_another_plan_is_left_out(
    cli: Cli, shards: Path
) -> None:
    for shard, name in (("1/2", "old"), ("1/2", "new"), ("2/2", "two"), ("1/3", "other")):
        bring(cli, shards, shard, name)
    gathering = Gathering(shards, waits=True)
    state, note, cases, ended = seen(gathering.place)
    assert (state, cases, ended) == ("finished", 8, 8) and "left out: " in note and "3" in note
    gathering.close()


def test_a_damaged_shard_is_called_that_and_not_only_missing(cli: Cli, shards: Path) -> None:
    for number in (1, 2, 3):
        bring(cli, shards, f"{number}/3", f"shard-{number}")
    (database,) = (shards / "shard-2").rglob("run.db")
    database.write_bytes(b"no database at all" * 1000)
    said = cli("show", shards).out
    assert "shard 2 missing" in said
    assert f"left out: {database}: damaged: file is not a database" in said
    gathering = Gathering(shards, waits=True)
    try:
        assert "left out" not in seen(gathering.place)[1]  # it may be one that is just being begun
        gathering.look()
        assert f"left out: {database}" in seen(gathering.place)[1]
    finally:
        gathering.close()


def test_a_folder_of_suites_or_of_nothing_is_none_of_runs(cli: Cli, project: Path) -> None:
    cli("run", ".")
    assert not holds_runs(project)  # its own store is no shard
    (project / "empty").mkdir()
    with pytest.raises(StoreError, match="no run in this folder"):
        Gathering(project / "empty", waits=True)
