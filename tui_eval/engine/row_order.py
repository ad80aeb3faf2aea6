"""What cases hand on to later cases of their suite, and the order that follows from it.

Which do is the format's to say (`stored_as`, `conversation`, `paces`). Attempts are apart: the second of a case sees the
second ones of the cases before it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from tui_eval.engine.plan import CasesOf, Job
from tui_eval.formats import format_of
from tui_eval.model import Attempt, Case, Entry
from tui_eval.store.column_names import column_agent
from tui_eval.store.reader import RunReader


def arrange(jobs: Sequence[Job], delay: float | None = None, concurrency: int | None = None) -> None:
    """Say which jobs must follow one another, and how many may run at once.

    Args:
        delay: seconds between two cases, from the command line; None: what the suites say.
        concurrency: attempts at once from the command line; None: what the suites say.
    """
    suites: dict[str, list[Job]] = {}
    for job in jobs:
        suites.setdefault(job.suite, []).append(job)
    for own in suites.values():
        form, settings = format_of(own[0].format), own[0].settings
        paces = form.paces(CasesOf(own), settings, delay, concurrency is not None)
        for job, pace in zip(own, paces or (), strict=paces is not None):
            job.group, job.at_once, job.pause, job.deadline_suite = pace


def suites_concurrency(jobs: Sequence[Job]) -> int | None:
    """The most attempts at once that the suites among the jobs ask for."""
    found = (format_of(job.format).at_once(job.settings) for job in jobs)
    return max((number for number in found if number is not None), default=None)


def hands_on(case: Case) -> bool:
    """Whether later cases of the suite may ask for what comes of this one."""
    form = format_of(case.format)
    return form.conversation(case) is not None or form.stored_as(case) is not None


class HandedOn(msgspec.Struct):
    """What cases hand on to one attempt, by their order: stored outputs, and the cases of its conversation."""

    stored: dict[int, tuple[str, Any]]
    rows: dict[int, dict[str, Any]]


class _Row(msgspec.Struct, frozen=True):
    """A case of a conversation, as later ones see it. `own`: a provider of its own answered it, whatever model the
    column has."""

    said: dict[str, Any]
    own: bool = False


class Memory:
    """What the cases of one run have handed on so far; each sees what came from cases before it."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, int], dict[int, tuple[str, Any]]] = {}
        self._conversations: dict[tuple[Any, ...], dict[int, dict[str | None, _Row]]] = {}

    def stored(self, job: Job, number: int) -> dict[str, Any]:
        """Outputs that cases before this one stored, by name."""
        found = self._stored.get((job.suite, number), {})
        return {name: value for order, (name, value) in sorted(found.items()) if order < job.case.order}

    def conversation(self, job: Job, number: int) -> list[dict[str, Any]]:
        """The cases of the conversation before this one: `{prompt, input, output, metadata}` each."""
        case = job.case
        if not format_of(case.format).hears_conversation(case):
            return []
        return [row for order, row in sorted(self._rows(job, number).items()) if order < case.order]

    def _rows(self, job: Job, number: int) -> dict[int, dict[str, Any]]:
        """Those of a job's conversation by their order: of its model, and those that a model of their own answered."""
        key, own = _key(job.case, job.agent, number), _answers_itself(job.case, job.agent)
        found: dict[int, dict[str, Any]] = {}
        for order, by_model in self._conversations.get(key or (), {}).items():
            exact = by_model.get(job.model)
            row = exact or next((one for one in by_model.values() if own or one.own), None)
            if row is not None:
                found[order] = row.said
        return found

    def remember(self, case: Case, agent: str, model: str | None, attempt: Attempt) -> None:
        """Keep what later cases of the run may ask for from an attempt that was answered. A conversation goes on after
        an answer that is an error, or that could not be judged."""
        if attempt.error is not None and not attempt.replies and not _told(attempt):
            return
        output = attempt.output if attempt.output is not None else attempt.response_text
        name = format_of(case.format).stored_as(case) if attempt.error is None else None
        if name is not None and (output or isinstance(output, dict | list)):
            self._stored.setdefault((case.suite, attempt.attempt), {})[case.order] = (name, output)
        if (key := _key(case, agent, attempt.attempt)) is not None:
            row = _Row(_remembered(attempt, output), _answers_itself(case, agent))
            self._conversations.setdefault(key, {}).setdefault(case.order, {})[model] = row

    def handed_on(self, job: Job, number: int) -> HandedOn | None:
        """What an attempt that is executed elsewhere needs of it; None: nothing."""
        stored = self._stored.get((job.suite, number), {})
        rows = self._rows(job, number)
        return HandedOn(stored, rows) if stored or rows else None

    def take(self, job: Job, number: int, handed: HandedOn) -> None:
        """The reverse of `handed_on`, where the attempt is executed."""
        self._stored[job.suite, number] = dict(handed.stored)
        if (key := _key(job.case, job.agent, number)) is not None:
            rows = handed.rows.items()
            self._conversations[key] = {order: {job.model: _Row(row)} for order, row in rows}

    def recall(self, reader: RunReader, jobs: Sequence[Job]) -> None:
        """Take from a run what cases of the same suites handed on: for cases of it that are run again, and
        those that an interruption left."""
        suites = {job.suite for job in jobs if format_of(job.format).templates}
        rows = {row.id: row for row in reader.cases() if row.suite in suites}
        for ref, row in rows.items():
            case = reader.case(ref)
            if not hands_on(case):
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
        if not isinstance(row["output"], list | dict):
            row["output"] = row["output"] or ""
        if reply.metadata:
            row["metadata"] = reply.metadata
    return row


_ANSWERS = frozenset(("reported", "unauthorized", "rate-limited", "server-failed", "http-status"))
"""Codes of errors that are what the agent said; after any other there is no answer."""


def _told(attempt: Attempt) -> bool:
    return any(one.kind == "agent" and one.code in _ANSWERS for one in attempt.evidence or ())


def _answers_itself(case: Case, agent: str) -> bool:
    return bool(case.column) and agent == case.agent


def _key(case: Case, agent: str, number: int) -> tuple[Any, ...] | None:
    """Of a case with a provider of its own, that of its column."""
    talk = format_of(case.format).conversation(case)
    return None if talk is None else (case.suite, column_agent(case, agent), number, *talk)


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
