"""An agent that answers with what it was asked: for trying suites, and promptfoo's `echo`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tui_eval.agents.base import (
    OF_ITS_OWN_FORM,
    Agent,
    Capabilities,
    Request,
    Services,
    Session,
    SessionContext,
)
from tui_eval.agents.entry_options import Options
from tui_eval.agents.loose_json import text_of
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Finished, TextDelta
from tui_eval.model import Reply, Usage

# -- An agent that answers nothing: what passes against it proves nothing (`tui-eval check --vacuous`).


class SilentAgent(Agent):
    """Can report everything, and has nothing to report."""

    capabilities = OF_ITS_OWN_FORM

    async def open(self, context: SessionContext) -> Session:
        """Begin; there is nothing to connect to."""
        return SilentSession()


class SilentSession(Session):
    """An empty reply to every turn."""

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Answer with nothing."""
        yield Finished(Reply(turn=request.turn, usage=Usage(0, 0, 0), cost=0.0, latency_ms=0.0))


class EchoAgent(Agent):
    """Costs nothing, takes no time."""

    capabilities = Capabilities(
        tokens=True,
        tools=True,
        metadata=True,
        sly_data=True,
        calls_in_metadata=True,
        guardrails=False,
        finish_reason=False,
    )

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        self.prefix = Options(spec, services, frozenset({"prefix"})).text("prefix") or ""

    async def open(self, context: SessionContext) -> Session:
        """Begin; there is nothing to connect to."""
        return EchoSession(self.prefix)


class EchoSession(Session):
    """Repeats, after `prefix`."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Answer with the message (a whole conversation as JSON, as promptfoo's echo does)."""
        text = self.prefix + (request.text if request.text is not None else _conversation(request.messages))
        if text:
            yield TextDelta(text)
        usage = Usage(input_tokens=0, output_tokens=0)
        reply = Reply(
            turn=request.turn, text=text, sly_data=request.sly_data, usage=usage, cost=0.0, latency_ms=0.0
        )
        yield Finished(reply)


def _conversation(messages: list[Any] | None) -> str:
    if not messages:
        return ""
    return messages[-1] if isinstance(messages[-1], str) else text_of(messages)
