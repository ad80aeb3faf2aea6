"""Values of a YAML file changed or left out where an answer is accepted, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.suites.accepted_values import Edited, shown
from tui_eval.suites.yaml_edit import EditError, Found, YamlText


def put(document: YamlText, found: Found, value: Any) -> Edited:
    """Another value in the place of one that was found."""
    before = plain(found.node)
    return document.replace(found, value), before, shown(value), found.line


def drop(document: YamlText, found: Found) -> Edited:
    """The document without what was found."""
    return document.remove(found), plain(found.node), "(left out)", found.line


def only(found: Sequence[Found], what: str) -> Found:
    """The only place found.

    Raises:
        EditError: there is none, or more than one; `what` is it called.
    """
    if not found:
        raise EditError(f"{what} is not in the file as it was run: edit the case (e)")
    if len({id(one.node) for one in found}) > 1:
        raise EditError(f"{what} stands there more than once: edit the case (e)")
    return found[0]


def plain(node: Any) -> str:
    """A node as people are shown it, on one line."""
    if node.id == "scalar":
        return str(node.value).replace("\a", "")  # where ruamel keeps a fold
    if node.id == "sequence":
        return "[" + ", ".join(plain(item) for item in node.value) + "]"
    return "{" + ", ".join(f"{plain(key)}: {plain(value)}" for key, value in node.value) + "}"
