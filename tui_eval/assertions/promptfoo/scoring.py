"""assertScoringFunction: a suite's own function decides what the named scores of a test add up to."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge, Evidence
from tui_eval.assertions.promptfoo import code, js, values
from tui_eval.model import Verdict

_ERROR = "Scoring function error: "


async def own_score(
    evidence: Evidence, named: dict[str, float], verdicts: list[Verdict]
) -> tuple[bool, float, str] | None:
    """Pass, score and reason as `assertScoringFunction` gives them; None where the test has none.

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
    except (code.ScriptFailed, CannotJudge) as error:
        return False, 0.0, f"{_ERROR}{error}"
    if isinstance(value, dict):
        value = {("pass" if key == "pass_" else key): item for key, item in value.items()}
        score = value.get("score")
        if isinstance(value.get("pass"), bool) and isinstance(score, int | float):
            return value["pass"], float(score), js.string(value.get("reason") or "")
    return False, 0.0, f"{_ERROR}assertion scoring function must return a GradingResult"


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
