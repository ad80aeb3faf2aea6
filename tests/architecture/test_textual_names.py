"""No widget of ours keeps something of its own under a name that Textual's classes use for themselves: a screen with a
`_running` of its own was taken for one that has ended, and what it had to do next waited."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

from tests.support.source import tree_of

TUI = Path(__file__).parents[2] / "tui_eval" / "tui"
MEANT = {"terminal/frame_app.py": {"_exception"}}
"""What is Textual's own, and set for it."""


def _kept(tree: ast.AST) -> dict[str, ast.Attribute]:
    """The private attributes that methods give to `self`."""
    return {
        node.attr: node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    }


def _of_textual(*classes: type) -> set[str]:
    every = {base for one in classes for base in one.__mro__ if base.__module__.startswith("textual")}
    sources = (inspect.getsource(sys.modules[one.__module__]) for one in every)
    return {name for source in sources for name in _kept(ast.parse(source))}


def test_no_attribute_of_ours_is_one_of_textuals() -> None:
    taken = _of_textual(App, Screen, Widget, MessagePump)
    assert "_running" in taken
    found = []
    for file in sorted(TUI.rglob("*.py")):
        for node in tree_of(file).body:
            if isinstance(node, ast.ClassDef) and node.bases:
                place = str(file.relative_to(TUI))
                clash = (_kept(node).keys() & taken) - MEANT.get(place, set())
                found += [f"{place}: {node.name}.{name}" for name in sorted(clash)]
    assert not found
