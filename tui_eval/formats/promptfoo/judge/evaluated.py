"""What a script saw that is one expression, or ends in one: both sides of the comparison that was false.

`output.length < 140` came out false, because 178 is not below it: the expression is cut at its own operators, and
its sides are evaluated once more. What cannot be cut for certain (`||`, a ternary, several lines) is reported as it
stands; nothing here changes a verdict.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, NamedTuple

from tui_eval import causes
from tui_eval.assertions import evidence as seen
from tui_eval.guard.once import parsed, parsed_expression
from tui_eval.model import Evidence

LONGEST = 400
"""Characters of an expression that is looked into."""
_COMPARING = ("===", "!==", "==", "!=", "<=", ">=", "<", ">")
_NEITHER = ("=>", ">>>", ">>", "<<", "??", "||", "&&", "?.", "**=", "+=", "-=", "*=", "/=")
"""Operators that begin like others, or that make an expression one which is not cut."""
_PYTHON = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


class Comparison(NamedTuple):
    """A part of an expression: all of its text, and its sides where it compares."""

    text: str
    left: str = ""
    operator: str = ""
    right: str = ""


def in_javascript(code: str) -> list[Comparison]:
    """The parts of an expression that must all hold; none where it cannot be cut for certain."""
    line = code.strip().rstrip(";").rstrip()
    if (
        not line
        or len(line) > LONGEST
        or "\n" in line
        or line.startswith(("const ", "let ", "var ", "return "))
    ):
        return []
    tokens = _operators(line)
    if tokens is None or any(token in ("||", "??", "?", "=>", "=", ";", ",") for _, token in tokens):
        return [] if tokens is None else [Comparison(line)]
    parts: list[Comparison] = []
    begin = 0
    for place, token in [*tokens, (len(line), "&&")]:
        if token == "&&":
            inside = [(at, one) for at, one in tokens if begin <= at < place and one in _COMPARING]
            parts.append(_cut(line, begin, place, inside))
            begin = place + 2
    return parts


def _cut(line: str, begin: int, end: int, operators: list[tuple[int, str]]) -> Comparison:
    text = line[begin:end].strip()
    if len(operators) != 1:
        return Comparison(text)
    at, operator = operators[0]
    left, right = line[begin:at].strip(), line[at + len(operator) : end].strip()
    return Comparison(text, left, operator, right) if left and right else Comparison(text)


def _operators(line: str) -> list[tuple[int, str]] | None:
    """The operators outside of quotes and brackets, with their places; None where brackets do not close."""
    found: list[tuple[int, str]] = []
    depth, quote, at = 0, "", 0
    while at < len(line):
        char = line[at]
        if quote:
            at += 2 if char == "\\" else 1
            quote = "" if char == quote else quote
            continue
        if char in "\"'`":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0:
            token = next(
                (one for one in (*_COMPARING[:2], *_NEITHER, *_COMPARING[2:]) if line.startswith(one, at)), ""
            )
            token = token or (char if char in "?=;," else "")
            if token:
                found.append((at, token))
                at += len(token)
                continue
        at += 1
    return found if depth == 0 and not quote else None


def in_python(code: str, known: Collection[str] = ()) -> list[Comparison]:
    """The same of a Python expression; none of one that may do more than look at the output, and at names that are
    `known` to hold what was seen in it: it runs once."""
    if len(code) > LONGEST or "\n" in code:
        return []
    try:
        body = parsed_expression(code.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if not _looks_only(body, known):
        return []
    parts = body.values if isinstance(body, ast.BoolOp) and isinstance(body.op, ast.And) else [body]
    found: list[Comparison] = []
    for part in parts:
        text = ast.unparse(part)
        if isinstance(part, ast.Compare) and len(part.ops) == 1:
            sides = ast.unparse(part.left), ast.unparse(part.comparators[0])
            found.append(Comparison(text, sides[0], _PYTHON[type(part.ops[0])], sides[1]))
        else:
            found.append(Comparison(text))
    return found


class Function(NamedTuple):
    """What a script's function does before it returns, and the parts of what it returns, its arguments called
    `output` and `context`."""

    before: str
    parts: list[Comparison]


_NOTHING = Function("", [])
_GIVEN = ("output", "context")


def in_python_file(source: str, function: str) -> Function:
    """The same of a function of a Python file that sets names and then returns; no parts of any other."""
    try:
        body = parsed(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _NOTHING
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == function]
    if not found or not isinstance(last := found[-1].body[-1], ast.Return) or last.value is None:
        return _NOTHING
    names = [argument.arg for argument in found[-1].args.args]
    if len(names) > len(_GIVEN) or any(name in _HARMLESS for name in _own_names(body)):
        return _NOTHING
    before = [f"{name} = {given}" for name, given in zip(names, _GIVEN, strict=False) if name != given]
    known = set(names)
    for statement in found[-1].body[:-1]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if not isinstance(statement, ast.Assign) or not _looks_only(statement.value, known):
            return _NOTHING
        if not all(isinstance(target, ast.Name) for target in statement.targets):
            return _NOTHING
        known |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        before.append(ast.unparse(statement))
    parts = in_python(ast.unparse(last.value), known)
    return Function("\n".join(before), parts)


def _own_names(body: list[ast.stmt]) -> Iterator[str]:
    """The names that a file gives a meaning of its own; an `import *` may give it to any."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for one in node.names:
                    if one.name == "*":
                        yield from _HARMLESS
                    elif (one.asname, one.name) != (None, "json"):
                        yield one.asname or one.name


_EXPORTED = re.compile(
    r"(?P<above>.*?)\bmodule\.exports\s*=\s*(?:function\s*\w*\s*)?\(\s*(?P<names>[\w$]+(?:\s*,\s*[\w$]+)?)\s*\)\s*"
    r"(?:=>\s*)?(?:\{(?P<body>.*)\}|(?P<value>[^{].*?))\s*;?\s*",
    re.DOTALL,
)
_ENDS = re.compile(r"(?P<before>.*)\breturn\b\s*(?P<value>[^;{}]+);?\s*", re.DOTALL)
_LOADS = re.compile(r"\brequire\b|\bimport\b|\bawait\b|\bprocess\b")


def in_javascript_file(source: str) -> Function:
    """The same of a JavaScript file that exports just a function with one `return`, its last words."""
    found = _EXPORTED.fullmatch(source) if len(source) <= 10 * LONGEST else None
    if found is None or _LOADS.search(source):
        return _NOTHING
    before, value = "", found["value"]
    if value is None:
        ends = _ENDS.fullmatch(found["body"])
        if ends is None or re.search(r"\breturn\b", ends["before"]):
            return _NOTHING
        before, value = ends["before"], ends["value"]
    names = [name.strip() for name in found["names"].split(",")]
    called = "".join(
        f"const {name} = {given};" for name, given in zip(names, _GIVEN, strict=False) if name != given
    )
    return Function("\n".join((found["above"], called, before)), in_javascript(value))


_HARMLESS = frozenset(
    [
        "output",
        "context",
        "json",
        "len",
        "str",
        "int",
        "float",
        "bool",
        "abs",
        "min",
        "max",
        "sum",
        "any",
        "all",
        "sorted",
        "round",
        "list",
        "dict",
        "set",
        "tuple",
        "isinstance",
        "range",
        "enumerate",
        "zip",
    ]
)


def _looks_only(body: ast.expr, known: Collection[str] = ()) -> bool:
    """Whether an expression has only names that can do nothing outside."""
    own = {
        node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return all(
        not isinstance(node, ast.Lambda | ast.Await | ast.Yield | ast.YieldFrom)
        and not (isinstance(node, ast.Name) and node.id not in _HARMLESS | own | set(known))
        and not (isinstance(node, ast.Attribute) and node.attr.startswith("_"))
        for node in ast.walk(body)
    )


class Language(NamedTuple):
    """How a language asks whether an expression holds (`{}`), and for a value with its word where JSON has none for it,
    or another: `undefined`, `NaN`, `None`."""

    truth: str
    value: str


JAVASCRIPT = Language(
    "!!({})",
    "((v) => ['number', 'string', 'boolean'].includes(typeof v) && (typeof v !== 'number' || v - v === 0)"
    " || typeof v === 'object' ? [v, ''] : [null, typeof v === 'function' ? 'a function' : String(v)])({})",
)
PYTHON = Language(
    "bool({})",
    "(lambda v: [None, str(v)] if v is None or isinstance(v, float) and v - v != 0"
    " else [v, str(v) if isinstance(v, bool) else ''])({})",
)


async def what_was_false(
    parts: list[Comparison], evaluate: Callable[[str], Awaitable[Any]], language: Language
) -> Evidence | None:
    """The first part that does not hold, with the values of its sides; None where that is not found.

    Args:
        evaluate: gives the value of an expression; what it raises ends the search.
    """
    for part in parts:
        asked = [language.value.format(side) for side in (part.left, part.right) if part.operator]
        *values, holds = await evaluate(f"[{', '.join([*asked, language.truth.format(part.text)])}]")
        if holds is not False:
            continue
        told = Evidence("rule", "is-false", text=seen.cut(part.text), rule=seen.cut(part.text))
        if values and not any(isinstance(value, dict | list) for value, _ in values):
            left, right = (word or causes.shown(value) for value, word in values)
            told.text = f"{left} {part.operator} {right}"
            told.actual, told.expected = (seen.small(value) for value, _ in values)
        return told
    return None
