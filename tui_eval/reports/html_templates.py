"""The HTML pages' templates, `templates/*.html.j2`, filled in by jinja2.

Whatever a template puts out is foreign text unless it is markup of a template: `_shown` makes its controls
visible, cuts it, and autoescape makes it text. Templates have no way around that: no `safe`, no `autoescape`
block, and nothing here or in the pages' modules makes `Markup` of a text (tests/architecture/test_templates.py).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.guard.figures import usd
from tui_eval.guard.text import clip, visible
from tui_eval.store.summary import judges_of, share

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
LONGEST = 20_000
"""Characters of a text that a page shows."""


def render(name: str, **values: Any) -> str:
    """The page of a template."""
    return "".join(pieces(name, **values))


def pieces(name: str, **values: Any) -> Iterator[str]:
    """The page of a template piece by piece, as what it goes through is read. Text that no file can hold (half
    of a pair) is replaced."""
    return environment().get_template(name).generate(**values)


@cache
def environment() -> Environment:
    """The one environment of all pages."""
    from jinja2 import (  # imported late: start-up does not need it
        Environment,
        FileSystemLoader,
        StrictUndefined,
    )

    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters |= {
        "as_text": as_text,
        "clip": lambda text, limit: clip(str(text), limit),
        "thousands": lambda number: f"{number:,}",
        "whole": lambda number: f"{number:,.0f}",
        "percent": share,
        "seconds": seconds,
        "dollars": dollars,
        "judges": lambda used: judges_of(
            used["tokens"], used["cost"], used.get("cached", 0), used.get("saved")
        ),
        "minute": minute,
    }
    return found


def _shown(value: Any) -> Any:
    """A value as a template puts it out, before it is escaped; markup of a template stays markup."""
    if type(value) is str:
        return visible(value if len(value) <= LONGEST else clip(value, LONGEST))
    if hasattr(value, "__html__"):
        return type(value)(visible(value))
    return visible(clip(str(value), LONGEST))


def as_text(value: Any) -> str:
    """A value as text: a text as it is, else indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def seconds(milliseconds: float | None) -> str:
    """A duration; empty where it is not known."""
    return "" if milliseconds is None else f"{milliseconds / 1000:,.2f} s"


def dollars(cost: float | None) -> str:
    """USD with four digits; empty where it is not known."""
    return "" if cost is None else usd(cost)


def minute(at: float) -> str:
    """A point in time (seconds since the epoch) to the minute, in local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
