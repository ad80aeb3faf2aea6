"""Rows that differ as every report shows them: what they have in common, which step went wrong, the one table.

`show`, the HTML page, the web page and Markdown draw the same values, each in its own way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tui_eval.model import Attempt, DataDetails
from tui_eval.store.encoding import encode_json

if TYPE_CHECKING:
    import polars as pl

    from tui_eval.frames.one_table import OneTable, TableCell, TableColumn, TableRow
    from tui_eval.frames.queries import Conclusion, QueryLine

ROWS, COLUMNS = 20, 12
"""Rows and columns that are shown."""
_MOST_CELLS = 20_000_000
"""Frames kept beside the record are read for a report up to this size; else their first rows count."""


class TableShown(NamedTuple):
    """The first rows that differ of the one table. `line` says how many there are of what, `more_rows` and
    `more_columns` how many are not shown, `at` the places of the columns shown among those of a row."""

    line: str
    columns: list[TableColumn]
    rows: list[TableRow]
    at: list[int]
    more_rows: int
    more_columns: int


class RowsShown(NamedTuple):
    """What a report says of a comparison of rows.

    `diagnosis` are at most three lines, `conclusion` the line about the agent's query (empty: nothing is known),
    `place` where that failed, where it did: its line and a caret;
    `fault` what DuckDB said of an expected query that failed, line by line, and where that is in its file.
    `table` is None where there is none: the rows are the same, one side has none, or they cannot be aligned;
    `order` then is the one line about rows of another order. `cut` says that only the first rows are kept. `answer` are
    the rows of the answer alone, where the expected query failed.
    """

    diagnosis: Sequence[str] = ()
    conclusion: str = ""
    place: Sequence[str] = ()
    fault: Sequence[str] = ()
    table: TableShown | None = None
    order: str = ""
    cut: str = ""
    answer: TableShown | None = None


def rows_shown(
    data: DataDetails | None,
    folder: Path | None = None,
    *,
    rows: int = ROWS,
    attempt: Attempt | None = None,
) -> RowsShown:
    """What is shown of the rows of an attempt; never raises for what is in them.

    Args:
        attempt: whose rows they are: where nothing was concluded when it was judged, its record is looked at.
        folder: the run's, where whole frames are kept that the record was too small for.
        rows: how many are shown at most; of the columns, the key's and those that differ go first.
    """
    if data is None:
        return RowsShown()
    found = _conclusion(data, attempt)
    line, *place = _lines(found) or [""]
    if found is not None and found.blame == "retold":  # what the rows have in common blames no query then
        data = replace(data, settings={**data.settings, "conclusion": {"blame": found.blame}})
    shown = RowsShown(conclusion=line, place=place, fault=fault_lines(data))
    if not data.actual or not (shown.fault or (data.comparison and data.expected)):
        return shown
    try:
        if shown.fault:
            return shown._replace(answer=_alone(data, rows, COLUMNS))
        if data.settings.get("truncated"):  # what is compared lies beside the record
            return aligned_rows(shown, data, folder, rows, COLUMNS)
        return aligned_once(_SameRows(data), rows, COLUMNS)._replace(
            conclusion=shown.conclusion, place=shown.place
        )
    except BaseException as problem:
        # Polars panics with a BaseException, which must not end a report
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        return shown


class _SameRows:
    """A comparison that is the same as another one of the same rows: attempts of a case, and models, often give one
    answer, and aligning and diagnosing it is most of what a report costs."""

    def __init__(self, data: DataDetails) -> None:
        self._data: DataDetails | None = data
        body = (data.expected, data.actual, data.columns, data.comparison, data.reference_sql, data.settings)
        self._key = hashlib.sha256(encode_json(body)).digest()

    def taken(self) -> DataDetails:
        """The rows, which are not kept with what is remembered of them."""
        data, self._data = self._data, None
        assert data is not None  # asked once, where nothing is remembered
        return data

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameRows) and self._key == other._key


@lru_cache(maxsize=64)
def aligned_once(same: _SameRows, rows: int, columns: int) -> RowsShown:
    """As `aligned_rows`, for rows that were aligned before: attempts of a case often have one answer."""
    return aligned_rows(RowsShown(), same.taken(), None, rows, columns)


def aligned_rows(
    shown: RowsShown, data: DataDetails, folder: Path | None, rows: int, columns: int
) -> RowsShown:
    """Expected and actual rows beside each other, at most so many, with what is concluded from all of them."""
    from tui_eval.frames.diagnosis import diagnosis_of  # imported late: polars
    from tui_eval.frames.one_table import table_of_details

    expected, actual, whole = _frames(data, folder)
    table = table_of_details(data, expected, actual)
    cut = (
        ""
        if whole
        else f"only the first {max(len(data.expected or ()), len(data.actual or ())):,} rows are kept"
    )
    if table.order:
        return shown._replace(order=table.order, cut=cut)
    if not len(table.differing) and not table.lacking:
        return shown._replace(cut=cut)
    diagnosis = diagnosis_of(table.difference).lines if whole else ()
    return shown._replace(diagnosis=diagnosis, table=_table(table, rows, columns), cut=cut)


def _alone(data: DataDetails, rows: int, columns: int) -> TableShown:
    """The first rows of the answer as a table without marks."""
    from tui_eval.frames.difference import alone  # imported late: polars
    from tui_eval.frames.one_table import OneTable

    given = data.actual or []
    table = OneTable(alone(given[:rows], data.columns or None))
    shown = _table(table, 0, columns)
    cut = data.settings.get("truncated")
    total = int(cut.get("actual", 0)) if isinstance(cut, Mapping) else 0
    total = max(total, len(given))
    return shown._replace(
        line=f"the answer's rows: {total:,}",
        rows=[table.row(number) for number in range(len(table))],
        more_rows=total - len(table),
    )


def _table(table: OneTable, rows: int, columns: int) -> TableShown:
    heads = list(table.columns)
    order = sorted(
        range(len(heads)), key=lambda at: (not heads[at].key, not (heads[at].apart or heads[at].missing))
    )
    at = sorted(order[:columns]) if len(heads) > columns else list(range(len(heads)))
    numbers = table.differing.head(rows).to_list()
    shown: list[TableRow] = []
    for number in numbers:
        before = table.difference.repeats_of(number)
        if before is not None and before not in numbers:
            shown.append(table.row(before))  # equal, but what is repeated is to be seen
        shown.append(table.row(number))
    return TableShown(
        table.line,
        [heads[place] for place in at],
        shown,
        at,
        len(table.differing) - len(numbers),
        len(heads) - len(at),
    )


def _frames(data: DataDetails, folder: Path | None) -> tuple[pl.DataFrame | None, pl.DataFrame | None, bool]:
    """The whole frames of sides that the record has only the beginning of, and whether all rows are at hand."""
    cut = data.settings.get("truncated")
    lost = {side: int(rows) for side, rows in cut.items()} if isinstance(cut, Mapping) else {}
    found: list[pl.DataFrame | None] = []
    whole = True
    for side, kept in (("expected", data.expected), ("actual", data.actual)):
        frame = None
        if lost.get(side, 0) > len(kept or ()):
            small = lost[side] * max(len(data.columns), 1) <= _MOST_CELLS
            if folder is not None and small:
                from tui_eval.store.frames import load

                frame = load(folder, data, side)
            whole = whole and frame is not None
        found.append(frame)
    return (found[0], found[1], True) if whole else (None, None, False)


def conclusion_lines(data: DataDetails, attempt: Attempt | None = None) -> list[str]:
    """Whether the query was wrong or what the agent made of its rows, as it was found when the answer was judged; else,
    with the `attempt`, as its record says; below it where a query that failed did. Empty: nothing is known."""
    return _lines(_conclusion(data, attempt))


def _lines(found: Conclusion | None) -> list[str]:
    return [found.line, *found.place] if found is not None and found.line else []


def _conclusion(data: DataDetails, attempt: Attempt | None) -> Conclusion | None:
    from tui_eval.frames.queries import kept_conclusion

    found = kept_conclusion(data)
    if attempt is not None and data.comparison and (found is None or found.blame == "unknown"):
        try:
            found = _recorded(data, attempt)
        except BaseException as problem:
            # Polars panics with a BaseException, which must not end a report
            if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
                raise
    return found


def _recorded(data: DataDetails, attempt: Attempt) -> Conclusion | None:
    from tui_eval.agent_query import agent_query, rows_given
    from tui_eval.frames.queries import recorded_conclusion

    own = agent_query(attempt)
    return recorded_conclusion(data, own.sql if own else None, rows_given(attempt, own) if own else None)


def fault_lines(data: DataDetails) -> list[str]:
    """What DuckDB said of an expected query that failed, after it where that is in the file."""
    kept = data.settings.get("sql_error")
    if not isinstance(kept, Mapping):
        return []
    from tui_eval.frames.sql_faults import fault_place

    lines = str(kept.get("detail") or kept.get("message") or "").splitlines()
    lines = [line for line in lines if line.strip()]
    place = fault_place(kept)
    asked = [] if data.actual or not data.settings.get("not_asked") else [_NOT_ASKED]
    return [*lines, *([f"at {place}"] if place else []), *asked]


_NOT_ASKED = "the agent was not asked: its answer could be compared with nothing"


def queries_beside(attempt: Attempt) -> list[QueryLine]:
    """The expected query and the agent's own, formatted alike, line beside line; none where there are not both."""
    from tui_eval.agent_query import agent_query
    from tui_eval.frames.queries import beside

    data, own = attempt.data, agent_query(attempt)
    expected = data.reference_sql if data is not None else None
    if data is None or own is None or not expected or not expected.strip():
        return []
    dialect = data.settings.get("dialect")  # kept where it is not DuckDB's
    return beside(expected, own.sql, dialect if dialect in ("sqlite", "postgres") else "duckdb")


# -- as plain text

_WIDEST = 24
"""Cells of the terminal that a value takes at most; one that differs twice as many."""


def table_lines(shown: TableShown, width: int | None = None) -> Iterator[str]:
    """The one table as lines of text, heads with kinds; of a narrow terminal the cells are cut, from the
    right: those that differ so that this is seen."""
    from rich.cells import cell_len, set_cell_size

    heads = [[""], *([("−" if c.missing else "") + c.name, c.kind] for c in shown.columns)]
    body = [[row.mark, *(row.cells[at].text for at in shown.at)] for row in shown.rows]
    right = [False, *(c.numeric for c in shown.columns)]
    grid = [[_line(head[0]) for head in heads], [_line("".join(head[1:])) for head in heads]]
    grid += [[_line(text) for text in row] for row in body]
    widths = [min(max(cell_len(row[at]) for row in grid), 2 * _WIDEST) for at in range(len(heads))]
    over = sum(widths) + 2 * (len(widths) - 1) - (width or 1_000_000)
    while over > 0 and max(widths) > 8:
        widest = widths.index(max(widths))
        widths[widest] -= 1
        over -= 1
    for number, row in enumerate(grid, -2):
        cells: list[str] = []
        for at, (text, room, after) in enumerate(zip(row, widths, right, strict=True)):
            size = cell_len(text)
            if size > room and number >= 0 and at:
                text = _cut(shown.rows[number].cells[shown.at[at - 1]], text, room)
                size = cell_len(text)
            if size > room:
                text, size = set_cell_size(text, room - 1) + "…", room
            pad = " " * (room - size)
            cells.append(pad + text if after else text + pad)
        yield "  ".join(cells).rstrip()


def _cut(cell: TableCell, text: str, room: int) -> str:
    """A cell that does not fit; of one that differs both sides, from where they do."""
    from tui_eval.frames.one_table import ARROW, clipped_sides

    if cell.state != "differs" or cell.expected is None or cell.actual is None or room < _LEAST:
        return text
    most = max((room - 1) // 2, room - 1 - min(len(cell.expected), len(cell.actual)))
    return _line(ARROW.join(clipped_sides(cell.expected, cell.actual, most)))


_LEAST = 12
"""Cells of the terminal in which two values have room."""
_LONGEST = 1_000
"""Characters of a value that are measured: far more than a cell has room for, whatever they take."""


def _line(text: str) -> str:
    """A value on one line; of a long one its beginning, for measuring megabytes takes seconds."""
    from tui_eval.guard.text import visible

    return visible(text if len(text) <= _LONGEST else text[:_LONGEST] + "…", newlines=False)
