"""Why an assertion did not hold, shown in what the agent did: for the Assertions and Transcript tabs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.amounts import cost, duration
from tui_eval.tui.state.json_lines import parsed, short
from tui_eval.tui.state.lines import Line, Mark, Span, marked, one_line
from tui_eval.tui.state.near_text import nearest_line, text_explained
from tui_eval.tui.state.past import CasePast, budget_of, usual
from tui_eval.tui.state.reply import reply_text
from tui_eval.tui.state.tool_comparison import tools_explained
from tui_eval.tui.state.tool_pairing import pair

BAR = 30
"""Columns of a budget's bar."""
_AJV = re.compile(r"\bdata((?:/[^\n]*?)?) (must [^\n]+)")


def explained(verdict: Verdict, attempt: Attempt, past: CasePast | None = None) -> Iterator[Line]:
    """What was looked for, in the reply, the calls or the numbers. Nothing where the verdict's own
    expected and actual say it all."""
    kind = verdict.type.removeprefix("not-")
    if kind in ("is-json", "contains-json"):
        yield from _json(verdict, reply_text(attempt, verdict))
    elif budget_of(verdict.type) or budget_of(verdict.target):
        yield from _budget(verdict, past)
    elif "tool" in verdict.type or verdict.target.split(".")[0] == "tools":
        yield from tools_explained(verdict, pair(attempt.transcript))
    elif verdict.target.split(".")[0] in ("sly_data", "structure", "metadata") and "." in verdict.target:
        yield from _path(verdict, attempt)
    else:
        yield from text_explained(verdict, reply_text(attempt, verdict), attempt)


def in_short(verdict: Verdict, attempt: Attempt) -> Iterator[Line]:
    """The same in at most four lines, for the Transcript."""
    if verdict.passed is not False:
        return
    line = nearest_line(verdict, reply_text(attempt, verdict))
    if line is not None:
        yield line
    elif "tool" in verdict.type or verdict.target.split(".")[0] == "tools":
        lines = tools_explained(verdict, pair(attempt.transcript))
        wrong = [one for one in lines if any(s.style in ("failed", "differs", "missing") for s in one)]
        yield from wrong[:4]
    elif _AJV.search(verdict.reason):
        yield from list(_json(verdict, reply_text(attempt, verdict)))[:2]


def _json(verdict: Verdict, text: str) -> Iterator[Line]:
    """Where the text stops being JSON, or the value that breaks the schema, by its path, and the rule."""
    found = _AJV.search(verdict.reason)
    if found is None:
        if verdict.type == "is-json" and verdict.passed is False:
            yield from _not_json(text)
        return
    keys = [key for key in found.group(1).split("/") if key]
    value, reached = _follow(_object_in(text), keys)
    yield (Span("at    ", "label"), Span(_json_path(keys), "json-key"))
    yield (Span("rule  ", "label"), Span(one_line(found.group(2), 200), "failed"))
    if reached == len(keys):
        yield (Span("is    ", "label"), Span(short(value, 200), "differs"))
    rule = _rule(verdict.expected, keys)
    if rule is not None:
        yield (Span("schema", "label"), Span(" " + short(rule, 200), "muted"))


def _not_json(text: str) -> Iterator[Line]:
    try:
        json.loads(text[:200_000])
    except (ValueError, RecursionError) as error:
        place = getattr(error, "pos", 0)
        words = getattr(error, "msg", str(error))
        line = text.count("\n", 0, place) + 1
        yield (Span(f"no JSON from line {line}: {one_line(words, 100)}", "failed"),)
        start = max(place - 30, text.rfind("\n", 0, place) + 1, 0)
        shown = one_line(text[start : place + 30].split("\n")[0])
        if shown.strip():
            yield marked((Span("  " + shown),), [Mark(2 + place - start, 3 + place - start, "hit-forbidden")])


def _object_in(text: str) -> Any:
    """The first JSON value of a text that may have words around it."""
    value = parsed(text)
    if not isinstance(value, str):
        return value
    start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=-1)
    if start < 0 or len(text) > 2_000_000:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _follow(value: Any, keys: list[str]) -> tuple[Any, int]:
    """The value at a path and how many of its keys there are."""
    for index, key in enumerate(keys):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return value, index
    return value, len(keys)


def _json_path(keys: list[str]) -> str:
    parts = [f"[{key}]" if key.isdecimal() else f".{one_line(key, 60)}" for key in keys]
    return "$" + "".join(parts)


def _rule(schema: Any, keys: list[str]) -> Any:
    """The part of a schema about a path, as far as it goes without references."""
    schema = parsed(schema)
    for key in keys:
        if not isinstance(schema, dict):
            return None
        within, items = schema.get("properties"), schema.get("items")
        if isinstance(within, dict) and key in within:
            schema = within[key]
        elif key.isdecimal() and isinstance(items, dict):
            schema = items
        else:
            return None
    return schema if isinstance(schema, dict) else None


def _path(verdict: Verdict, attempt: Attempt) -> Iterator[Line]:
    """The dotted path that an assertion names, followed as far as the reply has it."""
    part, _, rest = verdict.target.partition(".")
    reply = next((r for r in reversed(attempt.replies) if verdict.turn in (None, r.turn)), None)
    value = getattr(reply, part, None) if reply is not None else None
    if not isinstance(value, dict):
        yield (Span(f"the reply has no {part}", "note"),)
        return
    keys = rest.split(".")
    here, reached = _follow(value, keys)
    shown = Span(part + "".join(f".{one_line(key, 60)}" for key in keys[:reached]), "json-key")
    if reached == len(keys):
        yield (shown, Span(" is ", "muted"), Span(short(here, 200)))
        return
    missing = one_line(keys[reached], 60)
    if not isinstance(here, dict):
        yield (shown, Span(f" is {short(here, 80)}, without a {missing}", "note"))
        return
    names = [one_line(name, 40) for name in list(here)[:8]]
    more = f" and {len(here) - 8} more" if len(here) > 8 else ""
    yield (
        shown,
        Span(f" has no {missing}", "failed"),
        Span(f"; it has {', '.join(names) or 'nothing'}{more}", "muted"),
    )


def _budget(verdict: Verdict, past: CasePast | None) -> Iterator[Line]:
    """A number against its limit as a bar, and the usual range."""
    limit, actual = verdict.expected, verdict.actual
    if not _number(limit) or not _number(actual):
        return
    column = budget_of(verdict.type) or budget_of(verdict.target) or ""
    show = {"duration_ms": duration, "cost": cost}.get(column, lambda value: f"{value:,.0f}")
    top = max(limit, actual) or 1
    filled, mark = round(actual / top * BAR), min(round(limit / top * BAR), BAR)
    bar = "".join("█" if i < filled else "·" for i in range(BAR))
    over = actual > limit
    yield (
        Span(bar[:mark], "passed"),
        Span("▏", "strong"),
        Span(bar[mark:], "failed" if over else "muted"),
        Span(f" {show(actual)}", "failed" if over else ""),
        Span(f" of {show(limit)}" + (f": {show(actual - limit)} too many" if over else ""), "muted"),
    )
    values = past.values(column_name(verdict)) if past is not None else []
    found = usual(values)
    if found is not None:
        words = f"usually {show(found.middle)} ({show(found.low)} to {show(found.high)} in {found.count} attempts)"
        unlike = " this one is unlike them" if over and actual > found.high else ""
        yield (Span(words, "muted"), Span(f";{unlike}" if unlike else "", "note"))
    elif past is not None and values:
        yield (Span(f"before: {', '.join(show(value) for value in values[-3:])}", "muted"),)


def column_name(verdict: Verdict) -> str:
    """What of a budget verdict names the number it is about: its type, else its target."""
    return verdict.type if budget_of(verdict.type) else verdict.target


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
