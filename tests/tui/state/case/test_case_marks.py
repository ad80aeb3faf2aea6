"""Where in a reply the texts stand that assertions looked for: found, forbidden, matched by a pattern."""

from __future__ import annotations

import asyncio
import atexit
import functools
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from tests.support.judged_evidence import evidenced
from tests.support.judging import GivenHosts
from tests.support.promptfoo_cases import evidence_for
from tests.tui.state.case.test_case_why import said, styled
from tui_eval.assertions import JudgeServices
from tui_eval.assertions.evidence import bounded
from tui_eval.formats import judge
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.model import Attempt, Entry, Reply, Verdict
from tui_eval.tui.state.case.entry_blocks import markdown_lines
from tui_eval.tui.state.case.expectation_marks import Expectations
from tui_eval.tui.state.case.explain import explained, in_short
from tui_eval.tui.state.text.lines import Line, text_lines


def attempt_of(text: str, *verdicts: Verdict) -> Attempt:
    attempt = Attempt("s::n", 1, "failed", replies=[Reply(1, text)], verdicts=list(verdicts))
    for verdict in verdicts:
        if verdict.type.endswith("regex") and verdict.evidence is None:
            verdict.evidence = judged(text, str(verdict.expected), verdict.type).evidence
    return evidenced(attempt)


@functools.cache
def isolates() -> JavaScriptHost:
    host = JavaScriptHost(1)
    atexit.register(host.close)
    return host


def judged(text: str, pattern: str, kind: str = "regex", **more: Any) -> Verdict:
    """What the judge makes of a pattern."""
    row = {"output": text, "assertion": {"type": kind, "value": pattern, **more}, "vars": {}}
    return asyncio.run(
        judge(evidence_for(row, JudgeServices(hosts=GivenHosts(javascript=isolates()))))
    ).verdicts[0]


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
        ("regex", "[Rr]efund", ["Refund", "refund"]),
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


@pytest.mark.parametrize(
    ("kind", "expected", "reply", "counted"),
    [
        ("contains", "stars", "stars, " * 30, '✓ "stars" stands there 30 times'),
        ("not-contains", "stars", "stars, " * 30, '✗ "stars" stands there 30 times'),
        ("icontains", "stars", "Stars, stars, " * 15, '✓ "stars" stands there 30 times'),
        ("icontains", "stars", "stars, " * 21 + "STARS", '✓ "stars" stands there 20 times and more'),
        ("contains-all", ["moon", "sun", "stars"], "moon sun stars " * 30, '✓ "sun" stands there 30 times'),
        ("regex", "st.rs", "stars, " * 30, '✓ "stars" stands there 30 times'),
        ("regex", "st.rs", "stars, " * 60, '✓ "stars" stands there 40 times and more'),
    ],
)
def test_a_text_is_counted_beyond_the_places_that_a_judge_notes(kind, expected, reply, counted):
    verdict = Verdict(kind, not kind.startswith("not"), "text", expected)
    verdict.evidence = bounded(judged(reply, expected, kind).evidence)
    assert counted in said(explained(verdict, attempt_of(reply, verdict)))


@pytest.mark.parametrize(
    ("kind", "expected", "line"),
    [
        ("not-contains", "elevate", '✓ "elevate" is not there; case counts: "Elevate" is'),
        ("not-contains", "trees", '✓ "trees" is not there'),
        ("not-icontains", "trees", '✓ "trees" is not there'),
        ("not-contains-any", ["trees", "YOUR"], '✓ "YOUR" is not there; case counts: "your" is'),
        (
            "not-starts-with",
            "elevate",
            '✓ the reply does not begin with "elevate"; case counts: "Elevate" it does',
        ),
        ("not-starts-with", "your", '✓ the reply does not begin with "your"'),
    ],
)
def test_what_is_forbidden_and_stands_there_in_other_case_is_said(kind, expected, line):
    """It passes, beside a text in which a reader sees it."""
    reply = "Elevate your brand"
    verdict = Verdict(kind, True, "text", expected)
    verdict.evidence = judged(reply, expected, kind).evidence
    assert line in said(explained(verdict, attempt_of(reply, verdict)))


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


def test_a_pattern_with_lookaround_marks_only_the_places_that_it_matched():
    verdict = Verdict("not-regex", False, "text", r"(?<=costs )\d+ €")
    assert marks("9 € off; it costs 9 € now", "hit-forbidden", verdict) == ["9 €"]
    lines = said(explained(verdict, attempt_of("9 € off; it costs 9 € now", verdict)))
    assert lines[0] == '✗ "9 €" stands there once' and lines[1] == "  9 € off; it costs 9 € now"
    named = Verdict("not-regex", False, "text", r"(?<word>\w)\k<word>")
    assert marks("abba", "hit-forbidden", named) == ["bb"]


def test_a_run_of_before_verdicts_said_what_they_matched_has_no_marks_of_patterns():
    verdict = Verdict("regex", True, "text", "x", "xy")
    attempt = Attempt("s::n", 1, "passed", replies=[Reply(1, "xy")], verdicts=[verdict])
    assert not Expectations([verdict], attempt) and list(explained(verdict, attempt)) == []


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("Café is open", r"^\w+ is open"),  # \w is ASCII's
        ("costs ٣ €", r"\d"),
        ("a\x1cb", r"a\sb"),
        ("a\u2028b", "a.b"),
        ("yes\n", "yes$"),
        ("a é b", r"\bé\b"),
    ],
)
def test_what_python_would_match_and_javascript_does_not_is_no_match_on_screen(text: str, pattern: str):
    assert re.search(pattern, text)
    verdict = judged(text, pattern)
    assert verdict.passed is False and verdict.evidence is not None
    assert [one.code for one in verdict.evidence] == ["not-matched"]
    attempt = Attempt("s::n", 1, "failed", replies=[Reply(1, text)], verdicts=[verdict])
    assert said(explained(verdict, attempt))[0].endswith("matches nothing")
    assert styled(list(Expectations([verdict], attempt).mark(text_lines(text))), "hit-wanted") == []


def test_what_javascript_alone_matches_is_marked():
    for text, pattern, found in [
        ("a\ufeffb", r"a\sb", "a\ufeffb"),
        ("Ä Ö", r"\W+", "Ä Ö"),
        ("👍 ok ok", r"(?<=👍 )ok", "ok"),
        ("xx", r"(?<a>x)\k<a>", "xx"),
        ("]", r"[^]", "]"),
    ]:
        verdict = judged(text, pattern)
        assert verdict.passed is True and verdict.evidence is not None
        assert [(one.text, text[one.start : one.end]) for one in verdict.evidence] == [(found, found)]


def test_an_invalid_pattern_says_nothing_of_matches():
    verdict = judged("xy", "(")
    assert verdict.passed is False and "Invalid regex" in verdict.reason and verdict.evidence is not None
    assert [one.code for one in verdict.evidence] == ["bad-pattern"]


def test_a_pattern_of_the_empty_text_does_not_match_nothing():
    verdict = judged("abc", "z*")
    attempt = Attempt("s::n", 1, "passed", replies=[Reply(1, "abc")], verdicts=[verdict])
    assert verdict.passed is True and said(explained(verdict, attempt)) == ["✓ z* matches an empty text"]


def test_what_a_transform_made_is_marked_where_it_stands_in_the_reply():
    verdict = judged("total 42", r"\d+", transform="output.replace('total', 'sum').toUpperCase()")
    attempt = Attempt("s::n", 1, "passed", replies=[Reply(1, "total 42")], verdicts=[verdict])
    assert said(explained(verdict, attempt))[0] == '✓ "42" stands there once'
    verdict = judged("total 42", "TOTAL", transform="output.toUpperCase()")
    assert said(explained(verdict, attempt)) == ['✓ "TOTAL" was matched in what was judged']


def test_what_a_transform_took_away_is_missed_in_what_it_left():
    """It was looked for in the reply: "the nearest is 0 characters away"."""
    verdict = judged("Q2 boom", "boom", "contains", transform="output.toUpperCase()")
    entries = [Entry(1, "user", text="say boom"), Entry(1, "assistant", text="Q2 boom")]
    attempt = Attempt(
        "s::n", 1, "failed", replies=[Reply(1, "Q2 boom")], verdicts=[verdict], transcript=entries
    )
    assert said(explained(verdict, attempt)) == [
        '✗ "boom" is not there; the nearest is the same but for upper and lower case:',
        "  wanted  boom",
        "  judged  Q2 BOOM",
        "  it stands elsewhere: turn 1 (reply), turn 1 (user)",
    ]
    assert said(in_short(verdict, attempt)) == [
        "judged  Q2 BOOM",
        "nearest BOOM  the same but for upper and lower case",
    ]


@pytest.mark.real
def test_the_judge_tells_its_first_match_where_all_of_them_would_take_too_long():
    text = "7 € " + "a" * 40 + "b"
    verdict = judged(text, r"7 €|(?=x|)(a|aa)+$")
    assert verdict.passed is True and verdict.evidence is not None
    assert [one.text for one in verdict.evidence] == ["7 €"]


@pytest.mark.parametrize(("text", "marked"), [("ſtop", []), ("İstop", ["stop"]), ("STOP", ["STOP"])])
def test_letters_of_either_case_are_the_judges(text: str, marked: list[str]):
    verdict = Verdict("icontains", bool(marked), "text", "stop")
    assert marks(text, "hit-wanted", verdict) == marked


def test_numbers_are_looked_for_as_the_judge_prints_them():
    verdict = Verdict("contains-all", True, "text", [2.0, 0.0000001, 2**60])
    text = "2 and 1e-7 and 1152921504606847000"
    assert marks(text, "hit-wanted", verdict)[:2] == ["2", "1e-7"]
    assert all(
        "stands there" in line for line in said(explained(verdict, attempt_of(text, verdict))) if "✓" in line
    )


def test_of_a_long_reply_no_more_is_made_than_is_asked_for() -> None:
    """A reply of 5 MB, of which forty lines are shown: all 260,000 were made, and the app stood still for a second."""
    text = "a line of words\n" * 40_000 + "a refund is due\n" + "a line of words\n" * 40_000
    verdicts = [
        Verdict("not-contains", False, expected="refund"),
        Verdict("contains", False, expected="apology"),
    ]
    attempt, made = attempt_of(text, *verdicts), 0

    def counted() -> Iterator[Line]:
        nonlocal made
        for line in text_lines(text):
            made += 1
            yield line

    marked = Expectations(verdicts, attempt).mark(counted())
    assert said(list(islice(marked, 40))) and made < 20_000
    assert styled(list(marked), "hit-forbidden") == ["refund"] and made == 80_002
