"""`tui-eval runs`: what was run, a line each; the columns that a terminal has room for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tui_eval.commands.output import EXIT_NOTHING, EXIT_OK, say, say_json, terminal_width
from tui_eval.config.project import find_root
from tui_eval.guard.text import visible
from tui_eval.store.index import Index
from tui_eval.store.schema import RunSummary

WIDE = 130
"""Columns of a terminal from which date and state have columns of their own; a pipe has them always."""
_LAST = 20
"""Columns that the last column has at least."""


def list_runs(as_json: bool) -> int:
    """The runs of this project, newest first."""
    root, _ = find_root([Path.cwd()])
    found = Index(root).runs()
    if as_json:
        say_json([msgspec.to_builtins(item) for item in found])
    elif found:
        say(runs_text(found, terminal_width()))
    else:
        say(f"no runs yet in {root}; start one with `tui-eval run PATH`")
    return EXIT_OK if found else EXIT_NOTHING


def runs_text(runs: Sequence[RunSummary], width: int | None) -> str:
    """A table of runs, at most `width` columns wide (None: as wide as it is)."""
    wide = width is None or width >= WIDE
    head = ["Run", *(["When", "State"] if wide else []), "Passed", "Failed", "Errors", "Cost", "What"]
    rows = [head, *(_cells(run, wide) for run in runs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head) - 1)]
    lefts = 3 if wide else 1
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.ljust(size) if i < lefts else cell.rjust(size)
            for i, (cell, size) in enumerate(zip(row, widths, strict=False))
        ]
        line = "  ".join([*cells, row[-1]])
        if width is not None:
            line = _cut(line, max(width, sum(widths) + 2 * len(widths) + _LAST))
        lines.append(line.rstrip())
    return "\n".join(lines)


def _cells(run: RunSummary, wide: bool) -> list[str]:
    damaged = run.state == "damaged"
    what = visible(f"{run.what} · {run.agents}" if run.agents else run.what, newlines=False)
    if run.linked_to:
        what = f"↳ {run.linked_to}: {what}" if wide else f"↳ {what}"
    more = [time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at)), run.state] if wide else []
    if not wide and run.state != "finished":
        what = f"{run.state}: {what}"
    counts = (
        ["", "", ""] if damaged else [f"{run.passed:,}/{run.total:,}", f"{run.failed:,}", f"{run.errors:,}"]
    )
    return [run.id, *more, *counts, "" if run.cost is None else f"${run.cost:,.4f}", what]


def _cut(line: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return line if cell_len(line) <= width else set_cell_size(line, width - 1) + "…"
