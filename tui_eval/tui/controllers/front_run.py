"""The run in front: following it, attaching to its engine, its end, a disk that takes no more of it; and what other
processes make of this project's runs meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import filterfalse, islice
from pathlib import Path
from typing import Any, Protocol

from textual.timer import Timer

from tui_eval.case_names import full_name
from tui_eval.config.project import state_dir
from tui_eval.guard.text import visible
from tui_eval.store.index import Index
from tui_eval.store.notes import Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import DATABASE, Store, StoreError, is_alive, is_step
from tui_eval.store.schema import FOR_PERSON, PLACE_LOST, AttemptRow, RunInfo
from tui_eval.store.write_thread import FULL, LEFT_OUT
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.front import Front, LiveText, RunChanged, SuitesChanged
from tui_eval.tui.loaders.follower import (
    NEWEST,
    Follower,
    Past,
    RunNews,
    counted_with,
    read_past,
    trust_wanted,
)
from tui_eval.tui.services import Core, Window
from tui_eval.tui.state.runs.run_estimate import took_before
from tui_eval.tui.state.runs.run_facts import status_words, summary
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import WAITS, RunView
from tui_eval.tui.state.text.fitting import shorten
from tui_eval.tui.watching import Watcher

DISK_SECONDS = 2.0
"""Between two questions to an engine whether the disk takes its run."""


def _going_on(folder: Path) -> RunInfo | None:
    """A run that has not ended and is no step, which takes no other run's place; None where it is none."""
    try:
        with contextlib.closing(RunReader(folder)) as reader:
            info = reader.info()
    except (StoreError, OSError):
        return None
    return info if info.state in ("running", "paused") and not info.stepped else None


class FrontRun:
    """Follows the run in front, and those of its group that still go on."""

    def __init__(
        self, window: Window, core: Core, places: PlaceController, ask_trust: Callable[[list[str]], Any]
    ) -> None:
        """`ask_trust` is given what attempts were kept from doing until the person trusts it."""
        self._window, self._core, self._places, self._ask_trust = window, core, places, ask_trust
        self.state, self._notices = core.state, core.notices
        self.disks = DiskTrouble(core, places)
        self.status = RunStatus(core, places)
        self.history_read_at = 0.0
        """When the past of cases was read last, on the monotonic clock."""
        self.followers: dict[str, Follower] = {}
        self._going_aside: set[str] = set()
        self._beside: set[str] = set()
        """Runs that were found at work while an ended one was in front: it stays there."""
        self._opened: set[Path] = set()
        """The run that was opened last: its engine is attached to where it is at work."""
        self._whole: Path | None = None
        """The run that was opened as the newest: with all that was added to it since."""

    def meant(self, *, starting: bool) -> RunView | None:
        """The run that orders are for: the one under the cursor where runs are listed and it goes on, else the one that
        does; says so where there is none (`starting`: yet), or nobody here can give that one orders."""
        place = self._places.place
        listed = place.runs_meant() if place is not None else None
        run = self.state.find_run(listed.one) if listed is not None else None
        if listed is not None and listed.goes_on and (run is None or not run.active):
            self._notices.say("it is running elsewhere: enter attaches to it")
            return None
        if run is None or not run.active:
            run = self.state.going_on or self.state.run
        if run is None or not run.active:
            self._notices.say(
                "the run is starting: once more when it goes on" if starting else "no run goes on"
            )
            return None
        return run

    def call_later(self, callback: Any, *arguments: Any) -> bool:
        """As followers ask for it, in their threads."""
        self._core.tasks.later(callback, *arguments)
        return True

    def follow_what_runs(self, *, left_steps: bool = False) -> None:
        """Where none goes on, follow the newest run that is at work, whoever started it: a line that dropped
        or a terminal that was closed has ended no run. One in front that has ended stays there. `left_steps`:
        so are steps, which others may be at; the last line tells of them."""

        def look() -> tuple[tuple[Path, RunInfo] | None, list[Path]]:
            alive = list(filter(is_alive, islice(Store(self.state.root).run_folders(), NEWEST)))
            run = next(((folder, info) for folder in alive if (info := _going_on(folder))), None)
            return run, [*filter(is_step, alive)] if left_steps else []

        def take(both: tuple[tuple[Path, RunInfo] | None, list[Path]]) -> None:
            state = self.state
            found, steps = both
            unread = any(state.find_run(name) is None for name in self.followers)
            if found is not None and not unread and not state.going_on and not state.find_run(found[0].name):
                self.begin_with(found[0], beside=state.run is not None)
                paused = found[1].state == "paused"
                self._notices.say(
                    "a run is paused: L shows it, P goes on" if paused else "a run goes on: L shows it"
                )
            for step in steps:
                if step.name not in self.followers and not state.find_run(step.name):
                    self.go_back_to(step)

        self._core.tasks.thread(look, take, name="what runs")

    def open_newest(self) -> bool:
        """Where no run is in front, or but a step, follow one that is at work, else the newest (a step where there is
        nothing else); False where there is none."""
        newest = list(islice(Store(self.state.root).run_folders(), NEWEST))
        folder = next(filterfalse(is_step, filter(is_alive, newest)), None)
        folder = folder or next(filterfalse(is_step, newest), None)
        folder = folder or next(iter(newest), None)
        if folder is not None:
            self._whole = folder
            self.open(folder)
        return folder is not None

    def open(self, folder: Path) -> None:
        """Bring a run to the front: follow it, attach to its engine where one is at work, show it."""
        run = self.state.run
        if run is None or run.folder != folder:
            self.begin_with(folder)
        self._places.run_over()

    def bring(self) -> None:
        """Bring the run that goes on to the front, where it is beside it."""
        run = self.state.going_on
        if run is not None and run is not self.state.run:
            self.state.unread = ""
            self._to_front(run)
            self._places.post(RunChanged([], True))

    def begin_with(self, folder: Path, *, beside: bool = False) -> None:
        """Follow a run that was opened, not started, here."""
        self._opened.add(folder)
        self.follow(folder, beside=beside)

    def go_back_to(self, step: Path) -> None:
        """Follow a step that another app has left, and attach to its engine."""
        self._opened.add(step)
        self.follow(step, aside=True)

    def stop(self) -> None:
        """Follow no more."""
        for follower in self.followers.values():
            follower.stop()

    def follow(self, folder: Path, *, aside: bool = False, beside: bool = False) -> None:
        """Follow this run from now on; its first news make it `state.run`, but not where it goes on `aside`
        (one case run again, or stepped through) or was found at work `beside` one: then the run in front
        stays there."""
        for wanted, names in ((aside, self._going_aside), (beside, self._beside)):
            (names.add if wanted else names.discard)(folder.name)
        place = self._places.place
        self._core.state.begun_elsewhere = "" if place is not None and place.kind == "run" else folder.name
        self.disks.look()
        old = self.followers.pop(folder.name, None)
        if old is not None:
            old.stop()
        self.state.unread = ""
        follower = self.followers[folder.name] = Follower(self, folder)
        follower.start()

    def take_news(self) -> None:
        """Followers have news."""
        for follower in list(self.followers.values()):
            self._take(follower.take())
        self.status.begin()

    def _take(self, news: RunNews) -> None:
        if news.error:
            self._notices.problem(news.error)
            self.followers.pop(news.run_id, None)  # it reads no more
        state = self.state
        if news.error and state.find_run(news.run_id) is None:
            state.unread = news.error
            self._places.post(RunChanged([], True))
        opened, first = False, news.view is not None
        if news.view is not None:
            news.view.took_before = partial(took_before, self.state)
            if not self._stays_aside(news.view):
                self._to_front(news.view)
            if news.view.active and news.view.folder in self._opened:
                self._core.tasks.soon(self._core.engines.attach(news.view))
            opened = True
        run = state.find_run(news.run_id)
        if run is None:
            return
        before = run.active
        if news.cases:
            run.apply_cases(news.cases)
            for group in (state.group, state.aside):
                if group is not None:
                    group.renew()
            opened = True
        if news.called.items() - state.called.items():
            state.called = {**state.called, **news.called}
            self._places.post(SuitesChanged())  # lists may stand already
        changed: list[AttemptRow] = list(news.attempts.values())
        run.apply_attempts(changed)
        said = run.apply_live(news.live)
        if news.info is not None:
            run.info = news.info
            opened = True
        if not run.active:
            changed += run.stand_still()
        in_front = run is state.run
        others = state.group.active if state.group is not None and not run.active and in_front else []
        others = [other for other in others if not other.info.stepped]
        if others:
            state.run = others[-1]
            opened = True
        if opened or changed:
            self._places.post(RunChanged(changed, opened, "" if in_front else run.info.id))
        if said:
            self._places.post(LiveText(said, "" if in_front else run.info.id))
        for row in news.live:
            if row.kind == "note" and row.name == FOR_PERSON:
                self._notices.call_person(row.text)
        if not run.active and (before or first):
            self._core.tasks.soon(self._core.engines.leave(run))
            self._run_ended(run, rang=before)

    def _stays_aside(self, view: RunView) -> bool:
        """Whether a run leaves the one in front where it is; then it is put where it belongs. A part of that
        one is shown within it."""
        state = self.state
        aside = view.info.id in self._going_aside
        beside = view.info.id in self._beside
        self._going_aside.discard(view.info.id)
        self._beside.discard(view.info.id)
        group, front = state.group, state.run
        if group is None or front is None or group.find_run(view.info.id) is not None:
            return False
        stepped = view.info.stepped
        if group.find_run(view.info.linked_to) is not None:
            if not stepped and not front.active:
                return False
            group.add(view)
            return True
        if not beside and (
            not aside or (not stepped and (front.info.stepped or len(group.cases) <= len(view.cases)))
        ):
            return False  # the one in front was no more than this
        state.aside.add(view)
        return True

    def _to_front(self, view: RunView) -> None:
        """Another run is in front: with the runs it builds on, or alone."""
        state = self.state
        group = state.group
        linked = view.info.linked_to
        if group is not None and (
            group.find_run(view.info.id) is not None or group.find_run(linked) is not None
        ):
            group.add(view)
        else:
            for run in group.active if group is not None else ():
                state.aside.add(run)  # it goes on, and what it asks is not asked again unasked
            group = state.group = RunGroup([view])
            if linked or view.folder == self._whole:
                self._read_others(group, view.folder)
        state.run = view
        state.aside.drop(view.info.id)
        for name, follower in list(self.followers.items()):
            other = group.find_run(name)
            # Of what goes beside, the first news may be still to come; and nobody has to make room for a step.
            coming = name in self._going_aside or name in self._beside or view.info.stepped
            if other is None and (coming or state.aside.find_run(name) is not None):
                continue
            if other is None or (other is not view and not other.active):
                follower.stop()
                del self.followers[name]

    def take_in_added(self) -> None:
        """What another app has added to the runs in front: where one of them went on meanwhile, or it ended within the
        second, nobody followed it. A run that was opened alone stays so."""
        group = self.state.group
        if group is None or group.active or not group.runs:
            return
        if len(group.runs) > 1 or group.runs[0].folder == self._whole:
            self._read_others(group, group.runs[0].folder, since=group.runs[-1].info.id)

    def _read_others(self, group: RunGroup, folder: Path, since: str = "") -> None:
        """Read the runs that count with a run: those that it builds on, and what was added to them before it (or
        `since` the run of this id began)."""

        def take(found: list[RunView]) -> None:
            fresh = [run for run in found if group.find_run(run.info.id) is None]
            for run in fresh:
                group.add(run)
            if found and self.state.group is group:
                self._places.post(RunChanged([], True))
                for run in fresh if since else ():  # lines stand already, of what was before
                    self._places.post(RunChanged(list(run.attempts.values()), run_id=run.info.id))

        self._core.tasks.thread(
            partial(counted_with, self.state.root, folder, since), take, name="older runs"
        )

    @property
    def _shown(self) -> bool:
        place = self._places.place
        return place is not None and place.kind == "run"

    def _is_in_front(self, run: RunView) -> bool:
        group = self.state.group
        return group is not None and group.find_run(run.info.id) is not None

    def _run_ended(self, run: RunView, rang: bool) -> None:
        if rang and not self._window.app_focus:
            self._window.bell()
            self._notify_outside(run)
        if rang and run.info.state == "interrupted":
            log = state_dir(self.state.root) / "engine.log"
            # Of one that was killed the note says something else: nobody has written why.
            why = (run.info.finished_at and run.info.note) or "its engine has ended"
            how = "asks where to go on" if PLACE_LOST in run.info.provenance else "goes on"
            self._notices.problem(f"run {run.info.id} was interrupted: {why} (H, then u {how}; {log})")
        elif rang and not (self._shown and self._is_in_front(run)) and not run.info.stepped:
            self._notices.say(f"run {summary(run)}")
        bad = [row.id for row in run.attempts.values() if row.outcome == "error"]
        for row in run.attempts.values():
            if row.outcome == "error" and row.message:
                case = run.cases.get(row.case_ref)
                name = str(row.case_ref)
                if case is not None:
                    name = full_name(self.state.name_of(case.case_id, case.name), case.variant)
                self._notices.log("error", f"{name}: {row.message}")
        self.refresh_history(sorted({row.case_id for row in run.cases.values()}))
        if bad:
            work = partial(trust_wanted, run.folder, bad)
            self._core.tasks.thread(work, self._ask_trust, name="trust")

    def _notify_outside(self, run: RunView) -> None:
        """Run the person's `notify:` command; what happened is in its environment, nothing of it in the
        command itself."""
        command = self._core.settings.notify
        if not command:
            return
        environment = {
            **os.environ,
            "TUI_EVAL_RUN": run.info.id,
            "TUI_EVAL_SUMMARY": visible(summary(run), newlines=False),
        }

        def work() -> int:
            return subprocess.run(
                command,
                shell=True,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=30,
                check=False,
            ).returncode

        def ended(code: int) -> None:
            if code:
                self._notices.log("error", f"notify: {command}: exit code {code}")

        self._core.tasks.thread(
            work, ended, lambda error: self._notices.log("error", f"notify: {error}"), name="notify"
        )

    def refresh_history(
        self, case_ids: list[str] | None = None, then: Callable[[], Any] = lambda: None
    ) -> None:
        """Read anew what became of these cases in all runs (None: of every case), then do what needs to know."""
        root = self.state.root
        wanted = case_ids if case_ids is not None and len(case_ids) <= 500 else None
        self.history_read_at = time.monotonic()
        state = self.state
        rows, group = state.rows, state.group
        runs = [*(group.runs if group is not None else ()), *state.aside.runs]

        def read() -> Past:
            cases = (item.case for item in rows if item.case is not None)
            return read_past(root, wanted, cases, state.past() if wanted is None else {}, runs)

        def take(past: Past) -> None:
            self.history_read_at = time.monotonic()
            state.set_history(past.latest)
            self._put_away(past.deleted)
            self._places.post(SuitesChanged(wanted))
            then()

        self._core.tasks.thread(read, take, name="history", queue="history")

    def _put_away(self, deleted: Collection[str]) -> None:
        """What ended beside the run in front is part of the past now; a step that came to nothing is nothing, and so is
        a run that somebody deleted."""
        state, group = self.state, self.state.group
        for run in [run for run in state.aside.runs if not run.active]:
            state.aside.drop(run.info.id)
            state.put_away.append(run)
            self.followers.pop(run.info.id, None)
        gone = [run for run in group.runs if run.came_to_nothing or run.info.id in deleted] if group else ()
        for run in gone:
            assert group is not None
            group.drop(run.info.id)
            if (follower := self.followers.pop(run.info.id, None)) is not None:
                follower.stop()
            if run is state.run:
                state.run = group.runs[-1] if group.runs else None
            if not group.runs:
                state.group = None
            self._places.post(RunChanged([], True))
            # Lines of it stand already, and show what was before it from now on.
            self._places.post(SuitesChanged({row.case_id for row in run.cases.values()}))


class DiskTrouble:
    """A disk that takes no more: what becomes of a run can then not be read from it, so its engine is asked.
    Nothing is painted while nothing is new."""

    def __init__(self, core: Core, places: PlaceController) -> None:
        self._core, self._places = core, places
        self._looking = False
        self._asking: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Ask from now on, while a run goes on."""
        if not self._looking:
            self._looking = True
            self._core.tasks.every(DISK_SECONDS, self._look)

    @property
    def asks(self) -> bool:
        """Whether an engine is being asked."""
        return self._asking is not None and not self._asking.done()

    def _look(self) -> None:
        active = self._core.state.active
        if active and not self.asks:
            self._asking = asyncio.create_task(self._ask_about_disks(active))

    async def _ask_about_disks(self, runs: list[RunView]) -> None:
        engines = self._core.engines
        for run in runs:
            if run.info.id not in engines.out_of_reach and engines.of(run).connected:
                await self._ask_about_disk(run)

    async def _ask_about_disk(self, run: RunView) -> None:
        from tui_eval.engine.service.client import EngineError

        notices = self._core.notices
        with contextlib.suppress(EngineError, OSError):
            facts = await self._core.engines.of(run).state()
            trouble = str(facts.get("troubles", {}).get(run.info.id, ""))
            if trouble == run.trouble:
                return
            told, run.trouble = run.trouble, trouble
            if trouble and LEFT_OUT in trouble:
                notices.problem(f"{trouble}; the rest of the run is kept")
            elif trouble and not told:
                notices.problem(
                    f"{trouble}; the run goes on: what it finds waits in memory and is tried again. "
                    f"{'Make room there; n' if FULL in trouble else 'N'}othing finished is lost"
                )
            elif not trouble:
                notices.say("there is room again: everything the run found is kept")
            in_front = run is self._core.state.run
            self._places.post(RunChanged([], True, "" if in_front else run.info.id))


# -- The one line that says, on every screen, what runs: drawn anew about once a second while something
# does.


NAMED = 24
"""Characters of a case whose step waits."""
EVERY = 1.0
"""Seconds between two looks while a run goes on."""


class Footers(Protocol):
    """What shows the words."""

    @property
    def place(self) -> Front | None:
        """The screen in front, where it is one that the person went to."""
        ...

    def show_status(self) -> None:
        """Draw the end of every footer anew."""
        ...


class RunStatus:
    """Says how far the run in front is, and has the footers drawn anew when that changes; rests while none is at
    work, so that an idle line carries nothing."""

    def __init__(self, core: Core, footers: Footers) -> None:
        self._core, self._footers = core, footers
        self._timer: Timer | None = None
        self._told = ""

    @property
    def words(self) -> str:
        """`● 36/109 ✓31 ✗5 ~29s L`; where nothing runs, the case whose step waits; else empty. The screen of
        the run that goes on needs no words of it."""
        place, state = self._footers.place, self._core.state
        run, shown = state.going_on, place is not None and place.kind == "run"
        if run is None:
            return "" if shown else self._step_words
        if shown and run is state.run:
            return ""
        return status_words(run, self._core.symbols, time.time())

    @property
    def _step_words(self) -> str:
        """A step that waits for the person, or runs, with the key that goes back to it on its case; its own screen
        needs no word of it, but the room for its keys."""
        front = self._footers.place
        here = front.current() if front is not None and front.kind == "step" else None
        for run in reversed(self._core.state.active):
            if not run.info.stepped or (here is not None and here.run_id == run.info.id):
                continue
            for row in run.attempts.values():
                case = run.cases.get(row.case_ref)
                if case is not None and row.state != "done":
                    name = shorten(self._core.state.name_of(case.case_id, case.name), NAMED)
                    return f"step {'waits' if row.detail.startswith(WAITS) else 'runs'}: {name} b"
        return ""

    def begin(self) -> None:
        """A run has news: look from now on, until it has ended."""
        if self._timer is None and (self._core.state.going_on is not None or self.words != self._told):
            self._timer = self._core.tasks.every(EVERY, self._look)
            self._look()

    def _look(self) -> None:
        if self._core.state.going_on is None and self._timer is not None:
            self._timer.stop()
            self._timer = None
        words = self.words
        if words != self._told:
            self._told = words
            self._footers.show_status()


LOOKED_AT_EVERY = 1.0
"""Seconds between two looks at a handful of files' times; nothing is sent to the terminal for it."""
OWN = 2.0
"""Seconds after the history was read in which a change is the app's own."""


class OtherEngines:
    """Looks at the index, at the notes, and at the run in front where it has ended: they change only by what another
    process does, or by what the app knows already."""

    def __init__(self, core: Core, front_run: FrontRun, read_notes: Callable[[], None]) -> None:
        self._core, self._front, self._read_notes = core, front_run, read_notes
        index = Index(core.state.root).path
        self._index = (str(index), f"{index}-wal")
        self._notes = {*map(str, Notes(core.state.root).paths)}
        self._store = Store(core.state.root)
        self._watcher: Watcher | None = None

    def begin(self) -> None:
        """Look from now on."""
        if self._watcher is None:
            self._watcher = Watcher(self.files, self.changed, LOOKED_AT_EVERY)
            self._watcher.start()

    @property
    def looked_at(self) -> int:
        """How many files there are that it has looked at."""
        return self._watcher.count if self._watcher is not None else 0

    def stop(self) -> None:
        """Look no more."""
        if self._watcher is not None:
            self._watcher.stop()

    def files(self) -> Iterator[str]:
        """What is looked at; called in the watcher's thread."""
        yield from self._index
        yield from self._notes
        yield from map(str, self._store.places)  # a run begins
        run = self._core.state.run
        if run is not None and not run.active:
            yield str(run.folder / DATABASE)
            yield str(run.folder / f"{DATABASE}-wal")

    def changed(self, files: list[str]) -> None:
        """These changed; called in the watcher's thread."""
        if self._notes.intersection(files):
            self._core.tasks.later(self._read_notes)
            files = [file for file in files if file not in self._notes]
        if not files:
            return
        if {*files} <= {*map(str, self._store.places)}:
            newest = next(self._store.run_folders(), None)
            if newest is None or newest.name in self._front.followers:
                return  # the app's own, which it follows
            if self._core.state.find_run(newest.name) is not None:
                return
        self._core.tasks.later(self._take, files)

    def _take(self, files: list[str]) -> None:
        front, run = self._front, self._core.state.run
        if time.monotonic() - front.history_read_at < OWN:
            # It may still be another's: looked at again when the app's own news have settled.
            self._core.tasks.after(OWN, lambda: self._take(files))
            return
        if run is not None and not run.active and any(file.startswith(str(run.folder)) for file in files):
            front.follow(run.folder)
        front.refresh_history()
        front.take_in_added()
        front.follow_what_runs()
