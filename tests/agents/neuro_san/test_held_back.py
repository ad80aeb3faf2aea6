"""Sly data is not in what is kept of an exchange, whichever agent carried it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.servers import JsonServer, Planned
from tests.support.agents import agent, of, talk
from tui_eval.agents import Request
from tui_eval.agents.neuro_san.sly_data import HELD_BACK, without_sly_data
from tui_eval.events import Exchanged

SECRET = {"login": "tr0ub4dor"}


async def test_json_endpoints() -> None:
    with JsonServer(Planned(body={"reply": "ok", "sly_data": {"card": "4111-1111"}})) as server:
        it = agent("http", url=f"{server.url}/chat", retries=0)
        events, (reply,) = await talk(it, Request(1, "hi", sly_data=SECRET))
        assert server.requests[-1].body["sly_data"] == SECRET
    assert reply.sly_data == {"card": "4111-1111"}
    (told,) = [event.exchange for event in of(events, Exchanged)]
    assert HELD_BACK in told.request and HELD_BACK in told.response
    assert "tr0ub4dor" not in told.request and "4111" not in told.response


async def test_commands(tmp_path: Path) -> None:
    code = "import json,sys; print(json.dumps({'reply': 'ok', 'sly_data': json.load(sys.stdin)['sly_data']}))"
    it = agent("command", tmp_path, command=[sys.executable, "-c", code])
    events, (reply,) = await talk(it, Request(1, "hi", sly_data=SECRET))
    assert reply.sly_data == SECRET
    (told,) = [event.exchange for event in of(events, Exchanged)]
    assert "tr0ub4dor" not in told.request + told.response


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("no json", "no json"),
        ('{"a": 1}', '{"a": 1}'),
        ('{"sly_data":{}}', '{"sly_data":{}}'),
        ('{"a":[{"sly_data":{"k":1}}]}', f'{{"a":[{{"sly_data":"{HELD_BACK}"}}]}}'),
        ('{"sly_data":1}\n{"b":2}\n', f'{{"sly_data":"{HELD_BACK}"}}\n{{"b":2}}\n'),
        ('data: {"sly_data":1}\n\n', f'data: {{"sly_data":"{HELD_BACK}"}}\n\n'),
        ('{"b":2,"sly_data": {"cut', f'{{"b":2,"sly_data": "{HELD_BACK}"…'),
        ('{"text":"say \\"sly_data\\": 5"}', '{"text":"say \\"sly_data\\": 5"}'),
    ],
)
def test_bodies(text: str, kept: str) -> None:
    assert without_sly_data(text) == kept
