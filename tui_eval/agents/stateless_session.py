"""A session whose agent keeps nothing: each turn goes out with what was said before."""

from __future__ import annotations

from typing import Any

from tui_eval.agents.base import Request, Session
from tui_eval.model import Reply


class RememberingSession(Session):
    """`messages` is what was said so far, as role and content."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def restart(self) -> None:
        """Forget what was said."""
        self.messages = []

    def remember(self, request: Request, reply: Reply) -> None:
        """Keep a turn. The list is a new one: the one before may still be on its way out."""
        self.messages = [
            *self.messages,
            {"role": "user", "content": request.text},
            {"role": "assistant", "content": reply.text},
        ]
