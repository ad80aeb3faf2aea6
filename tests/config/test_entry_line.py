"""An entry put into the text of a tui_eval.yaml: it says what is meant, the rest stays as it was."""

from __future__ import annotations

import pytest
import yaml

from tui_eval.config.entry_line import EntryError, with_agent, with_rule


@pytest.mark.parametrize(
    "text",
    ["", "agents:  # ours\n  # stays\n  old: {type: echo}\n", "run: {}", "agents:\n", "agents:\r\n  a: {type: echo}\r\n",
     "\ufeffagents:\n  a: {type: echo}\n", '"agents":\n  a: {type: echo}\n'],
)  # fmt: skip
@pytest.mark.parametrize(
    "entry",
    [
        {"type": "openai", "base_url": "https://host/v1", "model": "tiny:1b"},
        {"type": "python", "function": "agents/mine.py:answer"},
        {"type": "openai", "model": "no"},
    ],
)
def test_an_agent_is_added_and_the_rest_stays(text: str, entry: dict[str, str]) -> None:
    after = with_agent(text, "support bot: 1", entry)
    before = yaml.safe_load(text) or {}
    agents = {**(before.get("agents") or {}), "support bot: 1": entry}
    assert yaml.safe_load(after) == {**before, "agents": agents}
    assert all(line in after for line in text.splitlines())


def test_a_file_that_cannot_take_a_line_is_left_alone() -> None:
    for text in (
        "agents: {a: {type: echo}}\n",
        "- a list\n",
        "agents:\n\tbad: [\n",
        "? agents\n: {a: {type: echo}}\n",
    ):
        with pytest.raises(EntryError):
            with_agent(text, "new", {"type": "echo"})


@pytest.mark.parametrize(
    "text",
    ["", "agents: {}\n", "suites:\n  - {path: a}   # ours\n", "suites:\n- path: a\n  agent: b\n", "# x\r\nsuites:\r\n- path: a\r\n",
     "'suites':\n- path: a\n"],
)  # fmt: skip
def test_a_rule_comes_first_and_the_rest_stays(text: str) -> None:
    rule = {"path": "tests/a b.yml", "agent": "no"}
    result = with_rule(text, rule)
    assert yaml.safe_load(result)["suites"] == [rule, *((yaml.safe_load(text) or {}).get("suites") or [])]
    lines = text.splitlines(keepends=True)
    assert [line for line in result.splitlines(keepends=True) if line in lines] == lines


def test_a_rule_that_has_no_place_is_refused() -> None:
    with pytest.raises(EntryError, match="one line"):
        with_rule("suites: [{path: a}]\n", {"path": "b", "agent": "c"})
    with pytest.raises(EntryError, match="cannot take"):
        with_rule("x: |\n suites\nsuites:\n\t- {path: a}\n", {"path": "b", "agent": "c"})
