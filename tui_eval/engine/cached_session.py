"""Answers from the cache in place of the agent's (`--cache`): a conversation that was had before with an agent that is
as it was is not had again. Only where all of a conversation is known, or its agent can be given the known part. And
those of a judge, asked the same in the same attempt."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.agents import template_variables
from tui_eval.agents.base import AgentError, Request, Session, SessionContext
from tui_eval.config.project import AgentSpec, Config
from tui_eval.engine.agent_files import names_network_file
from tui_eval.engine.fingerprints import SCRIPTS, Fingerprints, digest
from tui_eval.engine.grader_choice import speaks_for_the_user
from tui_eval.events import (
    Event,
    Exchanged,
    Finished,
    Held,
    Note,
    ReasoningDelta,
    Retrying,
    TextDelta,
    UsageReport,
)
from tui_eval.guard import figures
from tui_eval.guard.fair_share import in_thread
from tui_eval.guard.masker import Masker
from tui_eval.guard.trust import Trust
from tui_eval.model import Entry, Reply, Usage, Verdict

if TYPE_CHECKING:
    from tui_eval.store.answer_cache import AnswerCache

_encoder = msgspec.json.Encoder(order="deterministic")
_OF_THE_RUN = frozenset({"__evalId", "__evalStepId"})
"""Variables of promptfoo's that are others in every run, or move with the cases around: no part of a question."""

_UNUSABLE = frozenset({"judge-unreadable", "judge-undecided", "bad-assertion"})
"""Codes of verdicts that a judge's answer, as it is, was not enough for."""

Said = tuple[Sequence[Entry], Sequence[Reply]]


class JudgeReplies:
    """What judges answered in one attempt: kept when it has proved to be an answer.

    Args:
        number: The attempt's.
        cached: Whether answers may be taken from the cache, and kept there.
    """

    def __init__(self, number: int, cached: bool = True) -> None:
        self.number = number
        self.cached = cached
        self.said: list[str] = []
        """Those that were had anew, in order."""
        self.given: dict[bytes, tuple[str, Reply | None]] = {}
        """By their keys the texts, and the replies that are to be kept; None: it was."""

    def unused(self, verdicts: Iterable[Verdict]) -> list[str]:
        """The answers that no verdict tells: those of an assertion that is not decided yet."""
        told = [str((one.judge or {}).get("answer") or "") for one in verdicts]
        unused: list[str] = []
        for text in self.said:
            place = next((place for place, words in enumerate(told) if text in words), None)
            if place is None:
                unused.append(text)
            else:
                told[place] = told[place].replace(text, "", 1)
        return unused


class Answers:
    """The kept answers of one run.

    Args:
        asked: `--cache` or `--no-cache`; None: what each agent's entry says.
        anew: Whether no known answer is taken, and what is answered now takes its place: also where nobody asked for
            answers to be kept, or else a run that takes them would give what is out of date.
        keeps: Whether anything new is kept.
    """

    def __init__(
        self, config: Config, trust: Trust, asked: bool | None, anew: bool, *, keeps: bool = True
    ) -> None:
        from tui_eval.store.answer_cache import AnswerCache  # imported late: most runs keep none

        self.cache = AnswerCache(config.root, keeps=keeps)
        self.reads = not anew
        self.replaces = anew and self.cache.is_there
        self.replaced: set[bytes] = set()
        """Under which keys there was an answer that is asked for anew."""
        self._asked = asked
        self._marks = Fingerprints(config, trust)
        self._prices = config.prices
        self._judge = config.judge

    def of(self, spec: AgentSpec) -> bool:
        """Whether answers of this agent are kept. Not of one that has none of its own: which run `replay` takes them
        from may be another one each time."""
        return not _replays(spec) and (spec.cache if self._asked is None else self._asked)

    def concern(self, spec: AgentSpec) -> bool:
        """Whether answers of this agent are kept, or are to take the place of those that are."""
        return (self.replaces and not _replays(spec)) or self.of(spec)

    async def asked(
        self, spec: AgentSpec, context: SessionContext, *, told_case: Callable[[], bool] = lambda: False
    ) -> bytes | None:
        """See `asked_of`. `told_case`: whether the agent is told which case it is; it may read files."""
        if spec.type == "neuro-san" and names_network_file(
            context.network
        ):  # a part of the agent, for this case
            spec = msgspec.structs.replace(spec, options={**spec.options, "network": context.network})
        known = template_variables.get()
        marks, told = await in_thread(lambda: (self._marks.agent_now(spec), told_case()))
        if (read := await in_thread(lambda: self._marks.read_now(spec, known))) is None:
            return None
        if read:
            marks = marks | {"variables": read}
        if speaks_for_the_user(spec) and (judge := self._judge) is not None:
            marks = marks | {
                f"user's {name}": mark
                for name, mark in (await in_thread(lambda: self._marks.agent_now(judge))).items()
            }
        if "target" in spec.options:  # what it cost is a sum, of which nobody knows the parts
            marks = marks | {"prices": digest(self._prices)}
        sent = {name: value for name, value in context.vars.items() if name in _OF_THE_RUN}
        if sent and any(name in repr(spec) for name in sent):  # its requests hold them
            marks = {**marks, **{name: str(value) for name, value in sent.items()}}
        if told:
            marks = {**marks, "case": context.case_id}
        return asked_of(spec, marks, context)

    async def asked_of_judge(
        self, spec: AgentSpec, context: SessionContext, text: str, schema: dict[str, Any] | None
    ) -> bytes | None:
        """The key of a judge's answer: the judge as it is, what it is asked, and the number of the attempt. None where
        that cannot be known."""
        asked = await self.asked(spec, context)
        return None if asked is None else self.cache.key(b"judge", asked, _encoder.encode([text, schema]))

    async def judge_said(self, key: bytes) -> Reply | None:
        """What a judge answered before; None: it is to be asked."""
        if not self.reads:
            await forget(self.cache, [key], self.replaced)
            return None
        found = await in_thread(lambda: self.cache.get([key]))
        if key not in found:
            return None
        try:
            return figures.reply(self.cache.reply(found[key][1]))
        except msgspec.MsgspecError:
            return None

    async def settle(self, replies: JudgeReplies, verdicts: Iterable[Verdict], masker: Masker) -> None:
        """Keep the judges' answers that verdicts could be had of, and forget those that none could."""
        if not replies.given:
            return
        without = [
            str((one.judge or {}).get("answer") or "")
            for one in verdicts
            if any(seen.code in _UNUSABLE for seen in one.evidence or ())
        ]
        for key, (text, reply) in replies.given.items():
            if any(not words or text in words for words in without):  # where nobody says which, it may be any
                await in_thread(lambda key=key: self.cache.forget(key))
            elif reply is not None:
                await self._keep_judge(key, reply, masker)

    async def _keep_judge(self, key: bytes, reply: Reply, masker: Masker) -> None:
        """Keep a judge's answer, but for one with a secret in it."""
        kept = Reply(turn=1, text=reply.text, output=reply.output, model=reply.model, cost=reply.cost)
        try:
            body = _encoder.encode(kept)
            same = self.cache.takes(body) and self.cache.reply(body) == kept
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
            return
        if same and masker.text(body.decode()) == body.decode():
            await in_thread(lambda: self.cache.put(key, body))


def _replays(spec: AgentSpec) -> bool:
    """Whether its answers are those of recorded runs, also by way of a provider that speaks to another."""
    target = spec.options.get("target")
    return spec.type == "replay" or (isinstance(target, dict) and target.get("type") == "replay")


async def forget(cache: AnswerCache, keys: Sequence[bytes], gone: set[bytes]) -> None:
    """Forget what is asked anew, before it is: neither an error now, nor the rest of a conversation that was
    another, leaves what was answered then. `gone` learns of which there was an answer."""
    gone.update(await in_thread(lambda: [key for key in keys if cache.forget(key)]))


def asked_of(spec: AgentSpec, marks: dict[str, str], context: SessionContext) -> bytes | None:
    """What decides on the answers beside the conversation: the agent as it is, whom it is asked as, and the number of
    the attempt. None where that cannot be known."""
    try:
        return _encoder.encode(
            [
                marks, context.attempt, context.model, context.network, context.connection, context.headers,
                context.use_direct, _lasting(context.vars), context.reference, *_told(spec, context),
            ]
        )  # fmt: skip
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        return None


def _told(spec: AgentSpec, context: SessionContext) -> tuple[Any, Any, Any]:
    """What an agent is told of the test beside what is sent: code all of it, the prompt's label and options among it
    (`call_context`); an endpoint's templates the tools of these; a model nothing, whatever judges its answer."""
    target = spec.options.get("target")  # of one that speaks to another
    kind, options = spec.type, spec.options
    if isinstance(target, dict):
        kind, options = target.get("type"), target.get("options") or {}
    config = options.get("config")
    on_the_way = kind in _ENDPOINTS and isinstance(config, dict) and any(map(config.get, _CODE_ON_THE_WAY))
    if kind in SCRIPTS or on_the_way:
        return context.label, context.prompt, context.test
    own = (context.prompt or {}).get("config") if kind in _ENDPOINTS else None
    tools = [own.get(name) for name in ("tools", "tool_choice")] if isinstance(own, dict) else []
    return None, tools if any(tools) else None, None


_ENDPOINTS = frozenset({"promptfoo-http", "websocket"})
_CODE_ON_THE_WAY = ("transformRequest", "auth", "streamResponse")
"""What of an endpoint's `config` may be code that is told the test."""


def _lasting(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Variables without those of the run."""
    return {name: value for name, value in variables.items() if name not in _OF_THE_RUN}


def next_key(cache: AnswerCache, asked: bytes, chain: bytes, request: Request) -> bytes:
    """The key of an answer to a request, after what was asked before it: `chain`, the key of that."""
    # What followed private data was once answered without them where they came from the cache: those answers
    # are let be.
    private = request.sly_data and ("carried", request.sly_data)
    fields = [
        request.text, request.messages, private, request.chat_filter, _lasting(request.vars), request.sql,
        request.database, request.schema, request.continue_conversation,
    ]  # fmt: skip
    try:
        said = _encoder.encode(fields)
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        said = b""
    if not said:  # nothing that could be known again
        return hashlib.sha256(repr(id(request)).encode() + time.time_ns().to_bytes(8, "big")).digest()
    return cache.key(asked, chain, said)


class Forgotten:
    """Forgets what is kept of a conversation that a person has turn by turn, or from a turn on: as each is asked.

    Args:
        asked: See `asked_of`.
    """

    def __init__(self, cache: AnswerCache, asked: bytes) -> None:
        self._cache = cache
        self._asked = asked
        self._chain = b""

    def after(self, requests: Iterable[Request]) -> None:
        """These are not asked now."""
        for request in requests:
            self._chain = next_key(self._cache, self._asked, self._chain, request)

    async def asks(self, request: Request) -> None:
        """This one is, after them."""
        self.after([request])
        await forget(self._cache, [self._chain], set())


class CachedSession(Session):
    """A conversation of which what is known is not asked.

    Args:
        cache: The answers that are kept.
        asked: See `asked_of`.
        open_session: Opens the agent's own session; called when something is not known.
        said: What was said and answered so far, for an agent that is to go on from there.
        masker: An answer with a secret in it is not kept.
        reads: Whether known answers are taken; else they are only kept.
        only: Takes the keys whose answers are forgotten to be asked for anew, and alone are kept; None: all are.
        stands: Whether the agent is still the one that `asked` says: an answer of code that was edited meanwhile is not
            kept.
        limit: Seconds that all answers may have taken; `turn_limits` those of single turns. What took longer would be
            an error without the cache: it is asked anew.
        priced: What an answer costs today (`Agent.priced`); None: what it cost.
        unknown: The lines about what was reported and could not be read, so far: an answer is kept with its own, or
            what is unknown would count as not reported where it comes from the cache.
    """

    def __init__(
        self,
        cache: AnswerCache,
        asked: bytes,
        open_session: Callable[[], Awaitable[Session]],
        said: Callable[[], Said],
        masker: Masker,
        reads: bool = True,
        stands: Callable[[], Awaitable[bool]] | None = None,
        only: set[bytes] | None = None,
        limit: float = math.inf,
        turn_limits: Mapping[int, float] | None = None,
        priced: Callable[[UsageReport, str | None], float | None] | None = None,
        unknown: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._unknown = unknown
        self._priced = priced
        self._only = only
        self._limit = limit
        self._turn_limits = turn_limits or {}
        self._stands = stands
        self._cache = cache
        self._asked = asked
        self._open = open_session
        self._said = said
        self._masker = masker
        self._reads = reads
        self._chain = b""
        self._known: dict[bytes, tuple[float, list[Event]]] = {}
        self._looked: set[bytes] = set()
        self._sent: list[Request] = []
        self._real: Session | None = None
        self._live = False  # the agent itself is being asked
        self._turn = 0
        self._since = 1
        self.cached_ms = 0.0
        """How long the answers that were taken took when they were given."""
        self.in_part = False
        """Whether it ended where no more is known, and the agent cannot be told of what was said before."""

    async def look(self, requests: Sequence[Request]) -> bool:
        """See which of the requests that will follow are known: all, or as many from the first on as the agent can be
        notified of. Whether it is all."""
        chain, keys = self._chain, []
        for request in requests:
            chain = self._next(chain, request)
            keys.append(chain)
        await self._fetch(keys)
        known = next((number for number, key in enumerate(keys) if key not in self._known), len(keys))
        slow = self._too_slow(
            [(key, request.turn) for key, request in zip(keys, requests, strict=True)][:known]
        )
        if slow is not None:
            await forget(self._cache, keys[slow:], set())
            known = slow
        if 0 < known < len(keys):
            session = await self._opened()
            if type(session).restore is Session.restore:
                known = 0
        for key in keys[known:]:
            self._known.pop(key, None)
        return known == len(keys)

    def knows(self, request: Request) -> bool:
        """Whether the next request is answered without the agent."""
        return not self._live and self._next(self._chain, request) in self._known

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """See `Session.send`."""
        self._chain = key = self._next(self._chain, request)
        self._sent.append(request)
        if key not in self._looked:
            await self._fetch([key])
            if key in self._known and self._too_slow([(key, request.turn)]) is not None:
                await forget(self._cache, [key], set())
                del self._known[key]
        known = None if self._live else self._known.get(key)
        before, self._turn = self._turn, request.turn
        if known is not None:
            at, events = known
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
            self._price(events)
            yield Note(f"cached: this was answered on {when}, and is not asked again")
            for event in events:
                if isinstance(event, Note) and figures.retell(event.text):
                    continue  # noted at the end of the turn, as it was then
                if isinstance(event, Finished):
                    event.reply.cached, event.reply.turn = True, request.turn
                    self.cached_ms += event.reply.latency_ms or 0.0
                yield event
            return
        session = await self._going_on(before)
        known_before = len(self._unknown())
        events: list[Event] = []
        async for event in session.send(request):
            events.append(event)
            yield event
        await self._keep(key, events, self._unknown()[known_before:])

    def _price(self, events: Sequence[Event]) -> None:
        """Put the prices of today in the place of those of then: what is judged by its cost would cost these."""
        if self._priced is None or not isinstance(events[-1], Finished):
            return
        reply = events[-1].reply
        told = UsageReport(Usage())
        for event in events:
            if isinstance(event, UsageReport):
                told = event
                event.cost = self._priced(event, reply.model)
        if reply.usage is not None:
            reply.cost = self._priced(
                msgspec.structs.replace(told, usage=reply.usage, cost=reply.cost), reply.model
            )

    def _too_slow(self, known: Sequence[tuple[bytes, int]]) -> int | None:
        """From which of these on, keys and turns, kept answers took longer than they may now: from the first where all
        together did. None: they did not."""
        times = [_seconds(self._known[key][1]) for key, _ in known]
        if self.cached_ms / 1000 + sum(times) > self._limit:
            return 0
        limits = [self._turn_limits.get(turn, math.inf) for _, turn in known]
        return next((at for at, took in enumerate(times) if took > limits[at]), None)

    async def _going_on(self, before: int) -> Session:
        """The agent's session, with what was answered from the cache up to the turn `before`."""
        session = await self._opened()
        if not self._live:
            self._live = True
            said, answered = self._said()
            entries = [one for one in said if self._since <= one.turn <= before]
            replies = [one for one in answered if self._since <= one.turn <= before]
            # Private data go beside a message, and are carried on: a transcript has none of them.
            asked = [one for one in self._sent if one.turn <= before]
            session.sent_before(asked, [one for one in answered if one.turn <= before])
            if replies and not session.restore(entries, replies):
                self.in_part = True
                raise AgentError(
                    "the cache has the conversation but not this turn, and the agent cannot be given an earlier "
                    "conversation: run it with --no-cache",
                    code="cannot-continue",
                    said="only part of the conversation is cached",
                )
        return session

    def restart(self) -> None:
        """See `Session.restart`."""
        self._since = self._turn + 1
        if self._real is not None and self._live:
            self._real.restart()

    def restore(self, entries: Sequence[Entry], replies: Sequence[Reply]) -> bool:
        """Recorded turns are nothing that the cache knows."""
        return False

    async def close(self) -> None:
        """See `Session.close`."""
        if self._real is not None:
            await self._real.close()

    async def _opened(self) -> Session:
        if self._real is None:
            self._real = await self._open()
        return self._real

    def _next(self, chain: bytes, request: Request) -> bytes:
        return next_key(self._cache, self._asked, chain, request)

    async def _fetch(self, keys: Sequence[bytes]) -> None:
        self._looked.update(keys)
        if not self._reads:
            await forget(self._cache, keys, set() if self._only is None else self._only)
        if not self._reads or self._live:
            return
        found = await in_thread(lambda: self._cache.get(keys))
        for key, (at, body) in found.items():
            try:
                events = self._cache.events(body)
            except msgspec.MsgspecError:
                continue
            if events and isinstance(events[-1], Finished):
                self._known[key] = at, events

    async def _keep(self, key: bytes, events: list[Event], unknown: Sequence[str]) -> None:
        """Keep an answer that is whole and comes back as it was."""
        if not events or not isinstance(events[-1], Finished):
            return
        if self._only is not None and key not in self._only:
            return
        if self._stands is not None and not await self._stands():
            return
        kept = _joined(events)
        kept[-1:-1] = map(Note, unknown)
        try:
            body = _encoder.encode(kept)
            same = self._cache.takes(body) and self._cache.events(body) == kept
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
            return
        text = body.decode()
        if same and self._masker.text(text) == text:
            await in_thread(lambda: self._cache.put(key, body))


def _seconds(events: Sequence[Event]) -> float:
    """How long an answer took when it was given."""
    return sum(one.reply.latency_ms or 0.0 for one in events if isinstance(one, Finished)) / 1000


def _joined(events: Sequence[Event]) -> list[Event]:
    """The events of an answer without what concerns its requests, pieces of one text as one."""
    found: list[Event] = []
    pieces: list[str] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(event, Exchanged | Held | Retrying):
            continue
        if isinstance(event, TextDelta | ReasoningDelta):
            if type(last) is type(event) and last.agent == event.agent:  # type: ignore[union-attr]
                pieces.append(event.text)
                continue
            _close(found, pieces)
            pieces = [event.text]
            found.append(msgspec.structs.replace(event))
            continue
        _close(found, pieces)
        pieces = []
        found.append(event)
    _close(found, pieces)
    return found


def _close(found: list[Event], pieces: Sequence[str]) -> None:
    if found and len(pieces) > 1 and isinstance(last := found[-1], TextDelta | ReasoningDelta):
        last.text = "".join(pieces)
