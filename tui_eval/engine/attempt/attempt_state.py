"""The state of one attempt while it runs: the conversation turn by turn, then its judgement."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tui_eval import agents
from tui_eval.agents.base import Agent, AgentError, Request, Session, SessionContext, asking_for
from tui_eval.assertions.judge_input import Judgement, JudgeServices, Reports
from tui_eval.config.config_values import check_said
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.engine.attempt import continuing
from tui_eval.engine.attempt.attempt_judging import (
    EVERYTHING,
    Ask,
    judge_services,
    judged,
    keep_undecided,
    known_before,
    reports_of,
    seen_in,
)
from tui_eval.engine.attempt.by_hand import ByHand
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.extraction import last_reply
from tui_eval.engine.attempt.finished import AttemptFailed
from tui_eval.engine.attempt.time_limits import TimeLimits
from tui_eval.engine.attempt.turn_requests import (
    Conversation,
    as_one,
    conversation_of,
    no_question,
)
from tui_eval.engine.cached_session import CachedSession, Forgotten
from tui_eval.engine.plan import Job, spec_for
from tui_eval.engine.run_context import RunContext
from tui_eval.events import Event, Exchanged, Finished, Held, Note, Retrying, TextDelta, UsageReport
from tui_eval.formats import format_of
from tui_eval.guard import figures
from tui_eval.guard.secrets import MASK
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Attempt, Reply, Trace
from tui_eval.store.encoding import encode_json

if TYPE_CHECKING:
    from tui_eval.engine.otlp.tracing import Tracer


SLOW = 1.0
"""Seconds after which it is said what an attempt waits for before its agent is asked."""
T = TypeVar("T")


class Running:
    """Attempt `number` of a job. `uncounted_ms` is time that is not the agent's: signing in before it
    begins, and waiting for its rate."""

    def __init__(
        self,
        job: Job,
        number: int,
        collector: Collector,
        environment: RunContext,
        by_hand: ByHand,
        limits: TimeLimits,
        asks_anew: bool = False,
    ) -> None:
        self.job, self.case = job, job.case
        self.changed_vars: dict[str, Any] = {}
        self.asks_anew = asks_anew
        """Whether kept answers are not taken."""
        self.known_in_part = False
        """Whether kept answers were taken for a conversation that cannot go on from them."""
        self.number = number
        self.collector = collector
        self.environment = environment
        self.by_hand = by_hand
        self.limits = limits
        self.conversation: Conversation | None = None
        self.uncounted_ms = 0.0
        self.asked = False
        self.tracer: Tracer | None = None
        self._clock = 0.0
        self._spent_ms = 0.0
        self._judges_with: JudgeServices | None = None
        self._cached: CachedSession | None = None
        self._forgotten: Forgotten | None = None
        """The session, where it has kept answers."""

    def close(self) -> None:
        """Wait for no more spans, also where the attempt was cancelled."""
        if self.tracer is not None:
            self.tracer.end()

    @property
    def kept_trace(self) -> Trace | None:
        """The trace as it is kept."""
        return self.tracer.kept() if self.tracer is not None else self.trace

    @property
    def trace(self) -> Trace | None:
        """What the agent exported, or did when its answer was recorded."""
        if self.tracer is not None:
            return self.tracer.trace()
        return self.job.recorded.trace if self.job.recorded is not None and self.job.judges_only else None

    def was_asked(self, failure: BaseException | None) -> bool:
        """Whether the agent was asked at all, so that the attempt took it time. What may not be done, or cannot for
        lack of a setting, is refused before anything is sent."""
        refused = isinstance(failure, NeedsTrust | ConfigError)
        return self.asked and not (refused and not self.collector.heard)

    async def go(self) -> Judgement:
        """To the end.

        Raises:
            AttemptFailed, AgentError, ConfigError, NeedsTrust, ScriptError: it cannot be judged.
        """
        job = self.job
        asks = job.spec is not None and self.case.provider_output in (None, "") and not job.judges_only
        unread = job.settings.get("env_unread") if asks else None
        if unread and job.spec is not None and agents.names_variables(job.spec.options):
            for what in unread:  # nothing would be sent in their place
                self.environment.trust.require(what)
        agent = self.environment.agent(job.spec) if job.spec is not None and asks else None
        if asks and self.by_hand.stepper is None and (known := await self._known_before()) is not None:
            return known
        if agent is not None and job.spec is not None and not self._from_cache(job.spec):
            await self._prepare(agent)
        return await self.limits.attempt(self._converse_and_judge)

    @property
    def _services(self) -> JudgeServices:
        if self._judges_with is None:
            self._judges_with = judge_services(self.job, self.environment)
        return self._judges_with

    async def _known_before(self) -> Judgement | None:
        before = time.perf_counter()
        known = await known_before(self.job, self._services)
        self.uncounted_ms += (time.perf_counter() - before) * 1000
        if known is not None:
            self.collector.take(Note("the agent was not asked: whatever it answers, this is an error"))
        return known

    async def _prepare(self, agent: Agent) -> None:
        if type(agent).prepare is Agent.prepare and not agent.preparing:
            return
        with self._preparing(agent):
            await agent.prepare(self._teller(for_person=True))

    @contextmanager
    def _preparing(self, agent: Agent) -> Iterator[None]:
        """What an agent needs before it can be asked is done inside: no limit and no duration counts it."""
        loop = asyncio.get_running_loop()
        before = time.perf_counter()
        slow = loop.call_later(SLOW, self._waits_for, agent.preparing) if agent.preparing else None
        with self.limits.uncounted():
            try:
                yield
            finally:
                if slow is not None:
                    slow.cancel()
                self.collector.goes_on()
                self._clock += time.perf_counter() - before

    async def _begin(self, agent: Agent, context: SessionContext) -> Session:
        """Open the agent's session; where that is part of preparing, as a process that loads code, it is not
        counted."""
        with self._preparing(agent) if agent.preparing else nullcontext():
            return await agent.open(context)

    def _waits_for(self, what: str) -> None:
        self.collector.waits(what)
        self.limits.tell()  # none goes on meanwhile: viewers would see it nearly over
        self.environment.say_once(f"{what}: not counted as the agent's time")

    @property
    def _by_hand(self) -> bool:
        """Whether a person steps through it, or has it go on from a recorded answer."""
        return self.by_hand.stepper is not None or self.job.recorded is not None

    def _from_cache(self, spec: AgentSpec) -> bool:
        """Whether answers of this agent are kept, or replaced. What a person changes on its way is none, nor
        what goes on from a recorded answer; and a cached answer leaves no trace."""
        answers, job = self.environment.answers, self.job
        return (
            answers is not None
            and answers.concern(spec)
            and not self._by_hand
            and not format_of(job.format).asks_for_traces(self.case, job.settings)
        )

    async def _open(self, agent: Agent, spec: AgentSpec, context: SessionContext) -> Session:
        answers, told = self.environment.answers, agent.is_told_case
        asked = None
        if answers is not None and self._from_cache(spec):
            asked = await answers.asked(spec, context, told_case=told)
        if answers is None or not self._from_cache(spec):
            if answers is not None and answers.concern(spec) and self._by_hand:
                key = await answers.asked(spec, context, told_case=told)
                self._forgotten = Forgotten(answers.cache, key) if key is not None else None
            return await self._begin(agent, context)

        async def opened() -> Session:
            await self._prepare(agent)
            return await self._begin(agent, context)

        if asked is None:
            return await opened()
        if agent.takes_whole_conversation is None and self.conversation and self.conversation.whole:
            await (
                await opened()
            ).close()  # what is asked, and so what was kept of it, goes by how it wants to be called

        async def stands() -> bool:
            return await answers.asked(spec, context, told_case=told) == asked

        said = lambda: (self.collector.entries, self.collector.replies)  # noqa: E731
        masker, reads = self.environment.masker, answers.reads and not self.asks_anew
        only = None if answers.of(spec) else answers.replaced
        turns = self.conversation.limits if self.conversation else {}
        priced = partial(agent.priced, context)
        self._cached = CachedSession(
            answers.cache,
            asked,
            opened,
            said,
            masker,
            reads,
            stands,
            only,
            self.limits.longest,
            turns,
            priced,
            lambda: list(self.collector.unknown_figures.values()),
        )
        return self._cached

    def _teller(self, *, for_person: bool = False) -> Callable[[str], None] | None:
        """Shows the person a line, also in the attempt (which may wait for them)."""
        tell = self.environment.tell
        if tell is None:
            return None

        def told(text: str) -> None:
            self.collector.take(Note(text, for_person=for_person))
            tell(text)

        return told

    async def _converse_and_judge(self) -> Judgement:
        hooks = self.environment.hooks
        if hooks is not None:
            before = self.case.vars
            self.case = await hooks.before_each(self.case)
            new = self.case.vars.items() if self.case.vars is not before else ()
            self.changed_vars = {
                name: value for name, value in new if name not in before or before[name] != value
            }
            self.job = msgspec.structs.replace(self.job, held=self.case)
        job, case = self.job, self.case
        conversation = await conversation_of(job, self.environment, self.number)
        self.conversation = conversation
        if self.environment.memory.masked and MASK in (conversation.prompt or "") and not job.judges_only:
            raise AttemptFailed(
                "what a row before it handed on had a secret in it, which is in no record: run the rows together",
                "cannot-continue",
            )
        self.collector.entries.extend(conversation.context)
        self._clock = time.perf_counter()
        if case.provider_output not in (None, ""):
            self._recorded_output(conversation)
            return await self._judge(conversation, EVERYTHING)
        if job.recorded is not None and job.judges_only and job.spec is None:
            return await self._judge_again(job.recorded, conversation, seen_in(job.recorded))
        spec = spec_for(job, conversation.config, self.environment.config)
        if job.recorded is not None and job.judges_only:
            return await self._judge_again(job.recorded, conversation, self._reports(spec))
        agent = self.environment.agent(spec)
        self.collector.spends = agent.spends
        if why := no_question(spec, conversation):
            raise AttemptFailed(why, "bad-setting")
        if not agent.capabilities.sly_data:
            # Without them it would be asked something else, and what it then says is no answer to this case.
            turn = next((request.turn for request in conversation.requests if request.sly_data), None)
            if turn is not None:
                message = f"turn {turn} sends sly_data, which agents of the type {spec.type} do not get"
                raise AttemptFailed(message, "bad-setting")
        if format_of(case.format).asks_for_traces(case, job.settings):
            self.tracer = await self.environment.tracing.begin(case, job.settings, self._teller())
        session = await self._open(agent, spec, self._context(conversation))
        try:
            await self._converse(agent, session, conversation)
            self._spent_ms = (time.perf_counter() - self._clock) * 1000
            if (cached := self._cached) is not None:  # an answer took what it took when it was given
                self._spent_ms += cached.cached_ms
                self.uncounted_ms -= cached.cached_ms
            if self.tracer is not None:
                await self.tracer.settle(case)

            async def ask(request: Request) -> Reply:
                await self._keep_pace(agent, request)
                self.collector.begin(request.turn, request.text)
                return await self._send(session, request)

            return await self._judge(conversation, reports_of(agent.capabilities), ask)
        finally:
            self.known_in_part = self._cached is not None and self._cached.in_part
            await session.close()

    async def _judge(self, conversation: Conversation, reports: Reports, ask: Ask | None = None) -> Judgement:
        return await judged(
            self.job,
            self.collector,
            conversation,
            reports,
            self._services,
            spent_ms=self._spent_ms,
            trace=self.trace,
            ask=ask,
            in_time=self.limits.judging,
        )

    def _reports(self, spec: AgentSpec) -> Reports:
        """What an agent that nobody asks can report: one that could not be asked now (its code is not trusted,
        its key or file is gone) has answered all the same."""
        try:
            return reports_of(self.environment.agent(spec).capabilities)
        except (NeedsTrust, ConfigError, AgentError):
            return reports_of(agents.agent_class(spec.type).reported(spec))

    async def _judge_again(
        self, recorded: Attempt, conversation: Conversation, reports: Reports
    ) -> Judgement:
        """The recorded answer with today's assertions; nothing is sent to the agent."""
        try:
            answer = continuing.answered(recorded, conversation, self.job.case)
            ran = self.environment.hooks is not None
            continuing.check_question(self.job, conversation, self.environment.masker, hooks_ran=ran)
        except continuing.CannotContinue as why:
            failure = AttemptFailed(str(why), "cannot-continue")
            if recorded.error is not None and recorded.evidence:
                failure.evidence = recorded.evidence[0]  # why there is no answer is what lists say
            raise failure from None
        self.collector.adopt(answer.entries, answer.replies)
        self.collector.take(Note(continuing.JUDGED_AGAIN))
        if recorded.message.startswith(continuing.BY_HAND):
            self.by_hand.changes.append(recorded.message.removeprefix(continuing.BY_HAND))
        self._spent_ms = recorded.duration_ms or 0.0
        judgement = await self._judge(conversation, reports)
        # The turns that asked for its rows were no part of the conversation that is judged; they stay.
        self.collector.adopt(answer.extra_entries, answer.extra_replies)
        asked = self.job.asked_case
        edited = asked is None or asked.content_hash != self.job.case.content_hash
        keep_undecided(judgement, recorded, self.environment.masker, edited=edited)
        return judgement

    def _continue(self, session: Session, conversation: Conversation) -> list[Request]:
        """Give the session the recorded turns; the requests that are left."""
        job, turn = self.job, self.job.from_turn
        if job.recorded is None or turn is None or turn <= 1:
            return conversation.requests
        try:
            continuing.check_question(job, conversation, self.environment.masker, hooks_ran=True)
            entries, replies, known, known_replies = continuing.earlier(
                job.recorded, conversation.requests, turn
            )
        except continuing.CannotContinue as why:
            raise AttemptFailed(f"cannot go on from turn {turn}: {why}", "cannot-continue") from None
        session.sent_before([one for one in conversation.requests if one.turn < turn], replies)
        if known and not session.restore(known, known_replies):
            kind = job.spec.type if job.spec is not None else "?"
            raise AttemptFailed(
                f"cannot go on from turn {turn}: {continuing.no_way(kind)}", "cannot-continue"
            )
        self.collector.adopt(entries, replies, spent_before=True)
        self.collector.take(Note(f"the turns before {turn} are those of an earlier run, not sent again"))
        return [request for request in conversation.requests if request.turn >= turn]

    def _context(self, conversation: Conversation) -> SessionContext:
        job, case = self.job, self.case
        form = format_of(case.format)
        # None: the case says nothing of metadata; an empty mapping asks for none.
        headers = case.request_metadata and {
            str(key): str(value) for key, value in case.request_metadata.items() if value is not None
        }
        return SessionContext(
            case_id=case.case_id,
            attempt=self.number,
            session_id=f"{random.getrandbits(128):032x}",
            model=job.model,
            network=case.agent if form.network_is_agent else None,
            connection=form.connection(case),
            headers=headers,
            use_direct=form.speaks_directly(case),
            vars=conversation.vars,
            reference=job.compat == "reference",
            test=form.test_for_scripts(case),
            label=case.prompt,
            evaluation_id=f"eval-{self.environment.run_id}",
            prompt=form.prompt_for_scripts(case, conversation.config),
            trace=self.tracer.context if self.tracer is not None else None,
        )

    async def _converse(self, agent: Agent, session: Session, conversation: Conversation) -> None:
        left = self._continue(session, conversation)
        if agent.takes_whole_conversation and conversation.whole and len(left) == len(conversation.requests):
            await self._ask_once(agent, session, conversation)
            return
        await self._look(agent, left)
        if self._forgotten is not None:
            self._forgotten.after(conversation.requests[: len(conversation.requests) - len(left)])
        stepped = self.by_hand.stepper is not None
        for request in left:
            if stepped and not await self._not_counted(self.by_hand.sends(request, conversation)):
                continue
            self._check_said(agent, conversation, request)
            await self._keep_pace(agent, request)
            self.collector.begin(request.turn, conversation.shown(request))
            self.by_hand.mark(request.turn)
            self.asked = True
            async with self.limits.turn(request.turn, conversation.limits.get(request.turn)):
                await self._send(session, request)
            if not request.continue_conversation:
                session.restart()
            if stepped:
                await self._told(request.turn)

    async def _ask_once(self, agent: Agent, session: Session, conversation: Conversation) -> None:
        """All turns in one call, as the agent wants them. A person who steps decides on each before it: given one
        message after the other, the agent would answer something else than in a run."""
        requests = conversation.requests
        whole = as_one(requests)
        await self._look(agent, [whole])
        self._check_said(agent, conversation, whole)
        await self._keep_pace(agent, whole)
        if self.by_hand.stepper is not None:
            self.collector.take(
                Note("the agent takes the whole conversation: it is asked once, after the last turn")
            )
        said: list[Request] = []
        for request in requests:
            if await self._not_counted(self.by_hand.sends(request, conversation)):
                said.append(request)
                self.collector.begin(request.turn, request.text)
                self.by_hand.mark(request.turn)
        if not said:
            return
        whole, self.asked = as_one(said), True
        async with self.limits.turn(whole.turn, conversation.limits.get(whole.turn)):
            await self._send(session, whole)
        await self._told(whole.turn)

    def _check_said(self, agent: Agent, conversation: Conversation, request: Request) -> None:
        said = (request.text, request.messages, request.sly_data, request.vars, conversation.vars)
        job, environment = self.job, self.environment

        def reads() -> bool:
            from tui_eval.agents.promptfoo.promptfoo_env import read_secret

            templates = ([turn.text for turn in job.case.turns], job.case.vars)
            return read_secret(templates, str((environment.config.root / job.suite).parent))

        check_said(agent.spec, job.suite, said, environment.masker, environment.trust, reads)

    async def _look(self, agent: Agent, requests: Sequence[Request]) -> None:
        """See what is known of these; where it is all, another attempt has the moment that was kept for the first."""
        if self._cached is not None and await self._cached.look(requests):
            agent.pace.release(asking_for.get())

    async def _told(self, turn: int) -> None:
        """Show a person who steps what the assertions say so far."""
        await self._not_counted(self.by_hand.told(turn, self.job, self.environment, self.limits.judging))

    async def _not_counted(self, waiting: Awaitable[T]) -> T:
        """Wait for a person; that is not the agent's time."""
        before = time.perf_counter()
        result = await waiting
        seconds = time.perf_counter() - before
        self._clock += seconds
        self.uncounted_ms += seconds * 1000
        return result

    async def _send(self, session: Session, request: Request) -> Reply:
        if self._forgotten is not None:
            await self._forgotten.asks(request)
        spec, tracer = self.job.spec, self.tracer
        if tracer is None or spec is None:
            return await last_reply(session.send(request), self._take)
        with tracer.request(spec, self.job.model) as replies:
            replies.append(await last_reply(session.send(request), self._take))
        return replies[0]

    async def _keep_pace(self, agent: Agent, request: Request) -> None:
        """Wait until the agent may be asked; those that send requests of their own do it themselves."""
        if self._cached is not None:
            if self._cached.knows(request):
                return
            self.limits.took(self._cached.cached_ms / 1000)
        seconds = 0.0 if agent.keeps_pace else await agent.pace.claimed()
        if seconds:
            self._take(Held(round(seconds, 3)))
            await asyncio.sleep(seconds)

    def _take(self, event: Event) -> None:
        if not isinstance(event, TextDelta):  # of which there are most
            _figures(event)
        if isinstance(event, Held):
            self.limits.hold(event.seconds)
            self._clock += event.seconds
            self.uncounted_ms += event.seconds * 1000
        self.collector.take(event)

    def _recorded_output(self, conversation: Conversation) -> None:
        output = self.case.provider_output
        text = output if isinstance(output, str) else encode_json(output).decode()
        request = conversation.requests[0]
        self.collector.begin(request.turn, conversation.shown(request))
        reply = Reply(turn=request.turn, text=text, cost=0.0, latency_ms=0.0)
        reply.output = None if isinstance(output, str) else output
        self.collector.take(Finished(reply))


def _figures(event: Event) -> None:
    """Check what an event says in figures, in place: agents may be anybody's."""
    match event:
        case Finished():
            figures.reply(event.reply)
        case UsageReport():
            figures.usage(event.usage)
            event.cost = figures.amount(event.cost, "cost")
        case Held() | Retrying():
            event.seconds = figures.amount(event.seconds, "time to wait") or 0.0
        case Exchanged():
            exchange = event.exchange
            exchange.status = figures.count(exchange.status, "HTTP status")
            exchange.duration_ms = figures.amount(exchange.duration_ms, "duration of a request")
        case _:
            pass
