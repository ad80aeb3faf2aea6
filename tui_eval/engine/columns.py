"""Columns of one promptfoo test that are compared when all of them have run (select-best, max-score)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tui_eval.engine.environment import Environment
from tui_eval.engine.judging import judge_services
from tui_eval.engine.schedule import Ticket
from tui_eval.model import Attempt

Ended = tuple[Ticket, Attempt]


class Columns:
    """Keeps ended attempts until those of all columns of their test have ended."""

    def __init__(self, tickets: Sequence[Ticket]) -> None:
        self._of: dict[int, bytes] = {}
        self._left: dict[bytes, int] = {}
        self._ended: dict[bytes, list[Ended]] = {}
        seen: dict[tuple[bytes, str, str | None, str | None], int] = {}
        # What only promptfoo's suites need is imported where there is one: 8 ms of every other run.
        for ticket in tickets:
            case = ticket.job.case
            if case.format != "promptfoo":
                continue
            from tui_eval.assertions.promptfoo.comparison import compares

            if not compares(case):
                continue
            same = msgspec.json.encode(
                [case.suite, case.name, case.line, case.vars, case.assertions, ticket.number], enc_hook=str
            )
            # A test that stands twice in the suite is two tests.
            column = (same, ticket.job.agent, ticket.job.model, case.prompt)
            seen[column] = seen.get(column, 0) + 1
            key = same + b"%d" % seen[column]
            self._of[ticket.order] = key
            self._left[key] = self._left.get(key, 0) + 1

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
        return sorted(self._ended.pop(key), key=lambda item: item[0].order)


def open_attempt(attempt: Attempt) -> Attempt:
    """An attempt as it is kept until its columns are compared: never a pass before."""
    if attempt.outcome != "passed":
        return attempt
    from tui_eval.assertions.promptfoo.comparison import OPEN

    return msgspec.structs.replace(attempt, outcome="error", message=OPEN)


async def compared(columns: list[Ended], environment: Environment) -> None:
    """Judge what compares these columns, in place."""
    from tui_eval.assertions.promptfoo.comparison import compare

    job = columns[0][0].job
    await compare(job.case, [attempt for _, attempt in columns], judge_services(job, environment), job.compat)
