"""A share as people read it: 100 % says that nothing is missing."""

from __future__ import annotations

import pytest

from tui_eval.store.summary import share


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.0, "100%"), (19_980 / 20_000, "99%"), (0.0, "0%"), (1 / 5_000, "1%"), (0.615, "62%")],
)
def test_all_is_said_of_all_only(value, words):
    assert share(value) == words
