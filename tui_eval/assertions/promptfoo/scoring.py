"""assertScoringFunction: a suite's own function decides what the named scores of a test add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge, Evidence
from tui_eval.assertions.promptfoo import code, values
from tui_eval.assertions.promptfoo.script_context import ScriptFailed
from tui_eval.assertions.promptfoo.script_results import is_grading, numbers
from tui_eval.guard import figures
from tui_eval.model import Verdict

_ERROR = "Scoring function error: "


@dataclass(frozen=True, slots=True)
class OwnScore:
    """What an `assertScoringFunction` says; `named_scores` None leaves them as they are."""

    passed: bool
    score: float
    reason: str
    named_scores: dict[str, float] | None = None


async def own_score(evidence: Evidence, named: dict[str, float], verdicts: list[Verdict]) -> OwnScore | None:
    """What the test's `assertScoringFunction` gives; None where the test has none.

    It is called with the named scores and `{threshold, componentResults, tokensUsed}`. What is no
    grading result fails with score 0, as in promptfoo.

    Raises:
        NeedsTrust: it is code of a folder that is not trusted.
    """
    reference = evidence.case.options.get("assertScoringFunction")
    if not isinstance(reference, str) or not reference:
        return None
    usage = evidence.usage
    prompt, completion = (usage.input_tokens or 0, usage.output_tokens or 0) if usage else (0, 0)
    context: dict[str, Any] = {
        "componentResults": [
            {
                "pass": verdict.passed,
                "score": verdict.score,
                "reason": verdict.reason,
                "assertion": {"type": verdict.type, "value": verdict.expected, "metric": verdict.metric},
            }
            for verdict in verdicts
        ],
        "tokensUsed": {"total": prompt + completion, "prompt": prompt, "completion": completion},
    }
    if evidence.case.threshold is not None:
        context["threshold"] = evidence.case.threshold
    try:
        value = await _call(reference, [named, context], evidence)
    except (ScriptFailed, CannotJudge) as error:
        return OwnScore(False, 0.0, f"{_ERROR}{error}")
    if isinstance(value, dict) and is_grading(value) and figures.is_finite(score := value["score"]):
        own = numbers(value["namedScores"]) if isinstance(value.get("namedScores"), dict) else None
        return OwnScore(value["pass"], float(score), value["reason"], own)
    return OwnScore(False, 0.0, f"{_ERROR}assertion scoring function must return a GradingResult")


async def _call(reference: str, arguments: list[Any], evidence: Evidence) -> Any:
    if not values.is_file(reference):
        names: dict[str, Any] = {"namedScores": arguments[0], "context": arguments[1]}
        value = await code.run_javascript(reference, names, evidence)
        return None if value is UNSET else value
    path, function = values.split_reference(reference)
    target = values.place(path, evidence)
    default = "func" if target.suffix == ".py" else "default"
    return await code.call_file_with(
        target, function or default, evidence, arguments, module_default=function is None
    )
