"""`.env` files: names and values for templates and providers (formats/promptfoo.md 7.3)."""

from __future__ import annotations

import re

_LINE = re.compile(
    r"""
    ^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*(?:=[ \t]*|:[ \t]+)
    (?:'((?:\\'|[^'])*)'|"((?:\\"|[^"])*)"|`((?:\\`|[^`])*)`|([^\#\r\n]*))?
    [ \t]*(?:\#[^\r\n]*)?$
    """,
    re.VERBOSE | re.MULTILINE,
)


def parse(text: str) -> dict[str, str]:
    """The names and values of a `.env` file.

    As dotenv reads it: `#` begins a comment outside quotes, `export` is allowed, values may be in
    `'`, `"` or backquotes and span lines; only within `"` do `\\n` and `\\r` mean line breaks.
    """
    result: dict[str, str] = {}
    for found in _LINE.finditer(text.replace("\r\n", "\n").replace("\r", "\n")):
        name, single, double, back, plain = found.groups()
        if double is not None:
            value = double.replace("\\n", "\n").replace("\\r", "\r")
        elif single is not None or back is not None:
            value = single if single is not None else back
        else:
            value = (plain or "").strip()
        result[name] = value
    return result
