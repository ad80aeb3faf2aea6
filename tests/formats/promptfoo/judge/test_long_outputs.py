"""Outputs that cost much to judge: the engine's loop, on which all other cases wait, goes on meanwhile."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.judging import GivenHosts
from tests.support.promptfoo_cases import evidence_for
from tui_eval.formats import judge
from tui_eval.formats.promptfoo.judge import html, json_schema, registry, similarity
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.model import Verdict

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def verdict(output: Any, assertion: dict[str, Any], services: Any) -> Verdict:
    row = {"output": output, "vars": {}, "assertion": assertion}
    return (await judge(evidence_for(row, services))).verdicts[0]


@pytest.mark.parametrize(
    "kind", ["is-html", "contains-html", "is-xml", "contains-sql", "levenshtein", "meteor", "bleu"]
)
async def test_a_long_output_is_judged_beside_the_loop_and_a_short_one_on_it(
    kind: str, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def check(call: AssertionCall) -> Result:
        threads.append(threading.current_thread())
        return call.result(True, "", "")

    monkeypatch.setitem(registry.CHECKS, kind, check)
    for output in ("x", "x" * 30_000):
        assert (await verdict(output, {"type": kind, "value": "x"}, services)).passed
    assert [thread is threading.current_thread() for thread in threads] == [True, False]


@pytest.mark.parametrize(
    "output", ["<div>" * 20_000, "<a><b>" * 20_000, "<a " + " ".join(f"x{n}" for n in range(20_000))]
)
async def test_html_that_no_reader_gets_to_the_end_of_is_an_error(
    output: str, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "_SECONDS", 0.1)
    for kind in ("is-html", "not-is-html"):
        found = await verdict(output, {"type": kind}, services)
        assert (found.passed, found.reason) == (
            None,
            "is-html: the output takes too long to read: it is nested too deeply",
        )


@pytest.mark.parametrize("kind", ["contains-json", "not-contains-json"])
async def test_yaml_whose_aliases_unfold_to_billions_of_values_is_an_error(kind: str, services: Any) -> None:
    """An answer of 800 characters took the machine's memory."""
    bomb = "{a0: &a0 [x], " + ", ".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)) + "}"
    found = await verdict(bomb, {"type": kind}, services)
    assert found.passed is None and "its aliases unfold to more than" in found.reason
    found = await verdict('{"a": 1}', {"type": "is-json", "value": bomb}, services)
    assert found.passed is None and "its aliases unfold to more than" in found.reason


async def test_a_pattern_of_a_schema_that_is_searched_for_from_each_place_of_a_long_text_has_an_end(
    services: Any,
) -> None:
    """Python's search of 80,000 letters took 25 s, and nothing stopped it."""
    schema = {"type": "string", "pattern": "[a-z]+[0-9]$"}
    javascript = JavaScriptHost(processes=1, time_limit=0.5)
    try:
        hurried = replace(services, hosts=GivenHosts(javascript=javascript))
        found = await verdict(json.dumps("a" * 1_000_000), {"type": "is-json", "value": schema}, hurried)
    finally:
        javascript.close()
    assert found.passed is None and "the schema's patterns could not be tried: " in found.reason
    for end, fits in (("1", True), ("", False)):
        text = json.dumps("A" * 30_000 + "abc" + end)
        assert (await verdict(text, {"type": "is-json", "value": schema}, services)).passed is fits


def _doubling(key: str) -> dict[str, Any]:
    parts = {f"a{n}": {key: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    return {"$ref": "#/$defs/a0", "$defs": parts | {"a40": {"type": "object"}}}


@pytest.mark.parametrize("kind", ["is-json", "not-is-json", "contains-json"])
@pytest.mark.parametrize("key", ["allOf", "oneOf"])
async def test_a_schema_that_asks_for_a_trillion_steps_is_an_error(
    kind: str, key: str, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run went on for ever, deaf to ctrl+c and every time limit."""
    monkeypatch.setattr(json_schema, "_STEPS", 30_000)
    found = await verdict('{"a": 1}', {"type": kind, "value": json.dumps(_doubling(key))}, services)
    assert found.passed is None and "takes too many steps" in found.reason


async def test_a_schema_that_asks_for_many_steps_is_looked_at_beside_the_loop(services: Any) -> None:
    schema = {"items": {"anyOf": [{"enum": [f"{a}{b}" for b in range(40)]} for a in range(60)]}}
    output = json.dumps(["5939"] * 40)
    assert (await verdict(output, {"type": "is-json", "value": schema}, services)).passed
    found = await verdict(output.replace("5939", "none"), {"type": "is-json", "value": schema}, services)
    assert found.passed is False


async def test_arguments_of_a_call_may_be_as_long_as_its_answer(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 150,000 numbers, or of 3,000 rows, were an error of the schema."""
    monkeypatch.setattr(json_schema, "_AT_ONCE", 100)
    function = {
        "name": "sum",
        "parameters": {"properties": {"n": {"type": "array", "items": {"type": "number"}}}},
    }
    output = {"name": "sum", "arguments": json.dumps({"n": list(range(3000))})}
    row = {
        "output": output,
        "vars": {},
        "functions": [function],
        "assertion": {"type": "is-valid-openai-function-call"},
    }
    found = (await judge(evidence_for(row, services))).verdicts[0]
    assert found.passed, found.reason


@pytest.mark.parametrize(
    ("rule", "output"),
    [
        ({"uniqueItems": True}, [*range(2_000)]),
        ({"enum": [[*range(2_000)]]}, [*range(2_000)]),
        ({"const": [*range(2_000)]}, [*range(2_000)]),
        (
            {"additionalProperties": False, "patternProperties": {"^k": True}},
            {f"k{n}": n for n in range(1_000)},
        ),
        ({"pattern": "^a+$"}, "a" * 19_000),
        ({"format": "date"}, "a" * 19_000),
    ],
    ids=["uniqueItems", "enum", "const", "properties", "pattern", "format"],
)
async def test_what_a_step_takes_with_a_long_answer_counts(
    rule: dict[str, Any], output: Any, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a schema whose steps were few enough each one compared thousands of items, for hours."""
    monkeypatch.setattr(json_schema, "_STEPS", 0)
    monkeypatch.setattr(json_schema, "_OF_A_CHARACTER", 2)
    parts = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}, False]} for n in range(12)}
    parts |= {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(9)}
    schema = {"$ref": "#/$defs/a0", "$defs": parts | {"a12": rule}}
    monkeypatch.setattr(json_schema, "_AT_ONCE", 5_000)
    found = await verdict(json.dumps(output), {"type": "is-json", "value": json.dumps(schema)}, services)
    assert found.passed is None and "takes too many steps" in found.reason


async def test_a_long_list_of_allowed_values_is_no_long_way(services: Any) -> None:
    """1,500 rows whose value is one of 2,000 were an error."""
    allowed = [f"C{number:05}" for number in range(2_000)]
    wanted = {"type": "is-json", "value": {"items": {"properties": {"c": {"enum": allowed}}}}}
    rows = [{"c": allowed[number]} for number in range(1_500)]
    assert (await verdict(json.dumps(rows), wanted, services)).passed
    assert (await verdict(json.dumps([*rows, {"c": "D"}]), wanted, services)).passed is False


async def test_one_and_true_are_two_allowed_values(services: Any) -> None:
    wanted = {"type": "is-json", "value": {"enum": [1, True]}}
    for output, passes in (("1", True), ("true", True), ("1.0", True), ("0", False)):
        assert (await verdict(output, wanted, services)).passed is passes
    found = await verdict("1", {"type": "is-json", "value": {"enum": [1, 1.0]}}, services)
    assert found.passed is None and "duplicate items" in found.reason


@pytest.mark.parametrize("objects", [False, True])
async def test_items_that_must_differ_are_compared_in_one_pass(objects: bool, services: Any) -> None:
    """A list of 100,000 numbers with one twice at its end took minutes, one of objects hours."""
    items = [{"n": number} if objects else number for number in range(60_000)]
    wanted = {"type": "is-json", "value": {"uniqueItems": True}}
    assert (await verdict(json.dumps([*items, True, 1.5]), wanted, services)).passed
    found = await verdict(json.dumps([*items, items[-1]]), wanted, services)
    assert found.passed is False and "(items ## 60000 and 59999 are identical)" in found.reason


async def test_html_is_read_beside_the_loop_as_on_it(services: Any) -> None:
    for size in (10, 5_000):
        assert (await verdict("<p>word</p>" * size, {"type": "is-html"}, services)).passed


async def test_opened_tags_without_an_end_take_one_pass(services: Any) -> None:
    before = time.thread_time()
    assert html.tags_in("<a " * 200_000) == (False, False)
    assert time.thread_time() - before < 2


async def test_tags_are_those_that_the_patterns_of_promptfoo_find() -> None:
    name = "[a-zA-Z][a-zA-Z0-9-]{0,200}"
    itself, any_tag = (
        re.compile(rf"<{name}(?:\s[^>]{{0,5000}})?/>"),
        re.compile(rf"<{name}(?:\s[^>]{{0,5000}})?>"),
    )
    pieces = ["<a", "<b-1", "<", ">", "/>", "/", " ", "\n", "x", "=", "</a>", "é", "y" * 2499, "z" * 201]
    drawn = random.Random(6)
    texts = ["".join(drawn.choices(pieces, k=drawn.randrange(1, 12))) for _ in range(20_000)]
    texts += [f"<a {'x' * n}{end}" for n in range(4998, 5004) for end in (">", "/>", "/ >")]
    for text in texts:
        assert html.tags_in(text) == (bool(itself.search(text)), bool(any_tag.search(text))), text[:200]


@pytest.mark.parametrize(
    ("output", "threshold", "passed", "reason"),
    [
        ("a" * 900 + "b" * 100, 5, False, "Levenshtein distance of at least 6 is greater than threshold 5"),
        ("a" * 2000, 5, False, "Levenshtein distance of at least 1000 is greater than threshold 5"),
        ("a" * 997 + "bcd", 5, True, "Assertion passed"),
        (
            "b" * 1000,
            999,
            None,
            "levenshtein: the texts are too long to find out how far they are from each other",
        ),
    ],
)
async def test_long_texts_are_only_compared_up_to_the_threshold(
    output: str,
    threshold: int,
    passed: bool | None,
    reason: str,
    services: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(similarity, "_MOST_PAIRS", 10_000)
    found = await verdict(
        output, {"type": "levenshtein", "value": "a" * 1000, "threshold": threshold}, services
    )
    assert (found.passed, found.reason) == (passed, reason)


@pytest.mark.parametrize("kind", ["rouge-n", "bleu", "gleu", "meteor"])
async def test_words_of_too_long_an_output_are_not_counted(
    kind: str, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similarity, "_LONGEST", 10)
    found = await verdict("far too long", {"type": kind, "value": "x"}, services)
    assert (found.passed, found.reason) == (None, f"{kind}: the output is longer than 10 characters")


async def test_json_that_is_nested_without_end_is_no_object_that_is_expected(services: Any) -> None:
    found = await verdict("[" * 200_000, {"type": "equals", "value": {"a": 1}}, services)
    assert found.passed is False
    assert (await verdict("[" * 200_000, {"type": "not-equals", "value": {"a": 1}}, services)).passed
