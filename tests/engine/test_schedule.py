"""What an agent can take: tokens a minute."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tui_eval.engine.request import RunRequest
from tui_eval.engine.runs import prepare

SUITE = "agent: helper\ntest_cases: [{name: one, input: hi}, {name: two, input: hi}]\n"


@pytest.mark.parametrize(("tokens", "waits"), [(60, True), (6000, False)])
async def test_tokens_a_minute(project, tokens: int, waits: bool) -> None:
    config = f"agents:\n  helper: {{type: scripted, script: agent.script.yaml, rate: {{tokens: {tokens}}}}}\n"
    script = "speed: 0\ndefault: {say: ok, usage: {input: 50, output: 11}}\n"
    root: Path = project(suite=SUITE, script=script, config=config)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    began = time.monotonic()
    assert await active.execute() == "finished"
    assert (time.monotonic() - began > 0.9) == waits, "61 tokens overdraw 60 a minute by a second"
