"""The run in front: following it, attaching to its engine, its end."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tui_eval.case_names import full_name
from tui_eval.config.project import state_dir
from tui_eval.guard.text import clip, visible
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import AttemptRow
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.loaders.follower import Follower, RunNews, older_runs
from tui_eval.tui.messages import LiveText, RunChanged, SuitesChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.state.runs.run_facts import summary
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.suites_reading import SuitesReading

WANTS_TRUST = "needs trust: "
WANTS_PERSON = "sign in to "
"""How a note begins that waits for somebody (agents.nao_browser)."""


def came_to_nothing(run: RunView) -> bool:
    """Whether a run is a step that has ended without a result."""
    judged = run.counts.passed + run.counts.failed + run.counts.errors
    return bool(run.info.options.get("step")) and not run.active and not judged


class Following(SuitesReading):
    """Follows the run in front, and those of its group that still go on."""

    def follow(self, folder: Path, *, aside: bool = False) -> None:
        """Follow this run from now on; its first news make it `state.run`, but not where it goes on `aside`
        (one case run again, or stepped through): then the run in front stays there."""
        if aside:
            self._going_aside.add(folder.name)
        old = self.followers.pop(folder.name, None)
        if old is not None:
            old.stop()
        follower = self.followers[folder.name] = Follower(self, folder)
        follower.start()

    def take_news(self) -> None:
        """Followers have news."""
        for follower in list(self.followers.values()):
            self._take(follower.take())

    def _take(self, news: RunNews) -> None:
        if news.error:
            self.problem(news.error)
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
            self.tell(RunChanged(changed, opened, "" if in_front else run.info.id))
        if said:
            self.tell(LiveText(said, "" if in_front else run.info.id))
        for row in news.live:
            if row.kind == "note" and row.text.startswith(WANTS_PERSON):
                self._call_person(row.text)
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

    def _call_person(self, text: str) -> None:
        """The agent waits for the person, who may not be looking at its case."""
        if all(text != said for _, _, said in self.log_lines):
            self.log_line("note", text)
            words = f"{visible(clip(text, 400), newlines=False)} (l shows it again)"
            self.notify(words, severity="warning", timeout=60, markup=False)

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
        if view.active and view.folder == self._open_run:
            self.desk.soon(self._attach_engine(view))

    def _read_older(self, group: RunGroup, run_id: str) -> None:
        """Read the runs that a run builds on."""
        runs = Store(self.state.root).runs_folder

        def take(found: list[RunView]) -> None:
            for run in found:
                if group.find_run(run.info.id) is None:
                    group.add(run)
            if found and self.state.group is group:
                self.tell(RunChanged([], True))

        run_in_thread(self, lambda: older_runs(runs, run_id), take, name="older runs")

    async def _attach_engine(self, run: RunView) -> None:
        from tui_eval.engine.service.client import EngineClient, EngineError

        client = EngineClient(self.state.root)
        try:
            await client.attach(run.folder)
        except EngineError as error:
            self.log_line("note", str(error))
            self.out_of_reach.add(run.info.id)
            return
        self._attached[run.info.id] = client

    def _run_ended(self, run: RunView, rang: bool) -> None:
        if rang and not self.app_focus:
            self.bell()
            self._notify_outside(run)
        if rang and run.info.state == "interrupted":
            log = state_dir(self.state.root) / "engine.log"
            self.problem(
                f"run {run.info.id} was interrupted: its engine has ended (H, then u goes on; {log})"
            )
        elif rang and not isinstance(self.screen, RunScreen):
            self.say(f"run {summary(run)}")
        wanted: list[str] = []
        for row in run.attempts.values():
            if row.outcome == "error" and row.message:
                case = run.cases.get(row.case_ref)
                self.log_line(
                    "error", f"{full_name(case.name, case.variant) if case else row.case_ref}: {row.message}"
                )
                if row.message.startswith(WANTS_TRUST):
                    what, whole, _ = row.message.removeprefix(WANTS_TRUST).rpartition(" (run with")
                    wanted += [what] if whole else []
        self._refresh_history(sorted({row.case_id for row in run.cases.values()}))
        self._ask_trust(wanted)

    def _notify_outside(self, run: RunView) -> None:
        """Run the person's `notify:` command; what happened is in its environment, nothing of it in the
        command itself."""
        command = self.settings.notify
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
                self.log_line("error", f"notify: {command}: exit code {code}")

        run_in_thread(
            self, work, ended, lambda error: self.log_line("error", f"notify: {error}"), name="notify"
        )

    def _refresh_history(self, case_ids: list[str]) -> None:
        root = self.state.root
        wanted = case_ids if len(case_ids) <= 500 else None

        def read() -> dict[str, Any]:
            from tui_eval.store.index import Index

            return Index(root).latest(wanted)

        def take(latest: dict[str, Any]) -> None:
            self.state.set_history(latest)
            self._put_away()
            self.tell(SuitesChanged(wanted))

        run_in_thread(self, read, take, name="history", queue="history")

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
            self.tell(RunChanged([], True))

    def attempts_of(self, pointer: CasePointer) -> list[AttemptRow]:
        """The attempts of a case in a run of those in front; empty where it is of another."""
        run = self._run_of(pointer.run_id)
        if run is None:
            return []
        ref = run.find(pointer.case_id, pointer.agent, pointer.model)
        return run.attempts_of(ref) if ref is not None else []

    def _run_of(self, run_id: str | None) -> RunView | None:
        """The run in front, or one it is linked to."""
        front = self.state.run
        if front is not None and run_id in (None, front.info.id):
            return front
        return self.state.find_run(run_id)

    def run_folder(self, run_id: str) -> Path:
        """Where a run of this project (or the one opened) is stored."""
        run = self._run_of(run_id)
        if run is not None:
            return run.folder
        return Store(self.state.root).folder_of(run_id)

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        return self.desk.starting or bool(self.state.active)
