"""Which query is the agent's own, by what its attempt recorded."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from tui_eval.agent_query import AgentQuery, agent_query, rows_given
from tui_eval.model import Attempt, DataDetails, Entry, Reply


def attempt(
    *entries: Entry, reply: str = "", rows_sql: str | None = None, verified: str | None = None
) -> Attempt:
    return Attempt(
        case_id="a",
        attempt=1,
        outcome="failed",
        transcript=list(entries),
        replies=[Reply(turn=1, text=reply, rows_sql=rows_sql)],
        data=DataDetails(verification_sql=verified),
    )


def call(arguments: Any, name: str = "run_sql", call_id: str | None = None) -> Entry:
    return Entry(turn=1, kind="tool_call", name=name, arguments=arguments, call_id=call_id)


def result(call_id: str, error: str | None = None) -> Entry:
    return Entry(turn=1, kind="tool_result", name="run_sql", call_id=call_id, error=error)


@pytest.mark.parametrize(
    ("arguments", "sql"),
    [
        ({"query": "select 1"}, "select 1"),
        ({"sql_query": "select 2", "limit": 5}, "select 2"),
        ('{"sql": "select 3"}', "select 3"),
        ("select 4", "select 4"),
        ({"statement": " "}, None),
        ({"query": 7}, None),
        ("{not json", None),
        (None, None),
    ],
)
def test_a_call_of_a_tool_that_runs_sql(arguments: Any, sql: str | None) -> None:
    found = agent_query(attempt(call(arguments)))
    assert found == (None if sql is None else AgentQuery(sql, "tool", "run_sql"))


def test_the_last_call_counts() -> None:
    found = agent_query(
        attempt(call({"query": "select 1"}), call({"query": "select 2"}), call({}, "search_docs"))
    )
    assert found is not None and found.sql == "select 2"


def test_a_call_that_failed_counts_only_where_none_went_well() -> None:
    good, bad = call({"query": "select 1"}, call_id="1"), call({"query": "selec 2"}, call_id="2")
    found = agent_query(attempt(good, result("1"), bad, result("2", "syntax error")))
    assert found is not None and found.sql == "select 1"
    found = agent_query(attempt(bad, result("2", "syntax error")))
    assert found is not None and found.sql == "selec 2"


def test_a_question_to_another_tool_is_no_query() -> None:
    assert agent_query(attempt(call({"query": "opening hours in March"}, "query_docs"))) is None
    found = agent_query(attempt(call({"query": "SELECT 1"}, "query_warehouse")))
    assert found is not None and found.tool == "query_warehouse"


def test_what_the_server_verified_counts_before_all() -> None:
    found = agent_query(
        attempt(call({"query": "select 1"}), verified="select 2", reply="```sql\nselect 3\n```")
    )
    assert found == AgentQuery("select 2", "verification")
    assert agent_query(attempt(rows_sql="select 4")) == AgentQuery("select 4", "verification")


def ran(name: str, sql: str, call_id: str, error: str | None = None) -> list[Entry]:
    given = Entry(
        turn=1, kind="tool_result", name="execute_sql", call_id=call_id, error=error, result={"id": name}
    )
    return [call({"sql_query": sql, "name": "step"}, "execute_sql", call_id), given]


@pytest.mark.parametrize(
    ("verified", "expected"),
    [
        ("SELECT * FROM query_3e957ee4", [(4,), (6,)]),
        ('SELECT n AS total FROM "query_3e957ee4" WHERE n > 4', [(6,)]),
        ("SELECT a.n + b.n FROM query_3e957ee4 a, QUERY_0A0B0C0D b ORDER BY 1", [(14,), (16,)]),
        ("-- in two steps\nWITH big AS (SELECT n FROM query_3e957ee4 WHERE n > 4) SELECT n FROM big", [(6,)]),
        ("WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 2) "
         "SELECT u.n FROM up u, query_0a0b0c0d", [(1,), (2,)]),
    ],
)  # fmt: skip
def test_what_was_verified_over_results_of_calls_runs_on_the_database(
    verified: str, expected: list[Any]
) -> None:
    """nao 0.3.29 verifies with a query over the results of the agent's calls, which no database has."""
    calls = [
        *ran("query_3e957ee4", "SELECT x * 2 AS n FROM numbers -- doubled\n;", "1"),
        *ran("query_0a0b0c0d", "SELECT 10 AS n", "2"),
        *ran("query_ffffffff", "SELEC", "3", "syntax error"),
    ]
    found = agent_query(attempt(*calls, verified=verified))
    assert found is not None and found.source == "verification"
    with duckdb.connect() as database:
        database.execute("CREATE TABLE numbers AS SELECT unnest([2, 3]) AS x")
        assert sorted(database.execute(found.sql).fetchall()) == expected


def test_a_verification_over_a_result_that_is_not_in_the_record_is_no_query() -> None:
    calls = ran("query_3e957ee4", "SELECT 1 AS n", "1")
    found = agent_query(attempt(*calls, verified="SELECT n FROM query_99999999"))
    assert found == AgentQuery("SELECT 1 AS n", "tool", "execute_sql")
    assert agent_query(attempt(verified="SELECT n FROM query_99999999")) is None


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("So:\n```sql\nselect 1\n```\nor better\n```SQL\nselect 2\nfrom t\n```\n", "select 2\nfrom t"),
        ("```\nWITH a AS (SELECT 1) SELECT * FROM a\n```", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("```\n-- all\nselect 1\n```", "-- all\nselect 1"),
        ("````duckdb\r\nselect '```'\r\n````", "select '```'"),
        ("  ~~~sql\n  select 1\n  ~~~", "select 1"),
        ("```python\nselect = 1\n```", None),
        ("```\nnot a query\n```", None),
        ("```sql\nselect 1", None),
        ("select 1", None),
    ],
)
def test_a_fenced_block_of_the_reply(text: str, sql: str | None) -> None:
    found = agent_query(attempt(reply=text))
    assert found == (None if sql is None else AgentQuery(sql, "reply"))


def test_a_reply_of_nothing_but_fences_is_read_in_time() -> None:
    assert agent_query(attempt(reply="```\n" * 50_000)) is None
    assert agent_query(attempt(reply="`" * 200_000 + "sql\nselect 1")) is None


ROWS = [{"n": 1, "x": "a"}, {"n": 2, "x": "b"}]
TEN = [{"n": n} for n in range(10)]


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        (ROWS, ROWS),
        ({"rows": ROWS, "columns": ["n", "x"]}, ROWS),
        ({"columns": ["n", "x"], "rows": [[1, "a"], [2, "b"]]}, ROWS),
        ({"data": ROWS, "row_count": 2}, ROWS),
        ('{"data": [{"n": 1, "x": "a"}], "row_count": 1}', ROWS[:1]),
        ({"data": TEN, "row_count": 10}, TEN),
        (TEN, None),  # as a tool gives them that shows ten at most
        ({"data": ROWS, "row_count": 150}, None),
        ({"data": ROWS, "is_preview": True}, None),
        ({"rows": ROWS, "truncated": "2 of 9 rows"}, None),
        ('[{"n": 1}, {"n": 2', None),
        ("2 rows", None),
        ({"rows": []}, None),
        ({"rows": [1, 2]}, None),
        (None, None),
    ],
)
def test_the_rows_that_a_query_gave_are_those_of_its_tool_where_it_gave_all(given: Any, rows: Any) -> None:
    made = attempt(call({"query": "select n, x from t"}, call_id="q1"), result("q1"))
    made.transcript[-1].result = given
    query = agent_query(made)
    assert query is not None and rows_given(made, query) == rows


def test_what_a_server_verified_are_the_rows_of_the_answer() -> None:
    made = attempt(verified="select 1")
    query = agent_query(made)
    assert query is not None and made.data is not None and rows_given(made, query) is None
    made.data.actual, made.data.settings = ROWS, {"source": "verification"}
    assert rows_given(made, query) == ROWS
