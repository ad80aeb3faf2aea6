"""The suites as they are read, the question of trust, what comes back from the last time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast

from textual.screen import Screen

from tui_eval.engine.request import RunRequest
from tui_eval.guard import trust_store
from tui_eval.guard.spelling import some_of
from tui_eval.guard.text import clip, visible
from tui_eval.guard.trust import Trust, in_order, unbroken
from tui_eval.model import Suite
from tui_eval.tui.background import stands
from tui_eval.tui.controllers.first_steps import FirstSuiteQuestion
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.front import CaseListFront, Front, SuitesChanged
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.suites_loader import Loaded, Loader
from tui_eval.tui.services import Core
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_tree import GROUPINGS, SORTS
from tui_eval.tui.state.lists.suite_changes import EditedSuite, edited, first_error
from tui_eval.tui.state.text.formatting import counted

LONGEST = 5_000
"""Characters of one thing that a person can read in a question; what is longer is not agreed to there."""
AfterEdit = Callable[[EditedSuite], Any]


class _Kept(NamedTuple):
    """A key that runs cases, pressed before the suites had been read."""

    run: Handler
    front: Front | None
    """The place that it was pressed in."""
    line: str
    """The line of the list that it meant; empty: all, or what is looked at."""

    def is_there(self) -> bool:
        """Whether the list's cursor is where it was, or can be put there."""
        if not self.line or not isinstance(self.front, CaseListFront):
            return True
        self.front.go_when_there(self.line)
        line = self.front.line_under_cursor()
        return line is not None and line.key == self.line


class SuiteController:
    """Takes what the loader read, and puts the list's cursor where it belongs."""

    def __init__(self, core: Core, places: PlaceController, paths: Iterable[Path]) -> None:
        self._core, self._places = core, places
        self.state = core.state
        chosen = list(paths)
        self._selection = sorted({str(path.absolute()) for path in chosen})
        core.state.of_root = self._selection == [str(core.state.root)]
        self.loader = Loader(core.state, core.tasks, self, chosen)
        self._beginning = FirstSuiteQuestion(core, places, self.load)
        self.asks_when_read = True
        """Whether it is asked at once what the suites may do; else only before something is run."""
        self._all_read = False
        self._unread = ""
        self._left_case = ""
        """The case from which the list's cursor went to what is wrong with its file."""
        self.declined: frozenset[str] = frozenset()
        """What was asked about and not agreed to."""
        self._put_off: frozenset[str] = frozenset()
        """What of it was left without an answer: it is asked again before anything is run."""
        self._wanted: dict[str, None] = {}
        """What the suites as they were read would do that needs trust."""
        self._read_to, self._needed = 0, 1
        """The reading that was taken to its end last, and the one without which nothing is run."""
        self._looking = False
        """Whether it is being looked at what the agents of a run want."""
        self._asking: frozenset[str] = frozenset()
        """What the question in sight asks about."""
        self._wait: list[Handler] = []
        """What waits for its answer, beside what it was asked for: one key may start several runs."""
        self._kept: _Kept | None = None
        """The key that waits for that one."""
        self.on_read: list[Callable[[Loaded], Any]] = []
        """Called with every portion that was taken."""
        self.on_answered: list[Callable[[], Any]] = []
        """Called when the person has answered what the project may do."""

    def load(self, then: Handler | None = None) -> None:
        """Read everything anew; then do what runs cases, after the question what they may do now."""
        self.loader.load()
        if then is not None:
            self._needed = self.loader.generation
            self.before_running(then)()

    def first(self) -> None:
        """Ask what a project without suites is to begin with."""
        self._beginning.ask()

    def take_suites(self, loaded: Loaded) -> None:
        """A portion of suites was read."""
        # What is shown stays until all has been read again.
        if loaded.generation != self.loader.generation or (self._all_read and not loaded.done):
            return
        before = self.state.suites if self._all_read else []
        self._all_read = loaded.done
        first = not self.state.suites
        self.state.config = loaded.config
        self.state.loading = not loaded.done
        self.state.problems = [problem for problem in loaded.problems if problem.level == "error"]
        for problem in loaded.problems if loaded.done else ():
            self._core.notices.log(problem.level, str(problem))
        same = self.state.notes == loaded.notes
        if loaded.items is not None and loaded.items.rows is not self.state.rows:  # not shown yet
            self.state.take(loaded.items)
            same = False
        self.state.notes = dict(loaded.notes)
        self._without(
            [suite for suite in before if suite.path not in {one.path for one in self.state.suites}]
        )
        self._places.post(SuitesChanged([] if same else None))
        if first and self.state.rows:
            self._restore()
        if loaded.done:
            # Many cases stay for good: the garbage collector need not look at them at each key press.
            gc.freeze()
            # The inspector's modules, so that the first case opened need not wait for them.
            self._core.tasks.thread(partial(self._places.screens.get_ready, "case"), name="imports")
            self._wanted, self._read_to = dict.fromkeys(loaded.wanted), loaded.generation
            if self._kept is not None:
                self._when_listed(self._kept)
            elif self.asks_when_read:
                self.ask_trust(loaded.wanted)
        self._read(loaded)

    def tell_unread(self, words: str) -> None:
        """What passed before runs that cannot be read stands here as it did then; said once."""
        if words and words != self._unread:
            self._core.notices.say(f"what passed is marked as before: {words}")
        self._unread = words

    def take_some_suites(self, loaded: Loaded, then: AfterEdit | None = None) -> None:
        """Suites were read again after an edit."""
        state = self.state
        state.config = loaded.config
        fresh = {suite.path: suite for suite in loaded.suites}
        line = self._places.suites.line_under_cursor()
        if loaded.items is not None and loaded.change is not None and loaded.version == state.version:
            change = loaded.change
            state.take(loaded.items, loaded.missing)
        else:
            change = edited([suite for suite in state.suites if suite.path in fresh], loaded.suites)
            others = [suite for suite in state.suites if suite.path not in fresh]
            state.set_suites(others + loaded.suites, loaded.with_secrets)
        self._places.post(SuitesChanged())
        if change.words:
            self._core.notices.problem(change.words)
        if then is not None:
            then(change)
        if line is not None:
            self._stay_near(line.key, change)
        self._follow_case(change)
        self._wanted |= dict.fromkeys(loaded.wanted)
        self.ask_trust(loaded.wanted)
        self._read(loaded)

    def _without(self, suites: Sequence[Suite]) -> None:
        """These suites are not there any more: so are their cases, which are marked no longer."""
        if not suites:
            return
        gone = {case.case_id for suite in suites for case in suite.cases}
        items = [item for item in self.state.gone.values() if item.case_id in gone]
        place, front, pointer = self._places.suites, self._places.place, self._places.pointer()
        marked = {key for key in place.marked() if key in gone}
        if marked:
            place.mark(set(place.marked()) - marked)
        about = [f"{len(marked):,} marked"] if marked else []
        if pointer is not None and pointer.case_id in gone and front is not None and not front.lists_cases:
            about.append("the one shown here")
        names = some_of([PurePath(suite.path).name for suite in suites], 3)
        words = f"{visible(names, newlines=False)} {'is' if len(suites) == 1 else 'are'} gone"
        words += f", with {counted(len(gone), 'case')}" if gone else ""
        words += f" ({' and '.join(about)})" if about else ""
        ran = any(item.history for item in items)
        self._core.notices.say(words + ("; results stay in Runs" if ran else ""))

    def _read(self, loaded: Loaded) -> None:
        for listener in self.on_read:
            listener(loaded)

    def _stay_near(self, key: str, change: EditedSuite) -> None:
        """The list's cursor stays with its case under its new name; where the file cannot be read any more,
        it goes to what is wrong with it, and back once that has been mended."""
        place, state = self._places.suites, self.state
        left, self._left_case = self._left_case, ""
        if key in change.renamed:
            place.bring(change.renamed[key])
        elif key in change.gone or key in {problem.path for problem in change.problems}:
            item = state.gone.get(key)
            path = item.suite if item is not None else key
            found = first_error(state.suites, path)
            if found is not None:
                place.bring(f"{path}!{found[0]}", path)
                self._left_case = key if item is not None else left
        elif left in state.by_id and key.partition("!")[0] == state.by_id[left].suite:
            place.bring(left)
        else:
            self._left_case = left

    def _follow_case(self, change: EditedSuite) -> None:
        """The case that is looked at has another name now, or is gone."""
        pointer = self._places.pointer()
        place = self._places.place
        if pointer is None or place is None or place.lists_cases:
            return
        name = pointer.case_id.partition("::")[2]
        if pointer.case_id in change.renamed:
            item = self.state.by_id.get(change.renamed[pointer.case_id])
            if item is not None:
                place.go_to(CasePointer(item.case_id))
                words = f"it is {item.name} now: r runs it"
                self._core.notices.log("note", words)
                # Not at the head of the case, which is about to be written anew.
                self._core.notices.over(words, 4)
        elif pointer.case_id in change.gone and not change.words:
            self._core.notices.say(f"{name} is no longer in its file")

    def reload(self, paths: Iterable[str | Path], then: str | AfterEdit = "") -> bool:
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
                self._core.notices.say(str(then))

        if chosen:
            self.loader.reload(chosen, tell if isinstance(then, str) else then)
        return bool(chosen)

    def _restore(self) -> None:
        place, memory = self._places.suites, self._core.memory
        if memory.get("filter"):
            kept = str(memory.get("filter"))
            if memory.get("filter_of", self._selection) == self._selection:
                place.set_filter(kept)
            else:  # it was made for other suites
                shown = visible(clip(kept, 40), newlines=False)
                self._core.notices.say(f"the last filter was of other paths, and is left out: {shown}")
        marks = memory.get("marks")
        if isinstance(marks, list):
            place.mark({str(mark) for mark in marks} & self.state.by_id.keys())
        cursor = memory.get("cursor")
        if isinstance(cursor, str) and cursor:
            place.go_when_there(cursor)

    def before_running(
        self,
        run: Handler,
        *,
        of_list: bool = False,
        at_cursor: bool = False,
        of_row: bool = False,
        of_case: bool = False,
    ) -> Handler:
        """What a key does that runs cases: the suites are read to their end first, then all is asked about
        that they would do and that has no answer yet. Where it is put off once more, nothing runs. `of_list`:
        the cases are those of the list, which is to hold all that was read; `at_cursor`: those of the line
        under its cursor; `of_row`: where that is one row it alone is meant, whatever the others are; `of_case`: it is
        one."""

        def when_read() -> Any:
            if self._looking:
                return self._core.notices.say("a run is being started")
            read = self._read_to >= self._needed
            if read and (not of_list or (of_row and self._means_one_row()) or self._is_listed()):
                # Where no case is meant nothing is run, and it says so.
                return run() if of_case and self._places.pointer() is None else self._ask_first(run)
            front = self._looked_at
            line = front.line_under_cursor() if at_cursor and front is not None else None
            if at_cursor and line is None and front is self._places.suites:
                return run()  # it says that there is none
            self._kept = kept = _Kept(run, front, line.key if line is not None else "")
            ordered = read and self._has_rows()
            self._core.notices.say(
                "putting the list in order: it is run then"
                if ordered
                else "reading the suites: it is run when they have been read"
            )
            if read:
                self._when_listed(kept)
            return None

        return when_read

    @property
    def _looked_at(self) -> Front | None:
        """The place in front, below any question."""
        return next((one for one in reversed(self._places.stack) if isinstance(one, Front)), None)

    def trusted_first(self, request: RunRequest, run: Handler) -> None:
        """Before it is run, ask what the agents that it names, and a cluster that a record names, want beside what the
        suites do; where that is put off, nothing runs."""
        state = self.state
        config, agreed = state.config, state.agreed
        only_judged = request.continue_from is not None and request.continue_from.turn is None
        named = request.on_recorded or request.agents or any(cell.agent for cell in request.cells or ())
        named = named or request.assess
        if state.trusted or config is None or only_judged or not named:
            run()
            return

        def look() -> list[str]:
            from tui_eval.engine.wants import wants_of_request

            return wants_of_request(request, config, Trust(agreed=agreed))

        def found(wanted: list[str]) -> None:
            self._looking = False
            if self._asking.intersection(wanted):
                self._wait.append(run)
            else:
                self._ask_first(run, wanted)

        self._looking = True
        # What cannot be found out is refused when it is wanted.
        self._core.tasks.thread(look, found, lambda _: found([]), name="trust", opens=True, queue="trust")

    def _ask_first(self, run: Handler, wanted: Iterable[str] = ()) -> Any:
        answered = self.state.agreed | (self.declined - self._put_off)
        unanswered = dict.fromkeys(
            what for what in [*self._wanted, *wanted, *sorted(self._put_off)] if what not in answered
        )
        if not unanswered or self.state.trusted:
            return run()
        self.declined -= frozenset(unanswered)
        self.ask_trust([*unanswered], run)
        return None

    def _has_rows(self) -> bool:
        """Whether the list whose cases run has a row of each case that was read, also while it is put in order."""
        place = self._places.list_to_run
        return isinstance(place, CaseListFront) and place.has_what_was_read()

    def _means_one_row(self) -> bool:
        """Whether the one row under the list's cursor is meant, or the case that is open: in a long list its attempts
        follow each other faster than that is put in order."""
        front = self._looked_at
        if front is None or not self._has_rows():
            return False
        if not isinstance(front, CaseListFront):
            return front.kind == "case"
        line = front.line_under_cursor()
        return line is not None and line.entry is not None and not front.marked()

    def _is_listed(self) -> bool:
        """Whether the list whose cases run holds all that was read."""
        place = self._places.list_to_run
        return not isinstance(place, CaseListFront) or place.is_whole()

    def _when_listed(self, kept: _Kept) -> None:
        """Do what a key asked for when the list holds what was read last: it hears of that later, and may need a
        thread for it."""
        place = self._places.list_to_run
        if isinstance(place, CaseListFront):
            place.when_whole(partial(self._do_what_waited, kept))
        else:
            self._do_what_waited(kept)

    def _do_what_waited(self, kept: _Kept) -> None:
        """Do what a key asked for while the suites were read, unless another key came after it. Not where the
        person has gone to another place or line since."""
        if self._kept is not kept or self._read_to < self._needed:
            return
        self._kept = None
        if kept.front is self._looked_at and kept.is_there():
            self._places.late(partial(self._ask_first, kept.run))
            return
        self._core.notices.say("nothing was run: another place is looked at now")
        self.ask_trust([*self._wanted])

    def ask_trust(self, wanted: list[str], then: Handler | None = None) -> None:
        """May the project do what it wants? Asked once for each thing; what was not listed is asked anew. `then` is
        what waits for the answer."""
        state = self.state
        fresh = [what for what in in_order(wanted) if what not in state.agreed | self.declined]
        if not fresh or state.trusted:
            return
        # Whoever is asked anew is shown what is still without an answer, too.
        fresh = in_order([*fresh, *sorted(self._put_off - state.agreed)])
        # Until it is answered it is declined: a second list shows only what this one does not.
        self.declined |= frozenset(fresh)
        for what in fresh:
            self._core.notices.log("note", f"needs trust: {clip(what, LONGEST)}")
        unread = [what for what in fresh if len(what) > LONGEST]
        fresh = [what for what in fresh if len(what) <= LONGEST]
        if unread:
            self._core.notices.problem(
                f"{len(unread)} {'thing' if len(unread) == 1 else 'things'} of more than {LONGEST:,} characters "
                "need trust and cannot be agreed to here; look at the files, then start with --trust (l: log)"
            )
        if not fresh:
            return

        def answer(value: str | None) -> None:
            for listener in self.on_answered:
                listener()
            asked = frozenset(fresh)
            waited, self._wait, self._asking = self._wait, [], frozenset()
            runs = [*([then] if then is not None else ()), *waited]
            self._put_off = self._put_off - asked if value else self._put_off | asked
            if value in ("always", "once"):
                how = "always" if value == "always" else "this time"
                for what in fresh:
                    self._core.notices.log("note", f"trusted {how}: {what}")
                state.agreed |= asked
                self.declined -= asked
                if value == "always":
                    try:
                        trust_store.grant(state.root, fresh)
                    except OSError as error:
                        self._core.notices.problem(f"could not remember it: {error}")
                self.loader.load()
                self._needed = self.loader.generation
            elif value is None:
                what = "not answered" if not runs else "nothing was run"
                self._core.notices.say(f"{what}: asked again before the next run (n: no)")
            else:
                self._core.notices.say(
                    "not trusted: cases that need it are errors until tui-eval starts anew"
                )
            if value is not None and runs:
                # What may be done now may make other cases of the suites.
                self.before_running(lambda: [run() for run in runs], of_list=True)()

        self._asking = frozenset(fresh)
        self._places.ask(
            f"Do you trust {state.shown_root} with this?",
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
            list(map(unbroken, fresh)),
            after_reading=("always", "once"),
            unasked=True,
        )

    def screen(self) -> Screen[Any]:
        """The list of suites, as it was looked at the last time."""
        screen, memory = self._places.screens.make("suites"), self._core.memory
        assert isinstance(screen, CaseListFront)
        screen.view.folded = {str(key) for key in memory.get("folded", []) if isinstance(key, str)}
        screen.view.unfolded = {str(key) for key in memory.get("unfolded", []) if isinstance(key, str)}
        if memory.get("grouping") in GROUPINGS:
            screen.view.grouping = str(memory.get("grouping"))
        screen.view.failures_first = bool(memory.get("failures_first", False))
        screen.view.reverse = bool(memory.get("reverse", False))
        if memory.get("sort") in SORTS:
            screen.view.sort = str(memory.get("sort"))
        return screen

    def remembered(self) -> dict[str, Any]:
        """How the list is looked at, for the next time."""
        place = self._places.find("suites")
        if not isinstance(place, CaseListFront) or not stands(cast(Screen[Any], place)):
            return {}
        line = place.line_under_cursor()
        return {
            "cursor": line.key if line else "",
            "filter": place.expression,
            "filter_of": self._selection,
            "folded": sorted(place.view.folded)[:2000],
            "unfolded": sorted(place.view.unfolded)[:2000],
            "grouping": place.view.grouping,
            "failures_first": place.view.failures_first,
            "sort": place.view.sort,
            "reverse": place.view.reverse,
            "marks": sorted(place.marked())[:2000],
            "filters": self._core.memory.filters,
        }
