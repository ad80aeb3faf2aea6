"""The app: state (pure values), widgets that draw it, screens that connect them.

The slow-line profile is the default: thirty frames a second and no animation. Textual reads both
from the environment when it is first imported, so they are set here, before any module of ours that
imports it. `TUI_EVAL_LOCAL=1` (which `--local` sets) leaves Textual's own values.

What streams is painted ten times a second because its news come so (`loaders.follower`), not by the frame
rate: at ten frames a second a key pressed shortly after another waits up to 100 ms for its paint
(median 40 to 97 ms measured, at thirty 3 ms), and 16 streams cost the same 14 kB/s at 10, 30 and 60.

May not: judge, ask agents, or do anything but draw on its loop; the engine is asked through its client.
"""

from __future__ import annotations

import os

if not os.environ.get("TUI_EVAL_LOCAL"):
    os.environ.setdefault("TEXTUAL_FPS", "30")
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
