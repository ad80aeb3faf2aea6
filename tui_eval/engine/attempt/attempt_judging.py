"""Judging an attempt: its evidence, what its judging may use of the run, and what of a record cannot be judged anew."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Any

import msgspec

from tui_eval import causes, formats
from tui_eval.agents import template_variables, with_env
from tui_eval.agents.base import AgentError, Capabilities
from tui_eval.assertions.judge_input import (
    CannotJudge,
    JudgeInput,
    Judgement,
    JudgeServices,
    Reports,
    RowsAnswer,
    untimed,
)
from tui_eval.assertions.judging import message_of, outcome_of, share_passed
from tui_eval.config.project import AgentSpec
from tui_eval.engine.attempt import continuing
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.extraction import Ask, extract, verified
from tui_eval.engine.attempt.turn_requests import Conversation
from tui_eval.engine.plan import Job
from tui_eval.engine.run_context import RunContext
from tui_eval.guard.masker import Masker
from tui_eval.guard.secrets import MASK
from tui_eval.guard.text import clip
from tui_eval.model import CODE_TYPES, Attempt, Case, Compat, Evidence, Reply, Trace, Verdict
from tui_eval.store.encoding import encode_json

_NEVER_VERIFY = frozenset(
    (
        "openai",
        "openai-responses",
        "anthropic",
        "ollama",
        "litellm",
        "http",
        "command",
        "python",
        "javascript",
        "ruby",
        "websocket",
        "webhook",
        "promptfoo-http",
        "silent",
        "neuro-san",
        "echo",
        "scripted",
    )
)
"""Types of agents that never bring the rows which are expected of them."""
EVERYTHING = Reports(True, True, True, True, True, calls_in_metadata=True)
"""What a recorded output reports: nobody says that it cannot, but text alone reports no tools."""


@lru_cache(64)
def reports_of(flags: Capabilities) -> Reports:
    """What an agent can report, as the assertions want to know it."""
    return Reports(**{name: getattr(flags, name) for name in Reports.__struct_fields__})


def seen_in(answer: Attempt) -> Reports:
    """What an agent that is no longer configured reported of an answer: what is not there it may never report."""
    replies = answer.replies
    return Reports(
        tokens=any(reply.usage is not None for reply in replies),
        tools=any(entry.kind == "tool_call" for entry in answer.transcript),
        metadata=any(reply.metadata is not None for reply in replies),
        sly_data=any(reply.sly_data is not None for reply in replies),
        structure=any(reply.structure is not None for reply in replies),
    )


async def judged(
    job: Job,
    collector: Collector,
    conversation: Conversation,
    reports: Reports,
    services: JudgeServices,
    *,
    spent_ms: float,
    trace: Trace | None,
    ask: Ask | None,
    in_time: Callable[..., AbstractAsyncContextManager[Any]] = untimed,
) -> Judgement:
    """What the assertions say of what was gathered. `ask` sends the agent one more turn, for its rows; None
    where it cannot be asked. `spent_ms` is what the conversation took, `in_time` limits each assertion."""
    case = job.case
    collector.close()
    usage, cost = collector.usage()
    rows = _Rows(job, list(collector.replies), ask)
    services.rows, services.in_time = rows.of, in_time
    evidence = JudgeInput(
        case=case,
        replies=rows.replies,
        transcript=collector.entries,
        capabilities=reports,
        usage=usage,
        tool_call_count=collector.tool_calls,
        duration_ms=spent_ms,
        cost=cost,
        vars=conversation.judged_vars,
        prompt_sent=conversation.prompt,
        test=formats.format_of(job.format).test_for_scripts(case),
        compat=job.compat,
        services=services,
        trace=trace,
        unknown=collector.unknown_figures,
    )
    try:
        judgement = await formats.judge(evidence)
    except asyncio.CancelledError:
        if evidence.begun is not None:
            collector.verdicts = _at_their_turn(evidence.begun.verdicts, conversation)
        raise
    finally:
        # Else the attempt would hold itself, until the collector comes by.
        services.rows, services.in_time = None, untimed
    _at_their_turn(judgement.verdicts, conversation)
    return _with_problems(judgement, case, job.compat)


def _at_their_turn(verdicts: list[Verdict], conversation: Conversation) -> list[Verdict]:
    """Verdicts on a conversation that others began are on its last turn."""
    if conversation.context:
        for verdict in verdicts:
            verdict.turn = conversation.last_turn
    return verdicts


async def known_before(job: Job, services: JudgeServices) -> Judgement | None:
    """The judgement of an attempt that is an error whatever its agent says: nothing could be judged, or a part of the
    case could not be read, so that it can pass no more; None: it is to be asked."""
    case = job.case
    if case.problems:
        broken = _with_problems(Judgement(score=0.0), case, job.compat)
        if broken.verdicts:
            return broken
    evidence = JudgeInput(case=case, compat=job.compat, services=services)
    known = await formats.format_of(job.format).before_asking(evidence)
    return None if known is None else _with_problems(known, case, job.compat)


class _Rows:
    """An attempt's answer as rows, asked for once for the same columns."""

    def __init__(self, job: Job, replies: list[Reply], ask: Ask | None) -> None:
        self.replies = replies
        self._job = job
        self._ask = ask
        self._known: dict[tuple[str, ...], RowsAnswer] = {}

    async def of(self, columns: list[str]) -> RowsAnswer:
        """The rows with these columns.

        Raises:
            CannotJudge: nothing says what they are.
        """
        key = tuple(columns)
        if key not in self._known:
            self._known[key] = await self._found(columns)
        return self._known[key]

    async def _found(self, columns: list[str]) -> RowsAnswer:
        job, ask = self._job, self._ask
        last = self.replies[-1] if self.replies else None
        has_rows = last is not None and (last.verified or last.rows is not None)
        if job.judges_only and job.recorded is not None:
            if last is not None and has_rows and not continuing.was_asked_for_rows(job.recorded):
                return verified(last)
            answer = continuing.recorded_rows(job.recorded, columns)
            if answer is None:
                raise CannotJudge("no rows were recorded with the answer: run the case", "no-rows")
            return answer
        guide = job.spec is not None and job.spec.extraction == "guide"
        if last is not None and has_rows and not guide:
            return verified(last)
        if ask is None:
            raise CannotJudge("a recorded output has no rows", "no-rows")
        try:
            return await extract(ask, (last.turn if last else 0) + 1, columns)
        except AgentError as error:
            short = causes.words_of_pieces([error.evidence])
            raise CannotJudge(f"asking for the rows failed: {error}", "no-rows", short) from None


def _with_problems(judgement: Judgement, case: Case, compat: Compat) -> Judgement:
    """What the reader could not make sense of in the case is an error verdict: never a pass, but under
    `compat: reference` where the format's own tool passes over it."""
    if not case.problems:
        return judgement
    told = {verdict.line for verdict in judgement.verdicts if verdict.passed is None and verdict.line}
    for problem in case.problems:
        if problem.level == "note" or problem.line in told:
            continue
        if compat == "reference" and problem.tool == "ignores":
            continue
        judgement.verdicts.append(
            Verdict(
                type="suite",
                passed=None,
                target=problem.key,
                reason=str(problem),
                line=problem.line,
                evidence=[Evidence("rule", "in-file", text=clip(problem.message, 500), row=problem.line)],
            )
        )
        if judgement.outcome == "passed":
            judgement.outcome, judgement.message = "error", ""
        judgement.message = "; ".join(part for part in (judgement.message, str(problem)) if part)
    return judgement


def _variables(job: Job, environment: RunContext) -> Mapping[str, str]:
    """What `{{ env.NAME }}` finds where an answer is judged: the person's variables, where trusted, and those of the
    suite's `.env`. What its own `env` says is filled in in its configuration alone, as in promptfoo."""
    if not formats.format_of(job.format).templates:
        return {}
    from tui_eval.nunjucks.suite_environment import SuiteEnvironment

    own, unread = job.settings.get("env_file") or {}, job.settings.get("env_unread") or ()
    return SuiteEnvironment(own, environment.trust, unread)


def require_variables(job: Job) -> None:
    """What the case would have from the environment, had its suite been allowed to read it.

    Raises:
        NeedsTrust: there is such a thing.
    """
    known = template_variables.get()
    for name in formats.format_of(job.format).left_out(job.case, job.settings):
        known.get(name)


def provider_variables(job: Job, environment: RunContext) -> Mapping[str, str]:
    """What `{{ env.NAME }}` finds in what providers are made of: the suite's own names, too."""
    if not formats.format_of(job.format).templates:
        return {}
    from tui_eval.nunjucks.suite_environment import SuiteEnvironment

    own, unread = job.settings.get("env") or {}, job.settings.get("env_unread") or ()
    return SuiteEnvironment(own, environment.trust, unread)


def _was_to_verify(spec: AgentSpec | None) -> bool:
    """Whether the agent is sent the expected SQL and says itself what its answer is as rows."""
    return spec is not None and spec.type == "nao" and not spec.live and spec.extraction != "guide"


def judge_services(job: Job, environment: RunContext) -> JudgeServices:
    """The services for judging a job's attempt, but for its rows."""
    ask_judge, judge_name = environment.judge(job.judge, job)
    env = job.settings.get("env")
    has_database = environment.has_database(job.database)
    if ask_judge is None:
        ask_judge, judge_name = environment.default_grader(job)
    return JudgeServices(
        ask_judge=ask_judge,
        judge_name=judge_name,
        judge_is_network=environment.judge_is_network(job.judge),
        judge_for=lambda provider: environment.judge_for(provider, job),
        embed=lambda provider, texts: environment.embed(with_env(provider, env), texts, job.judge, env),
        scores=lambda provider, text: environment.scores(with_env(provider, env), text, job.base),
        judge_fault=lambda: environment.judge_fault(job),
        backend_may_verify=job.spec is None or job.spec.type not in _NEVER_VERIFY,
        backend_was_to_verify=_was_to_verify(job.spec),
        try_sql=lambda name, sql: environment.try_sql(name or job.database, sql, job.timeout),
        run_sql=(lambda name, sql: environment.expected_sql(name or job.database, sql, job.timeout))
        if has_database
        else None,
        agent_sql=(lambda name, sql: environment.agent_sql(name or job.database, sql))
        if has_database
        else None,
        hosts=environment.hosts,
        trust=environment.trust,
        env=_variables(job, environment),
        root=environment.config.root,
        base=job.base,
        comparison=job.comparison,
        compares_columns=True,
        compare_seconds=job.timeout,
    )


# -- Judging a record again where a secret was masked in it, or a trace is not whole: the verdict of then stays.


_MASKED, _CUT = "the record is masked here", "the record has a part of the trace"
_UNDECIDED = {
    _MASKED: "cannot be judged again: the recorded answer is masked here; run the case",
    _CUT: "cannot be judged again: only a part of the trace was kept; run the case",
}
_NUMBERS = frozenset({"usage", "cost", "latency", "duration"})
_MASK = MASK.encode()
_OF_VALUES = r"(not-)?trajectory:(tool-args-match|goal-success)"
"""Types that may rest on an attribute of a span; those of `_OF_SPANS` on which spans there are."""
_OF_SPANS = r"(not-)?(trajectory:|trace-|skill-used)"


def keep_undecided(judgement: Judgement, recorded: Attempt, masker: Masker, *, edited: bool) -> None:
    """Put the recorded verdicts back where masked text, or what the trace lacks, made another one; an
    assertion that the record has no verdict for becomes an error, and so does one that expects a secret of a
    case that was `edited` since: the record does not say whether it expected that one. Does nothing where
    nothing is masked or cut."""
    turns = {part.turn for part in (*recorded.replies, *recorded.transcript) if _MASK in encode_json(part)}
    traced = _undecided_by_the_trace(recorded.trace)
    if not turns and traced is None:
        return
    known = {_key(verdict, None): verdict for verdict in recorded.verdicts}
    changed = False
    reasons: list[str] = []
    for verdict in judgement.verdicts:
        why = traced(verdict) if traced is not None else ""
        reasons.append(why or (_MASKED if turns and (verdict.turn is None or verdict.turn in turns) else ""))
    undecided: set[int | None] = set()
    # Members of a set stand behind it, and it rests on what each of them rests on.
    for index, verdict in reversed([*enumerate(judgement.verdicts)]):
        why = reasons[index]
        if not why:
            continue
        if verdict.set is not None and verdict.set < index:
            reasons[verdict.set] = reasons[verdict.set] or why
        hidden = edited and masker.value(verdict.expected) != verdict.expected
        before = None if hidden else known.get(_key(verdict, masker))
        if before is None or (index in undecided and verdict.passed):
            if verdict.passed is not None and verdict.target.partition(".")[0] not in _NUMBERS:
                verdict.passed, verdict.score = None, 0.0
                verdict.reason = f"{verdict.type}: {_UNDECIDED[why]}"
                undecided.add(verdict.set)
                changed = True
        elif before.passed != verdict.passed:
            reason = re.sub(r" \(kept: the record [\w ]+\)$", "", before.reason) + f" (kept: {why})"
            judgement.verdicts[index] = msgspec.structs.replace(before, reason=reason)
            changed = True
    if not changed:
        return
    now = [(_key(verdict, masker), verdict.passed) for verdict in judgement.verdicts]
    if now == [(_key(verdict, None), verdict.passed) for verdict in recorded.verdicts]:
        # Thresholds and weights count as they did.
        judgement.outcome, judgement.score = recorded.outcome, recorded.score
        judgement.named_scores, judgement.message = recorded.named_scores, recorded.message
        return
    judgement.outcome = outcome_of(judgement.verdicts)
    judgement.score = share_passed(judgement.verdicts)
    judgement.message = message_of(judgement.verdicts)


def _undecided_by_the_trace(trace: Trace | None) -> Callable[[Verdict], str] | None:
    """What says why a verdict may be another one by what the record has of a trace; None where it has all of it."""
    if trace is None:
        return None
    spans = trace.cut == "spans" or trace.note.endswith("spans are not kept")  # so earlier versions say it
    cut, masked = bool(spans or trace.cut), _MASK in encode_json(trace)
    if not cut and not masked:
        return None
    types = _OF_SPANS if spans else _OF_VALUES

    def why(verdict: Verdict) -> str:
        code = verdict.expected if verdict.type.removeprefix("not-") in CODE_TYPES else None
        looks = isinstance(code, str) and ("trace" in code or code.startswith(("file://", "package:")))
        return (_CUT if cut else _MASKED) if looks or re.match(types, verdict.type) else ""

    return why


def _key(verdict: Verdict, masker: Masker | None) -> tuple[str, str, int | None, int | None, bytes]:
    """What tells assertions apart; `masker` for a verdict whose expected value is not masked yet."""
    expected = verdict.expected if masker is None else masker.value(verdict.expected)
    return verdict.type, verdict.target, verdict.turn, verdict.set, encode_json(expected)
