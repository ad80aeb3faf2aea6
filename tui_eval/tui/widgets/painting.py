"""Small helpers to build a line of exactly so many cells."""

from __future__ import annotations

from functools import lru_cache

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


def tail(text: str, width: int) -> str:
    """The end of a text in at most `width` cells, `…` before it where something was cut."""
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) >= width:
        text = text[1:]
    return f"…{text}"


def middle(text: str, width: int) -> str:
    """Beginning and end of a text in at most `width` cells, `…` where something between them was cut: of a
    path, what it is done with and the name of the file."""
    if cell_len(text) <= width:
        return text
    front = set_cell_size(text, max(0, (width - 1) // 3)).rstrip()
    return front + tail(text, width - cell_len(front))


def line(parts: list[tuple[str, Style]], width: int, base: Style) -> Strip:
    """A strip of these parts, cut or filled up to `width` cells; `base` lies under every style."""
    segments = [Segment(text, base + style) for text, style in parts if text]
    return Strip(segments).adjust_cell_length(width, base)


@lru_cache(512)
def ink(style: Style) -> Style:
    """A style without its background, to be laid over a line that has one of its own."""
    return Style(
        color=style.color,
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        reverse=style.reverse,
    )


def changed_cells(old: Strip, new: Strip) -> tuple[int, int] | None:
    """The first cell in which two strips differ and the one after the last; None where they are the
    same. Never in the middle of a wide character."""
    before, after = _cells(old), _cells(new)
    if before == after:
        return None
    count = max(len(before), len(after))
    before += [(" ", None)] * (count - len(before))
    after += [(" ", None)] * (count - len(after))
    start = next(at for at in range(count) if before[at] != after[at])
    end = next(at for at in range(count, 0, -1) if before[at - 1] != after[at - 1])
    while start > 0 and "" in (before[start][0], after[start][0]):
        start -= 1
    while end < count and "" in (before[end][0], after[end][0]):
        end += 1
    return start, end


def _cells(strip: Strip) -> list[tuple[str, Style | None]]:
    """One entry per cell; the second cell of a wide character is empty."""
    cells: list[tuple[str, Style | None]] = []
    for text, style, _ in strip:
        if text.isascii():
            cells.extend((letter, style) for letter in text)
            continue
        for letter in text:
            size = cell_len(letter)
            if size:
                cells.append((letter, style))
                cells.extend([("", style)] * (size - 1))
            elif cells:
                cells[-1] = (cells[-1][0] + letter, style)
    return cells
