"""Times of day, intervals and JSON that a database and an agent's server spell apart."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import polars as pl
import pytest

from tui_eval.frames import nao_reference
from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.databases import SqlResult
from tui_eval.frames.value_texts import interval, moment, period


def equal(kind: str, expected: Any, actual: Any) -> bool | None:
    result = SqlResult(["v"], pl.DataFrame({"v": [expected]}), types={"v": kind})
    return compare([{"v": actual}], result, ComparisonSettings()).passed


@pytest.mark.parametrize(
    ("kind", "expected", "actual", "same"),
    [
        # nao's API sends times and intervals so.
        ("TIME", datetime.time(23, 59, 59, 500_000), "23:59:59.500000", True),
        ("TIME", "23:59:59.5", "23:59:59.500000", True),
        ("TIME", "10:30:00", "10:30", True),
        ("TIME", "10:30:00", "10:30:01", False),
        ("TIME", "10:30:00", " 10:30:00", False),
        ("INTERVAL", "3 days", "P3DT0H0M0S", True),
        ("INTERVAL", "2 months", "P60D", True),
        ("INTERVAL", "01:00:00", "PT1H", True),
        ("INTERVAL", "-01:30:00", "-PT90M", True),
        ("INTERVAL", "-1 days +02:00:00", "-PT22H", True),
        ("INTERVAL", "-1 days +02:00:00", "-PT26H", False),
        ("INTERVAL", "1 year 2 mons 3 days 04:05:06.5", "P1Y2M3DT4H5M6.500S", True),
        # nao's server writes 365 days as a year; DuckDB's own has 360.
        ("INTERVAL", "762 days 10:00:00", "P2Y32DT10H", True),
        ("INTERVAL", "-400 days", "-P1Y35D", True),
        ("INTERVAL", "1 year 10 days", "P1Y5D", True),
        ("INTERVAL", "1 year", "P1Y", True),
        ("INTERVAL", "400 days", "P1Y36D", False),
        ("INTERVAL", "360 days", "P1Y", False),
        ("INTERVAL", "365 days", "P1Y", True),
        ("INTERVAL", "360 days", "P360D", True),
        ("INTERVAL", "3 days", "3 days", True),
        ("INTERVAL", "3 days", "P4D", False),
        ("INTERVAL", "3 days", "three days", False),
        ("INTERVAL", "3 days", 3, False),
        ("INTERVAL", "3 days", None, False),
        ("JSON", '{"b": [1, 2.0], "a": null}', {"a": None, "b": [1, 2]}, True),
        ("JSON", '{"a": 1}', {"a": 2}, False),
        ("JSON", '{"a": 1}', '{"a":1}', False),  # text and text
        ("VARCHAR", '{"a": 1}', {"a": 1}, False),
        ("VARCHAR", "10:30", "10:30:00", False),
        # A driver of PostgreSQL reads what is no list or object, DuckDB's gives its text.
        ("JSON", '"x y"', "x y", True),
        ("JSON", '"x y"', '"x y"', True),
        ("JSON", '"x y"', "x  y", False),
        ("JSON", "null", None, True),
        ("JSON", "null", "null", True),
        ("JSON", '"null"', "null", True),
        ("JSON", '"null"', None, False),
        ("JSON", "5", 5, True),
        ("JSON", "5.0", 5, True),
        ("JSON", "5.0", "5.0", True),
        ("JSON", "5.1", 5, False),
        ("JSON", "5", "1e999999999", False),  # written in full it takes a gigabyte
        ("JSON", "5", "-1e-999999999", False),
        ("JSON", "1e999999999", "1e999999999", True),
        ("JSON", "true", True, True),
        ("JSON", "true", "true", True),
        ("JSON", "true", False, False),
        ("JSON", '"5"', "5", True),
        ("JSON", None, None, True),
        ("JSON", None, "", False),
        ("JSON", None, "null", False),  # a text, or JSON's null: a driver makes nothing of SQL's
        ("VARCHAR", '"x"', "x", False),
        # Bytes come as DuckDB writes them, and from nao's server as the text that they are.
        ("BLOB", "M\\xC3\\xBCller O\\x27Neil", "Müller O'Neil", True),
        ("BLOB", "M\\xC3\\xBCller", "M\\xC3\\xBCller", True),
        ("BLOB", "\\x00\\xFF", "\\x00\\xFF", True),
        ("BLOB", "M\\xC3\\xBCller", "Muller", False),
        ("BLOB", "ab", "ab", True),
        ("VARCHAR", "M\\xC3\\xBCller", "Müller", False),
        # PostgreSQL's bytes, of which nao's server sends what is no text as marks.
        ("BYTEA", "\\x4dc3bc6c6c6572", "Müller", True),
        ("BYTEA", "\\x4dc3bc6c6c6572", "\\x4dc3bc6c6c6572", True),
        ("BYTEA", "\\x01ff", "\x01\ufffd", True),
        ("BYTEA", "\\x4dc3bc6c6c6572", "Muller", False),
        ("BYTEA", "\\x", "", True),
        # What lists and objects hold, as nao's server sends it.
        ("INTERVAL[]", "[1 day]", ["P1D"], True),
        ("INTERVAL[]", "[1 day, '01:00:00']", ["P1D", "PT1H"], True),
        ("INTERVAL[]", "[1 day]", ["P2D"], False),
        (
            "STRUCT(i INTERVAL, t TIME)",
            "{'i': 1 day 02:00:00, 't': '10:00:00'}",
            {"i": "P1DT2H", "t": "10:00:00"},
            True,
        ),
        (
            "STRUCT(i INTERVAL, t TIME)",
            "{'i': 1 day 02:00:00, 't': '10:00:00'}",
            {"i": "P1DT2H", "t": "10:00:01"},
            False,
        ),
        ("DOUBLE[]", "[nan, 1.5]", [None, 1.5], True),
        ("DOUBLE[]", "[inf, 1.5]", [None, 1.5], True),
        ("DOUBLE[]", "[-inf, 1.5]", [float("inf"), 1.5], False),
        ("DOUBLE[]", "[nan, 1.5]", [0.0, 1.5], False),
        ("STRUCT(nan DOUBLE)", "{'nan': nan}", {"nan": None}, True),
        ("JSON[]", '[{"a":1}, "x y"]', ['{"a":1}', '"x y"'], True),
        ("JSON[]", '[{"a":1}]', ['{"a":2}'], False),
        ("JSON[]", '["a b", "c"]', ["a b", "c"], True),
    ],
)
def test_values_of_a_type_are_equal_however_they_are_written(
    kind: str, expected: Any, actual: Any, same: bool
) -> None:
    assert equal(kind, expected, actual) is same


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:00", "0 s"),
        ("PT0S", "0 s"),
        ("-1 days", "-86400 s"),
        ("1 day, 2:00:00", "93600 s"),
        ("-1 day, 23:00:00", "-3600 s"),
        ("3 days, 0:00:01.500000", "259201.5 s"),
        ("1 day,", None),
        ("P-1DT24H", "0 s"),
        ("P", None),
        ("PT", None),
        ("", None),
        ("P1", None),
        ("9" * 1000 + " days", None),
    ],
)
def test_an_interval_in_seconds(text: str, seconds: str | None) -> None:
    assert interval(text) == seconds


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("1 day", "P1D"), ("00:00:00", "PT0S"), ("400 days", "P1Y35D"), ("-1 days", "-P1D"), ("1 year", "P360D"),
        ("-03:00:00", "-PT3H"), ("25:01:01.500000", "P1DT1H1M1.5S"), ("-400 days +02:00:00", "-P1Y34DT22H"),
        ("1 month 2 days 03:04:05.678", "P32DT3H4M5.678S"), ("00:00:00.000001", "PT0.000001S"), ("soon", "soon"),
        ("P1D", "P1D"), ("P1Y5D", "P1Y5D"),
    ],
)  # fmt: skip
def test_an_interval_as_nao_sends_it(text: str, sent: str) -> None:
    assert period(text) == sent


@pytest.mark.parametrize("given", ["P1Y35D", "400 days", "400 days, 0:00:00"])
def test_the_reference_compares_intervals_as_nao_sends_them(given: str) -> None:
    for value, message in (("400 days", "match"), ("401 days", "values differ")):
        found = nao_reference.compare([{"i": given}], [{"i": value}], None, ["i"], types={"i": "INTERVAL"})
        assert found.message == message, found.text


def test_the_reference_compares_bytes_as_nao_sends_them() -> None:
    expected = [{"b": "M\\xC3\\xBCller"}, {"b": "\\x00\\xFF"}]
    for given in (["Müller", "\\x00\\xFF"], ["M\\xC3\\xBCller", "\\x00\\xFF"]):
        actual = [{"b": one} for one in given]
        found = nao_reference.compare(actual, expected, None, ["b"], types={"b": "BLOB"})
        assert found.message == "match", found.text
    found = nao_reference.compare([{"b": "Muller"}], expected[:1], None, ["b"], types={"b": "BLOB"})
    assert found.message == "values differ"


@pytest.mark.parametrize("kind", ["DECIMAL(4,2)", "DOUBLE"])
def test_a_number_within_an_object_that_would_take_a_gigabyte_to_write_is_another(kind: str) -> None:
    assert equal(f"STRUCT(a {kind})", "{'a': 1.0}", '{"a": 1e999999999}') is False


def test_a_moment_is_a_date_a_timestamp_or_a_time_of_day() -> None:
    assert [moment(text) for text in ("2024-01-05", "08:00", "08:00:00.10", "noon")] == [
        "2024-01-05T00:00:00",
        "08:00:00",
        "08:00:00.1",
        None,
    ]


NESTED: list[tuple[str, Any, Any]] = [
    ("['New York', 'Rome']", ["New York", "Rome"], ["New", "York", "Rome"]),
    (r"['C:\b', 'c']", ["C:\\b", "c"], ["C:\b", "c"]),
    (r"['a\b', 'c']", ["a\\b", "c"], ["ab", "c"]),
    ("['one\ntwo', 'tab\there', ' a ', 'a;b']", ["one\ntwo", "tab\there", " a ", "a;b"], ["one two", "x", "a", ""]),
    ("['a, b', 'it''s', '', NULL]", ["a, b", "it's", "", None], ["a", "b", "it's", "", None]),
    ("['NULL']", ["NULL"], [None]),
    ("{'city': 'New York', 'it''s': 'a: b'}", {"city": "New York", "it's": "a: b"}, {"city": "New", "it's": "a: b"}),
    ("map {'x=1': 'New York'}", {"x=1": "New York"}, {"x=1": "York"}),
    ("[1.50::DECIMAL(6,2), 10]", [1.5, 10], [1.05, 10]),
    ("row(1, 'a b', row(2, '(c)'))", [1, "a b", [2, "(c)"]], [1, "a b", [2, "c"]]),
    ("row('x y')", ["x y"], ["x"]),
    # Dates and times within them, as an API sends them.
    ("[DATE '2024-01-02', NULL]", ["2024-01-02T00:00:00", None], ["2024-01-02T00:00:01", None]),
    ("[DATE '2024-01-02']", ["2024-01-02"], ["2024-01-03"]),
    ("[TIMESTAMP '2024-01-02 10:30:00.5']", ["2024-01-02T10:30:00.500"], ["2024-01-02T10:30:00"]),
    ("[TIMESTAMP '2024-01-02']", ["2024-01-02"], ["2024-01-02T12:00:00"]),
    ("[TIMESTAMPTZ '2024-01-02 10:30:00+00']", ["2024-01-02T10:30:00Z"], ["2024-01-02T10:30:00"]),
    ("[TIMESTAMPTZ '2024-01-02 10:30:00+00']", ["2024-01-02T12:30:00+02:00"], ["2024-01-02T12:30:00Z"]),
    ("[TIME '10:30:00']", ["10:30"], ["10:31"]),
    ("{'a b': DATE '2024-01-02', 'c': [[DATE '2024-01-03']]}", {"a b": "2024-01-02T00:00:00", "c": [["2024-01-03"]]},
     {"a b": "2024-01-02T00:00:00", "c": [["2024-01-04"]]}),
    ("map {'k': DATE '2024-01-02'}", {"k": "2024-01-02T00:00:00"}, {"k": "2024-01-03T00:00:00"}),
    ("map {DATE '2024-01-02': 1}", {"2024-01-02T00:00:00": 1}, {"2024-01-03T00:00:00": 1}),
    ("{'m': map {'a=1': 2}}", {"m": {"a=1": 2}}, {"m": {"a=1": 3}}),
    ("row(DATE '2024-01-02', 1)", ["2024-01-02T00:00:00", 1], ["2024-01-02T00:00:00", 2]),
    # As JSON in a text.
    ("['vip', 'b, c', '1.50']", '["vip", "b, c", "1.50"]', '["vip", "b", "c", "1.50"]'),
    ("{'a': 'x', 'n': [1.5]}", '{"n": [1.5], "a": "x"}', '{"n": [1.50, 2], "a": "x"}'),
    ("[1, NULL]", "[1,null]", "[1,2]"),
    ("[1.5::DOUBLE, 2]", "[1.50,2.0]", "[1.5,2.1]"),
    ("[1.50::DECIMAL(6,2)]", "[1.5]", "[1.501]"),
    ("[true, false]", "[true,false]", "[true,true]"),
    ("[[1], [2, 3]]", "[[1],[2,3]]", "[[1,2],[3]]"),
    ("['1', '2']", '["1","2"]', "[1,2]"),
    # An object of JSON has no order, its lists have.
    ("{'a': 1, 'b': [1, 2]}", {"b": [1, 2], "a": 1}, {"b": [2, 1], "a": 1}),
    ("[{'a': 1, 'b': {'c': 2, 'd': 3}}]", [{"b": {"d": 3, "c": 2}, "a": 1}], [{"b": {"d": 2, "c": 3}, "a": 1}]),
    # A text beside them is that text.
    ("{'d': DATE '2024-01-02', 't': '2024-01-02'}", {"d": "2024-01-02T00:00:00", "t": "2024-01-02"},
     {"d": "2024-01-02T00:00:00", "t": "2024-01-02T00:00:00"}),
    ("{'n': 1.50::DECIMAL(6,2), 'f': 2.0::DOUBLE, 't': '1.50'}", {"n": 1.5, "f": 2, "t": "1.50"},
     {"n": 1.5, "f": 2, "t": "1.5"}),
    ("[1e20::DOUBLE, 1e15::DOUBLE, 0.1::DOUBLE]", [10**20, 10**15, 0.1], [10**20, 10**15, 0.2]),
    ("{'n': 1.50::DECIMAL(6,2), 't': 'x'}", {"n": 1.5, "t": "x"}, {"n": 1.501, "t": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("written", "right", "wrong"), NESTED)
def test_lists_and_objects_equal_what_the_installed_duckdb_prints_of_them(
    written: str, right: Any, wrong: Any
) -> None:
    connection = duckdb.connect()
    [[text, kind]] = connection.execute(
        f"SELECT v::VARCHAR, typeof(v) FROM (SELECT {written} AS v)"
    ).fetchall()
    if kind.startswith("STRUCT") and written.startswith("row("):
        pytest.skip("a row without names is no tuple before DuckDB 2")
    assert equal(kind, text, right) is True
    assert equal(kind, text, wrong) is False


def test_a_moment_within_a_list_is_the_same_in_the_zone_of_every_machine() -> None:
    kind = "TIMESTAMP WITH TIME ZONE[]"
    assert equal(kind, "['2024-01-02 05:30:00-05']", ["2024-01-02T10:30:00Z"]) is True
    assert equal(kind, "['2024-01-02 16:00:00+05:30']", ["2024-01-02T10:30:00+00:00"]) is True
    assert equal(kind, "['2024-01-02 05:30:00-05']", ["2024-01-02T05:30:00Z"]) is False


@pytest.mark.parametrize("text", ["['New York', Rome]", "[New York, Rome]"])
def test_quotes_that_only_some_duckdbs_write_around_a_blank_make_no_difference(text: str) -> None:
    assert equal("VARCHAR[]", text, ["New York", "Rome"]) is True
    assert equal("VARCHAR[]", text, ["New York Rome"]) is False


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [
        ([1, None], "[1,null]", "[1,2]"),
        (["a", "1"], '["a", "1"]', '["a", 1]'),
        ([1.5, 2.0], "[1.50, 2]", "[1.50, 3]"),
        ([[1], [2]], "[[1],[2]]", "[1,2]"),
        ([1], "[1]", "{1}"),
    ],
)
def test_a_list_of_postgresql_equals_its_text_as_json(expected: list[Any], right: str, wrong: str) -> None:
    """The schema in which an answer is asked for has no lists: all that it can give is their text."""
    result = SqlResult(["tags", "id"], pl.DataFrame({"tags": [expected, None], "id": [1, 2]}))
    assert compare([{"tags": right, "id": 1}, {"tags": None, "id": 2}], result).passed
    assert not compare([{"tags": wrong, "id": 1}, {"tags": None, "id": 2}], result).passed
