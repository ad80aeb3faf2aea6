"""A conversation that took place, as what a new case is written from; what is worth expecting of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

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
