"""A suite that nobody trusts gets no file of the project in which secrets are kept, whatever reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tests.servers import JsonServer

SECRET = "STRIPE_KEY=sk_live_abcdefgh123"
PROMPTFOO = {"prompts": ["{{x}}"], "tests": [{"vars": {"x": "fine"}}]}
READ_BY = {
    "a variable": {"tests": [{"vars": {"x": "file://../.env"}}]},
    "a link": {"tests": [{"vars": {"x": "file://notes.txt"}}]},
    "a prompt": {"prompts": ["file://../.env"]},
    "a pattern": {"prompts": ["file://../.e*"]},
    "the tests": {"tests": "file://../.env"},
    "a body": {"body": "file://../.env"},
}


@pytest.mark.parametrize("by", READ_BY)
def test_it_is_not_sent_and_asked_for(cli: Cli, tmp_path: Path, monkeypatch, by: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(SECRET)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "notes.txt").symlink_to("../.env")
    with JsonServer() as server:
        own = dict(READ_BY[by])
        body = own.pop("body", {"message": "{{prompt}}"})
        provider = {"id": f"{server.url}/", "config": {"method": "POST", "body": body}}
        suite = {**PROMPTFOO, **own, "providers": [provider]}
        (tmp_path / "evals" / "promptfooconfig.json").write_text(json.dumps(suite))
        checked = cli("check", ".")
        assert "read .env" in checked.out
        ran = cli("run", ".")
        assert ran.code != 0 and "needs trust: read .env" in ran.out + ran.err
        assert not server.requests
        only = re.search(r"--trust-only (\S+)", checked.out)
        assert only is not None
        agreed = cli("run", ".", "--trust-only", only[1])
        assert "needs trust" not in agreed.out + agreed.err


def test_an_agents_entry_gets_none_either(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(SECRET)
    with JsonServer() as server:
        entry = {"type": "openai", "base_url": f"{server.url}/v1", "model": "m", "system": "file://.env"}
        (tmp_path / "tui_eval.yaml").write_text(json.dumps({"agents": {"bot": entry}}))
        case = {"name": "a", "input": "hi", "expected": {"should_contain": ["ok"]}}
        (tmp_path / "suite.yaml").write_text(json.dumps({"agent": "bot", "test_cases": [case]}))
        assert "read .env" in cli("check", ".").out
        assert "needs trust: read .env" in cli("run", ".").out
        assert not server.requests
