"""A case run one turn at a time: begun, or gone back to where that is being done."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from tui_eval.engine.request import RunRequest
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, is_alive
from tui_eval.store.shard_runs import LOOKED_AT
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.runs import RunController
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.follower import NEWEST
from tui_eval.tui.services import Core, Suites
from tui_eval.tui.state import run_requests
from tui_eval.tui.state.app_state import CasePointer


@runtime_checkable
class StepByStep(Protocol):
    """A screen on which a case is run step by step."""

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        ...


def waiting_step(root: Path, case_id: str, agent: str | None) -> Path | None:
    """In a thread: the run in which this case is being stepped through, whoever began that: an app that was killed, or
    left it."""
    for folder in filter(is_alive, islice(Store(root).run_folders(), NEWEST)):
        with contextlib.suppress(StoreError, OSError), contextlib.closing(RunReader(folder)) as reader:
            if reader.info().stepped and any(
                agent in (None, case.agent) and any(row.state != "done" for row in reader.attempts(case.id))
                for case in reader.cases_of(case_id)
            ):
                return folder
    return None


class StepController:
    """Begins steps, and shows those that go on."""

    def __init__(
        self, core: Core, places: PlaceController, suites: Suites, front: FrontRun, runs: RunController
    ) -> None:
        self._core, self._places, self._suites, self._front_run = core, places, suites, front
        self._runs = runs
        self.state, self._notices = core.state, core.notices

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"case.step": self.step}

    def step(self) -> None:
        """Run the case one turn at a time; where that is being done, go back to it."""
        pointer = self._places.pointer()
        if pointer is None:
            self._notices.say("put the cursor on a case first")
        elif (waiting := self._stepped(pointer)) is not None:
            item = self.state.by_id.get(pointer.case_id)
            self._places.show("step", waiting, pointer, item.name if item is not None else pointer.case_id)
        elif (made := self._runs.one_attempt(pointer)) is not None:
            request, entry = made
            request.step = True
            if run_requests.adds_to_shards(self.state.root, request):
                self._notices.say(LOOKED_AT)
                return

            def go() -> None:
                request.agreed = list(self._runs.plans.project.agreed)
                self._core.tasks.soon(self._begin_step(request, pointer, entry.name), opens=True)

            self._suites.trusted_first(request, go)

    def _stepped(self, pointer: CasePointer) -> str | None:
        """The run in which the case is being stepped through already."""
        for run in reversed(self.state.active):
            ref = run.find(pointer.case_id, pointer.agent) if run.info.stepped else None
            if ref is not None and any(row.state != "done" for row in run.attempts_of(ref)):
                return run.info.id
        return None

    async def _begin_step(self, request: RunRequest, pointer: CasePointer, name: str) -> None:
        left = await asyncio.to_thread(waiting_step, self.state.root, pointer.case_id, pointer.agent)
        if left is not None:
            self._front_run.go_back_to(left)
            self._places.show("step", left.name, pointer, name)
            return
        started = await self._core.engines.own.run(request)
        self._front_run.follow(started.folder, aside=True)
        screen = self._places.front
        if isinstance(screen, StepByStep) and screen.ended:
            self._places.pop()
        self._places.show("step", started.run_id, pointer, name)
