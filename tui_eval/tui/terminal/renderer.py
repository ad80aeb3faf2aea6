"""Frames in fewer bytes, for slow lines: only cells that look different from what the terminal shows.

Textual sends whole regions whenever something in them may have changed, and sets and resets all colours
for each piece of text: opening a screen repaints every cell, twice. Here what the terminal shows is kept
cell by cell, each frame is compared with it, and what differs is written with the shortest change of
style.

A pen is what is set on the terminal: attributes, foreground, background. Where only a blank is painted,
foreground and most attributes cannot be seen, so the pen of a blank leaves them open and any pen of the
same background will do.

The classes of frames are Textual's own but not public; where they are missing, frames stay as
Textual makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from colorsys import rgb_to_hsv
from functools import lru_cache
from itertools import repeat
from typing import Any
from unicodedata import category

from rich.cells import cell_len, split_graphemes
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual.strip import Strip

_PLAIN = re.compile(r"\x1b\[([0-9;]*)m")
RESET = "\x1b[0m"
Pen = tuple[frozenset[str] | None, str | None, str]
"""Attributes and foreground (None: any), and background, as parameters of an SGR sequence."""
NO_PEN: Pen = (frozenset(), "", "")
_SEEN_ON_BLANKS = frozenset({"4", "7", "9", "21", "51", "52", "53"})
_OFF = {
    "1": "22", "2": "22", "3": "23", "4": "24", "21": "24", "5": "25", "6": "25", "7": "27", "8": "28",
    "9": "29", "51": "54", "52": "54", "53": "55",
}  # fmt: skip
"""What ends each attribute (ECMA-48 8.3.117); bold and dim end together."""


_ON_BLACK = ("bright_red", "bright_yellow", "bright_green", "bright_cyan", "bright_blue", "bright_magenta")
_ON_WHITE = ("red", "magenta", "green", "blue", "blue", "magenta")
"""Of sixteen colours those of the hues from red on that can be read there: yellow and cyan on white cannot."""
_COLOURED = 0.12
"""How far its strongest part is beyond its weakest where a foreground is a colour and not a grey."""


def in_sixteen(style: Style) -> Style:
    """A style for a terminal of sixteen colours, where the nearest ones of all that is pale are greys: a
    foreground keeps its hue, so that what failed is red there too. On other grounds than black and white hues
    cannot be read."""
    fore, back = style.color, style.bgcolor
    if fore is None or back is None or fore.triplet is None:
        return style
    hue, saturation, value = rgb_to_hsv(*fore.triplet.normalized)
    ground = back.downgrade(ColorSystem.STANDARD).number
    hues = {0: _ON_BLACK, 7: _ON_WHITE, 15: _ON_WHITE}.get(-1 if ground is None else ground)
    if hues is None or saturation * value < _COLOURED:
        return style
    return style + Style(color=hues[round(hue * 6) % 6])


@lru_cache(4096)
def pen_of(style: Style, system: ColorSystem) -> Pen | None:
    """A style's pen; None where it is more than that (a link)."""
    if style.link:
        return None
    if system is ColorSystem.STANDARD:
        style = in_sixteen(style)
    before, mark, after = style.render("\x00", color_system=system).partition("\x00")
    found = _PLAIN.fullmatch(before) if before else None
    if not mark or (before and found is None) or (after and _PLAIN.fullmatch(after) is None):
        return None
    codes = found.group(1).split(";") if found else []
    attributes, foreground, background = set[str](), "", ""
    number = 0
    while number < len(codes):
        code = codes[number]
        if code in ("38", "48"):
            length = 5 if codes[number + 1 : number + 2] == ["2"] else 3
            value = ";".join(codes[number : number + length])
            if code == "38":
                foreground = value
            else:
                background = value
            number += length
            continue
        if code.isdigit() and (30 <= int(code) <= 37 or 90 <= int(code) <= 97 or code == "39"):
            foreground = code
        elif code.isdigit() and (40 <= int(code) <= 47 or 100 <= int(code) <= 107 or code == "49"):
            background = code
        elif code:
            attributes.add(code)
        number += 1
    return frozenset(attributes), foreground, background


@lru_cache(4096)
def blank_pen(pen: Pen) -> Pen:
    """What of a pen can be seen on a blank."""
    attributes, _, background = pen
    if attributes is None or attributes & _SEEN_ON_BLANKS:
        return pen
    return None, None, background


@lru_cache(16384)
def change(old: Pen, new: Pen) -> tuple[str, Pen]:
    """The shortest sequence after which what `new` asks for is so (empty: it is so already), and the pen
    that is set then. `old` is a pen that is set: nothing in it is open."""
    attributes, foreground, background = old
    assert attributes is not None and foreground is not None
    wanted = new[0] if new[0] is not None else attributes - _SEEN_ON_BLANKS
    colour = new[1] if new[1] is not None else foreground
    then: Pen = (wanted, colour, new[2])
    if then == old:
        return "", old
    gone = {_OFF.get(code, "0") for code in attributes - wanted}
    left = {code for code in attributes if _OFF.get(code, "0") not in gone}
    codes = [*sorted(gone), *sorted(wanted - left)]
    if colour != foreground:
        codes.append(colour or "39")
    if new[2] != background:
        codes.append(new[2] or "49")
    anew = ["0", *sorted(wanted), *(part for part in (colour, new[2]) if part)]
    if "0" in gone or len(";".join(anew)) < len(";".join(codes)):
        codes = anew
    return f"\x1b[{';'.join(codes)}m", then


try:
    from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
except ImportError:  # pragma: no cover - another Textual
    ChopsUpdate = LayoutUpdate = None  # type: ignore[assignment,misc]
    CompositorUpdate = object  # type: ignore[assignment,misc]

Cell = tuple[str, Pen | Style]
"""A character with what combines with it (empty: the second half of a wide one), and how it is painted; a
`Style` where that is more than a pen."""
NEAR = 4
"""Cells that did not change between two that did are written too where they are at most so many: moving
there takes about as many bytes."""
_WIDE = (
    (0x1100, 0x115F), (0x2E80, 0xA4CF), (0xA960, 0xA97F), (0xAC00, 0xD7A3), (0xF900, 0xFAFF),
    (0xFE30, 0xFE6F), (0xFF00, 0xFF60), (0xFFE0, 0xFFE6), (0x20000, 0x3FFFD),
)  # fmt: skip
"""Characters that every terminal paints two cells wide."""


class Ready(CompositorUpdate):  # type: ignore[misc,valid-type]
    """A frame as it is to be written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def render_segments(self, console: Console) -> str:
        """The text."""
        return self.text


class Painted:
    """What the terminal shows, as far as it is known."""

    def __init__(self) -> None:
        self._rows: list[list[Cell | None]] = []
        self._width = 0

    def forget(self) -> None:
        """Something else has written to the terminal: the next frame is written in full."""
        self._rows = []

    def ready(self, frame: Any, console: Console) -> Any:
        """A frame of Textual's, to be written in fewer bytes (its `text` is empty where nothing has
        changed); anything else as it is. It has to be written: it counts as shown from now on."""
        kind = type(frame)
        if ChopsUpdate is None or kind not in (ChopsUpdate, LayoutUpdate):
            return frame
        out = _Writer(console)
        if kind is LayoutUpdate:
            lines = [list(line) for line in frame.strips]
            x, y, width, height = frame.region
            self._size(x + width, y + height)
            for row, strips in enumerate(lines, y):
                self._write(out, row, x, x + width, strips)
        else:
            ends = frame.chop_ends
            self._size(max((line[-1] for line in ends if line), default=0), len(ends))
            for y, x1, x2 in frame.spans:
                at, strips = x1, list[Strip]()
                for end, (x, strip) in zip(ends[y], frame.chops[y].items(), strict=False):
                    if strip is None or x >= x2 or end <= x1:
                        continue
                    start, stop = max(x, x1), min(end, x2)
                    if start > at:
                        self._write(out, y, at - sum(s.cell_length for s in strips), at, strips)
                        strips = []
                    if (start, stop) != (x, end):
                        first, last = out.whole(strip, start - x, stop - x)
                        strip, stop = strip.crop(first, last), x + last
                    strips.append(strip)
                    at = stop
                self._write(out, y, at - sum(s.cell_length for s in strips), at, strips)
        out.close()
        return Ready("".join(out.parts))

    def _size(self, width: int, height: int) -> None:
        if width != self._width or height != len(self._rows):
            self._width = width
            self._rows = [[None] * width for _ in range(height)]

    def _write(self, out: _Writer, y: int, x1: int, x2: int, strips: Iterable[Strip]) -> None:
        """Write what differs of a part of a row."""
        if not 0 <= y < len(self._rows):
            return
        cells = out.cells(strips)[: x2 - x1]
        row = self._rows[y]
        x2 = x1 + len(cells)
        old = row[x1:x2]
        if old == cells:
            return
        row[x1:x2] = cells
        wanted = [x for x, before in enumerate(old, x1) if row[x] != before]
        doubtful = [(x, len(text)) for x in wanted if is_doubtful(text := cells[x - x1][0])]
        if doubtful:
            # a terminal that paints it wider has painted over what stands after it
            after = {at for x, length in doubtful for at in range(x, min(x + 1 + 2 * length, self._width))}
            wanted = sorted({*wanted, *(at for at in after if row[at] is not None)})
        start = end = wanted[0]
        for at in [*wanted[1:], self._width + NEAR + 1]:
            if at - end - 1 <= NEAR and None not in row[end:at]:
                end = at
                continue
            out.run(y, *_whole(row, start, end + 1))
            start = end = at


def _whole(row: list[Cell | None], start: int, end: int) -> tuple[int, list[Cell]]:
    """Cells of a row from one to before another, and where they begin: wide characters are not halved."""
    while start > 0 and (first := row[start]) is not None and not first[0] and row[start - 1] is not None:
        start -= 1
    while end < len(row) and (after := row[end]) is not None and not after[0]:
        end += 1
    return start, [cell for cell in row[start:end] if cell is not None]


class _Writer:
    """Builds what goes to the terminal; knows the pen that is set."""

    def __init__(self, console: Console) -> None:
        self.parts: list[str] = []
        self._pen = NO_PEN
        self._system = console._color_system or ColorSystem.TRUECOLOR

    def cells(self, strips: Iterable[Strip]) -> list[Cell]:
        """One entry per cell."""
        cells: list[Cell] = []
        for strip in strips:
            for text, style, control in strip:
                if not text or control:
                    continue
                pen: Pen | Style | None = NO_PEN if style is None else pen_of(style, self._system)
                if pen is None:
                    assert style is not None
                    pen = blank = style
                else:
                    assert not isinstance(pen, Style)
                    blank = blank_pen(pen)
                if not text.strip(" "):
                    cells.extend(repeat((" ", blank), len(text)))
                elif text.isascii():
                    cells.extend([(c, pen) if c != " " else (" ", blank) for c in text])
                else:
                    _graphemes(cells, text, pen, blank)
        return cells

    def whole(self, strip: Strip, start: int, stop: int) -> tuple[int, int]:
        """Where to cut a strip near these cells, so that no wide character is halved: Textual's regions end anywhere,
        and half a character is a blank that stays."""
        if strip.text.isascii():
            return start, stop
        cells = self.cells([strip])
        while 0 < start < len(cells) and not cells[start][0]:
            start -= 1
        while stop < len(cells) and not cells[stop][0]:
            stop += 1
        return start, stop

    def run(self, y: int, x: int, cells: list[Cell]) -> None:
        """Write cells beside each other. After a character of which terminals disagree how wide it is the
        cursor is put where it belongs, so that nothing after it is out of place."""
        parts = self.parts
        parts.append(f"\x1b[{y + 1};{x + 1}H")
        for at, (text, pen) in enumerate(cells, x):
            if isinstance(pen, Style):
                self.close()
                parts.append(pen.render(text, color_system=self._system))
                continue
            if pen is not self._pen:
                sequence, self._pen = change(self._pen, pen)
                if sequence:
                    parts.append(sequence)
            if len(text) > 1 or is_doubtful(text):
                width = max(cell_len(text), 1)
                parts.append(f"{' ' * width}\x1b[{y + 1};{at + 1}H{text}\x1b[{y + 1};{at + width + 1}H")
            else:
                parts.append(text)

    def close(self) -> None:
        """Back to no style."""
        if self._pen != NO_PEN:
            self.parts.append(RESET)
            self._pen = NO_PEN


@lru_cache(4096)
def is_doubtful(text: str) -> bool:
    """Whether terminals disagree how wide a cell's text is: emoji, and what is made of several characters."""
    if text.isascii():
        return False
    if len(text) > 1:
        return True
    code = ord(text)
    return cell_len(text) > 1 and not any(first <= code <= last for first, last in _WIDE)


def _graphemes(cells: list[Cell], text: str, pen: Pen | Style, blank: Pen | Style) -> None:
    for start, end, width in split_graphemes(text)[0]:
        piece = text[start:end]
        if cells and (not width or category(piece[0]) == "Mc"):  # it combines with what stands before it
            before = next((i for i in range(len(cells) - 1, -1, -1) if cells[i][0]), len(cells) - 1)
            cells[before] = (cells[before][0] + piece, cells[before][1])
            cells.extend(repeat(("", pen), width))
        elif width:
            cells.append((piece, blank if piece == " " else pen))
            cells.extend(repeat(("", pen), width - 1))
