"""trajectory:*: which steps the agent took, from a trace or from what it reported while it answered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import js
from tui_eval.assertions.promptfoo.call import Call, Result

_TOOL_NAMES = ("tool.name", "tool_name", "gen_ai.tool.name", "function.name", "ai.toolCall.name")
_TOOL_ARGUMENTS = (
    "tool.arguments",
    "tool.args",
    "tool.input",
    "gen_ai.tool.call.arguments",
    "function.arguments",
    "ai.toolCall.args",
    "input.value",
)
_COMMAND = re.compile(r"(?:exec|command|run|shell|bash)[: ]\s*(.+)", re.IGNORECASE | re.DOTALL)
_SEARCH = re.compile(r"search[: ]\s*\"?(.*?)\"?\s*", re.IGNORECASE | re.DOTALL)
_REASONING = re.compile(r"(?:reasoning|thinking)\b.*", re.IGNORECASE | re.DOTALL)
_MESSAGE = re.compile(r"(?:agent |assistant )?(?:message|response)\b.*", re.IGNORECASE | re.DOTALL)

# Names come from the agent; patterns with several `*` take long on long ones.
_LONGEST_NAME = 500


@dataclass(slots=True)
class Step:
    """One step: its kind (tool, command, search, reasoning, message, span), name and arguments."""

    kind: str
    name: str
    span: str
    arguments: Any = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def spans_of(call: Call) -> list[dict[str, Any]] | None:
    """The spans of the reply's trace (`metadata.trace`) in order of time; None without a trace."""
    trace = (call.reply.metadata or {}).get("trace")
    if not isinstance(trace, dict) or not isinstance(trace.get("spans"), list):
        return None
    spans = [span for span in trace["spans"] if isinstance(span, dict)]
    return sorted(spans, key=lambda span: _number(span.get("startTime")))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def steps_of(call: Call) -> list[Step]:
    """The agent's steps.

    Raises:
        CannotJudge: there is no trace, and the agent reports no tool calls (`compat: reference`
            wants a trace).
    """
    spans = spans_of(call)
    if spans is not None:
        return [_step(span) for span in spans]
    evidence = call.evidence
    entries = [] if evidence.reference else evidence.transcript
    if not entries or not (
        evidence.capabilities.tools or any(entry.kind == "tool_call" for entry in entries)
    ):
        raise CannotJudge(f"No trace data available for {call.kind} assertion")
    steps = []
    for entry in entries:
        if entry.kind == "tool_call":
            steps.append(Step("tool", entry.name, entry.name, entry.arguments))
        elif entry.kind in ("reasoning", "assistant"):
            kind = "reasoning" if entry.kind == "reasoning" else "message"
            steps.append(Step(kind, kind, kind))
        elif entry.kind == "hand_off":
            steps.append(Step("span", entry.name, entry.name, entry.arguments))
    return steps


def _step(span: dict[str, Any]) -> Step:
    name = str(span.get("name") or "")[:_LONGEST_NAME]
    attributes = span.get("attributes") if isinstance(span.get("attributes"), dict) else {}
    assert isinstance(attributes, dict)
    tool = next((attributes[key] for key in _TOOL_NAMES if attributes.get(key)), None)
    if tool is not None:
        given = next((attributes[key] for key in _TOOL_ARGUMENTS if key in attributes), None)
        return Step("tool", str(tool), name, _parsed(given))
    for kind, pattern in (("command", _COMMAND), ("search", _SEARCH)):
        if (found := pattern.fullmatch(name)) and found.group(1):
            return Step(kind, found.group(1).strip(), name)
    if _REASONING.fullmatch(name):
        return Step("reasoning", name, name)
    if _MESSAGE.fullmatch(name):
        return Step("message", name, name)
    return Step("span", name, name)


def _parsed(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return js.parse_json(value)
        except (ValueError, RecursionError):
            return value
    return value


@lru_cache(maxsize=512)
def glob(pattern: str) -> re.Pattern[str]:
    """A pattern with `*` and `?`, the whole name, ignoring case."""
    pieces = (
        ".*" if part == "*" else "." if part == "?" else re.escape(part)
        for part in re.split(r"([*?])", pattern)
    )
    return re.compile(re.sub(r"(?:\.\*)+", ".*", "".join(pieces)), re.IGNORECASE | re.DOTALL)


def _matches(step: Step, pattern: str) -> bool:
    expression = glob(pattern)
    return any(expression.fullmatch(name[:_LONGEST_NAME]) for name in (step.name, step.span))


def _listing(steps: Iterable[Step]) -> str:
    return ", ".join(map(str, steps)) or "(none)"


def _pattern(value: dict[str, Any], kind: str) -> str:
    wanted = value.get("name") or value.get("pattern")
    if not isinstance(wanted, str):
        raise CannotJudge(f"{kind} assertion object must include a name or pattern property")
    return wanted


def _range(low: Any, high: Any) -> str:
    if low is not None and high is not None:
        return f"{js.string(low)}-{js.string(high)}"
    return f"at least {js.string(low)}" if high is None else f"at most {js.string(high)}"


def _within(count: int, low: Any, high: Any) -> bool:
    return (low is None or count >= low) and (high is None or count <= high)


def tool_used(call: Call) -> Result:
    """Tools that must have been called: all of a list, or one so many times."""
    value = call.value
    tools = [step for step in steps_of(call) if step.kind == "tool"]
    actual = _listing(tools)
    if isinstance(value, dict):
        wanted = _pattern(value, call.kind)
        low, high = value.get("min", 1), value.get("max")
        found = [step for step in tools if _matches(step, wanted)]
        holds = _within(len(found), low, high)
        if call.inverse:
            reason = (
                f'Tool "{wanted}" matched {len(found)} time(s), which violates the inverse assertion'
                if holds
                else f'Tool "{wanted}" did not satisfy the forbidden match condition'
            )
            return Result(not holds, float(not holds), reason, actual=actual)
        tail = f". Matches: {_listing(found)}" if found else ""
        reason = f'Matched tool "{wanted}" {len(found)} time(s) (expected {_range(low, high)}){tail}'
        return Result(holds, float(holds), reason, actual=actual)
    wanted_list = [value] if isinstance(value, str) else value
    if (
        not isinstance(wanted_list, list)
        or not wanted_list
        or not all(isinstance(w, str) for w in wanted_list)
    ):
        raise CannotJudge(f"{call.kind} assertion must have a string, string array, or object value")
    used = [name for name in wanted_list if any(_matches(step, name) for step in tools)]
    if call.inverse:
        if used:
            reason = f"Forbidden tool(s) were used: {', '.join(used)}. Actual tools: {actual}"
            return Result(False, 0.0, reason, actual=actual)
        return Result(True, 1.0, f"Forbidden tool(s) were not used: {', '.join(wanted_list)}", actual=actual)
    missing = [name for name in wanted_list if name not in used]
    if missing:
        reason = f"Missing required tool(s): {', '.join(missing)}. Actual tools: {actual}"
        return Result(False, 0.0, reason, actual=actual)
    reason = f"Observed required tool(s): {', '.join(wanted_list)}. Actual tools: {actual}"
    return Result(True, 1.0, reason, actual=actual)


def tool_sequence(call: Call) -> Result:
    """Steps in order, with others between them (`in_order`) or not (`exact`)."""
    value = call.value
    if isinstance(value, dict):
        wanted, exact = value.get("steps"), value.get("mode") == "exact"
    else:
        wanted, exact = value, False
    if not isinstance(wanted, list):
        raise CannotJudge(f"{call.kind} assertion must have an array or object value")
    if not wanted:
        raise CannotJudge(f"{call.kind} assertion requires at least one expected step")
    expected = [
        (step, "tool") if isinstance(step, str) else (_pattern(step, call.kind), step.get("type") or "tool")
        for step in wanted
        if isinstance(step, str | dict)
    ]
    kinds = {kind for _, kind in expected}
    steps = [step for step in steps_of(call) if step.kind in kinds]
    actual = _listing(steps)
    found: list[Step] = []
    lacking = ""
    if exact:
        holds = len(steps) == len(expected) and all(
            step.kind == kind and _matches(step, name)
            for step, (name, kind) in zip(steps, expected, strict=True)
        )
        failed = (
            f"Expected exact tool sequence {', '.join(name for name, _ in expected)}. Actual tools: {actual}"
        )
        reason = f"Observed exact tool sequence: {actual}" if holds else failed
    else:
        rest = iter(steps)
        for name, kind in expected:
            step = next((step for step in rest if step.kind == kind and _matches(step, name)), None)
            if step is None:
                lacking = name
                break
            found.append(step)
        holds = not lacking
        reason = (
            f"Observed tool sequence in order: {_listing(found)}. Actual tools: {actual}"
            if holds
            else f'Expected tool "{lacking}" was not observed in order. Actual tools: {actual}'
        )
    if call.inverse:
        reason = (
            f"Forbidden tool sequence was observed. Actual tools: {actual}"
            if holds
            else "Forbidden tool sequence was not observed"
        )
    passed = holds != call.inverse
    return Result(passed, float(passed), reason, actual=actual)


def tool_args_match(call: Call) -> Result:
    """Some call of a tool has the arguments: at least these (`partial`) or just these (`exact`)."""
    value = call.value
    if not isinstance(value, dict):
        raise CannotJudge(f"{call.kind} assertion must have an object value")
    wanted = _pattern(value, call.kind)
    expected = value.get("args", value.get("arguments"))
    if expected is None:
        raise CannotJudge(f"{call.kind} assertion object must include an args or arguments property")
    mode = value.get("mode", "partial")
    if mode not in ("partial", "exact"):
        raise CannotJudge(f'{call.kind} assertion mode must be "partial" or "exact"')
    tools = [step for step in steps_of(call) if step.kind == "tool"]
    calls = [step for step in tools if _matches(step, wanted)]
    observed = "; ".join(js.json_text(step.arguments) for step in calls)
    for step in calls:
        matched, note = _arguments_match(step.arguments, expected, value, exact=mode == "exact")
        if not matched:
            continue
        shown = f"on {step}. Args: {js.json_text(step.arguments)}"
        if call.inverse:
            reason = f'Forbidden argument match for tool "{wanted}" was observed {shown}'
            return Result(False, 0.0, reason, actual=observed)
        reason = f'Tool "{wanted}" matched expected arguments ({mode}) {shown}{note}'
        return Result(True, 1.0, reason, actual=observed)
    if call.inverse:
        why = f". Observed args: {observed}" if calls else " because no tool call matched it"
        reason = f'Forbidden argument match for tool "{wanted}" was not observed{why}'
        return Result(True, 1.0, reason, actual=observed)
    if not calls:
        reason = f'No tool call matched "{wanted}". Actual tools: {_listing(tools)}'
    else:
        reason = (
            f'No call to tool "{wanted}" matched expected arguments ({mode}): {js.json_text(expected)}. '
            f"Observed args: {observed}"
        )
    return Result(False, 0.0, reason, actual=observed)


def _arguments_match(given: Any, expected: Any, value: dict[str, Any], *, exact: bool) -> tuple[bool, str]:
    ignore = value.get("ignore") or []
    patterns = [ignore] if isinstance(ignore, str) else ignore
    defaults = value.get("defaults") if isinstance(value.get("defaults"), dict) else {}
    assert isinstance(defaults, dict)
    dropped: list[str] = []
    by_default: list[str] = []
    if isinstance(given, dict) and isinstance(expected, dict):
        dropped = [key for key in given if any(glob(str(pattern)).fullmatch(key) for pattern in patterns)]
        by_default = [
            key
            for key, default in defaults.items()
            if key in given
            and key not in expected
            and key not in dropped
            and _same(given[key], default, True)
        ]
        given = {key: item for key, item in given.items() if key not in (*dropped, *by_default)}
        expected = {key: item for key, item in expected.items() if key not in dropped}
    note = f". Ignored argument(s): {', '.join(dropped)}" if dropped else ""
    note += f". Ignored default argument(s): {', '.join(by_default)}" if by_default else ""
    return _same(given, expected, exact), note


def _same(given: Any, expected: Any, exact: bool) -> bool:
    if isinstance(given, bool) or isinstance(expected, bool):
        return given is expected
    if isinstance(expected, dict) and isinstance(given, dict):
        if exact and given.keys() != expected.keys():
            return False
        return all(key in given and _same(given[key], item, exact) for key, item in expected.items())
    if isinstance(expected, list) and isinstance(given, list):
        return len(given) == len(expected) and all(
            _same(one, other, exact) for one, other in zip(given, expected, strict=True)
        )
    return given == expected


def step_count(call: Call) -> Result:
    """How many steps of some kind or name there were, between `min` and `max`."""
    value = call.value
    if not isinstance(value, dict):
        raise CannotJudge(f"{call.kind} assertion must have an object value")
    low, high = value.get("min"), value.get("max")
    if low is None and high is None:
        raise CannotJudge(f"{call.kind} assertion must include a min or max property")
    kinds = value.get("type")
    wanted_kinds = [kinds] if isinstance(kinds, str) else kinds
    name = value.get("name") or value.get("pattern")
    found = [
        step
        for step in steps_of(call)
        if (not wanted_kinds or step.kind in wanted_kinds) and (not name or _matches(step, str(name)))
    ]
    holds = _within(len(found), low, high)
    actual = _listing(found)
    if call.inverse:
        verb = "satisfied" if holds else "did not satisfy"
        return Result(
            not holds, float(not holds), f"Trajectory step count {verb} the forbidden range", actual=actual
        )
    about = [f"type={'|'.join(map(str, wanted_kinds))}"] if wanted_kinds else []
    about += [f"pattern={name}"] if name else []
    described = f" for {', '.join(about)}" if about else ""
    tail = f". Matches: {actual}" if found else ""
    reason = f"Matched {len(found)} trajectory step(s){described} (expected {_range(low, high)}){tail}"
    return Result(holds, float(holds), reason, actual=actual)
