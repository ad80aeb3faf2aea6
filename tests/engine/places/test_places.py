"""Where attempts run: what every place does (`place_contract`), and what a run makes of a place that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import place_contract
from tests.support.place_contract import contract
from tui_eval.engine.places.attempt_place import Made, PlaceLost
from tui_eval.engine.places.here import Here
from tui_eval.engine.schedule import Ticket
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader


@pytest.mark.parametrize(
    "promise",
    [
        place_contract.executes_to_the_end,
        place_contract.cancels_and_keeps_what_there_was,
        place_contract.ends_in_time,
    ],
)
async def test_the_engines_own_loop_is_a_place(promise, tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        await given.place.open(lambda: None)
        try:
            await promise(given)
        finally:
            await given.place.close()
            await given.run.environment.close()


class Losing(Here):
    """Executes the first attempt, and is lost with the second."""

    words = "far away"
    given = 0

    async def attempt(self, ticket: Ticket, ends: float | None, left: dict[int, Attempt]) -> Made:
        self.given += 1
        if self.given > 1:
            raise PlaceLost("far away does not answer")
        return await super().attempt(ticket, ends, left)


class Nowhere(Here):
    """Cannot be opened."""

    async def open(self, changed: Callable[[], None]) -> None:
        raise PlaceLost("nobody is there")


async def test_a_run_whose_place_is_lost_keeps_what_has_ended_and_can_be_gone_on_with(tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        run = given.run
        run.runner.limits.concurrency = 1
        run.runner.place = Losing(run.environment, run.writer)
        assert await run.execute() == "interrupted"
        assert run.writer is not None
        reader = RunReader(run.writer.folder)
        assert [(row.state, row.outcome) for row in reader.attempts()] == [
            ("done", "passed"), ("waiting", None), ("waiting", None),
        ]  # fmt: skip
        info = reader.info()
        reader.close()
        assert (info.place, info.note) == ("far away", "far away does not answer")


async def test_a_place_that_cannot_be_opened_executes_nothing(tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        run = given.run
        run.runner.place = Nowhere(run.environment, run.writer)
        assert await run.execute() == "interrupted"
        assert run.runner.stopped_because == "nobody is there"


class Slow(Here):
    """Takes for ever to open."""

    async def open(self, changed: Callable[[], None]) -> None:
        await asyncio.Event().wait()


async def test_a_run_is_cancelled_while_its_place_is_opened(tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        run = given.run
        run.runner.place = Slow(run.environment, run.writer)
        task = asyncio.ensure_future(run.execute())
        while run.runner._opening is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await run.runner.cancel() == 3
        assert await asyncio.wait_for(task, 10) == "cancelled"
