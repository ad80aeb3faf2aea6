"""The app: state (pure values), widgets that draw it, screens that connect them.

The slow-line profile is the default: ten frames a second and no animation. Textual reads both from
the environment when it is first imported, so they are set here, before any module of ours that
imports it. `TUI_EVAL_LOCAL=1` (which `--local` sets) leaves Textual's own values.
"""

from __future__ import annotations

import os

if not os.environ.get("TUI_EVAL_LOCAL"):
    os.environ.setdefault("TEXTUAL_FPS", "10")
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
