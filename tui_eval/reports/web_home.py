"""The first page of the results in a browser: every run, and how each set of suites came out over time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from tui_eval.reports import page
from tui_eval.reports.page_case import dollars
from tui_eval.reports.page_text import safe
from tui_eval.store.index import Index
from tui_eval.store.schema import RunSummary

CARDS = 6
"""Sets of suites whose pass rate is drawn, those that were run last."""
AGAIN = 5
"""Seconds after which the page is loaded again while a run goes on."""
NEWEST = 40
"""Runs that one drawing holds."""


def home(root: Path) -> str:
    """The page."""
    runs = Index(root).runs()
    heading = f'<h1>Runs</h1><p class="muted">{safe(str(root))}</p>'
    if not runs:
        return page.document("Runs", f"{heading}<p>No runs yet: <code>tui-eval run PATH</code></p>")
    names = ("Passed", "Failed", "Errors", "Rate", "Cost")
    head = "<th>When<th>What<th>Outcome" + "".join(f'<th class="number">{name}' for name in names) + "<th>"
    earlier = {run.id for run in runs[1:]}
    rows = "".join(_row(run, bool(earlier) and run is not runs[-1]) for run in runs)
    table = f'<div class="scroll"><table class="runs"><thead><tr>{head}</tr></thead>{rows}</table></div>'
    going_on = any(run.state in ("running", "paused") for run in runs)
    return page.document("Runs", f"{heading}{_cards(runs)}{table}", AGAIN if going_on else 0)


def places(run: RunSummary) -> str:
    """The paths that were run, without how many cases that were."""
    return run.what.rpartition(" (")[0] or run.what


def rate_of(run: RunSummary) -> float | None:
    """Share of judged attempts that passed; None where none was judged."""
    judged = run.passed + run.failed + run.errors
    return run.passed / judged if judged else None


def _cards(runs: Sequence[RunSummary]) -> str:
    """The pass rate of whole runs of the same suites as bars, oldest at the left."""
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        if not run.linked_to and rate_of(run) is not None:
            groups.setdefault(places(run), []).append(run)
    cards = [_card(name, group[:NEWEST]) for name, group in groups.items() if len(group) > 1]
    return f'<div class="cards">{"".join(cards[:CARDS])}</div>' if cards else ""


def _card(name: str, newest: Sequence[RunSummary]) -> str:
    rates = [(run.id, rate_of(run) or 0.0) for run in reversed(newest)]
    bars = "".join(
        f'<rect x="{index}.1" y="{100 - rate * 100:.1f}" width=".8" height="{max(rate * 100, 1):.1f}"'
        f' fill="currentColor"><title>{safe(run_id)}: {rate:.0%}</title></rect>'
        for index, (run_id, rate) in enumerate(rates)
    )
    label = f"Pass rate of {len(rates)} runs, oldest at the left; the last {rates[-1][1]:.0%}"
    wide = max(len(rates), 12)
    return (
        f'<div class="card"><strong>{safe(name, 120)}</strong> <span class="number">{rates[-1][1]:.0%}</span>'
        f'<svg viewBox="0 0 {wide} 100" preserveAspectRatio="none" role="img"'
        f' aria-label="{safe(name, 120)}. {label}">{bars}</svg><span class="muted">{len(rates)} runs, oldest at the left</span></div>'
    )


def bar(passed: int, failed: int, errors: int) -> str:
    """The three outcomes as parts of a bar."""
    parts = "".join(
        f'<span class="{name}" style="flex: {count}"></span>'
        for name, count in (("passed", passed), ("failed", failed), ("error", errors))
        if count
    )
    return f'<div class="bar" aria-hidden="true">{parts}</div>'


def _row(run: RunSummary, comparable: bool) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    if run.state == "damaged":
        return (
            f'<tr><td class="when">{when}<br><small>{safe(run.id)}</small><td colspan="8">'
            f'<span class="error">damaged</span> <span class="muted">{safe(run.what, 400)}</span></tr>'
        )
    rate = rate_of(run)
    figures = "".join(
        f'<td class="number">{value}'
        for value in (
            f"{run.passed:,}",
            f"{run.failed:,}",
            f"{run.errors:,}",
            "" if rate is None else f"{rate:.0%}",
            dollars(run.cost),
        )
    )
    name = safe(run.id)
    state = "" if run.state == "finished" else f' <span class="error">{safe(run.state)}</span>'
    linked = f'<br><small class="muted">adds to {safe(run.linked_to)}</small>' if run.linked_to else ""
    link = f'<a href="/compare?after={quote(run.id)}">compare</a>' if comparable else ""
    return (
        f'<tr><td class="when"><a href="/runs/{quote(run.id)}">{when}</a><br><small class="muted">{name}</small>{linked}'
        f'<td>{safe(run.what, 400)}{state}<br><small class="muted">{safe(run.agents, 400)}</small>'
        f"<td>{bar(run.passed, run.failed, run.errors)}{figures}<td>{link}</tr>"
    )
