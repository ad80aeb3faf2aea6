"""Verdicts made by hand get the evidence that the real judges write for what they say."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tui_eval.assertions import JudgeInput, Reports
from tui_eval.assertions.judge_input import Judgement
from tui_eval.assertions.judging import judge_one
from tui_eval.formats import format_called
from tui_eval.formats.promptfoo.judge import registry
from tui_eval.model import UNSET, Assertion, Attempt, Case, Evidence, Reply, Verdict
from tui_eval.tui.state.case.expectation_marks import reply_text

_STOCK = ("value", "less", "greater", "keywords", "gist")


def format_of(kind: str) -> str:
    """The format whose assertion this is."""
    if kind in ("tool_call", "sql"):
        return "nao"
    if registry.split(kind)[0] in registry.CHECKS:
        return "promptfoo"
    return "neuro_san" if kind.removeprefix("not_") in _STOCK else "start_to_agent"


def evidence_of(verdict: Verdict, attempt: Attempt) -> list[Evidence] | None:
    """What the judge writes of this attempt for an assertion with the verdict's type and expectation."""
    value = UNSET if verdict.expected is None else verdict.expected
    threshold = verdict.expected if verdict.type in ("latency", "cost") else None
    assertion = Assertion(verdict.type, value, verdict.target, verdict.turn, threshold)
    family = format_of(verdict.type)
    replies = [one for one in attempt.replies if verdict.turn in (None, one.turn)] or attempt.replies
    said = reply_text(attempt, verdict)
    if not replies or not replies[-1].text.strip(" …"):
        last = replies[-1] if replies else Reply(verdict.turn or 1)
        replies = [*replies[:-1], msgspec.structs.replace(last, text=said)]
    given = JudgeInput(
        Case(attempt.case_id, "n", "s", family),
        replies,
        attempt.transcript,
        Reports(True, True, True, True, True),
        attempt.usage,
        attempt.tool_call_count,
        attempt.duration_ms,
        attempt.cost,
        trace=attempt.trace,
    )

    async def judged() -> Verdict | None:
        return await judge_one(format_called(family).handler_for(verdict.type), assertion, given, Judgement())

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(lambda: asyncio.run(judged())).result()
    return made.evidence if made is not None else None


def evidenced(attempt: Attempt) -> Attempt:
    """The attempt, its verdicts with evidence where their judges agree with them."""
    for verdict in attempt.verdicts:
        if verdict.evidence is None and verdict.type not in ("sql", "gist", "llm-rubric"):
            verdict.evidence = evidence_of(verdict, attempt)
    return attempt
