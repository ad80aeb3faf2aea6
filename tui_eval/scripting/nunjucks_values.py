"""JavaScript's view of plain values, as nunjucks templates see them.

How values print, which are true, what `+` and `==` mean, and which members strings, lists, numbers
and objects have. Nothing here needs jinja2, so plain `{{name}}` templates work without it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

MAX_TEXT = 20_000_000
"""The longest text (in characters) that one operation of a template may build."""

WHITESPACE = " \t\n\r\v\f\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    chr(c) for c in range(0x2000, 0x200B)
)
"""What JavaScript's `trim` removes."""


class ScriptValueError(Exception):
    """An operation that JavaScript or our limits refuse; the text is one line."""


class Undefined:
    """JavaScript's `undefined`: prints as nothing, is false, has no members."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


def is_undefined(value: Any) -> bool:
    """Whether the value is `undefined`, ours or jinja2's (told by its class name: jinja2 stays out)."""
    return isinstance(value, Undefined) or type(value).__name__ in ("NunjucksUndefined", "ChainableUndefined")


def is_nullish(value: Any) -> bool:
    """Whether the value is null or undefined."""
    return value is None or is_undefined(value)


def number_text(value: int | float) -> str:
    """A number as JavaScript prints it (`1.0` is `1`, `1e21` is `1e+21`, 64-bit precision)."""
    if isinstance(value, int):
        if -9007199254740992 <= value <= 9007199254740992:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            return "Infinity" if value > 0 else "-Infinity"
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


def text(value: Any) -> str:
    """JavaScript's `String(value)`, except that null and undefined are empty as nunjucks prints them."""
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
        return join(value, ",")
    if isinstance(value, Mapping):
        return "[object Object]"
    if callable(value):
        return "[Function]"
    return str(value)


def join(values: Any, separator: str) -> str:
    """`Array.join`, within the limit of text."""
    parts: list[str] = []
    length = 0
    for value in values:
        part = text(value)
        length += len(part) + len(separator)
        if length > MAX_TEXT:
            raise ScriptValueError("the text would be too long")
        parts.append(part)
    return separator.join(parts)


class FileValue(dict[str, Any]):
    """A YAML or JSON file used as a variable: prints as the file's text, answers `{{data.key}}`."""

    def __init__(self, source: str, data: dict[str, Any]) -> None:
        super().__init__(data)
        self.source = source


class FileList(list[Any]):
    """A YAML or JSON file holding a list: prints as the file's text, its items can be addressed."""

    def __init__(self, source: str, data: list[Any]) -> None:
        super().__init__(data)
        self.source = source


def truthy(value: Any) -> bool:
    """JavaScript's truth: empty lists and objects are true, NaN is false."""
    if isinstance(value, float):
        return value != 0 and not math.isnan(value)
    if isinstance(value, (list, tuple, dict)):
        return True
    return bool(value)


def number(value: Any) -> int | float:
    """JavaScript's `Number(value)`."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    if value is None:
        return 0
    if isinstance(value, str):
        plain = value.strip(WHITESPACE)
        if not plain:
            return 0
        try:
            if plain[:2].lower() in ("0x", "0o", "0b"):
                return int(plain, 0)
            if "_" in plain or plain.lower().strip("+-") in ("nan", "inf", "infinity"):
                return {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}.get(
                    plain, math.nan
                )
            parsed = float(plain)
        except ValueError:
            return math.nan
        return int(parsed) if parsed.is_integer() and abs(parsed) < 2**53 else parsed
    if isinstance(value, list):
        return number(text(value))
    return math.nan


def integer(value: Any, default: int = 0) -> int:
    """A number as an index; what is not a number is `default`."""
    converted = number(value) if not is_nullish(value) else math.nan
    if math.isnan(converted):
        return default
    if math.isinf(converted):
        return 2**53 if converted > 0 else -(2**53)
    return int(converted)


def tidy(value: int | float) -> int | float:
    """A float without a fraction as an integer, as JavaScript does not tell them apart."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def parse_json(value: Any) -> Any:
    """`JSON.parse`.

    Raises:
        ScriptValueError: the text is not JSON.
    """
    if isinstance(value, (FileValue, FileList)):
        return value
    try:
        return json.loads(text(value), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ScriptValueError(f"load: not JSON: {str(error).splitlines()[0]}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def to_json(value: Any, indent: Any = None) -> str:
    """`JSON.stringify(value, null, indent)`; undefined members are left out, NaN is null."""
    clean = _jsonable(value)
    spaces: int | str | None = None
    if isinstance(indent, str):
        spaces = indent[:10] or None
    elif not is_nullish(indent):
        spaces = max(0, min(10, integer(indent))) or None
    separators = (",", ": ") if spaces else (",", ":")
    try:
        written = json.dumps(clean, ensure_ascii=False, indent=spaces, separators=separators)
    except (ValueError, RecursionError):
        raise ScriptValueError("dump: the value cannot be written as JSON") from None
    if len(written) > MAX_TEXT:
        raise ScriptValueError("the text would be too long")
    return written


def _jsonable(value: Any, depth: int = 0) -> Any:
    if depth > 200:
        raise ScriptValueError("dump: the value is nested too deeply")
    if isinstance(value, (str, bool)) or value is None:
        return value
    if isinstance(value, (int, float)):
        return _json_number(value)
    if isinstance(value, Mapping):
        return {text(k): _jsonable(v, depth + 1) for k, v in value.items() if not _left_out(v)}
    if isinstance(value, (list, tuple)):
        return [None if _left_out(v) else _jsonable(v, depth + 1) for v in value]
    return None if _left_out(value) else text(value)


def _left_out(value: Any) -> bool:
    return is_undefined(value) or callable(value)


def _json_number(value: int | float) -> Any:
    if isinstance(value, float):
        return tidy(value) if math.isfinite(value) else None
    return value


def relative(position: Any, size: int, default: int) -> int:
    """A place that may count from the end, within what there is; `default` for `undefined`."""
    if is_undefined(position):
        return default
    at = integer(position)
    return max(0, size + at) if at < 0 else min(at, size)
