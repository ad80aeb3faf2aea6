"""Styles as the terminal is told of them, and the shortest way from one to the next.

A pen is what is set on the terminal: attributes, foreground, background. Where only a blank is painted,
foreground and most attributes cannot be seen, so the pen of a blank leaves them open and any pen of the
same background will do.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rich.color import ColorSystem
from rich.style import Style

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


@lru_cache(4096)
def pen_of(style: Style, system: ColorSystem) -> Pen | None:
    """A style's pen; None where it is more than that (a link)."""
    if style.link:
        return None
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
