"""An agent's entry for `tui_eval.yaml`, made of what a person types, and put into the file's text so that
comments and layout stay. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

HINT = "openai:MODEL · anthropic:MODEL · http://host/v1 MODEL · http://host/path · FILE.py:function · echo"
_ENTRY = re.compile(r"^agents[ \t]*:[ \t]*(?P<rest>[^\n]*)$", re.MULTILINE)


class AgentEntryError(ValueError):
    """What was typed names no agent, or the file cannot take it; one line."""


def entry_for(text: str) -> dict[str, str]:
    """The keys of an agent's entry.

    Raises:
        AgentEntryError: with the forms there are.
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
    raise AgentEntryError(f"not an agent: {HINT}")


def added(config_text: str, name: str, entry: dict[str, str]) -> str:
    """The text of a tui_eval.yaml (empty: a new file) with one more agent.

    Raises:
        AgentEntryError: its `agents:` is written in a way that a line cannot be added to.
    """
    newline = "\r\n" if "\r\n" in config_text else "\n"
    pairs = ", ".join(f"{key}: {_scalar(value)}" for key, value in entry.items())
    line = f"{_scalar(name)}: {{{pairs}}}"
    found = _ENTRY.search(config_text)
    if found is None:
        gap = "" if not config_text or config_text.endswith("\n") else newline
        result = f"{config_text}{gap}agents:{newline}  {line}{newline}"
    else:
        rest = found.group("rest").strip()
        if rest and not rest.startswith("#"):
            raise AgentEntryError("agents: stands on one line in tui_eval.yaml; add the agent there with E")
        after = config_text[found.end() :]
        deeper = re.search(r"^([ \t]+)[^\s#]", after, re.MULTILINE)
        indent = deeper.group(1) if deeper else "  "
        result = f"{config_text[: found.end()].rstrip(chr(13))}{newline}{indent}{line}{newline}{after.lstrip(chr(13)).removeprefix(chr(10))}"
    _check(result, name, entry)
    return result


def _check(text: str, name: str, entry: dict[str, str]) -> None:
    """The file must say what is meant."""
    import yaml

    try:
        values: Any = yaml.safe_load(text)
        fine = isinstance(values, dict) and values["agents"][name] == entry
    except (yaml.YAMLError, KeyError, TypeError, RecursionError):
        fine = False
    if not fine:
        raise AgentEntryError("tui_eval.yaml cannot take the agent as it is; add it by hand with E")


def _scalar(text: str) -> str:
    """A YAML scalar: plain where that is safe, else quoted as JSON."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", text) and text.lower() not in (
        "null", "true", "false", "yes", "no", "on", "off", "y", "n",
    ):  # fmt: skip
        return text
    return json.dumps(text)
