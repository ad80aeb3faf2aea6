"""What the Suites and the Run screen share: a list of cases that is filtered, sorted and searched."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import replace

from textual import on
from textual.timer import Timer
from textual.widgets import Input

from tui_eval.model import Suite
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.keys import bindings
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.place import Place
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state import filtering
from tui_eval.tui.state.case_tree import SORTS, Entry, Tree, View, build
from tui_eval.tui.state.entries import failing, subject
from tui_eval.tui.widgets.case_list import CaseList

_NAMED = re.compile(r"([A-Za-z_][\w-]*)=(.*)")
MANY = 20_000
"""Entries from which on they are sorted and filtered in a thread, so that no key waits for it."""


class ListPlace(Place, inherit_bindings=False):
    """A screen around a `CaseList`. Those derived give `entries`, `list_suites` and compose."""

    BINDINGS = bindings("screen")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]

    def __init__(self) -> None:
        super().__init__()
        self.view = View()
        self.expression = ""
        self.filter_error = ""
        self.found = ""
        self._entries: dict[str, Entry] = {}
        self._timer: Timer | None = None
        self._arrangement = 0
        self._changes = 0
        self._token: object = None

    # -- for those derived

    @property
    def case_list(self) -> CaseList:
        """The list."""
        return self.query_one(CaseList)

    def make_entries(self) -> list[Entry]:
        """Every case of this place, as it stands now."""
        raise NotImplementedError

    def list_suites(self) -> Iterable[Suite]:
        """Suites whose problems stand in the list."""
        return ()

    def rebuilt(self) -> None:
        """The list was made anew."""

    # -- the list

    def prepare(self) -> bool:
        """Before lines are made anew; says whether the cursor stays on its case."""
        return True

    def rebuild(self, *, entries: bool = True, keep: bool = True) -> Tree:
        """Make the lines anew (and the entries from the state, where `entries`)."""
        keep = self.prepare() and keep
        if entries or not self._entries:
            self._token = self.eval_app.state.token
            self._entries = {entry.key: entry for entry in self.make_entries()}
        tree = build(self._entries.values(), self.list_suites(), self.view)
        self._arrangement += 1
        self._take(tree, keep)
        return tree

    def rearrange(self) -> None:
        """The same entries under another filter or order; many of them in a thread."""
        if len(self._entries) <= MANY:
            self.rebuild(entries=False)
            return
        self._arrangement += 1
        arrangement, changes, keep = self._arrangement, self._changes, self.prepare()
        entries, suites = list(self._entries.values()), list(self.list_suites())
        view = replace(self.view, folded=set(self.view.folded), kept_up=set(self.view.kept_up))

        def take(tree: Tree) -> None:
            if arrangement != self._arrangement or not self.is_mounted:
                return
            self._take(tree, keep)
            if changes != self._changes and not view.flat:
                self.set_timer(1.0, self.rearrange)  # cases went on meanwhile: the folders' counts

        run_in_thread(self.eval_app, lambda: build(entries, suites, view), take, name="arranging")

    def _take(self, tree: Tree, keep: bool) -> None:
        cases = self.case_list
        cases.most_attempts = max((len(entry.attempts) for entry in tree.shown), default=1) or 1
        cases.show(tree, keep=keep)
        self.rebuilt()

    def up_to_date(self) -> bool:
        """Whether nothing has changed since the entries were made."""
        return bool(self._entries) and self._token == self.eval_app.state.token

    def replace_entries(self, fresh: Iterable[Entry]) -> bool:
        """Entries changed: redraw their lines. Says whether the order may have changed with them."""
        cases = self.case_list
        lines: set[int] = set()
        moved = False
        for new in fresh:
            old = self._entries.get(new.key)
            if old is None:
                moved = True
                self._entries[new.key] = new
                continue
            before = old.status
            self._changes += 1
            new.variant = old.variant
            if before == new.status and not _differs(old, new):
                continue
            for name in Entry.__slots__:
                setattr(old, name, getattr(new, name))
            if len(old.attempts) > cases.most_attempts:
                cases.most_attempts = len(old.attempts)
                cases.repaint()
            lines.update(cases.status_changed(old.key, before, old.status))
            if before != old.status and (self.view.flat or self.view.accept is not None):
                moved = True
        cases.refresh_lines(lines)
        return moved

    def shown_entries(self) -> list[Entry]:
        """Cases that pass the filter, in order."""
        return self.case_list.cases.shown

    def marked_entries(self) -> list[Entry]:
        """Marked cases, in order; else those of the line under the cursor."""
        cases = self.case_list
        if cases.marks:
            return [entry for entry in self._entries.values() if entry.key in cases.marks]
        line = cases.current_line
        if line is None:
            return []
        return [line.entry] if line.entry is not None else cases.below(line)

    def pointer_of(self, entry: Entry) -> CasePointer:
        """Where an entry's case is found."""
        return CasePointer(entry.case_id, entry.agent or None, entry.model or None)

    def current(self) -> CasePointer | None:
        """The case under the cursor."""
        entry = self.case_list.current_entry
        return self.pointer_of(entry) if entry is not None else None

    def go_to(self, pointer: CasePointer) -> None:
        """Put the cursor on this case, unfolding what hides it."""
        for entry in self.shown_entries():
            if entry.case_id == pointer.case_id and (not pointer.agent or entry.agent == pointer.agent):
                if not self.case_list.go_to(entry.key):
                    self.view.folded = {key for key in self.view.folded if not _holds(key, entry.suite)}
                    self.rebuild(entries=False)
                    self.case_list.go_to(entry.key)
                return

    def neighbour(self, pointer: CasePointer | None, step: int, only_failing: bool) -> CasePointer | None:
        """The next (or previous) case in the list's order, or the next failing one; comes round at
        the end when looking for failing ones."""
        shown = self.shown_entries()
        if not shown:
            return None
        here = next(
            (
                number
                for number, entry in enumerate(shown)
                if pointer is not None
                and entry.case_id == pointer.case_id
                and (not pointer.agent or not entry.agent or entry.agent == pointer.agent)
            ),
            None,
        )
        if here is None:
            here = self._before_cursor(shown) if step > 0 else self._before_cursor(shown) + 1
        for distance in range(1, len(shown) + 1):
            index = here + step * distance
            if not only_failing:
                return self.pointer_of(shown[index]) if 0 <= index < len(shown) else None
            entry = shown[index % len(shown)]
            if failing(entry):
                return self.pointer_of(entry)
        return None

    def _before_cursor(self, shown: list[Entry]) -> int:
        """The number of the last case shown above a cursor that stands on a folder or suite."""
        cases = self.case_list
        for index in range(min(cases.cursor, len(cases.cases.lines) - 1), -1, -1):
            entry = cases.cases.lines[index].entry
            if entry is not None:
                return next((n for n, other in enumerate(shown) if other is entry), -1)
        return -1

    # -- keys

    @on(CaseList.Folded)
    def _fold(self, event: CaseList.Folded) -> None:
        event.stop()
        if event.folded:
            self.view.folded.add(event.key)
        else:
            self.view.folded.discard(event.key)
        self.rebuild(entries=False)

    async def action_find(self) -> None:
        """Ask what to find."""
        await self._ask("/", self.found, "find in names; enter keeps, n and N go on")

    async def action_find_next(self, step: int) -> None:
        """The next match, or the one before."""
        if not self.found:
            await self.action_find()
        elif not self.case_list.find(self.found, step):
            self.eval_app.say(f"not found: {self.found}")

    async def action_filter(self) -> None:
        """Ask for a filter."""
        names = " ".join(f"@{name}" for name in self._saved())
        hint = 'failed agent:x tag:y -suite:z duration:>5s "some text"   name= saves'
        await self._ask("filter", self.expression, f"{names}   {hint}" if names else hint)

    def _saved(self) -> dict[str, str]:
        """Filters that have names: of the settings, and those saved here."""
        app = self.eval_app
        return {**app.settings.filters, **app.saved_filters}

    def save_filter(self, text: str) -> str:
        """`name=expression` keeps it under that name (`name=` alone: what is shown now, or forgets a
        saved one where nothing is filtered); returns the expression to show."""
        found = _NAMED.fullmatch(text.strip())
        if found is None:
            return text
        name, expression = found.group(1), found.group(2).strip() or self._prompt_start[0]
        app = self.eval_app
        if expression:
            try:
                filtering.parse(filtering.expand(expression, self._saved()))
            except filtering.FilterError:
                return expression
            app.saved_filters[name] = expression
            app.say(f"saved as @{name}")
        elif app.saved_filters.pop(name, None) is not None:
            app.say(f"@{name} is forgotten")
        return expression

    def action_clear_filter(self) -> None:
        """Show everything again."""
        self.set_filter("")

    def action_sort(self) -> None:
        """The next way to sort."""
        number = SORTS.index(self.view.sort) if self.view.sort in SORTS else 0
        self.view.sort = SORTS[(number + 1) % len(SORTS)]
        self.rearrange()
        self.eval_app.say(f"sorted by {self.view.sort}")

    def action_reverse(self) -> None:
        """The other way round."""
        self.view.reverse = not self.view.reverse
        self.rearrange()

    def action_failures_first(self) -> None:
        """Failures float up, or stay where they are."""
        self.view.failures_first = not self.view.failures_first
        self.rearrange()
        self.eval_app.say("failures first" if self.view.failures_first else "in the order of the files")

    def set_filter(self, expression: str, *, at_once: bool = False) -> bool:
        """Show what this expression asks for; False where it cannot be understood."""
        try:
            parsed = filtering.parse(filtering.expand(expression, self._saved()))
        except filtering.FilterError as error:
            self.filter_error = str(error)
            self.rebuilt()
            return False
        self.filter_error = ""
        self.expression = expression.strip()
        self.view.accept = (lambda entry: parsed.matches(subject(entry))) if parsed.expression else None
        if at_once:
            self.rebuild(entries=False)
        else:
            self.rearrange()
        return True

    def back(self) -> bool:
        """Leave the prompt, else drop the marks, else the filter."""
        prompts = self.query(Prompt)
        if prompts:
            prompts.first().leave()
            return True
        if self.case_list.marks:
            self.case_list.marks = set()
            self.case_list.refresh()
            self.rebuilt()
            return True
        if self.expression:
            self.set_filter("")
            return True
        return False

    # -- the prompt

    async def _ask(self, purpose: str, text: str, hint: str) -> None:
        """Ends when the prompt has the focus: keys typed ahead belong to it (see `Navigation.on_key`)."""
        if not self.query(Prompt):
            self._prompt_start = (self.expression, self.case_list.cursor)
            prompt = Prompt(purpose, text, hint)
            await self.mount(prompt)
            self.set_focus(prompt.query_one(Input), scroll_visible=False)

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        event.stop()
        if event.purpose == "/":
            self.found = event.text
            self.case_list.find(event.text, 1, from_here=True)
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
        if event.purpose == "/":
            if not event.kept:
                self.found = ""
                self.case_list.find("", 1)
                self.case_list.show_cursor(cursor)
        elif not self.set_filter(self.save_filter(event.text) if event.kept else expression):
            return
        for prompt in self.query(Prompt):
            prompt.remove()
        self.case_list.focus()


def _differs(old: Entry, new: Entry) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in Entry.__slots__ if name != "case")


def _holds(key: str, suite: str) -> bool:
    return key == suite or (key.endswith("/") and suite.startswith(key))


def now() -> float:
    """Seconds since the epoch; one place to look when a test needs another clock."""
    return time.time()
