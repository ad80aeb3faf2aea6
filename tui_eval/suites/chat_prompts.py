"""Prompts that are lists of chat messages, as JSON or as YAML."""

from __future__ import annotations

import json
import re
from typing import Any

from tui_eval.javascript import values as js
from tui_eval.yaml import yaml_lines

_ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))


def chat_messages(prompt: str) -> list[dict[str, Any]] | None:
    """The chat messages that a prompt is, in JSON or in YAML (`- role: …`); None if it is text. Beside messages there
    may be items of a responses API, calls and their results, which have no role."""
    plain = js.trim(prompt)
    if plain.startswith("["):
        try:
            value = json.loads(plain)
        except (ValueError, RecursionError):
            return None
    elif plain.startswith("- role:"):
        value = yaml_lines.load(prompt, "prompt", core=True).value
    else:
        return None
    if not isinstance(value, list) or not value:
        return None
    usable = all(map(_is_message, value)) and any("role" in one for one in value)
    return value if usable else None


def _is_message(one: Any) -> bool:
    if not isinstance(one, dict):
        return False
    if "role" not in one:
        return isinstance(one.get("type"), str)
    # What only calls tools has no content; of other lists a role may be anything's.
    return isinstance(one["role"], str) and ("content" in one or one["role"] in _ROLES)


def broken_chat(prompt: str) -> str:
    """What is wrong with a prompt that is written as JSON or as messages in YAML and is neither, since what was
    filled in broke it; empty where nothing is, or it is a text. promptfoo asks no chat model such a one."""
    plain = js.trim(prompt)
    if plain.startswith("- role:"):
        found = yaml_lines.load(prompt, "prompt", core=True).problems
        return f"{found[0].message}, line {found[0].line}" if found else ""
    if not (
        (plain.startswith("{") and plain.endswith("}")) or (re.match(_LIST, plain) and plain.endswith("]"))
    ):
        return ""
    try:
        json.loads(prompt, parse_constant=_no_constant)
    except RecursionError:
        return ""
    except ValueError as error:
        return f"not valid JSON: {error}"
    return ""


_LIST = r"\[\s*(?:[\"{\[\d\]-]|true|false|null)"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value of JSON")
