"""Leaving: close, quit, detach, to the shell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from rich.text import Text

from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.runs import RunController
from tui_eval.tui.front import Question
from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import Core, Window
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.terminal import clipboard


class QuitController:
    """`q Q ctrl+c ctrl+q ctrl+z`. `remember` keeps how things are looked at."""

    def __init__(
        self,
        window: Window,
        core: Core,
        places: PlaceController,
        runs: RunController,
        remember: Callable[[], Any],
    ) -> None:
        self._window, self._core, self._places, self._runs = window, core, places, runs
        self._remember = remember

    def handlers(self) -> dict[str, Handler]:
        """What its keys do."""
        return {
            "quit": self.close_or_quit,
            "detach": self.detach,
            "copy_or_quit": self.copy_or_quit,
            "suspend": self.suspend,
        }

    def close_or_quit(self) -> None:
        """Close a place; on the suites and the live run, quit (and ask while a run goes on)."""
        screen, place = self._places.front, self._places.place
        kind = place.kind if place is not None else ""
        if kind == "suites":
            self.quit()
        elif kind == "run" and self._runs.running:
            self._ask_quit()
        elif screen.is_modal:
            screen.dismiss(None)
        else:
            self._places.pop()

    def quit(self) -> None:
        """Quit; asks while a run goes on."""
        if self._runs.running:
            self._ask_quit()
        else:
            self._leave()

    def _ask_quit(self) -> None:
        def answer(value: str | None) -> None:
            if value == "detach":
                self.detach()
            elif value == "stop":
                self._core.tasks.soon(self._stop_and_quit())

        def asked() -> Question:
            stay = ("esc", "stay", "stay")
            if not self._runs.running:
                return Question("The run has ended.", [("d", "detach", "leave"), stay])
            run = self._goes_on()
            paused = run is not None and run.paused and not self._runs.starting
            answers = [
                ("d", "detach", f"detach: leave, the run {'stays paused' if paused else 'goes on'}"),
                ("s", "stop", "stop it and leave"),
                stay,
            ]
            if run is not None and run.info.id in self._core.engines.out_of_reach:
                del answers[1]
            return Question("A run is paused." if paused else "A run goes on.", answers)

        first = asked()
        self._places.ask(first.question, first.answers, answer, renewed=asked)

    async def _stop_and_quit(self) -> None:
        engines = self._core.engines
        try:
            for run in self._core.state.outlasting:
                if run.info.id not in engines.out_of_reach:
                    await asyncio.wait_for(engines.of(run).cancel(run.info.id), 5)
        finally:
            self._leave()

    def detach(self) -> None:
        """Leave at once; a run goes on, one that is paused stays so."""
        run = self._goes_on()
        if run is not None and run.paused:
            self._leave(f"run {run.info.id} is paused; `tui-eval` comes back to it, P there goes on")
        elif run is not None:
            self._leave(f"run {run.info.id} goes on; `tui-eval attach` comes back to it")
        else:
            self._leave()

    def _goes_on(self) -> RunView | None:
        """The run that goes on: the one in front, else the last of those beside it; a paused one where all are."""
        runs = self._core.state.outlasting
        runs = [run for run in runs if not run.paused] or runs
        front = self._core.state.run
        return front if front in runs else next(reversed(runs), None)

    def _leave(self, message: str = "") -> None:
        self._remember()
        self._window.exit(0, message=Text(message) if message else None)

    def copy_or_quit(self) -> None:
        """Copy what is selected, else ask to quit."""
        selected = self._places.front.get_selected_text()
        if selected:
            self._core.notices.say(clipboard.copied(self._window, selected, "selection"))
        elif self._runs.running:
            self._ask_quit()
        else:
            self._places.ask(
                "Quit?",
                [("y", "quit", "quit"), ("n", "stay", "stay")],
                lambda value: self._leave() if value == "quit" else None,
            )

    def suspend(self) -> None:
        """To the shell, where there is one that can bring us back."""
        if os.getpgrp() == os.getsid(0):
            self._core.notices.say("there is no shell behind the app to go to; Q leaves, runs go on")
        else:
            self._window.action_suspend_process()

    def leave_by_signal(self, code: int) -> None:
        """SIGTERM and SIGHUP."""
        self._remember()
        self._window.exit(return_code=code)
