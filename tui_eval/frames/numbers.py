"""Texts that are numbers, and numbers as texts.

`read_number` follows the documented grammar (design, "nao."); `reference_value` follows nao-core
0.3.29's parser, whose readings differ (`1,5` is 15 there).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_CURRENCY = "$€£¥₹"
_BLANKS = " \u00a0\u202f\u2009"
_NUMBER = re.compile(
    rf"""(?P<before>[-+]?)[{_BLANKS}]*[{_CURRENCY}]?[{_BLANKS}]*(?P<sign>[-+]?)[{_BLANKS}]*
    (?:(?P<plain>\d+(?:\.\d+)?)
      |(?P<american>(?!0)(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,2}}(?:,\d{{2}})+,\d{{3}})(?:\.\d+)?)
      |(?P<european>(?!0)\d{{1,3}}(?:\.\d{{3}})+,\d+|(?!0)\d{{1,3}}(?:\.\d{{3}}){{2,}})
      |(?P<spaced>(?!0)\d{{1,3}}(?:[{_BLANKS}]\d{{3}})+(?:\.\d+)?))""",
    re.VERBOSE,
)


def read_number(text: str) -> Decimal | None:
    """The number that a text plainly is, or None where it is no number or could be two.

    Plain (`42`, `-3.5`), grouped by threes the American or European way or by blanks, Indian
    groups, one currency sign before. `1.234` is a decimal; `1,5`, `,5`, `0,123` stay text.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None or (found["before"] and found["sign"]):
        return None
    if found["plain"]:
        digits = found["plain"]
    elif found["american"]:
        digits = found["american"].replace(",", "")
    elif found["european"]:
        digits = found["european"].replace(".", "").replace(",", ".")
    else:
        digits = re.sub(f"[{_BLANKS}]", "", found["spaced"])
    try:
        value = Decimal(digits)
    except InvalidOperation:
        return None
    return -value if "-" in (found["before"], found["sign"]) else value


def shortest_text(value: int | float | Decimal) -> str:
    """A number as its shortest text: `42` for 42.0, `1.5` for Decimal("1.50")."""
    if isinstance(value, int):
        return _int_text(value)
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e16:
            return str(int(value))
        return repr(value)
    if not value.is_finite():
        return str(value).lower()
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


# -- A column of SQLite may hold numbers beside texts; a frame holds it as texts that say which is which.


MIXED = "MIXED"
"""The type of such a column, beside DuckDB's names of types."""
MARK = "\0"
_SURROGATE = re.compile("[\ud800-\udfff]")


def holds_both(cells: Sequence[Any]) -> bool:
    """Whether numbers stand beside texts (or bytes) in a column."""
    kinds = set(map(type, cells))
    return bool(kinds & {int, float}) and bool(kinds & {str, bytes})


def mixed_text(cell: Any) -> str | None:
    """A cell of a mixed column as a frame holds it: a text as it is, so that it can be read (and masked)."""
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if cell is None or (isinstance(cell, str) and not cell.startswith(MARK) and not _SURROGATE.search(cell)):
        return cell
    text = json.dumps(cell, ensure_ascii=False)
    return MARK + (json.dumps(cell) if _SURROGATE.search(text) else text)


def mixed_cell(text: str | None) -> Any:
    """The cell again."""
    if text is None or not text.startswith(MARK):
        return text
    try:
        return json.loads(text[len(MARK) :])
    except ValueError:  # a file of frames may be anybody's
        return text


def _int_text(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # beyond the interpreter's limit of digits
        return hex(value)


_US = re.compile(r"-?[\d,]+(?:\.\d+)?")
_EU = re.compile(r"[\d.]+,\d+")
_EU_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3})+")


def reference_value(value: Any) -> Any:
    """A cell as nao-core 0.3.29 reads it before comparing (formats/nao.md section 3, step 5).

    Raises:
        ValueError: text of nothing but commas, as there.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return value
    if text[0] in _CURRENCY:
        text = text[1:].strip()
    text = re.sub(r"\s", "", text)
    negative = text.startswith("-")
    if negative:
        text = text[1:]
    if text.startswith("+"):
        text = text[1:]
    if _US.fullmatch(text):
        number = float(text.replace(",", ""))
    elif _EU.fullmatch(text):
        number = float(text.replace(".", "").replace(",", "."))
    elif _EU_GROUPS.fullmatch(text):
        number = float(text.replace(".", ""))
    else:
        return value
    return -number if negative else number


# -- Numbers of PostgreSQL, which its driver hands on as texts.


_DIGITS = 37
"""What a number may have for its thousandfold to be held in 128 bits, as comparing needs it."""
_DIVIDED = 16
"""The digits to which PostgreSQL divides, takes averages and roots, at least."""
_PLACES, _OF_TOKENS = 8, 18
"""The places up to which numbers are exact whatever their digits are, as sums of money; and those of tokens'
amounts."""
_DECLARED = 11
"""The places that a column may be declared with where nothing is divided, as BigQuery's NUMERIC(38, 9): a quotient has
so many of large numbers only, and rarely."""
_WHOLE_IN_FLOATS = 15
_EXACT = Context(prec=10_000)


def exact_decimals(series: pl.Series, quotients: bool = True) -> pl.Series:
    """Numbers written as text, as decimals; as floats where they are quotients or the like, whose last digits are
    nobody's, or NaN and infinity are among them; the text where one is no number or has too many digits. `quotients`:
    whether their query has a word that makes quotients (those of a view are not known)."""
    import polars as pl

    try:
        numbers = [None if text is None else Decimal(text) for text in series.to_list()]
    except InvalidOperation:
        return series
    given = [number for number in numbers if number is not None]
    if are_floats(given, quotients):
        return pl.Series(series.name, [None if n is None else float(n) for n in numbers], dtype=pl.Float64)
    if not all(number.is_finite() for number in given):
        return series
    before, scale = _before(given), _places(given)
    if max(0, before) + scale > _DIGITS:  # zeros at the end may be too many
        scale = _places([number.normalize(_EXACT) for number in given])
    if max(0, before) + scale > _DIGITS:
        return series
    unit = Decimal(1).scaleb(-scale)
    exact = [None if number is None else number.quantize(unit, context=_EXACT) for number in numbers]
    return pl.Series(series.name, exact, dtype=pl.Decimal(38, scale))


def are_floats(numbers: Sequence[Decimal], quotients: bool) -> bool:
    """Whether they are quotients or the like, or have NaN and infinity among them, and floats hold what they say."""
    finite = [number for number in numbers if number.is_finite()]
    digits = max((len(number.as_tuple().digits) for number in finite), default=0)
    scale = _places(finite)
    least = _PLACES if quotients else _DECLARED
    divided = scale > _OF_TOKENS or (least < scale < _OF_TOKENS and digits >= _DIVIDED)
    if divided and _before(finite) <= _WHOLE_IN_FLOATS:
        return True
    return len(finite) < len(numbers) and digits <= _WHOLE_IN_FLOATS


def _before(numbers: Sequence[Decimal]) -> int:
    """The most digits that one of them has before its point."""
    return max((number.adjusted() + 1 for number in numbers if number), default=0)


def _places(numbers: Sequence[Decimal]) -> int:
    return max((max(0, -int(number.as_tuple().exponent)) for number in numbers), default=0)
