"""Runs: starting, adding to and cancelling them. Every request to an engine goes out here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.engine.request import RequestCell, RunRequest
from tui_eval.guard.spelling import some_of
from tui_eval.store.run_folders import StartLock
from tui_eval.store.shard_runs import LOOKED_AT, is_looked_at
from tui_eval.tui.controllers.failure_names import FailureNames
from tui_eval.tui.controllers.first_steps import AskAgent, AskCost, AskPlace, GoingOn
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.run_plans import RunPlans
from tui_eval.tui.front import CaseListFront, Question
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.follower import Left, begun_elsewhere, left_of
from tui_eval.tui.services import Core, Suites
from tui_eval.tui.state import run_requests
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_sources import ENOUGH
from tui_eval.tui.state.lists.entries import entries_of, meant, not_passed, why_none_again
from tui_eval.tui.state.run_requests import RunChoice
from tui_eval.tui.state.runs.run_estimate import expected
from tui_eval.tui.state.runs.run_facts import progress_words
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.state.text.lines import one_line

if TYPE_CHECKING:
    from tui_eval.tui.state.case.case_content import CaseContent

MOST_ROWS = 50
"""Rows of a line that one key runs or judges one by one: each is a run of its own."""
CANCEL = [("y", "yes", "cancel them"), ("n", "no", "no")]
ENDED = [("esc", "no", "leave it")]
"""Answers of a question whether to cancel what has ended while it stood there."""
STILL_READING = "still reading the suites"
SLOW = 0.6
"""Seconds after which a run that is still being planned is announced: of many cases nothing else is seen yet."""


@dataclass(eq=False)
class _Sent:
    """A request to an engine, until its run has been seen. `columns` are those that it asks, by case; of a recorded
    answer that is judged again none."""

    columns: run_requests.Columns
    run_id: str = ""


class RunController:
    """Turns choices into requests to the engine and follows what was started."""

    def __init__(self, core: Core, places: PlaceController, suites: Suites, front: FrontRun) -> None:
        self._core, self._places, self._suites, self._front_run = core, places, suites, front
        self.state, self._notices = core.state, core.notices
        self.plans = RunPlans(core, places)
        self._cost = AskCost(core, places)
        self._agents, self._lost = AskAgent(core, places, suites), AskPlace(core, places)
        self._going_on = GoingOn(core, places, front)
        self.naming = FailureNames(core, places, suites)
        self._sent: list[_Sent] = []
        self._turn = asyncio.Lock()
        """Held while a lock on starts is waited for: runs begin in the order of their keys, not of threads."""

    def handlers(self) -> dict[str, Handler]:
        """What its keys do."""
        return {
            "run.all": self.run_all,
            "run.dialog": self.run_dialog,
            "case.rerun": self.rerun,
            "case.once_more": self.add_attempt,
            "run.failed": self.rerun_failed,
            "run.pause": self.pause,
            "case.cancel": self.cancel_case,
            "run.cancel": self.cancel_run,
            "place.run": self.show,
        }

    @property
    def starting(self) -> bool:
        """Whether a run is being planned, or has not been seen yet."""

        def seen(run_id: str) -> bool:
            run = self.state.find_run(run_id)
            return run is not None and (bool(run.attempts) or not run.active)

        followed = self._front_run.followers
        self._sent = [
            one for one in self._sent if not one.run_id or (one.run_id in followed and not seen(one.run_id))
        ]
        return bool(self._sent)

    @property
    def running(self) -> bool:
        """Whether a run goes on, also when the app is left."""
        return self.starting or bool(self.state.outlasting)

    @property
    def opening(self) -> bool:
        """Whether a run is planned, or read for the first time."""
        return self.starting or bool(self._front_run.followers)

    # -- keys

    def run_all(self) -> None:
        """Run all shown; where the list they stand in is not in sight, ask before. A second press on a slow
        line, before the first is answered, starts no second run."""
        if self.starting:
            self._notices.say("a run is being started")
            return
        place = self._places.list_to_run
        if place is None:
            return
        entries = place.shown_entries()
        front = self._places.place
        if not entries or (front is not None and front.lists_cases):
            self.start(entries, anew=False)
            return
        listed = "the run's list" if place.kind == "run" else "Suites"
        self._places.ask(
            f"Run all that {listed} shows?",
            [("y", "run", "run them"), ("n", "no", "no")],
            lambda value: self.start(entries, anew=False) if value == "run" else None,
            self.plans.would_be(entries),
        )

    def rerun(self) -> None:
        """Run the case, or the marked ones."""
        place, front = self._places.list_in_front, self._places.place
        if place is None:
            return
        if front is not None and front.lists_cases:
            entries = place.marked_entries()
            place.unmark()
        else:
            pointer = self._places.pointer()
            if pointer is not None and pointer.case_id in self.state.gone:
                self._notices.say("this case is no longer in the suites: e opens its file")
                return
            # Also one that the list's filter hides: it is looked at.
            rows = place.all_entries() if isinstance(place, CaseListFront) else place.shown_entries()
            if pointer is not None and pointer.case_id not in {row.case_id for row in rows}:
                # Of the run's list, in which it stands under the name that it had.
                item = self.state.by_id.get(pointer.case_id)
                rows = entries_of(item, self.state) if item is not None else ()
            entries = [e for e in rows if pointer is not None and meant(e, pointer)][:1]
        self.start(entries, show=len(entries) > 1 or (front is not None and front.kind == "run"))

    def rerun_failed(self) -> None:
        """Run what did not pass again: below the line under the cursor, of a case's row everything shown."""
        place, front = self._places.list_in_front, self._places.place
        rows = place.shown_entries() if place is not None else ()
        line = place.line_under_cursor() if place is not None and place is front else None
        below = place.cases_under_cursor() if place and line is not None and line.entry is None else rows
        entries = not_passed(below)
        if not entries:
            elsewhere = len(not_passed(rows)) if below is not rows else 0
            why = why_none_again(below, elsewhere)
            if self._places.reading:
                why = f"{why} so far: reading" if below else STILL_READING
            self._notices.say(why)
            return
        run, group = self.state.run, self.state.group
        first = group.first_with([entry.key for entry in entries]) if group is not None else None
        of_run = place is not None and place.kind == "run" and run is not None
        linked_to = (first or run).info.id if of_run and run else None
        self.start(entries, linked_to=linked_to, in_their_columns=True)

    def add_attempt(self) -> None:
        """One more attempt of the case, or of each row of a test."""
        pointers = self._places.pointers()
        if not pointers:
            self._notices.say("put the cursor on a case first")
        elif len(pointers) > MOST_ROWS:
            self._notices.say(f"one more attempt of at most {MOST_ROWS} at once: A runs more of them")
        else:
            self._once_more(pointers)

    def run_dialog(self) -> None:
        """Agent, attempts, limits."""
        place = self._places.list_in_front
        if place is None:
            return
        marked = place.marked()
        entries = place.marked_entries() if marked else place.shown_entries()
        if self._only_results(entries):
            return
        config = self.state.config
        agents = sorted(config.agents) if config is not None else []

        def answer(choice: RunChoice | None) -> None:
            if choice is not None:
                self.plans.choice = choice
                chosen, request = self.plans.chosen(entries, choice), self.plans.request(entries, choice)
                run = self.plans.built_on()
                self._unless_at_work(
                    chosen,
                    self.plans.as_it_ran(request, run),
                    partial(self.send, request, show=True),
                    lambda others: self.send(
                        self.plans.as_it_ran(self.plans.request(others, choice), run), show=True
                    ),
                )

        choice = RunChoice(**{name: getattr(self.plans.choice, name) for name in RunChoice.__slots__})
        what = (
            f"the {len(entries):,} {'marked' if marked else 'shown'}" if len(entries) != 1 else "the one case"
        )
        estimate = partial(self.plans.estimate, entries)
        beside = len(entries) > ENOUGH
        self._places.show("run dialog", choice, agents, estimate, what, beside, answer=answer)

    def cancel_case(self) -> None:
        """Cancel the attempts of the case, or of all rows of a test, that have not ended; of several tests after
        asking."""
        refs: dict[str, list[int]] = {}
        for pointer in self._places.pointers():
            run = self.state.run_of(pointer.run_id)
            if run is not None and run.active:
                rows = self.state.attempts_of(pointer)
                refs.setdefault(run.info.id, []).extend(row.id for row in rows if row.state != "done")
        if not refs:
            self._notices.say("no running case here")
            return
        many = sum(map(len, refs.values()))
        if not many:
            self._notices.say("this case is not running")
            return

        def cancel(value: str | None) -> None:
            if value != "yes":
                return
            for run_id, attempts in refs.items():
                if attempts:
                    self.cancel(attempts, run_id)
            self._notices.say("cancelling the case" if many == 1 else f"cancelling {many:,} attempts")

        items = (self.state.item_of(pointer) for pointer in self._places.pointers())
        tests = {(item.suite, item.name) for item in items if item is not None}
        if len(tests) > 1:  # a fold of all that wait is one line, and nearly the run

            def asked() -> Question:
                runs = {run_id: self.state.find_run(run_id) for run_id in refs}
                left = sum(
                    run.attempts[ref].state != "done"
                    for run_id, run in runs.items()
                    for ref in refs[run_id]
                    if run is not None and run.active and ref in run.attempts
                )
                if not left:
                    return Question("All of them have ended.", ENDED)
                return Question(f"Cancel {left:,} attempts of {len(tests):,} tests?", CANCEL)

            first = asked()
            self._places.ask(first.question, first.answers, cancel, renewed=asked)
        else:
            cancel("yes")

    def cancel_run(self) -> None:
        """Cancel the run that is meant, after asking."""
        if (run := self._front_run.meant(starting=self.starting)) is None:
            return
        names = {case.name for case in run.cases.values()}
        named = f" ({one_line(names.pop())})" if len(names) == 1 else ""
        details = [] if run is self.state.run else [f"It is {run.info.id}{named}; L shows it."]

        def asked() -> Question:
            now = self.state.find_run(run.info.id) or run
            if not now.active:
                return Question("The run has ended: there is nothing to cancel.", ENDED, details)
            left = now.counts.total - now.counts.done
            words = f"{left:,} attempt{'s have' if left != 1 else ' has'} not ended"
            words = words if now.counts.total else "It is just beginning"
            return Question(f"Cancel the run? {words}.", CANCEL, details)

        first = asked()
        self._places.ask(
            first.question,
            first.answers,
            lambda value: self.cancel(None, run.info.id) if value == "yes" else None,
            details,
            renewed=asked,
        )

    def show(self) -> None:
        """The run that goes on, else the one in front; where none has been, or but a step, one at work, else
        the newest."""
        self._front_run.bring()
        front = self.state.run
        nothing = not self.opening if front is None else front.info.stepped and not self.starting
        if not (nothing and self._front_run.open_newest()):
            self._places.show_run()

    def open(self, folder: Path) -> None:
        """Bring a run to the front and show it."""
        self._front_run.open(folder)

    def take_up(self, folder: Path) -> None:
        """Go on with a run that was cut off, and show it; where, if its cluster was lost, and what its agents and its
        cluster want, which no suite need name, is asked before."""

        def ask(left: Left) -> None:
            chosen = self.plans.choice.on
            if not self._lost.asks(
                folder.name, left, chosen, lambda here: go(left, "here" if here else chosen)
            ):
                go(left, chosen)

        def go(left: Left, on: str) -> None:
            self._suites.trusted_first(
                msgspec.structs.replace(self.plans.gone_on_with(folder, left.options, on), cells=left.cells),
                lambda: self._core.tasks.soon(self._take_up(folder, left.options, on), opens=True),
            )

        look = partial(self._core.tasks.thread, partial(left_of, folder), ask, name="trust", opens=True)
        self._suites.before_running(look)()

    async def _take_up(self, folder: Path, options: dict[str, Any], on: str) -> None:
        request = self.plans.gone_on_with(folder, options, on)
        moved = run_requests.moved(request, options, self.state.config, self.plans.choice.on)
        await self._going_on.begin(folder, request, moved)

    # -- doing it

    def _only_results(self, entries: Sequence[CaseRow]) -> bool:
        """Whether none of these can be run, as only results of their suites are here, which it says."""
        suites = list(dict.fromkeys(entry.suite for entry in entries))
        if not suites or not all(map(self.state.only_results, suites)):
            return False
        self._notices.say(f"not in this project: {some_of(suites, 2)}; its results can be looked at, not run")
        return True

    def start(
        self,
        entries: Sequence[CaseRow],
        *,
        linked_to: str | None = None,
        show: bool = True,
        in_their_columns: bool = False,
        anew: bool = True,
    ) -> None:
        """Run these cases as their files say and by whom they were asked before; of what the run dialog chose
        for another run only how it is done. `in_their_columns`: as a part of the run that they are of.
        `anew`: no kept answer is taken. It asks where some of them are at work already, and once where that
        will cost much."""
        place = self._places.list_in_front
        if not entries:
            reading = self.state.loading and not self.state.rows
            self._notices.say(STILL_READING if reading else "no case to run here")
            return
        if self._only_results(entries):
            return
        request = self.plans.request(entries, self.plans.choice.lasting)
        request.anew = anew
        self.plans.ask_in_columns(request, entries)
        whole = not anew and run_requests.lacks_only_made(self.state, entries)
        request.linked_to = linked_to or (None if whole else self.plans.belongs(request, entries))
        in_suites = place is not None and place.kind == "suites"
        if in_suites and run_requests.adds_to_shards(self.state.root, request):
            request.linked_to = None
        if in_their_columns and request.linked_to is None:
            request.linked_to = run_requests.part_of(self.state.rows, entries)
        self.plans.as_it_ran(request, self.plans.built_on(request.linked_to))

        def send() -> None:
            if request.agents or request.cells:
                self.send(request, show, aside=len(entries) == 1)
            else:
                self._agents.then(entries, lambda: self.send(request, show, aside=len(entries) == 1))

        others = partial(
            self.start, linked_to=linked_to, show=show, in_their_columns=in_their_columns, anew=anew
        )
        self._unless_at_work(entries, request, partial(self._cost.then, entries, request, send), others)

    def _unless_at_work(
        self,
        entries: Sequence[CaseRow],
        request: RunRequest,
        send: Callable[[], Any],
        of_others: Callable[[Sequence[CaseRow]], Any],
    ) -> None:
        """Send it; where some of its cases are at work already in the same column, ask before: nobody pays twice
        unasked. `of_others` is given those that are not."""

        def idle(rows: Sequence[CaseRow], asked: run_requests.Columns) -> list[CaseRow]:
            return [
                row
                for row in rows
                if row.case_id not in asked
                or not run_requests.meet(run_requests.asked_in(self.state, row, request), asked[row.case_id])
            ]

        if self._cost.counting:  # what a run of many will cost; the key was pressed again
            self._notices.say("a run of many is being started")
            return
        for one in self._sent if self.starting else ():
            if len(idle(entries, one.columns)) < len(entries):  # the key was pressed again on a slow line
                self._notices.say("a run of it is being started")
                return
        others = idle(entries, run_requests.at_work(self.state.active))
        if len(others) == len(entries):
            send()
            return
        again = f"again: {expected(self.state, entries, request).words}"
        named = others

        def asked() -> Question:
            nonlocal named
            named = idle(entries, run_requests.at_work(self.state.active))
            now = time.time()
            runs = [progress_words(run, self._core.symbols, now) for run in self.state.active]
            question, answers = run_requests.still_at_work(
                entries[0].name, len(entries), len(entries) - len(named)
            )
            return Question(question, answers, [*(f"now: {words}" for words in runs), again])

        def answer(value: str | None) -> None:
            if value == "again":
                send()
            elif value == "others":  # of those that it named last
                of_others(idle(named, run_requests.at_work(self.state.active)))

        first = asked()
        self._places.ask(first.question, first.answers, answer, first.details, renewed=asked)

    def _once_more(self, pointers: Iterable[CasePointer]) -> None:
        """One more attempt of each of these cases, beside those there are; those that become the same attempt of one
        run are one run."""
        together: dict[tuple[str, int, bool], list[run_requests.OneMore]] = {}
        for pointer in pointers:
            started = [one.columns for one in self._sent] if self.starting else []
            try:
                one = run_requests.next_attempt(self.state, pointer, started, self.plans.known)
            except run_requests.NotNow as why:
                self._notices.say(str(why))
                continue
            run_id = one.run.run_id if one.run is not None else ""
            together.setdefault((run_id, one.number, one.cell is None), []).append(one)
        for ones in together.values():
            cells = [one.cell for one in ones if one.cell is not None]
            first, choice = ones[0], self.plans.choice
            cases = [one.case for one in ones]
            request = run_requests.one_more(self.plans.project, cases, choice, first.run, first.number, cells)
            self.plans.as_it_ran(request, first.run)
            self.send(request, show=False, aside=True)

    def send(
        self,
        request: RunRequest,
        show: bool,
        said: str | None = None,
        *,
        aside: bool = False,
        sure: bool = False,
        placed: bool = False,
    ) -> None:
        """Ask the engine, then follow the run; `said` is shown instead of how many attempts that is. `aside`:
        it is one case, and leaves the run in front where it is. `sure`: also where another app has begun the
        same just now; `placed`: also where the run that it builds on was lost."""
        if run_requests.adds_to_shards(self.state.root, request):
            self._notices.say(LOOKED_AT)
            return

        def go() -> None:
            request.agreed = list(self.plans.project.agreed)
            sent = _Sent(run_requests.columns_of(request))
            self._sent.append(sent)  # already now: the next key may be handled before the engine is asked
            self._core.tasks.soon(self._send(request, show, said, aside, sent, sure, placed), opens=show)

        self._suites.trusted_first(request, go)

    async def _send(
        self,
        request: RunRequest,
        show: bool,
        said: str | None,
        aside: bool,
        sent: _Sent,
        sure: bool,
        placed: bool,
    ) -> None:
        slow = asyncio.get_running_loop().call_later(SLOW, self._notices.say, "starting the run…")
        lock = StartLock(self.state.root)
        again = partial(self.send, show=show, said=said, aside=aside)
        try:
            if not placed and await self._lost.asks_of(request, partial(again, placed=True)):
                self._sent.remove(sent)
                return
            if sent.columns and not (sure or request.step or request.continue_from):
                async with self._turn:
                    await asyncio.to_thread(lock.take)
                known = {run.info.id for run in self.state.active if run.attempts} | {
                    one.run_id for one in self._sent
                }
                found = await asyncio.to_thread(begun_elsewhere, self.state.root, sent.columns, known)
                if found:
                    self._sent.remove(sent)
                    again = partial(again, sure=True, placed=True)
                    self._ask_about_others(request, len(sent.columns), found, again)
                    return
            started = await self._core.engines.own.run(request)
        except BaseException:
            self._sent.remove(sent)
            raise
        finally:
            lock.release()
            slow.cancel()
        for problem in started.problems:
            self._notices.log("error", problem)
        if started.problems:
            self._notices.say(f"{counted(len(started.problems), 'problem')} in the files: see the log (l)")
        if request.agents:
            self.plans.typed[started.run_id] = list(request.agents)
        if request.on and not request.on_recorded:
            self.plans.places_typed.add(request.on)
        self._front_run.follow(started.folder, aside=aside)
        sent.run_id = started.run_id
        if show:
            self.show()
        elif said is None:
            said = f"running, {started.attempts} attempt{'s' if started.attempts != 1 else ''}"
        moved = run_requests.moved_from(self.state, request, self.plans.choice.on)
        if words := "; ".join(filter(None, ["" if show else said, moved, started.note])):
            self._notices.say(words)

    def _ask_about_others(
        self, request: RunRequest, total: int, found: set[str], send: Callable[[RunRequest], None]
    ) -> None:
        """As `_unless_at_work`, of runs that this app has not seen yet."""
        item = self.state.by_id.get(min(found))
        question, answers = run_requests.still_at_work(item.name if item else min(found), total, len(found))

        def answer(value: str | None) -> None:
            if value in ("again", "others"):
                send(request if value == "again" else run_requests.without(request, found))

        self._places.ask(question, answers, answer, ["begun by another app or command"], unasked=True)

    def judge_again(self, folder: Path, case_ids: list[str], cells: Sequence[RequestCell] = ()) -> None:
        """Judge the recorded answers of some cases of a run (`cells`: of these columns of them) again, as one run."""
        if is_looked_at(folder):
            self._notices.say(LOOKED_AT)
            return
        request = run_requests.judged_again(self.plans.project, case_ids, cells)
        self._core.tasks.soon(self._judge_again(folder, request))

    async def _judge_again(self, folder: Path, request: RunRequest) -> None:
        sent = _Sent({})
        self._sent.append(sent)
        try:
            started = await self._core.engines.own.rescore(folder, request)
        finally:
            self._sent.remove(sent)
        for problem in started.problems:
            self._notices.log("error", problem)
        self._front_run.follow(started.folder, aside=True)
        words = f"judging {started.attempts} recorded answer{'s' * (started.attempts != 1)} again"
        self._notices.say("; ".join(filter(None, [words, started.note])))

    def cancel(self, refs: list[int] | None, run_id: str | None = None) -> None:
        """Cancel attempts, or the whole run (in front, or of this id)."""
        run = self.state.find_run(run_id) if run_id else self.state.run
        if run is not None and self._core.engines.reaches(run):
            self._core.tasks.soon(self._core.engines.of(run).cancel(run.info.id, refs))

    def pause(self) -> None:
        """Pause the run that is meant, or go on."""
        if (run := self._front_run.meant(starting=self.starting)) is None:
            return
        if is_looked_at(run.folder):
            self._notices.say("these are shards that are looked at: they are paused where they run")
            return
        if not self._core.engines.reaches(run):
            return
        paused = run.info.state != "paused"
        self._core.tasks.soon(self._core.engines.of(run).pause(run.info.id, paused))
        which = "" if run is self.state.run else f" ({run.info.id})"
        said = f"pausing{which}: what runs ends, nothing new begins" if paused else f"going on{which}"
        self._notices.say(said)

    # -- one case

    def one_attempt(self, pointer: CasePointer) -> tuple[RunRequest, CaseRow] | None:
        """One attempt of the case, by the agent it is shown with; says why where there is none."""
        item = self.state.by_id.get(pointer.case_id)
        if item is None:
            self._notices.say("put the cursor on a case of the suites first")
            return None
        entry = CaseRow(
            pointer.case_id, pointer.case_id, item.name, item.suite, "", agent=pointer.agent or "",
            model=pointer.model or "", run_id=pointer.run_id or "",
        )  # fmt: skip
        case = run_requests.RunAsked(pointer.case_id, item.suite)
        request = run_requests.one_attempt(self.plans.project, case, run_requests.cell(self.state, pointer))
        request.linked_to = self.plans.belongs(request, [entry])
        return request, entry

    def from_recorded(
        self, content: CaseContent, turn: int | None, said: str | None = None, *, aside: bool = False
    ) -> None:
        """Run the case with the recorded turns before `turn` of the attempt that was read; None: judge the
        recorded answers that count with it again. `aside`: the run in front stays there."""
        row, folder = content.row, content.folder
        if row is None or folder is None or not content.run_id:
            return
        case = run_requests.RunAsked(content.pointer.case_id, content.suite)
        column = (content.agent or "", content.model)
        run = self.plans.known(content.run_id, folder, content.options)
        request = run_requests.from_recorded(self.plans.project, case, column, run, row.id, row.attempt, turn)
        if said is None:
            said = (
                "judging the recorded answers again" if turn is None else f"running again from turn {turn} on"
            )
        self.send(request, show=False, said=said, aside=aside)
