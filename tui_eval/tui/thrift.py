"""Frames in fewer bytes, for slow lines.

Textual paints a changed region from the left edge of its widget, and sets and resets all colours for
each piece of text. Here the same cells are written from where the change begins, and only what differs
from the style before is sent: about a third of the bytes, measured on streaming panes. The classes
replaced are Textual's own but not public; where they are missing, frames stay as Textual makes them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual.strip import Strip

try:
    from textual._compositor import ChopsUpdate, LayoutUpdate
except ImportError:  # pragma: no cover - another Textual
    ChopsUpdate = LayoutUpdate = None  # type: ignore[assignment,misc]

_PLAIN = re.compile(r"\x1b\[([0-9;]*)m")
RESET = "\x1b[0m"
Pen = tuple[str, str, str]
"""Attributes, foreground, background, each as the parameters of an SGR sequence."""
NO_PEN: Pen = ("", "", "")


def thrifty(renderable: Any) -> Any:
    """The same frame, to be written in fewer bytes; anything else as it is."""
    if ChopsUpdate is None:
        return renderable
    kind = type(renderable)
    if kind is ChopsUpdate:
        return ThriftyChops(renderable.chops, renderable.spans, renderable.chop_ends)
    if kind is LayoutUpdate:
        return ThriftyLayout(renderable.strips, renderable.region)
    return renderable


class Writer:
    """Builds what goes to the terminal; knows the style that the terminal has."""

    def __init__(self, console: Console) -> None:
        self.parts: list[str] = []
        self._pen: Pen = NO_PEN
        self._system = console._color_system or ColorSystem.TRUECOLOR

    def move(self, x: int, y: int) -> None:
        """The cursor to a cell, counted from 0."""
        self.parts.append(f"\x1b[{y + 1};{x + 1}H")

    def strip(self, strip: Strip) -> None:
        """Write a strip at the cursor."""
        for text, style, control in strip:
            if not text:
                continue
            if control:
                self.parts.append(text)
                continue
            pen = _pen(style, self._system) if style is not None else NO_PEN
            if pen is None:  # a link, or something else that is not only colours
                assert style is not None
                self.close()
                self.parts.append(style.render(text, color_system=self._system))
                continue
            if pen != self._pen:
                self.parts.append(_change(self._pen, pen))
                self._pen = pen
            self.parts.append(text)

    def close(self) -> None:
        """Back to no style."""
        if self._pen != NO_PEN:
            self.parts.append(RESET)
            self._pen = NO_PEN


if ChopsUpdate is not None:

    class ThriftyChops(ChopsUpdate):
        """Changed spans."""

        def render_segments(self, console: Console) -> str:
            """From the first changed cell of each span to its last."""
            out = Writer(console)
            for y, x1, x2 in self.spans:
                at = -1
                for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                    if strip is None or x >= x2 or end <= x1:
                        continue
                    start, stop = max(x, x1), min(end, x2)
                    if at != start:
                        out.move(start, y)
                    out.strip(strip if (start, stop) == (x, end) else strip.crop(start - x, stop - x))
                    at = stop
            out.close()
            return "".join(out.parts)

    class ThriftyLayout(LayoutUpdate):  # pyright: ignore[reportGeneralTypeIssues]
        """A whole region."""

        def render_segments(self, console: Console) -> str:
            """Line by line."""
            out = Writer(console)
            for y, line in enumerate(self.strips, self.region.y):
                out.move(self.region.x, y)
                for strip in line:
                    out.strip(strip)
            out.close()
            return "".join(out.parts)


@lru_cache(4096)
def _pen(style: Style, system: ColorSystem) -> Pen | None:
    """A style's SGR parameters; None where it is more than that."""
    if style.link:
        return None
    before, mark, after = style.render("\x00", color_system=system).partition("\x00")
    found = _PLAIN.fullmatch(before) if before else None
    if not mark or (before and found is None) or (after and _PLAIN.fullmatch(after) is None):
        return None
    codes = found.group(1).split(";") if found else []
    attributes, foreground, background = [], "", ""
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
            attributes.append(code)
        number += 1
    return ";".join(attributes), foreground, background


@lru_cache(4096)
def _change(old: Pen, new: Pen) -> str:
    """The sequence from one style to another."""
    if old[0] != new[0]:
        codes = ["0", *(part for part in new if part)]
    else:
        codes = []
        if old[1] != new[1]:
            codes.append(new[1] or "39")
        if old[2] != new[2]:
            codes.append(new[2] or "49")
    return f"\x1b[{';'.join(codes)}m"
