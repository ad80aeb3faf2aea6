"""Faster painting in tests: the app's ten frames a second would make each key press wait for one."""

from __future__ import annotations

import os

os.environ.setdefault("TEXTUAL_FPS", "60")
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
