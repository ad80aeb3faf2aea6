"""classifier and moderation by models that give scores; figures and reasons as promptfoo 0.121.20 gave them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.promptfoo_cases import evidence_for
from tui_eval.assertions import JudgeServices
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats import judge
from tui_eval.model import Verdict

CLASSIFIER = {"id": "huggingface:text-classification:m"}
MODERATION = {"id": "openai:moderation"}


async def verdict(assertion: dict[str, Any], scores: dict[str, float], output: str = "text") -> Verdict:
    asked: list[Any] = []

    async def given(provider: Any, text: str) -> dict[str, float]:
        asked.append(provider)
        assert text == output
        return scores

    row = {"assertion": assertion, "output": output, "vars": {"v": "pos"}}
    found = (await judge(evidence_for(row, JudgeServices(scores=given)))).verdicts[0]
    assert asked in ([], [CLASSIFIER], [MODERATION])
    return found


@pytest.mark.parametrize(
    ("given", "passed", "score", "reason"),
    [
        ({"value": "pos", "threshold": 0.8}, True, 0.8, "Classification pos has score 0.80 >= 0.8"),
        ({"value": "pos", "threshold": 0.81}, False, 0.8, "Classification pos has score 0.80 < 0.81"),
        ({"value": "{{v}}", "threshold": 0.5}, True, 0.8, "Classification pos has score 0.80 >= 0.5"),
        ({"value": "pos"}, False, 0.8, "Classification pos has score 0.80 < 1"),
        ({"value": "other", "threshold": 0.1}, False, 0.0, "Classification other has score 0.00 < 0.1"),
        ({"threshold": 0.5}, True, 0.8, "Maximum classification score 0.80 >= 0.5"),
        ({}, False, 0.8, "Maximum classification score 0.80 < 1"),
    ],
)
@pytest.mark.parametrize("inverse", [False, True])
async def test_classifier(
    given: dict[str, Any], passed: bool, score: float, reason: str, inverse: bool
) -> None:
    kind = "not-classifier" if inverse else "classifier"
    found = await verdict({"type": kind, "provider": CLASSIFIER, **given}, {"pos": 0.8, "neg": 0.2})
    assert (found.passed, found.reason) == (passed != inverse, reason)
    assert found.score == pytest.approx(1 - score if inverse else score)


@pytest.mark.parametrize(
    ("value", "scores", "passed", "reason"),
    [
        (None, {}, True, "No moderation flags detected"),
        (None, {"hate": 0.9, "self-harm": 0.1}, False, "Moderation flags detected: hate, self-harm"),
        (["hate"], {"hate": 0.9, "self-harm": 0.1}, False, "Moderation flags detected: hate"),
        (["violence"], {"hate": 0.9}, True, "No relevant moderation flags detected"),
    ],
)
@pytest.mark.parametrize("inverse", [False, True])
async def test_moderation(
    value: Any, scores: dict[str, float], passed: bool, reason: str, inverse: bool
) -> None:
    given = {"type": "not-moderation" if inverse else "moderation", "provider": {"moderation": MODERATION}}
    found = await verdict({**given, **({"value": value} if value else {})}, scores)
    assert (found.passed, found.score, found.reason) == (passed != inverse, float(passed != inverse), reason)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "not-classifier", "value": "self harm", "provider": CLASSIFIER, "threshold": 0.5},
        {"type": "moderation", "value": ["Self_Harm", "hate"], "provider": {"moderation": MODERATION}},
    ],
)
async def test_another_spelling_of_a_class_is_an_error(given: dict[str, Any]) -> None:
    """It is not found, and its score 0 is nothing that anybody measured."""
    found = await verdict(given, {"self-harm": 0.9})
    assert found.passed is None and "did you mean 'self-harm'?" in found.reason


@pytest.mark.parametrize(("value", "there"), [("-1", {"1": 0.1}), ("C#", {"C++": 0.1}), ("👍", {"👎": 0.1})])
async def test_signs_of_a_class_are_its_own(value: str, there: dict[str, float]) -> None:
    """`-1` is no other spelling of `1`, and is found where both are."""
    given = {"type": "classifier", "value": value, "provider": CLASSIFIER, "threshold": 0.5}
    assert (await verdict(given, {value: 0.9} | there)).passed is True
    assert (await verdict(given, there)).passed is False


async def test_nothing_is_asked_about_nothing() -> None:
    found = await verdict({"type": "moderation", "provider": MODERATION}, {"hate": 1.0}, output="")
    assert (found.passed, found.reason) == (True, "No output to moderate")


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        ({"type": "classifier", "value": "pos"}, "no classifier is named; write provider: huggingface"),
        (
            {"type": "classifier", "value": ["pos"], "provider": CLASSIFIER},
            "must have a string value or be undefined",
        ),
        ({"type": "moderation", "value": [], "provider": MODERATION}, "must be a string array if set"),
        ({"type": "moderation", "value": [1], "provider": MODERATION}, "must be a string array if set"),
    ],
)
async def test_what_cannot_be_judged_is_an_error(assertion: dict[str, Any], said: str) -> None:
    found = await verdict(assertion, {})
    assert found.passed is None and said in found.reason


async def test_a_classifier_that_does_not_answer_is_an_error() -> None:
    async def fails(provider: Any, text: str) -> dict[str, float]:
        raise CannotJudge("the scores could not be had: it is loading")

    row = {"assertion": {"type": "classifier", "provider": CLASSIFIER}, "output": "x", "vars": {}}
    found = (await judge(evidence_for(row, JudgeServices(scores=fails)))).verdicts[0]
    assert found.passed is None and "it is loading" in found.reason
