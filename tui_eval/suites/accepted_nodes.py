"""Values of a YAML file changed or left out where an answer is accepted, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.suites.accepted_values import Edited, shown
from tui_eval.suites.yaml_edit import EditError, Found, NotThere, YamlText


def put(document: YamlText, found: Found, value: Any) -> Edited:
    """Another value in the place of one that was found."""
    before = plain(found.node)
    return Edited(document.replace(found, value), before, shown(value), found.line, shared(document, found))


def drop(document: YamlText, found: Found) -> Edited:
    """The document without what was found."""
    note = shared(document, found)
    return Edited(document.remove(found), plain(found.node), "(left out)", found.line, note)


def shared(document: YamlText, found: Found) -> str:
    """Who else a change concerns: it stands within an anchor, or in what every test has."""
    if found.path[:1] == ("defaultTest",):
        return f"line {found.line} is in defaultTest: every test of the file asks for it"
    if found.path[:1] == ("assertionTemplates",):
        return f"line {found.line} is in assertionTemplates: every test that refers to it asks for it"
    anchor = document.anchor_around(found)
    return f"line {found.line} is within &{anchor}: whatever refers to it changes too" if anchor else ""


def only(found: Sequence[Found], what: str) -> Found:
    """The only place found.

    Raises:
        EditError: there is none, or more than one; `what` is it called.
    """
    if not found:
        raise NotThere(f"{what} is not in the file as it was run: edit the case (e)")
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
