"""What a person does to an attempt that runs one turn at a time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from tui_eval import formats
from tui_eval.agents.base import Request
from tui_eval.assertions.judge_input import CannotJudge, JudgeAnswer, JudgeInput, JudgeServices, Reports
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.finished import AttemptFailed
from tui_eval.engine.attempt.stepping import Stepper
from tui_eval.engine.attempt.turn_requests import Conversation
from tui_eval.engine.plan import Job
from tui_eval.engine.run_context import RunContext
from tui_eval.events import Note
from tui_eval.guard.text import clip, storable
from tui_eval.model import Verdict
from tui_eval.store.encoding import encode_json

InTime = Callable[..., AbstractAsyncContextManager[Any]]
"""`TimeLimits.judging`."""
_WORDS = {True: "passed", False: "failed", None: "later"}
_SO_FAR = {True: "so far yes", False: "not yet", None: "at the end"}
_LONGEST = 80
_JUDGED_LAST = "the judge is asked at the end"


class ByHand:
    """One attempt, as `stepper` (None: nobody steps) decides on its turns. `changes` are what was changed,
    in words: such an attempt is no result."""

    def __init__(self, attempt_ref: int, collector: Collector, stepper: Stepper | None) -> None:
        self.changes: list[str] = []
        self.stopped = False
        self.stepper = stepper
        self._ref = attempt_ref
        self._collector = collector

    async def sends(self, request: Request, conversation: Conversation) -> bool:
        """Ask what to do with a turn; whether it is to be sent, as it then is.

        Raises:
            AttemptFailed: nothing more is.
        """
        if self.stepper is None:
            return True
        shown = conversation.shown(request)
        decision = await self.stepper.before(self._ref, request.turn, shown)
        if decision.action == "stop":
            self.stopped = True
            raise AttemptFailed(f"stopped by hand before turn {request.turn}", "stopped")
        if decision.action == "skip":
            self.changes.append(f"turn {request.turn} was left out")
            self._collector.turn = request.turn
            self.mark(request.turn)
            return False
        if decision.text is not None and decision.text != shown:
            self.changes.append(f"turn {request.turn} was edited (it was: {shown})")
            request.text, request.messages = decision.text, None
            conversation.prompt = None
        return True

    def mark(self, turn: int) -> None:
        """Say in the transcript what was changed of a turn."""
        changed = self.changes[-1] if self.changes else ""
        if changed.startswith(f"turn {turn} "):
            self._collector.take(Note(f"by hand: {changed}"))

    async def told(self, turn: int, job: Job, environment: RunContext, in_time: InTime) -> None:
        """Show what the assertions say after a turn; `in_time` limits each of them."""
        if self.stepper is not None:
            self.stepper.told(self._ref, turn, await self._verdicts_so_far(turn, job, environment, in_time))

    async def _verdicts_so_far(
        self, turn: int, job: Job, environment: RunContext, in_time: InTime
    ) -> list[str]:
        """What the assertions say of the turns up to here, a line each; those that need the agent or a
        judge again are left for the end, where those on the whole conversation are decided."""
        last = turn >= len(job.case.turns)
        known = msgspec.structs.replace(
            job.case, turns=job.case.turns[:turn], assertions=[] if last else job.case.assertions
        )
        usage, cost = self._collector.usage()
        evidence = JudgeInput(
            case=known,
            replies=list(self._collector.replies),
            transcript=self._collector.entries,
            capabilities=Reports(True, True, True, True, True),
            usage=usage,
            tool_call_count=self._collector.tool_calls,
            cost=cost,
            compat=job.compat,
            unknown=self._collector.unknown_figures,
            services=JudgeServices(
                ask_judge=_at_the_end if environment.judge(job.judge, job)[0] is not None else None,
                trust=environment.trust,
                root=environment.config.root,
                base=job.base,
                in_time=in_time,
            ),
        )
        judgement = await formats.judge(evidence)
        return [_line(verdict) for verdict in judgement.verdicts]


async def _at_the_end(system: str | None, prompt: str, schema: dict[str, Any] | None) -> JudgeAnswer:
    raise CannotJudge(_JUDGED_LAST)


def _line(verdict: Verdict) -> str:
    """A verdict in words; one on the whole conversation may still change."""
    what = verdict.type
    if isinstance(verdict.expected, str):
        what = f'{what} "{clip(verdict.expected, _LONGEST)}"'
    elif verdict.expected is not None:
        what = f"{what} {clip(encode_json(storable(verdict.expected)).decode(), _LONGEST)}"
    if verdict.turn is None:
        return f"{_WORDS[None]}: {_SO_FAR[verdict.passed]}: {what}"
    if verdict.reason == _JUDGED_LAST:
        return f"{_WORDS[None]}: turn {verdict.turn}: {what}: {_JUDGED_LAST}"
    why = verdict.reason if not verdict.passed and verdict.reason else what
    return f"{_WORDS[verdict.passed]}: turn {verdict.turn}: {why}"
