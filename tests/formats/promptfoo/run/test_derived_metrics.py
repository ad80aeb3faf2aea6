"""Metrics derived from a column's sums, in mathjs' way of writing: what mathjs 15 gave for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tui_eval.formats.promptfoo.run import derived_metrics
from tui_eval.javascript.isolate import JavaScriptHost


@pytest.fixture(scope="module")
def javascript() -> Iterator[JavaScriptHost]:
    host = JavaScriptHost(1)
    yield host
    host.close()


WORDS = {"default": 4.0, "new": 3.0, "true": 0.5, "in": 1.0}
"""Metrics called like words of JavaScript's or mathjs'."""

EXPRESSIONS = [
    ("round(f1, 2)", 1.33),
    ("round(2.5)", 3),
    ("round(-2.5)", -3),
    ("round(0.125, 2)", 0.13),
    ("floor(1.29, 1)", 1.2),
    ("ceil(1.21, 1)", 1.3),
    ("fix(-1.7)", -1),
    ("-p ^ 2", -4),
    ("2 ^ 3 ^ 2", 512),
    ("5 mod 3 + mod(5, 3)", 4),
    ("max([1, p]) + min(3, 4)", 5),
    ("std(1, 2, 3) + variance(1, 2, 3)", 2),
    ("prod(p, 3) + nthRoot(8, 3)", 8),
    ("p > 1 and not (r == 0) ? 1 : 0", 1),
    ("log(8, 2)", 3),
    ("__count * 2", 6),
    ("default * 2 + new", 11),
    ("true + 1", 2),
    ("p / 0", 0),
    ("nope + 1", 0),
]


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS)
async def test_what_is_derived(expression: str, value: float, javascript: JavaScriptHost) -> None:
    column: dict[str, Any] = {
        "suite": "s", "count": 3, "named_scores": {"p": 2.0, "r": 1.0, "f1": 4 / 3, **WORDS}, "derived": {}
    }  # fmt: skip
    await derived_metrics.derive(
        [column], {"s": {"derivedMetrics": [{"name": "d", "value": expression}]}}, javascript
    )
    assert column["derived"]["d"] == pytest.approx(value)
    assert ("d" in column.get("derived_errors", {})) is (expression in ("p / 0", "nope + 1"))
