"""Who runs the tests: several processes for the whole suite, this one for what is asked for by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tests.examples  # noqa: F401 - its profile is the one of all tests

WORKERS = 4
"""Many tests wait for a process, a terminal or a time limit: more workers than cores on a small machine."""


MOST_WORKERS = 8


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`-n auto`, which pyproject.toml sets; `-n` on the command line decides otherwise.

    Files and single tests, `-k`, `--lf`, and `-m` with marks of one's own (timings need the machine for
    themselves) run in this process.
    """
    option = config.option
    by_name = any(not Path(argument.partition("::")[0]).is_dir() for argument in config.args)
    chosen = option.keyword or getattr(option, "lf", False) or option.collectonly
    if by_name or chosen or option.markexpr not in config.getini("addopts"):
        return 0
    return min(max(WORKERS, os.cpu_count() or 1), MOST_WORKERS)


@pytest.fixture(autouse=True)
def _no_keys_of_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite without a judge takes the grader whose key is there: the tests' never asks a foreign host."""
    for name in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
