"""JavaScript's values as plain Python ones: how they print, what is true, `Number`, `String`, `JSON`.

promptfoo's verdicts, messages and templates rest on these. A number is a double there: an integer beyond
2**53 has the text, the JSON and the equals of the nearest double.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from decimal import ROUND_HALF_UP, Context, Decimal
from json.encoder import encode_basestring as _quoted
from typing import Any, Final, final

from msgspec import UNSET

MAX_TEXT = 20_000_000
"""The longest text (in characters) that one operation of a template may build."""

WHITESPACE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
r"""What `trim` removes and `\s` matches: a byte order mark is space, U+001C to U+001F and U+0085 are not."""

_EXACT = 2**53
_COMMON = frozenset((str, int, float, bool, dict, list))
_SPACES = re.compile(f"[{WHITESPACE}]+")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_RADIX = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_INFINITIES = {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_SURROGATE = re.compile("[\ud800-\udfff]")
_INDEX = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)


looked_through: ContextVar[Callable[[int, int], None]] = ContextVar("looked_through")
"""Told of the values and the characters of each list and object that is walked through, it may refuse to go on: what a
template makes may hold one list twice, that one another, and stand for more than a machine can walk through."""


class ScriptValueError(Exception):
    """An operation that JavaScript or our limits refuse; the text is one line."""


@final
class Undefined:
    """The type of `UNDEFINED`: prints as nothing, is false, has no members."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = Undefined()
"""JavaScript's `undefined`; `null` is None."""


class FileValue(dict[str, Any]):
    """A YAML or JSON file used as a variable: prints as the file's text, answers `{{data.key}}`. `handed` is what the
    suite's code is handed for it."""

    def __init__(self, source: str, data: dict[str, Any], handed: str | None = None) -> None:
        super().__init__(data)
        self.source = source
        self.handed = source if handed is None else handed


class FileList(list[Any]):
    """A YAML or JSON file holding a list: prints as the file's text, its items can be addressed. `handed` as that of
    `FileValue`."""

    def __init__(self, source: str, data: list[Any], handed: str | None = None) -> None:
        super().__init__(data)
        self.source = source
        self.handed = source if handed is None else handed


def handed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Variables as a suite's code is handed them: files as texts, not as objects."""
    return {
        name: value.handed if isinstance(value, FileValue | FileList) else value
        for name, value in values.items()
    }


def is_undefined(value: Any) -> bool:
    """Whether the value is `undefined`: ours, a key that is not given, or jinja2's (told by its class name:
    jinja2 stays out)."""
    return (
        isinstance(value, Undefined)
        or value is UNSET
        or type(value).__name__ in ("NunjucksUndefined", "ChainableUndefined")
    )


def is_nullish(value: Any) -> bool:
    """Whether the value is null or undefined."""
    return value is None or is_undefined(value)


def double(value: int | float) -> int | float:
    """The number that JavaScript holds: an integer beyond 2**53 as its nearest double, which may be infinite."""
    if isinstance(value, int) and not -_EXACT <= value <= _EXACT:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return value


def number_text(value: int | float) -> str:
    """`String(number)`: `1` for 1.0, `1e+21`, `1e-7`, `1152921504606847000` for 2**60."""
    value = double(value)
    if isinstance(value, int):
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, exponent = f"{abs(value)!r}e0".split("e")[:2]
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = whole + fraction
    point = len(whole) + int(exponent)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"


_WIDE = Context(prec=1200)


def fixed(value: int | float, digits: int) -> str:
    """`number.toFixed(digits)`: of two texts that are equally near the larger one, `3` for 2.5."""
    value = double(value)
    if not math.isfinite(value) or abs(value) >= 1e21:
        return number_text(value)
    text = str(abs(Decimal(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE))
    # what rounds to nothing keeps its sign; a negative zero has none
    return f"-{text}" if value < 0 else text


def precision(value: int | float, digits: int) -> str:
    """`number.toPrecision(digits)`: of two texts that are equally near the larger one."""
    value = double(value)
    if not math.isfinite(value):
        return number_text(value)
    if value == 0:
        return fixed(0, digits - 1)
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).plus(abs(Decimal(value)))
    power = rounded.adjusted()
    sign = "-" if value < 0 else ""
    if -6 <= power < digits:
        return sign + format(rounded.quantize(Decimal(1).scaleb(power - digits + 1), context=_WIDE), "f")
    shown = "".join(map(str, rounded.as_tuple().digits)).ljust(digits, "0")
    point = f".{shown[1:]}" if digits > 1 else ""
    return f"{sign}{shown[0]}{point}e{'+' if power > 0 else '-'}{abs(power)}"


def string(value: Any) -> str:
    """`String(value)`."""
    if value is None:
        return "null"
    return "undefined" if is_undefined(value) else text(value)


def text(value: Any) -> str:
    """`String(value)` where null and undefined are empty: within a list, and as nunjucks prints them."""
    if isinstance(value, str):
        return value
    if is_nullish(value):
        return ""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, (FileValue, FileList)):
        return value.source
    if isinstance(value, (list, tuple)):
        look_through(value)
        return join(value, ",")
    if isinstance(value, Mapping):
        return "[object Object]"
    if callable(value):
        return "[Function]"
    return str(value)


def look_through(values: Collection[Any]) -> None:
    """Say that the members of a list or an object are walked through.

    Raises:
        ScriptValueError: they are too many.
    """
    tell = looked_through.get(None)
    if tell is not None:
        members = values.values() if isinstance(values, Mapping) else values
        tell(len(values) + 1, sum(len(member) for member in members if isinstance(member, str)))


def join(values: Any, separator: str) -> str:
    """`Array.join`, within the limit of text.

    Raises:
        ScriptValueError: the text would be too long.
    """
    parts: list[str] = []
    length = 0
    for value in values:
        part = text(value)
        length += len(part) + len(separator)
        if length > MAX_TEXT:
            raise ScriptValueError("the text would be too long")
        parts.append(part)
    return separator.join(parts)


def truthy(value: Any) -> bool:
    """JavaScript's truth: empty lists and objects are true, NaN is false."""
    if isinstance(value, float):
        return value != 0 and not math.isnan(value)
    if isinstance(value, (list, tuple, Mapping)):
        return True
    return not is_undefined(value) and bool(value)


def number(value: Any) -> int | float:
    """`Number(value)`; NaN where it is none."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return double(value)
    if value is None:
        return 0
    if isinstance(value, str):
        return _number_of(value.strip(WHITESPACE))
    if isinstance(value, list):
        return number(text(value))
    return math.nan


def _number_of(plain: str) -> int | float:
    if not plain:
        return 0
    if _RADIX.fullmatch(plain):
        return double(int(plain, 0))
    if _DECIMAL.fullmatch(plain):
        return tidy(float(plain))
    return _INFINITIES.get(plain, math.nan)


def integer(value: Any, default: int = 0) -> int:
    """A number as an index; what is not a number is `default`."""
    converted = number(value) if not is_nullish(value) else math.nan
    if math.isnan(converted):
        return default
    if math.isinf(converted):
        return _EXACT if converted > 0 else -_EXACT
    return int(converted)


def tidy(value: int | float) -> int | float:
    """A float without a fraction as an integer, as JavaScript does not tell them apart (but for -0)."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value) if value or math.copysign(1, value) > 0 else value
    return value


def parse_json(source: str) -> Any:
    """`JSON.parse`: strict, no byte order mark, no NaN or Infinity; numbers are doubles.

    Raises:
        ValueError: it is not JSON.
    """
    return json.loads(source, parse_constant=_refuse_constant, parse_int=_parsed_integer)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parsed_integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 16 and digits != "-0" else tidy(float(digits))


def json_spelled(value: Any) -> Any:
    """A value with the texts in it that hold an object or array of JSON as `JSON.stringify(JSON.parse(text))`
    has them."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            found = parse_json(value)
            return json_text(json_spelled(found))
        except (ValueError, RecursionError, ScriptValueError):
            return value
    if isinstance(value, dict):
        return {key: json_spelled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_spelled(item) for item in value]
    return value


def json_text(value: Any, indent: Any = None) -> str:
    """`JSON.stringify(value, null, indent)`: members in JavaScript's order, undefined ones left out, NaN null.

    Raises:
        ScriptValueError: the value is nested too deeply.
    """
    gap = ""
    if isinstance(indent, str):
        gap = indent[:10]
    elif not is_nullish(indent):
        gap = " " * max(0, min(10, integer(indent)))
    try:
        separators = (",", ": ") if gap else (",", ":")
        written = json.dumps(_plain(value), ensure_ascii=False, indent=gap or None, separators=separators)
    except _NotPythons:
        return _written(value, gap)
    except (RecursionError, ValueError):
        raise ScriptValueError("the value is nested too deeply for JSON") from None
    return written if written.isascii() else _SURROGATE.sub(_escaped, written)


def _written(value: Any, gap: str) -> str:
    parts: list[str] = []
    try:
        _write(value, gap, "\n" if gap else "", parts)
    except RecursionError:
        raise ScriptValueError("the value is nested too deeply for JSON") from None
    return "".join(parts)


class _NotPythons(Exception):
    """Python's json module would write a number of the value differently."""


def _plain(value: Any) -> Any:
    """The value so that Python's json module writes it as JavaScript does.

    Raises:
        _NotPythons: it cannot.
    """
    if isinstance(value, str) or value is None or value is True or value is False:
        return value
    if isinstance(value, (int, float)):
        held = double(value)
        if isinstance(held, int):
            return held
        if not math.isfinite(held):
            return None
        if held.is_integer() and abs(held) < 1e21:
            return int(number_text(held))
        if abs(held) < 1e-4:
            raise _NotPythons
        return held
    if isinstance(value, Mapping):
        look_through(value)
        return {key: _plain(item) for key, item in _in_order(value) if not _left_out(item)}
    if isinstance(value, (list, tuple)):
        look_through(value)
        return [None if _left_out(item) else _plain(item) for item in value]
    return None if _left_out(value) else text(value)


def text_of(output: Any) -> str:
    """The text that promptfoo's assertions look at: the output itself, or its compact JSON."""
    return output if isinstance(output, str) else json_text(output)


def _write(value: Any, gap: str, line: str, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(_json_string(value))
    elif value is None or value is True or value is False:
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, (int, float)):
        held = double(value)
        parts.append(number_text(held) if math.isfinite(held) else "null")
    elif isinstance(value, Mapping):
        look_through(value)
        members = [(key, item) for key, item in _in_order(value) if not _left_out(item)]
        _write_all(members, "{}", gap, line, parts)
    elif isinstance(value, (list, tuple)):
        look_through(value)
        _write_all([(None, None if _left_out(item) else item) for item in value], "[]", gap, line, parts)
    else:
        parts.append("null" if _left_out(value) else _json_string(text(value)))


def _write_all(
    members: Sequence[tuple[str | None, Any]], brackets: str, gap: str, line: str, parts: list[str]
) -> None:
    if not members:
        parts.append(brackets)
        return
    inner = line + gap
    parts.append(brackets[0])
    between = ""
    for key, item in members:
        parts.append(between + inner)
        if key is not None:
            parts.append(_json_string(key) + (": " if gap else ":"))
        _write(item, gap, inner, parts)
        between = ","
    parts.append(line + brackets[1])


def _in_order(members: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """Members as JavaScript keeps them: array indices first, ascending, the others as they came."""
    listed = [(key if isinstance(key, str) else string(key), item) for key, item in members.items()]
    indices = [p for p in listed if p[0][:1].isdigit() and _INDEX.fullmatch(p[0]) and int(p[0]) < 2**32 - 1]
    if not indices:
        return listed
    numbered = {key for key, _ in indices}
    return [*sorted(indices, key=lambda pair: int(pair[0])), *(p for p in listed if p[0] not in numbered)]


def _json_string(value: str) -> str:
    written = _quoted(value)
    return written if value.isascii() else _SURROGATE.sub(_escaped, written)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _left_out(value: Any) -> bool:
    if value is None or type(value) in _COMMON:
        return False
    return is_undefined(value) or callable(value)


def trim(value: str) -> str:
    """`value.trim()`."""
    return value.strip(WHITESPACE)


def is_space(character: str) -> bool:
    """Whether `trim` takes a character away."""
    return character in WHITESPACE


def words(value: str) -> list[str]:
    r"""`value.trim().split(/\s+/)` without empty words."""
    return [word for word in _SPACES.split(value) if word]


def units(value: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(value) if value.isascii() else len(value) + sum(c > "\uffff" for c in value)


def relative(position: Any, size: int, default: int) -> int:
    """A place that may count from the end, within what there is; `default` for `undefined`."""
    if is_undefined(position):
        return default
    at = integer(position)
    return max(0, size + at) if at < 0 else min(at, size)
