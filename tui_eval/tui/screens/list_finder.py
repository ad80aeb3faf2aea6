"""`/ n N f F` on a list of cases: finding, filtering, filters with names. `/ n N` on any other table of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from textual.timer import Timer

from tui_eval.tui.handlers import Handler
from tui_eval.tui.notices import Notices
from tui_eval.tui.screens.list_arrangement import ListArrangement, ListScreen
from tui_eval.tui.screens.prompt import FilterPrompt, Prompt, Prompts
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.lists import filtering
from tui_eval.tui.state.lists.entries import subject
from tui_eval.tui.state.lists.filtering import values_of
from tui_eval.tui.widgets.line_pane import RowTable

_NAMED = re.compile(r"([A-Za-z_][\w-]*)=(.*)")


class ListFinder:
    """Asks what to find or to filter by, and has the list arranged by it."""

    def __init__(
        self, screen: ListScreen, services: AppServices, prompts: Prompts, arrangement: ListArrangement
    ) -> None:
        self._screen, self._services, self._prompts = screen, services, prompts
        self._arrangement = arrangement
        self.expression = ""
        """The filter that is shown."""
        self.problem = ""
        """What is wrong with the one asked for last."""
        self.found = ""
        """What is looked for."""
        self._asking = prompts
        """The prompts of the screen that a filter is asked on."""
        self._shown: Callable[[], Any] | None = None
        self._before = ("", 0, "")
        """The filter, the cursor and its line's key, as they were when the prompt was opened."""
        self._timer: Timer | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "list.find": self.ask_find,
            "list.find_next": partial(self.find_next, 1),
            "list.find_previous": partial(self.find_next, -1),
            "list.filter": self.ask_filter,
            "list.clear": self.clear,
        }

    # -- finding

    async def ask_find(self) -> None:
        """Ask what to find."""
        if not self._prompts.open:
            self._screen.show_list()
            self._remember()
            prompt = Prompt("/", self.found, "find in names; enter keeps, n and N go on")
            await self._prompts.ask(prompt, self._find_left, self._find_typed)

    async def find_next(self, step: int) -> None:
        """The next match, or the one before."""
        if not self.found:
            await self.ask_find()
        elif not self._screen.case_list.find(self.found, step) and not self._find_folded():
            self._services.notices.say(f"not found: {self.found}")

    def _find_typed(self, text: str) -> None:
        self.found = text
        self._screen.case_list.find(text, 1, start=self._before[1])

    def _find_left(self, text: str, kept: bool) -> None:
        cases = self._screen.case_list
        if not kept:
            self.found = ""
            cases.find("", 1)
            cases.move_to(self._before[1])
        elif self.found and not cases.find(self.found, 1, start=cases.cursor) and not self._find_folded():
            self._services.notices.say(f"not found: {self.found}")

    def _find_folded(self) -> bool:
        """Go to the first case whose line is folded away and that holds the words."""
        needle, cases = self.found.lower(), self._screen.case_list.cases
        for entry in cases.shown:
            if needle in f"{entry.name} {entry.variant}".lower() and entry.key not in cases.index:
                self._arrangement.unfold(entry)
                return True
        return False

    # -- filtering

    async def ask_filter(
        self, prompts: Prompts | None = None, shown: Callable[[], Any] | None = None
    ) -> None:
        """Ask for a filter; of a screen that shows the list's cases, which hears by `shown` that they will be
        others."""
        asked = prompts or self._prompts
        if not asked.open:
            self._asking, self._shown = asked, shown
            self._screen.show_list()
            self._remember()
            saved = list(self._saved())
            values = values_of(self._arrangement.rows.values(), saved)
            prompt = FilterPrompt(self.expression, values, saved)
            await asked.ask(prompt, self._filter_left, self._filter_typed)

    def clear(self, shown: Callable[[], Any] | None = None) -> None:
        """Filter no more."""
        self._shown = shown
        self.set_filter("")

    def _filter_typed(self, text: str) -> None:
        self._stop_timer()
        if not _NAMED.fullmatch(text):
            self._timer = self._screen.set_timer(0.15, partial(self.set_filter, text))

    def _filter_left(self, text: str, kept: bool) -> bool:
        """The prompt stays where the filter cannot be understood."""
        self._stop_timer()
        if not kept:  # what was typed so far is taken back, and the cursor with it
            self._screen.case_list.touched = False
            self._arrangement.go_when_there(self._before[2])
        return self.set_filter(self.save_filter(text) if kept else self._before[0])

    def _saved(self) -> dict[str, str]:
        """Filters that have names: of the settings, and those saved here."""
        return {**self._services.settings.filters, **self._services.memory.filters}

    def save_filter(self, text: str) -> str:
        """`name=expression` keeps it under that name (`name=` alone: what is shown now, or forgets a
        saved one where nothing is filtered); returns the expression to show."""
        found = _NAMED.fullmatch(text.strip())
        if found is None:
            return text
        name, expression = found.group(1), found.group(2).strip() or self._before[0]
        notices, filters = self._services.notices, self._services.memory.filters
        if expression:
            try:
                filtering.parse(filtering.expand(expression, self._saved()))
            except filtering.ListFilterError:
                return expression
            filters[name] = expression
            notices.say(f"saved as @{name}")
        elif filters.pop(name, None) is not None:
            notices.say(f"@{name} is forgotten")
        return expression

    def set_filter(self, expression: str, *, at_once: bool = False) -> bool:
        """Show what this expression asks for; False where it cannot be understood."""
        try:
            parsed = filtering.parse(filtering.expand(expression, self._saved()))
        except filtering.ListFilterError as error:
            self._wrong(str(error))
            return False
        self._wrong("")
        if expression.strip() != self.expression:
            self._arrangement.view.held.clear()
        self.expression = expression.strip()
        view = self._arrangement.view
        view.compares_rows = parsed.compares_rows
        view.accept = (
            (lambda entry, differs: parsed.matches(subject(entry, differs=differs)))
            if parsed.expression
            else None
        )
        if at_once:
            self._arrangement.rebuild(entries=False)
        else:
            self._arrangement.rearrange()
        if self._shown is not None:
            self._shown()
        return True

    def _wrong(self, words: str) -> None:
        """What is wrong with the filter: shown where it is typed, else at the top."""
        if self._asking.complain(words):
            words = ""
        if words != self.problem:
            self.problem = words
            self._screen.rebuilt()

    # -- the prompt

    def _remember(self) -> None:
        cases = self._screen.case_list
        line = cases.current_line
        self._before = (self.expression, cases.cursor, line.key if line is not None else "")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None


# -- `/ n N` on a screen whose list is a `RowTable`: the next row that holds the words.


class RowFinder:
    """Finds in what rows say."""

    def __init__(
        self, table: RowTable, words_of: Callable[[Any], str], prompts: Prompts, notices: Notices, where: str
    ) -> None:
        """`words_of` gives what a row says, as it came; nothing for a heading. `where` names that for people."""
        self._table, self._words_of, self._where = table, words_of, where
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
            prompt = Prompt("/", self.found, f"find in {self._where}; enter keeps, n and N go on")
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
        elif self.found and not self._find(self._table.cursor, 1):
            self._notices.say(f"not found: {self.found}")
