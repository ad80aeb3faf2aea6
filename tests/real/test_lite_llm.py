"""LiteLLM itself against a server on this machine: `pytest -m real`, where the extra `litellm` is installed."""

from __future__ import annotations

import pytest

from tests.servers import OpenAIServer, Planned
from tests.support.agents import services, talk
from tui_eval.agents import AgentError, create
from tui_eval.config.project import AgentSpec
from tui_eval.events import Finished, TextDelta, ToolCall

pytestmark = pytest.mark.real


@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_through_litellm(stream: bool) -> None:
    pytest.importorskip("litellm")
    plan = [
        Planned(text="one two three", usage=(10, 3)),
        Planned(tool_calls=[("look", {"q": "x"})]),
        Planned(status=401, body={"error": {"message": "no such key"}}),
    ]
    with OpenAIServer(*plan) as server:
        options = {"base_url": server.base, "api_key": "sk-12345678", "parameters": {"stream": stream}}
        it = create(
            AgentSpec("it", "litellm", options, model="openai/mock", retries=0), services(trusted=True)
        )
        await it.prepare(None)
        try:
            first, _ = await talk(it, "hello")
            text = "".join(event.text for event in first if isinstance(event, TextDelta))
            (finished,) = [event for event in first if isinstance(event, Finished)]
            assert text == finished.reply.text == "one two three"
            assert finished.reply.usage is not None and finished.reply.usage.input_tokens == 10
            calls = [event for event in (await talk(it, "again"))[0] if isinstance(event, ToolCall)]
            assert [(call.name, call.arguments) for call in calls] == [("look", {"q": "x"})]
            with pytest.raises(AgentError, match=r"LiteLLM: openai/mock: .*no such key") as caught:
                await talk(it, "and again")
            assert caught.value.status == 401 and "\n" not in str(caught.value)
        finally:
            await it.close()
        assert server.requests[0].headers["Authorization"] == "Bearer sk-12345678"
