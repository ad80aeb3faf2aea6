"""`tui-eval merge`: shards, as folders or results files, as one run that is as any other."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.commands.conftest import Cli
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import NOT_COMPARED
from tui_eval.store.case_state import over_runs
from tui_eval.store.index import Index
from tui_eval.store.missing_cases import unread_errors_of, unread_files_of
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import TABLES
from tui_eval.store.write_thread import connect

CASES = 12
SUITES = "suites:\n  - {path: a.yaml, agent: helper}\n  - {path: b.yaml, agent: helper}\n"


@pytest.fixture
def many(project: Path) -> Path:
    """Two suites of six cases, one of which fails; not in the order of their names."""
    for suite, numbers in (("b.yaml", range(6)), ("a.yaml", range(6, CASES))):
        rows = "".join(
            f"  - {{name: case {n}, input: {'complain' if n == 7 else 'hello'}, expected: {{should_contain: [hi]}}}}\n"
            for n in numbers
        )
        (project / suite).write_text(f"agent: helper\ntest_cases:\n{rows}", "utf-8")
    (project / "suite.yaml").unlink()
    with open(project / "tui_eval.yaml", "a", encoding="utf-8") as config:
        config.write("  other: {type: scripted, script: agent.script.yaml}\n")
    return project


def shard(cli: Cli, number: int, of: int, *more: str) -> Path:
    cli("run", ".", "--shard", f"{number}/{of}", *more)
    return Store(Path.cwd()).find("last")


def results(cli: Cli, reference: object, name: str) -> dict[str, Any]:
    cli("export", reference, "-o", name)
    document = json.loads(Path(name).read_text())
    for part in ("run", "timestamp"):
        del document[part]
    return json.loads(
        re.sub(
            r'"(\w*started_at|duration_ms|\w*_ms|avg_duration_s|total_duration\w*)": ([\d.e-]+|null)',
            r'"\1": 0',
            json.dumps(document),
        )
    )


@pytest.mark.usually(1)
@pytest.mark.parametrize("kind", ["folders", "files", "folder of folders"])
def test_merged_shards_are_the_run_that_one_machine_would_have_made(cli: Cli, many: Path, kind: str) -> None:
    cli("run", ".", "--attempts", "2")
    whole = results(cli, "last", "whole.json")
    assert len(whole["results"]) == 2 * CASES
    folders = [shard(cli, number, 3, "--attempts", "2", "-o", f"r{number}.json") for number in (2, 3, 1)]
    given: list[object] = list(folders)
    if kind == "files":
        given = [many / f"r{number}.json" for number in (3, 1, 2)]
    if kind == "folder of folders":
        for number, folder in enumerate(folders):
            shutil.copytree(folder, many / "artifacts" / f"shard-{number}" / folder.name)
        given = [many / "artifacts"]
    merged = cli("merge", *given, "-o", "merged.json")
    assert merged.code == 1 and "case 7" in merged.out and "incomplete" not in merged.err
    assert "3 runs with 12 cases merged" in merged.err
    with closing(RunReader(Store(many).find("last"))) as reader:
        assert reader.info().paths == ["."]  # what was looked through, not the files of results
    assert results(cli, "last", "again.json") == whole
    assert results(cli, "merged.json", "file.json") == whole


def test_a_merged_run_is_shown_judged_again_and_compared_as_any_other(cli: Cli, many: Path) -> None:
    for number in (1, 2):
        shard(cli, number, 2)
    cli("merge", *(folder.name for folder in Store(many).run_folders()))
    assert cli("show", "last", "case 7").out.count("complain")
    assert "shard 1" not in cli("show").out.splitlines()[0]
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(
        text.replace("complain, expected: {should_contain: [hi]}", "complain"), "utf-8"
    )
    merged = Store(many).find("last").name
    assert cli("rescore", merged).code == 0  # nothing asserted is no failure
    assert cli("compare", merged, "last").code == 0


@pytest.mark.parametrize("order", [("early", "late"), ("late", "early")])
def test_of_a_run_that_is_given_as_it_was_before_it_went_on_too_its_end_counts(
    cli: Cli, many: Path, order: tuple[str, str]
) -> None:
    """The first that was given did, and what the other had more of was lost without a word."""
    shard(cli, 1, 1, "--fail-fast", "-j", "1", "-o", "early.json")
    assert json.loads(Path("early.json").read_text())["summary"]["not_run"]
    cli("resume", "last", "--no-fail-fast", "-o", "late.json")
    merged = cli("merge", *(f"{name}.json" for name in order), "-o", "all.json")
    assert "incomplete" not in merged.err and "1 run with 12 cases" in merged.err
    assert json.loads(Path("all.json").read_text())["summary"]["total"] == CASES


def test_what_is_missing_and_what_stands_twice_is_said(cli: Cli, many: Path) -> None:
    folders = [shard(cli, number, 4) for number in (1, 2, 4, 1)]
    merged = cli("merge", *folders)
    assert merged.code == 1
    gap = re.search(r"incomplete: shard 3 missing: (\d) cases? no part has \((.*)\)", merged.err)
    assert gap is not None
    with_plan = RunReader(folders[0])
    ids, numbers = with_plan.whole_plan()
    with_plan.close()
    third = [case_id for case_id, number in zip(ids, numbers, strict=True) if number == 3]
    assert int(gap[1]) == len(third) > 0 and gap[2] == ", ".join(third)
    first = numbers.count(1)
    assert f"{first} case{'s' * (first > 1)} in several of them" in merged.err
    assert "shard 3 missing" in cli("show").out


def test_a_merged_run_that_comes_from_its_file_says_what_it_lacks_as_it_did(cli: Cli, many: Path) -> None:
    """`8 cases not run to the end` stood there: as if somebody could go on with them."""
    first = cli("merge", *(shard(cli, number, 4) for number in (1, 2, 4)), "-o", "merged.json")
    gap = re.search(r"incomplete: (shard 3 missing: .*)", first.err)
    again = cli("merge", "merged.json", "-o", "again.json")
    assert gap is not None and again.code == 1 and f"incomplete: {gap[1]}\n" in again.err
    assert gap[1] in cli("show").out and gap[1] in cli("show", "again.json").out
    told = [json.loads(Path(name).read_text())["run"] for name in ("merged.json", "again.json")]
    assert told[0]["provenance"]["missing"] == told[1]["provenance"]["missing"]
    twice = cli("merge", "merged.json", "again.json")
    assert twice.err.count("no part has") == 1 and "not run to the end" not in twice.err


def test_a_gap_is_no_success_although_all_that_ran_passed(cli: Cli, many: Path) -> None:
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(text.replace("complain", "hello"), "utf-8")
    folders = [shard(cli, number, 2) for number in (1, 2)]
    assert cli("merge", folders[0]).code == cli("show").code == 1
    assert cli("merge", *folders).code == 0


def test_cases_of_which_only_the_number_is_known_are_those_of_their_plan_and_only_until_they_ran(
    cli: Cli, project: Path
) -> None:
    """One merge of two of three results files ended `--failed` of every suite with 1, whatever ran afterwards."""
    (project / "suite.yaml").unlink()
    for name, count in (("a", 6), ("b", 1)):
        (project / name).mkdir()
        rows = "".join(
            f"  - {{name: {name}{n}, input: hello, expected: {{should_contain: [hi]}}}}\n"
            for n in range(count)
        )
        (project / name / f"{name}.yaml").write_text(f"agent: helper\ntest_cases:\n{rows}", "utf-8")
    files = [f"s{number}.json" for number in (1, 2, 3)]

    def shards(*numbers: int) -> None:
        for number in numbers:
            assert cli("run", "a", "--shard", f"{number}/3", "-o", files[number - 1]).code == 0

    def begin_anew(*merged: str) -> None:
        shutil.rmtree(project / ".tui-eval")
        assert cli("merge", *merged, "-o", "m.json").code == (0 if merged == tuple(files) else 1)

    shards(3, 1, 2)  # the one that will be missing began first
    lacked = [one["name"] for one in json.loads(Path("s3.json").read_text())["results"]]
    never = f"but {len(lacked)} case{'s' * (len(lacked) > 1)} never ran to the end (case 1 of {len(lacked)} that no"
    begin_anew(*files[:2])
    told = cli("run", "a", "--failed")
    assert told.code == 1 and never in told.err
    assert cli("run", "b", "--failed").code == 5, "b is none of the plan"
    for folder, code in (("a", 1), ("b", 5)):
        assert cli("run", folder, "--filter-failing", "m.json").code == code
    # The way on that it names.
    assert cli("merge", *files).code == 0
    assert cli("run", "a", "--failed").code == cli("run", ".", "--failed").code == 5

    # Merged anew with what still lacks some: these are said.
    begin_anew(files[0])
    assert cli("merge", *files[:2]).code == 1
    told = cli("run", "a", "--failed")
    assert told.code == 1 and never in told.err

    # They ran since, alone or with all others.
    assert cli("run", "a", "--failed", "-s", "a0,a1,a2,a3,a4,a5").code == 1
    assert cli("run", "a", "-s", ",".join(lacked)).code == 0
    assert cli("run", "a", "--failed").code == cli("run", ".", "--failed").code == 5
    begin_anew(*files[:2])
    assert cli("run", ".").code == 0
    assert cli("run", "a", "--failed").code == cli("run", ".", "--failed").code == 5

    # A file of an earlier version does not say where its plan was looked for: any suite's may be it, until they ran.
    for name in files:
        document = json.loads(Path(name).read_text())
        del document["run"]["provenance"]["paths"]
        Path(name).write_text(json.dumps(document), "utf-8")
    begin_anew(*files[:2])
    assert cli("run", "b", "--failed").code == 1
    assert cli("run", "b").code == 0
    assert cli("run", "b", "--failed").code == 5 and cli("run", "a", "--failed").code == 1


def test_a_gap_is_one_where_the_run_is_judged_again(cli: Cli, many: Path) -> None:
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(text.replace("complain", "hello"), "utf-8")
    folders = [shard(cli, number, 3) for number in (1, 2, 3)]
    assert cli("merge", *folders[:2], "-o", "m.json").code == 1
    merged_id = Store(many).find("last").name
    told = cli("run", ".", "--failed")
    assert told.code == 5, "they ran here, as a shard"
    shutil.rmtree(folders[2])
    told = cli("run", ".", "--failed")
    assert told.code == 1 and "never ran to the end (case " in told.err
    assert f"in run {merged_id}: run shard 3 with the options of the others" in told.err
    gap = f"of its cases no part has; merge all parts of run {merged_id} anew"
    for _ in range(2):  # and once more, of what was judged again
        again = cli("rescore", "last", "-o", "r.json", "-o", "r.junit.xml")
        assert again.code == 1 and gap in again.err
        assert cli("show").code == 1 and cli("resume").code == 1
        merged, judged = (json.loads((many / name).read_text()) for name in ("m.json", "r.json"))
        assert [(one["case_id"], one["outcome"], one["required"]) for one in judged["cases"]] == [
            (one["case_id"], one["outcome"], one["required"]) for one in merged["cases"]
        ]
        missing = judged["summary"]["not_run"]
        assert missing == merged["summary"]["not_run"] > 0
        assert [one["case_id"] for one in judged["not_run"]] == [one["case_id"] for one in merged["not_run"]]
        assert {one["message"] for one in judged["not_run"]} == {"not run (no part has it)"}
        assert ElementTree.parse(many / "r.junit.xml").getroot().get("skipped") == str(missing)


def test_a_part_whose_files_had_errors_leaves_no_run_that_is_green(cli: Cli, many: Path) -> None:
    parts = ["-s", "a.yaml"], ["-s", "case 1"]
    folders: list[Path] = []
    for number, part in enumerate(parts):
        if number:
            (many / "broken.yaml").write_text("agent: helper\ntest_cases: [\n", "utf-8")
        assert cli("run", ".", *part).code == (1, 4)[number]
        folders.append(Store(Path.cwd()).find("last"))
    (many / "broken.yaml").unlink()
    for order in (folders, folders[::-1]):
        merged = cli("merge", *order)
        assert merged.code == 4 and "not all of its files could be read" in merged.err


def test_a_merged_run_names_all_files_that_could_not_be_read(cli: Cli, many: Path) -> None:
    """Parts that are no shards are of other files: three errors in one hid those in another."""
    folders: list[Path] = []
    for names in (["x.yaml"], ["y.yaml", "z.yaml"], []):
        for name in names:
            (many / name).write_text("agent: helper\ntest_cases: [\n", "utf-8")
        cli("run", ".", "-s", f"case {len(folders)}")
        folders.append(Store(Path.cwd()).find("last"))
        for name in names:
            (many / name).unlink()
    cli("merge", *folders, "-o", "merged.junit.xml")
    info = RunReader(Store(Path.cwd()).find("last")).info()
    assert unread_files_of(info) == ["x.yaml", "y.yaml", "z.yaml"] and unread_errors_of(info) >= 3
    assert all(name in (many / "merged.junit.xml").read_text() for name in ("x.yaml", "y.yaml", "z.yaml"))


def test_resume_does_not_call_a_run_with_a_gap_complete(cli: Cli, many: Path) -> None:
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(text.replace("complain", "hello"), "utf-8")
    folders = [shard(cli, number, 3) for number in (1, 3)]
    cli("merge", *folders)
    resumed = cli("resume")
    assert resumed.code == 1 and "shard 2 missing" in resumed.err and "is complete" not in resumed.err


def test_missing_cases_of_results_files_count_in_every_column(cli: Cli, many: Path) -> None:
    """Their names are not known then, and yet each was to be asked of both agents."""
    asked = ("--agent", "helper", "--agent", "other")
    parts = [many / f"r{number}.json" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        shard(cli, number, 3, *asked, "-o", str(part))
    ran = sum(len(json.loads(part.read_text())["results"]) for part in parts)
    merged = cli("merge", *parts)
    assert f"{2 * CASES - ran} not run, {2 * CASES} total" in merged.out
    missing = re.search(r"incomplete: shard 3 missing: (\d+) cases no part has", merged.err)
    assert missing is not None and 2 * int(missing[1]) == 2 * CASES - ran > 0


def test_shards_of_what_failed_are_one_run_although_some_passed_meanwhile(cli: Cli, many: Path) -> None:
    """Each sees as failed what had when it began, in the store that all of them write."""
    for suite in ("a.yaml", "b.yaml"):
        text = (many / suite).read_text()
        (many / suite).write_text(text.replace("[hi]", "[nobody says this]"), "utf-8")
    cli("run", ".")
    script = (many / "agent.script.yaml").read_text()
    (many / "agent.script.yaml").write_text(script.replace("hi", "nobody says this"), "utf-8")
    folders = [shard(cli, number, 3, "--failed") for number in (1, 2, 3)]
    plans = []
    for folder in folders:
        with closing(RunReader(folder)) as reader:
            plans.append(len(reader.whole_plan()[0]))
    assert plans[0] > plans[1] > plans[2]  # what had passed by then failed no more
    merged = cli("merge", *reversed(folders))
    assert "incomplete" not in merged.err
    assert f"{plans[0]} total" in merged.out or f"All {plans[0]} cases passed" in merged.out
    gap = cli("merge", folders[1], folders[0])
    assert gap.code == 1 and "incomplete: shard 3 missing" in gap.err
    cli("run", ".", "--shard", "2/3")
    assert "--failed is given there and not given here" in refused(cli, folders[0], "last")


def test_what_can_be_run_of_a_run_with_a_gap_is_run_and_the_gap_is_said(cli: Cli, many: Path) -> None:
    folders = [shard(cli, number, 3, "--fail-fast", "-j", "1") for number in (1, 2, 3)]
    unfinished = [one for one in folders if any(row.state != "done" for row in _attempts(one))]
    whole = next(one for one in folders if one not in unfinished)
    assert (
        "not run to the end"
        in cli("merge", *unfinished, *[one for one in folders if one not in (*unfinished, whole)]).err
    )
    resumed = cli("resume", "--no-fail-fast")
    assert resumed.code == 1 and "incomplete: " in resumed.err and "no part has" in resumed.err


def _cut_off(folder: Path, without: str = "") -> None:
    """As `kill -9` leaves a run whose last attempt was being asked; also `without` a fact that is written at
    its end."""
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute(
            "UPDATE attempts SET state = 'running', outcome = NULL WHERE id = (SELECT max(id) FROM attempts)"
        )
        connection.execute("UPDATE meta SET value = replace(value, '\"finished\"', '\"running\"')")
        if without:
            connection.execute(
                f"UPDATE meta SET value = json_remove(value, '$.{without}') WHERE key = 'info'"
            )


def test_shards_that_were_cut_off_are_named_with_what_goes_on_with_them(cli: Cli, many: Path) -> None:
    folders = [shard(cli, number, 3) for number in (1, 2, 3)]
    _cut_off(folders[1])
    merged = cli("merge", *folders)
    assert (
        f"incomplete: shard 2/3 was cut off: tui-eval resume {folders[1].name}; 1 case not run to"
        in merged.err
    )
    _cut_off(folders[2])
    both = cli("merge", *folders)
    commands = ", ".join(f"tui-eval resume {one.name}" for one in folders[1:])
    assert f"shards 2/3, 3/3 were cut off: {commands}; 2 cases not run to the end" in both.err
    cli("export", folders[1], "-o", "cut.json")
    files = cli("merge", folders[0], "cut.json")
    assert "shard 2/3 was cut off; shard 3 missing: " in files.err  # a results file cannot go on
    for one in folders[1:]:
        assert cli("resume", one.name).code == 0
    assert "incomplete" not in cli("merge", *folders).err


def test_what_a_merged_run_says_of_its_parts_is_said_when_it_has_gone_on_too(cli: Cli, many: Path) -> None:
    """`resume` wrote another note over it: that newer results were left out, and of which commits the parts are."""
    folders = [shard(cli, number, 2) for number in (1, 2)]
    _cut_off(folders[1])
    with closing(RunReader(folders[0])) as reader:
        again = next(case.case_id for case in reader.cases() if case.name != "case 7")
    rerun(folders[0], again, "bye")
    lasting = f"1 case run or judged again since ({again}: passed, failed since): those results are not in it"
    merged = cli("merge", *folders)
    assert lasting in merged.out and "was cut off" in merged.err
    for _ in range(2):
        gone_on = cli("resume")
        assert lasting in gone_on.out
        with closing(RunReader(Store(many).find("last"))) as reader:
            info = reader.info()
        assert lasting in info.note and "cut off" not in info.note
        _cut_off(Store(many).find("last"))


@pytest.mark.parametrize("killed", [(2,), (1, 2)])
def test_a_merged_run_says_what_is_asked_again_of_parts_that_were_killed(
    cli: Cli, many: Path, killed: tuple[int, ...]
) -> None:
    """As the part would itself: two answers were paid twice without a word."""
    folders = [shard(cli, number, 2) for number in (1, 2)]
    for number in killed:
        _cut_off(folders[number - 1], "finished_at")
    cli("merge", *folders)
    attempts = "1 attempt that was" if len(killed) == 1 else "2 attempts that were"
    times = ", 2 times" * (len(killed) > 1)
    said = f"asked again: at least {attempts} under way when the run was cut off{times}; what"
    assert said in cli("resume").out
    _cut_off(Store(many).find("last"), "finished_at")
    more = f"at least {len(killed) + 1} attempts that were under way when the run was cut off, {len(killed) + 1} times;"
    assert more in cli("resume").out


def test_an_answer_that_waited_for_its_comparison_takes_no_verdict_away(cli: Cli, many: Path) -> None:
    """A shard was begun again and cancelled before its columns were compared: what had passed stood as an error."""
    first, again = (shard(cli, 1, 1) for _ in range(2))
    with closing(sqlite3.connect(again / "run.db")) as connection, connection:
        connection.execute("UPDATE attempts SET outcome = 'error', message = ?", (NOT_COMPARED,))
    for run in (first, again):
        shutil.copytree(run, Path("parts", run.name))
    assert results(cli, "parts", "looked_at.json")["summary"]["errors"] == 0
    cli("merge", first, again)
    assert results(cli, "last", "merged.json")["summary"]["errors"] == 0


def test_a_cancelled_shard_of_which_nothing_counts_has_nothing_to_say(cli: Cli, many: Path) -> None:
    """All had passed, and the note was `cancelled`."""
    first, cancelled = (shard(cli, number, 2) for number in (1, 2))
    with closing(sqlite3.connect(cancelled / "run.db")) as connection, connection:
        connection.execute("UPDATE attempts SET outcome = 'cancelled'")
        ended = ('\'"state":"finished"\'', '\'"state":"cancelled","note":"cancelled"\'')
        connection.execute(f"UPDATE meta SET value = replace(value, {ended[0]}, {ended[1]})")
    assert "cancelled" in cli("merge", first, cancelled).out
    cli("merge", first, cancelled, shard(cli, 2, 2))
    with closing(RunReader(Store(many).find("last"))) as reader:
        assert reader.info().state == "finished" and "cancelled" not in reader.info().note


def _attempts(folder: Path) -> list[Any]:
    reader = RunReader(folder)
    try:
        return reader.attempts()
    finally:
        reader.close()


def test_an_interrupted_shard_leaves_a_run_that_is_resumed(cli: Cli, many: Path) -> None:
    for number in (1, 2):
        shard(cli, number, 2, "--fail-fast", "-j", "1")
    merged = cli("merge", *Store(many).run_folders())
    assert merged.code == 1 and "not run to the end (" in merged.err
    assert cli("resume", "--no-fail-fast").code == 1
    with_all = results(cli, "last", "x.json")
    assert len(with_all["results"]) == CASES and with_all["summary"]["not_run"] == 0


def refused(cli: Cli, *arguments: object) -> str:
    count = len(list(Store(Path.cwd()).run_folders()))
    result = cli("merge", *arguments)
    assert result.code == 4 and result.err.count("\n") == 1 and not result.out, result
    assert len(list(Store(Path.cwd()).run_folders())) == count
    return result.err


def test_a_run_in_a_folder_that_was_cut_off_at_its_start_is_left_out_and_named_outright_refused(
    cli: Cli, many: Path
) -> None:
    """A pod that was killed while it began, and another one in its place."""
    first, second = shard(cli, 1, 2), shard(cli, 2, 2)
    for folder in (first, second):
        shutil.move(folder, many / "up" / folder.name)
    started = many / "up" / "20260101-000000-aaaaa"
    started.mkdir()
    with closing(connect(started)) as database:
        database.executescript(TABLES)
    assert "delete it" in refused(cli, *(many / "up").iterdir())
    merged = cli("merge", "up")
    assert f"left out: up/{started.name}: cut off at the start, nothing of it ran" in merged.err
    assert not Index(many).runs()[0].lacks
    for folder in (first, second):
        shutil.rmtree(many / "up" / folder.name)
    assert "delete it" in refused(cli, "up")


def test_what_does_not_belong_together_is_refused_with_what_differs(cli: Cli, many: Path) -> None:
    first = shard(cli, 1, 2)
    assert "cut in 2 shards, the other in 3" in refused(cli, first, shard(cli, 2, 3))
    assert "--attempts is not given there and 2 here" in refused(
        cli, first, shard(cli, 2, 2, "--attempts", "2")
    )
    assert "-m is not given there and x here" in refused(cli, first, shard(cli, 2, 2, "-m", "x"))
    other = shard(cli, 2, 2, "--agent", "other")
    assert "--agent is not given there and other here" in refused(cli, first, other)
    cli("run", ".")
    assert "is no shard" in refused(cli, first, "last")
    assert "6 here (or were selected otherwise)" in refused(cli, first, shard(cli, 2, 2, "-s", "b"))
    script = (many / "agent.script.yaml").read_text()
    (many / "agent.script.yaml").write_text(script.replace("hi there", "hi you"), "utf-8")
    assert "agent helper has other files" in refused(cli, first, shard(cli, 2, 2))
    (many / "agent.script.yaml").write_text(script, "utf-8")
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(text.replace("[hi]", "[hi, there]"), "utf-8")
    assert "the suites' content differs: cases were edited" in refused(cli, first, shard(cli, 2, 2))
    (many / "a.yaml").write_text(text.replace("case 9", "case nine"), "utf-8")
    assert "for example a.yaml::case 9," in refused(cli, first, shard(cli, 2, 2))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (SUITES + "run: {attempts: 2}\n", "attempts of all suites are 1 there and 2 here"),
        (
            SUITES.replace("path: b.yaml", "path: b.yaml, attempts: 3"),
            "attempts of b.yaml are 1 there and 3 here",
        ),
        (SUITES.replace("helper", "other", 1), "some suites are asked of helper there and of other here"),
        (
            SUITES[::-1].replace("helper"[::-1], "helper, model: m"[::-1], 1)[::-1],
            "b.yaml is asked of helper there and of helper m here",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["folders", "files"])
def test_shards_that_tui_eval_yaml_has_asked_otherwise_are_refused(
    cli: Cli, many: Path, kind: str, config: str, said: str
) -> None:
    """By what was planned for the whole: no case stands in both shards."""
    for suite in ("a.yaml", "b.yaml"):  # they name nobody
        text = (many / suite).read_text().removeprefix("agent: helper\n")
        (many / suite).write_text(text, "utf-8")
    before = (many / "tui_eval.yaml").read_text()
    (many / "tui_eval.yaml").write_text(before + SUITES, "utf-8")
    first = shard(cli, 1, 2, "-o", "1.json")
    (many / "tui_eval.yaml").write_text(before + config, "utf-8")
    second = shard(cli, 2, 2, "-o", "2.json")
    parts = (first, second) if kind == "folders" else ("1.json", "2.json")
    assert said in refused(cli, *parts)


def test_parts_that_are_no_shards_are_merged_where_they_agree(cli: Cli, many: Path) -> None:
    cli("run", "a.yaml", "-o", "a.json")
    cli("run", "b.yaml", "-o", "b.json")
    before = Store(many).find("last")
    assert "2 runs with 12 cases" in cli("merge", "a.json", "b.json").err
    assert [row["name"] for row in results(cli, "last", "m.json")["results"]][:2] == ["case 6", "case 7"]
    (many / "b.yaml").write_text((many / "b.yaml").read_text().replace("[hi]", "[there]"), "utf-8")
    cli("run", "b.yaml")
    assert "was edited between them" in refused(cli, before, "last")
    cli("run", "a.yaml", "-m", "other")
    assert "-m is not given" in refused(cli, before, "last")


def test_what_failed_in_results_files_is_run_again_with_whom_they_name(cli: Cli, many: Path) -> None:
    """They do not say what was typed: without it the suite's own agent would be asked."""
    for name in ("a", "b"):
        (many / f"{name}.yaml").write_text(
            f"test_cases:\n  - {{name: {name}1, input: hello, expected: {{should_contain: [never]}}}}\n"
        )
        cli("run", f"{name}.yaml", "--agent", "echo", "-o", f"{name}.json")
    merged = cli("merge", "a.json", "b.json")
    again = [
        shlex.split(line.partition("again: ")[2]) for line in merged.out.splitlines() if "again: " in line
    ]
    assert [words[-2:] for words in again] == [["--agent", "echo"]] * 2
    said = cli(*again[0][1:], "--display", "json")
    assert json.loads(said.out.splitlines()[0])["agent"] == "echo"
    (row,) = results(cli, "a.json", "of_a.json")["results"]
    code = {**row, "agent": "./away.py:answer"}
    (many / "code.json").write_text(json.dumps({"results": [code]}))
    merged = cli("merge", "code.json", "b.json")
    again = [line for line in merged.out.splitlines() if "again: " in line]
    assert len(again) == 2 and "away.py" not in "".join(again), "typing it would trust it"


def test_a_run_of_a_part_of_another_is_no_part_of_a_plan(cli: Cli, many: Path) -> None:
    shard(cli, 1, 2)
    cli("rescore")
    assert "leave it out" in refused(cli, "last")


def rerun(above: Path, case: str, reply: str) -> Path:
    """As `r` in the app: one case again, in a run of its own that is linked to the one it is of."""
    script = Path("agent.script.yaml")
    before = script.read_text("utf-8")
    script.write_text(f"default: {reply}\n", "utf-8")
    active = prepare(RunRequest(case_ids=[case], linked_to=above.name))
    asyncio.run(active.execute())
    script.write_text(before, "utf-8")
    assert active.writer is not None
    return active.writer.folder


@pytest.mark.parametrize("given", ["ids", "folder", "elsewhere"])
def test_newer_results_of_linked_runs_are_named_and_no_part(cli: Cli, many: Path, given: str) -> None:
    """`r` had made a failure green, and something green red: merged without a word, or the folder refused."""
    folders = [shard(cli, number, 2) for number in (1, 2)]
    of: dict[str, tuple[Path, str]] = {}
    for folder in folders:
        with closing(RunReader(folder)) as reader:
            of |= {case.name: (folder, case.case_id) for case in reader.cases()}
    again = [rerun(*of["case 7"], "hi"), rerun(*of["case 3"], "bye"), rerun(*of["case 4"], "hi")]
    runs = many / ".tui-eval" / "runs"
    references: list[object] = [folder.name for folder in folders]
    if given == "folder":
        references = [runs]
    if given == "elsewhere":
        shutil.copytree(many, many.parent / "other", dirs_exist_ok=True)
        shutil.rmtree(many / ".tui-eval")
        references = [many.parent / "other" / ".tui-eval" / "runs" / folder.name for folder in folders]
    merged = cli("merge", *references)
    assert merged.code == 1 and "2 runs with 12 cases merged" in merged.err
    assert "11 passed, 1 failed, 12 total" in merged.out
    for out in (merged.out, cli("show").out):
        assert "\n3 cases run or judged again since (" in out
        assert "a.yaml::case 7: failed, passed since" in out and "b.yaml::case 3: passed, failed since" in out
        assert "b.yaml::case 4): those results are not in it" in out
    left = "left out: " in merged.err
    assert left == (given == "folder") and all((folder.name in merged.err) == left for folder in again)
    if given == "folder":
        assert "leave it out" in refused(cli, *folders, again[0])


def test_runs_in_a_folder_that_are_no_shards_are_left_out_and_named_outright_refused(
    cli: Cli, many: Path
) -> None:
    """What was run by name, or of what failed, in the checkout of a shard: the whole folder was refused."""
    cli("run", "a.yaml")  # older than the shards
    other = Store(many).find("last")
    folders = [shard(cli, number, 2) for number in (1, 2)]
    cli("run", ".", "--failed")
    failed = Store(many).find("last")
    merged = cli("merge", ".tui-eval/runs")
    assert "2 runs with 12 cases merged" in merged.err and "11 passed, 1 failed, 12 total" in merged.out
    seen = cli("show", ".tui-eval/runs").out
    (left,) = [line for line in merged.err.splitlines() if line.startswith("left out: ")]
    assert left.endswith(", which are no shards, or do not say of what")
    for folder in (other, failed):
        assert folder.name in left and left.replace(".tui-eval/runs/", "") in seen
        assert "is no shard" in refused(cli, *folders, folder)
        assert "is no shard" in refused(cli, ".tui-eval/runs", folder)


def test_shards_of_two_plans_in_a_folder_are_refused_as_nobody_knows_which_is_meant(
    cli: Cli, many: Path
) -> None:
    shard(cli, 1, 2)
    shard(cli, 2, 3)
    assert "cut in" in refused(cli, ".tui-eval/runs")


@pytest.mark.parametrize("arguments", [[], ["nowhere"], ["a.yaml"], ["empty"], ["broken.json"]])
def test_what_is_no_run_is_said_in_one_line(cli: Cli, many: Path, arguments: list[str]) -> None:
    (many / "empty").mkdir()
    (many / "broken.json").write_text("{", "utf-8")
    assert refused(cli, *arguments)


def test_an_answer_in_a_shard_and_in_the_merged_run_counts_once_in_the_history(cli: Cli, many: Path) -> None:
    folders = [shard(cli, number, 2, "-o", f"r{number}.json") for number in (1, 2)]
    cli("merge", *folders)
    merged = Store(many).find("last").name
    cli("merge", "r1.json", "r2.json")  # the same answers, brought home as files
    again = Store(many).find("last").name
    index = Index(many)
    for found in (index.history("a.yaml::case 7"), index.latest()["a.yaml::case 7"]):
        assert [one.outcome for one in found] == ["failed"] and found[0].run_id in (merged, again)
        assert len(over_runs(found)) == 1
    assert all(len(results) == 1 for results in index.latest().values())
    assert index.before(again) is None and index.before(merged) is None
    # What judges a shard's answers, or those of the other merged run, again judges these, and adds none.
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(
        text.replace("complain, expected: {should_contain: [hi]}", "complain"), "utf-8"
    )
    for run in (*(folder.name for folder in folders), merged):
        cli("rescore", run)
        assert len(over_runs(index.latest()["a.yaml::case 7"])) == 1
    assert [one.outcome for one in over_runs(index.latest()["a.yaml::case 7"])] == ["passed"]
    cli("run", "a.yaml")
    assert [one.outcome for one in over_runs(index.latest()["a.yaml::case 7"])] == ["passed", "passed"]
    assert index.before(Store(many).find("last").name) is not None


def test_a_shard_that_went_on_after_it_was_merged_counts_with_what_came_since(cli: Cli, many: Path) -> None:
    folder = shard(cli, 1, 1, "--fail-fast", "-j", "1")
    cli("merge", folder)
    cli("resume", folder.name)
    for results in Index(many).latest().values():
        assert len(results) == 1


@pytest.mark.usually(1)
@pytest.mark.parametrize("kind", ["folders", "files", "a folder of them"])
def test_a_gap_stands_in_every_file_and_nothing_of_it_is_green(cli: Cli, many: Path, kind: str) -> None:
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(text.replace("complain", "hello"), "utf-8")
    made = [shard(cli, number, 3, "--attempts", "2", "-o", f"r{number}.json") for number in (1, 2, 3)]
    there = [json.loads((many / f"r{number}.json").read_text())["cases"] for number in (1, 3)]
    missing = CASES - sum(map(len, there))
    if kind == "a folder of them":
        for folder in (made[0], made[2]):
            shutil.copytree(folder, many / "shards" / folder.name)
        reference = "shards"
        shown = cli("show", "shards")
    else:
        given = [made[0], made[2]] if kind == "folders" else ["r1.json", "r3.json"]
        assert cli("merge", *given).code == 1
        reference, shown = "last", cli("show")
    assert shown.code == 1 and "All" not in shown.out and f"{missing} not run, {CASES} total" in shown.out
    assert shown.out.count("◌ not run") == missing
    endings = ("json", "jsonl", "csv", "html", "md", "junit.xml", "promptfoo.json")
    assert cli("export", reference, *(word for ending in endings for word in ("-o", f"x.{ending}"))).code == 0
    document = json.loads((many / "x.json").read_text())
    assert document["summary"]["not_run"] == len(document["not_run"]) == 2 * missing
    assert sum(one["outcome"] is None for one in document["cases"]) == missing
    if kind != "files":
        names = {case["case_id"] for case in json.loads((many / "r2.json").read_text())["cases"]}
        assert {one["case_id"] for one in document["not_run"]} == names
        assert {(one["agent"], one["format"]) for one in document["not_run"]} == {
            ("helper", "start_to_agent")
        }
    assert (many / "x.jsonl").read_text().count('"outcome": "not run"') == 2 * missing
    assert (many / "x.csv").read_text().count(",not run,") == 2 * missing
    assert f"{CASES - missing} of {CASES} cases passed" in (many / "x.html").read_text()
    assert f"{CASES - missing} of {CASES} cases passed" in (many / "x.md").read_text()
    root = ElementTree.parse(many / "x.junit.xml").getroot()
    assert (root.get("skipped"), root.get("errors")) == (str(missing), "1")
    assert "shard 2 missing" in next(root.iter("error")).get("message", "")
    # And once more, read back.
    for name in ("x.json", "x.promptfoo.json"):
        back = cli("show", name)
        assert back.code == 1 and f"{missing} not run, {CASES} total" in back.out
        told = cli("resume", name)
        assert told.code == 1 and "cannot mend that" in told.err, told


def test_a_results_file_of_a_run_that_ended_early_brings_what_never_ran(cli: Cli, many: Path) -> None:
    cli("run", "a.yaml", "--fail-fast", "-j", "1", "-o", "a.json", "-o", "a.promptfoo.json")
    for name in ("a.json", "a.promptfoo.json"):
        assert "4 not run, 6 total" in cli("show", name).out
        merged = cli("merge", name)
        assert merged.code == 1 and "not run to the end" in merged.err and "4 not run, 6 total" in merged.out
        assert "cannot mend that" in cli("resume").err


def test_a_results_file_brought_in_twice_counts_once_and_is_what_failed_last_time(
    cli: Cli, many: Path
) -> None:
    cli("run", ".", "-o", "r.json")
    shutil.rmtree(many / ".tui-eval")
    (many / "copy.json").write_bytes((many / "r.json").read_bytes())
    cli("show", "r.json")
    assert not Index(many).latest()  # to look at a file of others is not to have run it
    assert "nothing failed" in cli("run", ".", "--failed").err
    for name in ("r.json", "copy.json"):
        cli("merge", name)
    assert all(len(over_runs(results)) == 1 for results in Index(many).latest().values())
    again = cli("run", ".", "--failed")
    assert again.code == 1 and "0 passed, 1 failed, 1 total" in again.out and "case 7" in again.out


@pytest.mark.usually(1)
@pytest.mark.parametrize("kind", ["folders", "json", "promptfoo.json"])
def test_derived_metrics_are_those_of_the_whole(cli: Cli, project: Path, kind: str) -> None:
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\nderivedMetrics: [{name: share, value: 'hit / __count'}]\ntests:\n"
        + "".join(
            f"  - {{vars: {{q: {n}}}, assert: [{{type: contains, value: '1', metric: hit}}]}}\n"
            for n in range(12)
        ),
        "utf-8",
    )
    cli("run", "promptfooconfig.yaml", "-o", "whole.json")
    parts: list[object] = []
    for number in (1, 2, 3):
        folder = shard(
            cli,
            number,
            3,
            "-s",
            "promptfooconfig.yaml",
            "-o",
            f"r{number}.{kind if kind != 'folders' else 'json'}",
        )
        parts.append(folder if kind == "folders" else f"r{number}.{kind}")
    assert cli("merge", *parts, "-o", "merged.json").code == 1
    whole, merged = (
        json.loads((project / name).read_text())["metrics"] for name in ("whole.json", "merged.json")
    )
    assert [one["derived"] for one in merged] == [one["derived"] for one in whole] == [{"share": 3 / 12}]


@pytest.mark.parametrize("first", ["suite.yaml", "promptfooconfig.yaml"])
def test_derived_metrics_are_computed_whichever_part_has_them(cli: Cli, project: Path, first: str) -> None:
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\nderivedMetrics: [{name: twice, value: 'hit * 2'}]\n"
        "tests: [{vars: {q: one}, assert: [{type: contains, value: one, metric: hit}]}]\n",
        "utf-8",
    )
    parts: list[Path] = []
    for suite in sorted(["suite.yaml", "promptfooconfig.yaml"], key=lambda one: one != first):
        cli("run", suite)
        parts.append(Store(project).find("last"))
    cli("merge", *parts, "-o", "merged.json")
    (metrics,) = [
        one["derived"]
        for one in json.loads((project / "merged.json").read_text())["metrics"]
        if one["derived"]
    ]
    assert metrics == {"twice": 2.0}


@pytest.mark.parametrize("kind", ["folders", "files"])
def test_a_gap_has_as_many_cases_as_are_missing_where_providers_are_mapped_to_agents(
    cli: Cli, many: Path, kind: str
) -> None:
    """The agents are called otherwise than the providers in the cases' ids."""
    with open(many / "tui_eval.yaml", "a", encoding="utf-8") as config:
        config.write('providers: {"openai:gpt-a": helper, "openai:gpt-b": other}\n')
    tests = "".join(f"  - {{description: test {n}, vars: {{q: hello {n}}}}}\n" for n in range(4))
    (many / "p").mkdir()
    (many / "p" / "promptfooconfig.yaml").write_text(
        f'prompts: ["say {{{{q}}}}"]\nproviders: ["openai:gpt-a", "openai:gpt-b"]\ntests:\n{tests}', "utf-8"
    )
    cli("run", "p", "--shard", "2/3", "-o", "one.json")
    there = len(json.loads((many / "one.json").read_text())["results"])
    assert 0 < there < 8
    merged = cli("merge", "last" if kind == "folders" else "one.json")
    assert (
        f"{8 - there} not run, 8 total" in merged.out and "::openai" not in merged.out.partition("8 total")[0]
    )


def test_merged_results_files_say_what_asserted_nothing_and_with_what_they_were_asked(
    cli: Cli, many: Path
) -> None:
    (many / "a.yaml").write_text("agent: helper\ntest_cases:\n  - {name: idle, input: hello}\n", "utf-8")
    for number in (1, 2):
        shard(cli, number, 2, "--attempts", "2", "-o", f"r{number}.json")
    merged = cli("merge", "r1.json", "r2.json", "-o", "all.junit.xml")
    assert "(1 asserted nothing)" in merged.out
    assert "asserted_nothing" in (many / "all.junit.xml").read_text()
    with closing(RunReader(Store(many).find("last"))) as reader:
        assert reader.info().options == {"attempts": 2}
    for part in ("r1.json", "r2.json"):  # as of an earlier version, which says neither
        document = json.loads((many / part).read_text())
        for one in document["results"]:
            assert one.pop("content_hash")
            one.pop("asserted_nothing", None)
        (many / part).write_text(json.dumps(document))
    assert cli("merge", "r1.json", "r2.json").code == 0


@pytest.mark.parametrize(
    ("options", "edited", "said"),
    [
        (["--attempts", "2"], "", "--attempts is not given there and 2 here"),
        ([], "hello again", "b.yaml::case 0 was edited between them"),
    ],
)
def test_results_files_that_do_not_belong_together_are_refused_as_the_runs_are(
    cli: Cli, many: Path, options: list[str], edited: str, said: str
) -> None:
    cli("run", "b.yaml", "-o", "one.json")
    if edited:
        text = (many / "b.yaml").read_text()
        (many / "b.yaml").write_text(text.replace("hello", edited), "utf-8")
    cli("run", "b.yaml", *options, "-o", "two.json")
    folders = [str(folder) for folder in list(Store(many).run_folders())[::-1]]
    for parts in (folders, ["one.json", "two.json"], [folders[0], "two.json"]):
        refused = cli("merge", *parts)
        assert refused.code == 4 and said in refused.err


@pytest.mark.parametrize("of_files", [False, True])
def test_reports_of_a_merged_run_say_of_what_it_was_merged_and_how(
    cli: Cli, many: Path, of_files: bool
) -> None:
    folders = [shard(cli, number, 2, "-o", f"r{number}.json") for number in (1, 2)]
    given = ["r1.json", "r2.json"] if of_files else folders
    names = ("m.html", "m.md", "m.junit.xml")
    cli("merge", *given, *(word for name in names for word in ("-o", name)))
    page, text, units = (Path(name).read_text("utf-8") for name in names)
    assert f"tui-eval merge {given[0]} {given[1]}" in page and "--shard" not in page
    assert all(f"{folder.name} ({number}/2)" in page for number, folder in enumerate(folders, 1))
    assert ", of 2 shards with" in text and 'name="tui-eval of 2 shards"' in units
    assert cli("show", "last").out.splitlines()[0].endswith(", of 2 shards")
    assert "(12 cases, of 2 shards)" in cli("runs").out


def test_a_merged_run_is_no_part_beside_its_shards_and_says_what_to_do_about_its_gap(
    cli: Cli, many: Path
) -> None:
    (many / "a.yaml").write_text((many / "a.yaml").read_text().replace("complain", "hello"), "utf-8")
    first, _, third = [shard(cli, number, 3).name for number in (1, 2, 3)]
    with_gap = cli("merge", first, third)
    assert (with_gap.out + with_gap.err).count("shard 2 missing") == 1
    merged = Store(many).find("last").name
    advice = cli("resume", merged).err
    assert "tui-eval run ... --shard 2/3" in advice and "merge all shards anew" in advice
    again = cli("merge", merged)  # what it lacks stands there once
    assert (again.out + again.err).count("shard 2 missing") == 1
    assert "not run to the end" not in again.out + again.err
    assert f"{merged} was merged of others: leave it out" in cli("merge", merged, first).err
    whole = cli("merge", ".tui-eval/runs")
    assert whole.code == 0 and "3 runs with 12 cases merged" in whole.err
    assert f"left out: .tui-eval/runs/{merged}, which was merged before" in whole.err
    seen = cli("show", ".tui-eval/runs")
    assert seen.code == 0 and f"left out: {merged}, which was merged before" in seen.out


def test_connections_are_named_alike_in_a_run_and_in_its_results_file(cli: Cli, project: Path) -> None:
    (project / "one.hocon").write_text(
        'agent = helper\nconnections = [http, direct]\ninteractions = [{text = hello, response = {text = {keywords = ["hi"]}}}]\n',
        "utf-8",
    )
    said = cli("run", "one.hocon", "--agent", "helper", "-o", "one.json").out
    assert "http" in said and "connection=" not in said
    assert "connection=" not in cli("show", "one.json").out


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("kind", ["folders", "files", "exported"])
def test_what_had_passed_and_is_in_a_missing_shard_is_no_success_also_of_a_suite_that_no_part_has(
    cli: Cli, project: Path, kind: str
) -> None:
    """Its format and agent stood there as those of another suite's cases, and `compare` called it gone (0)."""
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        + "".join(f"  - {{name: c{n}, input: hello, expected: {{should_contain: [hi]}}}}\n" for n in range(3))
    )
    (project / "one.hocon").write_text(
        'agent = other\ninteractions = [{text = hello, response = {text = {keywords = ["hi"]}}}]\n'
    )
    with open(project / "tui_eval.yaml", "a", encoding="utf-8") as config:
        config.write("  other: {type: scripted, script: agent.script.yaml}\n")
    assert cli("run", ".", "-o", "full.json").code == 0
    full = Store(project).find("last").name
    parts: list[object] = []
    for number in range(1, 7):
        if cli("run", ".", "--shard", f"{number}/6", "-o", f"r{number}.json").code == 5:
            continue
        folder = Store(project).find("last")
        with closing(RunReader(folder)) as reader:
            if any(case.format == "neuro_san" for case in reader.cases()):
                assert {case.format for case in reader.cases()} == {"neuro_san"}, "choose other names"
                continue
        parts.append(f"r{number}.json" if kind == "files" else folder)
    merged = cli("merge", *parts, "-o", "merged.json", "-o", "merged.junit.xml")
    assert merged.code == 1 and "1 not run, 4 total" in merged.out
    sides = ("full.json", "merged.json") if kind == "exported" else (full, "last")
    compared = cli("compare", *sides)
    assert compared.code == 1 and "not run: 1" in compared.out and "gone" not in compared.out
    (row,) = json.loads((project / "merged.json").read_text())["not_run"]
    if kind != "files":  # these name the cases of their own shard alone
        assert row["suite"] == "one.hocon"
        assert (row["format"], row["agent"]) == ("unknown", "")
        named = [one for one in ElementTree.parse(project / "merged.junit.xml").iter("testcase")
                 if "one.hocon" in one.get("classname", "") + one.get("name", "")]  # fmt: skip
        assert len(named) == 1 and "helper" not in ElementTree.tostring(named[0], "unicode")
        assert "[" not in named[0].get("name", "[")


@pytest.mark.real
def test_a_merged_run_says_of_which_commits_and_batches_its_parts_are(cli: Cli, many: Path) -> None:
    """It claimed the commit of its first part, and nobody saw that a shard was of a run before."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (many / ".gitignore").write_text(".tui-eval\n*.json\n*.md\n*.html\n", "utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    first = shard(cli, 1, 2)
    assert "commits" not in cli("merge", first, shard(cli, 2, 2)).out
    (many / "notes.txt").write_text("more", "utf-8")
    for words in (["add", "-A"], ["commit", "-qm", "two"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    merged = cli("merge", first, shard(cli, 2, 2), "-o", "m.json", "-o", "m.html")
    assert "the parts are of different commits (" in merged.out
    run = json.loads(Path("m.json").read_text())["run"]
    found = run["provenance"]["git"]
    assert found["commit"] is None and len(found["commits"]) == 2 and "different commits" in run["note"]
    assert all(one[:12] in Path("m.html").read_text() for one in found["commits"])
    again = cli("merge", first, shard(cli, 2, 2), shard(cli, 2, 2))
    assert "shard 1 ended before shard 2 had ended and was run again: an older batch?" in again.out
    assert cli("show", "last").out.splitlines()[0].endswith(", of 2 shards")


def test_the_reason_beside_each_case_that_no_part_has_is_short(cli: Cli, many: Path) -> None:
    """Each repeated all that there is to say of the run."""
    first = shard(cli, 1, 3, "--fail-fast", "-j", "1")
    cli("merge", first, shard(cli, 2, 3), "-o", "m.json", "-o", "m.junit.xml", "-o", "m.csv")
    document = json.loads(Path("m.json").read_text())
    said = {one["message"] for one in document["not_run"]}
    assert "not run (no part has it)" in said and all(len(one) < 200 for one in said)
    skipped = [one.get("message", "") for one in ElementTree.parse("m.junit.xml").iter("skipped")]
    assert skipped and all("missing" not in one for one in skipped)
    assert "shard 3 missing: " in document["run"]["note"]


@pytest.mark.parametrize("kind", ["folders", "files"])
def test_what_a_cost_limit_did_not_count_is_added_up(cli: Cli, many: Path, kind: str) -> None:
    folders = [shard(cli, n, 4, "--max-cost", "3", "-o", f"r{n}.json") for n in range(1, 5)]
    merged = cli("merge", *(folders if kind == "folders" else [f"r{n}.json" for n in range(1, 5)]))
    assert merged.out.count("the cost limit of 3 USD did not count that") == 1
    assert f"the cost of {CASES} answers is unknown" in merged.out


@pytest.mark.parametrize("kind", ["folders", "files"])
def test_what_a_person_noted_on_a_shard_is_noted_on_the_merged_run(cli: Cli, many: Path, kind: str) -> None:
    first, second = shard(cli, 1, 2), shard(cli, 2, 2)
    away = many / "away" / ".tui-eval" / "runs" / second.name
    shutil.copytree(second, away)
    shutil.rmtree(second)
    noted: dict[str, str] = {}
    for folder in (first, away):  # one in this project, one where its shard lies
        with closing(RunReader(folder)) as reader:
            (case, row) = next((case, rows[-1]) for case, rows in reader.by_case())
        noted[case.case_id] = f"words on {folder.name}"
        Notes.beside(folder).put(
            HumanNote(folder.name, row.id, case.case_id, "wrong", noted[case.case_id], star=True)
        )
    before = Notes(many).of_run(first.name)
    given: list[object] = [first, away]
    if kind == "files":
        given = ["1.json", "2.json"]
        for name, folder in zip(given, (first, away), strict=True):
            cli("export", folder, "-o", name)
    cli("merge", *given, "-o", "m.csv", "-o", "m.json")
    merged = Store(many).find("last").name
    results = json.loads(Path("m.json").read_text())["results"]
    assert {one["case_id"]: one["note"]["text"] for one in results if "note" in one} == noted
    assert all(words in Path("m.csv").read_text() for words in noted.values())
    kept = Notes(many).of_run(merged).values()
    assert {one.at for one in before.values()} < {one.at for one in kept} and len(kept) == 2


@pytest.mark.parametrize("kind", ["folders", "files"])
def test_what_the_parts_of_a_merged_run_were_judged_by_is_said_where_it_differs(
    cli: Cli, many: Path, kind: str
) -> None:
    """Where nothing is tracked, or both trees were changed, the commits say nothing."""
    tests = "".join(f"  - {{vars: {{a: x{n}}}}}\n" for n in range(6))
    (many / "promptfooconfig.yaml").write_text(
        'prompts: ["say {{a}}"]\nproviders: [echo]\ndefaultTest: {assert: [{type: contains, value: file://word.txt}]}\n'
        f"tests:\n{tests}",
        "utf-8",
    )
    (many / "word.txt").write_text("say", "utf-8")
    config = (many / "tui_eval.yaml").read_text()

    def note(*parts: object) -> str:
        cli("merge", *parts)
        return RunReader(Store(many).find("last")).info().note

    def second(name: str) -> object:
        folder = shard(cli, 2, 2, "--trust", "-o", name)
        return folder if kind == "folders" else name

    folder = shard(cli, 1, 2, "--trust", "-o", "1.json")
    first = folder if kind == "folders" else "1.json"
    assert note(first, second("2.json")) == ""
    (many / "word.txt").write_text("sa", "utf-8")
    (many / "tui_eval.yaml").write_text(
        f"{config}suites: [{{path: '*.yaml', comparison: {{atol: 1}}}}]\n", "utf-8"
    )
    assert note(first, second("3.json")) == (
        "what the parts rest on differs: the content of word.txt (1/2; 2/2), the settings of a.yaml, b.yaml, "
        "promptfooconfig.yaml (1/2; 2/2)"
    )
