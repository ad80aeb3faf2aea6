"""What `check` finds in patterns, schemas and code before anything is asked."""

from __future__ import annotations

from typing import Any

import pytest

from tui_eval.formats.promptfoo.check.code_faults import faults
from tui_eval.model import Assertion, Case, Suite


def suite(*assertions: Assertion, **options: Any) -> Suite:
    case = Case("s.yaml::a", "a", "s.yaml", "promptfoo", line=3, assertions=list(assertions), options=options)
    return Suite(path="s.yaml", format="promptfoo", cases=[case])


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("regex", "(a", "is no regular expression of JavaScript"),
        ("not-regex", "[", "is no regular expression of JavaScript"),
        ("javascript", "output.", "is no JavaScript"),
        ("python", "len(output", "is no Python"),
        ("is-json", {"type": 5}, "its schema is broken"),
    ],
)
async def test_what_does_not_compile_is_an_error_with_its_line(kind: str, value: Any, words: str) -> None:
    (problem,) = await faults([suite(Assertion(kind, value, line=7))])
    assert words in problem.message
    assert (problem.level, problem.line, problem.key, problem.path) == ("error", 7, kind, "s.yaml")
    assert problem.cure.startswith("mend ")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("regex", "(a)"),
        ("regex", "{{pattern}}("),  # known when its template is filled
        ("javascript", "output.length > 3"),
        ("javascript", "file://judge.js"),  # read when the suite is
        ("python", "a = len(output)\nreturn a > 3"),
        ("is-json", {"type": "object"}),
        ("contains", "("),
    ],
)
async def test_what_compiles_or_is_not_known_yet_is_none(kind: str, value: Any) -> None:
    assert await faults([suite(Assertion(kind, value))]) == []


async def test_transforms_of_assertions_and_of_the_test_are_code_too() -> None:
    found = await faults([suite(Assertion("contains", "x", transform="output.", line=9), transform="(")])
    assert [(problem.key, problem.line) for problem in found] == [("contains", 9), ("options.transform", 3)]
    assert all("its transform is no JavaScript" in problem.message for problem in found)


async def test_a_schema_that_is_broken_under_not_is_a_note() -> None:
    """What is no JSON still passes there."""
    (found,) = await faults([suite(Assertion("not-contains-json", {"required": "name"}))])
    assert (found.level, found.key) == ("note", "not-contains-json")
