"""The plots over the runs in Runs: which runs, which figure."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.case.case_history import columns
from tui_eval.tui.state.lists.run_line import RunLine, alike, points
from tui_eval.tui.state.runs.trends import (
    FIGURES,
    LABEL,
    MARKS,
    SCALE,
    WHOLE,
    Point,
    Series,
    bars_of_cut,
    condensed,
    mark_style,
    series,
    trend_lines,
)
from tui_eval.tui.state.text.lines import Line, Mark, Span, fit, marked

BROADEST = 8
"""Columns of one run where there are few, with the gap to the next."""
LEAST_HEIGHT, LEAST_WIDTH = 7, 40
"""Lines and columns below which a plot with axes says less than blocks."""


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
        words = f"Plots begin with the second run{of}; a rerun of a part (↳) is none of its own."
        return [fit((Span(words, "muted"),), width)]
    blocks_room = max(width - LABEL - SCALE, 6)
    many = sum(not only or one.name == only for one in series(points, whole=bool(only)))
    large = unicode and height // many >= LEAST_HEIGHT and width >= LEAST_WIDTH
    shown, per = condensed(points, width - 12 if large else blocks_room, here)
    words = f"{len(points):,} runs, oldest at the left{of}"
    words += f", means of {per}" if per > 1 else ""
    words += "" if only in [name for name, _, _ in WHOLE] else ", of an attempt"
    lines: list[Line] = [fit((Span(only or "over the runs", "heading"), Span(f"  {words}", "muted")), width)]
    found = [one for one in series(shown, whole=bool(only)) if not only or one.name == only]
    own = next((point for point in points if point.run_id == here), None)
    room = height - 1
    if large:
        at = next((i for i, point in enumerate(shown) if point.run_id == here), None)
        told = {one.name: one.values[0] for one in series([own], whole=True)} if own is not None else {}
        for one, high in zip(found, _heights(room, len(found)), strict=True):
            value = told.get(one.name)
            of = own.of_known(one.name) if own is not None else ""
            words = f"  this run {one.show(value)}{of}, ▲" if value is not None else ""
            head: Line = (Span(one.name, "heading" if only else "strong"), Span(words, "muted"))
            if only:
                lines = [fit((*head, *lines[0][1:]), width)]
            else:
                lines.append(fit(head, width))
            lines += _with_axes(one, shown, width, high - (not only), at)
        return lines
    if only:
        shown = [_alone(point, only) for point in shown]
    if own is not None and only:
        own = _alone(own, only)
    signs = any(point.outcome for point in shown)
    heights = _heights(room - 1 - signs, len(found))
    return lines + trend_lines(shown, width, heights, here, own, whole=bool(only))


def _heights(room: int, many: int) -> list[int]:
    """Lines of each of so many plots, those above first in what is left over."""
    each, over = divmod(max(room, many), many)
    return [each + (number < over) for number in range(many)]


def _alone(point: Point, name: str) -> Point:
    """A run with this figure only; one of the whole run in the place of its like of an attempt."""
    field = next(field for known, field, _ in (*FIGURES, *WHOLE) if known == name)
    bare = Point(point.run_id, point.at, None, None, None, None)
    return bare._replace(outcome=point.outcome, partly=point.partly, **{field: getattr(point, field)})


def _with_axes(one: Series, points: Sequence[Point], width: int, height: int, at: int | None) -> list[Line]:
    """One plot with a scale at its left and dates below: a bar for each run, on the line under them how its cases
    came out, `▲` where the run is that is pointed at."""
    known = [value for value in one.values if value is not None]
    top = (one.top if one.top is not None else max(known)) or 1.0
    rows = max(height - 2, 1)
    rows -= rows % 2 if rows > 2 else 0  # so that a line is the half
    ends = {0: one.show(top), rows - 1: one.show(0.0)} if rows > 1 else {0: one.show(top)}
    half = one.show(top * (rows - rows // 2) / rows)
    # $0.0001 has no half that reads otherwise
    ticks = ends if half in ends.values() else {rows // 2: half} | ends
    edge = max(map(len, ticks.values()))
    wide = min(max((width - edge - 1) // len(points), 1), BROADEST)
    bar = wide - 1 if wide > 1 else 1
    style, cut = ("passed", bars_of_cut(points, wide)) if one.name == "pass rate" else ("code", [])
    lines: list[Line] = []
    for number, row in enumerate(columns([*one.values, top], rows)):
        bars: Line = (Span("".join(f"{step * bar:<{wide}}" for step in row[:-1]), style),)
        bars = marked(bars, cut)
        if at is not None:
            bars = marked(bars, [Mark(at * wide, at * wide + bar, "strong note")])
        sign = "┤" if number in ticks else "│"
        lines.append(fit((Span(f"{ticks.get(number, ''):>{edge}}{sign}", "muted"), *bars), width))
    axis = [Span(" " * edge + "└", "muted")]
    for number, point in enumerate(points):
        sign = ("▲" if number == at and wide < 2 else "") or MARKS.get(point.outcome, "─")
        axis.append(Span(sign, mark_style(point.outcome) if sign in MARKS.values() else "muted"))
        rest = "▲" if number == at and wide > 1 else ""
        axis += [Span(rest, "note"), Span("─" * (wide - 1 - len(rest)), "muted")]
    return [*lines, fit(tuple(axis), width), fit(_dates(points, wide, edge + 1), width)]


def _dates(points: Sequence[Point], wide: int, edge: int) -> Line:
    """The days of the runs below their bars, each once, as many as there is room for."""
    text = " " * edge
    last = ""
    for number, point in enumerate(points):
        name = time.strftime("%d %b", time.localtime(point.at))
        place = edge + number * wide
        if name != last and (place >= len(text) + 2 or not number):
            text = f"{text:<{place}}{name}"
            last = name
    return (Span(text, "muted"),)


class PlottedRuns(Protocol):
    """What the plots ask of the list of runs they stand beside."""

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        ...

    @property
    def large(self) -> bool:
        """Whether the plots stand alone."""
        ...

    def plotted(self) -> Sequence[RunLine]:
        """The runs among which those of the plots are."""
        ...

    def show_plots(self) -> None:
        """Other runs or another figure: draw them anew."""
        ...


class RunPlots:
    """Small beside a run, or alone."""

    def __init__(self, runs: PlottedRuns, services: AppServices) -> None:
        self._runs, self._services = runs, services
        self.figure = ""
        """The one figure that the large plots show; empty: all that are of an attempt."""
        self.all_runs = False
        """Whether runs of other suites are plotted too."""

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "runs.figure": partial(self.next_figure, 1),
            "runs.figure_back": partial(self.next_figure, -1),
            "runs.alike": self.alike,
        }

    def trend(self) -> tuple[list[Point], bool]:
        """The runs plotted, and whether they are only those of the same suites."""
        runs = self._runs.plotted()
        some = runs if self.all_runs else alike(runs, self._runs.chosen)
        return points(some), len(some) < len(runs)

    def large(self, width: int, height: int) -> list[Line]:
        """The plots in all the room there is."""
        trend, same = self.trend()
        here = self._runs.chosen.run.id if self._runs.chosen is not None else ""
        return plot_lines(
            trend,
            width,
            height,
            here,
            only=self.figure,
            of=", of the same suites (s: all)" if same else "",
            unicode=self._services.symbols.unicode,
        )

    def idle(self) -> set[str]:
        """The ids of the keys that would change nothing in the large plots."""
        runs, trend = self._runs.plotted(), self.trend()[0]
        idle = set[str]()
        if len(trend) < 2 or not figures(trend):
            idle |= {"runs.figure", "runs.figure_back"}
        if points(runs) == points(alike(runs, self._runs.chosen)):
            idle.add("runs.alike")
        return idle

    def next_figure(self, step: int) -> None:
        """In the plots: the next figure alone, or all of them again."""
        if not self._runs.large:
            self._services.notices.say("v shows the plots; > < then take one of them alone")
            return
        names = ["", *figures(self.trend()[0])]
        at = names.index(self.figure) if self.figure in names else 0
        self.figure = names[(at + step) % len(names)]
        self._runs.show_plots()

    def alike(self) -> None:
        """Runs of all suites in the plots, or only those of the same suites."""
        self.all_runs = not self.all_runs
        self._runs.show_plots()
        self._services.notices.say(
            "plots of all runs" if self.all_runs else "plots of runs of the same suites"
        )
