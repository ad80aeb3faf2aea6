"""What cases hand on to later cases of their suite, and the order that follows from it.

Which do is the format's to say (`stored_as`, `conversation`, `paces`).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from tui_eval.engine.plan import CasesOf, Job
from tui_eval.formats import format_of
from tui_eval.guard.secrets import MASK
from tui_eval.model import Attempt, Case, Entry
from tui_eval.store.column_names import column_agent
from tui_eval.store.reader import RunReader

_Handed = TypeVar("_Handed")


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
    """What cases hand on to one attempt: stored outputs by name, and the rows of its conversation before it;
    `masked` as `Memory`'s."""

    stored: dict[str, Any]
    rows: list[dict[str, Any]]
    masked: bool = False


class _Row(msgspec.Struct, frozen=True):
    """A case of a conversation, as later ones see it. `own`: a provider of its own answered it, whatever model the
    column has."""

    said: dict[str, Any]
    own: bool = False


def test_of(case: Case) -> tuple[Any, ...]:
    """What the combinations of one test's variables share, in all its columns."""
    number = case.first_number or case.test_number
    return (case.suite, "test", number) if number else (case.suite, case.order)


class Memory:
    """What the cases of one run have handed on so far; each sees what came from cases before it.

    An attempt sees those of its own number: it is one more go at the whole. Of a case with fewer attempts, that is the
    last it has. With `compat: reference` it sees all attempts before it in promptfoo's order, its own case's as well.
    """

    def __init__(self) -> None:
        # By order, then number; None: the attempt has handed on nothing.
        self._stored: dict[str, dict[int, dict[int, tuple[str, Any] | None]]] = {}
        self._conversations: dict[tuple[Any, ...], dict[int, dict[str | None, dict[int, _Row | None]]]] = {}
        self._tests: dict[tuple[str, int], tuple[Any, ...]] = {}
        self._first: dict[tuple[Any, ...], int] = {}
        self._handed: dict[tuple[Any, ...], HandedOn] = {}
        self.masked = False
        """Whether something of it is known from a record alone, which has none of the secrets that were in it."""

    def stored(self, job: Job, number: int) -> dict[str, Any]:
        """Outputs that cases before this one stored, by name."""
        if self._handed and (handed := self._handed.get(_attempt(job, number))) is not None:
            return handed.stored
        found: dict[int, dict[int, tuple[str, Any] | None]] = {}
        for order, numbers in self._stored.get(job.suite, {}).items():
            exact = job.compat == "reference"
            found[order] = numbers if exact else {number: _of_number(numbers, number)}
        return dict(one for one in self._before(found, job, number) if one is not None)

    def conversation(self, job: Job, number: int) -> list[dict[str, Any]]:
        """The cases of the conversation before this one: `{prompt, input, output, metadata}` each."""
        case = job.case
        if not format_of(case.format).hears_conversation(case):
            return []
        if self._handed and (handed := self._handed.get(_attempt(job, number))) is not None:
            return handed.rows
        key, own = _key(case, job.agent), _answers_itself(case, job.agent)
        found: dict[int, dict[int, _Row | None]] = {}
        for order, by_model in self._conversations.get(key or (), {}).items():
            exact = job.compat == "reference"
            numbers = {at for known in by_model.values() for at in known} if exact else {number}
            found[order] = {at: _of_model(by_model, job.model, at, own=own, exact=exact) for at in numbers}
        return [row.said for row in self._before(found, job, number) if row is not None]

    def _before(self, found: dict[int, dict[int, _Handed]], job: Job, number: int) -> list[_Handed]:
        """What was handed on before an attempt, in order."""
        case = job.case
        if job.compat != "reference":
            return [
                one
                for order, numbers in sorted(found.items())
                if order < case.order
                for one in numbers.values()
            ]
        self._place(case)
        here = self._turn(case.suite, case.order, number)
        turns = [
            (turn, one)
            for order, numbers in found.items()
            for at, one in numbers.items()
            if (turn := self._turn(case.suite, order, at)) < here
        ]
        return [one for _, one in sorted(turns, key=lambda pair: pair[0])]

    def _place(self, case: Case) -> None:
        test = self._tests[case.suite, case.order] = test_of(case)
        self._first[test] = min(case.order, self._first.get(test, case.order))

    def _turn(self, suite: str, order: int, number: int) -> tuple[int, int, int]:
        """When promptfoo has its turn: test by test, of each the first attempt at all its combinations, then
        the second."""
        return self._first[self._tests[suite, order]], number, order

    def remember(self, case: Case, agent: str, model: str | None, attempt: Attempt) -> None:
        """Keep what later cases of the run may ask for from an attempt. A conversation goes on after an
        answer that is an error, or that could not be judged; what is no answer at all leaves no row."""
        key, name = _key(case, agent), format_of(case.format).stored_as(case)
        if key is None and name is None:
            return
        self._place(case)
        number = attempt.attempt
        output = attempt.output if attempt.output is not None else attempt.response_text
        if name is not None:
            keeps = attempt.error is None and (output or isinstance(output, dict | list))
            by_number = self._stored.setdefault(case.suite, {}).setdefault(case.order, {})
            by_number[number] = (name, output) if keeps else None
        if key is not None:
            answered = attempt.error is None or attempt.replies or _told(attempt)
            row = _Row(_remembered(attempt, output), _answers_itself(case, agent)) if answered else None
            rows = self._conversations.setdefault(key, {}).setdefault(case.order, {})
            rows.setdefault(model, {})[number] = row

    def handed_on(self, job: Job, number: int) -> HandedOn | None:
        """What an attempt that is executed elsewhere needs of it; None: there is nothing."""
        if job.suite not in self._stored and _key(job.case, job.agent) not in self._conversations:
            return None
        return HandedOn(self.stored(job, number), self.conversation(job, number), self.masked)

    def take(self, job: Job, number: int, handed: HandedOn) -> None:
        """The reverse of `handed_on`, where the attempt is executed."""
        self._handed[_attempt(job, number)] = handed
        self.masked |= handed.masked

    def release(self, job: Job, number: int) -> None:
        """Drop what was taken for an attempt that has ended."""
        self._handed.pop(_attempt(job, number), None)

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
                    self.masked |= MASK in str(attempt.output or attempt.response_text) + (
                        attempt.prompt_sent or ""
                    )


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


def _attempt(job: Job, number: int) -> tuple[Any, ...]:
    return job.case.case_id, job.agent, job.model, number


def _key(case: Case, agent: str) -> tuple[Any, ...] | None:
    """Of a case with a provider of its own, that of its column."""
    talk = format_of(case.format).conversation(case)
    return None if talk is None else (case.suite, column_agent(case, agent), *talk)


def _of_number(numbers: dict[int, _Handed | None], number: int) -> _Handed | None:
    """Of the attempt of this number, else of the last before it (promptfoo's `repeat` of one test)."""
    if number not in numbers:
        number = max((one for one in numbers if one < number), default=number)
    return numbers.get(number)


def _of_model(
    by_model: dict[str | None, dict[int, _Row | None]],
    model: str | None,
    number: int,
    *,
    own: bool,
    exact: bool,
) -> _Row | None:
    """The row of the job's model, else one that a model of its own answered."""
    rows = {
        one: numbers.get(number) if exact else _of_number(numbers, number)
        for one, numbers in by_model.items()
    }
    if (row := rows.get(model)) is not None:
        return row
    return next((row for row in rows.values() if row is not None and (own or row.own)), None)


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
