"""What arrives from PostgreSQL's driver becomes exact frames; without the extra, the error names it."""

from __future__ import annotations

import datetime as dt
import json
import socket
import sys
from decimal import Decimal

import polars as pl
import pytest

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames import nao_reference, postgres
from tui_eval.frames.compare import compare
from tui_eval.frames.databases import NoDatabase
from tui_eval.frames.difference import align
from tui_eval.frames.sql import SqlError, SqlResult, execute, rows


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(SqlError, match=r"pip install -e "):
        postgres.execute(
            DatabaseSpec("p", "postgres", url="postgresql://localhost/x"), "SELECT 1", timeout=30
        )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:first@ssw0rd12@127.0.0.1:9/d", "must be written as %40 for @"),
        ("postgres://u:first/ssw0rd12@127.0.0.1:9/d", "must be written as %40 for @"),
        ("postgresql://u:first ssw0rd12@127.0.0.1:9/d", "must be written as %40 for @"),
        ("postgresql://u:first%ssw0rd12@127.0.0.1:9/d", "must be written as %40 for @"),
        ("postgresql://u:fir?st@ssw0rd12@127.0.0.1:9/d", "must be written as %40 for @"),
        (
            "host=127.0.0.1 port=9 password=first ssw0rd12",
            "is no postgresql://user:password@host:port/database",
        ),
        ("mysql://u:firstssw0rd12@127.0.0.1:9/d", "is no postgresql://user:password@host:port/database"),
        ("postgresql://u:firstssw0rd12@127.0.0.1:9/d?application_name=a@b", "Connection refused"),
    ],
)
def test_no_part_of_a_password_is_in_what_is_said_of_an_address(url: str, said: str) -> None:
    pytest.importorskip("adbc_driver_postgresql", reason="the postgres extra is not installed")
    with pytest.raises(SqlError, match=said) as caught:
        postgres.execute(DatabaseSpec("p", "postgres", url=url), "SELECT 1", timeout=5)
    assert "first" not in str(caught.value) and "ssw0rd" not in str(caught.value)


def test_a_server_that_does_not_answer_cannot_be_reached() -> None:
    """It was said that the query took long."""
    pytest.importorskip("adbc_driver_postgresql", reason="the postgres extra is not installed")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/d"
        with pytest.raises(NoDatabase, match=r"^database 'p' cannot be reached: .*timeout expired$"):
            postgres.execute(DatabaseSpec("p", "postgres", url=url), "SELECT 1", timeout=4)


def test_what_is_no_text_is_no_query() -> None:
    spec = DatabaseSpec("p", "postgres", url="postgresql://u@127.0.0.1:9/d")
    with pytest.raises(SqlError, match="half of a pair of surrogates"):
        execute(spec, "SELECT '\ud83d'")
    with pytest.raises(SqlError, match="holds a NUL"):
        postgres.execute(spec, "SELECT 1 AS n\0, 2", timeout=4)


def test_numeric_text_becomes_exact_decimals() -> None:
    found = postgres.exact_decimals(pl.Series("n", ["1.50", None, "-1200000"]))
    assert found.to_list() == [Decimal("1.50"), None, Decimal("-1200000.00")]
    for texts in (["abc"], ["NaN", "9007199254740993"], ["123456789012345678901234567890.123456789"]):
        assert postgres.exact_decimals(pl.Series("n", texts)).dtype == pl.String


@pytest.mark.parametrize(
    ("texts", "answer", "wrong"),
    [
        (["0.50000000000000000000"], [0.5], [0.501]),
        (
            ["0.66666666666666666667", "100000.50000000000000000000"],
            [0.6666666667, 100000.5],
            [0.67, 100000.5],
        ),
        (["1.414213562373095"], [1.4142135], [1.41]),
        (
            ["5878894.714285714286", "587889471.428571428600"],
            [5878894.714, 587889471.43],
            [5878994, 587889471.43],
        ),
        (["NaN", "1.5", "Infinity"], [None, 1.5, None], [1, 1.5, None]),
        (["2.3333333333333333", "12.0000000000000000"], [2.333333, 12], [2.33, 12]),
        (["0.0000033333333333333333333333"], [1e-5 / 3], [0]),
        ([None, "0.00000000000000000000"], [None, 0], [0, 0]),
    ],
)
def test_quotients_are_floats(texts: list[str | None], answer: list[object], wrong: list[object]) -> None:
    found = postgres.exact_decimals(pl.Series("n", texts))
    assert found.dtype == pl.Float64
    _compared(found, answer, wrong)


@pytest.mark.parametrize(
    ("texts", "answer", "wrong"),
    [
        (["250001.000000000000000000"], [250001], [250002]),  # 18 places, as columns of token amounts have
        (["12345678.12345678"], [12345678.12345678], [12345678.12345679]),
        (["1234567890123.56"], [1234567890123.56], [1234567890123.55]),
        (["100000.500000000000000000", "1"], [100000.5, 1], [100000.4, 1]),
        (["123456789012345678901234567890.5000000000"], ["123456789012345678901234567890.5"],
         ["123456789012345678901234567891.5"]),
        (["9007199254740993", "0.50000000000000000000"], [9007199254740993, 0.5], [9007199254740992, 0.5]),
    ],
)  # fmt: skip
def test_other_numbers_are_exact(texts: list[str | None], answer: list[object], wrong: list[object]) -> None:
    found = postgres.exact_decimals(pl.Series("n", texts))
    assert isinstance(found.dtype, pl.Decimal)
    _compared(found, answer, wrong)


@pytest.mark.parametrize(
    "texts", [["1234567.123456789", "5.000000000"], ["123456789.12345678901"], ["-30848465.4473251740", None]]
)
def test_declared_places_are_exact_where_nothing_is_divided(texts: list[str | None]) -> None:
    """NUMERIC(38, 9) of BigQuery: as a float 1234560 would be 1234567.123456789."""
    found = postgres.exact_decimals(pl.Series("n", texts), quotients=False)
    assert isinstance(found.dtype, pl.Decimal)
    numbers = [None if text is None else float(text) for text in texts]
    _compared(found, list(numbers), [None if one is None else one * 1.000005 for one in numbers])
    assert postgres.exact_decimals(pl.Series("n", texts)).dtype == pl.Float64
    averages = pl.Series("n", ["2.3333333333333333", "5878894.714285714286"])
    assert postgres.exact_decimals(averages, quotients=False).dtype == pl.Float64  # of a view


@pytest.mark.parametrize(
    "texts", [["123456789012345678901234567890123456789.50", "1.50", None], ["1" + "0" * 40, "0.50", None]]
)
def test_numbers_of_too_many_digits_are_numbers(texts: list[str | None]) -> None:
    """As texts they were no answer's: 0.5 is not the text 0.50."""
    frame, types = postgres.meant(pl.DataFrame({"n": texts}), {"n": "numeric"})
    found = SqlResult(["n"], frame, types=types)
    right = [{"n": None if text is None else float(text)} for text in texts]
    assert right[1]["n"] is not None
    wrong = [right[0], {"n": right[1]["n"] + 0.01}, right[2]]
    kept = json.loads(json.dumps(rows(found)))  # as a run keeps them
    for answer in (right, kept):
        said = compare(answer, found)
        assert said.passed, said.text
        assert align(kept, answer, None, ["n"], types).same_cells()["n"].all()
    assert not compare(wrong, found).passed
    assert not align(kept, wrong, None, ["n"], types).same_cells()["n"].all()
    assert nao_reference.compare(right, rows(found), types=types, dialect="postgres").passed


def _compared(found: pl.Series, answer: list[object], wrong: list[object]) -> None:
    expected = SqlResult(["n"], pl.DataFrame([found]))
    assert compare([{"n": one} for one in answer], expected).passed
    assert not compare([{"n": one} for one in wrong], expected).passed


def test_types_of_the_drivers_own_arrive_as_text_or_numbers() -> None:
    import duckdb

    frame = postgres.arrived(pl.DataFrame({"a": [1, 2]}))
    assert frame.to_dict(as_series=False) == {"a": [1, 2]}
    strange = pl.DataFrame(duckdb.sql("SELECT 12::BIGNUM AS x"))
    if type(strange.schema["x"]).__name__ == "Extension":
        with pytest.raises(pl.exceptions.PolarsError):
            postgres.arrived(strange)


def test_every_column_has_a_type_for_the_record() -> None:
    """It keeps rows as JSON: without its type a sum of money is a float there, which a few cents leave the same."""
    day, moment = dt.date(2024, 1, 5), dt.datetime(2024, 1, 5, 10, 11, 12, tzinfo=dt.UTC)
    frame = pl.DataFrame(
        {
            "money": pl.Series([Decimal("123456.78")], dtype=pl.Decimal(38, 2)),
            "huge": ["12345678901234567890123456789012345678901234567890.5"],
            "day": [day],
            "at": pl.Series([moment], dtype=pl.Datetime("us", "UTC")),
            "note": ["2024-01-05"],
        }
    )
    kinds = {
        "money": "numeric",
        "huge": "numeric",
        "day": "date",
        "at": "timestamp with time zone",
        "note": "text",
    }
    made, types = postgres.meant(frame, kinds)
    assert types == {
        "money": "DECIMAL(38,2)", "huge": "BIGNUM", "day": "DATE", "at": "TIMESTAMP WITH TIME ZONE", "note": "VARCHAR",
    }  # fmt: skip
    result = SqlResult(made.columns, made, types=types)
    kept = rows(result)
    assert kept == [
        {"money": 123456.78, "huge": frame["huge"][0], "day": "2024-01-05T00:00:00", "at": "2024-01-05T10:11:12+00:00",
         "note": "2024-01-05"}
    ]  # fmt: skip
    wrong = [kept[0] | {"money": 123456.9, "note": "2024-01-05T00:00:00"}]
    assert not compare(wrong, result).passed
    found = align(kept, wrong, types=types).same_cells().row(0, named=True)
    assert [name for name, same in found.items() if not same] == ["money", "note"]
    assert nao_reference.compare(kept, rows(result), None, made.columns, types=types).passed
