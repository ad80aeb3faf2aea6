"""Plain progress: a line for each attempt that ends, those that end together in one write."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.commands.conftest import Cli
from tests.support.waiting import until
from tui_eval.commands import progress as module
from tui_eval.commands.progress import Progress
from tui_eval.model import Attempt, Case

JOB: Any = SimpleNamespace(
    case=Case("s::a", "a", "s", "nao"), agent="bot", model=None, attempts=1, of_attempts=0
)


async def test_lines_of_attempts_that_end_together_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(module, "warn", written.append)
    progress = Progress("plain")
    progress.total = 3
    for _ in range(2):
        progress.ended(JOB, 1, Attempt("s::a", 1, "passed", duration_ms=1500))
    assert not written
    await until(lambda: written)
    assert written == ["[1/3] ✓ passed      1.50 s  a [bot]\n[2/3] ✓ passed      1.50 s  a [bot]"]
    progress.ended(JOB, 1, Attempt("s::a", 1, "passed", duration_ms=1500))
    progress.finish()
    assert written[1:] == ["[3/3] ✓ passed      1.50 s  a [bot]"], "at the end none waits"


def test_beside_a_scripted_agent_no_other_is_called_scripted(cli: Cli, project: Path, tmp_path: Path) -> None:
    """Of `helper` and a model it was said that no model is asked."""
    with (project / "tui_eval.yaml").open("a") as file:
        file.write("  mirror: {type: echo}\n")
    first = cli(
        "run", ".", "-s", "greets", "--agent", "helper", "--agent", "mirror", "-o", tmp_path / "r.html"
    )
    assert "with helper, mirror (scripted: helper), run " in first.err
    assert "helper, mirror (scripted: helper)" in (tmp_path / "r.html").read_text()
    assert "with helper (scripted), run " in cli("run", ".", "-s", "greets", "--agent", "helper").err
    assert "with mirror, run " in cli("run", ".", "-s", "greets", "--agent", "mirror").err
