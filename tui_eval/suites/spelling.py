"""Slips of known keys, as all readers tell them; it lives in `guard`, where configuration uses it too."""

from tui_eval.guard.spelling import close_to

__all__ = ["close_to"]
