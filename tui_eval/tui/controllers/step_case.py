"""A case run one turn at a time."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tui_eval.engine.request import RunRequest
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.controllers.runs import RunController
from tui_eval.tui.handlers import Handler
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.services import Core, PlaceStack


@runtime_checkable
class StepByStep(Protocol):
    """A screen on which a case is run step by step."""

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        ...


class StepController:
    """`b`."""

    def __init__(self, core: Core, places: PlaceStack, runs: RunController, front: FrontRun) -> None:
        self._core, self._places, self._runs, self._front = core, places, runs, front
        self._notices = core.notices

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"case.step": self.step}

    def step(self) -> None:
        """Run the case one turn at a time."""
        pointer = self._places.pointer()
        made = self._runs.one_attempt(pointer) if pointer is not None else None
        if pointer is None or made is None:
            if pointer is None:
                self._notices.say("put the cursor on a case first")
            return
        request, entry = made
        request.step = True
        self._core.tasks.soon(self._begin_step(request, pointer, entry.name), opens=True)

    async def _begin_step(self, request: RunRequest, pointer: CasePointer, name: str) -> None:
        started = await self._core.engines.own.run(request)
        self._front.follow(started.folder, aside=True)
        screen = self._places.front
        if isinstance(screen, StepByStep) and screen.ended:
            self._places.pop()
        self._places.show("step", started.run_id, pointer, name)
