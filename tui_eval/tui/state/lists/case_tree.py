"""The lines of a case list: folders, suites, tests and their rows, folded, filtered, grouped and sorted.

Pure. A list is made of `CaseRow`s (a case with its present status and figures); `tree_lines.build` turns them into
`TreeLine`s. A test that has several rows (prompts, providers, variables, agents) is a line of its own; rows of
it that came out alike, tests that passed and tests that wait fold into one line each, unless the person
unfolded them. A change of one row's status needs no rebuilding to be seen: `Tree.update` adjusts the counts of
the lines above it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from tui_eval import causes
from tui_eval.model import Problem, Suite
from tui_eval.tui.state.lists.case_entry import CaseRow, Extent
from tui_eval.tui.state.lists.entries import failing, not_passed
from tui_eval.tui.state.lists.telling_apart import (
    NOT_AT_ALL,
    Differs,
    listed,
    named_together,
)
from tui_eval.tui.state.runs.run_view import NOT_RUN
from tui_eval.tui.state.text.formatting import SEVERITY

LineKind = Literal["folder", "suite", "group", "test", "fold", "case", "problem"]
SORTS = ("file", "outcome", "name", "duration", "age", "cost")
GROUPINGS = ("file", "test", "agent", "cause")
"""What the lines above the tests stand for: folders and suites, nothing, agents, why a test did not pass."""


class TreeLine(Struct, eq=False):
    """One line. `above` are the lines it belongs to, outermost first; `members` the rows of a test, a fold or a
    group."""

    kind: LineKind
    key: str
    depth: int
    name: str
    entry: CaseRow | None = None
    suite: Suite | None = None
    problem: Problem | None = None
    path: str = ""
    folded: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    above: tuple[TreeLine, ...] = ()
    members: Sequence[CaseRow] = ()
    status: str = ""
    """Of a fold, the outcome that its rows had when it was made."""
    differs: Differs = NOT_AT_ALL
    """Where its name differs from those of the lines beside it."""
    variant_differs: Differs = NOT_AT_ALL
    """The same of what tells its row from others of its test."""
    siblings: Sequence[str] = ()
    """Of a fold of a test's rows, what each row of that test is called."""
    beside: str = ""
    """What tells it from a line beside it of the same name, of another suite."""
    beside_differs: Differs = NOT_AT_ALL
    """Where that differs from what the other lines have."""
    of: int = 0
    """Rows of its test, shown here or not."""
    cases: int = 0
    """Cases below it, each once, whatever columns it has."""
    _telling: CaseRow | None = None
    _summary: CaseRow | None = None
    _names: Sequence[str] | None = None

    def changed(self) -> None:
        """One of its rows did."""
        self._telling = self._summary = self._names = None

    @property
    def stands_as(self) -> str:
        """The outcome that a fold stands for: the one that it was made for as long as any row has it, then what most
        of its rows do; a fold of unlike rows would say of all what is so of one."""
        if self.kind != "fold" or self.counts[self.status]:
            return self.status
        return max(self.counts, key=lambda status: (self.counts[status], -SEVERITY.get(status, SEVERITY[""])))

    @property
    def standing(self) -> Sequence[CaseRow]:
        """Its rows, of a fold those of one outcome: others leave it when the list is made anew."""
        status = self.stands_as
        if self.kind != "fold" or self.counts[status] == len(self.members):
            return self.members
        found = [entry for entry in self.members if entry.status == status]
        return found or self.members  # a row has its new status a moment before it is counted

    @property
    def names(self) -> Sequence[str]:
        """Of a fold of a test's rows, what those that it stands for are called: as many stand in its line as there is
        room for."""
        if self._names is None:
            standing = {entry.key for entry in self.standing} if self.siblings else set[str]()
            rows = self.above[-1].members if self.siblings else ()
            called = [name for name, row in zip(self.siblings, rows, strict=True) if row.key in standing]
            self._names = named_together(called, self.siblings) if called else ()
        return self._names

    @property
    def holds_lines(self) -> bool:
        """Whether it can be folded."""
        return self.kind in ("folder", "suite", "group", "test", "fold")

    @property
    def suite_path(self) -> str:
        """The suite of the row, or of the test; empty for other lines."""
        if self.entry is not None:
            return self.entry.suite
        return self.members[0].suite if self.kind == "test" else ""

    @property
    def telling(self) -> CaseRow | None:
        """The case that it stands for: its own, else the first of those that stand worst."""
        if self.entry is not None:
            return self.entry
        if self._telling is None:
            self._telling = min(self.standing, key=severity_of, default=None)
        return self._telling

    @property
    def summary(self) -> CaseRow:
        """What a test's line or a fold shows of its rows, made once until one of them changes."""
        if self._summary is None:
            self._summary = summary_row(self)
        return self._summary


class View(Struct):
    """How a list is looked at. What is kept between sessions."""

    sort: str = "file"
    reverse: bool = False
    failures_first: bool = False
    grouping: str = "file"
    folded: set[str] = field(default_factory=set)
    unfolded: set[str] = field(default_factory=set)
    """Keys of lines that the person unfolded although they fold by themselves."""
    accept: Callable[[CaseRow, bool], bool] | None = None
    """Whether a row passes the filter, given whether the rows of its test came out differently."""
    compares_rows: bool = False
    """Whether the filter asks for the latter."""
    differing: Set[tuple[str, str]] = frozenset()
    """The tests whose rows did, when the lines were made."""
    held: dict[str, int] = field(default_factory=dict)
    """Cases that stay where they are although they are no failures any more, would be folded away, or no longer
    pass the filter, so that the list does not move under the person's hands; by key, with the urgency that gave
    them their place."""

    def urgency(self, entry: CaseRow) -> int:
        """Failures, then what is being worked on, then the rest in the order chosen."""
        held = self.held.get(entry.key)
        return urgency(entry) if held is None else held

    @property
    def order(self) -> str:
        """The order in words; empty for that of the files."""
        words = "failures first" if self.failures_first else ""
        if self.grouping != "file":
            words = f"{words}, by {self.grouping}" if words else f"by {self.grouping}"
        if self.sort != "file":
            words = f"{words}, by {self.sort}" if words else f"by {self.sort}"
        if self.reverse:
            words = f"{words}, reversed" if words else "reversed"
        return words

    def place(self, entry: CaseRow) -> tuple[bool, bool, bool]:
        """What gives an entry its place: that it passes the filter, that it stands among the failures, that it
        is not folded away with others like it."""
        return (
            self.accepts(entry),
            self.failures_first and urgency(entry) < 2,
            self.flat or entry.status not in FOLDING,
        )

    def accepts(self, entry: CaseRow) -> bool:
        """Whether an entry passes the filter."""
        return self.accept is None or self.accept(entry, entry.of_test in self.differing)

    @property
    def flat(self) -> bool:
        """Whether cases stand one by one, without the tree: where they are sorted by a figure."""
        return self.sort != "file" or self.reverse

    def is_folded(self, key: str, by_itself: bool) -> bool:
        """Whether a line is folded, that folds by itself or does not."""
        return key in self.folded or (by_itself and key not in self.unfolded)


class Standing(NamedTuple):
    """How many of the cases shown are what `]` stops at, and what `R` runs again; and how many have each status."""

    failing: int
    not_passed: int
    counts: Counter[str]


class Tree(Struct):
    """The lines shown, and where each entry's line is."""

    lines: list[TreeLine]
    shown: list[CaseRow]
    """Cases that pass the filter, in the order shown, also those in folded parts."""
    total: int
    """Cases, shown or not."""
    index: dict[str, int]
    _above: dict[str, tuple[TreeLine, ...]]
    extent: Extent = field(default_factory=Extent)
    rows: int = 0
    """Their rows: one for each column of a case."""
    _standing: Standing | None = None

    def standing(self) -> Standing:
        """How the cases shown stand, counted once until one of them changes."""
        if self._standing is None:
            rows = not_passed(self.shown)
            counts = Counter([entry.status for entry in self.shown])
            self._standing = Standing(sum(map(failing, rows)), len(rows), counts)
        return self._standing

    def update(self, key: str, before: str, after: str) -> list[int]:
        """An entry went from one status to another; returns the indices of lines to redraw."""
        self._standing = None
        changed = [self.index[key]] if key in self.index else []
        for line in self._above.get(key, ()):
            line.changed()
            if before != after:
                line.counts[before] -= 1
                line.counts[after] += 1
            if line.key in self.index and (before != after or line.members):
                changed.append(self.index[line.key])
        return changed

    def hiding(self, key: str) -> tuple[str, ...]:
        """The keys of the folded lines that hide a case."""
        return tuple(line.key for line in self._above.get(key, ()) if line.folded)

    def stands_for(self, key: str) -> TreeLine | None:
        """The line in which a case is seen: its own, else the fold or test that stands for it."""
        if key in self.index:
            return self.lines[self.index[key]]
        for line in self._above.get(key, ()):
            if line.folded:
                return line if line.members and line.key in self.index else None
        return None


def _rules(line: TreeLine, members: Sequence[CaseRow]) -> str:
    """`reference` where all rows of a test were judged by it, or any that are folded away."""
    rules = [entry.compat for entry in members if entry.finished_at]
    known = any if line.folded or line.kind == "fold" else all
    return "reference" if rules and known(one == "reference" for one in rules) else ""


def summary_row(line: TreeLine) -> CaseRow:
    """What a test's line or a fold shows of its rows: the outcome of those that stand worst, how many do (failed and
    in error: how many did not pass), the reason where they share it."""
    members = line.standing
    worst = line.telling
    assert worst is not None
    status = line.stands_as
    if status == line.status and len(members) == len(line.members):
        name = line.name
    elif line.siblings:  # until the list is made anew
        name = f"{len(members):,} × {listed_names(line.names)}"
    else:
        name = f"{len(members):,} {FOLDING.get(status, status)}"
    same = [entry for entry in members if entry.status == worst.status]
    if worst.status in ("failed", "error"):  # counted together: the rest of the test would read as passed
        same = [entry for entry in members if entry.status in ("failed", "error")]
    reasons = {common_cause(entry) for entry in same}
    figures = {
        "duration_ms": max((one.duration_ms for one in members if one.duration_ms is not None), default=None),
        "finished_at": max((one.finished_at for one in members if one.finished_at), default=None),
        "cost": _total(one.cost for one in members),
    }
    tokens = _total(one.tokens for one in members)
    if line.kind == "test":
        many = max(line.of, len(members))
        of = "all" if len(same) == many else f"{len(same)} of"
        variant = f"{of} {many}" if worst.status else _all_of(list(map(row_label, members)))
    else:
        variant = ""
    return replace(
        worst,
        name=name,
        variant=variant,
        column=None,
        note=None,
        attempts="",
        ratio=None,
        flaky=any(one.flaky for one in members),
        trend=(),
        cached=min((one.cached for one in members), default=0),
        compat=_rules(line, members),
        edited=sum(one.edited for one in members),
        started_at=None,
        ends_at=None,
        cause=(shared_reason(same) if len(reasons) == 1 else f"{len(reasons)} reasons")
        if line.folded
        else "",
        message=worst.message if line.folded else "",
        tokens=int(tokens) if tokens is not None else None,
        **figures,
    )


def shared_reason(rows: Sequence[CaseRow]) -> str:
    """Why rows that failed alike do not pass: in the words that all of them say, else in those that leave out in what
    they differ."""
    return causes.shared([one.cause for one in rows]) or common_cause(rows[0])


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def severity_of(entry: CaseRow) -> int:
    return SEVERITY.get(entry.status, SEVERITY[""])


def urgency(entry: CaseRow) -> int:
    """Failures, then what is being worked on, then the rest in the order chosen."""
    if entry.status in ("failed", "error"):
        return 0
    return 1 if entry.flaky else 2 if entry.status in ("running", "retrying") else 3


def common_cause(entry: CaseRow) -> str:
    """Why a case stands as it does; the same for those that failed alike."""
    if entry.status not in ("failed", "error"):
        return ""
    return entry.alike or entry.cause or entry.message


LONGEST = 200
"""Characters of a fold's name."""
FOLDING = {"waiting": "waiting", NOT_RUN: "not run", "passed": "passed"}
"""Outcomes whose tests fold into one line at the end of their group, in this order, and what it is called."""


def _all_of(labels: list[str]) -> str:
    """All rows of a test that never ran."""
    return listed_names(named_together(labels, labels))


def listed_names(names: Sequence[str]) -> str:
    return listed(names, LONGEST)


def row_label(entry: CaseRow) -> str:
    """What tells a row from the others of its test."""
    return entry.variant or entry.agent or entry.name
