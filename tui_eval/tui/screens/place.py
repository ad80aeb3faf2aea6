"""What every screen of the app offers to the app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen
from textual.widget import Widget

from tui_eval.tui.background import stands
from tui_eval.tui.keys import KEYS, Key
from tui_eval.tui.pointer import CasePointer

if TYPE_CHECKING:
    from tui_eval.tui.app import EvalApp


class Place(Screen[Any]):
    """A screen that the person goes to, with a case in front or none."""

    TITLE = ""
    KEY_SECTIONS: tuple[tuple[str, tuple[Key, ...]], ...] = ()
    """Sections of `?`: a heading and the keys under it, besides those that work everywhere."""

    @property
    def eval_app(self) -> EvalApp:
        """The app, with its own type."""
        return cast("EvalApp", self.app)

    def has(self, *selectors: str | type[Widget]) -> bool:
        """Whether these widgets are there: not before the screen is mounted, nor while it is taken away, when
        what a thread read may still come."""
        return stands(self) and all(bool(self.query(selector)) for selector in selectors)

    def current(self) -> CasePointer | None:
        """The case under the cursor, or looked at."""
        return None

    def go_to(self, pointer: CasePointer) -> None:
        """Bring this case under the cursor, or show it."""

    def back(self) -> bool:
        """One step back inside this screen; False where there is none."""
        return False

    def notice(self, words: str) -> bool:
        """Say these words where nothing is covered; False where there is no room for them."""
        return False

    def hints(self) -> Sequence[Key]:
        """The footer's keys, at most seven."""
        return [key for key in KEYS if key.label]


def keys_of(*ids: str) -> list[Key]:
    """Rows of the key table by their ids."""
    table = {key.id: key for key in KEYS}
    return [table[name] for name in ids]


def labelled(keys: Sequence[Key], name: str, label: str) -> list[Key]:
    """The same rows, that of this id with other words for the footer."""
    return [replace(key, label=label) if key.id == name else key for key in keys]


def keys_in(*places: str) -> tuple[Key, ...]:
    """Rows of the key table by place."""
    return tuple(key for key in KEYS if key.place in places)
