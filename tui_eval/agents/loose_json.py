"""JSON as it crosses the border, with every oddity it may hold.

msgspec is fast and strict; what it refuses (lone surrogates, NaN) the standard library takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from itertools import islice
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_reading = json.JSONDecoder()
_OBJECT = re.compile(r'\{\s*"')
_ESCAPE = len(r"\u0000")
_BEGUN = re.compile(
    r"t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|Na?|-?I(?:n(?:f(?:i(?:n(?:it?)?)?)?)?)?|-|\.|[eE][-+]?"
)
"""The beginning of a word of JSON's, or of a number's rest."""
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


def broken_object(text: str) -> str:
    """Why a text that begins as a JSON object is not one where an object was meant, not words: it breaks off, or others
    follow it (JSON lines). Empty for what is words."""
    text = text.strip("\ufeff \t\r\n")
    if not _OBJECT.match(text):
        return ""
    try:
        _, end = _reading.raw_decode(text)
    except RecursionError:
        return "JSON that is nested too deeply"
    except json.JSONDecodeError as error:
        cut = error.msg.startswith("Unterminated string") or error.pos >= len(text)
        escape = error.msg.startswith("Invalid \\") and error.pos >= len(text) - _ESCAPE
        return "JSON that breaks off" if cut or escape or _BEGUN.fullmatch(text, error.pos) else ""
    return "several JSON objects, one after the other" if _OBJECT.match(text[end:].lstrip()) else ""


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


_FENCED = r"(?si)```(?:json)?[ \t]*\r?\n(?P<object>\s*\{.*\})\s*\n?```\s*\Z"
_OPENING = r"(?i)```(?:json)?[ \t]*\r?\n"


def split_metadata(text: str) -> tuple[str, dict[str, Any] | None]:
    """A reply's metadata where its text carries it, a fenced JSON object at its end: the text without the object, and
    the object; (text, None) where there is none."""
    if not text.rstrip().endswith("```"):
        return text, None
    starts = [match.start() for match in re.finditer(_OPENING, text)]
    # JSON has no line end within its strings, so no opening within an object: it is the last of them, or the last but
    # one where the fence that closes it looks like another.
    for start in reversed(starts[-2:]):
        match = re.compile(_FENCED).match(text, start)
        if match is None:
            continue
        try:
            value = decode(match["object"])
        except ValueError:
            continue
        if isinstance(value, dict):
            return text[:start].rstrip(), value
    return text, None


_BARE = r"(?m)^[ \t>*_`\[-]*(?P<object>\{\s*[\"'])"
"""An object that begins a line, also quoted, emphasised, of a list or in one."""
_AFTER_BARE = " \t\r*_`].,;"
_BARE_KEPT = 20_000
"""Characters at the end of a reply in which an object without a fence is looked for."""
_BARE_MOST = 100
_BLOCK = r"(?s)```(\w*)[ \t]*\r?\n(.*?)(?:```|\Z)"


def unread_metadata(text: str, facts: Collection[str]) -> str:
    """The last fenced block of a reply in which `split_metadata` finds no metadata, where it was meant as
    such: it ends the reply and cannot be read as an object (it is cut off, say), or words come after it and
    it holds some of `facts`. Else an object behind it that has lines of its own, no such fence, and some of `facts`."""
    last = next(reversed(list(re.finditer(_BLOCK, text))), None)
    if last is None:
        return _without_fence(text[-_BARE_KEPT:], facts)
    label, block, after = last[1].lower(), last[2].strip(), text[last.end() :]
    found = _in_fence(block, label, after, facts) if not label or label[:4] == "json" else ""
    return found or _without_fence(after[-_BARE_KEPT:], facts)


def _in_fence(block: str, label: str, after: str, facts: Collection[str]) -> str:
    named = block.startswith(("{", "[")) and any(fact in block for fact in facts)
    if not named and not (block.startswith("{") if label else re.match(r"\{\s*[\"']", block)):
        return ""  # data, or code
    if not after.strip():
        return block
    try:
        value = decode(block)
    except ValueError:
        value = None
    return block if isinstance(value, dict) and not value.keys().isdisjoint(facts) else ""


def _without_fence(text: str, facts: Collection[str]) -> str:
    if not any(fact in text for fact in facts):
        return ""
    for match in islice(re.finditer(_BARE, text), _BARE_MOST):
        start = match.start("object")
        try:
            value, end = _reading.raw_decode(text, start)
        except (ValueError, RecursionError):
            if any(re.match(rf"[\"']{fact}[\"']", text[match.end() - 1 :]) for fact in facts):
                return text[start:].strip()
            continue
        if not value.keys().isdisjoint(facts) and not text[end:].partition("\n")[0].strip(_AFTER_BARE):
            return text[start:end]
    return ""
