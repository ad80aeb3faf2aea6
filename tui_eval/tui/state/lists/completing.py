"""Completing the word before the cursor of a filter expression. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.filtering import FLAGS, KEYS, NUMBERS, STATUSES, tags_of

MOST_ENTRIES = 5_000
"""Cases whose names of agents, suites and tags are offered."""
Values = Mapping[str, list[str]]


def values_of(entries: Iterable[CaseRow], saved: Iterable[str] = ()) -> dict[str, list[str]]:
    """What may follow each key, by key; under the empty key what may stand alone."""
    found: dict[str, dict[str, None]] = {key: {} for key in ("agent", "model", "suite", "tag", "format")}
    for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
        for key in ("agent", "model", "suite", "format"):
            if getattr(entry, key):
                found[key].setdefault(getattr(entry, key))
        if entry.case is not None and entry.case.metadata:
            found["tag"].update(dict.fromkeys(tags_of(entry.case.metadata)))
    found["verdict"] = dict.fromkeys(("right", "wrong"))
    alone = [*STATUSES, *FLAGS, *(f"{key}:" for key in (*KEYS, *NUMBERS)), *(f"@{name}" for name in saved)]
    return {"": alone, **{key: list(values) for key, values in found.items()}}


def offers(expression: str, values: Values) -> list[str]:
    """What the last word may become. What has spaces or quotes in it is not offered: it would have to be
    quoted from its beginning on."""
    key, begun = _begun(expression)
    if not key and not begun:
        return []
    return [
        value
        for value in values.get(key, ())
        if value.lower().startswith(begun) and len(value) > len(begun) and not set(value) & set(" \t\n'\"")
    ]


def completed(expression: str, values: Values) -> str | None:
    """The expression with its last word completed; None where there is nothing to add."""
    found = offers(expression, values)
    return expression + found[0][len(_begun(expression)[1]) :] if found else None


def _begun(expression: str) -> tuple[str, str]:
    """The key of the last word, and what has been typed after it."""
    word = expression[expression.rfind(" ") + 1 :].lower().removeprefix("-")
    key, colon, begun = word.partition(":")
    return (key, begun) if colon else ("", word)
