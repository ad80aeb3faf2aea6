"""The app and its screens are put together from parts, not inherited from them."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
from textual.screen import Screen

import tui_eval.tui.screens
from tests.support.source import nodes_of
from tui_eval.tui.app import EvalApp
from tui_eval.tui.screens.screen_names import SCREENS

ROOT = Path(__file__).parents[2]
MOST = 3
LARGEST_CIRCLE = 3
"""Modules of `tui` that import each other in a circle, what only types need and functions import included."""


def own(made: type) -> list[str]:
    return [one.__name__ for one in made.__mro__ if one.__module__.startswith("tui_eval.")]


def screens() -> list[type]:
    found: set[type] = set()
    for module in pkgutil.iter_modules(tui_eval.tui.screens.__path__, "tui_eval.tui.screens."):
        loaded = importlib.import_module(module.name)
        found |= {one for _, one in inspect.getmembers(loaded, inspect.isclass) if issubclass(one, Screen)}
    ours = [one for one in found if one.__module__.startswith("tui_eval.")]
    bases = {base for one in ours for base in one.__mro__[1:]}
    return sorted((one for one in ours if one not in bases), key=lambda one: one.__name__)


def test_the_app_is_one_class_and_what_overrides_textual() -> None:
    assert own(EvalApp) == ["EvalApp", "TypingAhead", "FrameApp"]


@pytest.mark.parametrize("screen", screens(), ids=lambda screen: screen.__name__)
def test_a_screen_is_not_cut_into_classes(screen: type) -> None:
    assert len(own(screen)) <= MOST, own(screen)


def test_modules_of_the_app_import_each_other_in_no_large_circle() -> None:
    circle = max(circles(imports()), key=len)
    assert len(circle) <= LARGEST_CIRCLE, sorted(circle)


def test_screens_know_each_other_by_their_names() -> None:
    """A screen is imported by the registry alone, and by screens that are made from it."""
    names = {target.partition(":")[2] for target in SCREENS.values()}
    known = {one.__name__ for one in screens()} | names
    assert {one.__name__ for one in screens()} <= names, "a screen without a name"
    found = []
    for file in sorted((ROOT / "tui_eval").rglob("*.py")):
        nodes = nodes_of(file)
        bases = {
            base.id
            for node in nodes
            if isinstance(node, ast.ClassDef)
            for base in node.bases
            if isinstance(base, ast.Name)
        }
        taken = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
        found += [f"{file.name}: {name}" for name in sorted((taken & known) - bases)]
    assert found == []


APPS = {"textual.app", "textual.pilot", "tui_eval.tui.app"}
"""Where apps come from, and what presses their keys."""


def test_controllers_know_no_app() -> None:
    """Of the app that they are put into they know the protocol `services.Window`."""
    for file in sorted((ROOT / "tui_eval" / "tui" / "controllers").glob("*.py")):
        assert not modules_of(file) & APPS, file.name


def test_each_controller_has_tests_that_make_it_without_an_app() -> None:
    """A test module of its name, which has an app from nowhere: not from what hosts tests either."""
    for module in pkgutil.iter_modules([str(ROOT / "tui_eval" / "tui" / "controllers")]):
        wanted = [ROOT / "tests" / "tui" / "controllers" / f"test_{module.name}.py"]
        assert wanted[0].exists(), f"{module.name} has no tests of its own"
        known: set[Path] = set()
        while wanted:
            file = wanted.pop()
            if file not in known:
                known.add(file)
                found = modules_of(file)
                assert not found & APPS, f"{module.name}: {file.relative_to(ROOT)} has an app"
                paths = (ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in found)
                wanted += [path for path in paths if path.is_relative_to(ROOT / "tests") and path.exists()]


def test_requests_to_the_engine_are_made_in_one_module() -> None:
    made = {
        str(file.relative_to(ROOT / "tui_eval" / "tui"))
        for file in (ROOT / "tui_eval" / "tui").rglob("*.py")
        for node in nodes_of(file)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "RunRequest"
    }
    assert made == {"state/run_requests.py"}


def modules_of(file: Path) -> set[str]:
    """The modules that a file imports, and what may be one of a package: at the head, in functions, for types."""
    found: set[str] = set()
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_screens_are_shown_by_one_controller() -> None:
    shown = [
        f"{file.relative_to(ROOT / 'tui_eval' / 'tui')}"
        for file in sorted((ROOT / "tui_eval").rglob("*.py"))
        for node in nodes_of(file)
        if isinstance(node, ast.Attribute) and node.attr == "push_screen"
    ]
    assert set(shown) == {"controllers/places.py", "terminal/frame_app.py"}  # which overrides Textual's


def imports() -> dict[str, set[str]]:
    """Who imports whom within `tui`: at the head, in functions, and for types alone."""
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in (ROOT / "tui_eval" / "tui").rglob("*.py")
    }
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, file in files.items():
        for node in nodes_of(file):
            if isinstance(node, ast.ImportFrom) and node.module:
                wanted = [f"{node.module}.{alias.name}" for alias in node.names]
                found[name] |= {one if one in files else node.module for one in wanted} & files.keys()
    return found


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which reaches all others of its set (Tarjan, 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    made: list[set[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in graph[name]:
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            at = stack.index(name)
            made.append(set(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in number:
            visit(name)
    return made
