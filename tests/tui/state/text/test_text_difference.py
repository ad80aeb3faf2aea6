"""The nearest place to a wanted text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from tests.support.examples import examples
from tui_eval.reports.together import pieces
from tui_eval.tui.state.text.text_difference import near_miss

_WORDS = re.compile(r"\w+")
TEXTS = st.lists(
    st.sampled_from(
        [
            "the",
            "return",
            "within",
            "days",
            "30",
            "14",
            "policy",
            "of",
            "refund",
            "a",
            "no",
            "store",
            "order",
            "x",
        ]
    ),
    min_size=8,
    max_size=40,
)


@pytest.mark.real
@examples(200)
@given(TEXTS, st.data())
def test_the_nearest_of_as_many_words_is_found_wherever_it_stands(
    words: list[str], data: st.DataObject
) -> None:
    wanted = " ".join(data.draw(TEXTS)[: data.draw(st.integers(2, 12))])
    text = " ".join(words)
    miss = near_miss(wanted, text)
    if miss is None:
        reject()
    spans = [one.span() for one in _WORDS.finditer(text)]
    many = wanted.count(" ") + 1
    places = [text[spans[at][0] : spans[at + many - 1][1]] for at in range(len(spans) - many + 1)]
    assert miss.distance <= min(
        (Levenshtein.distance(wanted, place) for place in places), default=len(wanted)
    )
    assert miss.distance == Levenshtein.distance(wanted, text[miss.start : miss.end])


def test_letters_in_other_case_count_where_they_are_compared() -> None:
    text = "PARIS is the capital. Parid is a typo."
    loose, exact = near_miss("Paris,", text), near_miss("Paris,", text, ignoring_case=False)
    assert loose is not None and exact is not None
    assert (text[loose.start : loose.end], text[exact.start : exact.end]) == ("PARIS", "Parid")


@pytest.mark.real
def test_of_a_long_text_few_places_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    distance = Levenshtein.distance

    def counted(wanted: str, place: str, **more: Any) -> int:
        compared.append(place)
        return distance(wanted, place, **more)

    monkeypatch.setattr(Levenshtein, "distance", counted)
    assert near_miss("abc " * 120, "ab " * 16_000) is not None
    assert 0 < len(compared) < 100, "each of 16,000 words may begin one"


@pytest.mark.parametrize(
    ("wanted", "text", "place", "distance"),
    [
        ("30 days", "Items can be returned within 14 days of delivery.", "14 days", 2),
        ("2 years", "The warranty is three years on all products.", "three years", 5),  # no `years` alone
        ("€79", "It costs €89 a month.", "€89", 1),
        ("Canberra", "The capital is Canbera, not Sydney.", "Canbera", 1),
        ("e-mail address", "Ask for an address; the email adress is on file.", "email adress", 2),
        (
            "on the day",
            "today, one day, and then some: ok. In the end, on that day it ends.",
            "on that day",
            2,
        ),
        ("三十天", "商品可在收货后十四天内退货，三百天后不可。", "三百天", 1),
        ("sorry for the delay", "We are sorry for a delay of it.", "sorry for a delay", 3),
    ],
)
def test_of_places_that_are_as_much_alike_the_nearest_takes_the_fewest_changes(
    wanted: str, text: str, place: str, distance: int
) -> None:
    miss = near_miss(wanted, text)
    assert miss is not None and (text[miss.start : miss.end], miss.distance) == (place, distance)


def test_of_long_texts_what_both_begin_and_end_with_is_the_same() -> None:
    """All of a long answer that was cut off differed from its whole, since its words come often."""
    words = "The long answer goes on and on with words and numbers 12345. "
    left, right = pieces(words * 40 + "The long ans", words * 200)
    assert left == [(f"{words * 40}The long ", False), ("ans", True)]
    assert right[0] == (f"{words * 40}The long ", False) and right[1][0].startswith("answer goes")
    assert "".join(text for text, _ in right) == words * 200
    left, right = pieces(f"{words * 200}one {words * 200}", f"{words * 200}two {words * 200}")
    assert [text for text, differs in (*left, *right) if differs] == ["one", "two"]


def test_what_is_too_far_to_be_compared_by_words_is_not_called_the_same() -> None:
    before = " ".join(f"a{number}" for number in range(3_000))
    after = " ".join(f"b{number}" for number in range(3_000))
    for side, text in zip(pieces(before, after), (before, after), strict=True):
        assert "".join(piece for piece, _ in side) == text
        assert sum(len(piece) for piece, differs in side if differs) > len(text) - 8_000
        assert side[-1][1] and len(side[-1][0]) > 2_000
