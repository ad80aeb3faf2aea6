"""Starting, adding to and cancelling runs: what `a A r R + x X P` and `q` do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.engine.request import RequestCell, RunRequest
from tui_eval.model_ids import column_model
from tui_eval.store import case_state
from tui_eval.store.case_state import Column
from tui_eval.tui.ask_agent import AgentAsking
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.run_dialog import RunChoice
from tui_eval.tui.state import run_requests
from tui_eval.tui.state.lists import filtering
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.entries import subject
from tui_eval.tui.state.runs.run_estimate import FREE, Estimate, Planned, Who, estimate
from tui_eval.tui.state.text import formatting
from tui_eval.tui.terminal.type_ahead import keys_wait

if TYPE_CHECKING:
    from tui_eval.tui.app import EvalApp
    from tui_eval.tui.state.runs.run_view import RunView

ASK_ABOVE_USD = 1.0
"""A run without a dialog that history says will cost more is asked about, once."""


class RunDesk:
    """Turns choices into requests to the engine and follows what was started."""

    def __init__(self, app: EvalApp) -> None:
        self._app = app
        self.choice = RunChoice()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._asked = False
        self.typed: dict[str, list[str]] = {}
        """By run the agents that a person typed for it here: these may be asked again without being trusted."""
        self._agents = AgentAsking(app)
        self.starting = False

    def soon(self, work: Coroutine[Any, Any, Any], *, opens: bool = False) -> None:
        """Do this without anything waiting for it; an engine's refusal is said and logged. `opens`: it
        shows what a key asked for, and keys typed ahead wait for that."""
        opened = keys_wait(self._app) if opens else None

        async def guarded() -> None:
            from tui_eval.engine.service.client import EngineError

            try:
                await work
            except EngineError as error:
                self._app.problem(str(error))
            except OSError as error:
                self._app.problem(f"engine: {error}")
            except Exception as error:  # nobody waits for this task: what it raises would never be seen
                self._app._handle_exception(error)
            finally:
                if opened is not None:
                    opened()

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- what it would be

    def chosen(self, entries: Iterable[CaseRow], choice: RunChoice) -> list[CaseRow]:
        """The entries that the choice's filter lets through."""
        entries = list(entries)
        if not choice.filter:
            return entries
        parsed = filtering.parse(choice.filter)
        return [entry for entry in entries if parsed.matches(subject(entry))]

    def estimate(self, entries: Sequence[CaseRow], choice: RunChoice) -> tuple[str, bool]:
        """What a choice comes to in words, and whether it can be started."""
        try:
            request = self.request(entries, choice)
            chosen = self.chosen(entries, choice)
        except (ValueError, filtering.ListFilterError) as error:
            return str(error), False
        if not chosen:
            return "no case matches", False
        for name in request.agents:
            if self._is_unknown(name):
                return f"no agent {name} here", False
        return self.expected(chosen, request).words, True

    def _is_unknown(self, agent: str) -> bool:
        """Whether a name is no agent's: what has a colon may be a provider's model, a file or an address."""
        config = self._app.config
        return config is not None and ":" not in agent and agent != "echo" and agent not in config.agents

    def expected(self, entries: Sequence[CaseRow], request: RunRequest) -> Estimate:
        """What these cases will probably cost and last, from their past."""
        items = self._app.state.by_id
        models = request.models or [None]
        agents: dict[tuple[str, str | None], list[Who]] = {}
        planned: list[Planned] = []
        new: dict[tuple[str, str | None], int] = {}
        asked: dict[str, list[Who]] = {}
        for cell in request.cells or ():
            who = self._who(cell.agent or None, cell.model)
            if who not in asked.setdefault(cell.case_id, []):
                asked[cell.case_id].append(who)
        for entry in entries:
            item = items.get(entry.case_id)
            if entry.case_id in asked:  # with several lines of one case, in all its columns at the first
                whom = asked.pop(entry.case_id)
                attempts = request.attempts or (entry.case.attempts if entry.case else 1)
                planned.append(Planned(item.history if item is not None else (), attempts, whom))
                continue
            if request.cells:
                continue
            kind = (entry.suite, item.agent if item is not None else entry.agent)
            if kind not in agents:
                names = request.agents or [self._agent_of(entry)]
                agents[kind] = [self._who(name, model) for name in names for model in models]
            attempts = request.attempts or (entry.case.attempts if entry.case else 1)
            if item is not None and item.history:
                planned.append(Planned(item.history, attempts, agents[kind]))
            else:
                new[kind] = new.get(kind, 0) + attempts
        # Cases that never ran take what the others take: they need not be looked at one by one.
        planned += [Planned((), attempts, agents[kind]) for kind, attempts in new.items()]
        found = estimate(planned, request.concurrency or self._app.concurrency)
        return found._replace(cases=len(entries))

    def _agent_of(self, entry: CaseRow) -> str | None:
        spec = self._app.agent_spec(CasePointer(entry.case_id))
        return spec.name if spec is not None else entry.agent or None

    def _who(self, agent: str | None, model: str | None) -> Who:
        config = self._app.config
        spec = config.agents.get(agent) if config is not None and agent is not None else None
        if spec is None:
            return Who(agent, model)
        return Who(agent, column_model(model, spec.type), spec.type in FREE, spec.concurrency or 0)

    def request(self, entries: Iterable[CaseRow], choice: RunChoice) -> RunRequest:
        """The request for these cases.

        Raises:
            ValueError: a number is none; one line that names the field.
        """
        asked = [run_requests.RunAsked(entry.case_id, entry.suite) for entry in self.chosen(entries, choice)]
        return run_requests.chosen(self.project, asked, choice)

    @property
    def project(self) -> run_requests.Project:
        """What requests need to know of the project."""
        state = self._app.state
        return run_requests.Project(
            state.root, state.trusted, tuple(sorted(state.agreed)), self._app.config_file
        )

    def known(self, run_id: str, folder: Path, options: dict[str, Any]) -> run_requests.Run:
        """A run as requests that build on it know it."""
        return run_requests.Run(run_id, folder, options, run_id in self.typed)

    def _front(self) -> run_requests.Run | None:
        run = self._app.state.run
        return self.known(run.info.id, run.folder, run.info.options) if run is not None else None

    # -- doing it

    def start(
        self,
        entries: Sequence[CaseRow],
        *,
        linked_to: str | None = None,
        show: bool = True,
        in_their_columns: bool = False,
    ) -> None:
        """Run these cases with the last choice, or those who were asked before (`in_their_columns`: they in any
        case); asks once where that will cost much."""
        choice = RunChoice(**{name: getattr(self.choice, name) for name in RunChoice.__slots__})
        choice.filter = ""
        if in_their_columns:
            choice.agents = choice.models = ""
        if not entries:
            self._app.say("no case to run here")
            return
        request = self.request(entries, choice)
        self._columns(request, entries)
        request.linked_to = linked_to or self.belongs(request, entries)

        def send() -> None:
            if request.agents or request.cells:
                self.send(request, show, aside=len(entries) == 1)
            else:
                self._agents.then(entries, lambda: self.send(request, show, aside=len(entries) == 1))

        cost = self.expected(entries, request).cost
        if cost is not None and cost > ASK_ABOVE_USD and not self._asked:

            def answer(value: str | None) -> None:
                if value == "run":
                    self._asked = True
                    send()

            self._app.ask(
                f"This will cost about {formatting.cost(cost)}. Run it?",
                [("y", "run", "run it, and do not ask again"), ("n", "no", "no")],
                answer,
            )
            return
        send()

    def once_more(self, pointer: CasePointer) -> None:
        """One more attempt of a case, beside those there are."""
        app = self._app
        group, front = app.state.group, app.state.run
        item = app.state.by_id.get(pointer.case_id)
        key = None
        if group is not None and (pointer.run_id is None or group.find_run(pointer.run_id) is not None):
            key = group.key(pointer.case_id, pointer.agent, pointer.model)
        row = group.newest(key)[1] if group is not None and key is not None else None
        suite = item.suite if item else row.suite if row else None
        if suite is None:
            app.say("no such case here")
            return
        if row is not None:  # beside those there are: in their column, whatever was chosen last
            pointer = CasePointer(row.case_id, row.agent, row.model, pointer.run_id)
        case, cell = run_requests.RunAsked(pointer.case_id, suite), self.cell(pointer)
        run, number = None, 1
        if group is not None and key is not None and row is not None and front is not None:
            placed = group.attempts(key)
            if any(one.row.state != "done" for one in placed):
                app.say("this case is still running")
                return
            run, number = self._front(), 1 + max((one.row.attempt for one in placed), default=0)
        elif pointer.run_id:
            run = self.known(pointer.run_id, app.run_folder(pointer.run_id), {})
            last = item.last_of(pointer.agent, pointer.model) if item else None
            number = 1 + (last.attempts if last else 0)
        request = run_requests.one_more(self.project, case, self.choice_for_one(), run, number, cell)
        self.send(request, show=False, aside=True)

    def cell(self, pointer: CasePointer) -> RequestCell | None:
        """The column that a pointer means; None where it names no agent."""
        if not pointer.agent:
            return None
        state = self._app.state
        item, group = state.by_id.get(pointer.case_id), state.group
        column = Column(pointer.agent, pointer.model or "")
        past = [one for one in item.history if case_state.column_of(one) == column] if item else []
        one = state.find_run(pointer.run_id)
        in_front = group is not None and (one is None or group.find_run(one.info.id) is not None)
        runs = group.runs if group is not None and in_front else [one] if one is not None else []
        named = any(case_state.arguments(pointer.case_id, column, run.info.options) for run in runs)
        return RequestCell(
            pointer.case_id, pointer.agent, pointer.model, not named and case_state.is_own(past)
        )

    def choice_for_one(self) -> RunChoice:
        """The last choice of agents and models, for a single attempt."""
        return RunChoice(agents=self.choice.agents, models=self.choice.models)

    def belongs(self, request: RunRequest, entries: Sequence[CaseRow]) -> str | None:
        """The run in front, where these cases are some of its and would be asked of the same agents: the
        list then keeps all of them, with what is run now in its place."""
        group, front = self._app.state.group, self._app.state.run
        if group is None or front is None or len(entries) >= len(group.cases):
            return None
        options = front.info.options
        same = all(
            not chosen or chosen == [str(name) for name in options.get(name) or []]
            for name, chosen in (("agents", request.agents), ("models", request.models))
        )
        of_the_run = all(entry.key in group.cases for entry in entries)
        if not same and not (of_the_run and len(entries) == 1):
            return None
        if request.cells is not None and not of_the_run:
            wanted = [(cell.case_id, cell.agent, cell.model) for cell in request.cells]
        else:
            wanted = [(entry.case_id, None, None) for entry in entries]
        return None if any(group.key(*column) is None for column in wanted) else front.info.id

    def _columns(self, request: RunRequest, entries: Sequence[CaseRow]) -> None:
        """Where no one else was chosen, cases are asked of those who were asked before, each in its own
        columns."""
        cells: list[RequestCell] = []
        for entry in entries:
            if entry.key == entry.case_id:  # of the suites: all columns that it stands for
                cells += [
                    RequestCell(entry.case_id, one.agent, one.model or None, one.own) for one in entry.columns
                ] or [RequestCell(entry.case_id, "", None, True)]
            elif entry.case_ref is not None:  # of the run in front
                pointer = CasePointer(entry.case_id, entry.agent, entry.model or None, entry.run_id)
                cells += filter(None, [self.cell(pointer)])
        run_requests.in_columns(request, cells, self._front())

    def send(self, request: RunRequest, show: bool, said: str | None = None, *, aside: bool = False) -> None:
        """Ask the engine, then follow the run; `said` is told instead of how many attempts that is. `aside`: it
        is one case, and leaves the run in front where it is."""
        self.soon(self._send(request, show, said, aside), opens=show)

    async def _send(self, request: RunRequest, show: bool, said: str | None, aside: bool) -> None:
        app = self._app
        self.starting = True
        try:
            started = await app.engine.run(request)
        finally:
            self.starting = False
        for problem in started.problems:
            app.log_line("error", problem)
        if started.problems:
            app.say(f"{len(started.problems)} problem(s) in the files, see the log (l)")
        if request.agents:
            self.typed[started.run_id] = list(request.agents)
        app.follow(started.folder, aside=aside)
        if show:
            app.action_show_run()
        elif said is None:
            app.say(f"running, {started.attempts} attempt{'s' if started.attempts != 1 else ''}")
        elif said:
            app.say(said)

    def cancel(self, refs: list[int] | None, run_id: str | None = None) -> None:
        """Cancel attempts, or the whole run (in front, or of this id)."""
        run = self._app.state.find_run(run_id) if run_id else self._app.state.run
        if run is not None and self._reachable(run):
            self.soon(self._app.engine_of(run).cancel(run.info.id, refs))

    def _reachable(self, run: RunView) -> bool:
        if run.info.id not in self._app.out_of_reach:
            return True
        self._app.say("this run is executed by another program (`tui-eval run`): stop it there")
        return False

    def pause(self) -> None:
        """Pause the run, or go on."""
        run = self._app.state.run
        if run is None or not run.active:
            self._app.say("no run to pause")
            return
        if not self._reachable(run):
            return
        paused = run.info.state != "paused"
        self.soon(self._app.engine_of(run).pause(run.info.id, paused))
        self._app.say("pausing: what runs ends, nothing new begins" if paused else "going on")
