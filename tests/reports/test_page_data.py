"""The HTML page's rows: aligned as they were compared, differing cells marked, nothing of them markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.attempts import HOSTILE, missing_row, wrong_cell
from tests.support.case_host import write_run
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.model import Attempt, DataDetails, Entry
from tui_eval.reports import page, rows_shown
from tui_eval.reports.html_templates import environment
from tui_eval.reports.page import data_shown
from tui_eval.store.reader import RunReader

TOLD = {"comparison": "row 2 differs", "expected_data": [{"a": 1}], "actual_data": [{"a": 2}]}


def data_html(details: dict, data: DataDetails | None) -> str:
    module = environment().get_template("data.html.j2").module
    attempt = None if data is None else Attempt("c", 1, "failed", data=data)
    if data is not None:
        data.comparison = details.get("comparison")
    return str(module.data(data_shown(details, attempt)))  # type: ignore[attr-defined]


def rows(*values: object, extra: int = 0) -> list[dict]:
    return [{"id": number, "value": value} for number, value in enumerate([*values, *range(extra)])]


def test_only_rows_that_differ_are_shown_and_their_cells_marked() -> None:
    data = DataDetails(
        rows(1.0, 2.0, 3.0, 4.0), rows(1.0, 2.5, 3.0)[::-1], ["id", "value"], settings={"key": ["id"]}
    )
    shown = data_html(TOLD, data)
    table = shown[shown.index("<table") : shown.index("</table>")]
    assert "≠ 1 of 4 rows differs in value · − 1 missing · key: id" in shown
    assert "<td>1</td><td><del>2.0</del>→<ins>2.5</ins>" in table and "off by 0.5" in table
    assert '<td class="error">−</td>' in table and "<del>4.0</del>" in table and "3.0" not in table
    assert '<th>value <small class="muted">number</small></th>' in table
    extra = data_html(TOLD, DataDetails(rows(1), rows(1, 7), ["id", "value"]))
    assert '<td class="error">+</td>' in extra and "<ins>7</ins>" in extra


def test_what_the_suite_tolerates_is_not_marked() -> None:
    data = DataDetails(rows(100.0, 5.0), rows(100.4, 9.0), ["id", "value"], settings={"rtol": 0.01})
    shown = data_html(TOLD, data)
    assert "1 of 2 rows differs" in shown and "100.4" not in shown
    assert "2 of 2 rows differ" in data_html(
        TOLD, DataDetails(rows(100.0, 5.0), rows(100.4, 9.0), ["id", "value"])
    )


def test_many_rows_and_columns_stop_and_say_so() -> None:
    wide = {f"c{number}": number for number in range(20)}
    data = DataDetails(
        [{"id": n, **wide} for n in range(50)],
        [{"id": n, **wide, "c1": -1} for n in range(50)],
        ["id", *wide],
    )
    shown = data_html(TOLD, data)
    assert "50 of 50 rows differ" in shown and "; 30 more rows; 9 more columns" in shown
    assert shown.count("<tr>") == 21 and "<th>c1 " in shown


@pytest.mark.parametrize(
    "data", [None, DataDetails(None, None), DataDetails(rows(1), []), DataDetails(rows(1), rows(1), ["id"])]
)
def test_where_nothing_can_be_aligned_both_stand_side_by_side(data: DataDetails | None) -> None:
    shown = data_html(TOLD, data)
    assert 'class="sides"' in shown and "<td>1</td>" in shown and "<td>2</td>" in shown


def test_a_panic_of_the_library_ends_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panics(*_: object) -> None:
        raise PanicException("at src/lib.rs")

    monkeypatch.setattr(rows_shown, "aligned_rows", panics)
    assert 'class="sides"' in data_html(TOLD, DataDetails(rows(1), rows(2), ["id", "value"]))


def test_the_same_rows_are_aligned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts of one case often have one wrong answer, each with a query of its own."""
    aligned: list[DataDetails] = []
    align = rows_shown.aligned_rows

    def counting(shown: rows_shown.RowsShown, data: DataDetails, *more: Any) -> rows_shown.RowsShown:
        aligned.append(data)
        return align(shown, data, *more)

    monkeypatch.setattr(rows_shown, "aligned_rows", counting)
    rows_shown.aligned_once.cache_clear()
    first = DataDetails(rows(7, 8), rows(7, 9), ["id", "value"], verification_sql="SELECT 1")
    again = DataDetails(rows(7, 8), rows(7, 9), ["id", "value"], verification_sql="SELECT 2")
    other = DataDetails(rows(7, 8), rows(7, 10), ["id", "value"])
    pages = [data_html(TOLD, data) for data in (first, again, other)]
    assert len(aligned) == 2 and pages[0] == pages[1]
    assert "<ins>9</ins>" in pages[1] and "<ins>10</ins>" in pages[2]


def test_hostile_cells_are_text() -> None:
    bad = f"<img src=x>{HOSTILE}".encode("utf-8", "replace").decode()
    data = DataDetails(
        [{"id": 1, bad: bad}], [{"id": 1, bad: bad + "!"}], ["id", bad], settings={"key": ["id"]}
    )
    shown = data_html({**TOLD, "comparison": bad, "reference_sql": bad}, data)
    assert (
        "<img" not in shown
        and "<del>" in shown
        and not {chr(code) for code in CONTROL_TABLE} - {"\n"} & set(shown)
    )


def test_the_page_of_a_run_has_them(tmp_path: Path) -> None:
    reader = RunReader(write_run(tmp_path, [[wrong_cell()], [missing_row()]]))
    text = "".join(page.pieces(reader))
    reader.close()
    assert text.count('class="cells"') == 2 and "<del>" in text and "<ins>" in text and "rows differ" in text
    assert "<script" not in text


def test_what_the_rows_have_in_common_stands_above_them() -> None:
    expected, actual = rows(1.5, 2.5, 3.5, 4.25), rows(150, 250, 350, 425)
    data = DataDetails(expected, actual, ["id", "value"], settings={"types": {"value": "DOUBLE"}})
    shown = data_html(TOLD, data)
    assert '<ul class="diagnosis"><li>value ×100 in 4 of 4 rows that differ</li></ul>' in shown
    assert shown.index("×100") < shown.index("<table") < shown.index("in words")
    assert "diagnosis" not in data_html(TOLD, DataDetails(expected, expected, ["id", "value"]))
    assert "diagnosis" not in data_html(TOLD, None)


def test_a_diagnosis_is_text() -> None:
    name = "<b>x</b>"
    expected = [{"id": n, name: n + 0.5} for n in range(5)]
    data = DataDetails(expected, [dict(row, **{name: row[name] * 100}) for row in expected], ["id", name])
    shown = data_html(TOLD, data)
    assert "<li>&lt;b&gt;x&lt;/b&gt; ×100 in 5 of 5" in shown and "<b>x" not in shown


def test_another_order_is_one_line_and_no_rows() -> None:
    expected = rows(1.0, 2.0, 3.0)
    data = DataDetails(expected, expected[::-1], ["id", "value"], settings={"ordered": True, "key": ["id"]})
    shown = data_html(TOLD, data)
    assert "row order differs: 2 of 3 rows stand elsewhere" in shown and "<table" not in shown


def test_what_was_concluded_of_the_agents_query_and_both_queries_stand_there() -> None:
    data = DataDetails(rows(1.0), rows(2.0), ["id", "value"], reference_sql="select id, value from t")
    data.settings = {"conclusion": {"blame": "query", "line": "its query is wrong: <b>"}}
    data.comparison = "values differ"
    call = Entry(1, "tool_call", name="run_sql", arguments={"sql": "select id, 2 * value as value from t"})
    made = Attempt("c", 1, "failed", data=data, transcript=[call])
    module = environment().get_template("data.html.j2").module
    shown = str(module.data(data_shown({**TOLD, "reference_sql": "x"}, made)))  # type: ignore[attr-defined]
    assert "<b>SQL</b> its query is wrong: &lt;b&gt;</li>" in shown
    data.settings["conclusion"] |= {"place": ["LINE 2:   <nmae", "          ^"]}
    placed = str(module.data(data_shown({**TOLD, "reference_sql": "x"}, made)))  # type: ignore[attr-defined]
    assert "&lt;b&gt;<pre>LINE 2:   &lt;nmae\n          ^</pre></li>" in placed
    assert "<del>  value" in shown and "<ins>  2 * value AS value" in shown and shown.count("≠") == 3


def test_an_expected_query_that_failed_shows_what_duckdb_said_and_the_answers_rows() -> None:
    fault = {
        "message": "Binder Error: x",
        "detail": "Binder Error: x\nLINE 2: y\n        ^",
        "file": "t.yml",
        "file_line": 7,
    }
    data = DataDetails(None, rows(1.0), ["id"], settings={"sql_error": fault})
    module = environment().get_template("data.html.j2").module
    details = {"comparison": None, "reference_sql": "select", "actual_data": data.actual}
    made = Attempt("c", 1, "error", data=data)
    shown = str(module.data(data_shown(details, made)))  # type: ignore[attr-defined]
    assert "Binder Error: x\nLINE 2: y\n        ^\nat t.yml:7" in shown
    assert "the answer&#39;s rows" in shown and "<td>1.0</td>" in shown
