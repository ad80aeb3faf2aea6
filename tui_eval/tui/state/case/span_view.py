"""Spans of an attempt's trace: as bars beside its calls, and one of them in full."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from functools import partial

from tui_eval.model import Attempt, Trace, TraceSpan
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.formatting import duration
from tui_eval.tui.state.text.json_lines import json_lines
from tui_eval.tui.state.text.lines import Line, Span, one_line, text_lines

APART = 3_600_000.0
"""Milliseconds between an attempt and its spans from which on another clock must have told the time."""
_ERROR = 2


def spans_of(attempt: Attempt) -> Sequence[TraceSpan]:
    """The spans that are kept of an attempt."""
    return attempt.trace.spans if attempt.trace is not None else ()


def shift_of(attempt: Attempt) -> float:
    """Milliseconds to add to the spans' times: 0, or what brings those of a clock that goes wrong to the
    attempt's beginning."""
    starts = [span.start for span in spans_of(attempt) if span.start is not None]
    began = attempt.started_at * 1000
    if not starts or not began or abs(min(starts) - began) < APART:
        return 0.0
    return began - min(starts)


def depths(spans: Sequence[TraceSpan]) -> dict[str, int]:
    """How deep each span stands below others of the trace, by id."""
    parents = {span.span_id: span.parent_id for span in spans}
    found: dict[str, int] = {}
    for span_id in parents:
        above: dict[str, None] = {}
        place: str | None = span_id
        # An agent may name itself as its own parent.
        while place in parents and place not in found and place not in above:
            above[place] = None
            place = parents[place]
        depth = found.get(place, -1) if place is not None else -1
        for one in reversed(above):
            depth += 1
            found[one] = depth
    return found


def failed(span: TraceSpan) -> bool:
    """Whether a span says that it ended in an error."""
    return span.status is not None and (span.status == _ERROR or span.status >= 400)


def span_blocks(span: TraceSpan, *, rendered: bool = True) -> list[Block]:
    """One span: when, how long, how it ended, its attributes."""
    key = span.span_id
    name = one_line(span.name, 60) or "span"
    blocks = [Block(f"s{key}", "turn", name, partial(_facts, span), label_style="strong")]
    if failed(span) or span.message:
        label, style = ("! error", "role-error") if failed(span) else ("status", "muted")
        source = partial(text_lines, span.message or "no message", "error" if failed(span) else "")
        blocks.append(Block(f"m{key}", "error" if failed(span) else "note", label, source, label_style=style))
    source = partial(json_lines, span.attributes, rendered=rendered)
    if not span.attributes:
        source = partial(text_lines, "none", "muted")
    blocks.append(Block(f"a{key}", "tool_call", "attribute", source, label_style="role-tool_call"))
    return blocks


def trace_blocks(trace: Trace | None) -> list[Block]:
    """What there is to say of a trace as a whole: why it is empty, what was left out."""
    said = "; ".join(filter(None, (trace.problem, trace.note))) if trace is not None else ""
    if not said:
        return []
    return [Block("trace", "note", "trace", partial(text_lines, said, "muted"), label_style="muted")]


def _facts(span: TraceSpan) -> Iterator[Line]:
    parts = []
    if span.start is not None:
        at = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        try:
            parts.append((at + datetime.timedelta(milliseconds=span.start)).strftime("%H:%M:%S.%f")[:-3])
        except (OverflowError, ValueError):
            parts.append(f"{span.start:g} ms")
    if span.start is not None and span.end is not None:
        parts.append(duration(span.end - span.start))
    kind = span.attributes.get("otel.span.kind")
    if isinstance(kind, str) and kind not in ("", "unspecified"):
        parts.append(kind)
    parts.append("made by tui-eval around the request" if span.own else "a span of the agent's trace")
    yield (Span(" · ".join(parts), "muted"),)
