"""Prompts that are lists of chat messages, as JSON or as YAML."""

from __future__ import annotations

import json
from typing import Any

from tui_eval.javascript import values as js
from tui_eval.yaml import yaml_lines


def chat_messages(prompt: str) -> list[dict[str, Any]] | None:
    """The chat messages that a prompt is, in JSON or in YAML (`- role: …`); None if it is text."""
    plain = js.trim(prompt)
    if plain.startswith("["):
        try:
            value = json.loads(plain)
        except (ValueError, RecursionError):
            return None
    elif plain.startswith("- role:"):
        value = yaml_lines.load(plain, "prompt", core=True).value
    else:
        return None
    if not isinstance(value, list) or not value:
        return None
    usable = all(isinstance(m, dict) and isinstance(m.get("role"), str) and "content" in m for m in value)
    return value if usable else None
