"""Tool results that are tables, as tables: lists of objects, and `columns` beside `rows` as a query's tool gives them.

Nothing is lost: no cell is cut, and what a row has beyond the columns stands after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from rich.cells import cell_len

from tui_eval.agent_query import ROW_NAMES
from tui_eval.tui.state.text.json_lines import (
    LONG,
    PARSED,
    PIECES,
    beginning,
    dumped,
    json_inline,
    parsed,
    value_lines,
)
from tui_eval.tui.state.text.lines import Line, Span, dotted

SAMPLE = 50
"""Rows at the beginning by which columns and their widths are found."""
MOST_COLUMNS = 40
WIDEST = 60
"""Characters of a cell; a list that begins with longer ones is no table."""
WHOLE = 220
"""Columns of the screen that all take at most."""
_FILLED = 0.6
"""Of the cells of the first rows, how many must be there."""
_GAP = "  "
_NUMBER = re.compile(r"-?\d[\d.,]*(?:[eE][+-]?\d+)?%?")


class FoundTable(NamedTuple):
    """Rows as objects, their columns, and what stood beside them."""

    columns: list[str]
    rows: Sequence[Any]
    beside: dict[str, Any]


def result_lines(value: Any, *, rendered: bool = True) -> Iterator[Line]:
    """A tool's result as lines: a table where it is one, else as `value_lines` makes them."""
    found = _found(value) if rendered else None
    if found is None:
        yield from value_lines(value, rendered=rendered)
        return
    widths = _widths(found)
    right = [_numeric(found, name) for name in found.columns]
    yield _line([Span(dotted(name), "heading") for name in found.columns], widths, right)
    given = 0
    rows, beside = found.rows, found.beside
    if _is_long(value):  # the rest is read when it is asked for; of the last row known more may follow
        for row in found.rows[:-1]:
            yield _row_line(row, found.columns, widths, right)
        given = len(found.rows) - 1
        text = parsed(value)
        whole = table_of(text)
        rows, beside = (whole.rows, whole.beside) if whole is not None else ([*rows[:-1], text], {})
    for row in islice(rows, given, None):
        yield _row_line(row, found.columns, widths, right)
    told = [f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"]
    told += [f"{dotted(name)}: {dotted(_text(one))}" for name, one in beside.items()]
    yield (Span(" · ".join(told), "muted"),)


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and LONG < len(value) <= PARSED


def table_of(value: Any) -> FoundTable | None:
    """The table that a value is; None: it is none."""
    if isinstance(value, list):
        return _of_rows(None, value, {}) if len(value) > 1 else None
    if not isinstance(value, dict):
        return None
    name = next((name for name in ROW_NAMES if isinstance(value.get(name), list) and value[name]), None)
    if name is None:
        return None
    beside = {other: one for other, one in value.items() if other not in (name, "columns")}
    if any(json_inline(one, WIDEST) is None for one in beside.values()):
        return None
    return _of_rows(_names(value.get("columns")), value[name], beside)


def _names(columns: Any) -> list[str] | None:
    """The names of columns that are given beside rows."""
    if not isinstance(columns, list):
        return None
    given = [one.get("name") if isinstance(one, dict) else one for one in columns]
    names = [name for name in given if isinstance(name, str)]
    return names if names and len(names) == len(given) else None


def _of_rows(names: list[str] | None, rows: list[Any], beside: dict[str, Any]) -> FoundTable | None:
    some = rows[:SAMPLE]
    if names and all(isinstance(row, list) and len(row) == len(names) for row in some):
        found = FoundTable(list(dict.fromkeys(names)), rows, beside)
        if len(found.columns) < len(names):
            return None
        records = [dict(zip(names, row, strict=True)) for row in some]
    elif all(isinstance(row, dict) and row for row in some):
        keys = list(dict.fromkeys(key for row in some for key in row))
        found = FoundTable(
            [*(n for n in names or () if n in keys), *(k for k in keys if k not in (names or ()))],
            rows,
            beside,
        )
        records = some
    else:
        return None
    cells = [record[name] for record in records for name in found.columns if name in record]
    if len(found.columns) > MOST_COLUMNS or len(cells) < _FILLED * len(records) * len(found.columns):
        return None
    if any(len(text := _text(cell)) > WIDEST or "\n" in text for cell in cells):
        return None
    widths = _widths(found)
    return found if sum(widths) + len(_GAP) * len(widths) <= WHOLE else None


def _found(value: Any) -> FoundTable | None:
    """The table that a value, or the beginning of a long text, is."""
    if _is_long(value):
        if (value.lstrip()[:1], value.rstrip()[-1:]) not in (("{", "}"), ("[", "]")):
            return None
        return table_of(beginning(value[: PIECES[0]]))
    return table_of(parsed(value))


def _record(row: Any, columns: list[str]) -> dict[str, Any] | None:
    if isinstance(row, dict):
        return row
    return (
        dict(zip(columns, row, strict=True)) if isinstance(row, list) and len(row) == len(columns) else None
    )


def _row_line(row: Any, columns: list[str], widths: list[int], right: list[bool]) -> Line:
    record = _record(row, columns)
    if record is None:
        return (Span(dotted(dumped(row))),)
    cells = [
        Span(dotted(_text(record[name])), "muted" if record[name] is None else "")
        if name in record
        else Span("")
        for name in columns
    ]
    more = {name: one for name, one in record.items() if name not in columns}
    line = _line(cells, widths, right)
    return (*line, Span(_GAP), *(json_inline(more, PARSED) or ())) if more else line


def _line(cells: list[Span], widths: list[int], right: list[bool]) -> Line:
    spans: list[Span] = []
    for at, (text, style) in enumerate(cells):
        pad = " " * max(widths[at] - cell_len(text), 0)
        gap = _GAP if at + 1 < len(cells) else ""
        spans.append(Span(f"{pad}{text}{gap}" if right[at] else f"{text}{pad}{gap}", style))
    return tuple(spans)


def _records(found: FoundTable) -> list[dict[str, Any]]:
    made = (_record(row, found.columns) for row in found.rows[:SAMPLE])
    return [one for one in made if one is not None]


def _widths(found: FoundTable) -> list[int]:
    records = _records(found)
    return [
        max([cell_len(dotted(name)), *(cell_len(dotted(_text(one[name]))) for one in records if name in one)])
        for name in found.columns
    ]


def _numeric(found: FoundTable, name: str) -> bool:
    texts = [_text(one[name]) for one in _records(found) if one.get(name) not in (None, "")]
    return bool(texts) and all(_NUMBER.fullmatch(text) for text in texts)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    return str(value) if isinstance(value, int) else dumped(value)
