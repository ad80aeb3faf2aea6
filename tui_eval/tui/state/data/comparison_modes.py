"""What the documented comparison and nao's own (the reference) each make of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tui_eval.model import Attempt, DataDetails
from tui_eval.tui.state.case.verdict_lines import about_rows
from tui_eval.tui.state.data.data_view import Sides, settings_of, sides_of
from tui_eval.tui.state.text.lines import Line, Span, one_line

MOST_ROWS = 200_000
"""Rows of a side up to which both comparisons are made where the reference goes through them one by one."""
LARGE = 10_000
"""Rows of a side from which on they are compared as frames, a column at a time."""
MODES = ("documented", "reference")


def disagreement(attempt: Attempt, folder: Path | None = None, sides: Sides | None = None) -> list[Line]:
    """Both comparisons with their messages where they disagree, the one that counted first; nothing
    where they agree or cannot both be made. Takes long for many rows: call it in a thread.

    Args:
        sides: What `sides_of` gives, where that was asked for already.
    """
    details = attempt.data
    if details is None or details.expected is None or details.actual is None:
        return []
    expected, actual, lost = sides or sides_of(details, folder)
    if lost:
        return []
    counted = str(details.settings.get("compat"))
    verdict = next((v for v in attempt.verdicts if about_rows(v)), None)
    if max(len(expected), len(actual)) <= LARGE or isinstance(expected, list) or isinstance(actual, list):
        if max(len(expected), len(actual)) > MOST_ROWS:
            return []
        records = _records(expected, _types(details)), _records(actual)
        made = {mode: _compared(mode, details, *records) for mode in MODES}
    else:
        known = {counted} if verdict is not None else set()
        frames = {mode: _of_frames(mode, details, expected, actual) for mode in MODES if mode not in known}
        made = {mode: one for mode, one in frames.items() if one is not None}
        if len(made) < len(frames):
            return []
    results = {mode: (one.passed, one.message) for mode, one in made.items()}
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

    settings, columns = settings_of(details), details.columns or None
    if mode != "reference":
        return compare.compare(actual, expected, settings, columns, types=_types(details))
    types, dialect = _types(details) or None, str(details.settings.get("dialect") or "duckdb")
    return nao_reference.compare(actual, expected, settings, columns, types=types, dialect=dialect)


def _types(details: DataDetails) -> dict[str, str]:
    """The types of the expected columns, as far as the record has them."""
    kinds: Any = details.settings.get("types")
    return {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, dict) else {}


def _of_frames(mode: str, details: DataDetails, expected: Any, actual: Any) -> Any:
    """One comparison of frames; None where the reference would have to go through their rows."""
    from tui_eval.frames import compare
    from tui_eval.frames.nao_reference import SPELLED, SPELLED_BY, compare_frames
    from tui_eval.frames.numbers import MIXED

    settings, columns = settings_of(details), details.columns or None
    types = _types(details)
    if mode == "reference":
        spelled = SPELLED_BY.get(str(details.settings.get("dialect")), ())
        mixed = not {MIXED, *SPELLED, *spelled}.isdisjoint(types.values())
        return None if mixed else compare_frames(actual, expected, settings, columns)
    return compare.compare(actual, expected, settings, columns, types=types)


def _records(rows: Any, types: dict[str, str] | None = None) -> list[dict[str, Any]]:
    if isinstance(rows, list):
        return rows
    from tui_eval.frames.sql import SqlResult
    from tui_eval.frames.sql import rows as records_of

    return records_of(SqlResult(list(rows.columns), rows, types=types or {}), finite=False)
