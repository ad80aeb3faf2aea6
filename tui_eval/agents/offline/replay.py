"""An agent that answers as it did in a recorded run: for trying assertions without paying again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.loose_json import one_line
from tui_eval.config.project import AgentSpec
from tui_eval.events import (
    Event,
    Finished,
    HandOff,
    Message,
    Note,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolResult,
)
from tui_eval.guard import figures
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Attempt, Entry, Reply


class ReplayAgent(Agent):
    """One recorded run: `run` is its id, a prefix of it, its folder, or `last` (the default)."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, sly_data=True, structure=True)
    spends = False

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        self.run = Options(spec, services, frozenset({"run"})).text("run") or "last"

    async def open(self, context: SessionContext) -> Session:
        """Find what was recorded of the case.

        Raises:
            AgentError: there is no such run, or it has no finished attempt of this case.
            NeedsTrust: a file names a run outside the project.
        """
        recorded = self.services.recorded
        if recorded is None:
            raise AgentError("replay: recorded runs cannot be read here", code="not-recorded")
        try:
            attempt = await asyncio.to_thread(recorded, self.spec, self.run, context.case_id, context.attempt)
        except (AgentError, NeedsTrust):
            raise
        except Exception as error:
            raise AgentError(
                f"replay of run {self.run}: {one_line(str(error))}", code="not-recorded"
            ) from None
        if attempt is None:
            if self.run == "last":
                raise AgentError(
                    f"replay: no earlier run has an answer to {context.case_id}",
                    code="not-recorded",
                    said="no earlier run has an answer",
                )
            raise AgentError(
                f"replay: run {self.run} has no finished attempt of {context.case_id}",
                code="not-recorded",
                said=f"no finished attempt in {self.run}",
            )
        return ReplaySession(attempt)


class ReplaySession(Session):
    """One recorded attempt."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """What happened in this turn, without the waiting."""
        for entry in self.attempt.transcript:
            if entry.turn != request.turn:
                continue
            if entry.kind == "error":
                raise AgentError(
                    entry.error or entry.text or "the recorded attempt failed here", code="reported"
                )
            if entry.kind == "note" and figures.retell(entry.text):
                continue  # what was unknown then is unknown again, and noted at the end of the turn
            event = _event(entry)
            if event is not None:
                yield event
        replies = self.attempt.replies
        found = next((reply for reply in replies if reply.turn == request.turn), None)
        if found is None:
            # A conversation answered in one call has one reply, to its last turn.
            if not any(reply.turn > request.turn for reply in replies):
                raise AgentError(
                    f"replay: nothing was recorded for turn {request.turn}",
                    code="not-recorded",
                    said=f"nothing was recorded for turn {request.turn}",
                )
            found = Reply(turn=request.turn)
        yield Finished(msgspec.structs.replace(found))


def _event(entry: Entry) -> Event | None:
    if entry.kind == "assistant":
        return Message(entry.text, entry.agent) if entry.agent else TextDelta(entry.text)
    if entry.kind == "reasoning":
        return ReasoningDelta(entry.text, entry.agent)
    if entry.kind == "tool_call":
        return ToolCall(entry.call_id or "", entry.name, entry.arguments, entry.agent)
    if entry.kind == "tool_result":
        return ToolResult(entry.call_id or "", entry.name, entry.result, entry.error, entry.agent)
    if entry.kind == "hand_off":
        return HandOff(entry.name, entry.agent, entry.arguments)
    return Note(entry.text, entry.agent) if entry.kind == "note" else None
