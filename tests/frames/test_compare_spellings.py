"""Times of day, intervals and JSON that a database and an agent's server spell apart."""

from __future__ import annotations

import datetime
from typing import Any

import polars as pl
import pytest

from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.sql_result import SqlResult
from tui_eval.frames.value_texts import interval, moment


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
        ("INTERVAL", "1 year 2 mons 3 days 04:05:06.5", "P1Y2M3DT4H5M6.500S", True),
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


def test_a_moment_is_a_date_a_timestamp_or_a_time_of_day() -> None:
    assert [moment(text) for text in ("2024-01-05", "08:00", "08:00:00.10", "noon")] == [
        "2024-01-05T00:00:00",
        "08:00:00",
        "08:00:00.1",
        None,
    ]
