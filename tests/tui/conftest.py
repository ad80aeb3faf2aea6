"""Keys in tests wait until the app has settled; what the app remembers stays in the test."""

from __future__ import annotations

import os
from asyncio import BaseEventLoop
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("TEXTUAL_FPS", "60")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture(autouse=True)
def _own_state_folder(new_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the app remembers about a person stays out of the person's own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(new_folder("state")))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(new_folder("config")))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys typed ahead wait for what the one before them opens, however busy the machine is."""
    monkeypatch.setattr("tui_eval.tui.terminal.type_ahead.LONGEST", 20.0)
    # Words that go away after seconds are still there when a busy machine comes to look.
    monkeypatch.setattr("tui_eval.tui.screens.case_screen.WORDS_STAY", 60.0)


@pytest.fixture(autouse=True)
def _answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot answers a question as soon as it is there, and has seen it: what a person types on is another test's."""
    monkeypatch.setattr("tui_eval.tui.screens.dialogs.PAUSE", float("-inf"))


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pilot goes on when the app has done everything (see `settling`)."""
    import textual.app
    import textual.pilot

    from tests.support.settling import waiter, watching_executors

    settled = waiter()
    monkeypatch.setattr(textual.app, "wait_for_idle", settled)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", settled)
    monkeypatch.setattr(BaseEventLoop, "run_in_executor", watching_executors(BaseEventLoop.run_in_executor))
