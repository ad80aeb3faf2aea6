"""What `check` says of values that are read and cannot be meant so: a limit that no score reaches, bounds that
cross, a value of the wrong kind, a ratio that nobody can pass. Verdicts stay those of the format's own tool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeGuard

from msgspec import UNSET, UnsetType

from tui_eval.formats import format_of
from tui_eval.guard.spelling import close_to
from tui_eval.javascript.values import number_text
from tui_eval.model import Assertion, Case, Problem, Suite

Odd = tuple[str, str]
"""What is odd, and what to do."""

_SHARES = frozenset(
    ("rouge-n", "bleu", "gleu", "meteor", "similar", "similar:cosine", "answer-relevance", "classifier",
     "context-faithfulness", "context-recall", "context-relevance", "conversation-relevance", "tool-call-f1",
     "perplexity-score")
)  # fmt: skip
"""Types whose score goes from 0 to 1 and that pass from their threshold on."""
_AT_MOST = frozenset(("levenshtein", "latency", "cost", "perplexity"))
"""Types that pass where something that is never negative is not above the threshold."""
_ANY_SCORE = frozenset(("javascript", "python", "ruby", "webhook", "max-score", "pi"))
"""Types that may score more than 1."""
_REASONS = ("stop", "length", "content_filter", "tool_calls", "function_call", "error")
_SQL = ("mysql", "mariadb", "postgresql", "postgres", "transactsql", "sqlite", "bigquery", "snowflake", "athena",
        "redshift", "hive", "trino", "db2", "flinksql", "noql")  # fmt: skip
_LIMITS = "max_tool_calls, max_input_tokens, max_output_tokens"
_PIECES = frozenset(("should_not_contain", "not_keywords"))


def odd_values(loaded: Iterable[Suite]) -> Iterator[Problem]:
    """A problem for each odd value: an error where the assertion cannot be judged with it, else a note."""
    for suite in loaded:
        for name, given in suite.settings.items():
            repeat = given.get("repeat") if name == "evaluateOptions" and isinstance(given, dict) else None
            if isinstance(repeat, float) and not repeat.is_integer():
                told = (
                    f"{repeat:g} is no number of times: it is taken for {int(repeat)}",
                    "give a whole number",
                )
                yield Problem(suite.path, 0, f"{name}.repeat", *told, level="note")
        for case in suite.cases:
            path = case.path
            for key, told in _of_case(case):
                yield Problem(path, case.line, key, *told, level="note")
            for one in case.asserted:
                place = (path, one.line or case.line, one.type)
                if (wrong := _wrong_kind(one)) is not None:
                    yield Problem(*place, *wrong)
                elif (odd := _odd(one)) is not None:
                    yield Problem(*place, *odd, level="note")


def _of_case(case: Case) -> Iterator[tuple[str, Odd]]:
    form = format_of(case.format)
    free = any(one.type.removeprefix("not-") in _ANY_SCORE for one in case.assertions)
    weighed = any((one.weight or 0) < 0 for one in case.assertions)
    scored = form.sums_up and not form.own_score(case) and not free and not weighed
    if scored and case.threshold is not None and case.threshold > 1:
        yield "threshold", (f"{case.threshold:g} is never reached: scores go up to 1", "give one from 0 to 1")
    for key, message, cure in form.odd_values(case):
        yield key, (message, cure)
    for timeout in {case.timeout, *(turn.timeout for turn in case.turns)}:
        if timeout == 0:
            yield "timeout_in_seconds", ("is 0: there is no time to answer in", "leave it out for no limit")


def _odd(one: Assertion) -> Odd | None:
    """What can be judged, and never comes out another way, or is not what it looks like."""
    kind, negated = one.type.removeprefix("not-"), one.type.startswith("not-")
    always = "it always passes" if negated else "it never passes"
    # A limit under `not-` that always holds asserts nothing, and is said as such (`vacuity`).
    limit = one.threshold if not negated else None
    if limit is not None and kind in _SHARES and limit > 1:
        return f"a threshold of {limit:g} is above every score: {always}", "give one from 0 to 1"
    if limit is not None and kind in _AT_MOST and limit < 0:
        return f"a threshold of {limit:g} is below everything: {always}", "give one of 0 or more"
    if kind == "assert-set" and limit is not None and limit > 1:
        return f"a threshold of {limit:g} is above every score of a set: {always}", "give one from 0 to 1"
    if one.weight is not None and one.weight < 0:
        return f"a weight of {one.weight:g} counts against the score", "give one of 0 or more"
    if kind == "equals" and not negated and one.value in (UNSET, None) and one.target == "text":
        return (
            "has no value: the answer is compared with the text 'undefined'",
            "say what is expected under value",
        )
    if kind == "equals" and isinstance(one.value, float) and one.target == "text":
        text = number_text(one.value)
        if text != repr(one.value):
            message = f"the number {one.value!r} is compared as the text {text!r}, as in promptfoo"
            return message, "quote it where the answer is to be that text"
    if kind == "word-count" and _is_number(one.value) and one.value < 0:
        return f"no answer has {one.value} words: {always}", "give 0 or more"
    if (
        kind == "finish-reason"
        and isinstance(one.value, str)
        and "{{" not in one.value
        and one.value not in _REASONS
    ):
        slip = close_to(one.value, _REASONS)
        cure = f"did you mean {slip!r}?" if slip else f"the usual ones: {', '.join(_REASONS)}"
        return f"{one.value!r} is no reason that promptfoo's providers end with", cure
    if kind in ("is-sql", "contains-sql") and isinstance(one.value, dict):
        named = one.value.get("databaseType")
        if isinstance(named, str) and named.lower() not in _SQL:
            slip = close_to(named, _SQL)
            return (
                f"unknown databaseType {named!r}: {always}",
                f"did you mean {slip!r}?" if slip else ", ".join(_SQL),
            )
    if kind in ("trajectory:step-count", "trace-span-count") and isinstance(one.value, dict):
        low, high = one.value.get("min"), one.value.get("max")
        if _is_number(low) and _is_number(high) and low > high:
            return f"min {low} is above max {high}: {always}", "turn them round"
    if one.target.startswith("metadata."):
        return _of_metadata(one)
    if one.value == "" and one.type in _PIECES:
        return "'' stands in every answer: it never passes", "leave it out"
    if one.value == "" and one.type == "tools_used":
        return "no tool has an empty name: it never passes", "leave it out"
    return None


def _of_metadata(one: Assertion) -> Odd | None:
    """A key of `expected` that is compared with the agent's metadata and looks as if it meant something else."""
    shown = repr(one.value)[:60]
    if one.type.startswith(("max_", "min_")):
        message = (
            f"is no limit that is known: it passes where the agent's metadata of that name equals {shown}"
        )
        return message, f"the limits are {_LIMITS}"
    if one.type == "escalation_priority" and not isinstance(one.value, str | int):
        return f"passes where the agent's metadata of that name equals {shown}", "give it as text, as high"
    return None


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _open(value: Any) -> bool:
    """A text that may become anything: a template, a file, code."""
    return isinstance(value, str) and (
        value.startswith(("file://", "package:")) or "{{" in value or "{%" in value
    )


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _bounds(*names: str) -> Callable[[Any], bool]:
    def sound(value: Any) -> bool:
        return not isinstance(value, dict) or all(
            value.get(name) is None or _is_number(value[name]) or _open(value[name]) for name in names
        )

    return sound


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "javascript": (_is_text, "code as text"),
    "python": (_is_text, "code as text"),
    "llm-rubric": (lambda value: isinstance(value, str | dict | list), "what is asked of the answer"),
    "finish-reason": (_is_text, "the reason as text"),
    "rouge-n": (_is_text, "the reference as text"),
    "gleu": (lambda value: _is_text(value) or _texts(value), "the reference as text, or a list of them"),
    "bleu": (lambda value: _is_text(value) or _texts(value), "the reference as text, or a list of them"),
    "tool-call-f1": (lambda value: _is_text(value) or _texts(value), "a list of tools"),
    "moderation": (lambda value: value in (UNSET, None) or _texts(value), "a list of categories, or nothing"),
    "skill-used": (
        lambda value: not isinstance(value, dict) or bool(value.get("name") or value.get("pattern")),
        "a name, or a mapping with name or pattern",
    ),
    "trajectory:step-count": (_bounds("min", "max"), "min and max as numbers"),
    "trace-span-count": (
        lambda value: isinstance(value, dict) and "pattern" in value and _bounds("min", "max")(value),
        "a mapping with pattern, and min and max as numbers",
    ),
    "trace-span-duration": (
        lambda value: isinstance(value, dict) and "max" in value and _bounds("max", "percentile")(value),
        "a mapping with max as a number",
    ),
    "trace-error-spans": (_bounds("max_count", "max_percentage"), "max_count, max_percentage as numbers"),
    "max-score": (
        lambda value: not isinstance(value, dict)
        or (value.get("method", "average") in ("average", "sum") and _bounds("threshold")(value)),
        "method: average or sum, threshold as a number",
    ),
    "is-sql": (
        lambda value: not isinstance(value, dict)
        or all(isinstance(value.get(name) or [], list) for name in ("allowedTables", "allowedColumns")),
        "allowedTables and allowedColumns as lists",
    ),
}  # fmt: skip
"""By type what can be judged with its value, and how the value is to be given."""


def _wrong_kind(one: Assertion) -> Odd | None:
    kind = one.type.removeprefix("not-")
    if (
        one.type in ("keywords", "not_keywords")
        and one.target == "text"
        and not isinstance(one.value, str | UnsetType)
    ):
        return f"text cannot be searched for {one.value!r}", "quote it"
    if kind not in _KINDS or _open(one.value):
        return None
    sound, wanted = _KINDS[kind]
    if sound(one.value):
        return None
    given = "nothing" if one.value in (UNSET, None) else repr(one.value)[:60]
    return f"cannot be judged with {given}", f"give {wanted} under value"
