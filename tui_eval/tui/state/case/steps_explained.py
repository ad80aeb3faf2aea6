"""An agent's steps against those that a trajectory assertion wants: which came, how often, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from tui_eval.model import Verdict
from tui_eval.tui.state.case.tool_comparison import compared, likeness
from tui_eval.tui.state.text.lines import Line, Span, one_line

MOST = 12


def steps_explained(verdict: Verdict) -> Iterator[Line]:
    """The steps that a verdict on a trajectory has looked at (its `actual`) beside what it wants."""
    steps = [step for step in _list(verdict.actual) if isinstance(step, dict)]
    negated = verdict.type.startswith("not-")
    what = verdict.type.rpartition(":")[2]
    if what == "tool-args-match":
        yield from _arguments(verdict.expected, steps, negated)
    elif what == "tool-sequence":
        yield from _sequence(verdict.expected, steps, negated)
    elif what == "tool-used" and not isinstance(verdict.expected, dict):
        for wanted in _list(verdict.expected)[:MOST]:
            yield from _used(str(wanted), steps, negated)
    else:
        yield from _counted(verdict.expected, steps)
    if not steps:
        yield (Span("no such steps were taken", "muted"),)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _name(step: dict[str, Any]) -> str:
    return str(step.get("name", ""))


def _fits(step: dict[str, Any], pattern: str) -> bool:
    names = [_name(step), str(step.get("span", ""))]
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in names)


def _pattern(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("pattern") or value.get("name") or "*")
    return str(value)


def _used(wanted: str, steps: list[dict[str, Any]], negated: bool) -> Iterator[Line]:
    places = [number for number, step in enumerate(steps, 1) if _fits(step, wanted)]
    good = bool(places) != negated
    glyph = Span("✓ ", "passed") if good else Span("✗ ", "failed")
    tool = Span(one_line(wanted, 60), "strong")
    if places:
        times = f" was called as step {', '.join(map(str, places[:8]))} of {len(steps)}"
        yield (glyph, tool, Span(times, "muted"))
    else:
        called = ", ".join(dict.fromkeys(one_line(_name(step), 40) for step in steps[:MOST]))
        yield (glyph, tool, Span(f" was not called; called were {called or 'none'}", "muted"))


def _sequence(expected: Any, steps: list[dict[str, Any]], negated: bool) -> Iterator[Line]:
    """Each wanted step and where it came after the one before it."""
    wanted = [
        _pattern(item) for item in _list(expected.get("steps") if isinstance(expected, dict) else expected)
    ]
    exact = isinstance(expected, dict) and expected.get("mode") == "exact"
    after = 0
    for item in wanted[:MOST]:
        places = [number for number, step in enumerate(steps, 1) if _fits(step, item)]
        place = next((number for number in places if number > after), None)
        tool = Span(one_line(item, 60), "strong")
        if place is None:
            words = f" not after step {after}" if after else " was not called"
            words += f"; it was step {', '.join(map(str, places[:8]))}" if places else ""
            yield (
                Span("✓ " if negated else "✗ ", "passed" if negated else "failed"),
                tool,
                Span(words, "muted"),
            )
            break
        between = place - after - 1 if exact else 0
        glyph = Span("✗ ", "failed") if between or negated else Span("✓ ", "passed")
        words = f" was step {place}" + (
            f", {between} other{'s' * (between != 1)} before it" if between else ""
        )
        yield (glyph, tool, Span(words, "muted"))
        after = place
    if exact and len(steps) > after:
        yield (Span(f"✗ {len(steps) - after} more came after it", "failed"),)
    yield from _taken(steps)


def _arguments(expected: Any, steps: list[dict[str, Any]], negated: bool) -> Iterator[Line]:
    """The call that came closest, field by field."""
    if not isinstance(expected, dict):
        return
    wanted = expected.get("args", expected.get("arguments"))
    calls = [(number, step) for number, step in enumerate(steps, 1) if _fits(step, _pattern(expected))]
    if not calls:
        yield from _used(_pattern(expected), steps, negated)
        return
    number, best = max(calls, key=lambda one: likeness(wanted, one[1].get("args")))
    words = f" step {number}" + (f", the closest of {len(calls)} calls" if len(calls) > 1 else "")
    yield (Span("✗ ", "failed"), Span(one_line(_name(best), 60), "strong"), Span(words, "muted"))
    if "args" not in best:
        yield (Span("  its arguments were not told", "note"),)
        return
    for line in compared(wanted, best.get("args")):
        yield (Span("  "), *line)


def _counted(expected: Any, steps: list[dict[str, Any]]) -> Iterator[Line]:
    """How many steps fit, between which bounds, and which they were."""
    wanted = expected if isinstance(expected, dict) else {}
    pattern = wanted.get("pattern") or wanted.get("name")
    fitting = [step for step in steps if not pattern or _fits(step, str(pattern))]
    bounds = [
        f"{word} {wanted[key]}" for key, word in (("min", "at least"), ("max", "at most")) if key in wanted
    ]
    yield (
        Span("✗ ", "failed"),
        Span(f"{len(fitting)} such step{'s' * (len(fitting) != 1)}", "strong"),
        Span(f", {' and '.join(bounds)} wanted" if bounds else "", "muted"),
    )
    yield from _taken(fitting)


def _taken(steps: list[dict[str, Any]]) -> Iterator[Line]:
    names = [f"{number} {one_line(_name(step), 40)}" for number, step in enumerate(steps[:MOST], 1)]
    more = f" and {len(steps) - MOST} more" if len(steps) > MOST else ""
    if names:
        yield (Span("  the steps: ", "muted"), Span(" · ".join(names)), Span(more, "muted"))
