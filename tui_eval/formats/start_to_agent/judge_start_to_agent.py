"""StartToAgent's `expected`: failure texts as the guide's harness prints them (seed 001).

Content is judged on the last reply; tools, calls and tokens on the whole conversation, each reply's where
that reply has them; metadata is the last reply's over earlier ones'. What the agent's type cannot report at
all is an error; what it can report but left out counts as the guide's default (0, false, none), said in the
reason of a pass. `compat: reference` has the guide's harness to the letter: defaults always, unknown keys
ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement
from tui_eval.assertions.judging import verdict_of
from tui_eval.guard import figures
from tui_eval.model import Assertion, Evidence, Verdict

_GUIDE_ORDER = {
    key: place
    for place, key in enumerate(
        (
            "should_contain",
            "should_not_contain",
            "escalated",
            "escalation_priority",
            "tools_used",
            "max_tool_calls",
            "max_input_tokens",
            "max_output_tokens",
        )
    )
}
_MISSING = object()
_GUIDE_KEYS = frozenset(
    (
        "should_contain",
        "should_not_contain",
        "escalated",
        "tools_used",
        "max_tool_calls",
        "max_input_tokens",
        "max_output_tokens",
    )
)
_LEFT_OUT = "the agent did not report it, counted as"


def judge(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> Verdict | None:
    """Judge one key of `expected`; a key without a rule of its own is looked up in the metadata."""
    kind = assertion.type
    if evidence.reference and kind not in _GUIDE_KEYS:
        return None
    if not evidence.replies:
        raise CannotJudge(f"{kind}: the agent gave no reply", "no-reply")
    if kind in ("should_contain", "should_not_contain"):
        return _content(assertion, evidence)
    if kind == "escalated":
        return _escalated(assertion, evidence)
    if kind == "tools_used":
        return _tools_used(assertion, evidence)
    if kind == "max_tool_calls":
        total, note = _tool_calls(evidence)
        able = evidence.capabilities.tools or evidence.reference
        return _limit(assertion, total, able, "tool calls", evidence.unknown, note)
    if kind in ("max_input_tokens", "max_output_tokens"):
        total, note = _tokens(evidence, kind.removeprefix("max_"))
        able = evidence.capabilities.tokens or evidence.reference
        return _limit(assertion, total, able, "tokens", evidence.unknown, passing=note)
    return _behaviour(assertion, evidence)


def _content(assertion: Assertion, evidence: JudgeInput) -> Verdict:
    reply = evidence.reply()
    text = (reply.text if reply else "") or ""
    lowered = text.lower()
    wanted = [str(item) for item in _listed(assertion.value)]
    if assertion.type == "should_contain":
        wrong = [item for item in wanted if item.lower() not in lowered]
        reasons = [f"should_contain: '{item}' not found in response" for item in wrong]
        good = "found in response"
    else:
        wrong = [item for item in wanted if item.lower() in lowered]
        reasons = [f"should_not_contain: '{item}' was found in response" for item in wrong]
        good = "not in response"
    forbidden = assertion.type == "should_not_contain"
    told = seen.texts(text, wanted, ignoring_case=True, forbidden=forbidden)
    return verdict_of(assertion, not wrong, "; ".join(reasons) or good, told, actual=text)


def _escalated(assertion: Assertion, evidence: JudgeInput) -> Verdict:
    found = metadata_of(evidence).get("escalated", _MISSING)
    _reportable(assertion, evidence, found, evidence.capabilities.metadata, "metadata")
    if found is _MISSING:
        _require_metadata(assertion, evidence)
    actual = False if found is _MISSING else found
    if actual != assertion.value:
        reason = _not_as_expected(assertion, actual, evidence)
        told = [seen.differs("escalated", assertion.value, actual)]
        return verdict_of(assertion, False, reason, told, actual=actual)
    _require_metadata(assertion, evidence)
    note = f" ({_LEFT_OUT} False)" if found is _MISSING else ""
    told = [seen.differs("escalated", assertion.value, actual, code="holds")]
    return verdict_of(assertion, True, f"escalated is {actual}{note}", told, actual=actual)


def _tools_used(assertion: Assertion, evidence: JudgeInput) -> Verdict:
    named: list[str] = []
    reported: Any = _MISSING
    unread: Any = None
    for reply in evidence.replies:
        listed = (reply.metadata or {}).get("tools_used", _MISSING)
        if listed is not _MISSING:
            reported = listed
            names = _names(listed, evidence)
            unread = listed if "" in names else unread
            named += names
    used = [name for name in named if name]
    used += (entry.name for entry in evidence.transcript if entry.kind == "tool_call")
    found = _MISSING if reported is _MISSING and not used else used
    _reportable(assertion, evidence, found, evidence.capabilities.tools, "tool calls")
    wanted = [str(item) for item in _listed(assertion.value)]
    missing = set(wanted) - set(used)
    used = list(dict.fromkeys(used))
    told = [
        one
        for one in seen.names(wanted, used, kind="call")
        if one.code != "other-call"  # others may be called
    ]
    if missing:
        _require_metadata(assertion, evidence)
        if "" in named:
            raise CannotJudge(
                f"tools_used: the agent's metadata says {str(unread)[:40]}, which is no list of names",
                "not-reported",
            )
        return verdict_of(assertion, False, missing_tools_text(missing), told, actual=used)
    return verdict_of(assertion, True, f"{', '.join(wanted)} called".lstrip(), told, actual=used)


def _tool_calls(evidence: JudgeInput) -> tuple[int | float | None, str]:
    """How many calls there were, and where that is not what the agent counts itself why: a reply counts fewer, or none,
    than it names or than were seen (*ours*: for the guide's harness the count alone counts)."""
    replies, given = evidence.replies, _said(evidence, "tool_call_count")
    *seen, after = figures.calls_seen(replies, evidence.transcript)
    after = max(after, (evidence.tool_call_count or 0) - sum(seen))
    counts = [*(calls if said is None else said for calls, said in zip(seen, given, strict=True)), after]
    told = [said for said in given if said is not None]
    known = bool(told) or evidence.tool_call_count is not None
    if evidence.reference:
        return sum(counts) if known or any(counts) else None, ""
    added: dict[str, int] = {}
    for place, reply in enumerate(replies):
        named = len(figures.tools((reply.metadata or {}).get("tools_used")))
        most = max(named, seen[place])
        if most > counts[place]:
            counts[place] = most
            where = "named in tools_used" if named == most else "seen"
            added[where] = added.get(where, 0) + most
    total = sum(counts)
    if not added:
        return total if known or total else None, ""
    parts = [where if many == total else f"{many} {where}" for where, many in added.items()]
    said = f"tool_call_count says {sum(told)}" if told else "no count was reported"
    return total, f"{', '.join(parts)}; {said}"


def _tokens(evidence: JudgeInput, name: str) -> tuple[Any, str]:
    """How many tokens there were, and a note on the turns that do not say."""
    total, silent = figures.tokens_said(_said(evidence, name), evidence.replies, evidence.usage, name)
    turns = f"turn{'s' * (len(silent) > 1)} {', '.join(map(str, silent))}"
    return total, f"{turns}: {_LEFT_OUT} 0" if silent and total is not None else ""


def _limit(
    assertion: Assertion,
    total: Any,
    reportable: bool,
    what: str,
    unknown: Mapping[str, str],
    counted: str = "",
    passing: str = "",
) -> Verdict:
    """`counted` says where the total is from, if not from the agent's own count; `passing` what a pass rests on."""
    kind, limit = assertion.type, assertion.value
    if total is None and not reportable:
        raise CannotJudge(f"{kind}: this type of agent does not report {what}", "not-reported")
    if not isinstance(limit, int | float):
        raise CannotJudge(f"{kind}: the limit {limit!r} is not a number", "bad-assertion")
    actual = 0 if total is None else total
    said = unknown.get(kind.removeprefix("max_").replace("_", " ")) or (not total and unknown.get("metadata"))
    if actual <= limit and said:
        raise CannotJudge(f"{kind}: {said}", "not-reported")
    told = seen.budget(kind.removeprefix("max_").replace("_", " "), actual, "<=", limit)
    note = f" ({_LEFT_OUT} 0)" if total is None else f" ({words})" if (words := counted or passing) else ""
    if actual > limit:
        reason = f"{kind}: {actual} > {limit}{note if counted else ''}"
        return verdict_of(assertion, False, reason, told, actual=actual)
    return verdict_of(assertion, True, f"{actual} ≤ {limit}{note}", told, actual=actual)


def _behaviour(assertion: Assertion, evidence: JudgeInput) -> Verdict:
    kind, value = assertion.type, assertion.value
    found = metadata_of(evidence).get(kind, _MISSING)
    _reportable(assertion, evidence, found, evidence.capabilities.metadata, "metadata")
    if found is _MISSING or found == value:
        _require_metadata(assertion, evidence)
    if found is _MISSING:
        if kind == "escalation_priority":
            told = [_not_in_metadata(kind, evidence)] if value is not None else [seen.rule("holds")]
            return verdict_of(assertion, value is None, f"{kind}: expected {value}, got None", told)
        reason = f"{kind}: expected {value}, but the metadata has no {kind!r}"
        return verdict_of(assertion, False, reason, [_not_in_metadata(kind, evidence)])
    if found != value:
        reason = _not_as_expected(assertion, found, evidence)
        return verdict_of(assertion, False, reason, [seen.differs(kind, value, found)], actual=found)
    told = [seen.differs(kind, value, found, code="holds")]
    return verdict_of(assertion, True, f"{kind} is {found}", told, actual=found)


def _not_as_expected(assertion: Assertion, found: Any, evidence: JudgeInput) -> str:
    """The guide's text; *ours*: where it would name the same twice (3 and "3"), what sets the two apart."""
    kind, value = assertion.type, assertion.value
    if evidence.reference or str(value).strip().casefold() != str(found).strip().casefold():
        return f"{kind}: expected {value}, got {found}"
    wanted, given = seen.kind_of(value), seen.kind_of(found)
    if wanted == given:
        return f"{kind}: expected {value!r}, got {found!r}"
    return f"{kind}: expected {wanted} {value!r}, got {given} {found!r}"


def _not_in_metadata(kind: str, evidence: JudgeInput) -> Evidence:
    names = list(map(str, metadata_of(evidence)))[: seen.MOST]
    return Evidence("missing", "none", path=f"metadata.{kind}", text="metadata", rule=kind, actual=names)


def metadata_of(evidence: JudgeInput) -> dict[str, Any]:
    """The metadata of the conversation: the last reply's, over earlier ones'."""
    merged: dict[str, Any] = {}
    for reply in evidence.replies:
        if reply.metadata:
            merged.update(reply.metadata)
    return merged


def _said(evidence: JudgeInput, name: str) -> list[int | float | None]:
    """What each reply's metadata says under this name; None where it does not."""
    said = [(reply.metadata or {}).get(name) for reply in evidence.replies]
    if evidence.reference:
        for value, reply in zip(said, evidence.replies, strict=True):
            # One that is null is not left out, where the reply's usage does not have it.
            null = (
                value is None and name in (reply.metadata or {}) and getattr(reply.usage, name, None) is None
            )
            if null or (value is not None and not isinstance(value, int | float)):
                raise _ends_there(name, value)
        return said
    for value in said:
        if value is not None and figures.count(value, name) is None:
            raise CannotJudge(
                f"{name}: the agent's metadata says {str(value)[:40]!r}, which is no count", "not-reported"
            )
    return said


def _reportable(assertion: Assertion, evidence: JudgeInput, found: Any, able: bool, what: str) -> None:
    if found is _MISSING and not able and not evidence.reference:
        raise CannotJudge(f"{assertion.type}: this type of agent does not report {what}", "not-reported")


def _require_metadata(assertion: Assertion, evidence: JudgeInput) -> None:
    """Refuse where the agent reported metadata that is none: what it says there is not known."""
    if said := evidence.unknown.get("metadata"):
        raise CannotJudge(f"{assertion.type}: {said}", "not-reported")


def _names(listed: Any, evidence: JudgeInput) -> list[str]:
    """The tools that a reply's `tools_used` names; for the guide's harness the members of whatever it is: an object is
    not the name in it, and a text is its letters."""
    if not evidence.reference:
        return figures.tools(listed)
    if not isinstance(listed, str | Mapping | list | tuple | set | frozenset):
        raise _ends_there("tools_used", listed)
    return [name for name in listed if isinstance(name, str) and name]


def _ends_there(name: str, value: Any) -> CannotJudge:
    return CannotJudge(
        f"{name}: the agent's metadata says {str(value)[:40]!r}, at which the guide's code ends with an error",
        "not-reported",
    )


def _listed(value: Any) -> list[Any]:
    """A scalar where a list is meant is a list of one."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    return [] if value is None else [value]


def missing_tools_text(missing: Iterable[str]) -> str:
    """The StartToAgent guide's text for tools that were not called, sorted."""
    return f"tools_used: missing {{{', '.join(map(repr, sorted(missing)))}}}"


def in_the_guides_order(verdicts: list[Verdict]) -> None:
    """Sort StartToAgent's verdicts as the guide's harness checks them, whatever the file's order.

    All failing `tools_used` get the guide's one text that names every missing tool.
    """
    verdicts.sort(key=lambda verdict: _GUIDE_ORDER.get(verdict.type, len(_GUIDE_ORDER)))
    failing = [verdict for verdict in verdicts if verdict.type == "tools_used" and verdict.passed is False]
    if len(failing) < 2:
        return
    missing = {str(verdict.expected) for verdict in failing if not isinstance(verdict.expected, list)}
    for verdict in failing:
        if isinstance(verdict.expected, list):
            missing |= {str(item) for item in verdict.expected} - set(verdict.actual or ())
    for verdict in failing:
        verdict.reason = missing_tools_text(missing)
