"""From attempts to what is said of a case: passed, failed, flaky, with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from tui_eval.causes import line
from tui_eval.guard import figures
from tui_eval.guard.spelling import some_of
from tui_eval.model import JUDGED, Outcome
from tui_eval.store.schema import AttemptRow, StoredCase, price_of

_Z95 = 1.959963984540054
_REASONS = 3
"""Reasons of one case that are named; the rest is counted."""


OF_TURNS = "t"
"""Begins the fingerprint of a conversation's answers, all of them."""


class CaseSummary(msgspec.Struct, gc=False):
    """A case of a run with one agent. `attempts` counts those that ended, `unjudged` of these have no verdict
    (cancelled, skipped): no rate and no test has them. `outcome` is None while nothing has ended, or what has
    ended passed and is not enough yet. `answers` are fingerprints of the different answers; empty where not
    every answer that was judged has one. `variant` as in `CaseRow`; `duration_ms` is the mean of the `timed`
    attempts, in which somebody was asked (of cancelled ones only where there are no others); `message`,
    `cause` and `alike` are those of `why_not`; `asserted_nothing` says that it passed and could not have
    failed. `cached` attempts have answers from the cache, which `saved` so much (USD; None: not known);
    `cost` is what the others cost. `judge_tokens` and `judge_cost` are what judging took beside that.
    `compat` are the rules that it was judged by (`store.judged_under`); empty where that is not known, or
    nobody asks. `tokens_of` and `cost_of` are how many attempts these are known of. `content_hash` is that of
    the case as it was judged; `waiting` attempts of it have not ended."""

    case_id: str
    name: str
    suite: str
    agent: str
    model: str | None
    outcome: Outcome | None
    attempts: int
    planned: int
    passed: int
    required: int
    pass_rate: float
    flaky: bool
    message: str = ""
    cause: str = ""
    alike: str = ""
    duration_ms: float | None = None
    timed: int = 0
    tokens: int | None = None
    cost: float | None = None
    answers: list[str] = []
    variant: str = ""
    asserted_nothing: bool = False
    cached: int = 0
    saved: float | None = None
    judge_tokens: int | None = None
    judge_cost: float | None = None
    judge_cached: int = 0
    judge_saved: float | None = None
    compat: str = ""
    tokens_of: int = 0
    cost_of: int = 0
    content_hash: str = ""
    unjudged: int = 0
    waiting: int = 0

    @property
    def judged(self) -> int:
        """Attempts with a verdict."""
        return self.attempts - self.unjudged

    @property
    def left(self) -> int:
        """Attempts that have not ended where the case came to an outcome without them."""
        return self.waiting if self.outcome is not None else 0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % for `pass_rate` (both 0–1)."""
        return wilson(self.passed, self.judged)

    @property
    def price(self) -> float | None:
        """See `store.schema.price_of`; known of `cost_of` attempts."""
        return price_of(self.cost, self.saved)


def per_known(total: float | None, known: int, attempts: int) -> float | None:
    """What one attempt takes: by those of which it is known; by all (`attempts`) where nobody counted these."""
    return None if total is None else total / max(known or attempts, 1)


def share(value: float) -> str:
    """A share (0 to 1) as a whole percentage; never 100 % where something is missing, never 0 % where something is
    there."""
    percent = round(value * 100)
    if percent == 100 and value < 1:
        percent = 99
    if percent == 0 and value > 0:
        percent = 1
    return f"{percent}%"


def wilson(passed: int, total: int) -> tuple[float, float]:
    """Wilson score interval, 95 %, of a share; (0, 1) without any attempt."""
    if total == 0:
        return (0.0, 1.0)
    share, z2 = passed / total, _Z95 * _Z95
    centre = share + z2 / (2 * total)
    spread = _Z95 * math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    low, high = (centre - spread) / (1 + z2 / total), (centre + spread) / (1 + z2 / total)
    return (max(0.0, low) if passed else 0.0, min(1.0, high) if passed < total else 1.0)


def case_outcome(outcomes: Sequence[Outcome], required: int) -> Outcome | None:
    """Passed where enough attempts passed; else error if none failed and one errored; else failed.
    Cancelled or skipped only where nothing else came of it."""
    if not outcomes:
        return None
    if sum(outcome == "passed" for outcome in outcomes) >= required:
        return "passed"
    for kind in ("failed", "error", "cancelled", "skipped"):
        if kind in outcomes:
            return kind
    return "failed"


def outcome_so_far(outcomes: Sequence[Outcome], required: int, planned: int) -> Outcome | None:
    """As `case_outcome`, of a case of which these attempts have ended, of so many `planned`: None also where
    each of them passed and they are not enough yet. One that failed has failed, whatever was still to run."""
    outcome = case_outcome(outcomes, required)
    return None if outcome == "failed" and outcomes.count("passed") == len(outcomes) < planned else outcome


def required_for(attempts: int, threshold: float) -> int:
    """The smallest count that is at least `threshold` (0–1) of `attempts`, as the StartToAgent
    guide's `--fail-threshold` (0.8 of 3 is 3, of 5 is 4)."""
    return max(0, math.ceil(round(threshold * attempts, 9)))


def unfinished_tokens(attempts: Iterable[AttemptRow]) -> int:
    """What attempts that did not end had spent when they were cut off, as far as it is known: it is in no sum of
    results, and is said beside them."""
    return sum(
        figures.tokens(row.input_tokens, row.output_tokens) or 0 for row in attempts if row.state != "done"
    )


def unfinished_words(tokens: int, cost: float) -> str:
    """What went into such attempts, for a person; empty where nothing is known of it."""
    more = [f"{tokens:,} more tokens" if tokens else "", f"{figures.usd(cost)} more" if cost else ""]
    return f"{said} in attempts that did not end" if (said := ", ".join(filter(None, more))) else ""


class WhyNot(NamedTuple):
    """Why the attempts of a case did not pass. `telling` is the first that did not for the most frequent
    reason, `alike` its group; `message` and `cause` are its, or where there is more than one reason
    (`several`) say how often each was the case."""

    telling: AttemptRow | None = None
    message: str = ""
    cause: str = ""
    alike: str = ""
    several: bool = False


_NOTHING = WhyNot()


def why_not(attempts: Iterable[AttemptRow]) -> WhyNot:
    """Of a case's attempts, in their order: those that passed or have not ended say nothing."""
    bad = [row for row in attempts if row.state == "done" and row.outcome not in ("passed", None)]
    bad = [row for row in bad if row.outcome in ("failed", "error")] or bad  # a cancelled one is no reason
    kinds: dict[str, list[AttemptRow]] = {}
    for row in bad:
        kinds.setdefault(row.alike or row.cause or row.message, []).append(row)
    if not kinds:
        return _NOTHING
    found = sorted(kinds.values(), key=lambda rows: -len(rows))
    first = found[0][0]
    if len(found) == 1:
        return WhyNot(first, first.message, first.cause, first.alike)

    def counted(words: Callable[[AttemptRow], str]) -> str:
        parts = [f"{len(rows):,} × {line(_of_all(rows, words))}" for rows in found[: _REASONS + 1]]
        return some_of(parts, _REASONS, len(found))

    cause = counted(lambda row: row.cause or row.message) if first.cause else ""
    return WhyNot(first, counted(lambda row: row.message or row.cause), cause, first.alike, True)


def _of_all(rows: Sequence[AttemptRow], words: Callable[[AttemptRow], str]) -> str:
    """The words of each, or those for all of them where they differ."""
    first = words(rows[0])
    return first if all(words(row) == first for row in rows) else rows[0].alike or first


def summarise(case: StoredCase, attempts: Iterable[AttemptRow]) -> CaseSummary:
    """What a run says of one case with one agent."""
    planned = passed = cached = 0
    outcomes: list[Outcome] = []
    durations: list[float] = []
    cut_short: list[float] = []
    tokens: list[int | None] = []
    costs: list[float] = []
    saved: list[float] = []
    judge_tokens: list[int] = []
    judge_cached = 0
    judge_saved: list[float] = []
    judge_costs: list[float] = []
    marks: set[str] = set()
    idle = True
    last: AttemptRow | None = None
    bad: list[AttemptRow] = []
    for row in attempts:
        planned += 1
        if row.state != "done" or row.outcome is None:
            continue
        last = row
        outcomes.append(row.outcome)
        if row.outcome == "passed":
            passed += 1
            idle = idle and bool(row.asserted_nothing)
        else:
            bad.append(row)
        if row.outcome in ("passed", "failed"):
            marks.add(row.answer)
        if row.duration_ms is not None:
            (durations if row.outcome in JUDGED else cut_short).append(row.duration_ms)
        if row.input_tokens is not None or row.output_tokens is not None:
            tokens.append(figures.tokens(row.input_tokens, row.output_tokens))
        if row.cost is not None:
            costs.append(row.cost)
        if row.saved is not None:
            saved.append(row.saved)
        if row.judge_calls:
            judge_tokens += [] if row.judge_tokens is None else [row.judge_tokens]
            judge_costs += [] if row.judge_cost is None else [row.judge_cost]
        judge_cached += row.judge_cached
        if row.judge_saved is not None:
            judge_saved.append(row.judge_saved)
        cached += row.cached > 0
    ended = len(outcomes)
    judged = sum(one in JUDGED for one in outcomes)
    durations = durations or cut_short
    why = why_not(bad) if bad else _NOTHING
    message = why.message if why.telling is not None else last.message if last is not None else ""
    outcome = outcome_so_far(outcomes, case.required, planned)
    if outcome is None and ended:
        message = f"{passed} of {planned} attempts ran, none failed"
    return CaseSummary(
        case_id=case.case_id,
        name=case.name,
        suite=case.suite,
        agent=case.agent,
        model=case.model,
        outcome=outcome,
        attempts=ended,
        planned=max(case.attempts, planned),
        passed=passed,
        required=case.required,
        pass_rate=passed / judged if judged else 0.0,
        flaky=0 < passed < judged,
        message=message,
        cause=why.cause,
        alike=why.alike,
        duration_ms=sum(durations) / len(durations) if durations else None,
        timed=len(durations),
        tokens=figures.total(tokens, "tokens") if tokens else None,
        cost=figures.total_amount(costs, "cost") if costs else None,
        answers=sorted(marks) if "" not in marks else [],
        variant=case.variant,
        content_hash=case.content_hash,
        cached=cached,
        saved=figures.total_amount(saved, "cost saved") if saved else None,
        judge_tokens=figures.total(judge_tokens, "tokens of the judges") if judge_tokens else None,
        judge_cost=figures.total_amount(judge_costs, "cost of the judges") if judge_costs else None,
        judge_cached=judge_cached,
        judge_saved=figures.total_amount(judge_saved, "cost saved") if judge_saved else None,
        asserted_nothing=passed > 0 and idle,
        tokens_of=len(tokens),
        cost_of=len(costs),
        unjudged=ended - judged,
        waiting=planned - ended,
    )


CaseTaker = Callable[[StoredCase, Sequence[AttemptRow], CaseSummary], None]
"""Takes a case of a run as it is read, its attempts, and what it has come to."""


class RunSums(msgspec.Struct):
    """What the cases of a run come to; they are added one by one. `attempts` ended, of which
    `attempts_passed`; `asserted_nothing` counts cases; `tokens`, `cost` and `saved` (USD), and what judges
    took, are None where nothing is known; `left` attempts of cases with an outcome have not ended."""

    outcomes: dict[Outcome | None, int] = {}
    flaky: int = 0
    asserted_nothing: int = 0
    attempts: int = 0
    attempts_passed: int = 0
    cached: int = 0
    saved: float | None = None
    tokens: int | None = None
    cost: float | None = None
    judge_tokens: int | None = None
    judge_cost: float | None = None
    judge_cached: int = 0
    judge_saved: float | None = None
    left: int = 0

    def add(self, item: CaseSummary) -> None:
        """One case more."""
        self.left += item.left
        self.outcomes[item.outcome] = self.outcomes.get(item.outcome, 0) + 1
        self.flaky += item.flaky
        self.asserted_nothing += item.asserted_nothing
        self.attempts += item.attempts
        self.attempts_passed += item.passed
        self.cached += item.cached
        if item.saved is not None:
            self.saved = _plus(self.saved, item.saved)
        if item.tokens is not None:
            self.tokens = _plus(self.tokens, item.tokens)
        if item.cost is not None:
            self.cost = _plus(self.cost, item.cost)
        self.add_judges(item)

    def add_judges(self, item: CaseSummary) -> None:
        """Of one case more only what judges took."""
        self.judge_cached += item.judge_cached
        if item.judge_tokens is not None:
            self.judge_tokens = _plus(self.judge_tokens, item.judge_tokens)
        if item.judge_cost is not None:
            self.judge_cost = _plus(self.judge_cost, item.judge_cost)
        if item.judge_saved is not None:
            self.judge_saved = _plus(self.judge_saved, item.judge_saved)

    @property
    def cases(self) -> int:
        """How many there are."""
        return sum(self.outcomes.values())

    @property
    def judged(self) -> int:
        """Those that came to an outcome which says something of their agents: what pass rates are of."""
        return sum(self.outcomes.get(outcome, 0) for outcome in JUDGED)

    def count(self, outcome: Outcome | None) -> int:
        """Those of which this came."""
        return self.outcomes.get(outcome, 0)

    @property
    def cached_words(self) -> str:
        """`3 cached, $0.0400 saved`, or `3 attempts cached` where the counts beside it, which are of cases,
        are others than those of attempts; empty where none is."""
        return cached_of(self.cached, self.saved, of_attempts=self.attempts != self.cases)

    @property
    def left_words(self) -> str:
        """`2 attempts not run`, of cases that came to an outcome without them: a run that was stopped is no whole one
        though each of its cases had passed often enough by then. Empty where there is none."""
        return left_of(self.left)

    @property
    def judges_words(self) -> str:
        """What judging took: `judges: 15,096 tokens, $0.2000`; empty where nothing of it is known."""
        return judges_of(self.judge_tokens, self.judge_cost, self.judge_cached, self.judge_saved)


def sums_of(cases: Iterable[tuple[StoredCase, Sequence[AttemptRow]]]) -> RunSums:
    """What cases come to, each with its attempts (`RunReader.by_case`)."""
    sums = RunSums()
    for case, attempts in cases:
        sums.add(summarise(case, attempts))
    return sums


Amount = TypeVar("Amount", int, float)


def _plus(known: Amount | None, more: Amount) -> Amount:
    return more if known is None else known + more


def left_of(attempts: int) -> str:
    """`2 attempts not run`; empty where there is none."""
    return f"{attempts:,} attempt{'s' * (attempts > 1)} not run" if attempts else ""


def cached_of(cached: int, saved: float | None, *, of_attempts: bool = False) -> str:
    """`3 cached, $0.0400 saved`, with `of_attempts` `3 attempts cached`; empty where none is."""
    unit = f" attempt{'s' * (cached > 1)}" if of_attempts else ""
    words = f"{cached:,}{unit} cached" if cached else ""
    return f"{words}, {figures.usd(saved)} saved" if words and saved is not None else words


def judges_of(tokens: int | None, cost: float | None, cached: int = 0, saved: float | None = None) -> str:
    """What judges took: `judges: 15,096 tokens, $0.2000, 3 cached, $0.0200 saved`; empty where nothing of it
    is known."""
    known = [f"{tokens:,} tokens"] if tokens else []
    known += [figures.usd(cost)] if cost is not None else []
    known += [cached_of(cached, saved)] if cached else []
    return f"judges: {', '.join(known)}" if known else ""


def summarise_run(cases: Sequence[StoredCase], attempts: Iterable[AttemptRow]) -> list[CaseSummary]:
    """Every case of a run, in its order."""
    by_case: dict[int, list[AttemptRow]] = {case.id: [] for case in cases}
    for row in attempts:
        by_case.setdefault(row.case_ref, []).append(row)
    return [summarise(case, by_case[case.id]) for case in cases]
