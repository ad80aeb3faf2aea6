"""The evidence of assertions on calls and steps, drawn: which came and where, which did not, and of the call that came
closest each argument. Nothing is compared here: the judge says it all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from tui_eval import causes
from tui_eval.guard.spelling import some_of
from tui_eval.model import Evidence, Verdict
from tui_eval.tui.state.case.tool_pairing import PairedCall
from tui_eval.tui.state.text.json_lines import short
from tui_eval.tui.state.text.lines import Line, Span, one_line

KINDS = ("call", "step")
"""Kinds of evidence that are about what an agent did."""
MOST = 12
"""Names of one assertion, or steps, that are shown."""
_ARGUMENTS = ("wrong-arguments", "absent-argument", "other-argument")
_BOUNDS = {
    ">=": "at least",
    "<=": "at most",
    "==": "just",
    "outside": "not within",
    ">": "more than",
    "<": "less than",
}


def calls_of(verdict: Verdict) -> list[Evidence]:
    """The pieces of a verdict that are about calls, steps, or how many there were of a tool; none in older runs."""
    return [one for one in verdict.evidence or () if one.kind in KINDS or (one.kind == "budget" and one.text)]


def tools_named(verdict: Verdict) -> list[str]:
    """The tools that an assertion looked for."""
    found = (one.text for one in calls_of(verdict) if one.code not in ("other-call", "no-call"))
    return list(dict.fromkeys(name for name in found if name))


def calls_explained(verdict: Verdict, calls: Sequence[PairedCall] = ()) -> Iterator[Line]:
    """Each tool that was looked for: called and where, or not and what was called instead; of the call that came
    closest each argument. `calls` are those of the transcript, for their turns."""
    pieces = list(verdict.evidence or ())
    for (code, name), found in groupby(pieces, lambda one: (_part(one), one.text)):
        group = list(found)
        if code == "arguments":
            yield from _arguments(name, group, calls)
        elif code == "other-call":
            continue
        elif code == "budget":
            yield from (_counted(one) for one in group)
        elif code in _DRAWN:
            yield _DRAWN[code](group)
    extra = [one.text for one in pieces if one.code == "other-call"]
    if extra:
        names = ", ".join(one_line(name, 40) for name in extra[:8])
        yield (Span("+ ", "differs"), Span(names, "differs"), Span(" called, not asked for", "muted"))
    if any(one.code in ("under", "over", "unequal", "not-in-order") for one in pieces):
        yield from _taken(verdict.actual)


def _part(one: Evidence) -> str:
    if one.code in _ARGUMENTS or (one.kind == "call" and one.code == "holds" and one.path):
        return "arguments"
    return "budget" if one.kind == "budget" and one.code != "within" else one.code


def _places(found: Sequence[Evidence]) -> str:
    """`as step 1, 3`, as far as the judge says where."""
    listed = found[0].actual if isinstance(found[0].actual, list) else []
    numbers = [number for number in listed if isinstance(number, int)]
    word = "step" if numbers or found[0].kind == "step" else "call"
    numbers = numbers or [one.call for one in found if one.call is not None]
    return f" as {word} {', '.join(map(str, numbers[:8]))}" if numbers else ""


def _called(found: Sequence[Evidence]) -> Line:
    between = found[0].row
    words = f" was called{_places(found)}"
    if between is not None and not between and found[0].call is not None:
        words = f" was step {found[0].call}"
    return (Span("✓ ", "passed"), Span(one_line(found[0].text, 60), "strong"), Span(words, "muted"))


def _forbidden(found: Sequence[Evidence]) -> Line:
    words = f" was called{_places(found)}"
    return (Span("✗ ", "failed"), Span(one_line(found[0].text, 60), "strong"), Span(words, "muted"))


def _absent(found: Sequence[Evidence]) -> Line:
    return (
        Span("✓ ", "passed"),
        Span(one_line(found[0].text, 60), "strong"),
        Span(" was not called", "muted"),
    )


def _not_called(found: Sequence[Evidence]) -> Line:
    one = found[0]
    used = [str(name) for name in one.actual] if isinstance(one.actual, list) else []
    words = f" was not called{_similar(one.text, used)}"
    return (Span("✗ ", "failed"), Span(one_line(one.text, 60), "strong"), Span(words, "muted"))


def _out_of_order(found: Sequence[Evidence]) -> Line:
    """A step that did not come after the one before it (`row`), or came with others between."""
    one = found[0]
    numbers = [str(number) for number in one.actual or ()] if isinstance(one.actual, list) else []
    if one.call is not None:
        words = f" was step {one.call}, {one.row} other{'s' * (one.row != 1)} before it"
    else:
        words = f" not after step {one.row}" if one.row else " was not called"
        words += f"; it was step {', '.join(numbers[:8])}" if numbers else ""
    return (Span("✗ ", "failed"), Span(one_line(one.text, 60), "strong"), Span(words, "muted"))


def _untold(found: Sequence[Evidence]) -> Line:
    words = " was called, its arguments were not told"
    return (Span("✗ ", "failed"), Span(one_line(found[0].text, 60), "strong"), Span(words, "note"))


def _span(found: Sequence[Evidence]) -> Line:
    one = found[0]
    took = f"  {causes.figure('duration', one.actual)}" if isinstance(one.actual, int | float) else ""
    return (Span("  "), Span(one_line(one.text, 80), "strong"), Span(took, "muted"))


_DRAWN = {
    "span": _span,
    "error-spans": _span,
    "called": _called,
    "forbidden-call": _forbidden,
    "call-absent": _absent,
    "not-called": _not_called,
    "not-in-order": _out_of_order,
    "no-arguments": _untold,
    "forbidden-order": lambda found: (Span("✗ ", "failed"), Span("these steps came in this order")),
}


def _counted(one: Evidence) -> Line:
    """How many there were, and how many were wanted."""
    words = f", {_BOUNDS.get(one.rule, one.rule)} {causes.figure(one.path, one.expected)} wanted"
    shown = f"{causes.figure(one.path, one.actual)} {one_line(one.path, 60)}"
    about = f" ({one_line(one.text, 60)})" if one.text not in one.path else ""
    return (Span("✗ ", "failed"), Span(shown, "strong"), Span(f"{about}{words}", "muted"))


def _arguments(name: str, found: Sequence[Evidence], calls: Sequence[PairedCall]) -> Iterator[Line]:
    """The call that came closest: what was expected of each argument, and what it was given."""
    number = found[0].call or 0
    words = f" closest is call {number}" if number else ""
    if 0 < number <= len(calls) and calls[number - 1].name == name:
        words += f" in turn {calls[number - 1].entry.turn}"
    wrong = any(one.code in ("wrong-arguments", "absent-argument") for one in found)
    glyph = Span("✗ ", "failed") if wrong else Span("✓ ", "passed")
    yield (glyph, Span(one_line(name, 60), "strong"), Span(words, "muted"))
    for line in argument_lines(found):
        yield (Span("  "), *line)


def argument_lines(found: Sequence[Evidence]) -> Iterator[Line]:
    """Arguments one by one: what was expected beside what was given."""
    for one in found:
        field = one_line(one.path, 60)
        head = (Span(field, "json-key"), Span(": ", "json-mark"), Span(short(one.expected), "json-text"))
        if one.code == "other-argument":
            yield (Span(field, "muted"), Span(": not asked for", "muted"))
        elif one.rule == "extra":
            yield (Span(field, "json-key"), Span("  ≠ must not be there", "differs"))
        elif one.code == "absent-argument":
            yield (*head, Span("  ≠ not given", "differs"))
        elif one.code == "wrong-arguments":
            yield (*head, Span(f"  ≠ {short(one.actual)}", "differs"))
        else:
            yield (*head, Span("  ✓", "passed"))


def _similar(tool: str, names: list[str]) -> str:
    if not names:
        return "; nothing was called"
    from rapidfuzz import fuzz, process  # imported late: only missing tools need it

    found = process.extractOne(tool, names, scorer=fuzz.ratio, score_cutoff=60)
    if found is not None:
        return f"; the nearest name is {one_line(found[0], 60)}"
    return f"; called were {some_of([one_line(name, 40) for name in names], 4)}"


def _taken(actual: Any) -> Iterator[Line]:
    """The steps that the judge looked at."""
    steps = [step for step in actual if isinstance(step, dict)] if isinstance(actual, list) else []
    names = [
        f"{number} {one_line(str(step.get('name', '')), 40)}" for number, step in enumerate(steps[:MOST], 1)
    ]
    more = f" and {len(steps) - MOST} more" if len(steps) > MOST else ""
    if names:
        yield (Span("  the steps: ", "muted"), Span(" · ".join(names)), Span(more, "muted"))
    elif isinstance(actual, list) and not actual:
        yield (Span("no such steps were taken", "muted"),)
