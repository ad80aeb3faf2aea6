"""Whose rules a run was judged by (`compat`): the documented ones, or those of the original tool to the letter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tui_eval.store.encoding import encode_json
from tui_eval.store.schema import RunInfo

KEY = "compat"
"""Under which it stands in a run's provenance."""

SETTINGS = "verdict_settings"
"""Under which hashes of all that its verdicts rest on stand there (`engine.changed`)."""

OTHERS = ""
"""Stands there for the suites that are judged as most are."""

FILE_SETS = "file_sets"
"""By hashes of what names files in its cases, hashes of which these were (`engine.fingerprints`)."""


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


def settings_of_parts(parts: Iterable[tuple[RunInfo, Iterable[str]]]) -> dict[str, Any]:
    """What a run that is put together keeps of its parts' `SETTINGS`, each with the suites that it has cases of; empty
    where a suite was judged by different ones, so that nothing is taken for unchanged."""
    suites: dict[str, Any] = {}
    marks: dict[str, dict[str, Any]] = {"databases": {}, "graders": {}, "prices": {}}
    for info, own in parts:
        given = info.provenance.get(SETTINGS)
        kept = given.get("suites") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not isinstance(kept, dict) or not kept:
            return {}
        # Of each part those that most of its suites have stand once, under no name: most are others in another part.
        found = [(suites, suite, kept.get(suite, kept.get(OTHERS))) for suite in own]
        for name, joined in marks.items():
            these = given.get(name)
            found += [(joined, key, mark) for key, mark in (these if isinstance(these, dict) else {}).items()]
        for joined, key, mark in found:
            if mark is None or joined.setdefault(key, mark) != mark:
                return {}
    return {"suites": most_once(suites), **marks}


def most_once(suites: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of suites, those that most of them have once, under no name (`OTHERS`)."""
    if not suites:
        return {}
    (most, _), *_ = Counter(map(encode_json, suites.values())).most_common(1)
    first = next(one for one in suites.values() if encode_json(one) == most)
    return {OTHERS: first, **{suite: one for suite, one in suites.items() if one != first}}
