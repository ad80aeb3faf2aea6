"""The mouse taken from the terminal, or left to it: clicks and the wheel, not every move of the pointer.

Textual asks for each move too, which over a slow line is many bytes for nothing; and it asks once, at the start.
"""

from __future__ import annotations

from typing import Any

from textual.app import App

ON = "\x1b[?1003l\x1b[?1000h\x1b[?1006h"
"""Buttons and wheel, places beyond column 223; moves are let go, which Textual asks for after a suspension."""
OFF = "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"


def take_mouse(app: App[Any], wanted: bool) -> None:
    """Ask the terminal for clicks and the wheel, or leave them to it."""
    driver = app._driver
    if driver is None:
        return
    # Where this is set, Textual lets the mouse go when the terminal is left, and takes it again afterwards.
    driver._mouse = wanted
    if not driver.is_headless:
        driver.write(ON if wanted else OFF)
        driver.flush()
