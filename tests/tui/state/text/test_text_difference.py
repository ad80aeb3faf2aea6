"""The nearest place to a wanted text."""

from __future__ import annotations

import pytest

from tui_eval.tui.state.text.text_difference import near_miss


@pytest.mark.parametrize(
    ("wanted", "text", "place", "distance"),
    [
        ("30 days", "Items can be returned within 14 days of delivery.", "14 days", 2),
        ("2 years", "The warranty is three years on all products.", "three years", 5),  # no `years` alone
        ("€79", "It costs €89 a month.", "€89", 1),
        ("Canberra", "The capital is Canbera, not Sydney.", "Canbera", 1),
        ("sorry for the delay", "We are sorry for a delay of it.", "sorry for a delay", 3),
    ],
)
def test_of_places_that_are_as_much_alike_the_nearest_takes_the_fewest_changes(
    wanted: str, text: str, place: str, distance: int
) -> None:
    miss = near_miss(wanted, text)
    assert miss is not None and (text[miss.start : miss.end], miss.distance) == (place, distance)
