"""A list of texts in one text is split alike in a CSV cell and in an assertion's value."""

from __future__ import annotations

import pytest

from tui_eval.formats.promptfoo.judge import text_assertions
from tui_eval.formats.promptfoo.promptfoo_words import ListError, split_list
from tui_eval.formats.promptfoo.read import csv_rows

SPLIT = {
    "a, b,,c": ["a", "b", "c"],
    '"a,b" , c': ["a,b", "c"],
    '"say ""hi""", \\x': ['say "hi"', "\\x"],
    r'"a\"b\\"': ['a"b\\'],
    "\u00a0a\u00a0,\u3000b": ["a", "b"],
    '\u00a0"a b"\u00a0,c': ["a b", "c"],
    " , ": [],
}


@pytest.mark.parametrize("given", SPLIT)
def test_a_list_is_split_as_promptfoo_splits_it(given: str) -> None:
    assert split_list(given) == SPLIT[given]
    cell = csv_rows.assertion_of_cell(f"contains-any:{given}")
    assert cell.value == (SPLIT[given] if given.strip() else "")


@pytest.mark.parametrize("given", ['"a', '"a" b', '"a\\"'])
def test_a_list_that_cannot_be_split_says_so(given: str) -> None:
    with pytest.raises(ListError):
        split_list(given)
    with pytest.raises(ListError):
        csv_rows.assertion_of_cell(f"contains-any:{given}")


def test_there_is_one_of_it() -> None:
    assert text_assertions.split_list is csv_rows.split_list is split_list
