"""What is imported late is named in texts: a module that moves must not leave them behind."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from tui_eval.formats.promptfoo.judge import registry

ROOT = Path(__file__).parents[2]
_DOTTED = re.compile(r"tui_eval(\.[a-z_][a-z_0-9]*)+(:[A-Za-z_]\w*)?")


def named() -> list[tuple[str, str]]:
    """(module, name) of every text that is a dotted name of ours, but for files and the name of a tracer."""
    found: dict[tuple[str, str], None] = {}
    for path in sorted((ROOT / "tui_eval").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
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
