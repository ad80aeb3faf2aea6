"""promptfoo's providers against real servers: http in all its parts, relays, files, responses."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest
from aiohttp import web

from tests.servers.base import Planned, Seen, Server
from tests.servers.openai import OpenAIServer
from tests.support.agents import context, of, services, talk
from tui_eval.agents import Agent, AgentError, Request, create, for_embeddings, for_provider
from tui_eval.agents.promptfoo.provider_response import read_response
from tui_eval.config.project import Config, ConfigError
from tui_eval.events import Message, Note, Retrying, ToolCall, UsageReport
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Reply, Usage

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")


class AnyServer(Server):
    """Answers `body` (JSON) or `raw` to every path, and a token under /token."""

    def routes(self, app: web.Application) -> None:
        app.router.add_route("*", "/{path:.*}", self.answer)

    def default(self, seen: Seen) -> Planned:
        if seen.path == "/token":
            return Planned(body={"access_token": "fresh", "expires_in": 3600})
        return Planned(body={"answer": f"{seen.path} {seen.text}"})

    async def answer(self, request: web.Request) -> web.Response:
        seen = await self.see(request)
        planned = self.next(seen)
        if planned.delay:
            await asyncio.sleep(planned.delay)
        if planned.raw is not None:
            return web.Response(body=planned.raw, status=planned.status, headers=planned.headers)
        return web.json_response(planned.body, status=planned.status, headers=planned.headers)


@pytest.fixture
def server() -> Iterator[AnyServer]:
    with AnyServer() as running:
        yield running


def provider(entry: Any, root: Path | str = "/", target: Any = None, **more: Any) -> Agent:
    known: list[Agent] = []
    handed = services(root, **more)

    def agent(spec: Any) -> Agent:
        known.append(create(spec, handed))
        return known[-1]

    handed.agent = handed.agent or agent
    return create(for_provider(entry, Config(Path(root)), root, target), handed)


def http(server: AnyServer, path: str = "/chat", **config: Any) -> dict[str, Any]:
    return {"id": f"{server.url}{path}", "config": config}


async def asked(
    server: AnyServer, root: Path | str = "/", prompt: str = "hi", vars: dict[str, Any] | None = None,  # noqa: A002
    reference: bool = False, **config: Any,
) -> Reply:  # fmt: skip
    agent = provider(http(server, **config), root)
    try:
        request = Request(1, prompt, vars=vars or {})
        _, replies = await talk(agent, request, reference=reference)
        return replies[0]
    finally:
        await agent.close()


POST = {"method": "POST", "body": {"message": "{{prompt}}"}}


async def test_get_is_the_default_and_sends_no_body(server: AnyServer) -> None:
    await asked(
        server, body={"message": "{{prompt}}"}, queryParams={"q": "{{prompt}} & {{v}}"}, vars={"v": 1}
    )
    seen = server.requests[0]
    assert (seen.method, seen.text) == ("GET", "")


async def test_a_post_without_a_body_is_refused(server: AnyServer) -> None:
    with pytest.raises(AgentError, match=r"config\.body is missing"):
        await asked(server, method="POST")


@pytest.mark.parametrize(
    ("config", "prompt", "sent"),
    [
        (POST, 'say "hi"\n', {"message": 'say "hi"\n'}),
        ({"method": "POST", "body": {"m": "{{messages}}"}}, "x", {"m": [1, 2]}),
        ({"method": "POST", "body": '{"m": "{{prompt}}"}', "headers": {"Content-Type": "application/json"}},
         'a "b"', {"m": 'a "b"'}),
        (POST | {"transformRequest": "({message: prompt.toUpperCase(), n: 1})"}, "a", {"message": "A", "n": 1}),
        (POST | {"transformRequest": "(p, vars) => p + vars.messages"}, "a", {"message": "a[1, 2]"}),
        (POST | {"transformRequest": '{"text": "{{prompt}}"}'}, "a", {"message": '{"text": "a"}', "text": "a"}),
        ({"method": "POST", "body": {"t": "{{tools}}"}, "tools": [{"name": "x"}]}, "a", {"t": [{"name": "x"}]}),
    ],
)  # fmt: skip
async def test_bodies(server: AnyServer, config: dict[str, Any], prompt: str, sent: Any) -> None:
    await asked(server, prompt=prompt, vars={"messages": "[1, 2]"}, **config)
    body = server.requests[0].body
    if "text" in (body or {}):
        sent = {**sent, "message": body["message"]}
    assert body == sent


async def test_a_raw_request(server: AnyServer) -> None:
    text = (
        f"POST /raw?x={{{{prompt}}}} HTTP/1.1\nHost: 127.0.0.1:{server.port}\nX-A: {{{{v}}}}\n"
        'Content-Type: application/json\n\n{"m": "{{prompt}}"}\n'
    )
    agent = provider({"id": "http", "config": {"request": text, "transformResponse": "json.answer"}})
    _, replies = await talk(agent, Request(1, "hi", vars={"v": "b"}))
    await agent.close()
    seen = server.requests[0]
    assert (seen.method, seen.path, seen.body, seen.headers["X-A"]) == ("POST", "/raw", {"m": "hi"}, "b")
    assert replies[0].text.startswith("/raw")


@pytest.mark.parametrize(
    ("parser", "answer", "output"),
    [
        (None, {"a": 1}, {"a": 1}),
        ("json.a", {"a": "x"}, "x"),
        ("json.missing", {"a": "x"}, {}),
        ("(json, text, context) => context.response.status + text", {"a": 1}, '200{"a": 1}'),
        ("const a = json.a;\nreturn a + 1", {"a": 1}, 2),
        (
            "({output: json.a, metadata: {m: 1}, tokenUsage: {prompt: 2, completion: 3}, cost: 0.5})",
            {"a": "x"},
            "x",
        ),
        ("file://parse.js", {"a": "x"}, "file x"),
        ("file://parse.js:named", {"a": "x"}, "named x"),
        ("file://parse.py:get", {"a": "x"}, "python x"),
    ],
)
async def test_answers(
    tmp_path: Path, server: AnyServer, parser: str | None, answer: Any, output: Any
) -> None:
    (tmp_path / "parse.js").write_text(
        "module.exports = (json) => `file ${json.a}`; module.exports.named = (json) => `named ${json.a}`;"
    )
    (tmp_path / "parse.py").write_text("def get(json, text, context):\n    return 'python ' + json['a']\n")
    server.plan.append(Planned(body=answer))
    config: dict[str, Any] = {**POST, **({"transformResponse": parser} if parser else {})}
    reply = await asked(server, tmp_path, **config)
    assert (reply.text if reply.output is None else reply.output) == output
    assert reply.metadata is not None and reply.metadata["http"]["status"] == 200
    if parser and "tokenUsage" in parser:
        assert reply.metadata["m"] == 1 and reply.cost == 0.5
        assert reply.usage is not None and reply.usage.output_tokens == 3


async def test_an_error_status_is_an_error_unless_told_otherwise(server: AnyServer) -> None:
    bad = Planned(status=500, body={"error": "boom"})
    server.plan.append(bad)
    with pytest.raises(AgentError, match=r"HTTP 500.*boom"):
        await asked(server, **POST)
    server.plan.append(bad)
    assert (await asked(server, **POST, validateStatus="status => status >= 500")).output == {"error": "boom"}
    server.plan.append(bad)
    assert (await asked(server, **POST, reference=True)).output == {"error": "boom"}
    with pytest.raises(AgentError, match="HTTP 200"):
        await asked(server, **POST, validateStatus="status === 201")


async def test_a_busy_server_is_asked_again(server: AnyServer) -> None:
    server.plan.extend([Planned(status=429, body={}, headers={"Retry-After": "0"})] * 2)
    agent = provider(http(server, **POST))
    events, replies = await talk(agent, "hi")
    await agent.close()
    assert len(of(events, Retrying)) == 2 and replies[0].output is not None


async def test_sessions(server: AnyServer) -> None:
    server.plan.extend([Planned(body={"id": "S1"}), Planned(body={"answer": "x", "next": "S2"})])
    config = {
        "method": "POST",
        "body": {"session": "{{sessionId}}"},
        "session": {"url": f"{server.url}/begin", "responseParser": "data.body.id"},
        "sessionParser": "data.body.next",
    }
    reply = await asked(server, **config)
    assert [seen.path for seen in server.requests] == ["/begin", "/chat"]
    assert server.requests[1].body == {"session": "S1"}
    assert reply.metadata is not None and reply.metadata["sessionId"] == "S2"


async def test_the_rows_own_session_is_kept(server: AnyServer) -> None:
    reply = await asked(server, **POST, vars={"sessionId": "mine"})
    assert reply.metadata is not None and reply.metadata["sessionId"] == "mine"


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ({"type": "bearer", "token": "{{t}}"}, "Bearer secret-t"),
        ({"type": "basic", "username": "u", "password": "p"}, "Basic " + base64.b64encode(b"u:p").decode()),
    ],
)
async def test_signing_in(server: AnyServer, auth: dict[str, Any], header: str) -> None:
    await asked(server, **POST, auth=auth, vars={"t": "secret-t"})
    assert server.requests[0].headers["Authorization"] == header


async def test_signing_in_with_a_key(server: AnyServer) -> None:
    await asked(server, **POST, auth={"type": "api_key", "keyName": "X-Key", "value": "k"})
    assert server.requests[0].headers["X-Key"] == "k"


async def test_signing_in_with_oauth_asks_once(server: AnyServer) -> None:
    auth = {
        "type": "oauth", "grantType": "client_credentials", "tokenUrl": f"{server.url}/token",
        "clientId": "c", "clientSecret": "s", "scopes": ["a", "b"],
    }  # fmt: skip
    agent = provider(http(server, **POST, auth=auth))
    await talk(agent, "one", "two")
    await agent.close()
    paths = [seen.path for seen in server.requests]
    assert paths == ["/token", "/chat", "/chat"]
    assert parse_qs(server.requests[0].text)["scope"] == ["a b"]
    assert server.requests[2].headers["Authorization"] == "Bearer fresh"


async def test_a_form_with_a_file(tmp_path: Path, server: AnyServer) -> None:
    (tmp_path / "a.txt").write_text("file text")
    parts = [
        {"kind": "field", "name": "q", "value": "{{prompt}}"},
        {"kind": "file", "name": "doc", "source": {"type": "path", "path": "file://a.txt"}},
    ]
    await asked(server, tmp_path, method="POST", multipart={"parts": parts})
    seen = server.requests[0]
    assert seen.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert 'name="q"\r\n\r\nhi\r\n' in seen.text
    assert 'name="doc"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nfile text' in seen.text


async def test_a_webhook(server: AnyServer) -> None:
    server.plan.append(Planned(body={"output": "heard"}))
    agent = provider({"id": f"webhook:{server.url}/hook", "config": {"a": 1}})
    _, replies = await talk(agent, "hi")
    await agent.close()
    assert replies[0].text == "heard"
    assert server.requests[0].body == {"prompt": "hi", "config": {"a": 1}}


@needs_node
async def test_a_javascript_file(tmp_path: Path) -> None:
    (tmp_path / "p.js").write_text(
        "const path = require('node:path');\n"
        "module.exports = class { constructor(o) { this.o = o; } id() { return 'x'; }\n"
        "  async callApi(prompt, context) { console.log('printed');\n"
        "    return {output: prompt + this.o.config.suffix + context.vars.v, tokenUsage: {total: 3}}; } };\n"
    )
    agent = provider({"id": "file://p.js", "config": {"suffix": "!"}}, tmp_path)
    _, replies = await talk(agent, Request(1, "hi", vars={"v": 2}))
    await agent.close()
    assert replies[0].text == "hi!2"


@needs_node
async def test_an_error_that_a_javascript_file_returns_is_one_also_as_an_object(tmp_path: Path) -> None:
    """An Error is `{}` in JSON, beside which an output passed; promptfoo takes whatever is no nothing for an error."""
    for error, said in (("new Error('boom')", "boom"), ("{}", "{}"), ("[]", r"\[\]")):
        (tmp_path / "p.js").write_text(
            "module.exports = class { id() { return 'x'; }\n"
            f"  async callApi() {{ return {{output: 'fallback', error: {error}}}; }} }};\n"
        )
        agent = provider({"id": "file://p.js"}, tmp_path)
        with pytest.raises(AgentError, match=said) as caught:
            await talk(agent, "hi")
        assert caught.value.answer == "fallback"
        await agent.close()
    for nothing in (None, False, "", 0):
        assert read_response({"output": "x", "error": nothing}, 1)[1].text == "x"


@needs_node
async def test_what_a_javascript_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "p.js").write_text(
        "module.exports = class { constructor(options) { this.options = options; }\n"
        "  async callApi(prompt, context) { context.logger.info('logged', 1); context.logger.debug('not');\n"
        "    const cache = await context.getCache(); await cache.set('k', 1);\n"
        "    return {output: {options: this.options, same: context.originalProvider === this,\n"
        "      cached: await cache.get('k'), keys: Object.keys(context).sort()}}; } };\n"
    )
    entry = {"id": "file://p.js", "label": "L", "config": {"a": 1}, "env": {"X": "y"}}
    agent = provider(entry, tmp_path)
    events, replies = await talk(agent, Request(1, "hi"))
    await agent.close()
    told = replies[0].output
    config = {"a": 1, "basePath": str(tmp_path)}
    assert told["options"] == {"id": "file://p.js", "label": "L", "config": config, "env": {"X": "y"}}
    assert told["same"] is True and told["cached"] == 1
    assert {"evaluationId", "filters", "getCache", "logger", "prompt", "repeatIndex", "test", "vars"} < set(
        told["keys"]
    )
    assert [event.text for event in of(events, Note)] == ["printed: info: logged 1"]


@needs_node
@pytest.mark.parametrize(
    ("provider_file", "imported", "said"),
    [
        ("throw new Error('too many')", "", "p.js:2: Error: too many"),
        ("require('./deep.js')()", "module.exports = () => {\n\n  null.x };", "p.js, deep.js:3: TypeError: "),
        ("require('own')()", "", "p.js:2: Error: of the package"),
        ("throw 'a text'", "", "p.js: a text"),
        ("return JSON.parse('{')", "", "p.js:2: SyntaxError: "),
    ],
)
async def test_where_a_javascript_file_failed_is_said(
    tmp_path: Path, provider_file: str, imported: str, said: str
) -> None:
    (tmp_path / "p.js").write_text(f"module.exports = async () => {{\n  {provider_file} }};\n")
    (tmp_path / "deep.js").write_text(imported)
    package = tmp_path / "node_modules" / "own"
    package.mkdir(parents=True)
    (package / "index.js").write_text("module.exports = () => { throw new Error('of the package') };\n")
    agent = provider({"id": "file://p.js"}, tmp_path)
    with pytest.raises(AgentError) as failed:
        await talk(agent, Request(1, "hi"))
    await agent.close()
    assert str(failed.value).startswith(said)


@pytest.mark.parametrize("name", ["python:p.py", "file://p.py:call_api", "exec:python3 p.py"])
async def test_what_scripts_are_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "p.py").write_text(
        "import json, sys\n\n"
        "def call_api(prompt, options, context):\n    return {'output': json.dumps(options)}\n\n"
        "if __name__ == '__main__':\n    print(sys.argv[2])\n"
    )
    agent = provider({"id": name, "label": "L", "config": {"a": 1}, "env": {"X": "y"}}, tmp_path)
    _, replies = await talk(agent, Request(1, "hi"))
    await agent.close()
    config = {"a": 1, "basePath": str(tmp_path)}
    assert json.loads(replies[0].text) == {"id": name, "config": config, "env": {"X": "y"}}


def test_a_javascript_file_needs_trust(tmp_path: Path) -> None:
    (tmp_path / "p.js").write_text("module.exports = 1")
    spec = for_provider("file://p.js", Config(tmp_path), tmp_path)
    with pytest.raises(NeedsTrust, match=r"p\.js with node"):
        create(spec, services(tmp_path, trusted=False))


async def test_a_sequence_speaks_to_the_columns_provider() -> None:
    config = {"inputs": ["first {{prompt}}", "second {{v}}"], "separator": " | "}
    agent = provider({"id": "sequence", "config": config}, target="echo")
    events, replies = await talk(agent, Request(1, "p", vars={"v": 3}))
    assert replies[0].text == "first p | second 3"
    assert [(event.agent, event.text) for event in of(events, Message)][:2] == [
        ("user", "first p"), ("", "first p"),
    ]  # fmt: skip


async def test_a_relay_without_a_target_says_so() -> None:
    with pytest.raises(ConfigError, match="provider of the column"):
        provider({"id": "sequence", "config": {"inputs": ["a"]}})


async def test_a_simulated_user_until_the_goal() -> None:
    says = ["I want a refund", "Order 7", "###STOP###"]
    seen: list[str] = []

    async def ask(system: str, prompt: str) -> str:
        seen.append(system)
        return says.pop(0)

    with OpenAIServer(Planned(text="Which order?"), Planned(text="Done.")) as target:
        entry = {"id": "openai:chat:m", "config": {"apiBaseUrl": target.base}}
        user = {"id": "promptfoo:simulated-user", "config": {"maxTurns": 5}}
        agent = provider(user, target=entry, ask_model=ask)
        _, replies = await talk(agent, Request(1, "You are helpful", vars={"instructions": "get money back"}))
        sent = target.requests[-1].body["messages"]
    assert "get money back" in seen[0]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert replies[0].text == (
        "User: I want a refund\n---\nAssistant: Which order?\n---\nUser: Order 7\n---\nAssistant: Done."
    )
    assert replies[0].metadata is not None and len(replies[0].metadata["messages"]) == 4


async def test_each_input_of_a_sequence_is_asked_by_itself() -> None:
    with OpenAIServer(Planned(text="one"), Planned(text="two")) as target:
        entry = {"id": "openai:chat:m", "config": {"apiBaseUrl": target.base}}
        agent = provider({"id": "sequence", "config": {"inputs": ["a", "b"]}}, target=entry)
        _, replies = await talk(agent, "p")
        sent = [[message["content"] for message in seen.body["messages"]] for seen in target.requests]
    assert sent == [["a"], ["b"]] and replies[0].text == "one\n---\ntwo"


@pytest.mark.parametrize(
    ("kind", "last"),
    [
        ("openai", Planned(status=400)),
        ("openai", Planned(text="three", cut=True)),
        ("http", Planned(status=400)),
    ],
    ids=["refused", "cut", "an endpoint"],
)
async def test_what_a_sequence_had_paid_counts_where_its_last_request_fails(kind: str, last: Planned) -> None:
    """Of two answers that were paid for the second counted alone, of an endpoint of one's own none: a cost limit let
    more be spent, and a table of costs said less."""
    said: list[UsageReport] = []
    inputs = {"id": "sequence", "config": {"inputs": ["a", "b", "c"]}}
    with OpenAIServer(Planned(text="one"), Planned(text="two"), last) as target:
        entry: dict[str, Any] = {"id": "openai:chat:gpt-4.1", "config": {"apiBaseUrl": target.base}}
        if kind == "http":
            body = {"model": "m", "messages": [{"role": "user", "content": "{{prompt}}"}]}
            read = "({output: json.choices[0].message.content, tokenUsage: {prompt: 12, completion: 7}, cost: 0.5})"
            entry = {
                "id": f"{target.base}/chat/completions",
                "config": {"method": "POST", "body": body, "transformResponse": read},
            }
        session = await provider(inputs, target=entry).open(context())
        with pytest.raises(AgentError):
            async for event in session.send(Request(1, "p")):
                said += [event] if isinstance(event, UsageReport) else []
        await session.close()
    assert (said[-1].usage.input_tokens, said[-1].usage.output_tokens) == (24, 14)
    assert said[-1].cost == pytest.approx(1.0 if kind == "http" else 24 * 2e-6 + 14 * 8e-6)


OPENING = [
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "I am {{v}}"},
    {"role": "x", "content": "no"},
]


@pytest.mark.parametrize("where", ["config", "vars", "json", "file"])
async def test_a_simulated_user_goes_on_with_messages(server: AnyServer, tmp_path: Path, where: str) -> None:
    asked: list[str] = []

    async def ask(system: str, prompt: str) -> str:
        asked.append(prompt)
        return f"again {len(asked)}"

    server.plan.extend(Planned(body={"output": f"answer {number}"}) for number in (1, 2, 3))
    (tmp_path / "opening.yaml").write_text(json.dumps(OPENING))
    given: Any = {"json": json.dumps(OPENING), "file": "file://opening.yaml"}.get(where, OPENING)
    config = {"maxTurns": 2, **({} if where == "vars" else {"initialMessages": given})}
    vars = {"v": "Ann", **({"initialMessages": given} if where == "vars" else {})}  # noqa: A001
    target = f"webhook:{server.url}/hook"
    agent = provider({"id": "promptfoo:simulated-user", "config": config}, tmp_path, target, ask_model=ask)
    _, replies = await talk(agent, Request(1, "be kind", vars=vars))
    sent = [[message["content"] for message in json.loads(seen.body["prompt"])] for seen in server.requests]
    first = ["be kind", "Hello", "I am Ann"]
    assert sent == [
        first,
        [*first, "answer 1", "again 1"],
        [*first, "answer 1", "again 1", "answer 2", "again 2"],
    ]
    assert replies[0].text.startswith("Assistant: Hello\n---\nUser: I am Ann\n---\nAssistant: answer 1")


async def test_a_simulated_user_with_a_target_that_remembers(server: AnyServer) -> None:
    async def ask(system: str, prompt: str) -> str:
        return "hello"

    config = {
        "method": "POST",
        "body": {"m": "{{prompt}}", "s": "{{sessionId}}"},
        "sessionParser": "data.body.s",
    }
    server.plan.extend(Planned(body={"s": "S1"}) for _ in range(2))
    agent = provider(
        {"id": "promptfoo:simulated-user", "config": {"maxTurns": 2, "stateful": True}},
        target=http(server, **config), ask_model=ask,
    )  # fmt: skip
    _, replies = await talk(agent, Request(1, "be kind"))
    roles = [[message["role"] for message in seen.body["m"]] for seen in server.requests]
    assert roles == [["system", "user"], ["user"]]
    assert [seen.body["s"] for seen in server.requests] == ["", "S1"]
    assert replies[0].metadata is not None and replies[0].metadata["sessionId"] == "S1"


@pytest.mark.parametrize(
    ("given", "said"), [("nonsense", "neither a list nor JSON"), ("file://none.json", "No such file")]
)
async def test_messages_that_cannot_be_read(tmp_path: Path, given: str, said: str) -> None:
    async def ask(system: str, prompt: str) -> str:
        return ""

    entry = {"id": "promptfoo:simulated-user", "config": {"initialMessages": given}}
    agent = provider(entry, tmp_path, "echo", ask_model=ask)
    with pytest.raises(AgentError, match=said):
        await talk(agent, "p")


async def test_a_simulated_user_needs_a_model() -> None:
    agent = provider({"id": "promptfoo:simulated-user"}, target="echo")
    with pytest.raises(AgentError, match="judge:"):
        await talk(agent, "p")


async def test_responses(server: AnyServer) -> None:
    server.plan.append(
        Planned(
            body={
                "model": "gpt-4.1",
                "status": "completed",
                "output": [
                    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'},
                    {"type": "message", "content": [{"type": "output_text", "text": "hello"}]},
                ],
                "usage": {"input_tokens": 4, "output_tokens": 2},
            }
        )
    )
    entry = {
        "id": "openai:responses:gpt-4.1",
        "config": {"apiBaseUrl": f"{server.url}/v1", "max_tokens": 5, "instructions": "brief"},
    }
    agent = provider(entry)
    events, replies = await talk(agent, "hi")
    await agent.close()
    body = server.requests[0].body
    assert server.requests[0].path == "/v1/responses"
    assert body["input"] == "hi" and body["instructions"] == "brief" and body["max_output_tokens"] == 1024
    assert of(events, ToolCall)[0].arguments == {"a": 1}
    assert replies[0].text.endswith("hello") and replies[0].usage is not None
    assert replies[0].finish_reason == "stop"


async def test_embeddings(server: AnyServer) -> None:
    data = [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 2]}]
    server.plan.append(Planned(body={"data": data, "usage": {"prompt_tokens": 4, "total_tokens": 4}}))
    entry = {"id": "openai:embedding:small", "config": {"apiBaseUrl": f"{server.url}/v1"}}
    agent = create(
        for_embeddings(entry, Config(Path("/")), "/"), services(prices={"small": {"input": 500_000.0}})
    )
    vectors, usage, cost = await agent.embed(["a", "b"])  # type: ignore[attr-defined]
    assert (vectors, usage, cost) == ([[1.0, 2.0], [3.0, 4.0]], Usage(4), 2.0)
    assert server.requests[0].body == {"model": "small", "input": ["a", "b"]}
    server.plan.append(Planned(body={"data": "no"}))
    with pytest.raises(AgentError, match="did not answer with embeddings"):
        await agent.embed(["a"])  # type: ignore[attr-defined]
    await agent.close()


def test_what_nothing_speaks_to_says_how_to_map_it() -> None:
    for name in ("bedrock:anthropic.claude", "golang:p.go", "mcp"):
        with pytest.raises(
            ConfigError,
            match=r"(?:needs LiteLLM: pip .*; or|no agent for it;|nothing here speaks to it;) map it in tui_eval\.yaml with providers:",
        ):
            for_provider(name, Config(Path("/")), "/")


def test_specs_survive_the_store() -> None:
    spec = for_provider({"id": "sequence", "config": {}}, Config(Path("/")), "/", "echo")
    assert json.loads(msgspec.json.encode(spec))["options"]["target"]["type"] == "echo"


async def test_a_program_cut_while_it_starts_is_killed() -> None:
    agent = provider({"id": 'exec:sh -c "sleep 60"'})
    task = asyncio.ensure_future(talk(agent, "hi"))
    await asyncio.sleep(0)  # it is about to start
    task.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    "told", [{"output": {"rate": math.nan}}, {"output": "x", "metadata": {"m": [math.inf]}}]
)
def test_a_number_that_json_has_not_is_no_output(told: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match="NaN or an infinite number, which JSON cannot hold") as caught:
        read_response({**told, "cost": 0.5}, 1)
    assert caught.value.spent == UsageReport(Usage(), 0.5)


@pytest.mark.parametrize(
    "told", [{"cost": math.nan}, {"tokenUsage": {"total": math.inf}}, {"raw": [math.nan]}]
)
def test_of_python_no_number_at_all_may_be_one_that_json_has_not(told: dict[str, Any]) -> None:
    """promptfoo reads what Python says as JSON: the row was an error there, and passed here."""
    with pytest.raises(AgentError, match="NaN or an infinite number, which JSON cannot hold"):
        read_response({"output": "x", **told}, 1, of_python=True)
    assert read_response({"output": "x", **told}, 1)[1].text == "x"


def test_what_a_provider_takes_for_an_error_is_spent() -> None:
    told = {"tokenUsage": {"prompt": 3, "completion": 4}, "cost": 0.5}
    with pytest.raises(AgentError) as caught:
        read_response({"error": "quota", **told}, 1)
    assert caught.value.spent == UsageReport(Usage(3, 4), 0.5)
    with pytest.raises(AgentError) as caught:
        read_response({"error": "quota"}, 1)
    assert caught.value.spent is None
