"""What a judgement of rows keeps of the queries: which step went wrong, and where an expected one failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.support import TESTS
from tui_eval import causes
from tui_eval.agent_query import agent_query
from tui_eval.assertions import JudgeInput, Judgement, JudgeServices, RowsAnswer
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.config.project import DatabaseSpec
from tui_eval.formats import judge
from tui_eval.formats.nao.judge_nao import columns_named
from tui_eval.frames import mended_queries
from tui_eval.frames.one_table import table_of_details
from tui_eval.frames.queries import kept_conclusion, recorded_conclusion
from tui_eval.frames.sql import SqlResult, execute
from tui_eval.model import Assertion, Attempt, Case, Entry, Turn
from tui_eval.reports.rows_shown import conclusion_lines

SHOP = DatabaseSpec("shop", "duckdb", str(TESTS / "data" / "jaffle_shop" / "jaffle_shop.duckdb"))
EXPECTED = "select status, count(*) as orders from orders group by status"
RIGHT = [
    {"status": "completed", "orders": 67},
    {"status": "placed", "orders": 13},
    {"status": "returned", "orders": 4},
    {"status": "shipped", "orders": 13},
    {"status": "return_pending", "orders": 2},
]


async def judged(
    sql: str,
    own: str | None,
    rows: list[dict[str, Any]] | None,
    *,
    root: Path = Path(),
    compat: Any = "documented",
    ran: list[str] | None = None,
    comparison: dict[str, Any] | None = None,
    transcript: list[Entry] | None = None,
    verified: str | None = None,
) -> Judgement:
    async def run(database: str | None, query: str) -> SqlResult:
        if ran is not None:
            ran.append(query)
        return execute(SHOP, query)

    async def answer(columns: list[str]) -> RowsAnswer:
        if rows is None:
            raise CannotJudge("no rows")
        return RowsAnswer(
            rows, sql=verified, columns=columns, source="verification" if verified else "extraction"
        )

    transcript = (
        transcript or [] if own is None else [Entry(1, "tool_call", name="run_sql", arguments={"sql": own})]
    )
    case = Case(
        "t.yml::n", "n", "t.yml", "nao", turns=[Turn("?")], assertions=[Assertion("sql", sql, "rows", line=3)]
    )
    case.comparison = comparison
    services = JudgeServices(run_sql=run, agent_sql=run, rows=answer, root=root)
    return await judge(JudgeInput(case, transcript=transcript, compat=compat, services=services))


@pytest.mark.real
@pytest.mark.parametrize(
    ("own", "rows", "blame"),
    [
        (EXPECTED, [{**row, "orders": 1} for row in RIGHT], "retold"),
        (EXPECTED.upper().replace("STATUS", "status"), RIGHT[:4], "retold"),
        (
            EXPECTED.replace("orders group", "orders where status <> 'placed' group"),
            [RIGHT[0], *RIGHT[2:]],
            "query",
        ),
        ("select nothing from orders", RIGHT[:2], "unknown"),
    ],
)
async def test_a_failed_comparison_keeps_which_step_went_wrong(
    own: str, rows: list[dict[str, Any]], blame: str
) -> None:
    found = await judged(EXPECTED, own, rows)
    assert found.outcome == "failed" and found.data is not None
    kept = found.data.settings["conclusion"]
    assert (kept["blame"], kept["source"]) == (blame, "tool")
    assert kept["joins"] is False
    assert blame != "unknown" or 'Referenced column "nothing"' in kept["line"]


@pytest.mark.real
async def test_the_mistake_of_a_query_is_kept_where_it_is_right_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = "select customer_id, sum(amount) as revenue from orders group by 1 order by 2 desc, 1 limit 3"
    own = expected.replace(" desc", "")
    wrong = [
        {"customer_id": 59, "revenue": 1.0},
        {"customer_id": 76, "revenue": 2.0},
        {"customer_id": 93, "revenue": 2.0},
    ]
    found = await judged(expected, own, wrong)
    assert found.data is not None
    kept = found.data.settings["conclusion"]
    assert kept["cause"] == "it sorts by revenue ascending"
    assert kept["line"] == (
        "its query is wrong: it sorts by revenue ascending (descending, it gives the expected rows); the answer has its rows"
    )
    monkeypatch.setattr(mended_queries, "MENDING_SECONDS", -1.0)  # a slow database is not asked on and on
    late = await judged(expected, own, wrong)
    assert late.data is not None and "cause" not in late.data.settings["conclusion"]
    again = kept_conclusion(found.data)
    assert again is not None and again.short == "its query is wrong: it sorts by revenue ascending"


@pytest.mark.parametrize(
    ("rows", "fact", "alike"),
    [
        (
            [*RIGHT[:1], {"status": "placed", "orders": 12}, *RIGHT[2:]],
            "orders 13→12 in 1 of 5 rows",
            "orders differs",
        ),
        (
            [{**row, "orders": row["orders"] * 100} for row in RIGHT],
            "orders ×100 in 5 of 5 rows",
            "orders ×100",
        ),
        (RIGHT[:4], "1 of 5 rows missing", "rows missing"),
    ],
)
async def test_the_short_reason_leads_with_the_fact(
    rows: list[dict[str, Any]], fact: str, alike: str
) -> None:
    found = await judged(EXPECTED, None, rows)
    (verdict,) = found.verdicts
    assert causes.words_of(verdict) == fact
    assert verdict.evidence is not None and verdict.evidence[0].rule == alike


async def test_what_passed_or_has_no_query_of_the_agent_runs_nothing_more() -> None:
    for own, rows in ((EXPECTED, RIGHT), (None, RIGHT[:2])):
        ran: list[str] = []
        found = await judged(EXPECTED, own, rows, ran=ran)
        assert found.data is not None and "conclusion" not in found.data.settings and len(ran) == 1


async def test_rows_in_another_order_are_not_called_other_values() -> None:
    found = await judged(
        f"{EXPECTED} order by orders desc, status", None, RIGHT[::-1], comparison={"ordered": True}
    )
    assert found.outcome == "failed" and found.message == "row order differs"
    told = found.verdicts[0].evidence
    assert told is not None and told[0].rule == "row order differs"
    assert told[0].text is not None and told[0].text.startswith("the same rows in another order: ")


BY_COUNT = "select customer_id from orders group by customer_id order by {} desc"


@pytest.mark.real
@pytest.mark.usually(2)
@pytest.mark.parametrize("by", ["count(*)", "n"])
@pytest.mark.parametrize("end", ["", " limit 3", " limit 6 offset 1"])
async def test_rows_that_tie_are_right_in_any_order_also_by_what_is_not_among_their_columns(
    by: str, end: str
) -> None:
    expected = BY_COUNT.format(by) + end
    if by == "n":
        expected = expected.replace("from", "from (select customer_id, count(*) n from orders group by 1)")
        expected = expected.replace(" group by customer_id order", " order")
    counts = dict(execute(SHOP, "select customer_id, count(*) from orders group by 1").frame.iter_rows())
    given = [{"customer_id": one} for one in execute(SHOP, expected).frame.to_series(0).to_list()]
    other = sorted(given, key=lambda row: (-counts[row["customer_id"]], row["customer_id"]))
    for rows in (other, sorted(other, key=lambda row: (-counts[row["customer_id"]], -row["customer_id"]))):
        found = await judged(expected, None, rows, comparison={"ordered": True})
        assert found.outcome == "passed", found.message
    found = await judged(expected, None, given[::-1], comparison={"ordered": True})
    assert found.outcome == "failed" and found.message == "row order differs"
    data = (await judged(expected, BY_COUNT.format("count(*)"), other[1:], comparison={"ordered": True})).data
    assert data is not None and "row order" not in str(data.settings.get("conclusion"))


@pytest.mark.real
async def test_an_order_that_the_query_leaves_open_is_not_said_to_differ() -> None:
    """Nobody asked for the order, and the rows tie: `the SQL's ORDER BY gives another order` was not so."""
    expected = BY_COUNT.format("count(*)")
    counts = dict(execute(SHOP, "select customer_id, count(*) from orders group by 1").frame.iter_rows())
    other = [{"customer_id": one} for one in sorted(counts, key=lambda one: (-counts[one], -one))]
    assert len(set(counts.values())) < len(counts)
    for rows, message in ((other, "match"), (other[::-1], "match (row order differs)")):
        found = await judged(expected, None, rows)
        assert (found.outcome, found.message) == ("passed", message)


async def test_an_order_within_brackets_around_the_query_counts() -> None:
    """All rows were tied then, and right in any order."""
    of = "(values (1, 'a'), (2, 'a'), (3, 'b')) t(n, k)"
    for sql in (f"(select n from {of} order by k)", f"((select n from {of} order by k)) limit 3"):
        for given, outcome in (([2, 1, 3], "passed"), ([3, 1, 2], "failed")):
            found = await judged(sql, None, [{"n": one} for one in given], comparison={"ordered": True})
            assert found.outcome == outcome, (sql, given, found.message)


async def test_it_is_concluded_by_the_rules_of_the_case() -> None:
    sql = "select 1 as n, 2.0041::double as x"
    right, wrong = "select 1 as n, 2.0012::double as x", [{"n": 1, "x": 5.0}]
    documented = await judged(sql, right, wrong)
    reference = await judged(sql, right, wrong, compat="reference")  # two decimals are compared
    blames = [one.data.settings["conclusion"]["blame"] for one in (documented, reference) if one.data]
    assert blames == ["unknown", "retold"]


async def test_where_the_expected_query_fails_its_place_and_the_answers_rows_are_kept(tmp_path: Path) -> None:
    sql = "SELECT\n  status,\n  count(ordr_id) AS orders\nFROM orders\nGROUP BY status\n"
    (tmp_path / "t.yml").write_text(
        "prompt: how many?\nsql: |\n  " + sql.strip().replace("\n", "\n  ") + "\n"
    )
    found = await judged(sql, EXPECTED, RIGHT, root=tmp_path)
    assert found.outcome == "error" and found.data is not None
    fault = found.data.settings["sql_error"]
    assert (fault["file"], fault["file_line"], fault["file_column"]) == ("t.yml", 5, 11)
    assert "Candidate bindings" in fault["detail"] and "^" in fault["detail"]
    assert found.data.actual == RIGHT and found.data.columns == ["status", "orders"]
    assert found.verdicts[0].evidence is not None and found.verdicts[0].evidence[0].row == 5


async def test_where_nobody_can_say_which_rows_the_error_stands_alone() -> None:
    found = await judged("select * from ordrs", None, RIGHT)
    assert (
        found.data is not None and found.data.actual is None and found.data.settings["sql_error"]["line"] == 1
    )
    found = await judged("select ordr_id from orders", None, None)
    assert found.data is not None and found.data.actual is None and found.outcome == "error"


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select a, sum(b) as c from t", ["a", "c"]),
        ("with x as (select 1 as q) select q as r from x union all select 2", ["r"]),
        ("select * from t", []),
        ("select t.* from t", []),
        ("select count(*) from t", []),
        ("selec a form", []),
        ("insert into t values (1)", []),
    ],
)
def test_columns_that_a_query_names(sql: str, names: list[str]) -> None:
    assert columns_named(sql) == names


async def test_columns_in_other_case_are_what_the_short_reason_leads_with() -> None:
    sql = 'select customer_id as "Id", first_name as "Name" from customers order by 1 limit 3'
    rows = [{"id": 1, "name": "Michael"}, {"id": 2, "name": "Shawn"}, {"id": 3, "name": "Kathleen"}]
    found = await judged(sql, None, rows)
    (verdict,) = found.verdicts
    assert causes.words_of(verdict).startswith("the answer has Id as id, Name as name")
    assert found.data is not None
    line = table_of_details(found.data).line
    assert line.startswith("− column Id missing · − column Name missing"), line


def called(*asked: tuple[str, list[dict[str, Any]] | None]) -> list[Entry]:
    """Calls of a tool that runs SQL, with the rows that it gave, where the record has these."""
    found: list[Entry] = []
    for number, (sql, rows) in enumerate(asked):
        found.append(Entry(1, "tool_call", name="run_sql", arguments={"sql": sql}, call_id=f"c{number}"))
        result = None if rows is None else {"rows": rows, "row_count": len(rows)}
        found.append(Entry(1, "tool_result", name="run_sql", call_id=f"c{number}", result=result))
    return found


@pytest.mark.real
@pytest.mark.parametrize(
    "after", ["select count(*) as n from customers", "select table_name from information_schema.tables"]
)
async def test_a_look_at_something_else_after_the_right_query_is_not_blamed(after: str) -> None:
    wrong = [{**row, "orders": row["orders"] + 1} for row in RIGHT]
    transcript = called((EXPECTED + " order by 1", None), (after, None))
    found = await judged(EXPECTED, None, wrong, transcript=transcript)
    assert found.data is not None
    kept = found.data.settings["conclusion"]
    assert (kept["blame"], kept["query"]) == ("retold", EXPECTED + " order by 1")
    again = agent_query(Attempt("a", 1, "failed", transcript=transcript, data=found.data))
    assert again is not None and again.sql == kept["query"]


@pytest.mark.parametrize(
    ("own", "then", "line"),
    [
        (
            EXPECTED.replace("count(*)", "count(*) + 1"),
            3,
            "its query is wrong: values differ; the answer has its rows",
        ),
        (
            EXPECTED,
            3,
            "its query gives the expected rows here, others when the agent ran it: rows that tie, or other data",
        ),
        (EXPECTED, 0, "its query gives the right rows: the answer retold them wrongly"),
    ],
)
async def test_an_answer_with_the_rows_that_its_query_gave_the_agent_is_not_called_retold_wrongly(
    own: str, then: int, line: str
) -> None:
    """Rows that tie come otherwise each time: with none of them would a query run here give the agent's."""
    wrong = [{**row, "orders": row["orders"] + 3} for row in RIGHT]
    given = [{**row, "orders": row["orders"] + then} for row in RIGHT]
    found = await judged(EXPECTED, None, wrong, transcript=called((own, given)))
    assert found.data is not None and found.data.settings["conclusion"]["line"] == line


@pytest.mark.parametrize("wrong_last", [True, False])
async def test_a_query_whose_rows_the_answer_has_is_blamed_whatever_other_ones_were_right(
    wrong_last: bool,
) -> None:
    wrong = EXPECTED.replace("orders group", "orders where status <> 'placed' group")
    rows = [RIGHT[0], *RIGHT[2:]]
    asked = [(EXPECTED, None), (wrong, None)]
    found = await judged(EXPECTED, None, rows, transcript=called(*(asked if wrong_last else reversed(asked))))
    assert found.data is not None
    kept = found.data.settings["conclusion"]
    assert kept["blame"] == "query" and kept.get("query", wrong) == wrong
    assert "the answer has its rows; another of its queries gives the right ones" in kept["line"]
    alone = await judged(EXPECTED, None, rows, transcript=called((wrong, None)))
    assert alone.data is not None and "another" not in alone.data.settings["conclusion"]["line"]


FILTERED = "it has WHERE status <> 'completed' (without it, it gives the expected rows)"


@pytest.mark.real
@pytest.mark.parametrize(
    ("own", "blame", "line"),
    [
        (EXPECTED, "retold", "its query gives the right rows: the verification query makes others of them"),
        (
            "select * from orders",
            "query",
            f"its query, or the one that verifies it, is wrong: {FILTERED}; the answer has its rows",
        ),
        (None, "query", f"its query is wrong: {FILTERED}; the answer has its rows"),
    ],
)
async def test_the_query_by_which_a_server_verifies_is_not_taken_for_the_agents(
    own: str | None, blame: str, line: str
) -> None:
    verified = EXPECTED.replace("orders group", "orders where status <> 'completed' group")
    transcript = called((own, None)) if own else None
    found = await judged(EXPECTED, None, RIGHT[1:], transcript=transcript, verified=verified)
    assert found.data is not None
    kept = kept_conclusion(found.data)
    assert kept is not None and (kept.blame, kept.line) == (blame, line)
    assert own == EXPECTED or kept.short in line


async def test_of_wrong_queries_that_with_the_expected_columns_counts() -> None:
    own = EXPECTED.replace("orders group", "orders where status <> 'placed' group")
    after = "select count(*) as n from customers"
    found = await judged(EXPECTED, None, RIGHT[2:], transcript=called((own, None), (after, None)))
    assert found.data is not None and found.data.settings["conclusion"]["query"] == own


async def test_a_query_that_cannot_be_run_here_is_judged_by_the_rows_that_it_gave() -> None:
    """The run and `show` of its cases conclude the same."""
    transcript = called((f"select 1; {EXPECTED}", RIGHT[1:]))
    found = await judged(EXPECTED, None, RIGHT[1:], transcript=transcript)
    assert found.data is not None
    kept = kept_conclusion(found.data)
    assert kept is not None and kept.line.startswith("its query is wrong: row count: 4 vs 5")
    attempt = Attempt("a", 1, "failed", transcript=transcript, data=found.data)
    assert conclusion_lines(found.data, attempt) == [kept.line]


async def test_of_a_query_of_the_agents_that_fails_the_candidates_and_the_place_are_kept() -> None:
    found = await judged(EXPECTED, None, RIGHT[1:], transcript=called(("select ordr_id\nfrom orders", None)))
    assert found.data is not None
    kept = kept_conclusion(found.data)
    assert kept is not None and kept.blame == "unknown" and "\n" not in kept.line
    assert 'Referenced column "ordr_id" not found in FROM clause! Candidate bindings: "order_id"' in kept.line
    assert kept.place[0] == "LINE 1: select ordr_id" and kept.place[1].index("^") == 15
    attempt = Attempt(
        "a", 1, "failed", transcript=called(("select ordr_id\nfrom orders", None)), data=found.data
    )
    assert conclusion_lines(found.data, attempt) == [kept.line, *kept.place]


@pytest.mark.parametrize("own", ["select order_id from orders limit 3", None])
async def test_nobody_is_blamed_where_the_expected_query_gives_other_rows_each_time(own: str | None) -> None:
    sql = "select order_id from orders order by random() limit 3"
    found = await judged(sql, own or sql, [{"order_id": -1}, {"order_id": -2}, {"order_id": -3}])
    assert found.data is not None
    line = found.data.settings["conclusion"]["line"]
    assert line == "the expected query does not give the same rows each time"
    assert recorded_conclusion(found.data, sql, [{"order_id": -1}]) == kept_conclusion(found.data)


TOP = "select customer_id, count(*) as n from orders group by 1 order by n desc limit 3"
TIED = "the expected query's LIMIT cuts through ties: 5 rows share n=3, any 2 of them are right"


@pytest.mark.real
@pytest.mark.parametrize("part", ["limit 3", "limit 3 offset 0", "fetch first 3 rows only"])
@pytest.mark.parametrize("with_query", [True, False])
async def test_nobody_is_blamed_where_the_limit_of_the_expected_query_cuts_through_ties(
    with_query: bool, part: str
) -> None:
    top = TOP.replace("limit 3", part)
    tied = TIED.replace("LIMIT", part.split()[0].upper())
    all_of = execute(SHOP, TOP.replace("limit 3", "limit 6").replace("n desc", "n desc, customer_id"))
    ranked = all_of.frame.to_dicts()
    first, second = ranked[:1] + ranked[1:3], ranked[:1] + ranked[4:6]
    expected = [row["customer_id"] for row in execute(SHOP, top).frame.to_dicts()]
    rows = first if [row["customer_id"] for row in second] == expected else second
    own = f"{top.replace('n desc', 'n desc, customer_id' + (' desc' if rows is second else ''))}"
    found = await judged(top, own if with_query else None, rows)
    assert found.outcome == "failed" and found.data is not None
    kept = kept_conclusion(found.data)
    assert kept is not None and (kept.blame, kept.line) == ("ties", tied)
    assert causes.words_of(found.verdicts[0]) == tied
    assert recorded_conclusion(found.data, own, rows) == kept
    if with_query:  # a query that gives others of them is right, an answer that has none of them is wrong
        wrong = [{**row, "n": row["n"] + 1} for row in rows]
        retold = await judged(top, own, wrong)
        assert retold.data is not None and retold.data.settings["conclusion"]["blame"] == "retold"


INNER = """with top as (select customer_id, count(*) as n from orders group by 1 order by n desc limit 3)
           select first_name, last_name, n from top join customers using (customer_id)"""
IN_LIST = """select status, count(*) as n from orders where customer_id in
             (select customer_id from orders group by 1 order by count(*) desc limit 3) group by 1"""


@pytest.mark.real
@pytest.mark.parametrize(("expected", "by"), [(INNER, "n"), (IN_LIST, "count(*)")])
async def test_nobody_is_blamed_for_other_rows_that_tie_inside_of_the_expected_query(
    expected: str, by: str
) -> None:
    def frame(sql: str) -> pl.DataFrame:  # in an order of its own: DuckDB's groups come in any
        found = execute(SHOP, sql).frame
        return found.sort(found.columns)

    wanted = frame(expected)
    ways = [
        expected.replace(f"order by {by} desc", f"order by {by} desc, customer_id{end}")
        for end in ("", " desc")
    ]
    own, rows = next((sql, made.to_dicts()) for sql in ways if not (made := frame(sql)).equals(wanted))
    found = await judged(expected, own, rows)
    assert found.outcome == "failed" and found.data is not None
    kept = kept_conclusion(found.data)
    assert kept is not None and kept.blame == "unknown"
    assert kept.line == (
        f"inside of the expected query LIMIT cuts through ties: 5 rows share {by.upper() if '(' in by else by}=3, any 2 of them are right: "
        "whether the agent's is wrong cannot be said"
    )
    # its record, which has the rows of its query, says the same wherever it is shown
    attempt = Attempt("a", 1, "failed", transcript=called((own, rows)), data=found.data)
    assert conclusion_lines(found.data, attempt) == conclusion_lines(found.data) == [kept.line]
    del found.data.settings["conclusion"]  # recorded before
    (line,) = conclusion_lines(found.data, attempt)
    assert line.endswith(
        "which of them tie is not known without its database: whether the agent's is wrong cannot be said"
    )
    sure = expected.replace("limit 3", "limit 1")
    blamed = await judged(
        sure, sure.replace(" desc", ""), execute(SHOP, sure.replace(" desc", "")).frame.to_dicts()
    )
    assert blamed.data is not None and blamed.data.settings["conclusion"]["blame"] == "query"


@pytest.mark.real
@pytest.mark.parametrize(
    ("sql", "own", "blame", "words"),
    [
        ("{} from orders limit 3", "{} from orders order by order_id desc limit 3", "ties", "LIMIT without ORDER BY: any 3 of 99 rows are right"),
        ("{} from orders limit 3", "select order_id + 1000 as order_id from orders limit 3", "query", "its query is wrong: "),
        (
            "{} from orders qualify row_number() over (partition by status order by customer_id % 3) = 1",
            "{} from orders qualify row_number() over (partition by status order by customer_id % 3, order_id desc) = 1",
            "unknown", "in the expected query ROW_NUMBER() may take others of rows that tie: whether the agent's is wrong cannot be said",
        ),
        (
            "{}, lag(order_id) over (order by customer_id % 3) as before from orders", "{}, lag(order_id) over (order by customer_id % 3, order_id desc) as before from orders",
            "unknown", "in the expected query LAG() may take others of rows that tie: whether the agent's is wrong cannot be said",
        ),
        (
            "{} from orders qualify row_number() over (partition by status order by order_id) = 1",
            "{} from orders qualify row_number() over (partition by status order by order_id) = 2",
            "query", "its query is wrong: ",
        ),
    ],
)  # fmt: skip
async def test_no_query_is_called_wrong_for_rows_that_are_left_to_the_database(
    sql: str, own: str, blame: str, words: str
) -> None:
    sql, own = (one.format("select order_id") for one in (sql, own))
    found = await judged(sql, own, execute(SHOP, own).frame.to_dicts())
    assert found.outcome == "failed" and found.data is not None
    kept = kept_conclusion(found.data)
    assert kept is not None and kept.blame == blame and words in kept.line, kept


async def test_a_query_that_sorts_the_other_way_without_a_limit_is_told_so() -> None:
    sql = "select order_id, amount from orders order by order_id desc"
    own = sql.replace(" desc", "")
    found = await judged(sql, own, execute(SHOP, own).frame.to_dicts(), comparison={"ordered": True})
    assert causes.words_of(found.verdicts[0]).endswith("sorted by order_id ascending, not descending")
    assert found.data is not None
    kept = found.data.settings["conclusion"]
    assert kept["cause"] == "it sorts by order_id ascending"


async def test_a_query_that_puts_nulls_at_the_other_end_is_told_so() -> None:
    sql = "select nullif(status, 'placed') as s, count(*) as n from orders group by 1 order by s nulls first"
    own = sql.replace("nulls first", "nulls last")
    found = await judged(sql, own, execute(SHOP, own).frame.to_dicts(), comparison={"ordered": True})
    assert found.data is not None
    line = found.data.settings["conclusion"]["line"]
    words = "it sorts by s ascending, nulls last (nulls first, it gives the expected rows)"
    assert line == f"its query is wrong: {words}; the answer has its rows"


@pytest.mark.real
async def test_of_many_rows_it_is_said_in_what_they_differ() -> None:
    sql = "select range as id, range % 7 as n from range(110000)"
    rows = [{"id": n, "n": n % 7 + (n == 77_777)} for n in range(110_000)]
    found = await judged(sql, None, rows)
    (verdict,) = found.verdicts
    assert causes.words_of(verdict) == "n 0→1 in 1 of 110,000 rows"
    assert verdict.evidence is not None and verdict.evidence[0].rule == "n differs"
