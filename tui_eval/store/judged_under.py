"""Whose rules a run was judged by (`compat`): the documented ones, or those of the original tool to the letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tui_eval.store.schema import RunInfo

KEY = "compat"
"""Under which it stands in a run's provenance."""


def remembered(compat_by_suite: Iterable[tuple[str, str]]) -> str | list[str]:
    """What a run keeps of it: the one word where all of its suites are judged alike, else those judged by
    `reference`."""
    suites = dict(compat_by_suite)
    words = set(suites.values())
    if len(words) <= 1:
        return next(iter(words), "documented")
    return sorted(suite for suite, word in suites.items() if word == "reference")


def compat_of(info: RunInfo) -> Callable[[str], str]:
    """By a suite the rules that a run has judged it by; empty where that is not known (older runs, other
    tools' files)."""
    given = info.provenance.get(KEY) or info.options.get("compat")
    if isinstance(given, str):
        return lambda suite: given if given in ("documented", "reference") else ""
    if isinstance(given, list):
        by_reference = {suite for suite in given if isinstance(suite, str)}
        return lambda suite: "reference" if suite in by_reference else "documented"
    return lambda suite: ""
