"""A folder with a suite in it, read."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tui_eval.config.project import Config, SuiteRule
from tui_eval.formats.promptfoo import read
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite

Make = Callable[..., Suite]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """`make(text, trusted=False, compat=None, **files)` writes the suite and its files and reads it.

    In the names of files `__` stands for a dot.
    """

    def made(text: str, *, trusted: bool = False, compat: str | None = None, **files: str) -> Suite:
        for name, content in files.items():
            path = tmp_path / name.replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(content), encoding="utf-8")
        source = textwrap.dedent(text)
        (tmp_path / "promptfooconfig.yaml").write_text(source, encoding="utf-8")
        rules = [SuiteRule(path="**", compat=compat)] if compat else []  # type: ignore[arg-type]
        config = Config(root=tmp_path, suites=rules)
        return read.read("promptfooconfig.yaml", source, config, Trust(trusted))

    return made
