"""Filters of tests: prompts, providers, the first of them, a range or a sample.

A test with all its columns and combinations of variables counts once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from tui_eval.engine.request import RunRequest
from tui_eval.model import Case
from tui_eval.store.column_names import in_columns
from tui_eval.suites.identity import ending

_NUMBERED = r"prompt\d+(?:#\d+)?"
_RANGE = r"(\d{0,9}):(\d{0,9})"


class FilterError(Exception):
    """A filter that cannot be read; one clear line."""


def by_columns(cases: list[Case], request: RunRequest) -> list[Case]:
    """The cases whose prompt and provider the patterns match; of a test with a provider of its own that of its column
    counts, as in promptfoo.

    Raises:
        FilterError: a pattern is none, or matches nothing.
    """
    if request.filter_prompts is not None:
        named = _pattern(request.filter_prompts, "--filter-prompts")
        cases = _left(
            cases,
            lambda case: named(case.prompt or "") or named(_own_prompt_id(case)),
            "--filter-prompts",
            lambda case: case.prompt,
        )
    if request.filter_providers is not None:
        wanted = _pattern(request.filter_providers, "--filter-providers")
        cases = _left(
            cases,
            lambda case: wanted(case.column or case.agent or "") or wanted(_provider_id(case)),
            "--filter-providers",
            lambda case: case.column or case.agent,
        )
    return cases


def _pattern(text: str, option: str) -> Callable[[str], bool]:
    try:
        compiled = re.compile(text)
    except re.error as error:
        raise FilterError(f"{option} {text!r}: not a regular expression: {error}") from None
    return lambda name: compiled.search(name) is not None


def _left(
    cases: list[Case], keep: Callable[[Case], bool], option: str, name: Callable[[Case], str | None]
) -> list[Case]:
    found = [case for case in cases if keep(case)]
    if cases and not found:
        there = ", ".join(list(dict.fromkeys(one for case in cases if (one := name(case))))[:8])
        raise FilterError(f"{option}: nothing matches; there are: {there or 'none'}")
    return found


def _own_prompt_id(case: Case) -> str:
    """What the suite calls the case's prompt in ids; of one that it gave no name something that no pattern should
    mean, since the number was made here."""
    named = case.case_id.rpartition(f"{ending(case.column or case.agent or '', None)}::")[2]
    return "" if "::" in named or re.fullmatch(_NUMBERED, named) else named


def _provider_id(case: Case) -> str:
    """The id of the provider in whose column a row stands, whoever answers it."""
    kept = case.options if case.beside is None else case.beside
    provider = kept.get("columnProvider") if case.column else case.provider
    return str(provider.get("id", "")) if isinstance(provider, dict) else ""


def by_range(cases: list[Case], text: str) -> list[Case]:
    """The tests from START up to END (not with it), counted from 0.

    Raises:
        FilterError: it is not `START:END`.
    """
    found = re.fullmatch(_RANGE, text.strip())
    if found is None:
        raise FilterError(f"--filter-range {text!r}: expected START:END, for example 0:10")
    start, end = found.groups()
    return _flat(islice(tests(cases), int(start or 0), int(end) if end else None))


def end_of_range(text: str) -> int | None:
    """The END of `START:END`; None where there is none, or it cannot be read."""
    found = re.fullmatch(_RANGE, text.strip())
    return int(found[2]) if found and found[2] else None


def first(cases: Iterable[Case], count: int) -> list[Case]:
    """The first tests (a case without columns is a test); no more cases are made than they and one."""
    return _flat(islice(tests(cases), min(max(0, count), sys.maxsize)))


def by_sample(cases: list[Case], size: int, seed: str | None) -> list[Case]:
    """So many tests drawn at random, in their order; the same ones for the same seed."""
    from secrets import token_hex

    from tui_eval.suites.sampling import sample

    groups = list(tests(cases))
    drawn = sample(len(groups), size, token_hex(8) if seed is None else seed)
    return _flat([groups[place] for place in sorted(drawn)])


def tests(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """The cases by test: those that follow each other and came from one."""
    group: list[Case] = []
    last: tuple[Any, ...] | None = None
    for case in cases:
        key = (case.suite, case.name, case.line, id(case.assertions))
        if group and not (in_columns(case) and key == last):
            yield group
            group = []
        group.append(case)
        last = key
    if group:
        yield group


def _flat(groups: Iterable[Sequence[Case]]) -> list[Case]:
    return [case for group in groups for case in group]
