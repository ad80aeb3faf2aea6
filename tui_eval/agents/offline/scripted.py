"""The embedded agent: answers from a YAML file, so that everything can be seen offline.

A script holds rules, each with what it matches and the steps it then takes; `help/scripted-agents.md`
describes the format, `read_script` reads it. Variation by attempt is seeded: the same run again gives
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
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.loose_json import text_of
from tui_eval.config.project import AgentSpec, ConfigError
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
from tui_eval.yaml.yaml_lines import YamlLines
from tui_eval.yaml.yaml_lines import load as load_yaml

# -- The YAML file of a `scripted` agent: what it may hold, read with errors that name the line.


RATE = 40.0
"""Words per second when a script does not say."""

STEPS = ("say", "think", "call", "hand_off", "message", "note", "retry", "error", "wait")
_STEP_KEYS: dict[str, frozenset[str]] = {
    "say": frozenset({"rate"}),
    "think": frozenset({"rate"}),
    "call": frozenset({"arguments", "result", "error", "id"}),
    "hand_off": frozenset({"steps", "arguments"}),
    "message": frozenset(),
    "note": frozenset(),
    "retry": frozenset({"seconds"}),
    "error": frozenset({"status"}),
    "wait": frozenset(),
}
_ANSWER = frozenset(
    {
        "say",
        "steps",
        "metadata",
        "sly_data",
        "structure",
        "rows",
        "verified",
        "usage",
        "cost",
        "model",
        "finish",
    }
)
_MATCH = frozenset({"text", "contains", "regex", "turn", "network", "case", "attempts"})
_TOP = frozenset({"speed", "seed", "rate", "rules", "default", "description"})


@dataclass(slots=True)
class ScriptStep:
    """One thing the agent does. `values` holds what its kind needs."""

    kind: str
    value: Any
    after: float = 0.0
    values: dict[str, Any] = field(default_factory=dict)
    steps: list[ScriptStep] = field(default_factory=list)


@dataclass(slots=True)
class ScriptedAnswer:
    """What one turn is answered with."""

    steps: list[ScriptStep] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    sly_data: dict[str, Any] | None = None
    structure: dict[str, Any] | None = None
    rows: list[dict[str, Any]] | None = None
    verified: bool = False
    usage: dict[str, int] | None = None
    cost: float | None = None
    model: str | None = None
    finish: str = "stop"

    @property
    def is_nothing(self) -> bool:
        """Whether nobody wrote what is answered."""
        facts = (self.metadata, self.sly_data, self.structure, self.rows)
        return not self.steps and self.finish == "stop" and all(one is None for one in facts)


@dataclass(slots=True)
class Variant:
    """An answer for some attempts, or taken at random by weight."""

    answer: ScriptedAnswer
    weight: float = 1.0
    attempts: frozenset[int] | None = None


@dataclass(slots=True)
class Rule:
    """When (`None`: always) and what."""

    answer: ScriptedAnswer
    text: str | None = None
    regex: re.Pattern[str] | None = None
    turns: frozenset[int] | None = None
    attempts: frozenset[int] | None = None
    network: str | None = None
    case: str | None = None
    variants: list[Variant] = field(default_factory=list)
    nothing: str = ""
    """What is said of an attempt which none of its variants is for, where it answers nothing itself."""


@dataclass(slots=True)
class Script:
    """A whole file. `speed` multiplies every pace: 0 does not wait at all, 2 is twice as fast."""

    rules: list[Rule] = field(default_factory=list)
    default: Rule | None = None
    speed: float = 1.0
    seed: int = 0
    rate: float = RATE


def read_script(path: Path, shown: str) -> Script:
    """Read a script.

    Raises:
        ConfigError: `shown:line: key: what is wrong`, one line.
    """
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{shown}: is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror or error}") from None
    document = load_yaml(text, shown)
    if document.problems:
        raise ConfigError(str(document.problems[0]))
    return _Reader(shown, document.lines).script(document.value)


class _Reader:
    def __init__(self, shown: str, lines: YamlLines) -> None:
        self.shown = shown
        self.lines = lines

    def wrong(self, at: tuple[Any, ...], message: str) -> ConfigError:
        key = ".".join(str(part) for part in at)
        line = self.lines.at(*at) or 1  # of an empty file
        return ConfigError(f"{self.shown}:{line}: {key + ': ' if key else ''}{message}")

    def script(self, value: Any) -> Script:
        if not isinstance(value, dict):
            raise self.wrong((), "a script is a mapping with rules")
        self.known(value, _TOP, ())
        rules = value.get("rules", [])
        if not isinstance(rules, list):
            raise self.wrong(("rules",), "must be a list")
        default = value.get("default")
        script = Script(
            rules=[self.rule(rule, ("rules", index)) for index, rule in enumerate(rules)],
            default=None if default is None else self.rule(default, ("default",)),
            speed=self.number(value, "speed", (), 1.0),
            seed=int(self.number(value, "seed", (), 0)),
            rate=self.number(value, "rate", (), RATE),
        )
        if not script.rules and script.default is None:
            raise self.wrong((), "has neither rules nor a default, so it could answer nothing")
        if script.rate <= 0:
            raise self.wrong(("rate",), "must be above zero (words per second)")
        return script

    def rule(self, value: Any, at: tuple[Any, ...]) -> Rule:
        if isinstance(value, str):
            value = {"say": value}
        if not isinstance(value, dict):
            raise self.wrong(at, "must be a mapping with match and say or steps")
        self.known(value, _ANSWER | {"match", "attempts", "vary"}, at)
        answer = self.answer(value, at, ScriptedAnswer())
        rule = Rule(answer, attempts=self.numbers(value, "attempts", at))
        self.match(rule, value.get("match"), (*at, "match"))
        variants = value.get("vary", [])
        if not isinstance(variants, list):
            raise self.wrong((*at, "vary"), "must be a list")
        for index, item in enumerate(variants):
            place = (*at, "vary", index)
            if not isinstance(item, dict):
                raise self.wrong(place, "must be a mapping")
            self.known(item, _ANSWER | {"weight", "attempts"}, place)
            attempts = self.numbers(item, "attempts", place)
            weight = self.number(item, "weight", place, 1.0)
            rule.variants.append(Variant(self.answer(item, place, answer), weight, attempts))
        # An empty answer that nobody wrote would pass whatever must not be said.
        for index, variant in enumerate(rule.variants):
            self.answers(variant.answer, (*at, "vary", index))
        if not any(one.weight and one.attempts is None for one in rule.variants):
            told = {number for one in rule.variants for number in one.attempts or ()}
            if not told or (rule.attempts or {*range(1, max(told))}) - told:
                self.answers(answer, at)
            rule.nothing = f"{self.wrong(at, 'answers nothing')} in attempt"  # the suite may ask for no more
        return rule

    def answers(self, answer: ScriptedAnswer, at: tuple[Any, ...]) -> None:
        if answer.is_nothing:
            raise self.wrong(at, 'answers nothing: give say or steps (say: "" for an answer without a word)')

    def match(self, rule: Rule, value: Any, at: tuple[Any, ...]) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            value = {"text": value}
        self.known(value, _MATCH, at)
        text = value.get("text", value.get("contains"))
        if text is not None:
            text = str(text)
            if len(text) > 2 and text.startswith("/") and text.endswith("/"):
                rule.regex = self.pattern(text[1:-1], at)
            else:
                rule.text = text.casefold()
        if value.get("regex") is not None:
            rule.regex = self.pattern(str(value["regex"]), (*at, "regex"))
        rule.turns = self.numbers(value, "turn", at)
        rule.attempts = self.numbers(value, "attempts", at) or rule.attempts
        rule.network = None if value.get("network") is None else str(value["network"])
        rule.case = None if value.get("case") is None else str(value["case"])

    def answer(self, value: dict[str, Any], at: tuple[Any, ...], base: ScriptedAnswer) -> ScriptedAnswer:
        changes: dict[str, Any] = {}
        if "say" in value and "steps" in value:
            raise self.wrong((*at, "say"), "give say or steps, not both")
        if "say" in value:
            changes["steps"] = [ScriptStep("say", self.said(value["say"], (*at, "say")))]
        elif "steps" in value:
            changes["steps"] = self.steps(value["steps"], (*at, "steps"))
        for key in ("metadata", "sly_data", "structure"):
            if key in value:
                if value[key] is not None and not isinstance(value[key], dict):
                    raise self.wrong((*at, key), "must be a mapping")
                changes[key] = value[key]
        if "rows" in value:
            rows = value["rows"]
            if rows is not None and not (
                isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
            ):
                raise self.wrong((*at, "rows"), "must be a list of mappings")
            changes["rows"] = rows
        if "usage" in value:
            changes["usage"] = self.usage(value["usage"], (*at, "usage"))
        if "verified" in value:
            changes["verified"] = value["verified"] is True
        if "cost" in value:
            changes["cost"] = self.number(value, "cost", at, 0.0)
        for key in ("model", "finish"):
            if value.get(key) is not None:
                changes[key] = str(value[key])
        return replace(base, **changes)

    def usage(self, value: Any, at: tuple[Any, ...]) -> dict[str, int] | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(at, "must be a mapping {input, output, cached}")
        self.known(value, frozenset({"input", "output", "cached"}), at)
        return {key: int(self.number(value, key, at, 0)) for key in value}

    def steps(self, value: Any, at: tuple[Any, ...]) -> list[ScriptStep]:
        if not isinstance(value, list):
            raise self.wrong(at, "must be a list of steps")
        return [self.step(item, (*at, index)) for index, item in enumerate(value)]

    def step(self, value: Any, at: tuple[Any, ...]) -> ScriptStep:
        if isinstance(value, str):
            return ScriptStep("say", value)
        if not isinstance(value, dict):
            raise self.wrong(at, f"must be a mapping with one of {', '.join(STEPS)}")
        # A call may have an error of its own, so the first of these names decides.
        kind = next((name for name in STEPS if name in value), None)
        if kind is None:
            raise self.wrong(at, f"must have one of {', '.join(STEPS)}")
        self.known(value, _STEP_KEYS[kind] | {kind, "after"}, at)
        step = ScriptStep(kind, value[kind], self.number(value, "after", at, 0.0))
        if kind in ("say", "think", "message"):
            step.value = self.said(value[kind], (*at, kind))
        if kind == "wait":
            step.value = self.number(value, "wait", at, 0.0)
        if kind in ("call", "hand_off") and not isinstance(step.value, str):
            raise self.wrong((*at, kind), "must be a name")
        step.values = {key: item for key, item in value.items() if key not in (kind, "after", "steps")}
        for key in ("rate", "seconds", "status"):
            if key in value:
                self.number(value, key, at, 0.0)
        if value.get("rate") == 0:
            raise self.wrong((*at, "rate"), "must be above zero (words per second)")
        if "steps" in value:
            step.steps = self.steps(value["steps"], (*at, "steps"))
        return step

    def said(self, value: Any, at: tuple[Any, ...]) -> str:
        if isinstance(value, (dict, list)):
            raise self.wrong(at, "must be text")
        return "" if value is None else str(value)

    def pattern(self, text: str, at: tuple[Any, ...]) -> re.Pattern[str]:
        try:
            return re.compile(text, re.IGNORECASE | re.DOTALL)
        except re.error as error:
            raise self.wrong(at, f"is not a regular expression: {error}") from None

    def number(self, value: dict[str, Any], key: str, at: tuple[Any, ...], default: float) -> float:
        found = value.get(key, default)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < 1e9:
            raise self.wrong((*at, key), "must be a number, zero or above")
        return found

    def numbers(self, value: dict[str, Any], key: str, at: tuple[Any, ...]) -> frozenset[int] | None:
        found = value.get(key)
        if found is None:
            return None
        items = found if isinstance(found, list) else [found]
        if not items or not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            raise self.wrong((*at, key), "must be a whole number or a list of them")
        return frozenset(items)

    def known(self, value: dict[str, Any], known: frozenset[str], at: tuple[Any, ...]) -> None:
        for key in value:
            if key not in known:
                raise self.wrong((*at, key), f"is not known here; known: {', '.join(sorted(known))}")


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
        self.script: Script = read_script(options.path(given, "script"), given)
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
