"""Which files are configurations of promptfoo."""

from __future__ import annotations

import re
from pathlib import Path

ENDINGS = (".yaml", ".yml", ".json", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts")

_TOP = re.compile(r"""^["']?(prompts|providers|targets|tests|scenarios)["']?[ \t]*:""", re.MULTILINE)


def recognises(path: Path, text: str) -> bool:
    """A file called `promptfooconfig…`, or YAML with prompts, providers and tests side by side."""
    if path.suffix.lower() not in ENDINGS:
        return False
    if path.name.startswith("promptfooconfig"):
        return True
    if path.suffix not in (".yaml", ".yml"):
        return False
    keys = set(_TOP.findall(text))
    return "prompts" in keys and bool(keys & {"providers", "targets"}) and bool(keys & {"tests", "scenarios"})


def has_its_keys(text: str) -> bool:
    """Whether any of promptfoo's own keys stands at the beginning of a line."""
    return _TOP.search(text) is not None
