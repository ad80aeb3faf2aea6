"""What promptfoo's rows hand on to later rows, and the order that follows from it.

`storeOutputAs` puts an output into the variables of all later rows; a prompt with `_conversation`
gets the rows before it that have the same agent, prompt and `metadata.conversationId`. Attempts are
apart: the second of a row sees the second ones of the rows before it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

from tui_eval.engine.plan import Job
from tui_eval.formats import format_of
from tui_eval.javascript.values import json_text
from tui_eval.model import Attempt, Case, Entry
from tui_eval.nunjucks.templates import flag
from tui_eval.store.reader import RunReader

_RESERVED = "_conversation"


def arrange(jobs: Sequence[Job], delay: float | None = None, concurrency: int | None = None) -> None:
    """Say for promptfoo's jobs which must follow one another, and how many may run at once.

    Args:
        delay: seconds between two rows, from the command line; None: what the suites say.
        concurrency: attempts at once from the command line; None: what the suites say.
    """
    suites: dict[str, list[Job]] = {}
    for job in jobs:
        if format_of(job.case.format).rows:
            suites.setdefault(job.case.suite, []).append(job)
    for name, own in suites.items():
        settings = _evaluate(own[0])
        pause = delay if delay is not None else seconds(settings.get("delay")) or 0.0
        at_once = None if concurrency else _whole(settings.get("maxConcurrency"))
        stored = any(job.case.options.get("storeOutputAs") for job in own)
        deadline = seconds(settings.get("maxEvalTimeMs"))
        for job in own:
            job.deadline_suite = deadline
            job.group, job.at_once, job.pause = _place(job.case, name, stored, pause, at_once)


def _place(
    case: Case, suite: str, stored: bool, pause: float, at_once: int | None
) -> tuple[str | None, int, float]:
    provider = case.provider if isinstance(case.provider, dict) else {}
    own_pause = seconds(provider.get("delay")) or 0.0
    if stored or pause > 0:
        return suite, 1, max(pause, own_pause)
    if in_conversation(case):
        return "\n".join((suite, *_conversation_key(case))), 1, own_pause
    if own_pause > 0:
        return f"{suite}\n{case.agent}", 1, own_pause
    if case.options.get("runSerially") is True:
        return f"{suite}\nserially", 1, 0.0
    return (suite, at_once, 0.0) if at_once else (None, 0, 0.0)


def suites_concurrency(jobs: Sequence[Job]) -> int | None:
    """The most attempts at once that the promptfoo suites among the jobs ask for."""
    found = [
        number
        for job in jobs
        if format_of(job.case.format).rows
        if (number := _whole(_evaluate(job).get("maxConcurrency"))) is not None
    ]
    return max(found, default=None)


def converses(case: Case) -> bool:
    """Whether a case gets the rows before it."""
    refused = case.options.get("disableConversationVar") or flag("PROMPTFOO_DISABLE_CONVERSATION_VAR")
    return in_conversation(case) and not refused


def in_conversation(case: Case) -> bool:
    """Whether the prompt of a case asks for the rows before it: then later rows may see it, too."""
    if not format_of(case.format).rows:
        return False
    text = (case.turns[0].text if case.turns else "") or ""
    made = isinstance(case.options.get("promptFunction"), dict) and "conversationId" in case.metadata
    return _RESERVED in text or made


def conversation_id(case: Case) -> str:
    """The conversation of a row with one agent and prompt, as promptfoo tells them apart: 1 is not "1", an empty
    id is one, null is none."""
    given = case.metadata.get("conversationId")
    return "" if given is None else json_text(given)


def _conversation_key(case: Case) -> tuple[str, str, str]:
    return case.agent or "", case.prompt or "", conversation_id(case)


class Memory:
    """What the rows of one run have handed on so far; each row sees what came from rows before it."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, int], dict[int, tuple[str, Any]]] = {}
        self._conversations: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = {}

    def stored(self, job: Job, number: int) -> dict[str, Any]:
        """Outputs that rows before this one stored, by name."""
        found = self._stored.get((job.case.suite, number), {})
        return {name: value for order, (name, value) in sorted(found.items()) if order < job.case.order}

    def conversation(self, job: Job, number: int) -> list[dict[str, Any]]:
        """The rows of the conversation before this one: `{prompt, input, output, metadata}` each."""
        if not converses(job.case):
            return []
        found = self._conversations.get(_key(job.case, job.agent, job.model, number), {})
        return [row for order, row in sorted(found.items()) if order < job.case.order]

    def remember(self, case: Case, agent: str, model: str | None, attempt: Attempt) -> None:
        """Keep what later rows of the run may ask for from an attempt that was answered."""
        if not format_of(case.format).rows or attempt.error is not None:
            return
        output = attempt.output if attempt.output is not None else attempt.response_text
        name = case.options.get("storeOutputAs")
        if isinstance(name, str) and name and (output or isinstance(output, dict | list)):
            self._stored.setdefault((case.suite, attempt.attempt), {})[case.order] = (name, output)
        if in_conversation(case):
            key = _key(case, agent, model, attempt.attempt)
            self._conversations.setdefault(key, {})[case.order] = _remembered(attempt, output)

    def recall(self, reader: RunReader, jobs: Sequence[Job]) -> None:
        """Take from a run what rows of the same suites handed on: for rows of it that are run again, and
        those that an interruption left."""
        suites = {job.case.suite for job in jobs if format_of(job.case.format).rows}
        rows = {row.id: row for row in reader.cases() if format_of(row.format).rows and row.suite in suites}
        for ref, row in rows.items():
            case = reader.case(ref)
            if not (in_conversation(case) or case.options.get("storeOutputAs")):
                continue
            for entry in reader.attempts(ref):
                attempt = reader.attempt(entry.id) if entry.state == "done" else None
                if attempt is not None:
                    self.remember(case, row.agent, row.model, attempt)


def _remembered(attempt: Attempt, output: Any) -> dict[str, Any]:
    """A row as `_conversation` has it: what was sent, of a list of messages the last one's content, and the
    answer as it came, before transforms."""
    sent: Any = attempt.prompt_sent or ""
    with contextlib.suppress(ValueError, RecursionError):
        sent = json.loads(sent) or sent
    last = sent[-1] if isinstance(sent, list) else sent
    content = last.get("content") if isinstance(last, dict) and isinstance(sent, list) else None
    row = {"prompt": sent, "input": content or last, "output": output}
    if attempt.replies:
        reply = attempt.replies[-1]
        row["output"] = reply.text if reply.output is None else reply.output
        if reply.metadata:
            row["metadata"] = reply.metadata
    return row


def _key(case: Case, agent: str, model: str | None, number: int) -> tuple[Any, ...]:
    return case.suite, agent, model, number, *_conversation_key(case)


def context_entries(earlier: Sequence[dict[str, Any]]) -> list[Entry]:
    """The earlier rows as the turns that they are in the transcript, counted from 1."""
    from tui_eval.store.encoding import encode_json

    def text(value: Any) -> str:
        return value if isinstance(value, str) else "" if value is None else encode_json(value).decode()

    entries: list[Entry] = []
    for turn, row in enumerate(earlier, 1):
        if turn == 1:
            entries.append(Entry(turn=turn, kind="note", text="from earlier rows of this conversation"))
        entries.append(Entry(turn=turn, kind="user", text=text(row.get("input"))))
        entries.append(Entry(turn=turn, kind="assistant", text=text(row.get("output"))))
    return entries


def seconds(milliseconds: Any) -> float | None:
    """Milliseconds as a suite gives them, in seconds; None where it gives none above zero."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    return milliseconds / 1000


def _evaluate(job: Job) -> dict[str, Any]:
    settings = job.settings.get("evaluateOptions")
    return settings if isinstance(settings, dict) else {}


def _whole(value: Any) -> int | None:
    return (
        int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 else None
    )
