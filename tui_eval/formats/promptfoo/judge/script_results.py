"""What the value that a script returns means, and how it may fail: JavaScript's, Python's and Ruby's."""

from __future__ import annotations

import math
import re
from typing import Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.assertions.judging import clip_actual
from tui_eval.formats.promptfoo.judge.assertion_call import PASSED, AssertionCall, Result
from tui_eval.guard import figures
from tui_eval.javascript import values as js

_SHAPE = "assertion must return a boolean, number, or {pass, score, reason} object."
_KEYS = {
    "pass_": "pass",
    "named_scores": "namedScores",
    "component_results": "componentResults",
    "tokens_used": "tokensUsed",
}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|Infinity))", re.ASCII)


class ScriptFailed(Exception):
    """A script threw; the text is one line."""


class ScriptLost(CannotJudge):
    """A script came to no end of its own: no memory was left, or its process ended. It has judged nothing."""


def simple(call: AssertionCall, value: bool | int | float, name: str, shown: Any) -> Result:
    """The result of true or false, or of a number: above 0, or at least `threshold`."""
    if isinstance(value, bool):
        holds = value
    else:
        holds = value > 0 if call.threshold is None else value >= call.threshold
    passed = holds != call.inverse
    score = float(passed) if isinstance(value, bool) else value
    reason = PASSED
    if not passed:
        reason = f"{name} returned {'true' if holds else 'false'}"
        reason = f"{reason}\n{shown}" if isinstance(shown, str) and shown else reason
    if isinstance(value, bool):
        told = [seen.rule("holds" if passed else "script", f"returned {'true' if holds else 'false'}")]
    elif call.threshold is None:
        told = seen.budget("score", value, ">", 0, negated=call.inverse)
    else:
        told = seen.budget("score", value, ">=", call.threshold, negated=call.inverse)
    return Result(passed, score, reason, actual=call.text, evidence=told)


def grading(call: AssertionCall, value: dict[str, Any], name: str) -> Result:
    """The result of `{pass, score, reason}`; `not-` turns `pass` around and keeps the score."""
    passed = value["pass"] != call.inverse
    reason = value["reason"]
    if call.inverse:
        reason = PASSED if passed else f"{name} returned true"
    scores = numbers(value.get("namedScores"))
    weights = numbers(_without_null(value.get("namedScoreWeights")))
    told = [seen.rule("holds" if passed else "script", reason, actual=value["score"])]
    return Result(
        passed,
        value["score"],
        reason,
        actual=call.text,
        named_scores=scores,
        named_weights=weights,
        evidence=told,
        parts=_parts(value) or None,
    )


_MOST_PARTS = 200
_DEEPEST = 5


def _parts(value: dict[str, Any], depth: int = 0) -> list[dict[str, Any]]:
    """What a result consists of, its texts cut for the verdict; in promptfoo's names, as Python and Ruby may not give
    them."""
    given = value.get("componentResults")
    found: list[dict[str, Any]] = []
    for one in given[:_MOST_PARTS] if isinstance(given, list) and depth < _DEEPEST else ():
        if isinstance(one, dict):
            part = {name: clip_actual(item) for name, item in named(one).items()}
            if inner := _parts(part, depth + 1):
                part["componentResults"] = inner
            found.append(part)
    return found


def named(value: dict[str, Any]) -> dict[str, Any]:
    """A result with promptfoo's names for what has Python's."""
    renamed = {new: value[old] for old, new in _KEYS.items() if old in value and new not in value}
    return {**value, **renamed}


def numbers(given: Any) -> dict[str, float]:
    """The finite numbers of an object by name, as JavaScript reckons with its values: null (Python's None) is 0, a
    text the number that it holds; nothing where it is no object."""
    found = given.items() if isinstance(given, dict) else ()
    known = ((str(key), figures.as_float(js.number(value))) for key, value in found)
    return {key: value for key, value in known if math.isfinite(value)}


def _without_null(given: Any) -> Any:
    return {key: one for key, one in given.items() if one is not None} if isinstance(given, dict) else given


def is_grading(value: Any) -> bool:
    """Whether a value is `{pass, score, reason}` with what else promptfoo lets stand beside them."""
    if not isinstance(value, dict) or not isinstance(value.get("pass"), bool):
        return False
    score = value.get("score")
    return (
        isinstance(score, int | float)
        and not isinstance(score, bool)
        and isinstance(value.get("reason"), str)
        and isinstance(value.get("namedScores", {}), dict | list | type(None))
        and isinstance(value.get("namedScoreWeights", {}), dict | list | type(None))
        and isinstance(value.get("tokensUsed", {}), dict | list | type(None))
        and isinstance(value.get("componentResults", []), list)
        and isinstance(value.get("assertion", {}), dict | list | type(None))
        and isinstance(value.get("comment", ""), str)
    )


def verdict_of_value(call: AssertionCall, value: Any, language: str, shown: Any) -> Result:
    """What Python or Ruby returns: true or false, a number, `{pass, score, reason}`, or text of these.

    An object whose score is below `threshold` fails; text counts as the number it begins with.
    """
    if isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    elif isinstance(value, str) and not value.startswith("{"):
        found = _NUMBER.match(value)
        value = float(found[1].replace("Infinity", "inf")) if found else value
    elif isinstance(value, float | int) and not figures.is_finite(value):
        value = "a number that JSON cannot hold"
    if isinstance(value, bool | int | float):
        return simple(call, value, f"{language} code", shown)
    given = value
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = js.parse_json(value)
        except ValueError as error:
            return _failed(call, language, f"Invalid JSON: {error} when parsing result: {value}")
    if isinstance(value, dict):
        value = named(value)
        if is_grading(value) and not figures.is_finite(value["score"]):
            return _failed(call, language, "the score is a number that JSON cannot hold")
        if is_grading(value):
            return grading(call, _lowered(call, value, language), f"{language} code")
    if isinstance(value, dict | list):
        return _failed(call, language, f"{language} {_SHAPE} Got instead:\n{js.json_text(value)}")
    return _failed(call, language, f"{language} {_SHAPE} Instead got:\n{js.string(given)}")


def _failed(call: AssertionCall, language: str, why: str) -> Result:
    return script_failed(call, f"{language} code execution failed: {why}", why)


def script_failed(call: AssertionCall, reason: str, why: str) -> Result:
    """A script that raised, or returned what means nothing: a failure."""
    told = [seen.rule("script-failed", why)]
    return Result(False, 0.0, reason, actual=call.text, evidence=told)


def _lowered(call: AssertionCall, value: dict[str, Any], language: str) -> dict[str, Any]:
    if call.threshold is None or value["score"] >= call.threshold:
        return value
    why = f"{language} score {js.number_text(value['score'])} is less than threshold "
    why += js.number_text(call.threshold)
    return {**value, "pass": False, "reason": f"{why}: {value['reason']}" if value["reason"] else why}
