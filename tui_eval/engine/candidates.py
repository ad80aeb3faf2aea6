"""The cases that a request chooses from, made no further than it needs them: of a table of a hundred
thousand rows, one case by its id, or the first ten, are there at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tui_eval import suites
from tui_eval.engine import narrowing
from tui_eval.engine.request import RunRequest
from tui_eval.model import Case, Suite

_LOOK_AT_ALL = (
    "select", "cells", "case_ids", "filter_metadata", "filter_pattern", "failed_only", "filter_prompts",
    "filter_providers", "filter_failing", "filter_failing_only", "filter_errors_only", "filter_sample",
)  # fmt: skip


def candidates(loaded: Sequence[Suite], request: RunRequest) -> list[Case]:
    """All cases, or as many as can be among the chosen ones; `selection.choose` decides."""
    named = request.case_ids
    if named is None and request.cells is not None:
        named = [cell.case_id for cell in request.cells]
    if named and (found := suites.with_ids(loaded, named)):
        return found
    if request.select and (found := _by_ids(loaded, request.select)):
        return found
    count = _beginning(request)
    if count is not None:
        return narrowing.first(chain.from_iterable(suite.cases for suite in loaded), count)
    return suites.all_cases(loaded)


def _by_ids(loaded: Sequence[Suite], words: Sequence[str]) -> list[Case]:
    """The cases that whole ids name; none where a word is something else, too (a name, a folder)."""
    if not all("::" in word for word in words):
        return []
    wanted = {part.strip() for word in words for part in (word, *word.split(","))}
    found = suites.with_ids(loaded, wanted)
    ids = {case.case_id for case in found}
    for word in words:
        parts = [part.strip() for part in word.split(",") if part.strip()]
        if word.strip() not in ids and not all(part in ids for part in parts):
            return []
    return found


def _beginning(request: RunRequest) -> int | None:
    """How many tests from the first one on are enough; None: all must be looked at."""
    if any(getattr(request, name) for name in _LOOK_AT_ALL):
        return None
    if request.filter_range is not None:
        return narrowing.end_of_range(request.filter_range)
    return request.filter_first_n
