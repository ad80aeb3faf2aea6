"""What is written into a suite of the guide's format (start_to_agent): an answer that was accepted, a
conversation saved as a case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.formats.start_to_agent.read_start_to_agent import LISTS
from tui_eval.model import Assertion, Attempt, Case, Verdict
from tui_eval.suites.accepted_values import EditedValue, actual_of, answer_to, drop, nearest, only, plain, put
from tui_eval.suites.saved_talk import QUOTED, Talk, indented, keyed, listed, tools_of, with_item
from tui_eval.yaml.yaml_edit import EditError, YamlText, flow, scalar


def accepted(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """The suite's text with one assertion of the guide's format as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    document = YamlText(text, (verdict.line,))
    kind = verdict.type
    wanted = str(verdict.expected)
    listed = kind in ("should_contain", "should_not_contain", "tools_used")
    places = [
        one
        for one in document.nodes()
        if one.line == verdict.line
        and len(one.path) > 3
        and one.path[3] == kind
        and (not listed or (one.node.id == "scalar" and plain(one.node) == wanted))
        and (listed or len(one.path) == 4)
    ]
    # Several cases may stand on one line, as in a file of JSON.
    own = [one for one in places if one.path[:2] == ("test_cases", case.order)]
    found = only(own or places, f"{kind} {wanted!r}")
    if kind == "should_contain":
        return put(document, found, nearest(wanted, answer_to(attempt, verdict)))
    if kind == "should_not_contain":
        return drop(document, found) if len(found.path) > 4 else put(document, found, [])
    if kind == "tools_used":
        return put(document, found, _other_tool(case, verdict, attempt))
    if verdict.actual is None:
        raise EditError("the agent said nothing of it")
    return put(document, found, actual_of(verdict, attempt))


def _other_tool(case: Case, verdict: Verdict, attempt: Attempt) -> str:
    """The one tool that was called and that nothing else asks for."""
    used = verdict.actual if isinstance(verdict.actual, list) else []
    expected = {str(other.value) for other in case.assertions if other.type == verdict.type}
    free = [str(name) for name in used if str(name) not in expected]
    if len(free) != 1:
        called = ", ".join(map(str, used)) or "none"
        raise EditError(f"{verdict.expected} was not called; called: {called}: edit the case (e)")
    return free[0]


def saved_case(talk: Talk) -> str:
    """A suite of the guide's format that holds the case alone."""
    model = talk.case.model if talk.case is not None else None
    head = f"agent: {scalar(talk.agent)}\n" + (f"model: {scalar(model)}\n" if model else "")
    return f"{head}\ntest_cases:\n" + indented(guide_case(talk), 2)


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
    document = YamlText(text, ())
    found = listed(document, "test_cases")
    item = guide_case(talk)
    if (agent := document.at("agent")) is not None and agent.node.value != talk.agent:
        raise EditError(f"the file's agent is {agent.node.value}, this was {talk.agent}: give a new file")
    return with_item(text, document, found, item)
