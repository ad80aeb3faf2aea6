"""Shorthands of these tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tui_eval.formats.promptfoo.read.render import RenderError, resolve_case
from tui_eval.formats.reading import problems_of
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Problem, Suite

Make = Callable[..., Suite]


def errors(suite: Suite) -> list[Problem]:
    """The problems that are no notes."""
    return [p for p in problems_of(suite) if p.level == "error"]


def texts(suite: Suite, folder: Path) -> list[str]:
    """The rendered prompt of each case, or why there is none."""
    result: list[str] = []
    for case in suite.cases:
        try:
            found = resolve_case(case, folder, folder, Trust(), env=suite.settings.get("env"))
            result.append(found.prompt)
        except (RenderError, NeedsTrust) as error:
            result.append(str(error))
    return result
