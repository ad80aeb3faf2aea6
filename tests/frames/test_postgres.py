"""What arrives from PostgreSQL's driver becomes exact frames; without the extra, the error names it."""

from __future__ import annotations

import sys
from decimal import Decimal

import polars as pl
import pytest

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames import postgres
from tui_eval.frames.sql import SqlError, execute


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(SqlError, match=r"pip install -e "):
        execute(DatabaseSpec("p", "postgres", url="postgresql://localhost/x"), "SELECT 1")


def test_numeric_text_becomes_exact_decimals() -> None:
    found = postgres.exact_decimals(pl.Series("n", ["1.50", None, "-1200000"]))
    assert found.to_list() == [Decimal("1.50"), None, Decimal("-1200000.00")]
    for texts in (["NaN"], ["abc"], ["1e-30"]):
        assert postgres.exact_decimals(pl.Series("n", texts)).dtype == pl.String


def test_types_of_the_drivers_own_arrive_as_text_or_numbers() -> None:
    import duckdb

    frame = postgres.arrived(pl.DataFrame({"a": [1, 2]}))
    assert frame.to_dict(as_series=False) == {"a": [1, 2]}
    strange = pl.DataFrame(duckdb.sql("SELECT 12::BIGNUM AS x"))
    if type(strange.schema["x"]).__name__ == "Extension":
        with pytest.raises(pl.exceptions.PolarsError):
            postgres.arrived(strange)
