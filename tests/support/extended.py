"""The command line and the app as somebody has them who installed the package in `tests/data/fifth_format`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import ROOT
from tui_eval import extensions, formats
from tui_eval.formats import discovery

PACKAGE = ROOT / "tests" / "data" / "fifth_format"


def tui_eval(folder: Path, *words: str, package: Path = PACKAGE) -> subprocess.CompletedProcess[str]:
    """The command line in a folder, as somebody has it who installed the package; it never ends with a traceback."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{package}",
        "XDG_STATE_HOME": str(folder / ".state"),
        "XDG_CACHE_HOME": str(folder / ".cache"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tui_eval", *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


@contextmanager
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package installed in this process, and in those that it begins."""
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{PACKAGE}")
    _forget()
    try:
        yield
    finally:
        monkeypatch.undo()
        _forget()


def _forget() -> None:
    """What these modules look up once in a process."""
    for module in (extensions, formats, discovery):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
