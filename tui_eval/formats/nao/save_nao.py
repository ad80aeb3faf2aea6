"""A conversation saved as a nao test."""

from __future__ import annotations

from collections.abc import Sequence

from tui_eval.model import Assertion
from tui_eval.suites.saved_talk import QUOTED, SavedCall, Talk, flow, keyed, tools_of
from tui_eval.yaml.yaml_edit import block, scalar

_LONGEST_ARGUMENT = 60


def nao(talk: Talk) -> str:
    """A nao test."""
    lines = [f"name: {scalar(talk.name, QUOTED)}"]
    asked = [turn.asked for turn in talk.turns]
    if len(asked) > 1:
        lines.append(f"# a nao test has one prompt: these are the messages of {len(asked)} turns")
    prompt = "\n\n".join(asked)
    lines.append(f"prompt: {scalar(prompt, QUOTED)}")
    if talk.database:
        lines.append(f"database: {scalar(talk.database, QUOTED)}")
    if talk.case is not None and talk.case.comparison:
        lines.append(f"comparison: {flow(talk.case.comparison)}")
    if talk.kept():
        return "\n".join([*lines, *_kept(talk.kept())]) + "\n"
    if talk.sql:
        lines += ["# the agent's own query: look whether it is right", f"sql: {scalar(talk.sql, QUOTED)}"]
        if "\n" in talk.sql:
            lines[-1] = f"sql: {block(talk.sql, 2)}"
    else:
        lines.append("# sql: the query whose rows the answer must equal")
    calls = [_nao_call(name, talk.calls) for name in tools_of(talk.calls)]
    return "\n".join([*lines, *(["assertions:", *calls] if calls else [])]) + "\n"


def _kept(assertions: Sequence[Assertion]) -> list[str]:
    """The case's own query and tool calls."""
    lines: list[str] = []
    calls: list[str] = []
    for one in assertions:
        if one.type == "sql":
            lines += keyed({"sql": one.value}, 0)
        else:
            calls.append(f"  - type: {scalar(one.type)}")
            calls += keyed(one.value if isinstance(one.value, dict) else {}, 4)
    return [*lines, *(["assertions:", *calls] if calls else [])]


def _nao_call(name: str, calls: Sequence[SavedCall]) -> str:
    first = next(call for call in calls if call.name == name)
    lines = ["  - type: tool_call", f"    tool: {scalar(name, QUOTED)}"]
    given = first.arguments if isinstance(first.arguments, dict) else {}
    kept = {
        key: value
        for key, value in given.items()
        if isinstance(value, bool | int | float)
        or (isinstance(value, str) and len(value) <= _LONGEST_ARGUMENT)
    }
    if kept:
        lines.append("    args:")
        lines += [f"      {scalar(str(key), QUOTED)}: {scalar(value, QUOTED)}" for key, value in kept.items()]
    return "\n".join(lines)
