"""The judge names how attempts failed: what is asked before it costs, what is said while it works and when it
has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.alone import Alone, FakePlace, on_project
from tests.support.live_run import FakeEngine
from tui_eval.tui.controllers import failure_names


class NamingEngine(FakeEngine):
    """Names when the test says so."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.plan: dict[str, Any] = {
            "judge": "judge, gpt-4.1-mini",
            "questions": 2,
            "cost": 0.0012,
            "free": False,
        }
        self.named: list[tuple[str, int]] = []
        self.facts: dict[str, Any] = {"done": 0, "ended": False, "error": ""}
        self.cancelled_naming: list[str] = []

    async def plan_naming(self, folder: Path, trust: bool, agreed: Iterable[str]) -> dict[str, Any]:
        return self.plan

    async def name_failures(self, folder: Path, total: int, trust: bool, agreed: Iterable[str]) -> None:
        self.named.append((folder.name, total))

    async def naming(self, run_id: str, cancel: bool = False) -> dict[str, Any]:
        if cancel:
            self.cancelled_naming.append(run_id)
            self.facts |= {"ended": True, "error": "cancelled"}
        return dict(self.facts)


class Runs(FakePlace):
    """A screen that says how far the judge is."""

    def __init__(self, alone: Alone) -> None:
        super().__init__("runs")
        self.alone, self.told = alone, []
        self.heard_of = asyncio.Event()

    def naming_changed(self, run_id: str = "") -> None:
        self.told.append(run_id or self.alone.runs.naming.words)
        self.heard_of.set()


class Naming:
    def __init__(self, alone: Alone, engine: NamingEngine) -> None:
        self.alone, self.engine = alone, engine
        self.screen = Runs(alone)
        alone.window.stack.append(self.screen)
        self.naming = alone.runs.naming
        self.folder = alone.root / "r1"

    async def begin(self) -> None:
        await self.naming.begin(self.folder)
        for _ in range(4):  # what it costs is found out in a task of its own
            await asyncio.sleep(0)

    async def until(self, words: str) -> None:
        """Until the screen has been told this."""
        async with asyncio.timeout(30):
            while words not in self.screen.told:
                self.screen.heard_of.clear()
                await self.screen.heard_of.wait()


@pytest.fixture
async def naming(tmp_path: Path, monkeypatch) -> Naming:
    monkeypatch.setattr(failure_names, "LOOK", 0.001)
    engine = NamingEngine(tmp_path)
    return Naming(await on_project(tmp_path, engine=engine), engine)


@pytest.mark.parametrize(
    ("cost", "questions", "words"),
    [
        (0.0012, 2, "judge, gpt-4.1-mini: 2 questions, about $0.0012"),
        (None, 1, "judge, gpt-4.1-mini: 1 question, what it costs is not known"),
    ],
)
async def test_what_it_costs_is_asked_about_before_anybody_is_asked(
    naming: Naming, cost, questions, words
) -> None:
    naming.engine.plan |= {"cost": cost, "questions": questions}
    await naming.begin()
    assert naming.alone.dialog.arguments[2] == [words]
    for answer in ("no", None):
        await naming.alone.answer(answer)
        assert naming.engine.named == [] and naming.naming.words == ""
        await naming.begin()


async def test_it_is_said_how_far_the_judge_is_and_that_it_has_ended(naming: Naming) -> None:
    await naming.begin()
    naming.alone.dialog.dismiss("name")
    await naming.until("the judge names failures 0/2, n stops")
    assert naming.naming.run_id == "r1" and naming.engine.named == [("r1", 2)]
    naming.engine.facts["done"] = 1
    await naming.until("the judge names failures 1/2, n stops")
    naming.engine.facts |= {"done": 2, "ended": True}
    await naming.alone.settle()
    assert naming.screen.told[-1] == "r1" and (naming.naming.run_id, naming.naming.words) == ("", "")
    assert naming.alone.said == "the judge has named how the attempts failed"


async def test_where_it_is_free_nothing_is_asked(naming: Naming) -> None:
    naming.engine.plan["free"] = True
    naming.engine.facts["ended"] = True
    await naming.begin()
    await naming.alone.settle()
    assert naming.engine.named == [("r1", 2)] and naming.alone.window.screen is naming.screen


async def test_one_run_at_a_time_is_named_and_can_be_stopped(naming: Naming) -> None:
    naming.engine.plan["free"] = True
    await naming.begin()
    await naming.until("the judge names failures 0/2, n stops")
    await naming.begin()
    naming.naming.stop()
    await naming.alone.settle()
    assert naming.engine.named == [("r1", 2)] and naming.engine.cancelled_naming == ["r1"]
    assert naming.alone.said == "failures of run r1 were not named: cancelled"


async def test_an_engine_that_dies_leaves_no_naming_behind(naming: Naming) -> None:
    async def dies(*arguments: Any) -> None:
        raise OSError("gone")

    naming.engine.plan["free"] = True
    naming.engine.name_failures = dies  # type: ignore[method-assign]
    await naming.begin()
    await naming.alone.settle()
    assert (naming.naming.run_id, naming.naming.words) == ("", "") and naming.alone.said == "engine: gone"
