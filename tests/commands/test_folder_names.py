"""A project in a folder whose name is no text: all was asked, and then `internal error`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tui_eval.reports.export import KINDS

SUITE = "agent: own\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: hi}}\n"
CONFIG = "agents:\n  own: {type: python, function: 'bot.py:answer', cache: true}\n"


@pytest.fixture
def named_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project below a folder that somebody named on a machine with Latin-1."""
    root = tmp_path / os.fsdecode(b"\xe9t\xe9")
    root.mkdir()
    (root / "tui_eval.yaml").write_text(CONFIG)
    (root / "s.yaml").write_text(SUITE)
    (root / "bot.py").write_text("def answer(message):\n    return message\n")
    monkeypatch.chdir(root)
    return root


def test_a_run_in_a_folder_whose_name_is_not_utf_8(cli: Cli, named_otherwise: Path) -> None:
    files = [f"out{ending}" for ending in sorted(KINDS)]
    done = cli("run", ".", "--trust", *(word for file in files for word in ("-o", file)))
    assert done.code == 0, done.out + done.err
    assert all((named_otherwise / file).stat().st_size for file in files)
    assert "1/1" in cli("runs").out and cli("show", "last").code == 0
    assert cli("run", ".", "--trust", "--changed").code == 5
    assert "1 cached" in cli("run", ".", "--trust").out
    assert cli("rescore", "last").code == cli("resume", "last", "--trust").code == 0
