"""A conversation that took place, as what a new case is written from; what is worth expecting of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tui_eval.model import Assertion, Case

_MOST_FACTS = 3
_LONGEST_FACT = 80


class SavedCall(NamedTuple):
    """One tool call."""

    name: str
    arguments: Any


class SavedReply(NamedTuple):
    """One turn: what was asked and answered, and which turn of the case it was, from 1 (0: of none)."""

    asked: str
    answered: str
    turn: int = 0


class Talk(NamedTuple):
    """A conversation to be saved. `connection` is neuro-san's, `sql` the agent's own query.

    `case` is the case that it took place in, whose expectations and settings the new one keeps; None where that is
    of another format. `as_written`: nobody changed a message by hand. `proposes`: the answers may be looked at for
    what to expect; `calls` and `sql` are empty where they may not.
    """

    name: str
    agent: str
    turns: list[SavedReply]
    calls: list[SavedCall]
    sql: str | None = None
    connection: str | None = None
    database: str | None = None
    case: Case | None = None
    as_written: bool = False
    proposes: bool = True

    def proposed(self, turn: SavedReply) -> list[str]:
        """Texts that the answer to this turn may be expected to hold."""
        return facts(turn.answered) if self.proposes else []

    def kept(self) -> list[Assertion]:
        """What the case expects of the whole conversation."""
        return self.case.assertions if self.case is not None else []


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
