"""`tui-eval compare`: linked runs, and two agents of one run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.commands.conftest import Cli
from tests.support.live_run import LiveRun
from tests.tui.screens.test_compare_screen import run_of_agents
from tui_eval.reports.web_compare import comparison_page
from tui_eval.tui.loaders.compare_loader import Half, load_comparison
from tui_eval.tui.state.compare.compare_view import summary_lines


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


def test_runs_that_were_judged_by_other_rules_say_so(cli: Cli, project: Path) -> None:
    cli("run", ".")
    cli("run", ".", "--compat", "reference")
    cli("run", ".")
    first, second, third = sorted(folder.name for folder in (project / ".tui-eval/runs").iterdir())
    line = "compat differs: documented before, reference after: verdicts may differ by that alone"
    assert line in cli("compare", first, second).out
    assert "reference before, documented after" in cli("compare", second, third).out
    assert cli("compare", first, second, "--json").json["rules_differ"] == line
    assert "compat" not in cli("compare", first, third).out
    page = comparison_page(project, {"before": first, "after": second})
    assert line.capitalize() in page
    compared = load_comparison(
        project, *(Half(project / ".tui-eval/runs" / name) for name in (first, second))
    )
    shown = summary_lines(compared.comparison, "one", "two", 80)
    assert any("documented before, reference after" in span.text for told in shown for span in told)


def test_suites_of_one_run_may_have_rules_of_their_own(cli: Cli, project: Path) -> None:
    shutil.copy("suite.yaml", "other.yaml")
    cli("run", ".")
    with open("tui_eval.yaml", "a") as config:
        config.write("suites: [{path: other.yaml, compat: reference}]\n")
    cli("run", ".")
    told = cli("compare", sorted(folder.name for folder in (project / ".tui-eval/runs").iterdir())[0]).out
    assert "compat differs: documented before, reference after (3 of 6 cases)" in told
    cli("export", "last", "-o", "kept.json")
    assert (
        "(3 of 6 cases)" in cli("compare", sorted(Path(".tui-eval/runs").iterdir())[0].name, "kept.json").out
    )
