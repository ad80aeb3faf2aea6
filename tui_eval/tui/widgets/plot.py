"""Plots over all runs in large: textual-plotext's where that is installed (extra `plots`), else blocks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.util import find_spec

from tui_eval.extras import adding
from tui_eval.tui.state.runs.trends import (
    FIGURES,
    LABEL,
    SCALE,
    WHOLE,
    Point,
    Series,
    condensed,
    series,
    trend_lines,
)
from tui_eval.tui.state.text.lines import Line, Span, fit, text_lines

LEAST_HEIGHT, LEAST_WIDTH = 7, 40
"""Lines and columns below which a plot with axes says less than blocks."""
WITHOUT = f"Plots with axes need the extra `plots`: {adding('plots')}"


def figures(points: Sequence[Point]) -> list[str]:
    """The names of the plots there are; the last of them are shown only alone."""
    return [one.name for one in series(points, whole=True)]


def plot_lines(
    points: Sequence[Point],
    width: int,
    height: int,
    here: str = "",
    *,
    only: str = "",
    of: str = "",
    unicode: bool = True,
) -> list[Line]:
    """The plots in `height` lines together, all runs in them; `here` is the run that is pointed at.

    Args:
        points: The runs, oldest first.
        width: Columns.
        height: Lines.
        here: The id of a run.
        only: The name of the one figure to show; empty: all that are of an attempt.
        of: What the runs are, in a few words.
        unicode: Whether the terminal can show more than ASCII.
    """
    if len(points) < 2 or not series(points):
        return [(Span("Plots begin with the second run.", "muted"),)]
    blocks_room = max(width - LABEL - SCALE, 6)
    many = sum(not only or one.name == only for one in series(points, whole=bool(only)))
    axes = unicode and height // many >= LEAST_HEIGHT and width >= LEAST_WIDTH
    large = axes and find_spec("plotext") is not None
    shown, per = condensed(points, width - 12 if large else blocks_room, here)
    words = f"{len(points):,} runs, oldest at the left{of}"
    words += f", means of {per}" if per > 1 else ""
    words += "" if only in [name for name, _, _ in WHOLE] else ", of an attempt"
    lines: list[Line] = [fit((Span(only or "over the runs", "heading"), Span(f"  {words}", "muted")), width)]
    found = [one for one in series(shown, whole=bool(only)) if not only or one.name == only]
    own = next((point for point in points if point.run_id == here), None)
    room = height - 1
    if large:
        at = next((i for i, point in enumerate(shown, 1) if point.run_id == here), None)
        told = {one.name: one.values[0] for one in series([own], whole=True)} if own is not None else {}
        for one, high in zip(found, _heights(room, len(found)), strict=True):
            value = told.get(one.name)
            words = f"  this run {one.show(value)}, at the line" if value is not None else ""
            head: Line = (Span(one.name, "heading" if only else "strong"), Span(words, "muted"))
            if only:
                lines = [fit((*head, *lines[0][1:]), width)]
            else:
                lines.append(fit(head, width))
            lines += _with_axes(one, shown, width, high - (not only), at)
        return lines
    if axes:
        lines.append(fit((Span(WITHOUT, "note"),), width))
        room -= 1
    if only:
        shown = [_alone(point, only) for point in shown]
    if own is not None and only:
        own = _alone(own, only)
    heights = _heights(room - 1, len(found))
    return lines + trend_lines(shown, width, heights, here, own, whole=bool(only))


def _heights(room: int, many: int) -> list[int]:
    """Lines of each of so many plots, those above first in what is left over."""
    each, over = divmod(max(room, many), many)
    return [each + (number < over) for number in range(many)]


def _alone(point: Point, name: str) -> Point:
    """A run with this figure only; one of the whole run in the place of its like of an attempt."""
    field = next(field for known, field, _ in (*FIGURES, *WHOLE) if known == name)
    bare = Point(point.run_id, point.at, None, None, None, None)
    return bare._replace(**{field: getattr(point, field)})


def _with_axes(one: Series, points: Sequence[Point], width: int, height: int, at: int | None) -> list[Line]:
    """One plot by plotext, as text without its colours; a line through the column pointed at. Nothing in it
    is foreign text: the ticks are numbers and dates."""
    import plotext  # imported late: an extra, and slow

    known = [(number, value) for number, value in enumerate(one.values, 1) if value is not None]
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)  # the pane is given, whatever size of terminal is guessed
    plotext.plot_size(width, height)
    plotext.plot([x for x, _ in known], [y for _, y in known], marker="braille")
    if at is not None:
        plotext.vline(at)
    top = one.top if one.top is not None else max(y for _, y in known) or 1.0
    plotext.xlim(1, len(points))
    plotext.ylim(0, top)
    plotext.yticks([0, top / 2, top], [one.show(value) for value in (0.0, top / 2, top)])
    plotext.xticks(*_dates(points, width))
    text = plotext.uncolorize(plotext.build())
    return [fit(line, width) for line in text_lines(text.rstrip("\n"), "code")]


def _dates(points: Sequence[Point], width: int) -> tuple[list[float], list[str]]:
    """Where dates stand below a plot, each once: at most one in fifteen columns."""
    most = max(min(width // 15, len(points)), 2)
    places = sorted({1 + round(i * (len(points) - 1) / (most - 1)) for i in range(most)})
    ticks: list[float] = []
    names: list[str] = []
    for place in places:
        name = time.strftime("%d %b", time.localtime(points[place - 1].at))
        if not names or names[-1] != name:
            ticks.append(float(place))
            names.append(name)
    return ticks, names
