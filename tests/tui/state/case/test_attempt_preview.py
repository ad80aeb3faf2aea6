"""What stands beside a list of an attempt, in full and in a pane of few lines."""

from __future__ import annotations

import pytest

from tests.tui.state.case.test_case_why import said
from tests.tui.state.case.test_nearest_in_meaning import lacking
from tui_eval.model import Attempt, Case, DataDetails, Entry, Turn, Usage, Verdict
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case.attempt_preview import brief_answers, brief_lines, preview_lines
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.transcript_view import facts_of


def content(attempt: Attempt) -> CaseContent:
    return CaseContent(CasePointer("a::b"), attempt=attempt)


def test_in_brief_fact_and_reply_stand_in_six_lines() -> None:
    asked = Entry(1, "user", text="How long is the warranty? " * 9)
    attempt = lacking("2 years", Verdict("llm-rubric", True, expected="is polite"))
    attempt.transcript.insert(0, asked)
    shown = said(brief_lines(content(attempt)))
    assert [line[:30] for line in shown[:6]] == [
        "✗ failed  ",
        '✗ lacks "2 years"  contains',
        "  nearest 24 months  the same ",
        "> How long is the warranty? Ho",
        "Thank you for asking.",
        "The warranty covers **24 month",
    ] or shown[5].startswith("The warranty covers")
    assert len(shown[3]) <= 76 and shown[-1].startswith("✓ llm-rubric")


def test_an_error_stands_once() -> None:
    attempt = Attempt("a::b", 1, "error", error="HTTP 400: overloaded")
    attempt.transcript = [Entry(1, "user", text="hi"), Entry(1, "error", error="HTTP 400: overloaded")]
    for lines in (brief_lines(content(attempt)), preview_lines(content(attempt))):
        assert sum("overloaded" in line for line in said(lines)) == 1


def test_what_was_not_counted_is_no_fact() -> None:
    attempt = Attempt("a::b", 1, "passed", usage=Usage(0, 0), cost=0.0, duration_ms=5)
    assert facts_of(attempt) == "5ms"


def test_answers_of_several_rows_in_brief_begin_with_outcome_and_row() -> None:
    failed = lacking("2 years", Verdict("llm-rubric", True, expected="is polite"))
    passed = Attempt(
        "a::b", 1, "passed", duration_ms=7, transcript=[Entry(1, "assistant", text="Two years.")]
    )
    shown = said(brief_answers([("mini terse", content(failed)), ("large terse", content(passed))]))
    assert shown[0].startswith("✗ mini terse") and shown[1].startswith('✗ lacks "2 years"')
    assert shown[-2:] == ["✓ large terse  7ms", "Two years."] and not any("polite" in line for line in shown)


def test_a_part_that_failed_in_a_set_that_passed_stands_below_it() -> None:
    """The pane of a case that passed began with its ✗."""
    verdicts = [
        Verdict("assert-set", True),
        Verdict("contains", False, expected="São Paulo", set=0),
        Verdict("contains", True, expected="Rio", set=0),
        Verdict("equals", False, expected="Rio"),
    ]
    attempt = Attempt("a::b", 1, "failed", verdicts=verdicts, transcript=[Entry(1, "assistant", text="Rio!")])
    for lines in (brief_lines(content(attempt)), preview_lines(content(attempt))):
        shown = [line for line in said(lines) if line]
        assert shown[1].startswith("✗ ") and "equals" in shown[1], shown
        assert shown[-3:] == ["✓ assert-set", '  ✗ contains "São Paulo"', '  ✓ contains "Rio"']


def rows_differ(passed: bool | None = False) -> CaseContent:
    """An answer whose rows were asked for in a turn of their own, behind the one that the case has."""
    differing = [f"row {n} (country=C{n}): revenue: expected {n}, actual {n * 100}" for n in range(1, 9)]
    attempt = Attempt(
        "a::b",
        1,
        "failed" if passed is False else "error",
        verdicts=[Verdict("sql", passed, reason="values differ: " + differing[0])],
        transcript=[
            Entry(1, "user", text="Revenue by country?"),
            Entry(1, "assistant", text="Here it is, in cents."),
            Entry(2, "user", text="Based on your previous analysis, give the rows"),
            Entry(2, "assistant", text='{"data": []}'),
        ],
        data=DataDetails(comparison="\n".join(differing)),
    )
    shown = content(attempt)
    shown.case = Case("a::b", "nao", "b", "a.yml", turns=[Turn("Revenue by country?")])
    return shown


def test_of_rows_that_differ_the_first_are_named_and_the_agents_own_words_shown() -> None:
    shown = said(brief_lines(rows_differ()))
    rows = [line.strip() for line in shown if "expected" in line and line.startswith("  row")]
    assert rows == ["row 1 (country=C1): revenue: expected 1, actual 100"]
    assert len(shown) == 5  # a pane of a small terminal has little more
    assert shown[-2:] == ["turn 1 of 2  > Revenue by country?", "Here it is, in cents."]
    assert len([line for line in said(preview_lines(rows_differ())) if line.startswith("  row")]) == 5


def test_no_cells_are_promised_where_nothing_could_be_compared() -> None:
    assert any("d shows the rows" in line for line in said(preview_lines(rows_differ())))
    for shown in (brief_lines, preview_lines):
        assert not any("d shows the rows" in line for line in said(shown(rows_differ(None))))


def test_what_the_reason_says_of_rows_is_not_said_twice() -> None:
    """Rows in another order: the sentence stood there twice, with a pointer to cells of which none differs."""
    shown = rows_differ()
    assert shown.attempt is not None and shown.attempt.data is not None
    shown.attempt.verdicts[0].evidence = None
    words = shown.attempt.verdicts[0].reason = "the same rows in another order: 1 of 6 stand elsewhere"
    shown.attempt.data.comparison = words
    lines = said(preview_lines(shown))
    assert sum(words in line for line in lines) == 1 and not any("cells" in line for line in lines)


def test_calls_of_one_tool_in_a_row_are_one_line_so_that_the_reply_is_seen() -> None:
    attempt = lacking("2 years")
    calls: list[Entry] = []
    for page in range(6):
        calls.append(Entry(1, "tool_call", name="search", arguments={"page": page}, call_id=f"c{page}"))
        calls.append(Entry(1, "tool_result", name="search", result={"hits": []}, call_id=f"c{page}"))
    other = Entry(1, "tool_call", name="open_ticket", call_id="t")
    attempt.transcript = [*calls, other, *attempt.transcript]
    shown = [line for line in said(brief_lines(content(attempt))) if "↳" in line]
    pages = " · ".join(f'{{"page": {page}}}' for page in range(6))
    assert shown == [f"↳ 6 × search {pages}", "↳ open_ticket"]
    failing = Entry(1, "tool_result", name="search", error="down", call_id="c2")
    attempt.transcript[5] = failing
    shown = said(brief_lines(content(attempt)))
    assert [line for line in shown if "search" in line or line == "down"] == [
        '↳ 3 × search {"page": 0} · {"page": 1} · {"page": 2}',
        "down",
        '↳ 3 × search {"page": 3} · {"page": 4} · {"page": 5}',
    ]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (['"a"'] * 3, ' {"q": "a"}'),
        (['"a"', '"b"', '"a"'], ' 2 × {"q": "a"} · {"q": "b"}'),
        (["", '"b"', '"b"'], ' () · 2 × {"q": "b"}'),
        (["", "", ""], ""),
        ([f'"{"x" * 90}{end}"' for end in "abc"], f' {{"q": "{"x" * 32}… · {{"q": "{"x" * 32}… · … 1 more'),
    ],
)
def test_calls_that_are_alike_are_told_apart_from_those_with_other_arguments(
    asked: list[str], words: str
) -> None:
    attempt = lacking("2 years")
    calls = [
        Entry(1, "tool_call", name="search", arguments={"q": value[1:-1]} if value else None, call_id=str(at))
        for at, value in enumerate(asked)
    ]
    attempt.transcript = [*calls, *attempt.transcript]
    assert [line for line in said(brief_lines(content(attempt))) if "↳" in line] == [f"↳ 3 × search{words}"]


def test_a_verdict_on_a_turn_that_is_not_shown_names_it() -> None:
    first, second = lacking("2 years"), lacking("3 years")
    for verdict, turn in ((first.verdicts[0], 1), (second.verdicts[0], 2)):
        verdict.turn = turn
    first.verdicts.append(second.verdicts[0])
    first.transcript.append(Entry(2, "assistant", text="no"))
    shown = [line for line in said(brief_lines(content(first))) if line.startswith("✗ lacks")]
    assert shown == ['✗ lacks "2 years"  contains · turn 1', '✗ lacks "3 years"  contains · turn 2']
