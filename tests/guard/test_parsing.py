"""Python's files are parsed by one thread at a time: its parser takes no two."""

from __future__ import annotations

import ast
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tui_eval.guard.once import parsed, parsed_expression


def test_no_two_threads_parse_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs in one engine ended in `SystemError: AST constructor recursion depth mismatch`."""
    inside: list[int] = []
    most: list[int] = []
    really = ast.parse
    met = threading.Event()

    def parse(*given: Any, **more: Any) -> Any:
        inside.append(1)
        most.append(len(inside))
        met.wait(0.05)  # another that comes in meanwhile would be seen
        inside.pop()
        return really(*given, **more)

    monkeypatch.setattr(ast, "parse", parse)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda number: (parsed, parsed_expression)[number % 2]("1 + 1"), range(8)))
    assert max(most) == 1 and len(most) == 8
    assert {type(one).__name__ for one in found} == {"Module", "BinOp"}


def test_what_is_no_python_leaves_the_parser_free() -> None:
    for _ in range(2):
        with pytest.raises(SyntaxError):
            parsed("def")
        with pytest.raises(SyntaxError):
            parsed_expression("x =")
