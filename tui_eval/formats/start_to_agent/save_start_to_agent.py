"""A conversation saved as a case of the guide's format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.formats.start_to_agent.read_start_to_agent import LISTS
from tui_eval.model import Assertion
from tui_eval.suites.saved_talk import QUOTED, Talk, flow, indented, keyed, listed, tools_of, with_item
from tui_eval.yaml.yaml_edit import EditError, YamlText, scalar


def guide(talk: Talk) -> str:
    """A suite of the guide's format that holds the case alone."""
    return f"agent: {scalar(talk.agent)}\n\ntest_cases:\n" + indented(guide_case(talk), 2)


def guide_case(talk: Talk) -> str:
    """The case as an item of `test_cases`."""
    lines = [f"- name: {scalar(talk.name, QUOTED)}"]
    if len(talk.turns) == 1:
        lines.append(f"  input: {scalar(talk.turns[0].asked, QUOTED)}")
    else:
        lines.append("  messages:")
        lines += [f"    - {scalar(turn.asked, QUOTED)}" for turn in talk.turns]
    expected = _kept(talk.kept())
    said = talk.proposed(talk.turns[-1])
    if said:
        expected += ["    should_contain:", *(f"      - {scalar(text, QUOTED)}" for text in said)]
    tools = tools_of(talk.calls)
    if tools:
        expected += ["    tools_used:", *(f"      - {scalar(name, QUOTED)}" for name in tools)]
        expected.append(f"    max_tool_calls: {len(talk.calls)}")
    return "\n".join([*lines, *(["  expected:", *expected] if expected else [])]) + "\n"


def _kept(assertions: Sequence[Assertion]) -> list[str]:
    """The case's own expectations; those of one key together, as they stood."""
    values: dict[str, Any] = {}
    for one in assertions:
        if one.type in LISTS:
            values.setdefault(one.type, []).append(one.value)
        else:
            values[one.type] = one.value
    lines: list[str] = []
    for key, value in values.items():
        if key in LISTS:
            lines += [f"    {key}:", *(f"      - {flow(text)}" for text in value)]
        else:
            lines += keyed({key: value}, 4)
    return lines


def added(text: str, talk: Talk) -> str:
    """The text of an existing suite with the case as its last.

    Raises:
        EditError: the file is of another agent, or its list is not a block.
    """
    document = YamlText(text)
    found = listed(document, "test_cases")
    item = guide_case(talk)
    if (agent := document.at("agent")) is not None and agent.node.value != talk.agent:
        raise EditError(f"the file's agent is {agent.node.value}, this was {talk.agent}: give a new file")
    return with_item(text, document, found, item)
