"""What text takes in cells: cut, filled up, wrapped."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tui_eval.tui.state.text.fitting import chop, end_of, fit, reach, shorten, wrap
from tui_eval.tui.state.text.lines import Span, plain
from tui_eval.tui.state.text.lines import fit as fit_line
from tui_eval.tui.state.text.lines import wrap as wrap_line

TEXTS = [
    "a word or two and morethanfitsintoarow here",
    "日本語のテキスト and ascii",
    "two  blanks   and three,   then e\u0301 combined",
    "\u2764\ufe0f hearts \U0001f469\u200d\U0001f4bb and people \u2764\ufe0f\u2764\ufe0f\u2764\ufe0f",
    " " * 30,
    "",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [2, 5, 11, 40])
def test_no_row_is_wider_than_there_is_room(text: str, width: int) -> None:
    for rows in (
        wrap(text, width),
        chop(text, width),
        [plain(row) for _, _, row in wrap_line((Span(text),), width)],
    ):
        assert all(cell_len(row) <= width for row in rows)
    assert "".join(chop(text, width)) == text
    assert "".join(wrap(text, width)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [5, 11, 40])
def test_text_that_arrives_by_and_by_is_wrapped_as_at_once(text: str, width: int) -> None:
    if "\u200d" in text or "\ufe0f" in text or "\u0301" in text:
        text = "plain in its place"  # what combines comes with what it combines with
    rows = [""]
    for letter in text:
        rows[-1:] = wrap(rows[-1] + letter, width)
    assert rows == wrap(text, width)


def test_styled_text_breaks_where_plain_text_does() -> None:
    text = "the refund of your order has been approved and will arrive soon"
    styled = [plain(row).rstrip() for _, _, row in wrap_line((Span(text[:9], "strong"), Span(text[9:])), 20)]
    assert styled == [row.rstrip() for row in wrap(text, 20)]


def test_a_long_word_fills_the_row_it_begins_in() -> None:
    assert wrap("see https://example.com/a/long/address", 20) == [
        "see https://example.",
        "com/a/long/address",
    ]


def test_a_cut_beside_a_cut_is_marked_once() -> None:
    assert shorten("a prompt th… and more", 12) == "a prompt th…"
    assert end_of("a name…the end", 9) == "…the end"
    assert plain(fit_line((Span("a prompt "), Span("th… and more")), 12)) == "a prompt th…"
    assert shorten("……", 1) == "…"


def test_cuts_are_marked_or_not() -> None:
    assert shorten("abcdef", 4) == "abc…" and shorten("abcdef", 4, sign="") == "abcd"
    assert shorten("日本語", 4) == "日…" and fit("日本語", 4) == "日… " and fit("日本語", 3, sign="") == "日 "
    assert end_of("abcdef", 3, sign="") == "def" and end_of("x", 0, sign="") == ""
    assert fit("7", 3, right=True) == "  7" and fit("long", 0) == "" and fit("long", 1) == "l"


def test_a_sign_of_two_characters_is_not_cut_in_two() -> None:
    assert reach("\u2764\ufe0f!", 0, 1) == 0 and reach("\u2764\ufe0f!", 0, 2) == 2


@pytest.mark.parametrize(
    ("beginning", "hangs"),
    [("• ", 2), ("  - ", 4), ("10. ", 4), ("> ", 2), ("✗ ", 2), ("≠ ", 2), ("    ", 4), ("", 0), ("-5 ", 0), ("2024. ", 0)],
)  # fmt: skip
def test_further_rows_of_an_item_stand_below_its_words(beginning: str, hangs: int) -> None:
    """They began below its bullet, as the next item does."""
    first, *rest = wrap_line((Span(beginning, "muted"), Span("one two three four five six")), 16)
    assert plain(first[2]).startswith(beginning) and rest
    for start, indent, row in rest:
        words = plain(row)
        assert (
            indent == hangs and words[:hangs].isspace() == bool(hangs) and not words[hangs:].startswith(" ")
        )
        assert f"{beginning}one two three four five six"[start:].startswith(words.strip())
