"""A conversation that took place, as what a new case is written from; what is worth expecting of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tui_eval.formats.nao.accept_nao import agents_sql
from tui_eval.model import Attempt, Case
from tui_eval.yaml.yaml_edit import EditError

_MOST_FACTS = 3
_LONGEST_FACT = 80


class SavedCall(NamedTuple):
    """One tool call."""

    name: str
    arguments: Any


class SavedReply(NamedTuple):
    """One turn: what was asked and answered."""

    asked: str
    answered: str


class Talk(NamedTuple):
    """A conversation to be saved. `connection` is neuro-san's, `sql` the agent's own query."""

    name: str
    agent: str
    turns: list[SavedReply]
    calls: list[SavedCall]
    sql: str | None = None
    connection: str | None = None
    database: str | None = None


def talk_of(case: Case, attempt: Attempt, name: str = "") -> Talk:
    """The conversation of a recorded (or stepped) attempt.

    Raises:
        EditError: nothing was asked, or nothing answered.
    """
    last = len(case.turns) if case.format != "promptfoo" else None
    turns: list[SavedReply] = []
    for reply in attempt.replies:
        if last is not None and reply.turn > last:
            continue  # what was asked for the rows afterwards
        asked = [e.text for e in attempt.transcript if e.kind == "user" and e.turn == reply.turn]
        messages = _chat(asked[-1]) if asked else None
        if messages is not None:
            asked = messages
        turns += [SavedReply(text, "") for text in asked[:-1]]
        turns.append(SavedReply(asked[-1] if asked else "", reply.text))
    if not turns or not turns[-1].answered:
        raise EditError("there is no answered conversation to save")
    if not any(turn.asked.strip() for turn in turns):
        raise EditError("the conversation has no message of a user")
    calls = [SavedCall(e.name, e.arguments) for e in attempt.transcript if e.kind == "tool_call" and e.name]
    agent = case.agent if case.format == "neuro_san" and case.agent else attempt.agent
    return Talk(
        name or f"{case.name} (saved)", agent or case.agent or "my_agent", turns, calls,
        agents_sql(attempt), case.connection, case.database,
    )  # fmt: skip


def _chat(text: str) -> list[str] | None:
    """The user's texts of a prompt that is a list of chat messages."""
    if not text.lstrip().startswith("["):
        return None
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = [
        message["content"]
        for message in messages
        if isinstance(message, dict)
        and message.get("role") == "user"
        and isinstance(message.get("content"), str)
    ]
    return found or None


def facts(answer: str) -> list[str]:
    """Up to three short texts that stand in the answer and say what matters: figures, else words that it
    marks or quotes, else its longest words."""
    patterns = (
        r"\d[\d.,:]*\d%?|\d+%?",
        r"\*\*([^*\n]{2,60})\*\*|[\"“`]([^\"“”`\n]{2,60})[\"”`]",
        r"\w{4,40}",
    )
    for number, pattern in enumerate(patterns):
        found = [next((g for g in match.groups() if g), match[0]) for match in re.finditer(pattern, answer)]
        found = [text.strip() for text in dict.fromkeys(found) if _plain(text)]
        if number == 2:
            found = sorted(found, key=lambda word: -len(word))[:1]
        if found:
            return found[:_MOST_FACTS]
    return []


def _plain(text: str) -> bool:
    text = text.strip()
    return (
        bool(text) and len(text) <= _LONGEST_FACT and text.isprintable() and not re.search(r"\{[{%#]", text)
    )


def tools_of(calls: Sequence[SavedCall]) -> list[str]:
    """The names of the tools that were called, each once, in order."""
    return list(dict.fromkeys(call.name for call in calls))
