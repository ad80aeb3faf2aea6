"""A conversation that took place as a new case, with what it should hold proposed from what was said.

Pure: texts in, texts out. Numbers and marked words of an answer become expected texts, the tools called
become expected tools; a person is meant to look at them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tui_eval.model import Case, Format
from tui_eval.suites.saved_talk import SavedCall, Talk, facts, tools_of
from tui_eval.yaml.yaml_edit import EditError, YamlText, block, scalar

# -- A conversation written as a case of each format.


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


ENDINGS: dict[Format, str] = {
    "start_to_agent": ".yaml",
    "nao": ".yml",
    "promptfoo": ".yaml",
    "neuro_san": ".hocon",
}


def new_file(form: Format, talk: Talk) -> str:
    """The text of a new suite file that holds this one case."""
    return {"start_to_agent": guide, "nao": nao, "promptfoo": promptfoo, "neuro_san": neuro_san}[form](talk)


def appended(form: Format, text: str, talk: Talk) -> str:
    """The text of an existing suite with the case as its last.

    Raises:
        EditError: the format has one case to a file, or the list of cases is not a block in this file.
    """
    if form in ("nao", "neuro_san"):
        raise EditError("a file of this format holds one case: give the name of a new file")
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    document = YamlText(text)
    key = "test_cases" if form == "start_to_agent" else "tests"
    found = document.at(key)
    if found is None or found.node.id != "sequence" or not found.node.value:
        raise EditError(f"the file has no list under {key} to add to")
    if form == "start_to_agent":
        item = guide_case(talk)
        if (agent := document.at("agent")) is not None and agent.node.value != talk.agent:
            raise EditError(f"the file's agent is {agent.node.value}, this was {talk.agent}: give a new file")
    else:
        variable, pattern = _variable(document)
        fits = pattern.fullmatch(talk.turns[0].asked) if len(talk.turns) == 1 else None
        if fits is not None:  # the prompt's own words come from the prompt
            talk = talk._replace(turns=[talk.turns[0]._replace(asked=fits[1])])
        item = promptfoo_test(talk, variable)
    if found.node.flow_style:
        raise EditError(f"{key} is a list in one line: give the name of a new file")
    dash = text.rfind("-", 0, document.start(found.node.value[0]))
    indent = dash - (text.rfind("\n", 0, dash) + 1)
    lines = "".join(" " * indent + line if line.strip() else line for line in item.splitlines(keepends=True))
    last = found.node.value[-1]
    gap = "\n" if "\n\n" in text[document.start(found.node.value[0]) : document.start(last)] else ""
    return document.insert_after(found._replace(node=last), gap + lines).replace("\n", newline)


def _variable(document: YamlText) -> tuple[str, re.Pattern[str]]:
    """The one variable of a suite's prompts, and the messages that the first of them makes of it."""
    prompts = document.at("prompts")
    text = document.text_of(prompts.node) if prompts is not None else ""
    names = set(re.findall(r"\{\{\s*(\w+)", text))
    if len(names) != 1:
        raise EditError("its prompts do not take one variable: give the name of a new file")
    first = document.at("prompts", 0) or prompts
    given = first.node.value if first is not None and first.node.id == "scalar" else ""
    before, braces, rest = given.partition("{{")
    after = rest.partition("}}")[2]
    whole = bool(braces) and "{{" not in after and "{%" not in given
    pattern = f"{re.escape(before)}(.*){re.escape(after)}" if whole else r"(?!)"
    return names.pop(), re.compile(pattern, re.DOTALL)


def proposed_path(form: Format, case: Case, root: Path) -> str:
    """A name for the new file, from the root, beside the case's own file; one that is free."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", case.name).strip("_").lower()[:40] or "saved"
    folder = Path(case.suite).parent
    if form == "nao" and "tests" not in folder.parts:
        folder = folder / "tests"
    name = f"{stem}_saved" if form != "promptfoo" else f"promptfooconfig.{stem}"
    for number in range(1, 1000):
        path = folder / f"{name}{'' if number == 1 else f'_{number}'}{ENDINGS[form]}"
        if not (root / path).exists():
            return path.as_posix()
    return (folder / f"{name}{ENDINGS[form]}").as_posix()


def save(form: Format, path: Path, talk: Talk) -> tuple[str | None, str]:
    """The text of the file as it is (None: there is none) and with the case; nothing is written.

    Raises:
        EditError: the file cannot be read or added to, or would not be a suite of this format.
    """
    if form == "nao" and not talk.sql and not talk.calls and "tests" not in path.parts[:-1]:
        raise EditError("a nao test with a prompt alone must be in a folder called tests")
    if path.suffix not in ((".hocon",) if form == "neuro_san" else (".yaml", ".yml")):
        raise EditError(f"the file's name must end in {ENDINGS[form]}")
    try:
        old = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None, new_file(form, talk)
    except UnicodeDecodeError:
        raise EditError(f"{path.name} is not UTF-8 text") from None
    except OSError as error:
        raise EditError(f"{path.name}: {error.strerror or error}") from None
    return old, appended(form, old, talk)
