"""What the text of a query alone tells of its rows."""

from __future__ import annotations

import pytest

from tui_eval.frames.query_words import changes_each_time, limited_sides, limits_rows
from tui_eval.model import DataDetails


@pytest.mark.parametrize(
    ("sql", "limits"),
    [
        ("select a from t order by 1 limit 3", True),
        ("SELECT TOP 3 a FROM t", True),
        ("select a from t fetch first 3 rows only", True),
        ("select a from t qualify row_number() over (order by b) <= 3", True),
        ("select a from t where b <> 'no limit' -- LIMIT 3", False),
        ("select unlimited, max(b) from t", False),
        ("", None),
        (None, None),
    ],
)
def test_whether_a_query_limits_its_rows(sql: str | None, limits: bool | None) -> None:
    assert limits_rows(sql) is limits


def test_a_record_says_it_of_both_queries() -> None:
    kept = DataDetails(reference_sql="select 1", settings={"conclusion": {"limited": True}})
    assert limited_sides(kept) == (False, True)
    assert limited_sides(DataDetails()) == (None, None)


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("select a from t order by RANDOM () limit 3", True),
        ("select now() as at, a from t", True),
        ("select a from t where b > now() - interval 30 day", False),
        ("select a from t where b = 'random()' -- random()", False),
        ("select now()::date as today from t", False),
        (None, False),
    ],
)
def test_whether_a_query_gives_other_rows_each_time(sql: str | None, changes: bool) -> None:
    assert changes_each_time(sql) is changes
