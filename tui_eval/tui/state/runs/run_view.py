"""One run as the app sees it: cases, attempts, counts and live text, computed from store rows.

Pure: fed with what readers return, no app, no clock and no database of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

import msgspec

from tui_eval.guard import figures
from tui_eval.model import Outcome
from tui_eval.store.judged_under import compat_of
from tui_eval.store.schema import AttemptRow, LiveRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import is_looked_at
from tui_eval.store.summary import outcome_so_far

TEXT_KINDS = ("assistant", "reasoning")
LIVE_LIMIT = 200_000
"""Characters of live text kept per attempt; older pieces fall away first."""
CHARACTERS_PER_TOKEN = 4.0
"""Rule of thumb for tokens/s while an agent has not reported its usage yet."""
LATELY = 5.0
"""Seconds over which tokens a second are counted."""

_LOOKED_AT = 1000
"""Attempts that are looked at for what they take, at most."""
_ANSWERED = ("passed", "failed")
"""What became of attempts that say how long one takes: an error may have cut it off."""
NOT_RUN = "not-run"
"""The status of a case whose run has ended before its attempts came to anything."""
WAITS = "step:"
"""What an attempt's detail begins with while a turn waits for the person."""
_ON = "r runs it, u in Runs (H) goes on with the run"
"""What can be done for an attempt that did not end with its run."""


class LivePiece(msgspec.Struct):
    """Consecutive live rows of one kind and agent: one text, or one tool call, result, hand-off."""

    seq: int
    kind: str
    agent: str
    text: str
    name: str
    call_id: str
    at: float
    """When its first row was written, seconds since the epoch."""


class LiveAttempt(msgspec.Struct):
    """What a running attempt has said so far. `version` grows with every piece of news."""

    pieces: list[LivePiece] = msgspec.field(default_factory=list)
    characters: int = 0
    dropped: int = 0
    """Pieces that fell away at the front, so that `dropped + index` names a piece for good."""
    version: int = 0
    kept: int = 0


class RunCounts(msgspec.Struct):
    """Attempts of the run by what became of them."""

    total: int = 0
    done: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    cancelled: int = 0
    skipped: int = 0
    running: int = 0
    retrying: int = 0
    tokens: int = 0
    unfinished_tokens: int = 0
    """Those of them that attempts took which have not ended."""
    cost: float | None = None
    cached: int = 0
    saved: float = 0.0
    judge_tokens: int = 0
    judge_cost: float | None = None
    judge_cached: int = 0
    judge_saved: float | None = None


class _Took(NamedTuple):
    """The seconds that attempts take by what is known of them: on average those that are done, and those that wait, of
    which the longest."""

    done: float
    waiting: float
    longest: float


def standing(row: AttemptRow, info: RunInfo) -> AttemptRow:
    """An attempt whose run has ended before it did: why, and what can be done."""
    if info.state == "interrupted":
        why = f"interrupted: {_ON}"
    elif info.state == "cancelled":
        why = f"its run was cancelled: {_ON}"
    else:  # by a limit; no run goes on that adds to another
        why = f"its run ended before it did: {'r runs it' if info.linked_to else _ON}"
    return msgspec.structs.replace(row, state="waiting", started_at=None, detail=why)


def as_left(rows: Sequence[AttemptRow], info: RunInfo) -> list[AttemptRow]:
    """Attempts of a run as they stand: nothing waits or runs in one that has ended."""
    if info.state in ("running", "paused"):
        return list(rows)
    return [row if row.state == "done" else standing(row, info) for row in rows]


class RunView:
    """A run that is followed or opened. `apply_*` take rows and say what changed; a thread may make a list of it
    meanwhile: what a case's id is known by is there before the id, and lists are replaced, never changed."""

    def __init__(self, info: RunInfo, folder: Path) -> None:
        self.info = info
        self.folder = folder
        self.cases: dict[int, StoredCase] = {}
        self.attempts: dict[int, AttemptRow] = {}
        self.by_case: dict[int, list[int]] = {}
        self.refs: dict[str, list[int]] = {}
        self.counts = RunCounts()
        self.live: dict[int, LiveAttempt] = {}
        self.trouble = ""
        """What the disk refuses while the run goes on."""
        self.version = 0
        """Grows with every change of an attempt."""
        self.took_before: Callable[[StoredCase], float | None] = lambda _: None
        """The seconds that an attempt of a case took in earlier runs; None where that is not known."""
        self._took: dict[str, tuple[int, float, float]] = {}
        """By agent how many of its attempts answered, the seconds that they took together, and the longest."""
        self.agents: dict[str, tuple[int, int]] = {}
        """By agent how many of its attempts are done, and passed."""
        self._counted: dict[int, str] = {}
        self._unended: dict[int, int] = {}
        """By case how many of its attempts have not ended, where any."""
        self._working: set[int] = set()
        self._arrivals: deque[tuple[float, int]] = deque()
        self._looked: tuple[float, _Took | None] = (0.0, None)
        """When attempts were looked at for what they take, and what was found."""
        self._rules: tuple[RunInfo, Callable[[str], str]] | None = None

    def compat(self, suite: str) -> str:
        """The rules that a suite's verdicts were made by; empty where that is not known."""
        if self._rules is None or self._rules[0] is not self.info:
            self._rules = self.info, compat_of(self.info)
        return self._rules[1](suite)

    # -- feeding

    def apply_cases(self, rows: Iterable[StoredCase]) -> None:
        """Take the run's cases (all of them, once, and again when the run grows)."""
        for row in rows:
            new = row.id not in self.cases
            self.cases[row.id] = row
            if new:
                self.refs[row.case_id] = [*self.refs.get(row.case_id, ()), row.id]
                self.by_case.setdefault(row.id, [])

    def apply_attempts(self, rows: Iterable[AttemptRow]) -> set[int]:
        """Take changed attempts; returns the ids of the cases they belong to."""
        touched: set[int] = set()
        for row in rows:
            before = self.attempts.get(row.id)
            if before is not None and before.changed >= row.changed:
                continue
            self.attempts[row.id] = row
            if before is None:
                ids = [*self.by_case.get(row.case_ref, ()), row.id]
                self.by_case[row.case_ref] = sorted(ids, key=lambda ref: self.attempts[ref].attempt)
            else:
                self._count(before, -1)
            self._count(row, 1)
            if row.state in ("running", "retrying"):
                self._working.add(row.id)
            else:
                self._working.discard(row.id)
            if row.state == "done":
                live = self.live.pop(row.id, None)
                if before is not None and before.state != "done":
                    self._arrived_unseen(row, live)
            touched.add(row.case_ref)
        if touched:
            self.version += 1
        return touched

    def _arrived_unseen(self, row: AttemptRow, live: LiveAttempt | None) -> None:
        """What an attempt answered between two looks at it, which no live text tells. Of a longer one it is not known
        when that came."""
        took = (row.duration_ms or 0.0) / 1000
        if not row.output_tokens or not row.started_at or row.judges or took > LATELY:
            return
        unseen = round(row.output_tokens * CHARACTERS_PER_TOKEN) - (
            live.characters if live is not None else 0
        )
        if unseen > 0:
            self._arrivals.append((row.started_at + took, unseen))

    def stand_still(self) -> list[AttemptRow]:
        """The engine has ended: what was at work waits again (a resume begins it anew). Returns what changed."""
        rows = [standing(self.attempts[ref], self.info) for ref in sorted(self._working)]
        for row in rows:
            self._count(self.attempts[row.id], -1)
            self.attempts[row.id] = row
            self._count(row, 1)
        self._working.clear()
        self.live.clear()
        self.version += bool(rows)
        return rows

    def apply_live(self, rows: Iterable[LiveRow]) -> set[int]:
        """Take live rows in the order of their `seq`; returns the attempts that said something."""
        touched: set[int] = set()
        for row in rows:
            attempt = self.attempts.get(row.attempt_ref)
            if attempt is not None and attempt.state == "done":
                continue
            live = self.live.setdefault(row.attempt_ref, LiveAttempt())
            last = live.pieces[-1] if live.pieces else None
            if (
                last is not None
                and row.kind in TEXT_KINDS
                and last.kind == row.kind
                and last.agent == row.agent
            ):
                last.text += row.text
            else:
                live.pieces.append(
                    LivePiece(row.seq, row.kind, row.agent, row.text, row.name, row.call_id, row.at)
                )
            if row.kind in TEXT_KINDS:
                live.characters += len(row.text)
                self._arrivals.append((row.at, len(row.text)))
            live.kept += len(row.text)
            while live.kept > LIVE_LIMIT and len(live.pieces) > 1:
                live.kept -= len(live.pieces.pop(0).text)
                live.dropped += 1
            live.version += 1
            touched.add(row.attempt_ref)
        return touched

    # -- asking

    @property
    def active(self) -> bool:
        """Whether an engine is still at work on it."""
        return self.info.state in ("running", "paused")

    @property
    def cases_ended(self) -> int:
        """How many of its cases have no attempt that is still to end."""
        return len(self.cases) - len(self._unended)

    @property
    def came_to_nothing(self) -> bool:
        """Whether it is a step that has ended without a result."""
        judged = self.counts.passed + self.counts.failed + self.counts.errors
        return self.info.stepped and not self.active and not judged

    @property
    def paused(self) -> bool:
        """Whether a person has paused it."""
        return self.info.state == "paused" and not self.waits_for_shards

    @property
    def waits_for_shards(self) -> bool:
        """Whether it is a folder of shards of which some are still to come, or to go on, and none is being executed."""
        return self.info.state == "paused" and is_looked_at(self.folder)

    @property
    def expected(self) -> int:
        """How many attempts it is to have, with those of cases that shards hold which are still to come."""
        total, missing = self.counts.total, self.info.provenance.get("missing")
        if not self.active or not isinstance(missing, int) or not self.refs:
            return total
        return total + round(total * missing / len(self.refs))

    def attempts_of(self, case_ref: int) -> list[AttemptRow]:
        """A case's attempts in their order."""
        return [self.attempts[ref] for ref in self.by_case.get(case_ref, ())]

    def running(self) -> list[AttemptRow]:
        """Attempts at work, oldest first."""
        rows = [self.attempts[ref] for ref in self._working]
        return sorted(rows, key=lambda row: (row.started_at or 0.0, row.id))

    def find(self, case_id: str, agent: str | None = None, model: str | None = None) -> int | None:
        """The id of the row of a case (of that agent and model where given)."""
        for ref in self.refs.get(case_id, ()):
            row = self.cases[ref]
            if (agent is None or row.agent == agent) and (model is None or row.model == model):
                return ref
        return None

    def outcome(self, case_ref: int) -> Outcome | None:
        """What the case came to (`store.summary.outcome_so_far`) once nothing of it is to come."""
        rows = self.attempts_of(case_ref)
        done: list[Outcome] = [row.outcome or "cancelled" for row in rows if row.state == "done"]
        if self.active and len(done) < len(rows):
            return None
        return outcome_so_far(done, self.cases[case_ref].required, len(rows))

    def status(self, case_ref: int) -> str:
        """An outcome, or `running`, `retrying`, `waiting`, `not-run`."""
        rows = self.attempts_of(case_ref)
        states = {row.state for row in rows}
        if "retrying" in states:
            return "retrying"
        if "running" in states:
            return "running"
        if self.active and (not rows or "waiting" in states):
            return "running" if "done" in states else "waiting"
        return self.outcome(case_ref) or NOT_RUN

    def tokens_per_second(self, now: float) -> float:
        """Tokens that arrived lately, estimated from the characters of live text; of short attempts, most of which
        is never seen live, as they tell themselves."""
        while self._arrivals and self._arrivals[0][0] < now - LATELY:
            self._arrivals.popleft()
        if not self._arrivals:
            return 0.0
        span = max(1.0, min(LATELY, now - self._arrivals[0][0]))
        return sum(count for _, count in self._arrivals) / CHARACTERS_PER_TOKEN / span

    def tokens_coming(self) -> int:
        """Those of attempts at work that have told none so far, estimated from the characters of their live text."""
        silent = 0
        for ref, live in self.live.items():
            row = self.attempts.get(ref)  # what it says may be read before its row is
            silent += live.characters if row is None or not row.output_tokens else 0
        return round(silent / CHARACTERS_PER_TOKEN)

    def seconds_left(self, now: float) -> float | None:
        """A guess from the pace so far, in what such attempts took before instead of in attempts (the slow
        ones may be those that wait), and never less than what any of them will probably still need. None
        before anything is done, when nothing is left, where it hangs on attempts that have taken longer
        already than any before them, and below a second: `0s` beside what still runs reads as wrong."""
        guess = self._seconds_left(now)
        return guess if guess is not None and guess >= 1.0 else None

    def _seconds_left(self, now: float) -> float | None:
        counts = self.counts
        if not counts.done or counts.done >= counts.total or not self.info.started_at:
            return None
        waiting = counts.total - counts.done - len(self._working)
        took = self._took_on_average(now) if waiting > 0 else _Took(1.0, 1.0, 0.0)
        worked, ahead = took.done * counts.done, took.waiting * waiting
        needed, overdue, unknown = took.longest, 0.0, False
        for row in (self.attempts[ref] for ref in self._working):
            ran = max(0.0, now - row.started_at) if row.started_at else 0.0
            known = list(self._usual(row))
            unknown = unknown or not known
            usual = next((seconds for seconds in known if seconds > ran), None)
            if usual is None:
                overdue = max(overdue, ran)
                ahead += (
                    known[0] if known else took.waiting
                )  # what it has taken says nothing of how far it is
            else:
                limit = row.ends_at - now if row.ends_at is not None else usual
                needed = max(needed, min(usual - ran, limit))
                # In what it took before: where all take longer now, that is the pace's.
                part = known[0] / usual
                worked, ahead = worked + ran * part, ahead + (usual - ran) * part
        if waiting <= 0:  # it is all up to those at work
            return needed if needed > overdue and not unknown else None
        left = max(needed, self.info.elapsed(now) * ahead / worked)
        return left if left > overdue else None  # as long again is as good a guess as any

    def _took_on_average(self, now: float) -> _Took:
        """What is known of those that are done and those that wait. Of a large run some are looked at, every
        other second."""
        at, found = self._looked
        large = len(self.attempts) > _LOOKED_AT
        if found is not None and large and 0 <= now - at < 2:
            return found
        rows: Iterable[AttemptRow] = list(self.attempts.values())
        if large:
            rows = Random(0).sample(rows, _LOOKED_AT)
        done: list[float] = []
        waiting: list[float] = []
        for row in rows:
            case = self.cases.get(row.case_ref)
            if row.id in self._working or case is None:
                continue
            # Before: were it as long in this run, all goes as then; that it is not shows in the pace.
            seconds = self.took_before(case) or next(iter(self._usual(row)), None)
            if seconds is not None:
                (done if row.state == "done" else waiting).append(seconds)
        known = [*done, *waiting] or [1.0]  # nothing is known: each is as good as another
        found = _Took(
            fmean(done or known),
            fmean(waiting or known),
            max(waiting, default=0.0) if not self.counts.cached else 0.0,  # they may be in the cache, too
        )
        self._looked = now, found
        return found

    def _usual(self, row: AttemptRow) -> Iterable[float]:
        """What an attempt takes by those of its case before it, else by its agent's, and the longest of all these."""
        case = self.cases.get(row.case_ref)
        if case is None:
            return
        own = [
            one.duration_ms / 1000
            for one in self.attempts_of(row.case_ref)
            if one.state == "done" and one.duration_ms and one.outcome in _ANSWERED and not one.cached
        ]
        before = self.took_before(case)
        own += [before] if before else []
        count, total, longest = self._took.get(case.agent, (0, 0.0, 0.0))
        if own:
            yield sum(own) / len(own)
        elif count:
            yield total / count
        if own or count:
            yield max([*own, longest])

    # -- inside

    def _count(self, row: AttemptRow, sign: int) -> None:
        counts = self.counts
        counts.total += sign
        if row.state != "done":
            left = self._unended.pop(row.case_ref, 0) + sign
            if left:
                self._unended[row.case_ref] = left
        if row.state == "done":
            self._count_agent(row, sign)
            counts.done += sign
            name = {"error": "errors"}.get(row.outcome or "cancelled", row.outcome or "cancelled")
            setattr(counts, name, getattr(counts, name) + sign)
        elif row.state == "running":
            counts.running += sign
        elif row.state == "retrying":
            counts.retrying += sign
        if not row.judges:  # an answer that is judged again took its tokens where it was given
            tokens = figures.tokens(row.input_tokens, row.output_tokens) or 0
            counts.tokens += sign * tokens
            counts.unfinished_tokens += sign * tokens * (row.state != "done")
        if row.cost is not None:
            counts.cost = (counts.cost or 0.0) + sign * row.cost
        counts.cached += sign * (row.cached > 0)
        counts.saved += sign * (row.saved or 0.0)
        counts.judge_tokens += sign * (row.judge_tokens or 0)
        counts.judge_cached += sign * row.judge_cached
        if row.judge_saved is not None:
            counts.judge_saved = max(0.0, (counts.judge_saved or 0.0) + sign * row.judge_saved)
        if row.judge_cost is not None:
            counts.judge_cost = (counts.judge_cost or 0.0) + sign * row.judge_cost

    def _count_agent(self, row: AttemptRow, sign: int) -> None:
        """A case that comes to be known later is counted as it was before."""
        case = self.cases.get(row.case_ref)
        known = case.agent if case is not None else None
        agent = self._counted.pop(row.id, None) if sign < 0 else known
        if agent is None:
            return
        if sign > 0:
            self._counted[row.id] = agent
        done, passed = self.agents.get(agent, (0, 0))
        self.agents[agent] = done + sign, passed + sign * (row.outcome == "passed")
        if row.duration_ms and row.outcome in _ANSWERED and not row.judges and not row.cached:
            count, total, longest = self._took.get(agent, (0, 0.0, 0.0))
            seconds = row.duration_ms / 1000
            self._took[agent] = count + sign, total + sign * seconds, max(longest, seconds)
