"""The run in front: following it, attaching to its engine, its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tui_eval.store.runs import Store
from tui_eval.store.schema import AttemptRow
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.follower import Follower
from tui_eval.tui.messages import LiveText, RunChanged, SuitesChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.run import RunScreen
from tui_eval.tui.state.run_facts import summary
from tui_eval.tui.state.run_view import RunView
from tui_eval.tui.suites_reading import SuitesReading

WANTS_TRUST = "needs trust: "


class Following(SuitesReading):
    """Follows one run and keeps `state.run`."""

    def follow(self, folder: Path) -> None:
        """Follow this run from now on; its first news make it `state.run`."""
        if self.follower is not None:
            self.follower.stop()
        self.follower = Follower(self, folder)
        self.follower.start()

    def take_news(self) -> None:
        """The follower has news."""
        if self.follower is None:
            return
        news = self.follower.take()
        if news.error:
            self.problem(news.error)
        state = self.state
        opened = False
        before = state.run.active if state.run is not None else False
        if news.view is not None:
            state.run = news.view
            opened, before = True, news.view.active
            if news.view.active and news.view.folder == self._open_run:
                self.desk.soon(self._attach_engine(news.view))
        run = state.run
        if run is None or run.folder.name != news.run_id:
            return
        if news.cases:
            run.apply_cases(news.cases)
            opened = True
        changed: list[AttemptRow] = list(news.attempts.values())
        run.apply_attempts(changed)
        said = run.apply_live(news.live)
        if news.info is not None:
            run.info = news.info
            opened = True
        if opened or changed:
            self.tell(RunChanged(changed, opened))
        if said:
            self.tell(LiveText(said))
        if (before and not run.active) or (news.view is not None and not run.active):
            self._run_ended(run, rang=before)

    async def _attach_engine(self, run: RunView) -> None:
        from tui_eval.engine.client import EngineClient, EngineError

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
        if rang and not isinstance(self.screen, RunScreen):
            self.say(f"run {summary(run)}")
        wanted: list[str] = []
        for row in run.attempts.values():
            if row.outcome == "error" and row.message:
                case = run.cases.get(row.case_ref)
                self.log_line("error", f"{case.name if case else row.case_ref}: {row.message}")
                if row.message.startswith(WANTS_TRUST):
                    wanted.append(row.message.removeprefix(WANTS_TRUST).split(" (run with")[0])
        self._refresh_history(sorted({row.case_id for row in run.cases.values()}))
        self._ask_trust(wanted)

    def _refresh_history(self, case_ids: list[str]) -> None:
        root = self.state.root
        wanted = case_ids if len(case_ids) <= 500 else None

        def read() -> dict[str, Any]:
            from tui_eval.store.index import Index

            return Index(root).latest(wanted)

        def take(latest: dict[str, Any]) -> None:
            self.state.set_history(latest)
            self.tell(SuitesChanged())

        run_in_thread(self, read, take, name="history")

    def attempts_of(self, pointer: CasePointer) -> list[AttemptRow]:
        """The attempts of a case in the run in front; empty where it is not of that run."""
        run = self.state.run
        if run is None or pointer.run_id not in (None, run.info.id):
            return []
        ref = run.find(pointer.case_id, pointer.agent, pointer.model)
        return run.attempts_of(ref) if ref is not None else []

    def run_folder(self, run_id: str) -> Path:
        """Where a run of this project (or the one opened) is stored."""
        run = self.state.run
        if run is not None and run.info.id == run_id:
            return run.folder
        return Store(self.state.root).runs_folder / run_id

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        return self.desk.starting or (self.state.run is not None and self.state.run.active)
