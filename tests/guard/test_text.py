"""Text made safe to show and to store."""

from __future__ import annotations

import json
import math
import time
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_eval.guard.spelling import some_of, within
from tui_eval.guard.text import (
    CONTROL_TABLE,
    MAX_DEPTH,
    TEXT_TABLE,
    clip,
    no_formula,
    storable,
    storable_text,
    visible,
)
from tui_eval.model import Entry, Turn

PAYLOADS = [
    "\x1b]52;c;aGFja2Vk\x07",  # OSC 52: the clipboard
    "\x1b]0;title\x07",  # OSC 0: the window's title
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",  # OSC 8: a link
    "\x1bP1$r0m\x1b\\",  # DCS
    "\x1b[2J\x1b[H",  # clear the screen
    "\x1b[31mred\x1b[0m",
    "\x9b2J",  # CSI as C1
    "\x9d0;title\x9c",  # OSC as C1
    "\x90q\x9c",  # DCS as C1
    "nul\x00so\x0esi\x0fdel\x7f",
    "bell\x07back\x08return\rform\x0cvertical\x0b",
    "\u202egnp.exe\u202c",
    "\u2066isolate\u2069\u200e\u200f\u061c",
    "line\u2028paragraph\u2029",
    "\ufeffmark",
    "\ud800 lone \udfff",
    "\ufffe\uffff\ufff9",
]


def unsafe(text: str) -> list[str]:
    return [
        char
        for char in text
        if char not in "\n\t"
        and (
            ord(char) < 0x20
            or 0x7F <= ord(char) < 0xA0
            or 0xD800 <= ord(char) < 0xE000
            or ord(char) in CONTROL_TABLE
        )
        and char != "\ufffd"
    ]


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("around", ["", "plain", "grüße 世界 😀"])
def test_payloads_are_harmless_whole_and_cut_anywhere(payload: str, around: str) -> None:
    text = around + payload + around
    shown = visible(text)
    assert not unsafe(shown)
    assert len(shown) == len(text)
    shown.encode()
    for cut in range(len(text) + 1):
        assert visible(text[:cut]) + visible(text[cut:]) == shown


def test_what_stands_for_what() -> None:
    assert visible("\x1b[2J\x00\x7f") == "␛[2J␀␡"
    assert visible("\x9b\ud800") == "\ufffd\ufffd"
    assert visible("\u202eabc") == "⇄abc"
    assert visible("a\r\nb\tc") == "a␍\nb\tc"
    assert visible("a\nb\tc", newlines=False) == "a␊b␉c"
    assert visible("ä\nb\tc", newlines=False) == "ä␊b␉c"


def test_ordinary_text_is_returned_as_it_is() -> None:
    for text in ("", "plain", "grüße 世界 👩‍🚀 e\u0301", "[bold]not markup[/]", "a\u00a0b", "zwnj\u200cjoin"):
        assert visible(text) == text


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text(text: str) -> None:
    assert not unsafe(visible(text))
    assert visible(text) == text.translate(TEXT_TABLE)
    assert visible(text, newlines=False) == text.translate(CONTROL_TABLE)
    assert visible(visible(text)) == visible(text)


def test_a_megabyte_is_no_matter_of_seconds() -> None:
    """Milliseconds by the benchmarks; what grows with the square of the length would take minutes."""
    for text in ("plain words and\n" * 70_000, "grüße 世界 und\n" * 70_000, "\x1b[0m" * 250_000):
        begun = time.thread_time()
        visible(text)
        assert time.thread_time() - begun < 3


@pytest.mark.parametrize(
    ("text", "limit", "cut"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abc", 1, "…"), ("abc", 0, "")]
)
def test_clip(text: str, limit: int, cut: str) -> None:
    assert clip(text, limit) == cut


def test_storable_values() -> None:
    assert storable_text("a\ud83d\ude00b") == "a😀b"
    assert storable_text("\ud800x") == "\ufffdx"
    assert storable(math.nan) == "NaN"
    assert storable([math.inf, -math.inf, 1.5]) == ["Infinity", "-Infinity", 1.5]
    assert storable({1: (1, 2), None: {3}, 1.5: b"\xff"}) == {"1": [1, 2], "null": [3], "1.5": "\ufffd"}
    assert storable({True: Decimal("1.10")}) == {"true": "1.10"}
    assert storable(2**64 - 1) == 2**64 - 1
    assert storable(2**70) == str(2**70)
    assert storable(10**5000).startswith("0x")
    assert storable(Turn("x", timeout=math.nan))["timeout"] == "NaN"


def test_deep_and_strange_values() -> None:
    deep: object = "x"
    for _ in range(5 * MAX_DEPTH):
        deep = [deep]
    json.dumps(storable(deep))
    endless: list[object] = []
    endless.append(endless)
    json.dumps(storable(endless))

    class Strange:
        def __str__(self) -> str:
            raise RuntimeError

    assert storable(Strange()) == "<Strange>"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[])),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_categories=[])) | st.integers(), inner)
    ),
)


@pytest.mark.real
@given(VALUES)
def test_stored_values_are_json(value: object) -> None:
    encoded = msgspec.json.encode(storable(value))
    encoded.decode()
    assert msgspec.json.decode(msgspec.json.encode(Entry(1, "user", result=storable(value)))) is not None


def test_some_names_of_many_are_one_line() -> None:
    assert some_of(["a\n::error::b", "c\td", "e"], 2) == "a␊::error::b, c␉d and 1 more"
    names = ["one", "two", "three"]
    assert [within(names, room) for room in (0, 3, 8, 14, 15, 99)] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "＝1+1", "＋1", "－1", "＠SUM(A1)", "\t=1", "\n=1"]
)
def test_no_cell_is_a_formula(text: str) -> None:
    assert no_formula(text) == f"'{text}"
    assert no_formula(f"x{text}") == f"x{text}"


def test_numbers_are_no_formulas() -> None:
    assert [no_formula(text) for text in ("-1", "+1.5e-3", "")] == ["-1", "+1.5e-3", ""]
