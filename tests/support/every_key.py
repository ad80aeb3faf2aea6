"""Every key of the table, pressed where it is bound: on each tab of a case of each kind, and on each screen.

An exception of a handler or painter fails the test: the app survives it (`faults`), a headless one keeps it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.support import attempts
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tui_eval.model import Attempt, Entry, Exchange, Verdict
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.app import EvalApp
from tui_eval.tui.keys import CASE_KEYS, KEYS, RUNS_KEYS, Key
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.state.app_state import CasePointer

ALL_KEYS: tuple[Key, ...] = tuple(
    {key.id + key.place: key for key in (*KEYS, *CASE_KEYS, *RUNS_KEYS)}.values()
)
LEAVING = {"quit", "detach", "copy_or_quit", "suspend"}
"""Keys that end the app, as they should."""
WIDTHS = (20, 33, 60, 80, 120, 200)


def _no_tools() -> Attempt:
    return Attempt(
        "suites/support.yaml::refund is approved", 1, "failed", agent="offline", message="'refund' is missing",
        verdicts=[Verdict("should_contain", False, expected="refund", actual="no", reason="'refund' is missing", turn=1)],
        transcript=[Entry(1, "user", text="hello", started_at=attempts.START), Entry(1, "assistant", text="no", started_at=attempts.START, duration_ms=4.0)],
        exchanges=[Exchange(1, "POST / HTTP/1.1", "200")], started_at=attempts.START, duration_ms=5.0,
    )  # fmt: skip


def _no_times() -> Attempt:
    attempt = attempts.hallucinated_argument()
    for entry in attempt.transcript:
        entry.started_at = entry.duration_ms = entry.first_token_ms = None
    attempt.duration_ms, attempt.started_at = None, 0.0
    return attempt


def _cancelled() -> Attempt:
    return Attempt("suites/support.yaml::cancelled", 1, "cancelled", agent="offline", message="cancelled")


def _skipped() -> Attempt:
    return Attempt("suites/support.yaml::skipped", 1, "skipped", agent="offline", message="left out by hand")


def _nothing() -> Attempt:
    return Attempt("suites/support.yaml::nothing", 1, "passed")


def _many_turns() -> Attempt:
    return attempts.huge(200, 50)


KINDS: dict[str, Callable[[], Attempt] | None] = {
    "no tools": _no_tools,
    "no times": _no_times,
    "text": attempts.text_failure,
    "rows": attempts.wrong_cell,
    "a row missing": attempts.missing_row,
    "tools": attempts.hallucinated_argument,
    "an error": attempts.agent_error,
    "a network": attempts.multi_agent_in_time,
    "judged": attempts.judged,
    "hostile": attempts.hostile,
    "cancelled": _cancelled,
    "skipped": _skipped,
    "nothing": _nothing,
    "200 turns": _many_turns,
    "running": None,
    "waiting": None,
}
"""Kinds of cases; None: one of a run that goes on."""


@dataclass
class Written:
    """A run on disk, and what points at its case."""

    folder: Path
    pointer: CasePointer
    close: Callable[[], Any] = lambda: None


def write(root: Path, kind: str) -> Written:
    """A run with one case of this kind; one that goes on where the kind does."""
    made = KINDS[kind]
    attempt = made() if made is not None else attempts.text_failure()
    folder = Store(root).create_folder("20260601-120000-abcd")
    writer = RunWriter(folder, RunInfo(folder.name, started_at=attempts.START, agents=["offline"]))
    case = attempts.case_for(attempt)
    refs = writer.plan([PlannedCase(case, attempt.agent, attempt.model, 1, 1)])[0]
    if kind == "waiting":
        return Written(folder, CasePointer(case.case_id, run_id=folder.name), writer.close)
    writer.started(refs[0], time.time())
    if made is None:
        writer.turn(refs[0], 1)
        return Written(folder, CasePointer(case.case_id, run_id=folder.name), writer.close)
    writer.done(refs[0], attempt)
    writer.state("finished", attempts.START + 60)
    writer.close()
    return Written(folder, CasePointer(case.case_id, run_id=folder.name))


def keys_of(*places: str) -> list[str]:
    """All keys bound at these places, in the table's order, those that leave the app left out."""
    found = [
        one
        for key in ALL_KEYS
        if key.place in places and key.id not in LEAVING
        for one in key.keys.split(",")
    ]
    return list(dict.fromkeys(found))


async def press_all(pilot: Pilot[Any], keys: Iterable[str], home: Callable[[], Any]) -> None:
    """Press each, and come back to where it was pressed after it."""
    app = pilot.app
    assert isinstance(app, EvalApp)
    for key in keys:
        await pilot.press(key)
        assert app.is_running and app._exception is None, f"{key}: {app._exception!r}\n{screen_text(app)}"
        await home()


STAYING = tuple(
    key for key in keys_of("case") if key not in ("m", "p", "y", "Y", "B", "1", "2", "3", "4", "5", "6", "h")
)
"""Those of the Case screen's own that stay on its tab."""


async def every_key_of_a_case(
    root: Path,
    kind: str,
    widths: Sequence[int],
    keys: Sequence[str],
    tabs: Sequence[int] = range(6),
    height: int = 24,
) -> None:
    """Press these keys of the Case screen on these of its tabs, each at its own of the six widths."""
    project(root)
    written = write(root, kind)
    async with running_app(root, (widths[0], height), open_run=written.folder) as (app, pilot):
        await until(lambda: app.state.group is not None, pilot)
        below = len(app.screen_stack)
        for tab in tabs:

            async def home(tab: int = tab) -> None:
                screen = app.screen
                if (
                    isinstance(screen, CaseScreen)
                    and len(app.screen_stack) == below + 1
                    and screen.tab_shown == tab
                ):
                    return
                shown: CaseScreen | None = None
                end = time.monotonic() + 60
                # what a key began may still put its dialog above a new Case screen, or take that away: once more then
                while app.screen is not shown:
                    assert time.monotonic() < end, app.screen_stack
                    while len(app.screen_stack) > below:
                        await app.pop_screen()
                    shown = CaseScreen(written.pointer)
                    await app.push_screen(shown)
                    await pilot.pause()
                await pilot.press(str(tab + 1))

            await pilot.resize_terminal(widths[tab], height)
            await home()
            await press_all(pilot, keys, home)
        written.close()


@dataclass(frozen=True)
class Place:
    """A screen: the keys that lead to it from the suites, and where in the table its own keys are."""

    way: tuple[str, ...]
    bound: tuple[str, ...]


PLACES: dict[str, Place] = {
    "suites": Place((), ("list", "screen")),
    "run": Place(("L",), ("list", "screen", "run")),
    "runs": Place(("H",), ("runs",)),
    "compare": Place(("H", "c", "b"), ("compare",)),
    "sides": Place(("H", "c", "b", "enter"), ("sides",)),
    "search": Place(("H", "slash", *"hello", "enter"), ("search",)),
    "grid": Place(("L", "M"), ("grid",)),
    "settings": Place(("comma",), ("settings",)),
    "log": Place(("l",), ()),
    "help": Place(("question_mark",), ()),
    "palette": Place(("colon",), ()),
    "filter": Place(("f",), ()),
    "find": Place(("slash",), ()),
    "run dialog": Place(("A",), ()),
    "step": Place(("b",), ("step",)),
    "save": Place(("L", "enter", "C"), ()),
    "accept": Place(("L", "enter", "exclamation_mark"), ()),
    "note": Place(("L", "enter", "m"), ()),
    "copy": Place(("L", "enter", "y"), ()),
    "delete": Place(("H", "D"), ()),
}


async def every_key_of_a_place(root: Path, name: str, widths: Sequence[int], height: int = 24) -> None:
    """Press every key that may be bound there, at each of these widths."""
    project(root)
    last = None
    for outcomes in (["passed", "failed", "error"], ["failed", "failed", "cancelled"]):
        last = LiveRun(root, ["refund is approved", "greets by name", "calms an angry customer"])
        last.all_done(outcomes)  # type: ignore[arg-type]
    assert last is not None
    place = PLACES[name]
    keys = keys_of("everywhere", "moving", *place.bound)
    async with running_app(root, (widths[0], height), open_run=last.folder) as (app, pilot):
        await until(lambda: app.state.group is not None, pilot)

        async def open_it() -> tuple[str, int]:
            while len(app.screen_stack) > 1:
                await app.pop_screen()
            await pilot.press("escape", "escape", "g", "j", "j", *place.way)
            return type(app.screen).__name__, len(app.screen_stack)

        for width in widths:
            await pilot.resize_terminal(width, height)
            here = await open_it()

            async def home(here: tuple[str, int] = here) -> None:
                if (type(app.screen).__name__, len(app.screen_stack)) != here or name in ("filter", "find"):
                    await open_it()

            await press_all(pilot, keys, home)
