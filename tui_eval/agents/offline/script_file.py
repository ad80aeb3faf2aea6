"""The YAML file of a `scripted` agent: what it may hold, read with errors that name the line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tui_eval.config.project import ConfigError
from tui_eval.guard.paths import read_words
from tui_eval.guard.spelling import close_to
from tui_eval.yaml.yaml_lines import YamlLines
from tui_eval.yaml.yaml_lines import load as load_yaml

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
        text = read_words(path)
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
            slips = ((key, close_to(str(key), STEPS)) for key in value)
            key, meant = next((slip for slip in slips if slip[1]), ("", None))
            if meant:
                raise self.wrong((*at, key), f"is not known here; did you mean {meant}?")
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
                meant = close_to(str(key), known)
                cure = f"did you mean {meant}?" if meant else f"known: {', '.join(sorted(known))}"
                raise self.wrong((*at, key), f"is not known here; {cure}")
