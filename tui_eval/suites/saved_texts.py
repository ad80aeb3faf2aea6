"""Saved conversations as text: what the writers of every format share."""

from __future__ import annotations

from tui_eval.yaml.yaml_edit import EditError, FoundNode, YamlText

QUOTED = '"'
"""How texts of a person stand in YAML."""


def indented(text: str, columns: int) -> str:
    """A text with every line but empty ones moved right."""
    return "".join(" " * columns + line if line.strip() else line for line in text.splitlines(keepends=True))


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
