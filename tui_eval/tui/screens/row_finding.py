"""`/ n N` on a screen whose list is a `RowTable`: the next row that holds the words."""

from __future__ import annotations

from typing import Any

from textual import on
from textual.widgets import Input

from tui_eval.tui.screens.place import Place
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.widgets.run_table import RowTable


class RowFinding(Place, inherit_bindings=False):
    """Those derived say which table it is and what a row says; their keys call the actions."""

    def __init__(self) -> None:
        super().__init__()
        self.found = ""
        self._start = 0
        self._said: tuple[list[Any], list[str]] = ([], [])
        """The rows looked through last, and what they say: each letter typed looks through all of them."""

    @property
    def found_table(self) -> RowTable:
        """Where it is looked for."""
        raise NotImplementedError

    def words_of(self, row: Any) -> str:
        """What a row says, as it came; empty for a heading."""
        raise NotImplementedError

    async def action_find(self) -> None:
        """Ask what to find. Ends when the prompt has the focus: keys typed ahead belong to it."""
        if not self.query(Prompt):
            self._start = self.found_table.cursor
            prompt = Prompt("/", self.found, "find in names and reasons; enter keeps, n and N go on")
            await self.mount(prompt)
            self.set_focus(prompt.query_one(Input), scroll_visible=False)

    async def action_find_next(self, step: int) -> None:
        """The next match, or the one before; comes round at the end."""
        if not self.found:
            await self.action_find()
        elif not self._find(self.found_table.cursor + step, step):
            self.services.notices.say(f"not found: {self.found}")

    def _find(self, start: int, step: int) -> bool:
        wanted, rows = self.found.casefold(), self.found_table.rows
        if not wanted:
            return False
        if self._said[0] is not rows:
            self._said = (rows, [self.words_of(row).casefold() for row in rows])
        said = self._said[1]
        for distance in range(len(rows)):
            at = (start + step * distance) % len(rows)
            if wanted in said[at]:
                self.found_table.move_to(at)
                return True
        return False

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        event.stop()
        self.found = event.text
        if not self._find(self._start, 1):
            self.found_table.move_to(self._start)

    @on(Prompt.Left)
    def _left(self, event: Prompt.Left) -> None:
        event.stop()
        for prompt in self.query(Prompt):
            prompt.remove()
        self.found = event.text if event.kept else ""
        if not event.kept:
            self.found_table.move_to(self._start)
        self.found_table.focus()

    def back(self) -> bool:
        """Leave the prompt."""
        prompts = self.query(Prompt)
        if prompts:
            prompts.first().leave()
        return bool(prompts)
