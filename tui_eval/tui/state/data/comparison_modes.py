"""What the documented comparison and nao's own (the reference) each make of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tui_eval.model import Attempt, DataDetails
from tui_eval.tui.state.case.verdict_lines import about_rows
from tui_eval.tui.state.data.data_view import settings_of, sides_of
from tui_eval.tui.state.text.lines import Line, Span, one_line

MOST_ROWS = 200_000
"""Rows of a side up to which both comparisons are made; the reference goes through them one by one."""
MODES = ("documented", "reference")


def disagreement(attempt: Attempt, folder: Path | None = None) -> list[Line]:
    """Both comparisons with their messages where they disagree, the one that counted first; nothing
    where they agree or cannot both be made. Takes long for many rows: call it in a thread."""
    details = attempt.data
    if details is None or details.expected is None or details.actual is None:
        return []
    expected, actual, lost = sides_of(details, folder)
    if lost or max(len(expected), len(actual)) > MOST_ROWS:
        return []
    results: dict[str, tuple[bool | None, str]] = {}
    for mode in MODES:
        made = _compared(mode, details, _records(expected), _records(actual))
        results[mode] = made.passed, made.message
    counted = str(details.settings.get("compat"))
    verdict = next((v for v in attempt.verdicts if about_rows(v)), None)
    if counted not in MODES and verdict is not None:
        counted = next((mode for mode in MODES if results[mode][0] == verdict.passed), MODES[0])
    elif verdict is not None:  # what was judged knew the types of the expected columns
        results[counted] = verdict.passed, verdict.reason or results[counted][1]
    if results["documented"][0] == results["reference"][0]:
        return []
    order = sorted(MODES, key=lambda mode: mode != counted)
    words = {True: ("✓", "passed"), False: ("✗", "failed"), None: ("!", "error")}
    lines: list[Line] = []
    for mode in order:
        passed, message = results[mode]
        glyph, style = words[passed]
        note = " counted here" if mode == counted else " would say otherwise"
        lines.append(
            (
                Span(f"{glyph} {mode}", style),
                Span(f": {one_line(message, 200)}"),
                Span(f" ·{note}", "muted"),
            )
        )
    return lines


def _compared(mode: str, details: DataDetails, expected: list[Any], actual: list[Any]) -> Any:
    from tui_eval.frames import compare, nao_reference

    make = nao_reference.compare if mode == "reference" else compare.compare
    return make(actual, expected, settings_of(details), details.columns or None)


def _records(rows: Any) -> list[dict[str, Any]]:
    return rows if isinstance(rows, list) else rows.to_dicts()
