"""Tab 4: both queries side by side, and which of the two steps went wrong; the agent's query is really run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support import mostly_real
from tests.support.case_host import host, screen_text, sees, until
from tests.tui.inspector.test_data_tab import attempt_of, opened
from tui_eval.agent_query import AgentQuery
from tui_eval.config.project import load
from tui_eval.frames.queries import beside
from tui_eval.frames.sql import execute
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case, Entry
from tui_eval.tui.loaders.queries_loader import Asked, concluded_from, queries_of
from tui_eval.tui.state.data.queries_view import Queries, query_blocks, sql_below
from tui_eval.tui.state.text.lines import plain, width_of

Rows = list[dict[str, Any]]
WANTED = "select status, sum(amount) as total from orders where status <> 'lost' group by status order by 1"
WRONG = "SELECT status, sum(amount) AS total FROM orders GROUP BY status ORDER BY 1"
RIGHT_ROWS: Rows = [{"status": "open", "total": 30}, {"status": "paid", "total": 12}]
WRONG_ROWS: Rows = [{"status": "lost", "total": 5}, *RIGHT_ROWS]
RETOLD: Rows = [{"status": "open", "total": 300}, {"status": "paid", "total": 120}]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    data = tmp_path / "project" / "data"
    data.mkdir(parents=True)
    (data / "orders.csv").write_text("status,amount\nopen,10\nopen,20\npaid,12\nlost,5\n")
    (data.parent / "tui_eval.yaml").write_text("databases: {shop: {type: files, path: data}}\n")
    return data.parent


def asked(project: Path | None, actual: Rows, own: str, expected: Rows = RIGHT_ROWS) -> Asked:
    attempt = with_query(actual, own, expected)
    case = Case("tests/a.yaml::a", "a", "tests/a.yaml", "nao")
    return Asked(attempt, case, None, load(root=project) if project is not None else None, Trust())


def with_query(actual: Rows, own: str, expected: Rows = RIGHT_ROWS) -> Attempt:
    attempt = attempt_of(expected, actual)
    assert attempt.data is not None
    attempt.data.reference_sql, attempt.data.verification_sql = WANTED, None
    attempt.transcript.append(Entry(1, "tool_call", name="run_sql", arguments={"query": own}, call_id="q1"))
    return attempt


def line_of(asked: Asked) -> tuple[str, str]:
    queries = queries_of(asked)
    assert queries is not None
    found = concluded_from(asked, queries, threading.Event())
    return found.blame, found.line


@pytest.mark.parametrize(
    ("actual", "own", "blame", "words"),
    [
        (WRONG_ROWS, WRONG, "query", "the answer has its rows"),
        (RETOLD, WANTED.replace("sum(amount)", "sum( amount )"), "retold", "the answer retold them wrongly"),
        (RETOLD, WRONG, "unknown", "which of both went wrong cannot be said"),
        ([*RETOLD, WRONG_ROWS[0]], WRONG, "both", "the answer has other rows than it, too"),
        (RETOLD, "SELECT nothing FROM orders", "unknown", "cannot be run here: "),
        (RETOLD, "DROP TABLE orders", "unknown", "cannot be run here: "),
        (RETOLD, "SELECT * FROM read_csv('/etc/passwd')", "unknown", "cannot be run here: "),
    ],
)
def test_the_query_is_run_and_one_line_says_what_went_wrong(
    project: Path, actual: Rows, own: str, blame: str, words: str
) -> None:
    found = line_of(asked(project, actual, own))
    assert found[0] == blame and words in found[1] and "\n" not in found[1]


@pytest.mark.real
def test_dates_of_the_agents_query_are_compared_as_dates(project: Path) -> None:
    (project / "data" / "days.csv").write_text("id,day\n1,2024-01-31\n2,2024-02-29\n")
    one = asked(project, [{"id": 1, "day": "2024-01-31"}], "SELECT id, day FROM days WHERE id = 1")
    assert one.attempt.data is not None
    one.attempt.data.expected = [{"id": 1, "day": "2024-01-31"}, {"id": 2, "day": "2024-02-29"}]
    one.attempt.data.columns, one.attempt.data.reference_sql = ["id", "day"], "SELECT id, day FROM days"
    words = "it has WHERE id = 1 (without it, it gives the expected rows)"
    assert line_of(one) == ("query", f"its query is wrong: {words}; the answer has its rows")


def test_where_it_cannot_be_judged_it_says_why(project: Path) -> None:
    assert line_of(asked(None, RETOLD, WRONG)) == (
        "unknown",
        "the agent's query cannot be run here: no project with a database is open",
    )
    # the rows that were expected then are not those that the database gives now: nothing is said of the agent
    old = [{"status": "open", "total": 1}]
    assert "the database has changed since" in line_of(asked(project, RETOLD, WRONG, old))[1]
    cut = asked(project, RETOLD, WRONG)
    assert cut.attempt.data is not None
    cut.attempt.data.settings = {"truncated": {"expected": 5000}}
    assert "kept only the first rows" in line_of(cut)[1]


def test_without_a_database_the_record_may_say_it() -> None:
    one = asked(None, WRONG_ROWS, WRONG)
    one.attempt.data.comparison = "row 1 differs"  # type: ignore[union-attr]
    one.attempt.transcript.append(
        Entry(1, "tool_result", name="run_sql", result={"rows": WRONG_ROWS}, call_id="q1")
    )
    assert line_of(one) == ("query", "its query is wrong: row count: 3 vs 2; the answer has its rows")


@pytest.mark.real
def test_what_cannot_be_run_is_concluded_from_the_record_as_in_reports(project: Path) -> None:
    one = asked(project, WRONG_ROWS, f"SELECT 1; {WRONG}")
    one.attempt.data.comparison = "row 1 differs"  # type: ignore[union-attr]
    one.attempt.transcript.append(
        Entry(1, "tool_result", name="run_sql", result={"rows": WRONG_ROWS}, call_id="q1")
    )
    assert line_of(one) == ("query", "its query is wrong: row count: 3 vs 2; the answer has its rows")


def test_what_was_concluded_in_the_run_is_said_again_and_no_query_is_run_for_it(project: Path) -> None:
    one = asked(project, WRONG_ROWS, WRONG)
    assert one.attempt.data is not None
    said = {
        "blame": "unknown",
        "line": "inside of the expected query LIMIT cuts through ties: cannot be said",
    }
    one.attempt.data.settings = {"conclusion": said}
    assert line_of(one) == tuple(said.values())
    said["line"] = "the agent's query cannot be run here: no database is configured"
    words = "it has no WHERE (with WHERE status <> 'lost', it gives the expected rows)"
    assert line_of(one) == ("query", f"its query is wrong: {words}; the answer has its rows")


def test_of_an_expected_query_by_chance_nothing_is_concluded(project: Path) -> None:
    one = asked(project, RETOLD, WRONG)
    one.attempt.data.reference_sql = f"{WANTED}, random()"  # type: ignore[union-attr]
    assert line_of(one) == ("unknown", "the expected query does not give the same rows each time")


def test_rows_that_are_at_hand_are_not_read_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tui_eval.tui.loaders import queries_loader

    def never(*_: object) -> object:
        raise AssertionError("the frames are read a second time")

    monkeypatch.setattr(queries_loader, "sides_of", never)
    one, stop = asked(project, WRONG_ROWS, WRONG), threading.Event()
    found = queries_of(one)
    assert found is not None
    assert concluded_from(one, found, stop, (RIGHT_ROWS, WRONG_ROWS, {})).blame == "query"
    without = asked(None, WRONG_ROWS, WRONG)
    assert "no project with a database is open" in concluded_from(without, found, stop).line


def test_without_a_query_of_the_agent_there_is_nothing_to_run(project: Path) -> None:
    one = asked(project, RETOLD, "no")
    one.attempt.transcript = []
    assert queries_of(one) is None


def queries(expected: str, own: str) -> Queries:
    return Queries(expected, AgentQuery(own, "tool", "run_sql"), beside(expected, own))


def test_both_are_formatted_alike_and_what_differs_is_marked_without_colour() -> None:
    (block,) = query_blocks(queries(WANTED, WRONG), 66)
    lines = [plain(line) for line in block.lines()]
    assert lines[0].startswith("expected") and "the agent's, by run_sql" in lines[0]
    assert any(line.startswith("FROM orders") and " │ FROM orders" in line for line in lines)
    (where,) = [line for line in lines if "≠" in line and line.startswith("WHERE")]
    assert where.rstrip().endswith("≠")
    assert all(width_of(line) <= 66 for line in block.lines())
    (narrow,) = query_blocks(queries(WANTED, WRONG), 40)
    assert any(plain(line).startswith("− WHERE") for line in narrow.lines())


def test_how_far_a_line_is_put_in_is_not_marked() -> None:
    (block,) = query_blocks(queries(WANTED, WANTED.replace("select", "select 1 + ")), 100)
    assert "··" not in "".join(map(plain, block.lines()))


def test_the_same_query_written_otherwise_stands_there_once() -> None:
    (block,) = query_blocks(
        queries(WANTED, WANTED.replace("select", "\n SELECT").replace(" from", "\nFrom")), 66
    )
    assert block.label == "both" and plain(block.lines()[0]) == "SELECT"


@pytest.mark.real
async def test_what_the_query_refutes_is_not_said_of_the_rows(project: Path, tmp_path: Path) -> None:
    every = "select status, sum(amount) as total from orders group by status order by 1"
    expected: Rows = [{"status": "lost", "total": 5}, *RIGHT_ROWS]
    attempt = with_query([{**row, "total": 2 * row["total"]} for row in expected], f"{every} ", expected)
    assert attempt.data is not None
    attempt.data.reference_sql = every
    app = host(tmp_path, attempt)
    app.state.config = load(root=project)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await sees(pilot, "SQL its query gives the right rows", "→ total ×2 in 3 of 3 rows that differ")
        await until(pilot, lambda: "as a join does?" not in screen_text(app))


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
async def test_the_line_stands_above_the_rows_and_s_shows_both(
    project: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    app = host(tmp_path, with_query(RETOLD, WANTED.replace("status,", "status ,")))
    app.state.config = load(root=project)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await sees(pilot, "SQL its query gives the right rows: the answer retold them wrongly")
        if size[1] == 24:  # it does not fit beside all rows: what is kept stands there until it is asked for
            await pilot.press("s", "s")
        await sees(pilot, "GROUP BY", "both")
        await pilot.press("tab", "o")
        await until(pilot, lambda: "group by" in screen_text(app))


@pytest.mark.real
async def test_in_few_rows_and_columns_the_step_that_went_wrong_is_said_first(
    project: Path, tmp_path: Path
) -> None:
    app = host(tmp_path, with_query(RETOLD, WANTED.replace("status,", "status ,")))
    app.state.config = load(root=project)
    async with app.run_test(size=(60, 16)) as pilot:
        await opened(pilot)
        await sees(pilot, "SQL retold wrongly: its query gives the right rows\n")


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
async def test_of_a_query_of_the_agents_that_fails_candidates_line_and_caret_are_shown(
    project: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    app = host(tmp_path, with_query(RETOLD, WANTED.replace("status,", "statsu,")))
    app.state.config = load(root=project)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await sees(
            pilot,
            'bindings: "status"',
            "failed     LINE 1: select statsu",
            "▎                           ^^^^^^",
        )


FEWER = WRONG.replace("orders GROUP", "orders WHERE status <> 'paid' GROUP")


def test_a_mistake_without_which_the_query_is_right_is_said(project: Path) -> None:
    expected = WANTED.replace("by 1", "by total desc limit 1")
    one = asked(
        project, WRONG_ROWS[:1], WRONG.replace("BY 1", "BY total LIMIT 1"), [{"status": "open", "total": 30}]
    )
    assert one.attempt.data is not None
    one.attempt.data.reference_sql = expected
    blame, line = line_of(one)
    assert blame == "query" and "it sorts by total ascending (descending, it gives the expected rows)" in line


@pytest.mark.real
async def test_a_right_answer_that_is_not_from_its_query_is_said_quietly(
    project: Path, tmp_path: Path
) -> None:
    attempt = with_query(RIGHT_ROWS, FEWER)
    attempt.transcript = attempt.transcript[-1:]
    app = host(tmp_path, attempt)
    app.state.config = load(root=project)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await sees(pilot, "SQL its query gives other rows (values differ), the answer is right all the same")


@pytest.mark.parametrize(
    "own",
    [
        WRONG,  # the expected rows are among its own
        WANTED,
        "SELECT status, sum(amount) / 10 AS total FROM orders WHERE status <> 'lost' GROUP BY status",
        "SELECT status, amount AS total FROM orders WHERE status <> 'lost'",
        "SELECT status FROM orders",
    ],
)
def test_of_rows_that_an_answer_may_be_made_of_nothing_is_said(project: Path, own: str) -> None:
    one = asked(project, RIGHT_ROWS, own)
    one.attempt.transcript = one.attempt.transcript[-1:]
    assert line_of(one) in (
        ("unknown", ""),
        ("neither", "the agent's query and its answer give the expected rows"),
    )


def test_of_several_queries_none_is_said_to_give_other_rows(project: Path) -> None:
    one = asked(project, RIGHT_ROWS, FEWER)
    one.attempt.transcript = one.attempt.transcript[-1:]
    assert line_of(one)[0] == "lucky"
    one.attempt.transcript.insert(
        0, Entry(1, "tool_call", name="run_sql", arguments={"query": WANTED}, call_id="q0")
    )
    assert line_of(one) == ("unknown", "")


@pytest.mark.real
async def test_both_queries_stand_in_the_room_that_is_left_though_not_all_of_them_fits(
    project: Path, tmp_path: Path
) -> None:
    tests = "".join(f" and amount <> {number}" for number in range(100, 130))
    app = host(tmp_path, with_query(RETOLD, f"{WRONG.partition(' ORDER')[0]} HAVING count(*) > 0{tests}"))
    app.state.config = load(root=project)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await sees(pilot, "the agent's, by run_sql", "AND amount <> 100")
        shown = screen_text(app)
        assert "paid" in shown and "AND amount <> 129" not in shown


TIED = "the expected query's LIMIT cuts through ties: 3 rows share amount=10, any of them is right"


@pytest.mark.real
def test_others_of_the_rows_that_tie_at_the_limit_are_not_blamed(project: Path) -> None:
    (project / "data" / "orders.csv").write_text("status,amount\nopen,10\npaid,10\nlost,10\n")
    sql = "select status, amount from orders order by amount limit 1"
    spec = load(root=project).databases["shop"]
    (first,) = execute(spec, sql).frame["status"]
    given = "paid" if first != "paid" else "open"
    one = asked(project, [{"status": given, "amount": 10}], sql, [{"status": first, "amount": 10}])
    assert one.attempt.data is not None
    one.attempt.data.reference_sql, one.attempt.data.columns = sql, ["status", "amount"]
    assert line_of(one) == ("ties", TIED)


@pytest.mark.real
async def test_ties_are_said_without_a_query_of_the_agent_too(tmp_path: Path) -> None:
    attempt = with_query(RETOLD, "no")
    assert attempt.data is not None
    attempt.transcript, attempt.data.settings = [], {"conclusion": {"blame": "ties", "line": TIED}}
    async with host(tmp_path, attempt).run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await sees(pilot, f"SQL {TIED}")


def test_below_rows_both_queries_stand_beside_each_other_where_there_is_room() -> None:
    details = attempt_of(RIGHT_ROWS, WRONG_ROWS).data
    assert details is not None
    details.reference_sql, details.verification_sql = WANTED, None
    queries = Queries(WANTED, AgentQuery(WRONG, "tool", "run_sql"), beside(WANTED, WRONG))
    asked_for, whole = sql_below(details, queries, None, 100, None)
    assert [block.key for block in asked_for] == [block.key for block in query_blocks(queries, 100)]
    assert sql_below(details, queries, None, 100, whole)[1] == whole
    written, lines = sql_below(details, queries, None, 100, 2)
    assert [block.key for block in written] == ["expected"] and lines > 2, "as it is written, if it fits"
    assert [block.key for block in sql_below(details, queries, None, 100, None, rendered=False)[0]] == [
        "expected"
    ]
