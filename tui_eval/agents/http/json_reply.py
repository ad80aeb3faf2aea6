"""Replies of endpoints and programs of somebody's own: JSON or text, read by dotted paths."""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec

from tui_eval.agents.base import AgentError
from tui_eval.agents.http.error_answers import fact_first
from tui_eval.agents.loose_json import decode, one_line, text_of
from tui_eval.events import Event, TextDelta, ToolCall, ToolResult, UsageReport
from tui_eval.guard import figures
from tui_eval.model import Reply, Usage

TEXT_KEYS = ("reply", "answer", "output", "text", "response")
FACTS = (
    "escalated",
    "escalation_priority",
    "tools_used",
    "tool_call_count",
    "input_tokens",
    "output_tokens",
)
"""Facts about a reply that are taken where they stand beside it, not within a `metadata`: what an agent says of itself
must not count as "not reported"."""
_STEP = re.compile(r"[^.\[\]]+")
_INPUT = ("input_tokens", "prompt_tokens", "prompt", "input", "promptTokens", "inputTokens")
_OUTPUT = ("output_tokens", "completion_tokens", "completion", "output", "completionTokens", "outputTokens")
_CACHED = ("cached_tokens", "cached", "cache_read_input_tokens", "cachedTokens")
_ANTHROPICS = frozenset(("cache_read_input_tokens", "cache_creation_input_tokens"))
"""Where both stand there, `usage` is as Anthropic's API gives it: they are input, and no part of `input_tokens`."""
MISSING: Any = object()


class Paths(msgspec.Struct, frozen=True):
    """Where the parts of a reply are; None: under the usual names."""

    reply: str | None = None
    metadata: str | None = None
    tool_calls: str | None = None
    usage: str | None = None


def at_path(value: Any, path: str) -> Any:
    """What lies at `json.a.b[0]` (the leading `json` may be left out), or `MISSING`."""
    steps = _STEP.findall(path)
    if steps and steps[0] in ("json", "$") and not (isinstance(value, dict) and steps[0] in value):
        steps = steps[1:]
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


_NO_TEXT_OF_RESPONSES = re.compile(r"response\..*(?:reasoning|thinking|_call|arguments|audio\.delta).*")
"""Other pieces (`response.output_text.delta`, those of the Realtime API or of one's own) are text."""
_ASIDES = frozenset(
    (
        "reasoning-delta",  # the AI SDK
        "THINKING_TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK",  # AG-UI
        "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK", "STATE_DELTA", "ACTIVITY_DELTA",
    )
)  # fmt: skip


def is_aside(event: Any, path: str) -> bool:
    """Whether what an event of a known protocol's stream has at this path is no text of the answer: a thought, or a
    piece of a call's arguments, which stand where pieces of the text do (`json.delta`)."""
    if not isinstance(event, dict):
        return False
    kind = event.get("type")
    if isinstance(kind, str) and (kind in _ASIDES or _NO_TEXT_OF_RESPONSES.fullmatch(kind)):
        return True
    parent, _, last = path.rpartition(".")
    part = at_path(event, parent) if last == "text" else None
    return isinstance(part, dict) and part.get("thought") is True  # Gemini


def texts_of(events: Sequence[Any], path: str) -> tuple[list[Any], bool]:
    """What each event of a stream has at a path, and whether some said again what those before them had said.
    `MISSING` is what is no text of the answer, or stands in a later one, too: as words they would be judged twice."""
    found = [MISSING if is_aside(event, path) else at_path(event, path) for event in events]
    said: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        artifact, goes_on = _artifact_in(event)
        if artifact and not goes_on:
            for before in said.pop(artifact, ()):
                found[before] = MISSING
        if artifact:
            said.setdefault(artifact, []).append(place)
    places = [place for place, text in enumerate(found) if isinstance(text, str) and text]
    partial = bool(places) and all(_is_message_so_far(events[place]) for place in places)
    so_far = _is_so_far([found[place] for place in places], partial)
    again = places[:-1] if so_far else _said_again(events, found, places)
    for before in again:
        found[before] = MISSING
    return found, bool(again)


def _artifact_in(event: Any) -> tuple[str, bool]:
    """The artifact that an event of A2A's is about, and whether it goes on with what was said of it: without `append`
    it stands in the place of that."""
    for place in ("result", "result.artifactUpdate", "artifactUpdate"):
        told = at_path(event, place)
        if isinstance(told, dict) and ("taskId" in told or "contextId" in told):
            known = at_path(told, "artifact.artifactId")
            return (known if isinstance(known, str) else ""), told.get("append") is True
    return "", False


_LONG = 20
_STEPS = 3
_VARIED = 5
"""Characters that a text has at least, each counted once: pieces of a line of dashes, or of a laugh, are the beginnings
of each other."""


def _is_message_so_far(event: Any) -> bool:
    """Whether it is a message alone in a list, as in LangGraph's `messages/partial`; pieces have their facts beside."""
    only = event[0] if isinstance(event, list) and len(event) == 1 else None
    return isinstance(only, dict) and only.get("type") in ("ai", "AIMessageChunk")


def _is_so_far(texts: Sequence[str], named: bool) -> bool:
    """Whether each of these is the one before and more of it: of some length, growing several times, or where that is
    what these events are (`named`). Pieces are no beginnings of each other."""
    grown = [len(before) for before, text in pairwise(texts) if before != text]
    varied = bool(texts) and len(set(texts[-1])) >= _VARIED
    certain = named or (varied and (len(grown) >= _STEPS or (bool(grown) and grown[-1] >= _LONG)))
    return certain and all(text.startswith(before) for before, text in pairwise(texts))


def _said_again(events: Sequence[Any], found: Sequence[Any], places: Sequence[int]) -> list[int]:
    """The pieces that a later event has as a whole. Google's ADK says of the pieces that they are `partial`; of others
    only several that come to a text of some length are sure to be that."""
    again: list[int] = []
    pieces: list[int] = []
    size, all_partial = 0, True
    for place in places:
        text, partial = found[place], at_path(events[place], "partial") is True
        by_name = bool(pieces) and all_partial and not partial
        alike = by_name or (len(pieces) > 1 and size >= _LONG)
        same = alike and len(text) == size and text == "".join(found[one] for one in pieces)
        if same and (by_name or len(set(text)) >= _VARIED):
            again += pieces
            pieces, size, all_partial = [], 0, True
        else:
            pieces.append(place)
            size, all_partial = size + len(text), all_partial and partial
    return again


_ONE_OF_LIST = re.compile(r"\[(\d+)\]\.?")


def texts_beside(value: Any, path: str) -> int:
    """How many texts stand beside the one at a path into a list (`json.content[0].text`), where the answer may go on:
    Anthropic and Gemini give several where a model searches, or calls a tool."""
    beside = 0
    for found in _ONE_OF_LIST.finditer(path):
        listed = at_path(value, path[: found.start()])
        place, rest = int(found[1]), path[found.end() :]
        if not rest or not isinstance(listed, list):
            continue
        others = [one for index, one in enumerate(listed) if index != place and not is_aside(one, rest)]
        texts = [at_path(one, rest) for one in others]
        beside += sum(isinstance(text, str) and bool(text.strip()) for text in texts)
    return beside


def read_reply(value: Any, turn: int, paths: Paths, *, rows: bool = False) -> tuple[list[Event], Reply]:
    """The events and the reply that a JSON value (or plain text) means. `rows`: data was asked for, and an empty list
    is the rows of an empty result.

    Raises:
        AgentError: the reply is not where it should be, or the value says an error; with the reply, and what it took,
            beside it.
    """
    try:
        return _read(value, turn, paths, rows)
    except AgentError as error:
        error.spent = error.spent or spent_for(value, paths)
        raise


def spent_for(value: Any, paths: Paths) -> UsageReport | None:
    """What an answer says that it took, whatever it is; None where it says nothing of that."""
    beside = _beside(value) if isinstance(value, dict) else {}
    usage = _usage_of(_part(value, paths.usage, "usage"), beside)
    cost = figures.amount(value.get("cost"), "cost") if isinstance(value, dict) else None
    return None if usage is None and cost is None else UsageReport(usage or Usage(), cost)


def _read(value: Any, turn: int, paths: Paths, rows: bool) -> tuple[list[Event], Reply]:
    if isinstance(value, str) and paths.reply is None and not _encoded_twice(value):
        return _events(value), Reply(turn=turn, text=value)
    found = at_path(value, paths.reply) if paths.reply else _usual(value)
    if paths.reply is None and not rows and (how := _wrapped(value, found)):
        cure = "the object itself is read, else `reply` and `metadata` name where its parts are"
        said = f"{how}: {one_line(text_of(value), 200)}"
        raise AgentError(f"the answer is {said}; {cure}", code="unreadable", said=said)
    if isinstance(value, dict) and (said := failure(value, found, paths.reply)):
        answer = "" if found is MISSING or found is None else text_of(found)
        raise AgentError(one_line(said), answer=answer, code="reported", said=fact_first(said))
    if found is None:
        raise AgentError(
            f"the answer is null{f' at {paths.reply}' if paths.reply else ''}",
            code="no-field",
            said="null",
            place=paths.reply or "",
        )
    if found is MISSING:
        lacks = f"no {paths.reply}" if paths.reply else f"none of {', '.join(TEXT_KEYS)}"
        raise AgentError(
            f"the answer has {lacks}: {one_line(text_of(value), 200)}",
            code="no-field",
            said=one_line(text_of(value), 200),
            place=paths.reply or "a reply",
        )
    if found in ([], {}) and paths.reply is None and not rows:
        # Nothing that must not be said stands in it. Where the path says so, it is what was asked for.
        said = text_of(found)
        raise AgentError(
            f"the answer is {said} where its text should be", code="no-field", said=said, place="a reply"
        )
    reply = Reply(turn=turn, text=text_of(found), raw=value)
    if not isinstance(found, str):
        reply.output = found
    metadata = _part(value, paths.metadata, "metadata")
    if metadata is not None and not isinstance(metadata, dict):
        figures.tell("metadata", metadata, "an object")
    if paths.reply is None and isinstance(value, dict) and (beside := _beside(value)):
        metadata = beside | (metadata if isinstance(metadata, dict) else {})
    if isinstance(metadata, dict):
        reply.metadata = metadata
    usage = _part(value, paths.usage, "usage")
    reply.usage = _usage_of(usage, reply.metadata or {})
    _tell_uncounted(usage, reply)
    if isinstance(value, dict):
        for key in ("structure", "sly_data"):
            if isinstance(value.get(key), dict):
                setattr(reply, key, value[key])
        reply.cost = figures.amount(value.get("cost"), "cost")
        if isinstance(value.get("model"), str):
            reply.model = value["model"]
    listed = _part(value, paths.tool_calls, "tool_calls")
    if listed is None and paths.tool_calls is None:
        listed = _part(
            value, None, "toolCalls"
        )  # beside `toolName` and `promptTokens`, which the AI SDK writes, too
    if listed is not None and not _lists_calls(listed):
        figures.tell("tool calls", listed, "a list of names or objects")
    calls = tool_events(listed, turn)
    return [*calls, *_events(reply.text)], reply


_reading = json.JSONDecoder()
_PARTS = frozenset((*FACTS, "metadata", "tool_calls", "toolCalls", "usage"))
_LINE_OF_OBJECT = re.compile(r"(?m)^\{")
_LINE_ENDS = re.compile(r"[ \t\r]*(?:\n|\Z)")
_FENCE = re.compile(r"(?m)^ {0,3}(```|~~~)")
"""Begins or ends what is quoted."""
_UNREAD = 10
"""Lines that look like an object and are none, before no more are looked at: each may be read to the end."""
_LOOKED_AT = 1000
"""Objects that are looked at before the last one."""


def words_beside_json(text: str) -> str | None:
    """What stands around an object that has lines of its own, where that is a whole answer with facts beside its words:
    as words its facts would count as not reported. None where there is none; what is quoted (``` or ~~~) is none."""
    text = text.strip()
    fences = [found.start() for found in _FENCE.finditer(text)] if "```" in text or "~~~" in text else []
    place = unread = 0
    for _ in range(_LOOKED_AT):
        begins = _LINE_OF_OBJECT.search(text, place)
        if begins is None or unread == _UNREAD:
            break
        try:
            value, place = _reading.raw_decode(text, begins.start())
        except (ValueError, RecursionError):
            unread, place = unread + 1, begins.end()
            continue
        if (beside := _beside_answer(value, text, begins.start(), place, fences)) is not None:
            return beside or None
    start = text.rfind("\n{") + 1
    with suppress(ValueError, RecursionError):
        if start:
            value, end = _reading.raw_decode(text, start)
            return _beside_answer(value, text, start, end, fences) or None
    return None


_OF_PYTHON = 200_000
"""Characters that are read as Python."""
_OF_AI_SDK = ('f:{"messageId"', '0:"')
_PART = re.compile(r'[0-9a-z]:(?:".*"|\{.*\}|\[.*\])|')
"""A line of the AI SDK's data stream (its version 4): `0:` and a piece of the text, as JSON. The last may break off."""
_ALL_FENCED = re.compile(r"```(?:json)?[ \t]*\r?\n(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)


def written_otherwise(text: str) -> str:
    """How a text that is a whole answer with facts writes it, where that is not JSON alone: as Python prints
    a dict, or all of it in a fence, as models like to. As words its facts would count as not reported. Empty
    for any other text."""
    text = text.strip()
    value, how = None, ""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        if text.startswith("{'") and len(text) <= _OF_PYTHON:
            value, how = (
                ast.literal_eval(text),
                "a dict as Python prints it, not JSON (json.dumps writes that)",
            )
        elif text.startswith("[") and any(map(_facts, decode(text))):
            return _IN_A_LIST
        elif text.startswith(_OF_AI_SDK) and _is_data_stream(text.splitlines()):
            return "a data stream of the AI SDK, not its text as a whole"
        elif found := _ALL_FENCED.fullmatch(text):
            value, how = decode(found[1]), "JSON in a fence (```), not JSON alone"
        if isinstance(value, dict) and not (_PARTS.isdisjoint(value) or value.keys().isdisjoint(TEXT_KEYS)):
            return how
    return ""


def _is_data_stream(lines: list[str]) -> bool:
    *whole, last = lines
    if whole and not _PART.fullmatch(last):
        return all(map(_PART.fullmatch, whole)) and re.match(r"[0-9a-z]:|[0-9a-z]?$", last) is not None
    return all(map(_PART.fullmatch, lines))


def _beside_answer(
    value: dict[str, Any], text: str, start: int, end: int, fences: Sequence[int]
) -> str | None:
    """What stands around a whole answer with facts; None where this is none, quoted, or no line of its own."""
    if _PARTS.isdisjoint(value) or value.keys().isdisjoint(TEXT_KEYS):
        return None
    if bisect(fences, start) % 2 or (start and not _LINE_ENDS.match(text, end)):
        return None
    return text[:start].rstrip() or text[end:].strip()


def _wrapped(value: Any, found: Any) -> str:
    """What stands around an answer that says facts of itself, where those would count as not reported: `escalated:
    false` and every limit on calls and tokens would pass. Empty for any other answer."""
    if isinstance(value, str):
        return "JSON in a text of JSON, encoded twice"
    if isinstance(value, list):
        return _IN_A_LIST if any(map(_facts, value)) else ""
    beside = {name for part in _parts(value) for name in part}
    return "an object where its text should be, with facts in it" if _facts(found) - beside else ""


_IN_A_LIST = "a list with its object in it"


def _encoded_twice(text: str) -> bool:
    if not text.startswith("{"):
        return False
    with suppress(ValueError):
        value = decode(text)
        return bool(_facts(value)) and not value.keys().isdisjoint(TEXT_KEYS)
    return False


def _facts(value: Any) -> set[str]:
    """The facts that an object says of an answer, which another one would be judged without. By their values, too: a
    column of rows may be called `usage`."""
    return {
        name
        for part in _parts(value)
        for name, kinds in _KINDS.items()
        if (fact := part.get(name)) and isinstance(fact, kinds)
    }


_KINDS: dict[str, type | tuple[type, ...]] = {
    "escalated": bool,
    "escalation_priority": (str, int),
    "tools_used": (list, str),
    "tool_call_count": int,
    "input_tokens": int,
    "output_tokens": int,
    "tool_calls": list,
    "toolCalls": list,
    "usage": dict,
}


def _parts(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, dict):
        return []
    return [part for part in (value, value.get("metadata")) if isinstance(part, dict)]


_FAILED = ("error", "failed", "failure", "fail")
"""A `status` that is a failure's: JSend has `error` and `fail`, most have the others."""
_NOT_DONE = ("success", "ok")
_REASONS = ("message", "detail", "reason", "errors", "msg")


def failure(value: dict[str, Any], found: Any, path: str | None) -> str:
    """What an answer says went wrong, in its own words; empty where it says nothing of that.

    `success: false` beside what stands at a `reply` path that was named is a fact about that answer, not its absence.
    """
    if "jsonrpc" in value and (said := _failed_call(value, found, path)):
        return said
    if value.get("error") and not _asks_for(path, "error"):
        told = _message(value["error"])
        if told is not True:
            return text_of(told)
        name, shown = "error", "true"
    elif str(value.get("status")).lower() in _FAILED and not _asks_for(path, "status"):
        name, shown = "status", text_of(value["status"])
    else:
        absent = path is None or found is MISSING or found is None
        name = next((key for key in _NOT_DONE if absent and value.get(key) is False), "")
        shown = "false"
    if not name:
        return ""
    why = next((text_of(_message(value[key])) for key in _REASONS if value.get(key)), "")
    why = why or ("" if found is MISSING or found is None else text_of(found))
    return f"it reports {name} {shown}{f': {why}' if why else ''}"


_FAILED_TASKS = ("failed", "rejected", "canceled", "auth_required")


_OF_TASKS = frozenset(("kind", "contextId", "sessionId", "taskId", "artifacts", "history"))
"""What A2A's tasks have beside their status: that of an order, which an agent tells of, has none of it."""


def state_of_task(value: Any) -> str:
    """The state of A2A's task that an answer to a call (JSON-RPC) has, or tells of; empty: it has none."""
    if not isinstance(value, dict) or "jsonrpc" not in value:
        return ""
    for place in ("result", "result.task", "result.statusUpdate"):
        told = at_path(value, place)
        if isinstance(told, dict) and not _OF_TASKS.isdisjoint(told):
            state = at_path(told, "status.state")
            if isinstance(state, str):
                return state.lower().removeprefix("task_state_").replace("-", "_")
    return ""


def _failed_call(value: dict[str, Any], found: Any, path: str | None) -> str:
    """What the result of a call says went wrong: MCP's `isError`, and the state of A2A's task."""
    if _STEP.findall(path or "")[-1:] in (["isError"], ["state"]):
        return ""
    if at_path(value, "result.isError") is True:
        said = "isError true"
    elif (state := state_of_task(value)) in _FAILED_TASKS:
        said = f"state {state}"
    else:
        return ""
    why = "" if found is MISSING or found is None else text_of(found)
    return f"it reports {said}{f': {why}' if why else ''}"


def _asks_for(path: str | None, name: str) -> bool:
    """Whether the reply is what stands under this name itself."""
    steps = _STEP.findall(path or "")
    return name in steps[:1] or (steps[:1] in (["json"], ["$"]) and name in steps[1:2])


def tool_events(calls: Any, turn: int) -> list[Event]:
    """Tool calls as a reply lists them: names, or mappings with a name and perhaps more (chat
    completions' `{id, function: {name, arguments}}` too)."""
    events: list[Event] = []
    for index, call in enumerate(calls if isinstance(calls, list) else []):
        call_id = f"{turn}.{index + 1}"
        if isinstance(call, str):
            events.append(ToolCall(call_id, call))
            continue
        if not isinstance(call, dict):
            continue
        inner = call["function"] if isinstance(call.get("function"), dict) else call
        name = text_of(inner.get("name") or inner.get("tool") or inner.get("toolName"))
        call_id = text_of(call.get("id") or call.get("call_id") or call.get("toolCallId")) or call_id
        arguments = next((inner[key] for key in ("arguments", "args", "input") if key in inner), None)
        events.append(ToolCall(call_id, name, arguments))
        if "result" in call or "output" in call or call.get("error") is not None:
            error = call.get("error")
            result = call.get("result", call.get("output"))
            events.append(ToolResult(call_id, name, result, None if error is None else text_of(error)))
    return events


def usage_from(value: dict[str, Any]) -> Usage | None:
    """Token counts under the names that they usually have; None where there are none."""
    usage = Usage(
        _count(value, _INPUT, "input tokens"),
        _count(value, _OUTPUT, "output tokens"),
        _count(value, _CACHED, "cached tokens"),
    )
    return None if usage.input_tokens is None and usage.output_tokens is None else usage


def _usage_of(given: Any, metadata: dict[str, Any]) -> Usage | None:
    """The counts of a `usage`, and those that it lacks where the metadata has them."""
    usage = usage_from(given) if isinstance(given, dict) else None
    if usage is not None and given.keys() >= _ANTHROPICS and "input_tokens" in given:
        cached = [_count(given, (name,), name) for name in sorted(_ANTHROPICS)]
        usage.input_tokens = figures.total([usage.input_tokens, *cached], "input tokens")
    if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
        counted = usage.input_tokens + usage.output_tokens
        usage.output_tokens += figures.thought_beside(given, counted, declared=True)
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        beside = usage_from(metadata)
        if usage is None or beside is None:
            return usage or beside
        usage.input_tokens = beside.input_tokens if usage.input_tokens is None else usage.input_tokens
        usage.output_tokens = beside.output_tokens if usage.output_tokens is None else usage.output_tokens
    return usage


def _tell_uncounted(usage: Any, reply: Reply) -> None:
    """Say which counts a `usage` reports in a way that nobody can read: no limit on them may be kept by 0."""
    if usage is None or (isinstance(usage, dict) and not any(map(_says_tokens, usage, usage.values()))):
        return
    beside = usage_from(reply.metadata or {}) or Usage()
    found = reply.usage or Usage()
    for known, shown in (
        (found.input_tokens is not None or beside.input_tokens is not None, "input tokens"),
        (found.output_tokens is not None or beside.output_tokens is not None, "output tokens"),
    ):
        if not known:
            figures.tell(shown, usage, f"an object with {shown.replace(' ', '_')}")


def _says_tokens(name: Any, value: Any) -> bool:
    """Whether a key of `usage` tells of tokens that no name of ours stands for (`total_tokens`, `outputTokenCount`)."""
    lowered = str(name).lower()
    if value in (None, 0) or name in (*_INPUT, *_OUTPUT, *_CACHED):
        return False
    return "token" in lowered or lowered == "total"


def _lists_calls(listed: Any) -> bool:
    return isinstance(listed, list) and all(isinstance(call, str | dict) for call in listed)


def _count(value: dict[str, Any], names: tuple[str, ...], shown: str) -> int | None:
    for name in names:
        found = value.get(name)
        # `output` and its like may just as well be a text or an object: only what looks like a figure is one.
        figure = isinstance(found, int | float) and not isinstance(found, bool)
        if figure or (found is not None and name.lower().endswith("tokens")):
            return figures.count(found, shown)
    return None


def _beside(value: dict[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in FACTS if name in value}


def _usual(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return next((value[key] for key in TEXT_KEYS if value.get(key) is not None), MISSING)


def _part(value: Any, path: str | None, usual: str) -> Any:
    found = at_path(value, path or usual)
    return None if found is MISSING else found


def _message(error: Any) -> Any:
    return error.get("message", error) if isinstance(error, dict) else error


def _events(text: str) -> list[Event]:
    return [TextDelta(text)] if text else []
