"""How many cells of a terminal a text takes: cut, filled up, wrapped. The one place that cuts by cells.

Cells, not characters: wide characters count two, those that combine with the one before none. `lines` does the
same for styled text, by what is found here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise

from rich import cells as rich_cells
from rich.cells import cell_len, split_graphemes

__all__ = [
    "breaks",
    "cell_len",
    "chop",
    "clusters",
    "end_of",
    "fit",
    "middle",
    "reach",
    "shorten",
    "wait_words",
    "wrap",
]

_rich_size = rich_cells.get_character_cell_size


@lru_cache(4096)
def character_cells(character: str, unicode_version: str = "auto") -> int:
    """Cells of one character: Rich's, and one for what combines but stands beside (the vowel signs of Hindi, Tamil,
    Burmese …), as tmux, xterm and most terminals have it. Rich counts none, and what was painted there was painted
    over."""
    return _rich_size(character, unicode_version) or int(unicodedata.category(character) == "Mc")


rich_cells.get_character_cell_size = character_cells  # type: ignore[assignment]


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """What stands in a text, one by one, and the cells of each: an emoji of several characters is one, what combines
    belongs to what stands before it."""
    return ((text[start:end], cells) for start, end, cells in split_graphemes(text)[0])


def reach(text: str, start: int, width: int) -> int:
    """Where the longest piece from `start` on that takes at most `width` cells ends."""
    width = max(width, 0)
    piece = text[start : start + width + 1]
    if piece.isascii():
        return min(start + width, len(text))
    piece = text[start : start + 4 * width + 4]  # what combines takes no cells
    cells = 0
    if "\u200d" not in piece and "\ufe0f" not in piece:
        for index, character in enumerate(piece):
            cells += character_cells(character)
            if cells > width:
                return start + index
        return start + len(piece)
    for first, _, size in split_graphemes(piece)[0]:
        cells += size
        if cells > width:
            return start + first
    return start + len(piece)


def shorten(text: str, width: int, *, sign: str = "…") -> str:
    """The beginning of a text in at most `width` cells, a sign after it where something was cut: one, also where the
    text has such a sign there."""
    if cell_len(text) <= width:
        return text
    room = width - cell_len(sign)
    if room <= 0:
        return text[: reach(text, 0, width)]
    begin = text[: reach(text, 0, room)]
    return (begin.rstrip("…") or begin) + sign if sign == "…" else begin + sign


def fit(text: str, width: int, *, right: bool = False, sign: str = "…") -> str:
    """The text in exactly `width` cells, cut with a sign or filled up with spaces (at the left where `right`)."""
    if width <= 0:
        return ""
    text = shorten(text, width, sign=sign)
    fill = " " * (width - cell_len(text))
    return fill + text if right else text + fill


def end_of(text: str, width: int, *, sign: str = "…") -> str:
    """The end of a text in at most `width` cells, a sign before it where something was cut."""
    if cell_len(text) <= width:
        return text
    room = max(width - cell_len(sign), 0)
    end = text[len(text) - min(room, len(text)) :]
    while cell_len(end) > room:
        end = end[1:]
    return sign + (end.lstrip("…") if sign == "…" else end)


def middle(text: str, width: int) -> str:
    """Beginning and end of a text in at most `width` cells, `…` where something between them was cut: of a
    path, what it is done with and the name of the file."""
    if cell_len(text) <= width:
        return text
    front = text[: reach(text, 0, (width - 1) // 3)].rstrip()
    return front.rstrip("…") + end_of(text, width - cell_len(front))


def wait_words(text: str, width: int) -> str:
    """Why something waits and when it goes on (`429, again in 3 s`) in at most `width` cells: the words between make
    room first, the time last."""
    reason, found, when = text.rpartition(", again in ")
    if cell_len(text) <= width or not found:
        return shorten(text, width) if text.endswith(", again") else middle(text, width)
    ends = [end for end in (f" in {when}", f" {when}") if cell_len(reason) + cell_len(end) <= width]
    if ends:
        return f"{reason}{ends[0]}"
    end = f" in {when}" if cell_len(when) + 12 <= width else f" {when}"
    return (
        f"{shorten(reason, width - cell_len(end))}{end}"
        if cell_len(end) + 2 <= width
        else shorten(text, width)
    )


def breaks(text: str, width: int, hanging: int = 0) -> Iterator[tuple[int, int]]:
    """Where each row of a text begins and ends at a width; rows after the first have `hanging` cells less.

    Breaks after a blank where there is one in the second half of the row, so that one long word does not leave
    rows empty; one blank at which it was broken belongs to no row.
    """
    start = 0
    while start < len(text):
        room = width - hanging if start else width
        end = max(reach(text, start, room), start + 1)
        if end < len(text) and text[end] != " ":
            blank = text.rfind(" ", start + (end - start) // 2, end)
            end = blank + 1 if blank >= 0 else end
        yield start, end
        start = end + (text[end : end + 1] == " ")


def chop(text: str, width: int) -> list[str]:
    """A text in rows that are full, wherever that breaks it: all of it is there, blanks too."""
    rows: list[str] = []
    start = 0
    while start < len(text) or not rows:
        end = max(reach(text, start, width), start + 1)
        rows.append(text[start:end])
        start = end
    return rows


def wrap(text: str, width: int, most: int = 0) -> list[str]:
    """One paragraph in rows of at most `width` cells, never none (`most`: no more than so many, 0: all). Joined,
    they give the text back except for the blanks at which it was broken; its last row can be wrapped again with
    what is appended to it."""
    width = max(1, width)
    if len(text) * 2 <= width or cell_len(text) <= width:
        return [text]
    found = list(islice(breaks(text, width), most or None))
    rows = [
        text[start:end].removesuffix(" ")
        if end == after
        else text[start:end]  # broken after a blank, or before
        for (start, end), (after, _) in pairwise(found)
    ]
    rows.append(text[slice(*found[-1])])
    if found[-1][1] < len(text) and not most:
        rows.append("")  # the blank after a full row
    return rows
