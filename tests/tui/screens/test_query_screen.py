"""`S` on the Data tab: a query tried on the case's database, cancelled, refused, compared with the expected rows."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support import mostly_real
from tests.support.case_host import HostApp, host, loaded, screen_text, sees, until
from tests.tui.state.data.test_data_queries import RETOLD, RIGHT_ROWS, WANTED, WRONG, with_query
from tui_eval.config.project import load
from tui_eval.model import Attempt, Case, DataDetails
from tui_eval.tui.loaders.queries_loader import QueryPlace, against_expected, tried
from tui_eval.tui.memory import ProjectMemory
from tui_eval.tui.screens.query_screen import QueryPrompt, QueryScreen, on_one_line
from tui_eval.tui.state.data.data_blocks import fault_view, table_lines
from tui_eval.tui.state.text.lines import plain

FOREVER = "SELECT count(*) FROM range(100000000000) a, range(100000) b WHERE a.range % 7 = b.range % 5"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "orders.csv").write_text("status,amount\nopen,10\nopen,20\npaid,12\nlost,5\n")
    (tmp_path / "tui_eval.yaml").write_text("databases: {shop: {type: files, path: data}}\n")
    return tmp_path


async def asking(pilot: Pilot[Any], app: HostApp, project: Path) -> QueryScreen:
    """The prompt, opened from the Data tab."""
    app.services.state.config = load(root=project)
    screen = await loaded(pilot)
    screen.content.case = screen.content.case or Case("tests/a.yaml::a", "a", "tests/a.yaml", "nao")
    await pilot.press("4")
    await until(pilot, lambda: getattr(screen.tab, "view", None) is not None)
    await pilot.press("S")
    await until(pilot, lambda: isinstance(app.screen, QueryScreen) and bool(app.screen.query(QueryPrompt)))
    found = app.screen
    assert isinstance(found, QueryScreen)
    return found


async def typed(pilot: Pilot[Any], screen: QueryScreen, sql: str) -> None:
    screen.prompt.line.value = sql
    screen.focus_home()
    await pilot.press("enter")


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40), (60, 16)], (60, 16)))
async def test_rows_stand_in_the_table_and_may_be_compared(project: Path, size: tuple[int, int]) -> None:
    app = host(project, with_query(RETOLD, WRONG))
    async with app.run_test(size=size) as pilot:
        screen = await asking(pilot, app, project)
        await sees(pilot, "enter run it", "↑ earlier", "esc back")  # c would be a letter of the query
        await typed(pilot, screen, "select status, sum(amount) as total from orders group by 1 order by 1")
        await until(pilot, lambda: screen.found is not None and screen.grid.view is not None)
        await sees(pilot, "tab prompt", "c compare")
        await sees(pilot, "3 rows in")
        assert "lost" in screen_text(app) and screen.grid.has_focus
        await pilot.press("c")
        await sees(pilot, "against the expected rows")
        await sees(pilot, "1 extra")
        await pilot.press("i")
        await until(pilot, lambda: screen.grid.view is not None and len(screen.grid.view) == 1)
        await pilot.press("c")
        await sees(pilot, "3 rows in")


@pytest.mark.real
async def test_the_tables_that_may_be_asked_stand_there_until_something_is(project: Path) -> None:
    """The place was empty: who did not know the columns by heart had to guess one, and read what DuckDB said."""
    app = host(project, with_query(RETOLD, WRONG))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await asking(pilot, app, project)
        await sees(pilot, "orders  status VARCHAR, amount BIGINT")
        assert screen.prompt.line.has_focus
        await typed(pilot, screen, "select count(*) from orders")
        await sees(pilot, "1 row in")
        assert "status VARCHAR" not in screen_text(app)


def test_many_tables_take_the_lines_that_there_are() -> None:
    wide = f"wide({', '.join(f'column_{n} BIGINT' for n in range(20))})"
    lines = [plain(line) for line in table_lines([wide, "narrow(a DATE)"], 60, 5)]
    assert len(lines) == 5 and lines[0].startswith("wide    column_0 BIGINT") and lines[3].endswith("…")
    assert lines[4] == "narrow  a DATE"
    lines = [plain(line) for line in table_lines([wide, "narrow(a DATE)"], 60, 20)]
    assert "column_19 BIGINT" in lines[-2] and not any("…" in line for line in lines)
    lines = [plain(line) for line in table_lines([f"t{n}(a DATE)" for n in range(9)], 60, 4)]
    assert lines == ["t0  a DATE", "t1  a DATE", "t2  a DATE", "and 6 more tables"]


@pytest.mark.real
async def test_an_error_shows_the_words_of_duckdb_and_puts_the_cursor_there(project: Path) -> None:
    app = host(project, with_query(RETOLD, WRONG))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await asking(pilot, app, project)
        await typed(pilot, screen, "select statuz from orders")
        await sees(pilot, 'Referenced column "statuz" not found')
        await sees(pilot, "Candidate bindings")
        shown = screen_text(app).splitlines()
        at = next(n for n, line in enumerate(shown) if line.startswith("LINE 1: "))
        assert shown[at + 1].index("^") == shown[at].index("statuz")
        assert screen.prompt.line.cursor_position == len("select ") and screen.prompt.line.has_focus
        for bad in ("drop table orders", "select * from read_csv('/etc/passwd')", "copy orders to '/tmp/x'"):
            await typed(pilot, screen, bad)
            await until(pilot, lambda bad=bad: screen.found is not None and screen.found.sql == bad)
            assert screen.found is not None and screen.found.fault is not None


@pytest.mark.real
async def test_esc_ends_a_query_that_runs_at_once_and_then_leaves(project: Path) -> None:
    app = host(project, with_query(RETOLD, WRONG))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await asking(pilot, app, project)
        await typed(pilot, screen, FOREVER)
        await sees(pilot, "esc ends it")
        before = time.monotonic()
        assert screen.back()  # what esc does
        await sees(pilot, "cancelled")
        assert time.monotonic() - before < 5 and app.screen is screen
        await typed(pilot, screen, "select 1 as one")
        await sees(pilot, "1 row in")
        assert not screen.back()


def test_cancelling_ends_the_process(project: Path) -> None:
    spec = QueryPlace(Case("a", "a", "t/a.yaml", "nao"), load(root=project)).database()
    assert not isinstance(spec, str)
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    found = tried(spec, FOREVER, cancel)
    assert found.fault is not None and found.fault.message == "cancelled" and found.seconds < 20


@pytest.mark.real
async def test_history_is_kept_and_the_cases_queries_come_first(project: Path) -> None:
    app = host(project, with_query(RETOLD, WRONG))
    app.services.memory.queries = ["select 'kept from before'"]
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await asking(pilot, app, project)
        line = screen.prompt.line
        for words in (WRONG, WANTED, "select 'kept from before'", "select 'kept from before'"):
            await pilot.press("up")
            assert line.value == words
        for words in (WANTED, WRONG, ""):
            await pilot.press("down")
            assert line.value == words
        await typed(pilot, screen, "select 1")
        await sees(pilot, "1 row in")
    assert app.services.memory.queries == ["select 'kept from before'", "select 1"]


def test_what_was_tried_comes_back_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    memory = ProjectMemory(tmp_path)
    for sql in ("select 1", "select 2", "select 1", "x" * 30_000):
        memory.keep_query(sql)
    memory.keep({"theme": "nord"})
    assert ProjectMemory(tmp_path).queries == ["select 2", "select 1"]


@pytest.mark.real
async def test_without_a_database_it_says_why(tmp_path: Path) -> None:
    app = host(tmp_path, with_query(RETOLD, WRONG))
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    async with app.run_test(size=(80, 24)) as pilot:
        await asking(pilot, app, tmp_path)
        await sees(pilot, "No query can be run here: ")


def test_rows_that_are_not_all_kept_are_compared_with_nothing(project: Path) -> None:
    spec = QueryPlace(Case("a", "a", "t/a.yaml", "nao"), load(root=project)).database()
    assert not isinstance(spec, str)
    found = tried(spec, "select status, 1 as total from orders limit 0", threading.Event())
    assert found.result is not None and found.view is not None and len(found.view) == 0
    made = with_query(RETOLD, WRONG)
    assert against_expected(QueryPlace(), found) == "there are no expected rows to compare with: run the case"
    assert not isinstance(against_expected(QueryPlace(attempt=made), found), str)
    assert made.data is not None
    made.data.settings = {"truncated": {"expected": 5000}}
    told = against_expected(QueryPlace(attempt=made), found)
    assert isinstance(told, str) and "of 5,000 expected rows are kept" in told


@pytest.mark.parametrize(
    ("pasted", "line"),
    [
        ("select 1\n  from t\n", "select 1   from t"),
        ("select 1 -- one\nfrom t", "select 1 /* one */ from t"),
        (
            "select a, -- one\r  b\rfrom t -- all\r",
            "select a, /* one */ b from t /* all */",
        ),  # as terminals do
        ("select 1 -- one\r\nfrom t", "select 1 /* one */ from t"),
        ("select '--\n' -- a */ b\n", "select '--\n' /* a * / b */"),
        ('select "a--b"\n, 2', 'select "a--b" , 2'),
    ],
)
def test_what_is_pasted_stands_on_one_line_and_means_the_same(pasted: str, line: str) -> None:
    assert " ".join(on_one_line(pasted).split()) == " ".join(line.split())


def test_of_a_long_line_as_much_as_fits_around_the_caret() -> None:
    text = "LINE 1: " + "x" * 90 + "bad" + "y" * 50
    lines = [plain(line) for line in fault_view("m", f"Binder Error: m\n\n{text}\n{' ' * 98}^^^", 60)]
    assert all(len(line) <= 60 for line in lines)
    assert lines[2].index("^") == lines[1].index("bad") and lines[2].count("^") == 3


def failed_query(rows: list[dict[str, Any]] | None) -> Attempt:
    made = with_query(RETOLD, WRONG)
    fault = {
        "message": "Binder Error: x",
        "detail": 'Binder Error: x\nCandidate bindings: "status"\n\nLINE 2: sum(amuont)\n            ^^^^^^',
        "line": 2,
        "column": 5,
        "file": "tests/a.yaml",
        "file_line": 7,
        "file_column": 9,
    }
    made.data = DataDetails(None, rows, ["status", "total"], None, WANTED, settings={"sql_error": fault})
    return made


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
async def test_a_failing_expected_query_shows_duckdbs_words_its_place_and_the_answers_rows(
    project: Path, size: tuple[int, int]
) -> None:
    app = host(project, failed_query(RIGHT_ROWS))
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        await pilot.press("4")
        await sees(pilot, "at tests/a.yaml:7:9: e goes there")
        await sees(pilot, "Candidate bindings")
        await sees(pilot, "the answer's rows: 2 rows, compared with nothing")
        assert "open" in screen_text(app) and "S try SQL" in screen_text(app).splitlines()[-1]
        assert screen.content.case is None or screen.place_to_edit() is None or screen.place_to_edit()


@pytest.mark.real
async def test_without_rows_it_says_so(project: Path) -> None:
    app = host(project, failed_query(None))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("4")
        await sees(pilot, "There are no rows: the expected query failed, and")
        await sees(pilot, "at tests/a.yaml:7:9")
        await sees(pilot, "not given as rows.")  # on its second line, too


async def test_where_nobody_was_asked_it_says_so(project: Path) -> None:
    made = failed_query(None)
    assert made.data is not None
    made.data.settings["not_asked"] = True
    app = host(project, made)
    async with app.run_test(size=(60, 16)) as pilot:
        await loaded(pilot)
        await pilot.press("4")
        await sees(pilot, "The agent was not asked, and nothing was paid")
        await sees(pilot, "at tests/a.yaml:7:9")


def test_an_edit_begins_where_the_query_failed(tmp_path: Path) -> None:
    from tui_eval.tui.screens.case_reader import place_of_fault
    from tui_eval.tui.state.app_state import CasePointer
    from tui_eval.tui.state.case.case_content import CaseContent

    content = CaseContent(CasePointer("tests/a.yaml::a"))
    content.attempt = failed_query(None)
    content.case = Case("tests/a.yaml::a", "a", "tests/a.yaml", "nao")
    assert place_of_fault(content, tmp_path) is None
    (tmp_path / "tests").mkdir()
    file = tmp_path / "tests" / "a.yaml"
    file.write_text("prompt: x\nsql: another\n")
    assert place_of_fault(content, tmp_path) == ("tests/a.yaml", 7)
    assert content.attempt.data is not None
    content.attempt.data.reference_sql = "select\n  sum(amuont)\n"
    file.write_text("# moved\n\nprompt: x\nsql: |\n  select\n    sum(amuont)\n")
    assert place_of_fault(content, tmp_path) == ("tests/a.yaml", 6)
    content.attempt.data.settings["sql_error"]["file"] = "../../etc/passwd"
    assert place_of_fault(content, tmp_path) is None
    os.mkfifo(tmp_path / "pipe")  # which a record may name, and nobody writes to: the app stood still
    content.case = Case("pipe::a", "a", "pipe", "nao")
    content.attempt.data.settings["sql_error"]["file"] = "pipe"
    assert place_of_fault(content, tmp_path) is None


async def test_on_another_tab_the_key_says_where_it_works(project: Path) -> None:
    app = host(project, with_query(RETOLD, WRONG))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("1", "S")
        await sees(pilot, "S tries a query in Data: 4")
