"""A conversation that took place, as what a new case is written from; what is worth expecting of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tui_eval.model import Assertion, Case
from tui_eval.yaml import yaml_lines
from tui_eval.yaml.yaml_edit import EditError, FoundNode, YamlText, block, flow, scalar

_MOST_FACTS = 3
_LONGEST_FACT = 80


class SavedCall(NamedTuple):
    """One tool call."""

    name: str
    arguments: Any


class SavedReply(NamedTuple):
    """One turn: what was asked and answered, and which turn of the case it was, from 1 (0: of none)."""

    asked: str
    answered: str
    turn: int = 0


class Original(NamedTuple):
    """A case as its own file has it now, in the words of its format: variables of the environment are named in it, not
    filled in. None: it is not there any more. `env` are the names and values that its suite's templates find besides
    the person's environment."""

    written: Any
    env: Mapping[str, str]


class Talk(NamedTuple):
    """A conversation to be saved. `connection` is neuro-san's, `sql` the agent's own query.

    `case` is the case that it took place in, whose expectations and settings the new one keeps; None where that is
    of another format. `as_written`: nobody changed a message by hand. `proposes`: the answers may be looked at for
    what to expect; `calls` and `sql` are empty where they may not. `original` is the case as its file has it, where
    its format tells that from `case`; `file` the file that is written, from the root.
    """

    name: str
    agent: str
    turns: list[SavedReply]
    calls: list[SavedCall]
    sql: str | None = None
    connection: str | None = None
    database: str | None = None
    case: Case | None = None
    as_written: bool = False
    proposes: bool = True
    original: Original | None = None
    file: str = ""

    def proposed(self, turn: SavedReply) -> list[str]:
        """Texts that the answer to this turn may be expected to hold."""
        return facts(turn.answered) if self.proposes else []

    def kept(self) -> list[Assertion]:
        """What the case expects of the whole conversation."""
        return self.case.assertions if self.case is not None else []


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


def tools_of(calls: Sequence[SavedCall]) -> list[str]:
    """The names of the tools that were called, each once, in order."""
    return list(dict.fromkeys(call.name for call in calls))


# -- Saved conversations as text: what the writers of every format share.


QUOTED = '"'
"""How texts of a person stand in YAML."""


def indented(text: str, columns: int) -> str:
    """A text with every line but empty ones moved right."""
    return "".join(" " * columns + line if line.strip() else line for line in text.splitlines(keepends=True))


def keyed(values: Mapping[str, Any], columns: int) -> list[str]:
    """Lines of a block mapping; a text of several lines as a block of them."""
    space = " " * columns
    return [
        f"{space}{scalar(key)}: "
        + (block(value, columns + 2) if isinstance(value, str) and "\n" in value else flow(value))
        for key, value in values.items()
    ]


_WIDEST = 90


def blocks(values: Mapping[Any, Any], columns: int) -> list[str]:
    """As `keyed`, with what the values hold in turn as blocks too."""
    space = " " * columns
    lines: list[str] = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{space}{scalar(key)}:", *blocks(value, columns + 2)]
        elif isinstance(value, list) and value and not _fits_a_line(value):
            lines += [f"{space}{scalar(key)}:", *block_items(value, columns + 2)]
        else:
            lines += keyed({key: value}, columns)
    return lines


def _fits_a_line(values: list[Any]) -> bool:
    if any(isinstance(one, Mapping | list) or "\n" in str(one) for one in values):
        return False
    return len(flow(values)) < _WIDEST


def block_items(values: list[Any], columns: int) -> list[str]:
    """As `blocks`, of a list."""
    space = " " * columns
    lines: list[str] = []
    for value in values:
        if isinstance(value, Mapping) and value:
            first, *others = blocks(value, columns + 2)
            lines += [f"{space}- {first.lstrip()}", *others]
        else:
            long = isinstance(value, str) and "\n" in value
            lines.append(f"{space}- {block(str(value), columns + 2) if long else flow(value)}")
    return lines


def listed(document: YamlText, key: str) -> FoundNode:
    """The list of cases under a key of a suite.

    Raises:
        EditError: there is none with anything in it.
    """
    found = document.at(key)
    if found is None or found.node.id != "sequence" or not found.node.value:
        raise EditError(f"the file has no list under {key} to add to")
    return found


def with_item(text: str, document: YamlText, found: FoundNode, item: str) -> str:
    """The text of a suite with an item (a list of it alone, as a block) as the last of a list."""
    if found.node.flow_style:
        return document.checked_last(found, _in_brackets(text, document, found.node.value[-1], item))
    return document.with_last(found, item)


def _in_brackets(text: str, document: YamlText, last: Any, item: str) -> str:
    """An item after the last between brackets, which may be JSON; on a line of its own where that has one."""
    (value,) = yaml_lines.load(item, "", core=True).value
    start = document.start(last)
    before = text[text.rfind("\n", 0, start) + 1 : start]
    end = start + len(document.text_of(last))
    gap = " " if before.strip() else f"\n{before}"
    return f"{text[:end]},{gap}{flow(value)}{text[end:]}"
