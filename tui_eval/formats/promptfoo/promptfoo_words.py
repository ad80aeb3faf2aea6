"""Our values in promptfoo's words: what a suite's code is handed, and what promptfoo's own JSON holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from tui_eval.javascript import values as js
from tui_eval.model import Assertion, Case, Trace, TraceSpan, Verdict

OURS = ("assertScoringFunction", "promptConfig", "promptFunction", "columnProvider", "filesFirst")
"""What stands beside a test's options (`Case.beside`); in runs of older versions, among them."""

OF_A_SCENARIO = re.compile(r"__scenario_\d+__")
"""`metadata.conversationId` of a scenario's tests that name none."""

GRADING_KINDS = frozenset(("text", "embedding", "classification", "moderation"))
"""For which of them a test may name a grader each, under `provider`."""


def beside(case: Case, name: str) -> Any:
    """One of what the reader keeps beside a test's own options; None: there is none."""
    return (case.options if case.beside is None else case.beside).get(name)


def own_options(case: Case) -> dict[str, Any]:
    """A test's `options` as its file has them."""
    if case.beside is not None:
        return dict(case.options)
    return {name: value for name, value in case.options.items() if name not in OURS}


def kept_beside(case: Case) -> dict[str, Any]:
    """All that the reader keeps beside a test's own options."""
    given = case.options if case.beside is None else case.beside
    return {name: given[name] for name in OURS if name in given}


def test_of(case: Case) -> dict[str, Any]:
    """The test that a case belongs to: `{vars, assert}` and what else it has."""
    options = own_options(case)
    found: dict[str, Any] = {"vars": dict(case.vars), "assert": assertions_of(case.asserted)}
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
    if (scoring := beside(case, "assertScoringFunction")) is not None:
        found["assertScoringFunction"] = scoring
    return found


test_of.__test__ = False  # type: ignore[attr-defined]


def told_test(case: Case) -> dict[str, Any]:
    """The test as code is told it: it has `options` and `metadata` also where its file has none."""
    return {"options": {}, "metadata": {}, **test_of(case)}


def assertions_of(flat: Iterable[Assertion]) -> list[dict[str, Any]]:
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


def components_of(given: list[Assertion], verdicts: list[Verdict]) -> list[dict[str, Any]]:
    """A row's `componentResults`: what a set or a script's result consists of stands in it and, as promptfoo writes it,
    once more behind it. `given` are the row's assertions as its file has them."""
    alike = [one.type for one in given] == [verdict.type for verdict in verdicts]
    parts = [_component(verdict, given[place] if alike else None) for place, verdict in enumerate(verdicts)]
    rows: list[list[dict[str, Any]]] = []
    for verdict, part in zip(verdicts, parts, strict=True):
        own = part.get("componentResults", [])
        flat = [part, *({**one, "assertion": one.get("assertion") or part["assertion"]} for one in own)]
        rows.append(flat)
        if verdict.set is None or not 0 <= verdict.set < len(parts) or "assertion" in parts[verdict.set]:
            continue
        whole = parts[verdict.set]
        whole.setdefault("componentResults", []).extend(flat)
        whole["metadata"]["assertionSet"]["assertionCount"] += 1
    return [part for flat in rows for part in flat]


def _component(verdict: Verdict, given: Assertion | None) -> dict[str, Any]:
    """One verdict with its assertion as the file has it, and what became of that by templates and scripts."""
    found: dict[str, Any] = {"pass": verdict.passed is True, "score": verdict.score, "reason": verdict.reason}
    weight = None if verdict.weight == 1.0 else verdict.weight
    if verdict.type == "assert-set":
        named = {
            "metric": verdict.metric,
            "threshold": given.threshold if given else None,
            "weight": weight,
        }
        whole = {"type": "assert-set", "assertionCount": 0, **without_none(named)}
        return {**found, "metadata": {"assertionSet": whole}}
    if verdict.parts:
        found["componentResults"] = list(verdict.parts)
    if given is None:
        expected = None if verdict.expected is UNSET else verdict.expected
        shown = {"type": verdict.type, "value": expected, "metric": verdict.metric, "weight": weight}
        found["assertion"] = without_none(shown)
        return found
    found["assertion"] = assertion_of(given)
    if given.value is not UNSET and isinstance(verdict.expected, str) and verdict.expected != given.value:
        found["metadata"] = {"renderedAssertionValue": verdict.expected}
    return found


def trace_of(trace: Trace) -> dict[str, Any]:
    """A trace with its spans, times in milliseconds."""
    return {
        "traceId": trace.trace_id,
        "evaluationId": trace.evaluation_id,
        "testCaseId": trace.test_case_id,
        "spans": [span_of(span) for span in trace.spans],
    }


def span_of(span: TraceSpan) -> dict[str, Any]:
    """One span; what it does not have is left out."""
    return without_none(
        {
            "spanId": span.span_id,
            "parentSpanId": span.parent_id,
            "name": span.name,
            "startTime": span.start,
            "endTime": span.end,
            "attributes": span.attributes,
            "statusCode": span.status,
            "statusMessage": span.message,
        }
    )


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    """A mapping without the keys that have no value."""
    return {key: value for key, value in values.items() if value is not None}


class ListError(ValueError):
    """A list of texts that cannot be split; promptfoo's words, one line."""


def split_list(text: str) -> list[str]:
    """The texts of `contains-any` and its like, in a cell or as a value: split at commas, trimmed, empty ones dropped;
    double-quoted ones are kept as they are, with `""` or `\\"` for a quote and `\\\\` for a backslash.

    Raises:
        ListError: a quote that does not end, or text after a closing one.
    """
    fields: list[str] = []
    place, end = 0, len(text)
    while place < end:
        while place < end and (js.is_space(text[place]) or text[place] == ","):
            place += 1
        if place >= end:
            break
        if text[place] != '"':
            stop = text.find(",", place)
            stop = end if stop < 0 else stop
            fields.append(js.trim(text[place:stop]))
            place = stop
            continue
        field, place = _quoted(text, place + 1)
        fields.append(field)
        while place < end and js.is_space(text[place]):
            place += 1
        if place < end and text[place] != ",":
            raise ListError("Expected comma after quoted field in contains assertion value")
    return fields


def _quoted(text: str, place: int) -> tuple[str, int]:
    kept: list[str] = []
    while place < len(text):
        two = text[place : place + 2]
        if two in ('""', '\\"', "\\\\"):
            kept.append(two[1])
            place += 2
        elif two[0] == '"':
            return "".join(kept), place + 1
        else:
            kept.append(two[0])
            place += 1
    raise ListError("Unterminated quoted field in contains assertion value")


def mapping(value: Any) -> dict[str, Any]:
    """A mapping, empty where there is none."""
    return value if isinstance(value, dict) else {}
