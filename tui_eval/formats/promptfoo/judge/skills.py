"""skill-used: which skills the agent used, from its reply's metadata or from its calls of the skill tool."""

from __future__ import annotations

from typing import Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.formats.promptfoo.judge.spans import arguments_of, from_transcript, matches, tool_name, trace_of
from tui_eval.javascript import values as js

_SKILL_TOOL = "skill"
"""The tool by which agents of the Claude SDK use a skill."""
_SKILL_ARGUMENTS = ("skill", "skill_name", "name", "command")


def skill_used(call: AssertionCall) -> Result:
    """Skills that were used without error: all of a list, or one so many times (`not-`: none of them).

    Raises:
        CannotJudge: it is not written as it must be, or the agent can report neither metadata nor calls.
    """
    value = call.value
    used = _used(call)
    actual = ", ".join(map(_shown, used)) or "(none)"
    if isinstance(value, dict):
        return _counted(call, value, used, actual)
    wanted = [value] if isinstance(value, str) else value
    if (
        not isinstance(wanted, list)
        or not wanted
        or not all(isinstance(item, str) and js.trim(item) for item in wanted)
    ):
        raise CannotJudge(
            "skill-used assertion must have a string, string array, or object value", "bad-assertion"
        )
    wanted = [js.trim(item) for item in wanted]
    names = {item["name"] for item in used}
    found = [name for name in wanted if name in names]
    if call.inverse:
        passed = not found
        reason = f"Forbidden skill(s) were not used: {', '.join(wanted)}"
        if found:
            reason = f"Forbidden skill(s) were used: {', '.join(found)}. Actual skills: {actual}"
    else:
        missing = [name for name in wanted if name not in names]
        passed = not missing
        said = "Missing" if missing else "Observed"
        reason = f"{said} required skill(s): {', '.join(missing or wanted)}. Actual skills: {actual}"
    told = seen.names(wanted, sorted(names), negated=call.inverse)
    return Result(passed, float(passed), reason, actual=sorted(names), evidence=told)


def _used(call: AssertionCall) -> list[dict[str, Any]]:
    """The skills that the metadata reports, else those of the skill tool's calls."""
    metadata = call.reply.metadata or {}
    listed = metadata.get("skillCalls")
    if isinstance(listed, list):
        return [
            item
            for item in listed
            if isinstance(item, dict)
            and isinstance(item.get("name"), str)
            and item.get("is_error") is not True
        ]
    evidence = call.evidence
    if evidence.reference:
        return []
    trace = trace_of(evidence)
    found: list[dict[str, Any]] = []
    for span in (*(trace.spans if trace else ()), *from_transcript(evidence.transcript)):
        if (tool_name(span) or "").lower() != _SKILL_TOOL or span.status == 2:
            continue
        given = arguments_of(span)
        names = [given.get(key) for key in _SKILL_ARGUMENTS] if isinstance(given, dict) else [given]
        name = next((js.trim(name) for name in names if isinstance(name, str) and js.trim(name)), None)
        if name:
            found.append({"name": name, "source": "tool"})
    told = bool(found) or any(entry.kind == "tool_call" for entry in evidence.transcript)
    spans = trace is not None and not trace.problem
    if not (told or spans or evidence.capabilities.metadata or evidence.capabilities.tools):
        raise CannotJudge(
            f"{call.assertion.type}: the agent reports neither skills (metadata.skillCalls) nor tool calls",
            "not-reported",
        )
    return found


def _counted(call: AssertionCall, value: dict[str, Any], used: list[dict[str, Any]], actual: str) -> Result:
    name, pattern = (_text(value.get(key)) for key in ("name", "pattern"))
    if not name and not pattern:
        raise CannotJudge(
            "skill-used assertion object must include a name or pattern property", "bad-assertion"
        )
    low, high = (_bound(value, key) for key in ("min", "max"))
    if low is not None and high is not None and high < low:
        raise CannotJudge(
            "skill-used assertion object max must be greater than or equal to min", "bad-assertion"
        )
    found = [
        item
        for item in used
        if (not name or item["name"] == name) and (not pattern or matches(pattern, item["name"]))
    ]
    count, listing, shown = len(found), ", ".join(map(_shown, found)), pattern or name
    if call.inverse:
        if low is not None or high not in (None, 0):
            raise CannotJudge(
                "not-skill-used object assertions only support name/pattern with no count bounds, or max: 0",
                "bad-assertion",
            )
        reason = f'Forbidden skill "{shown}" was not used. Actual skills: {actual}'
        if count:
            reason = f'Forbidden skill "{shown}" was used {count} time(s). Matches: {listing}'
        told = seen.budget(f"uses of {shown}", count, "==", 0)
        return Result(not count, float(not count), reason, actual=listing, evidence=told)
    least = low if low is not None else 0 if high is not None else 1
    passed = count >= least and (high is None or count <= high)
    bounds = f"at least {least}" if high is None else f"{least}-{high}"
    tail = f". Matches: {listing}" if found else ""
    reason = f'Matched skill "{shown}" {count} time(s) (expected {bounds}){tail}'
    told = seen.between(f"uses of {shown}", count, least, high)
    return Result(passed, float(passed), reason, actual=listing, evidence=told)


def _text(value: Any) -> str:
    return js.trim(value) if isinstance(value, str) else ""


def _bound(value: dict[str, Any], key: str) -> int | None:
    if key not in value:
        return None
    bound = value[key]
    if isinstance(bound, bool) or not isinstance(bound, int | float) or bound < 0 or bound != int(bound):
        raise CannotJudge(
            f"skill-used assertion object {key} must be a finite non-negative integer", "bad-assertion"
        )
    return int(bound)


def _shown(item: dict[str, Any]) -> str:
    details = [str(item[key]) for key in ("source", "path") if item.get(key)]
    return f"{item['name']} ({', '.join(details)})" if details else str(item["name"])
