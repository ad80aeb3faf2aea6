"""Prompts that are lists of messages, and what only looks like one, as promptfoo 0.121.20 took them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tui_eval.suites.chat_prompts import broken_chat, chat_messages

CALL = {"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [CALL]}],
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}],
        [
            {"role": "user", "content": "q"},
            {"type": "function_call", "call_id": "c1", "name": "w", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        ],
    ],
)
def test_messages_that_call_tools_are_messages(messages: list[dict[str, Any]]) -> None:
    assert chat_messages(json.dumps(messages)) == messages


@pytest.mark.parametrize(
    "prompt",
    [
        '[{"role": "admin", "name": "Bo"}]',
        '[{"type": "shop", "name": "a"}]',
        '["a", "b"]',
        '{"role": "user", "content": "q"}',
    ],
)
def test_other_lists_are_text(prompt: str) -> None:
    assert chat_messages(prompt) is None and broken_chat(prompt) == ""


def test_a_block_of_yaml_keeps_its_last_line_break() -> None:
    assert chat_messages("- role: user\n  content: |\n    hi\n    there\n") == [
        {"role": "user", "content": "hi\nthere\n"}
    ]


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ('[{"role": "user", "content": "he said "no""}]', "not valid JSON"),
        ('[{"role": "user", "content": "two\nlines"}]', "not valid JSON"),
        ('{"a": Oslo}', "not valid JSON"),
        ("[1, NaN]", "not valid JSON"),
        ('- role: user\n  content: "un"closed\n', "not valid YAML"),
        ("[INST] hi [/INST]", ""),
        ("{{x}} is open", ""),
        ("[1, 2", ""),
        ("- a: list", ""),
        ("text", ""),
    ],
)
def test_what_is_written_as_json_or_messages_and_is_broken_is_told(prompt: str, why: str) -> None:
    assert broken_chat(prompt).partition(":")[0] == why
