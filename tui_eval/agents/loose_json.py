"""JSON as it crosses the border, with every oddity it may hold.

msgspec is fast and strict; what it refuses (lone surrogates, NaN) the standard library takes.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_DIGITS = 4_000


def encode(value: Any) -> bytes:
    """JSON as bytes; text that is not UTF-8 (lone surrogates) is escaped."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, TypeError, msgspec.EncodeError):
        return json.dumps(value, default=str).encode()


def decode(data: bytes | str) -> Any:
    """A JSON value.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError, ValueError):  # it refuses 1e400, too, and very long integers
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        try:
            return json.loads(text, parse_int=_whole)
        except RecursionError:
            raise ValueError("nested too deeply") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _whole(digits: str) -> int | float:
    """Python reads no integers of more than 4,300 digits; nor does anybody mean them."""
    return int(digits) if len(digits) < _DIGITS else float(digits)


def text_of(value: Any) -> str:
    """A value as text: text as it is, nothing as the empty text, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


def one_line(text: str, limit: int = 300) -> str:
    """The text on one line, cut at `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
