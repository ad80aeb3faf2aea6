"""Assertions that look at the text alone: equality, containment, prefixes, counts of words."""

from __future__ import annotations

import math
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, invariant
from tui_eval.formats.promptfoo.promptfoo_words import ListError, split_list
from tui_eval.javascript import operators
from tui_eval.javascript import values as js
from tui_eval.model import Evidence


def equals(call: AssertionCall) -> Result:
    """Deep equality with an object, list or null; else the value as text, untrimmed."""
    value = call.value
    if isinstance(value, dict | list) or value is None:
        shown = js.json_text(value)
        try:
            holds = operators.deeply_equal(js.parse_json(call.text), value)
        except (ValueError, RecursionError):  # nested more deeply than any value that a file can expect
            holds = False
    else:
        shown = js.string(value)
        holds = call.text == shown
    return call.result(
        holds,
        f'Expected output "{call.text}" to equal "{shown}"',
        f'Expected output "{call.text}" to not equal "{shown}"',
        evidence=_unequal(call, value, shown, holds),
    )


def _unequal(call: AssertionCall, value: Any, shown: str, holds: bool) -> list[Evidence]:
    """Which fields differ where an object was wanted, else the two texts."""
    if holds or call.inverse or not isinstance(value, dict | list):
        return seen.value("$", shown, call.text, holds, negated=call.inverse)
    try:
        actual = js.parse_json(call.text)
    except (ValueError, RecursionError) as error:
        words = getattr(error, "msg", "nested too deeply")
        return [seen.broken("missing", "not-json", call.text, getattr(error, "pos", 0), words)]
    return seen.fields(value, actual, javascript=True) or [seen.differs("$", value, actual)]


def contains(call: AssertionCall) -> Result:
    """`contains`, `icontains`: a substring; a number is taken as its text."""
    value, text = call.value, call.text
    invariant(
        (isinstance(value, str) and value)
        or (isinstance(value, int | float) and not isinstance(value, bool)),
        f'"{call.kind}" assertion type must have a string or number value',
    )
    shown = js.string(value)
    holds = shown.lower() in text.lower() if call.kind == "icontains" else shown in text
    return call.result(
        holds,
        f'Expected output to contain "{shown}"',
        f'Expected output to not contain "{shown}"',
        evidence=_looked_for(call, [shown]),
    )


def _looked_for(call: AssertionCall, wanted: list[str]) -> list[Evidence]:
    found = seen.texts(call.text, wanted, ignoring_case=call.kind.startswith("i"), forbidden=call.inverse)
    fails = call.kind.endswith("-all") == call.inverse
    return found or [seen.rule("nothing-listed" if fails else "holds")]


def contains_any(call: AssertionCall) -> Result:
    """`contains-any`, `icontains-any`: one of a list, or of a text split at commas."""
    values = _values(call)
    text = call.text
    if call.kind == "icontains-any":
        lowered = text.lower()
        holds = any(value.lower() in lowered for value in values)
    else:
        holds = any(value in text for value in values)
    shown = ", ".join(values)
    return call.result(
        holds,
        f'Expected output to contain one of "{shown}"',
        f'Expected output to not contain one of "{shown}"',
        evidence=_looked_for(call, values),
    )


def contains_all(call: AssertionCall) -> Result:
    """`contains-all`, `icontains-all`: every one of a list, or of a text split at commas."""
    values = _values(call)
    text = call.text
    if call.kind == "icontains-all":
        lowered = text.lower()
        missing = [value for value in values if value.lower() not in lowered]
    else:
        missing = [value for value in values if value not in text]
    shown, gone = ", ".join(values), ", ".join(missing)
    return call.result(
        not missing,
        f"Expected output to contain all of [{shown}]. Missing: [{gone}]",
        f"Expected output to not contain all of [{shown}]. Missing: [{gone}]",
        evidence=_looked_for(call, values),
    )


def _values(call: AssertionCall) -> list[str]:
    value = call.value
    if isinstance(value, str) and value:
        try:
            return split_list(value)
        except ListError as error:
            raise CannotJudge(f"Invariant failed: {error}", "bad-assertion") from None
    invariant(isinstance(value, list), f'"{call.kind}" assertion type must have an array value')
    return [js.string(item) for item in value]


def starts_with(call: AssertionCall) -> Result:
    """A prefix, case-sensitive."""
    value = call.value
    invariant(isinstance(value, str) and value, f'"{call.kind}" assertion type must have a string value')
    holds = call.text.startswith(value)
    there, gone = ("forbidden-prefix", "prefix-absent") if call.inverse else ("prefix", "not-prefix")
    shown = seen.cut(value)
    begins = call.text[: len(value)]
    alike = seen.cut(begins) if call.inverse and begins.lower() == value.lower() else None
    return call.result(
        holds,
        f'Expected output to start with "{value}"',
        f'Expected output to not start with "{value}"',
        evidence=[
            Evidence("match", there, text=shown, start=0, end=len(value))
            if holds
            else Evidence("missing", gone, text=shown, actual=alike)
        ],
    )


def word_count(call: AssertionCall) -> Result:
    """Words between white space: exactly a number, or within `{min, max}`."""
    value = call.value
    invariant(value is not UNSET and value is not None, '"word-count" assertion must have a value')
    count = len(js.words(call.text))
    if isinstance(value, dict):
        return _within(call, count, value)
    expected: Any = js.number(value) if isinstance(value, str) else value
    invariant(
        isinstance(expected, int | float) and not isinstance(value, bool) and not math.isnan(expected),
        '"word-count" assertion value must be a number or an object with min/max properties',
    )
    shown = js.number_text(expected)
    return call.result(
        count == expected,
        f"Word count {count} does not equal expected {shown}",
        f"Expected word count to not equal {shown}, but got {count}",
        actual=count,
        evidence=seen.budget("words", count, "==", expected, negated=call.inverse),
    )


def _bound(bounds: dict[str, Any], key: str) -> Any:
    """A bound; text counts as the number that it is."""
    given = bounds.get(key)
    return js.number(given) if isinstance(given, str) else given


def _within(call: AssertionCall, count: int, bounds: dict[str, Any]) -> Result:
    low, high = (_bound(bounds, key) for key in ("min", "max"))
    invariant(low is not None or high is not None, '"word-count" assertion object must have min and/or max')
    invariant(
        low is None or high is None or low <= high,
        '"word-count" assertion: min must be less than or equal to max',
    )
    told = seen.between("words", count, low, high, negated=call.inverse)
    if low is not None and high is not None:
        bad = f"Word count {count} is not between {js.string(low)} and {js.string(high)}"
        inverse = (
            f"Expected word count to not be between {js.string(low)} and {js.string(high)}, but got {count}"
        )
        return call.result(low <= count <= high, bad, inverse, actual=count, evidence=told)
    if low is not None:
        bad = f"Word count {count} is less than minimum {js.string(low)}"
        inverse = f"Expected word count to be less than {js.string(low)}, but got {count}"
        return call.result(count >= low, bad, inverse, actual=count, evidence=told)
    bad = f"Word count {count} is greater than maximum {js.string(high)}"
    inverse = f"Expected word count to be greater than {js.string(high)}, but got {count}"
    return call.result(high is not None and count <= high, bad, inverse, actual=count, evidence=told)
