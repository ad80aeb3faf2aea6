"""What every screen of the app offers to the app."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from textual import on
from textual.events import ScreenResume, ScreenSuspend
from textual.screen import Screen
from textual.widget import Widget

from tui_eval.tui.background import stands
from tui_eval.tui.front import RunsMeant
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import KEYS, Key
from tui_eval.tui.screens.prompt import Prompt, Prompts
from tui_eval.tui.services import AppServices, HasServices
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import TreeLine
from tui_eval.tui.widgets.bars import KeyHints


class Place(Screen[Any]):
    """A screen that the person goes to, with a case in front or none. It answers all that controllers ask of
    the screen in front (`front.Front`), for one without cases."""

    TITLE = ""
    KEY_SECTIONS: tuple[tuple[str, tuple[Key, ...]], ...] = ()
    """Sections of `?`: a heading and the keys under it, besides those that work everywhere."""

    kind: str = ""
    lists_cases: bool = False
    compares: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.prompts = Prompts(self, self.focus_home)

    @property
    def one_column(self) -> bool:
        """Whether keys mean the column that is shown alone, whatever others the case has."""
        return False

    @property
    def services(self) -> AppServices:
        """What it may use of the app that it stands in."""
        return cast("HasServices", self.app).services

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do, by their ids, besides what its widgets and its own actions do."""
        return {}

    def on_compose(self) -> None:
        """The classes of its size, which Textual gives it with the first word of that: after the first frame."""
        size = self.app.size
        for length, points in (
            (size.width, self.HORIZONTAL_BREAKPOINTS),
            (size.height, self.VERTICAL_BREAKPOINTS),
        ):
            self.add_class(*self._get_breakpoint_classes(length, points or []))

    def focus_home(self) -> None:
        """Give the keys to what has them when nothing else is asked or looked at."""

    @on(ScreenSuspend)
    @on(ScreenResume)
    def _left_or_back(self) -> None:
        """Below a question no key is named: none would come here."""
        for hints in self.query(KeyHints):
            hints.refresh()

    @on(Prompt.Typed)
    def _prompt_typed(self, event: Prompt.Typed) -> None:
        self.prompts.typed(event)

    @on(Prompt.Left)
    def _prompt_left(self, event: Prompt.Left) -> None:
        self.prompts.left(event)

    def has(self, *selectors: str | type[Widget]) -> bool:
        """Whether these widgets are there: not before the screen is mounted, nor while it is taken away, when
        what a thread read may still come."""
        return stands(self) and all(bool(self.query(selector)) for selector in selectors)

    def current(self) -> CasePointer | None:
        """The case under the cursor, or looked at."""
        return None

    def all_current(self) -> Sequence[CasePointer]:
        """What `current` is, alone."""
        pointer = self.current()
        return [pointer] if pointer is not None else []

    def go_to(self, pointer: CasePointer) -> None:
        """Bring this case under the cursor, or show it."""

    def back(self) -> bool:
        """One step back inside this screen: out of its prompt; False where there is none."""
        return self.prompts.leave()

    def place_to_edit(self) -> tuple[str, int] | None:
        """Nothing that is looked at points to a line."""
        return None

    def notice(self, words: str) -> bool:
        """Say these words where nothing is covered, in the footer; False where there is no room for them."""
        return self.has(KeyHints) and self.query_one(KeyHints).say(words)

    def judge_again(self) -> bool:
        """No attempt of its own is looked at."""
        return False

    def runs_meant(self) -> RunsMeant | None:
        """No runs are listed."""
        return None

    def shown_entries(self) -> Sequence[CaseRow]:
        """No cases are listed."""
        return ()

    def marked_entries(self) -> Sequence[CaseRow]:
        """None of them is marked."""
        return ()

    def marked(self) -> Collection[str]:
        """None of them is marked."""
        return ()

    def unmark(self) -> None:
        """Drop the marks."""

    def line_under_cursor(self) -> TreeLine | None:
        """There are no lines."""
        return None

    def cases_under_cursor(self) -> Sequence[CaseRow]:
        """There are no cases."""
        return ()

    def neighbour(self, pointer: CasePointer | None, step: int, only_failing: bool) -> CasePointer | None:
        """There is no further case."""
        return None

    def other_failing(self, pointer: CasePointer | None) -> bool:
        """There is no further case."""
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
