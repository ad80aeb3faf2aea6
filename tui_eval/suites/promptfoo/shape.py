"""Our cases in the shape that promptfoo hands to a suite's code, and back.

Hooks and scripts see a test as `{description, vars, assert, options, metadata, threshold, …}`.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from tui_eval.config import Config
from tui_eval.guard.trust import Trust
from tui_eval.model import Assertion, Case, Compat
from tui_eval.suites import identity
from tui_eval.suites.promptfoo.providers import normalised
from tui_eval.suites.promptfoo.reading import Reading, no_line
from tui_eval.suites.promptfoo.tests import TestReader

OURS = ("assertScoringFunction", "promptConfig", "promptFunction", "columnProvider")
"""Options of a case that are no options of the test."""


def test_of(case: Case) -> dict[str, Any]:
    """The test that a case belongs to, as promptfoo's code sees it."""
    options = {key: value for key, value in case.options.items() if key not in OURS}
    found: dict[str, Any] = {"vars": dict(case.vars), "assert": assertions_of(case.assertions)}
    if case.description:
        found["description"] = case.description
    if options:
        found["options"] = options
    if case.metadata:
        found["metadata"] = dict(case.metadata)
    if case.threshold is not None:
        found["threshold"] = case.threshold
    if case.provider_output is not None:
        found["providerOutput"] = case.provider_output
    if case.options.get("assertScoringFunction") is not None:
        found["assertScoringFunction"] = case.options["assertScoringFunction"]
    return found


test_of.__test__ = False  # type: ignore[attr-defined]


def assertions_of(flat: list[Assertion]) -> list[dict[str, Any]]:
    """A flat list of assertions with the members of sets under their set's `assert`."""
    result: list[dict[str, Any]] = []
    places: dict[int, dict[str, Any]] = {}
    for place, assertion in enumerate(flat):
        entry = assertion_of(assertion)
        if assertion.set is not None and assertion.set in places:
            places[assertion.set]["assert"].append(entry)
            continue
        if assertion.type == "assert-set":
            entry["assert"] = []
            places[place] = entry
        result.append(entry)
    return result


def assertion_of(assertion: Assertion) -> dict[str, Any]:
    """One assertion with the keys that the file gives."""
    found: dict[str, Any] = {"type": assertion.type}
    if assertion.value is not UNSET:
        found["value"] = assertion.value
    for name in ("threshold", "weight", "metric", "transform", "provider", "config"):
        value = getattr(assertion, name)
        if value is not None:
            found[name] = value
    return {**found, **(assertion.extra or {})}


def with_test(case: Case, test: Any, config: Config, trust: Trust, compat: Compat = "documented") -> Case:
    """A case whose test was changed by code: vars, assertions, options, metadata, threshold, provider.

    Its id stays. What cannot be made sense of is among its problems.
    """
    if test == test_of(case):
        return case
    reading = Reading(case.suite, config, trust, compat)
    read = TestReader(reading, case.suite, no_line).test(test, (), needs_some=False)
    if read is None:
        return msgspec.structs.replace(case, problems=[*case.problems, *reading.problems])
    kept = {key: case.options[key] for key in OURS if key in case.options}
    if read.scoring is not None:
        kept["assertScoringFunction"] = read.scoring
    provider = normalised(read.provider) if read.provider is not None else None
    changed = msgspec.structs.replace(
        case,
        description=read.description or case.description,
        vars=read.vars,
        assertions=read.assertions,
        options={**(read.options or {}), **kept},
        metadata=read.metadata or {},
        threshold=read.threshold,
        provider_output=read.provider_output if read.provider_output != "" else None,
        provider=provider.entry if provider else case.provider,
        agent=provider.name if provider else case.agent,
        problems=[*case.problems, *(p for p in read.problems if p.level == "error")],
    )
    changed.content_hash = identity.content_hash(changed)
    return changed
