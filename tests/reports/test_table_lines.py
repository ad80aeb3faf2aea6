"""The one table as plain text: what a cell of megabytes costs."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tui_eval.frames.one_table import TableCell, TableColumn, TableRow
from tui_eval.guard import text as guarded
from tui_eval.reports.rows_shown import TableShown, table_lines


def lines_of(*texts: str) -> list[str]:
    rows = [
        TableRow(at, "≠", (TableCell("same", str(at), None), TableCell("differs", text, "y")))
        for at, text in enumerate(texts)
    ]
    heads = [TableColumn("id", "integer", numeric=True), TableColumn("t", "text")]
    return list(table_lines(TableShown("", heads, rows, [0, 1], 0, 0)))


def test_a_cell_of_megabytes_is_cut_before_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    visible = guarded.visible

    def counted(text: str, *, newlines: bool = True) -> str:
        read.append(len(text))
        return visible(text, newlines=newlines)

    monkeypatch.setattr(guarded, "visible", counted)
    text = "añc \t日本 " * 600_000
    table = lines_of(text, "x")
    assert 0 < max(read) < 3_000
    assert table == lines_of(text[:3_000], "x") and all(cell_len(line) < 62 for line in table)
    assert table[2].endswith("…")


def test_a_long_value_that_takes_no_room_is_cut_all_the_same() -> None:
    assert lines_of("a" + "\u0301" * 5_000)[2].endswith("…")
