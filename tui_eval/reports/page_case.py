"""One case of the HTML page: a line that unfolds to its attempts, each to transcript, verdicts and data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.case_names import full_name
from tui_eval.guard.text import clip
from tui_eval.reports.html_templates import dollars, seconds
from tui_eval.reports.page_data import data_html
from tui_eval.reports.page_text import safe, text_of
from tui_eval.reports.page_trace import trace_html
from tui_eval.store.summary import CaseSummary

_PROMPT, _SHORT = 40, 60
GLYPHS = {"passed": "✓", "failed": "✗", "error": "!", "cancelled": "⊘", "skipped": "–"}

Result = dict[str, Any]
"""One entry of `results[]`, storable."""
ROWS = " rows"
"""Key of the rows as they were compared, beside what a results file has."""


def mark(outcome: str | None) -> str:
    """Glyph and word of an outcome, in its colour."""
    word = outcome or "not run"
    return f'<span class="{safe(word.split()[0])}">{GLYPHS.get(word, "◌")} {safe(word)}</span>'


def case_html(number: int, item: CaseSummary, results: Sequence[Result], *, passed_whole: bool = True) -> str:
    """A case with its attempts; without `passed_whole` those that passed have no transcript."""
    prompt = next((row["prompt"] for row in results if row.get("prompt")), "")
    parts = (item.agent, item.model, clip(str(prompt or ""), _PROMPT))
    who = " · ".join(safe(part, 80) for part in parts if part)
    marks = "".join(GLYPHS.get(row["outcome"], "◌") for row in results)
    ratio = f"{marks if len(marks) <= 5 else ''} {item.passed}/{item.attempts}".strip()
    flaky = ' data-flaky="yes"' if item.flaky else ""
    why = "" if item.outcome == "passed" else f'<span class="why">{safe(item.message, 2000)}</span>'
    parts = [
        f'<details class="case" id="case-{number}" data-outcome="{safe((item.outcome or "not").split()[0])}"{flaky}>'
        f'<summary>{mark(item.outcome)}<span><span class="name">{safe(full_name(item.name, item.variant), 300)}</span> '
        f'<span class="muted">{who}{" · flaky" if item.flaky else ""}{" · asserted nothing" if item.asserted_nothing else ""}{" · cached" if item.cached else ""}</span></span>'
        f'<span class="number">{ratio}</span><span class="number time">{seconds(item.duration_ms)}</span>'
        f'<span class="number cost">{dollars(item.cost)}</span>{why}</summary><div class="inside">'
        f'<p class="muted">{safe(item.suite)} · <a href="#case-{number}">link to this case</a></p>'
    ]
    for row in results:
        parts.append(_attempt(row, alone=len(results) == 1, whole=passed_whole or row["outcome"] != "passed"))
    return "".join(parts) + "</div></details>\n"


def _attempt(row: Result, *, alone: bool, whole: bool) -> str:
    tokens = f" · {row['tokens']:,} tokens" if row["tokens"] is not None else ""
    facts = f"{seconds(row['duration_ms'])}{tokens} {dollars(row['cost'])}"
    if row.get("cached"):
        facts += f" · cached, {dollars(row['saved'])} saved" if row.get("saved") else " · cached"
    parts = [
        f'<details class="attempt"{" open" if alone or row["outcome"] != "passed" else ""}><summary>'
        f'attempt {row["attempt"]} {mark(row["outcome"])} <span class="muted">{facts}</span></summary>'
        f'<div class="attempt-inside">'
    ]
    if row.get("note"):
        note = row["note"]
        said = " ".join(
            str(part) for part in ("★" if note["star"] else "", note["verdict"] or "", note["text"]) if part
        )
        parts.append(f"<p>A person says: {safe(said)}</p>")
    if row["error"]:
        parts.append(f'<p class="error">! {safe(row["error"])}</p>')
    parts += [_verdicts(row["assertions"]), data_html(row["details"], row.get(ROWS))]
    if whole:
        parts += [_entry(entry) for entry in row["transcript"]]
        parts.append(trace_html(row.get("trace")))
    return "".join(parts) + "</div></details>"


def _verdicts(verdicts: Sequence[Result]) -> str:
    items: list[str] = []
    for verdict in verdicts:
        outcome = {True: "passed", False: "failed", None: "error"}[verdict["passed"]]
        turn = f"turn {verdict['turn']} " if verdict["turn"] else ""
        target = "" if verdict["target"] in ("", "text") else f" of {safe(verdict['target'])}"
        item = (
            f'<li><span class="{outcome}">{GLYPHS[outcome]} {outcome}</span> {turn}'
            f'<strong>{safe(verdict["type"])}</strong>{target} <span class="muted">{safe(verdict["reason"], 2000)}</span>'
        )
        if outcome != "passed":
            item += _values([(name, text_of(verdict[name])) for name in ("expected", "actual")
                             if verdict[name] not in (None, "")])  # fmt: skip
        items.append(item)
    return f'<ul class="verdicts">{"".join(items)}</ul>' if items else ""


def _values(values: Sequence[tuple[str, str]]) -> str:
    """What was expected and what came: short values in a line, others in a box each."""
    if all(len(text) <= _SHORT and "\n" not in text for _, text in values):
        shown = [f'<span class="who">{name}</span> <code>{safe(text)}</code>' for name, text in values]
        return f"<div>{' '.join(shown)}</div>" if shown else ""
    return "".join(f'<div class="who">{name}</div><pre>{safe(text, 2000)}</pre>' for name, text in values)


def _entry(entry: Result) -> str:
    who = " · ".join(
        safe(part, 200) for part in (entry["kind"].replace("_", " "), entry["agent"], entry["name"]) if part
    )
    took = f" · {seconds(entry['duration_ms'])}" if entry["duration_ms"] else ""
    value = entry["arguments"] if entry["arguments"] is not None else entry["result"]
    shown = [entry["text"], "" if value is None else text_of(value), entry["error"] or ""]
    body = "\n".join(part for part in shown if part)
    return f'<div class="who">turn {entry["turn"]} · {who}{took}</div><pre>{safe(body)}</pre>'
