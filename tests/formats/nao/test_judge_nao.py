"""nao's assertions: recorded tool_call verdicts and messages, rows against the expected SQL."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import msgspec
import polars as pl
import pytest
from msgspec import structs

from tests.support import TESTS
from tui_eval.assertions import JudgeInput, JudgeServices, Reports, RowsAnswer
from tui_eval.causes import words_of
from tui_eval.formats import judge
from tui_eval.formats.nao.judge_nao import before_asking, join_messages
from tui_eval.frames.databases import WrongQuery
from tui_eval.frames.sql import SqlError, SqlResult
from tui_eval.model import Assertion, Attempt, Case, DataDetails, Entry, Problem, Reply, Turn
from tui_eval.reports.rows_shown import queries_beside

VECTORS = [
    json.loads(line) for line in (TESTS / "vectors" / "nao_assertions.jsonl").read_text("utf-8").splitlines()
]


def case(*assertions: Assertion, **fields: Any) -> Case:
    return Case("t::n", "n", "t", "nao", turns=[Turn(text="?")], assertions=list(assertions), **fields)


@pytest.mark.parametrize(
    "vector", [v for v in VECTORS if "verdict" in v and v["assertions"]], ids=lambda v: v["id"]
)
async def test_tool_call_vector(vector: dict[str, Any]) -> None:
    entries = [
        Entry(1, "tool_call", name=call["toolName"], arguments=call.get("args"))
        for call in vector["tool_calls"]
    ]
    asked = [
        Assertion("tool_call", {k: v for k, v in item.items() if k != "type"}, "tools")
        for item in vector["assertions"]
    ]
    found = await judge(JudgeInput(case(*asked), transcript=entries, capabilities=Reports(tools=True)))
    assert (found.outcome == "passed") is vector["verdict"]["passed"]
    assert found.message == vector["verdict"]["message"]


@pytest.mark.parametrize("vector", [v for v in VECTORS if "combine" in v], ids=lambda v: v["id"])
def test_messages_join(vector: dict[str, Any]) -> None:
    assert join_messages(vector["combine"]) == vector["message"]


SQL = Assertion("sql", "select 1 as x", "rows")
CALL = Assertion("tool_call", {"tool": "sql"}, "tools")


def services(answer: RowsAnswer, result: SqlResult | Exception | None) -> JudgeServices:
    async def run_sql(database: str | None, sql: str) -> SqlResult:
        if isinstance(result, Exception):
            raise result
        assert result is not None
        return result

    async def rows(columns: list[str]) -> RowsAnswer:
        return answer

    return JudgeServices(run_sql=None if result is None else run_sql, rows=rows)


def table(**columns: list[Any]) -> SqlResult:
    frame = pl.DataFrame(columns)
    return SqlResult(frame.columns, frame)


async def test_rows_match_beside_a_tool_call() -> None:
    evidence = JudgeInput(
        case(CALL, SQL),
        transcript=[Entry(1, "tool_call", name="sql")],
        capabilities=Reports(tools=True),
        services=services(RowsAnswer([{"x": 1}], sql="select 1"), table(x=[1])),
    )
    found = await judge(evidence)
    assert (found.outcome, found.message) == ("passed", "tool_call: sql; match")
    assert found.data is not None
    assert (found.data.expected, found.data.actual) == ([{"x": 1}], [{"x": 1}])
    assert (found.data.reference_sql, found.data.verification_sql) == ("select 1 as x", "select 1")
    assert found.verdicts[1].reason == "match (the verification query reads no table)"
    assert found.verdicts[1].expected == {"x": 1}


async def test_a_query_that_reads_no_table_is_noted_only_where_its_rows_are_as_expected() -> None:
    told = services(RowsAnswer([{"x": 2}], sql="select 2"), table(x=[1]))
    verdict = (await judge(JudgeInput(case(SQL), services=told))).verdicts[0]
    assert (verdict.passed, "reads no table" in verdict.reason) == (False, False)


async def test_only_the_calls_with_the_arguments_are_what_was_asked_for() -> None:
    wanted = Assertion("tool_call", {"tool": "sql", "args": {"limit": 2}}, "tools")
    calls = [
        Entry(1, "tool_call", name=name, arguments={"limit": limit, "x": 1})
        for name, limit in [("sql", 1), ("sql", 2), ("other", 2), ("sql", 2)]
    ]
    evidence = JudgeInput(case(wanted), transcript=calls, capabilities=Reports(tools=True))
    (verdict,) = (await judge(evidence)).verdicts
    assert verdict.passed is True
    assert [(one.code, one.call) for one in verdict.evidence or ()] == [("called", 2), ("called", 4)]


@pytest.mark.parametrize(
    ("own", "passed"), [({}, False), ({"ordered": True}, False), ({"rtol": 0.1}, True), ({"atol": 1}, True)]
)
async def test_only_a_tolerance_of_the_case_itself_is_one_for_whole_numbers(
    own: dict[str, Any], passed: bool
) -> None:
    told = services(RowsAnswer([{"x": 101}]), table(x=[100]))
    told.comparison = {"rtol": 0.1, "exact_integers": True}
    found = await judge(JudgeInput(case(SQL, comparison=own), services=told))
    assert [verdict.passed for verdict in found.verdicts] == [passed]


async def test_an_answer_that_cannot_be_had_as_rows_is_an_error() -> None:
    """Not the same as rows that the agent was asked for and does not have."""
    told = services(RowsAnswer(None), table(x=[1]))
    told.rows = None
    for reply, passed in [
        (Reply(1, "1"), None),
        (Reply(1, "1", verified=True), False),
        (Reply(1, "1", rows=[{"x": 1}]), True),
    ]:
        found = await judge(JudgeInput(case(SQL), [reply], services=told))
        assert [verdict.passed for verdict in found.verdicts] == [passed]


@pytest.mark.parametrize(
    ("ordered", "given", "asked"),
    [(True, [1, 2], 1), (False, [1, 3], 1), (True, [2, 1], 2), (False, [2, 1], 2)],
)
async def test_a_database_is_asked_which_rows_tie_only_where_their_order_may_be_wrong(
    ordered: bool, given: list[int], asked: int
) -> None:
    queries: list[str] = []

    async def run_sql(database: str | None, sql: str) -> SqlResult:
        queries.append(sql)
        return replace(table(x=[1, 2], y=[0, 0]), ordered=True)

    told = services(RowsAnswer([{"x": x, "y": 0} for x in given]), None)
    told.run_sql = run_sql
    query = Assertion("sql", "select x, y from t order by z", "rows")
    await judge(JudgeInput(case(query, comparison={"ordered": ordered}), services=told))
    assert len(queries) == asked


async def test_a_query_of_sqlite_is_shown_as_its_database_reads_it() -> None:
    expected, own = "select date(d, '+1 day') as x from t", "select date(d, '+2 days') as x from t"
    result = replace(table(x=[1]), dialect="sqlite")
    told = services(RowsAnswer([{"x": 2}], sql=own), result)
    found = await judge(JudgeInput(case(Assertion("sql", expected, "rows")), services=told))
    assert found.data is not None
    lines = queries_beside(Attempt("t::n", 1, "failed", data=found.data))
    assert ("  DATE(d, '+1 day') AS x", "  DATE(d, '+2 days') AS x") in [
        (one.expected, one.actual) for one in lines
    ]


@pytest.mark.real
async def test_a_date_of_one_row_has_no_midnight() -> None:
    result = replace(table(day=["2018-01-01T00:00:00"]), types={"day": "DATE"})
    answer = RowsAnswer([{"day": "2018-01-02 00:00:00"}])
    verdict = (await judge(JudgeInput(case(SQL), services=services(answer, result)))).verdicts[0]
    assert (verdict.expected, verdict.actual) == ({"day": "2018-01-01"}, {"day": "2018-01-02"})
    assert "expected 2018-01-01, actual 2018-01-02" in verdict.reason and "00:00" not in verdict.reason


async def test_rows_differ_and_say_where() -> None:
    found = await judge(
        JudgeInput(case(SQL), services=services(RowsAnswer([{"x": 250002}]), table(x=[250001])))
    )
    assert (found.outcome, found.message) == ("failed", "values differ (within nao's tolerance)")
    assert found.data is not None and found.data.comparison is not None
    assert "expected 250001, actual 250002" in found.data.comparison
    assert "off by 1" in found.verdicts[0].reason


@pytest.mark.parametrize("given", [1, 2])
async def test_a_key_that_the_query_does_not_give_is_said(given: int) -> None:
    """Rows are then aligned otherwise than the person wrote; `check` was the only one to say so."""
    answer = services(RowsAnswer([{"x": given}]), table(x=[1]))
    found = await judge(JudgeInput(case(SQL, comparison={"key": ["nope"]}), services=answer))
    assert found.verdicts[0].passed is (given == 1)
    said = " (comparison.key: the query gives no column 'nope')"
    assert found.verdicts[0].reason.endswith(said) and found.message.endswith(said)
    known = await judge(JudgeInput(case(SQL, comparison={"key": ["x"]}), services=answer))
    assert "comparison.key" not in known.verdicts[0].reason


@pytest.mark.parametrize("given", [1, 2])
async def test_columns_of_one_name_are_said(given: int) -> None:
    expected = table(id=[1], id_1=[2])
    expected.renamed = {"id_1": "id"}
    answer = services(RowsAnswer([{"id": given, "id_1": 2}]), expected)
    found = await judge(JudgeInput(case(SQL), services=answer))
    said = " (the query has several columns called 'id': this one is compared as 'id_1')"
    assert found.message.endswith(said) and found.verdicts[0].reason.endswith(said)
    plain = await judge(JudgeInput(case(SQL), compat="reference", services=answer))
    assert "several" not in plain.message


async def test_nobody_is_asked_whose_rows_are_compared_by_rules_that_cannot_be_read() -> None:
    answer = services(RowsAnswer([{"x": 1}]), table(x=[1]))
    wrong = case(CALL)
    assert await before_asking(JudgeInput(wrong, services=answer)) is None
    wrong.problems = [Problem("t.yml", 4, "comparison.rtol", "must be at least 0, not -1")]
    known = await before_asking(JudgeInput(wrong, services=answer))
    assert known is not None and known.outcome == "error"
    wrong.problems = [Problem("t.yml", 4, "comparison.rtol", "odd", level="note")]
    assert await before_asking(JudgeInput(wrong, services=answer)) is None


async def test_reference_gives_the_tools_verdict() -> None:
    evidence = JudgeInput(
        case(SQL), compat="reference", services=services(RowsAnswer([{"x": 250002}]), table(x=[250001]))
    )
    found = await judge(evidence)
    assert (found.outcome, found.message) == ("passed", "match (approximate)")


async def test_the_backends_expected_rows_fill_in_for_a_database() -> None:
    reply = Reply(1, rows=[{"x": 1}], expected_rows=[{"x": 2}], rows_columns=["x"], verified=True)
    found = await judge(JudgeInput(case(SQL), replies=[reply]))
    assert (found.outcome, found.message) == ("failed", "values differ")


async def test_null_data_fails_with_the_servers_words() -> None:
    answer = RowsAnswer(None, "The agent did not run any SQL query.")
    found = await judge(JudgeInput(case(SQL), services=services(answer, table(x=[1]))))
    assert (found.outcome, found.message) == ("failed", "The agent did not run any SQL query.")


async def test_no_database_is_an_error_that_says_what_to_write() -> None:
    found = await judge(JudgeInput(case(SQL), services=services(RowsAnswer([{"x": 1}]), None)))
    assert found.outcome == "error"
    assert "databases:" in found.message and "nao_config.yaml" in found.message


async def test_wrong_expected_sql_is_an_error_beside_the_tool_call() -> None:
    evidence = JudgeInput(
        case(CALL, structs.replace(SQL, line=3)),
        transcript=[Entry(1, "tool_call", name="sql")],
        capabilities=Reports(tools=True),
        services=services(RowsAnswer([]), SqlError("Binder Error: no such column")),
    )
    found = await judge(evidence)
    assert found.outcome == "error"
    wrong = "the case's expected query is wrong (t:3): Binder Error: no such column"
    assert found.message == f"tool_call: sql; {wrong}"
    assert [verdict.passed for verdict in found.verdicts] == [True, None]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            'Binder Error: Referenced column "amont" not found in FROM clause! Candidates: x',
            'no column "amont"',
        ),
        ("Catalog Error: Table with name ordres does not exist! Did you mean x?", "no table ordres"),
        ('Parser Error: syntax error at or near "FRM"', 'syntax error at or near "FRM"'),
        ("stopped after 30 s", "stopped after 30 s"),
    ],
)
async def test_lists_say_what_is_wrong_with_an_expected_query_fact_first(said: str, words: str) -> None:
    """In their few columns DuckDB's sentence ended before the fact."""
    found = await judge(JudgeInput(case(SQL), services=services(RowsAnswer([]), SqlError(said))))
    assert words_of(found.verdicts[0]) == f"expected SQL: {words}"
    assert said in found.message


async def test_a_query_that_postgresql_refuses_is_called_wrong_by_its_code() -> None:
    refused = WrongQuery('column "nmae" does not exist')
    found = await judge(
        JudgeInput(case(structs.replace(SQL, line=3)), services=services(RowsAnswer([]), refused))
    )
    assert found.message == 'the case\'s expected query is wrong (t:3): column "nmae" does not exist'


async def test_a_query_that_took_too_long_is_not_called_wrong() -> None:
    late = SqlError("stopped after 30 s")
    found = await judge(JudgeInput(case(SQL), services=services(RowsAnswer([]), late)))
    assert (found.outcome, found.message) == ("error", "expected SQL: stopped after 30 s")


async def test_an_agent_that_cannot_report_tools_is_an_error() -> None:
    assert (await judge(JudgeInput(case(CALL)))).outcome == "error"


async def test_details_stop_at_a_thousand_rows() -> None:
    rows = [{"x": number} for number in range(1500)]
    found = await judge(
        JudgeInput(case(SQL), services=services(RowsAnswer(rows[::-1]), table(x=list(range(1500)))))
    )
    assert found.message == "match"
    assert found.data is not None and found.data.expected is not None and found.data.actual is not None
    assert len(found.data.expected) == len(found.data.actual) == 1000
    assert found.data.settings["truncated"] == {"expected": 1500, "actual": 1500}


async def test_a_prompt_alone_asserts_nothing() -> None:
    found = await judge(JudgeInput(case()))
    assert (found.outcome, found.message) == ("passed", "nothing asserted")
    found = await judge(JudgeInput(case(), compat="reference"))
    assert (found.outcome, found.message) == ("passed", "no verification")


@pytest.mark.parametrize(("with_call", "outcome"), [(False, "passed"), (True, "failed")])
async def test_reference_without_verification(with_call: bool, outcome: str) -> None:
    asked = [CALL, SQL] if with_call else [SQL]
    evidence = JudgeInput(
        case(*asked),
        compat="reference",
        transcript=[Entry(1, "tool_call", name="sql")],
        capabilities=Reports(tools=True),
        replies=[Reply(1)],
    )
    found = await judge(evidence)
    assert found.outcome == outcome
    assert found.message == ("tool_call: sql; no verification data" if with_call else "no verification")


async def test_reference_verified_without_expected_rows_is_no_pass() -> None:
    reply = Reply(1, rows=[{"x": 1}], verified=True)
    found = await judge(JudgeInput(case(SQL), compat="reference", replies=[reply]))
    assert found.outcome == "error"
    assert found.message == "nao verified the answer without saying which rows it expected"


@pytest.mark.real
async def test_nan_and_infinity_are_kept_with_the_rows_that_were_judged() -> None:
    given = [{"x": float("-inf"), "k": 1}, {"x": float("nan"), "k": 2}, {"x": None, "k": 3}]
    expected = table(x=[float("inf"), 2.5, None], k=[1, 2, 3])
    found = await judge(JudgeInput(case(SQL), services=services(RowsAnswer(given), expected)))
    assert found.outcome == "failed" and found.data is not None
    kept = msgspec.json.decode(msgspec.json.encode(found.data), type=DataDetails)
    assert kept.expected is not None and kept.actual is not None
    assert [row["x"] for row in kept.expected] == [float("inf"), 2.5, None]
    assert kept.actual[0]["x"] == float("-inf") and math.isnan(kept.actual[1]["x"])
    assert kept.actual[2]["x"] is None
    again = await judge(JudgeInput(case(SQL), services=services(RowsAnswer(kept.actual), expected)))
    assert again.outcome == "failed"


@pytest.mark.parametrize(
    "marks", [7, {"actual": 7}, {"actual": {"x": {"inf": [9]}}}, {"other": {"x": {"y": ["z"]}}}]
)
def test_marks_of_another_hand_change_nothing(marks: Any) -> None:
    kept = DataDetails(actual=[{"x": 1.0}], settings={"not_finite": marks})
    assert kept.actual == [{"x": 1.0}]
