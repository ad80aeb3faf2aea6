"""`run --shard K/N`: parts that are one whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store

CASES = 12


@pytest.fixture
def many(project: Path) -> Path:
    """A suite of twelve cases, one of which fails."""
    rows = "".join(
        f"  - {{name: case {n}, input: {'complain' if n == 7 else 'hello'}, expected: {{should_contain: [hi]}}}}\n"
        for n in range(CASES)
    )
    (project / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{rows}", "utf-8")
    return project


def names(text: str) -> list[str]:
    return [json.loads(line)["case_id"].partition("::")[2] for line in text.splitlines()]


def test_the_shards_are_the_whole_without_overlap(cli: Cli, many: Path) -> None:
    found = [
        names(cli("run", ".", "--shard", f"{number}/3", "--display", "json").out) for number in (1, 2, 3)
    ]
    assert sorted(name for own in found for name in own) == sorted(f"case {n}" for n in range(CASES))
    assert all(found)
    # Other cases beside them, and another order, move none.
    text = (many / "suite.yaml").read_text("utf-8").splitlines()
    more = "  - {name: new, input: hello, expected: {should_contain: [hi]}}"
    (many / "suite.yaml").write_text("\n".join([*text[:2], more, *reversed(text[2:])]), "utf-8")
    again = names(cli("run", ".", "--shard", "2/3", "--display", "json").out)
    assert sorted(set(again) - {"new"}) == sorted(found[1])


def test_a_shard_is_said_where_its_run_is(cli: Cli, many: Path) -> None:
    ran = cli("run", ".", "--shard", "2/3", "-o", "r.json", "-o", "r.md", "-o", "r.html", "-o", "r.junit.xml")
    assert "shard 2/3" in ran.err
    assert "shard 2/3" in cli("show").out.splitlines()[0]
    assert "shard 2/3" in cli("runs").out
    assert all("shard 2/3" in (many / f"r.{kind}").read_text() for kind in ("md", "html", "junit.xml"))
    said = json.loads((many / "r.json").read_text())["run"]["provenance"]["shard"]
    assert (said["number"], said["of"], said["cases"]) == (2, 3, CASES)
    assert "shard 2/3" in cli("show", "r.json").out.splitlines()[0]
    with_plan = RunReader(Store(many).find("last"))
    ids, shards = with_plan.whole_plan()
    own = [row.case_id for row in with_plan.cases()]
    with_plan.close()
    assert (
        len(ids) == CASES and [name for name, number in zip(ids, shards, strict=True) if number == 2] == own
    )


@pytest.mark.parametrize("shard", ["0/20", "21/20", "three", "3/", "-1/20", "3/0"])
def test_a_shard_that_is_none_is_refused_in_one_line(cli: Cli, many: Path, shard: str) -> None:
    refused = cli("run", ".", "--shard", shard)
    assert refused.code == 4 and refused.err.count("\n") == 1 and "expected K/N" in refused.err
    assert not Store(many).runs_folder.exists()


def test_a_shard_without_cases_is_no_success(cli: Cli, project: Path) -> None:
    codes = [cli("run", ".", "--shard", f"{number}/40", "-s", "greets") for number in range(1, 41)]
    assert [one.code for one in codes].count(0) == 1 and {one.code for one in codes} == {0, 5}
    assert any("holds none of the 1 cases" in one.err for one in codes)


def test_every_shard_draws_the_same_sample_or_none(cli: Cli, many: Path) -> None:
    assert "--filter-sample-seed" in cli("run", ".", "--shard", "1/2", "--filter-sample", "6").err
    sampled = [
        names(cli("run", ".", "--shard", f"{n}/2", "--filter-sample", "6", "--filter-sample-seed", "x", "--display", "json").out)
        for n in (1, 2)
    ]  # fmt: skip
    assert len({name for own in sampled for name in own}) == 6


def test_an_interrupted_shard_is_resumed_as_that_shard(cli: Cli, many: Path) -> None:
    cli("run", ".", "--shard", "1/2", "--fail-fast", "-j", "1")
    cli("run", ".", "--shard", "2/2", "--fail-fast", "-j", "1")
    store = Store(many)
    waiting = [
        one for one in store.run_folders() if any(row.state != "done" for row in RunReader(one).attempts())
    ]
    assert len(waiting) == 1  # the one with the case that fails
    before = {row.case_id for row in RunReader(waiting[0]).cases()}
    cli("resume", waiting[0].name, "--no-fail-fast")
    reader = RunReader(waiting[0])
    assert {row.case_id for row in reader.cases()} == before
    assert all(row.state == "done" for row in reader.attempts())
    assert reader.info().provenance["shard"]["of"] == 2
    reader.close()
