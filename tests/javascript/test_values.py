"""Values, their texts and operators against node's (`record_values.mjs` wrote the table, with node 20)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tui_eval.javascript import operators, values

TABLE = [
    json.loads(line)
    for line in Path(__file__).with_name("values.jsonl").read_text("utf-8").strip().split("\n")
]


def rows(kind: str) -> list[dict[str, Any]]:
    found = [row for row in TABLE if row["kind"] == kind]
    assert found
    return found


def test_numbers_have_the_texts_of_javascript() -> None:
    for row in rows("number"):
        number = values.parse_json(row["literal"])
        assert values.number_text(number) == values.string(number) == row["text"], row
        assert values.json_text(number) == row["json"], row
        assert [values.fixed(number, digits) for digits in range(5)] == row["fixed"], row
        assert [values.precision(number, digits) for digits in (1, 2, 5)] == row["precision"], row


def test_an_integer_of_any_size_has_the_text_of_its_double() -> None:
    for row in rows("number"):
        if row["literal"].lstrip("-").isdigit():
            number = int(row["literal"])  # as Python's own JSON and YAML read it
            assert values.number_text(number) == (row["text"] if number or row["text"] == "0" else "0"), row
            assert values.json_text({"id": number}) == f'{{"id":{row["json"]}}}', row


def test_text_counts_as_the_number_that_javascript_sees_in_it() -> None:
    for row in rows("parse"):
        text = row["literal"]
        assert values.number_text(values.number(text)) == row["text"], row
        assert values.truthy(text) is row["truthy"], row
        assert (values.trim(text), values.words(text)) == (row["trim"], row["words"]), row


def test_white_space_is_what_trim_removes() -> None:
    assert sorted(values.WHITESPACE) == [chr(row["code"]) for row in rows("space")]


def test_json_is_written_as_javascript_writes_it() -> None:
    for row in rows("json"):
        value = values.parse_json(row["literal"])
        assert values.json_text(value) == row["compact"]
        assert values.json_text(value, 2) == row["two"]
        assert values.json_text(value, "\t") == row["tab"]
        assert values.json_text(value, 14) == row["many"]
        assert values.string(value) == row["text"]


def test_operators_compare_as_javascript_does() -> None:
    for row in rows("pair"):
        left, right = values.parse_json(row["a"]), values.parse_json(row["b"])
        assert operators.deeply_equal(left, right) is row["deep"], row
        if "strict" in row:
            assert operators.strictly_equal(left, right) is row["strict"], row
            assert operators.loosely_equal(left, right) is row["loose"], row
            assert operators.ordered("lt", left, right) is row["less"], row
            assert values.json_text(operators.add(left, right)) == row["sum"], row


def test_undefined_is_left_out_of_objects_and_null_in_lists() -> None:
    given = {"a": values.UNDEFINED, "b": [values.UNDEFINED, float("nan")], "c": print}
    assert values.json_text(given) == '{"b":[null,null]}'
    assert (
        values.string(values.UNDEFINED) == "undefined" and values.text([None, values.UNDEFINED, 1]) == ",,1"
    )


def test_what_is_nested_without_end_is_refused_in_one_line() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(values.ScriptValueError, match="nested too deeply"):
        values.json_text(endless)
