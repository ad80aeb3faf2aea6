"""An agent that answers nothing: what passes against it proves nothing (`tui-eval check --vacuous`)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tui_eval.agents.base import Agent, Capabilities, Request, Session, SessionContext
from tui_eval.events import Event, Finished
from tui_eval.model import Reply, Usage


class SilentAgent(Agent):
    """Can report everything, and has nothing to report."""

    capabilities = Capabilities(
        tokens=True,
        tools=True,
        metadata=True,
        sly_data=True,
        structure=True,
        guardrails=False,
        finish_reason=False,
    )

    async def open(self, context: SessionContext) -> Session:
        """Begin; there is nothing to connect to."""
        return SilentSession()


class SilentSession(Session):
    """An empty reply to every turn."""

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Answer with nothing."""
        yield Finished(Reply(turn=request.turn, usage=Usage(0, 0, 0), cost=0.0, latency_ms=0.0))
