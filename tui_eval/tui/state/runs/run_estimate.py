"""What a run will probably cost and last, from what its cases took before. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui_eval.config.config_schema import FREE
from tui_eval.engine.request import RunRequest
from tui_eval.model_ids import column_model
from tui_eval.store.schema import CaseHistory, StoredCase
from tui_eval.tui.state.app_state import AppState, CasePointer
from tui_eval.tui.state.case_agent import agent_spec
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.runs.trends import mean
from tui_eval.tui.state.text import formatting

_JUDGED = ("passed", "failed")


class Who(NamedTuple):
    """Who answers: an agent and model (None: whichever it was), whether that is free, how many attempts
    of it run at once (0: no limit of its own), and whether answers that are kept are taken."""

    agent: str | None = None
    model: str | None = None
    free: bool = False
    at_once: int = 0
    kept: bool = False


class Planned(NamedTuple):
    """A case to run: `history` newest first, `attempts` with each of those who answer."""

    history: Sequence[CaseHistory]
    attempts: int
    who: Sequence[Who]


class Estimate(NamedTuple):
    """`cost` in USD with that of judges (None: nothing is known), `unknown` attempts whose cost is not, `free` where
    nobody is paid at all, `seconds` (None: nothing is known); `kept`: less of both where answers of them are kept."""

    cases: int
    attempts: int
    cost: float | None = None
    unknown: int = 0
    free: bool = False
    seconds: float | None = None
    kept: bool = False

    @property
    def price(self) -> str:
        """`about $0.42`, or `at least $0.42 (8 of unknown cost)`; `up to $0.42` where answers may be kept."""
        amount = formatting.about(self.cost or 0.0)
        if self.kept:
            return f"up to {amount}{f' (beside {self.unknown:,} of unknown cost)' if self.unknown else ''}"
        return f"at least {amount} ({self.unknown:,} of unknown cost)" if self.unknown else f"about {amount}"

    @property
    def words(self) -> str:
        """`12 cases, 36 attempts, about $0.42 and 1:20`."""
        priced = False
        text = f"{self.cases:,} case{'s' if self.cases != 1 else ''}, "
        text += f"{self.attempts:,} attempt{'s' if self.attempts != 1 else ''}"
        if self.free:
            text += ", costs nothing"
        elif self.cost is None:
            text += ", cost not known"
        elif priced := bool(self.cost or self.unknown):
            text += f", {self.price}"
        if self.seconds is not None and self.seconds >= 1:
            about = ", up to" if self.kept else ", about"
            text += f"{' and' if priced else about} {formatting.clock(self.seconds)}"
        return text


def estimate(planned: Sequence[Planned], lanes: int) -> Estimate:
    """What these cases come to, `lanes` attempts at once. What is not known of a case is taken to be what
    the others take with the same agent."""
    per: dict[Who, list[tuple[int, _Usual]]] = {}
    for case in planned:
        for who in case.who:
            per.setdefault(who, []).append((case.attempts, _one(case.history, who)))
    attempts = sum(count for rows in per.values() for count, _ in rows)
    cost, priced, judged, unknown = 0.0, False, False, 0
    busy, longest, slowest, timed = 0.0, 0.0, 0.0, False
    for who, rows in per.items():
        price = mean([one.cost for _, one in rows])
        time = mean([one.seconds for _, one in rows])
        own = 0.0
        for count, one in rows:
            if (
                one.judging is not None
            ):  # whoever answers, they are paid; of a new case nobody knows whether it asks any
                priced, judged = True, True
                cost += one.judging * count
            if not who.free:
                value = one.cost if one.cost is not None else price
                priced = priced or value is not None
                cost += (value or 0.0) * count
                unknown += count if value is None else 0
            seconds = one.seconds if one.seconds is not None else time or 0.0
            timed = timed or seconds > 0
            own += seconds * count
            longest = max(longest, seconds)
        busy += own
        slowest = max(slowest, own / min(who.at_once or lanes, max(lanes, 1)))
    free = bool(per) and not judged and all(who.free for who in per)
    total = max(busy / max(1, min(lanes, attempts)), longest, slowest) if attempts else 0.0
    return Estimate(
        len(planned),
        attempts,
        (cost if priced else None) if not free else 0.0,
        unknown,
        free,
        total if timed else None,
        any(who.kept for who in per),
    )


def expected(state: AppState, entries: Sequence[CaseRow], request: RunRequest) -> Estimate:
    """What these cases will probably cost and last, from their past."""
    items = state.by_id
    models = request.models or [None]
    agents: dict[tuple[str, str | None], list[Who]] = {}
    planned: list[Planned] = []
    new: dict[tuple[str, str | None], int] = {}
    asked: dict[str, list[Who | None]] = {}
    """Those of each case's columns; None: its own."""
    for cell in request.cells or ():
        who = _who(state, cell.agent, cell.model, request) if cell.agent or cell.model else None
        if who not in asked.setdefault(cell.case_id, []):
            asked[cell.case_id].append(who)

    # In cells the agents of a request are but those that may be asked unasked.
    names = request.agents if request.cells is None else []

    def whom(entry: CaseRow, agent: str | None) -> list[Who]:
        """Who was chosen, else whom the suite asks: what one of them costs says nothing of another."""
        kind = (entry.suite, agent)
        if kind not in agents:
            given = names or [agent_of(state, entry)]
            agents[kind] = [_who(state, name, model, request) for name in given for model in models]
        return agents[kind]

    cases = {entry.case_id: entry for entry in entries}
    for entry in cases.values():
        item = items.get(entry.case_id)
        kind = (entry.suite, item.agent if item is not None else entry.agent)
        attempts = request.attempts or (entry.case.attempts if entry.case else 1)
        if entry.case_id in asked:  # in all its columns
            columns = asked.pop(entry.case_id)
            who = [each for one in columns for each in ([one] if one is not None else whom(entry, kind[1]))]
            planned.append(Planned(item.history if item is not None else (), attempts, who))
            continue
        if request.cells:
            continue
        if item is not None and item.history:
            planned.append(Planned(item.history, attempts, whom(entry, kind[1])))
        else:
            whom(entry, kind[1])
            new[kind] = new.get(kind, 0) + attempts
    # Cases that never ran take what the others take: they need not be looked at one by one.
    planned += [Planned((), attempts, agents[kind]) for kind, attempts in new.items()]
    found = estimate(planned, request.concurrency or state.concurrency)
    return found._replace(cases=len(cases))


def took_before(state: AppState, case: StoredCase) -> float | None:
    """The seconds that an attempt of a case took with this agent and model when it was asked last."""
    item = state.by_id.get(case.case_id)
    asked = [past for past in item.history if not past.judges and not past.cached] if item is not None else []
    return _one(asked, Who(case.agent, case.model)).seconds


def agent_of(state: AppState, entry: CaseRow) -> str | None:
    """The name of the agent that a row's case would be asked of."""
    spec = agent_spec(state, CasePointer(entry.case_id))
    return spec.name if spec is not None else entry.agent or None


def _who(state: AppState, agent: str | None, model: str | None, request: RunRequest) -> Who:
    config = state.config
    spec = config.agents.get(agent) if config is not None and agent is not None else None
    judge = config.judge if config is not None else None
    entries = [one for one in (spec, judge) if one is not None]
    kept = any(one.cache for one in entries) if request.cache is None else request.cache
    kept = kept and not request.anew
    if spec is None:
        return Who(agent, model, kept=kept)
    return Who(agent, column_model(model, spec.type), spec.type in FREE, spec.concurrency or 0, kept)


class _Usual(NamedTuple):
    """What one attempt takes: USD of the agent and of judges, and seconds; None where it is not known."""

    cost: float | None
    judging: float | None
    seconds: float | None


def _one(history: Sequence[CaseHistory], who: Who) -> _Usual:
    """What one attempt took, from the newest results that know it. An answer that was judged again, or came from the
    cache, cost nothing then, which says nothing of what asking costs."""
    own = [
        past
        for past in history
        if (who.agent is None or past.agent == who.agent) and (who.model is None or past.model == who.model)
    ]
    if who.model is None:  # whichever the suite asks by itself, not one that was named once
        own = [past for past in own if past.asked != "named"] or own
    costs = [
        past.cost / _attempts(past)
        for past in own
        if past.cost is not None and not past.cached and (past.cost or not past.judges)
    ]
    judging = [
        past.judge_cost / _attempts(past)
        for past in own
        if past.judge_cost and past.content_hash == own[0].content_hash  # it may have had a rubric once
    ]
    times = [past.duration_ms / 1000 for past in own if past.duration_ms and past.outcome in _JUDGED]
    times = times or [past.duration_ms / 1000 for past in own if past.duration_ms]
    return _Usual(*(values[0] if values else None for values in (costs, judging, times)))


def _attempts(past: CaseHistory) -> int:
    return max(1, past.own_attempts or past.attempts)
