"""What `check` says of assertions that no answer can meet: expected SQL that does not execute, patterns,
schemas and code that do not compile. Nothing of a suite's own code is run."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterable, Sequence
from typing import Literal

from tui_eval.commands.expected_sql import ExpectedSql, sql_of
from tui_eval.config import ConfigError
from tui_eval.guard.text import clip
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Assertion, Case, Problem, Suite
from tui_eval.scripting.javascript import JavaScriptError, JavaScriptHost, function_body

_COMPILE = """
try {
  if (context.kind === "regex") new RegExp(context.text);
  else new Function("output", "context", context.text);
  return null;
} catch (error) {
  return error.message;
}
"""
_NOT_INLINE = ("file://", "package:")
_TEMPLATE = ("{{", "{%")


def unjudgeable(loaded: Sequence[Suite], expected: ExpectedSql) -> list[Problem]:
    """An error for each assertion that will fail or err whatever the agent answers.

    A database that is not there is one note for all that need it: the machine that checks need not be the
    one that runs.
    """
    cases = [case for suite in loaded if suite.format == "nao" for case in suite.cases]
    code = _promptfoo(suite for suite in loaded if suite.format == "promptfoo")
    return [*_queries(cases, expected), *asyncio.run(code)]


def _queries(cases: Sequence[Case], expected: ExpectedSql) -> Iterable[Problem]:
    from tui_eval.frames.databases import NoDatabase
    from tui_eval.frames.sql import SqlError

    untried: dict[str, list[Case]] = {}
    for case in cases:
        try:
            expected.rows_of(case)
        except (NoDatabase, ConfigError, NeedsTrust, OSError) as problem:
            untried.setdefault(str(problem), []).append(case)
        except SqlError as problem:
            yield _problem(case, sql_of(case), f"does not execute: {problem}", "mend the query")
    for reason, waiting in untried.items():
        more = f" (and that of {len(waiting) - 1} more)" if len(waiting) > 1 else ""
        yield _problem(
            waiting[0], sql_of(waiting[0]), f"its query{more} cannot be tried here: {reason}", level="note"
        )


async def _promptfoo(suites: Iterable[Suite]) -> list[Problem]:
    problems: list[Problem] = []
    told: dict[tuple[str, str], tuple[str, str] | None] = {}
    host = JavaScriptHost()
    try:
        for suite in suites:
            for case in suite.cases:
                for assertion in case.assertions:
                    kind = assertion.type.removeprefix("not-")
                    text = assertion.value
                    if not isinstance(text, str) or not _is_inline(text):
                        continue
                    key = (kind, text)
                    if key not in told:
                        told[key] = await _fault(kind, text, host)
                    if (fault := told[key]) is not None:
                        problems.append(_problem(case, assertion, *fault))
    finally:
        host.close()
    return problems


def _is_inline(text: str) -> bool:
    return bool(text) and not text.startswith(_NOT_INLINE) and not any(mark in text for mark in _TEMPLATE)


async def _fault(kind: str, text: str, host: JavaScriptHost) -> tuple[str, str] | None:
    """What is wrong with a value, and the cure; None where it can be judged with."""
    if kind == "regex":
        message = await _compiled({"kind": "regex", "text": text}, host)
        return (f"is no regular expression of JavaScript: {message}", _mend(text)) if message else None
    if kind == "javascript":
        message = await _compiled({"kind": "function", "text": function_body(text)}, host)
        return (f"is no JavaScript: {message}", _mend(text)) if message else None
    if kind == "python":
        return _python(text)
    return None


async def _compiled(context: dict[str, str], host: JavaScriptHost) -> str | None:
    try:
        return await host.evaluate(_COMPILE, {"context": context})
    except JavaScriptError:
        return None  # the isolate is not there; that is said where it is needed


def _python(text: str) -> tuple[str, str] | None:
    lines = text.rstrip("\n")
    body = lines.split("\n") if "\n" in lines else [f"return {lines.strip()}"]
    try:
        ast.parse("def main(output, context):\n" + "\n".join(f" {line}" for line in body))
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        return f"is no Python: {reason}", _mend(text)
    return None


def _mend(text: str) -> str:
    return f"mend {clip(text, 60)}"


def _problem(
    case: Case,
    assertion: Assertion | None,
    message: str,
    cure: str = "",
    level: Literal["error", "note"] = "error",
) -> Problem:
    line = assertion.line if assertion is not None else 0
    return Problem(
        path=case.file or case.suite,
        line=line or case.line,
        key=assertion.type if assertion is not None else case.name,
        message=message,
        cure=cure,
        level=level,
    )
