"""What judging is in every format: the evidence, the loop over assertions, verdicts and what they come to.

A format gives `judge_each` a handler for each assertion type; another package adds one through an entry point
`tui_eval.assertions`. A handler is `handler(assertion, judge_input, judgement)` returning a `Verdict`, or an
awaitable of one. It may set `judgement.data` and `judgement.message`. What it raises becomes an error verdict
beside the others: `CannotJudge` and `NeedsTrust` with their own text, anything else with its type.

May not: know a format (`formats` judges a case), suites, agents, or the store.
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
from tui_eval.assertions.judging import Handler, judge_each

__all__ = [
    "CannotJudge",
    "Handler",
    "JudgeAnswer",
    "JudgeInput",
    "JudgeServices",
    "Judgement",
    "Reports",
    "RowsAnswer",
    "judge_each",
]
