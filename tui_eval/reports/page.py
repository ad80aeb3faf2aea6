"""One HTML page of a run that needs nothing else: no script, no font and no link from outside."""

from __future__ import annotations

import html
import json
import time
from pathlib import Path
from typing import Any

from tui_eval.guard.text import clip, storable, visible
from tui_eval.reports import results
from tui_eval.store.reader import RunReader
from tui_eval.store.summary import CaseSummary, summarise_run

_LONGEST = 20_000
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --passed: #2a8a3e; --failed: #c62828; --error: #b26a00; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { text-align: right; white-space: nowrap; } pre { white-space: pre-wrap; overflow-wrap: anywhere;
margin: .2rem 0; } details { margin: .4rem 0; } summary { cursor: pointer; } .passed { color: var(--passed); }
.failed { color: var(--failed); } .error { color: var(--error); } .who { color: #888; }
"""
_END = "</body></html>\n"
_GLYPHS = {"passed": "✓", "failed": "✗", "error": "!", "cancelled": "⊘", "skipped": "–"}


def write(reader: RunReader, path: Path) -> None:
    """Write the page: counts, a table of cases, and each attempt with transcript and verdicts."""
    info = reader.info()
    summaries = summarise_run(reader.cases(), reader.attempts())
    passed = sum(item.outcome == "passed" for item in summaries)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.started_at))
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        title = f"{passed} of {len(summaries)} cases passed"
        file.write(
            f"{_begin(title)}<h1>{_safe(title)}</h1>"
            f"<p>Run {_safe(info.id)}, {when}, {_safe(', '.join(info.agents))}, {_safe(info.state)}</p>"
        )
        file.write(_table(summaries))
        for row in results.rows(reader):
            file.write(_attempt(storable(row)))
        file.write(_END)


def document(title: str, body: str) -> str:
    """A page of its own in the same look; `body` is HTML."""
    return f"{_begin(title)}{body}{_END}"


def _begin(title: str) -> str:
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_safe(title)}</title><style>{_STYLE}</style></head><body>"
    )


def _table(summaries: list[CaseSummary]) -> str:
    head = "".join(f"<th>{name}" for name in ("", "Case", "Agent", "Attempts", "Why", "Time", "Cost"))
    rows = []
    for item in summaries:
        outcome = item.outcome or "not run"
        seconds = "" if item.duration_ms is None else f"{item.duration_ms / 1000:.2f} s"
        cost = "" if item.cost is None else f"${item.cost:.4f}"
        rows.append(
            f"<tr><td class={_safe(outcome.split()[0])}>{_GLYPHS.get(outcome, '◌')} {_safe(outcome)}"
            f"<td>{_safe(item.name)}<td>{_safe(item.agent)}<td class=number>{item.passed}/{item.attempts}"
            f"<td>{_safe(clip(item.message, 300))}<td class=number>{seconds}<td class=number>{cost}"
        )
    return f"<table><tr>{head}{''.join(rows)}</table>"


def _attempt(row: dict[str, Any]) -> str:
    glyph = _GLYPHS.get(row["outcome"], "◌")
    parts = [
        f"<details><summary><span class={_safe(row['outcome'])}>{glyph} {_safe(row['outcome'])}</span> "
        f"{_safe(row['name'])} #{row['attempt']} <span class=who>{_safe(row['agent'])}</span> "
        f"{_safe(clip(row['message'], 300))}</summary>"
    ]
    for entry in row["transcript"]:
        who = " ".join(part for part in (entry["kind"], entry["agent"], entry["name"]) if part)
        value = entry["arguments"] if entry["arguments"] is not None else entry["result"]
        shown = [
            entry["text"],
            "" if value is None else json.dumps(value, indent=2, ensure_ascii=False, default=str),
        ]
        shown.append(entry["error"] or "")
        body = "\n".join(part for part in shown if part)
        parts.append(f"<div class=who>turn {entry['turn']} · {_safe(who)}</div><pre>{_safe(body)}</pre>")
    for verdict in row["assertions"]:
        outcome = {True: "passed", False: "failed", None: "error"}[verdict["passed"]]
        parts.append(
            f"<div class={outcome}>{_GLYPHS[outcome]} {_safe(verdict['type'])} {_safe(verdict['target'])}: "
            f"{_safe(str(verdict['reason']))}</div>"
        )
    if row["details"]["comparison"]:
        parts.append(f"<pre>{_safe(row['details']['comparison'])}</pre>")
    return "".join(parts) + "</details>"


def _safe(text: str) -> str:
    return html.escape(visible(clip(text, _LONGEST)))
