"""The text that an assertion looked at."""

from __future__ import annotations

from tui_eval.model import Attempt, Verdict


def reply_text(attempt: Attempt, verdict: Verdict) -> str:
    """The text that an assertion looked at: its turn's reply, the last one where it has no turn."""
    replies = [reply for reply in attempt.replies if verdict.turn in (None, reply.turn)]
    text = replies[-1].text if replies else ""
    if text.strip(" …"):
        return text
    if isinstance(verdict.actual, str) and verdict.actual:
        return verdict.actual
    said = [
        entry.text
        for entry in attempt.transcript
        if entry.kind == "assistant" and verdict.turn in (None, entry.turn)
    ]
    return said[-1] if said else attempt.response_text
