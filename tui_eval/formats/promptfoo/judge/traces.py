"""trace-*: spans counted, timed, searched for errors. `not-` makes no difference, as in promptfoo."""

from __future__ import annotations

import math
from typing import Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.formats.promptfoo.judge.spans import source_for_spans
from tui_eval.javascript import values as js
from tui_eval.javascript.patterns import constant
from tui_eval.model import Evidence, TraceSpan

_ERROR_ATTRIBUTES = ("error", "exception", "failed", "failure")
_NO_ERROR = frozenset(("", "0", "false", "no", "none", "null", "ok", "unset"))
_ERROR_WORDS = constant(r"error|failed|failure|exception|timeout|abort", "i")
_SHOWN = 3
"""Spans that a reason names."""


def span_count(call: AssertionCall) -> Result:
    """Spans whose name fits `pattern`, between `min` and `max`."""
    value = call.value
    if not isinstance(value, dict) or not isinstance(value.get("pattern"), str) or not value["pattern"]:
        raise CannotJudge(
            f"{call.kind} assertion must have a value object with pattern property", "bad-assertion"
        )
    pattern = value["pattern"]
    low, high = (_number(value.get(key), f"{key} must be a number", call) for key in ("min", "max"))
    source = source_for_spans(call, pattern)
    count = len(source.spans)
    reason = f'Found {count} spans matching pattern "{pattern}"'
    passed = True
    if low is not None and count < low:
        passed, reason = False, f"{reason}, expected at least {js.string(low)}"
    elif high is not None and count > high:
        passed, reason = False, f"{reason}, expected at most {js.string(high)}"
    elif low is not None and high is not None:
        reason += f" (expected {js.string(low)}-{js.string(high)})"
    elif low is not None or high is not None:
        least = f"at least {js.string(low)}" if high is None else f"at most {js.string(high)}"
        reason += f" (expected {least})"
    if source.spans:
        reason += f". Matched spans: {', '.join(dict.fromkeys(span.name for span in source.spans))}"
    told = seen.between("spans", count, low, high)
    return Result(passed, float(passed), reason + source.note, actual=count, evidence=told)


def span_duration(call: AssertionCall) -> Result:
    """Milliseconds of spans, each or at a `percentile`, at most `max`; no such span passes."""
    value = call.value
    limit = value.get("max") if isinstance(value, dict) else None
    if not isinstance(value, dict) or isinstance(limit, bool) or not isinstance(limit, int | float):
        raise CannotJudge(
            f"{call.kind} assertion must have a value object with max property", "bad-assertion"
        )
    pattern = value.get("pattern", "*")
    if not isinstance(pattern, str):
        raise CannotJudge(f"{call.kind} assertion pattern must be text", "bad-assertion")
    percentile = _number(value.get("percentile"), "percentile must be a number", call)
    beyond = percentile is not None and percentile > 100
    if beyond and not call.evidence.reference:
        # promptfoo compares with nothing, which passes.
        raise CannotJudge(f"{call.kind} assertion percentile must be at most 100", "bad-assertion")
    source = source_for_spans(call, pattern)
    timed = [
        (span.end - span.start, span.name)
        for span in source.spans
        if span.start is not None and span.end is not None
    ]
    shown = js.number_text(limit)
    if not timed:
        reason = f'No spans found matching pattern "{pattern}" with complete timing data'
        return Result(True, 1.0, reason + source.note, actual="", evidence=[seen.rule("holds")])
    slowest_first = sorted(timed, key=lambda pair: -pair[0])
    if beyond:
        reason = f"{js.number_text(percentile or 0)}th percentile duration (undefinedms) is within threshold {shown}ms"
        return Result(True, 1.0, reason, actual="", evidence=[seen.rule("holds")])
    if percentile is not None:
        place = max(0, math.ceil(percentile / 100 * len(timed)) - 1)
        measured = slowest_first[len(timed) - 1 - place][0]
        at = f"{js.number_text(percentile)}th percentile duration ({js.number_text(measured)}ms)"
        passed = measured <= limit
        reason = f"{at} is within threshold {shown}ms"
        if not passed:
            slowest = [pair for pair in slowest_first if pair[0] >= measured]
            reason = f"{at} exceeds threshold {shown}ms. Slowest spans: {_listed(slowest)}"
        told = [*seen.budget("duration", measured, "<=", limit), *_spans(slowest_first, limit)]
        return Result(passed, float(passed), reason + source.note, actual=measured, evidence=told)
    over = [pair for pair in slowest_first if pair[0] > limit]
    most = slowest_first[0][0]
    reason = (
        f'All {len(timed)} spans matching pattern "{pattern}" completed within {shown}ms '
        f"(max: {js.number_text(most)}ms)"
    )
    if over:
        reason = f"{len(over)} span(s) exceed duration threshold {shown}ms. Slowest: {_listed(over)}"
    told = [*seen.budget("duration", most, "<=", limit), *_spans(over, limit)]
    return Result(not over, float(not over), reason + source.note, actual=most, evidence=told)


def _spans(timed: list[tuple[float, str]], limit: float) -> list[Evidence]:
    """The slowest of the spans above a limit."""
    slow = [(taken, name) for taken, name in timed if taken > limit][:_SHOWN]
    return [Evidence("step", "span", text=seen.cut(name), actual=taken) for taken, name in slow]


def _listed(timed: list[tuple[float, str]]) -> str:
    return ", ".join(f"{name} ({js.number_text(taken)}ms)" for taken, name in timed[:_SHOWN])


def error_spans(call: AssertionCall) -> Result:
    """Spans that ended in an error: at most `max_count` (0), or `max_percentage` of them."""
    value = call.value
    pattern: Any = "*"
    most = share = None
    if isinstance(value, dict):
        pattern = value.get("pattern") or "*"
        most = _number(value.get("max_count"), "max_count must be a number", call)
        share = _number(value.get("max_percentage"), "max_percentage must be a number", call)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        most = value
    if not isinstance(pattern, str):
        raise CannotJudge(f"{call.kind} assertion pattern must be text", "bad-assertion")
    if most is None and share is None:
        most = 0
    source = source_for_spans(call, pattern)
    total = len(source.spans)
    if not total:
        reason = f'No spans found matching pattern "{pattern}"'
        return Result(True, 1.0, reason, actual=0, evidence=[seen.rule("holds")])
    reference = call.evidence.reference
    errors = [span for span in source.spans if _is_error(span, reference)]
    theirs = len(errors) if reference else sum(_is_error(span, True) for span in source.spans)
    mended = "" if theirs == len(errors) else f" (promptfoo counts {theirs})"
    limit = js.string(most)
    count, rate = len(errors), len(errors) / total * 100
    passed = True
    if most is not None and count > most:
        passed = False
        named = ", ".join(map(_named, errors[:_SHOWN]))
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        reason = f"Found {count} error spans, expected at most {limit}. Errors: {named}{more}"
    elif share is not None and rate > share:
        passed = False
        reason = (
            f"Error rate {js.fixed(rate, 1)}% exceeds threshold {js.string(share)}% "
            f"({count} errors out of {total} spans)"
        )
    elif not errors:
        reason = f'No errors found in {total} spans matching pattern "{pattern}"'
    else:
        reason = f"Found {count} error(s) in {total} spans ({js.fixed(rate, 1)}%)"
        reason += f", within threshold of {limit}" if most is not None else ""
        reason += f", within threshold of {js.string(share)}%" if share is not None else ""
    if passed:
        told = [seen.rule("holds")]
    else:
        told = [Evidence("step", "error-spans", text=seen.cut(_named(span))) for span in errors[: seen.MOST]]
    return Result(passed, float(passed), reason + mended + source.note, actual=count, evidence=told)


def _named(span: TraceSpan) -> str:
    if span.message:
        return f"{span.name} ({span.message})"
    return f"{span.name} (status: {js.number_text(span.status)})" if span.status else span.name


def _is_error(span: TraceSpan, reference: bool) -> bool:
    """By status, attributes or message. promptfoo counts neither an `error` that is a text nor today's
    name of the HTTP status (`http.response.status_code`); by our own rules both are errors."""
    if span.status is not None and (span.status == 2 or span.status >= 400):
        return True
    attributes = span.attributes
    for key in _ERROR_ATTRIBUTES:
        value = attributes.get(key)
        if value is True or value == "true" or isinstance(value, dict | list):
            return True
        if not reference and isinstance(value, str) and js.trim(value).lower() not in _NO_ERROR:
            return True
    names = ("http.status_code",) if reference else ("http.status_code", "http.response.status_code")
    if any(_http_failed(attributes.get(name)) for name in names):
        return True
    if any(attributes.get(name) == "ERROR" for name in ("otel.status_code", "status.code")):
        return True
    return bool(span.message and _ERROR_WORDS.search(span.message))


def _http_failed(status: Any) -> bool:
    if isinstance(status, str):
        status = js.number(status)
    return isinstance(status, int | float) and not isinstance(status, bool) and status >= 400


def _number(value: Any, wrong: str, call: AssertionCall) -> float | None:
    if isinstance(value, str):
        value = js.number(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise CannotJudge(f"{call.kind} assertion {wrong}", "bad-assertion")
    return value
