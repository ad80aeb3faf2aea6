"""neuro-san's stock tests and success ratio against the recorded verdicts of the tool, and as documented."""

from __future__ import annotations

import json
import operator
from collections import deque
from typing import Any

import pytest
from msgspec import UNSET

from tests.support import TESTS
from tui_eval.assertions import JudgeAnswer, JudgeInput, JudgeServices, Reports
from tui_eval.causes import words_of
from tui_eval.formats import judge
from tui_eval.formats.neuro_san import read_neuro_san
from tui_eval.formats.neuro_san.judge_neuro_san import question
from tui_eval.model import Assertion, Case, Outcome, Reply, Turn
from tui_eval.store.summary import case_outcome

VECTORS = TESTS / "vectors"
ROWS = [json.loads(line) for line in (VECTORS / "neurosan_asserts.jsonl").read_text().splitlines()]
RATIOS = [json.loads(line) for line in (VECTORS / "neurosan_ratio.jsonl").read_text().splitlines()]
ABLE = Reports(tokens=True, tools=True, metadata=True, sly_data=True, structure=True)


def assertions_from(spec: dict[str, Any] | None) -> list[Assertion]:
    """The walk of formats/neuro_san.md section 2: breadth first, parts in a fixed order."""
    found = []
    for part in ("text", "structure", "sly_data"):
        queue = deque([(part, (spec or {}).get(part))])
        while queue:
            path, value = queue.popleft()
            if value is None:
                continue
            if isinstance(value, dict):
                quoted = {key: f'"{key}"' if "." in key else key for key in value}
                queue.extend((f"{path}.{quoted[key]}", inner) for key, inner in value.items())
                continue
            target, _, name = path.rpartition(".")
            if not target:
                continue
            elements = value if isinstance(value, list) else [value]
            found += [Assertion(name, element, target, 1) for element in elements or [UNSET]]
    return found


def evidence_for(
    assertions: list[Assertion], answer: dict[str, Any], replies: Any = None, *, compat: str = "documented"
) -> tuple[JudgeInput, list[str]]:
    asked: list[str] = []
    said = list(replies) if isinstance(replies, list) else None

    async def ask(system: str | None, prompt: str, schema: Any) -> JudgeAnswer:
        asked.append(prompt)
        text = said.pop(0) if said is not None else replies
        return JudgeAnswer(text, "judge-model")

    reply = Reply(
        turn=1,
        text=answer.get("text") or "",
        text_missing=answer.get("text") is None,
        structure=answer.get("structure"),
        sly_data=answer.get("sly_data"),
    )
    case = Case("s.hocon::c", "c", "s.hocon", "neuro_san", turns=[Turn("hi", assertions)])
    services = JudgeServices(ask_judge=ask)
    return JudgeInput(case, [reply], capabilities=ABLE, compat=compat, services=services), asked


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
async def test_verdict_of_the_tool_under_reference(row: dict[str, Any]) -> None:
    if row["response_spec"] is None:
        pytest.skip("the file itself cannot be read by the tool")
    assertions = assertions_from(row["response_spec"])
    evidence, asked = evidence_for(assertions, row["answer"], row.get("judge_reply"), compat="reference")
    if "judge_reply" in row and row["judge_reply"] is None:
        evidence.services.ask_judge = _silent_judge
    judgement = await judge(evidence)
    assert (judgement.outcome == "passed") is row["pass"], judgement
    if row["error"]:
        assert any(verdict.passed is None for verdict in judgement.verdicts)
        if row["error"].startswith("TypeError"):
            assert row["error"] in judgement.message
    else:
        assert judgement.outcome == ("passed" if row["pass"] else "failed")
    if row.get("judge_questions"):
        assert asked == row["judge_questions"]


async def _silent_judge(system: str | None, prompt: str, schema: Any) -> JudgeAnswer:
    return JudgeAnswer(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", RATIOS, ids=lambda row: row["id"])
def test_success_ratio(row: dict[str, Any]) -> None:
    """As a case file is read, and as a run counts what came of its attempts."""
    value = row["parsed_ratio"] if row["parsed_ratio"] is not None else "1/1"
    if row["iterations_started"] == 0:
        with pytest.raises(ValueError, match="must be"):
            read_neuro_san.ratio(value)
        return
    attempts, required = read_neuro_san.ratio(value)
    assert attempts == row["iterations_started"]
    outcomes: list[Outcome] = ["passed" if sample == "pass" else "failed" for sample in row["samples"]]
    passed = case_outcome(outcomes, required) == "passed"
    assert passed is row.get("v0_7_15", row)["pass"]


HOLDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@pytest.mark.parametrize(
    ("test", "expected", "actual", "passed"),
    [
        ("less", 5, 3, True),
        ("less", 3, 3, False),
        ("less", 3, 5, False),
        ("not_less", 3, 3, True),
        ("not_less", 3, 5, True),
        ("not_less", 5, 3, False),
        ("greater", 3, 5, True),
        ("greater", 5, 5, False),
        ("not_greater", 5, 5, True),
        ("not_greater", 3, 5, False),
        ("less", "b", "a", True),
        ("greater", "b", "a", False),
    ],
)
async def test_less_and_greater_as_documented(test: str, expected: Any, actual: Any, passed: bool) -> None:
    evidence, _ = evidence_for([Assertion(test, expected, "sly_data.k", 1)], {"sly_data": {"k": actual}})
    judgement = await judge(evidence)
    assert judgement.verdicts[0].passed is passed
    assert repr(actual) in judgement.verdicts[0].reason
    evidence.compat = "reference"
    (as_the_tool,) = (await judge(evidence)).verdicts
    for verdict in (judgement.verdicts[0], as_the_tool):  # lists make their words from it: it has to be true
        (told,) = verdict.evidence or ()
        assert told.rule and HOLDS[told.rule](actual, expected) is verdict.passed
    reference = as_the_tool.passed
    if expected != actual:
        assert reference is not passed
    else:
        assert reference is passed


@pytest.mark.parametrize("compat", ["documented", "reference"])
@pytest.mark.parametrize("test", ["less", "not_less", "greater", "not_greater", "value"])
async def test_nan_is_neither_less_nor_greater_nor_their_opposites(test: str, compat: str) -> None:
    """neuro-san's server sends it as `NaN`; `not_less: 1` passed of it, which its driver fails."""
    answer = {"sly_data": {"v": float("nan")}}
    evidence, _ = evidence_for([Assertion(test, 1, "sly_data.v", 1)], answer, compat=compat)
    judgement = await judge(evidence)
    assert (judgement.outcome, judgement.verdicts[0].passed) == ("failed", False)


@pytest.mark.parametrize(
    "test", ["value", "not_value", "less", "greater", "keywords", "not_keywords", "gist"]
)
async def test_a_missing_value_fails_every_test(test: str) -> None:
    evidence, _ = evidence_for([Assertion(test, "x", "sly_data.a.b", 1)], {"sly_data": {"a": 5}}, "pass")
    judgement = await judge(evidence)
    assert judgement.outcome == "failed"
    assert judgement.message == "unexpectedly None : sly_data.a.b is None"


@pytest.mark.parametrize(
    ("test", "expected", "actual", "text"),
    [
        ("less", 5, "9", "less: cannot compare sly_data.k, the text '9', with the number 5"),
        (
            "keywords",
            1966,
            "in 1966",
            "keywords: cannot look in sly_data.k, the text 'in 1966', for the number 1966",
        ),
        ("not_keywords", "x", 3, "not_keywords: cannot look in sly_data.k, the number 3, for the text 'x'"),
    ],
)
async def test_types_that_do_not_compare_are_errors(test: str, expected: Any, actual: Any, text: str) -> None:
    assertions = [Assertion(test, expected, "sly_data.k", 1), Assertion("value", actual, "sly_data.k", 1)]
    evidence, _ = evidence_for(assertions, {"sly_data": {"k": actual}})
    judgement = await judge(evidence)
    assert [verdict.passed for verdict in judgement.verdicts] == [None, True]
    assert judgement.outcome == "error"
    assert judgement.message == text


async def test_failures_are_collected_and_outweigh_errors() -> None:
    assertions = [
        Assertion("keywords", "z", "text", 1),
        Assertion("less", 1, "text", 1),
        Assertion("keywords", "a", "text", 1),
    ]
    evidence, _ = evidence_for(assertions, {"text": "abc"})
    judgement = await judge(evidence)
    assert [verdict.passed for verdict in judgement.verdicts] == [False, None, True]
    assert judgement.outcome == "failed"
    assert judgement.message.startswith("'z' not found in 'abc'; less: cannot compare")
    assert judgement.score == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("test", "expected", "target", "reason", "words"),
    [
        ("value", 4, "structure.a", "structure.a: 4 != 3", "structure.a ≠ 4: 3"),
        ("less", 2, "structure.a", "structure.a: 3 not less than 2", "structure.a: 3 ≥ 2"),
        ("keywords", "z", "structure", "structure: 'z' not found in {'a': 3}", 'structure: lacks "z"'),
        ("less", "A", "text", "'abc' not less than 'A'", 'reply: "abc" ≥ "A"'),
    ],
)
async def test_a_failure_names_what_it_is_of(
    test: str, expected: Any, target: str, reason: str, words: str
) -> None:
    evidence, _ = evidence_for([Assertion(test, expected, target, 1)], {"text": "abc", "structure": {"a": 3}})
    verdict = (await judge(evidence)).verdicts[0]
    assert (verdict.reason, words_of(verdict)) == (reason, words)


async def test_unknown_tests_and_parts_are_errors() -> None:
    assertions = [Assertion("keyword", "a", "text", 1), Assertion("value", "a", "Text", 1)]
    evidence, _ = evidence_for(assertions, {"text": "abc"})
    judgement = await judge(evidence)
    assert [verdict.reason for verdict in judgement.verdicts] == [
        "keyword: unknown test",
        "Text: unknown part of the response",
    ]
    assert judgement.outcome == "error"


async def test_agents_without_sly_data_or_structure_are_errors() -> None:
    assertions = [Assertion("value", 1, "sly_data.k", 1), Assertion("value", 1, "structure.k", 1)]
    evidence, _ = evidence_for(assertions, {"text": "abc"})
    evidence.capabilities = Reports()
    judgement = await judge(evidence)
    assert [verdict.passed for verdict in judgement.verdicts] == [None, None]
    assert "carries no sly_data" in judgement.message
    evidence.compat = "reference"  # the tool looks for the value in what is not there
    assert [verdict.passed for verdict in (await judge(evidence)).verdicts] == [False, False]


@pytest.mark.parametrize(
    ("test", "reply", "passed"),
    [
        ("gist", "pass", True),
        ("gist", "Fail.", False),
        ("not_gist", "fail", True),
        ("not_gist", "PASS", False),
        ("gist", "neither", None),
        ("gist", "pass/fail", None),
        ("gist", "The sample names a password.", None),
        ("gist", "PASS: it lists each passenger", True),
        ("not_gist", "The passenger list is complete", None),
        ("gist", "It passes.", True),
        ("gist", "Failure", False),
        ("gist", "Result: PASSED", True),
        ("gist", "<think>It may fail.</think>pass", True),
        ("gist", "FAIL\n<reasoning>It is wrong.</reasoning>", False),
        ("gist", "FAIL <reasoning>It is wrong.</reasoning> Else it would pass.", None),
        ("gist", "The sample does not pass.", None),  # it passed
        ("gist", "It doesn’t quite **pass**", None),
        ("gist", '{"pass": false, "reason": "rude"}', None),
        ("gist", "pass: no", None),
        ("gist", "Does it pass? No.", None),
        ("gist", "**Pass:** No", None),
        ("gist", "It does not meet the bar to pass.", None),
        ("gist", "This should not be considered a pass", None),
        ("gist", "Not-pass", None),
        ("gist", "non-passing", None),
        ("gist", "Pass is false", None),
        ("gist", "**Pass:** ❌", None),
        ("gist", "None of the criteria pass", None),
        ("gist", "Does it pass? It does not.", None),
        ("gist", "Not rude and passes", True),
        ("gist", "PASS. It does not mention a price", True),
        ("gist", "Fail: it does not name the price", False),
        ("gist", "Does it pass? Yes, it does not lie", True),
        ("gist", "No problems found\nPASS", True),  # what another line denies is another thing
        ("gist", "It does not mention it\n\nFAIL", False),
        ("not_gist", "It does not fail.", None),
        ("gist", "It is not rude, so: pass", True),
        ("gist", '{"pass": true}', True),
        ("gist", "It never names a passport number. PASS", True),  # no word of it denies
        ("gist", "It names no passport, so it passes", True),
        ("not_gist", "It does not mention the password: fail", True),
        ("gist", "PASS: 0.95", True),
        ("gist", "PASS: 0.0", None),
        ("gist", "Fail: no price, 0 of 3 named", False),
        ("not_gist", "bypass", None),
        ("gist", "", None),
        ("gist", "Unfortunately this isn't something I'd pass", None),
        ("gist", "It isn’t close to what I'd call a pass", None),
        ("gist", "This is not, in my view, a pass", None),
        ("gist", "A pass is not warranted.", None),
        ("gist", "The pass criteria were not met", None),
        ("gist", "Pass denied", None),
        ("gist", "Hardly a pass", None),
        ("gist", "It is far from a pass", None),
        ("gist", "It lacks what is needed to pass", None),
        ("gist", "It needs to name a price in order to pass", None),
        ("gist", "To pass it must mention the price, and it is absent", None),
        ("gist", "In no way does this pass", None),
        ("gist", "It would be wrong to pass this", None),
        ("gist", "It is unlikely to pass", None),
        ("gist", "It does not\npass", None),
        ("gist", "Does it pass? Not really", None),
        ("gist", "Do I pass it? I don't.", None),
        ("gist", "PASS\nNot rude at all.", True),
        ("gist", "It needs a name, and has one: pass", True),
        ("gist", "It passes as it isn't rude", True),
        ("gist", "The sample meets what is required. PASS", True),
        ("gist", "It must not name a price and does not: PASS", True),
        ("gist", "Does it pass? It does.", True),
        ("gist", "It can't be faulted: pass", True),
        ("gist", "This would pass", True),
        ("gist", "FAIL\nNot polite", False),
        ("gist", "It lacks the required price FAIL", False),
        ("gist", "It must fail", False),
        ("gist", "Fails as it isn't polite", False),
        ("gist", "FAIL is not too hard a word", False),
    ],
)
async def test_gist_as_documented(test: str, reply: str, passed: bool | None) -> None:
    evidence, asked = evidence_for([Assertion(test, "greets", "text", 1)], {"text": "hi"}, reply)
    verdict = (await judge(evidence)).verdicts[0]
    assert verdict.passed is passed
    assert asked == [question("greets", "hi")]
    if passed is not None:
        matches = "matches" if passed != test.startswith("not_") else "does not match"
        assert [one.actual or one.text for one in verdict.evidence or ()] == [f"{matches}: greets"]
    assert verdict.judge == {"question": asked[0], "answer": reply, "model": "judge-model", "usage": None}


async def test_gist_without_a_judge_says_what_to_write() -> None:
    evidence, _ = evidence_for([Assertion("gist", "greets", "text", 1)], {"text": "hi"})
    evidence.services.ask_judge = None
    verdict = (await judge(evidence)).verdicts[0]
    assert verdict.passed is None
    assert "judge:" in verdict.reason and "tui_eval.yaml" in verdict.reason


async def test_keys_with_dots() -> None:
    assertion = Assertion("value", 9, 'sly_data."a.b".c', 1)
    evidence, _ = evidence_for([assertion], {"sly_data": {"a.b": {"c": 9}}})
    assert [verdict.passed for verdict in (await judge(evidence)).verdicts] == [True]
    evidence, _ = evidence_for([assertion], {"sly_data": {"a.b": {"c": 8}}})
    assert [verdict.passed for verdict in (await judge(evidence)).verdicts] == [False]


async def test_nothing_asserted() -> None:
    evidence, _ = evidence_for([], {"text": "hi"})
    judgement = await judge(evidence)
    assert (judgement.outcome, judgement.message, judgement.score) == ("passed", "nothing asserted", 1.0)


async def test_a_long_answer_is_cut_in_the_verdict() -> None:
    evidence, _ = evidence_for([Assertion("keywords", "z", "text", 1)], {"text": "a" * 5000})
    verdict = (await judge(evidence)).verdicts[0]
    assert len(verdict.actual) < 2100 and "3,000 more characters" in verdict.actual
    assert len(verdict.reason) < 300


async def test_a_key_under_text_is_not_judged_and_fails_as_neuro_san_fails_it() -> None:
    asked = [Assertion("value", "x", "text.a", 1)]
    found = await judge(evidence_for(asked, {"text": "x"})[0])
    assert (found.outcome, found.message) == ("error", "text has no keys of its own")
    found = await judge(evidence_for(asked, {"text": "x"}, compat="reference")[0])
    assert (found.outcome, found.message) == ("failed", "unexpectedly None : text.a is None")
