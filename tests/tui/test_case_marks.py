"""Where in a reply the texts stand that assertions looked for: found, forbidden, matched by a pattern."""

from __future__ import annotations

import time

import pytest

from tests.tui.test_case_why import said, styled
from tui_eval.model import Attempt, Reply, Verdict
from tui_eval.tui.state.expectation_marks import Expectations, content_texts
from tui_eval.tui.state.explain import explained
from tui_eval.tui.state.lines import text_lines
from tui_eval.tui.state.markdown_lines import markdown_lines
from tui_eval.tui.state.regex_matches import look


def attempt_of(text: str, *verdicts: Verdict) -> Attempt:
    made = Attempt("s::n", 1, "failed", replies=[Reply(1, text)], verdicts=list(verdicts))
    look(made)
    return made


def marks(text: str, style: str, *verdicts: Verdict, lines=text_lines) -> list[str]:
    attempt = attempt_of(text, *verdicts)
    return styled(list(Expectations(verdicts, attempt).mark(lines(text))), style)


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize(
    ("kind", "wanted", "found"),
    [
        ("contains", "refund", ["refund"]),
        ("icontains", "refund", ["Refund", "refund"]),
        ("contains-any", ["money", "refund"], ["refund"]),
        ("icontains-all", "refund, days", ["Refund", "refund", "days"]),
        ("contains-any", '"30 days", never', ["30 days"]),
        ("regex", r"\d+ days?", ["30 days"]),
        ("regex", "(?i)refund", ["Refund", "refund"]),
        ("should_contain", "REFUND", ["Refund", "refund"]),
        ("keywords", "refund", ["refund"]),
    ],
)
def test_every_place_is_marked_whether_it_passed_or_failed(kind, wanted, found, passed):
    text = "Refund rules:\nwe refund within 30 days."
    assert sorted(marks(text, "hit-wanted", Verdict(kind, passed, "text", wanted))) == sorted(found)


@pytest.mark.parametrize("kind", ["not-contains", "not-icontains", "not-regex", "should_not_contain"])
def test_what_must_not_be_there_is_marked_as_such(kind):
    assert marks("I will escalate it.", "hit-forbidden", Verdict(kind, False, "text", "escalate")) == [
        "escalate"
    ]


def test_a_text_over_two_lines_is_marked_in_both():
    verdict = Verdict("contains", True, "text", "first line\nsecond")
    assert marks("a first line\nsecond one", "hit-wanted", verdict) == ["first line", "second"]


def test_a_text_that_markdown_took_apart_is_marked_all_the_same():
    verdict = Verdict("contains", True, "text", "order **88231** found")
    text = "The order **88231** found."
    assert "".join(marks(text, "hit-wanted", verdict, lines=markdown_lines)) == "order 88231 found"
    missing = Verdict("contains", False, "text", "order 88231 found")
    assert marks(text, "hit-wanted", missing) == []  # it is not there as it reads


def test_what_a_pattern_matched_is_said_with_its_places():
    verdict = Verdict("regex", True, "text", r"\d+ days")
    lines = list(explained(verdict, attempt_of("within 30 days, not 31 days", verdict)))
    assert said(lines)[0] == '✓ "30 days" stands there once'
    assert styled(lines, "hit-wanted") == ["30 days", "31 days"]


def test_a_pattern_that_matches_nothing_shows_where_its_text_stands_or_nearly():
    verdict = Verdict("regex", False, "text", r"Total: \d+ EUR")
    lines = said(explained(verdict, attempt_of("The Total: many EUR", verdict)))
    assert lines[0] == r"✗ Total: \d+ EUR matches nothing" and "its text stands here: " in lines[1]
    lines = said(explained(verdict, attempt_of("The Totals: 40 EUR", verdict)))
    assert "the nearest is" in lines[1] and "Totals:" in lines[-1]


def test_one_of_several_is_enough_and_is_said_so():
    verdict = Verdict("contains-any", True, "text", ["money", "refund"])
    lines = said(explained(verdict, attempt_of("a refund", verdict)))
    assert '· "money" is not there: one of them is enough' in lines


def test_a_pattern_that_backtracks_without_end_takes_no_time():
    began = time.process_time()
    verdict = Verdict("regex", False, "text", "(a+)+$")
    assert content_texts(verdict, attempt_of("a" * 50_000 + "b", verdict)) is not None
    assert time.process_time() - began < 5


def test_a_pattern_with_lookaround_marks_only_the_places_that_it_matched():
    verdict = Verdict("not-regex", False, "text", r"(?<=costs )\d+ €")
    assert marks("9 € off; it costs 9 € now", "hit-forbidden", verdict) == ["9 €"]
    lines = said(explained(verdict, attempt_of("9 € off; it costs 9 € now", verdict)))
    assert lines[0] == '✗ "9 €" stands there once' and lines[1] == "  9 € off; it costs 9 € now"
    named = Verdict("not-regex", False, "text", r"(?<word>\w)\k<word>")
    assert marks("abba", "hit-forbidden", named) == ["bb"]


@pytest.mark.parametrize("pattern", ["(", r"\p{Lu}(?=x)"])
def test_a_pattern_of_another_kind_is_left_to_the_verdict(pattern):
    verdict = Verdict("regex", False, "text", pattern, "xy", reason="it did not match")
    assert marks("xy", "hit-wanted", verdict) == []
    assert content_texts(verdict, attempt_of("xy", verdict)) is None


def test_backtracking_is_ended_and_what_was_found_before_is_kept(monkeypatch):
    monkeypatch.setattr("tui_eval.tui.state.regex_matches.PATIENCE", 3.0)
    text = "a" * 40 + "b and 7 €"
    good = Verdict("not-regex", False, "text", r"(?<=and )\d+ €")
    endless = Verdict("regex", False, "text", r"(?=x|)(a|aa)+$")
    attempt = Attempt("s::n", 1, "failed", verdicts=[good, endless], replies=[Reply(1, text)])
    began = time.monotonic()
    look(attempt)
    assert time.monotonic() - began < 30
    assert content_texts(endless, attempt) is None
    looked = content_texts(good, attempt)
    assert looked is not None and looked.texts == ["7 €"]
