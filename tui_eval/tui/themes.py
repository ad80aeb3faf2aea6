"""Our own colours: quiet greys, colour only where it means something."""

from __future__ import annotations

import os

from textual.theme import Theme

DARK = Theme(
    name="tui-eval",
    primary="#7aa2f7",
    secondary="#9d8cd8",
    accent="#7dcfff",
    foreground="#c8ccd4",
    background="#15171c",
    surface="#1b1e25",
    panel="#20242c",
    success="#8fc77b",
    warning="#e0af68",
    error="#f0717b",
    dark=True,
)
LIGHT = Theme(
    name="tui-eval-light",
    primary="#2e5cc5",
    secondary="#6b4bb8",
    accent="#0f7490",
    foreground="#24292f",
    background="#fbfbfa",
    surface="#f1f1ef",
    panel="#e8e8e5",
    success="#2d7a37",
    warning="#8a5a00",
    error="#b3261e",
    dark=False,
)


def first_theme(remembered: str = "", *, no_color: bool = False) -> str:
    """The theme to begin with: the terminal's own colours under NO_COLOR, else the one chosen last
    (or `TEXTUAL_THEME`), else ours."""
    if no_color:
        return "ansi-dark"
    return os.environ.get("TEXTUAL_THEME", "").split(",")[0] or remembered or DARK.name
