"""In whose column a case stands, where a test is asked in several: of prompts and agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from tui_eval.model import Case
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, StoredCase


def in_columns(case: Case) -> bool:
    """Whether a case is a test in one of several columns: it says in which."""
    return case.column_number > 0 or case.prompt is not None


def suites_in_columns(reader: RunReader, cases: Iterable[StoredCase]) -> frozenset[str]:
    """The suites among these cases whose tests stand in columns; of each one case is looked at."""
    first = {row.suite: row.id for row in cases}
    return frozenset(suite for suite, ref in first.items() if in_columns(reader.case(ref)))


def column_agent(case: Case, agent: str) -> str:
    """The provider of a case's column: `agent`, which it was run with, but of a row with a provider of its
    own the one whose column it stays in (formats/promptfoo.md 3). `--agent` replaces both."""
    return case.column if case.column and agent == case.agent else agent


def sums(reader: RunReader, rows: list[list[dict[str, float]]] | None = None) -> list[dict[str, Any]]:
    """A row for each prompt and agent of suites with columns: `{suite, agent, prompt, score, named_scores,
    named_weights, count, derived}`; a named score is the sum of the rows' value × weight (section 8.4).
    Errors count as rows of nothing.
    `rows`, if it is given, gets what each row adds to the named scores, by column in the same order."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    each: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for key, row in _in_columns(reader):
        attempt = reader.attempt(row.id)
        if attempt is None:
            continue
        column = found.get(key)
        if column is None:
            column = found[key] = {
                "suite": key[0], "agent": key[1], "prompt": key[2], "score": 0.0, "count": 0,
                "named_scores": {}, "named_weights": {}, "derived": {},
            }  # fmt: skip
            each[key] = []
        added: dict[str, float] = {}
        if rows is not None:
            each[key].append(added)
        column["count"] += 1
        if attempt.outcome == "error":
            continue  # what it was judged by is shown, and adds nothing, as in promptfoo
        column["score"] += attempt.score or 0.0
        for name, value in attempt.named_scores.items():
            weight = attempt.named_weights.get(name, 1.0)
            added[name] = value * weight
            column["named_scores"][name] = column["named_scores"].get(name, 0.0) + value * weight
            column["named_weights"][name] = column["named_weights"].get(name, 0.0) + weight
    if rows is not None:
        rows.extend(each.values())
    return list(found.values())


def _in_columns(reader: RunReader) -> Iterator[tuple[tuple[str, str, str], AttemptRow]]:
    """The finished attempts of suites with columns, each with its column: suite, agent and prompt."""
    for suite, cases in groupby(reader.by_case("suites by name"), key=lambda one: one[0].suite):
        for number, (case, attempts) in enumerate(cases):
            done = [row for row in attempts if row.state == "done"]
            if number and not done:
                continue
            body = reader.case(case.id)
            if not number and not in_columns(body):
                break
            key = suite, column_agent(body, case.agent), body.prompt or ""
            for row in done:
                yield key, row
