"""The registry of handlers and the loop that judges a case."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import Any, cast

from msgspec import UNSET

from tui_eval import extensions
from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement
from tui_eval.assertions.outcome import in_the_guides_order, message_of, outcome_of, share_passed
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Assertion, Case, Evidence, Verdict

Handler = Callable[[Assertion, JudgeInput, Judgement], "Verdict | Awaitable[Verdict | None] | None"]
ACTUAL_LIMIT = 2000

_START_TO_AGENT = "tui_eval.formats.start_to_agent.judge_start_to_agent"
_NEURO_SAN = "tui_eval.formats.neuro_san.judge_neuro_san"
_NAO = "tui_eval.formats.nao.judge_nao"

# Values are callables or `module:name`, imported when first needed. `*` takes a format's other types.
REGISTRY: dict[tuple[str, str], Handler | str] = {
    ("start_to_agent", "*"): f"{_START_TO_AGENT}:judge",
    ("neuro_san", "*"): f"{_NEURO_SAN}:judge",
    ("nao", "*"): f"{_NAO}:judge",
    ("promptfoo", "*"): "tui_eval.formats.promptfoo.judge.judge_assertion:judge",
}

# Formats whose verdicts add up by rules of their own: `judge_case(evidence) -> Judgement`.
_WHOLE_CASE = {"promptfoo": "tui_eval.formats.promptfoo.judge.aggregate:judge_case"}
_whole_case: dict[str, Callable[[JudgeInput], Awaitable[Judgement]]] = {}


def asks_a_judge(family: str, kind: str) -> bool:
    """Whether an assertion type of a format is graded by a model."""
    if family == "promptfoo":
        from tui_eval.formats.promptfoo.judge import registry

        return registry.split(kind)[0] in registry.GRADED
    return family == "neuro_san" and kind.removeprefix("not_") == "gist"


def register(family: str, kind: str, handler: Handler | str) -> None:
    """Add a handler (or its `module:name`) for one assertion type of a format (`*`: all others)."""
    REGISTRY[(family, kind)] = handler


def handler_for(family: str, kind: str) -> Handler | None:
    """The handler of a format's assertion type, importing its module when first needed."""
    try:
        added = added_handler(family, kind)
    except CannotJudge as error:
        return _refusing(str(error))
    if added is not None:
        return added
    for key in ((family, kind), (family, "*")):
        found = REGISTRY.get(key)
        if isinstance(found, str):
            found = REGISTRY[key] = cast(Handler, _resolve(found))
        if found is not None:
            return found
    return None


def _refusing(reason: str) -> Handler:
    def refuse(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> Verdict:
        raise CannotJudge(reason)

    return refuse


def added_handler(family: str, kind: str) -> Any:
    """What another package judges a format's assertion type with (entry points `tui_eval.assertions`);
    None where none does. For promptfoo it is a `promptfoo.call.Check`, else a `Handler`.

    Raises:
        CannotJudge: the package cannot be loaded.
    """
    try:
        return extensions.load("assertions", f"{family}.{kind}")
    except extensions.ExtensionError as error:
        raise CannotJudge(str(error)) from error


async def judge(evidence: JudgeInput) -> Judgement:
    """Judge every assertion of every turn and of the case; nothing raises but cancellation.

    An assertion that raises is an error verdict beside the others. A case without assertions is
    passed and says `nothing asserted`.
    """
    family = evidence.case.format
    if family in _WHOLE_CASE:
        whole = _whole_case.get(family)
        if whole is None:
            whole = _whole_case[family] = _resolve(_WHOLE_CASE[family])
        return await whole(evidence)
    judgement = Judgement()
    for assertion in assertions_of(evidence.case):
        handler = handler_for(family, assertion.type)
        verdict = await judge_one(handler, assertion, evidence, judgement)
        if verdict is not None:
            judgement.verdicts.append(verdict)
    if family == "start_to_agent":
        in_the_guides_order(judgement.verdicts)
    judgement.outcome = outcome_of(judgement.verdicts)
    judgement.score = share_passed(judgement.verdicts)
    if family == "nao" and evidence.reference and not judgement.verdicts:
        judgement.message = "no verification"  # nao's word for a test with only a prompt
    judgement.message = judgement.message or message_of(judgement.verdicts)
    return judgement


async def judge_one(
    handler: Handler | None, assertion: Assertion, evidence: JudgeInput, judgement: Judgement
) -> Verdict | None:
    """One assertion's verdict; whatever the handler raises becomes an error verdict.

    None: the original tool makes nothing of the assertion (`compat: reference` only).
    """
    try:
        if handler is None:
            raise CannotJudge(f"{assertion.type}: unknown assertion", "unknown-type")
        verdict = handler(assertion, evidence, judgement)
        return await verdict if isawaitable(verdict) else verdict
    except (CannotJudge, NeedsTrust) as error:
        return error_verdict(assertion, str(error), [seen.error(error)])
    except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # Polars panics with one that is no Exception
        text = " ".join(str(error).split())
        return error_verdict(
            assertion, f"{assertion.type}: {type(error).__name__}: {text}", [seen.error(error)]
        )


def error_verdict(
    assertion: Assertion, reason: str, evidence: list[Evidence] | None = None, *, actual: Any = None
) -> Verdict:
    """The verdict of an assertion that could not be judged; `evidence` says why in a code."""
    return Verdict(
        type=assertion.type,
        passed=None,
        target=assertion.target,
        expected=expected_of(assertion),
        actual=clip_actual(actual),
        score=0.0,
        reason=reason,
        weight=1.0 if assertion.weight is None else assertion.weight,
        metric=assertion.metric,
        turn=assertion.turn,
        set=assertion.set,
        line=assertion.line,
        evidence=seen.bounded(evidence or [seen.rule("cannot-judge", reason)]),
    )


def verdict_of(
    assertion: Assertion,
    passed: bool,
    reason: str,
    evidence: list[Evidence] | None = None,
    *,
    actual: Any = None,
    expected: Any = UNSET,
) -> Verdict:
    """A verdict of 1 or 0 with what was expected and what was there."""
    return Verdict(
        type=assertion.type,
        passed=passed,
        target=assertion.target,
        expected=expected_of(assertion) if expected is UNSET else expected,
        actual=clip_actual(actual),
        score=1.0 if passed else 0.0,
        reason=reason,
        weight=1.0 if assertion.weight is None else assertion.weight,
        metric=assertion.metric,
        turn=assertion.turn,
        set=assertion.set,
        line=assertion.line,
        evidence=seen.bounded(evidence),
    )


def assertions_of(case: Case) -> Iterator[Assertion]:
    """Those of the turns in order, then those about the whole conversation."""
    for number, turn in enumerate(case.turns, 1):
        for assertion in turn.assertions:
            if assertion.turn is None:
                # A turn's own assertion looks at that turn's reply.
                assertion.turn = number
            yield assertion
    yield from case.assertions


def expected_of(assertion: Assertion) -> Any:
    """What the file expects; None where it gives no value."""
    return None if assertion.value is UNSET else assertion.value


def clip_actual(value: Any) -> Any:
    """Text longer than 2,000 characters cut for the verdict, saying how much is left out."""
    if isinstance(value, str) and len(value) > ACTUAL_LIMIT:
        return f"{value[:ACTUAL_LIMIT]}… ({len(value) - ACTUAL_LIMIT:,} more characters)"
    return value


def _resolve(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)
