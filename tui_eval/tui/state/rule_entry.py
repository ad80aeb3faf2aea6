"""An entry of `suites:` put into the text of a tui_eval.yaml, comments and layout kept. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_SUITES = re.compile(r"^suites[ \t]*:[ \t]*(?P<rest>[^\n]*)$", re.MULTILINE)


class RuleEntryError(ValueError):
    """The file cannot take the entry; one line."""


def added(config_text: str, rule: Mapping[str, str]) -> str:
    """The text with this rule as the first of `suites:`, since the first that matches counts.

    Raises:
        RuleEntryError: its `suites:` is written in a way that a line cannot be added to.
    """
    newline = "\r\n" if "\r\n" in config_text else "\n"
    line = "- {" + ", ".join(f"{key}: {_scalar(value)}" for key, value in rule.items()) + "}"
    found = _SUITES.search(config_text)
    if found is None:
        gap = "" if not config_text or config_text.endswith("\n") else newline
        result = f"{config_text}{gap}{newline}suites:{newline}  {line}{newline}"
    else:
        rest = found.group("rest").strip()
        if rest and not rest.startswith("#"):
            raise RuleEntryError("its suites: stand on one line")
        after = config_text[found.end() :]
        item = re.search(r"^([ \t]*)-", after, re.MULTILINE)
        indent = item.group(1) if item else "  "
        head = config_text[: found.end()].rstrip("\r")
        result = f"{head}{newline}{indent}{line}{newline}{after.lstrip(chr(13)).removeprefix(chr(10))}"
    _check(result, rule)
    return result


def _check(text: str, rule: Mapping[str, str]) -> None:
    """The file must say what is meant."""
    import yaml

    try:
        values: Any = yaml.safe_load(text)
        fine = isinstance(values, dict) and dict(rule) in values["suites"]
    except (yaml.YAMLError, KeyError, TypeError, RecursionError):
        fine = False
    if not fine:
        raise RuleEntryError("it cannot take an entry of suites: as it is")


def _scalar(text: str) -> str:
    """A YAML scalar: plain where that is safe, else quoted as JSON."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", text) and text.lower() not in (
        "null", "true", "false", "yes", "no", "on", "off", "y", "n",
    ):  # fmt: skip
        return text
    return json.dumps(text)
