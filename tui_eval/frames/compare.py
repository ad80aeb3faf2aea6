"""The documented comparison of the agent's rows with the expected ones (design, "nao.").

Columns by name, row count, then cells; row order is ignored. Messages are the reference's, with a
few words where ours is mended (`values differ (within nao's tolerance)`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.guard.text import clip

if TYPE_CHECKING:
    import polars as pl

    from tui_eval.frames.difference import Difference
    from tui_eval.frames.pairs import ColumnPair
    from tui_eval.frames.sql import SqlResult


# -- What a comparison of rows answers.


@dataclass(slots=True)
class FrameComparison:
    """What came of comparing rows.

    `passed` None: it could not be judged, `message` says why. `text` says what differs (None where
    nothing does); `difference` is the same cell by cell; `raises` the exception that the reference
    tool ends with.
    """

    passed: bool | None
    message: str
    text: str | None = None
    difference: Difference | None = field(default=None, repr=False)
    raises: str | None = None


NEAR_MISS = "values differ (within nao's tolerance)"
ORDER_DIFFERS = "match (row order differs)"
OUT_OF_ORDER = "row order differs"


def compare(
    actual: Sequence[dict[str, Any]] | pl.DataFrame | SqlResult | None,
    expected: SqlResult | pl.DataFrame | Sequence[dict[str, Any]],
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
    error: str | None = None,
    types: Mapping[str, str] | None = None,
) -> FrameComparison:
    """Judge the agent's rows against the expected ones.

    `columns` are the expected columns (default: all of `expected`); `error` is why there are no actual rows;
    `types` are DuckDB's of the expected columns, where rows that were kept as JSON do not say them. Never
    raises: what cannot be judged has `passed` None and says why.
    """
    try:
        return _compare(actual, expected, settings or ComparisonSettings(), columns, error, types)
    except Exception as problem:
        return _unjudged(problem)
    except BaseException as problem:
        # Polars panics with a BaseException, which must not end an attempt, let alone a run
        if type(problem).__name__ != "PanicException":
            raise
        return _unjudged(problem)


def _unjudged(problem: BaseException) -> FrameComparison:
    text = " ".join(str(problem).split()) or type(problem).__name__
    return FrameComparison(None, f"the rows could not be compared: {clip(text, 300)}")


def _compare(
    actual: Any,
    expected: Any,
    settings: ComparisonSettings,
    columns: Sequence[str] | None,
    error: str | None,
    types: Mapping[str, str] | None,
) -> FrameComparison:
    from tui_eval.frames.difference import Difference
    from tui_eval.frames.matching import match_rows
    from tui_eval.frames.typed_columns import column, column_names

    if actual is None:
        return FrameComparison(False, error or "no data returned")
    wanted, wanted_types, ordered, order_columns = _side(expected)
    wanted_types = wanted_types or dict(types or {})
    given, given_types, _, _ = _side(actual)
    for side, name in ((given, "the agent's"), (wanted, "the expected")):
        problem = _not_rows(side)
        if problem:
            return FrameComparison(None, f"{name} data {problem}")
    given_names, wanted_names = column_names(given), column_names(wanted)
    names = list(dict.fromkeys(columns or wanted_names))
    e_empty, a_empty = not len(wanted) or not wanted_names, not len(given) or not given_names
    if e_empty and a_empty:
        if len(given) != len(wanted):  # rows without columns are rows; for nao they are none
            return FrameComparison(False, f"row count: {len(given)} vs {len(wanted)}")
        return FrameComparison(True, "both empty")
    if a_empty:
        return FrameComparison(False, "actual is empty")
    if e_empty:
        return FrameComparison(False, "expected is empty")
    missing = sorted(set(names) - set(given_names))
    shared = [name for name in names if name not in missing]
    pairs = _pairs(wanted, given, shared, wanted_types, given_types, settings)

    def failed(message: str, one_by_one: bool = False) -> FrameComparison:
        lacking = {
            name: column(wanted, name, wanted_types.get(name, "")) for name in missing if name in wanted_names
        }
        others = [name for name in given_names if name not in names] if missing else []
        difference = Difference(
            pairs,
            names,
            missing,
            len(wanted),
            len(given),
            settings,
            one_by_one,
            lacking,
            lambda: {name: column(given, name, given_types.get(name, "")) for name in others},
        )
        return FrameComparison(False, message, difference.render(), difference)

    if missing:
        return failed("missing columns: {" + ", ".join(repr(name) for name in missing) + "}")
    if len(wanted) != len(given):
        return failed(f"row count: {len(given)} vs {len(wanted)}")
    matching = match_rows(pairs)
    if matching is None:
        result = failed("values differ")
        if _near_miss(pairs, result.difference):
            result.message = NEAR_MISS
        return result
    if matching.e_rows is not None and (ordered or settings.ordered):
        places = getattr(expected, "places", None)
        sequence = [one for one in pairs if one.name in order_columns] or pairs
        if not (_in_places(pairs, places) if places is not None else _in_sequence(sequence)):
            if settings.ordered:
                result = failed(OUT_OF_ORDER, one_by_one=True)
                result.text = _order_text(pairs, settings, (len(wanted), len(given)))
                return result
            return FrameComparison(True, ORDER_DIFFERS)
    noise_only = matching.exact or (not settings.explicit and _noise_only(pairs, matching))
    if noise_only and not any(one.kinds_differ for one in pairs):
        return FrameComparison(True, "match")
    return FrameComparison(True, "match (approximate)")


def _order_text(pairs: list[ColumnPair], settings: ComparisonSettings, lengths: tuple[int, int]) -> str:
    """Rows that are the same in another order, in one line: cell by cell they would all differ."""
    from tui_eval.frames.alignment import sorted_alike, turned_around
    from tui_eval.frames.diagnosis import name_of, sorted_words
    from tui_eval.frames.difference import Difference

    if (turned := turned_around(pairs)) is not None:
        return f"the same rows in another order: {sorted_words(*turned)}"
    moved = len(Difference(pairs, [one.name for one in pairs], [], *lengths, settings).moved())
    shared = sorted_alike(pairs)
    among = f", among rows that share {name_of(shared)}" if shared is not None else ""
    return f"the same rows in another order: {moved:,} of {lengths[0]:,} stand elsewhere{among}"


def _side(value: Any) -> tuple[Any, dict[str, str], bool, tuple[str, ...]]:
    """Rows or frame, types by column, whether the SQL orders its rows and by which columns."""
    types = getattr(value, "types", None)
    frame = getattr(value, "frame", None)
    if frame is not None and types is not None:
        return frame, types, value.ordered, value.order_columns
    return value, {}, False, ()


def _not_rows(side: Any) -> str:
    if hasattr(side, "get_column"):
        return ""
    if not isinstance(side, Sequence) or isinstance(side, str):
        return f"is no list of rows but {type(side).__name__}"
    for number, row in enumerate(side, 1):
        if not isinstance(row, dict):
            return f"has no object as row {number} but {type(row).__name__}"
    return ""


def _pairs(
    wanted: Any,
    given: Any,
    names: list[str],
    wanted_types: dict[str, str],
    given_types: dict[str, str],
    settings: ComparisonSettings,
) -> list[ColumnPair]:
    from tui_eval.frames.pairing import pair
    from tui_eval.frames.typed_columns import column, column_names, from_cells

    known = set(column_names(wanted))
    made: list[ColumnPair] = []
    for name in names:
        e = (
            column(wanted, name, wanted_types.get(name, ""))
            if name in known
            else from_cells([None] * len(wanted))
        )
        made.append(pair(name, e, column(given, name, given_types.get(name, "")), settings))
    return made


def _near_miss(pairs: list[ColumnPair], difference: Difference | None) -> bool:
    """Whether only exact numbers differ, and only within nao's own tolerance."""
    from tui_eval.frames.matching import match_rows
    from tui_eval.frames.pairs import within_nao

    if not any(one.whole and not one.tolerant for one in pairs):
        return False
    loosened = [within_nao(one) for one in pairs]
    if (
        difference is not None and difference.key and not difference.key_repeats
    ):  # the key says which rows belong together
        return difference.same_under(loosened)
    return match_rows(loosened) is not None


def _in_sequence(pairs: list[ColumnPair]) -> bool:
    from tui_eval.frames.pairs import pair_same

    return all(bool(pair_same(one, None, None).all()) for one in pairs)


def _in_places(pairs: list[ColumnPair], places: pl.Series) -> bool:
    """Whether each row of the answer stands where an equal one, or one that ties with it, is expected."""
    from tui_eval.frames.matching import match_rows
    from tui_eval.frames.pairing import pair
    from tui_eval.frames.typed_columns import ReadColumn

    here = ReadColumn("exact", len(places), places)
    return match_rows([*pairs, pair("", here, here, ComparisonSettings())]) is not None


def _noise_only(pairs: list[ColumnPair], matching: Any) -> bool:
    """Whether tolerated differences are no more than binary rounding (1e-12 of the value): of numbers beyond what
    floats hold, none, for these may be ids."""
    from tui_eval.frames.pairing import NOISE
    from tui_eval.frames.pairs import near_values

    for one in pairs:
        if one.e_value is None or one.a_value is None:
            continue
        e, a = one.e_value, one.a_value
        if matching.e_rows is not None:
            e, a = e.gather(matching.e_rows), a.gather(matching.a_rows)
        if not near_values(e, a, one.scale, NOISE, 0.0).all():
            return False
        if one.e_digits is not None or bool((((a - e).abs() >= 1) & (a != e)).any()):
            return False
    return True
