"""`/`, `n` and `N` in the tab of the Case screen that is in front."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tui_eval.guard.text import clip
from tui_eval.tui.handlers import Handler
from tui_eval.tui.screens.case_front import CaseFront
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state.text.block_layout import MOST_HITS
from tui_eval.tui.widgets.text_pane import SEARCHING, TextPane


class CaseFinder:
    """Asks what to look for, and says where it is."""

    def __init__(self, screen: CaseFront) -> None:
        self._screen = screen
        self.sought = ""
        """What is looked for."""

    def handlers(self) -> Mapping[str, Handler]:
        """Keys of lists that mean the same here."""
        return {
            "list.find": self.ask,
            "list.find_next": partial(self.find_next, 1),
            "list.find_previous": partial(self.find_next, -1),
        }

    async def ask(self) -> None:
        """Ask what to look for."""
        last = clip(self.sought, 40)
        hint = f"enter: {last} again, esc: marks away" if last else "text in this tab"
        await self._screen.prompts.ask(Prompt("find", "", hint), self._left)

    def _left(self, text: str, kept: bool) -> None:
        self.look_for((text or self.sought) if kept else "")

    def look_for(self, words: str) -> None:
        """Mark these words where they stand, and go to the first; nothing takes the marks away."""
        screen = self._screen
        self.sought = words
        count = screen.tab.find(self.sought)
        if not self.sought:
            screen.say("")
        elif count == SEARCHING:
            screen.say("searching…")
        else:
            screen.say(self._found(screen.tab.find_next(0)) if count else self._found((0, 0)))

    async def find_next(self, step: int) -> None:
        """The next or previous place."""
        if not self.sought:
            await self.ask()
            return
        tab = self._screen.tab
        found = tab.find_next(step)
        self._screen.say("searching…" if tab.searching and not found[1] else self._found(found))

    def searched(self, pane: TextPane, words: str) -> None:
        """A search in a thread has come further, as its words say, or to its end."""
        if pane is self._screen.tab.text:
            number, count = pane.places
            so_far = f"{number:,} of {count:,}, " if words and count else ""
            self._screen.say(so_far + words if words else self._found((number, count)))

    def _found(self, place: tuple[int, int]) -> str:
        more = " or more" if place[1] >= MOST_HITS else ""
        if place[1] and not place[0]:
            return f"{place[1]:,}{more} places: n goes to the next"
        return f"{place[0]:,} of {place[1]:,}{more}" if place[1] else f"not here: {self.sought}"
