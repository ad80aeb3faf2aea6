"""A line as a strip of cells, and which cells of two strips differ."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.widgets.looks import Styles


def strip_of(line: Line, styles: Styles, base: Style, width: int, *, left: int = 0, over: str = "") -> Strip:
    """The cells of a line from the column `left` on, `width` of them; `base` lies under all of it, the style words
    `over` on top."""
    segments = [Segment(text, base + styles[words] if words else base) for text, words in line]
    strip = Strip(segments).crop_extend(left, left + width, base)
    if not over:
        return strip
    top = styles[over]
    return Strip([Segment(text, (own or base) + top) for text, own, _ in strip], strip.cell_length)


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
