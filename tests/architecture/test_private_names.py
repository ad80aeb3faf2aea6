"""Tests ask what is offered: a private name may change without one of them noticing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import textual

ROOT = Path(__file__).parents[2]
LEFT = 11
"""Uses of private names below the app that are still there; this figure only goes down."""
_REACHED = re.compile(r"(?<!\bself)(?<!\bcls)\s*\.\s*(_\w+)")
"""Perhaps a private name of something else than `self`."""


def trees(files: Iterable[Path]) -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(files):
        yield str(file), ast.parse(file.read_text("utf-8"))


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(files: Iterable[Path]) -> set[str]:
    """Private names of modules, classes and objects."""
    found: set[str] = set()
    for _, tree in trees(files):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
    return {name for name in found if private(name)}


@cache
def ours() -> set[str]:
    """Read once: it is all of the package."""
    return defined((ROOT / "tui_eval").rglob("*.py")) - defined(Path(textual.__file__).parent.glob("*.py"))


def used(files: Iterable[Path]) -> list[str]:
    """Where names are reached for that are ours and private (of Textual's own there is no other way to some)."""
    # Parsing is most of the work, and hardly a file has one.
    reaching = (file for file in files if not ours().isdisjoint(_REACHED.findall(file.read_text("utf-8"))))
    return [
        f"{Path(file).relative_to(ROOT)}:{node.lineno}: {node.attr}"
        for file, tree in trees(reaching)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ours()
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]


def test_tests_of_the_app_reach_into_no_private_name() -> None:
    assert used((ROOT / "tests" / "tui").rglob("*.py")) == []


def test_tests_of_the_rest_reach_into_fewer_and_fewer() -> None:
    found = used(file for file in (ROOT / "tests").rglob("*.py") if "tui" not in file.parts)
    assert len(found) <= LEFT, found
