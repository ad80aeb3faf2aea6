"""What is imported late is named in texts: a module that moves must not leave them behind."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.source import nodes_of, tree_of
from tui_eval.formats.promptfoo.judge import registry

ROOT = Path(__file__).parents[2]
_DOTTED = re.compile(r"tui_eval(\.[a-z_][a-z_0-9]*)+(:[A-Za-z_]\w*)?")
_HERE = re.compile(r'^_HERE = "([\w.]+)"$', re.MULTILINE)


def _written_out(node: ast.JoinedStr, here: str) -> str:
    """A text that begins with the name of its own package; empty: another one, or known only when it runs."""
    first, *rest = node.values
    if not isinstance(first, ast.FormattedValue) or ast.unparse(first.value) != "_HERE":
        return ""
    if not all(isinstance(part, ast.Constant) for part in rest):
        return ""
    return here + "".join(str(part.value) for part in rest if isinstance(part, ast.Constant))


def named() -> list[tuple[str, str]]:
    """(module, name) of every text that is a dotted name of ours, but for files and the name of a tracer."""
    found: dict[tuple[str, str], None] = {}
    for path in sorted((ROOT / "tui_eval").rglob("*.py")):
        source = path.read_text("utf-8")
        here = _HERE.search(source)
        if here is None and not re.search(r"[\"']tui_eval\.", source):
            continue  # parsing is most of the work
        for node in nodes_of(path):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if isinstance(node, ast.JoinedStr) and here is not None:
                text = _written_out(node, here[1])
            if _DOTTED.fullmatch(text) and not text.endswith((".yaml", ".yml", ".otlp")):
                module, _, name = text.partition(":")
                found[module, name] = None
    return list(found)


@pytest.mark.parametrize("kind", sorted(registry.CHECKS))
def test_every_assertion_of_promptfoo_has_its_function(kind: str) -> None:
    assert callable(registry.check_for(kind))


def test_every_module_named_in_a_text_is_there() -> None:
    missing: list[str] = []
    for module, name in named():
        try:
            if name and not hasattr(importlib.import_module(module), name):
                missing.append(f"{module}:{name}")
            elif not name:
                importlib.import_module(module)
        except ImportError as error:
            missing.append(f"{module}: {error}")
    assert not missing


def _imports(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def test_a_package_that_is_only_imported_late_is_never_imported_by_one_of_its_modules() -> None:
    """Of two threads, of which one imports a module and one the package that imports its modules, each waits for the
    other: Python lets one go on with half a module, which is an ImportError in place of a verdict."""
    at_once = {path: _imports(tree_of(path).body) for path in sorted((ROOT / "tui_eval").rglob("*.py"))}
    faults: list[str] = []
    for path in (one for one in at_once if one.name == "__init__.py"):
        package = ".".join(path.parent.relative_to(ROOT).parts) + "."
        outside = [one for one in at_once if path.parent not in one.parents]
        if not any(name.startswith(package) for name in at_once[path]) or any(
            f"{name}.".startswith(package) for one in outside for name in at_once[one]
        ):
            continue
        faults += [
            f"{one.relative_to(ROOT)} imports {name}, not {package[:-1]}"
            for one in outside
            for function in nodes_of(one)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for name in sorted(_imports(ast.walk(function)))
            if name.startswith(package)
        ]
    assert not faults
