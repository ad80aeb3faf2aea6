"""Figures over the runs and within one: plots of block characters, distributions as bars. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

from tui_eval.store.summary import share
from tui_eval.tui.state.case.case_history import columns
from tui_eval.tui.state.text.formatting import cost, duration
from tui_eval.tui.state.text.lines import Line, Mark, Span, fit, marked, wrap

LABEL = 11
"""Columns of a plot's name."""
SCALE = 22
"""Columns for the numbers at a plot's right."""
WIDEST = 4
"""Columns of one run where there are few."""
HEADROOM = 1.15
"""A plot's scale beyond its largest value, so that plots above each other do not touch."""
BUCKETS = 6
"""Bars of a distribution."""


class Point(NamedTuple):
    """One run in the plots: share of attempts passed (0–1), what an attempt takes (USD, ms, tokens) and what
    the whole run took (USD, tokens, seconds); None: unknown. `outcome`, one of `MARKS`, is that of its cases,
    the worst first; `partly` says of a figure of an attempt of how many it is the mean, where it is not known
    of all."""

    run_id: str
    at: float
    pass_rate: float | None
    cost: float | None
    latency_ms: float | None
    tokens: float | None
    whole_cost: float | None = None
    whole_tokens: float | None = None
    seconds: float | None = None
    outcome: str = ""
    partly: tuple[tuple[str, str], ...] = ()

    def of_known(self, name: str) -> str:
        """` (of 30 known)`: of how many attempts a figure is the mean; empty where it is of all."""
        told = dict(self.partly).get(name)
        return f" ({told})" if told else ""


class Series(NamedTuple):
    """One figure over the runs. `top` is the scale's upper end (None: the largest value)."""

    name: str
    values: list[float | None]
    show: Callable[[float], str]
    top: float | None = None


MARKS = {"failed": "✗", "error": "!", "cancelled": "⊘", "not run": "◌", "running": "●", "passed": "✓"}
"""What stands under a run's bars, as in the list: how its cases came out, the worst first."""
CUT = ("cancelled", "not run")
"""Outcomes of runs of which what passed is not all: their share of it is not green."""
FIGURES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("pass rate", "pass_rate", share),
    ("latency", "latency_ms", duration),
    ("tokens", "tokens", lambda value: f"{value:,.0f}"),
    ("cost", "cost", cost),
)
"""What is plotted of an attempt: name, field of a point, how a value is said."""
WHOLE: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("all tokens", "whole_tokens", lambda value: f"{value:,.0f}"),
    ("all cost", "whole_cost", cost),
    ("time taken", "seconds", lambda value: duration(value * 1000)),
)
"""What is plotted of the whole run, each alone: it says as much of how large the run was."""


def series(points: Sequence[Point], *, whole: bool = False) -> list[Series]:
    """Pass rate, latency, tokens and cost of an attempt, those that are known of any run, oldest first; with
    `whole` also what the runs took as wholes."""
    found: list[Series] = []
    for name, field, show in (*FIGURES, *(WHOLE if whole else ())):
        values: list[float | None] = [getattr(point, field) for point in points]
        if any(value is not None for value in values):
            found.append(Series(name, values, show, 1.0 if name == "pass rate" else None))
    return found


def shown(points: Sequence[Point], width: int) -> Sequence[Point]:
    """The newest runs, as many as the small plots have columns for."""
    return points[-max(width - LABEL - SCALE, 6) :]


def condensed(points: Sequence[Point], room: int, here: str = "") -> tuple[list[Point], int]:
    """All runs in at most `room` columns, neighbours as their means, and how many runs a column stands for;
    the column with the run `here` bears its id."""
    per = max(ceil(len(points) / max(room, 1)), 1)
    groups = [points[start : start + per] for start in range(0, len(points), per)]
    return [_mean_of(group, here) for group in groups], per


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _mean_of(group: Sequence[Point], here: str) -> Point:
    if len(group) == 1:
        return group[0]
    run_id = next((point.run_id for point in group if point.run_id == here), group[0].run_id)
    # The fields between the time and the outcome, each for itself.
    means = [mean(values) for values in list(zip(*group, strict=True))[2:-2]]
    worst = next((one for one in MARKS if any(point.outcome == one for point in group)), "")
    return Point._make((run_id, group[0].at, *means, worst, ()))


def trend_lines(
    points: Sequence[Point],
    width: int,
    height: int | Sequence[int],
    here: str = "",
    own: Point | None = None,
    *,
    whole: bool = False,
) -> list[Line]:
    """The plots, each `height` lines high (or each its own), oldest run at the left; the run `here` stands
    out, with its figures (those of `own`, where its column is a mean). The newest runs that fit are shown.
    `whole`: what runs took as wholes too."""
    newest = shown(points, width)
    if not newest:
        return []
    room = max(width - LABEL - SCALE, 6)
    at = next((i for i, point in enumerate(newest) if point.run_id == here), None)
    wide = min(max(room // len(newest), 1), WIDEST)
    lines: list[Line] = []
    found = series(newest, whole=whole)
    if own is None and at is not None:
        own = newest[at]
    told = {one.name: one.values[0] for one in series([own], whole=whole)} if own is not None else {}
    heights = [height] * len(found) if isinstance(height, int) else list(height)
    for one, high in zip(found, heights, strict=False):
        value = told.get(one.name)
        here_words = one.show(value) if value is not None else ""
        of_known = own.of_known(one.name) if own is not None and here_words else ""
        cut = bars_of_cut(newest, wide) if one.name == "pass rate" else []
        lines += _series_lines(one, high, wide, at, (here_words, of_known), width, cut)
    signs = any(point.outcome for point in newest)
    if signs:
        here_too = wide > 1 and at is not None
        line = (Span(" " * LABEL), *_marks(newest, wide, at if here_too else None))
        lines.append(fit((*line, Span(" ▲ this run" if here_too else "", "muted")), width))
    if at is not None and not (signs and wide > 1):  # not by its colour alone
        pointer = (
            Span(" " * (LABEL + at * wide)),
            Span("▲" * _bar(wide), "note"),
            Span(" this run", "muted"),
        )
        lines.append(fit(pointer, width))
    return lines


def mark_style(outcome: str) -> str:
    """The style of a mark: an outcome has its own, and what never ran stands as an error."""
    return "error" if outcome == "not run" else outcome


def bars_of_cut(points: Sequence[Point], wide: int) -> list[Mark]:
    """The bars of runs that were cut, in a plot of pass rates whose runs have so many columns each."""
    return [
        Mark(number * wide, number * wide + _bar(wide), mark_style(point.outcome))
        for number, point in enumerate(points)
        if point.outcome in CUT
    ]


def _bar(wide: int) -> int:
    """Cells of a run's bar: where there is room, a gap tells it from the next."""
    return wide - 1 if wide > 1 else wide


def _marks(points: Sequence[Point], wide: int, at: int | None) -> Line:
    """How the cases of each run came out, below its bars; `▲` beside that of the run that is pointed at."""
    marks: list[Span] = []
    for number, point in enumerate(points):
        marks.append(Span(MARKS.get(point.outcome, " "), mark_style(point.outcome)))
        pointer = "▲" if number == at else ""
        marks.append(Span(f"{pointer:<{wide - 1}}", "note"))
    return tuple(marks)


def _series_lines(
    one: Series,
    height: int,
    wide: int,
    at: int | None,
    own: tuple[str, str],
    width: int,
    cut: Sequence[Mark],
) -> list[Line]:
    """`own`: this run's figure, and of how many attempts it is, which is said where there is room for it; `cut` are the
    bars of runs that were cut."""
    known = [value for value in one.values if value is not None]
    top = f"top {one.show(one.top if one.top is not None else max(known))}"
    room = width - LABEL - wide * len(one.values) - len("  this run ")
    here = "".join(own) if len("".join(own)) <= room else own[0]
    lines: list[Line] = []
    for number, row in enumerate(_scaled(one, height)):
        last = number == height - 1
        text: Line = (
            Span(
                "".join(f"{step * _bar(wide):<{wide}}" for step in row),
                "passed" if one.name == "pass rate" else "code",
            ),
        )
        text = marked(text, cut)
        if at is not None:
            text = marked(text, [Mark(at * wide, at * wide + _bar(wide), "strong note")])
        own_words = f"this run {here}" if here else ""
        words = ", ".join(filter(None, (here, top)))
        scale = words if height == 1 else top if number == 0 else own_words if last else ""
        label = one.name if last else ""
        lines.append(fit((Span(f"{label:<{LABEL}}", "label"), *text, Span(f"  {scale}", "muted")), width))
    return lines


def _scaled(one: Series, height: int) -> list[str]:
    known = [value for value in one.values if value is not None]
    top = (one.top if one.top is not None else max(known)) * HEADROOM
    return [row[:-1] for row in columns([*one.values, top], height)]


class RunBar(NamedTuple):
    """How many values lie from `low` to `high`."""

    low: float
    high: float
    number: int


def histogram(values: Sequence[float], buckets: int = 0) -> list[RunBar]:
    """Values in bars of equal width from the smallest to the largest; one bar where all are the same.
    Without `buckets` as many as so few values can fill, at most six."""
    if not values:
        return []
    low, high = min(values), max(values)
    buckets = buckets or min(BUCKETS, round(len(values) ** 0.5))
    if high <= low or buckets < 2:
        return [RunBar(low, high, len(values))]
    step = (high - low) / buckets
    counts = [0] * buckets
    for value in values:
        counts[min(int((value - low) / step), buckets - 1)] += 1
    return [RunBar(low + step * i, low + step * (i + 1), count) for i, count in enumerate(counts)]


def percentile(values: Sequence[float], part: float) -> float:
    """The value below or at which this part (0–1) of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(max(ceil(part * len(ordered)) - 1, 0), len(ordered) - 1)]


def distribution_lines(
    name: str, values: Sequence[float], show: Callable[[float], str], width: int
) -> list[Line]:
    """A heading with median, 90th percentile and largest value, then a bar for each bucket."""
    if not values:
        return []
    head = (
        f"  median {show(percentile(values, 0.5))}, p90 {show(percentile(values, 0.9))},"
        f" most {show(max(values))} of {len(values):,}"
    )
    lines = [piece for _, _, piece in wrap((Span(name, "strong"), Span(head, "muted")), width)]
    bars = histogram(values)
    if len(bars) == 1:
        return lines
    most = max(bar.number for bar in bars)
    names = [f"{show(bar.low)} – {show(bar.high)}" for bar in bars]
    left = max(len(text) for text in names)
    room = max(width - left - len(f"{most:,}") - 5, 4)
    for text, bar in zip(names, bars, strict=True):
        length = max(round(bar.number / most * room), 1) if bar.number else 0
        lines.append(
            (
                Span(f"  {text:>{left}} ", "muted"),
                Span("█" * length, "code"),
                Span(f" {bar.number:,}", "muted"),
            )
        )
    return [fit(line, width) for line in lines]
