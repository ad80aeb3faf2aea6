"""`regex` and what it matched: JavaScript's patterns, judged in this process where that is safe, else in the
isolate."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Sequence

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge import code
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, invariant
from tui_eval.formats.promptfoo.judge.script_results import ScriptFailed
from tui_eval.javascript import patterns as patterns
from tui_eval.javascript.isolate import JavaScriptTimeout
from tui_eval.model import Evidence


def regex(call: AssertionCall) -> Result | Awaitable[Result]:
    """Search with a JavaScript pattern without flags; one that is invalid fails, inverted or not."""
    pattern = call.value
    invariant(isinstance(pattern, str) and pattern, f'"{call.kind}" assertion type must have a string value')
    known = patterns.translated(pattern)
    expression = patterns.within_time(known, call.text) if known is not None else None
    if expression is None:
        return _later(call)
    first = expression.search(call.text)
    if first is None:
        return _result(call, False, [])
    several = len(call.text) <= patterns.LONGEST
    return _result(call, True, patterns.places(expression, call.text) if several else [first.span()])


async def _later(call: AssertionCall) -> Result:
    context = {"pattern": call.value, "most": patterns.MOST}
    variables = {"output": call.text, "context": context}
    try:
        answer = await code.run_javascript(patterns.FIRST, variables, call.evidence)
    except ScriptFailed as error:
        if isinstance(error.__cause__, JavaScriptTimeout):
            words = f"{call.assertion.type}: the pattern ran away, it {error}: {seen.cut(call.value)}"
            raise CannotJudge(words, "pattern-time-limit", said=seen.cut(call.value)) from error
        raise CannotJudge(f"{call.assertion.type}: {error}", "bad-assertion") from error
    invalid = answer.get("invalid")
    if invalid is not None:
        if not invalid.startswith("Invalid regular expression"):
            invalid = f"Invalid regular expression: /{call.value}/: {invalid}"
        return Result(
            False,
            0.0,
            f"Invalid regex pattern: {invalid}",
            actual=call.text,
            evidence=[seen.rule("bad-pattern", invalid)],
        )
    if "start" not in answer:
        return _result(call, False, [])
    found = [(answer["start"], answer["end"])]
    if len(call.text) <= patterns.LONGEST:
        with contextlib.suppress(
            ScriptFailed, CannotJudge
        ):  # the verdict stands; the rest may take too long to tell
            found = await code.run_javascript(patterns.ALL, variables, call.evidence, seconds=_MARKING)
    return _result(call, True, patterns.from_units(call.text, found))


_MARKING = 1.0
"""Seconds in which all matches of a pattern are looked for after the first one decided."""


def _result(call: AssertionCall, matches: bool, places: Sequence[patterns.Place]) -> Result:
    result = call.result(
        matches,
        f'Expected output to match regex "{call.value}"',
        f'Expected output to not match regex "{call.value}"',
    )
    there = "forbidden" if call.inverse else "contained"
    pattern = seen.cut(call.value)
    found = [
        Evidence("match", there, text=seen.cut(call.text[start:end]), start=start, end=end, rule=pattern)
        for start, end in places
        if end > start
    ]
    if matches and not found:  # one of nothing: an empty text
        found = [Evidence("match", there, rule=pattern)]
    elif not matches:
        text = "" if call.inverse else _plain_text(call.value)
        code = "unmatched" if call.inverse else "not-matched"
        found = [Evidence("missing", code, text=seen.cut(text), rule=pattern)]
    result.evidence = found
    return result


def _plain_text(pattern: str) -> str:
    """The longest text that stands in a pattern as it reads, by which the nearest place can be looked for."""
    parts = re.sub(r"\[[^\]]*\]|\{[^}]*\}|\(\?[^:)]*[:)]|\\[A-Za-z]", "\n", pattern[:2_000])
    parts = re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)[.^$*+?()|]", "\n", parts))
    return max((part.strip() for part in parts.split("\n")), key=len, default="")
