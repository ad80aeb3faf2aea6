"""promptfoo's columns at the end of a run: sums of scores, and the metrics derived from them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tui_eval.model import Attempt
from tui_eval.store.columns import column_agent
from tui_eval.store.reader import RunReader

if TYPE_CHECKING:
    from tui_eval.scripting.javascript import JavaScriptHost

_NAME = re.compile(r"[A-Za-z_$][\w$]*\Z")
_MATH = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "floor",
    "hypot",
    "log10",
    "log2",
    "max",
    "min",
    "pow",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
_MORE = {
    "pi": "Math.PI",
    "e": "Math.E",
    "log": "(x, base) => base === undefined ? Math.log(x) : Math.log(x) / Math.log(base)",
    "sum": "(...x) => x.flat().reduce((a, b) => a + b, 0)",
    "mean": "(...x) => { x = x.flat(); return x.reduce((a, b) => a + b, 0) / x.length; }",
    "median": "(...x) => { x = x.flat().sort((a, b) => a - b); const m = x.length >> 1; "
    "return x.length % 2 ? x[m] : (x[m - 1] + x[m]) / 2; }",
    "add": "(a, b) => a + b",
    "subtract": "(a, b) => a - b",
    "multiply": "(a, b) => a * b",
    "divide": "(a, b) => a / b",
    "mod": "(a, b) => a - b * Math.floor(a / b)",
    "square": "(x) => x * x",
    "cube": "(x) => x * x * x",
    "fix": "Math.trunc",
}


def columns(reader: RunReader) -> list[dict[str, Any]]:
    """A row for each prompt and agent of promptfoo's suites: `{suite, agent, prompt, score, named_scores,
    named_weights, count}`; a named score is the sum of the rows' value × weight (section 8.4)."""
    cases = {row.id: row for row in reader.cases() if row.format == "promptfoo"}
    places: dict[int, tuple[str, str]] = {}
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in reader.attempts():
        case = cases.get(row.case_ref)
        attempt = reader.attempt(row.id) if case is not None and row.state == "done" else None
        if case is None or attempt is None:
            continue
        if case.id not in places:
            body = reader.case(case.id)
            places[case.id] = (column_agent(body, case.agent), body.prompt or "")
        key = (case.suite, *places[case.id])
        column = found.get(key)
        if column is None:
            column = found[key] = {
                "suite": key[0], "agent": key[1], "prompt": key[2], "score": 0.0, "count": 0,
                "named_scores": {}, "named_weights": {}, "derived": {},
            }  # fmt: skip
        column["count"] += 1
        column["score"] += attempt.score or 0.0
        add_named(column["named_scores"], column["named_weights"], attempt)
    return list(found.values())


def add_named(scores: dict[str, float], weights: dict[str, float], attempt: Attempt) -> None:
    """Add a row's named scores, each times the weights behind it, in place."""
    for name, value in attempt.named_scores.items():
        weight = attempt.named_weights.get(name, 1.0)
        scores[name] = scores.get(name, 0.0) + value * weight
        weights[name] = weights.get(name, 0.0) + weight


async def derive(
    found: Iterable[dict[str, Any]], settings: Mapping[str, dict[str, Any]], javascript: JavaScriptHost
) -> None:
    """Put the `derivedMetrics` of each column's suite into its `derived`, in place and in order; one
    that cannot be computed is 0, as in promptfoo, and said in `derived_errors`."""
    for column in found:
        wanted = settings.get(column["suite"], {}).get("derivedMetrics")
        if not isinstance(wanted, list):
            continue
        scope: dict[str, float] = {**column["named_scores"], "__count": column["count"]}
        for metric in wanted:
            if not isinstance(metric, dict) or not metric.get("name"):
                continue
            name, expression = str(metric["name"]), metric.get("value")
            try:
                value = await _computed(str(expression), scope, javascript)
            except ValueError as error:
                value = 0.0
                column.setdefault("derived_errors", {})[name] = str(error)
            scope[name] = column["derived"][name] = value


async def _computed(expression: str, scope: Mapping[str, float], javascript: JavaScriptHost) -> float:
    """The value of an expression in mathjs' way of writing.

    Raises:
        ValueError: it cannot be computed, or is no finite number.
    """
    from tui_eval.scripting.javascript import JavaScriptError

    names = {name: value for name, value in scope.items() if _NAME.match(name)}
    helpers = {name: f"Math.{name}" for name in _MATH} | _MORE
    declared = "".join(f"const {name} = {code};\n" for name, code in helpers.items() if name not in names)
    try:
        value = await javascript.evaluate(f"{declared}return (\n{_as_javascript(expression)}\n);", names)
    except JavaScriptError as error:
        raise ValueError(" ".join(str(error).split())) from None
    if isinstance(value, bool):
        value = int(value)
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{expression}: not a finite number")
    return float(value)


def _as_javascript(expression: str) -> str:
    """mathjs writes powers with ^ and has words for the logical operators."""
    text = expression.replace("^", "**")
    for word, sign in (("and", "&&"), ("or", "||"), ("not", "!")):
        text = re.sub(rf"\b{word}\b", sign, text)
    return text
