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


FIRST_FRAME = ("tui_eval.commands.open_app", "tui_eval.tui.app", "tui_eval.tui.screens.suites_screen")
"""What the app's first frame is made of."""
AFTER_IT = (
    "importlib.metadata",
    "importlib.resources",
    "tui_eval.store.gathering",
    "tui_eval.tui.loaders.case_loader",
    "tui_eval.tui.state.case.case_details",
    "tui_eval.tui.state.case.transcript_view",
    "tui_eval.tui.state.text.meaning",
    "tui_eval.tui.widgets.text_pane",
)
"""What comes with the first attempt that is shown, with a crash, a page of help, a folder of shards."""


def test_the_first_frame_waits_for_nothing_that_it_does_not_show() -> None:
    code = f"import sys, {', '.join(FIRST_FRAME)}; print(*({set(AFTER_IT)!r} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "\n"


LATE = (
    "tui_eval.engine.after.failure_naming",
    "tui_eval.engine.after.resuming",
    "tui_eval.reports.results",
    "importlib.metadata",
)
"""What a run of a plain suite has no use for."""


def test_a_run_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(
        "agent: bot\ntest_cases:\n  - {name: a, input: b, expected: {should_contain: [b]}}\n"
    )
    (tmp_path / "tui_eval.yaml").write_text("agents:\n  bot: {type: echo}\n")
    code = (
        "import atexit, sys; sys.argv = ['tui-eval', 'run', '.']; from tui_eval.__main__ import main\n"
        f"atexit.register(lambda: print('loaded:', *({set(LATE)!r} & sys.modules.keys())))\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert "1 case passed" in done.stdout and done.stdout.endswith("loaded:\n"), done.stdout + done.stderr
