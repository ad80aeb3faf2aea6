"""Faster painting in tests: the app's ten frames a second would make each key press wait for one."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("TEXTUAL_FPS", "60")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the app remembers about a person stays out of the person's own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
