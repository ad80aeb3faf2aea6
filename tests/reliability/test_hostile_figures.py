"""Hostile figures from every kind of agent, judge and script (chat models and endpoints of one's own are in
`tests/agents/test_figures.py`): who answers rightly keeps that verdict and the figure is unknown; where the figure is
the verdict, it is a clear error or a failure. One run for each kind, a case for each figure."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import WSMsgType, web

from tests.agents.models.test_classifiers import hugging_face, model
from tests.agents.promptfoo.test_promptfoo_providers import AnyServer
from tests.engine.test_runs import go
from tests.formats.promptfoo.judge.test_promptfoo_graded import judged, services_answering
from tests.reliability.soak_server import body_of
from tests.servers.base import Planned, Server
from tests.store.test_store import attempt, case
from tests.support.judging import services
from tui_eval.agents import AgentError
from tui_eval.agents.models.openai import OpenAIAgent
from tui_eval.agents.promptfoo import promptfoo_providers
from tui_eval.assertions import JudgeServices
from tui_eval.guard import figures
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Reply, Usage
from tui_eval.store import writer as store_writer
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

__all__ = ["services"]
FIGURES = {
    "2**63": str(2**63), "minus one": "-1", "NaN": "NaN", "Infinity": "Infinity", "1e400": "1e400",
    "400 digits": "9" * 400, "5,000 digits": "9" * 5000, "text": '"0.5"', "list": "[1]",
    "nested": '{"a": [{"b": 1}]}', "deep": "[" * 900 + "]" * 900,
}  # fmt: skip
_LISTED = list(FIGURES.values())


def figure_in(said: str) -> str:
    found = re.search(r"figure (\d+)", said)
    assert found, said
    return _LISTED[int(found[1])]


class Figures(Server):
    """Answers rightly in the protocol of each path, with the figure that the question names in every count."""

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/socket", self.socket)
        app.router.add_route("*", "/{path:.*}", self.answer)

    async def answer(self, request: web.Request) -> web.Response:
        seen = await self.see(request)
        if seen.path == "/hook":
            return web.Response(body=b'{"output": "the answer", "cost": %s}' % figure_in(seen.text).encode())
        body, kind = body_of(seen.path, "the answer", figure_in(seen.text))
        return web.Response(body=body, headers={"Content-Type": kind.decode()})

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                said = figure_in(message.data)
                usage = f'{{"prompt": {said}, "completion": {said}, "cached": {said}}}'
                await socket.send_str(
                    f'{{"output": "the answer", "tokenUsage": {usage}, "cost": {said}, "latencyMs": {said},'
                    f' "logProbs": [{said}]}}'
                )
        return socket


@pytest.fixture
def server() -> Iterator[Figures]:
    with Figures() as running:
        yield running


class Library(ModuleType):
    """What of LiteLLM is used."""

    async def acompletion(self, **given: Any) -> Any:
        body, _ = body_of("/chat/completions", "the answer", figure_in(str(given["messages"])))

        class Whole:
            @staticmethod
            def model_dump_json(**_: Any) -> str:
                return body.decode()

        async def parts() -> AsyncIterator[Any]:
            yield Whole()

        return parts() if given.get("stream") else Whole()

    async def close_litellm_async_clients(self) -> None:
        pass


def suite(root: Path, provider: Any) -> None:
    """A promptfoo suite; its provider may relay to the server's responses."""
    questions = [{"vars": {"q": f"figure {number}"}} for number in range(len(_LISTED))]
    tests = [{**one, "assert": [{"type": "contains", "value": "the answer"}]} for one in questions]
    document = {"prompts": ["{{q}}"], "providers": [provider], "tests": tests}
    (root / "promptfooconfig.yaml").write_text(yaml.safe_dump(document))


async def attempts(root: Path) -> list[Attempt]:
    _, reader = await go(root, trust=True)
    found = [reader.attempt(row.id) for row in reader.attempts()]
    reader.close()
    assert len(found) == len(_LISTED)
    return [one for one in found if one is not None]


def right(found: list[Attempt]) -> None:
    """Each is right, with no figure that is none."""
    for one, name in zip(found, FIGURES, strict=True):
        assert one.outcome == "passed", (name, one.message)
        counts = (
            [one.usage.input_tokens, one.usage.output_tokens, one.usage.cached_tokens] if one.usage else []
        )
        assert all(count is None for count in counts), (name, counts)
        assert one.cost is None, (name, one.cost)
        json.dumps(msgspec.to_builtins(one), allow_nan=False)


@pytest.mark.parametrize("kind", ["responses", "webhook", "websocket", "sequence", "litellm"])
async def test_a_right_answer_stays_right(
    tmp_path: Path, server: Figures, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = {"id": "openai:responses:m", "config": {"apiBaseUrl": server.url, "apiKey": "k"}}
    hook = {"id": f"webhook:{server.url}/hook"}
    talker = {
        "id": f"ws://127.0.0.1:{server.port}/socket",
        "config": {"messageTemplate": "{{prompt}}", "transformResponse": "data"},
    }
    lite = {"id": "litellm:x/m", "config": {"apiKey": "k"}}
    suite(tmp_path, {"webhook": hook, "websocket": talker, "litellm": lite}.get(kind, responses))
    if kind == "sequence":
        document = yaml.safe_load((tmp_path / "promptfooconfig.yaml").read_text())
        document["defaultTest"] = {"provider": {"id": "sequence", "config": {"inputs": ["{{q}}", "{{q}}"]}}}
        (tmp_path / "promptfooconfig.yaml").write_text(yaml.safe_dump(document))
    if kind == "litellm":
        monkeypatch.setitem(sys.modules, "litellm", Library("litellm"))
        monkeypatch.setattr(promptfoo_providers, "find_spec", lambda name: name)
    right(await attempts(tmp_path))


async def test_sums_of_a_relay_leave_unknown_what_is_unknown(tmp_path: Path, server: Figures) -> None:
    """No limit is kept by a sum of counts of which none is known."""
    responses = {"id": "openai:responses:m", "config": {"apiBaseUrl": server.url, "apiKey": "k"}}
    relay = {"id": "sequence", "config": {"inputs": ["figure 1", "figure 2"]}}
    test = {"vars": {"q": "x"}, "provider": relay, "assert": [{"type": "contains", "value": "the answer"}]}
    document = {"prompts": ["{{q}}"], "providers": [responses], "tests": [test]}
    (tmp_path / "promptfooconfig.yaml").write_text(yaml.safe_dump(document))
    _, reader = await go(tmp_path, trust=True)
    found = reader.attempt(reader.attempts()[0].id)
    reader.close()
    assert found is not None and found.outcome == "passed", found
    assert found.usage is None or found.usage == Usage()


async def test_a_recorded_run_with_hostile_figures_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's folder can come from anywhere."""
    values = [2**63, -1, float("nan"), float("inf"), 1e400, "0.5", "9" * 400, [1], {"a": [{"b": 1}]}]
    run_id = new_run_id()
    recorded = RunWriter(
        Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, paths=["suite.yaml"], agents=["a"])
    )
    references = recorded.plan([PlannedCase(case(f"c{n}"), "a", None, 1, 1) for n in range(len(values))])
    with monkeypatch.context() as careless:
        careless.setattr(store_writer.figures, "attempt", lambda one: one)
        for number, value in enumerate(values):
            body = attempt(f"suite.yaml::c{number}", 1)
            body.replies = [Reply(1, "the answer", usage=Usage(value, value), cost=value, latency_ms=value)]
            recorded.done(references[number][0], body)
        recorded.state("finished", 2000.0)
        recorded.close()
    (tmp_path / "tui_eval.yaml").write_text(
        yaml.safe_dump({"agents": {"it": {"type": "replay", "run": run_id}}})
    )
    cases = [
        {"name": f"c{number}", "input": "hello", "expected": {"should_contain": ["the answer"]}}
        for number in range(len(values))
    ]
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump({"agent": "it", "test_cases": cases}))
    _, reader = await go(tmp_path)
    rows = reader.attempts()
    for row, value in zip(rows, values, strict=True):
        one = reader.attempt(row.id)
        assert one is not None
        # What is of another type than the record has is no record.
        wanted = "passed" if isinstance(value, int | float) else "error"
        assert one.outcome == wanted and "Traceback" not in one.message, (value, one.message)
        assert "\n" not in one.message and (one.usage is None or one.usage == Usage())
    reader.close()


def no_wonder(result: Any) -> None:
    """What is kept of verdicts has figures or none."""
    body = Attempt("s::c", 1, result.outcome, verdicts=result.verdicts)
    figures.attempt(body)
    assert all(math.isfinite(verdict.score) for verdict in body.verdicts)
    assert "\n" not in result.message or result.outcome != "error", result.message


RUBRIC = {"type": "llm-rubric", "value": "nice"}
NO_NUMBER = ("NaN", "Infinity", "1e400", "400 digits", "5,000 digits", "list", "nested", "deep")


@pytest.mark.parametrize("name", FIGURES)
async def test_a_judges_score(name: str) -> None:
    said = FIGURES[name]
    services, _ = services_answering(*[f'{{"reason": "r", "pass": true, "score": {said}}}'] * 2)
    plain, limited = await judged(RUBRIC, services), await judged(RUBRIC | {"threshold": 0.9}, services)
    assert plain.outcome == "passed", plain.message
    wanted = "error" if name in NO_NUMBER else "passed" if name == "2**63" else "failed"
    assert limited.outcome == wanted, limited.message
    alone, _ = services_answering(f'{{"reason": "r", "score": {said}}}')
    only = await judged(RUBRIC, alone)
    assert only.outcome == ("error" if name in NO_NUMBER else "failed" if name == "minus one" else "passed")
    for result in (plain, limited, only):
        no_wonder(result)


@pytest.mark.parametrize("name", FIGURES)
async def test_a_score_that_a_judge_alone_decides_by(name: str) -> None:
    given = {"type": "g-eval", "value": "coherent"}
    services, _ = services_answering({"steps": ["a"]}, f'{{"reason": "r", "score": {FIGURES[name]}}}')
    result = await judged(given, services)
    beyond = name in ("2**63", "minus one")  # of the scale from 0 to 10
    assert result.outcome == ("error" if name in NO_NUMBER or beyond else "failed")
    no_wonder(result)


async def test_a_judge_that_answers_too_deeply_is_no_judge() -> None:
    services, _ = services_answering('{"a":' * 50_000)
    result = await judged(RUBRIC, services)
    assert result.outcome == "error" and "too many opening braces" in result.message


JAVASCRIPT = {"2**63": "2 ** 63", "400 digits": "9".ljust(400, "9"), "5,000 digits": "9" * 5000}
PYTHON = {
    "NaN": "float('nan')", "Infinity": "float('inf')", "400 digits": "10 ** 400", "5,000 digits": "10 ** 5000",
}  # fmt: skip
POSITIVE = ("2**63", "Infinity", "1e400", "400 digits", "5,000 digits")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", FIGURES)
async def test_what_javascript_returns(name: str, services: JudgeServices) -> None:
    """Infinity is above 0, as in promptfoo."""
    code = JAVASCRIPT.get(name, FIGURES[name])
    number = await judged({"type": "javascript", "value": code}, services)
    # How deep a value may be is Python's matter: from 3.12 on it comes here, and is no score.
    deep = ("error", "failed") if name == "deep" else ("failed",)
    assert number.outcome in (("passed",) if name in POSITIVE else deep), number.message
    graded = await judged(
        {
            "type": "javascript",
            "value": f"({{pass: true, score: {code}, reason: 'r', namedScores: {{a: {code}}}}})",
        },
        services,
    )
    # JSON, by which it comes here, has no infinity: never a pass by a score that is none.
    assert graded.outcome in (("passed",) if name in ("2**63", "minus one") else deep), graded.message
    for result in (number, graded):
        no_wonder(result)
        assert all(math.isfinite(score) for score in (result.named_scores or {}).values())


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", FIGURES)
async def test_what_python_returns(name: str, services: JudgeServices) -> None:
    code = PYTHON.get(name, FIGURES[name])
    number = await judged({"type": "python", "value": code}, services)
    assert number.outcome == ("passed" if name in ("2**63", "text") else "failed"), number.message
    graded = await judged(
        {
            "type": "python",
            "value": f"{{'pass': True, 'score': {code}, 'reason': 'r', 'namedScores': {{'a': {code}}}}}",
        },
        services,
    )
    assert graded.outcome == ("passed" if name in ("2**63", "minus one") else "failed"), graded.message
    for result in (number, graded):
        no_wonder(result)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", FIGURES)
async def test_a_suites_own_scoring(name: str, services: JudgeServices) -> None:
    code = JAVASCRIPT.get(name, FIGURES[name])
    options = {"assertScoringFunction": f"({{pass: true, score: {code}, reason: 'r'}})"}
    result = await judged({"type": "contains", "value": "answer"}, services, options=options)
    assert result.outcome == ("passed" if name in ("2**63", "minus one") else "failed"), result.message
    assert math.isfinite(result.score)


@pytest.fixture
def any_server() -> Iterator[AnyServer]:
    with AnyServer() as running:
        yield running


async def test_classifiers_and_moderation(any_server: AnyServer) -> None:
    for name, said in FIGURES.items():
        any_server.plan.append(Planned(raw=f'[[{{"label": "pos", "score": {said}}}]]'.encode()))
        agent = model(hugging_face(any_server))
        if name in ("2**63", "minus one", "text"):
            assert math.isfinite((await agent.scores("x"))["pos"])
        else:
            with pytest.raises(AgentError, match="did not answer with scores"):
                await agent.scores("x")
        await agent.close()
        # What is flagged is flagged, whatever its score.
        flags = f'{{"flagged": true, "categories": {{"hate": true}}, "category_scores": {{"hate": {said}}}}}'
        any_server.plan.append(Planned(raw=f'{{"results": [{flags}]}}'.encode()))
        agent = model({"id": "openai:moderation", "config": {"apiBaseUrl": any_server.url, "apiKey": "k"}})
        found = await agent.scores("x")
        assert found.keys() == {"hate"} and math.isfinite(found["hate"])
        await agent.close()


@pytest.mark.parametrize(
    "result", ['{"flagged": true, "categories": [1]}', '{"flagged": true, "category_scores": 3}']
)
async def test_a_moderation_without_categories(any_server: AnyServer, result: str) -> None:
    any_server.plan.append(Planned(raw=f'{{"results": [{result}]}}'.encode()))
    agent = model({"id": "openai:moderation", "config": {"apiBaseUrl": any_server.url, "apiKey": "k"}})
    with pytest.raises(AgentError, match="did not answer with scores"):
        await agent.scores("x")
    await agent.close()


async def test_embeddings(any_server: AnyServer) -> None:
    from tests.support.agents import agent

    for name, said in FIGURES.items():
        any_server.plan.append(Planned(raw=f'{{"data": [{{"embedding": [{said}, 1]}}]}}'.encode()))
        it = agent("openai", base_url=any_server.url, model="m", api_key="k")
        assert isinstance(it, OpenAIAgent)
        if name in ("2**63", "minus one", "text"):
            assert all(map(math.isfinite, (await it.embed(["x"]))[0][0]))
        else:
            with pytest.raises(AgentError, match="embeddings"):
                await it.embed(["x"])
        await it.close()


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("vector", [[], [1.7e308, 1.7e308]], ids=["of nothing", "too long"])
async def test_vectors_that_cannot_be_compared_are_no_verdict(metric: str, vector: list[float]) -> None:
    async def embed(provider: Any, texts: list[str]) -> list[list[float]]:
        return [vector, [-one for one in vector]]

    for kind in ("similar", "not-similar"):
        given = {"type": f"{kind}:{metric}", "value": "x", "threshold": 0}
        result = await judged(given, JudgeServices(embed=embed))
        assert result.outcome == "error" and "embedding model" in result.message, (kind, result.message)


@pytest.mark.real
async def test_the_webhook_that_judges(any_server: AnyServer) -> None:
    for said in [*_LISTED, "[" * 200_000]:
        any_server.plan.append(Planned(raw=f'{{"pass": true, "reason": "r", "score": {said}}}'.encode()))
        result = await judged({"type": "webhook", "value": any_server.url}, JudgeServices(trust=Trust(True)))
        no_json = said in ("NaN", "Infinity") or said not in _LISTED
        assert result.outcome == ("failed" if no_json else "passed"), result.message
        no_wonder(result)


def test_a_part_of_a_reply_in_another_shape_is_dropped_and_the_rest_can_be_read_again() -> None:
    """Agents of other packages fill replies themselves; what is written must be read."""
    given = Reply(1, "the answer")
    for key in ("metadata", "structure", "sly_data", "guardrails"):
        setattr(given, key, [1])
    given.model, given.finish_reason = 7, {"stop": 1}  # pyright: ignore[reportAttributeAccessIssue]
    with figures.dropped_figures() as dropped:
        kept = msgspec.json.decode(msgspec.json.encode(figures.reply(given)), type=Reply)
    assert kept == Reply(1, "the answer")
    assert [line.partition(" unknown")[0] for line in dropped] == [
        "metadata", "structure", "sly data", "guardrails", "model", "finish reason",
    ]  # fmt: skip
