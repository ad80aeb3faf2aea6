"""The lines of a case list: folders, suites, tests and their rows, folded, filtered, grouped and sorted.

Pure. A list is made of `CaseRow`s (a case with its present status and figures); `build` turns them into
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
from tui_eval.case_names import suites_apart
from tui_eval.model import Problem, Suite
from tui_eval.tui.state.lists.case_entry import CaseRow, Extent, extent_of
from tui_eval.tui.state.lists.entries import differing_tests, failing, not_passed
from tui_eval.tui.state.lists.telling_apart import (
    NOT_AT_ALL,
    Differs,
    differences,
    listed,
    named_together,
)
from tui_eval.tui.state.runs.run_view import NOT_RUN
from tui_eval.tui.state.text.formatting import SEVERITY

MOST_PROBLEMS = 20
"""Problems of a file that stand above its cases: a key in each of twenty thousand cases would hide all of these."""
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
            self._telling = min(self.standing, key=_severity, default=None)
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


def build(entries: Iterable[CaseRow], suites: Iterable[Suite], view: View) -> Tree:
    """The lines for these entries. Suites without a case (unreadable files) stand with their
    problems; folders are made from the suites' paths."""
    entries = list(entries)
    accept, held = view.accept, view.held
    if view.compares_rows:
        view.differing = differing_tests(entries)
    chosen = [entry for entry in entries if entry.key in held or view.accepts(entry)] if accept else entries
    if view.flat:
        chosen = _sorted(chosen, view)
        lines = [
            TreeLine("case", entry.key, 0, entry.name, entry, None, None, "", False, _NONE)
            for entry in chosen
        ]
        _tell_apart(lines)
        index = {line.key: number for number, line in enumerate(lines)}
        total = len({entry.case_id for entry in entries})
        return Tree(lines, chosen, total, index, {}, extent_of(chosen), len(entries))
    making = _Lines(view)
    if accept is not None or view.grouping == "cause":
        making.rows_of = Counter(entry.of_test for entry in entries)
    if view.grouping in ("agent", "cause"):
        making.groups(chosen)
    elif view.grouping == "test" or view.failures_first:
        making.tests("", chosen, 0, (), hidden=False)
    else:
        making.files(chosen, suites, filtered=accept is not None)
    _tell_apart(making.lines)
    index = {line.key: number for number, line in enumerate(making.lines)}
    return Tree(
        making.lines,
        making.shown,
        len({entry.case_id for entry in entries}),
        index,
        making.above,
        extent_of(making.shown),
        len(entries),
    )


def _tell_apart(lines: Iterable[TreeLine]) -> None:
    """Let each line know in what it differs from those beside it."""
    found: dict[str, list[TreeLine]] = {}
    for line in lines:
        found.setdefault(line.above[-1].key if line.above else "", []).append(line)
    for group in found.values():
        if len(group) < 2:
            continue
        names = differences([line.name for line in group])
        variants = differences([line.entry.variant for line in group if line.entry is not None])
        cases = [line for line in group if line.kind in ("case", "test")]
        told = [(line.name, line.entry.variant if line.entry else "", line.suite_path) for line in cases]
        for line in group:
            line.differs = names.get(line.name, NOT_AT_ALL)
            if line.entry is not None and variants:
                line.variant_differs = variants.get(line.entry.variant, NOT_AT_ALL)
        for line, end in zip(cases, suites_apart(told), strict=True):
            line.beside = end
        same: dict[tuple[str, str], set[str]] = {}
        tests = [line for line in cases if line.kind == "test"]
        for line in tests:
            same.setdefault((line.name, line.beside), set()).add(line.members[0].test)
        for line in tests:
            if len(same[line.name, line.beside]) > 1:  # of a run whose suite is not at hand
                more = line.members[0].test.removeprefix(line.name)
                line.beside = f"{line.beside} {more or '#1'}".strip()
        ends = differences([line.beside for line in cases if line.beside])
        for line in cases:
            line.beside_differs = ends.get(line.beside, NOT_AT_ALL)


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
        name = f"{len(members):,} × {_listed(line.names)}"
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
        variant = f"{of} {many}" if worst.status else _all_of(list(map(_label, members)))
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


def _sorted(entries: list[CaseRow], view: View) -> list[CaseRow]:
    result = list(entries)
    match view.sort:
        case "name":
            result.sort(key=lambda entry: entry.name.lower())
        case "outcome":
            result.sort(key=_severity)
        case "duration":
            result.sort(key=lambda entry: -(entry.duration_ms or 0.0))
        case "age":
            result.sort(key=lambda entry: -(entry.finished_at or 0.0))
        case "cost":
            result.sort(key=lambda entry: -(entry.cost or 0.0))
    if view.reverse:
        result.reverse()
    if view.failures_first:
        result.sort(key=view.urgency)
    return result


def _severity(entry: CaseRow) -> int:
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
ALIKE = ("passed", "failed", "error", "waiting", NOT_RUN, "cancelled", "skipped", "")
"""Outcomes of which rows of a test fold where they came out alike."""


class _Lines:
    """Makes the lines of one tree, top down."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.lines: list[TreeLine] = []
        self.shown: list[CaseRow] = []
        self.above: dict[str, tuple[TreeLine, ...]] = {}
        self.rows_of: Counter[tuple[str, str]] = Counter()
        """Rows of each test, where not all of them stand together."""

    def groups(self, entries: list[CaseRow]) -> None:
        """Lines by agent, or by why a test did not pass, the largest first."""
        view = self.view
        found: dict[str, list[CaseRow]] = {}
        rest: list[CaseRow] = []
        for entry in entries:
            if view.grouping == "agent":
                parts = dict.fromkeys(filter(None, (entry.agent, entry.model)))  # one name for both: once
                found.setdefault(" ".join(parts), []).append(entry)
            elif (words := common_cause(entry)) != "":
                found.setdefault(words, []).append(entry)
            else:
                rest.append(entry)
        names = list(found)
        if view.grouping == "cause":
            names.sort(key=lambda name: -len(found[name]))
            names = [name for name in names if len(found[name]) > 1] + [
                name for name in reversed(names) if len(found[name]) == 1
            ]
        for name in names:
            members = found[name]
            if view.grouping == "cause" and len(members) == 1:
                rest = [*members, *rest]
                continue
            label = name or "no agent"
            if view.grouping == "cause":
                label = f"{len(members):,} × {shared_reason(members)}"
            line = TreeLine("group", f"{view.grouping}\n{name}", 0, label, members=members)
            line.folded = view.is_folded(line.key, False)
            self.lines.append(line)
            self.tests(line.key, members, 1, (line,), hidden=line.folded)
        if rest:
            self.tests(view.grouping, rest, 0, (), hidden=False)

    def files(self, entries: list[CaseRow], suites: Iterable[Suite], *, filtered: bool) -> None:
        """Lines of folders and suites."""
        by_suite: dict[str, list[CaseRow]] = {}
        for entry in entries:
            by_suite.setdefault(entry.suite, []).append(entry)
        known = {suite.path: suite for suite in suites}
        paths = set(by_suite) if filtered else set(by_suite) | set(known)
        open_folders: list[TreeLine] = []
        folders = _folders(paths)
        hidden_below: TreeLine | None = None
        alone: list[CaseRow] = []
        """Cases of suites without a line of their own, which stand below their folder."""

        def put_alone() -> None:
            if alone:
                inside = tuple(open_folders)
                key = inside[-1].key if inside else ""
                self.tests(key, list(alone), len(inside), inside, hidden=hidden_below is not None)
                alone.clear()

        # What is wrong in the configuration comes before all that it is about.
        config = {
            path
            for path, suite in known.items()
            if not suite.format and path not in by_suite and "/" not in path
        }
        for path in sorted(paths, key=lambda path: (path not in config, _folder_of(path).split("/"), path)):
            folder = _folder_of(path)
            chain = folders[folder]
            if alone and chain != tuple(line.path for line in open_folders):
                put_alone()
            while open_folders and open_folders[-1].path not in chain:
                open_folders.pop()
            if hidden_below is not None and hidden_below not in open_folders:
                hidden_below = None
            for name in chain[len(open_folders) :]:
                parent = open_folders[-1].path if open_folders else ""
                label = name[len(parent) + 1 :] if parent else name
                line = TreeLine(
                    "folder", f"{name}/", len(open_folders), f"{label}/", path=name, above=tuple(open_folders)
                )
                line.folded = line.key in self.view.folded
                if hidden_below is None:
                    self.lines.append(line)
                    if line.folded:
                        hidden_below = line
                open_folders.append(line)
            suite, cases = known.get(path), by_suite.get(path, [])
            if len({entry.case_id for entry in cases}) == 1 and not (suite and suite.problems):
                alone += cases
                continue
            self._suite(suite, path, cases, tuple(open_folders), hidden=hidden_below is not None)
        put_alone()

    def _suite(
        self,
        suite: Suite | None,
        path: str,
        entries: list[CaseRow],
        folders: tuple[TreeLine, ...],
        *,
        hidden: bool,
    ) -> None:
        """Lines of one suite."""
        problems = suite.problems if suite else []
        depth = len(folders)
        line = TreeLine("suite", path, depth, path.rsplit("/", 1)[-1], suite=suite, path=path, above=folders)
        line.folded = path in self.view.folded
        if not hidden:
            self.lines.append(line)
            hidden = line.folded
        parents = (*folders, line)
        if not hidden:
            self.lines += [
                TreeLine(
                    "problem",
                    f"{path}!{number}",
                    depth + 1,
                    problem.message,
                    problem=problem,
                    path=path,
                    suite=suite,
                    above=parents,
                )
                for number, problem in enumerate(some_problems(problems))
            ]
        self.tests(path, entries, depth + 1, parents, hidden=hidden, suite=suite)

    def tests(
        self,
        group: str,
        entries: list[CaseRow],
        depth: int,
        parents: tuple[TreeLine, ...],
        *,
        hidden: bool,
        suite: Suite | None = None,
    ) -> None:
        """Lines of the tests of one group, whose key is `group`; those that passed or wait fold at its end."""
        found: dict[tuple[str, str], list[CaseRow]] = {}
        for entry in entries:
            found.setdefault(entry.of_test, []).append(entry)
        tests = list(found.values())
        ended: dict[str, list[list[CaseRow]]] = {status: [] for status in FOLDING}
        others: list[list[CaseRow]] = []
        for test in tests:
            status = test[0].status
            if status in ended and self._all_are(test, status):
                ended[status].append(test)
            else:
                others.append(test)
        if self.view.failures_first:
            others.sort(key=lambda test: min(map(self.view.urgency, test)))
        counts = Counter(entry.status for entry in entries)
        cases = len({entry.case_id for entry in entries})
        for line in parents:
            line.counts.update(counts)
            line.cases += cases
        for test in others:
            self._test(group, test, depth, parents, hidden, suite)
        for status, folding in ended.items():
            if len(folding) < 2:
                for test in folding:
                    self._test(group, test, depth, parents, hidden, suite)
                continue
            members = [entry for test in folding for entry in test]
            words = f"{len(members):,} {FOLDING[status]}"
            if len(members) > len(folding):  # what the head of the list counts, too
                words = f"{len(folding):,} tests, {words}"
            fold = self._fold(f"{group}\n{status}", status, words, members, depth, parents, hidden)
            for test in folding:
                self._test(group, test, depth + 1, (*parents, fold), hidden or fold.folded, suite)

    def _label(self, entry: CaseRow) -> str:
        """What tells a row from the others of its test; under a line that names the agent, without its name."""
        label, own = _label(entry), entry.case.column_name if entry.case is not None else ""
        if self.view.grouping == "agent" and own and label.startswith(f"{own} "):
            return label.removeprefix(f"{own} ")
        return label

    def _all_are(self, test: list[CaseRow], status: str) -> bool:
        held = self.view.held
        return all(one.status == status and not one.flaky and one.key not in held for one in test)

    def _fold(
        self,
        key: str,
        status: str,
        name: str,
        members: list[CaseRow],
        depth: int,
        parents: tuple[TreeLine, ...],
        hidden: bool,
    ) -> TreeLine:
        """The line that stands for rows that came out alike; folded until the person unfolds it."""
        line = TreeLine("fold", key, depth, name, above=parents, members=members, status=status)
        line.folded = self.view.is_folded(key, True)
        line.counts.update(entry.status for entry in members)
        if not hidden:
            self.lines.append(line)
        return line

    def _test(
        self,
        group: str,
        test: list[CaseRow],
        depth: int,
        parents: tuple[TreeLine, ...],
        hidden: bool,
        suite: Suite | None,
    ) -> None:
        """The line of a test and its rows; a test with one row is one row."""
        if len(test) == 1:
            self._row(test[0], test[0].name, depth, parents, hidden, suite)
            return
        first = test[0]
        alike: dict[tuple[str, str, bool], list[CaseRow]] = {}
        for entry in test:
            alike.setdefault((entry.status, common_cause(entry), entry.flaky), []).append(entry)
        same = len(alike) == 1 and first.status in ALIKE and not any(e.key in self.view.held for e in test)
        key = f"{group}\n{first.suite}\n{first.test or first.name}"
        line = TreeLine(
            "test", key, depth, first.name, suite=suite, above=parents, members=test, path=first.suite
        )
        line.counts.update(entry.status for entry in test)
        line.of = self.rows_of[first.of_test]
        line.folded = self.view.is_folded(key, same)
        if not hidden:
            self.lines.append(line)
        inside = (*parents, line)
        hidden = hidden or line.folded
        if same:
            for entry in test:
                self._row(entry, self._label(entry), depth + 1, inside, hidden, suite)
            return
        groups = list(alike.items())
        siblings = [self._label(entry) for entry in test]
        if self.view.failures_first:
            groups.sort(key=lambda one: min(map(self.view.urgency, one[1])))
        for (status, why, _), rows in groups:
            if len(rows) < 2 or status not in ALIKE or any(e.key in self.view.held for e in rows):
                for entry in rows:
                    self._row(entry, self._label(entry), depth + 1, inside, hidden, suite)
                continue
            begin = f"{len(rows):,} × "
            fold = self._fold(f"{key}\n{status}\n{why}", status, begin, rows, depth + 1, inside, hidden)
            fold.siblings = siblings
            fold.name += _listed(fold.names)
            for entry in rows:
                self._row(entry, self._label(entry), depth + 2, (*inside, fold), hidden or fold.folded, suite)

    def _row(
        self,
        entry: CaseRow,
        name: str,
        depth: int,
        parents: tuple[TreeLine, ...],
        hidden: bool,
        suite: Suite | None,
    ) -> None:
        self.above[entry.key] = parents
        self.shown.append(entry)
        if not hidden:
            self.lines.append(
                TreeLine(
                    "case", entry.key, depth, name, entry, suite, None, entry.suite, False, _NONE, parents
                )
            )


_NONE: Counter[str] = Counter()


def _all_of(labels: list[str]) -> str:
    """All rows of a test that never ran."""
    return _listed(named_together(labels, labels))


def _listed(names: Sequence[str]) -> str:
    return listed(names, LONGEST)


def _label(entry: CaseRow) -> str:
    """What tells a row from the others of its test."""
    return entry.variant or entry.agent or entry.name


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _folders(paths: set[str]) -> dict[str, tuple[str, ...]]:
    """For each suite's folder the chain of folder lines above it. Folders that hold nothing but one
    other folder are joined with it (`a/b/c/`)."""
    holders = {_folder_of(path) for path in paths} - {""}
    children: dict[str, set[str]] = {}
    for holder in holders:
        parts = holder.split("/")
        for depth in range(len(parts)):
            children.setdefault("/".join(parts[:depth]), set()).add("/".join(parts[: depth + 1]))
    kept = holders | {name for name, below in children.items() if name and len(below) > 1}
    chains: dict[str, tuple[str, ...]] = {"": ()}
    for holder in holders:
        parts = holder.split("/")
        names = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        chains[holder] = tuple(name for name in names if name in kept)
    return chains


def some_problems(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Those that are shown of a file, errors before notes where not all are; the last says how many more there are."""
    if len(problems) <= MOST_PROBLEMS:
        return problems
    ordered = sorted(problems, key=lambda one: one.level != "error")
    first = ordered[MOST_PROBLEMS]
    left = len(problems) - MOST_PROBLEMS
    words = f"and {left:,} more: `tui-eval check` lists all"
    return [*ordered[:MOST_PROBLEMS], Problem(first.path, 0, "", words, level=first.level)]
