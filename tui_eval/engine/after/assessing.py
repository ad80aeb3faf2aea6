"""After a run: its failures grouped, and each group named by the judge in one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tui_eval.assertions.judge_input import without_thoughts
from tui_eval.engine.run_context import AskJudge, judges_take
from tui_eval.guard import figures
from tui_eval.guard.text import clip
from tui_eval.model import JudgeUse
from tui_eval.store.encoding import encode_json
from tui_eval.store.failure_modes import Assessment, FailureMode
from tui_eval.store.reader import RunReader

NAMED = 20  # groups that a judge is asked about
_AT_ONCE = 4
_EXAMPLE = 3000  # characters of a transcript that it is shown

SYSTEM = (
    "You look at evaluations of an AI agent that failed and say what went wrong. Answer with one sentence "
    "of at most twenty words that names the failure mode, without quotes and without advice."
)


async def assess_run(
    reader: RunReader, ask: AskJudge | None, on_answer: Callable[[], None] | None = None
) -> Assessment:
    """Group the failures of a run; where a judge can be asked, groups get names from it.

    A judge that fails leaves the plain groups, and a note says so. `on_answer` is called after each question.
    """
    assessment = reader.assessment()
    if ask is None:
        return assessment
    named = assessment.modes[:NAMED]
    assessment.note = ""
    at_once = asyncio.Semaphore(_AT_ONCE)

    def took(more: JudgeUse) -> None:
        assessment.judging = figures.judge_use(assessment.judging, more)

    counting = judges_take.set(took)
    answers = await asyncio.gather(
        *(_name(mode, reader, ask, at_once, on_answer) for mode in named), return_exceptions=True
    )
    judges_take.reset(counting)
    problems: list[BaseException] = []
    for mode, answer in zip(named, answers, strict=True):
        if isinstance(answer, BaseException):
            problems.append(answer)
        else:
            mode.name = answer or None
    if problems:
        assessment.note = f"the judge could not name {len(problems)} of the groups: {problems[0]}"
    return assessment


async def _name(
    mode: FailureMode,
    reader: RunReader,
    ask: AskJudge,
    at_once: asyncio.Semaphore,
    on_answer: Callable[[], None] | None,
) -> str:
    async with at_once:
        answer = await ask(SYSTEM, question(mode, reader), None)
    if on_answer is not None:
        on_answer()
    return clip(" ".join(without_thoughts(answer.text).split()), 300)


def question(mode: FailureMode, reader: RunReader) -> str:
    """What the judge is shown of a group: what failed, and its examples."""
    shown = [f"What failed: {mode.what}"]
    for example in mode.examples:
        attempt = reader.attempt(example.attempt_ref)
        if attempt is None:
            continue
        lines = [
            f"{entry.kind} {entry.name}: {entry.text or encode_json(entry.arguments or entry.result).decode()}"
            for entry in attempt.transcript
        ]
        shown.append(
            f"\nCase {example.case_id}\nVerdict: {example.message}\nTranscript:\n"
            + clip("\n".join(lines), _EXAMPLE)
        )
    return "\n".join(shown)
