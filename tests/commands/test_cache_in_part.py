"""`run --cache` where a conversation is known in part and its agent cannot be told of it: all of it is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Cli
from tests.servers import NeuroSanServer, OpenAIServer, Planned
from tests.servers.base import Seen


class Desk(OpenAIServer):
    """An endpoint that answers with rows once it is asked for them, or breaks there."""

    broken = False
    amount = 7

    def default(self, seen: Seen) -> Planned:
        body: Any = seen.body
        if "rows" not in json.dumps(body).lower() and "column" not in json.dumps(body).lower():
            return Planned(text="seven")
        return Planned(status=400) if self.broken else Planned(text=f'[{{"amount": {self.amount}}}]')


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "total.yaml").write_text(
        "name: total\nprompt: how many?\nsql: select 7 as amount\n"
    )
    Path("shop.db").touch()
    with Desk() as running:
        (tmp_path / "bot.py").write_text(
            "import json, urllib.request\n"
            "def answer(message):\n"
            f"    request = urllib.request.Request('{running.base}/chat/completions', "
            "json.dumps({'model': 'm', 'messages': [{'role': 'user', 'content': message}]}).encode(), "
            "{'Content-Type': 'application/json'})\n"
            "    found = json.load(urllib.request.urlopen(request))\n"
            "    return found['choices'][0]['message']['content']\n"
        )
        (tmp_path / "tui_eval.yaml").write_text(
            "agents: {bot: {type: python, function: 'bot.py:answer'}}\n"
            "databases: {shop: {type: sqlite, path: shop.db}}\n"
            "suites: [{path: 'tests/**', agent: bot, database: shop}]\nrun: {retries: 0}\n"
        )
        yield running


@pytest.mark.real
def test_one_turn_for_the_rows_that_failed_does_not_end_all_later_runs(cli: Cli, desk: Desk) -> None:
    desk.broken = True
    assert cli("run", ".", "--trust", "--cache").code == 1
    desk.broken = False
    asked = len(desk.requests)
    again = cli("run", ".", "--trust", "--cache", "-o", "again.json")
    assert again.code == 0, again.out
    assert len(desk.requests) == asked + 2  # both turns anew, each once
    (result,) = json.loads(Path("again.json").read_text())["results"]
    assert not result.get("cached")
    texts = [entry["text"] for entry in result["transcript"]]
    assert texts.count("seven") == 1 and not any(text.startswith("cached: ") for text in texts)
    assert "cached" in cli("run", ".", "--trust", "--cache").out and len(desk.requests) == asked + 2


@pytest.mark.real
def test_what_is_not_seen_of_an_agents_data_is_said_where_it_counts(cli: Cli, desk: Desk) -> None:
    hint = "count only where `files:` and `variables:`"
    assert hint not in cli("run", ".", "--trust", "--cache").out
    assert cli("run", ".", "--trust", "--cache").out.count(hint) == 1
    assert hint in cli("run", ".", "--trust", "--changed").err
    config = Path("tui_eval.yaml")
    config.write_text(config.read_text().replace("bot.py:answer'", "bot.py:answer', files: [bot.py]"))
    cli("run", ".", "--trust", "--cache")
    assert hint not in cli("run", ".", "--trust", "--cache").out
    assert hint not in cli("run", ".", "--trust", "--changed").err


@pytest.mark.real
def test_the_private_data_of_a_turn_that_is_known_are_carried_on(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = 'agent = net, connections = http, interactions = [{text = one, sly_data {login = "ada@shop.example"}}, {text = two}]'
    with NeuroSanServer(Planned(text="1", body={"sly_data": {"order": 9}})) as server:
        Path("tui_eval.yaml").write_text(f"agents: {{neuro-san: {{type: neuro-san, url: '{server.url}'}}}}\n")
        Path("talk.hocon").write_text(suite)
        assert cli("run", ".", "--cache").code == 0
        Path("talk.hocon").write_text(suite.replace("two", "three"))
        assert "cached" in cli("run", ".", "--cache").out
        asked = [(seen.body["user_message"]["text"], seen.body.get("sly_data")) for seen in server.requests]
    carried = {"login": "ada@shop.example", "order": 9}
    assert asked == [("one", {"login": "ada@shop.example"}), ("two", carried), ("three", carried)]
