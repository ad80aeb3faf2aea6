"""Which model grades promptfoo's suites: the suite's own grader, a judge that is named, promptfoo's default."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.servers.base import Planned
from tests.servers.openai import OpenAIServer
from tui_eval.agents import default_embeddings, default_grader
from tui_eval.config.project import Config
from tui_eval.engine.attempt import time_limits
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

SUITE = """
prompts: ['hi {{v}}']
providers: [echo]
defaultTest: {assert: [{type: llm-rubric, value: is kind}]}
tests: [{vars: {v: 1}}, {vars: {v: 2}}]
"""
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL", "OPENAI_API_HOST",
        "AZURE_API_KEY", "AZURE_OPENAI_API_KEY")  # fmt: skip


def message(**parts: Any) -> Planned:
    said = {"choices": [{"message": {"role": "assistant", **parts}, "finish_reason": "stop"}]}
    return Planned(raw=b"data: " + json.dumps(said).encode() + b"\n\ndata: [DONE]\n\n")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


async def run(folder: Path, told: list[str], **given: Any) -> list[Attempt]:
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(folder)], **given))
    active.environment.tell = told.append
    await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    found = [reader.attempt(row.id) for case in reader.cases() for row in reader.attempts(case.id)]
    return [attempt for attempt in found if attempt is not None]


@pytest.mark.parametrize("judge", ["{type: openai, modle: m}", "nobody", "house"])
async def test_no_other_grades_in_the_place_of_a_judge_whose_entry_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: str
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    (tmp_path / "tui_eval.yaml").write_text(f"agents: {{house: {{type: opneai}}}}\njudge: {judge}\n")
    with OpenAIServer(default=lambda seen: Planned(text='{"pass": true, "score": 1}')) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-some-length")
        attempts = await run(tmp_path, [], trust=True)
    assert [attempt.outcome for attempt in attempts] == ["error", "error"] and not server.requests


@pytest.mark.real
async def test_promptfoos_default_grader_judges_where_its_key_is_there_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    told: list[str] = []
    verdict = Planned(text=json.dumps({"reason": "r", "pass": True, "score": 1}))
    with OpenAIServer(default=lambda seen: verdict) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-person")
        attempts = await run(tmp_path, told)
        assert {seen.body["model"] for seen in server.requests} == {"gpt-5.5-2026-04-23"}
        assert {seen.headers["Authorization"] for seen in server.requests} == {"Bearer sk-of-the-person"}
        assert [attempt.outcome for attempt in attempts] == ["passed", "passed"]
        assert len(told) == 1 and "gpt-5.5-2026-04-23 grades, as in promptfoo" in told[0]
        server.requests.clear()
        attempts = await run(tmp_path, told, judge="openai:mine")
        assert {seen.body["model"] for seen in server.requests} == {"mine"} and len(told) == 1


@pytest.mark.parametrize(
    ("planned", "compat", "outcome"),
    [
        (Planned(body={}, status=400), "documented", "error"),
        (Planned(body={}, status=400), "reference", "failed"),
        (Planned(raw=b"not one"), "documented", "error"),
        (Planned(raw=b"not one"), "reference", "failed"),
        (message(content=[{"type": "text", "text": '{"pass": true}'}]), "documented", "passed"),
        (message(content=[{"type": "text", "text": '{"pass": true}'}]), "reference", "failed"),
        (message(content={}), "reference", "passed"),
        (message(content='{"pass": true}', reasoning_content='{"pass": false}?'), "documented", "passed"),
        (message(content='{"pass": true}', reasoning_content='{"pass": false}?'), "reference", "failed"),
    ],
)
async def test_what_a_grader_says_that_is_no_text_is_read_as_promptfoo_does_by_reference(
    tmp_path: Path, planned: Planned, compat: str, outcome: str
) -> None:
    with OpenAIServer(default=lambda seen: planned) as server:
        config = {"apiBaseUrl": server.base, "apiKey": "k"}
        suite = {
            "prompts": ["hi"],
            "providers": ["echo"],
            "defaultTest": {"options": {"provider": {"id": "openai:chat:m", "config": config}}},
            "tests": [{"assert": [{"type": "llm-rubric", "value": "is kind"}]}],
        }
        (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(suite))
        attempts = await run(tmp_path, [], compat=compat)
    assert [attempt.outcome for attempt in attempts] == [outcome], attempts[0].message


CHAT = [{"role": "system", "content": "By {{rubric}}"}, {"role": "user", "content": "Grade {{output}}"}]
YAML = "- role: system\n  content: By {{rubric}}\n- role: user\n  content: Grade {{output}}\n"


@pytest.mark.parametrize("prompt", [CHAT, json.dumps(CHAT), YAML, "file://rubric.json"])
async def test_a_rubric_prompt_of_chat_messages_is_sent_as_these(tmp_path: Path, prompt: Any) -> None:
    """As promptfoo does; quotes and line breaks of the output break none of them."""
    (tmp_path / "tui_eval.yaml").write_text("")  # the root
    (tmp_path / "rubric.json").write_text(json.dumps(CHAT))
    verdict = Planned(text=json.dumps({"pass": True, "score": 1}))
    with OpenAIServer(default=lambda seen: verdict) as server:
        config = {"apiBaseUrl": server.base, "apiKey": "k"}
        graded = {"type": "llm-rubric", "value": "is kind", "rubricPrompt": prompt}
        suite = {
            "prompts": ['he said "hi"\ntwice'],
            "providers": ["echo"],
            "defaultTest": {"options": {"provider": {"id": "openai:chat:m", "config": config}}},
            "tests": [{"assert": [graded]}],
        }
        (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(suite))
        (attempt,) = await run(tmp_path, [])
        assert attempt.outcome == "passed", attempt.message
        (sent,) = [seen.body["messages"] for seen in server.requests if seen.body]
    assert sent == [
        {"role": "system", "content": "By is kind"},
        {"role": "user", "content": 'Grade he said "hi"\ntwice'},
    ]


async def test_the_user_whom_a_judge_plays_says_nothing_of_its_thoughts(tmp_path: Path) -> None:
    said = iter(["<think>###STOP### already?</think>I want a refund", "###STOP###"])
    with OpenAIServer(default=lambda seen: Planned(text=next(said))) as server:
        (tmp_path / "tui_eval.yaml").write_text(
            f"judge: {{type: openai, model: m, base_url: '{server.base}', api_key: k}}\n"
        )
        user = {"id": "promptfoo:simulated-user", "config": {"maxTurns": 3, "instructions": "be brief"}}
        suite = {"prompts": ["Help."], "providers": ["echo"], "tests": [{"provider": user}]}
        (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(suite))
        (attempt,) = await run(tmp_path, [])
    assert attempt.outcome == "passed", attempt.message
    asked = [entry.text for entry in attempt.transcript if entry.agent == "user"]
    assert asked == ["I want a refund"]


OWN = """
prompts: ['hi {{v}}']
providers: [echo]
defaultTest: {options: {provider: {text: 'azure:chat:house', embedding: 'openai:embedding:e'}}}
tests:
  - {vars: {v: 1}, assert: [{type: llm-rubric, value: is kind}]}
  - {vars: {v: 2}, assert: [{type: llm-rubric, value: is kind, provider: 'openai:mine'}]}
"""


async def test_no_other_model_grades_in_the_place_of_a_suites_own_that_we_do_not_speak_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(OWN)
    told: list[str] = []
    verdict = Planned(text=json.dumps({"reason": "r", "pass": True, "score": 1}))
    with OpenAIServer(default=lambda seen: verdict) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-person")
        (tmp_path / "tui_eval.yaml").write_text("judge: openai:the-configured\n")
        attempts = await run(tmp_path, told)
        assert [attempt.outcome for attempt in attempts] == ["error", "passed"]
        assert "the grader that the suite names, azure:chat:house, cannot be asked" in attempts[0].message
        assert "--judge NAME" in attempts[0].message
        assert [seen.body["model"] for seen in server.requests] == ["mine"] and not told
        server.requests.clear()
        attempts = await run(tmp_path, told, judge="openai:typed")
        assert [attempt.outcome for attempt in attempts] == ["passed", "passed"]
        assert sorted(seen.body["model"] for seen in server.requests) == ["mine", "typed"]
        assert sorted(told) == [
            "nothing here speaks to the suite's grader azure:chat:house: openai:typed grades in its place",
            "openai:mine grades where the suite names it; openai:typed does where it names none",
        ]
        server.requests.clear()
        (tmp_path / "tui_eval.yaml").write_text(
            "agents: {house: {type: openai, model: mapped}}\nproviders: {'azure:chat:house': house}\n"
        )
        attempts = await run(tmp_path, told)
        assert [attempt.outcome for attempt in attempts] == ["passed", "passed"] and len(told) == 2
        assert sorted(seen.body["model"] for seen in server.requests) == ["mapped", "mine"]


async def test_without_a_key_a_graded_assertion_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    told: list[str] = []
    attempts = await run(tmp_path, told)
    assert [attempt.outcome for attempt in attempts] == ["error", "error"] and not told
    assert all("no judge is configured" in attempt.message for attempt in attempts)


def test_which_grader_promptfoo_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(root=tmp_path)

    def named(env: Any = None) -> str | None:
        spec = default_grader(env, config)
        return spec and spec.model

    assert named() is None and default_embeddings(None, config) is None
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a")
    assert named() == "claude-sonnet-4-6" and default_embeddings(None, config) is None
    for name in ("AZURE_API_KEY", "AZURE_DEPLOYMENT_NAME", "AZURE_OPENAI_DEPLOYMENT_NAME"):
        monkeypatch.setenv(name, "z")
    assert named() is None  # promptfoo would ask Azure
    spec = default_grader({"OPENAI_API_KEY": "of-the-suite"}, config)
    assert (
        spec is not None and spec.model == "gpt-5.5-2026-04-23" and spec.options["api_key"] == "of-the-suite"
    )
    vectors = default_embeddings({"OPENAI_API_KEY": "of-the-suite"}, config)
    assert vectors is not None and vectors.options["embedding_model"] == "text-embedding-3-large"


@pytest.mark.real
async def test_the_entry_of_a_judge_says_how_many_at_once_how_often_and_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for its turn, or for the judge's `rate`, is in no time limit: neither the attempt's nor the
    judge's own."""
    monkeypatch.setattr(time_limits, "AT_LEAST", 1.0)
    tests = ", ".join(f"{{vars: {{v: {number}}}}}" for number in range(4))
    (tmp_path / "promptfooconfig.yaml").write_text(
        SUITE.replace("tests: [{vars: {v: 1}}, {vars: {v: 2}}]", f"tests: [{tests}]")
    )
    at_once: list[int] = []
    lock, now = threading.Lock(), 0

    def slowly(seen: Any) -> Planned:
        nonlocal now
        with lock:
            now += 1
            at_once.append(now)
        time.sleep(0.5)
        with lock:
            now -= 1
        return Planned(text=json.dumps({"reason": "r", "pass": True, "score": 1}))

    async def outcomes(keys: str) -> tuple[set[str], set[str], int]:
        at_once.clear()
        (tmp_path / "tui_eval.yaml").write_text(
            f"judge: {{type: openai, model: m, base_url: '{server.base}', {keys}}}\n"
        )
        attempts = await run(tmp_path, [], timeout=1.0)
        return (
            {one.outcome for one in attempts},
            {one.verdicts[0].reason for one in attempts},
            max(at_once),
        )

    with OpenAIServer(default=slowly) as server:
        assert (await outcomes("concurrency: 1, timeout: 1.5"))[::2] == ({"passed"}, 1)
        held = await outcomes("rate: {requests: 60}")  # 3 s in all, beyond any limit
        assert held[::2] == ({"passed"}, 1)
        late = "the judge did not answer: no answer in 0.2 s"
        assert (await outcomes("timeout: 0.2"))[:2] == ({"error"}, {late})
