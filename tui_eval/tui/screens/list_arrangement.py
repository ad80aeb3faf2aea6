"""The rows of a list of cases and its lines: made, sorted, filtered, and changed where they stand.

Many rows and their lines are made in a thread: no key waits for a hundred thousand of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from time import monotonic, thread_time
from typing import Any, Protocol

from msgspec.structs import replace
from textual.timer import Timer

from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_sources import ENOUGH, CaseSource
from tui_eval.tui.state.lists.case_tree import GROUPINGS, SORTS, Tree, View, urgency
from tui_eval.tui.state.lists.entries import failing
from tui_eval.tui.state.lists.tree_lines import build
from tui_eval.tui.terminal.gc_pauses import undisturbed
from tui_eval.tui.widgets.case_list import CaseList

MANY = ENOUGH
"""Entries from which on they are made, sorted and filtered in a thread."""
PAUSE = 1.0
"""Seconds at least between two changes of a list's order that nobody asked for."""
LONGEST_PAUSE = 10.0
"""Seconds after which a list is put in order anew however much work that is."""
A_MOMENT = 2.0
"""Seconds that a failure which passes now is seen in its place, before it folds away."""
AT_A_GLANCE = 20
"""Of more of them at once none is kept: nobody reads so many, and what is being worked on needs the room."""
GOES_ON = ("running", "retrying", "waiting")
"""Statuses of a case that is being executed: it can be cancelled."""


class ListScreen(Protocol):
    """What the parts of a list of cases ask of the screen they stand in."""

    @property
    def case_list(self) -> CaseList:
        """The list."""
        ...

    def has(self, *selectors: str) -> bool:
        """Whether these widgets are there, and the screen with them."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Timer:
        """Call this once, in so many seconds."""
        ...

    def rebuilt(self) -> None:
        """Other lines are shown."""
        ...

    def show_list(self) -> None:
        """Bring the list in sight, where another pane has its room."""
        ...

    def tell_arranged(self) -> None:
        """Whoever shows the same cases elsewhere hears that they are another, or in another order."""
        ...


class ListArrangement:
    """Keeps the rows of a list, and its lines in the order and under the filter that are wanted."""

    def __init__(
        self, screen: ListScreen, source: CaseSource, services: AppServices, *, floats: bool = False
    ) -> None:
        """`floats`: where the person has not moved the cursor, it stays at the top, where failures float to."""
        self._screen, self._source, self._services = screen, source, services
        self._floats = floats
        self.view = View()
        self.rows: dict[str, CaseRow] = {}
        """Every row by its key, shown or not, in the order of the files or of the run."""
        self._arrangement = 0
        self._changes = 0
        self._token: object = None
        self._made_of: object = None
        """The cases, as they were read, that the rows are made from."""
        self._taken_of: object = None
        """Those that the rows there are were made from, while others may be in the making."""
        self._waits: list[Callable[[], Any]] = []
        """What is done when the list is whole."""
        self._others = False
        """Whether there are rows that are not among `rows`, or no longer: a case has other columns than it had."""
        self._late: set[str] | None = None
        """Keys whose rows changed while a thread makes all of them."""
        self._wanted = ""
        """The key of a line that the cursor is put on when there is one."""
        self._unfolds = False
        """Whether what hides that line is to be unfolded."""
        self._soon: Timer | None = None
        self._at_work = 0
        """The arrangement that a thread makes; 0: none."""
        self._again = False
        """Whether cases went on while it was made, so that another one is due."""
        self._arranged_at = 0.0
        self._cost = 0.0
        self._from_top = False
        """Whether the next lines are seen from the first on."""
        self._mended: dict[str, float] = {}
        """When failures were seen to be none any more, by their keys."""
        self._moment: Timer | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "list.sort": self.sort,
            "list.reverse": self.reverse,
            "list.failures_first": self.failures_first,
            "list.grouping": self.grouping,
        }

    # -- the list

    def _prepare(self) -> bool:
        """Before lines are made anew; says whether the cursor stays on its case."""
        for key in self._settled(self.view, self.rows, self._here(), self._just_mended()):
            del self.view.held[key]
        self._fold_in_a_moment()
        return self._screen.case_list.touched if self._floats else True

    def remake(self) -> None:
        """Make the entries anew from the state, and the lines from them; many of them in a thread."""
        if self._source.count() <= MANY:
            self.rebuild()
            return
        self._renew_in_sight()
        self._arrangement += 1
        arrangement, keep = self._arrangement, self._prepare()
        self._at_work = arrangement
        self._made_of = self._services.state.rows
        make, old, suites, read = self._source.maker(), self.rows, list(self._source.suites()), self._made_of
        view, token, here = self._snapshot(), self._services.state.token, self._here()
        mended = self._just_mended()
        self._late, self._others = set(), False
        if self.rows:
            self._screen.rebuilt()  # that more is to come

        def work() -> tuple[dict[str, CaseRow], Tree, Set[str]]:
            with undisturbed():
                entries = {entry.key: entry for entry in make()}
                fresh = hold(view, old, entries)
                seen = mended | fresh
                if len(seen) > AT_A_GLANCE:
                    seen = set()
                for key in self._settled(view, entries, here, seen):
                    del view.held[key]
                return entries, build(entries.values(), suites, view), fresh

        def take(made: tuple[dict[str, CaseRow], Tree, Set[str]]) -> None:
            if arrangement != self._arrangement or not self._screen.has("CaseList"):
                return
            self._at_work = 0
            late, self._late = self._late or set(), None
            self.rows, self._token, self._taken_of = made[0], token, read
            self._carry_marks(old)
            self.view.held.update(view.held)
            self._mended.update(dict.fromkeys(made[2] - self._mended.keys(), monotonic()))
            self._fold_in_a_moment()
            self._take(made[1], keep)
            # What came out while the thread was at work is seen for its moment, too.
            moved = not self._just_mended() <= view.held.keys()
            moved = self._replace(self._source.some(late)) or moved
            if self._others:
                self.remake()
            elif moved:
                self.rearrange()
            self._once_more()

        self._services.tasks.thread(work, take, name="entries")

    def _renew_in_sight(self) -> None:
        """The rows on the screen say at once how things stand, whatever all the others take."""
        cases = self._screen.case_list
        lines = cases.cases.lines[cases.top : cases.top + cases.window]
        self._replace(self._source.some([line.key for line in lines if line.entry is not None]))

    def rebuild(self, *, entries: bool = True, keep: bool = True) -> Tree:
        """Make the lines anew (and the entries from the state, where `entries`)."""
        if entries or not self.rows:
            self._token, self._made_of = self._services.state.token, self._services.state.rows
            self._taken_of = self._made_of
            old, self._late, self._others = self.rows, None, False
            self.rows = {entry.key: entry for entry in self._source.maker()()}
            self._hold(old, self.rows)
            self._carry_marks(old)
        began = thread_time()
        keep = self._prepare() and keep
        tree = build(self.rows.values(), self._source.suites(), self.view)
        self._arrangement += 1
        self._at_work = 0
        self._take(tree, keep)
        self._took(thread_time() - began)
        if self._late is not None and not self._at_work:
            self.remake()  # what a thread was making is void by now, and these rows are those of before it
        return tree

    def _took(self, cost: float) -> None:
        """Remember when the lines were made, and how much work that was: not how long it took on a busy machine, or
        the failures of a large run would be seen minutes later."""
        self._arranged_at, self._cost = monotonic(), cost

    def rearrange_soon(self, pause: float = PAUSE) -> None:
        """`rearrange`, at once where the last time was long ago, else after a while: while cases run many of them
        change, and the list neither jumps nor takes the keys' time."""
        if self._soon is not None:
            return
        if self._at_work:  # begun anew with each change, it would be ready when the run is
            self._again = True
            return
        wait = self._arranged_at + pause_after(self._cost, pause) - monotonic()
        if wait <= 0:
            self._rearranged()
        else:
            self._soon = self._screen.set_timer(wait, self._rearranged)

    def _rearranged(self) -> None:
        self._soon = None
        if self._at_work:
            self._again = True
        elif self._screen.has("CaseList"):
            self.rearrange()

    def _once_more(self) -> None:
        """Go on with what changed while a thread was at work."""
        if self._again and not self._at_work:
            self._again = False
            self.rearrange_soon()

    def rearrange(self) -> None:
        """The same entries under another filter or order; many of them in a thread."""
        if max(len(self.rows), self._source.count()) <= MANY:
            self.rebuild(entries=False)
            return
        if self._late is not None or not self.rows:
            self.remake()  # all of them are being made: they are arranged as it is now wanted
            return
        self._arrangement += 1
        arrangement, changes, keep = self._arrangement, self._changes, self._prepare()
        self._at_work = arrangement
        entries, suites, view = list(self.rows.values()), list(self._source.suites()), self._snapshot()

        def work() -> tuple[Tree, float]:
            with undisturbed():
                began = thread_time()
                return build(entries, suites, view), thread_time() - began

        def take(made: tuple[Tree, float]) -> None:
            if arrangement != self._arrangement or not self._screen.has("CaseList"):
                return
            self._at_work = 0
            self._take(made[0], keep)
            self._took(made[1])
            if changes != self._changes and not view.flat:
                self._screen.set_timer(1.0, self._rearranged)  # cases went on meanwhile: the folders' counts
            self._once_more()

        self._services.tasks.thread(work, take, name="arranging")

    def _snapshot(self) -> View:
        view = self.view
        return replace(view, folded=set(view.folded), unfolded=set(view.unfolded), held=dict(view.held))

    def _take(self, tree: Tree, keep: bool) -> None:
        cases = self._screen.case_list
        if self._from_top:
            self._from_top, keep, cases.cursor, cases.top = False, False, 0, 0
        cases.show(tree, keep=keep)
        hiding: tuple[str, ...] = ()
        if self._wanted and (cases.touched or cases.go_to(self._wanted)):
            self._wanted = ""
        elif self._wanted and self._unfolds:
            hiding = tree.hiding(self._wanted)
        self._screen.rebuilt()
        self._screen.tell_arranged()
        if self._waits and self.is_whole():
            waits, self._waits = self._waits, []
            for do in waits:
                do()
        if hiding:
            self._unfolds = False
            self.view.unfolded.update(hiding)
            self.view.folded.difference_update(hiding)
            self.rearrange()

    def _here(self) -> tuple[set[str], bool]:
        """The cases under the cursor, and whether the person has put it there."""
        cases = self._screen.case_list
        line = cases.current_line
        moved = cases.touched or not self._floats
        if line is None:
            return set(), moved
        members = line.members if line.kind != "group" else ()
        return {line.key, *(entry.key for entry in members)}, moved

    def _hold(self, old: Mapping[str, CaseRow], new: Mapping[str, CaseRow]) -> None:
        """Let what changed stay in its place, and remember which failures are none any more."""
        self._mended.update(dict.fromkeys(hold(self.view, old, new), monotonic()))

    def _carry_marks(self, old: Mapping[str, CaseRow]) -> None:
        """A case that is asked in more columns now, or fewer, has rows of other keys: they are marked as it was."""
        cases = self._screen.case_list
        gone = {key: old[key].case_id for key in cases.marks - self.rows.keys() if key in old}
        if not gone:
            return
        ids = set(gone.values())
        found = {key: row.case_id for key, row in self.rows.items() if row.case_id in ids}
        there = set(found.values())
        cases.marks = cases.marks - {key for key, case_id in gone.items() if case_id in there} | found.keys()

    def _fold_in_a_moment(self) -> None:
        if self._moment is None and (mended := self._just_mended()):
            wait = max(self._mended[key] for key in mended) + A_MOMENT - monotonic()
            self._moment = self._screen.set_timer(wait, self._moment_passed)

    def _just_mended(self) -> Set[str]:
        """Keys of the failures that are none any more since a moment; none where these are many."""
        since = monotonic() - A_MOMENT
        self._mended = {key: seen for key, seen in self._mended.items() if seen > since}
        return self._mended.keys() & self.view.held.keys() if len(self._mended) <= AT_A_GLANCE else set()

    def _moment_passed(self) -> None:
        """Fold away what was to be seen for a moment."""
        self._moment = None
        self._rearranged()

    @staticmethod
    def _settled(
        view: View, rows: Mapping[str, CaseRow], here: tuple[set[str], bool], mended: Set[str]
    ) -> set[str]:
        """Cases that need not be held where they were any longer: what they were run for has come out and was seen,
        and the cursor is elsewhere; or stands at the top of its own, and they were no failures."""
        keys, moved = here
        return {
            key
            for key, urgency_before in view.held.items()
            if (key not in keys or (not moved and urgency_before > 0))
            and (key not in rows or (rows[key].status not in GOES_ON and key not in mended))
        }

    @property
    def busy(self) -> bool:
        """Whether a thread makes all rows."""
        return self._late is not None

    def tally(self, now: Mapping[str, str]) -> Counter[str] | None:
        """How many cases have each status, some of them another one `now` than their rows say; None while a thread
        makes the rows: those there are may be none, or of long ago."""
        if self.busy:
            return None
        found = Counter(row.status for row in self.rows.values())
        for key, status in now.items():
            if key in self.rows:
                found[self.rows[key].status] -= 1
            found[status] += 1
        return found

    def is_whole(self) -> bool:
        """Whether all cases that were read are among the rows, and those shown are those that the filter asks
        for: what is run must not leave out the last of them. Rows of other cases are made anew."""
        if not self._screen.has("CaseList"):
            return False
        if self._made_of is not self._services.state.rows:
            self.remake()
        return not self._at_work and not self.busy

    def has_what_was_read(self) -> bool:
        """Whether there is a row of each case as it was read last; how they stand, and their order, may be in the
        making."""
        return bool(self.rows) and self._taken_of is self._services.state.rows and not self._others

    def when_whole(self, do: Callable[[], Any]) -> None:
        """Do this when the list is whole: at once, where it is."""
        if self.is_whole():
            do()
        else:
            self._waits.append(do)

    def up_to_date(self) -> bool:
        """Whether nothing has changed since the entries were made."""
        return bool(self.rows) and self._token == self._services.state.token

    def _replace(self, fresh: Iterable[CaseRow]) -> bool:
        """Entries changed: redraw their lines. Says whether the order may have changed with them."""
        cases = self._screen.case_list
        lines: set[int] = set()
        moved = False
        for new in fresh:
            if self._late is not None:
                self._late.add(new.key)
            old = self.rows.get(new.key)
            if old is None or (old.column and new.column and old.column.of != new.column.of):
                # While a thread makes all rows it is no news that one is not there yet: it is looked for afterwards.
                self._others = self._others or self._late is None
                continue
            before, note, cause = old.status, old.note, old.cause
            self._changes += 1
            new.name, new.variant, new.test = old.name, old.variant, old.test
            if before == new.status and not _differs(old, new):
                continue
            self._hold({old.key: old}, {new.key: new})
            for name in CaseRow.__struct_fields__:
                setattr(old, name, getattr(new, name))
            cases.widen(old)
            lines.update(cases.status_changed(old.key, before, old.status))
            if (before, cause) != (old.status, old.cause) or (
                note != old.note and self.view.accept is not None
            ):
                moved = True
        cases.refresh_row(*lines)
        return moved

    def replace_some(self, keys: Iterable[str]) -> bool:
        """Cases of these keys changed: make their rows anew and redraw their lines. Says whether the order may have
        changed with them."""
        moved = self._replace(self._source.some(keys))
        self._token = self._services.state.token
        if self._others and not self.busy:
            self.remake()
        return moved

    def settle(self) -> None:
        """The cursor rests: let go what was held for it."""
        if self.view.held and self._settled(self.view, self.rows, self._here(), self._just_mended()):
            self.rearrange()

    # -- where the cursor is

    def go_when_there(self, key: str) -> None:
        """Put the cursor on a line as soon as there is one of that key, unless the person has moved it."""
        if not self._screen.case_list.go_to(key):
            self._wanted, self._unfolds = key, False

    def bring(self, key: str, suite: str = "") -> None:
        """Put the cursor on a line that is being made, also where the person has moved it; what of `suite` is
        folded, and what hides the line, is unfolded."""
        if suite:
            self.view.folded = {folded for folded in self.view.folded if not _holds(folded, suite)}
        self._screen.case_list.touched = False
        self._wanted, self._unfolds = key, True

    def unfold(self, entry: CaseRow) -> None:
        """Unfold what hides a case, and put the cursor on it."""
        hiding = self._screen.case_list.cases.hiding(entry.key)
        self.view.unfolded.update(hiding)
        self.view.folded = {
            key for key in self.view.folded if key not in hiding and not _holds(key, entry.suite)
        }
        self.rebuild(entries=False)
        self._screen.case_list.go_to(entry.key)

    def fold(self, key: str, folded: bool) -> None:
        """Fold or unfold a line."""
        view = self.view
        there, gone = (view.folded, view.unfolded) if folded else (view.unfolded, view.folded)
        there.add(key)
        gone.discard(key)
        self.rearrange()
        if not folded:
            self._screen.case_list.show_inside()

    # -- keys

    def sort(self) -> None:
        """The next way to sort."""
        number = SORTS.index(self.view.sort) if self.view.sort in SORTS else 0
        self.view.sort = SORTS[(number + 1) % len(SORTS)]
        self._otherwise(f"sorted by {self.view.sort}")

    def reverse(self) -> None:
        """The other way round."""
        self.view.reverse = not self.view.reverse
        self._otherwise("the other way round" if self.view.reverse else f"sorted by {self.view.sort}")

    def failures_first(self) -> None:
        """Failures float up, or stay where they are."""
        self.view.failures_first = not self.view.failures_first
        self._otherwise("failures first" if self.view.failures_first else f"sorted by {self.view.sort}")

    def grouping(self) -> None:
        """The next way to group tests: by file, not at all, by agent, by why they did not pass. Sorted cases stand one
        by one, so that the order ends."""
        view = self.view
        sorted_by = f"; no longer sorted by {view.sort}" if view.sort != "file" else ""
        view.sort, view.reverse = "file", False
        number = GROUPINGS.index(view.grouping) if view.grouping in GROUPINGS else 0
        view.grouping = GROUPINGS[(number + 1) % len(GROUPINGS)]
        words = "one test after the other" if view.grouping == "test" else f"by {view.grouping}"
        self._otherwise(f"{words}{sorted_by}")

    def _otherwise(self, words: str) -> None:
        """The person wants another order: nothing is held, and what comes first in it is seen."""
        self.view.held.clear()
        view = self.view
        self._from_top = view.flat or view.failures_first or view.grouping != "file"
        self.rearrange()
        self._services.notices.say(words)


def pause_after(cost: float, least: float) -> float:
    """Seconds to wait until a list whose order took so much work is put in order again: it takes a twentieth of the
    time, but nobody waits for ever for the failures of a large run."""
    return max(least, min(20 * cost, LONGEST_PAUSE))


def hold(view: View, old: Mapping[str, CaseRow], new: Mapping[str, CaseRow]) -> set[str]:
    """Let cases stay where they are that lose their place by what has become of them, or may do so when a failure
    that is run again has ended. Returns the failures that are none any more."""
    for key, entry in new.items():
        before = old.get(key)
        if before is None or (before.status, before.flaky, before.note) == (
            entry.status,
            entry.flaky,
            entry.note,
        ):
            continue
        again = failing(before) and entry.status in GOES_ON and not view.flat
        if again or any(
            had and not has for had, has in zip(view.place(before), view.place(entry), strict=True)
        ):
            view.held.setdefault(key, urgency(before))
    both = view.held.keys() & new.keys() & old.keys()
    return {key for key in both if _mended(view.held[key], old[key], new[key])}


def _mended(urgency_before: int, old: CaseRow, new: CaseRow) -> bool:
    """Whether a case that stood among the failures has just come out as none."""
    ended = new.status not in GOES_ON and (failing(old) or old.status in GOES_ON)
    return ended and urgency_before < 2 and not failing(new)


def _differs(old: CaseRow, new: CaseRow) -> bool:
    return any(
        getattr(old, name) != getattr(new, name) for name in CaseRow.__struct_fields__ if name != "case"
    )


def _holds(key: str, suite: str) -> bool:
    """Whether a suite stands under this line: the suite's own, or that of a folder above it."""
    return key == suite or (key.endswith("/") and suite.startswith(key))
