"""Running a case one turn at a time: before each turn a person looks, edits, skips or lets it run on.

While an attempt waits for them, viewers see it in the store: its `detail` begins with `step:` and its
live text ends with a row of kind `step` that holds what would be sent. After each turn a row of kind
`verdict` reports what the assertions so far say.
"""

from __future__ import annotations

import asyncio
import re
from typing import Literal

import msgspec

from tui_eval.guard.masker import Masker
from tui_eval.guard.secrets import MASK
from tui_eval.model import decoded
from tui_eval.store.writer import RunWriter

Action = Literal["send", "skip", "run_on", "stop"]


class Decision(msgspec.Struct):
    """What to do with the turn that waits. `text` replaces its message where it is not None."""

    action: Action = "send"
    text: str | None = None


class Stepper:
    """The turns that wait for a person, by attempt; they see these with secrets masked. One event loop only."""

    def __init__(self, writer: RunWriter | None, masker: Masker) -> None:
        self._writer, self._masker = writer, masker
        self._waiting: dict[int, asyncio.Future[Decision]] = {}
        self._running_on: set[int] = set()
        self.sent = False
        """Whether anything was sent: a run in which nothing was leaves no trace."""

    async def before(self, attempt_ref: int, turn: int, text: str | None) -> Decision:
        """Wait for what the person decides on this turn; at once after `run_on`."""
        if attempt_ref in self._running_on:
            return Decision()
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[attempt_ref] = future
        shown = self._masker.text(text or "")
        if self._writer is not None:
            self._writer.waits(attempt_ref, f"step: before turn {turn}")
            self._writer.live(attempt_ref, "step", shown, name=str(turn))
        try:
            decision = await future
        finally:
            self._waiting.pop(attempt_ref, None)
        self.sent = self.sent or decision.action in ("send", "run_on")
        if decision.action == "run_on":
            self._running_on.add(attempt_ref)
        if self._writer is not None:
            self._writer.running_again(attempt_ref)
        if decision.text is not None and text is not None:
            decision = Decision(decision.action, _with_secrets(decision.text, shown, text))
        return decision

    def decide(self, attempt_ref: int, decision: Decision) -> bool:
        """Answer for the attempt's turn; False where none waits."""
        future = self._waiting.get(attempt_ref)
        if future is None or future.done():
            return False
        future.set_result(decision)
        return True

    def told(self, attempt_ref: int, turn: int, verdicts: list[str]) -> None:
        """Show what the assertions say after a turn."""
        if self._writer is not None and verdicts:
            self._writer.live(attempt_ref, "verdict", "\n".join(verdicts), name=str(turn))


def _with_secrets(edited: str, shown: str, text: str) -> str:
    """What was made of a text that was shown masked, with its secrets again: in their order, or where it has
    one only."""
    parts = shown.split(MASK)
    found = re.fullmatch("(.+?)".join(map(re.escape, parts)), text, re.DOTALL) if len(parts) > 1 else None
    if found is None:
        return edited
    secrets, marks = found.groups(), edited.count(MASK)
    if len(set(secrets)) == 1:
        return edited.replace(MASK, secrets[0])
    if marks != len(secrets):
        return edited
    return "".join(part + secret for part, secret in zip(edited.split(MASK), (*secrets, ""), strict=True))


decoded(Decision)
