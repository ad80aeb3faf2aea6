"""What the house promises of its rooms: each says what lives in it, no module is too large, names are used once."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.source import tree_of

PACKAGE = Path(__file__).parents[2] / "tui_eval"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 800
SHORT, SHORT_ONES, MOST = 60, 15, 507
"""A module of fewer lines is seldom a concept: no more such, and no more modules, besides `__init__`s. Both
figures only go down; who needs another module looks first for one that belongs to its one user."""


AT_THE_TOP = {
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "tui_eval",
    "tests",
    "sample_suites",
    "screenshots",
}


@pytest.mark.skipif(not (PACKAGE.parent / ".git").exists() or not shutil.which("git"), reason="no clone")
def test_the_top_level_holds_what_the_layout_names_and_nothing_else() -> None:
    """Two files that a test had left where it was started were committed with the rest, ten megabytes."""
    told = subprocess.run(
        ["git", "ls-files"], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    ).stdout
    tops = {line.partition("/")[0] for line in told.splitlines()}
    assert {top for top in tops if not top.startswith(".")} <= AT_THE_TOP


def test_every_package_says_what_lives_there_and_what_may_not() -> None:
    silent = []
    for file in MODULES:
        if file.name == "__init__.py":
            said = ast.get_docstring(tree_of(file)) or ""
            if len(said.splitlines()) < 3 or "May not" not in said:
                silent.append(str(file.relative_to(PACKAGE)))
    assert not silent


def test_every_folder_of_modules_is_a_package() -> None:
    """Without an `__init__` neither contracts nor the wheel see it."""
    assert not {file.parent for file in MODULES if not (file.parent / "__init__.py").exists()}


def test_no_module_is_longer_than_a_concept() -> None:
    long = {str(file.relative_to(PACKAGE)): length for file in MODULES if (length := _lines(file)) > LONGEST}
    assert not long


def test_modules_do_not_multiply() -> None:
    modules = [file for file in MODULES if not file.name.startswith("__")]
    short = sorted(str(file.relative_to(PACKAGE)) for file in modules if _lines(file) < SHORT)
    assert len(short) <= SHORT_ONES, short
    assert len(modules) <= MOST, len(modules)


def test_no_two_modules_have_one_name() -> None:
    names = Counter(file.name for file in MODULES if file.name not in ("__init__.py", "__main__.py"))
    assert not [name for name, count in names.items() if count > 1]


def test_no_two_public_classes_have_one_name() -> None:
    names = Counter(
        node.name
        for file in MODULES
        for node in tree_of(file).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in names.items() if count > 1]


def _lines(file: Path) -> int:
    return len(file.read_text("utf-8").splitlines())
