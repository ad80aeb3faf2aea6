"""Whose rules a run was judged by (`compat`): the documented ones, or those of the original tool to the letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tui_eval.store.schema import RunInfo

KEY = "compat"
"""Under which it stands in a run's provenance."""

SETTINGS = "verdict_settings"
"""Under which hashes of all that its verdicts rest on stand there (`engine.changed`)."""


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


def other_rules(info: RunInfo) -> str:
    """`reference` where a run was judged by it, also where only some of its suites were; empty where none was."""
    given = info.provenance.get(KEY) or info.options.get("compat")
    if isinstance(given, list):
        return "reference (some suites)" if given else ""
    return "reference" if given == "reference" else ""


def settings_of_parts(parts: Sequence[RunInfo]) -> dict[str, Any]:
    """What a run that is put together keeps of its parts' `SETTINGS`; empty where their suites were judged by
    different ones, so that nothing is taken for unchanged."""
    given = [part.provenance.get(SETTINGS) for part in parts]
    known = [one for one in given if isinstance(one, dict) and one.get("suites")]
    if len(known) < len(parts) or any(one["suites"] != known[0]["suites"] for one in known):
        return {}
    joined: dict[str, Any] = {"suites": known[0]["suites"]}
    for name in ("databases", "graders", "prices"):
        marks: dict[str, Any] = {}
        for one in known:
            for key, mark in one.get(name, {}).items():
                if marks.setdefault(key, mark) != mark:
                    return {}
        joined[name] = marks
    return joined
