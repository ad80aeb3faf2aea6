"""`/ n N f F` on a list of cases: finding, filtering, filters with names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace
from textual import on
from textual.timer import Timer
from textual.widgets import Input

from tui_eval.store.notes import HumanNote
from tui_eval.tui.screens.place import Place
from tui_eval.tui.screens.prompt import FilterPrompt, Prompt
from tui_eval.tui.state.lists import filtering
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import View
from tui_eval.tui.state.lists.completing import values_of
from tui_eval.tui.state.lists.entries import subject
from tui_eval.tui.widgets.case_list import CaseList

_NAMED = re.compile(r"([A-Za-z_][\w-]*)=(.*)")


class ListFinding(Place, inherit_bindings=False):
    """Those derived have the list, and arrange it when the filter changes."""

    def __init__(self) -> None:
        super().__init__()
        self.view = View()
        self.expression = ""
        self.filter_error = ""
        self.found = ""
        self._prompt_start: tuple[str, int] = ("", 0)
        self._prompt_key = ""
        self._timer: Timer | None = None
        self._note: HumanNote | None = None

    # -- for those derived

    @property
    def case_list(self) -> CaseList:
        """The list."""
        return self.query_one(CaseList)

    def unfold(self, entry: CaseRow) -> None:
        """Put the cursor on a case whose line is folded away."""
        raise NotImplementedError

    def all_entries(self) -> Iterable[CaseRow]:
        """Every case, shown or not."""
        raise NotImplementedError

    def go_when_there(self, key: str) -> None:
        """Put the cursor on a line as soon as there is one of that key, unless the person moves it."""
        raise NotImplementedError

    def rebuild(self, *, entries: bool = True, keep: bool = True) -> Any:
        """Make the lines anew, at once."""
        raise NotImplementedError

    def rearrange(self) -> None:
        """Make the lines anew, in a thread where there are many."""
        raise NotImplementedError

    def rebuilt(self) -> None:
        """What is shown has changed."""

    # -- keys

    async def action_find(self) -> None:
        """Ask what to find."""
        await self._ask(Prompt("/", self.found, "find in names; enter keeps, n and N go on"))

    async def action_find_next(self, step: int) -> None:
        """The next match, or the one before."""
        if not self.found:
            await self.action_find()
        elif not self.case_list.find(self.found, step) and not self._find_folded():
            self.services.notices.say(f"not found: {self.found}")

    def _find_folded(self) -> bool:
        """Go to the first case whose line is folded away and that holds the words."""
        needle, index = self.found.lower(), self.case_list.cases.index
        for entry in self.case_list.cases.shown:
            if needle in f"{entry.name} {entry.variant}".lower() and entry.key not in index:
                self.unfold(entry)
                return True
        return False

    async def action_filter(self) -> None:
        """Ask for a filter."""
        saved = list(self._saved())
        await self._ask(FilterPrompt(self.expression, values_of(self.all_entries(), saved), saved))

    def _saved(self) -> dict[str, str]:
        """Filters that have names: of the settings, and those saved here."""
        return {**self.services.settings.filters, **self.services.memory.filters}

    def save_filter(self, text: str) -> str:
        """`name=expression` keeps it under that name (`name=` alone: what is shown now, or forgets a
        saved one where nothing is filtered); returns the expression to show."""
        found = _NAMED.fullmatch(text.strip())
        if found is None:
            return text
        name, expression = found.group(1), found.group(2).strip() or self._prompt_start[0]
        notices, filters = self.services.notices, self.services.memory.filters
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

    def action_clear_filter(self) -> None:
        """Show everything again."""
        self.set_filter("")

    def set_filter(self, expression: str, *, at_once: bool = False) -> bool:
        """Show what this expression asks for; False where it cannot be understood."""
        try:
            parsed = filtering.parse(filtering.expand(expression, self._saved()))
        except filtering.ListFilterError as error:
            self._wrong(str(error))
            return False
        self._wrong("")
        if expression.strip() != self.expression:
            self.view.held.clear()
        self.expression = expression.strip()
        self.view.accept = (lambda entry: parsed.matches(subject(entry))) if parsed.expression else None
        if at_once:
            self.rebuild(entries=False)
        else:
            self.rearrange()
        return True

    def _wrong(self, words: str) -> None:
        """What is wrong with the filter: told where it is typed, else at the top."""
        prompts = self.query(FilterPrompt)
        if prompts:
            prompts.first().tell(words)
            words = ""
        if words != self.filter_error:
            self.filter_error = words
            self.rebuilt()

    def ask_note(self, note: HumanNote) -> None:
        """Ask for a note's text."""
        self._note = note
        hint = "a word on this answer; enter keeps it"
        self.call_later(self._ask, Prompt("note", note.text, hint, replaces=False))

    # -- the prompt

    async def _ask(self, prompt: Prompt) -> None:
        """Ends when the prompt has the focus: keys typed ahead belong to it (see `typing_ahead`)."""
        if not self.query(Prompt):
            line = self.case_list.current_line
            self._prompt_start = (self.expression, self.case_list.cursor)
            self._prompt_key = line.key if line is not None else ""
            await self.mount(prompt)
            self.set_focus(prompt.query_one(Input), scroll_visible=False)

    def leave_prompt(self) -> bool:
        """As by escape; False where none is open."""
        prompts = self.query(Prompt)
        if prompts:
            prompts.first().leave()
        return bool(prompts)

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        event.stop()
        if event.purpose == "note":
            return
        if event.purpose == "/":
            self.found = event.text
            self.case_list.find(event.text, 1, start=self._prompt_start[1])
            return
        if self._timer is not None:
            self._timer.stop()
        if not _NAMED.fullmatch(event.text):
            self._timer = self.set_timer(0.15, lambda: self.set_filter(event.text))

    @on(Prompt.Left)
    def _left(self, event: Prompt.Left) -> None:
        event.stop()
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        expression, cursor = self._prompt_start
        if event.purpose == "note":
            if event.kept and self._note is not None:
                self.services.notes.keep(replace(self._note, text=event.text.strip()))
        elif event.purpose == "/":
            if not event.kept:
                self.found = ""
                self.case_list.find("", 1)
                self.case_list.show_cursor(cursor)
            elif self.found and not self.case_list.find(self.found, 1, start=self.case_list.cursor):
                self._find_folded()
        else:
            if not event.kept:  # what was typed so far is taken back, and the cursor with it
                self.case_list.touched = False
                self.go_when_there(self._prompt_key)
            if not self.set_filter(self.save_filter(event.text) if event.kept else expression):
                return
        for prompt in self.query(Prompt):
            prompt.remove()
        self.case_list.focus()
