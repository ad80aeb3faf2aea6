"""What is kept of an attempt once it has ended, secrets taken out, and why one could not go on."""

from __future__ import annotations

from typing import Any

import msgspec

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import Judgement
from tui_eval.config.project import ConfigError
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.turn_requests import Conversation
from tui_eval.engine.plan import Job
from tui_eval.engine.run_context import RunContext
from tui_eval.guard import figures
from tui_eval.guard.masker import Masker
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Attempt, Evidence, Outcome, Reply
from tui_eval.store.encoding import LONG, encode_json, has_long, replaced


class AttemptFailed(Exception):
    """The attempt cannot go on; the text is its error, and its transcript says so already. `evidence` says it in
    a code (`tui_eval.causes`), with `place` and `limit` as in `AgentError`."""

    def __init__(self, message: str, code: str, *, place: str = "", limit: Any = None) -> None:
        super().__init__(message)
        self.evidence = Evidence("agent", code, text=seen.cut(message), path=place, expected=limit)


def reason_of(failure: BaseException) -> str:
    """One line. Our own exceptions are one; those of templates and of promptfoo's suites are known by where
    they come from, since importing them costs each run 20 ms."""
    ours = type(failure).__module__.startswith("tui_eval.")
    return str(failure) if ours else f"{type(failure).__name__}: {failure}"


def evidence_of(failure: BaseException) -> list[Evidence]:
    """What an attempt that ended with this exception rests on."""
    known = getattr(failure, "evidence", None)
    if isinstance(known, Evidence):
        return [known]
    if isinstance(failure, NeedsTrust):
        return [seen.error(failure)]
    code = "bad-setting" if isinstance(failure, ConfigError) else getattr(failure, "code", None)
    if not isinstance(code, str) or isinstance(failure, SystemExit):
        code = "agent-crashed"
    return [Evidence("agent", code, text=seen.cut(" ".join(reason_of(failure).split())))]


def finished(
    job: Job,
    number: int,
    conversation: Conversation | None,
    collector: Collector,
    judgement: Judgement | None,
    error: str | None,
    why: list[Evidence] | None = None,
) -> Attempt:
    """The attempt as it is kept; its times are the caller's to set. `conversation` is None where it never
    began, `judgement` where it could not be judged; `why` says that in codes."""
    usage, cost = collector.spent()
    outcome: Outcome = "error" if judgement is None else judgement.outcome
    last = collector.replies[-1] if collector.replies else None
    judged = judgement or Judgement(outcome="error", score=0.0, message=error or "")
    asked = conversation.last_turn if conversation else len(job.case.turns or [None])
    answered = [reply for reply in collector.replies if reply.turn <= asked]
    response = answered[-1] if answered else last
    left_off = collector.left_off() if judgement is None and collector.turn <= asked else ""
    if left_off:
        response = Reply(turn=collector.turn, text=left_off)  # cut short, and yet the last that was said
    return Attempt(
        case_id=job.case.case_id,
        attempt=number,
        outcome=outcome,
        agent=job.agent,
        model=job.model or (last.model if last else None),
        message=judged.message or (error or ""),
        score=judged.score,
        named_scores=judged.named_scores,
        named_weights=judged.named_weights,
        verdicts=collector.verdicts if judgement is None else judgement.verdicts,
        transcript=collector.entries,
        replies=collector.replies,
        exchanges=collector.exchanges,
        usage=usage,
        cost=cost,
        tool_call_count=_tool_calls(collector),
        error=error,
        evidence=seen.bounded(why if judgement is None else judgement.evidence),
        data=judged.data,
        response_text=judged.response_text
        if judged.response_text is not None
        else (response.text if response else ""),
        output=judged.output
        if judged.output is not None or judged.response_text is not None
        else (response.output if response else None),
        vars=conversation.own_vars if conversation else job.case.vars,
        prompt_sent=conversation.prompt if conversation else None,
        stdout=collector.stdout,
        retries=collector.retries,
        cached=len(collector.cached),
        saved=None if job.judges_only else collector.saved(),
        judging=collector.judging,
    )


def _tool_calls(collector: Collector) -> int:
    """Calls seen in the transcript, and where a reply's metadata has more (the guide's contract) those of it."""
    if not any([reply.metadata for reply in collector.replies]):
        return collector.tool_calls
    return figures.tool_calls(collector.replies, collector.entries) or 0


def mask(attempt: Attempt, environment: RunContext) -> Attempt:
    """Take secrets out of everything that is kept. Cheap where there are none in it."""
    return masked(attempt, environment.masker)


def masked(attempt: Attempt, masker: Masker) -> Attempt:
    """The attempt without the secrets of one masker, its figures checked."""
    figures.attempt(attempt)
    if not masker:
        return attempt
    if has_long(attempt):
        # Text by text: as JSON it would be held several times over.
        known: dict[int, tuple[str, str]] = {}

        def once(text: str) -> str:
            if len(text) <= LONG:
                return masker.text(text)
            if id(text) not in known:
                known[id(text)] = text, masker.text(text)
            return known[id(text)][1]

        return masker.value(replaced(attempt, once))
    body = encode_json(attempt).decode()
    text = masker.text(body)
    if text == body:
        return attempt
    try:
        return msgspec.json.decode(text, type=Attempt)
    except msgspec.MsgspecError:
        # A secret that was a bare number leaves no JSON behind: mask value by value.
        values: Any = masker.value(msgspec.json.decode(body))
        return msgspec.convert(values, Attempt)
