"""The lines of a case list: folders, suites and cases, folded, filtered and sorted.

Pure. A list is made of `Entry`s (a case with its present status and figures); `build` turns them into
`Line`s. A change of one entry's status needs no rebuilding: `Tree.update` adjusts the counts of the
lines above it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from tui_eval.model import Problem, Suite
from tui_eval.tui.state.lists.case_entry import CaseRow, Extent, extent_of
from tui_eval.tui.state.text.formatting import SEVERITY

LineKind = Literal["folder", "suite", "case", "problem"]
SORTS = ("file", "outcome", "name", "duration", "age", "cost")


@dataclass(slots=True, eq=False)
class TreeLine:
    """One line. `above` are the folder and suite lines it belongs to."""

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


@dataclass(slots=True)
class View:
    """How a list is looked at. What is kept between sessions."""

    sort: str = "file"
    reverse: bool = False
    failures_first: bool = False
    folded: set[str] = field(default_factory=set)
    accept: Callable[[CaseRow], bool] | None = None
    held: set[str] = field(default_factory=set)
    """Keys of cases that stay where they are although they are no failures any more, or no longer pass the
    filter, so that the list does not move under the person's hands."""

    @property
    def order(self) -> str:
        """The order in words; empty for that of the files."""
        words = "failures first" if self.failures_first else ""
        if self.sort != "file":
            words = f"{words}, by {self.sort}" if words else f"by {self.sort}"
        if self.reverse:
            words = f"{words}, reversed" if words else "reversed"
        return words

    def place(self, entry: CaseRow) -> tuple[bool, bool]:
        """What gives an entry its place: that it passes the filter, that it stands among the failures."""
        return self.accept is None or self.accept(entry), self.failures_first and _urgency(entry) < 2

    @property
    def flat(self) -> bool:
        """Whether cases stand without the tree."""
        return self.sort != "file" or self.reverse or self.failures_first


@dataclass(slots=True)
class Tree:
    """The lines shown, and where each entry's line is."""

    lines: list[TreeLine]
    shown: list[CaseRow]
    """Cases that pass the filter, in the order shown, also those in folded parts."""
    total: int
    index: dict[str, int]
    _above: dict[str, tuple[TreeLine, ...]]
    extent: Extent = field(default_factory=Extent)

    def update(self, key: str, before: str, after: str) -> list[int]:
        """An entry went from one status to another; returns the indices of lines to redraw."""
        changed = [self.index[key]] if key in self.index else []
        if before != after:
            for line in self._above.get(key, ()):
                line.counts[before] -= 1
                line.counts[after] += 1
                if line.key in self.index:
                    changed.append(self.index[line.key])
        return changed


def build(entries: Iterable[CaseRow], suites: Iterable[Suite], view: View) -> Tree:
    """The lines for these entries. Suites without a case (unreadable files) stand with their
    problems; folders are made from the suites' paths."""
    entries = list(entries)
    accept = view.accept
    held = view.held
    chosen = [entry for entry in entries if entry.key in held or accept(entry)] if accept else entries
    if view.flat:
        chosen = _sorted(chosen, view)
        lines = [
            TreeLine("case", entry.key, 0, entry.name, entry, None, None, "", False, _NONE)
            for entry in chosen
        ]
        index = {line.key: number for number, line in enumerate(lines)}
        return Tree(lines, chosen, len(entries), index, {}, extent_of(chosen))
    return _tree(chosen, suites, view, len(entries), filtered=accept is not None)


def _sorted(entries: list[CaseRow], view: View) -> list[CaseRow]:
    result = list(entries)
    match view.sort:
        case "name":
            result.sort(key=lambda entry: entry.name.lower())
        case "outcome":
            result.sort(key=lambda entry: SEVERITY.get(entry.status, 7))
        case "duration":
            result.sort(key=lambda entry: -(entry.duration_ms or 0.0))
        case "age":
            result.sort(key=lambda entry: -(entry.finished_at or 0.0))
        case "cost":
            result.sort(key=lambda entry: -(entry.cost or 0.0))
    if view.reverse:
        result.reverse()
    if view.failures_first:
        held = view.held
        result.sort(key=lambda entry: 0 if entry.key in held else _urgency(entry))
    return result


def _urgency(entry: CaseRow) -> int:
    """Failures, then what is being worked on, then the rest in the order chosen."""
    if entry.status in ("failed", "error"):
        return 0
    return 1 if entry.flaky else 2 if entry.status in ("running", "retrying") else 3


def _tree(chosen: list[CaseRow], suites: Iterable[Suite], view: View, total: int, *, filtered: bool) -> Tree:
    by_suite: dict[str, list[CaseRow]] = {}
    for entry in chosen:
        by_suite.setdefault(entry.suite, []).append(entry)
    known = {suite.path: suite for suite in suites}
    paths = set(by_suite) if filtered else set(by_suite) | set(known)
    lines: list[TreeLine] = []
    above: dict[str, tuple[TreeLine, ...]] = {}
    shown: list[CaseRow] = []
    open_folders: list[TreeLine] = []
    folders = _folders(paths)
    hidden_below: TreeLine | None = None

    for path in sorted(paths, key=lambda path: (_folder_of(path).split("/"), path)):
        folder = _folder_of(path)
        chain = folders[folder]
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
            line.folded = line.key in view.folded
            if hidden_below is None:
                lines.append(line)
                if line.folded:
                    hidden_below = line
            open_folders.append(line)
        hidden = hidden_below is not None
        _suite_lines(
            known.get(path), path, by_suite.get(path, []), tuple(open_folders), view, hidden, lines, above
        )
        shown.extend(by_suite.get(path, []))
    index = {line.key: number for number, line in enumerate(lines)}
    return Tree(lines, shown, total, index, above, extent_of(shown))


def _suite_lines(
    suite: Suite | None,
    path: str,
    entries: list[CaseRow],
    folders: tuple[TreeLine, ...],
    view: View,
    hidden: bool,
    lines: list[TreeLine],
    above: dict[str, tuple[TreeLine, ...]],
) -> None:
    """Lines of one suite. One case without problems needs no line of its suite."""
    problems = suite.problems if suite else []
    depth = len(folders)
    parents = folders
    if len(entries) != 1 or problems:
        line = TreeLine("suite", path, depth, path.rsplit("/", 1)[-1], suite=suite, path=path, above=folders)
        line.folded = path in view.folded
        if not hidden:
            lines.append(line)
            hidden = line.folded
        parents = (*folders, line)
        depth += 1
        if not hidden:
            for number, problem in enumerate(problems):
                key = f"{path}!{number}"
                lines.append(
                    TreeLine(
                        "problem",
                        key,
                        depth,
                        problem.message,
                        problem=problem,
                        path=path,
                        suite=suite,
                        above=parents,
                    )
                )
    counts: Counter[str] = Counter()
    for entry in entries:
        counts[entry.status] += 1
        above[entry.key] = parents
    if not hidden:
        lines.extend(
            [
                TreeLine(
                    "case", entry.key, depth, entry.name, entry, suite, None, path, False, _NONE, parents
                )
                for entry in entries
            ]
        )
    for line in parents:
        line.counts.update(counts)


_NONE: Counter[str] = Counter()


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
