"""The plots over the runs in Runs: which runs, which figure, and how large."""

from __future__ import annotations

from collections.abc import Sequence

from tui_eval.tui.screens.place import Place
from tui_eval.tui.state.lists.run_line import RunLine, alike, points
from tui_eval.tui.state.runs.trends import Point
from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.widgets.plot import figures, plot_lines


class RunsPlots(Place, inherit_bindings=False):
    """The one derived shows the plots: small beside a run, or alone (class `-plots`)."""

    def __init__(self) -> None:
        super().__init__()
        self.figure = ""
        """The one figure that the large plots show; empty: all that are of an attempt."""
        self.all_runs = False
        """Whether runs of other suites are plotted too."""

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        raise NotImplementedError

    def plotted(self) -> Sequence[RunLine]:
        """The runs among which those of the plots are."""
        raise NotImplementedError

    def plots_shown(self, large: bool) -> None:
        """The plots were made large, or small again."""
        raise NotImplementedError

    def show_plots(self) -> None:
        """Other runs or another figure: draw them anew."""
        raise NotImplementedError

    @property
    def large(self) -> bool:
        """Whether the plots stand alone."""
        return self.has_class("-plots")

    def trend(self) -> tuple[list[Point], bool]:
        """The runs plotted, and whether they are only those of the same suites."""
        runs = self.plotted()
        some = runs if self.all_runs else alike(runs, self.chosen)
        return points(some), len(some) < len(runs)

    def large_plots(self, width: int, height: int) -> list[Line]:
        """The plots in all the room there is."""
        trend, same = self.trend()
        here = self.chosen.run.id if self.chosen is not None else ""
        return plot_lines(
            trend,
            width,
            height,
            here,
            only=self.figure,
            of=", of the same suites (s: all)" if same else "",
            unicode=self.services.symbols.unicode,
        )

    def action_plots(self) -> None:
        """The plots alone, large, or the list again."""
        large = not self.large
        self.set_class(large, "-plots")
        self.plots_shown(large)

    def action_figure(self, step: int) -> None:
        """In the plots: the next figure alone, or all of them again."""
        if not self.large:
            self.services.notices.say("v shows the plots; > < then take one of them alone")
            return
        names = ["", *figures(self.trend()[0])]
        at = names.index(self.figure) if self.figure in names else 0
        self.figure = names[(at + step) % len(names)]
        self.show_plots()

    def action_alike(self) -> None:
        """Runs of all suites in the plots, or only those of the same suites."""
        self.all_runs = not self.all_runs
        self.show_plots()
        self.services.notices.say(
            "plots of all runs" if self.all_runs else "plots of runs of the same suites"
        )
