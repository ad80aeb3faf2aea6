"""What lists call the cases of a run whose recorded name says too little: those of tests without a name, or with the
name of another. No more is held for it than two numbers a case and the names of those that clash, so that a large run
is called as a small one is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.case_names import called, is_unnamed, later_texts, value_text, which_test, which_tests
from tui_eval.model import Case
from tui_eval.store.run_folders import StoreError
from tui_eval.store.schema import StoredCase

if TYPE_CHECKING:
    from tui_eval.store.reader import RunReader


class _Asked(msgspec.Struct):
    """Of a case what an unnamed one is called by: a body is read for no more."""

    case_id: str
    name: str
    suite: str
    description: str = ""
    vars: dict[str, Any] = {}
    named_by: str = ""


class ListedNames:
    """The names by which lists call the cases of a run."""

    def __init__(self, run: RunReader) -> None:
        self._run = run
        self._clashing = _called(run)

    def of(self, cases: Iterable[StoredCase]) -> dict[str, str]:
        """What these are called, by case id, where it is not their recorded name."""
        found: dict[str, str] = {}
        unnamed: list[StoredCase] = []
        for case in cases:
            if case.case_id in self._clashing:
                if (name := self._clashing[case.case_id]) != case.name:
                    found[case.case_id] = name
            elif may_be_unnamed(case):
                unnamed.append(case)
        if not unnamed:
            return found
        for asked in self._run.bodies([case.id for case in unnamed], _Asked).values():
            if is_unnamed(asked) and (name := value_text(asked)) not in ("", asked.name):
                found[asked.case_id] = name
        return found


UNNAMED = "Row #"


def may_be_unnamed(case: StoredCase) -> bool:
    """Whether lists may call it otherwise than its record does: by a variable (`is_unnamed`)."""
    return case.name.startswith(UNNAMED)


def _called(run: RunReader) -> dict[str, str]:
    """What the cases are called whose shortest name is that of another test too, by id: with what tells them apart."""
    names, clashing = _clashes(run)
    while clashing:
        refs: dict[str, int] = {}
        for piece in run.pieces():
            told = _told(run, piece)
            refs.update((case.case_id, case.id) for case in piece if told[case.id][0] in clashing)
        cases: list[Case] = []
        for ref in refs.values():
            with contextlib.suppress(StoreError):  # damaged: it keeps its name
                cases.append(run.case(ref))
        longer = called(cases, which_tests(cases))
        # What one is called now may be the shortest name of yet another, and what it goes on with where its first
        # value is empty.
        told = {hash((case.suite, name)) for case, name in zip(cases, longer, strict=True)}
        told |= {hash((case.suite, text)) for case in cases for text in later_texts(case)}
        more = told & names - clashing
        if not more:
            return {case.case_id: name for case, name in zip(cases, longer, strict=True)}
        clashing |= more
    return {}


def _clashes(run: RunReader) -> tuple[set[int], set[int]]:
    """Marks of all shortest names, and of those that cases of more than one test have."""
    if run.all_named_apart():
        return set(), set()
    names: set[int] = set()
    tests: set[int] = set()
    clashing: set[int] = set()
    for piece in run.pieces():
        for name, test in _told(run, piece).values():
            if test not in tests:
                (clashing if name in names else names).add(name)
                tests.add(test)
    return names, clashing


def _told(run: RunReader, piece: Sequence[StoredCase]) -> dict[int, tuple[int, int]]:
    """Of each case the marks of its shortest name in its suite, and of that name and its test."""
    asked = run.bodies([case.id for case in piece if may_be_unnamed(case)], _Asked)
    found: dict[int, tuple[int, int]] = {}
    for case in piece:
        unnamed = case.id in asked and is_unnamed(asked[case.id])
        name = value_text(asked[case.id]) if unnamed else case.name
        test = which_test(case.case_id, case.suite, case.name)
        found[case.id] = hash((case.suite, name)), hash((case.suite, name, case.name, test))
    return found
