"""Saved conversations as text: what the writers of every format share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from math import isfinite
from typing import Any

from tui_eval.yaml.yaml_edit import EditError, FoundNode, YamlText, block, scalar

QUOTED = '"'
"""How texts of a person stand in YAML."""


def indented(text: str, columns: int) -> str:
    """A text with every line but empty ones moved right."""
    return "".join(" " * columns + line if line.strip() else line for line in text.splitlines(keepends=True))


def flow(value: Any) -> str:
    """A value that a suite gave as one line of YAML, read back as the same.

    Raises:
        EditError: YAML has no such value.
    """
    if isinstance(value, str):
        return scalar(value, QUOTED)
    if isinstance(value, float):
        text = repr(value) if isfinite(value) else f".{value!r}".replace(".-", "-.")
        return text if "." in text else text.replace("e", ".0e")  # YAML 1.1 takes 1e+20 for a text
    if value is None or isinstance(value, bool | int):
        return scalar(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    raise EditError(f"a value of the case is {type(value).__name__}, which cannot be written: edit the file")


def keyed(values: Mapping[str, Any], columns: int) -> list[str]:
    """Lines of a block mapping; a text of several lines as a block of them."""
    space = " " * columns
    return [
        f"{space}{scalar(key)}: "
        + (block(value, columns + 2) if isinstance(value, str) and "\n" in value else flow(value))
        for key, value in values.items()
    ]


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
    """The text of a suite with an item as the last of a list.

    Raises:
        EditError: the list is not a block in this file.
    """
    if found.node.flow_style:
        raise EditError(f"{found.path[-1]} is a list in one line: give the name of a new file")
    dash = text.rfind("-", 0, document.start(found.node.value[0]))
    indent = dash - (text.rfind("\n", 0, dash) + 1)
    last = found.node.value[-1]
    gap = "\n" if "\n\n" in text[document.start(found.node.value[0]) : document.start(last)] else ""
    return document.insert_after(found._replace(node=last), gap + indented(item, indent))
