"""What the text of a query alone tells of its rows."""

from __future__ import annotations

import pytest

from tui_eval.frames.difference import align, know_queries
from tui_eval.frames.query_words import changes_each_time, divides, joins_rows, known_of, limits_rows
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
    def known(sql: str | None, **kept: object) -> tuple[object, ...]:
        difference = align([{"a": 1}], [{"a": 2}])
        know_queries(
            difference, DataDetails(reference_sql=sql, settings={"conclusion": kept} if kept else {})
        )
        return *difference.limited, difference.own_query

    assert known(None) == (None, None, "")
    assert known("select 1", **known_of("select a, b from t limit 2")) == (False, True, "joinless")
    assert known("select 1", **known_of("select a from t join u using (b)")) == (False, False, "")
    assert known("select 1", blame="retold") == (False, None, "right")


@pytest.mark.parametrize(
    ("sql", "joins"),
    [
        ("select a from t JOIN u using (b)", True),
        ("select a, b from t, u where t.b = u.b", True),
        ("select a from (select 1 as a, 2 as b) x, u", True),
        ("select a from t, unnest(t.b)", True),
        ("select status, sum(amount) * 2 from t group by 1", False),
        ("select a, count(*) from t where b in (1, 2) group by 1, 2", False),
        ("select a from t where b = ' join ' -- join", False),
        ("select a from a tale, told, by (an", None),
        ("", None),
        (None, None),
    ],
)
def test_whether_a_query_joins_rows(sql: str | None, joins: bool | None) -> None:
    assert joins_rows(sql) is joins


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


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT id, amount FROM balances", False),
        ("SELECT sum(amount) FROM t -- total / count", False),
        ("SELECT average, powerful FROM t WHERE note = 'a/b'", False),
        ("SELECT amount / 3 FROM t", True),
        ("SELECT AVG (amount) FROM t", True),
        ("SELECT stddev_samp(amount) FROM t", True),
        ("SELECT 2 ^ 0.5", True),
    ],
)
def test_a_query_that_makes_quotients(sql: str, found: bool) -> None:
    assert divides(sql) is found
