"""The suites as they are read, the question of trust, what comes back from the last time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from tui_eval.guard import trust_store
from tui_eval.guard.text import clip, visible
from tui_eval.guard.trust import in_order
from tui_eval.tui import memory
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.messages import SuitesChanged
from tui_eval.tui.navigation import Navigation
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.list_place import ListPlace
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.state.lists.suite_changes import EditedSuite, edited, first_error

LONGEST = 5_000
"""Characters of one thing that a person can read in a question; what is longer is not agreed to there."""
AfterEdit = Callable[[EditedSuite], None]


class SuitesReading(Navigation):
    """Takes what the loader read."""

    _all_read = False
    _left_case = ""
    """The case from which the list's cursor went to what is wrong with its file."""

    def take_suites(self, loaded: Loaded) -> None:
        """A portion of suites was read."""
        # What is shown stays until all has been read again.
        if loaded.generation != self.loader.generation or (self._all_read and not loaded.done):
            return
        self._all_read = loaded.done
        first = not self.state.suites
        self.config = loaded.config
        self.state.loading = not loaded.done
        self.state.problems = [problem for problem in loaded.problems if problem.level == "error"]
        for problem in loaded.problems if loaded.done else ():
            self.log_line(problem.level, str(problem))
        if loaded.items is not None:
            self.state.take(loaded.items)
        self.state.notes = dict(loaded.notes)
        self.tell(SuitesChanged())
        if first and self.state.rows:
            self._restore()
        if loaded.done:
            # Many cases stay for good: the garbage collector need not look at them at each key press.
            gc.freeze()
            # The inspector's modules, so that the first case opened need not wait for them.
            run_in_thread(self, lambda: import_module("tui_eval.tui.screens.case_screen"), name="imports")
            self._ask_trust(loaded.wanted)

    def take_some_suites(self, loaded: Loaded, then: AfterEdit | None = None) -> None:
        """Suites were read again after an edit."""
        self.config = loaded.config
        state = self.state
        fresh = {suite.path: suite for suite in loaded.suites}
        line = self.suites_screen.case_list.current_line
        if loaded.items is not None and loaded.change is not None and loaded.version == state.version:
            change = loaded.change
            state.take(loaded.items, loaded.missing)
        else:
            change = edited([suite for suite in state.suites if suite.path in fresh], loaded.suites)
            state.set_suites([suite for suite in state.suites if suite.path not in fresh] + loaded.suites)
        self.tell(SuitesChanged())
        if change.words:
            self.problem(change.words)
        if then is not None:
            then(change)
        if line is not None:
            self._stay_near(line.key, change)
        self._follow_case(change)
        self._ask_trust(loaded.wanted)

    def _stay_near(self, key: str, change: EditedSuite) -> None:
        """The list's cursor stays with its case under its new name; where the file cannot be read any more,
        it goes to what is wrong with it, and back once that has been mended."""
        place, state = self.suites_screen, self.state
        left, self._left_case = self._left_case, ""
        if key in change.renamed:
            place.bring(change.renamed[key])
        elif key in change.gone or key in {problem.path for problem in change.problems}:
            item = state.gone.get(key)
            path = item.suite if item is not None else key
            found = first_error(state.suites, path)
            if found is not None:
                place.bring(f"{path}!{found[1]}", path)
                self._left_case = key if item is not None else left
        elif left in state.by_id and key.partition("!")[0] == state.by_id[left].suite:
            place.bring(left)
        else:
            self._left_case = left

    def _follow_case(self, change: EditedSuite) -> None:
        """The case that is looked at has another name now, or is gone."""
        pointer = self.pointer()
        if pointer is None or isinstance(self.screen, ListPlace):
            return
        name = pointer.case_id.partition("::")[2]
        if pointer.case_id in change.renamed:
            go_to = getattr(self.screen, "go_to", None)
            item = self.state.by_id.get(change.renamed[pointer.case_id])
            if go_to is not None and item is not None:
                go_to(CasePointer(item.case_id))
                words = f"it is {item.name} now: r runs it"
                self.log_line("note", words)
                # Not at the head of the case, which is about to be written anew.
                self.notify(visible(clip(words, 300), newlines=False), timeout=4, markup=False)
        elif pointer.case_id in change.gone and not change.words:
            self.say(f"{name} is no longer in its file")

    def reload_suites(self, paths: Iterable[str | Path], then: str | AfterEdit = "") -> bool:
        """Read the suites again that these files (from the root, or absolute) belong to; False where there is
        none. `then` is said where nothing is wrong with them, or called with what the edit did."""
        wanted = {str(self.state.root / path) for path in paths}
        chosen = [
            suite
            for suite in self.state.suites
            if str(self.state.root / suite.path) in wanted or wanted & set(suite.files)
        ]

        def tell(change: EditedSuite) -> None:
            if then and not change.words:
                self.say(str(then))

        if chosen:
            self.loader.reload(chosen, tell if isinstance(then, str) else then)
        return bool(chosen)

    def _restore(self) -> None:
        place = self.suites_screen
        if self._memory.get("filter"):
            place.set_filter(str(self._memory["filter"]))
        marks = self._memory.get("marks")
        if isinstance(marks, list):
            place.case_list.marks = {str(mark) for mark in marks} & self.state.by_id.keys()
        cursor = self._memory.get("cursor")
        if isinstance(cursor, str) and cursor:
            place.go_when_there(cursor)

    def _ask_trust(self, wanted: list[str]) -> None:
        """May the project do what it wants? Asked once for each thing; what was not listed is asked anew."""
        state = self.state
        fresh = [what for what in in_order(wanted) if what not in state.agreed | self._trust_declined]
        if not fresh or state.trusted:
            return
        # Until it is answered it is declined: a second list shows only what this one does not.
        self._trust_declined |= frozenset(fresh)
        for what in fresh:
            self.log_line("note", f"needs trust: {clip(what, LONGEST)}")
        unread = [what for what in fresh if len(what) > LONGEST]
        fresh = [what for what in fresh if len(what) <= LONGEST]
        if unread:
            self.problem(
                f"{len(unread)} {'thing' if len(unread) == 1 else 'things'} of more than {LONGEST:,} characters "
                "need trust and cannot be agreed to here; look at the files, then start with --trust (l: log)"
            )
        if not fresh:
            return

        def answer(value: str | None) -> None:
            if value not in ("always", "once"):
                return
            state.agreed |= frozenset(fresh)
            self._trust_declined -= frozenset(fresh)
            if value == "always":
                try:
                    trust_store.grant(state.root, fresh)
                except OSError as error:
                    self.problem(f"could not remember it: {error}")
            self.loader.load()

        self.ask(
            f"Do you trust {self.shown_root} with this?",
            [
                ("y", "always", "yes, always for this folder, and only this"),
                ("o", "once", "yes, this time"),
                ("n", "no", "no: cases that need it will be errors"),
            ],
            answer,
            [
                "",
                f"Its suites and configuration want {len(fresh)} {'thing' if len(fresh) == 1 else 'things'}:",
            ],
            fresh,
            after_reading=("always", "once"),
        )

    def _remember(self) -> None:
        place = next((screen for screen in self.screen_stack if isinstance(screen, SuitesScreen)), None)
        values: dict[str, Any] = {"theme": self.theme, "case_view": self.case_view}
        if place is not None and stands(place):
            line = place.case_list.current_line
            values |= {
                "cursor": line.key if line else "",
                "filter": place.expression,
                "folded": sorted(place.view.folded)[:2000],
                "failures_first": place.view.failures_first,
                "sort": place.view.sort,
                "reverse": place.view.reverse,
                "marks": sorted(place.case_list.marks)[:2000],
                "filters": self.saved_filters,
            }
        memory.remember(self.state.root, values)
