"""An entry put below a key of `tui_eval.yaml`, as one line: comments and layout of the file stay as they are.
That of an agent is made of what a person types."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

HINT = "openai:MODEL · anthropic:MODEL · http://host/v1 MODEL · http://host/path · FILE.py:function · echo"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS_OF_YAML = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


class EntryError(ValueError):
    """What was typed names no agent, or the file cannot take the entry; one line, for a text that names the file."""


def entry_for(text: str) -> dict[str, str]:
    """The keys of an agent's entry.

    Raises:
        EntryError: with the forms there are.
    """
    text = text.strip()
    kind, colon, rest = text.partition(":")
    if text == "echo":
        return {"type": "echo"}
    if text.startswith(("http://", "https://")):
        # A server that speaks a model's protocol has its version as the last part of the path.
        url, _, model = text.partition(" ")
        if re.search(r"/v\d+/?$", url):
            entry = {"type": "openai", "base_url": url}
            return {**entry, "model": model.strip()} if model.strip() else entry
        return {"type": "http", "url": text}
    if kind in ("openai", "anthropic") and colon and rest.strip():
        return {"type": kind, "model": rest.strip()}
    if kind.endswith(".py") and colon and rest.strip().isidentifier():
        return {"type": "python", "function": text}
    if kind == "scripted" and rest.strip():
        return {"type": "scripted", "script": rest.strip()}
    raise EntryError(f"not an agent: {HINT}")


def with_agent(text: str, name: str, entry: Mapping[str, str]) -> str:
    """The text of a tui_eval.yaml (empty: a new file) with one more agent.

    Raises:
        EntryError: its `agents:` is written in a way that a line cannot be added to.
    """
    line = f"{scalar(name)}: {_mapping(entry)}"
    return _with_line(text, "agents", line, lambda before: {**(before or {}), name: dict(entry)})


def with_rule(text: str, rule: Mapping[str, str]) -> str:
    """The text with this rule as the first of `suites:`, since the first that matches counts.

    Raises:
        EntryError: its `suites:` is written in a way that a line cannot be added to.
    """
    return _with_line(text, "suites", f"- {_mapping(rule)}", lambda before: [dict(rule), *(before or [])])


def scalar(text: str) -> str:
    """A YAML scalar: plain where that is safe, else quoted as JSON."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML else json.dumps(text)


def _mapping(entry: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {scalar(value)}" for key, value in entry.items()) + "}"


def _with_line(text: str, key: str, line: str, meant: Callable[[Any], Any]) -> str:
    """The text with a line as the first below a key; `meant` makes of what the key has what it is to have. Nothing
    else may change: a second `agents:` would hide the first."""
    newline = "\r\n" if "\r\n" in text else "\n"
    found = re.search(rf"^\ufeff?([\"']?){key}\1[ \t]*:[ \t]*(?P<rest>[^\n]*)$", text, re.MULTILINE)
    if found is None:
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        result = f"{text}{gap}{key}:{newline}  {line}{newline}"
    else:
        rest = found["rest"].strip()
        if rest and not rest.startswith("#"):
            raise EntryError(f"its {key}: stand on one line")
        head, after = text[: found.end()].rstrip("\r"), text[found.end() :]
        result = f"{head}{newline}{_indent(after, line)}{line}{newline}{after.lstrip(chr(13)).removeprefix(chr(10))}"
    if not _means(text, result, key, meant):
        raise EntryError(f"it cannot take an entry of {key}: as it is")
    return result


def _indent(after: str, line: str) -> str:
    """How far in the entries below a key stand; those of a list may stand as far out as the key."""
    beside = re.search(r"^([ \t]*)-" if line.startswith("-") else r"^([ \t]+)[^\s#]", after, re.MULTILINE)
    return beside[1] if beside else "  "


def _means(text: str, result: str, key: str, meant: Callable[[Any], Any]) -> bool:
    import yaml  # late: what opens the app needs none of it

    try:
        before = yaml.safe_load(text) or {}
        return yaml.safe_load(result) == {**before, key: meant(before.get(key))}
    except (yaml.YAMLError, AttributeError, LookupError, TypeError, RecursionError):
        return False
