"""Durations, sizes, tokens and money in the few characters a column has."""

from __future__ import annotations

from tui_eval.model import Usage


def duration(milliseconds: float | None) -> str:
    """`820 ms`, `3.2 s`, `2 min 05 s`; nothing where it is not known."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s"


def size(count: int) -> str:
    """Characters as `312`, `4.1 k`, `1.2 M`."""
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.1f} k"
    return f"{count / 1_000_000:.1f} M"


def tokens(usage: Usage | None) -> str:
    """`1,204+310 tokens` (in and out), or nothing where the agent did not say."""
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return ""
    parts = [f"{part:,}" for part in (usage.input_tokens, usage.output_tokens) if part is not None]
    return "+".join(parts) + " tokens"


def cost(dollars: float | None) -> str:
    """`$0.0123`; nothing where it is not known."""
    return "" if dollars is None else f"${dollars:.4f}"


def count(number: int, one: str, many: str = "") -> str:
    """`1 row`, `1,204 rows`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
