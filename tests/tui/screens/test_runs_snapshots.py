"""What Runs, Compare, side by side and the grid look like at 80x24 and 120x40."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import mostly_real
from tests.support.app_host import screen_text, until
from tests.support.attempts import START, case_for, text_failure
from tests.support.live_run import FakeEngine, project
from tests.support.settling import rested
from tui_eval.model import Attempt, Entry
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.app import EvalApp
from tui_eval.tui.screens import runs_screen as runs_screen
from tui_eval.tui.screens.compare_screen import CompareScreen
from tui_eval.tui.screens.sides import SidesScreen
from tui_eval.tui.state.app_state import AppState

SIZES = pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
PROMPTS = """\
prompts: ["Answer shortly: {{question}}", "Answer politely: {{question}}"]
providers: [echo]
tests:
  - {description: a late refund, vars: {question: May I have my money back?}}
  - {description: an angry customer, vars: {question: This is a shame!}}
"""


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch):
    """Runs show dates and ages."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(runs_screen, "now", lambda: START + 86400 * 9)
    monkeypatch.setattr(AppState, "shown_root", "~/shop")
    yield
    monkeypatch.undo()
    time.tzset()


def attempts(number: int) -> list[Attempt]:
    """Eight cases with two attempts each; fewer fail from run to run, then more."""
    bad = (5, 3, 2, 1, 4)[number]
    found = []
    for case in range(8):
        for attempt in (1, 2):
            one = text_failure()
            one.case_id, one.attempt, one.agent = (
                f"suites/refunds.yaml::refund case {case}",
                attempt,
                "support",
            )
            one.duration_ms = 800.0 + 370 * case + 90 * number
            one.cost = 0.0021 + case / 10_000
            if case >= bad or (case == 0 and attempt == 1):
                one.outcome, one.message, one.verdicts = "passed", "passed", one.verdicts[:1]
                one.transcript[-1] = Entry(
                    3, "assistant", text="Our Refund policy covers 30 days. Shall I repair it?"
                )
            found.append(one)
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with five runs, the fourth cut off."""
    folder = tmp_path_factory.mktemp("project")
    project(folder, {"promptfooconfig.yaml": PROMPTS})
    for number in range(5):
        run_id = f"2026060{number + 1}-120000-abc{number}"
        writer = RunWriter(
            Store(folder).create_folder(run_id),
            RunInfo(run_id, started_at=START + 86400 * number, paths=["suites"], agents=["support"]),
        )
        grouped = [attempts(number)[i : i + 2] for i in range(0, 16, 2)]
        planned = [PlannedCase(case_for(pair[0]), "support", None, 2, 2) for pair in grouped]
        for refs, pair in zip(writer.plan(planned), grouped, strict=True):
            for ref, attempt in zip(refs, pair, strict=True):
                writer.started(ref, START + 86400 * number)
                writer.done(ref, attempt)
        if number != 3:
            writer.state("finished", START + 86400 * number + 95)
        writer.close()
    return folder


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    """The project, of this test alone."""
    return shutil.copytree(written, tmp_path / "project")


def app_of(root: Path) -> Any:
    return EvalApp([root], root=root, engine=FakeEngine(root), unicode=True)  # type: ignore[arg-type]


async def to_runs(app, pilot) -> None:
    await until(lambda: not app.state.loading, pilot)
    await pilot.press("H")
    await until(lambda: app.screen.table.rows, pilot)
    await rested(pilot)


@pytest.mark.real
@SIZES
def test_runs(snap_compare, root, size):
    app = app_of(root)

    async def before(pilot):
        await to_runs(app, pilot)
        await until(lambda: "should_contain" in screen_text(app), pilot)
        await rested(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)


@pytest.mark.real
@SIZES
def test_figures(snap_compare, root, size):
    app = app_of(root)

    async def before(pilot):
        await to_runs(app, pilot)
        await pilot.press("tab")
        await until(lambda: app.screen.facts, pilot)
        await until(lambda: "should_contain" in screen_text(app) or size[0] < 100, pilot)
        await rested(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)


@pytest.mark.real
@SIZES
@pytest.mark.parametrize("place", ["compare", "sides"])
def test_compare(snap_compare, root, size, place):
    app = app_of(root)

    async def before(pilot):
        await to_runs(app, pilot)
        await pilot.press("j", "space", "g", "space", "c")
        await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
        await until(lambda: "should_contain" in screen_text(app), pilot)
        if place == "sides":
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        await rested(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)


@pytest.mark.real
@SIZES
def test_grid(snap_compare, root, size):
    app = app_of(root)

    async def before(pilot):
        await until(lambda: not app.state.loading, pilot)
        await pilot.press("M")
        await until(lambda: "nothing asserted" in screen_text(app), pilot)
        await rested(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)
