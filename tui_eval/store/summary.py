"""From attempts to what is said of a case: passed, failed, flaky, with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from tui_eval.guard import figures
from tui_eval.model import Outcome
from tui_eval.store.schema import AttemptRow, StoredCase

_Z95 = 1.959963984540054


class CaseSummary(msgspec.Struct):
    """A case of a run with one agent. `attempts` counts those that ended, `interval` is Wilson's
    95 % for `pass_rate` (both 0–1). `outcome` is None while nothing has ended. `answers` are fingerprints of
    the different answers; empty where not every answer that was judged has one. `variant` as in `CaseRow`;
    `duration_ms` is the mean of the `timed` attempts, in which somebody was asked;
    `message`, `cause` and `alike` are those of the first attempt that did not pass; `asserted_nothing` says that it
    passed and could not have failed. `cached` attempts have answers from the cache, which `saved` so much (USD; None:
    not known); `cost` is what the others cost. `compat` are the rules that it was judged by (`store.judged_under`);
    empty where that is not known, or nobody asks."""

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
    interval: tuple[float, float]
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
    compat: str = ""


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


def required_for(attempts: int, threshold: float) -> int:
    """The smallest count that is at least `threshold` (0–1) of `attempts`, as the StartToAgent
    guide's `--fail-threshold` (0.8 of 3 is 3, of 5 is 4)."""
    return max(0, math.ceil(round(threshold * attempts, 9)))


def summarise(case: StoredCase, attempts: Iterable[AttemptRow]) -> CaseSummary:
    """What a run says of one case with one agent."""
    rows = list(attempts)
    ended = [row for row in rows if row.state == "done" and row.outcome is not None]
    outcomes: list[Outcome] = [row.outcome for row in ended if row.outcome is not None]
    passed = outcomes.count("passed")
    durations = [row.duration_ms for row in ended if row.duration_ms is not None]
    tokens = [
        figures.tokens(row.input_tokens, row.output_tokens) for row in ended if row.output_tokens is not None
    ]
    costs = [row.cost for row in ended if row.cost is not None]
    marks = {row.answer for row in ended if row.outcome in ("passed", "failed")}
    telling = next((row for row in ended if row.outcome not in ("passed", None)), None)
    return CaseSummary(
        case_id=case.case_id,
        name=case.name,
        suite=case.suite,
        agent=case.agent,
        model=case.model,
        outcome=case_outcome(outcomes, case.required),
        attempts=len(ended),
        planned=max(case.attempts, len(rows)),
        passed=passed,
        required=case.required,
        pass_rate=passed / len(ended) if ended else 0.0,
        interval=wilson(passed, len(ended)),
        flaky=0 < passed < len(ended),
        message=telling.message if telling is not None else (ended[-1].message if ended else ""),
        cause=telling.cause if telling is not None else "",
        alike=telling.alike if telling is not None else "",
        duration_ms=sum(durations) / len(durations) if durations else None,
        timed=len(durations),
        tokens=figures.total(tokens, "tokens"),
        cost=figures.total_amount(costs, "cost"),
        answers=sorted(marks) if "" not in marks else [],
        variant=case.variant,
        cached=sum(row.cached > 0 for row in ended),
        saved=figures.total_amount([row.saved for row in ended if row.saved is not None], "cost saved"),
        asserted_nothing=bool(passed)
        and all(row.asserted_nothing for row in ended if row.outcome == "passed"),
    )


def cached_words(summaries: Iterable[CaseSummary]) -> str:
    """`3 cached, $0.0400 saved` of a run's attempts; empty where none is."""
    items = [item for item in summaries if item.cached]
    saved = [item.saved for item in items if item.saved is not None]
    words = f"{sum(item.cached for item in items):,} cached" if items else ""
    return f"{words}, ${sum(saved):,.4f} saved" if saved else words


def summarise_run(cases: Sequence[StoredCase], attempts: Iterable[AttemptRow]) -> list[CaseSummary]:
    """Every case of a run, in its order."""
    by_case: dict[int, list[AttemptRow]] = {case.id: [] for case in cases}
    for row in attempts:
        by_case.setdefault(row.case_ref, []).append(row)
    return [summarise(case, by_case[case.id]) for case in cases]
