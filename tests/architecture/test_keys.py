"""What a key does is a handler under its id, in one table: nothing is found by the name of a method."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from textual.app import App
from textual.widgets import Input, TextArea

import tui_eval
from tests.support.source import nodes_of
from tui_eval.tui.keys import ALL_KEYS

TUI = Path(tui_eval.__file__).parent / "tui"
TABLE = {key.id: key for key in ALL_KEYS}
TEXTUALS = {name for kind in (App, Input, TextArea) for name in vars(kind) if name.startswith("action_")} | {
    "action_do",  # the one that every binding of the table names
    "action_redraw",  # of the renderer, which also draws anew by itself
}


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for file in sorted(TUI.rglob("*.py")):
        for node in nodes_of(file):
            if isinstance(node, ast.ClassDef):
                yield file.relative_to(TUI).as_posix(), node


def handed_over() -> dict[str, list[str]]:
    """Modules by the ids of keys for which they hand over a handler."""
    found: dict[str, list[str]] = defaultdict(list)
    for place, one in classes():
        for node in ast.walk(one):
            tables: list[ast.AST] = []
            if isinstance(node, ast.FunctionDef) and node.name == "handlers":
                tables = list(node.body)
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("handlers.add"):
                tables = list(node.args)
            for table in tables:
                for made in ast.walk(table):
                    if isinstance(made, ast.Dict):
                        for key in made.keys:
                            if isinstance(key, ast.Constant):
                                found[str(key.value)].append(place)
    return found


def test_each_key_has_a_handler_and_each_handler_a_key() -> None:
    assert handed_over().keys() == TABLE.keys()


def test_keys_that_work_everywhere_have_one_handler_and_a_controller_has_it() -> None:
    for key_id, places in handed_over().items():
        if TABLE[key_id].place == "everywhere":
            assert len(places) == 1 and places[0].startswith(("controllers/", "app.py")), (key_id, places)
        else:
            assert not [one for one in places if one.startswith("controllers/")], (key_id, places)


def test_each_key_of_a_controller_is_tried_without_an_app() -> None:
    """By its id, in the test module that is called as the controller's."""
    tests = Path(__file__).parents[1] / "tui"
    for key_id, places in handed_over().items():
        if places[0].startswith("controllers/"):
            tried = tests / places[0].replace("/", "/test_")
            assert f'"{key_id}"' in tried.read_text("utf-8"), f"{key_id}: {tried.name} never presses it"


def test_what_a_key_does_hangs_on_its_id_not_on_the_way_to_it() -> None:
    """A screen and a pane in it have no handler for the same key: none covers the other."""
    for key_id, places in handed_over().items():
        rooms = {one.partition("/")[0] for one in places}
        assert len(rooms) == 1, (key_id, places)
        assert len(places) == len(set(places)), (key_id, places)


def test_no_method_is_found_by_its_name() -> None:
    """But for Textual's own, and what a dialog or a line that is typed binds by itself."""
    for place, one in classes():
        bound = {
            str(argument.value).partition("(")[0]
            for made in ast.walk(one)
            if isinstance(made, ast.Call) and ast.unparse(made.func) == "Binding"
            for argument in made.args[1:2]
            if isinstance(argument, ast.Constant)
        }
        for node in one.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("action_"):
                own = node.name in TEXTUALS or node.name.removeprefix("action_") in bound
                assert own, f"{place}: {one.name}.{node.name}"
