"""What is taken for a slip of the pen."""

import pytest

from tui_eval.guard.spelling import close_to

KNOWN = ("name", "type", "is-valid-xml-call", "maxEvalTimeMs", "id")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("tpye", "type"),
        ("note", None),
        ("type", None),
        ("is_valid_xml_call", "is-valid-xml-call"),
        ("isValidXmlCall", "is-valid-xml-call"),
        ("max_eval_time_ms", "maxEvalTimeMs"),
        ("i-d", "id"),
        ("eval", None),
    ],
)
def test_a_slip_is_one_or_two_keystrokes_away_or_joins_the_same_words_otherwise(
    key: str, meant: str | None
) -> None:
    assert close_to(key, KNOWN) == meant
