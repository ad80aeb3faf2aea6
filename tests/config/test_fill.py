"""Variables and secrets: who gets them without trust, and who does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tui_eval import agents
from tui_eval.agents.base import Services
from tui_eval.config import project as config
from tui_eval.config.config_values import host_of, is_loopback, is_own_host
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.guard.trust import NeedsTrust, Trust

Project = Callable[..., config.Config]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "UNSET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-person")
    monkeypatch.setenv("OTHER_KEY", "other-secret")
    monkeypatch.setenv("EMPTY", "")


def agent(kind: str, **options: object) -> AgentSpec:
    return AgentSpec("a", kind, dict(options), line=1)  # type: ignore[arg-type]


def test_the_usual_key_at_the_providers_own_host() -> None:
    for spec in (
        agent("openai"),
        agent("openai", api_key="${OPENAI_API_KEY}"),
        agent("openai", base_url="https://api.openai.com/v1"),
    ):
        assert config.fill(spec, Trust()).options["api_key"] == "sk-of-the-person"
    assert "api_key" not in config.fill(agent("anthropic"), Trust()).options
    assert "api_key" not in config.fill(agent("openai", headers={"Authorization": "x"}), Trust()).options


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "https://api.openai.com.evil.example/v1",
        "https://api.openai.com@evil.example/",
        "https://evil.example",
        "https://evil.example\\@api.openai.com",
        "https://[::2]/",
        "//api.openai.com",
        "https://127.0.0.1.evil.example",
        "http://[bad",
    ],
)
def test_a_foreign_host_needs_trust_for_every_secret(url: str) -> None:
    for options in (
        {},
        {"api_key": "${OPENAI_API_KEY}"},
        {"api_key": "literal-secret"},
        {"headers": {"X-Api-Key": "literal-secret"}},
    ):
        with pytest.raises(NeedsTrust):
            config.fill(agent("openai", base_url=url, **options), Trust())
        config.fill(agent("openai", base_url=url, **options), Trust(True))
        config.fill(msgspec.structs.replace(agent("openai", base_url=url, **options), typed=True), Trust())


def test_a_foreign_host_without_secrets_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    config.fill(agent("openai", base_url="https://evil.example", headers={"X-Team": "evaluations"}), Trust())
    config.fill(agent("http", url="https://evil.example", body={"message": "{{prompt}}"}), Trust())
    with pytest.raises(NeedsTrust, match=r"send a secret \(agents\.a\.body\)"):
        body = '{"message": {{prompt}}, "api_key": "literal-1234"}'
        config.fill(agent("http", url="https://evil.example", body=body), Trust())


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/v1", "http://127.0.0.1:1", "http://[::1]:2", "http://127.3.2.1/"]
)
def test_this_machine_may_have_what_stands_in_the_file_and_nothing_of_the_environment(
    url: str, tmp_path: Path
) -> None:
    literal = agent("openai", base_url=url, api_key="literal-secret")
    assert config.fill(literal, Trust()).options["api_key"] == "literal-secret"
    for options in ({"api_key": "${OTHER_KEY}"}, {"headers": {"X": "${OPENAI_API_KEY}"}}):
        spec, trust = agent("openai", base_url=url, **options), Trust()
        with pytest.raises(NeedsTrust):
            config.fill(spec, trust)
        assert trust.wanted == [
            f"read the environment variable {next(iter(re.findall('[A-Z_]+KEY', str(options))))} for "
            f"{host_of(url)} (agents.a)"
        ]
        config.fill(spec, Trust(agreed=frozenset(trust.wanted)))
        assert "${" in str(spec.options)
    assert "api_key" not in config.fill(agent("openai", base_url=url), Trust()).options


@pytest.mark.parametrize("kind", ["openai", "openai-responses", "openai-moderation", "anthropic"])
def test_a_server_on_this_machine_is_not_sent_the_usual_key_that_nobody_granted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-person")

    def sent(trust: Trust) -> str:
        spec = agent(kind, base_url="http://127.0.0.1:9/v1")
        spec = msgspec.structs.replace(spec, model="m", retries=0)
        return str(agents.create(config.fill(spec, trust), Services(tmp_path, trust)).client.headers)  # type: ignore[attr-defined]

    assert "sk-of-the-person" not in sent(Trust())
    assert "sk-of-the-person" in sent(Trust(True))


def test_other_variables_need_trust() -> None:
    for spec in (
        agent("openai", api_key="${OTHER_KEY}"),
        agent("anthropic", api_key="${OPENAI_API_KEY}"),
        agent("openai", base_url="http://${OTHER_KEY}.localhost/"),
        agent("echo", prefix="${OTHER_KEY}"),
        agent("command", command=["x", "${OTHER_KEY}"]),
        agent("http", url="https://example.com", body={"a": [{"b": "${OTHER_KEY}"}]}),
        AgentSpec("a", "echo", model="${OTHER_KEY}"),
    ):
        trust = Trust()
        with pytest.raises(NeedsTrust, match=r"OTHER_KEY|OPENAI_API_KEY"):
            config.fill(spec, trust)
        assert trust.wanted
        config.fill(spec, Trust(True))


def test_where_the_person_leads_the_provider_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example/v1")
    filled = config.fill(agent("openai", base_url="https://proxy.example/v1"), Trust())
    assert filled.options["api_key"] == "sk-of-the-person"


def test_writing_variables() -> None:
    def filled(text: str) -> object:
        return config.fill(agent("echo", prefix=text), Trust(True)).options["prefix"]

    assert filled("a ${UNSET:-b} ${EMPTY:-c} ${EMPTY}d ${OTHER_KEY:-e}") == "a b c d other-secret"
    assert filled("$${UNSET} ${not a name} $UNSET ${") == "${UNSET} ${not a name} $UNSET ${"
    with pytest.raises(ConfigError, match=r"^agents.a.prefix: the environment variable UNSET is not set"):
        filled("${UNSET}")
    with pytest.raises(ConfigError, match=r"^agents.a.headers.X: "):
        config.fill(agent("openai", headers={"X": "${UNSET}"}), Trust(True))
    assert config.fill(agent("echo", prefix="${UNSET:-plain}"), Trust()).options["prefix"] == "plain"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("$${A} ${PATH} ${B:-x} costs $5 x$y", ""),
        ("$KEY", "$ before a name without braces"),
        ("a ${PATH} $${B} ${NAME", "'${NAME'"),
        ("${NAME-default} ${PATH}", "'${NAME-default} ${PATH}'"),
        ("${a.b}", "'${a.b}'"),
    ],
)
def test_what_is_no_variable_though_it_looks_like_one_is_noted(
    project: Project, value: str, said: str
) -> None:
    """It was sent as it stands: an address with `${HOST-localhost}` in it, `$KEY` as the key."""
    config = project(f"agents:\n  a:\n    type: echo\n    prefix: '{value}'\n")
    told = [str(problem) for problem in config.problems]
    assert (
        not told
        if not said
        else told[0].startswith(
            f"tui_eval.yaml:4: agents.a.prefix: {said} is no variable, and stays as it is; write ${{NAME}}"
        )
    )
    assert "a" in config.agents and all(problem.level == "note" for problem in config.problems)


def test_databases(project: Project, tmp_path: Path) -> None:
    loaded = project(
        "databases:\n"
        "  in: {type: duckdb, path: x.duckdb}\n"
        "  out: {type: sqlite, path: ../x.db}\n"
        "  variable: {type: files, path: '${OTHER_KEY}/x'}\n"
        "  default: {type: files, path: '${UNSET:-data}'}\n"
        "  near: {type: postgres, url: 'postgres://u:longpassword@localhost/d'}\n"
        "  far: {type: postgres, url: 'postgres://u:longpassword@db.example/d'}\n"
    )
    assert config.database(loaded, "in", Trust()).path == str(tmp_path / "x.duckdb")
    assert config.database(loaded, "default", Trust()).path == str(tmp_path / "data")
    config.database(loaded, "near", Trust())
    for name in ("out", "variable", "far"):
        with pytest.raises(NeedsTrust):
            config.database(loaded, name, Trust())
        config.database(loaded, name, Trust(True))
    with pytest.raises(ConfigError, match="no database called 'none' is configured \\(there is: in, out"):
        config.database(loaded, "none", Trust())
    with pytest.raises(ConfigError, match="not exactly one"):
        config.database(loaded, None, Trust())


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("postgres://u@db.example/d", "ask the server db.example (databases.d.url)"),
        ("postgres://u:longpassword@db.example/d", "send a secret (databases.d.url) to db.example"),
        ("postgres://u@localhost/d?host=db.example", "ask the server db.example (databases.d.url)"),
        ("postgres://u@localhost/d?hostaddr=192.0.2.1", "ask the server 192.0.2.1 (databases.d.url)"),
        ("postgres://localhost,db.example/d", "ask the server db.example (databases.d.url)"),
        ("postgres://localhost?@db.example/d", "ask the server db.example (databases.d.url)"),
        ("postgres://localhost%2edb.example/d", "ask the server localhost.db.example (databases.d.url)"),
        (
            "host=db.example password = 'long password' user=u",
            "send a secret (databases.d.url) to db.example",
        ),
        ("postgres://localhost/d?passfile=/etc/pass", "read /etc/pass (databases.d.url: passfile)"),
        ("postgres:///d?sslkey=%2Fetc%2Fkey", "read /etc/key (databases.d.url: sslkey)"),
        ("service=shop dbname=d", "read pg_service.conf (databases.d.url: the service shop)"),
        ("postgres://u@localhost/d? host=db.example", "ask the server db.example (databases.d.url)"),
        ("postgres:///d? sslkey =/etc/key", "read /etc/key (databases.d.url: sslkey)"),
        (
            "service=shop application_name='\\\n service='",
            "read pg_service.conf (databases.d.url: the service shop)",
        ),
    ],
)
def test_a_postgresql_server_elsewhere_is_not_asked_without_trust_by_any_spelling_of_its_address(
    project: Project, url: str, wanted: str
) -> None:
    """Its library sends it `PGPASSWORD`, or what `~/.pgpass` has, by itself."""
    loaded = project(f"databases:\n  d:\n    type: postgres\n    url: {json.dumps(url)}\n")
    with pytest.raises(NeedsTrust) as needs:
        config.database(loaded, "d", Trust())
    assert needs.value.what == wanted
    assert config.database(loaded, "d", Trust(agreed=frozenset({wanted}))).url == url


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:longpassword@localhost/d",
        "postgresql://[::1]:5433/d?sslrootcert=system",
        "postgresql:///d?host=/run/postgresql",
        "postgresql://%2Frun%2Fpostgresql/d",
        "dbname=d user=u",
        "host=127.0.0.1 sslrootcert=ca.pem",
    ],
)
def test_a_postgresql_server_of_this_machine_is_asked_without_trust(
    project: Project, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = project(f"databases:\n  d:\n    type: postgres\n    url: {json.dumps(url)}\n")
    assert config.database(loaded, "d", Trust()).url == url


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_link_for_a_database_is_agreed_to_by_what_it_leads_to(
    project: Project, tmp_path: Path, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Who agreed to one file has not agreed to what the link is turned to afterwards."""
    loaded = project(f"databases:\n  d: {{type: {kind}, path: x.db}}\n")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("first", "second"):
        (tmp_path / "x.db").unlink(missing_ok=True)
        (tmp_path / "x.db").symlink_to(elsewhere / name)
        with pytest.raises(
            NeedsTrust, match=rf"read {elsewhere / name} \(databases.d: the link {tmp_path / 'x.db'}\)"
        ):
            config.database(loaded, "d", Trust())


def test_known_secrets(project: Project) -> None:
    loaded = project(
        "agents:\n"
        "  a: {type: openai, api_key: literal-key, headers: {Authorization: 'Bearer ${OTHER_KEY}'}}\n"
        "  b: {type: nao, password: nao-password}\n"
        "  c: {type: openai, tools: [{type: canned, name: x, result: {key: not-a-secret}}]}\n"
        "judge: {type: openai, api_key: judge-secret}\n"
        "databases:\n"
        "  d: {type: postgres, url: 'postgres://u:longpassword@h/d'}\n"
        "  w: {type: postgres, url: 'host=h password=written-in-words'}\n"
    )
    found = config.secrets(loaded)
    for value in (
        "literal-key",
        "other-secret",
        "nao-password",
        "judge-secret",
        "longpassword",
        "written-in-words",
        "sk-of-the-person",
    ):
        assert value in found
    assert "not-a-secret" not in found and all(len(value) >= 8 for value in found)


def test_hosts() -> None:
    assert host_of("https://API.OpenAI.com./v1") == "api.openai.com"
    assert is_own_host("openai", "HTTPS://api.openai.com/v1") and not is_own_host(
        "nao", "https://api.openai.com"
    )
    assert (
        is_loopback("http://localhost.")
        and not is_loopback("http://localhost.evil.example")
        and not is_loopback(None)
    )
