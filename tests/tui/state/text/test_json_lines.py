"""Values in a few characters."""

from __future__ import annotations

from typing import Any

import pytest

from tui_eval.tui.state.text.json_lines import short


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (r"order \d+", r'"order \d+"'),
        (r"\d" * 25, f'"{chr(92)}d' + r"\d" * 24 + '"'),
        ("two\nlines", r'"two\nlines"'),
        ('say "hi"', r'"say \"hi\""'),
        ({"pattern": r"\d"}, r'{"pattern": "\\d"}'),
        ("x" * 80, '"' + "x" * 58 + "…"),
        ("bell\x07", '"bell\\u0007"'),
        (None, "null"),
    ],
)
def test_a_text_alone_has_its_backslashes_as_they_are(value: Any, words: str) -> None:
    assert short(value) == words and len(words) <= 60
