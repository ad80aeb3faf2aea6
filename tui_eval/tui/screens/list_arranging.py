"""The entries of a list of cases and its lines: made, sorted, filtered, and changed where they stand.

Many entries and their lines are made in a thread: no key waits for a hundred thousand of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tui_eval.model import Suite
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.screens.list_finding import ListFinding
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import Tree, View, build
from tui_eval.tui.terminal.gc_pauses import undisturbed

MANY = 20_000
"""Entries from which on they are made, sorted and filtered in a thread."""
GOES_ON = ("running", "retrying", "waiting")


class ListArranging(ListFinding, inherit_bindings=False):
    """Keeps the entries of a list, and its lines in the order and under the filter that are wanted. Those
    derived say what the entries are."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, CaseRow] = {}
        self._arrangement = 0
        self._changes = 0
        self._token: object = None
        self._late: set[str] | None = None
        """Keys whose entries changed while a thread makes all of them."""
        self._wanted = ""
        """The key of a line that the cursor is put on when there is one."""
        self._from_top = False
        """Whether the next lines are seen from the first on."""

    # -- for those derived

    def case_count(self) -> int:
        """How many entries there are to be made."""
        raise NotImplementedError

    def entry_maker(self) -> Callable[[], list[CaseRow]]:
        """What makes every case of this place, as it stands now; may be called in a thread."""
        raise NotImplementedError

    def entries_of(self, keys: Iterable[str]) -> Iterable[CaseRow]:
        """Some of them anew."""
        raise NotImplementedError

    def list_suites(self) -> Iterable[Suite]:
        """Suites whose problems stand in the list."""
        return ()

    # -- the list

    def prepare(self) -> bool:
        """Before lines are made anew; says whether the cursor stays on its case."""
        self.view.held -= self._settled()
        return True

    def remake(self) -> None:
        """Make the entries anew from the state, and the lines from them; many of them in a thread."""
        if self.case_count() <= MANY:
            self.rebuild()
            return
        self._arrangement += 1
        arrangement, keep = self._arrangement, self.prepare()
        make, old, suites = self.entry_maker(), self._entries, list(self.list_suites())
        view, token = self._snapshot(), self.services.state.token
        self._late = set()

        def work() -> tuple[dict[str, CaseRow], Tree]:
            with undisturbed():
                entries = {entry.key: entry for entry in make()}
                hold(view, old, entries)
                return entries, build(entries.values(), suites, view)

        def take(made: tuple[dict[str, CaseRow], Tree]) -> None:
            if arrangement != self._arrangement or not stands(self):
                return
            late, self._late = self._late or set(), None
            self._entries, self._token = made[0], token
            self.view.held |= view.held
            self._take(made[1], keep)
            if self.replace_entries(self.entries_of(late)):
                self.rearrange()

        run_in_thread(self.app, work, take, name="entries")

    def rebuild(self, *, entries: bool = True, keep: bool = True) -> Tree:
        """Make the lines anew (and the entries from the state, where `entries`)."""
        if entries or not self._entries:
            self._token = self.services.state.token
            old, self._late = self._entries, None
            self._entries = {entry.key: entry for entry in self.entry_maker()()}
            hold(self.view, old, self._entries)
        keep = self.prepare() and keep
        tree = build(self._entries.values(), self.list_suites(), self.view)
        self._arrangement += 1
        self._take(tree, keep)
        return tree

    def rearrange(self) -> None:
        """The same entries under another filter or order; many of them in a thread."""
        if max(len(self._entries), self.case_count()) <= MANY:
            self.rebuild(entries=False)
            return
        if (
            self._late is not None or not self._entries
        ):  # all of them are being made: they are arranged as it is now wanted
            self.remake()
            return
        self._arrangement += 1
        arrangement, changes, keep = self._arrangement, self._changes, self.prepare()
        entries, suites, view = list(self._entries.values()), list(self.list_suites()), self._snapshot()

        def work() -> Tree:
            with undisturbed():
                return build(entries, suites, view)

        def take(tree: Tree) -> None:
            if arrangement != self._arrangement or not stands(self):
                return
            self._take(tree, keep)
            if changes != self._changes and not view.flat:
                self.set_timer(1.0, self.rearrange)  # cases went on meanwhile: the folders' counts

        run_in_thread(self.app, work, take, name="arranging")

    def _snapshot(self) -> View:
        return replace(self.view, folded=set(self.view.folded), held=set(self.view.held))

    def _take(self, tree: Tree, keep: bool) -> None:
        cases = self.case_list
        if self._from_top:
            self._from_top, keep, cases.cursor, cases.top = False, False, 0, 0
        cases.show(tree, keep=keep)
        if self._wanted and (cases.touched or cases.go_to(self._wanted)):
            self._wanted = ""
        """The key of a line that the cursor is put on when there is one."""
        self.rebuilt()

    def _settled(self) -> set[str]:
        """Cases that need not be held where they were any longer: what they were run for has come out, and
        the cursor is elsewhere."""
        line = self.case_list.current_line if self.view.held else None
        here = line.key if line is not None else ""
        return {
            key
            for key in self.view.held
            if key != here and (key not in self._entries or self._entries[key].status not in GOES_ON)
        }

    def up_to_date(self) -> bool:
        """Whether nothing has changed since the entries were made."""
        return bool(self._entries) and self._token == self.services.state.token

    def replace_entries(self, fresh: Iterable[CaseRow]) -> bool:
        """Entries changed: redraw their lines. Says whether the order may have changed with them."""
        cases = self.case_list
        lines: set[int] = set()
        moved = False
        for new in fresh:
            if self._late is not None:
                self._late.add(new.key)
            old = self._entries.get(new.key)
            if old is None:
                moved = True
                self._entries[new.key] = new
                continue
            before, note = old.status, old.note
            self._changes += 1
            new.variant = old.variant
            if before == new.status and not _differs(old, new):
                continue
            hold(self.view, {old.key: old}, {new.key: new})
            for name in CaseRow.__slots__:
                setattr(old, name, getattr(new, name))
            cases.widen(old)
            lines.update(cases.status_changed(old.key, before, old.status))
            if (before, note) != (old.status, old.note) and (self.view.flat or self.view.accept is not None):
                moved = True
        cases.refresh_lines(lines)
        return moved

    def shown_entries(self) -> list[CaseRow]:
        """Cases that pass the filter, in order."""
        return self.case_list.cases.shown

    def all_entries(self) -> Iterable[CaseRow]:
        """Every case, shown or not, in the order of the files or of the run."""
        return self._entries.values()


def hold(view: View, old: dict[str, CaseRow], new: dict[str, CaseRow]) -> None:
    """Let cases stay where they are that lose their place by what has become of them."""
    if view.accept is None and not view.failures_first:
        return
    for key, entry in new.items():
        before = old.get(key)
        if before is None or (before.status, before.flaky, before.note) == (
            entry.status,
            entry.flaky,
            entry.note,
        ):
            continue
        if any(had and not has for had, has in zip(view.place(before), view.place(entry), strict=True)):
            view.held.add(key)


def _differs(old: CaseRow, new: CaseRow) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in CaseRow.__slots__ if name != "case")
