"""The table of the seeds' statements: well-formed, and every test that it names exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TABLE = yaml.safe_load((Path(__file__).parent / "statements.yaml").read_text("utf-8"))
STATEMENTS = [
    pytest.param(statement, id=str(statement["id"]))
    for statements in TABLE.values()
    for statement in statements
]


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_all_four_seeds_are_there() -> None:
    assert list(TABLE) == ["nao", "start_to_agent", "promptfoo", "neuro_san"]
    assert all(len(statements) >= 30 for statements in TABLE.values())


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_has_a_test_or_says_which_issue_it_waits_for(statement: dict[str, object]) -> None:
    assert set(statement) in ({"id", "says", "test"}, {"id", "says", "later"})
    assert isinstance(statement["says"], str) and statement["says"]
    if "later" in statement:
        assert statement["later"] in (3, 4, 5)
        return
    path, _, name = str(statement["test"]).partition("::")
    assert name.startswith("test_") and name in functions_of(ROOT / path)


def test_numbers_run_and_no_statement_stands_twice() -> None:
    for seed, statements in TABLE.items():
        numbers = [f"{seed}-{number:02}" for number in range(1, len(statements) + 1)]
        assert [statement["id"] for statement in statements] == numbers
        says = [statement["says"] for statement in statements]
        assert len(says) == len(set(says)), seed
