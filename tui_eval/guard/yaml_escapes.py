"""Characters that JSON writes as two escapes (`\\ud83d\\ude00`), which js-yaml reads and libyaml refuses."""

from __future__ import annotations

import re

import yaml

MOST_MENDED = 50
"""Texts of one document that are mended; each costs reading the document again."""

_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def joined_pairs(text: str, error: yaml.MarkedYAMLError) -> str | None:
    """The document with such pairs as one escape each, within the quoted text that was refused for them;
    None where something else is wrong."""
    begin = error.context_mark
    if begin is None or "Unicode character escape" not in (error.problem or ""):
        return None
    lines = text.split("\n", begin.line)
    at = sum(len(line) + 1 for line in lines[: begin.line]) + begin.column
    quoted = _QUOTED.search(text, at)
    if quoted is None:
        return None
    joined = _PAIR.sub(_one, quoted[0])
    return None if joined == quoted[0] else text[: quoted.start()] + joined + text[quoted.end() :]


def _one(pair: re.Match[str]) -> str:
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"
