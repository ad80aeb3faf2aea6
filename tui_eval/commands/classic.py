"""`tui-eval run --report classic`: the guide's lines as the cases end, in the order of the suite."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from tui_eval.commands.output import say, warn
from tui_eval.commands.progress import Progress
from tui_eval.engine.plan import Job
from tui_eval.guard import figures
from tui_eval.guard.figures import usd
from tui_eval.guard.text import visible
from tui_eval.model import Attempt


class ClassicProgress(Progress):
    """Prints `  Running: NAME... ` when a case's turn has come and `PASS` or `FAIL` when it has ended.

    Cases run at the same time; what ends early waits for those before it.
    """

    def __init__(self) -> None:
        super().__init__("none")
        self.quiet = False
        self._jobs: list[Job] = []
        self._case_names: list[str] = []
        self._attempts: dict[int, list[Attempt]] = {}
        self._results: list[ClassicResult] = []
        self._next = 0
        self._open = False
        self._untold: list[str] = []

    def tell(self, text: str) -> None:
        """Say it between the lines of the report: a terminal gets a line of its own now and the one that is not ended
        again, whatever else reads both streams gets it when that has ended."""
        if self._open and not sys.stdout.isatty():
            self._untold.append(text)
            return
        if self._open:
            say("")
        warn(text)
        if self._open:
            self._write(running(self._case_names[self._next]))

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
            self._case_names.append(self.masker.text(job.case.name + column))
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
            self._close()
        runs = max((job.attempts for job in self._jobs), default=1)
        say(report(self._results, runs))
        if known := [one for attempts in self._attempts.values() for one in attempts if one.cached]:
            saved = [one.saved for one in known if one.saved is not None]
            say(f"Cached:  {len(known):,}{f', {usd(sum(saved))} saved' if saved else ''}")
        if left := len(self._jobs) - len(self._results):
            say(f"Not run: {left}")

    def _begin(self) -> None:
        if not self._open and self._next < len(self._jobs):
            self._write(running(self._case_names[self._next]))
            self._open = True

    def _end(self, job: Job, attempts: list[Attempt]) -> None:
        attempts.sort(key=lambda attempt: attempt.attempt)
        kept = [attempt for attempt in attempts if attempt.outcome != "cancelled"]
        result = result_of(self._case_names[self._next], kept, job.required)
        self._results.append(result)
        say(ended(result, job.attempts))
        self._next += 1
        self._close()

    def _close(self) -> None:
        self._open = False
        untold, self._untold = self._untold, []
        for text in untold:
            warn(text)

    def _write(self, text: str) -> None:
        say(visible(text), end="", to=sys.stdout)


# -- The StartToAgent guide's console report, to the byte (seed 001, "Building an eval harness").
#
# The guide runs each case once. Asked for several runs (`--runs N`) a line says how many passed, the tokens
# are those of all runs, and each failure text stands once with the number of runs it was seen in.


_RULE = "=" * 60


@dataclass(slots=True)
class ClassicResult:
    """One case as the guide's `EvalResult` has it. `runs` counts those that ended, `failures` holds
    the texts in order, `seen` in how many runs each of them was."""

    name: str
    passed: bool
    failures: list[str] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0
    runs: int = 1
    runs_passed: int = 0


def result_of(name: str, attempts: Sequence[Attempt], required: int) -> ClassicResult:
    """What came of a case's attempts (those that ended)."""
    passed = sum(attempt.outcome == "passed" for attempt in attempts)
    result = ClassicResult(
        visible(name, newlines=False), passed >= required, runs=len(attempts), runs_passed=passed
    )
    counts: dict[str, int] = {}
    for attempt in attempts:
        given, answered = tokens_of(attempt)
        result.input_tokens += given
        result.output_tokens += answered
        texts = failures_of(attempt)
        # The guide lists a text as often as it fails within one run; over several runs each stands once.
        for text in texts if len(attempts) == 1 else dict.fromkeys(texts):
            counts[text] = counts.get(text, 0) + 1
            if len(attempts) == 1 or counts[text] == 1:
                result.failures.append(text)
    result.seen = [counts[text] for text in result.failures]
    return result


def failures_of(attempt: Attempt) -> list[str]:
    """An attempt's failure texts; what could not be run or judged counts as one, being no pass."""
    texts = [attempt.error] if attempt.error else []
    for verdict in attempt.verdicts:
        if verdict.passed is True:
            continue
        # All tools that were not called are one text, as the guide prints a set of them.
        if verdict.type == "tools_used" and verdict.reason in texts:
            continue
        texts.append(verdict.reason)
    if not texts and attempt.outcome != "passed":
        texts.append(attempt.message or attempt.outcome)
    return [visible(text, newlines=False) for text in texts]


def tokens_of(attempt: Attempt) -> tuple[int, int]:
    """Input and output tokens: reply by reply what its metadata says (the guide's contract), else its usage."""
    totals: list[int] = []
    for kind in ("input_tokens", "output_tokens"):
        said = [(reply.metadata or {}).get(kind) for reply in attempt.replies]
        said = [one if isinstance(one, int) and not isinstance(one, bool) else None for one in said]
        totals.append(figures.tokens_said(said, attempt.replies, attempt.usage, kind)[0] or 0)
    return totals[0], totals[1]


def running(name: str) -> str:
    """What stands on the screen while a case runs; no line end."""
    return f"  Running: {visible(name, newlines=False)}... "


def ended(result: ClassicResult, runs: int = 1) -> str:
    """The rest of that line. `runs` is how many were asked for."""
    issues = f"{len(result.failures)} issues"
    if runs == 1:
        return "PASS" if result.passed else f"FAIL ({issues})"
    share = f"{result.runs_passed}/{result.runs} runs passed"
    if result.passed:
        return f"PASS ({share})"
    return f"FAIL ({share}, {issues})"


def report(results: Sequence[ClassicResult], runs: int = 1) -> str:
    """The guide's `print_report`, its empty line before included; without the last line end."""
    passed = sum(result.passed for result in results)
    given = sum(result.input_tokens for result in results)
    answered = sum(result.output_tokens for result in results)
    lines = [
        "",
        _RULE,
        f"Results: {passed}/{len(results)} passed",
        f"Tokens:  {given:,} input / {answered:,} output",
        _RULE,
    ]
    for result in results:
        if result.passed:
            continue
        lines += ["", f"FAILED: {result.name}"]
        for text, count in zip(result.failures, result.seen, strict=True):
            times = f" ({count} of {result.runs} runs)" if runs > 1 else ""
            lines.append(f"  - {text}{times}")
    return "\n".join(lines)
