"""The footer names what the person needs next, and every key that it names does something there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import mostly_real
from tests.support.app_host import until
from tests.support.footer_scenes import Options, Scene, idle_keys
from tests.support.live_run import SUITE, LiveRun
from tui_eval.model import Outcome
from tui_eval.tui.screens.compare_screen import CompareScreen
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.search_screen import SearchScreen
from tui_eval.tui.screens.sides import SidesScreen

NAMES = ["refund is approved", "greets by name", "calms an angry customer"]


def ended(
    *outcomes: Outcome, times: int = 1, front: bool = False, state: str = "finished"
) -> Callable[[Path], Options]:
    """Runs that ended so; `front`: the last is opened."""

    def make(root: Path) -> Options:
        run = None
        for _ in range(times):
            run = LiveRun(root, NAMES[: len(outcomes)])
            for number, outcome in enumerate(outcomes):
                run.start(number)
                run.done(number, outcome, "" if outcome == "passed" else f"case {number} went wrong")
            run.writer.state(state, run.info.started_at + 5)  # type: ignore[arg-type]
            run.writer.close()
        return {"open_run": run.folder} if front and run is not None else {}

    return make


def going_on(
    done: int = 1, running: int = 1, state: str = "running", outcome: Outcome = "failed"
) -> Callable[[Any, Any], Any]:
    """`a`, and the run that it starts as far as this."""

    async def go(app: Any, pilot: Any) -> None:
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
        run = app.services.engines.own.live
        for number in range(done):
            run.start(number)
            run.done(number, outcome, "went wrong")
        for number in range(done, done + running):
            run.start(number)
        if state != "running":
            run.writer.state(state, None)
        run.writer.flush()
        await until(lambda: len(app.state.run.running()) == running, pilot)
        await until(lambda: app.state.run.counts.done == done and app.state.run.info.state == state, pilot)

    return go


def shows(screen: type) -> Callable[[Any], bool]:
    return lambda app: isinstance(app.screen, screen) and app.screen.is_mounted


BROKEN = {"suites/support.yaml": SUITE, "suites/torn.yaml": "agent: [\n"}
EMPTY = {"notes.txt": "nothing here"}

SUITES: dict[str, Scene] = {
    "no suites": Scene(suites=EMPTY),
    "only a file that cannot be read": Scene(suites={"torn.yaml": "agent: [\n"}),
    "its problem": Scene(("j",), suites={"torn.yaml": "agent: [\n"}),
    "a folder": Scene(("g",), wants=["list.open", "case.rerun"], without=["failure.next"]),
    "never ran": Scene(("j", "j"), wants=["list.open", "case.rerun", "run.all"], without=["failure.next"]),
    "all passed": Scene(("j", "j"), ended("passed", "passed", "passed"), wants=["case.rerun"], without=["failure.next"]),
    "one failed": Scene(("g",), ended("passed", "failed", "passed"), wants=["failure.next", "case.rerun"]),
    "on the one that failed": Scene(("g", "right_square_bracket"), ended("passed", "failed", "passed"),
                                    wants=["list.open", "case.rerun", "run.failed", "case.edit"], without=["failure.next"]),
    "on one of several": Scene(("right_square_bracket",), ended("failed", "failed", "error"), wants=["failure.next", "run.failed"]),
    "detail": Scene(("j", "tab"), ended("passed", "failed", "passed")),
    "detail of a folder": Scene(("g", "tab"), ended("passed", "failed", "passed")),
    "detail of what never ran": Scene(("j", "j", "tab")),
    "a broken file beside": Scene(("G",), suites=BROKEN, wants=["case.edit"]),
    "its row": Scene(("G", "k"), suites=BROKEN),
    "nothing matches": Scene(("f", *"zzzz", "enter"), ended("passed", "failed", "passed"), wants=["list.clear"]),
    "filtered": Scene(("f", *"refund", "enter"), ended("passed", "failed", "passed"), wants=["list.clear"]),
    "marked": Scene(("j", "j", "space"), ended("passed", "failed", "passed"), wants=["case.rerun"]),
}  # fmt: skip


async def good(scene: Scene, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = await idle_keys(scene, root / "p", monkeypatch)
    assert not wrong, "\n".join(wrong)


@pytest.mark.real
@pytest.mark.parametrize("name", mostly_real(SUITES, "never ran", "on one of several"))
async def test_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    await good(SUITES[name], tmp_path, monkeypatch)


RUN: dict[str, Scene] = {
    "no run": Scene(("L",)),
    "going on": Scene((), goes=going_on(), wants=["list.open"], clock=True),
    "nothing ended": Scene((), goes=going_on(0, 1), wants=["case.cancel"], without=["failure.next"], clock=True),
    "nothing begun": Scene((), goes=going_on(0, 0), without=["failure.next", "stream.zoom"], clock=True),
    "on one that ended": Scene(("right_square_bracket",), goes=going_on(), without=["failure.next"], clock=True),
    "its panes": Scene(("tab",), goes=going_on(), clock=True),
    "one zoomed": Scene(("tab", "z"), goes=going_on(0, 2), clock=True),
    "paused": Scene((), goes=going_on(state="paused"), wants=["run.pause"], clock=True),
    "paused with nothing at work": Scene((), goes=going_on(running=0, state="paused"), wants=["run.pause"], clock=True),
    "all passed": Scene((), ended("passed", "passed", "passed", front=True), without=["failure.next", "run.failed"]),
    "failed": Scene((), ended("passed", "failed", "error", front=True), wants=["list.open", "failure.next", "run.failed"]),
    "one failed": Scene((), ended("passed", "failed", "passed", front=True), wants=["run.failed"]),
    "cancelled": Scene((), ended("passed", "cancelled", "cancelled", front=True, state="cancelled"), wants=["run.failed"], without=["failure.next"]),
    "detail of one that failed": Scene(("j", "tab"), ended("passed", "failed", "error", front=True)),
    "filtered": Scene(("f", *"refund", "enter"), ended("passed", "failed", "error", front=True), wants=["list.clear"]),
    "interrupted": Scene((), ended("passed", front=True, state="interrupted")),
}  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize("name", mostly_real(RUN, "going on", "its panes", "failed"))
async def test_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    await good(RUN[name], tmp_path, monkeypatch)


RUNS: dict[str, Scene] = {
    "none": Scene(("H",), ready=shows(RunsScreen)),
    "one": Scene(("H",), ended("passed", "failed", "passed"), ready=shows(RunsScreen), without=["compare", "runs.mark"]),
    "one that passed": Scene(("H",), ended("passed", "passed", "passed"), ready=shows(RunsScreen)),
    "many": Scene(("H",), ended("passed", "failed", "passed", times=3), ready=shows(RunsScreen), wants=["list.open", "compare", "runs.mark"]),
    "the oldest": Scene(("H", "G"), ended("passed", "failed", "passed", times=3), ready=shows(RunsScreen)),
    "two marked": Scene(("H", "space", "space"), ended("passed", "failed", "passed", times=3), ready=shows(RunsScreen), wants=["compare"]),
    "figures": Scene(("H", "tab"), ended("passed", "failed", "passed", times=2), ready=shows(RunsScreen)),
    "figures of one that passed": Scene(("H", "tab"), ended("passed", "passed", "passed"), ready=shows(RunsScreen)),
    "plots": Scene(("H", "v"), ended("passed", "failed", "passed", times=2), ready=shows(RunsScreen)),
    "plots of one": Scene(("H", "v"), ended("passed", "failed", "passed"), ready=shows(RunsScreen)),
    "interrupted": Scene(("H",), ended("passed", state="interrupted"), ready=shows(RunsScreen), wants=["runs.resume"]),
    "cancelled": Scene(("H",), ended("passed", "cancelled", state="cancelled"), ready=shows(RunsScreen), wants=["runs.resume"]),
    "nothing matches": Scene(("H", "f", *"zzzz", "enter"), ended("passed", "failed", times=2), ready=shows(RunsScreen), wants=["runs.clear"]),
    "compare": Scene(("H", "c"), ended("passed", "failed", "passed", times=3), ready=shows(CompareScreen)),
    "compare the only two": Scene(("H", "c"), ended("passed", "failed", "passed", times=2), ready=shows(CompareScreen)),
    "compare, on a heading": Scene(("H", "c", "g"), ended("passed", "failed", "passed", times=2), ready=shows(CompareScreen)),
    "sides": Scene(("H", "c", "j", "enter"), ended("passed", "failed", "passed", times=2), ready=shows(SidesScreen)),
    "search": Scene(("H", "slash", *"hello", "enter"), ended("passed", "failed", times=2), ready=shows(SearchScreen)),
    "search without hits": Scene(("H", "slash", *"zzzz", "enter"), ended("passed", "failed"), ready=shows(SearchScreen), without=["list.open"]),
    "grid": Scene(("M",), ended("passed", "failed", "passed", front=True)),
    "grid of the suites": Scene(("M",), ended("passed", "failed", "passed")),
    "grid of what never ran": Scene(("M",)),
    "settings": Scene(("comma",)),
    "log": Scene(("l",)),
    "help": Scene(("question_mark",)),
    "run dialog": Scene(("A",)),
    "quit while a run goes on": Scene(("q",), goes=going_on(), clock=True),
    "cancel the run": Scene(("X",), goes=going_on(), clock=True),
    "delete": Scene(("H", "D"), ended("passed", "failed")),
}  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize(
    "name",
    mostly_real(
        RUNS,
        "many",
        "figures",
        "compare",
        "search",
        "grid",
        "settings",
        "run dialog",
        "quit while a run goes on",
    ),
)
async def test_other_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    await good(RUNS[name], tmp_path, monkeypatch)
