"""A conversation saved as a promptfoo test."""

from __future__ import annotations

import re

from tui_eval.suites.saved_talk import Talk, facts
from tui_eval.suites.saved_texts import QUOTED, indented, listed, with_item
from tui_eval.yaml.yaml_edit import EditError, YamlText, scalar


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
    return f"prompts:\n{prompts}providers:\n  - {scalar(talk.agent, QUOTED)}\ntests:\n{indented(test, 2)}"


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


def added(text: str, talk: Talk) -> str:
    """The text of an existing suite with the test as its last.

    Raises:
        EditError: its prompts do not take the conversation, or its list is not a block.
    """
    document = YamlText(text)
    found = listed(document, "tests")
    variable, pattern = _variable(document)
    fits = pattern.fullmatch(talk.turns[0].asked) if len(talk.turns) == 1 else None
    if fits is not None:  # the prompt's own words come from the prompt
        talk = talk._replace(turns=[talk.turns[0]._replace(asked=fits[1])])
    return with_item(text, document, found, promptfoo_test(talk, variable))


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
