"""Plain progress on stderr, and results as JSON lines on stdout: one line for each ended attempt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tui_eval import causes
from tui_eval.case_names import (
    called,
    full_name,
    is_unnamed,
    names_by_values,
    suites_apart,
    variant_beside,
    which_tests,
)
from tui_eval.commands.output import say_json, warn
from tui_eval.engine.kept_cases import KeptCases
from tui_eval.engine.plan import Job
from tui_eval.guard.masker import Masker
from tui_eval.guard.text import clip, storable, visible
from tui_eval.model import Attempt
from tui_eval.store.schema import scripted_words

_TOGETHER = 0.05
"""Seconds within which lines are printed at once: one by one they cost a tenth of a fast run."""
SO_FAR = 3.0
"""Seconds between two lines that say how far preparing is."""
_NAMED_TOGETHER = 2_000
"""Cases that are named beside each other; of more each by itself, with its suite where there are several."""
_WORDS = {"passed": "✓", "failed": "✗", "error": "!", "cancelled": "⊘", "skipped": "–"}


class Progress:
    """`display` is `plain`, `json` or `none`."""

    def __init__(self, display: str) -> None:
        self.display = display
        self.quiet = display == "none"
        """Whether only what is wrong is said."""
        self.total = 0
        self.done = 0
        self._several: set[str] = set()
        self._names: dict[str, str] = {}
        self._beside: dict[str, str] = {}
        """The end of a suite's path, by case id; of many cases by suite."""
        self._lines: list[str] = []
        self._begun = self._told = time.monotonic()
        self.masker = Masker(())
        """Masks the secrets of what is printed: a case's name, or its id, may hold one."""

    def start(self, total: int, agents: list[str], scripted: set[str], run_id: str, part: str = "") -> None:
        """Say what begins; `scripted` are those of the agents that are, `part` is the shard that it is."""
        self.total = total
        if self.display == "plain":
            note = scripted_words(agents, scripted)
            kept = f", run {run_id}" if run_id else ""
            part = f", {part}" if part else ""
            warn(f"{total} attempt{'' if total == 1 else 's'} with {', '.join(agents)}{note}{part}{kept}")

    def so_far(self, what: str, done: int, total: int) -> None:
        """Say how far what comes before the first attempt is, where that takes a while."""
        if time.monotonic() - self._told >= SO_FAR:
            self._told = time.monotonic()
            self.note(f"{what}: {done:,} of {total:,}")

    def expect(self, jobs: Sequence[Job]) -> None:
        """The cases that will run, in order. Agents with several models are named with the model."""
        models: dict[str, set[str | None]] = {}
        for job in jobs:
            models.setdefault(job.agent, set()).add(job.model)
        self._several = {agent for agent, found in models.items() if len(found) > 1}
        if self.display != "plain":
            return
        if len(jobs) > _NAMED_TOGETHER:  # each is packed until it runs
            suites = list(dict.fromkeys(job.suite for job in jobs))
            ends = suites_apart([("", "", suite) for suite in suites])
            self._beside = dict(zip(suites, ends, strict=True))
            return
        every = list({case.case_id: case for case in (job.case for job in jobs)}.values())
        cases = KeptCases(self.masker).kept_all(
            every
        )  # names that a secret alone tells apart are told apart otherwise
        names = called(cases, which_tests(cases))
        shown = [(name, variant_beside(case), case.suite) for case, name in zip(cases, names, strict=True)]
        ids = [case.case_id for case in cases]
        self._names = dict(zip(ids, names, strict=True))
        self._beside = dict(zip(ids, suites_apart(shown), strict=True))

    def tell(self, text: str) -> None:
        """Say what a person should know while it runs, on stderr."""
        warn(text)

    def note(self, text: str) -> None:
        """Say by the way what is no fault."""
        if not self.quiet:
            self.tell(text)

    def finish(self) -> None:
        """All that runs has ended."""
        self._print()

    def ended(self, job: Job, number: int, attempt: Attempt) -> None:
        """One attempt has ended."""
        self.done += 1
        if self.display == "plain":
            width = len(str(self.total))
            which = f" #{number}" if max(job.attempts, job.of_attempts) > 1 else ""
            reason = (
                ""
                if attempt.outcome == "passed"
                else f": {clip(visible(causes.cause_of(attempt) or attempt.message, newlines=False), 160)}"
            )
            case = job.case
            own = self._names.get(case.case_id) or (
                names_by_values([case])[0] if is_unnamed(case) else case.name
            )
            suite = self._beside.get(case.case_id) or self._beside.get(case.suite, "")
            name = visible(full_name(own, f"{variant_beside(case)} {suite}".strip()), newlines=False)
            seconds = (attempt.duration_ms or 0) / 1000
            which += f" {words}" if (words := attempt.cached_words) else ""
            who = f"{job.agent} · {job.model}" if job.agent in self._several and job.model else job.agent
            told = self.masker.text(f"{name}{which} [{visible(who, newlines=False)}]{reason}")
            self._print_soon(
                f"[{self.done:>{width}}/{self.total}] {_WORDS[attempt.outcome]} {attempt.outcome:<9} "
                f"{seconds:6.2f} s  {told}"
            )
        elif self.display == "json":
            line = {
                "case_id": attempt.case_id, "attempt": number, "agent": attempt.agent, "model": attempt.model,
                "outcome": attempt.outcome, "message": attempt.message, "score": attempt.score,
                "duration_ms": attempt.duration_ms, "cost": None if job.judges_only else attempt.cost,
            }  # fmt: skip
            line |= {"cached": True, "saved": attempt.saved} if attempt.cached else {}
            if attempt.judging is not None:
                from tui_eval.reports.results import judging_entry  # imported late: most runs need none of it

                line["judging"] = judging_entry(attempt.judging)
            say_json(storable(self.masker.value(line)), indent=-1)

    def _print_soon(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(_TOGETHER, self._print)

    def _print(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            warn("\n".join(lines))
