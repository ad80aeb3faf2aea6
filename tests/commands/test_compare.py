"""`tui-eval compare`: linked runs, and two agents of one run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.commands.conftest import Cli
from tests.support.live_run import LiveRun
from tests.tui.screens.test_compare_screen import run_of_agents
from tui_eval.reports.web_compare import comparison_page
from tui_eval.store.index import Index
from tui_eval.tui.loaders.compare_loader import Half, changed_sides, load_comparison, pairs_of_run
from tui_eval.tui.state.compare.compare_view import row_line, rows, summary_lines


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


def test_a_judge_that_died_is_seen_and_is_no_regression(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(project(tmp_path))
    old, new = (LiveRun(tmp_path, ["x", "y"]) for _ in range(2))
    old.all_done(["failed", "passed"])
    new.all_done(["error", "passed"])
    done = cli("compare", old.info.id, new.info.id)
    assert done.code == 0 and "! now an error: 1\n  failed → error" in done.out and "unchanged: 1" in done.out


def test_a_case_that_was_edited_is_not_called_better_or_worse_without_saying_so(
    cli: Cli, project: Path
) -> None:
    cli("run", ".")
    text = Path("suite.yaml").read_text()
    assert "name: greets" in text
    Path("suite.yaml").write_text(text.replace('"hi"', '"good day"'))
    cli("run", ".")
    first, second = sorted(folder.name for folder in (project / ".tui-eval/runs").iterdir())
    for runs, change in (((first, second), "regressed"), ((second, first), "fixed")):
        told = cli("compare", *runs).out
        assert f"{change}: 1, 1 of them where the case was edited" in told
        assert sum("the case was edited" in line for line in told.splitlines()) == 2
    document = cli("compare", first, second, "--json").json
    assert next((one["change"], one["edited"]) for one in document["cases"]) == ("regressed", True)
    assert sum(one["edited"] for one in document["cases"]) == 1
    folders = [Half(project / ".tui-eval/runs" / name) for name in (second, first)]
    comparison = load_comparison(project, *folders).comparison
    assert "1 fixed (1 where the case was edited)" in comparison.told
    assert "the case was edited" in comparison_page(project, {"before": first, "after": second})
    for width, words in ((60, "· edited"), (80, "· case edited"), (120, "· case edited")):
        lines = ["".join(span.text for span in row_line(row, width)) for row in rows(comparison)]
        assert sum(words in line for line in lines) == 1 and all(len(line) <= width for line in lines)
    Path("suite.yaml").write_text(text.replace('"hi"', '"good night"'))  # fails as before
    cli("run", ".")
    told = cli("compare", second, "last").out
    assert re.search(r"^unchanged: \d+, 1 of them where the case was edited$", told, re.MULTILINE), told


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


def test_two_providers_of_a_matrix_are_paired_by_test_and_prompt(cli: Cli, project: Path) -> None:
    """In one run, and in one run each; a case's id says the provider."""
    suite = (
        "prompts: ['say {{x}}', 'tell {{x}}']\nproviders: [%s]\ntests:\n"
        "  - {vars: {x: hello}, assert: [{type: contains, value: say}]}\n"
        "  - {description: named, vars: {x: hi}, assert: [{type: contains, value: tell}]}\n"
    )
    first = "{id: echo, label: 'A: small'}"
    second = '{id: echo, label: B, transform: "`tell`"}'
    for providers in (f"{first}, {second}", first, second):
        (project / "promptfooconfig.yaml").write_text(suite % providers)
        cli("run", "promptfooconfig.yaml")
    both, one, other = sorted(folder.name for folder in (project / ".tui-eval/runs").iterdir())
    for words in ([both, "--agent", "A: small", "--agent", "B"], [one, other]):
        found = json.loads(cli("compare", *words, "--json").out)
        counts = {name: count for name, count in found["counts"].items() if count}
        assert counts == {"regressed": 1, "fixed": 1, "unchanged": 2}, words
        assert {case["mark"] for case in found["cases"]} == {"say {{x}}", "tell {{x}}"}
        assert "small" not in cli("compare", *words).out  # a case is neither side's alone
    at = project / ".tui-eval/runs"
    assert pairs_of_run(at / both) == [(("A: small", None), ("B", None))]
    halves = Half(at / one), Half(at / other)
    changes = load_comparison(project, *halves).comparison.cases
    sides = [changed_sides(project, *halves, change) for change in changes]
    assert all(one is not None and one.before is not None and one.after is not None for one in sides)


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
    # Each verdict says it too: in the table, in a case, in the index.
    table = cli("show", second).out
    assert "passed reference" in table and "reference" not in cli("show", first).out
    history = Index(project).latest()
    case_id = next(iter(history))
    assert [one.compat for one in history[case_id][:3]] == ["documented", "reference", "documented"]
    assert ", judged by reference\n" in cli("show", second, case_id).out
    assert "judged by reference" not in cli("show", third, case_id).out
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


def test_a_run_is_not_compared_with_itself(cli: Cli, project: Path) -> None:
    """`compare last` was green, whatever had regressed since the run before, and so was `compare BASE last` of a job
    whose run had not begun."""
    assert cli("run", ".", "-s", "greets").code == 0
    run = cli("runs", "--json").json[0]["id"]
    cli("export", "last", "-o", "base.json")
    shutil.copytree(Path(".tui-eval/runs") / run, "base")
    kept = [["base", "last"], ["base.json"], ["base.json", "last"]]  # what jobs keep of a run
    for words in (["last"], [run], [run, "last"], ["last", run], ["last", "last"], *kept):
        told = cli("compare", *words)
        assert (
            told.code == 4 and told.out == "" and re.search(r"(is that itself|are the same run) \(", told.err)
        ), told
    cli("run", ".", "-s", "greets")
    assert cli("compare", cli("runs", "--json").json[1]["id"]).code == 0
