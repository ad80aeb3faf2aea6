"""A small app around the Case screen: a run folder written by the real writer, no engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from textual.app import App
from textual.pilot import Pilot

from tests.support.attempts import START, case_for
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.background import Tasks
from tui_eval.tui.engines import Engines
from tui_eval.tui.handlers import Handlers
from tui_eval.tui.keys import CASE_KEYS, KEYS, QUERY_KEYS, SHARED_KEYS
from tui_eval.tui.memory import ProjectMemory
from tui_eval.tui.notices import Notices
from tui_eval.tui.screens import screen_names
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.services import AppServices
from tui_eval.tui.settings import Settings
from tui_eval.tui.state.app_state import AppState, CasePointer
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.terminal.editor import Editor


def write_run(root: Path, cases: Sequence[Sequence[Attempt]], run_id: str = "20260601-120000-abcd") -> Path:
    """A finished run; each item of `cases` holds the attempts of one case."""
    folder = Store(root).create_folder(run_id)
    writer = RunWriter(folder, RunInfo(run_id, started_at=START))
    planned = [PlannedCase(case_for(a[0]), a[0].agent, a[0].model, len(a), len(a)) for a in cases]
    for refs, attempts in zip(writer.plan(planned), cases, strict=True):
        for ref, attempt in zip(refs, attempts, strict=True):
            writer.started(ref, START)
            writer.done(ref, attempt)
    writer.state("finished", START + 60)
    writer.close()
    return folder


def services_for(app: HostApp, state: AppState) -> AppServices:
    """What a Case screen uses; an engine, other places and questions are none of them."""
    notices = Notices(app)
    none: Any = None
    keys = Handlers(
        app,
        CASE_KEYS + SHARED_KEYS + QUERY_KEYS + tuple(key for key in KEYS if key.place in ("moving", "list")),
        lambda: None,
    )
    return AppServices(
        state=state,
        notices=notices,
        tasks=Tasks(app, notices),
        engines=Engines(state, notices),
        settings=Settings(),
        memory=ProjectMemory(state.root),
        symbols=Symbols(True),
        editor=Editor(app),
        ask=none,
        places=cast(Any, app),
        suites=none,
        runs=cast(Any, app),
        notes=none,
        do=keys.do,
        take_settings=none,
        status=str,
    )


class HostApp(App[None]):
    """Pushes a Case screen; answers the keys that the real app answers for it."""

    def __init__(self, root: Path, pointers: Sequence[CasePointer]) -> None:
        super().__init__()
        self.state = AppState(root)
        self.services = services_for(self, self.state)
        self.pointers = list(pointers)
        self.clipboard_texts: list[str] = []
        self.errors: list[BaseException] = []
        self.from_turn: list[tuple[str | None, int | None]] = []
        self.list_in_front = None

    def on_mount(self) -> None:
        """Open the first case."""
        self.push_screen(CaseScreen(self.pointers[0]))

    async def action_do(self, key_id: str) -> None:
        """As the app does, for the keys of the place."""
        await self.services.do(key_id)

    def background_failed(self, error: Exception) -> None:
        """Kept for the test to look at."""
        self.errors.append(error)

    def copy_to_clipboard(self, text: str) -> None:
        """Kept for the test to look at."""
        self.clipboard_texts.append(text)

    def from_recorded(self, content: CaseContent, turn: int | None, said: str | None = None) -> None:
        """Kept for the test to look at; what becomes of it is in `test_run_requests`."""
        self.from_turn.append((content.run_id, turn))

    def show(self, name: str, *arguments: Any, **options: Any) -> None:
        """As the app does."""
        self.push_screen(screen_names.make(name, *arguments, **options))

    @property
    def logged(self) -> list[str]:
        """What was said and logged."""
        return [text for _, _, text in self.services.notices.lines]

    @property
    def case_screen(self) -> CaseScreen:
        """The screen under test."""
        assert isinstance(self.screen, CaseScreen)
        return self.screen


def host(root: Path, *cases: Attempt | Sequence[Attempt]) -> HostApp:
    """An app on a run with these cases (each one attempt, or several)."""
    grouped = [[case] if isinstance(case, Attempt) else list(case) for case in cases]
    folder = write_run(root, grouped)
    with closing(RunReader(folder)) as reader:
        return HostApp(root, [CasePointer(row.case_id, run_id=folder.name) for row in reader.cases()])


async def until(pilot: Pilot[Any], condition, timeout: float = 60.0) -> None:
    """Wait until something holds; fails with what was waited for."""
    end = time.monotonic() + timeout
    wait = 0.01
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        await pilot.pause()
        await asyncio.sleep(wait)
        wait = min(1.25 * wait, 0.05)  # a process that is waited for gets the processor
    await pilot.pause()


async def loaded(pilot: Pilot[Any]) -> CaseScreen:
    """Wait until the attempt is shown."""
    app = pilot.app
    assert isinstance(app, HostApp)
    await until(pilot, lambda: isinstance(app.screen, CaseScreen))
    screen = app.case_screen
    await until(
        pilot, lambda: bool(screen.content.attempt or screen.content.problem) and bool(screen.tab.size.width)
    )
    await pilot.pause()
    return screen


def screen_text(app: App[Any]) -> str:
    """What is on the screen, as text."""
    height = app.size.height
    lines = []
    for strip in app.screen._compositor.render_strips():
        lines.append("".join(segment.text for segment in strip).rstrip())
    return "\n".join(lines[:height])


async def sees(pilot: Pilot[Any], *texts: str) -> None:
    """Wait until all of these texts are on the screen."""
    try:
        await until(pilot, lambda: all(text in screen_text(pilot.app) for text in texts))
    except AssertionError:
        raise AssertionError(f"not on the screen: {texts}\n{screen_text(pilot.app)}") from None
