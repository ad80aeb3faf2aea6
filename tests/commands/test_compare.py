"""`tui-eval compare`: linked runs, and two agents of one run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands.conftest import Cli
from tests.tui.app_host import LiveRun
from tests.tui.test_compare_screen import run_of_agents


def project(root: Path) -> Path:
    (root / "tui_eval.yaml").write_text("{}\n")
    return root


def test_a_rerun_counts_with_its_run(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(project(tmp_path))
    old, new = (LiveRun(tmp_path, ["x", "y"]) for _ in range(2))
    old.all_done(["passed", "passed"])
    new.all_done(["failed", "passed"])
    again = LiveRun(tmp_path, ["x"], linked_to=new.info.id)
    again.all_done(["passed"])
    done = cli("compare", old.info.id, new.info.id)
    assert done.code == 0 and f"after: {new.info.id} with 1 run linked to it" in done.out
    assert "unchanged: 2" in done.out and "1.00 → 1.00 s, 30 → 30 tokens" in done.out
    changed = cli("compare", new.info.id, "--json")
    document = json.loads(changed.out)
    assert changed.code == 0 and document["counts"]["fixed"] == 1 and document["counts"]["unchanged"] == 1
    assert document["runs"] == [[new.info.id], [new.info.id, again.info.id]]
    assert document["usual"]["tokens"] == [30.0, 30.0]


def test_two_agents_of_one_run(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(project(tmp_path))
    run = run_of_agents(tmp_path, {"one": ["passed"] * 3, "two": ["failed", "passed", "error"]}).name
    done = cli("compare", run, "--agent", "one", "--agent", "two, m")
    assert done.code == 1 and "regressed: 2" in done.out
    assert cli("compare", run, "--agent", "two", "--agent", "one").code == 0
    unknown = cli("compare", run, "--agent", "one", "--agent", "three")
    assert unknown.code == 4 and "is not one of the run's agents; they are: one, m; two, m" in unknown.err
    vague = cli("compare", run, "--agent", "one", "--agent", "m")
    assert vague.code == 4 and "means more than one" in vague.err
    assert "--agent is given twice" in cli("compare", run, "--agent", "one").err
