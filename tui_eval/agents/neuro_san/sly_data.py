"""Sly data is private to the networks: what is kept of an exchange is kept without it.

The reply has what came back, and the suite what was sent (design, "Safety rules").
"""

from __future__ import annotations

import re
from typing import Any

from tui_eval.agents.loose_json import decode, encode

HELD_BACK = "••• (sly data)"

_KEY = re.compile(r'(?<!\\)"sly_data"\s*:')


def without_sly_data(text: str) -> str:
    """A body as it is kept: the value of every key `sly_data` replaced in JSON, in lines of JSON, and in
    events whose data is JSON. Of what is no JSON (cut in its middle) the line ends where one begins."""
    if '"sly_data"' not in text or not _KEY.search(text):
        return text
    whole = _told(text)
    if whole is not None:
        return whole
    return "\n".join(_line(line) for line in text.split("\n"))


def _line(line: str) -> str:
    found = _KEY.search(line)
    if not found:
        return line
    start = line.find("{") if line.startswith("data:") else 0
    told = _told(line[max(start, 0) :])
    if told is not None:
        return line[: max(start, 0)] + told
    return f'{line[: found.start()]}"sly_data": "{HELD_BACK}"…'


def _told(text: str) -> str | None:
    try:
        value = decode(text)
    except ValueError:
        return None
    return encode(_public(value)).decode()


def _public(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: HELD_BACK if key == "sly_data" and item else _public(item) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_public(item) for item in value]
    return value
