"""Expected and actual rows together: which rows and columns are shown, how they are marked.

Wraps a `frames.difference.Difference`; asks it only for the rows that are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_eval.model import Attempt, DataDetails
from tui_eval.tui.state.data import data_export, data_words
from tui_eval.tui.state.data.data_columns import columns_of
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.state.text.lines import Line

if TYPE_CHECKING:
    from tui_eval.frames.difference import AlignedRow, Difference

EXPECTED_ACTUAL: tuple[str, str] = ("expected", "actual")
BEFORE_AFTER: tuple[str, str] = ("before", "after")
"""What the sides are called where two answers are compared with each other."""
MANY_COLUMNS = 8
"""With more columns, those in which nothing differs are left out where only differences are shown."""


Sides = tuple[Any, Any, dict[str, int]]
"""Both sides as rows or frames, and how many rows each had where not all of them are at hand."""


def settings_of(details: DataDetails) -> Any:
    """The comparison's settings as `frames` wants them; what it does not know is left out."""
    from tui_eval.frames.comparison_rules import ComparisonSettings

    return ComparisonSettings.kept(details.settings)


Progress = Callable[[str], None]
"""Told in a few words how far it is."""
FIRST = 300
"""Rows that are shown while the others are being aligned."""


def make(
    details: DataDetails,
    folder: Path | None = None,
    sides: Sides | None = None,
    progress: Progress = lambda words: None,
) -> DataView:
    """Align the rows: the whole frames kept in the run's folder where there are such, else the rows of
    the details. Takes long for large frames, so call it in a thread.

    Args:
        sides: What `sides_of` gives, where that was asked for already.
    """
    from tui_eval.frames.typed_columns import column_names

    if sides is None:
        progress("reading the rows…")
        sides = sides_of(details, folder)
    expected, actual, cut = sides
    rows = (
        counted(len(expected), "row")
        if len(expected) == len(actual)
        else f"{len(expected):,} and {len(actual):,} rows"
    )
    progress(f"aligning {rows}…")
    difference = _aligned(details, expected, actual)
    difference.compare_cells(lambda done, total: progress(f"comparing {rows}: column {done} of {total}…"))
    ignored = [name for name in column_names(actual) if name not in difference.columns]
    renamed: Mapping[str, str] = {}
    if difference.missing_columns:
        from tui_eval.frames.diagnosis import other_columns

        renamed = other_columns.renamed(difference)[0]
    return DataView(
        difference,
        ignored,
        renamed,
        ordered=bool(details.settings.get("ordered")),
        truncated=cut,
        sides=sides,
    )


def fault_of(details: DataDetails) -> Mapping[str, Any] | None:
    """What was kept of an expected query that failed; None: it did not."""
    kept = details.settings.get("sql_error")
    return kept if isinstance(kept, Mapping) and details.expected is None else None


NOT_ASKED = (
    "The agent was not asked, and nothing was paid: the expected query cannot be run, so that its answer could be "
    "compared with nothing. Mend the query, then run the case."
)
NO_ROWS = "There are no rows: the expected query failed, and the answer was not given as rows."


def words_instead(attempt: Attempt | None) -> str:
    """Why there are no rows to show; empty where there are some, if only the answer's."""
    if attempt is None:
        return "Rows stand here when the attempt is done."
    details = attempt.data
    if details is None:
        return "No rows are compared in this case."
    if details.expected is not None:
        return ""
    if fault_of(details) is None:
        return "There are no expected rows to compare with."
    if details.actual:
        return ""  # the answer's rows stand alone
    return NOT_ASKED if details.settings.get("not_asked") else NO_ROWS


def answer_alone(details: DataDetails, folder: Path | None = None) -> DataView:
    """The answer's rows where there is nothing to compare them with. Call it in a thread, as `make`."""
    from tui_eval.frames.difference import alone

    _, rows, cut = sides_of(details, folder)
    return DataView(alone(rows, details.columns or None), truncated=cut)


class PairedRows(NamedTuple):
    """The rows of two answers to be compared with each other: the comparison's details (the rows kept with the
    attempts), and each run's folder with its attempt's own details, where the whole frames are."""

    details: DataDetails
    before: tuple[Path, DataDetails]
    after: tuple[Path, DataDetails]

    def read(self) -> Sides:
        """All rows of both answers. Call it in a thread."""
        sides: list[Any] = []
        had: dict[str, int] = {}
        for side, (folder, details) in zip(EXPECTED_ACTUAL, (self.before, self.after), strict=True):
            _, rows, lost = sides_of(details, folder)
            sides.append(rows)
            had[side] = lost.get("actual", len(rows))
        cut = any(len(rows) < had[side] for side, rows in zip(EXPECTED_ACTUAL, sides, strict=True))
        return sides[0], sides[1], had if cut else {}


def paired_rows(
    before: tuple[Path, DataDetails | None], after: tuple[Path, DataDetails | None]
) -> PairedRows | None:
    """The rows of two answers, by the settings of the later one's comparison; None where one of them has none."""
    (first, old), (second, new) = before, after
    if old is None or new is None or not old.actual or not new.actual:
        return None
    kept = ("rtol", "atol", "exact_integers", "decimals", "key")
    settings: dict[str, Any] = {
        name: new.settings[name] for name in kept if new.settings.get(name) is not None
    }
    details = DataDetails(
        old.actual,
        new.actual,
        reference_sql=old.verification_sql,
        verification_sql=new.verification_sql,
        settings=settings,
    )
    if any("truncated" in one.settings for one in (old, new)):
        settings["truncated"] = {}
    return PairedRows(details, (first, old), (second, new))


def first_rows(details: DataDetails) -> DataView | None:
    """The first rows that both sides have, of those kept with the attempt, while all of them are being aligned; where
    there are none, the first expected ones alone. None where all rows are kept with the attempt."""
    if "truncated" not in details.settings or not details.expected:
        return None
    expected, actual = details.expected, details.actual or []
    difference = _aligned(details, expected, actual)
    both = difference.both_rows()
    e_rows, a_rows = (rows.head(FIRST).to_list() for rows in both)
    if not difference.key or not e_rows:
        some = expected[:FIRST]
        return DataView(_aligned(details, some, some))
    return DataView(_aligned(details, [expected[at] for at in e_rows], [actual[at] for at in a_rows]))


def _aligned(details: DataDetails, expected: Any, actual: Any) -> Difference:
    from tui_eval.frames.difference import align, know_queries

    kinds = details.settings.get("types")
    types = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, Mapping) else {}
    found = align(expected, actual, settings_of(details), details.columns or None, types)
    know_queries(found, details)
    return found


def sides_of(details: DataDetails, folder: Path | None) -> Sides:
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


class DataView:
    """The aligned rows, all of them or only those that differ.

    `differing` are the rows that are looked for: cells apart, missing, extra, and, where the order counts,
    those in another place. `apart`, `missing`, `extra` and `moved_count` are how many there are of each,
    `repeats` how many of the extra rows repeat one above them. `columns` are as wide as the values of one
    side, `joined` the same with both values in one cell, `frozen` how many stay while one goes sideways,
    `renamed` what the answer may call a column that it lacks, `sides` both sides as they were read.
    """

    def __init__(
        self,
        difference: Difference,
        extra_columns: Sequence[str] = (),
        renamed: Mapping[str, str] | None = None,
        *,
        ordered: bool = False,
        truncated: dict[str, int] | None = None,
        sides: Sides | None = None,
    ) -> None:
        from tui_eval.frames.one_table import OneTable

        self.difference = difference
        self.table = OneTable(difference)
        self.expected, self.actual = difference.lengths
        self.only = False
        self.ordered = ordered
        self.truncated = truncated or {}
        self.sides = sides
        self.names: tuple[str, str] = EXPECTED_ACTUAL
        self.key = tuple(difference.key)
        self.key_given, self.key_unique = difference.key_given, difference.key_unique
        self.total = len(difference)
        wrong = difference.rows_apart
        self.wrong = len(wrong)
        self.missing, self.extra = self.total - self.actual, self.total - self.expected
        self.apart = self.wrong - self.missing - self.extra
        self._moved: set[int] = set(difference.moved()) if ordered else set()
        self.moved_count = len(self._moved)
        self.differing = wrong.append(difference.moved()).unique().sort() if self._moved else wrong
        self.wrong += self.moved_count
        # an answer without rows has no columns: that says nothing of them
        self.missing_columns = difference.missing_columns if self.actual else []
        self.extra_columns = list(extra_columns)
        self.renamed = dict(renamed or {})
        self.repeats = len(difference.repeats)
        self.columns, self.joined = columns_of(self.table, self.differing.head(200).to_list())
        self.frozen = self._key_columns()

    def __len__(self) -> int:
        """Rows shown."""
        return len(self.differing) if self.only else self.total

    @property
    def visible(self) -> Sequence[int]:
        """The places of the columns shown."""
        return self._affected if self.only else range(len(self.columns))

    @cached_property
    def _affected(self) -> Sequence[int]:
        """Those in which something differs, and the key's; all, where they are few or rows are what differs."""
        every = range(len(self.columns))
        if len(self.columns) <= MANY_COLUMNS or not any(column.apart for column in self.columns):
            return every
        return [i for i in every if (c := self.columns[i]).apart or c.missing or c.name in self.key]

    def row(self, shown: int) -> AlignedRow:
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
        if step > 0:
            at = int(self.differing.search_sorted(max(shown, -1) + 1, side="left"))
        else:
            at = int(self.differing.search_sorted(max(shown, 0), side="left")) - 1
        return int(self.differing[at]) if 0 <= at < len(self.differing) else None

    def first_bad_column(self, shown: int) -> int:
        """The first column in which a row differs (0: none does, or the row is missing or extra)."""
        return next(iter(self.bad_columns(self.row(shown))), 0)

    def bad_columns(self, row: AlignedRow) -> list[int]:
        """The columns in which a row that both sides have differs."""
        if row.status != "different":
            return []
        return self.difference.apart_in(row.number)

    def _key_columns(self) -> int:
        """The key's columns, which stand first, stay while one goes sideways; not where there are no others."""
        return len(self.key) if len(self.key) < len(self.columns) else 0

    def has_moved(self, row: AlignedRow) -> bool:
        """Whether the order counts and the row stands elsewhere."""
        return row.number in self._moved

    def mark(self, row: AlignedRow) -> str:
        """The mark of a row; `↕` where the order counts and it stands elsewhere, `×2` where it repeats another."""
        return self.table.mark(row)

    @cached_property
    def mark_width(self) -> int:
        """Columns of the screen that the widest mark takes."""
        return 1 + len(str(self.difference.most_repeated)) if self.repeats else 1

    # -- words

    def summary(self) -> Line:
        """Counts, and by what rows were aligned."""
        return data_words.summary(self)

    def explain(self, shown: int, column: int, room: int = data_words.LONGEST) -> list[Line]:
        """What the cell under the cursor is, on both sides, and why it counts as different."""
        return data_words.explain(self, shown, column, room)

    def text(self, limit: int = 5000) -> str:
        """The rows shown as text for the pager, at most `limit` of them."""
        return data_export.as_text(self, limit)

    def csv(
        self, limit: int | None = None, progress: Callable[[int, int], bool] | None = None
    ) -> Iterator[str]:
        """The difference as CSV in pieces; at most `limit` rows."""
        return data_export.as_csv(self, limit, progress)
