"""A conversation that took place as a new case, with what it should hold proposed from what was said.

Pure: texts in, texts out. Numbers and marked words of an answer become expected texts, the tools called
become expected tools; a person is meant to look at them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tui_eval.model import Attempt, Case, Format
from tui_eval.suites.accepted_nao import agents_sql
from tui_eval.suites.yaml_edit import EditError, YamlText, block, scalar

ENDINGS: dict[Format, str] = {
    "start_to_agent": ".yaml",
    "nao": ".yml",
    "promptfoo": ".yaml",
    "neuro_san": ".hocon",
}
_MOST_FACTS = 3
_LONGEST_FACT = 80
_LONGEST_ARGUMENT = 60


class Call(NamedTuple):
    """One tool call."""

    name: str
    arguments: Any


class Said(NamedTuple):
    """One turn: what was asked and answered."""

    asked: str
    answered: str


class Talk(NamedTuple):
    """A conversation to be saved. `connection` is neuro-san's, `sql` the agent's own query."""

    name: str
    agent: str
    turns: list[Said]
    calls: list[Call]
    sql: str | None = None
    connection: str | None = None
    database: str | None = None


def talk_of(case: Case, attempt: Attempt, name: str = "") -> Talk:
    """The conversation of a recorded (or stepped) attempt.

    Raises:
        EditError: nothing was asked, or nothing answered.
    """
    last = len(case.turns) if case.format != "promptfoo" else None
    turns: list[Said] = []
    for reply in attempt.replies:
        if last is not None and reply.turn > last:
            continue  # what was asked for the rows afterwards
        asked = [e.text for e in attempt.transcript if e.kind == "user" and e.turn == reply.turn]
        messages = _chat(asked[-1]) if asked else None
        if messages is not None:
            asked = messages
        turns += [Said(text, "") for text in asked[:-1]]
        turns.append(Said(asked[-1] if asked else "", reply.text))
    if not turns or not turns[-1].answered:
        raise EditError("there is no answered conversation to save")
    if not any(turn.asked.strip() for turn in turns):
        raise EditError("the conversation has no message of a user")
    calls = [Call(e.name, e.arguments) for e in attempt.transcript if e.kind == "tool_call" and e.name]
    agent = case.agent if case.format == "neuro_san" and case.agent else attempt.agent
    return Talk(
        name or f"{case.name} (saved)", agent or case.agent or "my_agent", turns, calls,
        agents_sql(attempt), case.connection, case.database,
    )  # fmt: skip


def _chat(text: str) -> list[str] | None:
    """The user's texts of a prompt that is a list of chat messages."""
    if not text.lstrip().startswith("["):
        return None
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = [
        message["content"]
        for message in messages
        if isinstance(message, dict)
        and message.get("role") == "user"
        and isinstance(message.get("content"), str)
    ]
    return found or None


def facts(answer: str) -> list[str]:
    """Up to three short texts that stand in the answer and say what matters: figures, else words that it
    marks or quotes, else its longest words."""
    patterns = (
        r"\d[\d.,:]*\d%?|\d+%?",
        r"\*\*([^*\n]{2,60})\*\*|[\"“`]([^\"“”`\n]{2,60})[\"”`]",
        r"\w{4,40}",
    )
    for number, pattern in enumerate(patterns):
        found = [next((g for g in match.groups() if g), match[0]) for match in re.finditer(pattern, answer)]
        found = [text.strip() for text in dict.fromkeys(found) if _plain(text)]
        if number == 2:
            found = sorted(found, key=lambda word: -len(word))[:1]
        if found:
            return found[:_MOST_FACTS]
    return []


def _plain(text: str) -> bool:
    text = text.strip()
    return (
        bool(text) and len(text) <= _LONGEST_FACT and text.isprintable() and not re.search(r"\{[{%#]", text)
    )


def tools_of(calls: Sequence[Call]) -> list[str]:
    """The names of the tools that were called, each once, in order."""
    return list(dict.fromkeys(call.name for call in calls))


def new_file(form: Format, talk: Talk) -> str:
    """The text of a new suite file that holds this one case."""
    return {"start_to_agent": _guide, "nao": _nao, "promptfoo": _promptfoo, "neuro_san": _neuro_san}[form](
        talk
    )


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
        item = _guide_case(talk)
        if (agent := document.at("agent")) is not None and agent.node.value != talk.agent:
            raise EditError(f"the file's agent is {agent.node.value}, this was {talk.agent}: give a new file")
    else:
        item = _promptfoo_test(talk, _variable(document))
    if found.node.flow_style:
        raise EditError(f"{key} is a list in one line: give the name of a new file")
    dash = text.rfind("-", 0, document.start(found.node.value[0]))
    indent = dash - (text.rfind("\n", 0, dash) + 1)
    lines = "".join(" " * indent + line if line.strip() else line for line in item.splitlines(keepends=True))
    last = found.node.value[-1]
    gap = "\n" if "\n\n" in text[document.start(found.node.value[0]) : document.start(last)] else ""
    return document.insert_after(found._replace(node=last), gap + lines).replace("\n", newline)


def _variable(document: YamlText) -> str:
    prompts = document.at("prompts")
    names = set(re.findall(r"\{\{\s*(\w+)", document.text_of(prompts.node))) if prompts is not None else set()
    if len(names) != 1:
        raise EditError("its prompts do not take one variable: give the name of a new file")
    return names.pop()


# -- the StartToAgent guide's


def _guide(talk: Talk) -> str:
    return f"agent: {scalar(talk.agent)}\n\ntest_cases:\n" + _indented(_guide_case(talk), 2)


def _guide_case(talk: Talk) -> str:
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


QUOTED = '"'


# -- nao's


def _nao(talk: Talk) -> str:
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


def _promptfoo(talk: Talk) -> str:
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
    test = _promptfoo_test(talk, "message")
    return f"prompts:\n{prompts}providers:\n  - {scalar(talk.agent, QUOTED)}\ntests:\n{_indented(test, 2)}"


def _promptfoo_test(talk: Talk, variable: str) -> str:
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


def _neuro_san(talk: Talk) -> str:
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
