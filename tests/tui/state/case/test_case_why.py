"""Why a case failed: what assertions looked for shown in the reply, the calls and the numbers."""

from __future__ import annotations

import pytest

from tests.support.attempts import hallucinated_argument, judged, multi_agent, text_failure
from tests.support.judged_evidence import evidenced
from tui_eval.model import Attempt, Entry, Reply, Verdict
from tui_eval.store.schema import AttemptRow
from tui_eval.tui.state.case import assertions_view
from tui_eval.tui.state.case.case_history import CasePast, PastAttempt, agreements, usual
from tui_eval.tui.state.case.explain import explained, in_short
from tui_eval.tui.state.case.verdict_lines import brief, in_full, title
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.state.text.text_difference import near_miss


def said(lines) -> list[str]:
    return [plain(line) for line in lines]


def styled(lines, word: str) -> list[str]:
    return [span.text for line in lines for span in line if word in span.style.split()]


def replied(text: str, verdict: Verdict, **parts) -> list[str]:
    attempt = Attempt("s::n", 1, "failed", replies=[Reply(1, text, **parts)], verdicts=[verdict])
    verdict.evidence = None
    evidenced(attempt)
    return said(explained(verdict, attempt))


def past_attempt(number: int, **values) -> PastAttempt:
    row = AttemptRow(
        number, 1, number, "done", values.pop("outcome", "passed"), 1.0, "", 1000.0 + number,
        values.pop("duration_ms", None), values.pop("input_tokens", None), values.pop("output_tokens", None),
        None, values.pop("cost", None), values.pop("tool_calls", None), 0, "", number,
    )  # fmt: skip
    return PastAttempt(f"run{number}", row, **values)


# -- texts


def test_the_nearest_miss_with_its_differing_characters() -> None:
    miss = near_miss("Refund policy", "our refunds policy says")
    assert miss is not None and (miss.start, miss.end, miss.distance) == (4, 18, 1)
    assert [("refunds policy")[a:b] for a, b in miss.found_marks] == ["s"]
    exact = near_miss("Refund policy", "our refund policy says", ignoring_case=False)
    assert exact is not None and exact.distance == 1 and exact.wanted_marks == ((0, 1),)
    assert near_miss("Refund policy", "nothing of the kind at all") is None


def test_a_missing_text_shows_the_nearest_place_and_a_forbidden_one_where_it_stands() -> None:
    attempt = text_failure()
    missing = list(explained(attempt.verdicts[1], attempt))
    assert said(missing)[0] == '✗ "Refund policy" is not there; the nearest is 1 character away:'
    assert "Unfortunately the refunds policy covers" in said(missing)[2]
    assert styled(missing, "added") == ["s"]
    forbidden = list(explained(attempt.verdicts[2], attempt))
    assert said(forbidden)[0] == '✗ "escalat" stands there once'
    assert styled(forbidden, "hit-forbidden") == ["escalat"]
    assert said(in_short(attempt.verdicts[1], attempt)) == ["nearest refunds policy  1 character away"]


@pytest.mark.parametrize(
    ("wanted", "reply", "place"),
    [
        ("Paris", "Maybe visit PARIS for 4 days?", "PARIS"),
        ("OK", "all is ok, no token is lost", "ok"),
        ("30 Days", "within 30 days", "30 days"),
        ("Paris", "of comparisons, paris", "paris"),
    ],
)
def test_a_text_that_stands_there_in_other_case_is_the_nearest(wanted: str, reply: str, place: str) -> None:
    verdict = Verdict("contains", False, "text", wanted)
    lines = replied(reply, verdict)
    assert lines[0] == f'✗ "{wanted}" is not there; the nearest is the same but for upper and lower case:'
    attempt = Attempt("s::n", 1, "failed", replies=[Reply(1, reply)], verdicts=[verdict])
    assert said(in_short(verdict, attempt)) == [f"nearest {place}  the same but for upper and lower case"]


def test_two_letters_within_words_are_not_near() -> None:
    lines = replied("a token", Verdict("contains", False, "text", "OK"))
    assert lines == ['✗ "OK" is not there, nor anything like it']


def test_texts_of_both_kinds_are_told_apart() -> None:
    lines = replied("one two", Verdict("contains-all", False, "text", ["two", "three hundred"]))
    assert lines[0] == '✓ "two" stands there once' and lines[2].startswith('✗ "three hundred" is not there')
    assert replied("one", Verdict("not-contains", True, "text", "two")) == ['✓ "two" is not there']
    assert replied("", Verdict("contains", False, "text", "two")) == ["the reply has no text"]


# -- JSON


def test_a_broken_schema_names_path_rule_and_value() -> None:
    schema = {"properties": {"items": {"items": {"properties": {"price": {"type": "number"}}}}}}
    reason = "JSON does not conform to the provided schema. Errors: data/items/1/price must be number"
    verdict = Verdict("is-json", False, "text", schema, reason=reason)
    text = '{"items": [{"price": 1}, {"price": "2 €"}]}'
    assert replied(text, verdict) == [
        "at      $.items[1].price",
        "rule    must be number",
        'is      "2 €"',
        'schema  {"type": "number"}',
    ]
    inside = Verdict("contains-json", False, "text", schema)
    assert replied(f"Here: {text} done", inside)[2] == 'is      "2 €"'


def test_text_that_is_no_json_says_where() -> None:
    lines = replied('{"a": 1,\n"b": oops}', Verdict("is-json", False, "text"))
    assert lines[0].startswith("no JSON from line 2") and "oops" in lines[1]


def test_a_dotted_path_is_followed_as_far_as_it_goes() -> None:
    verdict = Verdict("value", False, "sly_data.trip.price", 100)
    lines = replied("", verdict, sly_data={"trip": {"cost": 90}})
    assert lines == ["sly_data.trip has no price; it has cost"]
    assert replied("", verdict, sly_data={"trip": {"price": 90}}) == ["sly_data.trip.price: 100  ≠ 90"]
    assert replied("", verdict) == ["the reply has no sly_data"]


# -- tools


def test_the_closest_call_is_compared_field_by_field() -> None:
    attempt = hallucinated_argument()
    lines = said(explained(attempt.verdicts[0], attempt))
    assert lines[0] == "✗ run_report closest is call 1 in turn 1"
    assert lines[1].strip() == 'month: "2026-03"  ≠ "2026-05"' and lines[2].strip() == 'status: "paid"  ✓'
    assert said(explained(attempt.verdicts[1], attempt))[1].startswith("✗ get_currency was not called")


def test_of_several_calls_the_one_with_most_in_common_is_closest() -> None:
    entries = [
        Entry(1, "tool_call", name="find", arguments={"a": 9, "b": 9}, call_id="1"),
        Entry(1, "tool_call", name="find", arguments={"a": 1, "b": {"c": 3}, "x": 1}, call_id="2"),
        Entry(2, "tool_call", name="other", call_id="3"),
    ]
    wanted = {"tool": "find", "args": {"a": 1, "b": {"c": 2}}}
    verdicts = [
        Verdict("tool_call", False, "tools", wanted),
        Verdict("tools_used", False, "tools", ["others"]),
    ]
    attempt = evidenced(
        Attempt("s::n", 1, "failed", transcript=entries, replies=[Reply(2, "x")], verdicts=verdicts)
    )
    assert said(explained(verdicts[0], attempt)) == [
        "✗ find closest is call 2 in turn 1",
        "  a: 1  ✓",
        "  b.c: 2  ≠ 3",
        "  x: not asked for",
    ]
    assert said(explained(verdicts[1], attempt)) == ["✗ others was not called; the nearest name is other"]


def test_older_runs_have_no_evidence_and_show_nothing_of_their_own() -> None:
    entries = [Entry(1, "tool_call", name="find", arguments={"a": 9}, call_id="1")]
    verdict = Verdict(
        "tool_call", False, "tools", {"tool": "find", "args": {"a": 1}}, reason="missing tool_call: find"
    )
    attempt = Attempt(
        "s::n", 1, "failed", transcript=entries, verdicts=[verdict], message="missing tool_call: find"
    )
    assert said(explained(verdict, attempt)) == []
    text = [line for block in assertions_view.build(attempt) for line in said(block.lines())]
    assert any("missing tool_call: find" in line for line in text)


# -- numbers and judges


def test_a_budget_shows_the_usual_range() -> None:
    past = CasePast([past_attempt(n, tool_calls=n) for n in range(1, 6)])
    attempt = text_failure()
    verdict = Verdict("max_tool_calls", False, "tools", 4, 9)
    lines = said(explained(verdict, attempt, past))
    assert lines[0].endswith("9 of 4: 5 over, 2.2 times")
    assert lines[1] == "usually 3 (1 to 5 in 5 attempts); this one is unlike them"
    slow = Verdict("latency", False, "text", 1000, 2500.0)
    assert said(explained(slow, attempt))[0].endswith("2.5s of 1.0s: 1.5s over, 2.5 times")
    assert usual([1.0, 2.0]) is None and past.without("run1", 1).values("max_tool_calls") == [2, 3, 4, 5]


def test_how_often_people_agree_with_a_judge() -> None:
    attempt = multi_agent()
    assert agreements([(attempt.verdicts, "wrong"), (attempt.verdicts, "right")]) == {"gpt-4.1-mini": (1, 2)}
    past = CasePast(agreement={"gpt-4.1-mini": (1, 2)})
    text = [line for block in assertions_view.build(attempt, past=past) for line in said(block.lines())]
    assert any("people agreed with it 1 of 2 times" in line for line in text)


@pytest.mark.parametrize("make", [judged, multi_agent, text_failure])
def test_raw_shows_values_as_they_came(make) -> None:
    attempt = make()
    text = [line for block in assertions_view.build(attempt, rendered=False) for line in said(block.lines())]
    assert not any("stands there" in line for line in text) and any("expected" in line for line in text)


def test_a_text_that_reads_like_the_number_expected_stands_in_quotation_marks() -> None:
    verdict = Verdict(
        "plans", passed=False, target="metadata.plans", expected=3, actual="3", reason="plans: no"
    )
    shown = [" ".join(line.split()) for line in said(in_full(verdict))]
    assert shown[-2:] == ["expected 3", 'actual "3"']
    assert plain(title(verdict)) == "plans 3"
    verdict.target = "structure.plans"
    assert plain(title(verdict)) == "plans structure.plans 3"


def test_what_a_scripts_result_consists_of_stands_below_it_what_failed_first() -> None:
    parts = [
        {"pass": True, "score": 1, "reason": "polite"},
        {"pass": False, "score": 0.2, "reason": "too long"},
    ]
    verdict = Verdict("javascript", passed=False, reason="1 of 2", parts=parts)
    assert said(in_full(verdict))[2:4] == ["✗ too long  score 0.2", "✓ polite"]
    assert "✗ too long  score 0.2" in said(brief(verdict)) and "✓ polite" not in said(brief(verdict))
