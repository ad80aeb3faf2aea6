"""A reply's metadata where the text carries it: a fenced JSON object at its end."""

from __future__ import annotations

import re
from typing import Any

from tui_eval.agents.loose_json import decode

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(?P<object>\s*\{.*\})\s*\n?```\s*\Z", re.DOTALL | re.IGNORECASE)
_OPENING = re.compile(r"```(?:json)?[ \t]*\n", re.IGNORECASE)


def split_metadata(text: str) -> tuple[str, dict[str, Any] | None]:
    """The text without the object, and the object; (text, None) where there is none."""
    if not text.rstrip().endswith("```"):
        return text, None
    starts = [match.start() for match in _OPENING.finditer(text)]
    for start in reversed(starts):
        match = _FENCED.match(text, start)
        if match is None:
            continue
        try:
            value = decode(match["object"])
        except ValueError:
            continue
        if isinstance(value, dict):
            return text[:start].rstrip(), value
    return text, None
