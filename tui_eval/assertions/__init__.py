"""Judging: what was expected against what the agent did.

`judge` judges every assertion of a case on a `JudgeInput` and says what came of the attempt. One
handler per format and assertion type stands in `REGISTRY`; another package adds its own through
the entry point group `tui_eval.assertions` (a callable that gets the registry and adds to it).

A handler is `handler(assertion, judge_input, judgement)` returning a `Verdict`, or an awaitable of
one. It may set `judgement.data` and `judgement.message`. What it raises becomes an error verdict
beside the others: `CannotJudge` and `NeedsTrust` with their own text, anything else with its type.

May not: know suites, agents, the store, or how a screen shows a verdict.
"""

from __future__ import annotations

from tui_eval.assertions.judge_input import (
    CannotJudge,
    JudgeAnswer,
    JudgeInput,
    Judgement,
    JudgeServices,
    Reports,
    RowsAnswer,
)
from tui_eval.assertions.judging import REGISTRY, Handler, asks_a_judge, handler_for, judge, register

__all__ = [
    "REGISTRY",
    "CannotJudge",
    "Handler",
    "JudgeAnswer",
    "JudgeInput",
    "JudgeServices",
    "Judgement",
    "Reports",
    "RowsAnswer",
    "asks_a_judge",
    "handler_for",
    "judge",
    "register",
]
