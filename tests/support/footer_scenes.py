"""Places of the app in the states they can be in, and whether each key that their footer names does something there.

A scene is a project with runs, and the way to a place; its keys are pressed one after the other, each in the scene
as it was. What counts as something: another screen, another painting of this one, a request to the engine, the
editor, the end of the app. Words that only say why nothing was done count for nothing."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, project
from tests.support.settling import rested
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import EngineError, RunStarted
from tui_eval.tui.keys import Key
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.widgets.bars import KeyHints
from tui_eval.tui.widgets.row_view import RowView
from tui_eval.tui.widgets.stream_grid import StreamGrid
from tui_eval.tui.widgets.text_pane import TextPane

Options = dict[str, Any]
Ready = Callable[[Any], Any]


def _always(_: Any) -> bool:
    return True


@dataclass(frozen=True)
class Scene:
    """`make` writes runs below the root and gives options of the app; `way` are keys that lead to the place, a
    function where keys are not enough; `ready` says when it is there; `wants` are ids of keys that must be named,
    `without` of those that must not."""

    way: Sequence[str] = ()
    make: Callable[[Path], Options | None] = lambda root: None
    wants: Sequence[str] = ()
    without: Sequence[str] = ()
    ready: Ready = _always
    suites: dict[str, str] | None = None
    size: tuple[int, int] = (80, 24)
    goes: Callable[[Any, Pilot[Any]], Awaitable[Any]] | None = None
    clock: bool = False
    """Whether figures change by themselves."""


@dataclass
class Place:
    """The app in a scene, and what has become of it from outside."""

    app: Any
    pilot: Pilot[Any]
    edited: list[str] = field(default_factory=list)
    clock: bool = False

    def foot(self) -> list[tuple[str, str, str]]:
        """The keys that can be read at the foot, or in the dialog: id, key to press, as it is written."""
        screen = self.app.screen
        if isinstance(screen, AskScreen):
            answers = str(screen.query_one(".answers", Static).render()).splitlines()
            return [("", line.split()[0], line.strip()) for line in answers]
        hints = list(screen.query(KeyHints))
        if hints:
            said = screen_text(self.app).splitlines()[hints[0].region.y]
            return [
                (key.id, key.pressed.split(",")[0], _written(key))
                for key in hints[0].keys
                if _written(key) in said
            ]
        line = str(list(screen.query(".keys").results(Static))[-1].render())
        return [("", *_named(words)) for words in re.split(r" {2,}", line.strip())]

    def cursor(self) -> Callable[[], Any]:
        """What puts the cursors of lists and tables back where they are now."""
        screen = self.app.screen
        views = [(view, view.cursor) for view in screen.query(RowView) if view.has_cursor]

        def back() -> None:
            for view, at in views:
                view.move_to(at)

        return back

    def stands(self, before: Any) -> bool:
        """Whether the same is seen as before, whatever was asked for meanwhile."""
        now = self.seen()
        return now != "left" and now[1] == before[1]

    def asked(self) -> tuple[int, ...]:
        """How often the engine and the editor were."""
        engine = self.app.services.engines.own
        return len(engine.requests), len(engine.cancelled), len(engine.paused), len(self.edited)

    def seen(self) -> Any:
        """What the person sees and others were asked, but for words that were said."""
        app = self.app
        if app._exit or not app.screen_stack:
            return "left"
        app.clear_notifications()
        for screen in app.screen_stack:
            if isinstance(screen, CaseScreen) and screen.is_mounted:
                screen.say("")
            for footer in screen.query(KeyHints):
                footer.say("")
        painted = [
            (re.sub(r"[\d.]+", "0", segment.text) if self.clock else segment.text, str(segment.style))
            for strip in app.screen._compositor.render_strips()
            for segment in strip
        ]
        return self.asked(), (
            [id(screen) for screen in app.screen_stack],
            [pane.following for pane in app.screen.query(TextPane)],
            [pane.follow for streams in app.screen.query(StreamGrid) for pane in streams.panes],
            painted,
        )


def _written(key: Key) -> str:
    return f"{key.shown} {key.label}"


_KEYS = {"esc": "escape", "→": "right", "←": "left", "↑": "up", "↓": "down", "space": "space"}


def _named(words: str) -> tuple[str, str]:
    key = words.partition(" ")[0]
    return _KEYS.get(key, key), words


class Unwilling(FakeEngine):
    """Is asked, and begins nothing: the scene stays as it is."""

    willing = True

    async def run(self, request: RunRequest) -> RunStarted:
        """As if the engine were gone, once the scene stands."""
        if self.willing:
            return await super().run(request)
        self.requests.append(request)
        raise EngineError("not in this scene")

    async def resume_run(self, folder: Path, request: RunRequest) -> RunStarted:
        """As `run`."""
        self.requests.append(request)
        raise EngineError(f"{folder}: not in this scene")


@asynccontextmanager
async def standing(
    scene: Scene, root: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int] | None = None
) -> AsyncIterator[Place]:
    """The app in this scene."""
    root.mkdir(parents=True)
    project(root, scene.suites)
    monkeypatch.setattr("tui_eval.tui.app.ENGINE_AFTER", 0.01)
    options = scene.make(root) or {}
    engine = options.setdefault("engine", Unwilling(root))
    async with running_app(root, size or scene.size, **options) as (app, pilot):
        if "open_run" in options:
            await until(lambda: app.state.group is not None, pilot)
        place = Place(app, pilot, clock=scene.clock)
        monkeypatch.setattr(
            "tui_eval.tui.terminal.editor.edit",
            lambda _app, path, *_rest, **_more: place.edited.append(str(path)) or "",
        )
        await rested(pilot)
        if scene.goes is not None:
            await scene.goes(app, pilot)
            await rested(pilot)
        for key in scene.way:
            await pilot.press(key)
            await rested(pilot)
        await until(lambda: scene.ready(app), pilot)
        await rested(pilot)
        engine.willing = False
        yield place


async def idle_keys(
    scene: Scene, root: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int] | None = None
) -> list[str]:
    """What is wrong with the footer of a scene: keys that do nothing, keys that are missing."""
    wrong: list[str] = []
    left: list[tuple[str, str, str]] | None = None
    number = 0
    while left is None or left:
        number += 1
        async with standing(scene, root / str(number), monkeypatch, size) as place:
            app, pilot = place.app, place.pilot
            keys = place.foot()
            if left is None:
                left = keys
                names = [key_id for key_id, _, _ in keys]
                said = "  ".join(words for _, _, words in keys)
                wrong += [f"{name} is missing in: {said}" for name in scene.wants if name not in names]
                wrong += [f"{name} is named in: {said}" for name in scene.without if name in names]
                assert keys, f"no keys\n{screen_text(app)}"
            begun, depth, cursor = place.seen(), len(app.screen_stack), place.cursor()
            while left:
                before = place.seen()
                named = left.pop(0)
                _, key, words = named
                if named not in place.foot():
                    continue  # a list that goes on was arranged anew: another row is under the cursor
                await pilot.press(key)
                if not await _changes(place, before):
                    if named not in place.foot():
                        continue
                    wrong.append(f"{words} does nothing\n{screen_text(app)}")
                    break
                if not await _restored(place, begun, depth, cursor, key):
                    break
    return wrong


async def _restored(place: Place, before: Any, depth: int, cursor: Callable[[], Any], key: str) -> bool:
    """Whether the scene stands as it did: back on its screen, on its line, and what was begun taken back."""
    app, pilot = place.app, place.pilot
    for back in ("", "escape", key):
        if app._exit:
            return False
        while len(app.screen_stack) > depth:
            await app.pop_screen()
        if back:
            await pilot.press(back)
        if app._exit or len(app.screen_stack) != depth:
            return False
        cursor()
        await rested(pilot)
        if place.stands(before):
            return True
    return False


async def _changes(place: Place, before: Any) -> bool:
    """Whether a key does something: what it begins in a thread is waited for."""
    for _ in range(3):
        if place.seen() != before:
            return True
        if place.app._exit:
            return True
        await rested(place.pilot)
    return place.seen() != before
