"""Values to bytes and back: JSON by msgspec, made storable first, long ones compressed; of an attempt each long text
once."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from tui_eval.guard.text import storable, storable_text
from tui_eval.model import Attempt, decoded

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
    if isinstance(value, Attempt) and has_long(value):
        return _packed_apart(value)
    body = encode_json(value)
    return zlib.compress(body, 1) if len(body) > _COMPRESS_ABOVE else body


def unpack(body: bytes, kind: type[T]) -> T:
    """The reverse of `pack`.

    Raises:
        msgspec.MsgspecError, zlib.error: the bytes are damaged.
    """
    if body[:1] == MARK:
        return _unpacked_apart(body, kind)
    if body[:1] == b"\x78":
        body = zlib.decompress(body)
    return msgspec.json.decode(body, type=kind)


# -- Long texts of a recorded attempt, each kept once: an answer of 50 MB stands in the transcript, in the reply, in the
# text that was judged and in a verdict of each assertion. A body with such texts begins with `MARK`; then, compressed,
# come a line of JSON (how long what follows is), the attempt as JSON with a reference for each of them, and the texts
# one after the other.


MARK = b"\x02"
LONG = 1 << 17
"""Characters from which on a text is kept apart."""
_SLICE = 1 << 20


class _Head(msgspec.Struct):
    """`key` begins each reference; `sizes` are the bytes of the texts, `value` those of what refers to them."""

    key: str
    value: int
    sizes: list[int]


def has_long(attempt: Attempt) -> bool:
    """Whether an attempt has texts that are kept apart."""
    if len(attempt.response_text) > LONG:
        return True
    for entry in attempt.transcript:
        if len(entry.text) > LONG or (isinstance(entry.result, str) and len(entry.result) > LONG):
            return True
    return any(len(reply.text) > LONG for reply in attempt.replies)


def _packed_apart(attempt: Attempt) -> bytes:
    """The body of an attempt with long texts; the attempt itself stays as it is."""
    key = f"text:{secrets.token_hex(12)}:"
    found: dict[str, int] = {}

    def taken(text: str) -> str:
        if len(text) <= LONG:
            return text
        return f"{key}{found.setdefault(text, len(found))}"

    value = encode_json(replaced(attempt, taken))
    # Sizes come first, so the texts are encoded twice, a slice at a time: nothing is held twice.
    sizes = [sum(len(part) for part in _slices(text)) for text in found]
    packer = zlib.compressobj(1)
    parts = [
        MARK,
        packer.compress(encode_json(_Head(key, len(value), sizes)) + b"\n"),
        packer.compress(value),
    ]
    for text in found:
        parts.extend(packer.compress(part) for part in _slices(text))
    parts.append(packer.flush())
    return b"".join(parts)


def _unpacked_apart(body: bytes, kind: type[T]) -> T:
    """The reverse of `_packed_apart`, as far as `kind` has it.

    Raises:
        msgspec.MsgspecError, zlib.error: the bytes are damaged.
    """
    plain = memoryview(zlib.decompress(memoryview(body)[1:]))
    end = bytes(plain[: 1 << 20]).find(b"\n")
    head = msgspec.json.decode(plain[: max(0, end)], type=_Head)
    place = end + 1 + head.value
    value = msgspec.json.decode(plain[end + 1 : place], type=kind)
    places = [(place + sum(head.sizes[:index]), size) for index, size in enumerate(head.sizes)]
    known: dict[str, str] = {}

    def given(text: str) -> str:
        if not text.startswith(head.key):
            return text
        if text not in known:
            try:
                start, size = places[int(text.removeprefix(head.key))]
            except (ValueError, IndexError):
                raise msgspec.DecodeError("a text that it refers to is not there") from None
            known[text] = str(plain[start : start + size], "utf-8", "replace")
        return known[text]

    return replaced(value, given)


def _slices(text: str):
    for start in range(0, len(text), _SLICE):
        yield storable_text(text[start : start + _SLICE]).encode()


def replaced(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
    """The value with each of its texts changed (keys apart); what stays the same is the same object, and
    nothing is changed in place."""
    if isinstance(value, str):
        return change(value)
    if depth > 200 or value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, msgspec.Struct):
        own = {name: getattr(value, name) for name in value.__struct_fields__}
        new = {
            name: made
            for name, item in own.items()
            if (made := replaced(item, change, depth + 1)) is not item
        }
        return msgspec.structs.replace(value, **new) if new else value
    if isinstance(value, dict):
        made = {key: replaced(item, change, depth + 1) for key, item in value.items()}
        return made if any(made[key] is not item for key, item in value.items()) else value
    if isinstance(value, (list, tuple)):
        items = [replaced(item, change, depth + 1) for item in value]
        if all(old is new for old, new in zip(value, items, strict=True)):
            return value
        return items if isinstance(value, list) else tuple(items)
    return value


decoded(_Head)
