"""From place to place: screens, the next case, help, log, one step back."""

from __future__ import annotations

import time
from typing import Any

from textual.screen import ModalScreen, Screen

from tui_eval.guard.text import clip, visible
from tui_eval.tui.app_base import AppBase
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.help import PaperScreen, help_paragraphs
from tui_eval.tui.screens.list_place import ListPlace
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.settings_place import SettingsScreen
from tui_eval.tui.screens.suites_screen import SuitesScreen


class Navigation(AppBase):
    """The way from place to place. A new screen's `action_show_…` belongs here."""

    @property
    def suites_screen(self) -> SuitesScreen:
        """The first screen."""
        return next(screen for screen in self.screen_stack if isinstance(screen, SuitesScreen))

    @property
    def list_in_front(self) -> ListPlace | None:
        """The list one is in, or came from."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, ListPlace)), None)

    def pointer(self) -> CasePointer | None:
        """The case that keys mean."""
        current = getattr(self.screen, "current", None)
        return current() if current is not None else None

    def open_case(self, pointer: CasePointer) -> None:
        """Show a case in the inspector."""
        from tui_eval.tui.screens.case_screen import CaseScreen

        self.push_screen(CaseScreen(pointer))

    def open_case_id(self, case_id: str) -> None:
        """Bring a case of the suites under the cursor, and show it."""
        self.action_show_suites()
        place = self.suites_screen
        if case_id not in {entry.case_id for entry in place.shown_entries()}:
            place.set_filter("", at_once=True)
        place.go_to(CasePointer(case_id))
        pointer = place.current()
        if pointer is not None:
            self.open_case(pointer)

    def navigate(self, step: int, failing: bool = True) -> CasePointer | None:
        """The next (-1: previous) case, or failing case, from where one is; moves the list's cursor."""
        place = self.list_in_front
        if place is None:
            return None
        target = place.neighbour(self.pointer(), step, failing)
        if target is not None:
            place.go_to(target)
        return target

    def action_failure(self, step: int) -> None:
        """To the next failing case."""
        self._go(self.navigate(step, True), "nothing failed here")

    def action_neighbour(self, step: int) -> None:
        """To the next case."""
        self._go(self.navigate(step, False), "no further case")

    def _go(self, target: CasePointer | None, otherwise: str) -> None:
        if target is None:
            self.say(otherwise)
        elif not isinstance(self.screen, ListPlace):
            go_to = getattr(self.screen, "go_to", None)
            if go_to is not None:
                go_to(target)

    def action_show_run(self) -> None:
        """The live run."""
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                self._back_to(screen)
                return
        self._back_to(self.suites_screen)
        self.push_screen(RunScreen())

    def action_show_suites(self) -> None:
        """All suites."""
        self._back_to(self.suites_screen)

    def _back_to(self, target: Screen[Any]) -> None:
        while self.screen is not target and len(self.screen_stack) > 1:
            self.pop_screen()

    def action_show_help(self) -> None:
        """Keys of this place."""
        screen = self.screen
        if isinstance(screen, PaperScreen) and not isinstance(screen, SettingsScreen):
            self.pop_screen()
            return
        sections = getattr(screen, "KEY_SECTIONS", None) or getattr(screen, "HELP", None) or ()
        name = getattr(screen, "TITLE", None) or "this place"
        self.push_screen(
            PaperScreen(f"Help: {name}", lambda: help_paragraphs(str(name), sections, self.symbols))
        )

    def action_show_log(self) -> None:
        """Errors with details."""
        if not isinstance(self.screen, PaperScreen):
            self.push_screen(PaperScreen("Log", self._log_paragraphs))

    def action_show_settings(self) -> None:
        """The person's settings."""
        if not isinstance(self.screen, SettingsScreen):
            self.push_screen(SettingsScreen())

    def action_other_theme(self) -> None:
        """The themes by name; the one chosen comes back the next time."""
        self.search_themes()

    def _log_paragraphs(self) -> list[tuple[str, str]]:
        shown: list[tuple[str, str]] = []
        for at, level, text in reversed(self.log_lines):
            when = time.strftime("%H:%M:%S", time.localtime(at))
            first, *rest = visible(clip(text, 4000)).split("\n")
            style = "key-bad" if level == "error" else "key"
            mark = f"{self.symbols.glyphs['error']} " if level == "error" else ""
            shown.append((style, f"{when}\x00{mark}{first}"))
            shown += [(style, f"\x00{more}") for more in rest]
        return shown or [("dim", "Nothing has been said so far.")]

    async def action_back(self) -> None:
        """One step back; never quits."""
        screen = self.screen
        back = getattr(screen, "back", None)
        if back is not None and back():
            return
        if isinstance(screen, ModalScreen):
            screen.dismiss(None)
        elif not isinstance(screen, SuitesScreen):
            self.pop_screen()

    async def do(self, action: str) -> None:
        """Do what a key of the table does, wherever it is bound."""
        focused = self.screen.focused
        for node in (focused, self.screen, self):
            if node is not None and hasattr(node, f"action_{action.partition('(')[0]}"):
                await self.run_action(action, node)
                return
        self.say("not here")
