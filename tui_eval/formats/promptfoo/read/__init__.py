"""promptfoo suites (seed 002; formats/promptfoo.md): `promptfooconfig.*`, unmodified.

One case is a test × a combination of its vars × a provider × a prompt; a repeat is an attempt.
`render.resolve_case` makes the prompt of one attempt from what the reader leaves as it stands.

May not: judge, ask providers, run anything without trust.
"""

from __future__ import annotations

from tui_eval.config.project import Config
from tui_eval.formats.promptfoo.read.suite_file import ENDINGS, meant, recognises
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite

__all__ = ["ENDINGS", "meant", "read", "recognises"]


def read(path: str, text: str, config: Config, trust: Trust) -> Suite:
    """Read a suite; `path` is from the project root. Never raises for content."""
    from tui_eval.formats.promptfoo.read import promptfoo_config as reader

    return reader.read(path, text, config, trust)
