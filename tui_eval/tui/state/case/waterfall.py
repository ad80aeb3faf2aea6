"""Calls, hand-offs and spans as bars over time: what ran beside what, and what took long."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tui_eval.model import Attempt, Entry, TraceSpan
from tui_eval.tui.state.case.agent_tree import reading_order, short_name
from tui_eval.tui.state.case.span_view import depths, failed, shift_of, spans_of
from tui_eval.tui.state.case.tools_view import CallRow, rows
from tui_eval.tui.state.text.formatting import duration
from tui_eval.tui.state.text.json_lines import parsed, short
from tui_eval.tui.state.text.lines import Line, Span, fit, one_line, width_of

LABEL = 40
"""Columns for glyph, name and agent at most."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class SpanBar:
    """A call, hand-off, reply or span. `start` and `end` are milliseconds from the attempt's beginning (None:
    not known), `depth` below how many hand-offs it stands, `call` its row in the table of calls (None: none),
    `entry` its place in the transcript, `span` the span that it is. `failed`: it ended in an error, `wrong`:
    an assertion on it did not pass. `agent` is whose call it is, where several call tools."""

    label: str
    kind: str
    depth: int
    start: float | None
    end: float | None
    turn: int = 0
    failed: bool = False
    call: CallRow | None = None
    entry: int = -1
    span: TraceSpan | None = None
    wrong: bool = False
    agent: str = ""
    closed: bool = False
    """What stands below it is folded away."""
    asked: str = ""
    answered: str = ""
    length: int = 0
    """Of a hand-off: its arguments and its helper's answer in short, and how long that is in characters."""


def members(bars: Sequence[SpanBar], head: int) -> range:
    """The places of the bars that stand below a hand-off."""
    end = head + 1
    if bars[head].kind == "hand_off":
        while (
            end < len(bars) and bars[end].kind not in ("turn", "span") and bars[end].depth > bars[head].depth
        ):
            end += 1
    return range(head + 1, end)


def unfolded(bars: Sequence[SpanBar], closed: Collection[int]) -> list[SpanBar]:
    """The bars that are shown where those below some hand-offs, by their entries' places, are folded away; such a
    hand-off reports what failed below it."""
    shown: list[SpanBar] = []
    at = 0
    while at < len(bars):
        bar, below = bars[at], members(bars, at)
        if bar.entry in closed and below:
            failed, wrong = any(bars[i].failed for i in below), any(bars[i].wrong for i in below)
            bar = replace(bar, closed=True, failed=bar.failed or failed, wrong=bar.wrong or wrong)
            at = below.stop - 1
        shown.append(bar)
        at += 1
    return shown


def bars(attempt: Attempt, calls: Sequence[CallRow] | None = None) -> list[SpanBar]:
    """All calls, hand-offs, replies and spans in the order they began, under the turns where there are several; those
    without a time stand where they are in the transcript, spans after it. In a network of agents a helper's stand
    below the hand-off to it.

    Args:
        calls: The attempt's calls, where they are known already.
    """
    calls = rows(attempt) if calls is None else calls
    several = len({row.call.entry.agent for row in calls}) > 1
    entries = attempt.transcript
    starts = [float(entry.started_at) for entry in entries if entry.started_at]
    shift = shift_of(attempt)
    starts += [(span.start + shift) / 1000 for span in spans_of(attempt) if span.start is not None]
    # What comes before the first turn (loading) is no time of the agent's.
    asked = any(entry.kind == "user" and entry.started_at for entry in entries)
    if starts and attempt.started_at and not asked:
        starts.append(attempt.started_at)
    zero: float = min(starts, default=0.0)
    order = _places(entries)
    made: list[tuple[int, SpanBar]] = []
    for row in calls:
        entry = row.call.entry
        start, took = _since(entry, zero), row.call.duration_ms
        end = start + took if start is not None and took is not None else None
        place = row.call.call if row.call.call is not None else row.call.result or 0
        depth = order[place][1]
        agent = one_line(short_name(entry.agent), 40) if several and not depth else ""
        bar = SpanBar(
            row.name,
            "tool_call",
            depth,
            start,
            end,
            row.turn,
            bool(row.error),
            row,
            place,
        )
        made.append((place, replace(bar, wrong=row.verdict in ("failed", "error"), agent=agent)))
    for index, entry in enumerate(entries):
        if entry.kind == "hand_off":
            start, end = _since(entry, zero), _hand_off_end(entries, index, zero)
            depth = order[index][1] - 1 if entry.name else order[index][1]
            label = f"→ {one_line(short_name(entry.name) or entry.text, 60)}"
            answer = order[index][2]
            text = entries[answer].text if answer is not None else ""
            bar = SpanBar(label, "hand_off", depth, start, end, entry.turn, entry=index)
            asked = short(parsed(entry.arguments), 80) if entry.arguments not in (None, {}, "") else ""
            bar = replace(bar, asked=asked, answered=one_line(text, 200).strip(), length=len(text))
            made.append((index, bar))
        elif entry.kind == "assistant" and entry.duration_ms:
            start = _since(entry, zero)
            end = start + entry.duration_ms if start is not None else None
            label = one_line(short_name(entry.agent), 60) or "reply"
            depth = order[index][1]
            made.append((index, SpanBar(label, "assistant", depth, start, end, entry.turn, entry=index)))
    made += [(len(entries) + number, bar) for number, bar in enumerate(_span_bars(attempt, zero, shift))]
    if any(entry.kind == "hand_off" for entry in entries):
        last = len(entries)
        nested = sorted(made, key=lambda item: (order[item[0]][0] if item[0] in order else last, item[0]))
        return _under_turns([bar for _, bar in nested], entries)
    known: float = 0.0
    begun: list[tuple[float, int, SpanBar]] = []
    for place, bar in sorted(made, key=lambda item: item[0]):
        known = bar.start if bar.start is not None else known
        begun.append((known, place, bar))
    return _under_turns([bar for _, _, bar in sorted(begun, key=lambda item: item[:2])], entries)


def calls_by_agent(shown: Sequence[SpanBar]) -> list[SpanBar]:
    """Of these bars the calls and hand-offs, as a table of calls has them; none where nothing was handed on."""
    if not any(bar.kind == "hand_off" for bar in shown):
        return []
    return [bar for bar in shown if bar.kind in ("tool_call", "hand_off")]


def _places(entries: Sequence[Entry]) -> dict[int, tuple[int, int, int | None]]:
    """Of each entry, by its place in the transcript, the place in which it is read, and below how many hand-offs it
    stands; of a hand-off itself one more, and the place of its answer."""
    of_turn: dict[int, list[tuple[int, Entry]]] = {}
    for index, entry in enumerate(entries):
        of_turn.setdefault(entry.turn, []).append((index, entry))
    order = [one for turn in sorted(of_turn) for one in reading_order(of_turn[turn], answers=True)]
    return {
        index: (number, node.depth, node.answer if node.index == index else None)
        for number, (index, _, node) in enumerate(order)
    }


def _under_turns(made: Sequence[SpanBar], entries: Sequence[Entry]) -> list[SpanBar]:
    """A line for each turn before its bars, where there are several; it leads to what was asked."""
    if len({bar.turn for bar in made if bar.turn}) < 2:
        return list(made)
    shown: list[SpanBar] = []
    turn = 0
    for bar in made:
        if bar.turn and bar.turn != turn:
            turn = bar.turn
            said = (i for i, entry in enumerate(entries) if entry.turn == turn and entry.kind == "user")
            shown.append(SpanBar(f"turn {turn}", "turn", 0, None, None, turn, entry=next(said, -1)))
        shown.append(bar)
    return shown


def _span_bars(attempt: Attempt, zero: float, shift: float) -> Iterator[SpanBar]:
    spans = spans_of(attempt)
    deep = depths(spans)
    for span in spans:
        start = span.start + shift - zero * 1000 if span.start is not None else None
        took = span.end - span.start if span.start is not None and span.end is not None else None
        end = start + max(took, 0.0) if start is not None and took is not None else None
        label = f"· {one_line(span.name, 60) or 'span'}"
        yield SpanBar(label, "span", deep.get(span.span_id, 0), start, end, failed=failed(span), span=span)


def _since(entry: Entry, zero: float) -> float | None:
    return (entry.started_at - zero) * 1000 if entry.started_at else None


def _hand_off_end(entries: Sequence[Entry], index: int, zero: float) -> float | None:
    """When the agent handed to was heard of last within the turn; the hand-off's own duration where it
    has one."""
    entry = entries[index]
    start = _since(entry, zero)
    if entry.duration_ms is not None and start is not None:
        return start + entry.duration_ms
    last = start
    for other in entries[index + 1 :]:
        if other.turn != entry.turn:
            break
        names = (entry.name, f"{entry.agent}.{entry.name}")
        if other.started_at and any(other.agent == n or other.agent.startswith(n + ".") for n in names if n):
            last = max(last or 0.0, (_since(other, zero) or 0.0) + (other.duration_ms or 0.0))
    return last if last != start else None


def span_of(shown: Sequence[SpanBar]) -> float:
    """Milliseconds from the beginning to the end of the last bar; 0 where no time is known."""
    ends = (bar.end if bar.end is not None else bar.start for bar in shown)
    return max((end for end in ends if end is not None), default=0.0)


def scale_line(total: float, width: int, label: int) -> Line:
    """The line above the bars: when they begin and end."""
    if not total:
        return (Span("this agent reports no times", "note"),)
    room = max(width - label - 11, 4)
    half, end = duration(total / 2), duration(total)
    middle = room // 2 - len(half) // 2
    if room < len(end) + 2:
        text = end if len(end) <= room else ""
    elif middle < 2 or room - middle - len(end) <= len(half):  # no room for the middle
        text = f"0{end:>{room - 1}}"
    else:
        text = f"{'0':<{middle}}{half:<{room - middle - len(end)}}{end}"
    return (Span(" " * (label + 11)), Span(text[:room], "muted"))


def label_width(shown: Sequence[SpanBar], width: int) -> int:
    """Columns that names take: as the longest needs, at most a third of the width."""
    longest = max((width_of(_label(bar)) + 2 * min(bar.depth, 4) for bar in shown), default=4)
    return max(min(longest + 2, LABEL, width // 3), 6)


def _label(bar: SpanBar) -> Line:
    weight = {"hand_off": "agent", "assistant": "role-assistant", "span": "muted"}.get(bar.kind, "strong")
    if bar.closed:
        return (Span(bar.label, weight), Span(" ▸", "muted"))
    return (
        (Span(bar.label, weight), Span(f" {bar.agent}", "muted")) if bar.agent else (Span(bar.label, weight),)
    )


def bar_line(bar: SpanBar, total: float, width: int, label: int) -> Line:
    """One bar: name, how long, and where it lies between the beginning and the end."""
    if bar.kind == "turn":
        return (
            Span("── ", "muted"),
            Span(bar.label, "strong"),
            Span(f" {'─' * max(width - len(bar.label) - 4, 0)}", "muted"),
        )
    glyph = Span("! ", "error") if bar.failed else Span("✗ ", "failed") if bar.wrong else Span("  ")
    name = fit((glyph, Span("  " * min(bar.depth, 4)), *_label(bar)), label)
    took = duration(bar.end - bar.start) if bar.start is not None and bar.end is not None else "–"
    head: Line = (*name, Span(" " * (label - width_of(name))), Span(f" {took:>9} ", "muted"))
    room = max(width - width_of(head), 4)
    if bar.start is None or not total:
        return head
    style = (
        "error"
        if bar.failed
        else {"hand_off": "agent", "assistant": "role-assistant", "span": "muted"}.get(bar.kind, "code")
    )
    end = bar.end if bar.end is not None else bar.start
    first = min(bar.start / total * room, room - 0.2)
    last = max(min(end / total * room, room), first + 0.2)
    return (*head, *_drawn(first, last, style))


def _drawn(first: float, last: float, style: str) -> Line:
    """A bar from one place to another, to an eighth of a column at its end."""
    begin = int(first)
    if last - first < 0.5:  # shorter than can be told from its place
        return (Span(" " * begin), Span("▏", style))
    whole, part = divmod(round((last - begin) * 8), 8)
    text = "█" * whole + (_EIGHTHS[part] if part else "")
    return (Span(" " * begin), Span(text or "▏", style))
