"""Figures over the runs and within one: plots of block characters, distributions as bars. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

from tui_eval.tui.state.amounts import cost, duration
from tui_eval.tui.state.lines import Line, Mark, Span, fit, marked
from tui_eval.tui.state.past import columns

LABEL = 10
"""Columns of a plot's name."""
SCALE = 20
"""Columns for the numbers at a plot's right."""
WIDEST = 4
"""Columns of one run where there are few."""
HEADROOM = 1.15
"""A plot's scale beyond its largest value, so that plots above each other do not touch."""
BUCKETS = 6
"""Bars of a distribution."""


class Point(NamedTuple):
    """One run in the plots: share of attempts passed (0–1), USD, mean latency in ms, tokens; None: unknown."""

    run_id: str
    at: float
    pass_rate: float | None
    cost: float | None
    latency_ms: float | None
    tokens: int | None


class Series(NamedTuple):
    """One figure over the runs. `top` is the scale's upper end (None: the largest value)."""

    name: str
    values: list[float | None]
    show: Callable[[float], str]
    top: float | None = None


def share(value: float) -> str:
    """A share as a whole percentage; never 100 % or 0 % where something is missing or there."""
    percent = round(value * 100)
    if percent == 100 and value < 1:
        percent = 99
    if percent == 0 and value > 0:
        percent = 1
    return f"{percent}%"


def series(points: Sequence[Point]) -> list[Series]:
    """Pass rate, cost, latency and tokens, those that are known of any run; oldest first."""

    def floats(values: Sequence[float | int | None]) -> list[float | None]:
        return [None if value is None else float(value) for value in values]

    all_of = [
        Series("pass rate", floats([p.pass_rate for p in points]), share, 1.0),
        Series("latency", floats([p.latency_ms for p in points]), lambda v: duration(v)),
        Series("tokens", floats([p.tokens for p in points]), lambda v: f"{v:,.0f}"),
        Series("cost", floats([p.cost for p in points]), lambda v: cost(v)),
    ]
    return [one for one in all_of if any(value is not None for value in one.values)]


def trend_lines(points: Sequence[Point], width: int, height: int, here: str = "") -> list[Line]:
    """The plots, each `height` lines high, oldest run at the left; the run `here` stands out. The newest
    runs that fit are shown."""
    room = max(width - LABEL - SCALE, 6)
    shown = list(points)[-room:]
    if not shown:
        return []
    at = next((i for i, point in enumerate(shown) if point.run_id == here), None)
    wide = min(max(room // len(shown), 1), WIDEST)
    lines: list[Line] = []
    for one in series(shown):
        known = [value for value in one.values if value is not None]
        own = one.values[at] if at is not None else None
        words = [f"to {one.show(one.top if one.top is not None else max(known))}"]
        words.append(one.show(own) if own is not None else "")
        for number, row in enumerate(_scaled(one, height)):
            last = number == height - 1
            row = "".join(step * wide for step in row)
            text: Line = (Span(row, "passed" if one.name == "pass rate" else "code"),)
            if at is not None:
                text = marked(text, [Mark(at * wide, (at + 1) * wide, "strong note")])
            scale = (
                " ".join(reversed(words))
                if height == 1
                else words[0]
                if number == 0
                else words[1]
                if last
                else ""
            )
            label = one.name if last else ""
            line = (Span(f"{label:<{LABEL}}", "label"), *text, Span(f"  {scale}", "muted"))
            lines.append(fit(line, width))
    if at is not None and height > 1:
        lines.append(
            fit(
                (Span(" " * (LABEL + at * wide)), Span("▲" * wide, "note"), Span(" this run", "muted")), width
            )
        )
    return lines


def _scaled(one: Series, height: int) -> list[str]:
    known = [value for value in one.values if value is not None]
    top = (one.top if one.top is not None else max(known)) * HEADROOM
    return [row[:-1] for row in columns([*one.values, top], height)]


class Bar(NamedTuple):
    """How many values lie from `low` to `high`."""

    low: float
    high: float
    number: int


def histogram(values: Sequence[float], buckets: int = BUCKETS) -> list[Bar]:
    """Values in bars of equal width from the smallest to the largest; one bar where all are the same."""
    if not values:
        return []
    low, high = min(values), max(values)
    if high <= low:
        return [Bar(low, high, len(values))]
    step = (high - low) / buckets
    counts = [0] * buckets
    for value in values:
        counts[min(int((value - low) / step), buckets - 1)] += 1
    return [Bar(low + step * i, low + step * (i + 1), count) for i, count in enumerate(counts)]


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
        f"  median {show(percentile(values, 0.5))}, 90% to {show(percentile(values, 0.9))},"
        f" most {show(max(values))}, of {len(values):,}"
    )
    lines: list[Line] = [(Span(name, "strong"), Span(head, "muted"))]
    bars = histogram(values)
    if len(bars) == 1:
        return [fit(lines[0], width)]
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
