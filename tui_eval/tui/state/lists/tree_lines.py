"""Making the lines of a case list from its rows: folders, suites, groups, tests, folds of rows that came out
alike. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tui_eval.case_names import suites_apart
from tui_eval.model import Problem, Suite
from tui_eval.tui.state.lists.case_entry import CaseRow, extent_of
from tui_eval.tui.state.lists.case_tree import (
    FOLDING,
    Tree,
    TreeLine,
    View,
    common_cause,
    listed_names,
    row_label,
    severity_of,
    shared_reason,
)
from tui_eval.tui.state.lists.entries import differing_tests
from tui_eval.tui.state.lists.telling_apart import (
    NOT_AT_ALL,
    differences,
)
from tui_eval.tui.state.runs.run_view import NOT_RUN

MOST_PROBLEMS = 20
"""Problems of a file that stand above its cases: a key in each of twenty thousand cases would hide all of these."""


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


def _sorted(entries: list[CaseRow], view: View) -> list[CaseRow]:
    result = list(entries)
    match view.sort:
        case "name":
            result.sort(key=lambda entry: entry.name.lower())
        case "outcome":
            result.sort(key=severity_of)
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
        label, own = row_label(entry), entry.case.column_name if entry.case is not None else ""
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
            fold.name += listed_names(fold.names)
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
