"""Why a case does not pass, as lists show it: the cause in few words that was kept with it; of older runs, which have
none, their prose. No sentence is read here: what it says is in the evidence, or nowhere."""

from __future__ import annotations

_IN_A_LINE = 600
"""Characters of prose that a line of a list looks at."""
_IN_A_PANE = 4_000


def line_reason(words: str) -> str:
    """Prose on one line."""
    return " ".join(words[:_IN_A_LINE].split())


def reason_in_line(cause: str, message: str) -> str:
    """Why, on one line: the cause, else the beginning of the prose."""
    return cause or line_reason(message)


def reason_in_pane(cause: str, message: str) -> str:
    """Why, where there is room for several lines."""
    return cause or message[:_IN_A_PANE]


def short_detail(words: str) -> str:
    """What an attempt waits for, as its engine says it."""
    return words
