"""What promptfoo 0.121.20's HTTP provider sends and reads, tried beside it (notes of the differential run: each rule
here was seen in both)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.promptfoo.test_promptfoo_providers import POST, AnyServer, asked, http, provider
from tests.servers.base import Planned
from tests.support.agents import services, talk
from tui_eval.agents import AgentError, Request, create, for_provider
from tui_eval.agents.promptfoo.promptfoo_request import shaped_choice, shaped_tools
from tui_eval.config.project import Config, ConfigError

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server() -> Iterator[AnyServer]:
    with AnyServer() as running:
        yield running


@pytest.mark.parametrize(
    ("config", "prompt", "sent"),
    [
        # A body that is JSON text is taken apart before it is filled in: a prompt cannot add keys.
        ({"headers": JSON, "body": '{"m": "{{prompt}}"}'}, 'x", "admin": "yes', '{"m":"x\\", \\"admin\\": \\"yes"}'),
        ({"headers": JSON, "body": '{"m": {{prompt}}}'}, "[1, 2]", '{"m":[1,2]}'),
        ({"headers": JSON, "body": '{"m": {{prompt}}}'}, "plain", '{"m": plain}'),
        ({"headers": JSON, "body": "{{prompt}}"}, "plain", "plain"),
        ({"body": {"a": " [1] ", "b": "{no", "{{k}}": "{# gone #}t"}}, "x", '{"a":[1],"b":"{no","{{k}}":"t"}'),
        ({"body": "q={{prompt}}\n"}, "x", "q=x"),
        ({"body": {"m": "{{prompt}}", "u": "{{v}}"}, "transformRequest": "({extra: prompt})"}, "x",
         '{"m":"x","u":"V","extra":"x"}'),
        ({"body": {"m": "{{prompt}}"}, "transformRequest": "[1, prompt]"}, "x", '{"m":[1,"x"]}'),
        ({"body": {"m": "{{prompt}}"}, "transformRequest": "(p, vars, context) => context.prompt.label"}, "x", '{"m":"x"}'),
    ],
)  # fmt: skip
async def test_bodies(server: AnyServer, config: dict[str, Any], prompt: str, sent: str) -> None:
    await asked(server, prompt=prompt, vars={"v": "V"}, method="POST", **config)
    assert server.requests[0].text == sent


async def test_to_the_letter_templates_beside_an_object_stay(server: AnyServer) -> None:
    config = {"method": "POST", "body": {"m": "{{prompt}}"}, "transformRequest": "({extra: prompt})"}
    await asked(server, reference=True, **config)
    assert server.requests[0].body == {"m": "{{prompt}}", "extra": "hi"}


async def test_a_body_of_files(tmp_path: Path, server: AnyServer) -> None:
    (tmp_path / "b.yaml").write_text('m: "{{prompt}}"\nanswer: yes\n')
    (tmp_path / "b.json").write_text('{"n": [1]}')
    await asked(server, tmp_path, method="POST", body="file://b.yaml")
    await asked(server, tmp_path, method="POST", body={"inner": "file://b.json"})
    assert [seen.body for seen in server.requests] == [{"m": "hi", "answer": "yes"}, {"inner": {"n": [1]}}]
    with pytest.raises(ConfigError, match=r"config\.body: file://no\.json: No such file"):
        await asked(server, tmp_path, method="POST", body="file://no.json")
    lines = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    (tmp_path / "b.yaml").write_text(f"a0: &a0 [x]\n{lines}")
    with pytest.raises(
        ConfigError, match=r"config\.body: file://b\.yaml: .*aliases that unfold to more than"
    ):
        await asked(server, tmp_path, method="POST", body="file://b.yaml")


async def test_a_body_that_does_not_fit_its_type(server: AnyServer) -> None:
    with pytest.raises(AgentError, match="content-type is text/plain"):
        await asked(server, method="POST", body={"a": 1}, headers={"Content-Type": "text/plain"})


async def test_the_method_is_a_template_and_the_config_s_url_counts(server: AnyServer) -> None:
    await asked(server, vars={"m": "PUT"}, method="{{m}}", body={}, url=f"{server.url}/own")
    assert (server.requests[0].method, server.requests[0].path) == ("PUT", "/own")


async def test_a_raw_request_goes_as_it_is(server: AnyServer) -> None:
    text = (
        f"POST /raw?q={{{{prompt}}}}&t={{% x %}} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 3\r\n\r\n"
        'a "{{prompt}}"\nb {{ v | dump }}\n\n'
    )
    agent = provider({"id": "http", "config": {"request": text}})
    await talk(agent, Request(1, 'a "b" c', vars={"v": {"x": 1}}))
    await agent.close()
    seen = server.requests[0]
    assert seen.text == 'a "a \\"b\\" c"\r\nb {"x":1}'
    assert seen.headers["Content-Type"] == "text/plain;charset=UTF-8"


@pytest.mark.parametrize("in_file", [False, True])
async def test_a_raw_request_of_the_provider_https_goes_over_tls(
    server: AnyServer, tmp_path: Path, in_file: bool
) -> None:
    """What it holds went over the line in the clear."""
    text = f"POST /raw HTTP/1.1\nHost: 127.0.0.1:{server.port}\n\n{{{{prompt}}}}"
    (tmp_path / "raw.txt").write_text(text, "utf-8")
    config = {"request": "file://raw.txt" if in_file else text, "maxRetries": 0}
    agent = provider({"id": "https", "config": config}, tmp_path)
    with pytest.raises(AgentError, match=r"https://127\.0\.0\.1"):
        await talk(agent, "hi")
    await agent.close()
    assert server.requests == []


@pytest.mark.parametrize("text", ["GET /x\nHost: h\n", "get /x HTTP/1.1\nHost: h\n", "GET /x FTP\nHost: h\n"])
async def test_a_raw_request_without_a_request_line(text: str) -> None:
    agent = provider({"id": "http", "config": {"request": text}})
    with pytest.raises(AgentError, match="is not a request line"):
        await talk(agent, "hi")
    await agent.close()


@pytest.mark.parametrize(
    ("answer", "parser", "output"),
    [
        ({"output": "x", "error": "e"}, None, {"output": "x", "error": "e"}),
        ({"error": "e"}, None, {"error": "e"}),
        ("0", None, "0"),
        ("false", None, "false"),
        ('""', None, '""'),
        ([], None, []),
        ({"a": 0}, "json.a", 0),
        ("0", "typeof json", "object"),
    ],
)
async def test_answers(server: AnyServer, answer: Any, parser: str | None, output: Any) -> None:
    raw = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
    server.plan.append(Planned(raw=raw))
    reply = await asked(server, **POST, **({"transformResponse": parser} if parser else {}))
    assert (reply.text if reply.output is None else reply.output) == output


async def test_a_transform_that_says_an_error_is_one(server: AnyServer) -> None:
    with pytest.raises(AgentError, match="no such order"):
        await asked(server, **POST, transformResponse="({error: 'no such order'})")
    reply = await asked(server, **POST, transformResponse="({error: 'no such order'})", reference=True)
    assert reply.output == {"error": "no such order"}


async def test_to_the_letter_an_empty_output_is_an_object(server: AnyServer) -> None:
    assert (await asked(server, **POST, transformResponse="''", reference=True)).output == {"output": ""}
    assert (await asked(server, **POST, transformResponse="0", reference=True)).output == {"output": 0}


async def test_a_null_where_the_reply_should_be_is_no_reply(server: AnyServer) -> None:
    """What must not be in an answer is not in `{}`: it would pass."""
    raw = json.dumps({"answer": {"text": None}}).encode()
    for reference in (False, True):
        server.plan.append(Planned(raw=raw))
        reply = await asked(server, **POST, transformResponse="json.answer.text", reference=reference)
        if reference:
            assert reply.output == {"output": None} and not reply.text_missing
        else:
            assert reply.output is None and reply.text == "" and reply.text_missing
    server.plan.append(Planned(raw=raw))
    assert (await asked(server, **POST, transformResponse="json.absent")).output == {}


@pytest.mark.parametrize("body", [{"error": {"code": "insufficient_quota"}}, {"type": "quota_exceeded"}])
@pytest.mark.parametrize("name", ["openai:chat:m", "http"])
async def test_a_spent_quota_is_not_asked_again(server: AnyServer, body: Any, name: str) -> None:
    server.plan.extend([Planned(status=429, body=body, headers={"Retry-After": "0"})] * 3)
    config = (
        {**POST, "url": f"{server.url}/chat"} if name == "http" else {"apiBaseUrl": server.url, "apiKey": "k"}
    )
    agent = provider({"id": name, "config": config})
    with pytest.raises(AgentError, match="HTTP 429"):
        await talk(agent, "hi")
    await agent.close()
    assert len(server.requests) == 1


async def test_what_a_transform_and_the_metadata_know_of_the_answer(server: AnyServer) -> None:
    server.plan.append(
        Planned(status=201, body={"a": 1}, headers={"X-A": "b", "Set-Cookie": "s=1", "X-Api-Key": "k"})
    )
    code = "JSON.stringify([context.response.statusText, context.response.headers['x-a'], context.response.data])"
    reply = await asked(server, **POST, transformResponse=code)
    assert json.loads(reply.text) == ["Created", "b", '{"a": 1}']
    assert reply.metadata is not None
    told = reply.metadata["http"]
    assert (told["status"], told["statusText"]) == (201, "Created")
    headers = {name.lower(): value for name, value in told["headers"].items()}
    assert (headers["x-a"], headers["set-cookie"], headers["x-api-key"]) == ("b", "[REDACTED]", "[REDACTED]")


@pytest.mark.parametrize(
    ("config", "counts"),
    [
        ({"tokenEstimation": {"enabled": True}, "transformResponse": "'a b c'"}, (3, 4)),
        ({"tokenEstimation": {"enabled": True, "multiplier": 2}, "transformRequest": "'a b c d'"}, (8, 2)),
        ({"tokenEstimation": {}}, None),
    ],
)
async def test_tokens_are_guessed_only_where_asked(
    server: AnyServer, config: dict[str, Any], counts: tuple[int, int] | None
) -> None:
    server.plan.append(Planned(raw=b"word"))
    usage = (await asked(server, prompt="two words", **POST, **config)).usage
    assert (usage and (usage.input_tokens, usage.output_tokens)) == counts


async def test_a_session_is_gone_on_with_where_the_vars_name_it(server: AnyServer) -> None:
    server.plan.extend(Planned(body={"id": name}) for name in ("S1", "-", "-", "S2", "-"))
    session = {"url": f"{server.url}/begin/{{{{v}}}}", "body": {"j": "[1]"}, "responseParser": "data.body.id"}
    agent = provider(http(server, method="POST", body={"s": "{{sessionId}}"}, session=session))
    for name in ("", "S1", "mine"):
        await talk(agent, Request(1, "hi", vars={"v": 1, **({"sessionId": name} if name else {})}))
    await agent.close()
    assert [(seen.path, seen.body) for seen in server.requests] == [
        ("/begin/1", {"j": "[1]"}), ("/chat", {"s": "S1"}), ("/chat", {"s": "S1"}),
        ("/begin/1", {"j": "[1]"}), ("/chat", {"s": "S2"}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("planned", "said"),
    [
        (Planned(status=500, body={"error": "full"}), "config.session: HTTP 500 from .*full"),
        (Planned(body={}), "holds no session id"),
    ],
)
async def test_a_session_that_does_not_begin(server: AnyServer, planned: Planned, said: str) -> None:
    server.plan.append(planned)
    session = {"url": f"{server.url}/begin", "responseParser": "data.body.id"}
    with pytest.raises(AgentError, match=said):
        await asked(server, **POST, session=session)
    assert server.requests[0].text == "" and "Content-Type" not in server.requests[0].headers


async def test_a_text_that_is_no_json_has_a_session(server: AnyServer) -> None:
    server.plan.append(Planned(raw=b"S9 and more"))
    reply = await asked(server, **POST, sessionParser="data.body.slice(0, 2)")
    assert reply.metadata is not None and reply.metadata["sessionId"] == "S9"


OAUTH = {
    "type": "oauth",
    "grantType": "password",
    "username": "u",
    "password": "p{{v}}-secret",
    "scopes": ["s{{v}}"],
}


async def test_a_token_for_each_sign_in(server: AnyServer) -> None:
    known: list[str] = []
    config = {**POST, "body": {"t": "{{token}}"}, "auth": {**OAUTH, "tokenUrl": f"{server.url}/token"}}
    agent = create(
        for_provider(http(server, **config), Config(Path("/")), "/"), services("/", conceal=known.append)
    )
    for value in (1, 1, 2):
        await talk(agent, Request(1, "hi", vars={"v": value}))
    await agent.close()
    assert [seen.path for seen in server.requests] == ["/token", "/chat", "/chat", "/token", "/chat"]
    assert server.requests[0].text == "grant_type=password&username=u&password=p1-secret&scope=s1"
    assert server.requests[1].body == {"t": "fresh"}
    assert {"p1-secret", "p2-secret", "fresh"} <= set(known)


@pytest.mark.parametrize("lasts", [30, 61])
async def test_a_token_about_to_end_is_asked_for_again(server: AnyServer, lasts: int) -> None:
    for _ in range(2):
        server.plan.extend([Planned(body={"access_token": "t", "expires_in": lasts}), Planned(body={})])
    agent = provider(http(server, **POST, auth={**OAUTH, "tokenUrl": f"{server.url}/token"}))
    await talk(agent, "one", "two")
    await agent.close()
    assert [seen.path for seen in server.requests].count("/token") == (2 if lasts == 30 else 1)


@pytest.mark.parametrize(
    ("planned", "said"),
    [
        (Planned(status=401, body={"error": "bad client"}), "no token, HTTP 401 from .*bad client"),
        (Planned(raw=b"<html>"), "did not answer with a token"),
        (Planned(body={"token": "x"}), r"did not answer with a token \(access_token\)"),
    ],
)
async def test_no_token(server: AnyServer, planned: Planned, said: str) -> None:
    server.plan.append(planned)
    with pytest.raises(AgentError, match=said):
        await asked(server, **POST, auth={**OAUTH, "tokenUrl": f"{server.url}/token"})


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        (
            {"type": "digest"},
            r"config\.auth\.type 'digest' is not known: bearer, basic, api_key, oauth, file",
        ),
        ({"type": "bearer"}, r"config\.auth\.token is missing"),
        ({"type": "api_key", "keyName": "k"}, r"config\.auth\.value is missing"),
        ({"type": "oauth"}, r"config\.auth\.tokenUrl is missing"),
    ],
)
async def test_settings_of_a_sign_in(server: AnyServer, auth: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await asked(server, **POST, auth=auth)


async def test_a_key_in_the_query_is_concealed(server: AnyServer) -> None:
    known: list[str] = []
    auth = {"type": "api_key", "placement": "query", "keyName": "key", "value": "k {{v}}"}
    config = {**POST, "queryParams": {"q": "a/b"}, "auth": auth}
    agent = create(
        for_provider(http(server, "/p?x=1", **config), Config(Path("/")), "/"),
        services("/", conceal=known.append),
    )
    events, _ = await talk(agent, Request(1, "hi", vars={"v": 1}))
    await agent.close()
    assert known == ["k 1"]
    exchange = next(event.exchange for event in events if hasattr(event, "exchange"))
    assert exchange.request.startswith(f"POST {server.url}/p?x=1&q=a%2Fb&key=•••\n")


@pytest.mark.parametrize(("name", "function"), [("auth.js", None), ("auth.py", None), ("other.js", "mine")])
async def test_a_file_gives_a_token_to_the_templates_alone(
    tmp_path: Path, server: AnyServer, name: str, function: str | None
) -> None:
    if name.endswith(".py"):
        code = "def get_auth(context):\n    return {'token': context['prompt']['label'] + str(context['vars']['v'])}\n"
    else:
        place = "module.exports" + (f".{function}" if function else "")
        code = f"{place} = (context) => ({{token: context.prompt.label + context.vars.v, expiration: 4e12}});"
    (tmp_path / name).write_text(code)
    path = f"file://{name}" + (f":{function}" if function else "")
    headers = {"X-Token": "{{token}}|{{expiration}}"}
    await asked(server, tmp_path, **POST, vars={"v": 1}, headers=headers, auth={"type": "file", "path": path})
    seen = server.requests[0].headers
    ends = "" if name.endswith(".py") else "4000000000000"
    assert seen["X-Token"] == f"hi1|{ends}" and "Authorization" not in seen


async def test_a_file_that_gives_no_token(tmp_path: Path, server: AnyServer) -> None:
    (tmp_path / "a.js").write_text("module.exports = () => ({token: ''});")
    with pytest.raises(AgentError, match=r"file://a\.js must return \{token, expiration\}"):
        await asked(server, tmp_path, **POST, auth={"type": "file", "path": "file://a.js"})


FUNCTION = {
    "name": "f",
    "description": "d",
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"l": {"type": "array", "items": {"type": "integer", "default": 1}}},
    },
}
TOOLS = [{"type": "function", "function": FUNCTION}, {"type": "function", "function": {"name": "g"}}]
NOTHING = {"type": "object", "properties": {}}
HEAD = {"name": "f", "description": "d"}
SHAPED = {
    "openai": TOOLS,
    "anthropic": [{**HEAD, "input_schema": FUNCTION["parameters"]}, {"name": "g", "input_schema": NOTHING}],
    "bedrock": [
        {"toolSpec": {**HEAD, "inputSchema": {"json": FUNCTION["parameters"]}}},
        {"toolSpec": {"name": "g", "inputSchema": {"json": NOTHING}}},
    ],
    "google": [
        {
            "functionDeclarations": [
                {
                    **HEAD,
                    "parameters": {
                        "type": "OBJECT",
                        "properties": {"l": {"type": "ARRAY", "items": {"type": "INTEGER"}}},
                    },
                },
                {"name": "g"},
            ]
        }
    ],
}


@pytest.mark.parametrize("wanted", list(SHAPED))
def test_tools_in_a_format(wanted: str) -> None:
    assert shaped_tools(TOOLS, wanted) == SHAPED[wanted]
    assert shaped_tools([{"name": "own"}], wanted) == [{"name": "own"}]


ONE = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("choice", "wanted", "shaped"),
    [
        ("required", "anthropic", {"type": "any"}),
        (ONE, "anthropic", {"type": "tool", "name": "f"}),
        ("none", "bedrock", None),
        ("required", "bedrock", {"any": {}}),
        (ONE, "bedrock", {"tool": {"name": "f"}}),
        ("none", "google", {"functionCallingConfig": {"mode": "NONE"}}),
        (ONE, "google", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}),
        (ONE, "openai", ONE),
        ({"x": 1}, "google", {"x": 1}),
        ("auto", None, "auto"),
    ],
)
def test_a_choice_in_a_format(choice: Any, wanted: str | None, shaped: Any) -> None:
    assert shaped_choice(choice, wanted) == shaped


async def test_the_prompt_s_tools_come_first(server: AnyServer) -> None:
    config = {"method": "POST", "body": {"t": "{{tools}}", "c": "{{tool_choice}}"}, "tools": TOOLS}
    agent = provider(http(server, **config))
    prompt = {"raw": "hi", "label": "hi", "config": {"tools": [{"name": "p"}], "tool_choice": "auto"}}
    await talk(agent, "hi", prompt=prompt)
    await agent.close()
    assert server.requests[0].body == {"t": [{"name": "p"}], "c": "auto"}


def file_part(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"kind": "file", "name": name, "source": {"type": "path", "path": path}, **more}


async def test_a_form_as_browsers_write_it(tmp_path: Path, server: AnyServer) -> None:
    (tmp_path / "a.csv").write_text("1")
    parts = [
        {"kind": "field", "name": 'q"{{v}}', "value": "a\nb"},
        {"kind": "field", "name": "t", "value": True},
        file_part("d", "a.csv", filename='x "y".csv'),
        file_part("e", "a.csv", filenameTemplate="{{v}}.txt", contentType="Text/X"),
    ]
    config = {"multipart": {"parts": parts}, "headers": {"Content-Type": "application/json"}}
    await asked(server, tmp_path, vars={"v": "V"}, transformRequest="prompt + '!'", **config)
    seen = server.requests[0]
    assert seen.method == "POST" and seen.headers["Content-Type"].startswith("multipart/form-data")
    assert 'name="q%22V"\r\n\r\na\r\nb\r\n' in seen.text and 'name="t"\r\n\r\ntrue\r\n' in seen.text
    assert 'filename="x %22y%22.csv"\r\nContent-Type: application/octet-stream\r\n' in seen.text
    assert 'filename="V.txt"\r\nContent-Type: text/x\r\n' in seen.text


@pytest.mark.parametrize(
    ("kind", "head"),
    [("pdf", b"%PDF-1.4"), ("png", b"\x89PNG"), ("jpeg", b"\xff\xd8\xff"), ("jpg", b"\xff\xd8\xff")],
)
async def test_documents_are_made(server: AnyServer, kind: str, head: bytes) -> None:
    from tui_eval.agents.promptfoo.promptfoo_request import HttpRequest, add_form

    source = {"type": "generated", "format": kind, "text": "about (\\) {{v}}"}
    request = HttpRequest("POST", "http://h/")
    parts = [{"kind": "file", "name": "f", "source": source}]
    add_form(parts, request, {"v": "cats"}, services("/"), Path("/"))
    assert request.body is not None and b"\r\n\r\n" + head in request.body
    assert f'filename="promptfoo-document.{kind}"'.encode() in request.body
    if kind == "pdf":
        import io

        from pypdf import PdfReader

        body = request.body.partition(b"\r\n\r\n")[2].rpartition(b"\r\n--")[0]
        assert PdfReader(io.BytesIO(body)).pages[0].extract_text() == "about (\\) cats"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"method": "GET"}, "a GET request has no body"),
        ({"method": "POST", "body": {"a": 1}}, "both body and multipart"),
        ({"method": "POST", "multipart": {"parts": []}}, "must be a list of fields and files"),
        ({"multipart": {"parts": [file_part("d", "none.txt")]}}, "cannot read none.txt: No such file"),
    ],
)
async def test_forms_that_cannot_be_sent(
    tmp_path: Path, server: AnyServer, config: dict[str, Any], said: str
) -> None:
    form = {"multipart": {"parts": [{"kind": "field", "name": "q", "value": "1"}]}}
    with pytest.raises(AgentError, match=said):
        await asked(server, tmp_path, **{**form, **config})


@pytest.mark.parametrize("prompt", ["[1, 2]", "{{config}}"])
async def test_a_webhook_fills_nothing_in(server: AnyServer, prompt: str) -> None:
    server.plan.append(Planned(body={"output": ""}))
    agent = provider({"id": f"webhook:{server.url}/hook", "config": {"a": "{{prompt}}"}})
    _, replies = await talk(agent, prompt)
    await agent.close()
    assert server.requests[0].body == {"prompt": prompt, "config": {"a": "{{prompt}}"}}
    assert replies[0].text == ""


@pytest.mark.parametrize(
    ("planned", "reference", "said"),
    [
        (Planned(body={"text": "x"}), False, r"must answer with \{output: text\}, not"),
        (Planned(body={"output": {"a": 1}}), False, r"must answer with \{output: text\}"),
        (Planned(raw=b"plain"), False, "not plain"),
        (Planned(status=500, body={"output": "x"}), False, "HTTP 500"),
        (Planned(status=500, body={"output": "x"}), True, ""),
    ],
)
async def test_what_a_webhook_answers(
    server: AnyServer, planned: Planned, reference: bool, said: str
) -> None:
    server.plan.append(planned)
    agent = provider(f"webhook:{server.url}/hook")
    if said:
        with pytest.raises(AgentError, match=said):
            await talk(agent, "hi", reference=reference)
    else:
        _, replies = await talk(agent, "hi", reference=reference)
        assert replies[0].text == "x"
    await agent.close()
