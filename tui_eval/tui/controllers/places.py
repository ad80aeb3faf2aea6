"""From place to place: screens, the next case, help, log, one step back."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from textual.command import CommandPalette
from textual.message import Message
from textual.screen import Screen

from tui_eval.guard.text import clip, visible
from tui_eval.tui.front import CaseListFront, Front, Question
from tui_eval.tui.handlers import Handler
from tui_eval.tui.palette import Themes
from tui_eval.tui.screens import screen_names
from tui_eval.tui.services import Core, Window
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.entries import meant
from tui_eval.tui.widgets.bars import KeyHints


class ScreensByName(Protocol):
    """Where screens are made; `screens.screen_names`."""

    def make(self, name: str, *arguments: Any, **options: Any) -> Screen[Any]:
        """A new screen, given what its class asks for."""
        ...

    def get_ready(self, *names: str) -> None:
        """Import what these screens need; called in a thread."""
        ...


WITHOUT_CASES = ("paper", "settings", "runs", "search")
"""Kinds of places that are left for a failing case: it is not seen from there."""


class PlaceController:
    """Knows the stack of screens, and screens by their names alone. A new screen's `show_…` belongs here."""

    def __init__(self, window: Window, core: Core, screens: ScreensByName = screen_names) -> None:
        self._window, self._core, self.screens = window, core, screens
        self._late = False

    def handlers(self) -> dict[str, Handler]:
        """What its keys do."""
        return {
            "failure.next": partial(self.failure, 1),
            "failure.previous": partial(self.failure, -1),
            "case.next": partial(self.neighbour, 1),
            "case.previous": partial(self.neighbour, -1),
            "place.suites": self.show_suites,
            "place.runs": self.show_runs,
            "place.grid": self.show_grid,
            "place.settings": self.show_settings,
            "log": self.show_log,
            "help": self.show_help,
            "palette": self.show_palette,
            "back": self.back,
        }

    # -- the stack

    @property
    def front(self) -> Screen[Any]:
        """The screen in front, a dialog included."""
        return self._window.screen

    @property
    def place(self) -> Front | None:
        """The screen in front, where it is one that the person went to."""
        screen = self._window.screen
        return screen if isinstance(screen, Front) else None

    @property
    def suites(self) -> CaseListFront:
        """The first screen."""
        found = self.find("suites")
        assert isinstance(found, CaseListFront)
        return found

    @property
    def list_in_front(self) -> Front | None:
        """The list one is in, or came from."""
        return next(
            (s for s in reversed(self._window.screen_stack) if isinstance(s, Front) and s.lists_cases), None
        )

    @property
    def list_to_run(self) -> Front | None:
        """The list whose cases run: the one in front; where that is of no run yet, it says that Suites is meant."""
        place = self.list_in_front
        return (
            self.suites
            if place is not None and place.kind == "run" and self._core.state.run is None
            else place
        )

    @property
    def stack(self) -> Sequence[Screen[Any]]:
        """All screens, the one in front last."""
        return self._window.screen_stack

    def find(self, kind: str) -> Front | None:
        """The screen of that kind that is nearest the first, if one is open."""
        return next((s for s in self._window.screen_stack if isinstance(s, Front) and s.kind == kind), None)

    def show(
        self, name: str, *arguments: Any, answer: Callable[[Any], Any] | None = None, **options: Any
    ) -> None:
        """Show a new screen of that name over the one in front (see `screens.screen_names`), made of the rest; a
        dialog's answer goes to `answer`."""
        self._window.push_screen(self.screens.make(name, *arguments, **options), answer)

    def pop(self) -> None:
        """Back to the screen before."""
        self._window.pop_screen()

    def ask(
        self,
        question: str,
        answers: Sequence[tuple[str, str, str]],
        on_answer: Callable[[str | None], Any],
        details: Sequence[str] = (),
        items: Sequence[str] = (),
        after_reading: Collection[str] = (),
        *,
        unasked: bool = False,
        renewed: Callable[[], Question] | None = None,
    ) -> None:
        """Ask over the screen; `renewed` gives the question as it stands by now, where it is about what goes on. A
        question that comes `unasked`, by no key of the person's, takes nothing that is typed on, meant for what it came
        over."""
        unasked = unasked or self._late
        self.show("ask", question, answers, details, items, after_reading, unasked, renewed, answer=on_answer)

    def late(self, do: Handler) -> Any:
        """Do what a key asked for some time ago: a question of it comes `unasked`."""
        self._late = True
        try:
            return do()
        finally:
            self._late = False

    def post(self, message: Message) -> None:
        """Give a message to the screens in sight."""
        for screen in reversed(self._window.screen_stack):
            screen.post_message(message)
            if not screen.is_modal:
                break

    def show_status(self) -> None:
        """Draw the words at the end of every footer anew."""
        for screen in self._window.screen_stack:
            for hints in screen.query(KeyHints):
                hints.refresh()

    def back_to(self, target: object) -> None:
        """Leave all screens over this one."""
        while self.front is not target and len(self._window.screen_stack) > 1:
            self.pop()

    def bring(self, kind: str) -> bool:
        """Back to the screen of that kind; False where there is none."""
        found = self.find(kind)
        if found is not None:
            self.back_to(found)
        return found is not None

    # -- cases

    def pointer(self) -> CasePointer | None:
        """The case that keys mean."""
        place = self.place
        return place.current() if place is not None else None

    def stays(self) -> Callable[[], bool]:
        """Says later whether the person is still where they are now, on that case: what a key asked for long
        ago is not to come over what they went on to, and take a key that is meant for that."""

        def here() -> tuple[Front | None, str]:
            place = next((s for s in reversed(self._window.screen_stack) if isinstance(s, Front)), None)
            pointer = place.current() if place is not None else None
            return place, pointer.case_id if pointer is not None else ""

        before = here()
        return lambda: self.place is before[0] and here() == before

    def pointers(self) -> Sequence[CasePointer]:
        """The cases that keys mean which act on all rows of a test."""
        place = self.place
        return place.all_current() if place is not None else ()

    def open_case(self, pointer: CasePointer) -> None:
        """Show a case in the inspector."""
        self.show("case", pointer)

    def all_cases(self) -> Iterable[CaseRow]:
        """Every case of the suites, shown or not."""
        return self.suites.all_entries()

    def open_row(self, entry: CaseRow) -> None:
        """Show the case of a row of the suites over what is in front: one step back leads there again. The list that
        is left has it under its cursor, in the run that it is of, where it has it."""
        place, pointer = self.list_in_front, self.suites.pointer_of(entry)
        if isinstance(place, CaseListFront):
            here = [one for one in place.all_entries() if meant(one, pointer)]
            if here:
                shown = {one.key for one in place.shown_entries()}
                if not any(one.key in shown for one in here):
                    place.set_filter("", at_once=True)
                pointer = place.pointer_of(next((one for one in here if one.key == entry.key), here[0]))
                place.go_to(pointer)
        front = self.place
        if front is not None and front is not place and front.kind == "grid":
            front.go_to(pointer)
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

    def failure(self, step: int) -> None:
        """To the next failing case."""
        target = self.navigate(step, True)
        place = self.place
        while target is not None and place is not None and place.kind in WITHOUT_CASES:
            self.pop()
            place = self.place
        self._go(target, "nothing failed here")

    def neighbour(self, step: int) -> None:
        """To the next case."""
        self._go(self.navigate(step, False), "no further case")

    def _go(self, target: CasePointer | None, otherwise: str) -> None:
        place = self.place
        if target is None:
            self._core.notices.say(f"{otherwise} so far: reading" if self.reading else otherwise)
        elif place is not None and not place.lists_cases:
            place.go_to(target)

    @property
    def reading(self) -> bool:
        """Whether the list in front may yet hold more: suites are being read, or what was read is not in it so far."""
        place = self.list_in_front
        read = self._core.state.loading and (place is None or place.kind == "suites")
        return read or (isinstance(place, CaseListFront) and not place.is_whole())

    # -- places

    def show_run(self) -> None:
        """The live run."""
        if not self.bring("run"):
            self.show_suites()
            self.show("run")

    def run_over(self) -> None:
        """The live run, over whatever is in front where it was not shown yet."""
        if not self.bring("run"):
            self.show("run")

    def show_suites(self) -> None:
        """All suites."""
        self.back_to(self.suites)

    def show_runs(self) -> None:
        """All runs."""
        if not self.bring("runs"):
            self.show("runs")

    def show_grid(self) -> None:
        """Tests down, prompts and agents across; or the list again."""
        place = self.list_in_front
        if self._kind == "grid":
            self.pop()
        elif place is not None:
            self.back_to(place)
            self.show("grid", place)

    @property
    def _kind(self) -> str:
        place = self.place
        return place.kind if place is not None else ""

    def show_help(self) -> None:
        """Keys of this place."""
        screen, place = self.front, self.place
        if self._kind == "paper":
            self.pop()
            return
        sections = place.KEY_SECTIONS if place is not None else ()
        self.show("help", screen.TITLE or "this place", sections, self._core.symbols)

    def show_log(self) -> None:
        """Errors with details."""
        if self._kind not in ("paper", "settings"):
            self.show("paper", "Log", self._log_paragraphs)

    def show_settings(self) -> None:
        """The person's settings."""
        if self._kind != "settings":
            self.show("settings")

    def show_palette(self) -> None:
        """Actions, cases and places by name."""
        if not isinstance(self.front, CommandPalette):
            self._window.push_screen(CommandPalette(placeholder="an action, a place, or a case by its name"))

    def show_themes(self) -> None:
        """Themes by name."""
        self._window.push_screen(CommandPalette(providers=[Themes], placeholder="a theme by its name"))

    def _log_paragraphs(self) -> list[tuple[str, str]]:
        shown: list[tuple[str, str]] = []
        for at, level, text in reversed(self._core.notices.lines):
            when = time.strftime("%H:%M:%S", time.localtime(at))
            first, *rest = visible(clip(text, 4000)).split("\n")
            style = "key-bad" if level == "error" else "key"
            mark = f"{self._core.symbols.glyphs['error']} " if level == "error" else ""
            shown.append((style, f"{when}\x00{mark}{first}"))
            shown += [(style, f"\x00{more}") for more in rest]
        return shown or [("dim", "Nothing has been said so far.")]

    def back(self) -> None:
        """One step back; never quits."""
        screen, place = self.front, self.place
        if place is not None and place.back():
            return
        if screen.is_modal:
            screen.dismiss(None)
        elif self._kind != "suites":
            self.pop()
