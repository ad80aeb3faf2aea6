"""trajectory:*: which steps the agent took, how often, in which order and with which arguments.

promptfoo takes what it does not understand (a mode, a kind of step, a bound that is text) for nothing said, so
that a `not-` or a maximum passes by accident: here that is an error, save under `compat: reference`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, cast

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.formats.promptfoo.judge.spans import (
    arguments_of,
    command_of,
    matches,
    query_of,
    source_for_steps,
    tool_name,
)
from tui_eval.javascript import values as js
from tui_eval.model import Evidence, TraceSpan

# -- The steps: what kind each span of a trace is, and what it was called with. Rules as seen in promptfoo 0.121.20
# (formats/promptfoo.md 14).


Kind = Literal["tool", "command", "search", "reasoning", "message", "span"]
KINDS: tuple[Kind, ...] = ("tool", "command", "search", "reasoning", "message", "span")

_COMMAND_TOOLS = frozenset(("exec_command", "local_shell", "shell"))

_REASONING = re.compile(r"reasoning([_\s]|$)", re.IGNORECASE)


@dataclass(slots=True)
class TrajectoryStep:
    """One step. `names` are all that a pattern may fit; `arguments` is UNSET where none were reported."""

    kind: Kind
    name: str
    names: tuple[str, ...]
    arguments: Any = UNSET

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    def fits(self, pattern: str) -> bool:
        """Whether one of its names fits a pattern."""
        return any(matches(pattern, name) for name in self.names)


@dataclass(slots=True)
class Steps:
    """All steps in the order of time; `note` ends the reason where they do not come from a trace."""

    all: list[TrajectoryStep]
    note: str = ""

    def of(self, kinds: Iterable[str]) -> list[TrajectoryStep]:
        """The steps of some kinds."""
        wanted = frozenset(kinds)
        return [step for step in self.all if step.kind in wanted]


def steps_of(call: AssertionCall) -> Steps:
    """The steps that the agent took.

    Raises:
        CannotJudge: nothing is known of them.
    """
    source = source_for_steps(call)
    tools = _COMMAND_TOOLS | {js.trim(name).lower() for name in source.command_tools if js.trim(name)}
    ordered = sorted(source.spans, key=_when) if all(_timed(span) for span in source.spans) else source.spans
    return Steps([_step(span, tools) for span in ordered], source.note)


def _timed(span: TraceSpan) -> bool:
    return span.start is not None


def _when(span: TraceSpan) -> tuple[float, float]:
    start = cast(float, span.start)
    return start, start if span.end is None else span.end


def _step(span: TraceSpan, command_tools: frozenset[str]) -> TrajectoryStep:
    tool = tool_name(span)
    runs_commands = tool is not None and tool.lower() in command_tools
    command = command_of(span, runs_commands)
    if command and (runs_commands or tool is None):
        names = [span.name, command, *([tool] if tool else []), command.split()[0]]
        return TrajectoryStep(
            "command", command, tuple(names), arguments_of(span) if runs_commands else UNSET
        )
    if tool is not None:
        return TrajectoryStep("tool", tool, (span.name, tool), arguments_of(span))
    if query := query_of(span):
        return TrajectoryStep("search", query, (span.name, query))
    kind = span.attributes.get("codex.item.type")
    if kind == "reasoning" or _REASONING.match(span.name):
        return TrajectoryStep("reasoning", span.name, (span.name, "reasoning"))
    if kind == "agent_message" or span.name in ("agent response", "send input"):
        return TrajectoryStep("message", span.name, (span.name, "message"))
    return TrajectoryStep("span", span.name, (span.name,))


# -- The arguments of a tool call against those expected: in part or whole, some ignored, some by default.


@dataclass(slots=True)
class Expected:
    """What `trajectory:tool-args-match` expects; `reference` as promptfoo does to the letter."""

    arguments: Any
    mode: str
    defaults: dict[str, Any]
    ignore: list[str]
    reference: bool

    @classmethod
    def read(cls, value: dict[str, Any], call: AssertionCall) -> Expected:
        """From the assertion's value.

        Raises:
            CannotJudge: a part of it is not as it must be.
        """
        kind = call.kind
        arguments = value["args"] if "args" in value else value.get("arguments", UNSET)
        if arguments is UNSET:
            raise CannotJudge(f"{kind} assertion must include an args or arguments property", "bad-assertion")
        mode = value.get("mode", "partial")
        if mode not in ("partial", "exact"):
            raise CannotJudge(f'{kind} assertion mode must be "partial" or "exact"', "bad-assertion")
        defaults = value.get("defaults", {})
        if not isinstance(defaults, dict):
            raise CannotJudge(
                f"{kind} assertion defaults must be an object mapping argument names to default values",
                "bad-assertion",
            )
        given = value.get("ignore", [])
        ignore = given if isinstance(given, list) else [given]
        if not all(isinstance(entry, str) and js.trim(entry) for entry in ignore):
            raise CannotJudge(
                f"{kind} assertion ignore must be a non-empty string or an array of non-empty strings",
                "bad-assertion",
            )
        return cls(arguments, mode, defaults, ignore, call.evidence.reference)

    def ignores(self, key: str) -> bool:
        """Whether an argument is left out on both sides: its name, or a pattern that fits it."""
        return any(
            entry == key or (("*" in entry or "?" in entry) and matches(entry, key)) for entry in self.ignore
        )


def compared(given: Any, expected: Expected) -> tuple[bool, str]:
    """Whether a call's arguments are as expected, and what was left out, for the reason.

    An argument that has its default value is left out, also where it is expected (promptfoo; by our own
    rules an argument that is expected is looked at).
    """
    wanted = expected.arguments
    dropped: list[str] = []
    by_default: list[str] = []
    if isinstance(wanted, dict):
        wanted = {key: item for key, item in wanted.items() if not expected.ignores(key)}
    if isinstance(given, dict):
        dropped = [key for key in given if expected.ignores(key)]
        left = {key: item for key, item in given.items() if key not in dropped}
        named = wanted if isinstance(wanted, dict) and not expected.reference else {}
        by_default = [
            key
            for key, item in left.items()
            if key not in named and key in expected.defaults and _equal(item, expected.defaults[key])
        ]
        given = {key: item for key, item in left.items() if key not in by_default}
    note = f". Ignored argument(s): {', '.join(dropped)}" if dropped else ""
    note += f". Ignored default argument(s): {', '.join(by_default)}" if by_default else ""
    holds = _equal(given, wanted) if expected.mode == "exact" else _contains(given, wanted)
    return holds, note


def compared_value(given: Any, wanted: Any, expected: Expected) -> bool:
    """Whether one argument is as expected, by the mode."""
    return _equal(given, wanted) if expected.mode == "exact" else _contains(given, wanted)


def _contains(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(given, dict) and all(
            key in given and _contains(given[key], item) for key, item in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(given, list) and len(given) == len(wanted) and all(map(_contains, given, wanted))
    return _equal(given, wanted)


def _equal(given: Any, wanted: Any) -> bool:
    """Deeply and strictly, as JavaScript: 1 is 1.0, but neither `"1"` nor true."""
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    if isinstance(given, dict) and isinstance(wanted, dict):
        return given.keys() == wanted.keys() and all(_equal(given[key], wanted[key]) for key in given)
    if isinstance(given, list) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(_equal, given, wanted))
    if isinstance(given, float) and isinstance(wanted, float) and math.isnan(given):
        return math.isnan(wanted)
    return type(given) is type(wanted) and given == wanted if isinstance(given, str) else given == wanted


KEPT = 100
"""Steps that a verdict keeps."""


def tool_used(call: AssertionCall) -> Result:
    """Tools that must have been called: all of a list, or one so many times."""
    value = call.value
    steps = steps_of(call)
    tools = steps.of(("tool",))
    if isinstance(value, dict):
        return _used_so_often(call, value, tools, steps.note)
    wanted = [value] if isinstance(value, str) else value
    if not isinstance(wanted, list) or not all(isinstance(item, str) for item in wanted):
        raise CannotJudge(
            f"{call.kind} assertion must have a string, string array, or object value", "bad-assertion"
        )
    if not wanted:
        raise CannotJudge(f"{call.kind} assertion requires at least one expected tool", "bad-assertion")
    if not call.evidence.reference and not all(js.trim(item) for item in wanted):
        raise CannotJudge(
            f"{call.kind} assertion names an empty tool, which any tool would satisfy", "bad-assertion"
        )
    used = [name for name in wanted if any(_fits(step, name) for step in tools)]
    actual = listing(tools)
    shown = ", ".join(name or "*" for name in wanted)
    if call.inverse:
        passed = not used
        reason = f"Forbidden tool(s) were not used: {shown}"
        if used:
            forbidden = ", ".join(name or "*" for name in used)
            reason = f"Forbidden tool(s) were used: {forbidden}. Actual tools: {actual}"
    else:
        missing = [name for name in wanted if name not in used]
        passed = not missing
        said = "Missing" if missing else "Observed"
        reason = f"{said} required tool(s): {', '.join(missing) or shown}. Actual tools: {actual}"
    pieces = [_places(name, tools, call.inverse) for name in wanted[: seen.MOST]]
    return Result(passed, float(passed), reason + steps.note, actual=told(tools), evidence=pieces)


def _places(wanted: str, steps: list[TrajectoryStep], negated: bool) -> Evidence:
    """At which of the steps a tool was called."""
    numbers = [number for number, step in enumerate(steps, 1) if _fits(step, wanted)]
    there, gone = ("forbidden-call", "call-absent") if negated else ("called", "not-called")
    name = seen.cut(wanted or "*")
    if numbers:
        return Evidence("step", there, text=name, call=numbers[0], actual=numbers[: seen.MOST])
    names = list(dict.fromkeys(step.name for step in steps))[: seen.MOST]
    return Evidence("step", gone, text=name, actual=names)


def _used_so_often(
    call: AssertionCall, value: dict[str, Any], tools: list[TrajectoryStep], note: str
) -> Result:
    wanted = _pattern(value, call, "object")
    low, high = _bound(value, "min", call), _bound(value, "max", call)
    low = 1 if low is None else low
    if "type" in value:
        tools = [step for step in tools if step.kind in _kinds(value["type"], call)]
    found = [step for step in tools if _fits(step, wanted)]
    holds = _within(len(found), low, high)
    passed = holds != call.inverse
    if call.inverse:
        reason = f'Tool "{wanted}" did not satisfy the forbidden match condition'
        if holds:
            reason = f'Tool "{wanted}" matched {len(found)} time(s), which violates the inverse assertion'
    else:
        tail = f". Matches: {listing(found)}" if found else ""
        reason = f'Matched tool "{wanted}" {len(found)} time(s) (expected {_range(low, high)}){tail}'
    pieces = seen.between(f"calls of {wanted}", len(found), low, high, negated=call.inverse)
    for piece in pieces:
        piece.text = seen.cut(wanted)
    return Result(passed, float(passed), reason + note, actual=told(tools), evidence=pieces)


def tool_sequence(call: AssertionCall) -> Result:
    """Steps in order, with others between them (`in_order`) or not (`exact`).

    Steps of another kind than `tool` are looked at where one is expected (promptfoo knows tools alone).
    """
    value = call.value
    given = value.get("steps") or [] if isinstance(value, dict) else value
    mode = value.get("mode") or "in_order" if isinstance(value, dict) else "in_order"
    if not isinstance(given, list):
        raise CannotJudge(f"{call.kind} assertion must have an array or object value", "bad-assertion")
    steps = steps_of(call)
    expected = [_expected_step(item, call, number) for number, item in enumerate(given, 1)]
    if not expected:
        raise CannotJudge(f"{call.kind} assertion requires at least one expected step", "bad-assertion")
    if mode not in ("in_order", "exact") and not call.evidence.reference:
        raise CannotJudge(f'{call.kind} assertion mode must be "in_order" or "exact"', "bad-assertion")
    looked_at = {"tool"} if call.evidence.reference else {kind for _, kinds in expected for kind in kinds}
    taken = steps.of(looked_at)
    actual = listing(taken)
    names = [name for name, _ in expected]
    if mode == "exact":
        holds = len(taken) == len(expected) and all(map(_is, taken, expected))
        reason = f"Observed exact tool sequence: {actual}"
        if not holds:
            reason = f"Expected exact tool sequence of {', '.join(names)}, but actual tools were {actual}"
    else:
        found: list[TrajectoryStep] = []
        for step in taken:
            if len(found) < len(expected) and _is(step, expected[len(found)]):
                found.append(step)
        holds = len(found) == len(expected)
        reason = f"Observed tool sequence in order: {listing(found)}. Actual tools: {actual}"
        if not holds:
            reason = f'Expected tool "{names[len(found)]}" was not observed in order. Actual tools: {actual}'
    if call.inverse:
        reason = "Forbidden tool sequence was not observed"
        if holds:
            reason = f"Forbidden tool sequence was observed. Actual tools: {actual}"
    passed = holds != call.inverse
    mended = "" if set(looked_at) == {"tool"} else " (promptfoo looks at tools alone)"
    pieces = _order(expected, taken, exact=mode == "exact", negated=call.inverse, holds=holds)
    return Result(passed, float(passed), reason + mended + steps.note, actual=told(taken), evidence=pieces)


def _order(
    expected: list[tuple[str, tuple[str, ...]]],
    taken: list[TrajectoryStep],
    *,
    exact: bool,
    negated: bool,
    holds: bool,
) -> list[Evidence]:
    """Each expected step and where it came after the one before it (`row` counts the others between them, where
    there may be none), as far as they were in order."""
    if negated:
        return [seen.rule("forbidden-order" if holds else "holds")]
    found: list[Evidence] = []
    after = 0
    for item in expected[: seen.MOST]:
        numbers = [number for number, step in enumerate(taken, 1) if _is(step, item)]
        name = seen.cut(item[0] or "*")
        number = next((number for number in numbers if number > after), None)
        if number is None:
            found.append(Evidence("step", "not-in-order", text=name, row=after, actual=numbers[: seen.MOST]))
            return found
        between = number - after - 1 if exact else 0
        code = "not-in-order" if between else "called"
        found.append(Evidence("step", code, text=name, call=number, row=between, actual=numbers[: seen.MOST]))
        after = number
    if exact and len(taken) > after:
        found.append(Evidence("budget", "over", path="steps", actual=len(taken), rule="<=", expected=after))
    return found


def _expected_step(item: Any, call: AssertionCall, number: int) -> tuple[str, tuple[str, ...]]:
    if isinstance(item, str) and item:
        return item, ("tool",)
    if not isinstance(item, dict):
        item = {}
    name = _pattern(item, call, f"step {number}")
    return name, _kinds(item["type"], call) if item.get("type") else ("tool",)


def _is(step: TrajectoryStep, expected: tuple[str, tuple[str, ...]]) -> bool:
    name, kinds = expected
    return step.kind in kinds and _fits(step, name)


def tool_args_match(call: AssertionCall) -> Result:
    """Some call of a tool has the arguments: at least these (`partial`) or just these (`exact`)."""
    steps = steps_of(call)
    value = call.value
    if not isinstance(value, dict):
        raise CannotJudge(f"{call.kind} assertion must have an object value", "bad-assertion")
    wanted = _pattern(value, call, "object")
    expected = Expected.read(value, call)
    tools = steps.of(("tool",))
    if "type" in value:
        tools = [step for step in tools if step.kind in _kinds(value["type"], call)]
    calls = [step for step in tools if _fits(step, wanted)]
    captured = [step for step in calls if step.arguments is not UNSET]
    if call.inverse and calls and not captured and not call.evidence.reference:
        raise CannotJudge(
            f'{call.assertion.type}: tool "{wanted}" was called, but its arguments were not captured',
            "not-reported",
        )
    observed = ", ".join(js.json_text(step.arguments) for step in captured) or "(none)"
    holds, reason = False, ""
    for step in captured:
        holds, ignored = compared(step.arguments, expected)
        if holds:
            shown = f"{step}. Args: {js.json_text(step.arguments)}"
            reason = f'Tool "{wanted}" matched expected arguments ({expected.mode}) on {shown}{ignored}'
            if call.inverse:
                reason = f'Forbidden argument match for tool "{wanted}" was observed on {shown}'
            break
    if not holds and call.inverse:
        why = f". Observed args: {observed}" if calls else " because no tool call matched it"
        reason = f'Forbidden argument match for tool "{wanted}" was not observed{why}'
    elif not holds and not calls:
        reason = f'No tool call matched "{wanted}". Actual tools: {listing(tools)}'
    elif not holds and not captured:
        reason = (
            f'Tool "{wanted}" was observed but no arguments were captured. Actual tools: {listing(tools)}'
        )
    elif not holds:
        reason = (
            f'No call to tool "{wanted}" matched expected arguments ({expected.mode}): '
            f"{js.json_text(expected.arguments)}. Observed args: {observed}"
        )
    passed = holds != call.inverse
    pieces = _argument_pieces(call, wanted, expected, calls, tools, passed)
    return Result(passed, float(passed), reason + steps.note, actual=told(calls or tools), evidence=pieces)


def _argument_pieces(
    call: AssertionCall,
    wanted: str,
    expected: Expected,
    calls: list[TrajectoryStep],
    tools: list[TrajectoryStep],
    passed: bool,
) -> list[Evidence]:
    """The call that came closest, argument by argument."""
    if not calls:
        return [_places(wanted, tools, call.inverse)]
    captured = [
        (number, step.arguments) for number, step in enumerate(calls, 1) if step.arguments is not UNSET
    ]
    name = seen.cut(wanted)
    if call.inverse or passed:
        code = "forbidden-call" if not passed else "call-absent" if call.inverse else "called"
        return [Evidence("call", code, text=name)]
    if not captured:
        return [Evidence("call", "no-arguments", text=name, call=1)]
    number, given = seen.closest(expected.arguments, captured)
    pieces = seen.arguments(
        name, number, expected.arguments, given, lambda item, there: compared_value(there, item, expected)
    )
    if not any(
        piece.code in ("wrong-arguments", "absent-argument") for piece in pieces
    ):  # what is exact has too many
        pieces += [
            Evidence("call", "wrong-arguments", text=name, call=number, path=piece.path, rule="extra")
            for piece in pieces
            if piece.code == "other-argument"
        ][:1]
    return pieces


def step_count(call: AssertionCall) -> Result:
    """How many steps of some kind or name there were, between `min` and `max`."""
    value = call.value
    steps = steps_of(call)
    if not isinstance(value, dict):
        raise CannotJudge(f"{call.kind} assertion must have an object value", "bad-assertion")
    low, high = _bound(value, "min", call), _bound(value, "max", call)
    if low is None and high is None:
        raise CannotJudge(f"{call.kind} assertion must include a min or max property", "bad-assertion")
    some = value.get("type") not in (None, "")
    kinds = _kinds(value["type"], call) if some else ()
    pattern = value.get("pattern") or value.get("name")
    found = steps.of(kinds) if some else steps.all
    if pattern:
        wanted = _pattern(value, call, "object")
        found = [step for step in found if _fits(step, wanted)]
    holds = _within(len(found), low, high)
    passed = holds != call.inverse
    actual = listing(found)
    if call.inverse:
        verb = "satisfied" if holds else "did not satisfy"
        reason = f"Trajectory step count {verb} the forbidden range"
    else:
        about = [f"type={'|'.join(kinds)}"] if some else []
        about += [f"pattern={pattern}"] if pattern else []
        described = f" for {', '.join(about)}" if about else ""
        tail = f". Matches: {actual}" if found else ""
        reason = f"Matched {len(found)} trajectory step(s){described} (expected {_range(low, high)}){tail}"
    pieces = seen.between("steps", len(found), low, high, negated=call.inverse)
    for piece in pieces:
        piece.text = seen.cut(str(pattern)) if pattern else ""
    return Result(passed, float(passed), reason + steps.note, actual=told(found), evidence=pieces)


def listing(steps: Iterable[TrajectoryStep]) -> str:
    """Steps as reasons name them."""
    return ", ".join(map(str, steps)) or "(none)"


def told(steps: Iterable[TrajectoryStep]) -> list[dict[str, Any]]:
    """Steps as a verdict keeps them: name, kind where it is no tool, arguments where they are known."""
    found: list[dict[str, Any]] = []
    for step in islice(steps, KEPT):
        one: dict[str, Any] = {"name": step.name}
        if step.kind != "tool":
            one["kind"] = step.kind
        if step.arguments is not UNSET:
            one["args"] = step.arguments
        found.append(one)
    return found


def _fits(step: TrajectoryStep, pattern: str) -> bool:
    return not pattern or step.fits(pattern)


def _pattern(value: dict[str, Any], call: AssertionCall, what: str) -> str:
    wanted = value.get("pattern") or value.get("name")
    if not isinstance(wanted, str):
        raise CannotJudge(
            f"{call.kind} assertion {what} must include a name or pattern property", "bad-assertion"
        )
    return wanted


def _kinds(given: Any, call: AssertionCall) -> tuple[str, ...]:
    kinds = tuple(map(js.string, given)) if isinstance(given, list) else (js.string(given),)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown and not call.evidence.reference:
        raise CannotJudge(
            f'{call.kind} assertion type "{unknown[0]}" is none of {", ".join(KINDS)}', "bad-assertion"
        )
    if not kinds and not call.evidence.reference:
        raise CannotJudge(f"{call.kind} assertion type is an empty list, which no step fits", "bad-assertion")
    return kinds


def _bound(value: dict[str, Any], key: str, call: AssertionCall) -> float | None:
    bound = value.get(key)
    if isinstance(bound, int | float) and not isinstance(bound, bool):
        return bound
    if bound is not None and not call.evidence.reference:
        raise CannotJudge(f"{call.kind} assertion {key} must be a number", "bad-assertion")
    return None


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{js.string(low)}-{js.string(high)}"
    return f"at least {js.string(low)}" if high is None else f"at most {js.string(high)}"


def _within(count: int, low: float | None, high: float | None) -> bool:
    return (low is None or count >= low) and (high is None or count <= high)
