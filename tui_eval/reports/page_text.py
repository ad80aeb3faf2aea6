"""Foreign text on the HTML pages: controls visible, nothing in it markup."""

from __future__ import annotations

import html
import json
from typing import Any

from tui_eval.guard.text import clip, visible

LONGEST = 20_000
"""Characters of a text that a page shows."""


def safe(text: object, limit: int = LONGEST) -> str:
    """Foreign text as HTML."""
    return html.escape(visible(clip(str(text), limit)))


def text_of(value: Any) -> str:
    """A value as text: a text as it is, else indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)
