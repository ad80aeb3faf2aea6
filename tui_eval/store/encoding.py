"""Values to bytes and back: JSON by msgspec, made storable first, long ones compressed."""

from __future__ import annotations

import zlib
from typing import Any, TypeVar

import msgspec

from tui_eval.guard.text import storable
from tui_eval.model import Attempt
from tui_eval.store import long_texts

_COMPRESS_ABOVE = 4096
T = TypeVar("T")


def _plain(value: Any) -> Any:
    """Anything JSON does not know becomes its text: agents may hand over dates or decimals."""
    return str(value)


_encoder = msgspec.json.Encoder(enc_hook=_plain, decimal_format="number")


def encode_json(value: Any) -> bytes:
    """Compact JSON. Lone surrogates, NaN and infinities become storable; other types their text."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        return _encoder.encode(storable(msgspec.to_builtins(value, enc_hook=_plain, str_keys=True)))


def pack(value: Any) -> bytes:
    """JSON, compressed where it is long; of an attempt each long text once."""
    if isinstance(value, Attempt) and long_texts.has_long(value):
        return long_texts.pack(value, encode_json)
    body = encode_json(value)
    return zlib.compress(body, 1) if len(body) > _COMPRESS_ABOVE else body


def unpack(body: bytes, kind: type[T]) -> T:
    """The reverse of `pack`.

    Raises:
        msgspec.MsgspecError, zlib.error: the bytes are damaged.
    """
    if body[:1] == long_texts.MARK:
        return long_texts.unpack(body, kind)
    if body[:1] == b"\x78":
        body = zlib.decompress(body)
    return msgspec.json.decode(body, type=kind)
