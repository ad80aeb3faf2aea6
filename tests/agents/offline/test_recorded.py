"""A recorded transcript as messages: what a server takes, and nothing else."""

from __future__ import annotations

from tui_eval.agents.models.recorded_messages import anthropic_messages, chat_messages
from tui_eval.model import Entry

TALK = [
    Entry(1, "user", text="price?"),
    Entry(1, "reasoning", text="hm"),
    Entry(1, "assistant", text="I look."),
    Entry(1, "tool_call", name="search", arguments={"q": "a"}, call_id="1"),
    Entry(1, "tool_call", name="search", arguments=None, call_id="2"),
    Entry(1, "tool_result", name="search", result={"price": 79}, call_id="1"),
    Entry(1, "tool_result", name="search", error="none", call_id="2"),
    Entry(1, "tool_call", name="lost", arguments={}, call_id="3"),
    Entry(1, "assistant", text="a sub-agent", agent="sub"),
    Entry(1, "assistant", text="It is 79."),
    Entry(1, "note", text="x"),
    Entry(2, "user", text="thanks"),
]


def test_chat_completions() -> None:
    messages = chat_messages(TALK)
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert messages[1]["content"] == "I look."
    assert [(call["id"], call["function"]["arguments"]) for call in messages[1]["tool_calls"]] == [
        ("1", '{"q":"a"}'),
        ("2", "{}"),
    ]
    assert [message["content"] for message in messages[2:4]] == ['{"price":79}', "none"]


def test_anthropic() -> None:
    messages = anthropic_messages(TALK)
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [block["type"] for block in messages[1]["content"]] == ["text", "tool_use", "tool_use"]
    results = messages[2]["content"]
    assert [block.get("is_error", False) for block in results] == [False, True]
    assert {block["tool_use_id"] for block in results} == {"1", "2"}


def test_rounds_of_calls_stay_apart() -> None:
    rounds = [
        Entry(1, "user", text="x"),
        Entry(1, "tool_call", name="a", arguments={}, call_id="1"),
        Entry(1, "tool_result", name="a", result="r1", call_id="1"),
        Entry(1, "tool_call", name="b", arguments={}, call_id="2"),
        Entry(1, "tool_result", name="b", result="r2", call_id="2"),
        Entry(1, "assistant", text="done"),
    ]
    assert [message["role"] for message in chat_messages(rounds)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert len(anthropic_messages(rounds)) == 6


def test_what_anthropic_refuses_is_not_handed_on() -> None:
    """Blank texts, which models write before they call a tool, and arguments that are no object."""
    told = [
        Entry(1, "user", text="x"),
        Entry(1, "assistant", text="\n\n"),
        Entry(1, "tool_call", name="a", arguments='{"q": "cut o', call_id="1"),
        Entry(1, "tool_result", name="a", error="no object", call_id="1"),
        Entry(1, "assistant", text=" "),
        Entry(1, "tool_call", name="b", arguments=[1], call_id="2"),
        Entry(1, "tool_result", name="b", result="r", call_id="2"),
    ]
    _, first, _, second, _ = anthropic_messages(told)
    assert first["content"] == [{"type": "tool_use", "id": "1", "name": "a", "input": {}}]
    assert second["content"] == [{"type": "tool_use", "id": "2", "name": "b", "input": {}}]
    calls = [message for message in chat_messages(told) if message["role"] == "assistant"]
    assert [message["content"] for message in calls] == [None, None]
    written = [message["tool_calls"][0]["function"]["arguments"] for message in calls]
    assert written == ['{"q": "cut o', "[1]"]
