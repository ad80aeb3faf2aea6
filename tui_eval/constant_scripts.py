"""Scripts of a suite whose value does not depend on the answer: constants, and bodies that end in one.

Nothing is run: a script that is not certainly constant is taken to look at the answer.
"""

from __future__ import annotations

import ast
import math
import re
import sys

Constant = bool | float

_LITERAL = re.compile(
    r"(?P<truth>true|false)|(?P<nots>!{1,8})(?P<bit>[01])|(?P<number>[-+]?(?:\d{1,18}\.?\d{0,18}|\.\d{1,18}))"
)
_RETURN = re.compile(r"return\b\s*(.*?)\s*;?", re.DOTALL)
_NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL)
_ARGUMENT = r"(?:\"\"|[\w.]{1,40})"
_METHODS = (
    "includes|startsWith|endsWith|indexOf|toLowerCase|toUpperCase|trim|slice|split|replace|replaceAll|concat"
)
_LOOKS = rf"output(?:\.(?:{_METHODS})\((?:{_ARGUMENT}(?:\s*,\s*{_ARGUMENT})?)?\))*(?:\.length)?"
_IDLE = re.compile(
    rf"(?:(?:const|let|var)\s+[\w$]+\s*=\s*)?(?:\"\"|true|false|null|-?[\d.]+|context|{_LOOKS})"
    rf"|console\.\w+\((?:\"\"|output|,|\s)*\)"
)
_OF_TEXT = frozenset(
    ("lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "split", "splitlines", "count",
     "find", "casefold", "replace")
)  # fmt: skip
_LONGEST = 20_000
"""Characters of a script that are looked at."""


def constant(kind: str, text: str) -> Constant | None:
    """What a script gives whatever is answered: true, false or a number; None where that is not certain.

    Args:
        kind: `javascript`, `python` or `ruby`.
        text: the code as it is judged with: one line is an expression, several are a body that returns.
    """
    if len(text) > _LONGEST or "{{" in text or "{%" in text or text.startswith(("file://", "package:")):
        return None
    if kind == "javascript":
        line = text.rstrip()
        return _javascript_body(line) if "\n" in line else _literal(line.strip().rstrip(";"))
    if kind == "python":
        return _python(text)
    if kind == "ruby" and "!" not in text:
        return _literal(text.strip())
    return None


def passes(value: Constant, threshold: float | None, inverse: bool) -> bool:
    """Whether such a value passes: truth counts as it is, a number above 0 or from the threshold on."""
    limit = sys.float_info.min if threshold is None else threshold
    holds = value if isinstance(value, bool) else value >= limit
    return holds != inverse


def _literal(text: str) -> Constant | None:
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    found = _LITERAL.fullmatch(text)
    if found is None:
        return None
    if found["truth"]:
        return found["truth"] == "true"
    if found["nots"]:
        return (found["bit"] == "1") == (len(found["nots"]) % 2 == 0)
    return float(found["number"])


def _javascript_body(text: str) -> Constant | None:
    """The constant that a body ends in, where nothing before it returns, throws or may fail."""
    bare = _NOISE.sub(lambda found: " " if found[0].startswith("/") else '""', text)
    lines = [line.strip() for line in re.split(r"[;\n]", bare)]
    statements = [line for line in lines if line]
    if not statements:
        return None
    last = _RETURN.fullmatch(statements[-1])
    if last is None or not all(_IDLE.fullmatch(line) for line in statements[:-1]):
        return None
    return _literal(last[1])


def _python(text: str) -> Constant | None:
    """As `_javascript_body`; one line stands behind `return`."""
    code = text if "\n" in text else f"return {text.strip()}"
    try:
        tree = ast.parse("def main(output, context):\n" + "\n".join(f" {line}" for line in code.split("\n")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    (function,) = tree.body[:1]
    if not isinstance(function, ast.FunctionDef) or len(tree.body) != 1:
        return None
    *before, last = function.body
    if not isinstance(last, ast.Return) or last.value is None or not all(map(_is_idle, before)):
        return None
    try:
        value = ast.literal_eval(last.value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, bool):
        return value
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement neither returns nor can fail, as far as that is certain."""
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Import):
        return all(alias.name in ("json", "re", "math") for alias in statement.names)
    if isinstance(statement, ast.Assign) and not all(isinstance(one, ast.Name) for one in statement.targets):
        return False
    if isinstance(statement, ast.Assign | ast.Expr):
        return all(map(_is_idle_part, ast.walk(statement.value)))
    return False


def _is_idle_part(part: ast.AST) -> bool:
    if isinstance(part, ast.Name):
        return isinstance(part.ctx, ast.Load) and part.id in ("output", "context", "print", "len", "str")
    if isinstance(part, ast.Attribute):
        return part.attr in _OF_TEXT
    if isinstance(part, ast.Compare):
        return all(isinstance(one, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for one in part.ops)
    plain = (
        ast.Constant,
        ast.Call,
        ast.BoolOp,
        ast.boolop,
        ast.cmpop,
        ast.UnaryOp,
        ast.Not,
        ast.expr_context,
    )
    return isinstance(part, plain)
