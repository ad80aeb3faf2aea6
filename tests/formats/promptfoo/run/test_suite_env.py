"""`env` of a promptfoo suite reaches its providers and its graders."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.servers.openai import OpenAIServer
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.store.reader import RunReader

SUITE = """
env:
  OPENAI_API_KEY: key-of-the-suite
  OPENAI_BASE_URL: %s
prompts: ['hi']
providers: [openai:chat:asked]
tests:
  - vars: {v: 1}
    assert: [{type: llm-rubric, value: is kind, provider: 'openai:chat:grader'}]
"""


async def test_providers_and_graders_have_a_suite_s_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with OpenAIServer() as server:
        (tmp_path / "promptfooconfig.yaml").write_text(SUITE % server.base)
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(tmp_path)], trust=True))
        await active.execute()
        assert {seen.body["model"] for seen in server.requests} == {"asked", "grader"}
        assert {seen.headers["Authorization"] for seen in server.requests} == {"Bearer key-of-the-suite"}
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    assert "key-of-the-suite" not in repr([reader.case(row.id) for row in reader.cases()])
