"""promptfoo suites (seed 002; formats/promptfoo.md): `promptfooconfig.*`, unmodified.

One case is a test × a combination of its vars × a provider × a prompt; a repeat is an attempt.
`render.resolve_case` makes the prompt of one attempt from what the reader leaves as it stands.
"""

from __future__ import annotations

import re
from pathlib import Path

from tui_eval.config import Config
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite

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


def read(path: str, text: str, config: Config, trust: Trust) -> Suite:
    """Read a suite; `path` is from the project root. Never raises for content."""
    from tui_eval.suites.promptfoo import config as reader

    return reader.read(path, text, config, trust)
