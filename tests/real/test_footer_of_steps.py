"""The footer of a case that is run by hand, and the keys that its dialogs name, do something: on a real engine."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_host import screen_text, until
from tests.support.footer_scenes import Place
from tests.support.settling import rested
from tests.tui.conftest import _own_state_folder, _patient, _settled  # noqa: F401
from tests.tui.screens.test_step import app_on
from tui_eval.tui.screens.dialogs import AskScreen, ChangeScreen
from tui_eval.tui.screens.save_case import SaveDialog
from tui_eval.tui.screens.step_screen import StepScreen

pytestmark = pytest.mark.real
Ready = Callable[[Any], Any]


class Stepping(Place):
    """Whose engine is a process: what it is asked for is seen on the screen."""

    def asked(self) -> tuple[int, ...]:
        """How often the editor was."""
        return (len(self.edited),)


def waits(turn: int) -> Ready:
    return lambda app: isinstance(app.screen, StepScreen) and app.screen.view.waits == turn


def _ended(app: Any) -> bool:
    return isinstance(app.screen, StepScreen) and app.screen.view.done and bool(app.screen.attempt)


def shows(screen: type) -> Ready:
    return lambda app: isinstance(app.screen, screen) and app.screen.is_mounted


STATES: dict[str, Sequence[tuple[str, Ready]]] = {
    "before the first message": [("b", waits(1))],
    "before the second": [("b", waits(1)), ("enter", waits(2))],
    "while the message is written": [("b", waits(1)), ("e", waits(1))],
    "at its end": [("b", waits(1)), ("o", _ended)],
    "asked whether to leave": [("b", waits(1)), ("enter", waits(2)), ("escape", shows(AskScreen))],
    "where to save it": [("b", waits(1)), ("o", _ended), ("C", shows(SaveDialog))],
    "what is saved": [
        ("b", waits(1)),
        ("o", _ended),
        ("C", shows(SaveDialog)),
        ("enter", shows(ChangeScreen)),
    ],
}
"""By state the keys that lead there, each with what is waited for."""


@asynccontextmanager
async def in_state(root: Path, state: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stepping]:
    root.mkdir()
    async with app_on(root) as (app, pilot):
        place = Stepping(app, pilot, clock=True)
        monkeypatch.setattr(
            "tui_eval.tui.terminal.editor.edit",
            lambda _app, path, *_rest, **_more: place.edited.append(str(path)) or "",
        )
        for key, ready in STATES[state]:
            await pilot.press(key)
            await until(lambda ready=ready: ready(app), pilot)
            await rested(pilot)
        yield place


@pytest.mark.parametrize("state", STATES)
async def test_every_key_that_is_named_does_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    async with in_state(tmp_path / "first", state, monkeypatch) as place:
        keys = place.foot()
        assert keys, screen_text(place.app)
    for number, (_, key, words) in enumerate(keys):
        async with in_state(tmp_path / str(number), state, monkeypatch) as place:
            before = place.seen()
            await place.pilot.press(key)
            end = time.monotonic() + 60
            while place.seen() == before:
                assert time.monotonic() < end, f"{words} does nothing\n{screen_text(place.app)}"
                await rested(place.pilot)
