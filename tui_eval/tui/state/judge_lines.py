"""What a judge was asked and what it answered, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tui_eval.model import Usage, Verdict
from tui_eval.tui.state.figures import tokens
from tui_eval.tui.state.json_lines import parsed, short, value_lines
from tui_eval.tui.state.lines import Line, Span, one_line

_GRADES = ("pass", "score", "category", "verdict", "flagged")


def judge_lines(verdict: Verdict, agreement: Mapping[str, tuple[int, int]]) -> Iterator[Line]:
    """The judge's words, what people think of it, and what it was asked."""
    judge = verdict.judge
    if not judge:
        return
    model = one_line(judge.get("model") or "the judge", 60)
    usage = judge.get("usage")
    used = ""
    if isinstance(usage, dict):
        used = tokens(Usage(usage.get("input_tokens"), usage.get("output_tokens")))
    agreed, count = agreement.get(str(judge.get("model") or "the judge"), (0, 0))
    people = (Span(f" · people agreed with it {agreed} of {count} times", "note"),) if count else ()
    grade, rest = _answer(parsed(judge.get("answer")), verdict.reason)
    yield (
        Span(f"{model} answered", "muted"),
        Span(f" {grade}" if grade else "", "strong"),
        Span(f" · {used}" if used else "", "muted"),
        *people,
    )
    for line in value_lines(rest):
        yield (Span("  "), *line)
    if judge.get("question"):
        yield (Span("it was asked", "muted"),)
        for line in value_lines(judge["question"]):
            yield (Span("  "), *line)


def _answer(answer: Any, reason: str) -> tuple[str, Any]:
    """A grade in a few words (`pass false · score 0.3`), and what else the answer says that the verdict's reason
    does not."""
    if not isinstance(answer, dict):
        return "", answer
    grade = " · ".join(f"{name} {short(answer[name], 20)}" for name in _GRADES if name in answer)
    rest = {name: value for name, value in answer.items() if name not in _GRADES}
    if isinstance(rest.get("reason"), str) and rest["reason"].strip() in reason:
        del rest["reason"]
    return (grade, rest or None) if grade else ("", answer)
