"""The plots over the runs in Runs: which runs, which figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.lists.run_line import RunLine, alike, points
from tui_eval.tui.state.runs.trends import Point
from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.widgets.plot import figures, plot_lines


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
