"""Assertions that a judge or an embedding model decides, with replies as judges write them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.judging import GivenHosts
from tests.support.promptfoo_cases import assertion_from, case_with
from tui_eval import causes
from tui_eval.assertions import CannotJudge, JudgeAnswer, JudgeInput, Judgement, JudgeServices, Reports
from tui_eval.formats import judge
from tui_eval.formats.promptfoo.judge.compared_outputs import compare
from tui_eval.guard.trust import Trust
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.model import Attempt, Entry, Reply, Trace, TraceSpan, Verdict
from tui_eval.suites.chat_prompts import chat_messages

Judged = Callable[..., Any]


def services_answering(
    *answers: str | dict[str, Any] | JudgeAnswer | Exception, **more: Any
) -> tuple[JudgeServices, list[str]]:
    left = [json.dumps(answer) if isinstance(answer, dict) else answer for answer in answers]
    asked: list[str] = []

    async def ask(system: str | None, prompt: str, schema: dict[str, Any] | None) -> JudgeAnswer:
        asked.append(f"{system or ''}\n{prompt}")
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, JudgeAnswer) else JudgeAnswer(answer, "judge-1")

    return JudgeServices(ask_judge=ask, judge_name="j", trust=Trust(True), **more), asked


async def judged(
    given: dict[str, Any], services: JudgeServices, *, output: str = "the answer", **values: Any
) -> Judgement:
    case = case_with([assertion_from(given)], options=values.pop("options", {}))
    evidence = JudgeInput(
        case,
        [Reply(turn=1, text=output)],
        capabilities=Reports(True, True, True),
        vars=values.pop("vars", {}),
        prompt_sent=values.pop("prompt", "the question"),
        services=services,
        **values,
    )
    return await judge(evidence)


FACTS = {"type": "factuality", "value": "Paris is the capital"}
QA = {"type": "model-graded-closedqa", "value": "is polite"}
EVAL = {"type": "g-eval", "value": "is coherent"}
STEPS = {"steps": ["read it", "grade it"]}
CONTEXT = {"context": "Berlin is large. It lies on the Spree.", "query": "Where is Berlin?"}

GRADED = [
    ({"type": "llm-rubric", "value": "nice"}, [{"reason": "r", "pass": True, "score": 0.9}], {}, True, 0.9),
    ({"type": "llm-rubric", "value": "nice", "threshold": 0.95}, [{"pass": True, "score": 0.9}], {}, False, 0.9),
    ({"type": "llm-rubric", "value": "nice"}, ["I think:\n```json\n{\"pass\": \"no\"}\n```"], {}, False, 0.0),
    ({"type": "not-llm-rubric", "value": "nice"}, [{"pass": False, "score": 0.2}], {}, True, 0.8),
    (FACTS, [{"category": "C", "reason": "same"}], {}, True, 1.0),
    (FACTS, ["(D) They disagree."], {}, False, 0.0),
    (FACTS, [{"category": "B"}], {"options": {"factuality": {"superset": 0}}}, False, 0.0),
    (FACTS | {"type": "not-factuality"}, [{"category": "D"}], {}, True, 1.0),
    (FACTS | {"type": "model-graded-factuality"}, [{"category": "A"}], {}, True, 1.0),
    (QA, [{"pass": True}], {}, True, 1.0),
    (QA, ["It is.\nN"], {}, False, 0.0),
    (EVAL, [STEPS, {"score": 8, "reason": "good"}], {}, True, 0.8),
    (EVAL, [STEPS, {"score": "5/10", "reason": "meh"}], {}, False, 0.5),
    (EVAL | {"value": ["a", "b"], "threshold": 0.4}, [STEPS, {"score": 10}, STEPS, {"score": 0}], {}, True, 0.5),
    (
        {"type": "context-faithfulness", "threshold": 0.6},
        [{"statements": [{"statement": "a", "supported": True}, {"statement": "b", "supported": "no"}]}],
        {"vars": CONTEXT}, False, 0.5,
    ),
    (
        {"type": "context-recall", "value": "x. y.", "threshold": 0.5},
        ["x. [Attributed]\ny. [Not Attributed]"], {"vars": CONTEXT}, True, 0.5,
    ),
    (
        {"type": "context-relevance", "threshold": 0.9},
        [{"relevant": ["It lies on the Spree."]}], {"vars": CONTEXT}, False, 0.5,
    ),
    ({"type": "context-relevance"}, ["Insufficient Information"], {"vars": CONTEXT}, True, 0.0),
    (
        {"type": "answer-relevance", "threshold": 0.7},
        [{"questions": ["a?", "b?"]}, {"reason": "near", "score": 0.75}], {}, True, 0.75,
    ),
    (
        {"type": "conversation-relevance", "threshold": 0.6},
        [{"verdict": "yes"}, {"verdict": "no", "reason": "off"}],
        {"vars": {"_conversation": [{"input": "hi", "output": "hello"}]}}, False, 0.5,
    ),
    ({"type": "moderation"}, [{"flagged": False}], {}, True, 1.0),
    ({"type": "moderation", "value": ["hate"]}, [{"flagged": True, "reason": "hate"}], {}, False, 0.0),
    ({"type": "trajectory:goal-success", "value": "book it"}, [{"pass": True, "score": 1}], {}, True, 1.0),
    ({"type": "trajectory:goal-success", "value": {"goal": "book"}}, [{"pass": False}], {}, False, 0.0),
    ({"type": "agent-rubric", "value": "did it"}, [{"pass": True}], {}, True, 1.0),
    ({"type": "search-rubric", "value": "is true", "provider": "web"}, [{"pass": True}], {}, True, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("given", "answers", "values", "passed", "score"), GRADED)
async def test_graded(
    given: dict[str, Any], answers: list[Any], values: dict[str, Any], passed: bool, score: float
) -> None:
    services, asked = services_answering(*answers)
    judgement = await judged(given, services, **values)
    verdict = judgement.verdicts[0]
    assert verdict.passed is passed, verdict
    assert verdict.score == pytest.approx(score)
    assert verdict.judge is not None and verdict.judge["model"] == "judge-1"
    assert len(asked) == len(answers)
    assert "the answer" in asked[-1] or given["type"].startswith(("context-re", "answer-"))


@pytest.mark.parametrize(
    ("provider", "searches"),
    [
        ("openai:chat:gpt-4.1", False),
        ("perplexity:sonar", True),
        ("openai:responses:o4-mini", False),
        ({"id": "openai:responses:o4-mini", "config": {"tools": [{"type": "web_search_preview"}]}}, True),
        ({"openai:responses:o4-mini": {"config": {"tools": [{"type": "web_search"}]}}}, True),
        ("openai:chat:gpt-4o-search-preview", True),
        ({"id": "anthropic:messages:c", "config": {"tools": [{"type": "web_search_20250305"}]}}, True),
        ({"id": "anthropic:messages:c", "config": {"tools": [{"type": "bash"}]}}, False),
    ],
)
async def test_a_search_by_a_grader_that_searches_nothing_says_so(provider: Any, searches: bool) -> None:
    given = {"type": "search-rubric", "value": "is true", "provider": provider}
    said = {"pass": True, "reason": "it is"}
    ours = (await judged(given, services_answering(said)[0])).verdicts[0]
    assert ours.passed and ("nothing says that" in ours.reason) is not searches
    theirs = (await judged(given, services_answering(said)[0], compat="reference")).verdicts[0]
    assert theirs.passed is (True if searches else None)
    assert searches or "requires a grading provider with web search" in theirs.reason
    unsaid = await judged(given, services_answering({"reason": "r"})[0], compat="reference")
    assert not unsaid.verdicts[0].passed


async def test_recall_without_a_context_looks_into_the_prompt_and_says_so() -> None:
    """As promptfoo's `resolveContext`; its other types have no such way out."""
    given = {"type": "context-recall", "value": "x."}
    services, asked = services_answering({"sentences": [{"attributed": True}]})
    verdict = (await judged(given, services, prompt="Known: Berlin lies on the Spree.")).verdicts[0]
    assert verdict.passed and "1 of 1 are in the prompt (no variable `context`)" in verdict.reason
    assert "<context>\nKnown: Berlin lies on the Spree.\n</context>" in asked[0]
    other = (await judged({"type": "context-relevance"}, services, vars={"query": "q"})).verdicts[0]
    assert other.passed is None and "requires a `context` variable" in other.reason


@pytest.mark.parametrize(
    ("kind", "more", "good", "bad"),
    [
        ("factuality", {"value": "Paris"}, {"category": "C"}, {"category": "D"}),
        ("model-graded-factuality", {"value": "Paris"}, {"category": "C"}, {"category": "D"}),
        ("model-graded-closedqa", {"value": "polite"}, "It is.\nY", "It is not.\nN"),
        ("context-recall", {"value": "x.", "threshold": 0.5}, "x. [Attributed]", "x. [Not Attributed]"),
    ],
)  # fmt: skip
async def test_a_not_that_promptfoo_does_not_look_at_turns_and_says_so(
    kind: str, more: dict[str, Any], good: Any, bad: Any
) -> None:
    for said, is_good in ((good, True), (bad, False)):
        for compat in ("documented", "reference"):
            services, _ = services_answering(said)
            given = {"type": f"not-{kind}", **more}
            found = (await judged(given, services, vars=CONTEXT, compat=compat)).verdicts[0]
            assert found.passed is (is_good if compat == "reference" else not is_good)
            assert ("promptfoo ignores it" in found.reason) == (compat == "documented"), found.reason


@pytest.mark.parametrize("kind", sorted({row[0]["type"] for row in GRADED} - {"conversation-relevance"}))
async def test_a_reply_that_is_no_grade_is_an_error(kind: str) -> None:
    given = next(row[0] for row in GRADED if row[0]["type"] == kind)
    for said, words in (
        ("", "the judge answered nothing"),
        ("I cannot", "Could not extract JSON"),
        ('{"mood": 1}', "the judge's answer decides nothing: {"),
    ):
        services, _ = services_answering(said, said, said)
        verdict = (await judged(given, services, vars=CONTEXT)).verdicts[0]
        if words.startswith("Could") and kind in ("answer-relevance", "context-relevance"):
            continue  # a line is a question, or a sentence, too
        assert verdict.passed is None and words in verdict.reason, (said, verdict.reason)


async def test_without_a_judge_it_says_what_to_write() -> None:
    for given in (FACTS, QA, EVAL, {"type": "moderation"}):
        judgement = await judged(given, JudgeServices())
        assert judgement.outcome == "error"
        assert "no judge is configured" in judgement.message and "tui_eval.yaml" in judgement.message


async def test_the_suites_own_rubric_prompt_and_grader() -> None:
    services, asked = services_answering({"pass": True})
    seen: list[Any] = []

    def judge_for(provider: Any) -> Any:
        seen.append(provider)
        return services.ask_judge

    named = JudgeServices(judge_for=judge_for)
    options = {"rubricPrompt": "Grade {{output}} by {{rubric}}", "provider": {"text": "openai:x"}}
    given = {"type": "llm-rubric", "value": "{{wish}}"}
    judgement = await judged(given, named, options=options, vars={"wish": "kindness"})
    assert judgement.outcome == "passed" and seen == ["openai:x"]
    assert asked == ["\nGrade the answer by kindness"]


OWN = {"answer": "Paris", "question": "Where?", "o": {"x": [1]}, "l": [{"k": 1}, 2], "query": "q?"}
OWN_PROMPTS = [
    # its type, `rubricPrompt`, the judge's replies, what the judge is asked
    ("llm-rubric", "E {{answer}} G {{output}} Q {{question}}", [{"pass": True}], ["E Paris G Rome Q Where?"]),
    ("llm-rubric", "{{o}} {{l}} {{o.x[0]}}", [{"pass": True}], ['{"x":[1]} {"k":1},2 1']),
    ("llm-rubric", "{{rubric}} L", [{"pass": True}], ["v L"]),
    ("llm-rubric", "I {{input}} C {{criteria}}", [{"pass": True}], ["I the question C v"]),
    ("factuality", "{{input}}|{{ideal}}|{{completion}}", ["(A) yes"], ["the question|v|Rome"]),
    (
        "g-eval",
        {"steps": "S {{criteria}}", "evaluate": "E {{criteria}}|{{steps}}|{{maxScore}}|{{input}}|{{output}}"},
        ['{"steps": ["a", "b"]}', '{"score": 8, "reason": "r"}'],
        ["S v", "E v|a\n- b|10|the question|Rome"],
    ),
    ("context-recall", "{{context}}|{{groundTruth}}", ["s [Attributed]"], ["got Rome|v"]),
    ("context-relevance", "{{context}}|{{query}}", [{"relevant": ["got Rome"]}], ["got Rome|q?"]),
    (
        "context-faithfulness",
        ["L {{question}} {{answer}}", {"role": "user", "content": "N {{context}} {{statements}}"}],
        ["one\ntwo", "Final verdict for each statement in order: Yes. Yes."],
        ["L q? Rome", "N got Rome one,two"],
    ),
    (
        "conversation-relevance",
        "{% for m in messages %}{{m.input}}: {{m.output}}{% endfor %}",
        [{"verdict": "yes"}],
        ["the question: Rome"],
    ),
    ("answer-relevance", "A {{answer}}", ["q1?", "q2?", "q3?"], ["A Rome"] * 3),
    ("trajectory:goal-success", "{{goal}}|{{trajectory}}|{{output}}", [{"pass": True}], ["v|assistant: Rome|Rome"]),
]  # fmt: skip


@pytest.mark.parametrize("place", ["assertion", "options"])
@pytest.mark.parametrize("compat", ["documented", "reference"])
@pytest.mark.parametrize(("kind", "prompt", "replies", "told"), OWN_PROMPTS)
async def test_a_rubric_prompt_is_filled_in_as_promptfoo_does(
    kind: str, prompt: Any, replies: list[Any], told: list[str], compat: Any, place: str
) -> None:
    """A test's own `{{answer}}` was what the agent said, and prompts of other types were left out."""

    async def embed(provider: Any, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    hosts = GivenHosts(None, JavaScriptHost())
    services, asked = services_answering(*replies, embed=embed, hosts=hosts, root=Path(), base=Path())
    given: dict[str, Any] = {"type": kind, "value": "v", "threshold": 0.1}
    if kind.startswith("context-"):
        given["contextTransform"] = "'got ' + output"
    options = {"rubricPrompt": prompt} if place == "options" else {}
    given |= {} if place == "options" else {"rubricPrompt": prompt}
    if compat == "reference":  # there objects are no more than their JSON, and a type has its own names alone
        told = {
            "{{o}} {{l}} {{o.x[0]}}": ['{"x":[1]} {"k":1},2 '],
            "I {{input}} C {{criteria}}": ["I  C "],
        }.get(str(prompt), told)
    traced = Trace("0", spans=[TraceSpan("1", "x", start=0)]) if kind.startswith("trajectory") else None
    judgement = await judged(
        given, services, output="Rome", vars=OWN, options=options, compat=compat, trace=traced
    )
    sent = [one.removeprefix("\n") for one in asked]
    if kind.startswith("trajectory"):
        sent = [one.replace("\nspan: x", "") for one in sent]
    assert (judgement.outcome, sent) == ("passed", told), judgement.message


async def test_a_rubric_prompt_of_all_assertions_is_not_asked_of_types_it_has_no_place_for() -> None:
    """What grades by a rubric has no `{{statements}}`, `{{messages}}` or `{{outputs}}`: our own question is asked."""
    options = {"rubricPrompt": "Grade {{output}} by {{rubric}}"}
    services, asked = services_answering({"verdict": "yes"}, {"flagged": False})
    await judged({"type": "conversation-relevance"}, services, options=options)
    await judged({"type": "moderation"}, services, options=options)
    assert "<conversation>" in asked[0] and "<output>" in asked[1]


@pytest.mark.parametrize(
    "prompt", ["- role: user\n  content: {{output}}", "- role: user\n  content: X {{output}}"]
)
async def test_a_bare_tag_in_yaml_messages_is_filled_in(prompt: str) -> None:
    """The judge was sent `{}`."""
    services, asked = services_answering({"pass": True})
    await judged(RUBRIC | {"rubricPrompt": prompt}, services, output="fine")
    assert chat_messages(asked[0]) == chat_messages(prompt.replace("{{output}}", "fine"))


@pytest.mark.parametrize("compat", ["documented", "reference"])
async def test_tags_over_several_lines_are_filled_in(compat: Any) -> None:
    """In a value they were an error, in a `rubricPrompt` the judge was sent the template."""
    services, asked = services_answering({"pass": True}, {"pass": True})
    variables = {"who": "Ann", "l": ["p", "q"]}
    given = RUBRIC | {"value": "greets {{\n who\n}} {% for i in l\n %}<{{i}}>{% endfor %}"}
    assert (await judged(given, services, vars=variables, compat=compat)).outcome == "passed"
    assert "greets Ann <p><q>" in asked[0]
    prompt = "{# all\nof it #}{{\n  output\n}} by {{ rubric }}"
    await judged(given | {"rubricPrompt": prompt}, services, vars=variables, compat=compat)
    assert asked[1].strip() == "the answer by greets Ann <p><q>"
    contains = {"type": "contains", "value": "{{\nwho}}"}
    assert (await judged(contains, services, output="Ann", vars=variables)).outcome == "passed"


@pytest.mark.parametrize(
    "prompt", ["R {{ output", "R {{output} x", [{"role": "user", "content": "{% if x"}], 7]
)
async def test_a_rubric_prompt_that_is_no_template_is_not_asked(prompt: Any) -> None:
    services, asked = services_answering({"pass": True})
    judgement = await judged(RUBRIC | {"rubricPrompt": prompt}, services)
    assert judgement.outcome == "error" and "rubricPrompt" in judgement.message and not asked


@pytest.mark.parametrize(
    ("given", "variables", "output", "words"),
    [
        ({"type": "context-faithfulness"}, {"context": "a."}, "x", 'requires a "query" variable'),
        ({"type": "context-relevance"}, {"context": "a.", "query": 7}, "x", 'requires a "query" variable'),
        ({"type": "context-relevance"}, {"context": ["a.", 1], "query": "q"}, "x", "array of strings"),
        ({"type": "context-recall", "value": "v"}, {"context": {"a": 1}}, "x", "`context` variable"),
        ({"type": "context-recall", "value": "v"}, {"context": []}, "x", "`context` variable"),
        ({"type": "context-relevance"}, {"context": ["a.", ""], "query": "q"}, "x", "empty context"),
        (
            {"type": "context-faithfulness"},
            {"context": "a.", "query": "q"},
            {"a": 1},
            "requires string output",
        ),
        ({"type": "answer-relevance"}, {}, ["x"], "requires string output"),
        ({"type": "llm-rubric", "value": 5}, {}, "x", "must have a string"),
        (
            {"type": "similar", "value": "v", "provider": "openai:chat:m"},
            {},
            "x",
            "not a valid embedding provider",
        ),
    ],
)
async def test_what_promptfoo_does_not_judge_is_an_error_by_reference(
    given: dict[str, Any], variables: dict[str, Any], output: Any, words: str
) -> None:
    """They passed: what a judge says of another question is no verdict there."""

    async def embed(provider: Any, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    services, asked = services_answering(*["a. [Attributed]"] * 3, embed=embed)
    evidence = JudgeInput(
        case_with([assertion_from(given)]),
        [Reply(turn=1, text=json.dumps(output), output=None if isinstance(output, str) else output)],
        vars=variables,
        prompt_sent="the question",
        services=services,
        compat="reference",
    )
    judgement = await judge(evidence)
    assert judgement.outcome == "error" and words in judgement.message and not asked, judgement.message


async def test_by_reference_messages_in_yaml_that_an_answer_breaks_are_an_error() -> None:
    prompt = '- role: user\n  content: "{{output}}"'
    services, asked = services_answering({"pass": True}, {"pass": True})
    given = RUBRIC | {"rubricPrompt": prompt}
    there = await judged(given, services, output='say "x"', compat="reference")
    assert there.outcome == "error" and "rubricPrompt" in there.message and not asked
    assert (await judged(given, services, output='say "x"')).outcome == "passed"
    assert json.loads(asked[0]) == [{"role": "user", "content": 'say "x"'}]


async def test_faithfulness_by_prompts_of_its_own_that_is_not_told_is_no_verdict() -> None:
    services, _ = services_answering("one\ntwo", "I cannot say.")
    given = {"type": "context-faithfulness", "rubricPrompt": ["{{answer}}", "{{statements}}"]}
    judgement = await judged(given, services, vars=CONTEXT)
    assert judgement.outcome == "error" and "I cannot say" in judgement.message


async def test_a_rubric_prompt_that_is_a_function_is_not_sent_as_its_source() -> None:
    services, asked = services_answering({"pass": True})
    judgement = await judged(RUBRIC | {"rubricPrompt": "file://rubric.js"}, services)
    assert judgement.outcome == "error" and "is a function" in judgement.message and not asked


async def test_goal_success_shows_the_steps() -> None:
    services, asked = services_answering({"pass": True})
    steps = [Entry(turn=1, kind="tool_call", name="book", arguments={"id": 7})]
    await judged({"type": "trajectory:goal-success", "value": "g"}, services, transcript=steps)
    assert 'tool call: book {"id":7}' in asked[0]
    span = TraceSpan("1", "x", start=0, attributes={"tool.name": "pay", "tool.args": '{"sum": 9}'})
    given = {"type": "trajectory:goal-success", "value": "g"}
    await judged(given, services, trace=Trace("0", spans=[span]))
    assert 'tool: pay {"sum":9}' in asked[1]
    await judged(given, services, transcript=steps, trace=Trace("0", spans=[span]))
    assert "book" in asked[2] and "pay" not in asked[2]


VECTORS = {
    "the answer": [1.0, 0.0],
    "same": [2.0, 0.0],
    "near": [3.0, 4.0],
    "far": [0.0, 1.0],
    "": [4.0, 3.0],
}


@pytest.mark.parametrize(
    ("given", "passed", "score"),
    [
        ({"type": "similar", "value": "same"}, True, 1.0),
        ({"type": "similar", "value": "near", "threshold": 0.6}, True, 0.6),
        ({"type": "similar", "value": "far"}, False, 0.0),
        ({"type": "not-similar", "value": "far"}, True, 1.0),
        ({"type": "similar", "value": ["far", "same"]}, True, 1.0),
        ({"type": "similar", "value": ""}, True, 0.8),
        ({"type": "not-similar", "value": ""}, False, 0.2),
        ({"type": "similar", "value": ["", "far"], "threshold": 0.9}, False, 0.8),
        (
            {"type": "similar", "value": ["", "same"], "threshold": 0.7},
            True,
            0.8,
        ),  # the first that is near enough
        ({"type": "not-similar", "value": ["far", "near", "same"], "threshold": 0.7}, False, 0.0),
        ({"type": "not-similar", "value": ["far", "near"], "threshold": 0.7}, True, 0.4),
        ({"type": "not-similar", "value": "near", "threshold": 0.6}, True, 0.4),  # at the threshold itself
        ({"type": "similar", "value": []}, None, None),
        ({"type": "similar", "value": ["", 5]}, None, None),
        ({"type": "similar:other", "value": "same"}, None, None),
        ({"type": "similar:dot", "value": "same"}, True, 2.0),  # as in promptfoo, the figure itself
        ({"type": "similar:dot", "value": ["far", "near"], "threshold": 2.5}, True, 3.0),
        ({"type": "not-similar:dot", "value": "near", "threshold": 4}, True, -2.0),
        ({"type": "similar:euclidean", "value": "same", "threshold": 1}, True, 0.5),
        ({"type": "similar:euclidean", "value": "near", "threshold": 1}, False, None),
    ],
)
async def test_similar(given: dict[str, Any], passed: bool | None, score: float | None) -> None:
    asked: list[Any] = []

    async def embed(provider: Any, texts: list[str]) -> list[list[float]]:
        asked.append(provider)
        return [VECTORS[text] for text in texts]

    options = {"provider": {"embedding": "openai:embedding:e"}}
    verdict = (await judged(given, JudgeServices(embed=embed), options=options)).verdicts[0]
    assert verdict.passed is passed
    assert score is None or verdict.score == pytest.approx(score)
    assert asked == ([] if passed is None else ["openai:embedding:e"])


async def test_similar_without_a_model_or_with_a_broken_one() -> None:
    async def none(provider: Any, texts: list[str]) -> list[list[float]]:
        raise CannotJudge("no embedding model is configured: name one")

    async def odd(provider: Any, texts: list[str]) -> list[list[float]]:
        return [[1.0], [1.0, 2.0]]

    for services in (JudgeServices(), JudgeServices(embed=none), JudgeServices(embed=odd)):
        judgement = await judged({"type": "similar", "value": "x"}, services)
        assert judgement.outcome == "error" and "embedding model" in judgement.message


async def test_ruby_where_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    judgement = await judged({"type": "ruby", "value": "true"}, JudgeServices(trust=Trust(True)))
    assert judgement.outcome == "error" and "ruby" in judgement.message


async def test_a_webhook_without_end_is_a_failure() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json; charset=nonsense"})
        await answer.prepare(request)
        with contextlib.suppress(ConnectionError):
            while request.path == "/endless":
                await answer.write(b" " * 1_000_000)
            await answer.write(b'{"pass": true}')
        return answer

    app = web.Application()
    app.router.add_post("/{any}", endless)
    async with TestServer(app) as server:
        judgement = await judged(
            {"type": "webhook", "value": str(server.make_url("/endless"))}, JudgeServices()
        )
        assert judgement.verdicts[0].passed is False
        assert judgement.verdicts[0].reason == "Webhook error: it answered more than 16 MB"
        judgement = await judged(
            {"type": "webhook", "value": str(server.make_url("/whole"))}, JudgeServices()
        )
        assert judgement.verdicts[0].passed


@pytest.mark.parametrize(
    ("said", "ours", "theirs"),  # of `webhook` and `not-webhook`
    [
        ({"pass": True}, (True, False), (True, False)),
        ({"pass": False}, (False, True), (False, True)),
        ({"pass": "false"}, (False, True), (True, True)),
        ({"pass": "yes"}, (True, False), (True, True)),
        ({"error": "no model"}, (False, False), (True, True)),
        ({"pass": None, "score": 0.9}, (False, False), (True, True)),
        ([True], (False, False), (True, True)),
        (None, (False, False), (False, False)),
    ],
)
async def test_what_a_webhook_answers(said: Any, ours: tuple[bool, bool], theirs: tuple[bool, bool]) -> None:
    """An answer that does not say true or false passes nothing; promptfoo 0.121.20 passes what is not
    `false`, or `true`."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(said)

    app = web.Application()
    app.router.add_post("/", answer)
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        services = JudgeServices(trust=Trust(True))
        for compat, passed in (("documented", ours), ("reference", theirs)):
            found = [
                (await judged({"type": kind, "value": url}, services, compat=compat)).verdicts[0].passed
                for kind in ("webhook", "not-webhook")
            ]
            assert tuple(found) == passed


@pytest.mark.parametrize(
    "host", ["example.org", "127.0.0.1.example.org", "127.example.org", "localhost.example.org"]
)
async def test_webhook_needs_trust_for_another_machine(host: str) -> None:
    """Hosts whose names begin as this machine's address does were taken for it."""
    judgement = await judged({"type": "webhook", "value": f"http://{host}/x"}, JudgeServices())
    assert judgement.outcome == "error" and f"needs trust: send outputs to {host}" in judgement.message


def columns(*scores: float, extra: dict[str, Any]) -> tuple[Any, list[Attempt]]:
    case = case_with([assertion_from({"type": "similar", "value": "x"}), assertion_from(extra)])
    attempts = [
        Attempt(
            "c",
            1,
            "passed",
            agent=f"a{place}",
            score=score,
            message="passed",
            response_text=f"out{place}",
            verdicts=[
                Verdict("similar", True, score=score),
                Verdict(extra["type"], None, metric="best", reason="open"),
            ],
        )
        for place, score in enumerate(scores)
    ]
    return case, attempts


async def test_max_score_takes_the_highest_and_the_first_of_equals() -> None:
    case, attempts = columns(0.5, 0.9, 0.9, extra={"type": "max-score"})
    await compare(case, attempts, JudgeServices(), "documented")
    assert [attempt.outcome for attempt in attempts] == ["failed", "passed", "failed"]
    assert [attempt.score for attempt in attempts] == [0.0, 0.9, 0.0]
    assert attempts[1].verdicts[1].reason == "Selected as highest scoring output (score: 0.900)"
    assert "Not selected (score: 0.500, max: 0.900)" in attempts[0].message
    assert attempts[1].named_scores == {"best": 1.0}


async def test_max_score_chooses_none_where_a_score_is_not_known() -> None:
    """The column that could not be judged may be the better one."""
    case, attempts = columns(0.0, 0.3, extra={"type": "max-score"})
    attempts[0].verdicts[0].passed, attempts[0].outcome = None, "error"
    await compare(case, attempts, JudgeServices(), "documented")
    assert [attempt.outcome for attempt in attempts] == ["error", "error"]
    assert attempts[1].message == "max-score: similar of a column could not be judged"
    await compare(case, attempts, JudgeServices(), "reference")
    assert attempts[1].verdicts[1].passed


async def test_the_reason_of_a_lost_row_in_promptfoos_words() -> None:
    case, attempts = columns(0.5, 0.4, 0.9, extra={"type": "max-score", "value": {"threshold": 0.95}})
    for attempt in attempts:
        attempt.message = "All assertions passed"
    attempts[1].outcome, attempts[1].message = "failed", "no x"
    await compare(case, attempts, JudgeServices(), "reference")
    assert [attempt.message for attempt in attempts] == [
        "Not selected (score: 0.500, max: 0.900)",
        "no x",
        "Not selected - score 0.900 below threshold 0.95",
    ]


async def test_max_score_below_its_threshold_and_alone() -> None:
    case, attempts = columns(0.5, 0.6, extra={"type": "max-score", "value": {"threshold": 0.7}})
    await compare(case, attempts, JudgeServices(), "documented")
    assert [attempt.outcome for attempt in attempts] == ["failed", "failed"]
    case, attempts = columns(0.5, extra={"type": "max-score"})
    await compare(case, attempts, JudgeServices(), "documented")
    assert attempts[0].outcome == "error" and "two columns" in attempts[0].message


async def test_select_best_asks_the_judge_once() -> None:
    services, asked = services_answering({"reason": "clear", "index": 1})
    case, attempts = columns(1.0, 1.0, extra={"type": "select-best", "value": "clearest"})
    await compare(case, attempts, services, "documented")
    assert [attempt.outcome for attempt in attempts] == ["failed", "passed"]
    assert len(asked) == 1 and "out0" in asked[0] and "out1" in asked[0]
    assert attempts[1].verdicts[1].reason == "Output selected as the best: clearest (clear)"
    services, _ = services_answering("none of them")
    case, attempts = columns(1.0, 1.0, extra={"type": "select-best", "value": "clearest"})
    await compare(case, attempts, services, "documented")
    assert [attempt.outcome for attempt in attempts] == ["error", "error"]


@pytest.mark.parametrize("place", ["assertion", "options"])
@pytest.mark.parametrize("compat", ["documented", "reference"])
async def test_select_best_by_a_prompt_of_its_own(compat: Any, place: str) -> None:
    services, asked = services_answering("1", "1")
    own = {"rubricPrompt": "{{criteria}}: {% for one in outputs %}<{{one}}>{% endfor %}"}
    extra = {"type": "select-best", "value": "clearest"}
    case, attempts = columns(1.0, 1.0, extra=extra | (own if place == "assertion" else {}))
    case.options = own if place == "options" else {}
    await compare(case, attempts, services, compat)
    assert [attempt.outcome for attempt in attempts] == ["failed", "passed"]
    assert asked == ["\nclearest: <out0><out1>"]
    case.options = {"rubricPrompt": "Grade {{output}} by {{rubric}}"}  # that of the test's `llm-rubric`
    case, attempts = columns(1.0, 1.0, extra=extra)
    await compare(case, attempts, services, "documented")
    assert "<output_1>" in asked[1]


async def test_a_column_that_failed_stays_failed_where_it_cannot_be_compared() -> None:
    """It was an error: what had failed was hidden by the judge's silence."""
    services, _ = services_answering("none of them")
    case, attempts = columns(1.0, 1.0, extra={"type": "select-best", "value": "clearest"})
    attempts[0].outcome, attempts[0].message = "failed", "no x"
    await compare(case, attempts, services, "documented")
    assert [attempt.outcome for attempt in attempts] == ["failed", "error"]
    assert attempts[0].message.startswith("no x; select-best: the judge named none")


async def test_mappings_in_a_rubric_that_is_a_list_are_json_in_its_prompt() -> None:
    """The judge was told `[object Object]`."""
    services, asked = services_answering({"pass": True})
    given = {
        "type": "llm-rubric",
        "value": ["polite", {"names": 2}],
        "rubricPrompt": "{{output}}: {{rubric}}",
    }
    await judged(given, services, output="hi")
    assert asked == ['\nhi: polite,{"names":2}']


async def test_a_g_eval_of_no_criteria_fails_by_reference() -> None:
    services, asked = services_answering()
    judgement = await judged({"type": "g-eval", "value": []}, services, compat="reference")
    assert judgement.outcome == "failed" and "at least one criterion" in judgement.message and not asked


async def test_a_rubric_without_a_value_is_asked_by_reference() -> None:
    for compat, outcome in (("documented", "error"), ("reference", "passed")):
        services, asked = services_answering({"pass": True})
        judgement = await judged({"type": "llm-rubric"}, services, compat=compat)
        assert (judgement.outcome, len(asked)) == (outcome, int(compat == "reference"))


@pytest.mark.parametrize(
    ("kind", "score", "reason"),
    [
        ("g-eval", 4, "score 0.4 is below the threshold 0.7; the judge: well put"),
        ("not-g-eval", 8, "score 0.8 reaches the threshold 0.7; the judge: well put"),
        ("g-eval", 8, "well put"),
    ],
)
async def test_what_fails_by_its_score_says_so_beside_the_judges_words(
    kind: str, score: int, reason: str
) -> None:
    """A case failed with nothing but praise for a reason."""
    services, _ = services_answering(STEPS, {"score": score, "reason": "well put"})
    judgement = await judged({"type": kind, "value": "is coherent"}, services)
    assert judgement.verdicts[0].reason == reason


async def test_a_comparison_has_no_name_by_reference_whatever_comes_of_it() -> None:
    """One that was not decided was counted under its metric."""
    services, _ = services_answering("none of them")
    case, attempts = columns(1.0, 1.0, extra={"type": "select-best", "value": "clearest", "metric": "best"})
    await compare(case, attempts, services, "reference")
    assert [attempt.outcome for attempt in attempts] == ["failed", "failed"]
    assert not any("best" in attempt.named_scores for attempt in attempts)


@pytest.mark.parametrize(
    ("said", "passed"),
    [
        ("No, it does not pass.", None),
        ("The submission does not pass", None),
        ("I would not say yes", None),
        ("This is a non-pass", None),
        ("It is not polite, so the answer is not Y", None),
        ("Polite throughout.\n\nY", True),
        ("It curses.\nN.", False),
        ("So the answer is Y", True),
        ("It is polite. Answer: **Yes**", True),
        ("yes", True),
        ("Verdict: no", False),
        ("It is polite - yes", True),
        ("", None),
    ],
)
async def test_a_closed_question_answered_in_a_sentence_is_no_yes(said: str, passed: bool | None) -> None:
    """The last word decided: "No, it does not pass." passed."""
    services, _ = services_answering(said)
    assert (await judged(QA, services)).verdicts[0].passed is passed


async def test_columns_that_nobody_compares_are_no_pass() -> None:
    services, _ = services_answering()
    judgement = await judged({"type": "max-score"}, services)
    assert judgement.outcome == "error" and "compared" in judgement.message


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("factuality", {"category": "C"}),
        ("model-graded-closedqa", {"pass": True}),
        ("g-eval", {"steps": ["look"], "score": 10}),
        ("context-recall", None),
    ],
)
async def test_an_empty_value_goes_to_the_grader_as_in_promptfoo(kind: str, said: Any) -> None:
    services, asked = services_answering(said or {"sentences": [{"attributed": True}]})
    judgement = await judged({"type": kind, "value": ""}, services, vars={"context": "c"})
    assert asked and "must have" not in judgement.message


def test_check_knows_the_graded_types_from_the_one_table_of_types() -> None:
    """What asks a judge is told by where a type is judged, not by a list beside it."""
    from tui_eval.formats import format_of
    from tui_eval.formats.promptfoo.judge import registry

    for kind in ("llm-rubric", "not-g-eval", "context-recall", "trajectory:goal-success", "select-best"):
        assert format_of("promptfoo").asks_a_judge(kind), kind
    for kind in ("equals", "similar", "javascript", "gist"):
        assert not format_of("promptfoo").asks_a_judge(kind), kind
    assert format_of("neuro_san").asks_a_judge("not_gist") and not format_of("nao").asks_a_judge("sql")
    assert {"factuality", "agent-rubric", "search-rubric"} <= registry.GRADED


@pytest.mark.parametrize(
    ("said", "passed"),
    [
        ({"pass": "unknown"}, None),
        ({"pass": "maybe", "score": 1}, None),
        ({"pass": [], "score": 1}, None),
        ({"pass": "", "score": 1}, None),
        ({"pass": None, "score": None, "reason": None}, None),
        ({"score": False}, False),
        ({"pass": None, "score": 0.9}, True),
        ({"score": 0.9}, True),
        ({"verdict": "no", "score": 0.9}, False),
    ],
)
async def test_a_judge_that_decides_nothing_passes_nothing(said: dict[str, Any], passed: bool | None) -> None:
    given = {"type": "llm-rubric", "value": "is polite"}
    verdict = (await judged(given, services_answering(said)[0])).verdicts[0]
    assert verdict.passed is passed


RUBRIC = {"type": "llm-rubric", "value": "is polite"}
AS_WRITTEN = [  # what a judge said; ours; promptfoo 0.121.20's (runJsonGradingPrompt), and its score
    ('{"pass": "unknown"}', None, False, 0),
    ('{"pass": [], "score": 1}', None, False, 1),
    ('{"pass": "", "score": 1}', None, False, 1),
    ('{"pass": null, "score": null}', None, True, 0),
    ('{"verdict": "fail"}', False, True, 1),
    ('{"Pass": false}', False, True, 1),
    ('{"Pass": true, "Score": 0.5}', True, True, 1),
    ('{"PASS": "No", "reason": "r"}', False, True, 1),
    ("{'pass': True, 'score': 1, 'reason': None}", True, True, 1),
    ("{'pass': False, 'score': 0.5, 'reason': 'no'}", False, False, 0.5),
    ("Well: {'pass': False, 'seen': {\"pass\": true, \"score\": 1}}", False, False, 0),
    ('{"pass": false, "reason": "one\ntwo"}', False, False, 0),
    ('{"pass": true, "reason": "one\ntwo", "score": "0.75"}', True, True, 0.75),
    ("{pass: yes, score: 1}", True, True, 1),
    ('{"pass": "YES"}', True, True, 1),
    ('{"pass": "passed", "score": 1}', True, False, 1),
    ("{'reason': 'no pass here', 'text': 'x'}", None, True, 1),
    ("no object", None, False, 0),
    ('{"pass": 1}', False, False, 0),
    ('{"pass": 1, "score": 0.9}', False, False, 0.9),
    ('{"pass": 0}', False, False, 0),
    ('{"pass": 0.7, "score": "٢"}', False, False, 0),
    ('{"pass": true, "score": "٠"}', True, True, 1),
]


@pytest.mark.parametrize(("said", "ours", "theirs", "score"), AS_WRITTEN)
async def test_answers_as_judges_write_them(said: str, ours: bool | None, theirs: bool, score: float) -> None:
    assert (await judged(RUBRIC, services_answering(said)[0])).verdicts[0].passed is ours
    reference = (await judged(RUBRIC, services_answering(said)[0], compat="reference")).verdicts[0]
    assert (reference.passed, reference.score) == (theirs, score)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('{"score": 0, "reason": "r1"}', "r1 (no `pass` in the judge's reply: read from its `score`; promptfoo passes it)"),
        ('{"score": 1, "reason": "r1"}', "r1 (no `pass` in the judge's reply: read from its `score`)"),
        ('{"Pass": false, "reason": "r1"}', "r1 (no `pass` in the judge's reply: read from its `Pass`; promptfoo passes it)"),
        ('{"pass": false, "reason": "r1"}', "r1"),
    ],
)  # fmt: skip
async def test_a_verdict_without_pass_says_how_it_was_read(said: str, told: str) -> None:
    assert (await judged(RUBRIC, services_answering(said)[0])).verdicts[0].reason == told
    assert "no `pass`" not in (
        (await judged(RUBRIC, services_answering(said)[0], compat="reference")).verdicts[0].reason
    )


@pytest.mark.parametrize(
    ("given", "said", "passed"),
    [
        ({"type": "not-llm-rubric", "value": "x"}, {"pass": 1}, None),
        ({"type": "not-llm-rubric", "value": "x"}, {"pass": 0}, True),
        ({"type": "model-graded-closedqa", "value": "x"}, {"pass": 1}, False),
        ({"type": "not-model-graded-closedqa", "value": "x"}, {"answer": 1}, None),
        ({"type": "trajectory:goal-success", "value": "x"}, {"pass": 1}, False),
        ({"type": "moderation"}, {"flagged": 1}, False),
    ],
)
async def test_a_number_is_no_yes(given: dict[str, Any], said: dict[str, Any], passed: bool | None) -> None:
    verdict = (await judged(given, services_answering(said)[0])).verdicts[0]
    assert verdict.passed is passed


@pytest.mark.parametrize("said", ["٢", "the best is ١", {"index": "١"}, {"index": "1_0"}, {"index": True}])
async def test_digits_of_other_scripts_choose_no_output(said: Any) -> None:
    case, attempts = columns(1.0, 1.0, 1.0, extra={"type": "select-best", "value": "clearest"})
    await compare(case, attempts, services_answering(said)[0], "documented")
    assert [attempt.outcome for attempt in attempts] == ["error"] * 3
    assert "named none of the outputs" in attempts[0].message


@pytest.mark.parametrize(
    ("said", "passed", "score"),
    [
        ({"pass": True, "score": 7}, False, 0),
        ({"pass": False, "score": -2}, True, 1),
        ({"pass": False, "score": 0.25}, True, 0.75),
    ],
)
@pytest.mark.parametrize("compat", ["documented", "reference"])
async def test_the_opposite_of_a_score_is_between_0_and_1(
    said: dict[str, Any], passed: bool, score: float, compat: str
) -> None:
    given = {**RUBRIC, "type": "not-llm-rubric"}
    verdict = (await judged(given, services_answering(said)[0], compat=compat)).verdicts[0]
    assert (verdict.passed, verdict.score) == (passed, score)


SILENT = CannotJudge("the judge did not answer: HTTP 400", "judge-failed", "HTTP 400")
STEPS_LINE = '{"steps":["one","two"]}'
SEARCH = {"type": "search-rubric", "value": "v", "provider": "perplexity:sonar"}


@pytest.mark.parametrize(
    ("transform", "asked_about"),
    [
        ("output.sources", "Berlin is large.\n\nIt lies on the Spree."),
        ("output.sources.join(' ')", "Berlin is large. It lies on the Spree."),
        ("output.sources.length", None),
        ("[]", None),
    ],
)
async def test_the_context_is_taken_from_what_the_provider_said_before_the_tests_own_transform(
    transform: str, asked_about: str | None
) -> None:
    """As promptfoo 0.121.20 does (`providerTransformedOutput`): the test's transform leaves the answer, which has no
    sources any more."""
    host = JavaScriptHost()
    services, asked = services_answering(
        "x. [Attributed]", hosts=GivenHosts(None, host), root=Path(), base=Path()
    )
    given = {"type": "context-recall", "value": "x.", "threshold": 0.5, "contextTransform": transform}
    output = json.dumps({"answer": "large", "sources": ["Berlin is large.", "It lies on the Spree."]})
    options = {"transform": "output.answer"}
    case = case_with(
        [assertion_from(given)], options=options, provider={"id": "p", "transform": "JSON.parse(output)"}
    )
    try:
        evidence = JudgeInput(case, [Reply(turn=1, text=output)], prompt_sent="q", services=services)
        verdict = (await judge(evidence)).verdicts[0]
    finally:
        host.close()
    if asked_about is None:
        assert verdict.passed is None and "contextTransform" in verdict.reason and not asked
    else:
        assert verdict.passed is True and asked_about in asked[0]


RECALL = {"type": "context-recall", "value": "v", "threshold": 0.5}
RELEVANT = {"type": "context-relevance", "threshold": 0.9}
FAITHFUL = {"type": "context-faithfulness", "threshold": 0.5}
FITS = {"type": "conversation-relevance"}
NOTHING = "Could not extract JSON from llm-rubric response"
RECORDED: list[tuple[dict[str, Any], list[Any], bool | None, float, str]] = [
    (RUBRIC, [""], False, 0, "No output"),
    (RUBRIC, ["fine"], False, 0, NOTHING),
    (RUBRIC, ["[true]"], False, 0, NOTHING),
    (RUBRIC, ['{"pass": true, "reason": "x'], False, 0, NOTHING),
    (RUBRIC, ["{pass}"], True, 1, "Grading passed"),
    (RUBRIC, ['[1, {"pass": false}]'], False, 0, "Score 0 below threshold undefined"),
    (RUBRIC, ['{"pass":["yes"]}'], True, 1, "Grading passed"),
    (RUBRIC, ['{"pass":true}\n{"pass":false}'], True, 1, "Grading passed"),
    (RUBRIC, [SILENT], False, 0, "the judge did not answer: HTTP 400"),
    (RUBRIC, [JudgeAnswer("", output={})], True, 1, "Grading passed"),
    (RUBRIC, [JudgeAnswer("", output={"pass": False, "reason": "r"})], False, 0, "r"),
    (RUBRIC, [JudgeAnswer("", output=0)], False, 0, "No output"),
    (RUBRIC, [JudgeAnswer("7", output=7)], False, 0, "output must be string or object. Output: 7"),
    (RUBRIC, [JudgeAnswer("", output=[1, {"pass": True}])], False, 0, 'Output: [1,{"pass":true}]'),
    (RUBRIC | {"type": "not-llm-rubric"}, ["fine"], False, 0, NOTHING),
    (RUBRIC | {"type": "not-llm-rubric"}, [SILENT], False, 0, "HTTP 400"),
    ({"type": "not-trajectory:goal-success", "value": "g"}, ['{"pass":false,"score":0.4}'], True, 1,
     "Agent did not achieve the forbidden goal: g"),
    (FACTS, ["A"], False, 0, "did not match expected format: A"),
    (FACTS, ["Answer: (c)"], True, 1, "Answer: (c)"),
    (FACTS, ["no (a) here"], True, 1, "here"),
    (FACTS, ['{"category":"(A)"}'], False, 0, "Invalid category value: (A)"),
    (FACTS, ['{"category":" b "}'], True, 1, "superset"),
    (FACTS, ['{"category":"A","reason":7}'], False, 0, "did not match expected format"),
    (FACTS, [JudgeAnswer("", output=["x"])], None, 0, "factuality produced malformed response"),
    (QA, ["NY"], True, 1, "The submission meets the criterion:\nNY"),
    (QA, ["Reasoning Y\n\n"], True, 1, "meets the criterion"),
    (QA, ["**Y**"], False, 0, "malformed response"),
    (QA, ['{"pass":true}'], False, 0, "malformed response"),
    (QA, ["Because.\nN"], False, 0, "does not meet"),
    (EVAL, ["no"], False, 0, "steps are not in JSON format: no"),
    (EVAL, ['{"steps":[]}'], False, 0, "LLM does not propose any evaluation step"),
    (EVAL, ['{"steps":["a",""]}'], False, 0, 'contains invalid steps: ["a",""]'),
    (EVAL, [STEPS_LINE, '{"score":8}'], False, 0, "invalid or missing reason"),
    (EVAL, [STEPS_LINE, '{"score":"8","reason":"ok"}'], True, 0.8, "ok"),
    (EVAL, [STEPS_LINE, '{"score":"8/10","reason":"ok"}'], False, 0, 'invalid or missing score: "8/10"'),
    (EVAL, [STEPS_LINE, '{"score":11,"reason":"ok"}'], False, 0, "score 11 is outside the expected 0-10 range"),
    (EVAL, [STEPS_LINE, '{"score":8,\n"reason":"ok"}'], False, 0, "result is not in JSON format"),
    (EVAL | {"type": "not-g-eval"}, [STEPS_LINE, "no"], False, 0, "result is not in JSON format: no"),
    (EVAL | {"value": ["a", "b"]}, [STEPS_LINE, "no"], False, 0, 'G-Eval criterion 1/2 ("a") failed: LLM-proposed'),
    (RECALL, ["1. One. [Attributed]\n2. Two. [Not Attributed]"], True, 0.5, "0.50"),
    (RECALL, ["fine"], False, 0, "0.00"),
    (RELEVANT, ["{}\nfine"], True, 1, "1.00"),
    (RELEVANT, ["Insufficient Information"], False, 0, "0.00"),
    (FAITHFUL, ["one\ntwo", "Final verdict for each statement in order: Yes. No."], True, 0.5, "0.50"),
    (FAITHFUL, ["one", "Verdict: Yes"], True, 1, "1.00"),
    (FAITHFUL, ["one", "fine"], False, 0, "0.00"),
    (FITS, ['{"verdict":true}'], False, 0, "invalid verdict"),
    (FITS, ['{"verdict":"yes"}'], True, 1, "1 of 1"),
    (FITS, ["yes"], False, 0, "No JSON object found in response"),
    (SEARCH, ['{"pass":"no"}'], True, 1, "No reason provided"),
    (SEARCH, ['{"pass":true,"score":"0.5"}'], True, 1, "No reason provided"),
    (SEARCH, ['{"pass": true, "reason": "x'], True, 1, '{"pass": true, "reason": "x'),
    (SEARCH | {"type": "not-search-rubric"}, ["fine"], True, 0, "does not require web search verification: fine"),
    (SEARCH | {"type": "not-search-rubric"}, ['{"pass":true,"reason":"r"}'], False, 1, "requires web search verification: r"),
    (SEARCH | {"type": "not-search-rubric"}, [SILENT], True, 0, "HTTP 400"),
]  # fmt: skip
"""Verdict, score and a part of the reason of promptfoo 0.121.20, asked with a server that gives these replies."""


@pytest.mark.parametrize(("given", "replies", "passed", "score", "said"), RECORDED)
async def test_reference_reads_broken_replies_as_promptfoo(
    given: dict[str, Any], replies: list[Any], passed: bool | None, score: float, said: str
) -> None:
    services, _ = services_answering(*replies)
    verdict = (await judged(given, services, vars=CONTEXT, compat="reference")).verdicts[0]
    assert (verdict.passed, verdict.score) == (passed, pytest.approx(score)), verdict.reason
    assert said in verdict.reason


DRAFT = '<think>Perhaps {"pass": true, "score": 1}.</think>'
UNDECIDED = [
    (RUBRIC, [DRAFT + '{"pass": false, "score": 0}'], False),
    (RUBRIC, ['I try {"pass": true} first.</think>\n{"pass": false}'], False),
    (RUBRIC, ["<think></think>\n\n" + '{"pass": true, "score": 1}'], True),
    (RUBRIC, [DRAFT.removesuffix("</think>")], None),
    (RUBRIC, ["<think>Hm.</think>" + DRAFT + '{"pass": false, "score": 0}'], False),
    (RUBRIC, ["Hm. " + DRAFT + '{"pass": false, "score": 0}'], False),
    (RUBRIC, ['{"pass": false, "score": 0}\n<reasoning>It is wrong.</reasoning>'], False),
    (RUBRIC, ['Verdict: {"pass": false, "score": 0}\n<reasoning>It is wrong.</reasoning>'], False),
    (RUBRIC, ['Verdict: {"pass": false, "reason": "it ends in </think>", "score": 0}'], False),
    (RUBRIC, [DRAFT + '{"pass": false, "reason": "it ends in </think>", "score": 0}'], False),
    (RUBRIC, ['{"reason": "ends in </think>", "pass": false, "score": 0}'], False),
    (RUBRIC, ['It says {"pass": true, "score": 1}, so: {"pass": false, "score": 0}'], None),
    (RUBRIC, ['{"pass": true, "score": 1}\n{"pass": "yes", "score": 1}'], True),
    (RUBRIC, ['{"reason": "it has {pass: true} } and {pass: false}", "pass": true, "score": 1}'], True),
    (RUBRIC, ['{"pass": false, "score": 0} The output says {pass: true} itself.'], None),
    (RUBRIC | {"threshold": 0.5}, [{"pass": True, "score": "4/10"}], False),
    (RUBRIC | {"threshold": 0.5}, [{"pass": True, "score": "40%"}], False),
    (RUBRIC | {"threshold": 0.5}, [{"pass": True, "score": "80 %"}], True),
    (RUBRIC | {"threshold": 0.5}, [{"pass": True, "score": "4/0"}], None),
    (RUBRIC | {"threshold": 0.5}, [{"pass": True, "score": False}], False),
    (FACTS, ["The answer is not (A) but (D)."], None),
    (FACTS, ["A careful look shows that it disagrees."], None),
    (FACTS, ["D - it disagrees"], False),
    (FACTS, [{"category": "A or D"}], None),
    (FACTS, [{"category": "(D)"}], False),
    (FACTS, [{"category": "(B) A superset of the expert's answer"}], True),
    (FACTS, [{"category": "D, or rather A"}], None),
    (EVAL, [STEPS, {"score": "4/5"}], True),
    (EVAL, [STEPS, {"score": "60%"}], False),
    (EVAL, [STEPS, {"score": 20}], None),
    (EVAL, [STEPS, {"score": -1}], None),
    ({"type": "context-faithfulness", "threshold": 0.5}, [{"statements": []}], None),
    ({"type": "not-context-faithfulness", "threshold": 0.5}, [{"statements": ["a"]}], None),
    ({"type": "context-relevance", "threshold": 0.6}, [{"relevant": ["It lies on the Spree."] * 2}], False),
    ({"type": "context-relevance", "threshold": 0.6}, [{"relevant": ["Berlin is large. It lies on the Spree"]}], True),
    ({"type": "context-relevance", "threshold": 0.6}, ["- Berlin is large.\n- It lies on the Spree."], True),
    ({"type": "context-relevance"}, ["I'm sorry, I can't do that. Really."], None),
    ({"type": "context-relevance"}, [{"relevant": [{"sentence": 1}, None]}], None),
    ({"type": "answer-relevance"}, [{"questions": [None]}], None),
    ({"type": "answer-relevance"}, [{"questions": ["a?"]}, {"score": 75}], None),
]  # fmt: skip


@pytest.mark.parametrize(("given", "said", "passed"), UNDECIDED)
async def test_drafts_shares_and_contradictions_give_no_wrong_verdict(
    given: dict[str, Any], said: list[Any], passed: bool | None
) -> None:
    verdict = (await judged(given, services_answering(*said)[0], vars=CONTEXT)).verdicts[0]
    assert verdict.passed is passed, verdict.reason


async def test_a_flood_of_sentences_is_no_choice_among_those_of_a_long_context() -> None:
    """To look for each in each would take minutes, in which nothing else goes on."""
    context = " ".join(f"This is sentence {number} of the context." for number in range(20_000))
    flood = {"relevant": [f"A sentence {number} that is none." for number in range(20_000)]}
    given = {"type": "context-relevance"}
    verdict = (
        await judged(given, services_answering(flood)[0], vars=CONTEXT | {"context": context})
    ).verdicts[0]
    assert verdict.passed is None, verdict.reason
    chosen = {"relevant": [f"This is sentence {number} of the context." for number in range(20_000)]}
    verdict = (
        await judged(given, services_answering(chosen)[0], vars=CONTEXT | {"context": context})
    ).verdicts[0]
    assert verdict.passed is True, verdict.reason


async def test_a_judge_that_does_not_answer_is_no_verdict_by_the_documents() -> None:
    for reply in (SILENT, "fine", JudgeAnswer("", output=[])):
        services, _ = services_answering(reply)
        assert (await judged(RUBRIC, services)).verdicts[0].passed is None


@pytest.mark.parametrize(
    ("reply", "won"),
    [
        ("Text 1 or 0", [False, True]),
        ("2", [False, False]),
        ("none", [False, False]),
        (SILENT, [False, False]),
    ],
)
async def test_reference_takes_the_first_number_for_the_best_output(reply: Any, won: list[bool]) -> None:
    case, attempts = columns(1.0, 1.0, extra={"type": "select-best", "value": "clearest"})
    await compare(case, attempts, services_answering(reply)[0], "reference")
    assert [attempt.verdicts[1].passed for attempt in attempts] == won


@pytest.mark.parametrize("compat", ["default", "reference"])
async def test_a_pass_with_a_score_below_the_threshold_says_so_and_not_the_judges_praise(compat):
    """It failed with `judge ok` for its reason, in every list; and its cause was `judge: not met`."""
    services, _ = services_answering({"pass": True, "score": 0.6, "reason": "judge ok"})
    found = await judged({"type": "llm-rubric", "value": "kind", "threshold": 0.7}, services, compat=compat)
    (verdict,) = found.verdicts
    attempt = Attempt("c", 1, found.outcome, message=found.message, verdicts=found.verdicts)
    assert verdict.passed is False and verdict.score == 0.6
    assert causes.cause_of(attempt) == "0.6 < 0.7; judge: judge ok"
    assert "judge" not in causes.alike(attempt)
    if compat == "default":
        assert "score 0.6 is below the threshold 0.7" in verdict.reason and "judge ok" in verdict.reason
    else:
        assert verdict.reason == "judge ok"  # as promptfoo has it
