"""What an agent reports while it answers, in the order it happens.

An agent's session yields these; the engine turns them into the live text that viewers follow and
into the transcript that is kept. A `python` agent may yield them too (`tui_eval.events`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from tui_eval.model import Exchange, Reply, Usage


class TextDelta(msgspec.Struct, tag="text"):
    """A piece of the reply's text. `agent` names a sub-agent where it is not the one addressed."""

    text: str
    agent: str = ""


class ReasoningDelta(msgspec.Struct, tag="reasoning"):
    """A piece of the model's thinking, never judged."""

    text: str
    agent: str = ""


class ToolCallStarted(msgspec.Struct, tag="tool_call_started"):
    """A tool call whose arguments are still arriving."""

    call_id: str
    name: str
    agent: str = ""


class ToolCall(msgspec.Struct, tag="tool_call"):
    """A tool call with its arguments complete (a JSON value; text where it is not JSON)."""

    call_id: str
    name: str
    arguments: Any = None
    agent: str = ""


class ToolResult(msgspec.Struct, tag="tool_result"):
    """The result of the call with the same `call_id`; `error` is its text where it failed."""

    call_id: str
    name: str
    result: Any = None
    error: str | None = None
    agent: str = ""


class HandOff(msgspec.Struct, tag="hand_off"):
    """`agent` hands the work to the agent `to`."""

    to: str
    agent: str = ""
    arguments: Any = None


class Message(msgspec.Struct, tag="message"):
    """A whole message of a sub-agent, as neuro-san streams them."""

    text: str
    agent: str = ""


class Note(msgspec.Struct, tag="note"):
    """Something worth knowing that is not part of the conversation; `for_person`: somebody is waited for."""

    text: str
    agent: str = ""
    for_person: bool = False


class Retrying(msgspec.Struct, tag="retrying"):
    """The request failed and is sent again in `seconds`; `reason` is short (`429`)."""

    reason: str
    seconds: float


class Held(msgspec.Struct, tag="held"):
    """The request waits `seconds` for the agent's `rate`; that time counts neither for the agent nor for a
    time limit."""

    seconds: float


class UsageReport(msgspec.Struct, tag="usage"):
    """Tokens used so far in this turn, replacing earlier reports of the same turn. Of the input `written`
    tokens went into a cache of the provider's, which has a price of its own. `cost_said`: the cost is what the server
    says, not what a price makes of the tokens."""

    usage: Usage
    cost: float | None = None
    written: int = 0
    cost_said: bool = False


class Exchanged(msgspec.Struct, tag="exchanged"):
    """One request and response as sent, for the Raw tab."""

    exchange: Exchange


class Finished(msgspec.Struct, tag="finished"):
    """The turn is over; always the last event of a turn."""

    reply: Reply


Event = (
    TextDelta
    | ReasoningDelta
    | ToolCallStarted
    | ToolCall
    | ToolResult
    | HandOff
    | Message
    | Note
    | Retrying
    | Held
    | UsageReport
    | Exchanged
    | Finished
)
