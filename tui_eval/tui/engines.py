"""The engines that execute runs: the app's own, and those that a run opened here is executed by."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tui_eval.tui.notices import Notices
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.runs.run_view import RunView

if TYPE_CHECKING:
    from tui_eval.engine.service.client import EngineClient


class Engines:
    """Made as they are needed: the first paint does not wait for the client's modules."""

    def __init__(self, state: AppState, notices: Notices, own: EngineClient | None = None) -> None:
        self._state, self._notices = state, notices
        self._own = own
        self._attached: dict[str, EngineClient] = {}
        self.out_of_reach: set[str] = set()
        """Runs that another program executes, which takes no orders."""

    @property
    def own(self) -> EngineClient:
        """The engine of this app."""
        if self._own is None:
            from tui_eval.engine.service.client import EngineClient

            self._own = EngineClient(self._state.root)
        return self._own

    def of(self, run: RunView) -> EngineClient:
        """The engine that executes this run: ours, or the one attached to."""
        return self._attached.get(run.info.id, self.own)

    def reaches(self, run: RunView) -> bool:
        """Whether this run can be given orders; says so where it cannot."""
        if run.info.id not in self.out_of_reach:
            return True
        self._notices.say("this run is executed by another program (`tui-eval run`): stop it there")
        return False

    async def attach(self, run: RunView) -> None:
        """Give this run's orders to the engine that executes it, where that takes any."""
        from tui_eval.engine.service.client import EngineClient, EngineError

        client = EngineClient(self._state.root)
        try:
            await client.attach(run.folder)
        except EngineError as error:
            self._notices.log("note", str(error))
            self.out_of_reach.add(run.info.id)
            return
        self._attached[run.info.id] = client

    async def close(self) -> None:
        """Leave the engines to themselves."""
        for client in [self._own, *self._attached.values()]:
            if client is not None:
                with suppress(Exception):
                    await client.close()
