"""`list --json` and `check`: one row per case for every format, problems with line and cure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import SAMPLES, Cli

KEYS = {
    "case_id", "name", "description", "suite", "format", "line", "agent", "prompt", "turns", "vars", "metadata",
    "threshold", "options", "provider_output", "attempts", "required", "assertions",
}  # fmt: skip


@pytest.fixture(scope="module")
def kept() -> dict[str, list[dict[str, Any]]]:
    """What the first test found."""
    return {}


@pytest.fixture
def listed(cli: Cli, kept: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The sample suites by case id."""
    if "rows" not in kept:
        result = cli("list", "--json", SAMPLES)
        assert result.code == 0 and result.err == ""
        kept["rows"] = result.json
    return {row["case_id"]: row for row in kept["rows"]}


def test_every_row_has_every_key(listed: dict[str, dict[str, Any]]) -> None:
    assert len(listed) >= 40
    assert {row["format"] for row in listed.values()} == {"nao", "start_to_agent", "promptfoo", "neuro_san"}
    for row in listed.values():
        assert row.keys() == KEYS
        assert row["case_id"].startswith(f"{row['suite']}::")
        assert row["line"] >= 1 and row["turns"] and row["required"] <= row["attempts"]
        for assertion in row["assertions"]:
            assert {"type", "target"} <= assertion.keys()


def test_nao(listed: dict[str, dict[str, Any]]) -> None:
    row = listed["shop_analyst/tests/orders/return_rate.yml::return_rate"]
    assert row["turns"][0]["text"] == "What share of our orders was returned?"
    assert [(item["type"], item["target"]) for item in row["assertions"]] == [
        ("tool_call", "tools"), ("tool_call", "tools"), ("sql", "rows"),
    ]  # fmt: skip
    assert row["assertions"][0]["value"] == {"tool": "read", "args": {"path": "RULES.md"}}


def test_start_to_agent(listed: dict[str, dict[str, Any]]) -> None:
    name = "Pricing question is answered with both prices"
    row = listed[f"support/customer_support.yaml::{name}"]
    assert row["agent"] == "customer_support"
    assert [(item["type"], item["value"]) for item in row["assertions"]][:2] == [
        ("should_contain", "€79"), ("should_contain", "€149"),
    ]  # fmt: skip
    targets = {item["type"]: item["target"] for item in row["assertions"]}
    assert targets["tools_used"] == "tools" and targets["escalated"] == "metadata.escalated"
    assert all("turn" not in item for item in row["assertions"])


def test_promptfoo(listed: dict[str, dict[str, Any]]) -> None:
    name = "Desk lamp as JSON for the shop"
    row = listed[f"prompts/promptfooconfig.yaml::{name}::openai:gpt-4.1-mini::prompt1"]
    assert row["vars"]["product"] == "Desk lamp" and row["metadata"] == {"kind": "json"}
    assert "{{product}}" in row["turns"][0]["text"], "variables stay as the file gives them"
    types = [item["type"] for item in row["assertions"]]
    assert types == ["not-icontains", "cost", "is-json", "javascript"]
    assert row["assertions"][1]["threshold"] == 0.01 and row["assertions"][1]["metric"] == "budget"
    sets = listed["prompts/promptfooconfig.yaml::Olive oil in German::openai:gpt-4.1-mini::prompt1"]
    members = [item.get("set") for item in sets["assertions"]]
    at = [item["type"] for item in sets["assertions"]].index("assert-set")
    assert members[at] is None and members[at + 1 : at + 3] == [at, at]


def test_neuro_san(listed: dict[str, dict[str, Any]]) -> None:
    row = listed["travel/tests/fixtures/split_the_bill.hocon::split_the_bill"]
    assert {(item["type"], item["target"]) for item in row["turns"][0]["assertions"]} == {
        ("value", "sly_data.total"), ("greater", "sly_data.share"), ("less", "sly_data.share"),
        ("value", "sly_data.settlement.Ana.pays"),
    }  # fmt: skip
    flaky = listed["travel/tests/fixtures/visa_rules.hocon::visa_rules"]
    assert (flaky["attempts"], flaky["required"]) == (3, 2)
    both = [key.rpartition("::")[2] for key, row in listed.items() if row["name"] == "over_both_connections"]
    assert both == ["over_both_connections[connection=http]", "over_both_connections[connection=https]"]


def test_attempts_are_those_that_run_makes(cli: Cli, project: Path) -> None:
    """`run:` and nao's `k` were left out: 1 was listed, and 4 were run."""
    (project / "tui_eval.yaml").write_text(
        "agents: {bot: {type: echo}}\nrun: {attempts: 4}\nsuites: [{path: 'five/**', attempts: 5, agent: bot}, {path: '**', agent: bot}]\n"
    )
    suite = "test_cases: [{name: a, input: hi}]\n"
    (project / "five").mkdir()
    (project / "five" / "s.yaml").write_text(suite)
    (project / "s.yaml").write_text(suite)
    (project / "n.hocon").write_text('{agent: x, success_ratio: "1/2", interactions: [{text: hi}]}')

    def asked(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
        return {row["case_id"]: (row["attempts"], row["required"]) for row in rows}

    listed = asked(cli("list", "--json", "five", "s.yaml", "n.hocon").json)
    assert listed == {"five/s.yaml::a": (5, 5), "s.yaml::a": (4, 4), "n.hocon::n": (2, 1)}
    assert "×4, 4 must pass" in cli("list", "s.yaml").out
    cli("run", "five", "s.yaml", "n.hocon", "--agent", "bot", "-o", "r.json")
    assert asked(json.loads(Path("r.json").read_text())["cases"]) == listed


def test_nao_config_says_how_often(cli: Cli, project: Path) -> None:
    (project / "nao_config.yaml").write_text("project_name: x\ntest: {k: 3}\n")
    (project / "tests").mkdir(exist_ok=True)
    (project / "tests" / "a.yml").write_text("prompt: hi\n")
    assert [row["attempts"] for row in cli("list", "--json", "tests/a.yml").json] == [3]


def test_readable_cases_print_when_others_are_broken(cli: Cli, project: Path) -> None:
    (project / "broken.yaml").write_text("test_cases: [")
    result = cli("list", "--json", ".")
    assert result.code == 4
    assert len(result.json) == 3 and "broken.yaml:" in result.err


def test_check_says_line_key_and_cure(cli: Cli, project: Path) -> None:
    text = (
        "agent: helper\ntest_cases:\n  - name: a\n    input: hi\n    expected:\n      should_contian: [x]\n"
        "  - {name: b}\n  - {name: c, input: hi, owner: me}\n"
    )
    (project / "suite.yaml").write_text(text)
    result = cli("check", ".")
    assert result.code == 4
    lines = result.out.splitlines()
    assert any(
        line.startswith("suite.yaml:6: ") and "did you mean 'should_contain'?" in line for line in lines
    )
    assert any(line.startswith("suite.yaml:7: ") for line in lines)
    notes = [line for line in lines if line.startswith("suite.yaml:8: ") and line.endswith("(note)")]
    assert ["owner" in note for note in notes] == [True, False] and "nothing is asserted" in notes[1]
    assert lines[-1] == "1 file, 2 cases: 2 errors, 2 notes"


@pytest.mark.real
def test_notes_alone_are_0(cli: Cli) -> None:
    result = cli("check", SAMPLES)
    assert result.code == 0
    assert " 0 errors, 5 notes" in result.out.splitlines()[-1]


def test_secrets_in_names_are_masked_wherever_names_are_listed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-abcdefghij0123456789"
    monkeypatch.setenv("MY_API_KEY", secret)
    (tmp_path / "suite.yaml").write_text(
        f"agent: offline\ntest_cases:\n  - {{name: 'log in with {secret}', input: a, expected: {{should_contain: [o]}}}}\n"
        f"  - {{name: 'no {secret}', input: a, expected: {{should_contian: ['{secret}']}}}}\n"
    )
    listed = cli("list", str(tmp_path))
    assert "  log in with •••" in listed.out
    chosen = [
        cli("run", str(tmp_path), *words)
        for words in (
            ["-s", "nosuch"],
            ["-s", ","],
            ["--filter-metadata", "a=b"],
            ["--filter-pattern", "zzz"],
        )
    ]
    assert "log in with •••" in chosen[0].err and "log in with •••" in chosen[1].err
    checked = cli("check", str(tmp_path))
    for told in (listed, checked, *chosen):
        assert told.code and secret not in told.out + told.err


def test_secrets_of_graders_are_masked(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text("""\
prompts: [hi]
providers: [echo]
defaultTest: {options: {provider: {id: openai:chat:m, config: {apiKey: key-of-the-default}}}}
tests:
  - assert:
      - {type: llm-rubric, value: x, provider: {id: openai:chat:m, config: {headers: {Authorization: Bearer of-this-one}}}}
""")
    result = cli("list", "--json", str(tmp_path))
    (row,) = result.json
    assert row["options"]["provider"]["config"] == {"apiKey": "•••"}
    assert row["assertions"][0]["provider"]["config"]["headers"] == {"Authorization": "•••"}
    assert "of-this-one" not in result.out


def test_secrets_of_a_suites_own_environment_and_in_names_of_agents_are_masked(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """promptfoo's `env:` and its files stand in prompts; a webhook's address is its agent's name."""
    monkeypatch.setenv("HOOK_TOKEN", "of-the-hook-0123456789")
    (tmp_path / ".env.x").write_text("FILE_TOKEN=of-the-file-0123456789\n")
    (tmp_path / "promptfooconfig.yaml").write_text("""\
env: {OWN_API_KEY: of-the-suite-0123456789}
commandLineOptions: {envPath: .env.x}
prompts: ['Say {{env.OWN_API_KEY}}, {{env.FILE_TOKEN}} to {{who}}']
providers: [{id: echo, label: 'to {{env.HOOK_TOKEN}}'}, {id: echo, label: 'to {{env.FILE_TOKEN}}'}]
tests:
  - {description: 'with {{env.OWN_API_KEY}}', vars: {who: Bob}, assert: [{type: contains, value: 'of-the-suite-0123456789, of-the-file'}]}
""")
    told = [
        cli("list", str(tmp_path), "--trust"),
        cli("run", str(tmp_path), "--trust", "-o", str(tmp_path / "o.json")),
    ]
    assert "2/2 passed" in told[1].out, told[1].err
    found = json.loads((tmp_path / "o.json").read_text())
    assert [one["agent"] for one in found["results"]] == ["to •••"] * 2
    ids = [one["case_id"] for one in found["results"]]
    assert [one.partition("::")[2] for one in ids] == [
        f"with •••::to •••::prompt1{number}" for number in ("", "#2")
    ]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".yaml", ".x")]
    for text in (
        *(one.out + one.err for one in told),
        *(path.read_bytes().decode("latin-1") for path in written),
    ):
        assert "0123456789" not in text
