"""The run in front: following it, attaching to its engine, its end, and a disk that takes no more of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from textual.app import App
from textual.timer import Timer

from tui_eval.case_names import full_name
from tui_eval.config.project import state_dir
from tui_eval.guard.text import visible
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, is_alive
from tui_eval.store.schema import FOR_PERSON, AttemptRow
from tui_eval.store.write_thread import FULL, LEFT_OUT
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.suites import SuiteController
from tui_eval.tui.loaders.follower import Follower, RunNews, older_runs, trust_wanted
from tui_eval.tui.messages import LiveText, RunChanged, SuitesChanged
from tui_eval.tui.services import Core
from tui_eval.tui.state.runs.run_facts import status_words, summary
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView

LOOKED_AT = 20
"""Newest runs among which one that is at work is looked for."""
DISK_SECONDS = 2.0
"""Between two questions to an engine whether the disk takes its run."""


def came_to_nothing(run: RunView) -> bool:
    """Whether a run is a step that has ended without a result."""
    judged = run.counts.passed + run.counts.failed + run.counts.errors
    return bool(run.info.options.get("step")) and not run.active and not judged


def _goes_on(folder: Path) -> bool:
    """Whether a run has not ended and is no step, which takes no other run's place."""
    try:
        with contextlib.closing(RunReader(folder)) as reader:
            info = reader.info()
    except (StoreError, OSError):
        return False
    return info.state in ("running", "paused") and not info.options.get("step")


class FrontRun:
    """Follows the run in front, and those of its group that still go on."""

    def __init__(self, app: App[Any], core: Core, places: PlaceController, suites: SuiteController) -> None:
        self._app, self._core, self._places, self._suites = app, core, places, suites
        self.state, self._notices = core.state, core.notices
        self._disks = DiskTrouble(core, places)
        self.status = RunStatus(core, places)
        self.history_read_at = 0.0
        """When the past of cases was read last, on the monotonic clock."""
        self.followers: dict[str, Follower] = {}
        self._going_aside: set[str] = set()
        self._opened: Path | None = None
        """The run that was opened last: its engine is attached to where it is at work."""

    def call_later(self, callback: Any, *arguments: Any) -> bool:
        """As followers ask for it, in their threads."""
        self._core.tasks.later(callback, *arguments)
        return True

    def follow_what_runs(self) -> None:
        """Where no run is in front, follow the newest that is at work, whoever started it: a line that dropped or
        a terminal that was closed has ended no run."""

        def look() -> Path | None:
            newest = islice(Store(self.state.root).run_folders(), LOOKED_AT)
            return next((folder for folder in newest if is_alive(folder) and _goes_on(folder)), None)

        def take(folder: Path | None) -> None:
            if folder is not None and self.state.run is None and not self.followers:
                self.begin_with(folder)
                self._notices.say("a run goes on: L shows it")

        self._core.tasks.thread(look, take, name="what runs")

    def open_newest(self) -> bool:
        """Where no run is in front, follow one that is at work, else the newest; False where there is none."""
        newest = list(islice(Store(self.state.root).run_folders(), LOOKED_AT))
        folder = next(filter(is_alive, newest), None) or next(iter(newest), None)
        if folder is not None:
            self.open(folder)
        return folder is not None

    def open(self, folder: Path) -> None:
        """Bring a run to the front: follow it, attach to its engine where one is at work, show it."""
        run = self.state.run
        if run is None or run.folder != folder:
            self.begin_with(folder)
        self._places.run_over()

    def begin_with(self, folder: Path) -> None:
        """Follow a run that was opened, not started, here."""
        self._opened = folder
        self.follow(folder)

    def stop(self) -> None:
        """Follow no more."""
        for follower in self.followers.values():
            follower.stop()

    def follow(self, folder: Path, *, aside: bool = False) -> None:
        """Follow this run from now on; its first news make it `state.run`, but not where it goes on `aside`
        (one case run again, or stepped through): then the run in front stays there."""
        if aside:
            self._going_aside.add(folder.name)
        self._disks.look()
        old = self.followers.pop(folder.name, None)
        if old is not None:
            old.stop()
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
        state = self.state
        opened, first = False, news.view is not None
        if news.view is not None:
            if not self._stays_aside(news.view):
                self._to_front(news.view)
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
        others = [other for other in others if not other.info.options.get("step")]
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
            self._run_ended(run, rang=before)

    def _stays_aside(self, view: RunView) -> bool:
        """Whether a run leaves the one in front where it is; then it is put where it belongs. A part of that
        one is shown within it."""
        state = self.state
        aside = view.info.id in self._going_aside
        self._going_aside.discard(view.info.id)
        group, front = state.group, state.run
        if group is None or front is None or group.find_run(view.info.id) is not None:
            return False
        stepped = bool(view.info.options.get("step"))
        if group.find_run(view.info.linked_to) is not None:
            if not stepped and not front.active:
                return False
            group.add(view)
            return True
        if not aside or (
            not stepped and (front.info.options.get("step") or len(group.cases) <= len(view.cases))
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
            group = state.group = RunGroup([view])
            if linked:
                self._read_older(group, linked)
        state.run = view
        for name, follower in list(self.followers.items()):
            other = group.find_run(name)
            if other is None and state.aside.find_run(name) is not None:
                continue
            if other is None or (other is not view and not other.active):
                follower.stop()
                del self.followers[name]
        if view.active and view.folder == self._opened:
            self._core.tasks.soon(self._core.engines.attach(view))

    def _read_older(self, group: RunGroup, run_id: str) -> None:
        """Read the runs that a run builds on."""
        runs = Store(self.state.root).runs_folder

        def take(found: list[RunView]) -> None:
            for run in found:
                if group.find_run(run.info.id) is None:
                    group.add(run)
            if found and self.state.group is group:
                self._places.post(RunChanged([], True))

        self._core.tasks.thread(lambda: older_runs(runs, run_id), take, name="older runs")

    @property
    def _shown(self) -> bool:
        place = self._places.place
        return place is not None and place.kind == "run"

    def _run_ended(self, run: RunView, rang: bool) -> None:
        if rang and not self._app.app_focus:
            self._app.bell()
            self._notify_outside(run)
        if rang and run.info.state == "interrupted":
            log = state_dir(self.state.root) / "engine.log"
            self._notices.problem(
                f"run {run.info.id} was interrupted: its engine has ended (H, then u goes on; {log})"
            )
        elif rang and not self._shown and not run.info.options.get("step"):
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
            run_in_thread(
                self._app, partial(trust_wanted, run.folder, bad), self._suites.ask_trust, name="trust"
            )

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

    def refresh_history(self, case_ids: list[str] | None = None) -> None:
        """Read anew what became of these cases in all runs; None: of every case."""
        root = self.state.root
        wanted = case_ids if case_ids is not None and len(case_ids) <= 500 else None
        self.history_read_at = time.monotonic()

        def read() -> dict[str, Any]:
            from tui_eval.store.index import Index

            return Index(root).latest(wanted)

        def take(latest: dict[str, Any]) -> None:
            self.history_read_at = time.monotonic()
            self.state.set_history(latest)
            self._put_away()
            self._places.post(SuitesChanged(wanted))

        self._core.tasks.thread(read, take, name="history", queue="history")

    def _put_away(self) -> None:
        """What ended beside the run in front is part of the past now; a step that came to nothing is nothing."""
        state, group = self.state, self.state.group
        for run in [run for run in state.aside.runs if not run.active]:
            state.aside.drop(run.info.id)
            self.followers.pop(run.info.id, None)
        for run in [run for run in group.runs if came_to_nothing(run)] if group is not None else ():
            assert group is not None
            group.drop(run.info.id)
            self.followers.pop(run.info.id, None)
            if run is state.run:
                state.run = group.runs[-1] if group.runs else None
            if not group.runs:
                state.group = None
            self._places.post(RunChanged([], True))


class DiskTrouble:
    """A disk that takes no more: what becomes of a run can then not be read from it, so its engine is asked.
    Nothing is painted while there is nothing to tell."""

    def __init__(self, core: Core, places: PlaceController) -> None:
        self._core, self._places = core, places
        self._looking = False
        self._asking: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Ask from now on, while a run goes on."""
        if not self._looking:
            self._looking = True
            self._core.tasks.every(DISK_SECONDS, self._look)

    def _look(self) -> None:
        active = self._core.state.active
        if active and (self._asking is None or self._asking.done()):
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


EVERY = 1.0
"""Seconds between two looks while a run goes on."""


class Footers(Protocol):
    """What shows the words."""

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
        """`● 36/109 ✓31 ✗5 ~29s L`; empty where nothing runs."""
        run = self._core.state.run
        return status_words(run, self._core.symbols, time.time()) if run is not None else ""

    def begin(self) -> None:
        """A run has news: look from now on, until it has ended."""
        if self._timer is None and self._active:
            self._timer = self._core.tasks.every(EVERY, self._look)
            self._look()

    @property
    def _active(self) -> bool:
        run = self._core.state.run
        return run is not None and run.active

    def _look(self) -> None:
        if not self._active and self._timer is not None:
            self._timer.stop()
            self._timer = None
        words = self.words
        if words != self._told:
            self._told = words
            self._footers.show_status()
