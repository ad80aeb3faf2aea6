"""What agents of every protocol say in figures: a right answer stays right, what is no figure is unknown and
noted, and no limit is kept by it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.conftest import project
from tests.engine.test_runs import go
from tests.reliability.soak_server import body_of
from tests.servers import JsonServer, Planned
from tui_eval.agents.http.error_answers import retry_after
from tui_eval.agents.http.json_reply import Paths, read_reply
from tui_eval.agents.loose_json import decode
from tui_eval.agents.models.openai import add_usage
from tui_eval.agents.models.openai_stream import usage_of
from tui_eval.agents.models.prices import cost
from tui_eval.agents.nao.nao_agent import read_run
from tui_eval.agents.promptfoo.provider_response import read_response
from tui_eval.engine.otlp.listener import spans_of_json
from tui_eval.guard.figures import MOST
from tui_eval.model import Attempt, Usage

__all__ = ["project"]
HOSTILE = {
    "2**63": str(2**63), "1e400": "1e400", "minus one": "-1", "NaN": "NaN", "Infinity": "Infinity",
    "400 digits": "9" * 400, "5,000 digits": "9" * 5000, "true": "true", "text": '"12"', "object": "{}", "half": "1.5",
}  # fmt: skip
PATHS = {
    "openai": "/v1/chat/completions", "anthropic": "/v1/messages", "http": "/chat", "nao": "/api/test/run",
    "neuro-san": "/api/v1/net/streaming_chat", "ollama": "/api/chat",
}  # fmt: skip


def serve(kind: str, body: bytes, stack: ExitStack) -> dict[str, Any]:
    """The agent's entry; its server gives this body."""
    if kind == "openai":
        server = stack.enter_context(JsonServer(default=lambda _: Planned(raw=body)))
        return {"type": kind, "model": "gpt-4.1", "base_url": f"{server.url}/v1", "api_key": "k"}
    server = stack.enter_context(JsonServer(default=lambda _: Planned(raw=body)))
    entry: dict[str, Any] = {"type": kind, "url": server.url}
    if kind == "ollama":
        entry = {"type": kind, "model": "m", "base_url": server.url}
    if kind == "anthropic":
        entry = {"type": kind, "model": "claude-sonnet-4", "base_url": server.url, "api_key": "k"}
    return entry | ({"token": "t"} if kind == "nao" else {"network": "net"} if kind == "neuro-san" else {})


async def answered(root: Path, agent: dict[str, Any], expected: dict[str, Any]) -> Attempt:
    """The only attempt of a case that this agent answers."""
    (root / "tui_eval.yaml").write_text(yaml.safe_dump({"agents": {"it": agent}}))
    case = {"name": "one", "input": "hello", "expected": expected}
    (root / "suite.yaml").write_text(yaml.safe_dump({"agent": "it", "test_cases": [case]}))
    _, reader = await go(root, trust=True)
    (row,) = reader.attempts()
    attempt = reader.attempt(row.id)
    reader.close()
    assert attempt is not None and attempt.outcome == row.outcome
    return attempt


@pytest.mark.usually(12)
@pytest.mark.parametrize("figure", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("kind", PATHS)
async def test_a_right_answer_with_a_hostile_figure_is_right(tmp_path: Path, kind: str, figure: str) -> None:
    body, _ = body_of(PATHS[kind], "the answer", figure)
    with ExitStack() as stack:
        attempt = await answered(tmp_path, serve(kind, body, stack), {"should_contain": ["the answer"]})
    assert attempt.outcome == "passed", attempt.message
    assert attempt.usage is None or attempt.usage.input_tokens is None
    notes = [entry.text for entry in attempt.transcript if entry.kind == "note"]
    if not (figure == "true" or (kind == "http" and figure == "{}")):
        assert any("input tokens unknown: " in note for note in notes), notes
    assert len([note for note in notes if note.startswith("input tokens")]) <= 1


@pytest.mark.parametrize("figure", ["NaN", str(2**63), '"12"', "-1"])
async def test_no_limit_is_kept_by_a_count_that_is_none(tmp_path: Path, figure: str) -> None:
    body, _ = body_of(PATHS["openai"], "the answer", figure)
    with ExitStack() as stack:
        attempt = await answered(tmp_path, serve("openai", body, stack), {"max_input_tokens": 100})
    (verdict,) = attempt.verdicts
    assert verdict.passed is None and "unknown" in verdict.reason and attempt.outcome == "error"


@pytest.mark.real
@pytest.mark.parametrize("value", ["float('nan')", "'12'", "-5", "2**63"])
async def test_nor_by_metadata_of_the_guide(tmp_path: Path, value: str) -> None:
    (tmp_path / "bot.py").write_text(
        f"def answer(message):\n    return 'hi', {{'tool_call_count': {value}, 'input_tokens': {value}}}\n"
    )
    agent = {"type": "python", "function": "bot.py:answer"}
    attempt = await answered(tmp_path, agent, {"max_tool_calls": 100, "max_input_tokens": 100})
    assert [verdict.passed for verdict in attempt.verdicts] == [None, None]


MALFORMED = {
    "metadata text": ({"metadata": '{"escalated": true}'}, {"escalated": False}),
    "metadata list": ({"metadata": ["escalated"]}, {"escalated": False}),
    "metadata for another key": ({"metadata": ["x"]}, {"escalation_priority": None}),
    "metadata and calls": ({"metadata": "tool_call_count: 9"}, {"max_tool_calls": 2}),
    "metadata and tokens": ({"metadata": "output_tokens: 9"}, {"max_output_tokens": 2}),
    "usage list": ({"usage": [9000]}, {"max_output_tokens": 100}),
    "usage number": ({"usage": 9000}, {"max_input_tokens": 100}),
    "usage total": ({"usage": {"total_tokens": 9000}}, {"max_output_tokens": 100}),
    "usage half": ({"usage": {"input_tokens": 3, "total_tokens": 9000}}, {"max_output_tokens": 100}),
    "usage of others": ({"usage": {"candidatesTokenCount": 9000}}, {"max_output_tokens": 100}),
    "calls object": ({"tool_calls": {"name": "search"}}, {"max_tool_calls": 0}),
    "calls number": ({"tool_calls": 7}, {"max_tool_calls": 0}),
    "calls of numbers": ({"tool_calls": [1, 2]}, {"max_tool_calls": 0}),
}


@pytest.mark.real
@pytest.mark.usually(10)
@pytest.mark.parametrize("kind", ["http", "python"])
@pytest.mark.parametrize("name", MALFORMED)
async def test_what_is_reported_in_another_shape_is_unknown_and_not_absent(
    tmp_path: Path, kind: str, name: str
) -> None:
    said, expected = MALFORMED[name]
    body = {"reply": "the answer", **said}
    with ExitStack() as stack:
        entry: dict[str, Any] = {"type": "python", "function": "bot.py:answer"}
        if kind == "http":
            entry = serve("http", json.dumps(body).encode(), stack)
        (tmp_path / "bot.py").write_text(f"def answer(message):\n    return {body!r}\n")
        attempt = await answered(tmp_path, entry, expected)
    (verdict,) = attempt.verdicts
    assert verdict.passed is None and "unknown: " in verdict.reason, verdict.reason
    assert attempt.outcome == "error"
    replayed = await answered(tmp_path, {"type": "replay", "run": "last"}, expected)
    assert replayed.outcome == "error" and replayed.verdicts[0].reason == verdict.reason
    notes = [[e.text for e in one.transcript if e.kind == "note"] for one in (attempt, replayed)]
    assert notes[0] == notes[1] and verdict.reason.partition(": ")[2] in notes[0]


@pytest.mark.real
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"metadata": None, "usage": None, "tool_calls": None},
        {"metadata": {}, "usage": {}, "tool_calls": []},
        {"usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}},
        {"usage": {"total_tokens": 3}, "input_tokens": 1, "output_tokens": 2},
        {"usage": {"input_tokens": 1, "total_tokens": 3}, "output_tokens": 2},
        {"usage": {"total_tokens": 0}},
        {"usage": {"seconds": 2, "cached_tokens": 9}},
    ],
    ids=str,
)
async def test_what_is_absent_or_can_be_read_is_not_unknown(tmp_path: Path, said: dict[str, Any]) -> None:
    (tmp_path / "bot.py").write_text(f"def answer(message):\n    return {dict(reply='hi', **said)!r}\n")
    limits = {"max_output_tokens": 2, "max_input_tokens": 1, "max_tool_calls": 0, "escalated": False}
    attempt = await answered(tmp_path, {"type": "python", "function": "bot.py:answer"}, limits)
    assert attempt.outcome == "passed", attempt.message
    assert not [entry for entry in attempt.transcript if entry.kind == "note"]


@pytest.mark.parametrize("value", ["2**63", "float('inf')", "float('nan')", "-1", "10**400"])
async def test_events_of_a_python_agent(tmp_path: Path, value: str) -> None:
    (tmp_path / "bot.py").write_text(
        "from tui_eval.events import Finished, Held, Retrying, TextDelta, UsageReport\n"
        "from tui_eval.model import Reply, Usage\n"
        "def answer(message):\n"
        f"    figure = {value}\n"
        "    yield TextDelta('the ans')\n"
        "    yield UsageReport(Usage(figure, figure), 0.5)\n"
        "    yield TextDelta('wer')\n"
        "    yield Finished(Reply(turn=1, text='the answer', usage=Usage(figure, 3)))\n"
    )
    agent = {"type": "python", "function": "bot.py:answer"}
    attempt = await answered(tmp_path, agent, {"should_contain": ["the answer"]})
    if value in ("2**63", "-1"):  # the others are no event at all, which the error says
        assert attempt.outcome == "passed", attempt.message
        assert [entry.text for entry in attempt.transcript if entry.kind == "assistant"] == ["the answer"]
    else:
        assert attempt.outcome in ("passed", "error") and "OverflowError" not in attempt.message


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.integers(10**300, 10**500),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


def fits(usage: Usage | None, spent: float | None) -> bool:
    counts = [usage.input_tokens, usage.output_tokens, usage.cached_tokens] if usage else []
    known = all(one is None or (type(one) is int and 0 <= one <= MOST) for one in counts)
    return known and (spent is None or (type(spent) is float and 0 <= spent <= MOST))


@given(ANY, ANY, ANY)
def test_every_reader_gives_figures_or_nothing(one: Any, other: Any, third: Any) -> None:
    usage = usage_of(
        {"prompt_tokens": one, "completion_tokens": other, "prompt_tokens_details": {"cached_tokens": third}}
    )
    assert usage is not None and fits(usage, None)
    assert fits(add_usage(usage, usage), cost("gpt-4.1", usage, {}))
    _, reply = read_reply(
        {"reply": "x", "usage": {"input_tokens": one, "output": other}, "cost": third}, 1, Paths()
    )
    assert fits(reply.usage, reply.cost)
    _, reply = read_response(
        {"output": "x", "tokenUsage": {"prompt": one, "completion": other, "total": third}, "cost": one,
         "latencyMs": other, "logProbs": [third]}, 1)  # fmt: skip
    assert fits(reply.usage, reply.cost) and fits(None, reply.latency_ms)
    body = {
        "text": "x",
        "usage": {"inputTotalTokens": one, "outputTotalTokens": other},
        "cost": {"totalCost": third},
    }
    _, reply = read_run({**body, "durationMs": one}, 1)
    assert fits(reply.usage, reply.cost) and fits(None, reply.latency_ms)


@given(st.text() | st.floats().map(str) | st.integers().map(str) | st.sampled_from(
    ["1e400", "-inf", "nan", "9" * 5000, "Mon, 01 Jan 99999 00:00:00 GMT", "Mon, 31 Dec 9999 23:59:59 -2359",
     "Mon, 01 Jan 0001 00:00:00 +2359"]))  # fmt: skip
def test_retry_after_is_a_time_or_nothing(text: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: text})
        assert seconds is None or seconds >= 0


@pytest.mark.parametrize("figure", HOSTILE.values(), ids=HOSTILE)
def test_json_with_any_number_is_json(figure: str) -> None:
    assert decode(f'{{"a": {figure}, "b": 1}}'.encode())["b"] == 1


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 420,
          "completion_tokens_details": {"reasoning_tokens": 300}}, 320),
        ({"inputTokens": 100, "outputTokens": 20, "totalTokens": 420, "reasoningTokens": 300}, 320),
        ({"inputTokens": 100, "outputTokens": 20, "totalTokens": 120, "reasoningTokens": 15}, 20),
        ({"input_tokens": 100, "output_tokens": 20, "total_tokens": 420}, 20),  # of the conversation, perhaps
        ({"input_tokens": 100, "output_tokens": 20, "total_tokens": 420, "output_tokens_details": 7}, 20),
    ],
)  # fmt: skip
def test_thoughts_that_an_endpoint_says_beside_its_output_are_output(
    usage: dict[str, Any], output: int
) -> None:
    _, reply = read_reply({"reply": "x", "usage": usage}, 1, Paths())
    assert reply.usage == Usage(100, output)


CACHED = {"cache_read_input_tokens": 9000, "cache_creation_input_tokens": 500}


@pytest.mark.parametrize(
    ("usage", "given"),
    [
        ({"input_tokens": 10, **CACHED}, 9510),
        ({"input_tokens": 10, **CACHED, "cache_creation_input_tokens": None}, 9010),
        ({"input_tokens": 9510, "cache_read_input_tokens": 9000}, 9510),
        ({"prompt_tokens": 9510, **CACHED}, 9510),
    ],
)
def test_what_anthropics_own_usage_says_of_its_cache_is_input(usage: dict[str, Any], given: int) -> None:
    """An endpoint that hands it on took 10 tokens, and `max_input_tokens` passed."""
    _, reply = read_reply({"reply": "x", "usage": {**usage, "output_tokens": 3}}, 1, Paths())
    assert reply.usage == Usage(given, 3, 9000)


@pytest.mark.parametrize("figure", HOSTILE.values(), ids=HOSTILE)
def test_spans_have_times_or_none(figure: str) -> None:
    span = f'{{"traceId": "{"a" * 32}", "spanId": "{"b" * 16}", "name": "x", "startTimeUnixNano": {figure},'
    text = f'{span} "endTimeUnixNano": {figure}, "status": {{"code": {figure}}}}}'
    body = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{text}]}}]}}]}}'.encode()
    for _, found in spans_of_json(body):
        assert fits(None, found.start) and fits(None, found.end)
