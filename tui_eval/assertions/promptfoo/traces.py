"""trace-*: spans of the reply's trace, counted, timed, searched for errors. `not-` makes no difference."""

from __future__ import annotations

import math
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import js
from tui_eval.assertions.promptfoo.call import Call, Result
from tui_eval.assertions.promptfoo.trajectory import glob, spans_of

_ERROR_ATTRIBUTES = ("error", "exception", "failed", "failure")
_ERROR_WORDS = ("error", "failed", "exception", "timeout", "abort")


def _spans(call: Call, pattern: str) -> list[dict[str, Any]]:
    spans = spans_of(call)
    if spans is None:
        raise CannotJudge(f"No trace data available for {call.kind} assertion")
    expression = glob(pattern)
    return [span for span in spans if expression.fullmatch(str(span.get("name") or ""))]


def span_count(call: Call) -> Result:
    """Spans whose name fits `pattern`, between `min` and `max`."""
    value = call.value
    if not isinstance(value, dict) or not isinstance(value.get("pattern"), str):
        raise CannotJudge("trace-span-count assertion must have a value object with pattern property")
    pattern, low, high = value["pattern"], value.get("min"), value.get("max")
    found = _spans(call, pattern)
    count = len(found)
    names = ", ".join(dict.fromkeys(str(span.get("name")) for span in found))
    tail = f". Matched spans: {names}" if names else ""
    begin = f'Found {count} spans matching pattern "{pattern}"'
    if low is not None and count < low:
        return Result(False, 0.0, f"{begin}, expected at least {js.string(low)}{tail}", actual=count)
    if high is not None and count > high:
        return Result(False, 0.0, f"{begin}, expected at most {js.string(high)}{tail}", actual=count)
    bounds = ""
    if low is not None or high is not None:
        shown = (
            f"{js.string(low)}-{js.string(high)}"
            if low is not None and high is not None
            else f"at least {js.string(low)}"
            if high is None
            else f"at most {js.string(high)}"
        )
        bounds = f" (expected {shown})"
    return Result(True, 1.0, f"{begin}{bounds}{tail}", actual=count)


def span_duration(call: Call) -> Result:
    """Milliseconds of spans, each or at a `percentile`, at most `max`; no such span passes."""
    value = call.value
    limit = value.get("max") if isinstance(value, dict) else None
    if not isinstance(value, dict) or isinstance(limit, bool) or not isinstance(limit, int | float):
        raise CannotJudge("trace-span-duration assertion must have a value object with max property")
    pattern = value.get("pattern") or "*"
    timed = sorted(
        (
            (span["endTime"] - span["startTime"], str(span.get("name")))
            for span in _spans(call, pattern)
            if isinstance(span.get("startTime"), int | float) and isinstance(span.get("endTime"), int | float)
        ),
        key=lambda pair: pair[0],
    )
    if not timed:
        reason = f'No spans found matching pattern "{pattern}" with complete timing data'
        return Result(True, 1.0, reason, actual="")
    over = [pair for pair in reversed(timed) if pair[0] > limit]
    slowest = ", ".join(f"{name} ({js.number_text(round(taken))}ms)" for taken, name in over[:3])
    shown = js.number_text(limit)
    percentile = value.get("percentile")
    if isinstance(percentile, int | float):
        place = max(0, math.ceil(percentile / 100 * len(timed)) - 1)
        measured = timed[min(place, len(timed) - 1)][0]
        at = f"{js.number_text(percentile)}th percentile duration ({js.number_text(round(measured))}ms)"
        if measured > limit:
            reason = f"{at} exceeds threshold {shown}ms. Slowest spans: {slowest}"
            return Result(False, 0.0, reason, actual=measured)
        return Result(True, 1.0, f"{at} is within threshold {shown}ms", actual=measured)
    if over:
        reason = f"{len(over)} span(s) exceed duration threshold {shown}ms. Slowest: {slowest}"
        return Result(False, 0.0, reason, actual=over[0][0])
    most = js.number_text(round(timed[-1][0]))
    reason = f'All {len(timed)} spans matching pattern "{pattern}" completed within {shown}ms (max: {most}ms)'
    return Result(True, 1.0, reason, actual=timed[-1][0])


def error_spans(call: Call) -> Result:
    """Spans that ended in an error: at most `max_count` (0) or `max_percentage` of them."""
    value = call.value
    pattern, most, share = "*", None, None
    if isinstance(value, dict):
        pattern, most, share = (
            value.get("pattern") or "*",
            value.get("max_count"),
            value.get("max_percentage"),
        )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        most = value
    elif value is not UNSET and value is not None:
        raise CannotJudge("trace-error-spans assertion must have a number or object value")
    spans = _spans(call, pattern)
    if not spans:
        return Result(True, 1.0, f'No spans found matching pattern "{pattern}"', actual=0)
    errors = [span for span in spans if _is_error(span)]
    count, total = len(errors), len(spans)
    rate = count / total * 100
    if share is not None and rate > share:
        reason = f"Error rate {rate:.1f}% exceeds threshold {js.string(share)}% ({count} errors out of {total} spans)"
        return Result(False, 0.0, reason, actual=count)
    if most is None and share is None:
        most = 0
    if most is not None and count > most:
        named = ", ".join(
            f"{span.get('name')} ({span['statusMessage']})"
            if span.get("statusMessage")
            else str(span.get("name"))
            for span in errors[:3]
        )
        reason = f"Found {count} error spans, expected at most {js.string(most)}. Errors: {named}"
        return Result(False, 0.0, reason, actual=count)
    if not errors:
        return Result(True, 1.0, f'No errors found in {total} spans matching pattern "{pattern}"', actual=0)
    within = js.string(most) if most is not None else f"{js.string(share)}%"
    reason = f"Found {count} error(s) in {total} spans ({rate:.1f}%), within threshold of {within}"
    return Result(True, 1.0, reason, actual=count)


def _is_error(span: dict[str, Any]) -> bool:
    status = span.get("statusCode")
    if isinstance(status, int | float) and (status == 2 or status >= 400):
        return True
    attributes = span.get("attributes")
    if isinstance(attributes, dict):
        if any(attributes.get(key) for key in _ERROR_ATTRIBUTES):
            return True
        if str(attributes.get("otel.status_code", "")).upper() == "ERROR":
            return True
        for key in ("http.status_code", "http.response.status_code"):
            if isinstance(attributes.get(key), int | float) and attributes[key] >= 400:
                return True
    message = str(span.get("statusMessage") or "").lower()
    return any(word in message for word in _ERROR_WORDS)
