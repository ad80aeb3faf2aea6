"""`compat: reference` gives nao-core 0.3.29's verdicts, recorded in nao_compare.jsonl."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from tui_eval.frames import nao_reference
from tui_eval.frames.comparison_rules import ComparisonSettings

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "vectors" / "nao_compare.jsonl")
    .read_text("utf-8")
    .splitlines()
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_recorded_verdict(vector: dict[str, Any]) -> None:
    settings = ComparisonSettings(**vector.get("options", {}))
    result = nao_reference.compare(
        vector["actual"], vector["expected"], settings, vector["expected_columns"], vector.get("error")
    )
    verdict = vector["verdict"]
    if verdict.get("raises"):
        assert result.passed is None
        assert result.raises == verdict["raises"]
        assert verdict["raises_text"] in result.message or verdict["raises"] == "TypeError"
        return
    assert result.passed is verdict["passed"]
    if vector.get("message_order_unstable"):
        assert set(re.findall(r"'[^']*'", result.message)) == set(re.findall(r"'[^']*'", verdict["message"]))
    else:
        assert result.message == verdict["message"]
    kind = vector.get("diff_kind")
    if kind == "empty":
        assert result.text is not None and result.text.startswith("the values are equal")
    elif kind == "cells":
        assert result.text is not None and "expected" in result.text


BIG = 2**63
GENERATED: list[tuple[str, list[Any], list[Any], dict[str, Any], str | None]] = [
    # what nao-core 0.3.29 said of generated columns that its recorded vectors do not have
    ("null, then mixed signs", [None, 2.0, -1, BIG], [BIG, -1, None, 2.0], {}, "match"),
    ("float for a huge one", [None, 0.0, "2.0", str(10**25)], [None, 0, 2.0, 10**25], {}, "values differ"),
    ("huge on both sides", [None, 10**25, "2.0"], [10**25, None, 2.0], {}, "match"),
    ("decimals beyond floats", [1.5, 2.5], [7.0, 8.0], {"decimals": 400}, "match"),
    ("decimals beyond floats, infinity", [1.5, -math.inf], [7.0, 8.0], {"decimals": 400}, "match"),
    ("decimals beyond floats, integers", [1.0], [4], {"decimals": 400, "atol": 1.0}, "values differ"),
    ("unsigned with a null", [1, None, BIG], [1.0, None, float(BIG)], {}, "match"),
]


@pytest.mark.parametrize(
    ("why", "actual", "expected", "options", "said"), GENERATED, ids=lambda v: str(v)[:30]
)
def test_generated(
    why: str, actual: list[Any], expected: list[Any], options: dict[str, Any], said: str | None
) -> None:
    left, right = ([{"a": cell} for cell in side] for side in (actual, expected))
    assert nao_reference.compare(left, right, ComparisonSettings(**options), ["a"]).message == said, why


@pytest.mark.parametrize(
    ("kind", "text", "given", "said"),
    [
        ("VARCHAR[]", "[a, b]", '["a", "b"]', "the reference raises TypeError: unhashable type: 'list'"),
        ("VARCHAR[]", "[a, b]", ["a", "b"], "the reference raises TypeError: unhashable type: 'list'"),
        (
            "STRUCT(w INTEGER)",
            "{'w': 1}",
            '{"w": 1}',
            "the reference raises TypeError: unhashable type: 'dict'",
        ),
        ("VARCHAR[]", None, None, "match"),
        ("VARCHAR", "[a, b]", "[a, b]", "match"),
    ],
)
def test_lists_and_objects_that_are_expected_are_what_nao_is_sent(
    kind: str, text: str | None, given: Any, said: str
) -> None:
    """They come as DuckDB's text, of which nao's own server makes lists: it cannot sort by them."""
    wanted, answer = [{"k": 1, "x": text}, {"k": 2, "x": text}], [{"k": 2, "x": given}, {"k": 1, "x": given}]
    types = {"k": "INTEGER", "x": kind}
    assert nao_reference.compare(answer, wanted, None, ["k", "x"], types=types).message == said
    if kind == "VARCHAR[]":  # one column alone is sorted, and told apart
        alone = [{"x": text}], [{"x": given}]
        found = nao_reference.compare(alone[1], alone[0], None, ["x"], types=types)
        assert found.passed is (not isinstance(given, str))


@pytest.mark.parametrize(
    ("kind", "text", "given"),
    [
        ("DATE", "2024-01-05T00:00:00", "2024-01-05"),
        ("TIME", "10:11:12.5", "10:11:12.500000"),
        ("TIME", "10:11:12", "10:11:12"),
        ("INTERVAL", "1 year 2 days", "P1Y2D"),
        ("JSON", '"x"', "x"),
        ("JSON", "null", None),
        ("JSON", "true", True),
        ("JSON", '{"a": 1.0, "b": [2]}', {"b": [2], "a": 1}),
        ("BYTEA", "\\x616263", "abc"),
    ],
)
def test_values_of_postgresql_are_what_naos_driver_makes_of_them(kind: str, text: str, given: Any) -> None:
    """It sends what psycopg reads: a day without a midnight, and JSON that is read already."""

    def said(answer: Any, dialect: str = "postgres") -> str:
        rows = [{"v": answer}], [{"v": text}]
        return nao_reference.compare(*rows, None, ["v"], types={"v": kind}, dialect=dialect).message

    assert said(given) == "match"
    assert said("other") == "values differ"
    assert kind not in ("DATE", "JSON") or said(given, "duckdb") == "values differ"


@pytest.mark.parametrize(
    ("kind", "number", "given", "said"),
    [
        ("DECIMAL(38,0)", 123456789012345678901234567890, 1.2345678901234568e29, "match"),
        ("HUGEINT", 10**21, 1e21, "match"),
        ("HUGEINT", 10**20, 10**20, "match"),
        ("BIGINT", 2**53 + 1, 2**53, "match"),
        ("BIGINT", 2**53 + 1, 2**53 + 1, "match (approximate)"),
        ("UBIGINT", 2**64 - 1, 18446744073709552000, "match"),
        ("BIGINT", 2**53, 2**53, "match"),
    ],
)
def test_large_numbers_of_a_database_are_what_naos_server_sends(
    kind: str, number: int, given: Any, said: str
) -> None:
    """It is JavaScript, whose numbers are floats, written out up to 1e21."""
    found = nao_reference.compare([{"v": given}], [{"v": number}], None, ["v"], types={"v": kind})
    assert found.message == said


def test_without_names_of_columns_all_that_are_expected_are_read() -> None:
    """As nao does, which cannot read a text of nothing but commas."""
    said = nao_reference.compare([{"a": 1}], [{"a": 1, "b": ","}], None, [])
    assert said.raises == "ValueError"
    assert nao_reference.compare([{"a": 1, "c": 2}], [{"a": ","}], None, []).raises == "ValueError"


@pytest.mark.parametrize(
    ("kind", "text", "given"),
    [("DOUBLE[]", "[nan, inf]", [None, None]), ("TUPLE(INTEGER, VARCHAR)", "(1, x)", [1, "x"])],
)
def test_what_json_has_not_is_nothing_within_lists(kind: str, text: str, given: Any) -> None:
    said = nao_reference.compare([{"v": given}], [{"v": text}], None, ["v"], types={"v": kind})
    assert said.message == "match"
