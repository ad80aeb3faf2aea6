"""Which of the loaded cases are meant: names, ids, stems, folders, filters, what failed last time."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from tui_eval.case_names import called, which_tests
from tui_eval.engine import case_filters, failed_before
from tui_eval.engine.request import ReachedLimit, RequestCell, RunRequest
from tui_eval.formats import format_of
from tui_eval.guard.secrets import MASK
from tui_eval.guard.spelling import some_of
from tui_eval.guard.text import visible
from tui_eval.model import Case, Problem
from tui_eval.store.case_state import by_column, is_own, not_passed
from tui_eval.store.schema import CaseHistory, StoredCase

NOTHING_FAILED = "--failed: nothing failed or errored last time"


LOOKS_AT_ALL = (
    "select", "cells", "case_ids", "filter_metadata", "filter_pattern", "failed_only", "filter_prompts",
    "filter_providers", "filter_failing", "filter_failing_only", "filter_errors_only", "filter_sample",
)  # fmt: skip
"""What a request may ask for that is decided by a look at every case."""
_COUNTS = ("filter_range", "filter_first_n")
_ASKS_NOTHING = RunRequest()


class SelectionError(Exception):
    """A selection that matches nothing, or a filter that cannot be read; one clear line."""


class LimitReached(SelectionError):
    """A run does not go on since a limit of it is reached; `limit` says which."""

    def __init__(self, words: str, limit: ReachedLimit) -> None:
        super().__init__(words)
        self.limit = limit


class NothingToRun(Exception):
    """The selection holds no case; one clear line, and the problems of files that may be why."""

    def __init__(self, message: str, problems: Sequence[Problem] = (), *, incomplete: bool = False) -> None:
        super().__init__(message)
        self.problems = list(problems)
        self.incomplete = incomplete
        """Although nothing failed, not all has run."""


class NothingLeft(Exception):
    """Nothing is left to run although nothing was asked for that is not there (`--failed` where all is well);
    one line."""


def choose(
    cases: Sequence[Case],
    request: RunRequest,
    latest: Callable[[], dict[str, list[CaseHistory]]],
    unmade: Collection[str] = (),
) -> Sequence[Case]:
    """The cases of `cases` that the request asks for, in their order; `cases` itself where that is all of them.

    `latest` gives the last results by case id, asked for only with `failed_only`, for which `unmade` are no passes
    though they never ran.

    Raises:
        SelectionError: something named does not exist, or a pattern matches nothing; the text says what there is.
        NothingLeft: nothing failed last time.
    """
    if all(getattr(request, name) == getattr(_ASKS_NOTHING, name) for name in (*LOOKS_AT_ALL, *_COUNTS)):
        return cases
    chosen = list(cases)
    if request.cells is not None:
        wanted = {cell.case_id for cell in request.cells}
        chosen = [case for case in chosen if case.case_id in wanted]
    if request.case_ids is not None:
        chosen = _by_ids(chosen, request.case_ids)
    if request.select:
        chosen = _by_words(chosen, request.select)
    for text in request.filter_metadata:
        chosen = _by_metadata(chosen, text)
    if request.filter_pattern is not None:
        chosen = _by_pattern(chosen, request.filter_pattern)
    if request.failed_only:
        history = latest()
        chosen = [
            case for case in chosen if case.case_id in unmade or not_passed(history.get(case.case_id, ()))
        ]
        if not chosen:
            raise NothingLeft(NOTHING_FAILED)
    try:
        chosen = case_filters.by_columns(failed_before.by_results(chosen, request), request)
        if request.filter_range is not None:
            chosen = case_filters.by_range(chosen, request.filter_range)
    except case_filters.FilterError as error:
        raise SelectionError(str(error)) from None
    if request.filter_first_n is not None:
        chosen = case_filters.first(chosen, request.filter_first_n)
    if request.filter_sample is not None:
        chosen = case_filters.by_sample(chosen, request.filter_sample, request.filter_sample_seed)
    return chosen


def not_made_before(
    of_files: Iterable[Case], cases: Iterable[Case], history: Mapping[str, Sequence[CaseHistory]]
) -> set[str]:
    """The cases that hooks add and that never ran, of suites of which some are errors: `beforeAll` may have been what
    failed, and the suite would be green without them."""
    known: set[str] = set()
    suites: set[str] = set()
    for case in of_files:
        known.add(case.case_id)
        if any(
            results[0].outcome == "error" for results in by_column(history.get(case.case_id, ())).values()
        ):
            suites.add(case.suite)
    return {
        case.case_id
        for case in cases
        if case.suite in suites and case.case_id not in known and not history.get(case.case_id)
    }


def left_unmade(cases: Iterable[Case], unmade: Collection[str], chosen: Iterable[Case]) -> str:
    """Which of those are not among the chosen, in words; empty: none."""
    if not unmade:
        return ""
    left = set(unmade).difference(case.case_id for case in chosen)
    names = list(dict.fromkeys(case.name for case in cases if case.case_id in left))
    count = "1 case that a hook adds" if len(left) == 1 else f"{len(left):,} cases that hooks add"
    return f"{count} never ran ({some_of(names, 3)}): run the suite" if left else ""


def failed_cells(cases: Sequence[Case], history: Mapping[str, Sequence[CaseHistory]]) -> list[RequestCell]:
    """The columns in which these cases did not pass last time."""
    found: list[RequestCell] = []
    for case in cases:
        columns = by_column(history.get(case.case_id, ()))
        for column, results in columns.items():
            if results[0].outcome != "passed":
                found.append(RequestCell(case.case_id, column.agent, column.model or None, is_own(results)))
    return found


def _by_ids(cases: Iterable[Case], ids: Sequence[str]) -> list[Case]:
    by_id = {case.case_id: case for case in cases}
    missing = [case_id for case_id in ids if case_id not in by_id]
    if missing and len(missing) == len(ids):
        raise SelectionError(f"case not found: {missing[0]}; it may have been renamed: {_some(by_id)}")
    return [by_id[case_id] for case_id in dict.fromkeys(ids) if case_id in by_id]


def _by_words(cases: Sequence[Case], words: Sequence[str]) -> list[Case]:
    """A whole id, or one with `::` before it, is that case alone; else folder first, then id, name, file stem or path,
    as nao's `--select` (commas separate)."""
    taken: dict[int, Case] = {}
    listed: list[str] = []
    wanted = [word for text in words for part in _split(text, cases) if (word := part.strip())]
    if words and not wanted:
        names = _some(dict.fromkeys(called(cases, which_tests(cases))))
        raise SelectionError(f"--select names nothing; there are: {names}")
    for word in wanted:
        found = [case for case in cases if is_id(case, word)]
        if not found:
            found = [case for case in cases if word in PurePosixPath(case.suite).parts[:-1]]
        if not found:
            found = [case for case in cases if _is_called(case, word)]
        if not found and (path := PurePosixPath(word).parts):  # `evals/ns`, `ns/`, `./ns/a.yaml`
            found = [case for case in cases if _is_at(case, path)]
        if not found:  # what lists call one without a name
            listed = listed or called(cases, which_tests(cases))
            found = [case for case, name in zip(cases, listed, strict=True) if name == word]
        if not found:
            names = _some(dict.fromkeys(listed))
            raise SelectionError(f"no case, file or folder is called {word!r}; there are: {names}")
        taken.update((id(case), case) for case in found)
    return [case for case in cases if id(case) in taken]


def _split(text: str, cases: Sequence[Case]) -> list[str]:
    """A name may hold a comma, and an id the label of a prompt or agent that does: the whole text is tried
    before its parts."""
    whole = text.strip()
    if any(is_id(case, whole) or _is_called(case, whole) for case in cases):
        return [whole]
    if "," in text and whole in called(cases, which_tests(cases)):
        return [whole]
    return text.split(",")


def _is_at(case: Case, path: tuple[str, ...]) -> bool:
    """Whether a case's file is of that path, or in a folder that is, from the root or from a folder on the way."""
    whole, count = PurePosixPath(case.suite).parts, len(path)
    return any(whole[start : start + count] == path for start in range(len(whole) - count + 1))


def is_id(case: Case | StoredCase, word: str) -> bool:
    """Whether a word is a case's id and can mean nothing else: with its suite, or as `again:` prints it."""
    return "::" in word and _among(word, (case.case_id, "::" + case.case_id.partition("::")[2]))


def _is_called(case: Case, word: str) -> bool:
    """Whether a word means a case: its id without its suite, its name, its file."""
    path = PurePosixPath(case.suite)
    own = case.case_id.partition("::")[2]
    return _among(word, (own, case.name, case.suite, path.stem, path.name)) or _is_shown(case.name, word)


def _is_shown(name: str, word: str) -> bool:
    """Whether a word is a name as it is shown: secrets in it masked."""
    return MASK in word and bool(re.fullmatch(".+".join(map(re.escape, word.split(MASK))), name, re.DOTALL))


def _among(word: str, known: tuple[str, ...]) -> bool:
    """Whether a word is one of these; what a terminal cannot take may be given as it was shown."""
    return word in known or any(
        visible(text, newlines=False).strip() == word for text in known if not text.isprintable()
    )


def _by_metadata(cases: Sequence[Case], text: str) -> list[Case]:
    """Equality, or membership in a list; values compare as text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise SelectionError(f"--filter-metadata {text!r}: expected KEY=VALUE")

    def matches(case: Case) -> bool:
        if key not in case.metadata:
            return False
        actual = case.metadata[key]
        values = actual if isinstance(actual, list) else [actual]
        return any(_as_text(item) == value for item in values)

    found = [case for case in cases if matches(case)]
    if cases and not found:
        there = dict.fromkeys(name for case in cases for name in case.metadata)
        given = [case.metadata[key] for case in cases if key in case.metadata]
        values = {_as_text(item) for one in given for item in (one if isinstance(one, list) else [one])}
        what = f"values of {key}: {_some(sorted(values))}" if values else f"keys: {_some(there)}"
        raise SelectionError(f"--filter-metadata {text}: nothing matches; there are {what}")
    return found


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _by_pattern(cases: Sequence[Case], pattern: str) -> list[Case]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise SelectionError(f"--filter-pattern {pattern!r}: not a regular expression: {error}") from None
    found = [case for case in cases if (text := _described(case)) and compiled.search(text)]
    if cases and not found:
        there = dict.fromkeys(text for case in cases if (text := _described(case)))
        raise SelectionError(f"--filter-pattern {pattern}: nothing matches; descriptions are: {_some(there)}")
    return found


def _described(case: Case) -> str:
    """What a pattern is looked for in: a promptfoo test without a description has nothing but its place,
    which no pattern of promptfoo's finds, not even an empty one."""
    return format_of(case.format).described(case)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return some_of(listed, 8) if listed else "none"
