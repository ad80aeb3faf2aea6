"""`n` in Runs: the judge names how attempts failed; asked where it costs, seen while it goes on, stopped by `n`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, project
from tests.tui.screens.test_runs_screen import SIZES, sees, to_runs, write_runs
from tui_eval.store.reader import RunReader
from tui_eval.store.writer import keep_assessment
from tui_eval.tui.screens.dialogs import AskScreen


class NamingEngine(FakeEngine):
    """Names when the test says so."""

    def __init__(self, root: Path, free: bool = False) -> None:
        super().__init__(root)
        self.plan = {"judge": "judge, gpt-4.1-mini", "questions": 2, "cost": 0.0012, "free": free}
        self.named: list[Path] = []
        self.facts: dict[str, Any] = {"done": 0, "total": 2, "ended": False, "error": ""}

    async def plan_naming(
        self, folder: Path, trust: bool = False, agreed: Iterable[str] = ()
    ) -> dict[str, Any]:
        return self.plan

    async def name_failures(
        self, folder: Path, total: int, trust: bool = False, agreed: Iterable[str] = ()
    ) -> None:
        self.agreed = frozenset(agreed)
        self.named.append(folder)

    async def naming(self, run_id: str, cancel: bool = False) -> dict[str, Any]:
        if cancel:
            self.facts |= {"ended": True, "error": "cancelled"}
        return dict(self.facts)

    def end(self) -> None:
        reader = RunReader(self.named[-1])
        assessment = reader.assessment()
        reader.close()
        for mode in assessment.modes:
            mode.name = "The judge's own words."
        keep_assessment(self.named[-1], assessment)
        self.facts |= {"done": 2, "ended": True}


@pytest.mark.real
@SIZES
async def test_the_price_is_said_and_asked_for_and_the_names_are_shown(tmp_path, size):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"])
    engine = NamingEngine(root)
    async with running_app(root, size, engine=engine) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("n")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await sees(app, pilot, "judge, gpt-4.1-mini: 2 questions, about $0.0012")
        await pilot.press("n")
        await until(lambda: not isinstance(app.screen, AskScreen), pilot)
        assert not engine.named
        await pilot.press("n")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("y")
        await sees(app, pilot, "the judge names failures 0/2, n stops")
        engine.facts["done"] = 1
        await sees(app, pilot, "failures 1/2")
        engine.end()
        await until(lambda: not app.runs.naming.run_id, pilot)
        await pilot.press("tab")
        await sees(app, pilot, "how they failed", "The judge's own words.")


async def test_it_is_stopped_by_the_same_key(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"])
    engine = NamingEngine(root, free=True)
    async with running_app(root, engine=engine) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("n")
        await sees(app, pilot, "the judge names failures 0/2")
        await pilot.press("n")
        await until(lambda: not app.runs.naming.run_id, pilot)
        await until(lambda: "cancelled" in app.notices.lines[-1][2], pilot)
        assert len(engine.named) == 1 and "names failures" not in screen_text(app)


@pytest.mark.real
async def test_how_far_it_is_is_seen_again_when_the_screen_was_left(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"])
    engine = NamingEngine(root, free=True)
    async with running_app(root, (120, 40), engine=engine) as (app, pilot):
        first = await to_runs(app, pilot)
        await pilot.press("n")
        await sees(app, pilot, "the judge names failures 0/2")
        await pilot.press("escape")
        await until(lambda: not first.is_attached, pilot)
        engine.facts["done"] = 1
        second = await to_runs(app, pilot)
        assert second is not first
        await sees(app, pilot, "the judge names failures 1/2, n stops")
        engine.end()
        await sees(app, pilot, "The judge's own words.")
        assert "names failures" not in screen_text(app)
