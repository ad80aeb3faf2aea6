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
        """Give this run's orders to the engine that executes it, where that takes any, until the run ends."""
        from tui_eval.engine.service.client import EngineClient, EngineError

        client, name = EngineClient(self._state.root), run.info.id
        try:
            await client.attach(run.folder)
        except EngineError as error:
            if self._goes_on(run):
                self._notices.log("note", str(error))
                self.out_of_reach.add(name)
            return
        before = self._attached.pop(name, None)
        if self._goes_on(run):
            self._attached[name] = client
            self.out_of_reach.discard(name)
        else:
            await _leave(client)
        await _leave(before)

    async def leave(self, run: RunView) -> None:
        """It has ended: an engine that waits for nobody may end, and who goes on with this run may be another."""
        self.out_of_reach.discard(run.info.id)
        await _leave(self._attached.pop(run.info.id, None))

    async def close(self) -> None:
        """Leave the engines to themselves."""
        for client in [self._own, *self._attached.values()]:
            await _leave(client)

    def _goes_on(self, run: RunView) -> bool:
        """Whether it does as last heard of: it may have ended while its engine was looked for."""
        return (self._state.find_run(run.info.id) or run).active


async def _leave(client: EngineClient | None) -> None:
    if client is not None:
        with suppress(Exception):
            await client.close()
