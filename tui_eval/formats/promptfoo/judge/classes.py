"""classifier, moderation: what a model that gives scores instead of answers finds in the output."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge import graded, judges
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, invariant
from tui_eval.javascript import values as js
from tui_eval.model_ids import provider_name


async def classifier(call: AssertionCall) -> Result:
    """Whether the class of `value` (without one: any class) has a score of at least `threshold` (default 1).

    Raises:
        CannotJudge: the suite names no classifier, or it does not answer.
    """
    value = call.value
    invariant(
        value is UNSET or isinstance(value, str),
        '"classifier" assertion type must have a string value or be undefined',
    )
    provider = judges.scoring_provider(call, "classification")
    if provider is None or call.services.scores is None:
        raise CannotJudge(
            f"{call.assertion.type}: no classifier is named; write provider: huggingface:text-classification:MODEL "
            "(with config.apiEndpoint for a server of your own)",
            "no-classifier",
        )
    found = await call.services.scores(provider, call.text)
    if value is not UNSET:
        _named_as_there(call, [value], found)
    score = max(found.values()) if value is UNSET else found.get(str(value), 0.0)
    threshold = 1 if call.threshold is None else call.threshold
    held = score >= threshold - 2.220446049250313e-16  # Number.EPSILON
    what = "Maximum classification score" if value is UNSET else f"Classification {value} has score"
    reason = f"{what} {js.fixed(score, 2)} {'>=' if held else '<'} {js.number_text(threshold)}"
    code = "within" if held != call.inverse else "over" if call.inverse else "under"
    told = [
        seen.budget_of(
            "score" if value is UNSET else f"score of {value}",
            score,
            "<" if call.inverse else ">=",
            threshold,
            code,
        )
    ]
    shown = 1 - score if call.inverse else score
    return Result(held != call.inverse, shown, reason, actual=call.text, evidence=told)


def _named_as_there(call: AssertionCall, wanted: Iterable[Any], found: Iterable[str]) -> None:
    """What is asked about is no other spelling of a class that the model has: `toxic` would be missed where
    it says `TOXIC`.

    Raises:
        CannotJudge: it is.
    """
    known = set(found)
    there = {_bare(name): name for name in known}
    for name in map(str, wanted):
        if not call.evidence.reference and name not in known and (meant := there.get(_bare(name))):
            raise CannotJudge(
                f"{call.assertion.type}: the model has no class {name!r}; did you mean {meant!r}?",
                "bad-assertion",
            )


_BETWEEN = re.compile(r"(?<=[^\W\d_])[\s_./-]+(?=[^\W_])|(?<=\d)[\s_./-]+(?=[^\W\d_])")
"""What stands between words; signs elsewhere are the name's own: `-1`, `C++`."""


def _bare(name: str) -> str:
    return _BETWEEN.sub("", name.strip().casefold())


async def moderation(call: AssertionCall) -> Result:
    """Whether the output is flagged, in the categories of `value` where it lists some: by the moderation model that the
    suite names, else by the judge.

    Raises:
        CannotJudge: there is neither, or it does not answer.
    """
    categories = call.value if isinstance(call.value, list) else []
    invariant(
        call.value is UNSET or (categories and isinstance(categories[0], str)),
        "moderation assertion value must be a string array if set",
    )
    provider = judges.scoring_provider(call, "moderation")
    named = provider_name(provider) if provider is not None else ""
    if not named.startswith("openai:moderation") or call.services.scores is None:
        return await graded.moderation(call)
    flags: list[str] = []
    reason = "No output to moderate"
    if call.text:
        found = await call.services.scores(provider, call.text)
        _named_as_there(call, categories, found)
        flags = [flag for flag in found if not categories or flag in categories]
        reason = f"No {'relevant ' if found else ''}moderation flags detected"
        if flags:
            reason = f"Moderation flags detected: {', '.join(flags)}"
    passed = bool(flags) == call.inverse
    told = [seen.rule("holds" if passed else "flagged", flag) for flag in flags[: seen.MOST]]
    told = told or [seen.rule("holds" if passed else "not-flagged")]
    return Result(passed, float(passed), reason, actual=call.text, evidence=told)
