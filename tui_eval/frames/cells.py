"""Aligned rows and their cells: the texts, what kind of value each is, and why two of them differ."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any, Literal, overload

import polars as pl

from tui_eval.frames.comparison_rules import ATOL, RTOL
from tui_eval.frames.numbers import read_number, shortest_text
from tui_eval.frames.pairs import ColumnPair
from tui_eval.frames.typed_columns import declared_text
from tui_eval.frames.value_texts import JSON_TYPES, holder, instant, moment, nested_text, plain
from tui_eval.guard.text import clip

Status = Literal["same", "different", "missing", "extra"]
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Cell:
    """One aligned cell. A text is None where that side has no such row or column. `why` says why the
    cells differ; of equal ones that are written otherwise, how they do. `kinds` are the kinds of the
    expected and the actual value (`integer`, `text`; empty: there is none)."""

    column: str
    expected: str | None
    actual: str | None
    same: bool
    why: str = ""
    kinds: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class AlignedRow:
    """One aligned row: its number, row numbers from 0 on each side (None: no such row) and its cells."""

    number: int
    status: Status
    expected_index: int | None
    actual_index: int | None
    cells: Sequence[Cell]


class Cells(Sequence[Cell]):
    """The cells of a row, each made when it is looked at: of 200 columns few are in sight."""

    def __init__(self, make: Callable[[str], Cell], names: Sequence[str]) -> None:
        self._make = make
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        if isinstance(index, slice):
            return [self._make(name) for name in self._names[index]]
        return self._make(self._names[index])


def cell_text(value: Any) -> str:
    """A value as the Data tab prints it: null, numbers without loss, texts as they are, lists and
    objects as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return shortest_text(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, pl.Series | list | tuple | dict):
        return json.dumps(plain(value), ensure_ascii=False, default=str)
    return str(value)


def text_beside(one: ColumnPair | None, value: Any) -> str:
    """The same beside the other side's value: lists and objects of a column whose type is known are written in one way,
    that in which they are compared."""
    expected = one.expected if one is not None else None
    if value is None or expected is None or expected.kind != "nested" or not expected.typed:
        return cell_text(value)
    if expected.type_name.upper() == "INTERVAL":
        return cell_text(value)
    return nested_text(value, expected.type_name)


def told_apart(
    expected: str | None, actual: str | None, kinds: tuple[str, str]
) -> tuple[str | None, str | None]:
    """The texts of two values that differ, in quotes where that one is a text, or where it ends, would not be seen."""
    alike = expected == actual or set(kinds) == {"null", "text"}  # a text `null` beside none
    if set(kinds) == {"number", "text"} and expected is not None and actual is not None:
        alike = expected.casefold() == actual.casefold()  # a text `NaN` beside NaN
    return _in_quotes(expected, kinds[0], alike), _in_quotes(actual, kinds[1], alike)


def _in_quotes(text: str | None, kind: str, always: bool) -> str | None:
    unseen = text is not None and (text != text.strip() or text in ("", "null"))
    if text is None or kind != "text" or not (always or unseen):
        return text
    return f'"{text}"'


_KINDS: tuple[tuple[Any, str], ...] = (
    (type(None), "null"),
    (bool, "boolean"),
    (int, "integer"),
    (Decimal, "decimal"),
    (float, "number"),
    (str, "text"),
    (datetime.datetime, "timestamp"),
    (datetime.date, "date"),
    (datetime.time, "time"),
    (dict, "object"),
    ((list, tuple, pl.Series), "list"),
)


def kind_of(value: Any) -> str:
    """What a value is, in one word."""
    return _kind(type(value))


@lru_cache
def _kind(made_of: type) -> str:
    return next((word for types, word in _KINDS if issubclass(made_of, types)), made_of.__name__)


def compared(name: str, one: ColumnPair, expected: Any, actual: Any, same: bool) -> Cell:
    """The cell of two rows that belong together, with these values."""
    texts = text_beside(one, expected), text_beside(one, actual)
    kinds = beside_nothing(one, texts, (_kind_beside(one, expected), kind_of(actual)))
    if same:
        return Cell(name, *texts, True, _near(one, expected, actual) if texts[0] != texts[1] else "", kinds)
    return Cell(name, *texts, False, _why(one, expected, actual), kinds)


def _kind_beside(one: ColumnPair, expected: Any) -> str:
    """What an expected value is; lists and objects of a frame come as DuckDB's text of them."""
    if isinstance(expected, str) and one.expected.kind == "nested" and one.expected.typed:
        kind = one.expected.type_name
        return "interval" if kind.upper() == "INTERVAL" else "list" if kind.endswith("]") else "object"
    return kind_of(expected)


def beside_nothing(
    one: ColumnPair | None, texts: tuple[str | None, str | None], kinds: tuple[str, str]
) -> tuple[str, str]:
    """The kinds of two values, of which one is nothing and the other a date or a time that came as text."""
    if one is None or one.expected.kind != "time" or not one.expected.typed or set(kinds) != {"null", "text"}:
        return kinds
    at = kinds.index("text")
    if moment(texts[at] or "") is None:
        return kinds
    word = one.expected.type_name.partition(" ")[0].partition("_")[0].lower() or "date"
    return (word, kinds[1]) if at == 0 else (kinds[0], word)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _near(one: ColumnPair, expected: Any, actual: Any) -> str:
    """How equal cells that are written otherwise stand to each other; empty where two numbers are the same one:
    JSON has only one way to write 803.00."""
    found = _distance(one, expected, actual)
    if found is not None and not found[0] and _is_number(expected) and _is_number(actual):
        return ""
    if found is None or not found[0].is_finite() or not found[0]:
        return "the same, written otherwise"
    if one.decimals is not None and found[0] > found[1]:
        return f"off by {_short(found[0])}, the same rounded to {one.decimals} decimals"
    if one.whole and not one.tolerant:
        if isinstance(actual, float) and not isinstance(expected, float) and float(expected) == actual:
            return f"off by {_short(found[0])}, the nearest that a float holds"
        half = Decimal(5).scaleb(-one.expected.scale - 1)  # a unit of the last place is never allowed
        return f"off by {_short(found[0])}, allowed {float(min(found[1], half)):.3g}"
    return f"off by {_short(found[0])}, allowed {float(found[1]):.3g}"


def _why(one: ColumnPair, expected: Any, actual: Any) -> str:
    if (expected is None) != (actual is None):
        return "null" if actual is None else "not null"
    if isinstance(expected, bool) or isinstance(actual, bool):
        return "value" if isinstance(expected, bool) and isinstance(actual, bool) else "type"
    if one.expected.kind == "time" or one.actual.kind == "time":
        return _apart(expected, actual)
    if isinstance(expected, str) and isinstance(actual, str):
        return _apart(expected, actual, declared_text(one.expected))
    if one.expected.type_name.upper() in JSON_TYPES and isinstance(actual, dict | list | tuple):
        expected = holder(expected)
    if isinstance(expected, dict | list | tuple) and isinstance(actual, dict | list | tuple):
        return _inside(expected, actual, "") or "value"
    if one.expected.kind == "nested":
        return "value"
    found = _distance(one, expected, actual)
    if found is None:
        return "type"
    distance, allowed = found
    if not distance.is_finite():
        return "value"
    text = f"off by {_short(distance)}"
    if one.decimals is not None and not isinstance(expected, int):
        return (
            f"{text}, rounded first: {_rounded(expected, one.decimals)} and {_rounded(actual, one.decimals)}"
        )
    if one.tolerant:
        return f"{text}, allowed {float(allowed):.3g}"
    reference = Decimal(str(ATOL)) + Decimal(str(RTOL)) * abs(Decimal(str(expected)))
    return f"{text}, within nao's tolerance" if distance <= reference else text


def _rounded(value: Any, decimals: int) -> str:
    number = read_number(value) if isinstance(value, str) else value
    try:
        return format(Decimal(str(number)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN), "f")
    except ArithmeticError:  # too large to have so many
        return str(number)


def _short(distance: Decimal) -> str:
    return shortest_text(distance) if distance < 10**15 else str(distance)


@lru_cache
def _exact(tolerance: float) -> Decimal:
    return Decimal(str(tolerance))


def _distance(one: ColumnPair, expected: Any, actual: Any) -> tuple[Decimal, Decimal] | None:
    """How far two numbers are apart and how far they might be; None where one of them is none."""
    number = read_number(actual) if isinstance(actual, str) else actual
    numbers = int | float | Decimal
    if not isinstance(expected, numbers) or not isinstance(number, numbers) or isinstance(number, bool):
        return None
    try:
        wanted = Decimal(str(expected))
        distance = abs(Decimal(str(number)) - wanted)
        allowed = _exact(one.atol) + _exact(one.rtol) * abs(wanted)
    except ArithmeticError:
        return Decimal("NaN"), Decimal(0)
    return distance, allowed


WRITTEN_OTHERWISE = "the same time written otherwise: text is compared as it is"


def _apart(expected: Any, actual: Any, text: bool = False) -> str:
    """How far two dates or timestamps are apart; `value` of anything else.

    Args:
        text: the expected column is known to hold texts.
    """
    moments = [_moment(value) for value in (expected, actual)]
    if moments[0] is None or moments[1] is None:
        return "value" if isinstance(actual, str) or isinstance(expected, str) else "type"
    try:
        gap = moments[1] - moments[0]
    except TypeError:  # one with a time zone, one without
        return "value"
    if not gap:
        return WRITTEN_OTHERWISE if text else "value"
    years = moments[1].year - moments[0].year
    if years and moments[0].replace(year=2000) == moments[1].replace(year=2000):
        return f"{abs(years)} year{'' if abs(years) == 1 else 's'} {'later' if years > 0 else 'earlier'}"
    days, rest = divmod(abs(gap), datetime.timedelta(days=1))
    words = [f"{days} day{'' if days == 1 else 's'}"] if days else []
    if rest:
        words.append(str(rest))
    return " ".join(words) + (" later" if gap > datetime.timedelta() else " earlier")


def _moment(value: Any) -> datetime.datetime | None:
    text = instant(value if isinstance(value, str) else str(plain(value)))
    if text is None:
        return None
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _inside(expected: Any, actual: Any, path: str) -> str:
    """The first place within lists and objects where they differ; empty where there is none."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in [*expected, *(name for name in actual if name not in expected)]:
            place = f"{path}.{name}" if path else str(name)
            if name not in actual or name not in expected:
                return f"{clip(place, _SHOWN)} is {'missing' if name in expected else 'too many'}"
            found = _inside(expected[name], actual[name], place)
            if found:
                return found
        return ""
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        for number in range(max(len(expected), len(actual))):
            place = f"{path}[{number}]"
            if number >= len(actual) or number >= len(expected):
                return f"{clip(place, _SHOWN)} is {'missing' if number < len(expected) else 'too many'}"
            found = _inside(expected[number], actual[number], place)
            if found:
                return found
        return ""
    if expected == actual and isinstance(expected, bool) == isinstance(actual, bool):
        return ""
    e, a = clip(cell_text(expected), _SHOWN), clip(cell_text(actual), _SHOWN)
    return f"{clip(path, _SHOWN)}: expected {e}, actual {a}" if path else "type"
