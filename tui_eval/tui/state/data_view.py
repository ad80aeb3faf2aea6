"""Expected and actual rows side by side: which rows are shown, how wide columns are, why a cell differs.

Wraps a `frames.difference.Difference`; asks it only for the rows that are looked at.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from tui_eval.guard.text import clip
from tui_eval.model import DataDetails
from tui_eval.tui.state.amounts import count
from tui_eval.tui.state.lines import Line, Span, one_line

if TYPE_CHECKING:
    from tui_eval.frames.difference import Difference, Row

WIDEST = 24
"""Columns of the screen that a column of data takes at most; the line below shows all of a cell."""
SAMPLE = 100
_NUMBER = re.compile(r"-?[\d.,]+(e[+-]?\d+)?$", re.IGNORECASE)
MARKS = {"same": " ", "different": "≠", "missing": "−", "extra": "+"}


def settings_of(details: DataDetails) -> Any:
    """The comparison's settings as `frames` wants them; what it does not know is left out."""
    from tui_eval.frames.settings import ComparisonSettings

    known = ("rtol", "atol", "decimals", "ordered", "key", "exact_integers")
    values = {name: details.settings[name] for name in known if details.settings.get(name) is not None}
    try:
        return ComparisonSettings.of(values)
    except ValueError:
        return ComparisonSettings()


def make(details: DataDetails, folder: Path | None = None) -> DataView:
    """Align the rows: the whole frames kept in the run's folder where there are such, else the rows of
    the details. Takes long for large frames, so call it in a thread."""
    from tui_eval.frames.difference import align

    expected, actual, cut = sides_of(details, folder)
    difference = align(expected, actual, settings_of(details), details.columns or None)
    view = DataView(difference, len(expected), len(actual), _extra_columns(details))
    view.ordered = bool(details.settings.get("ordered"))
    view.truncated = cut
    return view


def sides_of(details: DataDetails, folder: Path | None) -> tuple[Any, Any, dict[str, int]]:
    """Both sides, and how many rows each had where not all of them are at hand."""
    sides: list[Any] = []
    cut = details.settings.get("truncated")
    lost = {str(side): int(rows) for side, rows in cut.items()} if isinstance(cut, dict) else {}
    for side in ("expected", "actual"):
        frame = None
        if lost and folder is not None:
            from tui_eval.store.frames import load

            frame = load(folder, details, side)
        rows = frame if frame is not None else getattr(details, side) or []
        if len(rows) >= lost.get(side, 0):
            lost.pop(side, None)
        sides.append(rows)
    if lost:
        lost = {
            side: lost.get(side, len(rows)) for side, rows in zip(("expected", "actual"), sides, strict=True)
        }
    return sides[0], sides[1], lost


def _extra_columns(details: DataDetails) -> list[str]:
    first = (details.actual or [{}])[0]
    return [name for name in first if details.columns and name not in details.columns]


@dataclass(frozen=True, slots=True)
class Column:
    """A column as drawn: its title, its width in cells, whether its values stand at the right."""

    name: str
    title: str
    width: int
    right: bool
    missing: bool


class DataView:
    """The aligned rows, all of them or only those that differ."""

    def __init__(
        self, difference: Difference, expected: int, actual: int, extra_columns: Sequence[str] = ()
    ) -> None:
        self.difference = difference
        self.expected = expected
        self.actual = actual
        self.only = False
        self.ordered = False
        self.truncated: dict[str, int] = {}
        self.key = tuple(difference.key)
        self.total = len(difference)
        self.differing = difference.different_rows
        self.extra_columns = list(extra_columns)
        self.columns = self._columns()
        self.frozen = self._key_columns()

    def __len__(self) -> int:
        """Rows shown."""
        return len(self.differing) if self.only else self.total

    def row(self, shown: int) -> Row:
        """The aligned row at a place among those shown."""
        return self.difference.row(self.aligned(shown))

    def aligned(self, shown: int) -> int:
        """The number of the aligned row at a place among those shown."""
        return int(self.differing[shown]) if self.only else shown

    def place(self, aligned: int) -> int:
        """Where an aligned row stands among those shown (the nearest that is)."""
        if not self.only:
            return max(0, min(aligned, self.total - 1))
        return max(0, min(int(self.differing.search_sorted(aligned)), len(self.differing) - 1))

    def next_difference(self, shown: int, step: int) -> int | None:
        """The place of the nearest differing row after (or before) one shown."""
        if self.only:
            return shown + step if 0 <= shown + step < len(self) else None
        return self.difference.next_difference(shown, backwards=step < 0)

    def first_bad_column(self, shown: int) -> int:
        """The first column in which a row differs (0: none does, or the row is missing or extra)."""
        row = self.row(shown)
        if row.status != "different":
            return 0
        return next((i for i, cell in enumerate(row.cells) if not cell.same), 0)

    def _key_columns(self) -> int:
        """The first columns where they are the key: they stay while one goes sideways."""
        count = 0
        while count < len(self.key) and count < len(self.columns) - 1:
            if self.columns[count].name not in self.key:
                return 0
            count += 1
        return count if count == len(self.key) else 0

    def mark(self, row: Row) -> str:
        """The mark of a row; `↕` where the order counts and it stands elsewhere."""
        moved = self.ordered and row.status == "same" and row.expected_index != row.actual_index
        return "↕" if moved else MARKS[row.status]

    # -- words

    def summary(self) -> Line:
        """Counts, and by what rows were aligned."""
        extra, missing = self.total - self.expected, self.total - self.actual
        cells = len(self.differing) - extra - missing
        spans = [Span("only differences: ", "note")] if self.only else []
        expected, actual = (
            self.truncated.get("expected", self.expected),
            self.truncated.get("actual", self.actual),
        )
        spans.append(Span(f"{count(expected, 'row')} expected, {actual:,} actual", "muted"))
        if self.truncated:
            words = f" · only the first {max(self.expected, self.actual):,} are kept: rows beyond may seem missing"
            spans.append(Span(words, "note"))
        for number, word, style in (
            (cells, "differ", "differs"),
            (missing, "missing", "missing"),
            (extra, "extra", "extra"),
        ):
            if number:
                mark = MARKS[{"differ": "different"}.get(word, word)]
                shown = "differs" if word == "differ" and number == 1 else word
                spans.append(Span(f" · {mark} {number:,} {shown}", style))
        if not len(self.differing):
            spans.append(Span(" · ✓ no cell differs", "passed"))
        if self.ordered:
            spans.append(Span(" · ↕ order counts", "note"))
        by = ", ".join(one_line(name, 30) for name in self.key) or "content"
        spans.append(Span(f" · aligned by {by}", "muted"))
        if self.extra_columns:
            names = ", ".join(one_line(name, 20) for name in self.extra_columns[:4])
            spans.append(Span(f" · columns ignored: {names}", "muted"))
        return tuple(spans)

    def explain(self, shown: int, column: int) -> list[Line]:
        """What the cell under the cursor is, on both sides, and why it counts as different."""
        if not len(self) or not self.columns:
            return [(Span("no rows to show", "muted"),)]
        row = self.row(shown)
        cell = row.cells[column]
        number = row.expected_index if row.expected_index is not None else row.actual_index or 0
        named = ", ".join(
            f"{one_line(c.column, 20)}={one_line(c.expected if c.expected is not None else c.actual, 24)}"
            for c in row.cells
            if c.column in self.key
        )
        head: list[Span] = [
            Span(one_line(cell.column, 40), "strong"),
            Span(f" in row {number + 1:,}" + (f" ({named})" if named else ""), "muted"),
        ]
        if row.status in ("missing", "extra"):
            word = (
                "the answer lacks this row" if row.status == "missing" else "the answer has this row too many"
            )
            head.append(Span(f" {MARKS[row.status]} {word}", row.status))
        elif not cell.same:
            head.append(Span(f" ≠ {_reason(cell.why)}", "differs"))
        else:
            head.append(Span(" ↕ in another place" if self.mark(row) == "↕" else " equal", "passed"))
        sides = [tuple(head)]
        if cell.expected is not None:
            sides.append((Span("expected ", "muted"), Span(one_line(clip(cell.expected, 4000)))))
        if cell.actual is not None:
            sides.append(
                (
                    Span("actual   ", "muted"),
                    Span(one_line(clip(cell.actual, 4000)), "" if cell.same else "differs"),
                )
            )
        return sides

    def text(self, limit: int = 5000) -> str:
        """The rows shown as text for the pager, at most `limit` of them."""
        lines = ["".join(span.text for span in self.summary()), ""]
        for shown in range(min(len(self), limit)):
            row = self.row(shown)
            lines.append(f"{MARKS[row.status]} row {shown + 1}")
            for cell in row.cells:
                mark = " " if cell.same else "≠"
                actual = "" if cell.same else f"   actual {one_line(cell.actual)}   ({one_line(cell.why)})"
                lines.append(f"  {mark} {one_line(cell.column)}: {one_line(cell.expected)}{actual}")
        if len(self) > limit:
            lines.append(f"… {len(self) - limit:,} more rows")
        return "\n".join(lines) + "\n"

    def csv(self, limit: int | None = None) -> Iterator[str]:
        """The difference as CSV in pieces: one line per differing cell, and per cell of a row that is
        missing or extra; at most `limit` rows. Row numbers count from 1."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(("status", "expected_row", "actual_row", "column", "expected", "actual", "why"))
        rows = self.differing if limit is None else self.differing.head(limit)
        for index in rows:
            row = self.difference.row(int(index))
            numbers = ["" if n is None else n + 1 for n in (row.expected_index, row.actual_index)]
            for cell in row.cells:
                if not cell.same:
                    why = "" if row.status in ("missing", "extra") else cell.why
                    writer.writerow((row.status, *numbers, cell.column, cell.expected, cell.actual, why))
            if buffer.tell() > 60_000:
                yield buffer.getvalue()
                buffer.seek(0)
                buffer.truncate()
        yield buffer.getvalue()

    def _columns(self) -> list[Column]:
        sample = [*range(min(self.total, SAMPLE)), *self.differing.head(SAMPLE).to_list()]
        rows = [self.difference.row(index) for index in sample]
        columns: list[Column] = []
        for at, name in enumerate(self.difference.columns):
            texts = [
                text
                for row in rows
                for text in (row.cells[at].expected, row.cells[at].actual)
                if text is not None
            ]
            title = one_line(name, WIDEST)
            widest = max((cell_len(one_line(text[:WIDEST])) for text in texts), default=1)
            right = bool(texts) and all(_NUMBER.match(text) or text == "null" for text in texts)
            width = min(max(widest, cell_len(title)), WIDEST)
            columns.append(Column(name, title, width, right, name in self.difference.missing_columns))
        return columns


def _reason(why: str) -> str:
    """Why a cell differs, in words for the line below the rows."""
    words = {
        "value": "another value",
        "type": "another type",
        "null": "null instead of a value",
        "not null": "a value instead of null",
        "column missing": "the answer lacks this column",
    }
    return words.get(why, one_line(why, 120))
