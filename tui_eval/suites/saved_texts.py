"""A conversation written as a case of each format."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tui_eval.suites.saved_talk import Call, Talk, facts, tools_of
from tui_eval.suites.yaml_edit import EditError, block, scalar

QUOTED = '"'
_LONGEST_ARGUMENT = 60


# -- the StartToAgent guide's


def guide(talk: Talk) -> str:
    """A suite of the guide's format that holds the case alone."""
    return f"agent: {scalar(talk.agent)}\n\ntest_cases:\n" + _indented(guide_case(talk), 2)


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


# -- nao's


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
    if talk.sql:
        lines += ["# the agent's own query: look whether it is right", f"sql: {scalar(talk.sql, QUOTED)}"]
        if "\n" in talk.sql:
            lines[-1] = f"sql: {block(talk.sql, 2)}"
    else:
        lines.append("# sql: the query whose rows the answer must equal")
    calls = [_nao_call(name, talk.calls) for name in tools_of(talk.calls)]
    return "\n".join([*lines, *(["assertions:", *calls] if calls else [])]) + "\n"


def _nao_call(name: str, calls: Sequence[Call]) -> str:
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


# -- promptfoo's


def promptfoo(talk: Talk) -> str:
    """A promptfoo suite that holds the test alone."""
    if len(talk.turns) == 1:
        prompts = '  - "{{message}}"\n'
    else:
        messages = [
            part
            for number, turn in enumerate(talk.turns, 1)
            for part in (
                f'{{"role": "user", "content": {{{{ message_{number} | dump }}}}}}',
                *(
                    [f'{{"role": "assistant", "content": {{{{ answer_{number} | dump }}}}}}']
                    if turn.answered and number < len(talk.turns)
                    else []
                ),
            )
        ]
        prompts = "  - |-\n    [\n      " + ",\n      ".join(messages) + "\n    ]\n"
    test = promptfoo_test(talk, "message")
    return f"prompts:\n{prompts}providers:\n  - {scalar(talk.agent, QUOTED)}\ntests:\n{_indented(test, 2)}"


def promptfoo_test(talk: Talk, variable: str) -> str:
    """The test as an item of `tests`; the message is the value of `variable`.

    Raises:
        EditError: there are several messages, and the suite's prompts take one.
    """
    lines = [f"- description: {scalar(_raw(talk.name), QUOTED)}", "  vars:"]
    if len(talk.turns) == 1:
        lines.append(f"    {variable}: {scalar(_raw(talk.turns[0].asked), QUOTED)}")
    elif variable != "message":
        raise EditError(
            f"its prompts take one message, the conversation has {len(talk.turns)}: give a new file"
        )
    else:
        for number, turn in enumerate(talk.turns, 1):
            lines.append(f"    message_{number}: {scalar(_raw(turn.asked), QUOTED)}")
            if turn.answered and number < len(talk.turns):
                lines.append(f"    answer_{number}: {scalar(_raw(turn.answered), QUOTED)}")
    said = facts(talk.turns[-1].answered)
    if said:
        lines.append("  assert:")
        for text in said:
            lines += ["    - type: icontains", f"      value: {scalar(text, QUOTED)}"]
    return "\n".join(lines) + "\n"


def _raw(text: str) -> str:
    """A text that nunjucks, and what reads files, leave alone."""
    if re.search(r"\{[{%#]", text) or text.lstrip().startswith("file://"):
        return "{% raw %}" + text.replace("{% endraw %}", "{ % endraw %}") + "{% endraw %}"
    return text


# -- neuro-san's


def neuro_san(talk: Talk) -> str:
    """A neuro-san test."""

    def quoted(text: str) -> str:
        return json.dumps(text, ensure_ascii=False)

    blocks: list[str] = []
    for turn in talk.turns:
        lines = [f"            text: {quoted(turn.asked)}"]
        said = facts(turn.answered)
        if said:
            lines.append(
                f"            response: {{ text: {{ keywords: [{', '.join(map(quoted, said))}] }} }}"
            )
        blocks.append("        {\n" + "\n".join(lines) + "\n        }")
    name = " ".join(talk.name.split())
    return (
        f"# {name if name.isprintable() else 'a saved conversation'}\n{{\n"
        f"    agent: {quoted(talk.agent)}\n"
        f"    connections: {quoted(talk.connection or 'http')}\n"
        "    interactions: [\n" + ",\n".join(blocks) + "\n    ]\n}\n"
    )


def _indented(text: str, columns: int) -> str:
    return "".join(" " * columns + line if line.strip() else line for line in text.splitlines(keepends=True))
