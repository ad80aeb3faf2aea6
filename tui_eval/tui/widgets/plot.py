"""Plots over all runs in large: textual-plotext's where that is installed (extra `plots`), else blocks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from tui_eval.tui.state.lines import Line, Span, fit, text_lines
from tui_eval.tui.state.trends import Point, Series, series, trend_lines


def plot_lines(points: Sequence[Point], width: int, height: int, here: str = "") -> list[Line]:
    """The plots in `height` lines together."""
    found = series(points)
    if not found or len(points) < 2:
        return [(Span("Plots begin with the second run.", "muted"),)]
    each = max(height // len(found), 3)
    if each >= 7 and width >= 40 and find_spec("plotext") is not None:
        return [line for one in found for line in _large(one, width, each)]
    return trend_lines(points, width, max(each - 1, 1), here)


def _large(one: Series, width: int, height: int) -> list[Line]:
    """One plot by plotext, as text without its colours."""
    import plotext  # imported late: an extra, and slow

    known = [(number, value) for number, value in enumerate(one.values, 1) if value is not None]
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, height - 1)
    plotext.plot([x for x, _ in known], [y for _, y in known], marker="braille")
    top = one.top if one.top is not None else max(y for _, y in known) or 1.0
    plotext.ylim(0, top)
    plotext.yticks([0, top / 2, top], [one.show(value) for value in (0.0, top / 2, top)])
    text = plotext.uncolorize(plotext.build())
    heading = (Span(one.name, "strong"), Span(f"  last {one.show(known[-1][1])}", "muted"))
    return [fit(line, width) for line in (heading, *text_lines(text.rstrip("\n"), "code"))]
