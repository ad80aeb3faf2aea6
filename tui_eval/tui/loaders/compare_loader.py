"""Reading what is compared: two runs' summaries, two attempts' bodies; called in threads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tui_eval.case_names import column_label, in_any_column
from tui_eval.model import Attempt
from tui_eval.reports.run_comparison import CaseChange, RunComparison, compare
from tui_eval.store.index import Index
from tui_eval.store.indexed_run import places
from tui_eval.store.linked import lacking_beside, told_together
from tui_eval.store.listed_names import may_be_unnamed
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.store.summary import CaseSummary
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.compare.sides_view import SidePair, pairs
from tui_eval.tui.state.data.data_view import PairedRows, paired_rows
from tui_eval.tui.state.text.formatting import counted

RUNS = 40
"""Runs of a case whose attempts can be chosen, the newest ones."""


Column = tuple[str, str | None]
"""An agent and its model."""


@dataclass(frozen=True, slots=True)
class Half:
    """One side of a comparison: a run, or one agent (and model) of it. `linked` are the runs that belong
    to it and count with it, oldest first, as they were found; `what` says what was run, with which agents."""

    folder: Path
    agent: str | None = None
    model: str | None = None
    linked: tuple[Path, ...] = ()
    what: str = ""
    told: Mapping[tuple[str, str, str | None], tuple[str, int]] = field(default_factory=dict, compare=False)
    """Of a case (id, agent, model) the one of those runs, and the attempt in it, that tells its outcome."""

    @property
    def column(self) -> str:
        """Its agent (and model) for people; empty where it is a whole run."""
        return column_label(self.agent, self.model)

    def pointer(self, one: CaseSummary) -> CasePointer:
        """Where a case's outcome is told."""
        run_id, ref = self.told.get((one.case_id, one.agent, one.model), (self.folder.name, None))
        return CasePointer(one.case_id, one.agent, one.model, run_id, ref)

    def folder_of(self, run_id: str | None) -> Path:
        """Where one of its runs is kept."""
        return next((folder for folder in self.linked if folder.name == run_id), self.folder)

    @property
    def runs(self) -> list[str]:
        """The ids of the runs whose attempts count, newest first."""
        return [folder.name for folder in reversed(self.linked)] or [self.folder.name]


class Compared(NamedTuple):
    """Both sides, with the runs that count for each, and what became of each case."""

    before: Half
    after: Half
    comparison: RunComparison
    later: bool = False
    """Whether there is a later run, or another agent, to put in the first one's place."""
    earlier: bool = False
    called: Mapping[str, str] = MappingProxyType({})
    """What lists call cases that were recorded without a name, by id."""


def called_in(folders: Iterable[Path]) -> dict[str, str]:
    """What lists call those cases of these runs that are recorded without a name; the suites need not be here.

    Raises:
        StoreError: one cannot be read.
    """
    found: dict[str, str] = {}
    for folder in folders:
        with closing(RunReader(folder)) as reader:
            if any(map(may_be_unnamed, reader.cases())):
                found |= reader.called()
    return found


def _load_half(half: Half) -> tuple[Half, list[CaseSummary]]:
    """What a run, with those that count with it, says of each case (of this agent, where one is given), and which of
    them says it.

    Raises:
        StoreError: it cannot be read.
    """
    found = [
        one
        for one in told_together(half.linked or [half.folder])
        if half.agent in (None, one.summary.agent) and half.model in (None, one.summary.model)
    ]
    told = {
        (one.summary.case_id, one.summary.agent, one.summary.model): one.by
        for one in found
        if one.by is not None
    }
    return replace(half, told=told), [one.summary for one in found]


def load_comparison(
    root: Path, before: Half, after: Half, tell: Callable[[str], None] = lambda _: None
) -> Compared:
    """Both sides against each other. `tell` is told what is done now: of many cases it takes a while.

    Raises:
        StoreError: one of them cannot be read.
    """
    first, second = _with_linked(root, before, after), _with_linked(root, after, before)
    later, earlier = (other_half(root, before, after, step) is not None for step in (1, -1))
    tell("Reading the first of two.")
    first, old = _load_half(first)
    tell("Reading the second of two.")
    second, new = _load_half(second)
    tell(f"Comparing {len(old):,} with {counted(len(new), 'case')}.")
    comparison = compare(old, new)
    tell(f"Naming {counted(len(comparison.cases), 'case')}.")
    comparison.incomplete = lacking_beside(second.linked or [second.folder])
    called = called_in(dict.fromkeys([first.folder, second.folder]))
    return Compared(first, second, comparison, later, earlier, called)


def _with_linked(root: Path, half: Half, other: Half) -> Half:
    against = other.folder if other.folder != half.folder else None
    with closing(RunReader(half.folder)) as reader:
        info = reader.info()
    told = [", ".join(places(info, half.folder)), ", ".join(info.agents)]
    what = " · ".join(part for part in told if part)
    return replace(half, linked=tuple(Index(root).counting_folders(half.folder, against)), what=what)


def pairs_of_run(folder: Path) -> list[tuple[Column, Column]]:
    """The agents of a run that can be compared (`pairs_of`).

    Raises:
        StoreError: it cannot be read.
    """
    with closing(RunReader(folder)) as reader:
        return pairs_of(reader.cases())


def pairs_of(rows: Iterable[StoredCase]) -> list[tuple[Column, Column]]:
    """The agents (with models) that have cases in common, two by two, in their order."""
    cases: dict[Column, set[str]] = {}
    for case in rows:
        cases.setdefault((case.agent, case.model), set()).add(in_any_column(case.case_id, case.agent))
    return [(one, other) for one, other in combinations(cases, 2) if cases[one] & cases[other]]


class Candidates(NamedTuple):
    """What a run can be compared with: two of its agents, or the run before it of the same cases."""

    pairs: list[tuple[Column, Column]]
    before: str | None


def candidates(root: Path, folder: Path) -> Candidates:
    """What a run can be compared with.

    Raises:
        StoreError: it cannot be read.
    """
    return Candidates(pairs_of_run(folder), Index(root).before(folder.name, cases_of_guest(root, folder)))


def cases_of_guest(root: Path, folder: Path) -> set[str] | None:
    """The ids of the cases of a run that is not in the project's store; None of one that is.

    Raises:
        StoreError: it cannot be read.
    """
    if Store(root).holds(folder):
        return None
    with closing(RunReader(folder)) as reader:
        return {case.case_id for case in reader.cases()}


def other_half(root: Path, half: Half, opposite: Half, step: int) -> Half | None:
    """What can stand in a side's place: the next (or previous) agent of its run, else the next run that has a
    case of the other side (those that only add to others left out); None where there is no other.

    Raises:
        StoreError: the run cannot be read.
    """
    if half.folder == opposite.folder:
        here, there = (half.agent or "", half.model), (opposite.agent or "", opposite.model)
        fitting = [pair for pair in pairs_of_run(half.folder) if there in pair]
        columns = [one if other == there else other for one, other in fitting]
        at = columns.index(here) if here in columns else 0
        turned = [columns[(at + step * i) % len(columns)] for i in range(1, len(columns))]
        return Half(half.folder, *turned[0]) if turned else None
    name = opposite.folder.name
    shared = Index(root).sharing(name, cases_of_guest(root, opposite.folder))
    found = [run_id for run_id in shared if run_id != name]
    later = [run_id for run_id in found if run_id > half.folder.name]
    earlier = [run_id for run_id in found if run_id < half.folder.name]
    ids = later[:1] if step > 0 else earlier[-1:]
    return replace(half, folder=Store(root).folder_of(ids[0]), linked=()) if ids else None


@dataclass(slots=True)
class CompareChoice:
    """An attempt that can stand on a side; `how` says how it came about, where it was not run as a whole."""

    run_id: str
    row: AttemptRow
    agent: str
    model: str | None
    how: str = ""
    name: str = ""
    """What the run calls the case; lists may know better."""
    variant: str = ""
    """What tells it from others of its name."""

    @property
    def pointer(self) -> tuple[str, int]:
        """What tells it from others."""
        return self.run_id, self.row.id


@dataclass(slots=True)
class Sides:
    """Two attempts of a case, and all that could stand at the left."""

    case_id: str
    choices: list[CompareChoice] = field(default_factory=list)
    """Oldest first."""
    left: int = 0
    right: int = 0
    before: Attempt | None = None
    after: Attempt | None = None
    pairs: Sequence[SidePair] = ()
    """Both against each other."""
    rows: PairedRows | None = None
    """The rows that both answered with, where both did."""


def choices_of(root: Path, case_id: str, *more: str, also: Collection[str] = ()) -> list[CompareChoice]:
    """The finished attempts of a case in its newest runs (and in the runs `more`), oldest first; `also` are ids of the
    same test in other columns."""
    store = Store(root)
    runs = sorted({one.run_id for one in Index(root).history(case_id)})[-RUNS:]
    found: list[CompareChoice] = []
    for run_id in sorted({*runs, *more}):
        try:
            with closing(RunReader(store.folder_of(run_id))) as reader:
                how = _how(reader.info())
                for case in (one for name in (case_id, *also) for one in reader.cases_of(name)):
                    found += [
                        CompareChoice(run_id, row, case.agent, case.model, how, case.name, case.variant)
                        for row in reader.attempts(case.id)
                        if row.state == "done" and row.outcome not in ("cancelled", "skipped", None)
                    ]
        except (StoreError, OSError):
            continue
    return found


def _how(info: RunInfo) -> str:
    """What a run did to the attempt whose place its own takes; empty of other runs."""
    given = info.options.get("continue_from")
    if not isinstance(given, dict):
        return ""
    turn = given.get("turn")
    return f"from turn {turn}" if isinstance(turn, int) else "judged again"


def with_new(root: Path, sides: Sides, *more: str) -> Sides:
    """The same two attempts among all that there are now, those of the runs `more` too."""
    left, right = (sides.choices[at] for at in (sides.left, sides.right))
    choices = choices_of(root, sides.case_id, *more, *(one.run_id for one in sides.choices))
    places = {one.pointer: at for at, one in enumerate(choices)}
    if left.pointer not in places or right.pointer not in places:
        return sides
    return Sides(sides.case_id, choices, places[left.pointer], places[right.pointer])


def newest_right(sides: Sides, old: Collection[str]) -> Sides | None:
    """What stands where after attempts have ended of other runs than those of `old`: the newest of them (of
    the same agent, where one is) at the right, what was looked at at the left; None where there is none."""
    new = [at for at, one in enumerate(sides.choices) if one.run_id not in old]
    if not new:
        return None
    before = sides.choices[sides.right]
    own = [
        at for at in new if (sides.choices[at].agent, sides.choices[at].model) == (before.agent, before.model)
    ]
    right = (own or new)[-1]
    # Of several attempts of one run, the first to end puts what was looked at at the left.
    left = sides.left if before.run_id == sides.choices[right].run_id else sides.right
    return Sides(sides.case_id, sides.choices, left, right)


def first_sides(root: Path, pointer: CasePointer) -> Sides | None:
    """The attempt pointed at against the last one before it that passed; else against the one before it,
    or another; None where there is no other."""
    choices = choices_of(root, pointer.case_id, *([pointer.run_id] if pointer.run_id else []))
    right = _meant(choices, pointer)
    if right is None or len(choices) < 2:
        return None
    agent = choices[right].agent
    passed = [i for i, one in enumerate(choices) if one.row.outcome == "passed" and i != right]
    before = [i for i in passed if i < right]
    own = [i for i in before if choices[i].agent == agent]
    others = [i for i in range(len(choices)) if i != right]
    earlier = [i for i in others if i < right]
    left = next(iter([*own[-1:], *before[-1:], *passed[-1:], *earlier[-1:], *others]))
    return load_sides(root, Sides(pointer.case_id, choices, left, right))


def _meant(choices: list[CompareChoice], pointer: CasePointer) -> int | None:
    of_run = [i for i, one in enumerate(choices) if pointer.run_id in (None, one.run_id)]
    own = [i for i in of_run if not pointer.agent or choices[i].agent == pointer.agent] or of_run
    if pointer.attempt_ref is not None:
        exact = [i for i in own if choices[i].row.id == pointer.attempt_ref]
        own = exact or own
    bad = [i for i in own if choices[i].row.outcome != "passed"]
    return next(iter(bad if pointer.run_id else []), own[-1] if own else None)


def changed_sides(root: Path, before: Half, after: Half, change: CaseChange) -> Sides | None:
    """The attempts that tell most of a change: of a run that passed the first that passed, of one that
    did not the first that failed. None where only one run has the case."""
    others = {one.case_id for one in (change.before, change.after) if one is not None} - {change.case_id}
    choices = choices_of(root, change.case_id, *before.runs, *after.runs, also=others)
    left = _telling(choices, before.runs, change.before)
    right = _telling(choices, after.runs, change.after)
    if left is None or right is None or left == right:
        return None
    return load_sides(root, Sides(change.case_id, choices, left, right))


def newest_sides(root: Path, after: Half, change: CaseChange, newest: tuple[str, int]) -> Sides | None:
    """An attempt that was run since (run and attempt) at the right, what the second run had at the left."""
    choices = choices_of(root, change.case_id, *after.runs, newest[0])
    left = _telling(choices, after.runs, change.after)
    right = next((at for at, one in enumerate(choices) if one.pointer == newest), None)
    if left is None or right is None or left == right:
        return None
    return load_sides(root, Sides(change.case_id, choices, left, right))


def _telling(choices: list[CompareChoice], runs: Sequence[str], summary: CaseSummary | None) -> int | None:
    """The first attempt of a case's outcome in the newest of the runs that has one."""
    if summary is None:
        return None
    column = (summary.agent, summary.model)
    own = [
        i
        for run_id in runs
        for i, one in enumerate(choices)
        if one.run_id == run_id and (one.agent, one.model) == column
    ]
    return next((i for i in own if choices[i].row.outcome == summary.outcome), own[0] if own else None)


def load_sides(root: Path, sides: Sides) -> Sides:
    """Read both attempts and compare them word by word.

    Raises:
        StoreError: one of them cannot be read.
    """
    sides.before = _body(root, sides.choices[sides.left])
    sides.after = _body(root, sides.choices[sides.right])
    if sides.before is not None and sides.after is not None:
        sides.pairs = pairs(sides.before, sides.after)
        folders = [Store(root).folder_of(sides.choices[at].run_id) for at in (sides.left, sides.right)]
        sides.rows = paired_rows((folders[0], sides.before.data), (folders[1], sides.after.data))
    return sides


def _body(root: Path, choice: CompareChoice) -> Attempt | None:
    with closing(RunReader(Store(root).folder_of(choice.run_id))) as reader:
        return reader.attempt(choice.row.id)
