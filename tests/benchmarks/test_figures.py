"""The table at the end of the benchmarks, and the help page that is written from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import peers
from tests.benchmarks.figures import Figures, page, table
from tests.benchmarks.support import measure
from tests.support import ROOT

PAGE = """# Measured

What it is.

## The app

Old circumstances.

| what | measured | budget |
|---|---|---|
| first paint | 9 s | 2 × |

## Data

Kept.
"""


def measured(busy: bool) -> Figures:
    kept = Figures([].append)
    kept.begin(busy)
    kept.add("The app", "first paint", "1.4 ×", "2 ×", True)
    kept.add("The app", "key | to byte", "9 ms", "5 ms", False, timed=True)
    return kept


def test_a_figure_over_its_budget_fails_its_test_once_all_are_known() -> None:
    kept = measured(busy=False)
    with pytest.raises(AssertionError, match=r"key \| to byte: 9 ms, budget 5 ms$"):
        kept.hold()
    assert len(kept.all) == 2
    kept.begin(busy=False)
    kept.hold()


def test_the_table_shows_budgets_and_what_else_the_machine_did() -> None:
    assert table(measured(busy=True).all) == [
        "",
        "The app",
        " ✓ first paint     1.4 ×   [2 ×]",
        " ✗ key | to byte   9 ms *   [5 ms]",
        "",
        "* a time that was measured while the machine had other work",
    ]
    assert "*" not in "".join(table(measured(busy=False).all))


def test_the_page_gets_the_sections_that_were_measured_and_keeps_the_others() -> None:
    kept = measured(busy=True)
    kept.add("A run", "memory", "1 kB")
    made = page(PAGE, kept.all, "2026-01-01: 2 processors.")
    assert (
        made
        == """# Measured

What it is.

## A run

2026-01-01: 2 processors.

| what | measured | budget |
|---|---|---|
| memory | 1 kB |  |

## The app

2026-01-01: 2 processors.

| what | measured | budget |
|---|---|---|
| first paint | 1.4 × | 2 × |
| key \\| to byte | 9 ms \\* | 5 ms |

\\* A time, measured while the machine had other work: an idle one needs less.

## Data

Kept.
"""
    )
    assert page(made, kept.all, "2026-01-01: 2 processors.") == made


def test_the_help_page_can_be_written_anew() -> None:
    text = (ROOT / "tui_eval" / "help" / "measured.md").read_text("utf-8")
    made = page(text, measured(busy=False).all, "Now.")
    assert made.partition("\n## ")[0] == text.partition("\n## ")[0]
    assert "| first paint | 1.4 × | 2 × |" in made


def test_a_peer_that_is_not_here_is_left_out_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "promptfoo"
    there.touch()
    monkeypatch.setenv("OPENAI_API_KEY", "kept")
    for name in ("PROMPTFOO_DISABLE_TELEMETRY", "PROMPTFOO_DISABLE_UPDATE"):
        monkeypatch.setenv(name, "")
    tools, absent = peers.found({"BENCHMARK_PROMPTFOO": str(there), "BENCHMARK_INSPECT": "none"})
    assert list(tools) == ["promptfoo"]
    (line,) = absent
    assert line.startswith("Inspect is not measured: no ")
    assert line.endswith("/none (python -m tests.benchmarks.peers puts it there)")


def test_pytest_ends_with_the_table_and_writes_the_page(tmp_path: Path) -> None:
    """As `pytest -m benchmark -n 0 tests/benchmarks --renew PAGE` does."""
    target = tmp_path / "page.md"
    target.write_text(PAGE)
    (tmp_path / "test_one.py").write_text(
        "def test_one(figures):\n    figures.add('The app', 'first paint', '7.0 ×', '2 ×', False)\n    figures.hold()\n"
    )
    options = [
        "-p",
        "tests.benchmarks.conftest",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "--renew",
        str(target),
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--rootdir",
            str(tmp_path),
            *options,
            str(tmp_path / "test_one.py"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert " ✗ first paint   7.0 ×   [2 ×]" in done.stdout.splitlines(), json.dumps(done.stdout)
    assert f"written into {target}" in done.stdout
    assert "| first paint | 7.0 × | 2 × |" in target.read_text()


def test_the_memory_of_a_process_is_its_own(tmp_path: Path) -> None:
    """What the system reports at its end is at least what this process had as it began it."""
    filling = bytearray(300_000_000)
    cost = measure(
        [sys.executable, "-c", "import time; kept = bytearray(60_000_000); time.sleep(1)"], tmp_path
    )
    assert len(filling) and cost.code == 0
    assert 60 < cost.memory < 150
