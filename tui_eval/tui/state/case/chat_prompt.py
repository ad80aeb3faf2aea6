"""A prompt that is a list of chat messages, as these messages: who says what, in place of its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tui_eval.tui.state.text.json_lines import dumped

LONGEST = 200_000
"""Characters of a prompt that are read; a longer one stands as it was sent."""
_STYLES = {
    "system": "role-note",
    "developer": "role-note",
    "assistant": "role-assistant",
    "tool": "role-tool_result",
}
_FOLDS = {"system": 12, "developer": 12}


class ChatMessage(NamedTuple):
    """One message of a prompt."""

    role: str
    text: str

    @property
    def style(self) -> str:
        """The style word of its head."""
        return _STYLES.get(self.role, "role-user")

    @property
    def fold(self) -> int:
        """Lines that are shown while it is folded."""
        return _FOLDS.get(self.role, 40)


def messages_in(prompt: str) -> Sequence[ChatMessage]:
    """The messages of a prompt in JSON or YAML; none where it is a text."""
    begin = prompt[:2_000].lstrip()
    if len(prompt) > LONGEST or not begin.startswith(("[", "- role:")):
        return ()
    from tui_eval.suites.chat_prompts import chat_messages  # read when there is such a prompt

    found = chat_messages(prompt)
    return [ChatMessage(one["role"], _words(one)) for one in found or ()]


def asked(prompt: str) -> str:
    """What a message to the agent asks: of a list of messages the last one of the user."""
    messages = messages_in(prompt)
    said = [one.text for one in messages if one.role == "user"]
    return (said or [one.text for one in messages] or [prompt])[-1]


def _words(message: dict[str, Any]) -> str:
    """A message's text; pictures, sounds and calls in it as JSON, cut."""
    content = message["content"]
    parts = content if isinstance(content, list) else [content]
    words = [_part(part) for part in parts if part is not None]
    if message.get("tool_calls"):
        words.append(dumped(message["tool_calls"]))
    return "\n".join(words)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return part["text"]
    text = dumped(part)
    return text if len(text) <= 200 else f"{text[:199]}…"
