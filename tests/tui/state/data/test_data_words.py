"""The Data tab in words: counts, columns, the cell explained; widths; the difference as CSV and text."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tests.support.attempts import wrong_cell
from tui_eval.model import DataDetails
from tui_eval.tui.screens.case_actions import NOTE_CHOICES as NOTES
from tui_eval.tui.state.case.copying import COPY_CHOICES as COPIES
from tui_eval.tui.state.data import data_export, joined_rows
from tui_eval.tui.state.data.comparison_modes import disagreement
from tui_eval.tui.state.data.data_blocks import broken, sql_lines
from tui_eval.tui.state.data.data_columns import DataColumn, both_fitted, laid_out, squeezed, value_text
from tui_eval.tui.state.data.data_view import DataView, make
from tui_eval.tui.state.data.data_words import alike, shortened
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.state.text.text_difference import common
from tui_eval.tui.widgets.bars import question

Rows = list[dict[str, Any]]


def view_of(expected: Rows, actual: Rows | None, **settings: Any) -> DataView:
    names = list(expected[0]) if expected else []
    return make(DataDetails(expected, actual, names, settings=settings))


def said(view: DataView, row: int, column: int) -> list[str]:
    return [plain(line) for line in view.explain(row, column)]


def test_the_summary_counts_rows_and_names_columns_and_key() -> None:
    rows = [{"id": n, "a": n, "b": f"t{n}"} for n in range(30)]
    other = [dict(row) for row in rows[:-2]] + [{"id": 99, "a": 1, "b": "x"}]
    for n in range(12):
        other[n]["a"] += 1
    other[0]["b"] = "no"
    assert (
        plain(view_of(rows, other).summary())
        == "≠ 12 of 30 rows differ in a 12, b 1 · − 2 missing · + 1 extra · key: id (found)"
    )
    assert plain(view_of(rows, rows).summary()) == "✓ all 30 rows are the same · key: id (found)"
    given = view_of(rows, other, key=["id", "a"])
    assert plain(given.summary()).endswith("key: id, a (given)")


@pytest.mark.parametrize(
    ("expected", "actual", "lines"),
    [
        (None, "", ["expected null  null", 'actual   ""  text']),
        ("", "x", ['expected ""', "actual   x"]),
        ("x", "", ["expected x", 'actual   ""']),
    ],
)
def test_an_empty_text_is_seen(expected: Any, actual: Any, lines: list[str]) -> None:
    view = view_of([{"id": 1, "v": expected}], [{"id": 1, "v": actual}], key=["id"])
    assert said(view, 0, 1)[1:] == lines


def test_lists_are_lists_on_both_sides() -> None:
    types = {"v": "VARCHAR[]"}
    view = view_of([{"id": 1, "v": "[a, b c]"}], [{"id": 1, "v": ["a", "b d"]}], key=["id"], types=types)
    assert said(view, 0, 1)[1:] == ["expected [a, b c]", "actual   [a, b d]"]
    assert [column.kind for column in view.table.columns] == ["integer", "list"]


def test_where_there_is_one_line_for_it_the_key_gives_way_to_the_reason() -> None:
    rows, other = [{"month": "2024-04", "v": 10.5}], [{"month": "2024-04", "v": 12.5}]
    lines = view_of(rows, other, key=["month"]).explain(0, 1)
    assert plain(lines[0]).startswith("v in row 1 (month=2024-04) ≠ off by 2")
    assert shortened(lines, 80) == lines
    short = shortened(lines, 30)
    assert plain(short[0]).startswith("v in row 1 ≠ off by 2") and short[1:] == lines[1:]


def test_a_day_that_names_its_row_stands_without_a_midnight_however_both_sides_write_it() -> None:
    rows, other = [{"d": "2024-01-01T00:00:00", "v": 10.5}], [{"d": "2024-01-01", "v": 12.5}]
    lines = view_of(rows, other, key=["d"], types={"d": "DATE"}).explain(0, 1)
    assert plain(lines[0]).startswith("v in row 1 (d=2024-01-01) ≠")


def test_an_integer_off_by_one_is_a_difference_also_of_a_run_kept_by_an_earlier_version() -> None:
    rows, other = [{"id": 1, "v": 1_000_000}], [{"id": 1, "v": 1_000_001}]
    in_force = {"rtol": 1e-5, "atol": 1e-8, "decimals": None, "ordered": False, "key": None}
    for settings in ({}, in_force, {**in_force, "exact_integers": True}):
        view = view_of(rows, other, **settings)
        assert view.apart == 1 and "off by 1, within nao's tolerance" in said(view, 0, 1)[0]
    assert view_of(rows, other, **in_force, exact_integers=False).apart == 0


def test_of_two_modes_that_which_counted_says_what_was_judged() -> None:
    """Kept rows do not tell a decimal from a float; the verdict knew it."""
    attempt = wrong_cell()
    rows = [{"id": 1, "price": 100000.5}]
    attempt.data = DataDetails(rows, [{"id": 1, "price": "100000.51"}], ["id", "price"])
    attempt.data.settings = {"compat": "documented", "types": {"price": "DECIMAL(18,2)"}}
    attempt.verdicts[0].reason = "values differ (within nao's tolerance)"
    lines = [plain(line) for line in disagreement(attempt)]
    assert lines[0] == "✗ documented: values differ (within nao's tolerance) · counted here"
    assert lines[1].startswith("✓ reference: match")


def test_a_column_that_the_answer_calls_otherwise() -> None:
    rows = [{"id": n, "customer": f"c{n}"} for n in range(8)]
    other = [{"id": n, "name": f"c{n}", "currency": "EUR"} for n in range(8)]
    view = view_of(rows, other)
    assert plain(view.summary()) == (
        "− column customer missing: the answer calls it name? · ✓ all else is the same · key: id (found)"
        " · ignored: name, currency"
    )
    assert view.mark(view.row(0)) == " " and len(view.differing) == 0
    alike = view_of([{"id": 1, "größe": 5}], [{"id": 1, "gro\u0308\u00dfe": 5}])
    looks = "with the same letters composed otherwise (Unicode normalisation)"
    assert plain(alike.summary()).startswith(f"− column größe missing: the answer has it {looks} · ")
    assert said(view, 0, 1) == [
        "customer in row 1 (id=0) ≠ the answer lacks this column",
        "expected c0",
        "actual   no such column",
    ]


def test_an_answer_without_rows_shows_what_was_expected() -> None:
    for actual in ([], None):
        view = view_of([{"id": 1, "v": 7}], actual)
        assert plain(view.summary()) == "− 1 missing · no key: aligned by content"
        assert said(view, 0, 1)[1:] == ["expected 7"]


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        ("total ", "total", "differs only in blanks at the ends"),
        ("Zürich", "zürich", "differs only in upper and lower case"),
        ("Gen\u00e8ve", "Gene\u0300ve", "differs only in how the same letters are written in Unicode"),
        ("a\nb", "a\r\nb", "differs only in the ends of lines"),
        ("a b", "a\u00a0b", "differs only in U+00A0 NO-BREAK SPACE in the answer"),
        (
            "a\u200bb",
            "ab\u00ad",
            "differs only in U+00AD SOFT HYPHEN in the answer and U+200B ZERO WIDTH SPACE in what is expected",
        ),
        ("a\tb", "a b", "differs only in blanks"),
        ("a", "b", ""),
    ],
)
def test_texts_that_look_the_same(expected: str, actual: str, words: str) -> None:
    assert alike(expected, actual) == words


def test_blanks_at_the_ends_are_seen() -> None:
    view = view_of([{"id": 1, "v": "total "}], [{"id": 1, "v": "total"}])
    assert said(view, 0, 1)[1:] == ["expected total·", "actual   total"]
    assert value_text("  a ") == "··a·" and value_text(" ") == "·" and value_text(None) == ""


def test_a_long_text_is_shown_where_it_differs() -> None:
    long = "Lorem ipsum dolor sit amet, " * 8000
    view = view_of([{"id": 1, "v": long}], [{"id": 1, "v": long[:100_000] + "CHANGED" + long[100_000:]}])
    lines = [plain(line) for line in view.explain(0, 1, room=100)]
    assert lines[2].startswith("actual   …(99,970 the same) ") and "CHANGED" in lines[2]
    assert all(len(line) < 160 for line in lines)
    assert common(long, long) == len(long) and common("", "a") == 0 and common("ab", "ac") == 1


def test_types_are_named() -> None:
    view = view_of([{"id": 1, "v": 1.5}], [{"id": 1, "v": "1.5 EUR"}])
    assert said(view, 0, 1) == [
        "v in row 1 (id=1) ≠ another type: a text instead of a number",
        "expected 1.5  number",
        "actual   1.5 EUR  text",
    ]


def test_rows_in_another_place_are_counted_and_gone_to() -> None:
    rows = [{"rank": n} for n in range(20)]
    view = view_of(rows, [rows[0], rows[19], *rows[1:19]], ordered=True)
    assert plain(view.summary()).startswith("↕ 1 in another place · ")
    assert view.next_difference(-1, 1) == 19 and view.next_difference(19, 1) is None
    assert "in another place: row 2 of the answer" in said(view, 19, 0)[0]
    assert list(csv.reader(io.StringIO("".join(view.csv()))))[1] == ["moved", "20", "2", "", "", "", ""]


def test_only_differences_leaves_out_columns_without_any() -> None:
    rows = [{f"c{i}" if i else "id": n * i if i else n for i in range(40)} for n in range(9)]
    other = [dict(row) for row in rows]
    other[3]["c30"] = -1
    view = view_of(rows, other)
    assert len(view.visible) == 40
    view.only = True
    assert list(view.visible) == [0, 30] and len(view) == 1
    assert plain(view.summary()).startswith("only differences, 2 of 40 columns · ")


def test_numbers_stand_with_their_points_in_line() -> None:
    view = view_of([{"id": 1, "v": 10.0}, {"id": 2, "v": 9.25}], [{"id": 1, "v": 10.0}, {"id": 2, "v": 9.3}])
    column = view.columns[1]
    assert (column.right, column.places) == (True, 2)
    assert [column.filled(text) for text in ("10.0", "9.25", "7", "null")] == [
        "10.0 ",
        " 9.25",
        " 7   ",
        " null",
    ]


def test_columns_that_stay_leave_room_for_the_others() -> None:
    wide = [
        DataColumn("key", "key", 24, False),
        DataColumn("b", "b", 10, False),
        DataColumn("c", "c", 24, False),
    ]
    placed = list(enumerate(wide))
    shown = laid_out(placed, 1, 1, 33, 2)
    assert [index for index, _, _ in shown] == [0, 1] and shown[0][2] < 24 and shown[1][2] == 10
    assert [width for _, _, width in laid_out(placed, 0, 0, 100, 2)] == [24, 10, 24]
    assert [index for index, _, _ in laid_out(placed, 1, 2, 33, 2)] == [0, 2]
    assert sum(width + 2 for _, _, width in laid_out(placed, 1, 2, 33, 2)) <= 33


def drawn(view: DataView, width: int) -> list[str]:
    """The one table at a width, its head first."""
    room = width - joined_rows.margin(view) + 1
    places = squeezed(view.joined, view.columns, view.visible, room, joined_rows.GAP, view.frozen)
    shown = laid_out(places, view.frozen, view.frozen, room, joined_rows.GAP)
    head = joined_rows.head(view, shown, -1, width)
    rows = [joined_rows.row_line(view, view.row(at), shown, None) for at in range(len(view))]
    return [plain(line)[:width].rstrip() for line in (*head, *rows)]


ORDERS: Rows = [
    {"amount": 26.0, "order_id": 1, "customer_id": 7, "order_date": "2018-01-01T00:00:00", "status": "completed"},
    {"amount": 9.5, "order_id": 2, "customer_id": 94, "order_date": "2018-01-02T00:00:00", "status": "returned"},
    {"amount": 3.0, "order_id": 3, "customer_id": 50, "order_date": "2018-01-05T00:00:00", "status": "completed"},
]  # fmt: skip


def test_where_there_is_room_cells_that_were_cut_get_it() -> None:
    rows = [{"id": n, "share": 1 / (n + 2)} for n in range(1, 4)]
    view = view_of(rows, [{**row, "share": row["share"] * 100} for row in rows])
    assert "0.3333333333333333→33.33333333333333" in "\n".join(drawn(view, 80))
    assert "…→" in "\n".join(drawn(view, 46))


def test_each_row_stands_once_the_key_first_with_arrows_where_cells_differ() -> None:
    answer = [
        {**ORDERS[0], "amount": 24.0},
        {**ORDERS[2], "amount": 3.0 * (1 + 1e-8)},
        {**ORDERS[2], "amount": 8.0},
        {**ORDERS[2], "order_id": 9},
    ]
    view = view_of(ORDERS, answer, types={"order_date": "DATE", "order_id": "BIGINT"})
    assert drawn(view, 79) == [
        "   order_id     amount≠ customer_id  order_date  status",
        "    integer     number      integer  date        text",
        "≠         1  26.0→24.0            7  2018-01-01  completed",
        "−         2        9.5           94  2018-01-02  returned",
        "          3        3.0≈          50  2018-01-05  completed",
        "×2        3        8.0           50  2018-01-05  completed",
        "+         9        3.0           50  2018-01-05  completed",
    ]


def test_texts_in_which_nothing_differs_are_cut_before_what_does() -> None:
    rows = [{"id": n, "who": f"Customer {n} with a long name", "amount": 11.25 * n} for n in range(1, 4)]
    answer = [{**row, "amount": row["amount"] * 100} for row in rows]
    view = view_of(rows, answer, key=["id"])
    lines = drawn(view, 44)
    assert "11.25→1125.0" in lines[2] and "Customer 1 with a…" in lines[2] and max(map(len, lines)) <= 44
    named = view_of(rows, answer, key=["who"])  # a key says which row it is
    assert "Customer 1 with a long …" in drawn(named, 44)[2]


def test_five_columns_of_orders_fit_into_80_also_where_all_of_them_differ() -> None:
    answer = [
        {**row, "amount": row["amount"] * 100, "status": "return_pending", "order_date": "2018-02-28"}
        for row in ORDERS
    ]
    lines = drawn(view_of(ORDERS, answer), 79)
    assert all(name in lines[0] for name in ("order_id", "amount", "customer_id", "order_date", "status"))
    assert "2018-01-05→2018-02-28" in lines[4] and "300.0" in lines[4] and "…" in lines[4]
    assert max(map(len, lines)) <= 79


def test_dates_are_explained_without_a_midnight_unless_it_is_all_that_differs() -> None:
    rows = [{"day": f"2018-01-0{n}T00:00:00", "v": n} for n in (1, 2, 3)]
    answer = [dict(rows[0], v=9), dict(rows[1], day="2018-01-02"), dict(rows[2])]
    view = view_of(rows, answer, types={"day": "DATE"}, key=["day"])
    assert said(view, 0, 1)[0].startswith("v in row 1 (day=2018-01-01) ≠")
    assert said(view, 2, 0)[1:] == ["expected 2018-01-03", "actual   2018-01-03"]
    assert said(view, 1, 0)[1:] == ["expected 2018-01-02T00:00:00", "actual   2018-01-02"]


@pytest.mark.parametrize("width", [79, 59, 44, 36, 30])
def test_no_date_is_cut_so_that_its_day_is_lost(width: int) -> None:
    answer = [{**row, "order_date": f"2018-02-0{n}T08:30:00"} for n, row in enumerate(ORDERS, 1)]
    for sides in (ORDERS, answer):
        view = view_of(ORDERS, sides)
        for place in range(5):
            room = width - joined_rows.margin(view) + 1
            shown = laid_out(list(enumerate(view.joined)), view.frozen, place, room, joined_rows.GAP)
            text = plain(joined_rows.row_line(view, view.row(0), shown, None))
            days = [wide for _, column, wide in shown if column.name == "order_date"]
            if days and sides is answer:
                assert "→2018-02-01" in text and (days[0] < 21 or "2018-01-01" in text)
            else:
                assert ("2018-01-01" in text) == bool(days)


@pytest.mark.parametrize(
    ("expected", "actual", "width", "shown"),
    [
        ("26.0", "24.0", 9, ("26.0", "24.0")),
        ("2018-01-05 08:00:00", "2018-01-05 03:00:00", 30, ("2018-01-05 08:00:00", "03:00:00")),
        ("2018-01-05 08:00:00", "2018-01-06 08:00:00", 30, ("2018-01-05", "2018-01-06 08:00:00")),
        ("return_pending", "returned", 18, ("…urn_pendi…", "…urned")),
        ("2018-01-05", "2018-02-06", 20, ("", "2018-02-06")),
        ("2018-01-05 08:00:00", "2018-02-06 09:00:00", 24, ("2018-01-05", "2018-02-06")),
        ("abc", "a long text that ends in no time", 12, ("abc", "a long …")),
        ("100000000001", "100000000002", 11, ("…0001", "…0002")),
        ("100000000001", "200000000002", 11, ("1000…", "2000…")),
    ],
)
def test_both_values_of_a_cell_are_cut_where_they_are_alike(
    expected: str, actual: str, width: int, shown: tuple[str, str]
) -> None:
    assert both_fitted(expected, actual, width) == shown
    assert len("→".join(shown)) <= width


def test_no_cell_of_the_csv_is_a_formula_and_numbers_stay_numbers() -> None:
    view = view_of(
        [{"id": 1, "x": "=1+1", "n": -5, "@h": "a"}],
        [{"id": 1, "x": "=cmd|' /C calc'!A0", "n": -6, "@h": "+b"}],
    )
    rows = list(csv.DictReader(io.StringIO("".join(view.csv()))))
    assert [(row["column"], row["expected"], row["actual"]) for row in rows] == [
        ("x", "'=1+1", "'=cmd|' /C calc'!A0"),
        ("n", "-5", "-6"),
        ("'@h", "a", "'+b"),
    ]


def test_the_pager_s_text_has_the_reasons() -> None:
    details = wrong_cell().data
    assert details is not None
    text = make(details).text()
    assert "≠ revenue: 1006.5   actual 1007.25   (off by 0.75, allowed" in text


def test_the_pager_is_given_fewer_rows_of_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 rows of 300 columns took more than a minute, in which no key was heard."""
    monkeypatch.setattr(data_export, "MOST_CELLS", 6)
    details = wrong_cell().data
    assert details is not None
    view = make(details)
    text = view.text()
    shown = 6 // len(view.columns)
    assert f" row {shown}\n" in text and f" row {shown + 1}\n" not in text
    assert f"… {len(view) - shown:,} more rows" in text


def test_sql_on_one_line_is_broken_before_its_clauses() -> None:
    sql = (
        "SELECT a, sum(b) OVER (PARTITION BY c ORDER BY d) AS s, 'x FROM y' AS t FROM shop LEFT JOIN u USING (a)"
        " WHERE a IN (SELECT a FROM v WHERE k = 1) GROUP BY a ORDER BY s LIMIT 5"
    )
    assert broken(sql).split("\n") == [
        "SELECT a, sum(b) OVER (PARTITION BY c ORDER BY d) AS s, 'x FROM y' AS t",
        "FROM shop",
        "LEFT JOIN u USING (a)",
        "WHERE a IN (",
        "  SELECT a",
        "  FROM v",
        "  WHERE k = 1)",
        "GROUP BY a",
        "ORDER BY s",
        "LIMIT 5",
    ]
    assert broken(sql).split() == sql.replace("(SELECT", "( SELECT").split()
    assert broken("SELECT 1 -- FROM x") == "SELECT 1 -- FROM x"
    assert len(list(sql_lines(sql, rendered=False))) == 1 and len(list(sql_lines(sql))) == 10


@pytest.mark.parametrize("width", [58, 78, 118, 44])
def test_a_question_at_the_foot_names_every_choice(width: int) -> None:
    for purpose, choices in (("copy", COPIES), ("note", NOTES)):
        parts = question(purpose, choices, width)
        text = "".join(words for _, words in parts).rstrip()
        assert len(text) <= width and [key for kind, key in parts if kind == "key"] == list(choices)
        assert all(f"{key} {words[:3].rstrip()}" in text for key, words in choices.items())


def test_an_empty_text_is_seen_and_named() -> None:
    view = view_of([{"id": 1, "a": None, "b": ""}], [{"id": 1, "a": "", "b": None}], key=["id"])
    first, second = said(view, 0, 1), said(view, 0, 2)
    assert first[0].endswith("≠ an empty text instead of null") and first[2].split() == [
        "actual",
        '""',
        "text",
    ]
    assert second[0].endswith("≠ null instead of an empty text") and second[1].split()[1] == '""'
