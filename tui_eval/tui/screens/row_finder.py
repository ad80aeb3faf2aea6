"""`/ n N` on a screen whose list is a `RowTable`: the next row that holds the words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tui_eval.tui.notices import Notices
from tui_eval.tui.screens.prompt import Prompt, Prompts
from tui_eval.tui.widgets.run_table import RowTable


class RowFinder:
    """Finds in what rows say."""

    def __init__(
        self, table: RowTable, words_of: Callable[[Any], str], prompts: Prompts, notices: Notices
    ) -> None:
        """`words_of` gives what a row says, as it came; nothing for a heading."""
        self._table, self._words_of = table, words_of
        self._prompts, self._notices = prompts, notices
        self.found = ""
        """What is looked for."""
        self._start = 0
        self._said: tuple[list[Any], list[str]] = ([], [])
        """The rows looked through last, and what they say: each letter typed looks through all of them."""

    async def ask(self) -> None:
        """Ask what to find."""
        if not self._prompts.open:
            self._start = self._table.cursor
            prompt = Prompt("/", self.found, "find in names and reasons; enter keeps, n and N go on")
            await self._prompts.ask(prompt, self._left, self._typed)

    async def find_next(self, step: int) -> None:
        """The next match, or the one before; comes round at the end."""
        if not self.found:
            await self.ask()
        elif not self._find(self._table.cursor + step, step):
            self._notices.say(f"not found: {self.found}")

    def _find(self, start: int, step: int) -> bool:
        wanted, rows = self.found.casefold(), self._table.rows
        if not wanted:
            return False
        if self._said[0] is not rows:
            self._said = (rows, [self._words_of(row).casefold() for row in rows])
        said = self._said[1]
        for distance in range(len(rows)):
            at = (start + step * distance) % len(rows)
            if wanted in said[at]:
                self._table.move_to(at)
                return True
        return False

    def _typed(self, text: str) -> None:
        self.found = text
        if not self._find(self._start, 1):
            self._table.move_to(self._start)

    def _left(self, text: str, kept: bool) -> None:
        self.found = text if kept else ""
        if not kept:
            self._table.move_to(self._start)
