"""Assertions on tool and function calls in the output."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import JudgeInput
from tui_eval.formats.promptfoo.judge import code, expected_values
from tui_eval.formats.promptfoo.judge.assertion_call import PASSED, AssertionCall, Result, invariant, read
from tui_eval.formats.promptfoo.judge.json_schema import mismatch
from tui_eval.guard.trust import JAVASCRIPT_ENDINGS
from tui_eval.javascript import values as js
from tui_eval.model import Evidence

_LINE = r"[^\n\r\u2028\u2029]+"  # JavaScript's `.+`
_MCP_ERROR = re.compile(rf"MCP Tool Error \(([^)]+)\): ({_LINE})")
_MCP_RESULT = re.compile(r"MCP Tool Result \(([^)]+)\):")


def tool_call_f1(call: AssertionCall) -> Result:
    """F1 of the set of tools called against the set expected; `threshold` 1.

    Where the output names no call, those that the agent reported count (`compat: reference` looks
    at the output alone).
    """
    value = call.value
    invariant(
        isinstance(value, str | list),
        '"tool-call-f1" assertion requires a value: array of tool names or comma-separated string',
    )
    # As promptfoo: a stray comma expects a tool without a name, which the reason shows.
    expected = (
        {js.trim(name) for name in value.split(",")} if isinstance(value, str) else {*map(js.string, value)}
    )
    invariant(value != [], '"tool-call-f1" assertion requires at least one expected tool name')
    called = called_tools(call.output)
    if not called and not call.evidence.reference:
        called = {entry.name for entry in call.evidence.transcript if entry.kind == "tool_call"}
    common = len(expected & called)
    precision = common / len(called) if called else 0.0
    recall = common / len(expected) if expected else 0.0
    score = 2 * precision * recall / (precision + recall) if common else 0.0
    threshold = 1.0 if call.threshold is None else call.threshold
    passed = (score >= threshold) != call.inverse
    lists = f"Expected: [{', '.join(sorted(expected))}], Called: [{', '.join(sorted(called)) or '(none)'}]"
    if passed:
        reason = f"Tool Call F1: {js.fixed(score, 3)} (precision={js.fixed(precision, 3)}, recall={js.fixed(recall, 3)}). {lists}"
    else:
        where = "above" if call.inverse else "below"
        reason = (
            f"Tool Call F1 score {js.fixed(score, 3)} is {where} threshold {js.number_text(threshold)}. "
            f"{lists}. Precision={js.fixed(precision, 3)}, Recall={js.fixed(recall, 3)}"
        )
    told = seen.names(sorted(expected), sorted(called), negated=call.inverse)
    told += seen.budget("F1", score, ">=", threshold, negated=call.inverse)
    return Result(passed, score, reason, actual=sorted(called), evidence=told)


def called_tools(output: Any) -> set[str]:
    """Names of the tools that an output calls, in the shapes of OpenAI, Anthropic and Gemini.

    Text is read as JSON as a whole, else line by line.
    """
    if isinstance(output, str):
        try:
            whole = js.trim(output)[:1] in ("{", "[", '"')
            return called_tools(js.parse_json(output)) if whole else _by_line(output)
        except (ValueError, RecursionError):
            return _by_line(output)
    if isinstance(output, list):
        return set().union(*(_of_item(item) for item in output if isinstance(item, dict)))
    if not isinstance(output, dict):
        return set()
    # The first shape that fits says all: what stands in another beside it does not count.
    if isinstance(listed := output.get("tool_calls"), list):
        items = [item for item in listed if isinstance(item, dict)]
        return set().union(*(_named(item) | _named(item.get("function")) for item in items))
    if output.get("type") == "tool_use" and _named(output):
        return _named(output)
    if isinstance(call := output.get("functionCall"), dict | list):
        return _named(call)
    inner = output.get("toolCall")
    functions = inner.get("functionCalls") if isinstance(inner, dict) else None
    return set().union(*map(_named, functions if isinstance(functions, list) else ()))


def _of_item(item: dict[str, Any]) -> set[str]:
    """The name of one call of a list, by the first shape that fits: Anthropic's, Gemini's, OpenAI's, its own."""
    if item.get("type") == "tool_use" and _named(item):
        return _named(item)
    for key in ("functionCall", "function"):
        if isinstance(item.get(key), dict | list):
            return _named(item[key])
    return _named(item)


def _by_line(text: str) -> set[str]:
    names: set[str] = set()
    for line in map(js.trim, text.split("\n")):
        if line[:1] in ("{", "["):
            try:
                names |= called_tools(js.parse_json(line))
            except (ValueError, RecursionError):
                continue
    return names


def _named(call: Any) -> set[str]:
    name = call.get("name") if isinstance(call, dict) else None
    return {name} if isinstance(name, str) else set()


async def tools_call(call: AssertionCall) -> Result:
    """Each OpenAI tool call fits the provider's `config.tools`; `not-` makes no difference.

    Where the output, as text, reports tools of an MCP server, one error among them fails it, wherever it stands.
    """
    output = call.output
    told = output if isinstance(output, str) else js.json_text(output)
    if "MCP Tool Error" in told:
        found = _MCP_ERROR.search(told)
        name, said = found.groups() if found else ("unknown", "unknown error")
        return _bad(call, f"MCP tool call failed for {name}: {said}")
    if "MCP Tool Result" in told:
        found = _MCP_RESULT.search(told)
        name = found[1] if found else "unknown"
        reason = f"MCP tool call succeeded for {name}"
        return Result(True, 1.0, reason, actual=call.text, evidence=[Evidence("call", "holds", text=name)])
    given: Any = output.get("tool_calls") if isinstance(output, dict) else output
    listed: list[Any] = given if isinstance(given, list) else []
    calls = [item.get("function") for item in listed if isinstance(item, dict)]
    if not calls or len(calls) != len(listed) or not all(map(_is_call, calls)):
        reason = f"OpenAI did not return a valid-looking tools response: {js.json_text(output)}"
        return _none(call, reason)
    tools = await _configured(call, "tools")
    if tools is None:
        return _bad(call, "No tools configured in provider, but output contains tool calls")
    functions = [
        tool["function"]
        for tool in tools
        if isinstance(tool, dict) and tool.get("type") == "function" and "function" in tool
    ]
    return _against(call, calls, functions)


async def function_call(call: AssertionCall) -> Result:
    """An OpenAI function call fits the provider's `config.functions`; `not-` makes no difference."""
    output = call.output
    given = output.get("function_call", output) if isinstance(output, dict) else None
    if not _is_call(given):
        reason = f"OpenAI did not return a valid-looking function call: {js.json_text(output)}"
        return _none(call, reason)
    functions = await _configured(call, "functions")
    if functions is None:
        return _bad(call, "No functions configured in provider, but output contains a function call")
    return _against(call, [given], functions)


def _is_call(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and isinstance(value.get("arguments"), str)
    )


def _against(call: AssertionCall, calls: list[Any], functions: list[Any]) -> Result:
    schemas: dict[Any, dict[str, Any]] = {}
    for function in functions:  # of several with one name the first counts
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            schemas.setdefault(function["name"], function)
    if call.evidence.reference:  # promptfoo does not know a function without `parameters`
        schemas = {name: function for name, function in schemas.items() if function.get("parameters")}
    for given in calls:
        name = given["name"]
        if name not in schemas:
            reason = f'Called "{name}", but there is no function with that name'
            return _bad(call, reason, name)
        try:
            arguments = js.parse_json(given["arguments"])
        except (ValueError, RecursionError) as error:
            return _bad(call, f"Arguments of {name} are not JSON: {error}", name)
        schema = schemas[name].get("parameters")
        if not isinstance(schema, dict) or not schema:
            continue
        wrong = mismatch(schema, arguments, len(given["arguments"]))
        if wrong:
            return _bad(call, f'Call to "{name}" does not match schema: {wrong}', name)
    return Result(True, 1.0, PASSED, actual=call.text, evidence=[Evidence("call", "holds")])


def _bad(call: AssertionCall, reason: str, tool: str = "") -> Result:
    """A call that is wrong."""
    told = [Evidence("call", "bad-call", text=seen.cut(reason), path=seen.cut(tool))]
    return Result(False, 0.0, reason, actual=call.text, evidence=told)


def _none(call: AssertionCall, reason: str) -> Result:
    """No call; text with JSON in it is none."""
    try:
        looks_like_one = isinstance(js.parse_json(call.text), dict | list)
    except (ValueError, RecursionError):
        looks_like_one = False
    words = "the reply is text with JSON in it" if looks_like_one else "the reply is text"
    told = [Evidence("missing", "no-call", text=words, rule="json" if looks_like_one else "text")]
    return Result(False, 0.0, reason, actual=call.text, evidence=told)


async def _configured(call: AssertionCall, key: str) -> list[Any] | None:
    """What the provider's `config` lists under a key, with what it names as `file://…` read: JSON, YAML, or a function
    of Python or JavaScript that gives it. None where it lists nothing."""
    given = _provider_config(call).get(key)
    if not isinstance(given, list) and not expected_values.is_file(given):
        return None
    found: list[Any] = []
    for one in given if isinstance(given, list) else [given]:
        if isinstance(one, str) and expected_values.is_file(one):
            one = await _of_file(one, call.evidence)
        found += one if isinstance(one, list) else [one]
    return found


async def _of_file(reference: str, evidence: JudgeInput) -> Any:
    path, function = expected_values.split_reference(reference)
    target = expected_values.place(path, evidence)
    if target.suffix == ".py" or target.suffix in JAVASCRIPT_ENDINGS:
        named = function or "get_tools"
        return await code.call_file_with(target, named, evidence, [], module_default=function is None)
    return expected_values.parsed(path, target.suffix, await asyncio.to_thread(read, target))


def _provider_config(call: AssertionCall) -> dict[str, Any]:
    provider = call.evidence.case.provider
    if isinstance(provider, dict):
        if len(provider) == 1 and isinstance(inner := next(iter(provider.values())), dict):
            provider = inner if "config" in inner else provider
        config = provider.get("config")
        if isinstance(config, dict):
            return config
    return {}
