"""A conversation saved as a promptfoo test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, structs

from tui_eval.model import Assertion
from tui_eval.suites.saved_talk import QUOTED, Talk, indented, keyed, listed, with_item
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
    test = promptfoo_test(talk, "message", talk.kept())
    return f"prompts:\n{prompts}providers:\n  - {scalar(talk.agent, QUOTED)}\ntests:\n{indented(test, 2)}"


def promptfoo_test(talk: Talk, variable: str, kept: Sequence[Assertion], *, own_prompts: bool = False) -> str:
    """The test as an item of `tests`; the message is the value of `variable`. `kept` are the case's own assertions;
    with `own_prompts` its prompts make the message of its variables, as they did.

    Raises:
        EditError: there are several messages, and the suite's prompts take one.
    """
    lines = [f"- description: {scalar(_raw(talk.name), QUOTED)}", "  vars:"]
    given = dict(talk.case.vars) if talk.case is not None else {}
    if own_prompts:
        lines = lines if given else lines[:1]
    elif len(talk.turns) == 1:
        lines.append(f"    {variable}: {scalar(_raw(talk.turns[0].asked), QUOTED)}")
        given.pop(variable, None)
    elif variable != "message":
        raise EditError(
            f"its prompts take one message, the conversation has {len(talk.turns)}: give a new file"
        )
    else:
        for number, turn in enumerate(talk.turns, 1):
            lines.append(f"    message_{number}: {scalar(_raw(turn.asked), QUOTED)}")
            if turn.answered and number < len(talk.turns):
                lines.append(f"    answer_{number}: {scalar(_raw(turn.answered), QUOTED)}")
    lines += keyed(given, 4)  # the prompt's, or those that assertions name
    lines += _settings(talk, given)
    said = talk.proposed(talk.turns[-1])
    if kept:
        lines += ["  assert:", *_listed(kept, 4)]
    elif said:
        lines.append("  assert:")
        for text in said:
            lines += ["    - type: icontains", f"      value: {scalar(text, QUOTED)}"]
    return "\n".join(lines) + "\n"


def _settings(talk: Talk, given: dict[str, Any]) -> list[str]:
    """What else the case says: its limit, its options, what it is filtered by."""
    case = talk.case
    if case is None:
        return []
    options = dict(case.options)
    if any(isinstance(value, list) for value in given.values()):
        options["disableVarExpansion"] = True
    values = {"threshold": case.threshold, "options": options or None, "metadata": case.metadata or None}
    return keyed({key: value for key, value in values.items() if value is not None}, 2)


def _listed(assertions: Sequence[Assertion], columns: int) -> list[str]:
    """Assertions as items of a list, the members of a set under it."""
    lines: list[str] = []
    for number, one in enumerate(assertions):
        if one.set is None:
            item = keyed(_keys_of(one), columns + 2)
            members = [other for other in assertions if other.set == number]
            if one.type == "assert-set":
                free = [_free(other) for other in members]
                item += [f"{' ' * (columns + 2)}assert:", *_listed(free, columns + 4)]
            lines += [f"{' ' * columns}- {item[0].lstrip()}", *item[1:]]
    return lines


def _free(member: Assertion) -> Assertion:
    return structs.replace(member, set=None)


def _keys_of(one: Assertion) -> dict[str, Any]:
    """An assertion as its file gives it."""
    keys: dict[str, Any] = {"type": one.type}
    if one.value is not UNSET:
        keys["value"] = one.value
    for key in ("threshold", "weight", "metric", "transform", "provider", "config"):
        value = getattr(one, key)
        if value is not None:
            keys[key] = value
    return {**keys, **(one.extra or {})}


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
    kept = _without_default(talk.kept(), document)
    if talk.as_written and talk.case is not None:
        return with_item(text, document, found, promptfoo_test(talk, "", kept, own_prompts=True))
    variable, pattern = _variable(document)
    fits = pattern.fullmatch(talk.turns[0].asked) if len(talk.turns) == 1 else None
    if fits is not None:  # the prompt's own words come from the prompt
        talk = talk._replace(turns=[talk.turns[0]._replace(asked=fits[1])])
    return with_item(text, document, found, promptfoo_test(talk, variable, kept))


def _without_default(kept: Sequence[Assertion], document: YamlText) -> Sequence[Assertion]:
    """Without those that the suite adds to every test itself: they come first."""
    default = document.at("defaultTest", "assert")
    if default is None or default.node.id != "sequence":
        return kept
    tops = [number for number, one in enumerate(kept) if one.set is None]
    many = len(default.node.value)
    if many >= len(tops):
        return []
    start = tops[many]
    return [one if one.set is None else structs.replace(one, set=one.set - start) for one in kept[start:]]


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
