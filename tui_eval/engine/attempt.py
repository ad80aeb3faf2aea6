"""One attempt: the conversation turn by turn, then its judgement; always ends in an `Attempt`."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval import assertions
from tui_eval.agents.base import Agent, AgentError, Request, Session, SessionContext
from tui_eval.assertions.evidence import Evidence, Judgement, JudgeServices, Reports, RowsAnswer
from tui_eval.config import ConfigError
from tui_eval.engine import continuing
from tui_eval.engine.collector import Collector
from tui_eval.engine.environment import Environment
from tui_eval.engine.extraction import extract, last_reply, verified
from tui_eval.engine.finished import finished, mask
from tui_eval.engine.judging import judge_services
from tui_eval.engine.masked import keep_masked
from tui_eval.engine.otlp import asks_for_traces
from tui_eval.engine.plan import Job, spec_for
from tui_eval.engine.prompts import Conversation, conversation_of
from tui_eval.engine.stepping import Stepper
from tui_eval.events import Event, Note
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Attempt, Case, Reply, Trace, Verdict
from tui_eval.scripting.python_host import ScriptError, printed
from tui_eval.store import frames
from tui_eval.store.encoding import encode_json
from tui_eval.store.writer import RunWriter

if TYPE_CHECKING:
    from tui_eval.engine.otlp.tracing import Tracer


class _Failed(Exception):
    """The attempt cannot go on; the text is its error."""


async def execute(
    job: Job, number: int, attempt_ref: int, environment: Environment, writer: RunWriter | None,
    deadline: float | None = None,
    stepper: Stepper | None = None,
) -> Attempt:  # fmt: skip
    """Run one attempt to its end. Cancelling the task closes the connection and raises.

    `deadline` (loop time) ends it earlier than its own time limit would. With a `stepper` a person
    decides on each turn, without a time limit but the turns' own; what was changed by hand is no result.
    """
    collector = Collector(writer, attempt_ref, environment.masker)
    run = _Running(job, number, collector, environment, attempt_ref, stepper)
    started = time.time()
    if writer is not None:
        writer.started(attempt_ref, started)
    clock = time.perf_counter()
    listening = printed.set(collector.printed)
    error: str | None = None
    judgement: Judgement | None = None
    try:
        if job.problem or job.spec is None:
            raise _Failed(job.problem or "no agent")
        judgement = await run.go(deadline)
    except _Failed as failure:
        error = str(failure)
    except (AgentError, ConfigError, NeedsTrust, ScriptError) as failure:
        error = str(failure)
        collector.failed(error, getattr(failure, "answer", ""))
    except Exception as failure:
        # Endpoints, files and people's code break in ways no list foresees: the attempt errs, the run
        # goes on.
        error = str(failure) if _ours(failure) else f"{type(failure).__name__}: {failure}"
        collector.failed(error)
    finally:
        printed.reset(listening)
        collector.close()
    duration = (time.perf_counter() - clock) * 1000 - run.prepared_ms
    if judgement is not None and judgement.frames and judgement.data is not None and writer is not None:
        await _keep_frames(judgement, attempt_ref, environment, writer)
    attempt = finished(job, number, run.conversation, collector, judgement, error)
    attempt.trace = run.trace
    if run.tracer is not None:
        attempt.trace = run.tracer.end()
    if run.by_hand:
        attempt.outcome = "skipped"
        attempt.message = f"{continuing.BY_HAND}{'; '.join(run.by_hand)}"
    if job.recorded is not None and job.from_turn is None:
        attempt.cost = 0.0  # it was paid for when it was asked
    attempt.started_at = started
    attempt.duration_ms = round(duration, 1)
    if judgement is not None and run.conversation is not None:
        environment.memory.remember(run.job.case, job.agent, job.model, attempt)
    if environment.hooks is not None and not job.problem:
        await environment.hooks.after_each(run.job.case, attempt)
    return mask(attempt, environment)


async def _keep_frames(
    judgement: Judgement, attempt_ref: int, environment: Environment, writer: RunWriter
) -> None:
    """Rows beyond the details' limit go beside the run's database; a full disk is a note, no error."""
    assert judgement.data is not None
    try:
        paths = await asyncio.to_thread(
            frames.save, writer.folder, attempt_ref, judgement.frames, environment.masker
        )
        judgement.data.settings["frames"] = paths
    except OSError as error:
        judgement.data.settings["frames_missing"] = str(error)


def _ours(failure: Exception) -> bool:
    """Our own exceptions are one clear line; those of templates and of promptfoo's suites are told by
    where they come from, since importing them costs each run 20 ms."""
    return type(failure).__module__.startswith("tui_eval.")


class _Running:
    """The state of one attempt while it runs."""

    def __init__(
        self,
        job: Job,
        number: int,
        collector: Collector,
        environment: Environment,
        attempt_ref: int,
        stepper: Stepper | None,
    ) -> None:
        self.attempt_ref = attempt_ref
        self.stepper = stepper
        self.by_hand: list[str] = []
        self.job = job
        self.number = number
        self.collector = collector
        self.environment = environment
        self.conversation: Conversation | None = None
        self.clock = 0.0
        self.spent_ms = 0.0
        self.prepared_ms = 0.0
        self.tracer: Tracer | None = None

    @property
    def trace(self) -> Trace | None:
        """What the agent exported, or did when its answer was recorded."""
        if self.tracer is not None:
            return self.tracer.trace()
        return self.job.recorded.trace if self.job.recorded is not None and self._judges_only else None

    async def go(self, deadline: float | None) -> Judgement:
        job = self.job
        if job.spec is not None and job.case.provider_output in (None, "") and not self._judges_only:
            before = time.perf_counter()
            await self.environment.agent(job.spec).prepare(self._teller())
            self.prepared_ms = (time.perf_counter() - before) * 1000
        loop = asyncio.get_running_loop()
        limit = loop.time() + job.timeout
        words = f"timed out after {job.timeout:g} s"
        if deadline is not None and deadline < limit:
            limit = deadline
            words = f"timed out: the case's {job.deadline_all or 0:g} s for all its attempts are over"
            if job.deadline_suite is not None:
                words = f"timed out: the suite's {job.deadline_suite:g} s (maxEvalTimeMs) are over"
        if limit <= loop.time() and not self.stepper:
            raise _Failed(words)  # nothing is begun that could not end
        try:
            async with asyncio.timeout_at(None if self.stepper else limit):
                return await self._converse_and_judge()
        except TimeoutError:
            self.collector.failed(words)
            raise _Failed(words) from None

    def _teller(self) -> Callable[[str], None] | None:
        """Shows the person a line, also in the attempt that waits for them."""
        tell = self.environment.tell
        if tell is None:
            return None

        def told(text: str) -> None:
            self.collector.take(Note(text))
            tell(text)

        return told

    async def _converse_and_judge(self) -> Judgement:
        hooks = self.environment.hooks
        if hooks is not None and self.job.case.format == "promptfoo":
            changed = await hooks.before_each(self.job.case)
            self.job = msgspec.structs.replace(self.job, case=changed)
        job, case = self.job, self.job.case
        conversation = await conversation_of(job, self.environment, self.number)
        self.conversation = conversation
        self.collector.entries.extend(conversation.context)
        self.clock = time.perf_counter()
        if case.provider_output not in (None, ""):
            self._recorded_output(conversation)
            return await self._judge(None, Reports(True, True, True, True, True))
        agent = self.environment.agent(spec_for(job, conversation.config, self.environment.config))
        if job.recorded is not None and job.from_turn is None:
            return await self._judge_again(job.recorded, conversation, agent)
        if asks_for_traces(case, job.settings):
            self.tracer = await self.environment.tracing.begin(case, job.settings, self._teller())
        async with _session(agent, self._context(conversation)) as session:
            await self._converse(agent, session, conversation)
            self.spent_ms = (time.perf_counter() - self.clock) * 1000
            if self.tracer is not None:
                await self.tracer.settle(case)
            reports = msgspec.convert(_flags(agent), Reports)
            return await self._judge(session, reports)

    @property
    def _judges_only(self) -> bool:
        return self.job.recorded is not None and self.job.from_turn is None

    async def _judge_again(self, recorded: Attempt, conversation: Conversation, agent: Agent) -> Judgement:
        """The recorded answer with today's assertions; nothing is sent to the agent."""
        try:
            self.collector.adopt(*continuing.answered(recorded, conversation))
        except continuing.CannotContinue as why:
            raise _Failed(str(why)) from None
        if recorded.message.startswith(continuing.BY_HAND):
            self.by_hand.append(recorded.message.removeprefix(continuing.BY_HAND))
        self.spent_ms = recorded.duration_ms or 0.0
        judgement = await self._judge(None, msgspec.convert(_flags(agent), Reports))
        keep_masked(judgement, recorded, self.environment.masker)
        return judgement

    def _continue(self, session: Session, conversation: Conversation) -> list[Request]:
        """Give the session the recorded turns; the requests that are left."""
        job, turn = self.job, self.job.from_turn
        if job.recorded is None or turn is None or turn <= 1:
            return conversation.requests
        try:
            entries, replies, known, known_replies = continuing.earlier(
                job.recorded, conversation.requests, turn
            )
        except continuing.CannotContinue as why:
            raise _Failed(f"cannot go on from turn {turn}: {why}") from None
        if known and not session.restore(known, known_replies):
            kind = job.spec.type if job.spec is not None else "?"
            raise _Failed(
                f"cannot go on from turn {turn}: an agent of type {kind} cannot be given an earlier "
                "conversation; run the whole case"
            )
        self.collector.adopt(entries, replies)
        self.collector.take(Note(f"the turns before {turn} are those of an earlier run, not sent again"))
        return [request for request in conversation.requests if request.turn >= turn]

    def _context(self, conversation: Conversation) -> SessionContext:
        job, case = self.job, self.job.case
        # None: the case says nothing of metadata; an empty mapping asks for none.
        headers = case.request_metadata and {
            str(key): str(value) for key, value in case.request_metadata.items() if value is not None
        }
        return SessionContext(
            case_id=case.case_id,
            attempt=self.number,
            session_id=uuid.uuid4().hex,
            model=job.model,
            network=case.agent if case.format == "neuro_san" else None,
            connection=case.connection or case.options.get("connection"),
            headers=headers,
            use_direct=bool(case.options.get("use_direct")),
            vars=conversation.vars,
            reference=job.compat == "reference",
            test=_test_of(case),
            label=case.prompt,
            evaluation_id=f"eval-{self.environment.run_id}",
            trace=self.tracer.context if self.tracer is not None else None,
        )

    async def _converse(self, agent: Agent, session: Session, conversation: Conversation) -> None:
        left = self._continue(session, conversation)
        whole = agent.takes_whole_conversation and conversation.whole and self.stepper is None
        whole = whole and len(left) == len(conversation.requests)
        requests = [conversation.as_one()] if whole else left
        for request in requests:
            if self.stepper is not None and not await self._decided(self.stepper, request, conversation):
                continue
            if whole:
                for turn, text in enumerate(request.messages or [], 1):
                    self.collector.begin(turn, text)
            else:
                self.collector.begin(request.turn, conversation.shown(request))
            self._mark(request.turn)
            limit = conversation.limits.get(request.turn)
            try:
                async with asyncio.timeout(limit):
                    await self._send(session, request)
            except TimeoutError:
                if limit is None:
                    raise
                words = f"turn {request.turn} timed out after {limit:g} s"
                self.collector.failed(words)
                raise _Failed(words) from None
            if not request.continue_conversation:
                session.restart()
            if self.stepper is not None:
                self.stepper.told(self.attempt_ref, request.turn, await self._verdicts_so_far(request.turn))

    async def _decided(self, stepper: Stepper, request: Request, conversation: Conversation) -> bool:
        """Ask what to do with a turn; whether it is to be sent."""
        shown = conversation.shown(request)
        decision = await stepper.before(self.attempt_ref, request.turn, shown)
        if decision.action == "stop":
            raise _Failed(f"stopped by hand before turn {request.turn}")
        if decision.action == "skip":
            self.by_hand.append(f"turn {request.turn} was left out")
            self.collector.turn = request.turn
            self._mark(request.turn)
            return False
        if decision.text is not None and decision.text != shown:
            self.by_hand.append(f"turn {request.turn} was edited (it was: {shown})")
            request.text, request.messages = decision.text, None
            conversation.prompt = None
        return True

    def _mark(self, turn: int) -> None:
        """Say in the transcript what a person changed."""
        changed = self.by_hand[-1] if self.by_hand else ""
        if changed.startswith(f"turn {turn} "):
            self.collector.take(Note(f"by hand: {changed}"))

    async def _verdicts_so_far(self, turn: int) -> list[str]:
        """What the assertions of the turns up to here say, a line each; those that need the agent or a
        judge again are left for the end."""
        case = self.job.case
        known = msgspec.structs.replace(case, turns=case.turns[:turn], assertions=[])
        environment = self.environment
        evidence = Evidence(
            case=known,
            replies=list(self.collector.replies),
            transcript=self.collector.entries,
            capabilities=Reports(True, True, True, True, True),
            tool_call_count=self.collector.tool_calls,
            compat=self.job.compat,
            services=JudgeServices(trust=environment.trust, root=environment.config.root, base=self.job.base),
        )
        judgement = await assertions.judge(evidence)
        words = {True: "passed", False: "failed", None: "later"}
        return [
            f"{words[verdict.passed]}: turn {verdict.turn}: {verdict.reason or verdict.type}"
            for verdict in judgement.verdicts
        ]

    async def _send(self, session: Session, request: Request) -> Reply:
        spec, tracer = self.job.spec, self.tracer
        if tracer is None or spec is None:
            return await last_reply(session.send(request), self._take)
        with tracer.request(spec, self.job.model) as replies:
            replies.append(await last_reply(session.send(request), self._take))
        return replies[0]

    def _take(self, event: Event) -> None:
        self.collector.take(event)

    def _recorded_output(self, conversation: Conversation) -> None:
        output = self.job.case.provider_output
        text = output if isinstance(output, str) else encode_json(output).decode()
        request = conversation.requests[0]
        self.collector.begin(request.turn, conversation.shown(request))
        from tui_eval.events import Finished

        reply = Reply(turn=request.turn, text=text, cost=0.0, latency_ms=0.0)
        reply.output = None if isinstance(output, str) else output
        self.collector.take(Finished(reply))

    async def _judge(self, session: Session | None, reports: Reports) -> Judgement:
        collector, job, environment = self.collector, self.job, self.environment
        collector.close()
        conversation = self.conversation
        assert conversation is not None
        usage, cost = collector.usage()
        replies = list(collector.replies)
        rows_asked: dict[tuple[str, ...], RowsAnswer] = {}

        async def rows(columns: list[str]) -> RowsAnswer:
            key = tuple(columns)
            if key not in rows_asked:
                rows_asked[key] = await self._rows(session, replies, columns)
            return rows_asked[key]

        services = judge_services(job, environment, rows)
        evidence = Evidence(
            case=job.case,
            replies=replies,
            transcript=collector.entries,
            capabilities=reports,
            usage=usage,
            tool_call_count=collector.tool_calls,
            duration_ms=self.spent_ms,
            cost=cost,
            vars=conversation.vars,
            prompt_sent=conversation.prompt,
            compat=job.compat,
            services=services,
            trace=self.trace,
        )
        judgement = await assertions.judge(evidence)
        if conversation.context:
            for verdict in judgement.verdicts:
                verdict.turn = conversation.requests[-1].turn
        return _with_problems(judgement, job.case)

    async def _rows(self, session: Session | None, replies: list[Reply], columns: list[str]) -> RowsAnswer:
        last = replies[-1] if replies else None
        if self._judges_only and self.job.recorded is not None:
            if last is not None and (last.verified or last.rows is not None):
                return verified(last)
            return continuing.recorded_rows(self.job.recorded, columns)
        guide = self.job.spec is not None and self.job.spec.extraction == "guide"
        if last is not None and (last.verified or last.rows is not None) and not guide:
            return verified(last)
        if session is None:
            return RowsAnswer(error="a recorded output has no rows")

        async def ask(request: Request) -> Reply:
            assert session is not None
            self.collector.begin(request.turn, request.text)
            return await self._send(session, request)

        try:
            return await extract(ask, (last.turn if last else 0) + 1, columns)
        except AgentError as error:
            return RowsAnswer(error=f"asking for the rows failed: {error}")


def _test_of(case: Case) -> dict[str, Any] | None:
    """The test as promptfoo's own providers get it."""
    if case.format != "promptfoo":
        return None
    from tui_eval.suites.promptfoo.shape import test_of

    return test_of(case)


def _with_problems(judgement: Judgement, case: Case) -> Judgement:
    """What the reader could not make sense of in the case is an error verdict: never a pass."""
    told = {verdict.line for verdict in judgement.verdicts if verdict.passed is None and verdict.line}
    for problem in case.problems:
        if problem.level == "note" or problem.line in told:
            continue
        judgement.verdicts.append(
            Verdict(type="suite", passed=None, target=problem.key, reason=str(problem), line=problem.line)
        )
        if judgement.outcome == "passed":
            judgement.outcome, judgement.message = "error", ""
        judgement.message = "; ".join(part for part in (judgement.message, str(problem)) if part)
    return judgement


@asynccontextmanager
async def _session(agent: Agent, context: SessionContext):
    session = await agent.open(context)
    try:
        yield session
    finally:
        await session.close()


def _flags(agent: Agent) -> dict[str, bool]:
    flags = agent.capabilities
    return {name: getattr(flags, name) for name in ("tokens", "tools", "metadata", "sly_data", "structure")}
