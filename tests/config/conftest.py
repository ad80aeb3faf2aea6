"""A project folder to put configuration into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tui_eval.config import project as config

Project = Callable[..., config.Config]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Writes a `tui_eval.yaml` (and other files by name) and loads it."""

    def write(text: str, **files: str) -> config.Config:
        (tmp_path / "tui_eval.yaml").write_text(text, "utf-8")
        for name, content in files.items():
            (tmp_path / name.replace("__", ".")).write_text(content, "utf-8")
        return config.load([tmp_path])

    return write
