"""A recorded transcript as the messages of a protocol, so that a conversation can go on from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tui_eval.agents.loose_json import encode, text_of
from tui_eval.model import Entry, Reply


def with_metadata(entries: Sequence[Entry], replies: Sequence[Reply]) -> list[Entry]:
    """The entries with each reply's metadata at the end of its text, where it was cut off: without it in what it said
    before, a model says none from there on."""
    told = {reply.turn: reply.metadata for reply in replies if reply.metadata}
    found = list(entries)
    for at, entry in reversed(list(enumerate(entries))):
        if entry.kind == "assistant" and not entry.agent and entry.text and entry.turn in told:
            block = encode(told.pop(entry.turn)).decode()
            found[at] = msgspec.structs.replace(entry, text=f"{entry.text}\n```json\n{block}\n```")
    return found


def chat_messages(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """OpenAI's chat messages. Calls whose result was not recorded are left out, as no server takes them;
    so are reasoning, notes, what sub-agents said and blank texts, which Anthropic's API refuses."""
    messages: list[dict[str, Any]] = []
    for group in _groups(entries):
        first = group[0]
        if first.kind == "user":
            messages.append({"role": "user", "content": first.text})
        elif first.kind == "assistant":
            messages.append({"role": "assistant", "content": first.text})
        else:
            calls = [
                {
                    "id": entry.call_id,
                    "type": "function",
                    "function": {"name": entry.name, "arguments": _written(entry.arguments)},
                }
                for entry in group
                if entry.kind == "tool_call"
            ]
            if messages and messages[-1]["role"] == "assistant" and "tool_calls" not in messages[-1]:
                messages[-1]["tool_calls"] = calls
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages.extend(
                {"role": "tool", "tool_call_id": entry.call_id, "content": _result(entry)}
                for entry in group
                if entry.kind == "tool_result"
            )
    return messages


def anthropic_messages(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Anthropic's messages; the same is left out."""
    messages: list[dict[str, Any]] = []
    for group in _groups(entries):
        first = group[0]
        if first.kind in ("user", "assistant"):
            messages.append({"role": first.kind, "content": first.text})
            continue
        uses = [
            {"type": "tool_use", "id": entry.call_id, "name": entry.name, "input": _given(entry.arguments)}
            for entry in group
            if entry.kind == "tool_call"
        ]
        if messages and messages[-1]["role"] == "assistant":
            said = messages[-1]["content"]
            messages[-1]["content"] = [{"type": "text", "text": said}, *uses]
        else:
            messages.append({"role": "assistant", "content": uses})
        messages.append(
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": entry.call_id,
                        "content": _result(entry),
                        **({"is_error": True} if entry.error is not None else {}),
                    }
                    for entry in group
                    if entry.kind == "tool_result"
                ],
            }
        )
    return messages


def _groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """One user or assistant text each, or a round of calls with all of their results."""
    answered = {entry.call_id for entry in entries if entry.kind == "tool_result" and entry.call_id}
    called = {entry.call_id for entry in entries if entry.kind == "tool_call" and entry.call_id}
    groups: list[list[Entry]] = []
    for entry in entries:
        if entry.agent or (entry.kind == "assistant" and not entry.text.strip()):
            continue
        if entry.kind in ("user", "assistant"):
            groups.append([entry])
        elif entry.kind == "tool_call" and entry.call_id in answered:
            # A round ends where a text or, after results, another call begins.
            if groups and groups[-1][-1].kind == "tool_call":
                groups[-1].append(entry)
            else:
                groups.append([entry])
        elif entry.kind == "tool_result" and entry.call_id in called and groups:
            target = next((g for g in reversed(groups) if any(e.call_id == entry.call_id for e in g)), None)
            if target is not None:
                target.append(entry)
    return groups


def _written(arguments: Any) -> str:
    """Arguments as a model wrote them: those that are no JSON, as of a call that was cut off, are kept as a text."""
    return "{}" if arguments is None else text_of(arguments)


def _given(arguments: Any) -> Any:
    """Arguments as Anthropic's API takes them: as an object. Those of a call that was cut off are none."""
    return arguments if isinstance(arguments, dict) else {}


def _result(entry: Entry) -> str:
    return entry.error if entry.error is not None else text_of(entry.result)
