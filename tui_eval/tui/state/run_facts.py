"""The two lines at the top of the Run screen, as styled parts. Pure."""

from __future__ import annotations

from tui_eval.guard.text import clip, visible
from tui_eval.tui.state import figures
from tui_eval.tui.state.figures import Symbols
from tui_eval.tui.state.run_view import RunView

Parts = list[tuple[str, str]]


def progress_line(run: RunView, symbols: Symbols, width: int) -> Parts:
    """State, progress and what became of the attempts; retries with their reason."""
    counts = run.counts
    state = run.info.state
    style = {"running": "running", "finished": "title", "paused": "warn"}.get(state, "warn")
    parts: Parts = [(style, f"{state:<9} ")]
    full, empty = symbols.bar(counts.done, counts.total, 10 if width < 100 else 20)
    parts += [("bar", full), ("dim", empty), ("text", f" {counts.done:,}/{counts.total:,}")]
    for status, number, name in (
        ("passed", counts.passed, "good"),
        ("failed", counts.failed, "bad"),
        ("error", counts.errors, "warn"),
        ("cancelled", counts.cancelled, "dim"),
        ("skipped", counts.skipped, "dim"),
        ("running", counts.running, "running"),
        ("retrying", counts.retrying, "warn"),
    ):
        if number or status in ("passed", "failed"):
            word = "errors" if status == "error" and number > 1 else status
            shown = (
                f"{symbols.glyphs[status]}{number:,}"
                if width < 100
                else f"{symbols.glyphs[status]} {number:,} {word}"
            )
            parts.append((name if number else "dim", f"  {shown}"))
    if counts.retrying:
        detail = next((row.detail for row in run.running() if row.state == "retrying" and row.detail), "")
        if detail:
            parts.append(("warn", f" {clip(visible(detail, newlines=False), 40)}"))
    return parts


def figures_line(run: RunView, symbols: Symbols, now: float) -> Parts:
    """Rate, tokens, cost, elapsed, left; who is asked."""
    counts = run.counts
    info = run.info
    facts: list[str] = []
    facts.append(f"{counts.tokens:,} tokens")
    if counts.cost:
        facts.append(figures.cost(max(0.0, counts.cost)))
    if info.started_at:
        end = info.finished_at or (now if run.active else None)
        if end is not None:
            facts.append(figures.clock(end - info.started_at))
    if run.active:
        rate = run.tokens_per_second(now)
        if rate >= 1:
            facts.append(f"~{rate:,.0f} tok/s")
    if info.state == "running":
        left = run.seconds_left(now)
        if left is not None:
            facts.append(f"~{figures.clock(left)} left")
    parts: Parts = [("text", symbols.dot.join(facts))]
    agents = ", ".join(info.agents)
    if agents:
        parts.append(("dim", f"{symbols.dot}{clip(visible(agents, newlines=False), 40)}"))
    if info.scripted:
        parts.append(("warn", f"{symbols.dot}scripted agent"))
    if info.linked_to:
        parts.append(("dim", f"{symbols.dot}adds to {info.linked_to}"))
    if info.note:
        parts.append(("warn", f"{symbols.dot}{clip(visible(info.note, newlines=False), 80)}"))
    return parts


def summary(run: RunView) -> str:
    """One line about a run that ended: `finished: 8 passed, 2 failed`."""
    counts = run.counts
    parts = [
        f"{number:,} {name}"
        for name, number in (
            ("passed", counts.passed),
            ("failed", counts.failed),
            ("errors", counts.errors),
            ("cancelled", counts.cancelled),
        )
        if number
    ]
    return f"{run.info.state}: {', '.join(parts) or 'nothing ran'}"
