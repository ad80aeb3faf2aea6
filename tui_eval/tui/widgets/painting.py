"""Small helpers to build a line of exactly so many cells."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip


def fit(text: str, width: int, *, right: bool = False) -> str:
    """The text in exactly `width` cells, cut with `…` or filled up with spaces (at the left where
    `right`). Cells, not characters: wide ones count two."""
    if width <= 0:
        return ""
    size = cell_len(text)
    if size == width:
        return text
    if size > width:
        return set_cell_size(text, width - 1) + "…" if width > 1 else set_cell_size(text, width)
    return " " * (width - size) + text if right else text + " " * (width - size)


def line(parts: list[tuple[str, Style]], width: int, base: Style) -> Strip:
    """A strip of these parts, cut or filled up to `width` cells; `base` lies under every style."""
    segments = [Segment(text, base + style) for text, style in parts if text]
    return Strip(segments).adjust_cell_length(width, base)
