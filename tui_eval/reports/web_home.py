"""The first page of the results in a browser: every run, and how each set of suites came out over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tui_eval.reports.html_templates import render
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
    going_on = any(run.state in ("running", "paused") for run in runs)
    rows = [(run, rate_of(run)) for run in runs]
    return render("runs.html.j2", root=root, rows=rows, cards=_cards(runs), again=AGAIN if going_on else 0)


def places(run: RunSummary) -> str:
    """The paths that were run, without how many cases that were."""
    return run.what.rpartition(" (")[0] or run.what


def rate_of(run: RunSummary) -> float | None:
    """Share of judged attempts that passed; None where none was judged."""
    judged = run.passed + run.failed + run.errors
    return run.passed / judged if judged else None


def _cards(runs: Sequence[RunSummary]) -> list[tuple[str, list[tuple[str, float]]]]:
    """By set of suites the pass rates of its whole runs with their ids, oldest first, where there are several."""
    groups: dict[str, list[tuple[str, float]]] = {}
    for run in runs:
        rate = rate_of(run)
        if not (run.linked_to or run.part_of or run.stepped) and rate is not None:
            groups.setdefault(places(run), []).append((run.id, rate))
    return [(name, group[:NEWEST][::-1]) for name, group in groups.items() if len(group) > 1][:CARDS]
