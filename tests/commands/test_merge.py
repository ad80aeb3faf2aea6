"""`tui-eval merge`: shards, as folders or results files, as one run that is as any other."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Cli
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store

CASES = 12


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
            r'"(\w*started_at|duration_ms|\w*_ms|avg_duration_s|total_duration\w*)": [\d.e-]+',
            r'"\1": 0',
            json.dumps(document),
        )
    )


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
    assert results(cli, "last", "again.json") == whole
    assert results(cli, "merged.json", "file.json") == whole


def test_a_merged_run_is_shown_judged_again_and_compared_as_any_other(cli: Cli, many: Path) -> None:
    for number in (1, 2):
        shard(cli, number, 2)
    cli("merge", *(folder.name for folder in Store(many).run_folders()))
    assert cli("show", "last", "case 7").out.count("complain")
    assert "shard" not in cli("show").out.splitlines()[0]
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(
        text.replace("complain, expected: {should_contain: [hi]}", "complain"), "utf-8"
    )
    merged = Store(many).find("last").name
    assert cli("rescore", merged).code == 0  # nothing asserted is no failure
    assert cli("compare", merged, "last").code == 0


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


def test_a_gap_is_no_success_although_all_that_ran_passed(cli: Cli, many: Path) -> None:
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(text.replace("complain", "hello"), "utf-8")
    folders = [shard(cli, number, 2) for number in (1, 2)]
    assert cli("merge", folders[0]).code == cli("show").code == 1
    assert cli("merge", *folders).code == 0


def test_resume_does_not_call_a_run_with_a_gap_complete(cli: Cli, many: Path) -> None:
    text = (many / "a.yaml").read_text()
    (many / "a.yaml").write_text(text.replace("complain", "hello"), "utf-8")
    folders = [shard(cli, number, 3) for number in (1, 3)]
    cli("merge", *folders)
    resumed = cli("resume")
    assert resumed.code == 1 and "shard 2 missing" in resumed.err and "is complete" not in resumed.err


def test_what_can_be_run_of_a_run_with_a_gap_is_run_and_the_gap_is_said(cli: Cli, many: Path) -> None:
    folders = [shard(cli, number, 3, "--fail-fast", "-j", "1") for number in (1, 2, 3)]
    unfinished = [one for one in folders if any(row.state != "done" for row in _attempts(one))]
    whole = next(one for one in folders if one not in unfinished)
    assert (
        "not run to the end"
        in cli("merge", *unfinished, *[one for one in folders if one not in (*unfinished, whole)]).err
    )
    resumed = cli("resume")
    assert resumed.code == 1 and "incomplete: " in resumed.err and "no part has" in resumed.err


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
    assert cli("resume").code == 1
    with_all = results(cli, "last", "x.json")
    assert len(with_all["results"]) == CASES and with_all["summary"]["not_run"] == 0


def refused(cli: Cli, *arguments: object) -> str:
    count = len(list(Store(Path.cwd()).run_folders()))
    result = cli("merge", *arguments)
    assert result.code == 4 and result.err.count("\n") == 1 and not result.out, result
    assert len(list(Store(Path.cwd()).run_folders())) == count
    return result.err


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


def test_a_run_of_a_part_of_another_is_no_part_of_a_plan(cli: Cli, many: Path) -> None:
    shard(cli, 1, 2)
    cli("rescore")
    assert "leave it out" in refused(cli, "last")


@pytest.mark.parametrize("arguments", [[], ["nowhere"], ["a.yaml"], ["empty"], ["broken.json"]])
def test_what_is_no_run_is_said_in_one_line(cli: Cli, many: Path, arguments: list[str]) -> None:
    (many / "empty").mkdir()
    (many / "broken.json").write_text("{", "utf-8")
    assert refused(cli, *arguments)
