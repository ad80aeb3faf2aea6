"""Values as JavaScript prints and counts them, which promptfoo's verdicts and texts rest on."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from msgspec import UNSET


def number_text(value: float) -> str:
    """A number as `String(value)` gives it: no `.0`, no exponent below 1e21."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if -7 < power < 0:
        digits = mantissa.replace("-", "").replace(".", "")
        return f"{'-' if value < 0 else ''}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa.removesuffix('.0')}e{'+' if power > 0 else '-'}{abs(power)}"


def string(value: Any) -> str:
    """`String(value)`; UNSET is `undefined`."""
    if isinstance(value, str):
        return value
    if value is UNSET:
        return "undefined"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, list):
        return ",".join("" if item is None else string(item) for item in value)
    return "[object Object]"


def json_text(value: Any) -> str:
    """`JSON.stringify(value)`: compact, numbers as JavaScript prints them."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value == int(value) and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {string(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def text_of(output: Any) -> str:
    """The text that assertions look at: the output itself, or its compact JSON."""
    return output if isinstance(output, str) else json_text(output)


def to_number(text: str) -> float:
    """`Number(text)`; NaN where it is none."""
    stripped = trim(text)
    if not stripped:
        return 0.0
    lowered = stripped.lower()
    try:
        if lowered[:2] in ("0x", "0o", "0b") and "_" not in stripped:
            return float(int(lowered, 0))
        # Python reads `1_0`, `inf` and `nan` too, JavaScript does not.
        if "_" in stripped or any(letter.isalpha() for letter in lowered.replace("e", "")):
            return math.inf if stripped in ("Infinity", "+Infinity") else math.nan
        return float(stripped)
    except ValueError:
        return math.nan


_SPACE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_SPACES = re.compile(f"[{_SPACE}]+")


def trim(text: str) -> str:
    """`text.trim()`: a byte order mark is space, the separators U+001C to U+001F and U+0085 are not."""
    return text.strip(_SPACE)


def is_space(character: str) -> bool:
    """Whether `trim` takes a character away."""
    return character in _SPACE


def words(text: str) -> list[str]:
    """`text.trim().split(/\\s+/)` without empty words."""
    return [word for word in _SPACES.split(text) if word]


def parse_json(text: str) -> Any:
    """`JSON.parse(text)`: strict, no byte order mark, no NaN or Infinity.

    Raises:
        ValueError: it is not JSON.
    """
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def units(text: str) -> int:
    """The length in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)
