"""Judging one promptfoo assertion: the output after the provider's transform and the test's, value, check, verdict; and
where in a script the value was returned that it came out by.

That script is read, not run: of all its `return`s those count that may give such a value, and only where one is left is
its line named. With several, a Python function is named by its first line and a JavaScript file by itself.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from functools import partial
from inspect import isawaitable
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement
from tui_eval.assertions.judging import added_handler, clip_actual, error_verdict
from tui_eval.formats.promptfoo.judge import expected_values, registry
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, turned_round
from tui_eval.formats.promptfoo.judge.code import add_raised, add_values_of_file
from tui_eval.formats.promptfoo.judge.judges import failed_there
from tui_eval.formats.promptfoo.promptfoo_words import beside
from tui_eval.guard import figures
from tui_eval.guard.fair_share import in_turn
from tui_eval.guard.once import parsed
from tui_eval.javascript import values as js
from tui_eval.model import CODE_TYPES, Assertion, Case, Evidence, Reply, Verdict

_LISTS = (".yaml", ".yml")
_LONG = 20_000
"""Characters of a text that heavy checks judge in a thread: in the loop other cases would wait for it."""


def _files_first(case: Case) -> bool:
    """Whether its test stands in a list of tests of a file of its own, whose files the tool puts in place first."""
    return (case.file or "").endswith(_LISTS) or beside(case, "filesFirst") is True


async def judge(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> Verdict:
    """A handler for the registry: one assertion on the reply as the case's transforms leave it."""
    verdict, _ = await judge_output(assertion, evidence, await expected_values.case_output(evidence))
    return verdict


async def judge_output(assertion: Assertion, evidence: JudgeInput, output: Any) -> tuple[Verdict, Result]:
    """One assertion on an output; a handler's error is raised.

    Raises:
        CannotJudge: an unknown type, one not judged here, one that is not written as it must be.
        NeedsTrust: it runs code or reads a file of a folder that is not trusted.
    """
    kind, inverse = registry.split(assertion.type)
    unread_there = inverse and kind in registry.NOT_UNREAD_THERE
    inverse = inverse and not (unread_there and evidence.reference)
    check = registry.check_for(kind)
    turns = check is None and inverse
    if check is None:
        check, inverse = added_handler("promptfoo", kind), False
    if check is None:
        if why := why_not_here(assertion.type, kind):
            raise CannotJudge(why, "not-supported")
        raise CannotJudge(f"Unknown assertion type: {assertion.type}", "unknown-type")
    reply = evidence.reply() or Reply(turn=1)
    evidence.output = output
    if assertion.transform:
        output = await expected_values.transformed(assertion.transform, output, evidence)
    value, from_script, file = assertion.value, False, ""
    if evidence.reference and _files_first(evidence.case):
        value = await expected_values.loaded_early(value, evidence)
    if value is not UNSET:
        if expected_values.is_file(value) and "{{" in value:
            value = expected_values.rendered(value, evidence)
        if expected_values.is_file(value):
            file = value
            try:
                value, from_script = await expected_values.from_file(
                    value, evidence, output, assertion.config
                )
            except expected_values.ScriptFault as fault:
                why = [seen.rule("script-failed", str(fault))]
                await asyncio.to_thread(add_raised, why, fault, evidence.services.root)
                failed = Result(False, 0.0, str(fault), evidence=why)
                call = AssertionCall(
                    assertion, evidence, kind, inverse, output, js.text_of(output), value, reply
                )
                verdict = verdict_from(call, failed)
                verdict.passed = False  # whatever it weighs, as there: what raised has measured nothing
                return verdict, failed
            if from_script and kind not in CODE_TYPES:
                _refuse_verdict(assertion.type, value)
        else:
            if isinstance(value, list) and any(map(expected_values.is_file, value)):
                value = await expected_values.with_files(value, evidence)
            value = expected_values.rendered(value, evidence)
    call = AssertionCall(
        assertion, evidence, kind, inverse, output, js.text_of(output), value, reply, from_script
    )
    try:
        answer = await in_turn(partial(check, call)) if _is_heavy(call) else check(call)
        result = await answer if isawaitable(answer) else answer
    except CannotJudge as error:
        if (failed := failed_there(call, error)) is None:
            raise
        result = failed
    result.score = figures.as_float(result.score)
    if turns:
        result = turned_round(result, kind)
    if unread_there and not evidence.reference:
        result.reason += " (turned round by `not-`; promptfoo ignores it here)"
    if from_script and result.passed is False and kind in CODE_TYPES and result.evidence:
        path, function = expected_values.split_reference(file)
        place, root = expected_values.place(path, evidence), evidence.services.root
        if value is False:
            await add_values_of_file(result, place, function, call)
        await asyncio.to_thread(add_place, result.evidence, place, root, function, value)
    return verdict_from(call, result), result


def _is_heavy(call: AssertionCall) -> bool:
    return len(call.text) > _LONG and registry.MODULES.get(call.kind) in registry.HEAVY


def _refuse_verdict(kind: str, value: Any) -> None:
    """A script beside a type that compares gives what is expected; what it decides is no text to look for (`not-equals`
    would pass whatever it says).

    Raises:
        CannotJudge: it gave a verdict.
    """
    what = "a boolean" if isinstance(value, bool) else "a GradingResult"
    if isinstance(value, bool) or (isinstance(value, dict) and "pass" in value):
        raise CannotJudge(
            f'Script for "{kind}" assertion returned {what}. Only javascript/python/ruby assertion types can return '
            f"{'boolean values' if isinstance(value, bool) else 'GradingResult objects'}. For other assertion types, "
            "return the expected value (string, number, array, or object).",
            "bad-assertion",
        )


def verdict_from(call: AssertionCall, result: Result) -> Verdict:
    """The verdict of a result. A weight of 0 always passes and keeps its score, as promptfoo's does."""
    assertion = call.assertion
    if result.passed is None:
        verdict = error_verdict(assertion, result.reason, result.evidence, actual=result.actual)
        verdict.expected, verdict.judge = clip_actual(call.value), result.judge
        return verdict
    weight = 1.0 if assertion.weight is None else assertion.weight
    expected = call.value
    if expected is UNSET:
        expected = assertion.threshold
    return Verdict(
        type=assertion.type,
        passed=True if weight == 0 else result.passed,
        target=assertion.target,
        expected=clip_actual(expected),
        actual=clip_actual(result.actual if result.actual is not None else call.text),
        score=float(result.score) if isfinite(result.score) else 0.0,
        reason=clip_actual(result.reason),
        weight=weight,
        metric=metric_of(assertion, call.evidence),
        turn=assertion.turn,
        set=assertion.set,
        judge=result.judge,
        line=assertion.line,
        evidence=seen.bounded(result.evidence),
        parts=result.parts,
    )


def metric_of(assertion: Assertion, evidence: JudgeInput) -> str | None:
    """The name under which an assertion's score is counted, its template filled in where it is one.

    Raises:
        NeedsTrust: it names a variable of the environment.
    """
    metric = assertion.metric
    if not metric or "{" not in metric:
        return metric
    try:
        return expected_values.rendered(metric, evidence)
    except CannotJudge:
        return metric  # as in promptfoo: a name proves nothing


def why_not_here(full: str, kind: str) -> str:
    """Why a known type is judged by nothing here; empty where it is, or nobody knows it."""
    if kind in registry.NOT_YET:
        return f"{full} is not judged by this version: it would need {registry.NOT_YET[kind]}"
    if kind == "human":
        return "human is a person's verdict, given in promptfoo's web page; it cannot be configured"
    if kind in registry.COLUMNS:
        return f"{full}: the columns of a test are compared when all of them have run"
    if kind.startswith("promptfoo:redteam:"):
        return f"{full} is promptfoo's red team, which is not judged here"
    return ""


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
        body = parsed(source).body
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
