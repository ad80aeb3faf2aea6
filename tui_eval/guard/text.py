"""The border between text of suites and agents and the terminal or the store.

Every character is mapped by itself, so a control sequence cut between two chunks is as harmless as
a whole one. The original text is what assertions judge; only what is shown or stored passes here.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

REPLACEMENT = "\ufffd"
"""Stands for what has no picture of its own: C1, lone surrogates, noncharacters."""

DIRECTION = "⇄"
"""Stands for a character that would turn the direction of the text after it."""

MAX_DEPTH = 200
"""Levels of nesting that `storable` keeps; deeper values become an ellipsis."""

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x2070))
_INVISIBLE = {0x2028: "␤", 0x2029: "¶", 0xFEFF: REPLACEMENT}


def _control_table() -> dict[int, str]:
    table = {code: chr(0x2400 + code) for code in range(0x20)}
    table[0x7F] = "␡"
    table |= dict.fromkeys(range(0x80, 0xA0), REPLACEMENT)
    table |= dict.fromkeys(range(0xD800, 0xE000), REPLACEMENT)
    table |= dict.fromkeys((*range(0xFFF9, 0xFFFC), 0xFFFE, 0xFFFF), REPLACEMENT)
    table |= dict.fromkeys(_BIDI, DIRECTION)
    return table | _INVISIBLE


CONTROL_TABLE: dict[int, str] = _control_table()
"""For `str.translate` over one line of text: everything unsafe, newline and tab too."""

TEXT_TABLE: dict[int, str] = {
    code: shown for code, shown in CONTROL_TABLE.items() if code not in (0x09, 0x0A)
}
"""The same for text of several lines: newline and tab stay."""

_UNSAFE = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
# Compiled when they are first asked for: most texts are printable.
_UNSAFE_LINE = f"[\x00-\x1f{_UNSAFE}]"
_UNSAFE_TEXT = f"[\x00-\x08\x0b-\x1f{_UNSAFE}]"
_UNSAFE_JSON = f"[{_UNSAFE}]"
_SURROGATE = "[\ud800-\udfff]"


def _picture(match: re.Match[str]) -> str:
    return CONTROL_TABLE[ord(match.group())]


def visible(text: str, *, newlines: bool = True) -> str:
    """The text with everything that could steer a terminal replaced by something to see.

    Args:
        text: Anything, of any length.
        newlines: Whether newline and tab stay; False for places of one line, where they become
            pictures as well.

    Returns:
        Text of the same length (design.md, Safety rules; terminal.md A9).
    """
    if text.isprintable():
        return text
    if text.isascii():
        return text.translate(TEXT_TABLE if newlines else CONTROL_TABLE)
    unsafe = _UNSAFE_TEXT if newlines else _UNSAFE_LINE
    return re.sub(unsafe, _picture, text)


def visible_json(document: str) -> str:
    """A JSON document with everything in its texts that could steer a terminal as `\\u009b`: it says the same."""
    return re.sub(_UNSAFE_JSON, lambda match: f"\\u{ord(match.group()):04x}", document)


LOOK_ALIKES = dict(
    zip(
        "аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЈЅԚԜӀαορνϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոɑɡ",
        "aeopcyxijshdqwlABEKMHOPCTYXIJSQWIaopvcjABEZHIKMNOPTYXouhnag",
        strict=True,
    )
)
"""Cyrillic, Greek and other letters that look like Latin ones."""


def seen(text: str) -> str:
    """The text as the eye has it: a blank for every kind of blank, without the characters that take no room
    (zero-width ones, soft hyphens, marks of byte order and direction), a Latin letter for those of other
    alphabets that look like it."""
    return text if text.isascii() else "".join(map(_as_seen, text))


def _as_seen(character: str) -> str:
    match unicodedata.category(character):
        case "Cf":
            return ""
        case "Zs":
            return " "
    return LOOK_ALIKES.get(character, character)


def unseen(expected: str, actual: str) -> str:
    """The characters that nobody sees or tells apart, in which alone two texts differ, by code and name;
    empty where they differ in more, or in nothing."""
    if (expected.isascii() and actual.isascii()) or expected == actual:
        return ""
    if len(expected) + len(actual) > _LONGEST or seen(expected) != seen(actual):
        return ""
    wanted, given = (Counter(c for c in text if _as_seen(c) != c) for text in (expected, actual))
    parts = [f"{_named(more)} in {where}" for more, where in (
        (given - wanted, "the answer"), (wanted - given, "what is expected"),
    ) if more]  # fmt: skip
    return " and ".join(parts) or f"{_named(given)} in another place"


def same_to_the_eye(expected: str, actual: str) -> str:
    """What alone sets apart two names that look the same, as it stands behind one of them; empty where they do not."""
    if expected == actual or (expected.isascii() and actual.isascii()):
        return ""
    if unicodedata.normalize("NFC", expected) == unicodedata.normalize("NFC", actual):
        return "with the same letters composed otherwise (Unicode normalisation)"
    apart = unseen(expected, actual)
    return f"with {apart}" if apart else ""


_LONGEST = 200_000
"""Characters of two texts that are looked through for what nobody sees."""


def _named(characters: Iterable[str]) -> str:
    shown = [f"U+{ord(one):04X} {unicodedata.name(one, '')}".rstrip() for one in characters]
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def clip(text: str, limit: int) -> str:
    """At most `limit` characters of the text, the last of them `…` where something was cut."""
    if len(text) <= limit:
        return text
    return text[: max(limit - 1, 0)] + "…" if limit > 0 else ""


def beginning(text: str, limit: int) -> str:
    """The first `limit` characters of a longer text, and how many more it has; `CUT_OFF` finds these words."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


CUT_OFF = re.compile(r"… \((?P<rest>[\d,]{1,15}) more characters\)\Z")
"""How a text ends of which `beginning` left something out."""


_PLAIN_NUMBER = r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?"


_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")


def no_formula(text: str) -> str:
    """The text as a cell of a CSV file that no spreadsheet runs: one that begins as a formula does (`=`, `+`,
    `-`, `@`, these in full width, a tab, the end of a line) and is no number gets an apostrophe before it."""
    if text[:1] in _FORMULA and not re.fullmatch(_PLAIN_NUMBER, text):
        return f"'{text}"
    return text


_HALVES = r"[\ud800-\udbff][\udc00-\udfff]"


def whole_characters(text: str) -> str:
    """The text with halves of characters that came in two pieces (JavaScript cuts texts between them) put together."""
    if text.isascii():
        return text
    return re.sub(_HALVES, lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def storable_text(text: str) -> str:
    """The text as valid Unicode: lone surrogates become U+FFFD, pairs become their character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return re.sub(_SURROGATE, REPLACEMENT, text)
    return text


def storable(value: Any) -> Any:
    """The value as one that JSON, SQLite and msgspec can hold; never raises.

    Lone surrogates become U+FFFD, NaN and the infinities their names as text, integers beyond 64
    bits their digits, tuples and sets lists, keys text, structs mappings, anything else `str(value)`. What is
    nested deeper than `MAX_DEPTH` becomes `…`.
    """
    return _storable(value, 0)


def _storable(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else _digits(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _name_of(value)
    if depth >= MAX_DEPTH:
        return "…"
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
        value = {name: item for name, item in value.items() if item is not msgspec.UNSET}
    if isinstance(value, Mapping):
        return {_key(key): _storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_storable(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    try:
        return storable_text(str(value))
    except Exception:
        return f"<{type(value).__name__}>"


def _key(key: Any) -> str:
    shown = _storable(key, MAX_DEPTH)
    if isinstance(shown, str):
        return shown
    return (
        {True: "true", False: "false", None: "null"}[shown]
        if shown is None or isinstance(shown, bool)
        else str(shown)
    )


def _name_of(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return hex(number)
