"""Modules as trees, each parsed once for all tests of a module (`tests/architecture/conftest.py`)."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(file: Path) -> ast.Module:
    """The module; who asks changes nothing in it."""
    return ast.parse(file.read_text("utf-8"))


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """All of it, as `ast.walk` gives it."""
    return tuple(ast.walk(tree_of(file)))
