"""The cases that a request chooses from, made no further than it needs them: of a table of a hundred thousand
rows, one case by its id, or the first ten, are there at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

import msgspec

from tui_eval.engine import case_filters
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import LOOKS_AT_ALL, choose
from tui_eval.formats import reading
from tui_eval.model import Case, Problem, Suite


class CasesOfSuites(Sequence[Case]):
    """The cases of several suites, one after the other; those of large tables are made when their turn comes."""

    def __init__(self, loaded: Sequence[Suite]) -> None:
        self._parts = [suite.cases for suite in loaded]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @overload
    def __getitem__(self, index: int) -> Case: ...

    @overload
    def __getitem__(self, index: slice) -> list[Case]: ...

    def __getitem__(self, index: int | slice) -> Case | list[Case]:
        if isinstance(index, slice):
            return list(self)[index]
        place = index if index >= 0 else len(self) + index
        for part in self._parts if place >= 0 else ():
            if place < len(part):
                return part[place]
            place -= len(part)
        raise IndexError(f"there are {len(self)} cases")

    def __iter__(self) -> Iterator[Case]:
        return chain.from_iterable(self._parts)


def candidates(loaded: Sequence[Suite], request: RunRequest) -> Sequence[Case]:
    """All cases, or as many as can be among the chosen ones; `selection.choose` decides."""
    named = request.case_ids
    if named is None and request.cells is not None:
        named = [cell.case_id for cell in request.cells]
    if named and (found := reading.with_ids(loaded, named)):
        return found
    if request.select and (found := _by_ids(loaded, request.select)):
        return found
    count = _beginning(request)
    if count is not None:
        return case_filters.first(chain.from_iterable(suite.cases for suite in loaded), count)
    return CasesOfSuites(loaded)


def _by_ids(loaded: Sequence[Suite], words: Sequence[str]) -> list[Case]:
    """The cases that whole ids name; none where a word is something else, too (a name, a folder)."""
    if not all("::" in word for word in words):
        return []
    wanted = {part.strip() for word in words for part in (word, *word.split(","))}
    found = reading.with_ids(loaded, wanted)
    ids = {case.case_id for case in found}
    for word in words:
        parts = [part.strip() for part in word.split(",") if part.strip()]
        if word.strip() not in ids and not all(part in ids for part in parts):
            return []
    return found


def no_longer_there(request: RunRequest, cases: Sequence[Case]) -> list[Problem]:
    """The cases that are asked for by their ids and are in none of the files that were read: a run without them is
    not the one that was asked for. Where none is there at all, `selection.choose` says so."""
    named = request.case_ids or [cell.case_id for cell in request.cells or ()]
    there = {case.case_id for case in cases} if named else set()
    gone = [one for one in dict.fromkeys(named) if one not in there]
    what, cure = "is not there any more, and is not run", "it may have been renamed; read the suites again"
    parts = [one.partition("::") for one in (gone if len(gone) < len(set(named)) else ())]
    return [Problem(suite, 0, name, what, cure) for suite, _, name in parts]


def _beginning(request: RunRequest) -> int | None:
    """How many tests from the first one on are enough; None: all must be looked at."""
    if any(getattr(request, name) for name in LOOKS_AT_ALL):
        return None
    if request.filter_range is not None:
        end = case_filters.end_of_range(request.filter_range)
        return 1 if end == 0 else end  # of `0:0` is to be known that there are tests
    return request.filter_first_n


def meant(request: RunRequest, loaded: Sequence[Suite]) -> set[str]:
    """The ids of the cases that a request for what failed before looks for it among."""
    asked = msgspec.structs.replace(
        request, cells=None, failed_only=False, filter_failing=None, filter_failing_only=None,
        filter_errors_only=None, filter_sample=None,
    )  # fmt: skip
    return {case.case_id for case in choose(candidates(loaded, asked), asked, dict)}
