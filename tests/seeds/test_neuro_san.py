"""Seed 004: neuro-san's data-driven test cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.seeds.support import by_name, evaluate, write
from tests.servers import NeuroSanServer, Planned
from tui_eval.config.project import load
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust

SCRIPTED = "agents: {neuro-san: {type: scripted, script: s.yaml}}\n"


async def run(root: Path, hocon: str, script: str = "default: ok", config: str = SCRIPTED, **request: Any):
    write(root, {"case.hocon": hocon, "tui_eval.yaml": config, "s.yaml": f"speed: 0\n{script}\n"})
    return await evaluate(root, **request)


def loaded(root: Path, hocon: str):
    write(root, {"case.hocon": hocon})
    return reading.load(root / "case.hocon", load([root]), Trust()).cases


def test_defaults(tmp_path: Path) -> None:
    (case,) = loaded(tmp_path, "{ agent: math_guy, interactions: [ {} ] }")
    assert (case.agent, case.connection, case.attempts, case.required) == ("math_guy", "direct", 1, 1)
    assert case.request_metadata is None and case.timeout is None and not case.options.get("use_direct")
    turn = case.turns[0]
    assert turn.text is None and turn.sly_data is None and turn.timeout is None
    assert turn.continue_conversation is True and turn.assertions == []


def test_several_connections_are_several_cases(tmp_path: Path) -> None:
    cases = loaded(
        tmp_path, '{ agent: a, connections: [ "direct", "http", "https" ], interactions: [ {text: x} ] }'
    )
    assert [case.connection for case in cases] == ["direct", "http", "https"]
    assert len({case.case_id for case in cases}) == 3


@pytest.mark.parametrize(("ratio", "outcome"), [("1/3", "passed"), ("2/3", "passed"), ("3/3", "failed")])
async def test_success_ratio(tmp_path: Path, ratio: str, outcome: str) -> None:
    hocon = f'{{ agent: a, success_ratio: "{ratio}", interactions: [ {{text: q, response: {{text: {{keywords: yes}}}}}} ] }}'
    document = await run(tmp_path, hocon, "rules: [{attempts: 2, say: no}]\ndefault: yes it is")
    assert len(document["results"]) == 3
    (summary,) = document["cases"]
    assert (summary["outcome"], summary["passed"], summary["required"]) == (outcome, 2, int(ratio[0]))


async def test_requests_carry_metadata_sly_data_and_context(tmp_path: Path) -> None:
    hocon = """
    { agent: math_guy, connections: http, metadata: { "user_id": "ada", "Authorization": "Bearer t" },
      interactions: [
        { text: "times", sly_data: { x: 847, y: 23 }, chat_filter: "MINIMAL" },
        { text: "and again" },
        { text: "now forget", continue_conversation: false },
        { text: "fresh", chat_filter: "MAXIMAL" }
      ] }
    """
    with NeuroSanServer(Planned(text="1", body={"sly_data": {"equals": 19481.0}})) as server:
        config = f'agents: {{neuro-san: {{type: neuro-san, url: "{server.url}"}}}}\n'
        document = await run(tmp_path, hocon, config=config, trust=True)
        assert by_name(document)["case"]["message"] == "nothing asserted"
        first, second, third, fresh = (seen.body for seen in server.requests)
        assert server.requests[0].path == "/api/v1/math_guy/streaming_chat"
        assert server.requests[0].headers["user_id"] == "ada"
    assert first["user_message"]["text"] == "times" and first["sly_data"] == {"x": 847, "y": 23}
    assert first["chat_filter"] == {"chat_filter_type": "MINIMAL"}
    assert fresh["chat_filter"] == {"chat_filter_type": "MAXIMAL"}
    assert "chat_context" in second and second["sly_data"]["equals"] == 19481.0
    assert "chat_context" in third
    assert "chat_context" not in fresh and "sly_data" not in fresh, "a clean slate"


@pytest.mark.real
@pytest.mark.parametrize(
    ("tests", "passes"),
    [
        ('text: { keywords: "Beatles" }', True), ('text: { keywords: ["Beatles", "Submarine"] }', True),
        ('text: { keywords: ["Beatles", "Stones"] }', False), ('text: { keywords: "beatles" }', False),
        ('text: { not_keywords: "Stones" }', True), ('text: { not_keywords: ["Stones", "Beatles"] }', False),
        ('text: { value: "The Beatles did Yellow Submarine." }', True), ('text: { value: "The Beatles" }', False),
        ('text: { not_value: "The Beatles" }', True), ('text: { greater: "A", less: "Z" }', True),
        ('text: { less: "A" }', False),
        ("structure: { answer: { keywords: Beatles }, running_cost: { value: 3.0 } }", True),
        ("structure: { running_cost: { value: 4.0 } }", False),
        ("structure: { running_cost: { less: 3.5 } }", True), ("structure: { running_cost: { less: 3.0 } }", False),
        ("structure: { running_cost: { not_less: 3.0 } }", True),
        ("structure: { running_cost: { not_less: 3.1 } }", False),
        ("structure: { running_cost: { greater: 2.5 } }", True),
        ("structure: { running_cost: { greater: 3.0 } }", False),
        ("structure: { running_cost: { not_greater: 3.0 } }", True),
        ("structure: { running_cost: { not_greater: 2.9 } }", False),
        ("sly_data: { equals: { value: [19481.0] } }", True), ("sly_data: { equals: { value: [19481.0, 1] } }", False),
        ("sly_data: { deep: { nested: { key: { value: 7 } } } }", True),
        ("sly_data: { deep: { nested: { key: { value: 8 } } } }", False),
        ("sly_data: { nowhere: { not_value: 8 } }", False),
        ("text: { keywords: Beatles }, structure: { running_cost: { value: 1 } }", False),
    ],
)  # fmt: skip
async def test_stock_tests(tmp_path: Path, tests: str, passes: bool) -> None:
    hocon = f'{{ agent: music_nerd, interactions: [ {{ text: "Who did Yellow Submarine?", response: {{ {tests} }} }} ] }}'
    script = (
        'default: {say: "The Beatles did Yellow Submarine.", structure: {answer: "The Beatles", running_cost: 3.0}, '
        "sly_data: {equals: 19481.0, deep: {nested: {key: 7}}}}"
    )
    result = by_name(await run(tmp_path, hocon, script))["case"]
    assert result["passed"] == passes, result["message"]


async def test_turns_are_judged_in_order_each_with_its_tests(tmp_path: Path) -> None:
    hocon = """{ agent: a, interactions: [ {text: one}, {text: two, response: {text: {keywords: two}}},
      {text: three, response: {text: {keywords: nothing}}} ] }"""
    result = by_name(await run(tmp_path, hocon, 'default: "{{message}}"'))["case"]
    assert [(item["turn"], item["passed"]) for item in result["assertions"]] == [(2, True), (3, False)]
    assert [entry["text"] for entry in result["transcript"] if entry["kind"] == "user"] == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.parametrize(("judged", "word", "passes"), [("gist", "pass", True), ("gist", "fail", False),
                                                        ("not_gist", "fail", True), ("not_gist", "pass", False)])  # fmt: skip
async def test_gist_asks_another_agent(tmp_path: Path, judged: str, word: str, passes: bool) -> None:
    config = SCRIPTED + "judge: {type: scripted, script: judge.yaml}\n"
    write(tmp_path, {"judge.yaml": f"speed: 0\nrules: [{{match: polite, say: {word}}}]\n"})
    hocon = f'{{ agent: a, interactions: [ {{text: q, response: {{text: {{ {judged}: "It is polite." }} }} }} ] }}'
    result = by_name(await run(tmp_path, hocon, config=config))["case"]
    assert result["passed"] == passes
    assert "It is polite." in result["assertions"][0]["judge"]["question"]


SLOW = "rules: [{match: slow, steps: [{wait: 30}]}]\ndefault: ok"


async def test_an_interactions_time_limit(tmp_path: Path) -> None:
    hocon = "{ agent: a, interactions: [ {text: quick}, {text: slow, timeout_in_seconds: 0.2} ] }"
    write(tmp_path, {"case.hocon": hocon, "tui_eval.yaml": SCRIPTED, "s.yaml": SLOW})
    result = by_name(await evaluate(tmp_path))["case"]
    assert (result["outcome"], result["error"]) == ("error", "turn 2 timed out after 0.2 s")


async def test_the_tests_time_limit_covers_all_attempts(tmp_path: Path) -> None:
    hocon = '{ agent: a, success_ratio: "1/2", timeout_in_seconds: 0.4, interactions: [ {text: slow} ] }'
    write(tmp_path, {"case.hocon": hocon, "tui_eval.yaml": SCRIPTED, "s.yaml": SLOW})
    document = await evaluate(tmp_path, concurrency=1)
    assert [result["outcome"] for result in document["results"]] == ["error", "error"]
    assert all("timed out" in result["error"] for result in document["results"])
    assert sum(result["duration_ms"] or 0 for result in document["results"]) < 29_000


async def test_failures_of_every_sample_stay_to_be_classified(tmp_path: Path) -> None:
    hocon = (
        '{ agent: a, success_ratio: "1/4", interactions: [ {text: q, response: {text: {keywords: right}}} ] }'
    )
    script = "rules: [{attempts: 2, say: wrong}, {attempts: 3, steps: [{error: broke}]}]\ndefault: right"
    document = await run(tmp_path, hocon, script)
    assert [(result["attempt"], result["outcome"]) for result in document["results"]] == [
        (1, "passed"), (2, "failed"), (3, "error"), (4, "passed"),
    ]  # fmt: skip
    assert document["results"][1]["message"] == "'right' not found in 'wrong'"
    assert document["results"][2]["error"] == "broke"
