"""Why an attempt could not go on."""

from __future__ import annotations


class AttemptFailed(Exception):
    """The attempt cannot go on; the text is its error, and its transcript says so already."""


def reason_of(failure: Exception) -> str:
    """One line. Our own exceptions are one; those of templates and of promptfoo's suites are told by where
    they come from, since importing them costs each run 20 ms."""
    ours = type(failure).__module__.startswith("tui_eval.")
    return str(failure) if ours else f"{type(failure).__name__}: {failure}"
