"""`tui-eval init`: a first suite that is checked, run and judged, for every format and kind of agent."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.commands.conftest import Cli
from tests.servers.json_endpoint import JsonServer
from tests.servers.openai import OpenAIServer

FORMATS = ("start_to_agent", "nao", "promptfoo", "neuro_san")
AGENT = """\
import json
def answer(message):
    if "SELECT" in message or "JSON" in message:
        return json.dumps({"rows": [{"total_revenue": 104.5}]})
    return "Ada, hello from Paris"
"""


def entry(folder: Path, name: str = "my_agent") -> dict:
    return yaml.safe_load((folder / "tui_eval.yaml").read_text())["agents"][name]


@pytest.mark.parametrize("form", FORMATS)
def test_a_scripted_first_suite_passes(cli: Cli, tmp_path: Path, form: str) -> None:
    written = cli("init", tmp_path, "--format", form)
    assert written.code == 0 and "tui_eval.yaml" in written.out and "the app" in written.out
    assert cli("check", tmp_path).code == 0
    assert cli("run", tmp_path, "--no-store").code == 0
    again = cli("init", tmp_path, "--format", form)
    assert again.code == 4 and "exists; init never overwrites" in again.err


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "nao"])
def test_a_function_of_ones_own_passes_with_trust(cli: Cli, tmp_path: Path, form: str, monkeypatch) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "my_agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    written = cli("init", "project", "--format", form, "--agent", "project/my_agent.py:answer")
    assert written.code == 0 and "--trust" in written.out
    assert entry(folder) == {"type": "python", "function": "my_agent.py:answer"}
    assert cli("check", folder).code == 0
    refused = cli("run", folder, "--no-store")
    assert refused.code == 1 and "needs trust" in refused.out
    assert cli("run", folder, "--no-store", "--trust").code == 0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--agent", "http://localhost:9/v1", "-m", "tiny"], {"type": "openai", "model": "tiny", "base_url": "http://localhost:9/v1"}),
        (["--agent", "http://localhost:9/v1"], {"type": "openai", "base_url": "http://localhost:9/v1"}),
        (["--agent", "http://localhost:9/chat"], {"type": "http", "url": "http://localhost:9/chat"}),
        (["--agent", "openai:gpt-4.1"], {"type": "openai", "model": "gpt-4.1"}),
        (["--agent", "anthropic:claude-x"], {"type": "anthropic", "model": "claude-x"}),
        (["--agent", "echo"], {"type": "echo"}),
    ],
    ids=["v1 and model", "v1", "endpoint", "openai", "anthropic", "echo"],
)  # fmt: skip
def test_every_kind_of_agent_is_written_as_it_is_meant(
    cli: Cli, tmp_path: Path, form, options, wanted
) -> None:
    assert cli("init", tmp_path, "--format", form, *options).code == 0
    assert entry(tmp_path) == wanted
    assert cli("check", tmp_path).code == 0
    assert not (tmp_path / "agent.script.yaml").exists()


def test_the_address_of_a_server_is_one_of_the_formats_own(cli: Cli, tmp_path: Path) -> None:
    assert cli("init", tmp_path / "nao", "--format", "nao", "--agent", "http://localhost:5005/").code == 0
    assert entry(tmp_path / "nao") == {"type": "nao", "url": "http://localhost:5005"}
    written = cli("init", tmp_path / "ns", "--format", "neuro_san", "--agent", "http://localhost:8080")
    assert written.code == 0 and cli("check", tmp_path / "ns").code == 0
    assert entry(tmp_path / "ns", "neuro-san") == {"type": "neuro-san", "url": "http://localhost:8080"}
    assert '"agent": "hello_world"' in (tmp_path / "ns" / "tests" / "fixtures" / "first.hocon").read_text()
    assert "network" in written.out
    assert cli("init", tmp_path / "pf", "--format", "promptfoo", "--agent", "http://localhost:8080").code == 0
    assert entry(tmp_path / "pf")["type"] == "http"


def test_a_suite_against_servers_that_answer(cli: Cli, tmp_path: Path) -> None:
    with OpenAIServer() as models, JsonServer() as endpoint:
        for name, agent in (("models", models.base), ("endpoint", f"{endpoint.url}/chat")):
            assert cli("init", tmp_path / name, "--agent", agent).code == 0
            ran = cli("run", tmp_path / name, "--no-store", "-s", "Greeting is answered")
            assert ran.code == 0, ran.out + ran.err


def test_a_configuration_that_is_there_says_which_agent(cli: Cli, tmp_path: Path) -> None:
    text = 'agents:\n  "bot: 1": {type: echo}   # ours\n  other: {type: echo}\n'
    for form in FORMATS:
        folder = tmp_path / form
        folder.mkdir()
        (folder / "tui_eval.yaml").write_text(text)
        written = cli("init", folder, "--format", form)
        assert written.code == 0 and (folder / "tui_eval.yaml").read_text() == text
        assert ("it must have" in written.out) == (form == "nao")
        if form != "nao":
            assert cli("check", folder).code == 0
            assert cli("list", "--json", folder).json[0]["agent"] == "bot: 1"
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "tui_eval.yaml").write_text(text)
    refused = cli("init", tmp_path / "x", "--agent", "openai:gpt-4.1")
    assert refused.code == 4 and "it has bot: 1, other" in refused.err
    assert cli("init", tmp_path / "x", "--agent", "other").code == 0
    (tmp_path / "x" / "tui_eval.yaml").write_text("run: {concurrency: 2}\n")
    assert "has no agent" in cli("init", tmp_path / "x").err
    (tmp_path / "x" / "tui_eval.yaml").write_text("agents: {a: {type: ekko}}\n")
    broken = cli("init", tmp_path / "x")
    assert broken.code == 4 and "tui_eval.yaml:1" in broken.err


def test_a_function_beside_the_folder_is_found_from_there(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    """`my_agent.py:answer` of the current folder was written as one of the new folder, where it is not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_agent.py").write_text("def answer(message):\n    return 'hello, Ada'\n", "utf-8")
    assert cli("init", "new", "--agent", "my_agent.py:answer").code == 0
    assert '"../my_agent.py:answer"' in (tmp_path / "new/tui_eval.yaml").read_text("utf-8")
    ran = cli("run", "new", "--trust")
    assert ran.code == 0, ran


def test_a_model_that_would_be_dropped_is_refused(cli: Cli, tmp_path: Path) -> None:
    told = cli("init", tmp_path / "new", "-m", "tiny")
    assert told.code == 4 and "a scripted agent has no model; give --agent, too" in told.err
    assert not (tmp_path / "new").exists()
    assert cli("init", tmp_path).code == 0
    told = cli("init", tmp_path, "--format", "nao", "-m", "tiny")
    assert told.code == 4 and "write the model there" in told.err


def test_what_is_no_agent_or_no_folder_is_said(cli: Cli, tmp_path: Path) -> None:
    assert "no agent of that name" in cli("init", tmp_path, "--agent", "nonsense").err
    (tmp_path / "file").write_text("")
    refused = cli("init", tmp_path / "file" / "below")
    assert refused.code == 4 and "cannot be written" in refused.err
    assert not (tmp_path / "tui_eval.yaml").exists()


def test_a_link_that_leads_to_nothing_is_not_written_through(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "tui_eval.yaml").symlink_to("../new.yaml")
    result = cli("init", "stranger")
    assert result.code == 4 and "never overwrites" in result.err and not (tmp_path / "new.yaml").exists()
