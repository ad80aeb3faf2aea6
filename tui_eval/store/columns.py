"""In whose column of a promptfoo suite a case stands."""

from __future__ import annotations

from tui_eval.model import Case


def column_agent(case: Case, agent: str) -> str:
    """The provider of a case's column: `agent`, which it was run with, but of a row with a provider of its
    own the one whose column it stays in (formats/promptfoo.md 3). `--agent` replaces both."""
    return case.column if case.column and agent == case.agent else agent
