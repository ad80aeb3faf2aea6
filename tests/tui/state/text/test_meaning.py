"""The nearest thing in meaning to a text that is missing: found where it is, and not where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_eval.tui.state.text.meaning import dates_in, quantities_in, same_meaning


@pytest.mark.parametrize(
    ("wanted", "text", "place", "how"),
    [
        ("2 years", "It covers 24 months from now.", "24 months", "the same in another unit"),
        ("24 months", "It covers two years.", "two years", "the same in another unit"),
        ("18 months", "It covers 1.5 years.", "1.5 years", "the same in another unit"),
        ("1 week", "within 7 days", "7 days", "the same in another unit"),
        ("90 minutes", "takes 1,5 h", "1,5 h", "the same in another unit"),
        ("2.5 km", "about 2,500 metres", "2,500 metres", "the same in another unit"),
        ("90 days", "no visa for ninety days.", "ninety days", "the same number in another form"),
        ("twenty-four", "there are 24 of them", "24", "the same number in another form"),
        ("1.5", "costs 1,5 Euro", "1,5 Euro", "the same number in another form"),
        (
            "60 €",
            "it is 60\u00a0€ a year",
            "60\u00a0€",
            "the same but for U+00A0 NO-BREAK SPACE in the answer",
        ),
        (
            "2 years",
            "2 ye\u200bars",
            "2 ye\u200bars",
            "the same but for U+200B ZERO WIDTH SPACE in the answer",
        ),
        ("re\u00adfund", "a refund", "refund", "the same but for U+00AD SOFT HYPHEN in what is expected"),
        (
            "x" * 200,
            "x" * 100 + "\ufeff" + "x" * 100,
            "x" * 100 + "\ufeff" + "x" * 100,
            "the same but for U+FEFF ZERO WIDTH NO-BREAK SPACE in the answer",
        ),
        ("1.5 Euro", "is 1,5 EUR off", "1,5 EUR", "the same number in another form"),
        ("€1,000", "pay 1.000 Euro", "1.000 Euro", "the same number in another form"),
        ("1,500,000", "1.5 million people", "1.5 million", "the same number in another form"),
        ("1234567", "1'234'567 rows", "1'234'567", "the same number in another form"),
        ("50%", "a share of 0.5 of it", "0.5", "the same number in another form"),
        ("0.5", "about 50 % of it", "50 %", "the same number in another form"),
        ("15%", "fifteen percent off", "fifteen percent", "the same number in another form"),
        ("bye 12", "I am hello 12", "12", "the same number"),
        ("for 12 €", "at 12 € each", "12 €", "the same number"),
        ("2025-03-31", "until March 31, 2025. After", "March 31, 2025", "the same date"),
        ("2025-03-31", "until 31.03.2025", "31.03.2025", "the same date"),
        ("March 31st, 2025", "by 2025-03-31", "2025-03-31", "the same date"),
        ("2 May 2025", "on the 2nd of May 2025", "2nd of May 2025", "the same date"),
        ("2025-04-03", "on 03/04/2025", "03/04/2025", "the same date"),
        ("warranty of 2 years", "The warranty is 24 months. Bye", "24 months", "the same in another unit"),
    ],
)
def test_the_same_in_another_way_is_found(wanted: str, text: str, place: str, how: str) -> None:
    found = same_meaning(wanted, text)
    assert found is not None and (text[found.start : found.end], found.how) == (place, how)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("2 years", "2 months, 24 weeks and 24 apples"),
        ("2 years", "v1.2.24 build 24"),
        ("1 month", "30 days"),
        ("50%", "0.05 or 5 percent"),
        ("50%", "50 people"),
        ("0.5", "5 and 0.05"),
        ("1.5 Euro", "1,5 Dollar"),
        ("136 EUR", "142 EUR"),
        ("391", "17 * 23 = 401"),
        ("2025-03-31", "2025-03-30 and March 2025, build 20250331"),
        ("2025-13-45", "2025-13-46"),
        ("Room 12", "twelve people"),
        ("warranty of 2 years", "The lease runs for 24 months."),
        ("warranty of 2 years", "The warranty is short. It runs 24 months."),
        ("2 to 4 days", "48 hours"),
        ("12", "the 12th"),
        ("refund", "money back"),
        ("", "anything"),
        ("2 years", ""),
    ],
)
def test_what_means_something_else_is_not(wanted: str, text: str) -> None:
    assert same_meaning(wanted, text) is None


def test_a_synonym_counts_where_the_suite_lists_it_and_as_a_word() -> None:
    lists = [["other", "word"], ["Refund", " money back ", "reimbursement"]]
    text = "You get your Money Back."
    found = same_meaning("refund", text, lists)
    assert found is not None and text[found.start : found.end] == "Money Back"
    assert found.how == 'listed with "refund"'
    assert same_meaning("refund", "a moneyback scheme", lists) is None
    assert same_meaning("other", text, lists) is None


def test_dates_are_no_numbers() -> None:
    assert [one.bare for one in quantities_in("on 2025-03-31 at 7")] == [frozenset([7])]
    assert not list(quantities_in("March 31, 2025")) and len(list(dates_in("31.03.2025 and 1 May 2024"))) == 2


@given(st.text(max_size=80), st.text(max_size=200))
@examples(200)
def test_any_text_may_come(wanted: str, text: str) -> None:
    found = same_meaning(wanted, text)
    assert found is None or (0 <= found.start < found.end <= len(text))


@given(st.lists(st.sampled_from("0123456789.,-% €/:'abcdefmay th"), max_size=40).map("".join))
@examples(300)
def test_anything_like_a_number_or_date_may_come(text: str) -> None:
    for _ in (*quantities_in(text), *dates_in(text), same_meaning(text, text[::-1])):
        pass
