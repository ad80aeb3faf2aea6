"""The embedded agent: answers from a YAML file, so that everything can be seen offline.

A script holds rules, each with what it matches and the steps it then takes; `help/scripted-agents.md`
describes the format, `script_file` reads it. Variation by attempt is seeded: the same run again gives
the same answers.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.loose_json import text_of
from tui_eval.agents.offline.script_file import Rule, ScriptedAnswer, ScriptStep, read_script
from tui_eval.config.project import AgentSpec
from tui_eval.events import (
    Event,
    Finished,
    HandOff,
    Message,
    Note,
    ReasoningDelta,
    Retrying,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    ToolResult,
    UsageReport,
)
from tui_eval.guard.text import clip
from tui_eval.javascript import patterns
from tui_eval.model import Reply, Usage

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_UNSPACED = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_WORD = re.compile(rf"\s*(?:[{_UNSPACED}]{{1,2}}|[^\s{_UNSPACED}]+)\s*")
"""A word; of scripts that put no spaces between them, two signs."""
_TICK = 0.03
"""Seconds between two chunks at least: finer steps cost time and cannot be seen."""


class ScriptedAgent(Agent):
    """Plays a script. Reports everything that any agent can."""

    capabilities = Capabilities(
        tokens=True, tools=True, metadata=True, sly_data=True, structure=True, guardrails=False
    )
    scripted = True
    told_case = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"script", "seed"}))
        given = options.required("script", "agent.script.yaml")
        self.script = read_script(options.path(given, "script"), given)
        if "seed" in options.values:
            self.script.seed = int(options.values["seed"])

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation."""
        return ScriptedSession(self, context)


class ScriptedSession(Session):
    """One conversation: remembers what the patterns captured and the rows of the last answer."""

    def __init__(self, agent: ScriptedAgent, context: SessionContext) -> None:
        self.agent = agent
        self.script = agent.script
        self.context = context
        self.memory: dict[str, str] = {}
        self.rows: list[dict[str, Any]] | None = None
        self.calls = 0

    def restart(self) -> None:
        """Forget what was captured."""
        self.memory.clear()
        self.rows = None

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Play the first rule that matches."""
        began = time.monotonic()
        message = _message(request)
        if request.schema is not None and "data" in (request.schema.get("properties") or {}):
            text = text_of({"data": self.rows})
            yield TextDelta(text)
            usage = _estimate(message, text)
            yield Finished(
                Reply(turn=request.turn, text=text, usage=usage, finish_reason="stop", model="scripted")
            )
            return
        rng = random.Random(
            f"{self.script.seed}:{self.context.case_id}:{self.context.attempt}:{request.turn}"
        )
        answer = await self._answer(request, message, rng)
        said: list[str] = []
        async for event in self._play(answer.steps, "", rng, said):
            yield event
        text = "".join(said)
        usage = _usage(answer) or _estimate(message, text)
        yield UsageReport(usage, answer.cost)
        self.rows = self._filled(answer.rows) if answer.rows is not None else None
        reply = Reply(
            turn=request.turn,
            text=text,
            metadata=self._filled(answer.metadata),
            sly_data=self._filled(answer.sly_data),
            structure=self._filled(answer.structure),
            usage=usage,
            cost=answer.cost,
            latency_ms=round((time.monotonic() - began) * 1000, 1),
            finish_reason=answer.finish,
            model=answer.model or "scripted",
        )
        if answer.verified:
            reply.verified, reply.rows = True, self.rows
            reply.rows_columns = list(self.rows[0]) if self.rows else None
        yield Finished(reply)

    async def _answer(self, request: Request, message: str, rng: random.Random) -> ScriptedAnswer:
        self.memory.update(message=message, turn=str(request.turn), attempt=str(self.context.attempt))
        self.memory.update(case=self.context.case_id, network=self.context.network or "")
        for rule in self.script.rules:
            if await self._matches(rule, request.turn, message):
                return self._vary(rule, rng)
        if self.script.default is not None:
            return self._vary(self.script.default, rng)
        raise AgentError("the script has no rule for this message, and no default", code="no-rule")

    async def _matches(self, rule: Rule, turn: int, message: str) -> bool:
        if rule.turns is not None and turn not in rule.turns:
            return False
        if rule.attempts is not None and self.context.attempt not in rule.attempts:
            return False
        if rule.network is not None and rule.network != self.context.network:
            return False
        if rule.case is not None and rule.case not in self.context.case_id:
            return False
        if rule.text is not None and rule.text not in message.casefold():
            return False
        if rule.regex is not None:
            found = await _found(rule.regex, message)
            if found is None:
                return False
            self.memory.update({name: value for name, value in found.items() if value is not None})
        return True

    def _vary(self, rule: Rule, rng: random.Random) -> ScriptedAnswer:
        attempt = self.context.attempt
        for variant in rule.variants:
            if variant.attempts is not None and attempt in variant.attempts:
                return variant.answer
        free = [variant for variant in rule.variants if variant.attempts is None]
        if not free or not any(variant.weight for variant in free):
            if rule.nothing and rule.answer.is_nothing:
                raise AgentError(f"{rule.nothing} {attempt}", code="no-rule")
            return rule.answer
        return rng.choices(free, [variant.weight for variant in free])[0].answer

    async def _play(
        self, steps: list[ScriptStep], agent: str, rng: random.Random, said: list[str]
    ) -> AsyncIterator[Event]:
        for step in steps:
            if step.after:
                await self._wait(step.after)
            if step.kind in ("say", "think"):
                text = self._text(step.value)
                kind = TextDelta if step.kind == "say" else ReasoningDelta
                async for piece in self._stream(text, step, rng):
                    if step.kind == "say" and not agent:
                        said.append(piece)
                    yield kind(piece, agent)
            elif step.kind == "hand_off":
                to = f"{agent}.{step.value}" if agent else step.value
                yield HandOff(to, agent, self._filled(step.values.get("arguments")))
                async for event in self._play(step.steps, to, rng, said):
                    yield event
            elif step.kind == "call":
                async for event in self._call(step, agent, rng):
                    yield event
            elif step.kind == "message":
                yield Message(self._text(step.value), agent)
            elif step.kind == "note":
                yield Note(self._text(str(step.value)), agent)
            elif step.kind == "retry":
                seconds = float(step.values.get("seconds", 1.0))
                yield Retrying(str(step.value), seconds)
                await self._wait(seconds)
            elif step.kind == "wait":
                await self._wait(step.value)
            elif step.kind == "error":
                raise AgentError(
                    self._text(str(step.value)),
                    status=step.values.get("status"),
                    answer="".join(said),
                    code="" if step.values.get("status") else "reported",
                )

    async def _call(self, step: ScriptStep, agent: str, rng: random.Random) -> AsyncIterator[Event]:
        self.calls += 1
        call_id = str(step.values.get("id") or f"call_{self.calls}")
        if self.script.speed:
            yield ToolCallStarted(call_id, step.value, agent)
            await self._wait(rng.uniform(0.05, 0.2))
        yield ToolCall(call_id, step.value, self._filled(step.values.get("arguments", {})), agent)
        error = step.values.get("error")
        if self.script.speed:
            await self._wait(rng.uniform(0.1, 0.4))
        result = self._filled(step.values.get("result"))
        yield ToolResult(
            call_id, step.value, result, None if error is None else self._text(str(error)), agent
        )

    async def _stream(self, text: str, step: ScriptStep, rng: random.Random) -> AsyncIterator[str]:
        speed = self.script.speed
        if not text:
            return
        if not speed:
            yield text
            return
        rate = float(step.values.get("rate") or self.script.rate) * speed
        waiting, piece = 0.0, ""
        # Each word takes its time; those that fall into one tick go out together.
        words = _WORD.findall(text) or [text]
        for word in words:
            piece += word
            waiting += rng.uniform(0.5, 1.5) / rate
            if waiting >= _TICK:
                await asyncio.sleep(waiting)
                yield piece
                waiting, piece = 0.0, ""
        if piece:
            yield piece

    async def _wait(self, seconds: float) -> None:
        if self.script.speed and seconds:
            await asyncio.sleep(seconds / self.script.speed)

    def _text(self, text: str) -> str:
        if "{{" not in text:
            return text
        return _PLACE.sub(lambda match: self.memory.get(match[1], match[0]), text)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        return value


def _message(request: Request) -> str:
    """The user's message; of a whole conversation, the last one."""
    if request.text is not None:
        return request.text
    for message in reversed(request.messages or ()):
        if isinstance(message, str):
            return message
        if isinstance(message, dict) and message.get("role") == "user":
            return text_of(message.get("content"))
    return ""


def _usage(answer: ScriptedAnswer) -> Usage | None:
    given = answer.usage
    if given is None:
        return None
    return Usage(given.get("input"), given.get("output"), given.get("cached"))


def _estimate(message: str, text: str) -> Usage:
    """Four characters to a token, where the script gives no numbers."""
    return Usage(input_tokens=max(1, len(message) // 4), output_tokens=len(text) // 4)


# -- Patterns of a script. One that runs away (`(a+)+$`) would hold up all cases and every signal: `re` can be ended
# only with its process.

_PATTERN_LIMIT = 2.0
"""Seconds of the processor that a pattern may take on a message: others that need it are not held against it."""
_SEARCH = """
import json, re, signal, sys
for line in sys.stdin.buffer:
    pattern, flags, text, limit = json.loads(line)
    signal.setitimer(signal.ITIMER_PROF, limit)
    found = re.compile(pattern, flags).search(text)
    signal.setitimer(signal.ITIMER_PROF, 0)
    groups = found and {**{str(i): one for i, one in enumerate(found.groups(), 1)}, **found.groupdict()}
    print(json.dumps(groups), flush=True)
"""
"""Ends by itself where the time is up, and with us."""

_Groups = dict[str, str | None]
"""What the groups of a pattern hold, by number and name."""


async def _found(pattern: re.Pattern[str], message: str) -> _Groups | None:
    """What a pattern finds in a message; None where it does not match.

    Raises:
        AgentError: it takes too long.
    """
    if _is_cheap(pattern.pattern, message):
        match = pattern.search(message)
        return match and {**{str(i): one for i, one in enumerate(match.groups(), 1)}, **match.groupdict()}
    return await asyncio.to_thread(_found_elsewhere, pattern, message)


def _is_cheap(pattern: str, message: str) -> bool:
    """Whether a pattern can be tried here: by how many of its repeats have no end, and none in another."""
    known = patterns.translated(_as_javascript(pattern))
    return known is not None and (len(message) + 1) ** (known[1] + 1) <= patterns.STEPS


@lru_cache(maxsize=1024)
def _as_javascript(pattern: str) -> str:
    """A pattern whose repeats are the same, with what JavaScript writes otherwise or does not have taken out."""
    without_flags = re.sub(r"\A\(\?[aimsu]+\)", "", pattern)
    return _OTHER_WORDS.sub(
        lambda one: _WITHOUT.get(one[0], "(" if one[0][0] == "(" else one[0]), without_flags
    )


_OTHER_WORDS = re.compile(r"\\.|\(\?P<\w+>|\(\?<[=!]", re.DOTALL)
_WITHOUT = {"\\A": "", "\\Z": ""}


class PatternSearcher:
    """A process that tries patterns, one after the other; it is begun anew where one has ended it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def ask(self, pattern: re.Pattern[str], message: str) -> _Groups | None:
        """See `_found`.

        Raises:
            OSError, ValueError: no answer came, or no process can be begun.
        """
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SEARCH],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        child, asked = self._child, json.dumps([pattern.pattern, pattern.flags, message, _PATTERN_LIMIT])
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(f"{asked}\n".encode())
            child.stdin.flush()
            return json.loads(child.stdout.readline())
        except (OSError, ValueError):
            self.end()
            raise

    def end(self) -> None:
        """End it."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            for pipe in (child.stdin, child.stdout):
                with suppress(OSError):
                    pipe.close() if pipe is not None else None
            child.wait()

    def __del__(self) -> None:
        self.end()


_of_thread = threading.local()
"""The searcher of a thread: one that a pattern holds up holds up nobody else's."""


def _found_elsewhere(pattern: re.Pattern[str], message: str) -> _Groups | None:
    searcher = getattr(_of_thread, "searcher", None)
    if searcher is None:
        searcher = _of_thread.searcher = PatternSearcher()
    try:
        return searcher.ask(pattern, message)
    except (OSError, ValueError):
        raise AgentError(
            f"the script's pattern {clip(pattern.pattern, 60)} takes more than {_PATTERN_LIMIT:g} s on this message",
            code="no-rule",
        ) from None
