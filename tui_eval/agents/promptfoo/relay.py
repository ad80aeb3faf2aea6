"""promptfoo providers that speak to another one: `sequence` and `promptfoo:simulated-user`.

The provider of the column is the target; a test's own `provider` relays to it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.loose_json import decode, text_of
from tui_eval.agents.promptfoo.promptfoo_files import SettingsFiles
from tui_eval.agents.promptfoo.promptfoo_request import filled
from tui_eval.agents.promptfoo.provider_response import prompt_of
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import Event, Finished, Message, TextDelta, UsageReport
from tui_eval.guard import figures
from tui_eval.model import Reply, Usage

STOP = "###STOP###"
SEPARATOR = "\n---\n"
TURNS = 10
_PLAY = (
    "You play a person who talks to an assistant. Stay in the role that the instructions give you, write "
    "only your next message, in the person's own words, and never more than the instructions let the "
    f"person know. When the person's goal is reached, or cannot be, answer with {STOP} alone.\n\n"
    "Instructions:\n"
)


class RelayAgent(Agent):
    """What both have: the target, made by the engine."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"target", "config"}))
        self.config = options.mapping("config")
        target = options.mapping("target")
        if not target or services.agent is None:
            raise ConfigError(
                f"provider {spec.name}: it speaks to the provider of the column; name one under providers "
                "and this one as the test's `provider`"
            )
        self.target = services.agent(msgspec.convert(target, AgentSpec))
        self.spends = self.target.spends
        by_metadata = self.target.capabilities.calls_in_metadata
        self.capabilities = msgspec.structs.replace(self.capabilities, calls_in_metadata=by_metadata)

    def is_told_case(self) -> bool:
        """As the target is."""
        return self.target.is_told_case()

    @property
    def preparing(self) -> str:
        """What the target does."""
        return self.target.preparing

    async def prepare(self, tell: Callable[[str], None] | None) -> None:
        """Let the target do what comes before an attempt."""
        await self.target.prepare(tell)

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation with the target."""
        return self._session(context, await self.target.open(context))

    def _session(self, context: SessionContext, target: Session) -> Session:
        raise NotImplementedError


class SequenceAgent(RelayAgent):
    """Sends `config.inputs` one after the other; the answers are joined by `config.separator`."""

    def _session(self, context: SessionContext, target: Session) -> Session:
        return SequenceSession(self, context, target)


class SimulatedUserAgent(RelayAgent):
    """A model plays the user for up to `config.maxTurns` turns; the dialogue is the answer."""

    def _session(self, context: SessionContext, target: Session) -> Session:
        return SimulatedUserSession(self, context, target)


class _RelaySession(Session):
    def __init__(self, agent: RelayAgent, context: SessionContext, target: Session) -> None:
        self.agent = agent
        self.context = context
        self.target = target
        self.usage: Usage | None = None
        self.cost: float | None = None

    async def _asked(self, request: Request, told: list[Reply]) -> AsyncIterator[Event]:
        """The target's events but the last, whose reply goes to `told`. What they say to be spent is what all
        requests have taken: of the row there is one turn, also where it does not come to its end."""
        try:
            async for event in self.target.send(request):
                if isinstance(event, Finished):
                    told.append(event.reply)
                    self._add(event.reply)
                    if self.usage is not None or self.cost is not None:
                        yield UsageReport(self.usage or Usage(), self.cost)
                elif isinstance(event, UsageReport):
                    yield self._with(event)
                elif not isinstance(event, TextDelta):
                    yield event
        except AgentError as error:
            error.spent = error.spent and self._with(error.spent)
            raise

    def _with(self, more: UsageReport) -> UsageReport:
        """What was spent before a request, and on it so far."""
        return UsageReport(
            figures.usage_sum([self.usage, more.usage]) or more.usage,
            figures.total_amount([self.cost, more.cost], "cost of all requests"),
        )

    def _add(self, reply: Reply) -> None:
        figures.reply(reply)
        self.cost = figures.total_amount([self.cost, reply.cost], "cost of all requests")
        if reply.usage is not None:
            used = Usage(reply.usage.input_tokens, reply.usage.output_tokens)
            self.usage = figures.usage_sum([self.usage, used])

    def _reply(self, request: Request, text: str, metadata: dict[str, Any], began: float) -> Reply:
        return Reply(
            turn=request.turn,
            text=text,
            metadata=metadata,
            usage=self.usage,
            cost=self.cost,
            latency_ms=round((time.monotonic() - began) * 1000, 1),
        )

    async def close(self) -> None:
        """End the conversation with the target."""
        await self.target.close()


class SequenceSession(_RelaySession):
    """One row: each input is a message of its own to the target."""

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send every input."""
        began = time.monotonic()
        config = self.agent.config
        inputs = config.get("inputs")
        if not isinstance(inputs, list) or not inputs:
            raise AgentError("sequence: config.inputs must be a list of texts", code="bad-setting")
        values = {**(request.vars or self.context.vars), "prompt": prompt_of(request)}
        outputs: list[str] = []
        for given in inputs:
            text = filled(text_of(given), values)
            yield Message(text, agent="user")
            told: list[Reply] = []
            asked = Request(turn=request.turn, text=text, vars=request.vars)
            self.target.restart()  # each input is asked by itself
            async for event in self._asked(asked, told):
                yield event
            outputs.append(told[-1].text if told else "")
            yield Message(outputs[-1])
        text = str(config.get("separator", SEPARATOR)).join(outputs)
        yield Finished(self._reply(request, text, {}, began))


class SimulatedUserSession(_RelaySession):
    """One row: a dialogue between the model that plays the user and the target."""

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Play the dialogue to its end."""
        began = time.monotonic()
        ask = self.agent.services.ask_model
        if ask is None:
            raise AgentError(
                "promptfoo:simulated-user: a model must play the user; write `judge:` into tui_eval.yaml or "
                "give --judge NAME",
                code="bad-setting",
            )
        config = self.agent.config
        values = dict(request.vars or self.context.vars)
        instructions = filled(str(config.get("instructions") or "{{instructions}}"), values)
        most = config.get("maxTurns")
        most = int(most) if figures.is_finite(most) and most >= 1 else TURNS
        dialogue = self._opening(config, values)
        # A dialogue that begins with what the user said is answered first; that is none of the turns.
        turns = most + 1 if dialogue and dialogue[-1]["role"] == "user" else most
        stopped, reply = "", None
        for _ in range(turns):
            if not dialogue or dialogue[-1]["role"] != "user":
                said = await ask(_PLAY + instructions, _shown(dialogue))
                if STOP in said:
                    stopped = "the user's goal was reached"
                    break
                dialogue.append({"role": "user", "content": said.strip()})
            yield Message(dialogue[-1]["content"], agent="user")
            told: list[Reply] = []
            sent = self._sent(request, dialogue, values)
            asked = Request(turn=request.turn, text=None, messages=sent, vars=values)
            async for event in self._asked(asked, told):
                yield event
            reply = told[-1] if told else None
            answer = reply.text if reply is not None else ""
            if reply is not None and (reply.metadata or {}).get("sessionId"):
                values["sessionId"] = (reply.metadata or {})["sessionId"]
            dialogue.append({"role": "assistant", "content": answer})
            yield Message(answer)
        names = {"assistant": "Assistant"}
        text = SEPARATOR.join(f"{names.get(each['role'], 'User')}: {each['content']}" for each in dialogue)
        metadata = {"messages": dialogue, "stopReason": stopped or f"{most} turns"}
        if values.get("sessionId"):
            metadata["sessionId"] = values["sessionId"]
        whole = self._reply(request, text, metadata, began)
        whole.guardrails = reply.guardrails if reply is not None else None
        yield Finished(whole)

    def _sent(
        self, request: Request, dialogue: list[dict[str, str]], values: dict[str, Any]
    ) -> list[dict[str, str]]:
        """What the target gets: the prompt and the whole dialogue; a `stateful` one only what is new."""
        prompt = prompt_of(request)
        system = [{"role": "system", "content": prompt}] if prompt.strip() else []
        if self.agent.config.get("stateful") is not True:
            return [*system, *dialogue]
        return [*([] if values.get("sessionId") else system), dialogue[-1]]

    def _opening(self, config: dict[str, Any], values: dict[str, Any]) -> list[dict[str, str]]:
        """`initialMessages` of the vars or the provider: a list, its JSON, or a file of either."""
        given = values.get("initialMessages") or config.get("initialMessages")
        if isinstance(given, str) and given.startswith("file://"):
            base = Path(self.agent.spec.base) if self.agent.spec.base else self.agent.services.root
            files = SettingsFiles(self.agent.services, base, f"provider {self.agent.spec.name}: config")
            try:
                given = files.filled_in(given, "initialMessages")
            except ConfigError as error:
                raise AgentError(str(error), code="bad-setting") from None
        elif isinstance(given, str) and given.strip():
            try:
                given = decode(given)
            except ValueError:
                raise AgentError(
                    "promptfoo:simulated-user: initialMessages is neither a list nor JSON", code="bad-setting"
                ) from None
        return [
            {"role": role, "content": filled(message["content"], values)}
            for message in (given if isinstance(given, list) else [])
            if isinstance(message, dict) and isinstance(message.get("content"), str)
            if (role := filled(text_of(message.get("role")), values)) in ("user", "assistant", "system")
        ]


def _shown(dialogue: list[dict[str, str]]) -> str:
    if not dialogue:
        return "The conversation begins: write the person's first message."
    lines = "\n".join(f"{message['role']}: {message['content']}" for message in dialogue)
    return f"<conversation>\n{lines}\n</conversation>\nWrite the person's next message."
