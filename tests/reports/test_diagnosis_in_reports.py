"""What rows that differ have in common, in `show` and in Markdown."""

from __future__ import annotations

import html
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.test_store import attempt
from tui_eval.commands.recorded_runs import attempt_text
from tui_eval.model import Attempt, Case, DataDetails, Entry, Evidence, Turn, Verdict
from tui_eval.reports.console_table import about_queries, reasons_of
from tui_eval.reports.export import export
from tui_eval.reports.rows_shown import rows_shown, table_lines
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

LINE = "amo|unt ×100 in 5 of 5 rows that differ"


def wrong(case_id: str = "t.yml::revenue") -> Attempt:
    expected = [{"id": n, "amo|unt": n + 0.25} for n in range(1, 6)]
    made = attempt(case_id, 1, "failed")
    made.message = "values differ"
    made.data = DataDetails(
        expected=expected,
        actual=[dict(row, **{"amo|unt": row["amo|unt"] * 100}) for row in expected],
        columns=["id", "amo|unt"],
        comparison="row 1 (id=1): amo|unt: expected 1.25, actual 125.0",
    )
    return made


def markdown_of(writer: RunWriter) -> str:
    """The Markdown report of a run that was written."""
    path = writer.folder / "run.md"
    with closing(RunReader(writer.folder)) as reader:
        export(reader, path)
    return path.read_text("utf-8")


def test_show_says_it_above_the_rows() -> None:
    text = attempt_text(wrong(), "revenue")
    lines = text.splitlines()
    at = lines.index(f"→ {LINE}")
    assert lines[at + 1].startswith("≠ 5 of 5 rows differ in amo|unt · key: id")
    assert [line.split() for line in lines[at + 2 : at + 5]] == [
        ["id", "amo|unt"],
        ["integer", "number"],
        ["≠", "1", "1.25→125.0"],
    ]
    assert "row 1 (id=1)" not in text
    right = wrong()
    right.outcome = "passed"
    assert "×100" not in attempt_text(right, "revenue")


def test_run_says_it_in_one_line_above_the_rows_and_once() -> None:
    made = wrong()
    assert made.data is not None and made.data.comparison
    fact = "amo|unt ×100 in 5 of 5 rows"
    made.verdicts = [
        Verdict("sql", passed=False, reason="values differ", target="rows", evidence=[told_of(fact)])
    ]
    assert reasons_of(made, diagnosed=True) == ["values differ", fact, made.data.comparison]
    assert reasons_of(made) == [
        "values differ",
        made.data.comparison,
    ]  # `show` has the table, and this above it
    made.verdicts[0].evidence = [told_of("values differ")]
    assert reasons_of(made, diagnosed=True) == ["values differ", made.data.comparison]
    ties = "the expected query's LIMIT cuts through ties: 10 rows share n=6, any 3 of them are right"
    made.verdicts[0].evidence = [told_of(ties)]
    made.data.settings["conclusion"] = {"blame": "ties", "line": ties}
    assert about_queries(made) == [f"SQL {ties}"]
    assert reasons_of(made, diagnosed=True) == ["values differ", made.data.comparison]


def told_of(fact: str) -> Evidence:
    """What a verdict about rows rests on."""
    return Evidence("rule", "rows", text=fact, rule=fact)


def test_show_says_of_what_there_is_more() -> None:
    made = wrong()
    assert made.data is not None
    expected = [{"id": n, "amo|unt": n + 0.25} for n in range(1, 24)]
    made.data.expected, made.data.actual = expected, [dict(row, **{"amo|unt": 0.5}) for row in expected]
    assert " · key: id, 3 more rows\n" in attempt_text(made, "revenue")


def test_show_has_the_row_that_another_one_repeats_above_it() -> None:
    made = wrong()
    assert made.data is not None and made.data.expected is not None
    made.data.actual = [*made.data.expected, made.data.expected[2], made.data.expected[2]]
    lines = [line.split() for line in attempt_text(made, "revenue").splitlines()]
    at = lines.index(["×2", "3", "3.25"])
    assert lines[at - 1 : at + 2] == [["3", "3.25"], ["×2", "3", "3.25"], ["×3", "3", "3.25"]]


@pytest.mark.parametrize("width", [None, 120, 80, 40])
@pytest.mark.parametrize(
    ("wanted", "given", "said"),
    [
        ("2024-01-01 10:00:00.123456", "2024-01-01 10:00:00.123", (".123456→", ".123")),
        ("2024-01-01 10:00:00.123456", "2023-01-01 10:00:00.123456", ("2024-01", "→2023-01")),
        ("abc " * 200 + "x", "abc " * 200 + "y", ("abc x→", "abc y")),
        ("x", "y" + "abc " * 200 + "z", ("x→yabc", "…")),
        ("x" * 30, "", ("x", '→""')),
    ],
)
def test_what_differs_of_a_long_cell_is_seen_however_narrow_the_terminal(
    width: int | None, wanted: str, given: str, said: tuple[str, str]
) -> None:
    data = DataDetails([{"k": 1, "x": wanted}], [{"k": 1, "x": given}], ["k", "x"], comparison="x")
    shown = rows_shown(data)
    assert shown.table is not None
    line = list(table_lines(shown.table, width))[-1]
    assert all(word in line for word in said), line
    assert width is None or len(line) <= width


def test_markdown_says_how_many_cases_it_shows_no_rows_of(tmp_path: Path) -> None:
    writer = RunWriter(Store(tmp_path).create_folder("run"), RunInfo(id="run", agents=["a"], started_at=1.0))
    planned = [
        PlannedCase(Case(f"t.yml::r{n}", f"r{n}", "t.yml", "nao", turns=[Turn("?")]), "a", None, 1, 1)
        for n in range(53)
    ]
    for number, (ref,) in enumerate(writer.plan(planned)):
        writer.done(ref, wrong(f"t.yml::r{number}"))
    writer.close()
    text = markdown_of(writer)
    assert text.count(": rows</summary>") == 20
    assert "The rows of 33 more cases are not shown here; no cause was looked for in 3 of these." in text


def test_markdown_of_many_cases_fits_into_a_comment(tmp_path: Path) -> None:
    writer = RunWriter(Store(tmp_path).create_folder("run"), RunInfo(id="run", agents=["a"], started_at=1.0))
    planned = [
        PlannedCase(Case(f"t.yml::r{n}", f"row {n} " * 9, "t.yml", "nao", turns=[Turn("?")]), "a", None, 1, 1)
        for n in range(1_600)
    ]
    for number, (ref,) in enumerate(writer.plan(planned)):
        failed = wrong(f"t.yml::r{number}")
        writer.done(ref, failed if number < 800 else Attempt(failed.case_id, 1, "passed", "a", score=1.0))
    writer.close()
    notes = Notes.beside(writer.folder)
    for ref in range(1, 61):
        notes.put(HumanNote("run", ref, f"t.yml::r{ref - 1}", "wrong", "not what was asked for " * 9, True))
    text = markdown_of(writer)
    assert 40_000 < len(text) < 65_536
    failed, passed = (text.count(f"| a |  | {outcome} |") for outcome in ("failed", "passed"))
    assert failed and passed
    assert f"{800 - failed} more did not pass, not listed here: `tui-eval show run`." in text
    assert f"{800 - passed} more passed, not listed here: `tui-eval show run`." in text
    told = text.count(": rows</summary>")
    assert 0 < told <= 20 and f"The rows of {800 - told} more cases are not shown here" in text
    noted = text.count("not what was asked for")
    assert 0 < noted < 60 * 9 and "more noted, not listed here: `tui-eval export run -o notes.csv`." in text


def test_markdown_of_one_wide_case_shows_others_too(tmp_path: Path) -> None:
    """Nor does a name without end take the room of the table."""
    writer = RunWriter(Store(tmp_path).create_folder("run"), RunInfo(id="run", agents=["a"], started_at=1.0))
    names = ["n_" * 15_000, *map("row {}".format, range(9))]
    planned = [
        PlannedCase(Case(f"t.yml::r{n}", name, "t.yml", "nao", turns=[Turn("?")]), "a", None, 1, 1)
        for n, name in enumerate(names)
    ]
    for number, (ref,) in enumerate(writer.plan(planned)):
        failed = wrong(f"t.yml::r{number}")
        if number == 0 and failed.data is not None:
            failed.data.columns = [f"col_{n}" for n in range(12)]
            for side in ("expected", "actual"):
                rows = [dict.fromkeys(failed.data.columns, f"{side}_*" * 12) for _ in range(12)]
                setattr(failed.data, side, rows)
        writer.done(ref, failed)
    writer.close()
    text = markdown_of(writer)
    assert text.count("| a |  | failed |") == 10 and text.count(": rows</summary>") == 10
    assert "11 more rows" in text and len(text) < 30_000 and "not shown" not in text


def test_markdown_says_it_beside_the_reason(tmp_path: Path) -> None:
    run_id = new_run_id()
    writer = RunWriter(
        Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a"], started_at=1.0)
    )
    case = Case("t.yml::revenue", "revenue", "t.yml", "nao", turns=[Turn("how much?")])
    ((ref,),) = writer.plan([PlannedCase(case, "a", None, 1, 1)])
    writer.done(ref, wrong())
    writer.close()
    text = markdown_of(writer)
    (row,) = [line for line in text.splitlines() if line.startswith("| revenue")]
    assert row.endswith("| failed | values differ<br>amo&#124;unt ×100 in 5 of 5 rows that differ |")
    assert (
        "<details><summary>revenue: rows</summary>" in text
        and "| | id *integer* | amo&#124;unt *number* |" in text
    )
    assert "| ≠ | 1 | 1.25→125.0 |" in text


def test_markdown_shows_the_agents_query_as_it_is(tmp_path: Path) -> None:
    """Its line with the caret stands below a list, where an indented line is no code: an image, a link, a person's
    name in it were these."""
    from markdown_it import MarkdownIt

    place = ["LINE 1: select '<img src=y> @bob **b** ```` http://x.example'", "               ^"]
    made = wrong()
    assert made.data is not None
    made.data.settings = {"conclusion": {"blame": "query", "line": "its query is wrong", "place": place}}
    run_id = new_run_id()
    writer = RunWriter(Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a"]))
    case = Case("t.yml::revenue", "revenue", "t.yml", "nao", turns=[Turn("how much?")])
    ((ref,),) = writer.plan([PlannedCase(case, "a", None, 1, 1)])
    writer.done(ref, made)
    writer.close()
    page = MarkdownIt("commonmark").enable("table").render(markdown_of(writer))
    shown = html.escape("\n".join(place), quote=False)
    assert f"<pre><code>{shown}\n</code></pre>" in page
    assert "<td>≠</td>" in page and "<img" not in page


def test_show_says_where_an_expected_query_failed_and_which_step_went_wrong() -> None:
    made = wrong()
    assert made.data is not None
    made.data.settings = {"conclusion": {"blame": "query", "line": "its query is wrong"}}
    assert "\nSQL its query is wrong\n" in attempt_text(made, "revenue")
    made.data.settings["conclusion"] |= {"place": ["LINE 2:   nmae", "          ^"]}
    assert "\nSQL its query is wrong\nLINE 2:   nmae\n          ^\n" in attempt_text(made, "revenue")
    fault = {
        "message": "x",
        "detail": "Binder Error: x\n\nLINE 1: select y\n               ^",
        "line": 1,
        "column": 8,
    }
    made.data = DataDetails(actual=[{"id": 7}], settings={"sql_error": fault})
    text = attempt_text(made, "revenue")
    assert "LINE 1: select y\n               ^\nat line 1, column 8 of the query" in text
    assert "the answer's rows: 1\n        id\n   integer\n         7\n" in text

    made.data = DataDetails(settings={"sql_error": fault, "not_asked": True})
    assert "the agent was not asked: its answer could be compared with nothing" in attempt_text(
        made, "revenue"
    )


def with_query(sql: str, given: object = None) -> Attempt:
    made = wrong()
    assert made.data is not None
    made.data.reference_sql = "select id, amount from orders"
    made.transcript = [
        Entry(1, "tool_call", name="run_sql", arguments={"sql": sql}, call_id="q"),
        Entry(1, "tool_result", name="run_sql", result=given, call_id="q"),
    ]
    return made


def test_a_run_recorded_before_says_which_step_went_wrong_where_its_record_does() -> None:
    rows = wrong().data
    assert rows is not None and rows.expected is not None and rows.actual is not None
    retold = "SQL its query gives the right rows: the answer retold them wrongly"
    mistaken = "SQL its query is wrong: values differ; the answer has its rows"
    other = "select id, amount * 100 as amount from orders"
    assert retold in attempt_text(with_query("SELECT id,  amount FROM orders;"), "revenue")
    assert retold in attempt_text(with_query(other, {"rows": rows.expected}), "revenue")
    assert mistaken in attempt_text(with_query(other, {"rows": rows.actual}), "revenue")
    for unknown in (
        with_query(other),
        with_query(other, {"rows": rows.actual, "truncated": "5 of 9 rows"}),
        with_query(other, "5 rows"),
    ):
        assert "SQL its query" not in attempt_text(unknown, "revenue")
    kept = with_query(other, {"rows": rows.actual})
    assert kept.data is not None
    kept.data.settings["conclusion"] = {"blame": "retold", "line": "as it was judged"}
    assert "SQL as it was judged" in attempt_text(kept, "revenue")
    cut = with_query(other, {"rows": rows.actual})
    assert cut.data is not None
    cut.data.settings["truncated"] = {"expected": 5000, "actual": 5000}
    assert "SQL its query" not in attempt_text(cut, "revenue")


def test_markdown_shows_the_answers_rows_beside_a_failed_query(tmp_path: Path) -> None:
    made = wrong()
    made.outcome = "error"
    made.data = DataDetails(actual=[{"id": 7}], settings={"sql_error": {"message": "Binder Error: x"}})
    run_id = new_run_id()
    writer = RunWriter(
        Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a"], started_at=1.0)
    )
    case = Case("t.yml::revenue", "revenue", "t.yml", "nao", turns=[Turn("how much?")])
    ((ref,),) = writer.plan([PlannedCase(case, "a", None, 1, 1)])
    writer.done(ref, made)
    writer.close()
    text = markdown_of(writer)
    assert "the answer's rows: 1" in text and "|  | 7 |" in text


def test_rows_in_another_order_are_one_line_everywhere() -> None:
    made = wrong()
    assert made.data is not None and made.data.expected is not None
    made.data.actual, made.data.settings = made.data.expected[::-1], {"ordered": True, "key": ["id"]}
    made.data.comparison = "the same rows in another order: 4 of 5 stand elsewhere"
    text = attempt_text(made, "revenue")
    assert "row order differs: 4 of 5 rows stand elsewhere" in text and "→" not in text


def test_markdown_says_once_that_the_order_differs(tmp_path: Path) -> None:
    made = wrong()
    assert made.data is not None and made.data.expected is not None
    made.data.actual, made.data.settings = made.data.expected[::-1], {"ordered": True, "key": ["id"]}
    made.message, made.data.comparison = "row order differs", "the same rows in another order"
    run_id = new_run_id()
    info = RunInfo(id=run_id, agents=["a"], started_at=1.0)
    writer = RunWriter(Store(tmp_path).create_folder(run_id), info)
    case = Case("t.yml::revenue", "revenue", "t.yml", "nao", turns=[Turn("how much?")])
    ((ref,),) = writer.plan([PlannedCase(case, "a", None, 1, 1)])
    writer.done(ref, made)
    writer.close()
    text = markdown_of(writer)
    assert "| failed | row order differs: 4 of 5 rows stand elsewhere |" in text and "<details>" not in text


def test_a_retold_answer_is_not_said_to_come_of_a_join() -> None:
    def told(sql: str, given: object = None, **kept: object) -> str:
        made = with_query(sql, given)
        assert made.data is not None and made.data.expected is not None
        made.data.actual = [dict(row, **{"amo|unt": row["amo|unt"] * 2}) for row in made.data.expected]
        if kept:
            made.data.settings["conclusion"] = kept
        return next(line for line in attempt_text(made, "revenue").splitlines() if line.startswith("→ "))

    other = "select id, amount * 2 as amount from orders"
    fact = "→ amo|unt ×2 in 5 of 5 rows that differ"
    assert told(other) == f"{fact}: the same rows counted several times, as a join does?"
    assert told("select id, amount from orders") == fact  # its record alone says that it is right
    assert told(other, blame="retold", line="its query gives the right rows") == fact
    assert told(other, blame="query", line="its query is wrong", joins=False) == fact
    assert told(other, blame="query", line="its query is wrong", joins=True) != fact
