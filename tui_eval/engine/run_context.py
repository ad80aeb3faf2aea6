"""What the attempts of a run share: agents, the judge, databases, hosts of people's code, secrets."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval import agents, causes
from tui_eval.agents.base import Agent, AgentError, Pace, Request, Services, SessionContext
from tui_eval.assertions.judge_input import CannotJudge, JudgeAnswer, judged_about, without_thoughts
from tui_eval.config.config_values import check_said
from tui_eval.config.project import (
    JUDGE_NETWORK,
    AgentSpec,
    Config,
    ConfigError,
    DatabaseSpec,
    database,
    database_spec,
    fill,
    masker,
    model_of,
)
from tui_eval.engine import grader_choice, replayed
from tui_eval.engine.row_order import Memory
from tui_eval.events import Finished, Held, UsageReport
from tui_eval.guard import fair_share, figures
from tui_eval.guard.fair_share import in_thread
from tui_eval.guard.secrets import MASK
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.javascript import Hosts
from tui_eval.model import Attempt, JudgeUse, Usage
from tui_eval.model_ids import provider_name
from tui_eval.store.run_folders import Store
from tui_eval.suites.identity import canonical

if TYPE_CHECKING:
    from tui_eval.engine.cached_session import Answers, JudgeReplies
    from tui_eval.engine.otlp.tracing import Tracing
    from tui_eval.engine.plan import Job
    from tui_eval.engine.run_hooks import SuiteHooks
    from tui_eval.frames.sql import SqlResult


_SQL_TIMEOUT = 30.0
_AGENT_SQL_TIMEOUT = 5.0
_TOOL_ROWS = 200  # rows that a model's `run_sql` tool gives back
_SPECS = 64  # entries whose agent is found without comparing them

AskJudge = Callable[[str | None, str, dict[str, Any] | None], Awaitable[JudgeAnswer]]

judges_take: ContextVar[Callable[[JudgeUse], None] | None] = ContextVar("judges_take", default=None)
"""Takes what each answer of a model took that is no agent's: a judge's, an embedding model's, that of the model which
plays a user. None: nobody counts."""


judged_attempt: ContextVar[JudgeReplies | None] = ContextVar("judged_attempt", default=None)
"""What judges answer in the attempt that is judged; None: nobody asks."""


def _took(usage: Usage | None, cost: float | None) -> None:
    if (listener := judges_take.get()) is not None:
        listener(JudgeUse(1, usage, cost))


def _saved(cost: float | None) -> None:
    if (listener := judges_take.get()) is not None:
        listener(JudgeUse(cached=1, saved=cost))


@contextmanager
def _says_which_limit(limit: float) -> Iterator[None]:
    """What takes too long says whose time was up: the attempt's, or that of expected SQL."""
    from tui_eval.frames.databases import TooLate

    try:
        yield
    except TooLate as late:
        whose = "the time limit of the attempt" if limit < _SQL_TIMEOUT else "the most that expected SQL may"
        raise TooLate(f"{late} ({whose})", late.detail) from None


class RunContext:
    """Made for one run (the warm engine makes one per run; hosts and agents close with it)."""

    def __init__(self, config: Config, trust: Trust) -> None:
        self.config = config
        self.trust = trust
        self.masker = masker(config)
        self.hosts = Hosts(config.root, config.run.script_memory)
        """Where people's code runs: assertions, transforms."""
        self.memory = Memory()
        self.run_id = uuid.uuid4().hex
        self._tracing: Tracing | None = None
        self.hooks: SuiteHooks | None = None
        self.answers: Answers | None = None
        """Answers that are kept, where somebody asked for that."""
        self.asks_models = True
        """Whether judges and embedding models are asked; where not, what needs them cannot be judged."""
        self.typed_judge: str | None = None
        """The judge that the person named for this run, which is trusted by that."""
        self._told: set[str] = set()
        self.tell: Callable[[str], None] | None = None
        """Shows a line to the person who waits for the run; None: nobody does."""
        self.say: Callable[[str], None] = lambda line: None
        """Takes what is said of the run whether or not a person waits for it."""
        self.paces: dict[str, Pace] = {}
        """How fast each agent may be asked, by its name."""
        self._began, self._began_at = 0.0, time.monotonic()
        self._agents: dict[bytes, Agent] = {}
        self._turns: dict[tuple[str, int], asyncio.Semaphore] = {}
        self._agents_of: dict[int, tuple[AgentSpec, Agent]] = {}
        self._tried: set[tuple[str | None, str]] = set()
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="engine")

    def begin(self, started_at: float) -> None:
        """The run begins, or goes on, at this moment (seconds since the epoch)."""
        self._began, self._began_at = started_at, time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch, as the clock on the wall has it, but never less than the run has lasted since it
        began: a clock that is set back puts no result before an earlier one."""
        return max(time.time(), self._began + time.monotonic() - self._began_at)

    def agent(self, spec: AgentSpec) -> Agent:
        """The agent of a spec, made once.

        Raises:
            ConfigError: its configuration is not complete.
            NeedsTrust: it needs something that is only done in trusted folders.
        """
        known = self._agents_of.get(id(spec))
        if known is not None:
            return known[1]
        key = canonical(msgspec.to_builtins(spec, enc_hook=str))
        agent = self._agents.get(key)
        if agent is None:
            if spec.name.startswith(("http://", "https://")) and MASK in str(spec.options):
                raise ConfigError(
                    f"agent {spec.name}: what is masked there is in no record; give the whole address with --agent"
                )
            filled = fill(spec, self.trust)
            if filled.retries is None:
                filled = msgspec.structs.replace(filled, retries=self.config.run.retries)
            self.masker.add_values(filled.options)
            services = Services(
                root=self.config.root,
                trust=self.trust,
                run_sql=self._tool_sql,
                schema_text=self._schema_text,
                recorded=self._recorded,
                agent=self.agent,
                ask_model=self._ask_model if self.config.judge is not None else None,
                prices=self.config.prices,
                nao_costs=self.config.nao.costs if self.config.nao else {},
                paces=self.paces,
                conceal=self.masker.add,
                script_memory=self.config.run.script_memory,
            )
            agent = self._agents[key] = agents.create(filled, services)
        if len(self._agents_of) < _SPECS:
            self._agents_of[id(spec)] = spec, agent  # while it is kept here, no other has its id
        return agent

    @property
    def tracing(self) -> Tracing:
        """The receiver of the spans that agents export."""
        if self._tracing is None:
            from tui_eval.engine.otlp.tracing import Tracing

            self._tracing = Tracing(self.trust, f"eval-{self.run_id}")
        return self._tracing

    async def sql(self, name: str | None, query: str, seconds: float = _SQL_TIMEOUT) -> SqlResult:
        """Run a query read-only in a thread, for so many seconds at most; interrupted when the caller is cancelled.

        Raises:
            SqlError: one line saying what is wrong with the query or the database.
            ConfigError: no database of that name is configured.
        """
        from tui_eval.frames.sql import execute

        spec = self._database(name)
        cancel = threading.Event()
        try:
            return await in_thread(
                lambda: execute(spec, query, timeout=seconds, cancel=cancel), self._threads
            )
        finally:
            cancel.set()

    async def agent_sql(self, name: str | None, query: str) -> SqlResult:
        """Run the query of an agent whose rows were wrong, as expected SQL is run but not for long: it only says
        which step went wrong. Not on a server: that is others' too, and a person asks for it in the Data tab.

        Raises:
            SqlError, ConfigError: as for `sql`.
        """
        from tui_eval.frames.sql import SqlError

        if self._database(name).type == "postgres":
            raise SqlError("on a server it runs only when the Data tab is looked at")
        return await self.sql(name, query, _AGENT_SQL_TIMEOUT)

    async def expected_sql(self, name: str | None, query: str, limit: float) -> SqlResult:
        """The rows that are expected; the query may take no longer than the attempt, whose `limit` this is in seconds.

        Raises:
            SqlError, ConfigError: as for `sql`.
        """
        with _says_which_limit(limit):
            return await self.sql(name, query, min(limit, _SQL_TIMEOUT))

    async def try_sql(self, name: str | None, query: str, limit: float) -> None:
        """Raise as `expected_sql` does, before anybody is asked for what is compared with its rows. A query that ran
        once in this run is not tried again."""
        if (name, query) in self._tried:
            return
        from tui_eval.frames.sql import SqlError, execute_all

        spec, seconds = self._database(name), min(limit, _SQL_TIMEOUT)

        def first() -> None:
            for found in execute_all(spec, [query], timeout=seconds, limit=1):
                if isinstance(found, SqlError):
                    raise found

        with _says_which_limit(limit):
            await in_thread(first, self._threads)
        self._tried.add((name, query))

    def has_database(self, name: str | None) -> bool:
        """Whether a database of this name (None: the only one) is configured."""
        if not self.config.databases:
            return False
        try:
            self._database(name)
        except ConfigError:
            return False
        except NeedsTrust:  # asked for by who queries it, not by every case of the project
            return True
        return True

    def _database(self, name: str | None) -> DatabaseSpec:
        if (spec := database_spec(self.config, name)) is not None:
            return database(self.config, spec.name, self.trust)
        known = ", ".join(self.config.databases) or "none is configured"
        if name and self.config.databases:
            slip = close_to(name, self.config.databases)
            meant = f"did you mean {slip!r}? There is: {known}" if slip else f"there is: {known}"
            raise ConfigError(f"there is no database {name!r}; {meant}")
        wanted = f"database {name!r}" if name else "a database"
        raise ConfigError(
            f"{wanted} is not configured ({known}); write `databases: {{{name or 'main'}: {{type: duckdb, "
            f"path: FILE}}}}` into tui_eval.yaml, or `database: NAME` for the suite"
        )

    async def _tool_sql(self, name: str, query: str) -> dict[str, Any]:
        from tui_eval.frames.sql import SqlError, rows

        try:
            result = await self.sql(name or None, query)
        except (SqlError, ConfigError) as error:
            raise ValueError(str(error)) from None
        records = rows(result, _TOOL_ROWS)
        answer: dict[str, Any] = {"columns": result.columns, "rows": records}
        if result.frame.height > len(records):
            answer["truncated"] = f"{len(records)} of {result.frame.height} rows"
        return answer

    async def _schema_text(self, name: str) -> str:
        from tui_eval.frames.sql import schema_text

        spec = self._database(name or None)
        return await in_thread(lambda: schema_text(spec), self._threads)

    def _recorded(self, spec: AgentSpec, run: str, case_id: str, attempt: int) -> Attempt | None:
        """The attempt of a recorded run that `replay` answers with. What a file names is no trusted place."""
        store = Store(self.config.root)
        named = replayed.run_of(store, run, spec, self.trust)
        return replayed.recorded_answer(store, named, case_id, attempt, self.run_id)

    def judge(self, name: str | None, job: Job | None = None) -> tuple[AskJudge | None, str | None]:
        """A callable that asks the judge called `name` (None: the configured one), and its name;
        (None, None) where none is configured. `job` is what it judges."""
        spec = self.judge_spec(name)
        if spec is None:
            return None, None
        return lambda system, prompt, schema: self._ask(spec, system, prompt, schema, job), spec.name

    def judge_fault(self, job: Job) -> str:
        """Why the judge of a job cannot be asked at all, in one line; empty: nothing is known."""
        spec = self.judge_spec(job.judge) or grader_choice.default_of(job, self.config)
        try:
            if spec is not None:
                self.agent(spec)
        except (ConfigError, AgentError, NeedsTrust) as error:
            return f"the judge {spec.name if spec else ''}: {error}"
        return ""

    def default_grader(self, job: Job) -> tuple[AskJudge | None, str | None]:
        """As `judge`, the grader that promptfoo takes for a job where none is named and its provider's key is there.
        It is said once."""
        spec = grader_choice.default_of(job, self.config)
        if spec is None:
            return None, None

        async def ask(system: str | None, prompt: str, schema: dict[str, Any] | None) -> JudgeAnswer:
            self.tell_once(
                f"no judge is named: {spec.name} grades, as in promptfoo (judge: in tui_eval.yaml, or --judge)"
            )
            return await self._ask(spec, system, prompt, schema, job)

        return ask, spec.name

    def tell_once(self, line: str) -> None:
        """Show a line to the person who waits for the run, the first time only."""
        if line not in self._told and self.tell is not None and self.asks_models:
            self._told.add(line)
            self.tell(line)

    def say_once(self, line: str) -> None:
        """Say a line the first time only."""
        if line not in self._told:
            self._told.add(line)
            self.say(line)

    def judge_is_network(self, name: str | None) -> bool:
        """Whether that judge is an agent network, with instructions of its own."""
        spec = self.judge_spec(name)
        return spec is not None and spec.type == "neuro-san"

    def judge_spec(self, name: str | None) -> AgentSpec | None:
        """The agent that judges; None where none is configured."""
        return grader_choice.judge_of(name, self.config, self.typed_judge)

    def judge_for(self, provider: Any, job: Job) -> AskJudge | None:
        """The judge that a suite names itself (a promptfoo grader). None where nothing here speaks to it and the
        person named a judge for this run, which then takes its place; that is said once.

        Raises:
            CannotJudge: nothing speaks to it, and nobody named another one.
        """
        try:
            spec = grader_choice.suites_own(provider, self.config, job.base, job.settings.get("env"))
        except grader_choice.NoGrader as error:
            if not self.typed_judge or job.judge != self.typed_judge:
                raise CannotJudge(str(error)) from None
            name = provider_name(provider)
            self.tell_once(
                f"nothing here speaks to the suite's grader {name}: {job.judge} grades in its place"
            )
            return None
        if self.typed_judge and job.judge == self.typed_judge and spec.name != job.judge:
            self.tell_once(
                f"{provider_name(provider)} grades where the suite names it; {job.judge} does where it names none"
            )
        return lambda system, prompt, schema: self._ask(spec, system, prompt, schema, job)

    async def _ask_model(self, system: str, prompt: str) -> str:
        assert self.config.judge is not None
        return without_thoughts((await self._ask(self.config.judge, system, prompt, None)).text)

    async def embed(
        self, provider: Any, texts: list[str], judge: str | None = None, env: Any = None
    ) -> list[list[float]]:
        """A vector for each text: by the embedding provider that a suite names, else by the judge's
        server, else by promptfoo's default; `env` is the suite's.

        Raises:
            CannotJudge: neither is configured, or it does not answer.
        """
        from tui_eval.agents.models.openai import OpenAIAgent

        if not self.asks_models:
            raise CannotJudge("no embedding model is asked here", "no-embeddings")
        try:
            if provider is not None:
                entry = provider if isinstance(provider, dict) else {"id": provider}
                spec = agents.for_embeddings(entry, self.config, self.config.root)
            else:
                spec = self.judge_spec(judge) or agents.default_embeddings(env, self.config)
            agent = self.agent(spec) if spec is not None else None
            if not isinstance(agent, OpenAIAgent):
                raise CannotJudge(
                    "no embedding model is configured: name one under `provider` (openai:embedding:"
                    "text-embedding-3-small), or give the judge an OpenAI-compatible base_url and "
                    "embedding_model",
                    "no-embeddings",
                )
            vectors, usage, cost = await agent.embed(texts)
            _took(usage, cost)
            return vectors
        except (AgentError, ConfigError) as error:
            raise CannotJudge(
                f"the embeddings could not be had: {error}", "judge-failed", _short(error)
            ) from None

    async def scores(self, provider: Any, text: str, base: Path) -> dict[str, float]:
        """The scores of a text's classes, by the classifier that a suite in the folder `base` names.

        Raises:
            CannotJudge: it is none, or does not answer.
        """
        from tui_eval.agents.models.classifiers import ScoringAgent

        if not self.asks_models:
            raise CannotJudge("no classifier is asked here", "no-judge")
        try:
            agent = self.agent(agents.for_scores(provider, self.config, base))
            assert isinstance(agent, ScoringAgent)
            return await agent.scores(text)
        except (AgentError, ConfigError) as error:
            raise CannotJudge(
                f"the scores could not be had: {error}", "judge-failed", _short(error)
            ) from None

    async def _ask(
        self,
        spec: AgentSpec,
        system: str | None,
        prompt: str,
        schema: dict[str, Any] | None,
        job: Job | None = None,
    ) -> JudgeAnswer:
        if not self.asks_models:
            raise CannotJudge("no judge is asked here", "no-judge")
        try:
            agent = self.agent(spec)
        except ConfigError as error:
            raise CannotJudge(f"the judge {spec.name}: {error}", "judge-failed", str(error)) from None
        if job is not None:  # what the agent answered may be judged, whatever it holds
            said = (job.case.vars, job.case.options, [one.value for one in job.case.asserted])
            check_said(agent.spec, job.suite, said, self.masker, self.trust, bool)
        model = model_of(spec, self.trust)
        context = SessionContext(case_id="judge", attempt=1, session_id="judge", model=model, judges=True)
        context.reference = job is not None and job.compat == "reference"
        if spec.plain and (about := judged_about.get()) is not None:
            context.vars = about()
        text = f"{system}\n\n{prompt}" if system else prompt
        request = Request(turn=1, text=text, schema=schema)
        if not system:  # a suite's own question, which may be chat messages
            from tui_eval.suites.chat_prompts import chat_messages  # read when a judge is asked

            request.messages = chat_messages(prompt)
        if spec.type == "neuro-san" and not (spec.options.get("network") or spec.options.get("agent")):
            context.network = JUDGE_NETWORK
        replies, answers = judged_attempt.get(), self.answers
        asked = None
        if (
            answers is not None
            and replies is not None
            and replies.cached
            and job is not None
            and answers.concern(spec)
        ):
            context.attempt = replies.number
            asked = await answers.asked_of_judge(spec, context, text, schema)
            if asked is not None and (known := await answers.judge_said(asked)) is not None:
                replies.given.setdefault(asked, (known.text, None))
                _saved(known.cost)
                return JudgeAnswer(known.text, known.model, output=known.output)
        told: UsageReport | None = None
        try:
            with fair_share.waiting() if agent.preparing else nullcontext():
                await agent.prepare(self.tell)
                session = await agent.open(context)
            limit = asyncio.timeout(None)
            try:
                async with self._at_its_turn(agent) as held, limit:
                    if spec.timeout is not None:
                        limit.reschedule(asyncio.get_running_loop().time() + spec.timeout)
                    async for event in session.send(request):
                        held.over()
                        if isinstance(
                            event, Held
                        ):  # by its rate: that spends no limit's time, its own neither
                            held.again()
                            if (when := limit.when()) is not None:
                                limit.reschedule(when + event.seconds)
                        if isinstance(event, UsageReport):
                            told = event
                        if isinstance(event, Finished):
                            reply = figures.reply(event.reply)
                            _took(reply.usage, reply.cost)
                            if replies is not None and job is not None:
                                replies.said.append(reply.text)
                            if replies is not None and asked is not None and answers is not None:
                                stands = await answers.asked_of_judge(spec, context, text, schema) == asked
                                kept = reply if answers.of(spec) or asked in answers.replaced else None
                                replies.given.update({asked: (reply.text, kept)} if stands else {})
                            return JudgeAnswer(
                                reply.text, reply.model or model, reply.usage, reply.cost, reply.output
                            )
            except TimeoutError:
                if not limit.expired():
                    raise
                if told is not None:
                    _took(figures.usage(told.usage), figures.amount(told.cost, "cost"))
                late = f"no answer in {spec.timeout:g} s"
                raise CannotJudge(f"the judge did not answer: {late}", "judge-failed", late) from None
            finally:
                await session.close()
        except AgentError as error:
            if (spent := error.spent or told) is not None:  # it was paid for
                _took(figures.usage(spent.usage), figures.amount(spent.cost, "cost"))
            raise CannotJudge(f"the judge did not answer: {error}", "judge-failed", _short(error)) from None
        raise CannotJudge("the judge ended without an answer", "judge-failed", "no answer")

    def turn(self, name: str, most: int) -> AbstractAsyncContextManager[Any]:
        """A turn at the judge of this name, which takes so many questions at once."""
        return self._turns.setdefault((name, most), asyncio.Semaphore(most))

    @asynccontextmanager
    async def _at_its_turn(self, agent: Agent) -> AsyncIterator[fair_share.Waiting]:
        """A judge is asked inside: as many at once, and as often, as its entry lets it. What waits for that
        spends no time of the attempt's."""
        most = agent.spec.concurrency
        with fair_share.waiting() as held:
            async with self.turn(agent.spec.name, most) if most else nullcontext():
                if not agent.keeps_pace:
                    await asyncio.sleep(await agent.pace.claimed())
                held.over()
                yield held

    async def close(self) -> None:
        """Close agents, hosts and threads."""
        closing: list[Awaitable[Any]] = [agent.close() for agent in self._agents.values()]
        if self._tracing is not None:
            closing.append(self._tracing.close())
        closing.append(asyncio.to_thread(self.hosts.close))
        if self.answers is not None:
            closing.append(asyncio.to_thread(self.answers.cache.close))
        await asyncio.gather(*closing, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)


def _short(failure: AgentError | ConfigError) -> str:
    """Why a model that judges did not answer, in few words."""
    return causes.words_of_pieces([failure.evidence]) if isinstance(failure, AgentError) else str(failure)
