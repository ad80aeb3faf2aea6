"""The spans that an attempt's agent exported, as the HTML page of a run shows them: a tree."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST_SPANS = 200
_DEEPEST = 30
_ERROR = 2


class SpanShown(NamedTuple):
    """A span; `milliseconds` is None where one of its times is not known."""

    name: str
    message: str
    attributes: dict[str, Any]
    milliseconds: float | None
    failed: bool


class TraceShown(NamedTuple):
    """The first spans with their depths, how many there are (`whole`), and why there are no more."""

    spans: list[tuple[SpanShown, int]]
    whole: int
    said: str


def trace_shown(trace: dict[str, Any] | None) -> TraceShown | None:
    """What is shown of a trace; None without one.

    Args:
        trace: `trace` of a results file's entry.
    """
    if not trace:
        return None
    spans = trace.get("spans") or []
    said = " · ".join(trace[key] for key in ("problem", "note") if trace.get(key))
    tree = [(_span(span), depth) for span, depth in _tree(spans)[:MOST_SPANS]]
    return TraceShown(tree, len(spans), said)


def _span(span: dict[str, Any]) -> SpanShown:
    start, end = span.get("start"), span.get("end")
    took = end - start if start is not None and end is not None else None
    failed = span.get("status") == _ERROR
    return SpanShown(span["name"], span.get("message") or "", span.get("attributes") or {}, took, failed)


def _tree(spans: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Every span with its depth, each after the one that it belongs to; ones that belong to none that is
    known come first. Each is shown once, whatever the parents say."""
    known = {span["span_id"] for span in spans}
    below: dict[str | None, list[dict[str, Any]]] = {}
    for span in sorted(spans, key=lambda span: span.get("start") or 0):
        parent = span.get("parent_id")
        below.setdefault(parent if parent in known and parent != span["span_id"] else None, []).append(span)
    found: list[tuple[dict[str, Any], int]] = []
    shown: set[int] = set()

    def walk(parent: str | None, depth: int) -> None:
        for span in below.get(parent, ()):
            if id(span) not in shown:
                shown.add(id(span))
                found.append((span, depth))
                if depth < _DEEPEST:
                    walk(span["span_id"], depth + 1)

    walk(None, 0)
    found += [(span, 0) for span in spans if id(span) not in shown]
    return found
