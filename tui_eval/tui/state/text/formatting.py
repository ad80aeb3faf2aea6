"""How outcomes and numbers are written, everywhere in the app: glyphs and words, ages, durations, sizes, tokens,
costs, trends."""

from __future__ import annotations

from collections.abc import Sequence

from tui_eval.guard.figures import usd
from tui_eval.model import Usage

GLYPHS: dict[str, str] = {
    "passed": "✓",
    "failed": "✗",
    "error": "!",
    "cancelled": "⊘",
    "skipped": "–",
    "running": "●",
    "retrying": "↻",
    "waiting": "◌",
    "not-run": "·",
    "flaky": "≈",
    "": "·",
}
LETTERS: dict[str, str] = {
    "passed": "P",
    "failed": "F",
    "error": "E",
    "cancelled": "C",
    "skipped": "S",
    "running": "*",
    "retrying": "@",
    "waiting": ".",
    "not-run": "-",
    "flaky": "~",
    "": " ",
}
BARS = "▁▂▃▄▅▆▇█"
LETTER_BARS = "_.-:=+*#"
SEVERITY = {
    "failed": 0,
    "error": 1,
    "retrying": 2,
    "running": 3,
    "waiting": 4,
    "not-run": 5,
    "cancelled": 6,
    "skipped": 7,
    "": 8,
    "passed": 9,
}


class Symbols:
    """The glyphs in use: letters where the terminal has no UTF-8."""

    def __init__(self, unicode: bool = True) -> None:
        self.unicode = unicode
        self.glyphs = GLYPHS if unicode else LETTERS
        self.folded, self.unfolded = ("▸", "▾") if unicode else ("+", "-")
        self.marked = "▌" if unicode else ">"
        self.star = "★" if unicode else "*"
        self.bar_full, self.bar_empty = ("━", "─") if unicode else ("#", "-")
        self.dot = " · " if unicode else " | "
        self.arrow = "→" if unicode else "->"
        self.rule = "─" if unicode else "-"
        self.column = "│" if unicode else "|"

    def trend(self, ratios: Sequence[float], width: int) -> str:
        """The last `width` ratios (0–1, oldest first) as a sparkline."""
        bars = BARS if self.unicode else LETTER_BARS
        return "".join(bars[min(7, max(0, round(ratio * 7)))] for ratio in ratios[-width:])

    def bar(self, done: int, total: int, width: int) -> tuple[str, str]:
        """A progress bar in two parts: what is done and what is not."""
        full = width * done // total if total else 0
        return self.bar_full * full, self.bar_empty * (width - full)


def age(seconds: float) -> str:
    """How long ago, in at most four characters: `now`, `5m`, `3h`, `9d`, `6w`, `2y`."""
    if seconds < 60:
        return "now"
    for unit, size, most in (("m", 60, 60), ("h", 3600, 48), ("d", 86400, 14)):
        if seconds < size * most:
            return f"{int(seconds // size)}{unit}"
    weeks = int(seconds // 604800)
    return f"{weeks}w" if weeks < 104 else f"{weeks // 52}y"


def duration(milliseconds: float | None) -> str:
    """A duration in at most six characters: `820ms`, `1.2s`, `34.5s`, `2m05s`, `1h02m`."""
    if milliseconds is None:
        return ""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f}ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    return clock(seconds + 0.5)


def clock(seconds: float) -> str:
    """Whole seconds: `0s`, `34s`, `2m05s`, `1h02m`."""
    whole = int(max(0.0, seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def span(seconds: float) -> str:
    """A limit of so many seconds, without parts that are zero: `0.5s`, `30s`, `2m`, `1m30s`, `1h`."""
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    words = clock(seconds + 0.5)
    for zero, unit in (("m00s", "m"), ("h00m", "h")):
        if words.endswith(zero):
            words = words.removesuffix(zero) + unit
    return words


LATE = 0.8
"""The share of its time limit from which on an attempt is about to be ended by it."""


def is_late(started_at: float | None, ends_at: float | None, now: float) -> bool:
    """Whether little is left of a time limit."""
    if not started_at or not ends_at:
        return False
    return now - started_at >= LATE * (ends_at - started_at)


def count(number: int | None) -> str:
    """A number with thousands separators; empty for None."""
    return "" if number is None else f"{number:,}"


def cost(dollars: float | None) -> str:
    """USD with four digits (`usd`); empty for None."""
    return "" if dollars is None else usd(dollars)


def about(dollars: float) -> str:
    """USD of an estimate: `$4.20`, of little `$0.0420`."""
    return f"${dollars:,.2f}" if dollars >= 0.1 else cost(dollars)


def size(count: int) -> str:
    """Characters as `312`, `4.1 k`, `1.2 M`."""
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.1f} k"
    return f"{count / 1_000_000:.1f} M"


def tokens(usage: Usage | None) -> str:
    """`1,204+310 tokens` (in and out), or nothing where the agent did not say, or counts none."""
    if usage is None or not (usage.input_tokens or usage.output_tokens):
        return ""
    parts = [f"{part:,}" for part in (usage.input_tokens, usage.output_tokens) if part is not None]
    return "+".join(parts) + " tokens"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 row`, `1,204 rows`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def cases_in_rows(cases: int, rows: int) -> str:
    """`402 cases`; `402 cases, 422 rows` where some have several columns: outcomes are counted by row."""
    return counted(cases, "case") + (f", {counted(rows, 'row')}" if rows > cases else "")


def outcomes(number: int, status: str) -> str:
    """`3 failed`, `1 error`, `3 errors`, `5 not run`."""
    word = status.replace("-", " ")
    return counted(number, word, "errors" if status == "error" else word)
