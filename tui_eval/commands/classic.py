"""`tui-eval run --report classic`: the guide's lines as the cases end, in the order of the suite."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tui_eval.commands.output import say
from tui_eval.commands.progress import Progress
from tui_eval.engine.plan import Job
from tui_eval.guard.text import visible
from tui_eval.model import Attempt
from tui_eval.reports import classic_report


class ClassicProgress(Progress):
    """Prints `  Running: NAME... ` when a case's turn has come and `PASS` or `FAIL` when it has ended.

    Cases run at the same time; what ends early waits for those before it.
    """

    def __init__(self) -> None:
        super().__init__("none")
        self._jobs: list[Job] = []
        self._names: list[str] = []
        self._attempts: dict[int, list[Attempt]] = {}
        self._results: list[classic_report.ClassicResult] = []
        self._next = 0
        self._open = False

    def expect(self, jobs: Sequence[Job]) -> None:
        """The cases that will run, in order; the first one's line begins."""
        self._jobs = list(jobs)
        columns: dict[str, list[Job]] = {}
        for job in jobs:
            columns.setdefault(job.case.case_id, []).append(job)
        for job in jobs:
            others = columns[job.case.case_id]
            agents = len({other.agent for other in others})
            column = "" if len(others) == 1 else f" [{job.agent if agents > 1 else job.model or job.agent}]"
            self._names.append(job.case.name + column)
        self._begin()

    def ended(self, job: Job, number: int, attempt: Attempt) -> None:
        """One attempt has ended; prints whatever is complete up to here."""
        self._attempts.setdefault(id(job), []).append(attempt)
        while self._next < len(self._jobs):
            job = self._jobs[self._next]
            attempts = self._attempts.get(id(job), [])
            if len(attempts) < job.attempts:
                break
            self._end(job, attempts)
            self._begin()

    def finish(self) -> None:
        """The report. A run that was stopped early shows what has ended."""
        for job in self._jobs[self._next :]:
            if attempts := self._attempts.get(id(job)):
                self._begin()
                self._end(job, attempts)
            else:
                self._next += 1
        if self._open:
            say("not run")
        runs = max((job.attempts for job in self._jobs), default=1)
        say(classic_report.report(self._results, runs))
        if left := len(self._jobs) - len(self._results):
            say(f"Not run: {left}")

    def _begin(self) -> None:
        if not self._open and self._next < len(self._jobs):
            self._write(classic_report.running(self._names[self._next]))
            self._open = True

    def _end(self, job: Job, attempts: list[Attempt]) -> None:
        attempts.sort(key=lambda attempt: attempt.attempt)
        kept = [attempt for attempt in attempts if attempt.outcome != "cancelled"]
        result = classic_report.result_of(self._names[self._next], kept, job.required)
        self._results.append(result)
        say(classic_report.ended(result, job.attempts))
        self._next += 1
        self._open = False

    def _write(self, text: str) -> None:
        say(visible(text), end="", to=sys.stdout)
