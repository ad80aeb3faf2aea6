"""What stands beside a list of an attempt, in full and in a pane of few lines."""

from __future__ import annotations

from tests.tui.state.case.test_case_why import said
from tests.tui.state.case.test_nearest_in_meaning import lacking
from tui_eval.model import Attempt, Entry, Usage, Verdict
from tui_eval.tui.pointer import CasePointer
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
