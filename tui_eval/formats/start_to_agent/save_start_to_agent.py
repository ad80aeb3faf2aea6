"""A conversation saved as a case of the guide's format."""

from __future__ import annotations

from tui_eval.suites.saved_talk import Talk, facts, tools_of
from tui_eval.suites.saved_texts import QUOTED, indented, listed, with_item
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
    expected: list[str] = []
    said = facts(talk.turns[-1].answered)
    if said:
        expected += ["    should_contain:", *(f"      - {scalar(text, QUOTED)}" for text in said)]
    tools = tools_of(talk.calls)
    if tools:
        expected += ["    tools_used:", *(f"      - {scalar(name, QUOTED)}" for name in tools)]
        expected.append(f"    max_tool_calls: {len(talk.calls)}")
    return "\n".join([*lines, *(["  expected:", *expected] if expected else [])]) + "\n"


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
