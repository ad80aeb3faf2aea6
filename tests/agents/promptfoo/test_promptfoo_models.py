"""What promptfoo's model providers ask for and take for their output, as promptfoo 0.121.20 was seen to (94 requests
beside each other)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.agents.promptfoo.test_promptfoo_providers import AnyServer, needs_node, provider
from tests.scripting.python.test_python_host import alive
from tests.servers.base import Planned
from tests.support.agents import context, of, talk
from tests.support.waiting import until
from tui_eval.agents import AgentError, Request, Services, Session, create, for_provider
from tui_eval.agents.promptfoo.promptfoo_models import betas, chat, messages, responses, spoken
from tui_eval.config.project import Config, ConfigError, fill
from tui_eval.events import Event, Finished, Note, ReasoningDelta, TextDelta, ToolCall
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Reply

VARIABLES = ("OPENAI_MAX_TOKENS", "OPENAI_TEMPERATURE", "OPENAI_TOP_P", "OPENAI_MAX_COMPLETION_TOKENS",
             "OPENAI_API_HOST", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL", "OPENAI_ORGANIZATION",
             "ANTHROPIC_MAX_TOKENS", "ANTHROPIC_TEMPERATURE", "OLLAMA_API_KEY", "OLLAMA_BASE_URL")  # fmt: skip
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
USUAL = {"max_tokens": 1024, "temperature": 0}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[AnyServer]:
    with AnyServer() as running:
        yield running


@pytest.mark.parametrize(
    ("model", "given", "asked"),
    [
        ("m", {}, USUAL),
        ("m", {"omitDefaults": True}, {}),
        ("m", {"max_tokens": 0, "temperature": 0.5, "seed": 1, "stop": ["x"], "top_p": 0.9}, {
            "max_tokens": 0, "temperature": 0.5, "seed": 1, "stop": ["x"], "top_p": 0.9}),
        ("m", {"reasoning_effort": "low", "verbosity": "low", "max_completion_tokens": 3}, USUAL),
        ("m", {"parallel_tool_calls": False, "logprobs": True, "passthrough": {"logprobs": True}}, {
            **USUAL, "logprobs": True}),
        ("m", {"service_tier": "auto", "user": "u", "metadata": {"a": 1}, "store": False}, {
            **USUAL, "service_tier": "auto", "user": "u", "metadata": {"a": 1}, "store": False}),
        ("o4-mini", {"max_tokens": 5, "max_completion_tokens": 9, "temperature": 1, "reasoning_effort": "low"}, {
            "max_completion_tokens": 9, "reasoning_effort": "low"}),
        ("gpt-5", {"verbosity": "low", "reasoning": {"effort": "high"}}, {"verbosity": "low"}),
        ("openai/o3", {"reasoning": {"effort": "high"}}, {"reasoning": {"effort": "high"}}),
        ("ft:o3-mini:me", {"temperature": 1}, {}),
        ("gpt-oss-20b", {"reasoning_effort": "low"}, {**USUAL, "reasoning_effort": "low"}),
        ("m", {"passthrough": {"model": "o3", "x": 1}}, {"model": "o3", "x": 1}),
        ("gpt-4o-audio", {}, {
            **USUAL, "modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}),
    ],
)  # fmt: skip
def test_chat(model: str, given: dict[str, Any], asked: dict[str, Any]) -> None:
    assert chat(model, given) == asked


@pytest.mark.parametrize(
    ("model", "given", "asked"),
    [
        ("m", {"max_tokens": 5}, {"max_output_tokens": 1024, "temperature": 0, "text": {"format": {"type": "text"}}}),
        ("gpt-5", {"reasoning_effort": "low", "verbosity": "high", "temperature": 1}, {
            "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}, "verbosity": "high"}}),
        ("o3", {"reasoning": {"effort": "high", "summary": "auto"}, "reasoning_effort": "low", "max_output_tokens": 7}, {
            "max_output_tokens": 7, "reasoning": {"effort": "high", "summary": "auto"},
            "text": {"format": {"type": "text"}}}),
        ("m", {"omitDefaults": True, "tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}},
               "parallel_tool_calls": 1, "store": None, "truncation": "auto"}, {
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
            "tool_choice": {"type": "function", "name": "f"}, "text": {"format": {"type": "text"}},
            "parallel_tool_calls": True, "store": False, "truncation": "auto"}),
        ("m", {"omitDefaults": True, "response_format": {"type": "json_schema", "json_schema": {"schema": {}}}}, {
            "text": {"format": {"type": "json_schema", "name": "response_schema", "schema": {}, "strict": True}}}),
    ],
)  # fmt: skip
def test_responses(model: str, given: dict[str, Any], asked: dict[str, Any]) -> None:
    assert responses(model, given) == asked


@pytest.mark.parametrize(
    ("model", "given", "asked"),
    [
        ("claude-x", {}, USUAL),
        ("claude-x", {"top_p": 0.5, "temperature": 1, "top_k": 3}, {"max_tokens": 1024, "top_p": 0.5, "top_k": 3}),
        ("claude-x", {"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_p": 0.5, "top_k": 3,
                      "tools": [TOOL], "tool_choice": "required"}, {
            "max_tokens": 2048, "top_p": 0.95, "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "f", "input_schema": {"type": "object"}}]}),
        ("claude-opus-4-8", {"temperature": 1, "thinking": {"type": "enabled", "budget_tokens": 9}}, {
            "max_tokens": 2048, "thinking": {"type": "adaptive"}}),
        ("claude-opus-5", {"top_p": 1}, {"max_tokens": 2048}),
        ("claude-x", {"tool_choice": "required", "effort": "low", "output_format": {"type": "json_schema"},
                      "extra_body": {"z": 1}}, {
            **USUAL, "tool_choice": {"type": "any"}, "z": 1,
            "output_config": {"format": {"type": "json_schema"}, "effort": "low"}}),
    ],
)  # fmt: skip
def test_anthropic(model: str, given: dict[str, Any], asked: dict[str, Any]) -> None:
    assert messages(model, given) == asked


def test_the_environment_says_what_the_suite_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_TEMPERATURE", "0.7")
    monkeypatch.setenv("OPENAI_MAX_TOKENS", "99")
    monkeypatch.setenv("ANTHROPIC_MAX_TOKENS", "77")
    assert chat("m", {"temperature": 0.1}) == {"max_tokens": 99, "temperature": 0.1}
    assert chat("m", {"omitDefaults": True}) == {"max_tokens": 99, "temperature": 0.7}
    assert responses("o3", {})["max_output_tokens"] == 99
    assert messages("claude-x", {})["max_tokens"] == 77


def test_beta_features() -> None:
    assert betas({"beta": ["a"], "output_format": {"type": "json_schema"}}, "b, a") == (
        "a,b,structured-outputs-2025-11-13"
    )
    assert betas({}) == ""


@pytest.mark.parametrize(
    ("config", "variables", "url"),
    [
        ({"apiHost": "h", "apiBaseUrl": "http://u/v1"}, {}, "https://h/v1"),
        ({"apiBaseUrl": "http://u/v1"}, {"OPENAI_API_HOST": "e"}, "http://u/v1"),
        ({}, {"OPENAI_API_HOST": "e", "OPENAI_BASE_URL": "http://b/v1"}, "https://e/v1"),
        ({}, {"OPENAI_BASE_URL": "http://b/v1", "OPENAI_API_BASE_URL": "http://a/v1"}, "http://a/v1"),
    ],
)
def test_which_server(
    config: dict[str, Any], variables: dict[str, str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    entry = {"id": "openai:chat:m", "config": {**config, "organization": "org"}}
    spec = fill(for_provider(entry, Config(Path("/")), "/"), Trust())
    assert spec.options["base_url"] == url
    assert spec.options["headers"] == {"OpenAI-Organization": "org"}


async def asked(
    server: AnyServer,
    provider_id: str,
    planned: Planned,
    prompt: str | Request = "hi",
    test: Any = True,
    **config: Any,
) -> tuple[list[Any], Reply]:
    server.plan.append(planned)
    base = server.url if provider_id.startswith("anthropic") else f"{server.url}/v1"
    agent = provider({"id": provider_id, "config": {"apiBaseUrl": base, "apiKey": "none", **config}})
    try:
        events, replies = await talk(agent, prompt, test={"vars": {}} if test else None)
        return events, replies[0]
    finally:
        await agent.close()


def completion(finish: str = "stop", **message: Any) -> Planned:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return Planned(body={"model": "m", "choices": [choice]})


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}


@pytest.mark.parametrize(
    ("planned", "config", "output", "reason"),
    [
        (completion(content="x", reasoning_content="hm"), {}, "Thinking: hm\n\nx", "stop"),
        (completion(content="x", reasoning="hm"), {"showThinking": False}, "x", "stop"),
        (completion(content='{"a": 1}'), {"response_format": SCHEMA}, {"a": 1}, "stop"),
        (completion(content="no"), {"response_format": SCHEMA}, "no", "stop"),
        (completion("tool_calls", content=None, tool_calls=[CALL]), {}, [CALL], "tool_calls"),
        (completion("function_call", content=None, function_call={"name": "f", "arguments": "{}"}), {},
         {"name": "f", "arguments": "{}"}, "tool_calls"),
        (completion("content_filter", content=""), {}, "Content filtered by provider", "content_filter"),
        (completion(content=None, refusal="no way"), {}, "no way", "stop"),
        (completion(content=[{"type": "text", "text": "x"}]), {}, [{"type": "text", "text": "x"}], "stop"),
        (completion(content={}), {}, {}, "stop"),
    ],
)  # fmt: skip
async def test_chat_outputs(
    server: AnyServer, planned: Planned, config: dict[str, Any], output: Any, reason: str
) -> None:
    _, reply = await asked(server, "openai:chat:m", planned, **config)
    assert (reply.text if reply.output is None else reply.output) == output
    assert reply.finish_reason == reason
    flagged = reply.guardrails is not None and reply.guardrails.get("flagged") is True
    assert flagged == (output in ("Content filtered by provider", "no way"))


async def test_a_chat_s_answer_stays_text_where_its_format_stands_in_a_file(
    server: AnyServer, tmp_path: Path
) -> None:
    (tmp_path / "f.json").write_text(json.dumps(SCHEMA))
    given = {"response_format": f"file://{tmp_path}/f.json"}
    _, reply = await asked(server, "openai:chat:m", completion(content='{"a": 1}'), **given)
    assert (reply.text, reply.output) == ('{"a": 1}', None)
    assert server.requests[0].body["response_format"] == SCHEMA


@pytest.mark.parametrize("in_file", [True, False])
async def test_a_format_s_schema_may_stand_in_a_file_of_its_own(
    server: AnyServer, tmp_path: Path, in_file: bool
) -> None:
    (tmp_path / "s.yaml").write_text("{type: object}")
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": f"file://{tmp_path}/s.yaml"}}
    (tmp_path / "f.json").write_text(json.dumps(form))
    given = f"file://{tmp_path}/f.json" if in_file else form
    await asked(server, "openai:chat:m", completion(content="{}"), response_format=given)
    assert server.requests[0].body["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize("key", ["tools", "functions"])
async def test_lists_of_files_are_the_tools_of_all(server: AnyServer, tmp_path: Path, key: str) -> None:
    (tmp_path / "several.json").write_text(json.dumps([{"name": "a"}, {"name": "b"}]))
    (tmp_path / "one.yaml").write_text("name: c\n")
    given: Any = [f"file://{tmp_path}/several.json", {"name": "own"}, f"file://{tmp_path}/one.yaml"]
    await asked(server, "openai:chat:m", completion(content="x"), **{key: given})
    assert [one["name"] for one in server.requests[0].body[key]] == ["a", "b", "own", "c"]


MODELS = ("openai:chat:m", "openai:responses:m", "anthropic:messages:m", "ollama:chat:m")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("code", ["t.py:mine", pytest.param("t.js:mine", marks=needs_node)])
async def test_functions_of_the_suite_give_tools(
    server: AnyServer, tmp_path: Path, model: str, code: str
) -> None:
    """Each case was an error: there is no file `t.py:mine`."""
    (tmp_path / "t.py").write_text(
        "def mine():\n    open('ran', 'a').write('x')\n    return [{'name': 'made'}]\n"
    )
    (tmp_path / "t.js").write_text("module.exports.mine = async () => [{ name: 'made' }];")
    config = {"apiBaseUrl": server.url, "apiKey": "none", "tools": [f"file://{code}", {"name": "own"}]}
    agent = provider({"id": model, "config": config}, tmp_path)
    for _ in range(2):
        with suppress(AgentError):  # what the server answers is no model's
            await talk(agent, "hi")
    await agent.close()
    asked_for = [one.body["tools"] for one in server.requests]
    assert len(asked_for) == 2 and asked_for[0] == asked_for[1]
    assert [one["name"] for one in asked_for[0]] == ["made", "own"]
    assert not code.startswith("t.py") or (tmp_path / "ran").read_text() == "x"


async def test_strict_tools_of_a_function_are_announced_to_anthropic(
    server: AnyServer, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text("def mine(): return [{'name': 'made', 'strict': True}]")
    config = {"apiBaseUrl": server.url, "apiKey": "none", "tools": "file://t.py:mine", "beta": ["own"]}
    with suppress(AgentError):  # what the server answers is no model's
        await talk(provider({"id": "anthropic:messages:m", "config": config}, tmp_path), "hi")
    assert server.requests[0].headers["anthropic-beta"] == "own,structured-outputs-2025-11-13"


@pytest.mark.parametrize(("given", "said"), [("None", "nothing"), ("'abc'", "abc"), ("3", "3")])
async def test_what_is_no_list_of_tools_is_said_before_anything_is_sent(
    server: AnyServer, tmp_path: Path, given: str, said: str
) -> None:
    (tmp_path / "t.py").write_text(f"def mine(): return {given}")
    with pytest.raises(AgentError, match=f"t.py:mine gives {said}, and must give a list of tools"):
        await asked(server, "openai:chat:m", completion(), tools=f"file://{tmp_path}/t.py:mine")
    assert not server.requests


@pytest.mark.parametrize("model", MODELS)
def test_functions_that_give_tools_are_not_in_the_model_s_time(tmp_path: Path, model: str) -> None:
    """Only the first attempts had it, and ended at a short limit."""
    (tmp_path / "t.py").write_text("")
    assert not provider(model, tmp_path).preparing
    entry = {"id": model, "config": {"tools": "file://t.py:mine"}}
    assert provider(entry, tmp_path).preparing == "loading tools"


async def test_only_tools_are_what_a_function_gives(server: AnyServer, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("def mine(): return []")
    with pytest.raises(ConfigError, match=r"parameters\.functions: cannot read"):
        await asked(server, "openai:chat:m", completion(), functions=f"file://{tmp_path}/t.py:mine")
    assert not server.requests


def test_functions_that_give_tools_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("")
    entry = {"id": "openai:chat:m", "config": {"tools": "file://t.py:mine"}}
    spec = for_provider(entry, Config(tmp_path), tmp_path)
    with pytest.raises(NeedsTrust, match=r"run t\.py"):
        create(spec, Services(root=tmp_path, trust=Trust()))


async def test_a_file_whose_aliases_unfold_to_billions_of_values_is_refused(
    server: AnyServer, tmp_path: Path
) -> None:
    """A kilobyte of tools took the machine's memory, and the whole run with it."""
    lines = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    (tmp_path / "t.yaml").write_text(f"a0: &a0 [x]\n{lines}")
    with pytest.raises(ConfigError, match=r"cannot read t\.yaml: its aliases unfold to more than"):
        await asked(server, "openai:chat:m", completion(content="{}"), tools=f"file://{tmp_path}/t.yaml")
    assert not server.requests


def calling(*names: str) -> Planned:
    calls = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": '{"a": 2}'}}
        for name in names
    ]
    return completion("tool_calls", content=None, tool_calls=calls)


CALLBACKS = {
    "double": "(args) => JSON.parse(args).a * 2",
    "object": "async (args) => ({got: args})",
    "nothing": "() => undefined",
    "fails": "() => { throw new Error('no') }",
    "filed": "file://f.js:named",
}


@pytest.mark.parametrize(
    ("names", "output"),
    [
        (["double"], "4"),
        (["object", "double"], '{"got":"{\\"a\\": 2}"}\n4'),
        (["double", "unknown"], "4"),
        (["filed"], "filed 2"),
        (["nothing"], ""),
        (["unknown"], None),
        (["double", "fails"], None),
    ],
)
async def test_functions_of_the_suite_answer_calls(
    server: AnyServer, tmp_path: Path, names: list[str], output: str | None
) -> None:
    (tmp_path / "f.js").write_text("module.exports.named = (args) => 'filed ' + JSON.parse(args).a;")
    server.plan.append(calling(*names))
    config = {"apiBaseUrl": f"{server.url}/v1", "apiKey": "k", "functionToolCallbacks": CALLBACKS}
    agent = provider({"id": "openai:chat:m", "config": config}, tmp_path)
    events, replies = await talk(agent, "hi", test={"vars": {}})
    await agent.close()
    assert [event.name for event in of(events, ToolCall)] == names
    assert "functionToolCallbacks" not in server.requests[0].body
    if output is None:
        assert isinstance(replies[0].output, list) and len(replies[0].output) == len(names)
    else:
        assert (replies[0].text, replies[0].output) == (output, None)


CODE = """
import os, subprocess, sys

calls = 0


def keeps(arguments):
    global calls
    calls += 1
    print("called", calls)
    return f"{os.getpid()} {calls}"


def starts(arguments):
    code = "import os, time; os.setsid(); print(flush=True); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    child.stdout.readline()
    return child.pid


def ends(arguments):
    os._exit(3)
"""


@pytest.mark.real
@pytest.mark.parametrize("kind", ["chat", "responses"])
async def test_functions_of_the_suite_have_a_process_of_their_attempt(
    server: AnyServer, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "f.py").write_text(CODE)
    names = ["keeps", "starts", "ends"]
    config = {
        "apiBaseUrl": f"{server.url}/v1",
        "apiKey": "k",
        "functionToolCallbacks": {name: f"file://f.py:{name}" for name in names},
    }
    agent = provider({"id": f"openai:{kind}:m", "config": config}, tmp_path)

    async def called(session: Session, name: str) -> tuple[list[Event], Reply]:
        output = [{"type": "function_call", "call_id": "c", "name": name, "arguments": "{}"}]
        server.plan.append(calling(name) if kind == "chat" else Planned(body={"output": output}))
        events = [event async for event in session.send(Request(1, "hi"))]
        return events, of(events, Finished)[0].reply

    one, other = await agent.open(context(1)), await agent.open(context(2))
    first, second, others = [(await called(who, "keeps"))[1].text.split() for who in (one, one, other)]
    assert first[0] == second[0] != others[0] and [first[1], second[1], others[1]] == ["1", "2", "1"]
    events, _ = await called(other, "ends")
    notes = [event.text for event in of(events, Note)]
    assert len(notes) == 1 and "functionToolCallbacks.ends: f.py: the suite's process ended" in notes[0]
    assert "the calls themselves are the output" in notes[0]
    started = int((await called(one, "starts"))[1].text)
    assert alive(started)
    await one.close()
    await until(lambda: not alive(started))  # not only at the end of the run
    await other.close()
    await agent.close()


async def test_functions_of_the_suite_answer_calls_of_responses(server: AnyServer) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "double", "arguments": '{"a": 2}'}
    planned = Planned(body={"output": [said("see"), call, {**call, "name": "other"}]})
    _, reply = await asked(server, "openai:responses:m", planned, functionToolCallbacks=CALLBACKS)
    assert reply.text == "see\n4\n" + json.dumps({**call, "name": "other"}, separators=(",", ":"))


async def test_a_judge_says_no_thoughts(server: AnyServer) -> None:
    _, reply = await asked(server, "openai:chat:m", completion(content="x", reasoning="hm"), test=False)
    assert reply.text == "x"


async def test_variables_stand_in_tools(server: AnyServer) -> None:
    tool = {"type": "function", "function": {"name": "{{v}}"}}
    await asked(
        server, "openai:chat:m", completion(content="x"), Request(1, "hi", vars={"v": "named"}), tools=[tool]
    )
    assert server.requests[0].body["tools"][0]["function"]["name"] == "named"


def item(**given: Any) -> dict[str, Any]:
    return given


def said(text: str, kind: str = "output_text") -> dict[str, Any]:
    key = "refusal" if kind == "refusal" else "text"
    return {"type": "message", "role": "assistant", "content": [{"type": kind, key: text}]}


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ([item(type="reasoning", summary=[{"text": "a"}, {"text": "b"}]), said("x")], "Reasoning: a\nb\nx"),
        ([said("a"), said("b")], "a\nb"),
        ([said("ignored"), said("no", "refusal")], "no"),
        ([item(type="web_search_call", action={"type": "search", "query": "q"}), said("x")], 'Web Search: "q"\nx'),
        ([item(type="web_search_call", action={"type": "open_page", "url": "u"}), said("x")], "Opening page: u\nx"),
        ([item(type="web_search_call", status="failed", error="e"), said("x")],
         "Web Search Call (status: failed) (Error: e)\nx"),
        ([item(type="mcp_call", name="n", output="o"), said("x")], "MCP Tool Result (n): o\nx"),
        ([item(type="mcp_call", name="n", error="e"), said("x")], "MCP Tool Error (n): e\nx"),
        ([item(type="code_interpreter_call", code="1+1"), said("2")], "Code Interpreter: 1+1\n2"),
        ([item(type="image_generation_call"), said("x")], "x"),
    ],
)  # fmt: skip
async def test_responses_outputs(server: AnyServer, output: list[Any], text: str) -> None:
    _, reply = await asked(
        server, "openai:responses:m", Planned(body={"status": "completed", "output": output})
    )
    assert reply.text == text
    assert (reply.guardrails == {"flagged": True}) == (text == "no")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"message": "inside"}}, "reported an error: inside"),
        ({"output": []}, "answered without output"),
    ],
)
async def test_responses_without_an_answer(server: AnyServer, body: Any, told: str) -> None:
    with pytest.raises(AgentError, match=told):
        await asked(server, "openai:responses:m", Planned(body=body))


def message(*content: dict[str, Any], stop: str = "end_turn") -> Planned:
    return Planned(body={"model": "claude-x", "content": list(content), "stop_reason": stop})


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
USE = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}


@pytest.mark.parametrize(
    ("planned", "config", "output", "reason"),
    [
        (message({"type": "text", "text": "a"}, {"type": "text", "text": "b"}), {}, "a\n\nb", "stop"),
        (message(THOUGHT, {"type": "text", "text": "x"}), {}, "Thinking: hm\nSignature: s\n\nx", "stop"),
        (message(THOUGHT, {"type": "text", "text": "x"}), {"showThinking": False}, "x", "stop"),
        (message({"type": "redacted_thinking", "data": "zz"}, {"type": "text", "text": "x"}), {},
         "Redacted Thinking: zz\n\nx", "stop"),
        (message({"type": "text", "text": "x"}, USE, stop="tool_use"), {},
         "x\n\n" + json.dumps(USE, separators=(",", ":")), "tool_calls"),
        (message({"type": "text", "text": '{"a":1}'}), {"output_format": {"type": "json_schema"}}, {"a": 1}, "stop"),
        (message({"type": "text", "text": "x"}, stop="refusal"), {}, "x", "content_filter"),
        (message({"type": "text", "text": "x"}, stop="max_tokens"), {}, "x", "length"),
    ],
)  # fmt: skip
async def test_anthropic_outputs(
    server: AnyServer, planned: Planned, config: dict[str, Any], output: Any, reason: str
) -> None:
    _, reply = await asked(server, "anthropic:messages:claude-x", planned, **config)
    assert (reply.text if reply.output is None else reply.output) == output
    assert reply.finish_reason == reason
    assert (reply.guardrails is not None) == (reason == "content_filter")


async def test_a_dialogue_in_a_text_for_anthropic(server: AnyServer) -> None:
    text = "system: be brief\nuser: hello\n  more\n\nassistant: hi\nuser: bye"
    await asked(server, "anthropic:messages:claude-x", message({"type": "text", "text": "x"}), text)
    body = server.requests[0].body
    assert body["system"] == "be brief"
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("user", "hello\nmore"), ("assistant", "hi"), ("user", "bye"),
    ]  # fmt: skip
    assert spoken("no: dialogue\n\n  at all") is None
    assert spoken("no: dialogue\n\n  at all\n", always=True) == [
        {"role": "user", "content": "no: dialogue\nat all"}
    ]
    assert spoken(" \n", always=True) is None
    assert spoken("first\nuser: x") == [
        {"role": "user", "content": "first"},
        {"role": "user", "content": "x"},
    ]


def lines(*pieces: dict[str, Any]) -> Planned:
    end = {"done": True, "prompt_eval_count": 4, "eval_count": 2}
    return Planned(raw="".join(json.dumps(piece) + "\n" for piece in (*pieces, end)).encode())


async def test_ollama_streams_a_chat(server: AnyServer) -> None:
    planned = lines({"message": {"content": "hel", "thinking": "hm"}}, {"message": {"content": "lo"}})
    config = {
        "num_predict": 5,
        "temperature": 0.1,
        "unknown": 1,
        "think": True,
        "tools": [TOOL],
        "passthrough": {"z": 1},
    }
    events, reply = await asked(server, "ollama:chat:llama3", planned, **config)
    seen = server.requests[0]
    assert seen.path == "/api/chat" and seen.body == {
        "model": "llama3", "messages": [{"role": "user", "content": "hi"}], "stream": True,
        "options": {"num_predict": 5, "temperature": 0.1}, "think": True, "tools": [TOOL], "z": 1,
    }  # fmt: skip
    assert [event.text for event in of(events, TextDelta)] == ["hel", "lo"]
    assert of(events, ReasoningDelta)[0].text == "hm"
    assert reply.text == "hello" and reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (4, 2)


@pytest.mark.parametrize("name", ["ollama:completion:llama3", "ollama:llama3"])
async def test_ollama_completes_a_text(server: AnyServer, name: str) -> None:
    _, reply = await asked(server, name, lines({"response": "hel"}, {"response": "lo"}))
    assert server.requests[0].path == "/api/generate"
    assert server.requests[0].body == {"model": "llama3", "prompt": "hi", "stream": True, "options": {}}
    assert reply.text == "hello"


@pytest.mark.parametrize("text", ["", "look"])
async def test_ollama_calls_tools(server: AnyServer, text: str) -> None:
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    events, reply = await asked(
        server, "ollama:chat:m", lines({"message": {"content": text, "tool_calls": [call]}})
    )
    told = [{"function": {"name": "f", "arguments": '{"a":1}'}}]
    assert reply.output == ({"content": text, "tool_calls": told} if text else told)
    assert of(events, ToolCall)[0].arguments == {"a": 1}


async def test_what_ollama_calls_is_no_text_outside_promptfoo(server: AnyServer) -> None:
    """`should_contain` passed for what a tool was asked; a call of another shape was an error of Python's."""
    call = {"function": {"name": "f", "arguments": {"city": "Riga"}}}
    planned = lines({"message": {"content": "", "tool_calls": [call, {"function": "f"}]}})
    events, reply = await asked(server, "ollama:chat:m", planned, test=None)
    assert reply.text == "" and reply.output is None
    assert [(one.name, one.arguments) for one in events if isinstance(one, ToolCall)] == [
        ("f", {"city": "Riga"}),
        ("", None),
    ]


@pytest.mark.parametrize(
    ("planned", "told"),
    [
        (Planned(status=404, body={"error": "model not found"}), "HTTP 404 .*model not found"),
        (Planned(raw=b'{"error": "out of memory"}\n'), "reported an error: out of memory"),
        (Planned(raw=b"<html>\n"), "is not JSON: <html>"),
    ],
)
async def test_ollama_fails(server: AnyServer, planned: Planned, told: str) -> None:
    with pytest.raises(AgentError, match=told):
        await asked(server, "ollama:chat:m", planned)


async def test_ollama_goes_on_with_a_conversation(server: AnyServer) -> None:
    server.plan.extend([lines({"message": {"content": "one"}}), lines({"message": {"content": "two"}})])
    agent = provider({"id": "ollama:chat:m", "config": {"apiBaseUrl": f"{server.url}/v1"}})
    await talk(agent, "a", "b")
    await agent.close()
    assert [one["content"] for one in server.requests[1].body["messages"]] == ["a", "one", "b"]
