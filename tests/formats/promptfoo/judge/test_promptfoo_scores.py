"""How promptfoo's verdicts add up: weights, thresholds, sets, named scores, errors; graders and files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.judging import GivenHosts
from tests.support.promptfoo_cases import assertion_from, case_with
from tests.support.work import calls_of
from tui_eval import causes
from tui_eval.assertions import JudgeAnswer, JudgeInput, Judgement, JudgeServices, Reports
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.causes import counting
from tui_eval.formats import judge
from tui_eval.formats.promptfoo.judge.json_objects import placed_objects
from tui_eval.formats.promptfoo.judge.script_results import is_grading
from tui_eval.formats.promptfoo.judge.similarity import treebank_words
from tui_eval.formats.promptfoo.promptfoo_words import components_of
from tui_eval.guard.trust import Trust
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.model import Entry, Reply, Usage

YES = {"type": "contains", "value": "a"}
NO = {"type": "contains", "value": "z"}
BROKEN = {"type": "contains", "value": ""}


async def judged(
    asserts: list[dict[str, Any]],
    output: Any = "abc",
    *,
    services: JudgeServices | None = None,
    compat: str = "documented",
    variables: dict[str, Any] | None = None,
    **case: Any,
) -> Judgement:
    assertions = []
    for given in asserts:
        members = given.get("assert")
        assertions.append(assertion_from({key: value for key, value in given.items() if key != "assert"}))
        place = len(assertions) - 1
        assertions += [assertion_from(member, set=place) for member in members or ()]
    text = output if isinstance(output, str) else ""
    reply = Reply(1, text, output=None if isinstance(output, str) else output)
    evidence = JudgeInput(
        case_with(assertions, **case),
        [reply],
        compat=compat,  # type: ignore[arg-type]
        vars=variables or {},
        services=services or JudgeServices(),
    )
    return await judge(evidence)


async def test_weights() -> None:
    judgement = await judged([{**YES, "weight": 3}, NO])
    assert (judgement.outcome, judgement.score) == ("failed", 0.75)
    assert judgement.message == 'Expected output to contain "z"'


async def test_a_threshold_decides_alone() -> None:
    passing = await judged([YES, NO], threshold=0.5)
    assert (passing.outcome, passing.message) == ("passed", "Aggregate score 0.50 ≥ 0.5 threshold")
    failing = await judged([YES, NO], threshold=0.75)
    assert failing.outcome == "failed"
    assert failing.message.startswith("Aggregate score 0.50 < 0.75 threshold; Expected output")
    half = {"type": "bleu", "value": "x y", "threshold": 0}
    short = await judged([half], threshold=0.5)
    assert short.outcome == "failed"


async def test_weight_zero_passes_and_keeps_its_score() -> None:
    judgement = await judged([{**NO, "weight": 0, "metric": "m"}])
    assert (judgement.outcome, judgement.score) == ("passed", 0.0)
    assert judgement.verdicts[0].passed is True
    assert (await judged([{**NO, "weight": 0}], threshold=0.1)).outcome == "failed"


async def test_assert_sets() -> None:
    inner = [YES, NO]
    failing = await judged([{"type": "assert-set", "assert": inner}, YES])
    assert [verdict.type for verdict in failing.verdicts] == [
        "assert-set",
        "contains",
        "contains",
        "contains",
    ]
    assert [verdict.set for verdict in failing.verdicts] == [None, 0, 0, None]
    assert (failing.outcome, failing.score) == ("failed", 0.75)
    assert failing.message == 'Expected output to contain "z"'
    set_of_half = {"type": "assert-set", "assert": inner, "threshold": 0.5, "weight": 3, "metric": "s"}
    passing = await judged([set_of_half, YES])
    assert (passing.outcome, passing.score) == ("passed", (0.5 * 3 + 1) / 4)
    assert passing.named_scores == {"s": 0.5}
    assert passing.verdicts[0].score == 0.5
    beside = await judged([set_of_half, {"type": "contains", "value": "the cause"}])
    assert beside.outcome == "failed" and beside.message == 'Expected output to contain "the cause"'
    assert [one.expected for one in counting(beside.verdicts) if not one.passed] == ["the cause"]


async def test_what_throws_counts_under_its_filled_in_metric() -> None:
    """A column of its own was called `m{{v}}`."""
    templated = {**BROKEN, "metric": "m{{v}}"}
    judgement = await judged([{**YES, "metric": "m5"}, templated], variables={"v": 5})
    assert judgement.named_scores == {"m5": 0.5}
    assert judgement.verdicts[1].metric == "m5"


async def test_what_fails_without_a_reason_is_not_called_passed(services: JudgeServices) -> None:
    script = {"type": "javascript", "value": "({pass: false, score: 0.9, reason: ''})"}
    judgement = await judged([script], services=services)
    assert (judgement.outcome, judgement.message) == ("failed", "javascript failed")


async def test_what_a_member_says_of_itself_in_the_words_of_a_set_stands_once(
    services: JudgeServices,
) -> None:
    """A set says its own only where its threshold decided."""
    script = {
        "type": "javascript",
        "value": "({pass: false, score: 0, reason: 'Aggregate score 0.00 < 1 threshold'})",
    }
    judgement = await judged([{"type": "assert-set", "assert": [script]}], services=services)
    assert (judgement.outcome, judgement.message) == ("failed", "Aggregate score 0.00 < 1 threshold")
    judgement = await judged(
        [{"type": "assert-set", "assert": [script, NO], "threshold": 0.5}], services=services
    )
    assert judgement.message.count("Aggregate score 0.00 < 0.5 threshold") == 1


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("pass", [True, False], ["true", 1, None]),
        ("score", [0, 0.5, -1], ["1", True, None]),
        ("reason", ["", "so"], [None, 5]),
        ("namedScores", [{}, [], None], ["a", 1]),
        ("namedScoreWeights", [{}, [], None], ["a", 1]),
        ("tokensUsed", [{}, [], None], [5, "5"]),
        ("componentResults", [[], [{}]], [{}, None, "x"]),
        ("assertion", [{}, [], None], ["x", True]),
        ("comment", ["", "x"], [None, 5]),
    ],
)
def test_a_grading_is_one_where_each_of_its_parts_is_of_its_kind(
    key: str, right: list[Any], wrong: list[Any]
) -> None:
    plain = {"pass": True, "score": 1, "reason": "so"}
    assert [is_grading({**plain, key: value}) for value in right] == [True] * len(right)
    assert [is_grading({**plain, key: value}) for value in wrong] == [False] * len(wrong)
    lacks = {name: value for name, value in plain.items() if name != key}
    assert is_grading(lacks) is (key not in plain)


async def test_named_scores_of_scripts_weigh_what_they_and_their_assertions_say(
    services: JudgeServices,
) -> None:
    """A name without a weight, or with null for one, weighs what its assertion does."""
    weighs = "{pass: true, score: 1, reason: '', namedScores: {a: 1, b: 1}, namedScoreWeights: {a: 3}}"
    plain = "{pass: true, score: 1, reason: '', namedScores: {a: 0, b: 0}, namedScoreWeights: {a: null}}"
    asserts = [
        {"type": "javascript", "value": f"({weighs})"},
        {"type": "javascript", "value": f"({plain})", "weight": 2},
    ]
    judgement = await judged(asserts, services=services)
    assert judgement.named_scores == {"a": pytest.approx(3 / 5), "b": pytest.approx(1 / 3)}
    assert judgement.named_weights == {"a": 5, "b": 3}


async def test_named_scores_are_weighted_means() -> None:
    judgement = await judged(
        [{**YES, "metric": "{{name}}", "weight": 3}, {**NO, "metric": "m"}], variables={"name": "m"}
    )
    assert judgement.named_scores == {"m": 0.75}


async def test_an_error_stands_beside_the_others_and_never_passes() -> None:
    judgement = await judged([YES, BROKEN, YES])
    assert [verdict.passed for verdict in judgement.verdicts] == [True, None, True]
    assert judgement.outcome == "error"
    assert (await judged([YES, BROKEN, YES], threshold=0.1)).outcome == "error"
    assert (await judged([NO, BROKEN, NO], threshold=0.9)).outcome == "failed"
    assert (await judged([NO, BROKEN])).outcome == "failed"
    assert (await judged([{**BROKEN, "weight": 0}])).outcome == "error"
    in_set = await judged([{"type": "assert-set", "assert": [YES, BROKEN], "threshold": 0.1}])
    assert in_set.outcome == "error"


async def test_an_error_in_a_set_that_another_member_fails_never_passes() -> None:
    failed_set = {"type": "assert-set", "assert": [NO, BROKEN]}
    assert (await judged([failed_set, YES])).outcome == "failed"
    assert (await judged([failed_set, YES], threshold=0.3)).outcome == "error"
    assert (await judged([failed_set, YES], threshold=0.75)).outcome == "error"
    assert (await judged([failed_set, YES], threshold=0.8)).outcome == "failed"
    errored = await judged([failed_set, YES], compat="reference")
    assert (errored.outcome, errored.score) == ("error", 0.0)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("asserts", [[NO, BROKEN], [{"type": "assert-set", "assert": [NO, BROKEN]}, YES]])
async def test_no_scoring_function_passes_what_could_not_be_judged(
    services: JudgeServices, asserts: list[dict[str, Any]]
) -> None:
    (services.root / "yes.js").write_text("module.exports = () => ({pass: true, score: 1, reason: 'mine'})")
    judgement = await judged(asserts, services=services, beside={"assertScoringFunction": "file://yes.js"})
    assert judgement.outcome == "failed"


async def test_reference_gives_promptfoos_row() -> None:
    errored = await judged([YES, BROKEN, NO], compat="reference")
    assert (errored.outcome, errored.score) == ("error", 0.0)
    assert errored.message.startswith("Invariant failed")
    assert len(errored.verdicts) == 3
    failed = await judged([NO, {**NO, "value": "y"}], compat="reference")
    assert failed.message == 'Expected output to contain "y"'
    assert (await judged([YES], compat="reference")).message == "All assertions passed"
    assert (await judged([], compat="reference")).message == "No assertions"


async def test_no_assertions_pass_whatever_the_threshold() -> None:
    judgement = await judged([], threshold=0.9)
    assert (judgement.outcome, judgement.score, judgement.message) == ("passed", 1.0, "nothing asserted")


async def test_without_a_reply_everything_is_an_error() -> None:
    judgement = await judge(JudgeInput(case_with([assertion_from(YES)])))
    assert judgement.outcome == "error"
    assert [verdict.passed for verdict in judgement.verdicts] == [None]


@pytest.mark.parametrize("kind", ["not-nonexistent", "Contains", "human", "pi", "similar", "not-classifier"])
async def test_what_is_not_judged_is_an_error_that_says_so(kind: str) -> None:
    judgement = await judged([{"type": kind, "value": "x"}])
    assert judgement.outcome == "error"
    assert kind in judgement.message


def judge_saying(text: str, asked: list[Any] | None = None) -> JudgeServices:
    async def ask(system: str | None, prompt: str, schema: Any) -> JudgeAnswer:
        if asked is not None:
            asked.append((system, prompt))
        return JudgeAnswer(text, "grader")

    return JudgeServices(ask_judge=ask)


RUBRIC = {"type": "llm-rubric", "value": "greets {{who}}"}


@pytest.mark.parametrize(
    ("reply", "more", "passed", "score"),
    [
        ('{"reason": "ok", "pass": true, "score": 0.8}', {}, True, 0.8),
        ('```json\n{"reason": "ok", "pass": true, "score": 0.8}\n```', {}, True, 0.8),
        ('{"reason": "ok", "pass": true, "score": 0.8}', {"threshold": 0.9}, False, 0.8),
        ('{"reason": "ok", "pass": false, "score": 0.2}', {}, False, 0.2),
        ('{"reason": "ok", "pass": false}', {}, False, 0.0),
        ('{"reason": "ok", "score": 1}', {}, True, 1.0),
        ('{"reason": "ok", "pass": "yes", "score": "0.5"}', {}, True, 0.5),
        ("certainly good", {}, None, 0.0),
    ],
)
async def test_llm_rubric(reply: str, more: dict[str, Any], passed: bool | None, score: float) -> None:
    asked: list[Any] = []
    judgement = await judged(
        [{**RUBRIC, **more}], services=judge_saying(reply, asked), variables={"who": "Ann"}
    )
    verdict = judgement.verdicts[0]
    assert (verdict.passed, verdict.score) == (passed, score)
    assert "greets Ann" in asked[0][1] and "abc" in asked[0][1]
    assert verdict.judge and verdict.judge["answer"] == reply and verdict.judge["model"] == "grader"


async def test_not_llm_rubric_and_a_prompt_of_its_own() -> None:
    asked: list[Any] = []
    services = judge_saying('{"reason": "r", "pass": true, "score": 1}', asked)
    given = {"type": "not-llm-rubric", "value": "rude", "rubricPrompt": "{{output}} / {{rubric}}"}
    judgement = await judged([given], services=services)
    assert judgement.outcome == "failed"
    assert asked == [(None, "abc / rude")]


async def test_llm_rubric_without_a_judge_says_what_to_write() -> None:
    judgement = await judged([{**RUBRIC, "provider": "openai:gpt-9"}])
    assert judgement.outcome == "error"
    assert "openai:gpt-9" in judgement.message and "judge:" in judgement.message


async def test_values_from_files(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "want.txt").write_text("abc\n")
    (tmp_path / "suite" / "want.json").write_text('{"a": 1}')
    services = JudgeServices(root=tmp_path, base=tmp_path / "suite")
    good = await judged([{"type": "equals", "value": "file://want.txt"}], services=services)
    assert good.outcome == "passed"
    parsed = await judged([{"type": "equals", "value": "file://want.json"}], '{"a":1}', services=services)
    assert parsed.outcome == "passed"
    missing = await judged([{"type": "equals", "value": "file://gone.txt"}], services=services)
    assert missing.outcome == "error" and "gone.txt" in missing.message


async def test_files_outside_the_root_and_python_need_trust(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "in").mkdir()
    services = JudgeServices(root=tmp_path / "in", base=tmp_path / "in", trust=Trust())
    for given in (
        {"type": "equals", "value": "file://../secret.txt"},
        {"type": "python", "value": "True"},
        {"type": "python", "value": "file://check.py"},
    ):
        judgement = await judged([given, YES], services=services)
        assert [verdict.passed for verdict in judgement.verdicts] == [None, True]
        assert "needs trust" in judgement.message


async def test_objects_show_as_json_and_templates_do_not_reach_into_them() -> None:
    judgement = await judged([{"type": "equals", "value": {"k": "{{v}}"}}], {"k": "1"}, variables={"v": "1"})
    assert judgement.outcome == "failed"
    assert judgement.verdicts[0].actual == '{"k":"1"}'


CHECK_PY = """
def get_assert(output, context):
    return {"pass": output == context["vars"]["want"], "score": 0.5, "reason": "by file"}


async def other(output, context):
    return output == "abc"


def get_transform(output, context):
    return output[::-1]
"""
CHECK_JS = """
module.exports = (output, context) => ({pass: output === context.vars.want, score: 0.25, reason: "by module"});
module.exports.named = (output) => output.length > 2;
"""


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_scripts_in_files_and_transforms(services: JudgeServices) -> None:
    (services.root / "check.py").write_text(CHECK_PY)
    (services.root / "check.js").write_text(CHECK_JS)
    asserts = [
        {"type": "python", "value": "file://check.py"},
        {"type": "python", "value": "file://check.py:other"},
        {"type": "javascript", "value": "file://check.js"},
        {"type": "javascript", "value": "file://check.js:named"},
        {"type": "equals", "value": "cba", "transform": "file://check.py"},
        {"type": "equals", "value": "ABC", "transform": "output.toUpperCase()"},
    ]
    judgement = await judged(asserts, services=services, variables={"want": "abc"})
    assert [verdict.passed for verdict in judgement.verdicts] == [True] * 6, judgement
    assert [verdict.score for verdict in judgement.verdicts] == [0.5, 1, 0.25, 1, 1, 1]
    assert judgement.verdicts[0].reason == "by file"


PARTS = """({pass: true, score: 0.7, reason: 'whole', componentResults: [
  {pass: true, score: 1, reason: 'deep', componentResults: [{pass: true, score: 1, reason: 'deeper'}]},
  {pass: false, score: 0, reason: 'deep2'}]})"""


@pytest.mark.asyncio(loop_scope="module")
async def test_parts_of_sets_and_scripts_stand_once_more_behind_them(services: JudgeServices) -> None:
    """Reasons in the order, and to the depth, in which promptfoo 0.121.20 wrote those of the same test."""
    script = {"type": "javascript", "value": " ".join(PARTS.split())}
    given = [
        assertion_from({"type": "assert-set"}), assertion_from(NO, set=0), assertion_from(script, set=0),
        assertion_from(script),
    ]  # fmt: skip
    judgement = await judged([{"type": "assert-set", "assert": [NO, script]}, script], services=services)
    parts = components_of(given, judgement.verdicts)
    lacks = 'Expected output to contain "z"'
    members = [lacks, "whole", "deep", "deep2"]
    assert [part["reason"] for part in parts] == [lacks, *members, "whole", "deep", "deep2"]
    assert [part["reason"] for part in parts[0]["componentResults"]] == members
    assert "assertion" not in parts[0]
    assert [part["assertion"]["type"] for part in parts[1:]] == ["contains"] + ["javascript"] * 6
    assert parts[3]["componentResults"][0]["reason"] == "deeper"


@pytest.mark.asyncio(loop_scope="module")
async def test_python_names_the_parts_of_its_result_its_own_way(services: JudgeServices) -> None:
    code = """{"pass_": False, "score": 0, "reason": "r", "component_results": [
        {"pass_": False, "score": 0, "reason": "why" + "y" * 9000, "named_scores": {"a": 1}}, 5]}"""
    judgement = await judged([{"type": "python", "value": " ".join(code.split())}], services=services)
    (part,) = judgement.verdicts[0].parts or []
    assert (part["pass"], part["namedScores"], len(part["reason"]) < 3000) == (False, {"a": 1}, True)


@pytest.mark.asyncio(loop_scope="module")
async def test_python_that_gives_a_number_json_has_not_fails(services: JudgeServices) -> None:
    named = "{'pass': True, 'score': 1, 'reason': '', 'namedScores': {'a': float('nan')}}"
    judgement = await judged([{"type": "python", "value": named}], services=services)
    assert judgement.outcome == "failed" and "NaN" in judgement.message
    (services.root / "rate.py").write_text(
        "def get_transform(output, context): return {'rate': float('inf')}"
    )
    below = {"type": "javascript", "value": "output.rate < 5", "transform": "file://rate.py"}
    judgement = await judged([below], services=services)
    assert judgement.outcome == "error" and "JSON cannot hold" in judgement.message


@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_of_python_that_raises_fails_whatever_it_weighs(services: JudgeServices) -> None:
    (services.root / "raises.py").write_text("def get_assert(output, context): return 1 / 0")
    raising = {"type": "python", "value": "file://raises.py", "weight": 0}
    judgement = await judged([YES, raising], services=services)
    assert (judgement.outcome, judgement.verdicts[1].passed) == ("failed", False)


@pytest.mark.asyncio(loop_scope="module")
async def test_named_scores_of_scripts_are_numbers_as_javascript_reckons(services: JudgeServices) -> None:
    code = "{'pass': True, 'score': 1, 'reason': '', 'namedScores': {'a': None, 'b': '0.5', 'c': True, 'd': 'x'}}"
    judgement = await judged([{"type": "python", "value": code}], services=services)
    assert judgement.named_scores == {"a": 0.0, "b": 0.5, "c": 1.0}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_scoring_function_sees_assertions_as_the_file_has_them(services: JudgeServices) -> None:
    (services.root / "own.js").write_text(
        "module.exports = (named, context) => ({pass: true, score: 1, reason: context.componentResults"
        ".map((one) => one.assertion ? `${one.assertion.type} ${one.assertion.weight}` : 'set').join(', ')});"
    )
    judgement = await judged(
        [{"type": "assert-set", "assert": [{**YES, "weight": 3}]}, {"type": "max-score"}],
        services=replace(services, compares_columns=True),
        beside={"assertScoringFunction": "file://own.js"},
    )
    assert judgement.message == "set, contains 3"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_scoring_function_is_told_the_tokens_of_the_judges(services: JudgeServices) -> None:
    (services.root / "used.js").write_text(
        "module.exports = (named, {tokensUsed}) => ({pass: true, score: 1, reason: JSON.stringify(tokensUsed)});"
    )

    async def ask(system: str | None, prompt: str, schema: Any) -> JudgeAnswer:
        return JudgeAnswer('{"pass": true, "score": 1, "reason": ""}', "grader", Usage(412, 38))

    own = {"assertScoringFunction": "file://used.js"}
    graded = await judged([YES, RUBRIC, RUBRIC], services=replace(services, ask_judge=ask), beside=own)
    assert graded.message == '{"total":900,"prompt":824,"completion":76}'
    plain = await judged([YES], services=services, beside=own)
    assert plain.message == '{"total":0,"prompt":0,"completion":0}'


@pytest.mark.asyncio(loop_scope="module")
async def test_a_transform_sees_the_config_of_its_prompt(services: JudgeServices) -> None:
    options = {"transform": "JSON.stringify(context.prompt.config ?? null)"}
    own = await judged([YES], services=services, options=options, beside={"promptConfig": {"a": 1}})
    assert own.response_text == '{"a":1}'
    assert (await judged([YES], services=services, options=options)).response_text == "null"


@pytest.mark.asyncio(loop_scope="module")
async def test_scripts_see_the_config_of_their_provider(services: JudgeServices) -> None:
    asserts = [
        {"type": "javascript", "value": "context.provider.config.model === 'small'"},
        {"type": "python", "value": "context['provider']['config'] == {'model': 'small'}"},
    ]
    provider = {"id": "file://it.py", "config": {"model": "small"}}
    assert (await judged(asserts, services=services, provider=provider)).outcome == "passed"
    none = {"type": "javascript", "value": "context.provider.config.model === undefined"}
    assert (await judged([none], services=services, provider={"id": "echo"})).outcome == "passed"


@pytest.mark.asyncio(loop_scope="module")
async def test_transforms_of_provider_and_test_come_first(services: JudgeServices) -> None:
    judgement = await judged(
        [{"type": "equals", "value": "ABC!?", "transform": "output + '?'"}],
        services=services,
        provider={"id": "openai:x", "transform": "output.toUpperCase()"},
        options={"transform": "output + '!'"},
    )
    assert judgement.outcome == "passed"
    assert judgement.response_text == "ABC!"
    broken = await judged([YES, NO], services=services, options={"transform": "output.nope()"})
    assert broken.outcome == "error"
    assert [verdict.passed for verdict in broken.verdicts] == [None, None]
    assert broken.message.startswith("Transform failed")
    empty = await judged([YES], services=services, options={"transform": "null"})
    assert empty.outcome == "error"


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_a_pattern_without_end_is_an_error_and_stops_nothing(services: JudgeServices) -> None:
    javascript = JavaScriptHost(processes=1, time_limit=0.5)
    try:
        judgement = await judged(
            [{"type": "regex", "value": "^(a+)+$"}, YES],
            "a" * 40 + "!",
            services=replace(services, hosts=GivenHosts(javascript=javascript)),
        )
    finally:
        javascript.close()
    assert [verdict.passed for verdict in judgement.verdicts] == [None, True]
    assert "0.5 s" in str(judgement.verdicts[0])
    assert causes.words_of(judgement.verdicts[0]) == "pattern ran away: ^(a+)+$"


async def test_tool_calls_that_the_agent_reported_make_a_trajectory() -> None:
    transcript = [
        Entry(1, "tool_call", name="search_orders", arguments={"id": "42", "limit": 10}),
        Entry(1, "tool_call", name="refund", arguments={"id": "42"}),
        Entry(1, "assistant", text="done"),
    ]
    asserts = [
        {"type": "trajectory:tool-used", "value": ["search_*", "refund"]},
        {"type": "trajectory:tool-sequence", "value": ["search_orders", "refund"]},
        {"type": "trajectory:tool-args-match", "value": {"name": "search_orders", "args": {"id": "42"}}},
        {"type": "trajectory:step-count", "value": {"type": "tool", "max": 2}},
        {"type": "tool-call-f1", "value": "refund, search_orders"},
    ]
    case = case_with([assertion_from(given) for given in asserts])
    evidence = JudgeInput(case, [Reply(1, "done")], transcript, Reports(tools=True))
    assert (await judge(evidence)).outcome == "passed"
    evidence.compat = "reference"
    passed = [verdict.passed for verdict in (await judge(evidence)).verdicts]
    assert passed == [None, None, None, None, False]
    evidence.compat, evidence.transcript, evidence.capabilities = "documented", [], Reports()
    assert (await judge(evidence)).verdicts[0].passed is None


@pytest.mark.real
def test_braces_are_counted_once_and_not_behind_each_of_them() -> None:
    def look() -> None:
        with pytest.raises(CannotJudge, match="too many opening braces"):
            list(placed_objects("{" * 20_000))

    assert calls_of(look)[1] < 200_000


@pytest.mark.real
@pytest.mark.parametrize("piece", ["{", "<!--", "<a ", ' a="', "i am very ", "```\n", "[", "`"])
async def test_hostile_output_takes_no_minutes(piece: str) -> None:
    kinds = [
        "contains-json",
        "contains-xml",
        "is-xml",
        "contains-html",
        "is-refusal",
        "contains-sql",
        "rouge-n",
    ]
    asserts = [{"type": kind, **({"value": "x"} if kind == "rouge-n" else {})} for kind in kinds]
    started = time.process_time()
    judgement = await judged(asserts, piece * (20_000 // len(piece)))
    assert len(judgement.verdicts) == len(kinds)
    assert time.process_time() - started < 20


async def test_long_outputs_are_cut_in_reasons() -> None:
    judgement = await judged([{"type": "equals", "value": "x"}], "a" * 100_000)
    assert len(judgement.message) < 2_200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"quoted," he said (twice)...', ["``", "quoted", ",", "''", "he", "said", "(", "twice", ")", "..."]),
        ("e.g. the u.s.a.", ["e.g.", "the", "u.s.a."]),
        ("a b.", ["a", "b", "."]),
        ('the end."', ["the", "end", ".", "''"]),
        ("a,5 5,b a:5", ["a,5", "5", ",", "b", "a:5"]),
        ("it's' 'a'", ["it", "'s", "'", "'a", "'"]),
        ('x:"don\'t"', ["x", ":", "``", "do", "n't", "''"]),
        ('""a a"b', ["``", "''", "a", "a", "''", "b"]),
        ("”gotta cannot”", ["”", "got", "ta", "can", "not", "”"]),
        ("a``b''c", ["a", "``", "b", "''", "c"]),
    ],
)
async def test_words_of_rouge_are_split_as_promptfoo_splits_them(text: str, words: list[str]) -> None:
    assert treebank_words(text) == words


@pytest.mark.parametrize("kind", ["javascript", "not-javascript"])
@pytest.mark.parametrize(
    "code", ["new Boolean(false)", "new Boolean(true)", "Object(false)", "new Number(1)"]
)
async def test_an_object_around_a_boolean_is_neither_true_nor_false(kind: str, code: str) -> None:
    host = JavaScriptHost(1)
    services = JudgeServices(hosts=GivenHosts(javascript=host))
    try:
        judgement = await judged([{"type": kind, "value": code}], services=services)
    finally:
        host.close()
    assert judgement.outcome == "failed"
    assert "which is no" in judgement.message


_TOOL = '{"type": "function", "function": {"name": "book", "parameters": {"type": "object", "required": ["day"]}}}'
_NAMED = [
    "file://t.json",
    "file://t.yaml",
    ["file://one.json"],
    ["file://t.json"],
    "file://t.py:own",
    "file://t.js:own",
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("named", _NAMED)
@pytest.mark.parametrize(("arguments", "outcome"), [('{"day": 1}', "passed"), ("{}", "failed")])
async def test_calls_are_held_against_tools_that_the_provider_names_as_files(
    services: JudgeServices, named: Any, arguments: str, outcome: str
) -> None:
    for name, text in (("t.json", f"[{_TOOL}]"), ("t.yaml", f"- {_TOOL}"), ("one.json", _TOOL)):
        (services.root / name).write_text(text)
    (services.root / "t.py").write_text(f"def own():\n    return [{_TOOL}]\n")
    (services.root / "t.js").write_text(f"module.exports.own = () => [{_TOOL}];")
    call = {"type": "function", "id": "1", "function": {"name": "book", "arguments": arguments}}
    judgement = await judged(
        [{"type": "is-valid-openai-tools-call"}],
        [call],
        services=services,
        provider={"id": "openai:chat:m", "config": {"tools": named}},
    )
    assert judgement.outcome == outcome


@pytest.mark.asyncio(loop_scope="module")
async def test_a_function_call_is_held_against_functions_of_a_file(services: JudgeServices) -> None:
    (services.root / "f.json").write_text('[{"name": "book", "parameters": {"type": "object"}}]')
    judgement = await judged(
        [{"type": "is-valid-openai-function-call"}],
        {"name": "book", "arguments": "{}"},
        services=services,
        provider={"id": "openai:chat:m", "config": {"functions": "file://f.json"}},
    )
    assert judgement.outcome == "passed"
