"""promptfoo's columns at the end of a run: sums of scores, and the metrics derived from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tui_eval.formats.promptfoo.read.promptfoo_types import names
from tui_eval.guard import figures

if TYPE_CHECKING:
    from tui_eval.javascript.isolate import JavaScriptHost

_NAME = re.compile(r"[A-Za-z_$][\w$]*\Z")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_OF_MATHJS = names("true false null undefined NaN Infinity and or not xor mod in to end")
"""Words that mathjs takes for what they mean, whatever a metric is called."""
_OF_JAVASCRIPT = names(
    """
    arguments await break case catch class const continue debugger default delete do else enum eval export extends
    finally for function if implements import instanceof interface let new package private protected public return
    static super switch this throw try typeof var void while with yield
    """
)
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
    "cos",
    "cosh",
    "exp",
    "hypot",
    "log10",
    "log2",
    "pow",
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
    "max": "(...x) => Math.max(...x.flat())",
    "min": "(...x) => Math.min(...x.flat())",
    "prod": "(...x) => x.flat().reduce((a, b) => a * b, 1)",
    "variance": "(...x) => { x = x.flat(); const m = x.reduce((a, b) => a + b, 0) / x.length; "
    "return x.reduce((a, b) => a + (b - m) ** 2, 0) / (x.length - 1); }",
    "std": "(...x) => Math.sqrt(variance(...x))",
    "nthRoot": "(x, n = 2) => x ** (1 / n)",
    # With a number of places; halves go away from zero.
    "_places": "(how, x, n = 0) => how(Number((x * 10 ** n).toPrecision(15))) / 10 ** n",
    "round": "(x, n) => Math.sign(x) * _places(Math.round, Math.abs(x), n)",
    "floor": "(x, n) => _places(Math.floor, x, n)",
    "ceil": "(x, n) => _places(Math.ceil, x, n)",
    "fix": "(x, n) => _places(Math.trunc, x, n)",
}


async def derive(
    found: Iterable[dict[str, Any]],
    settings: Mapping[str, dict[str, Any]],
    javascript: JavaScriptHost,
    rows: Sequence[Sequence[dict[str, float]]] = (),
) -> None:
    """Put the `derivedMetrics` of each column's suite into its `derived`, in place and in order; one
    that cannot be computed is 0, as in promptfoo, and said in `derived_errors`.

    promptfoo computes them again after every row, into the sums themselves. That shows only where one is
    called like a metric, cannot be computed, or names itself or one that comes later; there `rows`, what each
    row adds, are gone through one by one.
    """
    for index, column in enumerate(found):
        wanted = settings.get(column["suite"], {}).get("derivedMetrics")
        if not isinstance(wanted, list):
            continue
        metrics = [
            (str(metric["name"]), str(metric.get("value")))
            for metric in wanted
            if isinstance(metric, dict) and metric.get("name")
        ]
        adding: Sequence[dict[str, float]] = rows[index] if index < len(rows) else ()
        before = dict(column["named_scores"])
        if not adding or not _looks_back(metrics, before):
            await _derive_row(column, metrics, dict(before), column["count"], javascript)
            if not column.get("derived_errors") or len(adding) < 2:
                continue
        sums: dict[str, float] = {}
        for count, added in enumerate(adding, 1):
            for name, value in added.items():
                sums[name] = sums.get(name, 0.0) + value
            await _derive_row(column, metrics, sums, count, javascript)
        column["named_scores"].update((name, sums[name]) for name in before)


def _looks_back(metrics: Sequence[tuple[str, str]], sums: Mapping[str, float]) -> bool:
    """Whether a metric's value after one row depends on what it, or a later one, was after the row before."""
    for place, (name, expression) in enumerate(metrics):
        later = {other for other, _ in metrics[place:]}
        if name in sums or later & set(_WORD.findall(expression)):
            return True
    return False


async def _derive_row(
    column: dict[str, Any],
    metrics: Sequence[tuple[str, str]],
    sums: dict[str, float],
    count: int,
    javascript: JavaScriptHost,
) -> None:
    scope: dict[str, float] = {**sums, "__count": count}
    errors: dict[str, str] = {}
    for name, expression in metrics:
        sums.setdefault(name, 0.0)
        try:
            scope[name] = sums[name] = await _computed(expression, scope, javascript)
        except ValueError as error:
            errors[name] = str(error)
        column["derived"][name] = sums[name]
    if errors:
        column["derived_errors"] = errors
    else:
        column.pop("derived_errors", None)


async def _computed(expression: str, scope: Mapping[str, float], javascript: JavaScriptHost) -> float:
    """The value of an expression in mathjs' way of writing.

    Raises:
        ValueError: it cannot be computed, or is no finite number.
    """
    from tui_eval.javascript.isolate import JavaScriptError

    known: dict[str, float] = {}
    for name, value in scope.items():
        if name in _OF_JAVASCRIPT:
            expression = re.sub(rf"(?<![\w$]){name}(?![\w$])", f"{name}_", expression)
            known[f"{name}_"] = value
        elif _NAME.match(name) and name not in _OF_MATHJS:
            known[name] = value
    helpers = {name: f"Math.{name}" for name in _MATH} | _MORE
    declared = "".join(f"const {name} = {code};\n" for name, code in helpers.items() if name not in known)
    try:
        value = await javascript.evaluate(f"{declared}return (\n{_as_javascript(expression)}\n);", known)
    except JavaScriptError as error:
        raise ValueError(" ".join(str(error).split())) from None
    if isinstance(value, bool):
        value = int(value)
    if not figures.is_finite(value):
        raise ValueError(f"{expression}: not a finite number")
    return float(value)


def _as_javascript(expression: str) -> str:
    """mathjs writes powers with ^, has words for operators and a sign for per cent, and takes a power before
    its sign."""
    text = re.sub(r"(^|[(,*/+?:=<>&|-])\s*-\s*([\w.]+)\s*\^", r"\1 -1 * \2^", expression).replace("^", "**")
    text = re.sub(r"\bmod\b(?!\s*\()", "%", text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s*%(?!\s*[\w.(+-])", r"(\1 / 100)", text)
    for word, sign in (("and", "&&"), ("or", "||"), ("not", "!")):
        text = re.sub(rf"\b{word}\b", sign, text)
    return text
