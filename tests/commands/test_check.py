"""`tui-eval check`: cases that prove nothing, expected values that are given away."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.commands.conftest import Cli


def test_vacuous_lists_what_passes_without_an_answer(cli: Cli, project: Path) -> None:
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['say {{x}}']\nproviders: [echo]\ntests:\n"
        "  - {description: silent, vars: {x: 1}, assert: [{type: not-contains, value: sorry}]}\n"
        "  - {description: says, vars: {x: 2}, assert: [{type: contains, value: '2'}]}\n"
        "  - {description: judged, vars: {x: 3}, assert: [{type: llm-rubric, value: polite}]}\n"
        "  - {description: free, vars: {x: 4}}\n",
        "utf-8",
    )
    plain = cli("check", ".")
    assert plain.code == 0 and "answers nothing" not in plain.out
    told = cli("check", "--vacuous", ".")
    assert told.code == 0, told.err
    lines = [line for line in told.out.splitlines() if "answers nothing" in line]
    assert lines == [
        "promptfooconfig.yaml:4: silent: passes against an agent that answers nothing (note)",
        "promptfooconfig.yaml:7: free: passes against an agent that answers nothing: nothing is asserted (note)",
        "suite.yaml:6: says sorry: passes against an agent that answers nothing (note)",
    ]
    assert not (project / ".tui-eval" / "runs").exists()


SHOP = Path(__file__).parents[1] / "data" / "jaffle_shop"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    shutil.copytree(SHOP, folder)
    monkeypatch.chdir(folder)
    return folder


def test_expected_values_that_are_given_away(cli: Cli, shop: Path) -> None:
    clean = cli("check", ".")
    assert clean.code == 0 and "stands in" not in clean.out
    (shop / "RULES.md").write_text("# Rules\n\nRevenue is 1,672 dollars, as of 16720.\n", "utf-8")
    (shop / "tui_eval.yaml").write_text(
        "agents:\n  own: {type: openai, system: 'You know: 1672.00!'}\n"
        "suites:\n  - {path: 'tests/**', agent: own}\n",
        "utf-8",
    )
    test = shop / "tests" / "total_revenue.yml"
    test.write_text(test.read_text().replace("from all orders?", "from all orders (1.672,0)?"), "utf-8")
    told = cli("check", ".")
    assert told.code == 0
    cure = "; an agent can answer from there without the data (note)"
    assert [line for line in told.out.splitlines() if "stands in" in line] == [
        f"tests/total_revenue.yml:3: sql: the expected value 1.672,0 stands in tests/total_revenue.yml:2{cure}",
        f"tests/total_revenue.yml:3: sql: the expected value 1,672 stands in RULES.md:3{cure}",
        f"tests/total_revenue.yml:3: sql: the expected value 1672.00 stands in tui_eval.yaml (system of own):2{cure}",
    ]


def test_common_values_and_broken_queries_are_no_leak(cli: Cli, shop: Path) -> None:
    (shop / "RULES.md").write_text("There are 99 orders, 1 is new, yes; status ok. 1672\n", "utf-8")
    test = shop / "tests" / "total_revenue.yml"
    for sql in (
        "SELECT count(*) AS n FROM orders",
        "SELECT 1 AS a, true AS b, 'ok' AS c",
        "SELECT nothing FROM x",
    ):
        test.write_text(f"name: t\nprompt: how many?\nsql: {sql}\n", "utf-8")
        told = cli("check", ".")
        assert told.code == 0 and "stands in" not in told.out, told.out
