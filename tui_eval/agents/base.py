"""What every agent offers to the engine: capabilities, sessions, events.

A protocol is one module with a class derived from `Agent`, registered in `tui_eval.agents`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, UsageReport
from tui_eval.guard.secrets import in_addresses
from tui_eval.guard.text import clip
from tui_eval.guard.trust import Trust
from tui_eval.model import Entry, Evidence, Reply

asking_for: ContextVar[int] = ContextVar("asking_for", default=0)
"""The attempt (its reference) whose requests are made here; 0: no attempt's."""


class Pace:
    """How many requests a minute an agent takes (`rate: {requests: N}`), shared by all its attempts: hands out the
    moments at which they may be sent, evenly, at most those of a tenth of a second at once. None: no limit. `freed` is
    called when a moment is given back. One event loop only."""

    def __init__(self, per_minute: float | None) -> None:
        self._between = 60 / per_minute if per_minute else 0.0
        self._ahead = max(0.0, 0.1 - self._between) if per_minute else 0.0
        self._next = 0.0
        self._used = -self._between
        self._reserved: dict[int, float] = {}
        self.freed: Callable[[], None] = lambda: None

    def seconds(self) -> float:
        """How long until another request may be sent; 0: now. Takes nothing."""
        return max(0.0, self._next - self._ahead - time.monotonic()) if self._between else 0.0

    def reserve(self, attempt: int) -> None:
        """Take the next moment for the first request of an attempt: its first `claim` waits for none."""
        if self._between:
            self._reserved[attempt] = self._take()

    def release(self, attempt: int) -> None:
        """Give back what an attempt has reserved, unless it has used it: a kept answer, or an error before anything was
        sent, is no request. It comes to nothing where later ones were used meanwhile: two would be sent at once."""
        if self._reserved.pop(attempt, None) is not None:
            self._next = max(self._next - self._between, self._used + self._between)
            self.freed()

    def claim(self, attempt: int) -> float:
        """Take a moment for a request of an attempt (0: of none); the seconds to wait for it."""
        if not self._between:
            return 0.0
        if (moment := self._reserved.pop(attempt, None)) is not None:
            self._used = max(self._used, moment)
            return 0.0
        wait = self.seconds()
        self._used = max(self._used, self._take())
        return wait

    async def claimed(self) -> float:
        """As `claim`, for the attempt that this is called in; elsewhere than in the engine, that is asked."""
        return self.claim(asking_for.get())

    def _take(self) -> float:
        moment = max(self._next, time.monotonic())
        self._next = moment + self._between
        return moment


class AgentError(Exception):
    """The agent could not answer. The text is one clear line for a person.

    `status` is the HTTP status where there is one. `answer` is what the agent said before it
    failed, kept in the transcript. `evidence` says the same in a code and data, for lists and groups
    (`tui_eval.causes`): `said` is what tells this failure from others of its code (the text, where nothing is
    given), `place` where it happened (`:8941`, an exit code), `limit` what was kept to; all as those of `like`.
    Secrets within addresses stand in none of these words, also of those that only a server named. `traceback` is that
    of people's own code, kept as what was seen. `spent` is what was paid for it all the same.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        answer: str = "",
        code: str = "",
        said: str | None = None,
        place: str = "",
        limit: Any = None,
        traceback: str = "",
        like: AgentError | None = None,
    ) -> None:
        message = in_addresses(message)
        super().__init__(message)
        self.status = status
        self.spent: UsageReport | None = like.spent if like is not None else None
        self.answer = answer
        said = message if said is None else in_addresses(said)
        found = (
            traceback if len(traceback) <= _LONGEST_TRACEBACK else f"…{traceback[-_LONGEST_TRACEBACK:]}"
        ) or status
        self.evidence = Evidence(
            "agent",
            code or _code_of(status),
            text=clip(said, _LONGEST),
            path=place,
            expected=limit,
            actual=found,
        )
        if like is not None:
            self.evidence = like.evidence


_LONGEST = 500
_LONGEST_TRACEBACK = 8_000
"""Characters, its last ones: there it says what went wrong."""


def _code_of(status: int | None) -> str:
    """The code of an HTTP status that is no answer."""
    if status is None:
        return "agent-error"
    if status in (401, 403):
        return "unauthorized"
    if status == 429:
        return "rate-limited"
    return "server-failed" if status >= 500 else "http-status"


class Capabilities(msgspec.Struct, frozen=True):
    """What this type of agent can report at all; assertions on the rest are errors.

    `calls_in_metadata`: calls of tools are reported by a reply's `metadata.toolCalls` alone (promptfoo's own
    providers), so that one without it says nothing of them.

    `guardrails`, `finish_reason`: whether it may say what a filter blocked, and why the model stopped. What asks for
    the absence of these passes where nothing is said, which `check` notes.
    """

    tokens: bool = False
    tools: bool = False
    metadata: bool = False
    sly_data: bool = False
    structure: bool = False
    calls_in_metadata: bool = False
    guardrails: bool = True
    finish_reason: bool = True


OF_ITS_OWN_FORM = Capabilities(
    tokens=True,
    tools=True,
    metadata=True,
    sly_data=True,
    structure=True,
    guardrails=False,
    finish_reason=False,
)
"""Of an agent whose replies have a form that tui-eval documents: they can say all but what only models do."""


class Request(msgspec.Struct):
    """One turn as it is sent.

    `text` is the user's message; `messages` is set where the whole conversation is given at once:
    a list of texts (the StartToAgent contract, only for agents with `takes_whole_conversation`)
    or of chat messages `{role, content}` (a promptfoo chat prompt). `sql` and `database` are a nao
    test's, `sql_place` the file and line where that query begins; `schema` asks for a reply in that JSON schema where
    the protocol has it (extraction).
    """

    turn: int
    text: str | None
    messages: list[Any] | None = None
    sly_data: dict[str, Any] | None = None
    chat_filter: Any = None
    vars: dict[str, Any] = {}
    sql: str | None = None
    sql_place: str = ""
    database: str | None = None
    schema: dict[str, Any] | None = None
    continue_conversation: bool = True


class TraceContext(msgspec.Struct, frozen=True):
    """The trace that an attempt's agent is to go on with: W3C's `traceparent`, and what promptfoo's agents
    are reported beside it."""

    traceparent: str
    evaluation_id: str
    test_case_id: str


class SessionContext(msgspec.Struct):
    """What a session is opened for. `session_id` is unique per attempt. `network` is the name of
    the neuro-san network of the case's file; `headers` its request metadata (None: it says nothing of
    it), `use_direct` whether a network run by the library calls other networks within it. `test` and
    `label` are the test and the prompt's label as promptfoo's providers see them; `evaluation_id` is one for
    a run; `prompt` is the prompt as promptfoo's providers see it (raw, label, config, template); `trace` is
    set where the suite asks for traces; `judges` where a judge is asked."""

    case_id: str
    attempt: int
    session_id: str
    model: str | None = None
    network: str | None = None
    connection: str | None = None
    headers: dict[str, str] | None = None
    use_direct: bool = False
    vars: dict[str, Any] = {}
    reference: bool = False
    test: dict[str, Any] | None = None
    label: str | None = None
    evaluation_id: str = ""
    prompt: dict[str, Any] | None = None
    trace: TraceContext | None = None
    judges: bool = False

    @property
    def trace_headers(self) -> dict[str, str]:
        """The header by which an endpoint goes on with the trace (W3C Trace Context); none without one."""
        return {"traceparent": self.trace.traceparent} if self.trace is not None else {}

    @property
    def model_headers(self) -> dict[str, str]:
        """The same for a model's server, to which promptfoo sends none."""
        return {} if self.reference else self.trace_headers


def _nothing(secret: str) -> None:
    pass


class Services(msgspec.Struct):
    """What agents may use that lies outside their layer, handed in by the engine.

    `run_sql(database, query)` answers `{columns, rows}` read-only (the `sql` tool; raises ValueError with one
    line). `schema_text(database)` describes its tables for a model. `recorded(spec, run, case_id, attempt)`
    gives a recorded `model.Attempt` or None (`replay`; raises NeedsTrust where the spec's file names a run
    outside). `agent` gives the agent of another spec and `ask_model(system, prompt)` the judge's answer (a
    simulated user). `prices` are the project's, USD per million tokens; `nao_costs` are those that a
    nao_config.yaml declares, by `provider:model_id`, in nao's own words. `paces` are how fast agents may be
    asked, by their names. `script_memory` is how many gigabytes a process of the project's code may have
    (None: the usual). `conceal` takes a secret that came to be known while running (a token), which is masked
    from then on.
    """

    root: Path
    trust: Trust
    run_sql: Callable[[str, str], Awaitable[dict[str, Any]]] | None = None
    schema_text: Callable[[str], Awaitable[str]] | None = None
    recorded: Callable[[AgentSpec, str, str, int], Any] | None = None
    agent: Callable[[AgentSpec], Agent] | None = None
    ask_model: Callable[[str, str], Awaitable[str]] | None = None
    prices: dict[str, dict[str, float]] = {}
    nao_costs: dict[str, dict[str, float]] = {}
    paces: dict[str, Pace] = {}
    conceal: Callable[[str], None] = _nothing
    script_memory: float | None = None

    def pace(self, spec: AgentSpec) -> Pace:
        """How fast the agent of a spec may be asked."""
        return self.paces.setdefault(spec.name, Pace(spec.rate_requests))


class Session(ABC):
    """One conversation. Turns are sent one after the other; cancelling the task that iterates
    closes the connection."""

    @abstractmethod
    def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one turn; yields events, the last of them `Finished`.

        Raises:
            AgentError: the agent could not answer.
        """

    def restart(self) -> None:  # noqa: B027
        """Forget the conversation so far (neuro-san's `continue_conversation: false`)."""

    def sent_before(self, requests: Sequence[Request], replies: Sequence[Reply]) -> None:  # noqa: B027
        """What all turns before asked and were answered, those too that `restart` has forgotten: for a protocol that
        carries more on than `restore` is given next."""

    def restore(self, entries: Sequence[Entry], replies: Sequence[Reply]) -> bool:
        """Take these recorded turns as the conversation so far, without sending them; False where the
        protocol has no way to. Called at most once, before the first `send`."""
        return False

    async def close(self) -> None:  # noqa: B027
        """Release what the conversation holds."""


class Agent(ABC):
    """One configured system under test, shared by all attempts of a run."""

    capabilities: Capabilities = Capabilities()
    takes_whole_conversation: bool | None = False
    """Whether all messages of a case are given to it at once. None: it is known once a session was opened."""
    scripted: bool = False
    spends: bool = True
    """Whether an answer takes tokens and money now: of one that was recorded both were spent then."""
    told_case: bool = False
    """Whether it is told which case is asked (`SessionContext.case_id`): another case's kept answer is none
    of its own then."""

    def is_told_case(self) -> bool:
        """`told_case`, where that hangs on code which may be edited meanwhile."""
        return self.told_case

    keeps_pace: bool = False
    """Whether it waits for its `pace` before each request; else the engine does, before each turn."""

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        self.spec = spec
        self.services = services
        self.pace = services.pace(spec)
        self.capabilities = self.reported(spec)

    @classmethod
    def reported(cls, spec: AgentSpec) -> Capabilities:
        """What an agent of this entry can report. Reads nothing but the entry: answers of an agent that cannot
        be made now are judged again by it."""
        return cls.capabilities

    @property
    def preparing(self) -> str:
        """What `prepare` does, in a few words for who waits for it; empty: nothing slow, or it says so itself."""
        return ""

    async def prepare(self, tell: Callable[[str], None] | None) -> None:  # noqa: B027
        """Do what comes before an attempt and outside its time limit, like signing in. Called before
        each attempt, also at the same time. `tell` shows the person a line; None: there is nobody.

        Raises:
            AgentError: it cannot be used.
        """

    def priced(self, context: SessionContext, told: UsageReport, model: str | None) -> float | None:
        """What an answer of before, by `model`, costs by the prices of today (USD); what was told then where it was not
        priced here."""
        return told.cost

    @abstractmethod
    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation.

        Raises:
            AgentError: it cannot be reached or is not configured.
            NeedsTrust: it runs code of a folder that is not trusted.
        """

    async def close(self) -> None:  # noqa: B027
        """Release connections and processes at the end of a run."""


class RememberingSession(Session):
    """A session whose agent keeps nothing: each turn goes out with what was said before, its `messages`, as role and
    content."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def restart(self) -> None:
        """Forget what was said."""
        self.messages = []

    def remember(self, request: Request, reply: Reply) -> None:
        """Keep a turn. The list is a new one: the one before may still be on its way out."""
        self.messages = [
            *self.messages,
            {"role": "user", "content": request.text},
            {"role": "assistant", "content": reply.text},
        ]
