"""Who may import whom, and what start-up must not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "duckdb",
    "polars",
    "pyhocon",
    "jinja2",
    "sqlglot",
    "quickjs",
    "httpx",
    "aiohttp",
    "jsonschema",
    "html5lib",
}


def test_import_rules_hold() -> None:
    """The contracts of pyproject.toml, checked by import-linter."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    "module", ["tui_eval.tui.app", "tui_eval.cli", "tui_eval.commands.open_app", "tui_eval.suites"]
)
def test_start_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(','.join(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.strip().split(",")}
    assert not loaded & HEAVY
