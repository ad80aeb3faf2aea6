"""Where in a script the value was returned that an assertion came out by: its line, as far as that is certain.

The script is read, not run: of all its `return`s those count that may give such a value, and only where one is left is
its line named. With several, a Python function is named by its first line and a JavaScript file by itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tui_eval.assertions import evidence as seen
from tui_eval.model import Evidence

LONGEST = 200_000
"""Characters of a script that are looked into."""


class SourceLine(NamedTuple):
    """A line of a script, from 1 (0: not certain which), and its text."""

    number: int
    text: str = ""


def add_place(evidence: list[Evidence], path: Path, root: Path, function: str | None, value: Any) -> None:
    """Let the evidence of a script that judged say in which file and line it returned `value`."""
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return
    line = returned_at(source, path.suffix, function, value)
    name = str(path.relative_to(root)) if path.is_relative_to(root) else path.name
    for one in evidence:
        if one.kind == "rule" and not one.path:
            one.path, one.row, one.rule = name, line.number or None, one.rule or seen.cut(line.text)


def returned_at(source: str, suffix: str, function: str | None, value: Any) -> SourceLine:
    """The line of a script's only `return` that may give this value.

    Args:
        function: The function that was called (None: the one that is called by default).
    """
    if len(source) > LONGEST:
        return SourceLine(0)
    lines = source.splitlines()
    if suffix == ".py":
        numbers, otherwise = _python(source, function or "get_assert", value)
    else:
        numbers, otherwise = _javascript(source, value), 0
    number = numbers[0] if len(numbers) == 1 else otherwise
    return SourceLine(number, lines[number - 1].strip()) if 0 < number <= len(lines) else SourceLine(0)


def _python(source: str, function: str, value: Any) -> tuple[list[int], int]:
    """The lines of the function's returns that may give the value, and its own first line."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [], 0
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in body if isinstance(node, functions) and node.name == function]
    if not found:
        return [], 0
    returns = _returns(found[-1])
    return [node.lineno for node in returns if _may_be(node.value, value)], found[-1].lineno


def _returns(function: ast.AST) -> Iterator[ast.Return]:
    """The returns of a function, not those of functions in it."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, inner):
            yield from _returns(child)


def _may_be(node: ast.expr | None, value: Any) -> bool:
    """Whether an expression may have a value: what is written out must be it, in an object what it says of the pass
    and the reason."""
    if node is None or isinstance(node, ast.Constant):
        given = node.value if node is not None else None
        return type(given) is type(value) and given == value
    if isinstance(node, ast.Dict):
        if not isinstance(value, dict):
            return False
        written = {
            key.value: part.value
            for key, part in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(part, ast.Constant)
        }
        return all(
            written.get(name, value.get(name)) == value.get(name) for name in ("pass", "pass_", "reason")
        )
    return True


_NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL
)
_RETURN = re.compile(r"\breturn\b[ \t]*([^;}\n]*)|=>\s*(?![\s{])([^;,)\n]*)")


def _javascript(source: str, value: Any) -> list[int]:
    """The lines of all returns, those of arrows without braces too, that may give the value."""
    code = _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    numbers: list[int] = []
    for found in _RETURN.finditer(code):
        given = (found[1] if found[1] is not None else found[2]).strip()
        literal = {"true": True, "false": False}.get(given)
        if literal is not None and literal is not value:
            continue
        if given.startswith("{") and not isinstance(value, dict):
            continue
        numbers.append(code.count("\n", 0, found.start()) + 1)
    return numbers
