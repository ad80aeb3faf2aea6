"""Frames in fewer bytes look exactly like Textual's own; only changed cells are found to be changed."""

from __future__ import annotations

import random

import pyte
import pytest
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from tui_eval.tui.thrift import thrifty
from tui_eval.tui.widgets.painting import changed_cells, fit

STYLES = [
    Style.parse("bold red on #112233"),
    Style.parse("#aabbcc on #112233"),
    Style.parse("italic #aabbcc"),
    Style.parse("reverse"),
    Style.parse("underline on blue"),
    Style(),
]


def painted(*writes: str) -> list[list[tuple]]:
    screen = pyte.Screen(40, 6)
    stream = pyte.Stream(screen)
    for text in writes:
        stream.feed(text)
    return [[tuple(screen.buffer[y][x]) for x in range(40)] for y in range(6)]


def random_strip(source: random.Random, width: int) -> Strip:
    segments, used = [], 0
    while used < width:
        text = "".join(source.choice("abc  日é✓") for _ in range(source.randint(1, 6)))
        while cell_len(text) > width - used:
            text = text[:-1]
        text = text or " "
        segments.append(Segment(text, source.choice(STYLES)))
        used += cell_len(text)
    return Strip(segments)


@pytest.mark.parametrize("seed", range(30))
def test_a_whole_frame_looks_the_same_in_fewer_bytes(seed):
    source = random.Random(seed)
    console = Console(color_system="truecolor", force_terminal=True)
    frame = LayoutUpdate([[random_strip(source, 40)] for _ in range(6)], Region(0, 0, 40, 6))
    theirs = frame.render_segments(console).replace("\n", "")
    ours = thrifty(frame).render_segments(console)
    assert painted(ours) == painted(theirs) and len(ours) < len(theirs)


@pytest.mark.parametrize("seed", range(30))
def test_a_changed_span_writes_its_cells_and_no_others(seed):
    source = random.Random(seed)
    console = Console(color_system="truecolor", force_terminal=True)
    before = Strip([Segment("." * 40, STYLES[1])])
    left, right = Strip([Segment("x" * 40, STYLES[0])]).crop(0, 18), random_strip(source, 22)
    x1 = source.randint(18, 36)
    x2 = source.randint(x1 + 1, 40)
    update = ChopsUpdate([{0: left, 18: right}], [(0, x1, x2)], [[18, 40]])
    base = before.render(console)
    cells = painted(base, thrifty(update).render_segments(console))[0]
    whole = painted("\x1b[1;19H" + right.render(console))[0]
    untouched = painted(base)[0]
    assert cells[:x1] == untouched[:x1] and cells[x2:] == untouched[x2:]
    for x in range(x1, x2):
        if whole[x][0] not in ("", "日"):
            assert cells[x] == whole[x]


def test_the_same_style_is_said_once():
    console = Console(color_system="truecolor", force_terminal=True)
    frame = LayoutUpdate(
        [[Strip([Segment("one ", STYLES[1]), Segment("two ", STYLES[1]), Segment("three", STYLES[1])])]],
        Region(0, 0, 40, 1),
    )
    text = thrifty(frame).render_segments(console)
    assert text.count("\x1b[38;2") == 1 and text.endswith("\x1b[0m")


def test_what_is_not_a_frame_stays():
    assert thrifty("x") == "x" and thrifty(None) is None


def test_control_segments_and_links_come_through():
    console = Console(color_system=ColorSystem.TRUECOLOR.name.lower(), force_terminal=True)
    link = Style(link="https://example.org", color="red")
    frame = LayoutUpdate([[Strip([Segment("here", link)])]], Region(0, 0, 40, 1))
    assert "https://example.org" in thrifty(frame).render_segments(console)


class TestChangedCells:
    def span(self, old: str, new: str) -> tuple[int, int] | None:
        return changed_cells(Strip([Segment(old, STYLES[1])]), Strip([Segment(new, STYLES[1])]))

    def test_nothing(self):
        assert self.span("same", "same") is None

    def test_the_middle(self):
        assert self.span("abcdef", "abXXef") == (2, 4)

    def test_never_half_of_a_wide_character(self):
        assert self.span("a日b", "a本b") == (1, 3)
        assert self.span("a日b", "axxb") == (1, 3)
        assert self.span("ax日b", "a日xb") == (1, 4)

    def test_a_style_is_a_change(self):
        assert changed_cells(Strip([Segment("ab", STYLES[0])]), Strip([Segment("ab", STYLES[1])])) == (0, 2)

    def test_segments_cut_differently_are_the_same(self):
        one = Strip([Segment("abcd", STYLES[1])])
        assert changed_cells(one, Strip([Segment("ab", STYLES[1]), Segment("cd", STYLES[1])])) is None


@pytest.mark.parametrize("text", ["", "short", "much too long for it", "日本語日本語", "é" * 9])
@pytest.mark.parametrize("width", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("right", [False, True])
def test_fit_is_exact(text, width, right):
    assert cell_len(fit(text, width, right=right)) == width
