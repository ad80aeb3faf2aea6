"""What an agent's configuration comes to: what decides on its answers, and no secret."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tui_eval.agents import for_provider
from tui_eval.config.project import AgentSpec, Config
from tui_eval.engine import fingerprints
from tui_eval.engine.agent_files import named_files
from tui_eval.engine.case_files import question_files, verdict_files, with_code
from tui_eval.engine.fingerprints import AgentsAsked, Fingerprints, asks_otherwise, without_secrets
from tui_eval.engine.plan import Job
from tui_eval.engine.provenance import agents_asked
from tui_eval.guard.trust import CODE_ENDINGS, Trust
from tui_eval.model import Assertion, Case, Turn

ROOT = Path("/nowhere")


def mark(trusted: bool = True, **more: Any) -> str:
    options = {"url": "http://localhost:1/${PLACE}", "headers": {"Authorization": "Bearer ${BOT_TOKEN}", "X-Team": "evals"},
               "api_key": "sk-one-of-a-kind"}  # fmt: skip
    options |= more.pop("options", {})
    spec = AgentSpec(more.pop("name", "bot"), "http", options, base=str(ROOT), **more)
    return Fingerprints(Config(root=ROOT), Trust(granted=trusted)).agent(spec)["config"]


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "here")
    monkeypatch.setenv("BOT_TOKEN", "a-token-of-some-length")


@pytest.mark.parametrize(
    "change",
    [
        {"options": {"url": "http://localhost:2/${PLACE}"}}, {"options": {"headers": {"X-Team": "others"}}},
        {"model": "m"}, {"extraction": "guide"}, {"options": {"parameters": {"temperature": 1}}},
        {"options": {"api_key": "${OTHER_KEY:-x}"}},
    ],
)  # fmt: skip
def test_what_decides_on_the_answers_counts(change: dict[str, Any]) -> None:
    assert mark(**change) != mark()


@pytest.mark.parametrize(
    "change",
    [
        {"concurrency": 3}, {"rate_requests": 5.0}, {"rate_tokens": 5.0}, {"retries": 1}, {"timeout": 3.0}, {"line": 9},
        {"typed": True}, {"live": True}, {"options": {"api_key": "sk-another-of-its-kind"}},
    ],
)  # fmt: skip
def test_how_it_is_asked_and_the_value_of_a_key_do_not(change: dict[str, Any]) -> None:
    assert mark(**change) == mark()


def test_a_variable_counts_by_its_value_a_secret_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = mark()
    monkeypatch.setenv("BOT_TOKEN", "another-token-of-some-length")
    assert mark() == before
    monkeypatch.setenv("PLACE", "there")
    assert mark() != before


_OPAQUE = "q8Zx1Lw0aP7rT2vB"
_AROUND_SECRETS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"url": "http://localhost:1/chat?key=${BOT_TOKEN}"}, {"url": "http://localhost:1/v2/chat?key=${BOT_TOKEN}"}),
    ({"url": "http://localhost:1/chat?key=${BOT_TOKEN}"}, {"url": "http://localhost:2/chat?key=${BOT_TOKEN}"}),
    ({"url": "http://joe:${BOT_TOKEN}@localhost:1/"}, {"url": "http://joe:${BOT_TOKEN}@localhost:2/"}),
    ({"url": "http://joe:${BOT_TOKEN}@localhost:1/"}, {"url": "http://ann:${BOT_TOKEN}@localhost:1/"}),
    ({"url": "http://joe:${PLACE}@localhost:1/"}, {"url": "http://joe:${PLACE_2}@localhost:1/"}),
    ({"url": "http://localhost:1/chat?key=abcd1234"}, {"url": "http://localhost:1/v2/chat?key=abcd1234"}),
    ({"base_url": "http://x:pw@localhost:1/v1"}, {"base_url": "http://x:pw@localhost:1/v9/v1"}),
    ({"system": "Be kind. Docs: http://a.example/x?token=abc1234"}, {"system": "Be rude. Docs: http://a.example/x?token=abc1234"}),
    ({"system": "Be kind. Your key is ${BOT_TOKEN}"}, {"system": "Be rude. Your key is ${BOT_TOKEN}"}),
    ({"system": "At ${PLACE}: ${BOT_TOKEN}"}, {"system": "At ${PLACE_2}: ${BOT_TOKEN}"}),
    ({"headers": {"X-Route": "team-a;${BOT_TOKEN}"}}, {"headers": {"X-Route": "team-b;${BOT_TOKEN}"}}),
    ({"headers": {"X-Route-Key": "team-a;${BOT_TOKEN}"}}, {"headers": {"X-Route-Key": "team-b;${BOT_TOKEN}"}}),
    ({"headers": {"Authorization": "Bearer ${BOT_TOKEN}"}}, {"headers": {"Authorization": "Basic ${BOT_TOKEN}"}}),
    ({"headers": {"Cookie": f"flow=a; session={_OPAQUE}"}}, {"headers": {"Cookie": f"flow=b; session={_OPAQUE}"}}),
    ({"config": {"request": f"POST /a HTTP/1.1\nX-Api-Key: {_OPAQUE}"}}, {"config": {"request": f"POST /b HTTP/1.1\nX-Api-Key: {_OPAQUE}"}}),
    ({"command": ["sh", "-c", "TOKEN=${BOT_TOKEN} python3 c.py"]}, {"command": ["sh", "-c", "TOKEN=${BOT_TOKEN} python3 d.py"]}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), _AROUND_SECRETS)
def test_what_stands_around_a_secret_counts(
    monkeypatch: pytest.MonkeyPatch, before: dict[str, Any], after: dict[str, Any]
) -> None:
    monkeypatch.setenv("PLACE_2", "there")
    assert mark(options=before) != mark(options=after)


@pytest.mark.parametrize("options", [one for pair in _AROUND_SECRETS for one in pair])
def test_a_secret_amid_other_text_may_be_renewed(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setenv("PLACE_2", "there")
    before = mark(options=options)
    monkeypatch.setenv("BOT_TOKEN", "another9")
    new = {"abcd1234": "wxyz9876", _OPAQUE: "n0P4qR8sT6uV1wX3", "abc1234": "xyz9876", ":pw@": ":other@"}
    body = json.dumps(options)
    for old, renewed in new.items():
        body = body.replace(old, renewed)
    assert mark(options=json.loads(body)) == before


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"Cookie": "b64={}"}}, {"headers": {"Cookie": "{}=="}}, {"headers": {"X-Session": "{}"}}, {"password": "{}"},
        {"url": "http://{}@localhost/"}, {"headers": {"Authorization": "Basic {}"}}, {"headers": {"X-Key": "v1 ${BOT_TOKEN} {}"}},
        {"body": '{"m": {{message}}, "api_key": "{}"}'}, {"config": {"request": "POST /a HTTP/1.1\nAuthorization: Bearer {}\n\nhi"}},
        {"config": {"dsn": "Server=h;Password={};"}},
    ],
)  # fmt: skip
def test_no_secret_is_part_of_a_mark(options: dict[str, Any]) -> None:
    body = json.dumps(options)
    one, other = (json.loads(body.replace("{}", secret)) for secret in (_OPAQUE, "n0P4qR8sT6uV1wX3"))
    assert mark(options=one) == mark(options=other)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"body": {"key": "summary"}}, {"body": {"key": "details"}}), ({"body": {"key": "order-summary"}}, {"body": {"key": "order-details"}}),
        ({"body": {"token_budget": 500}}, {"body": {"token_budget": 1}}), ({"tools": [{"result": {"token": "A"}}]}, {"tools": [{"result": {"token": "B"}}]}),
        ({"body": {"key": 1}}, {"body": {"key": 2}}), ({"body": {"token": True}}, {"body": {"token": False}}), ({"body": {"key": None}}, {"body": {"key": "a"}}),
        ({"parameters": {"prompt_cache_key": "a"}}, {"parameters": {"prompt_cache_key": "b"}}), ({"cache_key": "orders-2024-v1"}, {"cache_key": "orders-2024-v2"}),
        ({"body": {"partition_key": "tenant_1"}}, {"body": {"partition_key": "tenant_2"}}), ({"body": {"sortKey": "createdAt"}}, {"body": {"sortKey": "updatedAt"}}),
        ({"parameters": {"stop_token": "<|end|>"}}, {"parameters": {"stop_token": "<|endoftext|>"}}), ({"body": {"eos_token": "</s>"}}, {"body": {"eos_token": "<eos>"}}),
        ({"body": {"thinking_token": 100}}, {"body": {"thinking_token": 20_000_000}}), ({"body": {"credential_mode": "strict"}}, {"body": {"credential_mode": "none"}}),
        ({"body": {"password_policy": "twelve characters, no words"}}, {"body": {"password_policy": "any"}}), ({"headers": {"X-Cache-Key": "orders"}}, {"headers": {"X-Cache-Key": "clients"}}),
        ({"url": "http://localhost:1/?key=summary"}, {"url": "http://localhost:1/?key=details"}), ({"body": {"key": "${PLACE}"}}, {"body": {"key": "${PLACE_2}"}}),
        ({"body": {"token_budget": "${TOKEN_BUDGET}"}}, {"body": {"token_budget": "${TOKEN_BUDGET_2}"}}), ({"body": {"cachekey": "orders"}}, {"body": {"cachekey": "clients"}}),
    ],
)  # fmt: skip
def test_what_only_sounds_like_a_secret_counts(
    monkeypatch: pytest.MonkeyPatch, before: dict[str, Any], after: dict[str, Any]
) -> None:
    for name, value in (("PLACE_2", "there"), ("TOKEN_BUDGET", "500"), ("TOKEN_BUDGET_2", "1")):
        monkeypatch.setenv(name, value)
    assert mark(options=before) != mark(options=after)


def test_the_value_of_a_variable_that_only_sounds_like_a_secret_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    for value in ("500", "1"):
        monkeypatch.setenv("TOKEN_BUDGET", value)
        seen.append((mark(variables=["TOKEN_BUDGET"]), mark(options={"system": "Think for ${TOKEN_BUDGET}"})))
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"body": {"password": "{}"}}, ("dragon", "letmein")), ({"body": {"client_secret": "{}"}}, ("dragon", "letmein")),
        ({"token": "{}"}, ("dragon", "letmein")), ({"headers": {"X-Token": "{}"}}, ("dragon", "letmein")), ({"config": {"apiKey": "{}"}}, ("one-of-a-kind", "another-one")),
        ({"body": {"key": "{}"}}, (_OPAQUE, "n0P4qR8sT6uV1wX3")), ({"body": {"cache_key": "{}"}}, (_OPAQUE, "n0P4qR8sT6uV1wX3")), ({"body": {"accesstoken": "{}"}}, ("a", "b")), ({"body": {"Access-Key": "{}"}}, ("a", "b")), ({"body": {"apiKeys": ["{}"]}}, ("a", "b")),
        ({"body": {"token": "{}"}}, ("sk-1a2b3c4d5e", "sk-9z8y7x6w5v")), ({"url": "http://localhost/?key={}"}, ("abcd1234", "wxyz9876")), ({"body": {"credentials": "{}"}}, ("a", "b")),
        ({"body": {"password": 1234}}, ("1234", "4321")), ({"body": {"key": 12345678}}, ("12345678", "87654321")), ({"body": {"db_pwd": "{}"}}, ("a", "b")),
    ],
)  # fmt: skip
def test_what_may_be_a_secret_does_not(options: dict[str, Any], values: tuple[str, str]) -> None:
    body = json.dumps(options).replace(*((values[0], "{}") if values[0].isdigit() else ("", "")))
    one, other = (json.loads(body.replace("{}", value)) for value in values)
    assert one != other
    assert mark(options=one) == mark(options=other)


@pytest.mark.parametrize("place", [{"body": {"token": "${SHOP}"}}, {"body": {"key": "x ${SHOP_KEY}"}}])
def test_a_short_value_of_a_variable_is_none_either(
    monkeypatch: pytest.MonkeyPatch, place: dict[str, Any]
) -> None:
    seen = set()
    for value in ("a9x!b", "z8y!c"):
        monkeypatch.setenv("SHOP", value)
        monkeypatch.setenv("SHOP_KEY", value)
        seen.add(mark(options=place))
    assert len(seen) == 1


def test_a_model_counts_without_the_secret_in_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = mark(model="small-${BOT_TOKEN}")
    assert mark(model="large-${BOT_TOKEN}") != before
    monkeypatch.setenv("BOT_TOKEN", "another9")
    assert mark(model="small-${BOT_TOKEN}") == before


@pytest.mark.parametrize(("options", "counts"), [({}, True), ({"url": "http://localhost:1"}, False)])
def test_the_server_that_the_environment_names_counts_where_the_entry_names_none(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], counts: bool
) -> None:
    spec, seen = AgentSpec("bot", "nao", options, base=str(ROOT)), []
    for url in ("http://localhost:2", "http://localhost:3"):
        monkeypatch.setenv("BACKEND_URL", url)
        seen.append(Fingerprints(Config(root=ROOT), Trust()).agent(spec))
    assert (seen[0] != seen[1]) is counts


def test_networks_that_the_environment_names_count_where_the_entry_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.hocon").write_text("{}")
    spec = AgentSpec("net", "neuro-san", {"network": "n"}, base=str(tmp_path))

    def now() -> dict[str, str]:
        return Fingerprints(Config(root=tmp_path), Trust(granted=True)).agent(spec)

    seen = [now()]
    for name in ("one", "two"):
        monkeypatch.setenv("AGENT_MANIFEST_FILE", str(tmp_path / name / "manifest.hocon"))
        seen.append(now())
    (tmp_path / "two" / "manifest.hocon").write_text("{x: true}")
    seen.append(now())
    assert all(one != other for at, one in enumerate(seen) for other in seen[:at])


@pytest.mark.parametrize(
    ("options", "counts"), [({}, True), ({"email": "ann@example.org"}, False), ({"token": "t"}, False)]
)
def test_who_signs_in_to_nao_counts_where_its_entry_does_not_say_it(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], counts: bool
) -> None:
    """Another person's kept answer came from that person's data."""
    spec = AgentSpec("shop", "nao", {"url": "http://localhost:5005", **options})
    seen: list[str] = []
    for name in ("ann@example.org", "ben@example.org"):
        monkeypatch.setenv("NAO_USERNAME", name)
        seen.append(Fingerprints(Config(root=ROOT), Trust()).entry(spec))
    assert (seen[0] != seen[1]) is counts


@pytest.mark.parametrize(
    ("provider", "name", "counts"),
    [
        ("openai:gpt-4.1", "OPENAI_TEMPERATURE", True), ("openai:gpt-4.1", "OPENAI_MAX_TOKENS", True),
        ("openai:responses:gpt-4.1", "OPENAI_MAX_COMPLETION_TOKENS", True), ("openai:gpt-4.1", "OPENAI_TOP_P", True),
        ("anthropic:messages:claude-sonnet-4-6", "ANTHROPIC_TEMPERATURE", True), ("anthropic:messages:claude-sonnet-4-6", "ANTHROPIC_MAX_TOKENS", True),
        ({"id": "openai:gpt-4.1", "config": {"temperature": 0}}, "OPENAI_TEMPERATURE", False), ("openai:gpt-4.1", "ANTHROPIC_TEMPERATURE", False),
        ("promptfoo:simulated-user", "OPENAI_TEMPERATURE", True), ("promptfoo:simulated-user", "OPENAI_BASE_URL", True),
        ("openai:gpt-4.1", "OPENAI_BASE_URL", True),
    ],
)  # fmt: skip
def test_what_a_provider_takes_from_the_environment_counts_where_its_entry_says_nothing(
    monkeypatch: pytest.MonkeyPatch, provider: Any, name: str, counts: bool
) -> None:
    config = Config(root=ROOT)
    spec = for_provider(provider, config, ROOT, target="openai:gpt-4.1")
    seen = [Fingerprints(config, Trust()).entry(spec)]
    for value in ("1", "2"):
        monkeypatch.setenv(name, value)
        seen.append(Fingerprints(config, Trust()).entry(spec))
    assert len(set(seen)) == (3 if counts else 1)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("azure/gpt", "AZURE_API_BASE"), ("bedrock/x", "AWS_REGION"), ("ollama_chat/llama3", "OLLAMA_API_BASE"),
        ("text-completion-openai/babbage", "OPENAI_BASE_URL"), ("vertex_ai/x", "VERTEXAI_API_BASE"),
        # A bare name is of the provider that LiteLLM finds for it.
        ("gpt-4.1-mini", "OPENAI_API_BASE"), ("gpt-4.1-mini", "OPENAI_BASE_URL"), ("claude-x", "ANTHROPIC_API_BASE"),
        ("anthropic.claude-x-v1:0", "AWS_REGION_NAME"), ("gemini-x", "VERTEXAI_LOCATION"), (None, "GROQ_API_BASE"),
        ("command-r", "COHERE_API_VERSION"),
    ],
)  # fmt: skip
def test_where_litellm_asks_counts(monkeypatch: pytest.MonkeyPatch, model: str | None, name: str) -> None:
    spec = AgentSpec("bot", "litellm", {}, model=model)
    before = Fingerprints(Config(root=ROOT), Trust()).entry(spec)
    monkeypatch.setenv(name, "http://localhost:9")
    assert Fingerprints(Config(root=ROOT), Trust()).entry(spec) != before


@pytest.mark.parametrize(
    ("model", "options", "name"),
    [
        ("gpt-4.1-mini", {"base_url": "http://localhost:1"}, "OPENAI_API_BASE"), ("gpt-4.1-mini", {}, "OPENAI_API_KEY"),
        ("openai/gpt-4.1-mini", {}, "ANTHROPIC_API_BASE"), ("azure_ai/x", {}, "AZURE_API_BASE"),
    ],
)  # fmt: skip
def test_where_litellm_asks_for_others_does_not(
    monkeypatch: pytest.MonkeyPatch, model: str, options: dict[str, Any], name: str
) -> None:
    spec = AgentSpec("bot", "litellm", options, model=model)
    before = Fingerprints(Config(root=ROOT), Trust()).entry(spec)
    monkeypatch.setenv(name, "http://localhost:9")
    assert Fingerprints(Config(root=ROOT), Trust()).entry(spec) == before


def test_whom_a_relaying_provider_asks_is_known_wherever_the_project_lies() -> None:
    marks = []
    for root in (ROOT, ROOT / "b"):
        config = Config(root=root)
        spec = for_provider("promptfoo:simulated-user", config, root, target="openai:gpt-4.1")
        marks.append(Fingerprints(config, Trust()).entry(spec))
    assert marks[0] == marks[1]


@pytest.mark.parametrize("value", ["", "some-9-value", None])
def test_of_a_secret_that_code_reads_it_counts_only_that_it_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    before = mark(variables=["BOT_TOKEN"])
    monkeypatch.delenv("BOT_TOKEN") if value is None else monkeypatch.setenv("BOT_TOKEN", value)
    options = {"headers": {}}
    assert mark(variables=["BOT_TOKEN"], options=options) != mark(options=options)
    monkeypatch.setenv("BOT_TOKEN", "a-token-of-some-length")
    assert mark(variables=["BOT_TOKEN"]) == before


def test_no_variable_is_read_for_who_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"url": "https://example.org/${PLACE}"}
    before = mark(trusted=False, options=options)
    monkeypatch.setenv("PLACE", "there")
    assert mark(trusted=False, options=options) == before


def test_files_by_place_and_content_wherever_the_project_lies(tmp_path: Path) -> None:
    def made(folder: Path, helper: str) -> str:
        (folder / "prompts").mkdir(parents=True, exist_ok=True)
        (folder / "tools.py").write_text("def search(): ...", "utf-8")
        (folder / "helper.py").write_text(helper, "utf-8")
        (folder / "prompts" / "a.md").write_text("system", "utf-8")
        options = {
            "system": "file://prompts/a.md",
            "tools": [{"type": "python", "function": "tools.py:search"}],
        }
        spec = AgentSpec("a", "openai", options, base=str(folder))
        return Fingerprints(Config(root=folder), Trust()).agent(spec)["files"]

    first = made(tmp_path / "one", "1")
    assert made(tmp_path / "two", "1") == first
    assert made(tmp_path / "two", "2") != first  # code beside the tools
    (tmp_path / "one" / "prompts" / "a.md").write_text("other", "utf-8")
    options = {"system": "file://prompts/a.md"}
    spec = AgentSpec("a", "openai", options, base=str(tmp_path / "one"))
    assert Fingerprints(Config(root=tmp_path / "one"), Trust()).agent(spec)["files"] != first


def test_several_attempts_at_once_get_the_hash_of_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent.py").write_text("def answer(message): return message")
    spec = AgentSpec("bot", "python", {"file": "agent.py"}, base=str(tmp_path))
    whole = Fingerprints(Config(root=tmp_path), Trust(granted=True)).agent(spec)
    reading, on = threading.Event(), threading.Event()
    real = fingerprints.read_plain

    def slow(path: Path, most: int) -> bytes:
        reading.set()
        assert on.wait(60)
        return real(path, most)

    monkeypatch.setattr(fingerprints, "read_plain", slow)
    marks, found = Fingerprints(Config(root=tmp_path), Trust(granted=True)), []
    threads = [threading.Thread(target=lambda: found.append(marks.agent(spec))) for _ in range(2)]
    threads[0].start()
    assert reading.wait(60)
    threads[1].start()
    threads[1].join(0.3)  # one that does not wait for the file ends here
    on.set()
    for thread in threads:
        thread.join(60)
    assert found == [whole, whole]


def test_an_agent_that_is_edited_while_it_is_asked_is_another_one_and_its_run_says_so(tmp_path: Path) -> None:
    code = tmp_path / "bot.py"
    code.write_text("def answer(text): return 'v1'\n")
    spec = AgentSpec("bot", "python", {"function": "bot.py:answer"}, base=str(tmp_path))
    config, trust = Config(root=tmp_path), Trust(granted=True)
    marks = Fingerprints(config, trust)
    first = marks.agent_now(spec)
    assert marks.agent_now(spec) == first
    code.write_text("def answer(text): return 'v2, another'\n")
    assert marks.agent_now(spec) != first and marks.agent_now(spec) == marks.agent(spec)
    case = Case("s.yaml::a", "a", "s.yaml", "start_to_agent")
    job = Job(case, "bot", None, spec, 1, 1, "documented", tmp_path, 60.0, {}, None, None)
    asked = agents_asked({"bot": first, "gone": {"files": "x"}}, config, trust, [job])
    assert asked["bot"] != first and asked["bot"] != marks.agent(spec) and asked["gone"] == {"files": "x"}
    now = marks.agent(spec)
    assert agents_asked({"bot": now}, config, trust, [job]) == {"bot": now}


def test_a_folder_whose_name_is_no_utf_8_has_a_fingerprint(tmp_path: Path) -> None:
    spec = AgentSpec("bot", "echo", {"system": "\udcff"}, base=f"{tmp_path}/e\udcff")
    found = Fingerprints(Config(root=tmp_path), Trust(granted=True)).agent(spec)
    assert found["type"] == "echo" and found["config"]


def write(folder: Path, files: dict[str, str]) -> Config:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Config(root=folder)


def own(folder: Path, function: str, files: Sequence[str] = ()) -> AgentSpec:
    return AgentSpec("own", "python", {"function": function}, base=str(folder), files=list(files))


CODE = "from lib.sub.helper import value\ndef answer(text): return value\n"


@pytest.mark.parametrize(
    ("function", "place"),
    [
        ("agent.py:answer", "agent.py"),
        ("pkg.agent:answer", "pkg/agent.py"),
        ("pkg:answer", "pkg/__init__.py"),
    ],
)
@pytest.mark.parametrize("edited", ["itself", "lib/sub/helper.py", "lib/other.py"])
def test_its_module_and_what_that_imports_are_a_part_of_an_agent(
    tmp_path: Path, function: str, place: str, edited: str
) -> None:
    files = {"lib/sub/helper.py": "from ..other import value\n", "lib/other.py": "value = 1\n", place: CODE}
    config, spec = write(tmp_path, files), own(tmp_path, function)
    marks = Fingerprints(config, Trust(granted=True))
    before = marks.agent(spec)
    file = tmp_path / (place if edited == "itself" else edited)
    file.write_text(f"{file.read_text()}more = 2\n")
    assert Fingerprints(config, Trust(granted=True)).agent(spec) != before != marks.agent_now(spec)


_SRV = "import pkg.other\n"


@pytest.mark.parametrize(
    ("options", "edited"),
    [
        ({"command": ["python3", "c.py"], "cwd": "srv"}, "srv/c.py"),
        ({"command": "python3 c.py --rules=r.txt", "cwd": "srv"}, "srv/r.txt"),
        ({"command": ["./run"], "cwd": "srv"}, "srv/run"),
        ({"command": ["python3", "-m", "pkg.mod"], "cwd": "srv"}, "srv/pkg/mod.py"),
        ({"command": ["python3", "-m", "pkg.mod"], "cwd": "srv"}, "srv/pkg/other.py"),
        ({"command": "python3 -m pkg.mod", "env": {"PYTHONPATH": "srv"}}, "srv/pkg/other.py"),
        ({"command": ["python3", "-m", "pkg"], "cwd": "srv"}, "srv/pkg/__main__.py"),
        ({"command": ["python3", "-u", "-mone"]}, "one.py"),
        ({"command": ["python3", "-m", "one"]}, "two.py"),
        ({"command": ["python3", "srv/c.py"]}, "srv/c.py"),
        ({"command": ["python3", "one.py", "--rules=HERE/srv/r.txt"]}, "srv/r.txt"),
        ({"command": "python3 one.py --rules=srv/run"}, "srv/run"),
        ({"command": "python3 one.py --output-schema=srv/r.txt"}, "srv/r.txt"),
        ({"command": "python3 one.py --log-config=srv/r.txt > run.log"}, "srv/r.txt"),
        ({"command": "sh -c 'python3 one.py srv/r.txt'"}, "srv/r.txt"),
        ({"command": ["sh", "-c", 'RULES=srv/r.txt; cat "$RULES"']}, "srv/r.txt"),
        ({"command": ["sh", "-c", 'cat "srv/r.txt"|python3 one.py']}, "srv/r.txt"),
        (
            {"command": ["sh", "-c", "cd srv && python3 -m pkg.mod"], "env": {"PYTHONPATH": "srv"}},
            "srv/pkg/other.py",
        ),
    ],
)
def test_what_a_command_runs_is_found_where_it_runs(
    tmp_path: Path, options: dict[str, Any], edited: str
) -> None:
    files = {
        "srv/c.py": "", "srv/r.txt": "", "srv/run": "#!/bin/sh\n", "one.py": "import two\n", "two.py": "",
        "srv/pkg/__init__.py": "", "srv/pkg/__main__.py": "", "srv/pkg/mod.py": _SRV, "srv/pkg/other.py": "",
    }  # fmt: skip
    marks = Fingerprints(write(tmp_path, files), Trust(granted=True))
    options = json.loads(json.dumps(options).replace("HERE", str(tmp_path)))
    spec = AgentSpec("own", "command", options, base=str(tmp_path))
    before = marks.agent(spec)
    (tmp_path / edited).write_text("more = 2\n")
    assert marks.agent_now(spec) != before


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "python3 one.py 2>>HERE/run.log"],
        ["sh", "-c", "python3 one.py > 'run.log' 2>&1"],
        ["sh", "-c", "echo began >>run.log; python3 one.py"],
        "python3 one.py --log=run.log",
        ["python3", "one.py", "--log-file=HERE/run.log"],
        ["./run.sh"],
    ],
)
def test_what_a_command_only_writes_is_no_part_of_the_agent(tmp_path: Path, command: Any) -> None:
    """Each answer made it another agent: none was kept, all was changed, and `W` ran its case without end."""
    files = {"one.py": "", "run.log": "", "run.sh": "#!/bin/sh\npython3 one.py 2>> run.log\n"}
    marks = Fingerprints(write(tmp_path, files), Trust(granted=True))
    command = json.loads(json.dumps(command).replace("HERE", str(tmp_path)))
    spec = AgentSpec("own", "command", {"command": command}, base=str(tmp_path))
    before = marks.agent(spec)
    (tmp_path / "run.log").write_text("more\n")
    assert marks.agent_now(spec) == before
    assert tmp_path / "run.log" not in named_files(spec, tmp_path)
    (tmp_path / "one.py").write_text("more = 2\n")
    assert marks.agent_now(spec) != before


@pytest.mark.parametrize(
    ("code", "text", "edited"),
    [
        ("a.js", 'const { one } = require("./lib/one");', "lib/one.js"),
        ("a.cjs", "require('./lib/one.js')", "lib/two.json"),
        ("a.mjs", 'import { one } from "./lib/esm.mjs"', "lib/esm.mjs"),
        ("a.mjs", 'const it = await import("./lib/esm.mjs")', "lib/deep/index.js"),
        ("src/a.ts", 'import type { T } from "../lib/typed.js"', "lib/typed.ts"),
        ("src/a.ts", 'export * from "../lib/typed"', "lib/typed.ts"),
        ("a.rb", 'require_relative "lib/helper"', "lib/helper.rb"),
    ],
)
def test_what_javascript_and_ruby_load_by_a_name_from_their_own_folder_is_a_part_of_an_agent_and_of_a_case(
    tmp_path: Path, code: str, text: str, edited: str
) -> None:
    """An answer from before an edit of `lib/one.js` was kept (`--cache`), and what had passed by it was not
    run (`--changed`)."""
    files = {
        code: text, "lib/one.js": 'module.exports = require("./two.json")', "lib/two.json": "{}", "lib/typed.ts": "",
        "lib/esm.mjs": 'export { it } from "./deep"', "lib/deep/index.js": 'require("../one"); require("fs")',
        "lib/helper.rb": "", "lib/other.js": "",
    }  # fmt: skip
    config = write(tmp_path, files)
    spec = AgentSpec("own", "command", {"command": ["run", code]}, base=str(tmp_path))
    named = [Assertion(type="javascript", value=f"file://{code}")]
    case = Case("s::a", "a", "s", "promptfoo", turns=[Turn("hello")], assertions=named)
    job = Job(case, "own", None, spec, 1, 1, "documented", tmp_path, 60.0, {}, None, None)
    marks = Fingerprints(config, Trust(granted=True))
    before, of_case = marks.agent(spec), marks.files_of(job)[0]
    assert edited in of_case and "lib/other.js" not in of_case
    (tmp_path / edited).write_text("more")
    assert marks.agent_now(spec) != before


@pytest.mark.parametrize("ending", (*CODE_ENDINGS, ".sh"))
def test_code_in_any_language_that_a_suite_may_run_is_taken_with_what_lies_beside_it(
    tmp_path: Path, ending: str
) -> None:
    for name in (f"check{ending}", f"beside{ending}", "words.txt"):
        (tmp_path / name).write_text("x")
    found = set(with_code([tmp_path / f"check{ending}"]))
    assert found == {tmp_path / f"check{ending}", tmp_path / f"beside{ending}"}


def test_what_a_long_text_loads_is_found_in_bounded_time(tmp_path: Path) -> None:
    """The spaces after one `import` took hours."""
    config = write(tmp_path, {"a.js": f"import{' ' * 900_000}\nimport './lib/one.js'", "lib/one.js": ""})
    spec = AgentSpec("own", "command", {"command": ["run", "a.js"]}, base=str(tmp_path))
    files = Fingerprints(config, Trust(granted=True)).files_of_agent(spec)
    assert tmp_path / "lib" / "one.js" in files


_HERE = 'cd "$(dirname "$0")/.."\nexec python3 -u far.py "$@"\n'


@pytest.mark.parametrize(
    ("script", "text", "edited"),
    [
        ("cmd/run.sh", 'exec python3 "$(dirname "$0")/plain.py"\n', "cmd/plain.py"),
        ("cmd/run.sh", "D=$(pwd)\nexec python3 $D/plain.py\n", "cmd/plain.py"),
        ("cmd/run", "#!/usr/bin/env bash\nexec node cmd/plain.mjs\n", "cmd/plain.mjs"),
        ("cmd/run.sh", "#!/bin/sh\nexec python3 cmd/plain.py\n", "lib/taken.py"),
        ("cmd/run.sh", "exec cmd/next.sh\n", "cmd/plain.rb"),
        ("cmd/run.sh", "exec python3 -m lib.mod\n", "lib/taken.py"),
        ("cmd/run.sh", _HERE, "far.py"),
    ],
)
def test_what_a_shell_script_runs_is_a_part_of_the_agent(
    tmp_path: Path, script: str, text: str, edited: str
) -> None:
    files = {
        "cmd/plain.py": "import lib.taken\n", "cmd/plain.mjs": "", "cmd/plain.rb": "", "cmd/next.sh": "ruby cmd/plain.rb",
        "lib/mod.py": "import lib.taken\n", "lib/taken.py": "", "far.py": "", "aside/other.py": "", script: text,
    }  # fmt: skip
    marks = Fingerprints(write(tmp_path, files), Trust(granted=True))
    spec = AgentSpec("own", "command", {"command": [f"./{script}"]}, base=str(tmp_path))
    before = marks.agent(spec)
    (tmp_path / "aside" / "other.py").write_text("more = 2\n")
    assert marks.agent_now(spec) == before
    (tmp_path / edited).write_text("more = 2\n")
    assert marks.agent_now(spec) != before


@pytest.mark.parametrize(
    "text",
    [
        "import importlib\nimportlib.import_module('lib.dyn')", "from importlib import import_module as i, import_module\nimport_module('.dyn', 'lib')",
        "m = __import__('lib.dyn')", "from importlib import import_module\nimport_module('.lib.dyn', __package__)",
    ],
)  # fmt: skip
def test_a_module_that_a_call_imports_by_its_name_is_a_part_of_the_agent(tmp_path: Path, text: str) -> None:
    config, spec = write(tmp_path, {"agent.py": text, "lib/dyn.py": ""}), own(tmp_path, "agent.py:answer")
    marks = Fingerprints(config, Trust(granted=True))
    before = marks.agent_now(spec)
    write(tmp_path, {"lib/dyn.py": "more = 1"})
    assert marks.agent_now(spec) != before


@pytest.mark.real
@pytest.mark.parametrize("file", ["lib/sub/helper.py", "data/000.txt", "data/299.txt"])
def test_no_file_of_an_agent_is_one_too_many(tmp_path: Path, file: str) -> None:
    files = {f"data/{number:03}.txt": "" for number in range(300)}
    config = write(tmp_path, {**files, "agent.py": CODE, "lib/sub/helper.py": "value = 1\n"})
    spec = own(tmp_path, "agent.py:answer", ["data"])
    marks = Fingerprints(config, Trust(granted=True))
    before = marks.agent(spec)
    (tmp_path / file).write_text("value = 22\n")
    assert Fingerprints(config, Trust(granted=True)).agent(spec) != before != marks.agent_now(spec)


def test_two_agents_that_share_a_file_import_by_their_own_folders(tmp_path: Path) -> None:
    files = {"shared/c.py": "import sub.leaf\n"}
    for one in "pq":
        files |= {f"{one}/agent.py": "import shared.c\n", f"{one}/sub/leaf.py": ""}
    marks = Fingerprints(write(tmp_path, files), Trust(granted=True))
    first, second = (own(tmp_path, f"{one}/agent.py:answer") for one in "pq")
    marks.agent_now(first)
    before = marks.agent_now(second)
    (tmp_path / "q" / "sub" / "leaf.py").write_text("edited = 1\n")
    assert marks.agent_now(second) != before


def test_a_module_that_appears_is_a_part_of_the_agent(tmp_path: Path) -> None:
    config = write(tmp_path, {"agent.py": "try:\n    import lib.late\nexcept ImportError:\n    pass\n"})
    marks, spec = Fingerprints(config, Trust(granted=True)), own(tmp_path, "agent.py:answer")
    before = marks.agent_now(spec)
    write(tmp_path, {"lib/late.py": "here = 1\n"})
    assert marks.agent_now(spec) != before


@pytest.mark.real
@pytest.mark.parametrize(
    "file", ["registries/manifest.hocon", "registries/sub/desk.hocon", "tools/9.py", "tools/deep/fare.py"]
)
def test_networks_and_coded_tools_are_a_part_of_an_agent_that_the_library_runs(
    tmp_path: Path, file: str
) -> None:
    several = [f"registries/{number}.hocon" for number in range(121)] + [
        f"tools/{number}.py" for number in range(120)
    ]
    names = ("registries/manifest.hocon", "registries/sub/desk.hocon", "tools/deep/fare.py", *several)
    config = write(tmp_path, dict.fromkeys(names, ""))
    given = {"manifest": "registries/manifest.hocon", "tool_path": "tools"}
    spec = AgentSpec("own", "neuro-san", given, base=str(tmp_path))
    marks = Fingerprints(config, Trust(granted=True))
    before = marks.agent(spec)
    (tmp_path / file).write_text("edited")
    assert marks.agent_now(spec) != before


def test_what_the_python_of_an_assertion_imports_is_a_file_of_its_case(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "check.py").write_text("from rules.length import most\n")
    (tmp_path / "rules" / "length.py").write_text("most = 3\n")
    case = Case("s::c", "c", "s", "promptfoo", vars={"rule": "file://check.py"})
    job = Job(
        held=case, agent="a", model=None, spec=None, attempts=1, required=1, compat="documented", base=tmp_path,
        timeout=1.0, comparison={}, database=None, judge=None,
    )  # fmt: skip
    assert set(Fingerprints(Config(root=tmp_path), Trust(granted=True)).files_of(job)[0]) == {
        "check.py", str(Path("rules", "length.py")),
    }  # fmt: skip


def test_the_files_that_cases_name_stand_in_order(tmp_path: Path) -> None:
    """Two runs' provenance is compared as it stands."""
    names = [f"{letter}.txt" for letter in "hgfedcba"]
    for name in names:
        (tmp_path / name).write_text(name)
    case = Case("s::c", "c", "s", "promptfoo", vars={name: f"file://{name}" for name in names})
    job = Job(
        held=case, agent="a", model=None, spec=None, attempts=1, required=1, compat="documented", base=tmp_path,
        timeout=1.0, comparison={}, database=None, judge=None,
    )  # fmt: skip
    found = Fingerprints(Config(root=tmp_path), Trust(granted=True)).of_jobs([job])
    assert found is not None and list(found[0]) == sorted(names) and len(found[1]) == 1


def test_of_a_file_elsewhere_that_nobody_agreed_to_have_read_no_content_is_in_its_hash(
    tmp_path: Path,
) -> None:
    root, elsewhere = tmp_path / "evals", tmp_path / "src" / "words.txt"
    for folder in (root, elsewhere.parent):
        folder.mkdir()
    found: dict[bool, list[str]] = {True: [], False: []}
    for content in ("one", "two"):
        elsewhere.write_text(content)
        os.utime(elsewhere, ns=(5, 5))
        for granted, marks in found.items():
            marks.append(Fingerprints(Config(root=root), Trust(granted=granted)).of(elsewhere))
    assert found[True][0] != found[True][1] and found[False][0] == found[False][1] != ""
    agreed = Trust(agreed=frozenset({f"read {elsewhere}"}))
    assert Fingerprints(Config(root=root), agreed).of(elsewhere) == found[True][1]


def test_the_files_that_make_a_question_are_told_from_those_that_judge(tmp_path: Path) -> None:
    for name in ("ask.py", "judge.py", "text.txt", "wanted.txt"):
        (tmp_path / name).write_text("")
    judged = Assertion("python", value="file://judge.py")
    case = Case("s::c", "c", "s", "promptfoo", turns=[Turn("say {{what}}")], assertions=[judged])
    case.vars = {"what": "file://text.txt", "wanted": "file://wanted.txt"}

    def names(files: set[Path]) -> set[str]:
        return {file.name for file in files}

    assert names(question_files(case, tmp_path, tmp_path)) == {"text.txt"}
    assert names(verdict_files(case, tmp_path, tmp_path)) == {"judge.py", "wanted.txt"}
    # A prompt that code makes gets every variable; its code is part of what `--changed` looks at.
    case.beside = {"promptFunction": {"path": str(tmp_path / "ask.py"), "function": "ask"}}
    assert names(question_files(case, tmp_path, tmp_path)) == {"ask.py", "text.txt", "wanted.txt"}
    case.assertions = []
    job = Job(
        held=case, agent="a", model=None, spec=None, attempts=1, required=1, compat="documented", base=tmp_path,
        timeout=1.0, comparison={}, database=None, judge=None,
    )  # fmt: skip
    assert "ask.py" in Fingerprints(Config(root=tmp_path), Trust(granted=True)).files_of(job)[0]


PROVIDED = Case(
    "s::c", "c", "s", "promptfoo", agent="openai:m", turns=[Turn("say {{what}}")], vars={"what": "{{of}}", "of": "x", "wanted": "y"},
    provider={"id": "openai:m", "config": {"temperature": 0}}, assertions=[Assertion("equals", value="{{wanted}}")],
)  # fmt: skip


@pytest.mark.parametrize(
    ("edit", "asks"),
    [
        ({"turns": [Turn("tell {{what}}")]}, True),
        ({"vars": {**PROVIDED.vars, "of": "z"}}, True),
        ({"vars": {**PROVIDED.vars, "wanted": "z"}}, False),
        ({"options": {"prefix": "So: "}}, True),
        ({"options": {"temperature": 1}}, True),
        ({"options": {"transform": "output", "provider": "openai:grader", "rubricPrompt": "?"}}, False),
        ({"options": {"suffix": "{{wanted}}"}}, True),
        ({"beside": {"promptConfig": {"tools": []}}}, True),
        ({"beside": {"assertScoringFunction": "file://score.js"}}, False),
        ({"provider_output": "given"}, True),
        ({"assertions": [], "threshold": 0.5, "timeout": 3.0, "metadata": {"a": 1}}, False),
    ],
)
def test_what_is_asked_is_told_from_what_judges(edit: dict, asks: bool) -> None:
    assert asks_otherwise(PROVIDED, replace(PROVIDED, **edit)) is asks


def test_agents_are_told_apart_by_what_decides_on_their_answers(tmp_path: Path) -> None:
    entry = {"type": "openai", "options": {"base_url": "http://localhost:1/v1"}, "model": "m"}
    spec = AgentSpec("helper", **entry)
    config = Config(root=tmp_path, agents={"helper": spec})

    def asked(config: Config, env: dict | None = None, earlier: AgentsAsked | None = None) -> AgentsAsked:
        return AgentsAsked(config, {"s": {"env": env}}, Trust(granted=True), earlier)

    def of_provider(**edit) -> str:
        return asked(config).of(replace(PROVIDED, provider={**PROVIDED.provider, **edit}))

    own = of_provider()
    assert of_provider(transform="output", delay=100, label="x") == own
    assert own != of_provider(config={"temperature": 1}) != of_provider(id="openai:other")
    assert asked(config, {"OPENAI_BASE_URL": "http://localhost:2/v1"}).of(PROVIDED) != own
    named = asked(config).of(PROVIDED, "helper")
    hotter = AgentSpec("helper", "openai", {**entry["options"], "parameters": {"temperature": 1}}, model="m")
    assert asked(Config(root=tmp_path, agents={"helper": hotter})).of(PROVIDED, "helper") != named
    lost = Config(root=tmp_path)
    assert asked(lost).of(PROVIDED, "helper") == ""
    assert asked(lost, earlier=asked(config)).of(PROVIDED, "helper") == named


@pytest.mark.parametrize(
    ("given", "filled", "variables"),
    [
        ({"api_key": "${MY_KEY}"}, {"api_key": "key-AAAAbbbb1111"}, ["MY_KEY"]),
        ({"api_key": "plainkey"}, {"api_key": "plainkey"}, []),
        ({"Authorization": "Bearer ${MY_KEY}"}, {"Authorization": "Bearer key-AAAAbbbb1111"}, ["MY_KEY"]),
        ({"X-Api-Key": "key-AAAAbbbb1111"}, {"X-Api-Key": "key-AAAAbbbb1111"}, []),
    ],
)
def test_what_is_all_secret_is_marked_as_earlier_versions_did(
    given: dict[str, str], filled: dict[str, str], variables: list[str]
) -> None:
    """Else every agent with a key would be asked, and paid, once more after an update (`--changed`, `--cache`)."""
    (name,) = given
    assert without_secrets(given, filled, "headers") == {name: ["(a secret)", variables]}


def test_files_outside_the_project_that_are_not_to_be_read_are_not_said_to_be_edited(tmp_path: Path) -> None:
    """A run with --trust read them: judged again without it, its answers were "of an agent which is another"."""
    root, networks = tmp_path / "evals", tmp_path / "networks"
    for folder in (root, networks):
        folder.mkdir()
    (networks / "manifest.hocon").write_text('{"a.hocon": true}')
    options = {"manifest": "../networks/manifest.hocon", "url": "http://127.0.0.1:1"}
    spec = AgentSpec("networks", "neuro-san", options, base=str(root))

    def marks(trusted: bool) -> Fingerprints:
        return Fingerprints(Config(root=root), Trust(granted=trusted))

    before = marks(True).agent(spec)
    assert marks(True).differs(spec, before) == ""
    assert marks(False).differs(spec, before) == "its files, or the trust in those outside the project"
    (networks / "manifest.hocon").write_text('{"a.hocon": false}')
    assert marks(True).differs(spec, before) == "its files"
