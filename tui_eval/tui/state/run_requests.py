"""Requests to the engine, made of what is to be done, the run it belongs to, the cases and the last choice.

Pure, and the one place of the app where they are made: the lists, the Case screen, stepping and watching ask here.
A case that is one of a run's is asked in its own column, by the agents that run was started with; a recorded
attempt is named by its run's folder, so that a run from elsewhere is as good as the project's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tui_eval.config.config_schema import Wrong, where
from tui_eval.config.project import Config
from tui_eval.engine.request import ReachedLimit, Recorded, RequestCell, RunRequest
from tui_eval.guard.figures import usd
from tui_eval.guard.text import REPLACEMENT, storable_text
from tui_eval.store import case_state
from tui_eval.store.case_state import Column
from tui_eval.store.run_folders import Store
from tui_eval.store.shard_runs import is_looked_at
from tui_eval.tui.state.app_state import AppState, CaseItem, CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.runs.run_view import RunView

Columns = dict[str, set[tuple[str, str]]]
"""By case the columns, agent and model, that are asked; an empty text is whichever there is."""


@dataclass(slots=True)
class RunChoice:
    """What the run dialog asks for, as it was typed. Empty texts leave it to suites and configuration."""

    agents: str = ""
    models: str = ""
    attempts: str = ""
    threshold: str = ""
    concurrency: str = ""
    max_cost: str = ""
    answers: str = ""
    on: str = ""
    filter: str = ""

    @property
    def lasting(self) -> RunChoice:
        """Of it what later runs keep to: how they are done, never who is asked what and when it has passed."""
        return RunChoice(on=self.on, concurrency=self.concurrency, answers=self.answers)


@dataclass(frozen=True, slots=True)
class Project:
    """The project's root, whether all of its code may run, what else was agreed to, and the configuration that
    was named."""

    root: Path
    trusted: bool = False
    agreed: tuple[str, ...] = ()
    config_file: Path | None = None


class RunAsked(NamedTuple):
    """A case to ask."""

    case_id: str
    suite: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run that a request builds on. `typed`: a person named its agents here, so that they are trusted."""

    run_id: str
    folder: Path
    options: dict[str, Any] = field(default_factory=dict)
    typed: bool = False

    @property
    def agents(self) -> list[str]:
        """The agents that it was started with by name."""
        return [str(name) for name in self.options.get("agents") or []]

    @property
    def named(self) -> bool:
        """Whether its columns were named, rather than the suites' own."""
        cells = (cell for cell in self.options.get("cells") or () if isinstance(cell, dict))
        return bool(
            self.options.get("agents")
            or self.options.get("models")
            or any(not cell.get("own") for cell in cells)  # a judgement, or a rerun, of what was named
        )


def chosen(
    project: Project, cases: Sequence[RunAsked], choice: RunChoice, *, whole: bool = False
) -> RunRequest:
    """These cases with what was chosen. Where they are the `whole` project's, it is asked for by its folder, as on the
    command line, and goes by one name.

    Raises:
        ValueError: a number is none; one line that names the field.
    """
    return RunRequest(
        paths=[str(project.root)] if whole else _files(project, cases),
        case_ids=list(dict.fromkeys(case.case_id for case in cases)),
        agents=_names(choice.agents),
        models=_names(choice.models),
        attempts=_whole("attempts", choice.attempts),
        threshold=_share(choice.threshold),
        concurrency=_whole("at once", choice.concurrency),
        max_cost=_amount("cost limit", choice.max_cost),
        cache=_cache(choice.answers),
        on=_on(choice.on),
        trust=project.trusted,
        agreed=list(project.agreed),
        config_file=str(project.config_file) if project.config_file else None,
        root=str(project.root),
        command="tui-eval",
    )


def _on(text: str) -> str | None:
    try:
        return where(text.strip()) if text.strip() else None
    except Wrong as wrong:
        raise ValueError(f"on: {wrong}") from None


def _cache(text: str) -> bool | None:
    """Whether kept answers are taken; None: as the agents' entries say."""
    word = text.strip().lower()
    if word not in ("", "cache", "ask"):
        raise ValueError(
            f"answers: {text.strip()!r}: cache (those that are kept), ask (no cache), or nothing"
        )
    return {"": None, "cache": True, "ask": False}[word]


def as_it_ran(request: RunRequest, run: Run | None, typed: Collection[str]) -> RunRequest:
    """Where no other place was chosen, what builds on a run goes where that went: `run`, or the one that it
    is linked to, which the engine looks up. `typed` are the places that a person named here: a cluster in a
    record is not. What is asked anew is kept as the answers there were."""
    on = run.options.get("on") if run is not None else None
    if request.on is None and isinstance(on, str) and on:
        request.on, request.on_recorded = on, on not in typed
    kept = run.options.get("cache") if run is not None else None
    if request.anew and request.cache is None and isinstance(kept, bool):
        request.cache = kept
    return request


def ran_on(options: Mapping[str, Any], config: Config | None) -> str:
    """Where a run that was started with these options went."""
    return str(options.get("on") or (config.run.on if config is not None else "here"))


def goes_on_where(was: str) -> tuple[str, list[tuple[str, str, str]]]:
    """What is asked, and the answers (key, value, words), where the place that a run was on has been lost."""
    return f"The run ended since {was} was lost. Go on where?", [
        ("h", "here", "here"),
        ("a", "again", f"again on {was}"),
        ("n", "no", "not now; `on` in the run dialog (A) names another place"),
    ]


def goes_past(limit: ReachedLimit) -> tuple[str, list[tuple[str, str, str]]]:
    """What is asked, and the answers (key, value, words), where a run does not go on since a limit of it is reached."""
    no = ("n", "no", "no")
    if limit.max_cost is None:
        failed = f"{limit.bad:,} attempt{'s' if limit.bad != 1 else ''} did not"
        question = f"The run was to end at the first attempt that does not pass, and {failed}. Go on?"
        return question, [("y", "yes", "go on without fail-fast"), no]
    more, whole = limit.higher - limit.spent, f"${limit.higher:g} for all of the run"
    question = f"The run's cost limit of ${limit.max_cost:g} is reached: {usd(limit.spent)} is spent. Go on?"
    return question, [("y", "yes", f"go on, at most {usd(more)} more ({whole})"), no]


def moved(request: RunRequest, options: Mapping[str, Any], config: Config | None, chosen: str) -> str:
    """That what goes on with a run of these options, or adds to it, goes elsewhere, and why: `chosen` is what
    the run dialog names. Empty: it does not."""
    was = ran_on(options, config)
    if request.on is None or request.on_recorded or request.on == was:
        return ""
    why = " (`on` of the run dialog)" * (request.on == _on(chosen))
    return f"{'' if request.on == 'here' else 'on '}{request.on}{why}, it was {was if was == 'here' else f'on {was}'}"


def moved_from(state: AppState, request: RunRequest, chosen: str) -> str:
    """As `moved`, of the run that the request is linked to; where that was is known of those that have been read."""
    if request.linked_to is None:
        return ""
    if (run := state.find_run(request.linked_to)) is not None:
        return moved(request, run.info.options, state.config, chosen)
    return moved(request, {}, state.config, chosen).partition(", it was")[0]


def is_unknown(config: Config | None, agent: str) -> bool:
    """Whether a name is no agent's: what has a colon may be a provider's model, a file or an address."""
    return config is not None and ":" not in agent and agent != "echo" and agent not in config.agents


def adds_to_shards(root: Path, request: RunRequest) -> bool:
    """Whether it would add to shards that are only looked at."""
    recorded = Path(request.continue_from.run).name if request.continue_from else None
    folders = [Store(root).folder_of(name) for name in (request.linked_to, recorded) if name]
    return any(map(is_looked_at, folders))


def in_columns(request: RunRequest, cells: Sequence[RequestCell], run: Run | None) -> RunRequest:
    """Where no one else was chosen, cases are asked of those who were asked before, each in its columns; `run` is
    the one in front, whose typed agents are typed still."""
    if any(cell.agent for cell in cells) and not (request.agents or request.models):
        request.cells = list(cells)
        if run is not None and run.typed:
            request.agents = run.agents
    return request


def one_attempt(project: Project, case: RunAsked, cell: RequestCell | None) -> RunRequest:
    """One attempt of a case by itself (a step, a save that is watched): in the column it is shown in, else in
    its suite's."""
    request = _plain(project, case)
    if cell is not None:
        request.cells = [cell]
    return request


class OneMore(NamedTuple):
    """One more attempt of a case in its column: that of this number, beside those of a run (None: of none)."""

    case: RunAsked
    cell: RequestCell | None
    run: Run | None = None
    number: int = 1


class NotNow(Exception):
    """Why one more attempt cannot be had now."""


def next_attempt(
    state: AppState,
    pointer: CasePointer,
    started: Iterable[Columns],
    known: Callable[[str, Path, dict[str, Any]], Run],
) -> OneMore:
    """What one more attempt of a case is. `started` are the columns of runs that have been asked for and not been seen
    yet; `known` is a run as requests know it, by its id, folder and options.

    Raises:
        NotNow: it cannot be had now, and why.
    """
    group, front = state.group, state.run
    item = state.by_id.get(pointer.case_id)
    key = None
    if group is not None and (pointer.run_id is None or group.find_run(pointer.run_id) is not None):
        key = group.key(pointer.case_id, pointer.agent, pointer.model)
    row = group.newest(key)[1] if group is not None and key is not None else None
    suite = item.suite if item else row.suite if row else None
    if suite is None:
        raise NotNow("no such case here")
    if row is not None:  # beside those there are: in their column, whatever was chosen last
        pointer = CasePointer(row.case_id, row.agent, row.model, pointer.run_id)
    case, own = RunAsked(pointer.case_id, suite), cell(state, pointer)
    column = (own.agent, own.model or "") if own is not None else ("", "")
    for columns in started:
        if meet([column], columns.get(pointer.case_id, ())):
            raise NotNow("a run of it is being started")
    if group is not None and key is not None and row is not None and front is not None:
        placed = group.attempts(key)
        if why := group.why_no_more(key):
            raise NotNow(why)
        first = group.first_with([key])
        run = known(first.info.id, first.folder, first.info.options) if first is not None else None
        return OneMore(case, own, run, 1 + max((one.row.attempt for one in placed), default=0))
    if pointer.run_id:
        run = known(pointer.run_id, state.run_folder(pointer.run_id), {})
        last = item.last_of(pointer.agent, pointer.model) if item else None
        return OneMore(case, own, run, 1 + (last.attempts if last else 0))
    return OneMore(case, own)


def one_more(
    project: Project,
    cases: Sequence[RunAsked],
    choice: RunChoice,
    run: Run | None,
    number: int,
    cells: Sequence[RequestCell],
) -> RunRequest:
    """One more attempt of each of these cases beside those of a run (None: of none), as its attempt of this number: in
    these columns, or (none) in those of their suites. Of `choice` only where it runs."""
    request = _plain(project, *cases)
    request.on = _on(choice.on)
    if cells:
        request.cells = list(cells)
    if run is not None:
        request.linked_to, request.first_attempt = run.run_id, number
        if cells and run.typed:
            request.agents = run.agents
    return request


def from_recorded(
    project: Project,
    case: RunAsked,
    column: tuple[str, str | None],
    run: Run,
    attempt: int,
    number: int,
    turn: int | None,
) -> RunRequest:
    """What goes on from a recorded attempt at `turn`, or (None) judges the answers that count with it again:
    in its own column (agent and model), whatever was chosen since."""
    request = _plain(project, case)
    request.linked_to, request.first_attempt = run.run_id, number
    request.continue_from = Recorded(str(run.folder), attempt, turn)
    agent, model = column
    cells = [RequestCell(case.case_id, agent, model or None, not run.named)] if agent else []
    return in_columns(request, cells, run)


def judged_again(
    project: Project, case_ids: Sequence[str], cells: Sequence[RequestCell] | None = None
) -> RunRequest:
    """What judging the recorded answers of these cases of a run again (`cells`: of these columns of them) needs to know
    besides the run."""
    asked = list(cells) if cells else None
    agreed = list(project.agreed)
    return RunRequest(case_ids=list(case_ids), cells=asked, trust=project.trusted, agreed=agreed)


def gone_on_with(project: Project, typed: Sequence[str], on: str = "") -> RunRequest:
    """What going on with a run needs to know besides it: the agents that a person typed for it here are typed still;
    what another's record says is not (`engine.after.resuming`). `on` is the place that was chosen since."""
    agreed = list(project.agreed)
    return RunRequest(trust=project.trusted, agreed=agreed, agents=list(typed), on=_on(on))


def failures_named() -> RunRequest:
    """What having the judge name failures wants, for the question of trust: no case is asked."""
    return RunRequest(assess=True)


# -- the columns that cases are asked in


def cell(state: AppState, pointer: CasePointer) -> RequestCell | None:
    """The column that a pointer means; None where it names no agent."""
    if not pointer.agent:
        return None
    item, group = state.by_id.get(pointer.case_id), state.group
    column = Column(pointer.agent, pointer.model or "")
    past = [one for one in item.history if case_state.column_of(one) == column] if item else []
    one = state.find_run(pointer.run_id)
    in_front = group is not None and (one is None or group.find_run(one.info.id) is not None)
    runs = group.runs if group is not None and in_front else [one] if one is not None else []
    named = any(case_state.arguments(pointer.case_id, column, run.info.options) for run in runs)
    return RequestCell(pointer.case_id, pointer.agent, pointer.model, not named and case_state.is_own(past))


def cells_of(state: AppState, entry: CaseRow) -> list[RequestCell]:
    """The column that a row is of."""
    one = entry.column
    if one is not None:
        return [RequestCell(entry.case_id, one.agent, one.model or None, one.own)]
    if entry.key == entry.case_id:  # of the suites, which ask their own agent
        return [RequestCell(entry.case_id, "", None, True)]
    if entry.case_ref is None:
        return []
    # Of the run in front.
    of_run = cell(state, CasePointer(entry.case_id, entry.agent, entry.model or None, entry.run_id))
    return [of_run] if of_run is not None else []


def asked_in(state: AppState, entry: CaseRow, request: RunRequest) -> Iterable[tuple[str, str]]:
    """The columns, agent and model, in which a request asks a row's case."""
    if request.cells is not None:
        return [(cell.agent, cell.model or "") for cell in cells_of(state, entry)]
    return product(request.agents or [""], request.models or [""])


def part_of_front(state: AppState, request: RunRequest, entries: Sequence[CaseRow]) -> str | None:
    """The run in front, where these cases are some of its and would be asked of the same agents; of those that it is
    shown with the one that the cases are of."""
    group, front = state.group, state.run
    if group is None or front is None or len(entries) >= len(group.cases):
        return None
    same = all(
        not chosen or chosen == [str(name) for name in front.info.options.get(name) or []]
        for name, chosen in (("agents", request.agents), ("models", request.models))
    )
    if any(_asked_later(state, entry) for entry in entries):
        return None  # what is run again, and stands before the person, is another run's
    of_the_run = all(entry.key in group.cases for entry in entries)
    if not same and not (of_the_run and len(entries) == 1):
        return None
    if request.cells is not None and not of_the_run:
        wanted = [(cell.case_id, cell.agent, cell.model) for cell in request.cells]
    else:
        wanted = [(entry.case_id, None, None) for entry in entries]
    keys = [group.key(*column) for column in wanted]
    found = [key for key in keys if key is not None]
    return (group.first_with(found) or front).info.id if len(found) == len(keys) else None


def lacks_only_made(state: AppState, entries: Sequence[CaseRow]) -> bool:
    """Whether these are all that the run in front has but for cases that hooks of their suites make, which stand in no
    list of files: who runs them runs all, and nothing of another run may stand beside them."""
    group = state.group
    if group is None:
        return False
    hooked = {item.suite for item in state.rows if item.case is not None and not item.content}
    asked = {entry.case_id for entry in entries}
    left = [row for _, row in map(group.newest, group.cases) if row.case_id not in asked]
    return bool(left) and all(row.suite in hooked and row.case_id not in state.by_id for row in left)


def _asked_later(state: AppState, entry: CaseRow) -> bool:
    """Whether the newest result of a row is of a run begun after the one in front, and not of that."""
    group, item = state.group, state.by_id.get(entry.case_id)
    whom = entry.agent or None, entry.whom.model or None
    last = item.last_of(*whom) if item is not None else None
    if group is None or last is None or group.find_run(entry.run_id) or group.find_run(last.run_id):
        return False
    key = group.key(entry.case_id, *whom)
    return key is not None and last.run_id > group.newest(key)[0].info.id


# -- what is at work already


def columns_of(request: RunRequest) -> Columns:
    """What a request asks."""
    found: Columns = {}
    for cell in request.cells or ():
        found.setdefault(cell.case_id, set()).add((cell.agent, cell.model or ""))
    if request.cells is None:
        asked = {(agent, model) for agent in request.agents or [""] for model in request.models or [""]}
        found = {case_id: asked for case_id in request.case_ids or ()}
    return found


def without(request: RunRequest, cases: Collection[str]) -> RunRequest:
    """The request without these cases."""
    ids, cells = request.case_ids, request.cells
    return msgspec.structs.replace(
        request,
        case_ids=None if ids is None else [one for one in ids if one not in cases],
        cells=None if cells is None else [one for one in cells if one.case_id not in cases],
    )


def at_work(runs: Iterable[RunView]) -> Columns:
    """What these runs ask and have not ended. A step is a person's own doing, and an answer that is judged again
    is not asked for."""
    found: Columns = {}
    for run in runs:
        if not run.active or run.info.stepped:
            continue
        for row in run.attempts.values():
            case = run.cases.get(row.case_ref) if row.state != "done" and not row.judges else None
            if case is not None:
                found.setdefault(case.case_id, set()).add((case.agent, case.model or ""))
    return found


def meet(asked: Iterable[tuple[str, str]], others: Iterable[tuple[str, str]]) -> bool:
    """Whether any column is among both."""
    others = list(others)
    return any(
        all(not one or not other or one == other for one, other in zip(mine, their, strict=True))
        for mine in asked
        for their in others
    )


def _plain(project: Project, *cases: RunAsked) -> RunRequest:
    """One attempt of a case, or of several, asked anew: limits and shares are about whole runs."""
    return RunRequest(
        paths=_files(project, cases),
        case_ids=list(dict.fromkeys(case.case_id for case in cases)),
        attempts=1,
        anew=True,
        trust=project.trusted,
        agreed=list(project.agreed),
        config_file=str(project.config_file) if project.config_file else None,
        root=str(project.root),
        command="tui-eval",
    )


def _files(project: Project, cases: Iterable[RunAsked]) -> list[str]:
    """The files of these cases. One whose name is no text cannot be sent by it: its folder is, and the ids choose."""
    found = {project.root / suite for suite in {case.suite for case in cases}}  # of many cases few suites
    return sorted({str(path if _is_text(path.name) else path.parent) for path in found})


def _is_text(name: str) -> bool:
    # U+FFFD: from a run that was stored, whose text is whole.
    return storable_text(name) == name and REPLACEMENT not in name


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _whole(label: str, text: str) -> int | None:
    if not text:
        return None
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{label}: a whole number, not {text!r}") from None
    if number < 1:
        raise ValueError(f"{label}: at least 1")
    return number


def _amount(label: str, text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text.lstrip("$"))
        if number == inf:
            raise ValueError
    except ValueError:
        raise ValueError(f"{label}: a number, not {text!r}") from None
    if not number > 0:
        raise ValueError(f"{label}: more than 0")
    return number


def _share(text: str) -> float | None:
    share = _amount("must pass", text.rstrip("%"))
    if share is None:
        return None
    share = share / 100 if text.endswith("%") else share
    if share > 1:
        raise ValueError("must pass: a share from 0 to 1, such as 0.8")
    return share


def still_at_work(name: str, total: int, many: int) -> tuple[str, list[tuple[str, str, str]]]:
    """What is asked, and the answers (key, value, words), where `many` of the cases that would be run are at
    work; `name` is the first one's."""
    no = ("n", "no", "no")
    if not many:
        question = (
            f"{name}: it has ended meanwhile."
            if total == 1
            else f"None of these {total:,} cases is at work any more."
        )
        return question, [("y", "again", f"run {'it' if total == 1 else 'them'} again"), no]
    if many == total:
        question = f"{name}: it is still at work." if total == 1 else f"All {many:,} are still at work."
        return question, [("y", "again", f"run {'it' if many == 1 else 'them'} a second time"), no]
    left = total - many
    return f"{many:,} of these {total:,} cases {'is' if many == 1 else 'are'} still at work.", [
        ("o", "others", f"run the {left:,} other{'s' * (left != 1)}"),
        ("y", "again", f"run all {total:,}, {many:,} of them a second time"),
        no,
    ]


def part_of(rows: Iterable[CaseItem], entries: Sequence[CaseRow]) -> str | None:
    """The run that these cases were all asked in last, with others of the suites' `rows`: what did not pass
    in it and is run again adds to it, also where it is not in front."""
    last = {
        item.case_id: {
            column: results[0].run_id for column, results in case_state.by_column(item.history).items()
        }
        for item in rows
        if item.history
    }
    asked: set[str] = set()
    for entry in entries:
        columns = last.get(entry.case_id, {})
        one = entry.column
        if one is not None:
            asked.add(columns.get(Column(one.agent, one.model or ""), ""))
        else:
            asked.update(columns.values() or [""])
    run_id = asked.pop() if len(asked) == 1 else ""
    others = len({entry.case_id for entry in entries}) < sum(
        run_id in runs.values() for runs in last.values()
    )
    return run_id if run_id and others else None
