"""The Tools tab: calls as rows of a table, and one call in full with what was expected of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from tui_eval.guard import figures
from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.case.calls_evidence import (
    argument_lines,
    calls_explained,
    calls_of,
    tools_named,
)
from tui_eval.tui.state.case.span_view import trace_blocks
from tui_eval.tui.state.case.tool_pairing import PairedCall, pair
from tui_eval.tui.state.case.verdict_lines import about_tools, brief, label_of, word_of
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.formatting import duration, size
from tui_eval.tui.state.text.json_lines import LONG, dumped, parsed, short, value_lines
from tui_eval.tui.state.text.lines import Line, Span, one_line, text_lines
from tui_eval.tui.state.text.table_lines import result_lines

BROADEST = 300
"""Characters of arguments that a row may show: what a broad screen has room for."""


class CallRow(NamedTuple):
    """One call as the table shows it. `verdict` names what an assertion says of it, `length` is its result's in
    characters."""

    call: PairedCall
    number: int
    turn: int
    name: str
    arguments: str
    took: str
    size: str
    error: str
    verdict: str
    length: int = 0


def rows(attempt: Attempt) -> list[CallRow]:
    """All calls in order."""
    made: list[CallRow] = []
    about = [(verdict, set(tools_named(verdict))) for verdict in attempt.verdicts]
    for number, call in enumerate(pair(attempt.transcript), 1):
        result = call.result_entry
        value = None if result is None else result.result if result.result is not None else result.text
        length = len(value) if isinstance(value, str) else _length(value)
        related = [v for v, tools in about if call.name in tools and v.turn in (None, call.entry.turn)]
        worst = next((v for v in related if not v.passed), related[0] if related else None)
        made.append(
            CallRow(
                call,
                number,
                call.entry.turn,
                one_line(call.name, 60),
                short(parsed(call.entry.arguments), BROADEST)
                if call.entry.arguments not in (None, {}, "")
                else "",
                duration(call.duration_ms),
                size(length) if length else "",
                one_line(call.error or ("" if result is not None else "no result"), 200),
                word_of(worst) if worst else "",
                length,
            )
        )
    return made


def _length(value: Any) -> int:
    """Characters of a value as JSON; there may be megabytes of it."""
    if value is None:
        return 0
    try:
        return len(msgspec.json.encode(value).decode())
    except (TypeError, ValueError, RecursionError, OverflowError):
        return len(dumped(value))


def concerns(verdict: Verdict, call: PairedCall) -> bool:
    """Whether an assertion names this call's tool (and its turn, where it has one)."""
    if verdict.turn is not None and verdict.turn != call.entry.turn:
        return False
    return call.name in tools_named(verdict)


def detail(
    attempt: Attempt,
    row: CallRow | None,
    *,
    rendered: bool = True,
    only_failing: bool = False,
    alone: bool = False,
) -> list[Block]:
    """The selected call: what was expected of it beside what it was given, then its result; after
    it the assertions on tools that no call satisfies (not where it is wanted `alone`)."""
    blocks = _of_call(attempt, row, rendered, only_failing) if row is not None else []
    if alone:
        return blocks
    blocks += _of_no_call(attempt, only_failing)
    blocks += _reported(attempt)
    blocks += trace_blocks(attempt.trace)
    if not blocks:
        blocks.append(Block("empty", "note", "", partial(text_lines, "No tools were called.", "muted")))
    return blocks


def _of_call(attempt: Attempt, row: CallRow, rendered: bool, only_failing: bool) -> list[Block]:
    """A call: the assertions on it with what they expected, its arguments and its result."""
    blocks: list[Block] = []
    call = row.call
    result = call.result_entry
    arguments = parsed(call.entry.arguments) if rendered else call.entry.arguments
    facts = " · ".join(part for part in (row.took, row.size and f"{row.size} characters") if part)
    rule = Block(
        f"c{row.number}", "turn", f"{row.number} {row.name}", partial(_one, facts), row.turn, "strong"
    )
    blocks.append(rule)
    related = [(i, v) for i, v in enumerate(attempt.verdicts) if concerns(v, call)]
    for index, verdict in related:
        if only_failing and verdict.passed:
            continue
        blocks.append(_verdict(index, verdict))
        wanted = [
            one for one in calls_of(verdict) if one.text == call.name and one.path and one.kind == "call"
        ]
        if wanted:
            source = partial(argument_lines, wanted)
            blocks.append(Block(f"v{index}.0", "part", "expected", source, row.turn, word_of(verdict)))
        elif not verdict.passed:
            blocks.append(_explained(index, verdict, pair(attempt.transcript)))
    source = partial(_or_nothing, arguments, rendered)
    blocks.append(Block(f"a{row.number}", "tool_call", "arguments", source, row.turn, "role-tool_call", 30))
    if call.error:
        blocks.append(
            Block(
                f"x{row.number}",
                "error",
                "! error",
                partial(text_lines, call.error, "error"),
                row.turn,
                "role-error",
            )
        )
    if result is not None and (result.result is not None or result.text or not call.error):
        value = result.result if result.result is not None else result.text
        source = partial(_result, value, rendered)
        blocks.append(
            Block(
                f"r{row.number}",
                "tool_result",
                "result",
                source,
                row.turn,
                "role-tool_result",
                200,
                row.length,
                raw=value if isinstance(value, str) and len(value) > LONG else "",
            )
        )
    return blocks


def _of_no_call(attempt: Attempt, only_failing: bool) -> list[Block]:
    """The assertions on tools that no call is of."""
    blocks: list[Block] = []
    calls = pair(attempt.transcript) if any(about_tools(verdict) for verdict in attempt.verdicts) else []
    called = {place for call in calls for place in ((call.name, None), (call.name, call.entry.turn))}
    for index, verdict in enumerate(attempt.verdicts):
        if (
            about_tools(verdict)
            and not any((tool, verdict.turn) in called for tool in tools_named(verdict))
            and not (only_failing and verdict.passed)
        ):
            blocks.append(_verdict(index, verdict))
            if tools_named(verdict) and not verdict.passed:
                blocks.append(_explained(index, verdict, calls))
            elif verdict.actual is not None and not verdict.passed:
                source = partial(value_lines, parsed(verdict.actual))
                blocks.append(
                    Block(f"v{index}.actual", "part", "actual", source, verdict.turn or 0, "muted", 12)
                )
    return blocks


def reported(attempt: Attempt) -> list[tuple[int, list[str], int | None]]:
    """Turn by turn the tools that the agent's metadata names, and how many calls it counts, where that is more than its
    transcript has."""
    seen = Counter((entry.turn, entry.name) for entry in attempt.transcript if entry.kind == "tool_call")
    of_turn = Counter(entry.turn for entry in attempt.transcript if entry.kind == "tool_call")
    found = []
    for reply in attempt.replies:
        names, counted = figures.reported_tools(reply.metadata)
        more = Counter((reply.turn, name) for name in names) - seen
        if more or (counted or 0) > of_turn[reply.turn]:
            found.append((reply.turn, names, counted))
    return found


def _reported(attempt: Attempt) -> list[Block]:
    """What the agent says that it called, of which nothing else is known."""
    return [
        Block(
            f"m{turn}",
            "tool_call",
            f"reported · turn {turn}",
            partial(_named, names, counted),
            turn,
            "role-tool_call",
            12,
        )
        for turn, names, counted in reported(attempt)
    ]


def _named(names: Sequence[str], counted: int | None) -> Iterator[Line]:
    for name, times in Counter(names).items():
        shown = Span(one_line(name, 60), "strong") if name else Span("an entry without a name", "note")
        yield (shown, Span(f" ×{times}" if times > 1 else "", "muted"))
    calls = "" if counted is None else f"{counted:,} call{'s' * (counted != 1)} counted; "
    yield (Span(f"{calls}by the reply's metadata, which has no arguments or results", "muted"),)


def _verdict(index: int, verdict: Verdict) -> Block:
    return Block(
        f"v{index}",
        "verdict",
        label_of(verdict),
        partial(brief, verdict),
        verdict.turn or 0,
        word_of(verdict),
        12,
        failing=not verdict.passed,
    )


def _explained(index: int, verdict: Verdict, calls: Sequence[PairedCall]) -> Block:
    """The tools that were expected beside those that were called."""
    source = partial(calls_explained, verdict, calls)
    return Block(f"v{index}.tools", "part", "expected", source, verdict.turn or 0, word_of(verdict), 12)


def _one(facts: str) -> Iterator[Line]:
    yield (Span(facts, "muted"),)


def _result(value: Any, rendered: bool) -> Iterator[Line]:
    if value in (None, "", {}):
        yield (Span("none", "muted"),)
    else:
        yield from result_lines(value if isinstance(value, (str, dict, list)) else [value], rendered=rendered)


def _or_nothing(value: Any, rendered: bool) -> Iterator[Line]:
    if value in (None, "", {}):
        yield (Span("none", "muted"),)
    else:
        yield from value_lines(value if isinstance(value, (str, dict, list)) else [value], rendered=rendered)
