"""Frames in fewer bytes look exactly like Textual's own; only changed cells are found to be changed."""

from __future__ import annotations

import random
import re
import unicodedata

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

from tui_eval.tui.state.text.fitting import fit
from tui_eval.tui.terminal.renderer import NO_PEN, Painted, change, in_sixteen, pen_of
from tui_eval.tui.widgets.row_view import changed_cells

STYLES = [
    Style.parse("bold red on #112233"),
    Style.parse("#aabbcc on #112233"),
    Style.parse("italic #aabbcc"),
    Style.parse("reverse"),
    Style.parse("underline on blue"),
    Style(),
]


CONSOLE = Console(color_system="truecolor", force_terminal=True)
BLANK_SEEN = ("underscore", "reverse", "strikethrough")


def looks(screen: pyte.Screen) -> list[list[tuple]]:
    """What can be seen of every cell: of a blank neither the foreground nor bold."""
    rows = []
    for y in range(screen.lines):
        row = []
        for x in range(screen.columns):
            cell = screen.buffer[y][x]
            if cell.data == " " and not any(getattr(cell, name) for name in BLANK_SEEN):
                row.append((" ", cell.bg))
            else:
                row.append(tuple(cell))
        rows.append(row)
    return rows


class Shown:
    """A terminal and what we believe it shows."""

    def __init__(self, columns: int = 40, lines: int = 6) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.Stream(self.screen)
        self.painted = Painted()

    def take(self, frame: object) -> str:
        """Paint a frame; what was written."""
        text = self.painted.ready(frame, CONSOLE).text
        self.stream.feed(text)
        return text


def random_strip(source: random.Random, width: int, letters: str = "abc  日é✓") -> Strip:
    segments, used = [], 0
    while used < width:
        text = "".join(source.choice(letters) for _ in range(source.randint(1, 6)))
        while cell_len(text) > width - used:
            text = text[:-1]
        text = text or " "
        segments.append(Segment(text, source.choice(STYLES)))
        used += cell_len(text)
    return Strip(segments)


def whole(strips: list[Strip], x: int = 0, y: int = 0) -> LayoutUpdate:
    return LayoutUpdate([[strip] for strip in strips], Region(x, y, strips[0].cell_length, len(strips)))


@pytest.mark.parametrize("seed", range(30))
def test_frames_one_after_another_look_as_textual_paints_them(seed):
    source = random.Random(seed)
    ours, theirs = Shown(), pyte.Screen(40, 6)
    stream = pyte.Stream(theirs)
    strips = [random_strip(source, 40) for _ in range(6)]
    count = [0, 0]
    for number in range(8):
        for _ in range(source.randint(0, 3) if number else 0):
            strips[source.randrange(6)] = random_strip(source, 40)
        frame = whole(strips)
        plain = frame.render_segments(CONSOLE).replace("\n", "")
        stream.feed(plain)
        count = [count[0] + len(ours.take(frame)), count[1] + len(plain)]
        assert looks(ours.screen) == looks(theirs)
    assert count[0] < count[1] / 2


def test_what_looks_the_same_is_not_sent_again():
    shown = Shown()
    strips = [random_strip(random.Random(1), 40) for _ in range(6)]
    assert shown.take(whole(strips))
    assert shown.take(whole(strips)) == ""
    shown.painted.forget()
    assert shown.take(whole(strips))


def test_another_size_is_painted_in_full():
    shown = Shown()
    strips = [Strip([Segment("x" * 40)])] * 6
    shown.take(whole(strips))
    assert shown.take(whole([strip.crop(0, 39) for strip in strips])).count("x") == 39 * 6


def test_of_a_blank_only_the_background_counts():
    shown = Shown()
    shown.take(whole([Strip([Segment(" " * 40, Style.parse("bold red on #112233"))])] * 6))
    assert shown.take(whole([Strip([Segment(" " * 40, Style.parse("italic blue on #112233"))])] * 6)) == ""
    assert shown.take(whole([Strip([Segment(" " * 40, Style.parse("underline on #112233"))])] * 6))


@pytest.mark.parametrize("seed", range(30))
def test_a_changed_span_writes_its_cells_and_no_others_but_the_half_of_a_wide_one(seed):
    """Where a span began or ended within a wide character, that was blank until its row was painted anew."""
    source = random.Random(seed)
    shown, before = Shown(), Strip([Segment("." * 40, STYLES[1])])
    shown.take(whole([before] * 6))
    untouched = looks(shown.screen)[0]
    left, right = Strip([Segment("x" * 40, STYLES[0])]).crop(0, 18), random_strip(source, 22)
    x1 = source.randint(18, 36)
    x2 = source.randint(x1 + 1, 40)
    shown.take(
        ChopsUpdate([{0: left, 18: right}, *({0: None},) * 5], [(0, x1, x2)], [[18, 40], *([40],) * 5])
    )
    cells = looks(shown.screen)[0]
    other = Shown()
    other.stream.feed("\x1b[1;19H" + right.render(CONSOLE))
    wanted = looks(other.screen)[0]
    x1 -= wanted[x1][0] == ""
    x2 += x2 < 40 and wanted[x2][0] == ""
    assert cells[:x1] == untouched[:x1] and cells[x2:] == untouched[x2:]
    assert cells[x1:x2] == wanted[x1:x2]


def test_an_emoji_that_the_terminal_thinks_wider_moves_nothing():
    """A terminal that shows the parts of a family one after another: what follows stands in its place."""
    shown = Shown(12, 1)
    family = "👨\u200d👩\u200d👧"
    shown.take(whole([Strip([Segment(f"a{family}bcdefghi")]).crop_extend(0, 12, None)]))
    row = shown.screen.display[0].replace("\u200d", "")
    assert row.rstrip().endswith("bcdefghi") and row[0] == "a"
    shown.take(whole([Strip([Segment(f"a{family}bXdefghi")]).crop_extend(0, 12, None)]))
    assert shown.screen.display[0].replace("\u200d", "").rstrip().endswith("bXdefghi")


@pytest.mark.parametrize("text", ["हिन्दी क्षि", "தமிழ்", "বাংলা", "မြန်မာ"])
def test_vowel_signs_that_stand_beside_their_letter_are_not_painted_over(text):
    """Rich counts no cell for them, and of हिन्दी stood हन्द in tmux and xterm."""
    shown = Shown(30, 1)
    written = shown.take(whole([Strip([Segment(f"✓ {text}  2ms")]).crop_extend(0, 30, None)]))
    words = re.sub(r" *\x1b\[[0-9;]*[Hm]", "", written)
    assert words.replace(" ", "").startswith(f"✓{text}2ms".replace(" ", ""))
    assert cell_len(text) == sum(unicodedata.category(letter) != "Mn" for letter in text)
    assert all(cell_len(fit(text, width)) == width for width in range(1, 12))


def test_the_same_style_is_said_once_and_ended():
    frame = whole(
        [Strip([Segment("one ", STYLES[1]), Segment("two ", STYLES[1]), Segment("three", STYLES[1])])]
    )
    text = Painted().ready(frame, CONSOLE).text
    assert text.count("\x1b[38;2") == 1 and text.endswith("\x1b[0m")


def test_what_is_not_a_frame_stays():
    assert Painted().ready("x", CONSOLE) == "x" and Painted().ready(None, CONSOLE) is None


def test_links_come_through():
    link = Style(link="https://example.org", color="red")
    assert "https://example.org" in Painted().ready(whole([Strip([Segment("here", link)])]), CONSOLE).text


@pytest.mark.parametrize("old", STYLES)
@pytest.mark.parametrize("new", STYLES)
def test_from_one_pen_to_another(old, new):
    first, second = (pen_of(style, ColorSystem.TRUECOLOR) for style in (old, new))
    assert first is not None and second is not None
    sequence, then = change(first, second)
    one, other = Shown(), Shown()
    one.stream.feed(change(NO_PEN, first)[0] + sequence + "x")
    other.stream.feed(change(NO_PEN, second)[0] + "x")
    assert looks(one.screen) == looks(other.screen) and then == second


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

    def test_what_stands_after_an_emoji_of_several_characters_is_where_it_is_painted(self):
        for emoji in ("👩\u200d👩\u200d👧\u200d👦", "⚠\ufe0f", "👍🏽", "1\ufe0f\u20e3"):
            assert self.span(f"a{emoji}bc", f"a{emoji}Xc") == (3, 4)

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


@pytest.mark.parametrize(
    ("style", "foreground"),
    [
        ("#f3a6ab on #15171c", "91"),  # failed, as text on the dark theme, whose nearest of sixteen is white
        ("#ecd0a4 on #15171c", "93"),
        ("#bcdfae on #1b1e25", "92"),
        ("#7c1a15 on #fbfbfa", "31"),
        ("#5f3e00 on #e8e8e5", "35"),  # yellow on white could not be read
        ("#1c4f23 on #fbfbfa", "32"),
        ("#c8ccd4 on #15171c", "37"),  # a grey stays one
        ("#24292f on #fbfbfa", "30"),
    ],
)
def test_a_foreground_keeps_its_hue_in_sixteen_colours(style, foreground):
    pen = pen_of(Style.parse(style), ColorSystem.STANDARD)
    assert pen is not None and pen[1] == foreground


@pytest.mark.parametrize("style", ["#f3a6ab on #505662", "#f3a6ab", "red on #15171c", "on #15171c"])
def test_on_grey_or_where_nobody_knows_the_ground_colours_are_as_near_as_rich_has_them(style):
    assert in_sixteen(Style.parse(style)) == Style.parse(style)
    pen = pen_of(Style.parse("#f0717b on #15171c"), ColorSystem.TRUECOLOR)
    assert pen is not None and pen[1] == "38;2;240;113;123"
