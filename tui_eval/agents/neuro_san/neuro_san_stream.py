"""What a neuro-san server streams for one request, message by message.

Which message is the answer, what is carried on and what is shown follow formats/neuro_san.md 5.
Invocation and result have no id in this protocol: they belong together by origin.
"""

from __future__ import annotations

import re
from typing import Any

from tui_eval.agents.base import AgentError
from tui_eval.agents.http.error_answers import fact_first, told_by_client
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.events import (
    Event,
    HandOff,
    Message,
    Note,
    Retrying,
    TextDelta,
    ToolCall,
    ToolResult,
    UsageReport,
)
from tui_eval.guard import figures
from tui_eval.model import Usage

TYPES = {
    0: "UNKNOWN_MESSAGE_TYPE",
    1: "SYSTEM",
    2: "HUMAN",
    4: "AI",
    100: "AGENT",
    101: "AGENT_FRAMEWORK",
    103: "AGENT_TOOL_RESULT",
    104: "AGENT_PROGRESS",
}
_NAMES = frozenset(TYPES.values())
RETRYING = "Retrying:"
_INSTEAD = re.compile(
    r"""\s*(?:Error\ from\ [^\n]+?:\s*)?(?:
        Agent\ stopped\ due\ to\ |
        Agent\ timed\ out:\ max_execution_seconds= |
        No\ fully-specified\ LLM\ found\ |
        LLM\ operation\ for\ this\ agent\ requires\ |
        Unable\ to\ create\ LLM\ from\ llm_config\b |
        A\ value\ for\ the\ [^\n]+\ environment\ variable\ must\ be\ correctly\ set\ in\ the\ neuro-san\b
    )""",
    re.VERBOSE,
)
"""What neuro-san 0.6.98 and 0.7.15 answer themselves where no model could: not the agent's words."""
_WRAPPING = re.compile(r"\s*(?:Error from [^\n]+?: )?(?:Agent stopped due to exception )?")
"""What stands before the fact in these words."""
_UNREACHABLE = re.compile(r"Agent/tool (\S+) was unreachable")
"""What it says of a network that another calls, before it goes on without."""
_FENCED = re.compile(r"\s*```json\s*(\{.*\})\s*```\s*", re.DOTALL)


def in_place_of_an_answer(text: str, front_man: str = "") -> bool:
    """Whether a reply is neuro-san's own word for what went wrong, as text or in its JSON form for errors.

    It puts `Error from FRONT_MAN:` also before a reply that has one of the network's `error_fragments` in it.
    """
    if text.startswith(RETRYING) or _INSTEAD.match(text):
        return True
    if front_man and text.startswith(f"Error from {front_man}: "):
        return True
    if fenced := _FENCED.fullmatch(text):
        try:
            return _formatted_error(decode(fenced[1]))
        except ValueError:
            return False
    return False


def _formatted_error(told: Any) -> bool:
    """Whether an object is what neuro-san's JSON form for errors (`error_formatter: json`) makes."""
    return isinstance(told, dict) and told.keys() - {"details"} == {"error", "tool"}


class NeuroSanStream:
    """Takes the lines of one answer. With `minimal_only` only messages that the filter MINIMAL would
    let through count as answers; the others are shown. With `reference` a line's own `type`, beside its
    `response`, stands for the message's, as in the tool's driver: as a name it is of no type that it knows."""

    def __init__(self, turn: int, minimal_only: bool = False, reference: bool = False) -> None:
        self.turn = turn
        self.reference = reference
        self.minimal_only = minimal_only
        self.text: Any = None
        self.structure: dict[str, Any] | None = None
        self.sly_data: dict[str, Any] | None = None
        self.chat_context: Any = {}
        self.answer_origin: list[Any] | None = None
        self.tokens: dict[str, Any] | None = None
        self.errors: list[str] = []
        self.answered = False
        self.unreachable: dict[str, None] = {}
        """Other networks that were to be called, and were not there."""
        self._shown: str | None = None
        self._invoked: dict[tuple[str, str], list[Any]] = {}
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._told: dict[str, str] = {}
        """What each agent said last."""

    @property
    def failure(self) -> str | None:
        """What the server says went wrong, where the answer is not one: an error line, or a text
        that reports the model's failure."""
        return None if (said := self._reported) is None else one_line(text_of(said))

    @property
    def fact(self) -> tuple[int | None, str]:
        """The same without what is wrapped around it, and the status with which the model's service refused."""
        said = self._reported
        if isinstance(said, str) and (fenced := _FENCED.fullmatch(said)):
            said = decode(fenced[1])
        text = text_of(said.get("error") if isinstance(said, dict) else said)
        if (refused := told_by_client(text)) is not None:
            return refused
        return None, one_line(_WRAPPING.sub("", text, 1)) or one_line(text)

    @property
    def _reported(self) -> str | dict[str, Any] | None:
        if self.errors:
            return self.errors[-1]
        text = self.text
        if isinstance(text, str) and in_place_of_an_answer(text, self._front_man):
            return text
        # A network with `structure_formats` hands its own JSON form for errors over as a structure.
        return self.structure if not text and _formatted_error(self.structure) else None

    @property
    def _front_man(self) -> str:
        """The name of the agent that answers, which any chat context names; empty where it does not."""
        context = self.chat_context
        histories = context.get("chat_histories") if isinstance(context, dict) else None
        history = histories[0] if isinstance(histories, list) and histories else None
        origin = history.get("origin") if isinstance(history, dict) else None
        return name_of(origin) if isinstance(origin, list) and len(origin) == 1 else ""

    @property
    def empty(self) -> bool:
        """Whether what was answered is no more than blanks: neither words nor a structure nor private data."""
        return not (text_of(self.text).strip() or self.structure is not None or self.sly_data)

    @property
    def said(self) -> str:
        """The answer, else what the front man had said last before the stream ended."""
        return text_of(self._shown if self.text is None else self.text)

    @property
    def usage(self) -> Usage | None:
        """Tokens of the whole network, where the server streamed them."""
        if self.tokens is None:
            return None
        return Usage(
            figures.count(self.tokens.get("prompt_tokens"), "input tokens"),
            figures.count(self.tokens.get("completion_tokens"), "output tokens"),
        )

    @property
    def cost(self) -> float | None:
        """USD; a server that has no price for the model says 0.0, which is no cost."""
        return figures.amount((self.tokens or {}).get("total_cost"), "cost") or None

    @property
    def model(self) -> str | None:
        """The model, where exactly one was used."""
        providers = (self.tokens or {}).get("models")
        if not isinstance(providers, dict):
            return None
        models = [name for used in providers.values() if isinstance(used, dict) for name in used]
        return models[0] if len(models) == 1 else None

    def take(self, line: Any) -> list[Event]:
        """One line; the events that it means.

        Raises:
            AgentError: a message of a type that the protocol does not have.
        """
        if not isinstance(line, dict):
            raise _no_message(line)
        if line.get("error") is not None:
            self.errors.append(one_line(text_of(line["error"])))
        message = line.get("response")
        if message is None and ("response" not in line or self.errors):
            return []
        if not isinstance(message, dict):
            raise _no_message(line)
        kind = message.get("type")
        outer = line.get("type") if self.reference else None
        if kind is None and outer is None:
            return []
        kind = TYPES.get(kind, kind) if isinstance(kind, int) else kind
        kind = kind if isinstance(kind, str) or kind is None else text_of(kind)
        counts = (TYPES.get(outer) if isinstance(outer, int) else None) if outer is not None else kind
        if kind not in _NAMES and outer is None:
            raise AgentError(
                f"the server sent a message of the unknown type {one_line(text_of(kind), 60)}",
                code="unreadable",
                said=f"message of the unknown type {one_line(text_of(kind), 60)}",
            )
        origin = message.get("origin")
        if counts in ("AI", "AGENT_FRAMEWORK"):
            self._candidate(counts, message, origin)
        origin = origin if isinstance(origin, list) else None
        return self._show(kind, message, origin or []) if kind in _NAMES else []

    def _candidate(self, kind: str, message: dict[str, Any], origin: Any) -> None:
        text, structure = message.get("text"), _object(message.get("structure"), "structure")
        context = message.get("chat_context")
        carries = kind == "AGENT_FRAMEWORK" and context is not None
        if carries:
            self.chat_context = context
            if "sly_data" in message:
                self.sly_data = _object(message["sly_data"], "sly data")
            # An answer may be nothing but what it hands back privately.
            self.answered = self.answered or bool(self.sly_data)
        if self.minimal_only and not carries:
            return
        # An origin that is no list is not the front man's, as for the tool's own client, which counts its letters.
        if isinstance(origin, list | dict | str) and len(origin) > 1:
            return
        if text is None and structure is None:
            return
        self.answered = True
        if isinstance(origin, list):
            self.answer_origin = origin
        if text is not None:
            self.text = text
            self.structure = structure
        else:
            self.structure = structure

    def _show(self, kind: str, message: dict[str, Any], origin: list[Any]) -> list[Event]:
        text = text_of(message.get("text"))
        if missed := _UNREACHABLE.match(text):
            self.unreachable[missed[1]] = None
        speaker = name_of(origin)
        sub = speaker if len(origin) > 1 else ""
        if kind == "SYSTEM" and len(self._waiting(origin)) > 1:
            return []  # what it is asked says which of the invocations it is
        if kind in ("SYSTEM", "HUMAN"):
            return self._begin(origin, None, text if kind == "HUMAN" else "")
        if kind in ("AI", "AGENT_FRAMEWORK"):
            events = self._begin(origin, None)
            if kind == "AI":
                events += self._never_begun(speaker, sub)
            if kind == "AGENT_FRAMEWORK" and text.startswith(RETRYING):
                return [*events, Retrying(fact_first(text.removeprefix(RETRYING)), 0.0)]
            if text and sub:
                self._told[sub] = text
                events.append(Message(text, sub))
            elif text and self._shown is None:
                self._shown = text
                events.append(TextDelta(text))
            elif text and text != self._shown and kind == "AI":
                # A message of its own, not more of the one before. The closing framework message
                # repeats the answer without its structure: the reply reports that.
                self._shown = text
                events.append(Message(text))
            return events
        structure = message.get("structure")
        structure = structure if isinstance(structure, dict) else {}
        if kind == "AGENT_TOOL_RESULT":
            return self._result(message, text)
        if kind == "AGENT_PROGRESS":
            return [*self._begin(origin, None), Note(text, sub)] if text else []
        if structure.get("invoking_start"):
            name = text_of(structure.get("invoked_agent_name"))
            self._invoked.setdefault((speaker, name), []).append(structure.get("params"))
            return []
        if structure.get("tool_start"):
            return self._begin(origin, structure)
        if structure.get("tool_end"):
            return [*self._begin(origin, structure), *self._end(origin, structure)]
        if "total_tokens" in structure:
            if len(origin) != 1:
                return []
            self.tokens = structure
            return [UsageReport(self.usage or Usage(), self.cost)]
        return [Note(text, sub)] if text else []

    def _waiting(self, origin: list[Any]) -> list[Any]:
        """The arguments of the invocations of a callee of this name that have not begun; other networks (`/a/b`) are
        invoked by a name that models can have (`__a__b`)."""
        if len(origin) < 2 or name_of(origin) in self._begun:
            return []
        caller, name = name_of(origin[:-1]), _tool(origin[-1])
        if (caller, name) in self._invoked or "/" not in name:
            return self._invoked.get((caller, name), [])
        safe = name.replace("/", "__")
        found = (key for key in self._invoked if key[0] == caller and key[1].startswith("__"))
        return next((self._invoked[key] for key in found if safe.endswith(key[1])), [])

    def _begin(self, origin: list[Any], tool: dict[str, Any] | None, asked: str = "") -> list[Event]:
        """The first sign of a callee says what the invocation before it was: a tool's start, or a
        hand-off to an agent that speaks for itself. `asked` is what such a one is asked."""
        if len(origin) < 2:
            return []
        callee = name_of(origin)
        if callee in self._begun:
            return []
        waiting = self._waiting(origin)
        self._begun.add(callee)
        agent = name_of(origin[:-1]) if len(origin) > 2 else ""
        name = _tool(origin[-1])
        given = (tool or {}).get("tool_args")
        if isinstance(given, dict):
            given = {key: value for key, value in given.items() if key not in ("origin", "origin_str")}
        arguments = _meant(waiting, given, asked)
        if tool is None or name.startswith("/"):
            return [HandOff(callee, agent, arguments)]
        return [ToolCall(self._id(callee), name, arguments, agent)]

    def _never_begun(self, caller: str, agent: str) -> list[Event]:
        """What an agent that answers had invoked and nothing else was told of, as calls whose arguments are refused."""
        events: list[Event] = []
        for key in [key for key in self._invoked if key[0] == caller]:
            for arguments in self._invoked.pop(key):
                said = one_line(encode(arguments).decode("utf-8", "replace"), 300)
                events.append(Note(f"called {key[1]} with {said}, which did not begin", agent))
        return events

    def _end(self, origin: list[Any], structure: dict[str, Any]) -> list[Event]:
        callee = name_of(origin)
        name = _tool(origin[-1]) if origin else ""
        if callee in self._ended or len(origin) < 2:
            return []
        self._ended.add(callee)
        output = structure.get("tool_output")
        if name.startswith("/"):  # a network of its own, of which nothing else may be told
            said = text_of(output)
            known = any(
                told == said for who, told in self._told.items() if f"{who}.".startswith(f"{callee}.")
            )
            return [] if known or not said else [Message(said, callee)]
        error = text_of(output) if structure.get("tool_error") else None
        agent = name_of(origin[:-1]) if len(origin) > 2 else ""
        return [ToolResult(self._id(callee), name, None if error is not None else output, error, agent)]

    def _result(self, message: dict[str, Any], text: str) -> list[Event]:
        """A callee's result as its caller got it; news only where nothing else reported the call."""
        origin = message.get("tool_result_origin")
        if not isinstance(origin, list) or len(origin) < 2:
            return []
        callee = name_of(origin)
        if callee in self._begun:
            return []
        begun = self._begin(origin, {})
        if begun and isinstance(begun[0], HandOff):
            return [*begun, Message(text, callee)]
        return [*begun, *self._end(origin, {"tool_output": text})]

    def _id(self, callee: str) -> str:
        return f"{self.turn}:{callee}"


def _meant(waiting: list[Any], given: Any, asked: str) -> Any:
    """The arguments of the invocation that has begun, which then waits no more: those that its start tells
    (`given`), or that what it is asked holds, else the first. A call that was refused waits before the right one."""
    if isinstance(given, dict):
        found = [
            place
            for place, one in enumerate(waiting)
            if isinstance(one, dict) and all(given.get(key) == value for key, value in one.items())
        ]
        return waiting.pop(found[0]) if found else given
    if not waiting:
        return None
    held = [_held(one, asked) for one in waiting] if asked else [0]
    return waiting.pop(held.index(max(held)))


def _held(arguments: Any, asked: str) -> int:
    """How much of what an agent is asked these arguments are; 0 where it does not hold all of them."""
    texts = [text_of(value) for value in arguments.values()] if isinstance(arguments, dict) else []
    return sum(map(len, texts)) if all(text in asked for text in texts) else 0


def _no_message(line: Any) -> AgentError:
    """For a line that is JSON and nothing of the protocol's."""
    said = one_line(encode(line).decode("utf-8", "replace"), 100)
    return AgentError(
        f"the server sent {said}, which is no message", code="unreadable", said=f"no message: {said}"
    )


def _object(value: Any, name: str) -> dict[str, Any] | None:
    """What the protocol has as an object; anything else is unknown, as other figures are that cannot be taken."""
    if value is None or isinstance(value, dict):
        return value
    figures.tell(name, value, "an object")
    return None


def name_of(origin: list[Any]) -> str:
    """An origin as people read it: tools joined by dots, `-02` for the second call of the same."""
    return ".".join(_display(part) for part in origin)


def _display(part: Any) -> str:
    index = part.get("instantiation_index") if isinstance(part, dict) else None
    return f"{_tool(part)}-{index:02d}" if isinstance(index, int) and index > 1 else _tool(part)


def _tool(part: Any) -> str:
    return text_of(part.get("tool")) if isinstance(part, dict) else text_of(part)
