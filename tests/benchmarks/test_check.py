"""`check` of 2,000 nao tests against running them with an agent that answers at once (design.md, Budgets)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks.figures import Figures
from tests.benchmarks.support import ROOT

pytestmark = pytest.mark.benchmark
TESTS = 2_000


def _seconds(folder: Path, *words: str) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "tui_eval", *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr[-2000:]
    return time.perf_counter() - began


def test_checking_takes_at_most_half_of_what_running_takes(tmp_path: Path, figures: Figures) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(ROOT / "tests" / "data" / "jaffle_shop", folder)
    for number in range(TESTS):
        (folder / "tests" / f"t{number}.yml").write_text(
            f"name: t{number}\nprompt: what is ordered, and {number}?\n"
            f"sql: |\n  SELECT status, COUNT(*) AS n, SUM(amount + {number}) AS total\n"
            "  FROM orders\n  GROUP BY status\n  ORDER BY status\n",
            "utf-8",
        )
    (folder / "own.script.yaml").write_text('speed: 0\ndefault: "nothing"\n', "utf-8")
    (folder / "tui_eval.yaml").write_text(
        "agents:\n  own: {type: scripted, script: own.script.yaml}\n"
        "suites:\n  - {path: 'tests/**', agent: own}\n",
        "utf-8",
    )
    checking = _seconds(folder, "check", ".")
    running = _seconds(folder, "run", ".", "--no-store", "--display", "none")
    figures.add(
        "Data",
        f"`check` of {TESTS:,} nao tests, beside running them",
        f"{checking / running:.2f} × ({checking:.1f} s)",
        "0.5 ×",
        checking <= 0.5 * running,
    )
    figures.hold()
