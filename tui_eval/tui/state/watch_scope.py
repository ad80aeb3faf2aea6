"""What is watched where it is more than one case, and what a save means for its cases. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NamedTuple

from msgspec import structs

from tui_eval.guard.text import clip, visible
from tui_eval.guard.trust import CODE_ENDINGS
from tui_eval.model import Case
from tui_eval.store import case_state
from tui_eval.store.case_state import Column
from tui_eval.store.schema import CaseHistory
from tui_eval.tui.state.app_state import CaseItem
from tui_eval.tui.state.lists.case_tree import TreeLine

LONGEST = 20
"""Characters of a name in the status line."""
CODE = frozenset((*CODE_ENDINGS, ".sh"))
"""Endings of files of which it cannot be seen what they do to a suite."""


@dataclass(frozen=True, slots=True)
class WatchScope:
    """Below a line of a list: a folder (`place` ends with a slash), a suite's file, or certain cases."""

    name: str
    place: str = ""
    case_ids: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """What the status line calls it."""
        return short(self.name)

    def holds(self, item: CaseItem) -> bool:
        """Whether a case is watched."""
        if self.case_ids:
            return item.case_id in self.case_ids
        return item.suite == self.place or (self.place.endswith("/") and item.suite.startswith(self.place))

    def renamed(self, names: Mapping[str, str]) -> WatchScope:
        """The same after cases were called otherwise (new ids by old ones)."""
        if not self.case_ids & names.keys():
            return self
        return WatchScope(self.name, self.place, frozenset(names.get(one, one) for one in self.case_ids))


def short(name: str) -> str:
    """A name as the status line has room for it."""
    return visible(clip(name, LONGEST), newlines=False)


def scope_of(line: TreeLine | None) -> WatchScope | None:
    """What a line stands for that is not one case's; None for one case, and for what is wrong with a file."""
    if line is None:
        return None
    if line.kind == "folder":
        return WatchScope(line.key, line.key)
    if line.kind == "suite":
        return WatchScope(line.name, line.path)
    ids = frozenset(entry.case_id for entry in line.members)
    if line.kind in ("test", "fold", "group") and len(ids) > 1:
        return WatchScope(line.name, case_ids=ids)
    return None


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """What was saved, by what it is to the cases: `own`, files that hold cases (from the root); `beside`, suites of
    which another file was saved, such as a prompt; `asked`, cases whose agent was saved; `asking` and `judging`, cases
    that name a saved file in their question, or in what they assert. `code` are suites of which code was saved that
    no case names: hooks, filters, generators."""

    own: Collection[str]
    beside: Collection[str]
    asked: Collection[str]
    asking: Collection[str] = ()
    judging: Collection[str] = ()
    code: Collection[str] = ()

    def renamed(self, names: Mapping[str, str]) -> SavedFiles:
        """The same after cases were called otherwise."""

        def now(ids: Collection[str]) -> set[str]:
            return {names.get(one, one) for one in ids}

        if not names:
            return self
        return replace(self, asked=now(self.asked), asking=now(self.asking), judging=now(self.judging))


class NamedFiles(NamedTuple):
    """The files (absolute) that a case names: where it asks, and where it is judged."""

    asking: frozenset[str]
    judging: frozenset[str]


def saved_files(
    files: Iterable[str],
    items: Iterable[CaseItem],
    root: Path,
    read: Mapping[str, Iterable[str]],
    asked: Collection[str],
    named: Mapping[str, NamedFiles],
) -> SavedFiles:
    """What saved files (absolute) are; `read` are the files that each suite was read from, `named` those that cases
    name."""
    saved = set(files)
    holding = {file for item in items for file in (item.suite, item.case.file if item.case else None) if file}
    places = {str(root / file): file for file in holding}
    others = saved - places.keys()
    beside = {suite: others.intersection(of) for suite, of in read.items()}
    asking = {case_id for case_id, one in named.items() if not saved.isdisjoint(one.asking)}
    judging = {case_id for case_id, one in named.items() if not saved.isdisjoint(one.judging)}
    known = {file for one in named.values() for file in (*one.asking, *one.judging)}
    of_agents = {item.suite for item in items if item.case_id in asked}
    return SavedFiles(
        {places[file] for file in saved if file in places},
        {suite for suite, of in beside.items() if of},
        asked,
        asking,
        judging,
        {suite for suite, of in beside.items() if any(_is_code(file) for file in of - known)} - of_agents,
    )


def _is_code(file: str) -> bool:
    return PurePath(file).suffix in CODE


@dataclass(frozen=True, slots=True)
class AfterSave:
    """What is done: by run the cases whose answers are judged again; cases that did not pass, and such that are
    asked something else now, or of somebody else, which are run in these columns (none: in their own). `stale` passed
    with an agent whose files are others now: they are not run, and not said to pass either."""

    judge: dict[str, list[str]]
    failed: list[str]
    changed: dict[str, set[Column]]
    stale: list[str]


class CaseBefore(NamedTuple):
    """A case as it was, and whom it asked then: `agents` gives that of the case's own agent, or of one that was named
    (`AgentsAsked.of`)."""

    case: Case
    agents: Callable[[Case, str], str]


def after_save(
    items: Iterable[CaseItem],
    before: Mapping[str, CaseBefore],
    saved: SavedFiles,
    agents: Callable[[Case, str], str],
    settings: Collection[str] = (),
    ran: Collection[str] = (),
    hooked: Collection[str] = (),
    answered: Callable[[CaseHistory], Case | None] = lambda _: None,
) -> AfterSave:
    """What a save means for these cases, as they are read now, with whom they ask now; `before` are those
    that there were, `settings` suites whose settings are others now, `ran` those that had been run, under
    whatever name, `hooked` suites whose hooks make their cases; `answered` gives the case as it was when a
    result's answer was given, where that is known. For a thread.

    An answer counts as long as the case sends what it sent and asks whom it asked: else it is asked anew, whatever
    came of it.

    Judged again is what the save has changed: cases that are defined otherwise than they were and than they
    were judged, and those that name what was saved; all of a suite only where its code was saved and no case
    shows what that did. A case that never ran is left alone, and so is one that only goes by another name. Of
    a hooked suite nothing is judged again, which runs no hooks: what was edited is asked anew, and where its
    code was saved, what did not pass.
    """
    items = list(items)
    edited = {
        item.case_id
        for item in items
        if item.case is not None
        and (item.suite in saved.beside or item.suite in saved.own or item.case.file in saved.own)
        and _edited(before.get(item.case_id), item.case)
    }
    shown = {item.suite for item in items if item.case_id in edited}
    whole = {*settings} & {*saved.beside} | {*saved.code} - shown
    todo = AfterSave({}, [], {}, [])
    for item in items:
        case, old = item.as_written, before.get(item.case_id)
        if case is None:
            continue
        if not item.history:
            if old is not None and item.case_id in ran and _by_another(old, CaseBefore(case, agents)):
                todo.changed[item.case_id] = set()
            continue
        columns = case_state.by_column(item.history)
        named = {column: not case_state.is_own(results) for column, results in columns.items()}
        newest = [results[0] for results in columns.values()]
        fresh = [one for one in newest if item.case_id in edited and one.content_hash != case.content_hash]
        anew: list[CaseHistory] = []
        if item.case_id in saved.asking or (old is not None and fresh and _sends_otherwise(old, case)):
            anew = newest
        elif old is not None and (fresh or item.suite in settings or item.case_id in saved.asked):
            for one in fresh if item.case_id in edited else newest:
                agent = one.agent if named[case_state.column_of(one)] else ""
                # A label alone names another column: the answer stays with the one that it was given in.
                other = not agent and old.case.agent != case.agent
                anew += [one] if other or old.agents(old.case, agent) != agents(case, agent) else []
        everywhere = item.suite in whole or item.case_id in saved.judging
        made = item.suite in hooked
        if made:
            anew += [one for one in fresh if one not in anew]
        anew += [
            one
            for one in (newest if everywhere else fresh)
            if one not in anew
            and (one.content_hash != case.content_hash or (one.judges and one.outcome == "error"))
            and (then := answered(one)) is not None
            and _asks_otherwise(then, case)
        ]
        if anew:
            todo.changed[item.case_id] = {case_state.column_of(one) for one in anew}
            newest, fresh = ([one for one in results if one not in anew] for results in (newest, fresh))
        if not newest:
            continue
        asked = item.case_id in saved.asked or (made and everywhere)
        if asked and any(one.outcome != "passed" or case_state.flaky(one) for one in newest):
            todo.failed.append(item.case_id)
        else:
            if asked:
                todo.stale.append(item.case_id)
            for one in () if made else newest if everywhere else fresh:
                cases = todo.judge.setdefault(one.run_id, [])
                cases += [] if item.case_id in cases[-1:] else [item.case_id]
    return todo


def newest_of(item: CaseItem) -> list[CaseHistory]:
    """What a case came to last, in each of its columns."""
    return [results[0] for results in case_state.by_column(item.history).values()]


def _by_another(old: CaseBefore, new: CaseBefore) -> bool:
    """Whether a case sends something else, or its own agent is another."""
    return _sends_otherwise(old, new.case) or old.agents(old.case, "") != new.agents(new.case, "")


def _asks_otherwise(then: Case, case: Case) -> bool:
    """As `_sends_otherwise`, whomever it asked in its column."""
    whom = {"agent": case.agent, "model": case.model, "connection": case.connection}
    return _sends_otherwise(CaseBefore(structs.replace(then, **whom), lambda *_: ""), case)


def _sends_otherwise(old: CaseBefore, case: Case) -> bool:
    from tui_eval.engine.fingerprints import asks_otherwise  # not for the first paint

    return asks_otherwise(old.case, case)


def _edited(old: CaseBefore | None, case: Case) -> bool:
    return old is None or old.case.content_hash != case.content_hash
