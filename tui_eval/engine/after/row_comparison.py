"""Columns of one test that are compared when all of them have run (select-best, max-score)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from tui_eval.assertions.judging import OPEN
from tui_eval.engine.attempt.attempt_judging import judge_services
from tui_eval.engine.plan import Job
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.schedule import Ticket
from tui_eval.formats import format_of
from tui_eval.model import Attempt, Case
from tui_eval.store.column_names import column_agent
from tui_eval.store.reader import RunReader

Ended = tuple[Ticket, Attempt]


class RowColumns:
    """Keeps ended attempts until those of all columns of their test have ended. `earlier` are columns that
    ended before this run (part) began; their tickets have orders below 0."""

    def __init__(self, tickets: Sequence[Ticket], earlier: Sequence[Ended] = ()) -> None:
        self._of: dict[int, bytes] = {}
        self._left: dict[bytes, int] = {}
        self._ended: dict[bytes, list[Ended]] = {}
        seen: dict[tuple[bytes, str, str | None, str | None], int] = {}
        job, case = None, None
        for ticket in chain((ticket for ticket, _ in earlier), tickets):
            if ticket.job is not job:  # the attempts of a job follow one another
                job = ticket.job
                case = job.case if compares(job.case) else None
            if case is None:
                continue
            expected = [(assertion.type, assertion.line) for assertion in case.assertions]
            same = msgspec.json.encode(
                [case.suite, case.name, case.line, case.vars, expected, ticket.number], enc_hook=str
            )
            # A test that stands twice in the suite is two tests.
            column = (same, column_agent(case, ticket.job.agent), ticket.job.model, case.prompt)
            seen[column] = seen.get(column, 0) + 1
            key = same + b"%d" % seen[column]
            self._of[ticket.order] = key
            self._left[key] = self._left.get(key, 0) + (ticket.order >= 0)
        for ticket, attempt in earlier:
            key = self._of.get(ticket.order)
            if key is not None:
                self._ended.setdefault(key, []).append((ticket, _reopened(attempt)))

    def waits(self, ticket: Ticket) -> bool:
        """Whether an attempt is compared with others before it counts."""
        return ticket.order in self._of

    def take(self, ticket: Ticket, attempt: Attempt) -> list[Ended] | None:
        """All columns of the test, in order, once the last of them has ended; None before."""
        key = self._of[ticket.order]
        ended = self._ended.setdefault(key, [])
        ended.append((ticket, attempt))
        self._left[key] -= 1
        if self._left[key]:
            return None
        return sorted(self._ended.pop(key), key=lambda item: item[0].job.case.order)


def compares(case: Case) -> bool:
    """Whether the columns of a case are compared with each other."""
    return format_of(case.format).compares_outputs(case)


def open_attempt(attempt: Attempt) -> Attempt:
    """An attempt as it is kept until its columns are compared: never a pass before."""
    if attempt.outcome != "passed":
        return attempt
    return msgspec.structs.replace(attempt, outcome="error", message=OPEN)


def _reopened(attempt: Attempt) -> Attempt:
    """An attempt that was kept open, as it was judged."""
    if attempt.message != OPEN:
        return attempt
    return msgspec.structs.replace(attempt, outcome="passed", message="passed")


def ended_columns(reader: RunReader, jobs: Sequence[Job], *, same_run: bool) -> list[Ended]:
    """The ended columns of a run that are compared with those of `jobs`: to be written again (`same_run`),
    or from the run that a column is run again for (their tickets then have no attempt id)."""
    wanted = [job for job in jobs if compares(job.case)]
    if not wanted:
        return []
    suites = {job.suite for job in wanted}
    again = {(job.case.case_id, job.agent, job.model) for job in wanted}
    found: list[Ended] = []
    for row in reader.cases():
        if row.suite not in suites or (not same_run and (row.case_id, row.agent, row.model) in again):
            continue
        case = reader.case(row.id)
        if not compares(case):
            continue
        job = msgspec.structs.replace(wanted[0], held=case, agent=row.agent, model=row.model)
        for entry in reader.attempts(row.id):
            attempt = reader.attempt(entry.id) if entry.state == "done" else None
            if attempt is not None:
                ref = entry.id if same_run else 0
                found.append((Ticket(-1 - len(found), job, entry.attempt, ref), attempt))
    return found


async def compared(columns: list[Ended], environment: RunContext) -> None:
    """Judge what compares these columns, in place."""
    job = next(ticket.job for ticket, _ in columns if ticket.order >= 0)
    services = judge_services(job, environment)
    form = format_of(job.format)
    await form.compare_outputs(job.case, [attempt for _, attempt in columns], services, job.compat)
