"""`tui-eval check`: cases that prove nothing, expected values that are given away."""

from __future__ import annotations

import json
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


def test_common_values_are_no_leak(cli: Cli, shop: Path) -> None:
    (shop / "RULES.md").write_text("There are 99 orders, 1 is new, yes; status ok. 1672\n", "utf-8")
    test = shop / "tests" / "total_revenue.yml"
    for sql in (
        "SELECT count(*) AS n FROM orders",
        "SELECT 1 AS a, true AS b, 'ok' AS c",
    ):
        test.write_text(f"name: t\nprompt: how many?\nsql: {sql}\n", "utf-8")
        told = cli("check", ".")
        assert told.code == 0 and "stands in" not in told.out, told.out


def test_a_query_that_cannot_execute_is_an_error_before_anything_is_paid(cli: Cli, shop: Path) -> None:
    (shop / "tests" / "typo.yml").write_text(
        "name: t\nprompt: how many?\nsql: SELECT nothing FROM orders\n", "utf-8"
    )
    (shop / "tests" / "writes.yml").write_text("name: w\nprompt: drop\nsql: DROP TABLE orders\n", "utf-8")
    told = cli("check", ".")
    assert told.code == 4
    lines = [line for line in told.out.splitlines() if ": sql:" in line]
    assert len(lines) == 2, told.out
    assert lines[0].startswith("tests/typo.yml:3: sql: does not execute: ") and '"nothing"' in lines[0]
    assert (
        lines[1]
        == "tests/writes.yml:3: sql: does not execute: only SELECT is allowed, not DROP; mend the query"
    )


def test_a_database_that_is_not_here_is_one_note(cli: Cli, shop: Path) -> None:
    (shop / "nao_config.yaml").write_text(
        "project_name: shop\ndatabases:\n  - {name: shop, type: duckdb, path: elsewhere.duckdb}\n", "utf-8"
    )
    queries = len(list((shop / "tests").glob("*.yml")))
    told = cli("check", ".")
    notes = [line for line in told.out.splitlines() if "cannot be tried here" in line]
    assert told.code == 0 and len(notes) == 1, told.out
    assert (f"(and that of {queries - 1} more)" in notes[0]) == (queries > 1) and "elsewhere.duckdb" in notes[
        0
    ]


@pytest.mark.parametrize(
    ("kind", "good", "bad", "message"),
    [
        ("regex", r"(?<n>a)\k<n>", "(", "is no regular expression of JavaScript: "),
        ("not-regex", "a{1,2}", "a{2,1}", "is no regular expression of JavaScript: "),
        ("javascript", "const a = 1; a == output", "output.length >", "is no JavaScript: "),
        ("javascript", "if (output)\n  return true\nreturn false", "return (\n", "is no JavaScript: "),
        ("python", "import re\nreturn bool(re.match('a', output))", "len(output) >", "is no Python: "),
        ("contains", "(", "(", ""),
        ("regex", "{{x}}(", "{{x}}(", ""),
    ],
)
def test_what_does_not_compile_is_said(
    cli: Cli, project: Path, kind: str, good: str, bad: str, message: str
) -> None:
    for value, told_of in ((good, ""), (bad, message)):
        suite = {
            "prompts": ["say"],
            "providers": ["echo"],
            "tests": [{"assert": [{"type": kind, "value": value}]}],
        }
        (project / "promptfooconfig.yaml").write_text(json.dumps(suite), "utf-8")
        told = cli("check", "promptfooconfig.yaml")
        assert told.code == (4 if told_of else 0), told.out
        assert told_of in told.out
