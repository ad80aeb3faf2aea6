"""Whether code and secrets of a folder may be used, and the error that says what needs it."""

from __future__ import annotations

from dataclasses import dataclass, field


class NeedsTrust(Exception):
    """Something a suite wants is only done where the person trusts its folder."""

    def __init__(self, what: str) -> None:
        super().__init__(f"needs trust: {what} (run with --trust, or trust the folder in the app)")
        self.what = what


@dataclass(slots=True)
class Trust:
    """The answer to "may suites of this folder run code?", and what asked for it so far."""

    granted: bool = False
    wanted: list[str] = field(default_factory=list)

    def require(self, what: str) -> None:
        """Raise `NeedsTrust` naming `what` unless the person granted trust."""
        if self.granted:
            return
        if what not in self.wanted:
            self.wanted.append(what)
        raise NeedsTrust(what)
