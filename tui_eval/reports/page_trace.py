"""The spans that an attempt's agent exported, on the HTML page: a tree with times, errors and attributes."""

from __future__ import annotations

from typing import Any

from tui_eval.reports.page_text import safe, text_of

MOST_SPANS = 200
_DEEPEST = 30
_ERROR = 2


def trace_html(trace: dict[str, Any] | None) -> str:
    """A part that unfolds, with the spans below those that they belong to; empty without a trace.

    Args:
        trace: `trace` of a results file's entry.
    """
    if not trace:
        return ""
    spans = trace.get("spans") or []
    said = " · ".join(trace[key] for key in ("problem", "note") if trace.get(key))
    if not spans:
        return f'<p class="muted">trace: {safe(said or "no spans", 1000)}</p>'
    left = (
        f'<p class="muted">and {len(spans) - MOST_SPANS:,} more spans</p>' if len(spans) > MOST_SPANS else ""
    )
    lines = "".join(_span(span, depth) for span, depth in _tree(spans)[:MOST_SPANS])
    count = f"{len(spans):,} span{'' if len(spans) == 1 else 's'}"
    note = f' <span class="muted">{safe(said, 1000)}</span>' if said else ""
    return f"<details><summary>trace: {count}{note}</summary><div>{lines}</div>{left}</details>"


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


def _span(span: dict[str, Any], depth: int) -> str:
    start, end = span.get("start"), span.get("end")
    took = f"{end - start:,.0f} ms" if start is not None and end is not None else ""
    failed = span.get("status") == _ERROR
    name = f'<span class="{"error" if failed else "name"}">{"! " if failed else ""}{safe(span["name"], 200)}</span>'
    why = f' <span class="error">{safe(span["message"], 500)}</span>' if span.get("message") else ""
    attributes = span.get("attributes") or {}
    told = f"<pre>{safe(text_of(attributes), 2000)}</pre>" if attributes else ""
    line = f'{name} <span class="muted">{took}</span>{why}'
    body = f"<details><summary>{line}</summary>{told}</details>" if told else f"<div>{line}</div>"
    return f'<div style="margin-left: {depth * 1.2:.1f}em">{body}</div>'
