"""What is watched where it is more than one case, and what a save means for its cases. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NamedTuple

from tui_eval.guard.text import clip, visible
from tui_eval.model import Case
from tui_eval.store import case_state
from tui_eval.store.schema import CaseHistory
from tui_eval.tui.state.app_state import CaseItem
from tui_eval.tui.state.lists.case_tree import TreeLine

LONGEST = 20
"""Characters of a name in the status line."""
CODE = frozenset({".py", ".js", ".cjs", ".mjs", ".ts", ".mts", ".cts", ".rb", ".sh"})
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
    asked something else now, which are run. `stale` passed with an agent that is another now: they are not run, and not
    said to pass either."""

    judge: dict[str, list[str]]
    failed: list[str]
    changed: list[str]
    stale: list[str]


def after_save(
    items: Iterable[CaseItem], before: Mapping[str, Case], saved: SavedFiles, settings: Collection[str] = ()
) -> AfterSave:
    """What a save means for these cases, as they are read now; `before` are those that there were, `settings` suites
    whose settings are others now.

    Judged again is what the save has changed: cases that are defined otherwise than they were and than they were
    judged, and those that name what was saved; all of a suite only where its code was saved and no case shows what
    that did. A case that never ran is left alone.
    """
    items = list(items)
    edited = {
        item.case_id
        for item in items
        if item.case is not None
        and (item.suite in saved.beside or item.suite in saved.own or item.case.file in saved.own)
        and ((old := before.get(item.case_id)) is None or old.content_hash != item.case.content_hash)
    }
    shown = {item.suite for item in items if item.case_id in edited}
    whole = {*settings} & {*saved.beside} | {*saved.code} - shown
    todo = AfterSave({}, [], [], [])
    for item in items:
        case, old = item.as_written, before.get(item.case_id)
        if case is None or not item.history:
            continue
        newest = newest_of(item)
        fresh = [one for one in newest if item.case_id in edited and one.content_hash != case.content_hash]
        asks = old is not None and fresh and _asks_otherwise(old, case)
        if asks or item.case_id in saved.asking:
            todo.changed.append(item.case_id)
        elif item.case_id in saved.asked and any(
            one.outcome != "passed" or case_state.flaky(one) for one in newest
        ):
            todo.failed.append(item.case_id)
        else:
            if item.case_id in saved.asked:
                todo.stale.append(item.case_id)
            everywhere = item.suite in whole or item.case_id in saved.judging
            for one in newest if everywhere else fresh:
                cases = todo.judge.setdefault(one.run_id, [])
                cases += [] if item.case_id in cases[-1:] else [item.case_id]
    return todo


def newest_of(item: CaseItem) -> list[CaseHistory]:
    """What a case came to last, in each of its columns."""
    return [results[0] for results in case_state.by_column(item.history).values()]


def _asks_otherwise(old: Case, new: Case) -> bool:
    """Whether what is sent to the agent is another now: a variable that only assertions name is not sent."""
    texts = [[turn.text for turn in case.turns] for case in (old, new)]
    if texts[0] != texts[1] or old.prompt != new.prompt:
        return True
    if any(
        (a.sly_data, a.chat_filter, a.continue_conversation)
        != (b.sly_data, b.chat_filter, b.continue_conversation)
        for a, b in zip(old.turns, new.turns, strict=True)
    ):
        return True
    from tui_eval.engine.fingerprints import sent_variables  # not for the first paint

    sent = sent_variables(old) | sent_variables(new)
    return any(old.vars.get(name) != new.vars.get(name) for name in sent)
