"""What the rows that differ have in common, as the lines above them: each measured, the strongest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_eval.tui.state.text.lines import Line, Span, one_line

if TYPE_CHECKING:
    from tui_eval.tui.state.data.data_view import DataView

_LONGEST = 300


def diagnosis_lines(view: DataView) -> list[Line]:
    """At most three lines; none where rows are not at hand that could say otherwise, or where nothing was found.
    Frames are read whole: call it in a thread."""
    if view.truncated or not (view.wrong or view.missing_columns):
        return []
    from tui_eval.frames.diagnosis import diagnosis_of

    try:
        found = diagnosis_of(view.difference).lines
    except BaseException as problem:
        # Polars panics with a BaseException; rows that were read from elsewhere may be of any kind
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        return []
    return [(Span("→ ", "note"), Span(one_line(line, _LONGEST), "strong")) for line in found]
