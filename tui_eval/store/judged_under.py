"""Whose rules a run was judged by (`compat`): the documented ones, or those of the original tool to the letter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tui_eval.guard.spelling import some_of
from tui_eval.store.encoding import encode_json
from tui_eval.store.schema import RunInfo

KEY = "compat"
"""Under which it stands in a run's provenance."""

SETTINGS = "verdict_settings"
"""Under which hashes of all that its verdicts rest on stand there (`engine.changed`)."""

_NAMED = 4
"""Of what differs between runs, and of these, that are named."""
OTHERS = ""
"""Stands there for the suites that are judged as most are."""

FILE_SETS = "file_sets"
"""By hashes of what names files in its cases, hashes of which these were (`engine.fingerprints`)."""
REWRITTEN = "rewritten"
"""The agents whose files were written while it ran, and the files of cases that were: what they were
meanwhile nobody knows."""


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
    marks: dict[str, dict[str, Any]] = {"databases": {}, "graders": {}, "prices": {}, "variables": {}}
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


def means_differ(parts: Sequence[tuple[str, RunInfo, Collection[str]]]) -> str:
    """What the results of parts rest on (files, settings, judges, databases, prices, variables) that is other
    in one of them than in others, with these, in words; empty: nothing is, as far as the parts say. Each part
    is its name, and the suites that it has cases of."""
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    named_in_rules = {suite for _, info, _ in parts for suite in _rules(info)}
    for name, info, own in parts:
        for kind, item, mark in _means(info, own, named_in_rules):
            found.setdefault(kind, {}).setdefault(item, {}).setdefault(mark, []).append(name)
    told, differing = list[str](), set[str]()
    for kind, items in found.items():
        other = {item: groups for item, groups in items.items() if len(groups) > 1}
        if other and not (kind == _RULES and "the settings of" in differing):
            differing.add(kind)
            named = some_of(sorted(filter(None, other)), _NAMED) if kind not in _UNNAMED else ""
            groups = list(next(iter(other.values())).values())
            whose = "; ".join(some_of(names, _NAMED) for names in groups[:_NAMED])
            told.append(f"{kind} {named} ({whose})" if named else f"{kind.removesuffix(' of')} ({whose})")
    return f"what the parts rest on differs: {', '.join(told)}" if told else ""


_UNNAMED = ("judges that cases name", "prices")
"""Of these hashes stand there, and no names."""
_RULES = "what tui_eval.yaml says of verdicts of"
"""Known of the whole that shards are parts of; settings are these and more, of suites that have cases in both."""


def _means(info: RunInfo, own: Collection[str], named: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """What a run's results rest on: of what kind, which, and its mark; `named` are suites that any part has
    rules of."""
    for path, mark in _mapping(info.provenance, "files").items():
        yield "the content of", path, str(mark)
    settings = _mapping(info.provenance, SETTINGS)
    suites = _mapping(settings, "suites")
    kept = {suite: suites.get(suite, suites.get(OTHERS)) for suite in own}
    if (rules := _rules(info)) and suites.keys() == {OTHERS} and len(own) > 1:
        kept[OTHERS] = suites[OTHERS]  # of shards also where no suite has cases in two of them
    for suite, marks in kept.items():
        if isinstance(marks, list) and len(marks) == 2:
            yield "the settings of", suite, str(marks[0])
            yield "the judge of", suite, str(marks[1])
    named_by = {"the database": "databases", _UNNAMED[0]: "graders", _UNNAMED[1]: "prices"}
    for kind, name in (*named_by.items(), ("the variable", "variables")):
        for item, mark in _mapping(settings, name).items():
            yield kind, item, str(mark)
    for suite in named if rules else ():
        yield _RULES, suite, str(rules.get(suite, rules.get(OTHERS)))


def _rules(info: RunInfo) -> Mapping[str, Any]:
    """By suite of the whole that a shard is a part of, how tui_eval.yaml has its answers judged (`AskedBySuite`)."""
    columns = _mapping(_mapping(info.provenance, "shard"), "columns")
    return {suite: one[2] for suite, one in columns.items() if isinstance(one, list) and len(one) == 3}


def _mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = given.get(name)
    return found if isinstance(found, dict) else {}


def most_once(suites: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of suites, those that most of them have once, under no name (`OTHERS`)."""
    if not suites:
        return {}
    (most, _), *_ = Counter(map(encode_json, suites.values())).most_common(1)
    first = next(one for one in suites.values() if encode_json(one) == most)
    return {OTHERS: first, **{suite: one for suite, one in suites.items() if one != first}}
