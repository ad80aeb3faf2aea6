"""What agents that are a model share: whose prices count, and one request, its events as they come and its
record whatever becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tui_eval.agents.base import Agent, AgentError, Capabilities, Services, SessionContext
from tui_eval.agents.entry_options import names_code, place
from tui_eval.agents.http.http_call import HttpCall
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import one_line, split_metadata, unread_metadata
from tui_eval.agents.models import prices
from tui_eval.agents.models.tool_loop import Toolbox
from tui_eval.agents.promptfoo import promptfoo_models
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Note, UsageReport
from tui_eval.guard import figures
from tui_eval.model_ids import plain_name

if TYPE_CHECKING:
    from tui_eval.agents.programs.suite_scripts import MadeTools


class ModelAnswer(Protocol):
    """What a protocol makes of a body; `text` is what was said so far."""

    @property
    def text(self) -> str: ...

    def take(self, call: HttpCall) -> AsyncIterator[list[Event]]:
        """Read the opened call to its end; the events of each piece."""
        ...


class ModelAgent(Agent):
    """A model of a provider, with the tools that its entry gives it. Under promptfoo's rules only what
    promptfoo knows the price of has one."""

    provider: ClassVar[str]
    """What stands before the model's name in ids."""
    capabilities = Capabilities(tokens=True, tools=True)
    keeps_pace = True
    model: str | None
    toolbox: Toolbox
    made: MadeTools | None
    promptfoo: bool
    own_price: prices.OwnPrice | None

    @classmethod
    def reported(cls, spec: AgentSpec) -> Capabilities:
        return Capabilities(tokens=True, tools=True, metadata=spec.options.get("metadata") is not None)

    @property
    def preparing(self) -> str:
        return self.toolbox.preparing or ("loading tools" if self.made is not None else "")

    def priced(self, context: SessionContext, told: UsageReport, model: str | None) -> float | None:
        """See `Agent.priced`."""
        own = context.model or self.model
        asked = plain_name(own, self.provider) if own else model
        known = not (self.promptfoo and context.reference) or promptfoo_models.is_priced(asked or "")
        costs = self.services.prices
        return prices.cost_of(model, asked, told.usage, costs, self.own_price, told.written, priced=known)


def made_tools(parameters: Mapping[str, Any], spec: AgentSpec, services: Services) -> MadeTools | None:
    """The tools of a model where functions of the suite give some of them (`tools: file://tools.py:get_tools`).

    Raises:
        AgentError: there is no such file.
        NeedsTrust: the folder is not trusted.
    """
    tools = parameters.get("tools")
    listed = tools if isinstance(tools, list) else [tools]
    if not any(isinstance(one, str) and names_code(one) for one in listed):
        return None
    from tui_eval.agents.programs.suite_scripts import MadeTools  # read late: few suites have some

    return MadeTools(tools, spec, services)


def chosen_model(spec: AgentSpec, own: str | None, context: SessionContext) -> str:
    """The model of a conversation: what is asked for on the command line, or the agent's `own`.

    Raises:
        AgentError: there is none.
    """
    model = context.model or own
    if not model:
        raise no_model(spec)
    return model


def no_model(spec: AgentSpec, how: str = "give one with -m") -> AgentError:
    """The error of an agent without a model; `how` says what to do."""
    said = "model is missing"
    return AgentError(f"{place(spec, 'model')}: is missing; {how}", code="bad-setting", said=said)


def too_many_steps(most: int, answer: str) -> AgentError:
    """The error of a turn in which a model called tools so often; `answer` is what it said last."""
    return AgentError(
        f"no answer after {most} steps of tool calls (max_steps)",
        answer=answer,
        code="too-many-steps",
        limit=most,
    )


def no_json(item: bytes | str, url: str, answer: str) -> AgentError:
    """For a part of an answer that is not JSON; `answer` is what had come before it."""
    said = one_line(item if isinstance(item, str) else item[:1000].decode("utf-8", "replace"), 200)
    return AgentError(
        f"{url} sent something that is not JSON: {said}",
        answer=answer,
        code="unreadable",
        said=f"no JSON: {said}",
        place=place_of(url),
    )


async def asked(call: HttpCall, answer: ModelAnswer) -> AsyncIterator[Event]:
    """Send the call and read its answer; the last event is the record of both.

    Raises:
        AgentError: there is none, or no whole one; with what was said before.
    """
    try:
        async for event in call.open():
            yield event
        async for events in answer.take(call):
            for event in events:
                yield event
    except (asyncio.CancelledError, AgentError) as error:
        if call.unreported:
            yield call.exchanged("failed")
        if isinstance(error, AgentError):
            error.answer = error.answer or answer.text or call.heard
        raise
    finally:
        await call.close()
    yield call.exchanged()


def uncounted(counted: Sequence[bool]) -> list[Note]:
    """A note on the requests of a turn that did not say their tokens, where others did: a sum of the rest would be
    taken for that of all."""
    silent = counted.count(False)
    if not silent or silent == len(counted):
        return []
    return [Note(f"{silent} of {len(counted)} requests did not say their tokens, which count as 0")]


def metadata_of(text: str, carries: str | None, told: list[Any]) -> tuple[str, dict[str, Any] | None]:
    """A reply's text and metadata; `carries` says where its metadata is (`json`: at the end of the text),
    `told` are the arguments of the calls that report it. What cannot be read there is unknown, not left out:
    an assertion that it was left out would pass."""
    if carries == "json":
        from tui_eval.agents.http.json_reply import FACTS  # read late: few agents have it so

        text, found = split_metadata(text)
        if found is None and (unread := unread_metadata(text, FACTS)):
            figures.tell("metadata", unread, "a fenced object at the end of the reply")
        return text, found
    if told and not isinstance(told[-1], dict):
        figures.tell("metadata", told[-1], "an object")
    return text, next((one for one in reversed(told) if isinstance(one, dict)), None)
