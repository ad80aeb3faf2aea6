"""Whether a person has seen the tour: once for all projects, in the person's state folder."""

from __future__ import annotations

import os

from tui_eval.guard.trust_store import state_home


def is_wanted() -> bool:
    """Whether this is the very first start. Who has used the app before has been remembered by it; `TUI_EVAL_TOUR=0`
    says no, where nothing is remembered from one start to the next."""
    if os.environ.get("TUI_EVAL_TOUR") == "0":
        return False
    home = state_home()
    try:
        return not (home / "tour").exists() and not (home / "places").exists()
    except OSError:
        return False


def seen() -> None:
    """It has been seen; nothing is said where that cannot be written."""
    home = state_home()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "tour").touch(mode=0o600)
    except OSError:
        return
