"""Tools that were expected beside those that were called: the call that came closest, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from tui_eval.model import Verdict
from tui_eval.tui.state.case.tool_pairing import PairedCall
from tui_eval.tui.state.text.json_lines import parsed, short, value_lines
from tui_eval.tui.state.text.lines import Line, Span, one_line

MOST = 12
"""Tools, or steps, of one assertion that are looked at."""


def named_tools(value: Any) -> list[dict[str, Any]]:
    """The tools that an expected value names, each as {tool, args}; empty where it names none."""
    return list(_named(value))


def _named(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, str):
        yield {"tool": value, "args": None}
    elif isinstance(value, dict):
        name = value.get("tool") or value.get("name")
        if isinstance(name, str):
            yield {"tool": name, "args": value.get("args", value.get("arguments"))}
        elif isinstance(value.get("steps"), list):
            yield from _named(value["steps"])
    elif isinstance(value, list):
        for item in value:
            yield from _named(item)


def matches(expected: Any, actual: Any) -> bool:
    """Recursive subset for mappings, equality otherwise with booleans apart from numbers
    (formats/nao.md, section 2)."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(name in actual and matches(value, actual[name]) for name, value in expected.items())
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def closest(expected: dict[str, Any], calls: Sequence[PairedCall]) -> PairedCall | None:
    """The call of the expected tool with the most arguments as expected (the first of several); None
    where the tool was not called."""
    named = [call for call in calls if call.name == expected["tool"]]
    return max(named, key=lambda call: likeness(expected["args"], arguments_of(call)), default=None)


def arguments_of(call: PairedCall) -> Any:
    """The call's arguments; JSON in a text is read."""
    return parsed(call.entry.arguments)


def likeness(expected: Any, given: Any) -> float:
    """How many of the expected arguments a call has, those of another value counting a tenth."""
    if not isinstance(expected, dict):
        return float(matches(expected, given))
    if not isinstance(given, dict):
        return 0.0
    whole = sum(matches(value, given[name]) for name, value in expected.items() if name in given)
    return whole + 0.1 * sum(name in given for name in expected)


def tools_explained(verdict: Verdict, calls: Sequence[PairedCall]) -> Iterator[Line]:
    """Per expected tool: called or not, the call that came closest with its arguments compared, or the
    tool with the most similar name; for a sequence, both sequences aligned."""
    expected = named_tools(verdict.expected)
    if not expected:
        return
    if "sequence" in verdict.type:
        yield from _sequence([one["tool"] for one in expected], [call.name for call in calls])
        return
    negated = verdict.type.startswith(("not-", "not_"))
    for one in expected[:MOST]:
        call = closest(one, calls)
        tool = Span(one_line(one["tool"], 60), "strong")
        if call is None:
            glyph = Span("✓ ", "passed") if negated else Span("✗ ", "failed")
            yield (glyph, tool, Span(" was not called" + _similar(one["tool"], calls), "muted"))
            continue
        given = arguments_of(call)
        least = _least(verdict.expected)
        place = f" call {_number(call, calls)} in turn {call.entry.turn}"
        if one["args"] is None or matches(one["args"], given):
            fitting = [
                other
                for other in calls
                if other.name == one["tool"]
                and (one["args"] is None or matches(one["args"], arguments_of(other)))
            ]
            count = len(fitting)
            bad = negated or count < least
            glyph = Span("✗ ", "failed") if bad else Span("✓ ", "passed")
            words = f" called {count} times" if one["args"] is None and count > 1 else place
            if least > 1:
                words = f" called {count} time{'s' * (count != 1)} of {least} wanted"
            yield (glyph, tool, Span(words, "muted"))
            continue
        count = sum(other.name == one["tool"] for other in calls)
        yield (
            Span("✗ ", "failed"),
            tool,
            Span(f" closest is{place}" + (f", of {count} calls" if count > 1 else ""), "muted"),
        )
        for line in compared(one["args"], given):
            yield (Span("  "), *line)
    if not calls:
        yield (Span("no tools were called", "muted"),)


def _least(expected: Any) -> int:
    """How many calls are wanted."""
    least = expected.get("min_count") if isinstance(expected, dict) else None
    return least if isinstance(least, int) else 1


def _number(call: PairedCall, calls: Sequence[PairedCall]) -> int:
    return next(i for i, one in enumerate(calls, 1) if one is call)


def _similar(tool: str, calls: Sequence[PairedCall]) -> str:
    names = list(dict.fromkeys(call.name for call in calls))
    if not names:
        return ""
    from rapidfuzz import fuzz, process  # imported late: only missing tools need it

    found = process.extractOne(tool, names, scorer=fuzz.ratio, score_cutoff=60)
    if found is not None:
        return f"; the nearest name is {one_line(found[0], 60)}"
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"; called were {', '.join(one_line(name, 40) for name in names[:4])}{more}"


def compared(expected: Any, actual: Any) -> Iterator[Line]:
    """Expected arguments one by one, each beside what the call was given; mappings within them too."""
    if not isinstance(expected, dict):
        yield from value_lines(expected)
        return
    given = actual if isinstance(actual, dict) else {}
    yield from _fields(expected, given, "")
    for name in given:
        if name not in expected:
            yield (Span(one_line(name, 40), "muted"), Span(": not asked for", "muted"))


def _fields(expected: dict[str, Any], given: dict[str, Any], path: str) -> Iterator[Line]:
    for name, value in expected.items():
        field = f"{path}{one_line(name, 40)}"
        there = given.get(name)
        if isinstance(value, dict) and value and isinstance(there, dict) and not matches(value, there):
            yield from _fields(value, there, f"{field}.")
            continue
        head = (Span(field, "json-key"), Span(": ", "json-mark"), Span(short(value), "json-text"))
        if name not in given:
            yield (*head, Span("  ≠ not given", "differs"))
        elif matches(value, there):
            yield (*head, Span("  ✓", "passed"))
        else:
            yield (*head, Span(f"  ≠ {short(there)}", "differs"))


def _sequence(expected: list[str], actual: list[str]) -> Iterator[Line]:
    matcher = SequenceMatcher(None, expected, actual, autojunk=False)
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what == "equal":
            for name in expected[i1:i2]:
                yield (Span("✓ ", "passed"), Span(one_line(name, 60)))
            continue
        for name in expected[i1:i2]:
            yield (Span("− ", "missing"), Span(one_line(name, 60)), Span(" expected here", "missing"))
        for name in actual[j1:j2]:
            yield (Span("+ ", "extra"), Span(one_line(name, 60)), Span(" called", "muted"))
