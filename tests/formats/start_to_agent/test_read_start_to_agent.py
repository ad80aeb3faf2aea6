"""The StartToAgent guide's suites: every key, every place where a file can be wrong, and speed."""

import json
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.suite_files import messages, read, structures
from tui_eval.formats.start_to_agent import read_start_to_agent
from tui_eval.formats.start_to_agent.read_start_to_agent import CASE_KEYS, KNOWN, SUITE_KEYS

GUIDE = """\
agent: customer_support
model: claude-sonnet-4-20250514

test_cases:
  - name: "Simple question — should use canned response"
    input: "What are your pricing plans?"
    expected:
      should_contain: ["€79", "€149"]
      should_not_contain: ["I don't know", "escalat"]
      escalated: false
      max_tool_calls: 2

  - name: "Frustration escalation — accumulated negative sentiment"
    messages:
      - "This product doesn't work at all"
      - "I've been trying for hours, this is terrible"
    expected:
      escalated: true
      escalation_priority: "high"
      tools_used: ["a", "b"]
      max_input_tokens: 5000
      max_output_tokens: 2000
"""


def one(expected: str, head: str = "name: n\n    input: i"):
    return read(read_start_to_agent, f"test_cases:\n  - {head}\n    expected:\n      {expected}\n")


def test_the_guides_suite():
    suite = read(read_start_to_agent, GUIDE, "evals/support.yaml")
    assert not messages(suite)
    first, second = suite.cases
    assert first.case_id == "evals/support.yaml::Simple question — should use canned response"
    assert (first.agent, first.model, first.line) == ("customer_support", "claude-sonnet-4-20250514", 5)
    assert [t.text for t in second.turns] == [
        "This product doesn't work at all",
        "I've been trying for hours, this is terrible",
    ]
    assert [(a.type, a.value, a.target, a.turn, a.line) for a in first.assertions] == [
        ("should_contain", "€79", "text", None, 8),
        ("should_contain", "€149", "text", None, 8),
        ("should_not_contain", "I don't know", "text", None, 9),
        ("should_not_contain", "escalat", "text", None, 9),
        ("escalated", False, "metadata.escalated", None, 10),
        ("max_tool_calls", 2, "tools", None, 11),
    ]
    assert [(a.type, a.value, a.target) for a in second.assertions] == [
        ("escalated", True, "metadata.escalated"),
        ("escalation_priority", "high", "metadata.escalation_priority"),
        ("tools_used", "a", "tools"),
        ("tools_used", "b", "tools"),
        ("max_input_tokens", 5000, "usage.input_tokens"),
        ("max_output_tokens", 2000, "usage.output_tokens"),
    ]


def test_a_scalar_is_a_list_of_one_and_a_number_its_text():
    suite = one("should_contain: 29.90\n      tools_used: search\n      should_not_contain: [1.10, 010]")
    assert not messages(suite)
    assert [a.value for a in suite.cases[0].assertions] == ["29.90", "search", "1.10", "010"]
    suite = read(
        read_start_to_agent, "test_cases:\n  - {name: 12, input: 1.50}\n  - {messages: [2024-01-05, 7]}\n"
    )
    assert [[t.text for t in c.turns] for c in suite.cases] == [["1.50"], ["2024-01-05", "7"]]
    assert suite.cases[0].name == "12"


def test_unknown_keys_are_behaviour_and_slips_are_errors():
    suite = one("sentiment: calm\n      resolved: true")
    assert [(a.type, a.value, a.target) for a in suite.cases[0].assertions] == [
        ("sentiment", "calm", "metadata.sentiment"),
        ("resolved", True, "metadata.resolved"),
    ]
    suite = one("should_contian: x")
    assert messages(suite) == [
        "suite.yaml:5: test_cases[0].expected.should_contian: unknown assertion 'should_contian'; "
        "did you mean 'should_contain'?"
    ]
    assert suite.cases[0].problems[0].level == "error" and not suite.cases[0].assertions
    suite = read(read_start_to_agent, "owner: me\nmodle: x\ntest_cases:\n  - {input: a, tags: [x]}\n")
    assert [(p.key, p.level) for p in suite.problems] == [("owner", "note"), ("modle", "error")]
    of_case = [(p.key, p.level) for p in suite.cases[0].problems]
    assert of_case == [("modle", "error"), ("test_cases[0].tags", "note")], "another model than the one meant"


@pytest.mark.parametrize(
    ("case", "line", "words"),
    [
        ("{name: a}", 2, "neither input nor messages"),
        ("{name: a, input: x, messages: [y]}", 2, "both input and messages"),
        ("{name: a, messages: []}", 2, "messages is empty"),
        ("{name: a, input: true}", 2, "quote it"),
        ("{name: a, input: [x]}", 2, "must be text, not a list"),
        ("{name: a, messages: [x, {y: z}]}", 2, "must be text, not a mapping"),
        ("{name: a, messages: [x, null]}", 2, "must be text, not nothing"),
        ("{name: a, inpt: x}", 2, "did you mean 'input'"),
        ("just text", 2, "a case must be a mapping"),
    ],
)
def test_a_case_without_a_usable_message_is_left_out_and_reported(case, line, words):
    suite = read(read_start_to_agent, f"test_cases:\n  - {case}\n  - {{name: good, input: hello}}\n")
    assert [c.name for c in suite.cases] == ["good"]
    assert suite.problems[0].line == line and suite.problems[0].level == "error"
    assert words in str(suite.problems[0])


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ("max_tool_calls: two", "must be a number"),
        ("max_tool_calls: true", "must be a number"),
        ("max_output_tokens: -1", "0 or more"),
        ("max_output_tokens: .nan", "0 or more"),
        ("escalated: maybe", "true or false"),
        ("should_contain: [{a: b}]", "must be text, not a mapping"),
        ("should_contain: [yes]", "quote it"),
    ],
)
def test_an_assertion_of_the_wrong_type_is_an_error_of_its_case(expected, words):
    suite = one(expected)
    assert not suite.problems and words in str(suite.cases[0].problems[0])
    assert suite.cases[0].problems[0].line == 5


def test_a_key_given_twice_in_what_two_cases_share_is_an_error_of_both():
    text = "test_cases:\n- {name: a, input: i, expected: &e {should_contain: [x], should_contain: [y]}}\n- {name: b, input: i, expected: *e}\n- {name: c, input: i}\n"
    suite = read(read_start_to_agent, text)
    assert [bool(case.problems) for case in suite.cases] == [True, True, False] and not suite.problems


def test_names_repeat_and_unnamed_cases_keep_their_id_while_assertions_change():
    text = "test_cases:\n  - {name: a, input: x}\n  - {name: a, input: y}\n  - {input: z, expected: {escalated: true}}\n"
    ids = [c.case_id for c in read(read_start_to_agent, text).cases]
    assert ids[:2] == ["suite.yaml::a", "suite.yaml::a#2"] and ids[2].startswith("suite.yaml::vars-")
    changed = read(read_start_to_agent, text.replace("escalated: true", "escalated: false")).cases
    assert changed[2].case_id == ids[2]
    assert changed[2].content_hash != read(read_start_to_agent, text).cases[2].content_hash
    assert changed[0].content_hash == read(read_start_to_agent, "\n\n" + text).cases[0].content_hash
    moved = read(read_start_to_agent, text.replace("  - {name: a, input: x}\n", "")).cases
    assert [moved[1].name, moved[1].content_hash] == [
        "case 2",
        read(read_start_to_agent, text).cases[2].content_hash,
    ]


@pytest.mark.parametrize(
    "text", ["", "- a\n", "x", "test_cases: 5\n", "test_cases: {a: b}\n", "a: [\n", "agent: x\n"]
)
def test_other_files_are_one_problem(text):
    suite = read(read_start_to_agent, text)
    assert not suite.cases and suite.problems and suite.problems[0].level == "error"


def test_a_case_that_expects_nothing_has_no_assertions():
    suite = read(
        read_start_to_agent, "test_cases:\n  - {name: a, input: b}\n  - {name: c, input: d, expected: {}}\n"
    )
    assert not messages(suite) and [c.assertions for c in suite.cases] == [[], []]
    assert (
        "mapping of assertions"
        in messages(read(read_start_to_agent, "test_cases: [{input: a, expected: [b]}]"))[0]
    )


KEYS = [*SUITE_KEYS, *CASE_KEYS, *KNOWN, "should_contian", "mood"]


@pytest.mark.real
@examples(200)
@given(structures(KEYS))
def test_no_structure_raises(data):
    for value in (data, {"test_cases": data}, {"test_cases": [data, {"input": "x", "expected": data}]}):
        for text in (yaml.safe_dump(value), json.dumps(value)):
            messages(read(read_start_to_agent, text))


@examples(100)
@given(st.text())
def test_no_text_raises(text):
    messages(read(read_start_to_agent, text))
    messages(read(read_start_to_agent, "test_cases:\n  - input: " + text))


@pytest.mark.benchmark
def test_a_thousand_cases_are_read_well_under_half_a_second():
    case = GUIDE[GUIDE.index("  - name") :]
    text = "test_cases:\n" + case * 500
    best = 9.0
    for _ in range(3):
        before = time.process_time()
        suite = read(read_start_to_agent, text)
        best = min(best, time.process_time() - before)
    assert len(suite.cases) == 1000
    assert best < 0.5


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("test_cases:\n  - input: a\n    should_contain: [b]\n", "test_cases[0].should_contain"),
        ("test_cases:\n  - input: a\nexpected: {should_contain: [b]}\n", "expected"),
        ("max_tool_calls: 2\ntest_cases:\n  - input: a\n", "max_tool_calls"),
        ("test_cases: []\n", "test_cases"),
    ],
)
def test_what_would_not_be_asked_is_an_error(text, key):
    suite = read(read_start_to_agent, text)
    problems = [*suite.problems, *(one for case in suite.cases for one in case.problems)]
    assert {(one.level, one.key) for one in problems} == {("error", key)}
