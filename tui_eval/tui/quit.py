"""Leaving: close, quit, detach, signals, crashes."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from threading import Event
from typing import Any

from rich.text import Text
from textual.app import App
from textual.screen import ModalScreen, Screen

from tui_eval.guard.crash_report import crash_line
from tui_eval.tui.following import Following
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.terminal import clipboard


class Leaving(Following):
    """`q Q ctrl+c ctrl+q ctrl+z`, SIGTERM, SIGHUP."""

    def action_close_or_quit(self) -> None:
        """Close a place; on the suites and the live run, quit (and ask while a run goes on)."""
        screen = self.screen
        if isinstance(screen, RunScreen):
            if self.running:
                self._ask_quit()
            else:
                self.pop_screen()
        elif isinstance(screen, SuitesScreen):
            self._ask_quit() if self.running else self._quit()
        elif isinstance(screen, ModalScreen):
            screen.dismiss(None)
        else:
            self.pop_screen()

    async def action_quit(self) -> None:
        """ctrl+q and the palette's quit."""
        self._ask_quit() if self.running else self._quit()

    def _ask_quit(self) -> None:
        def answer(value: str | None) -> None:
            if value == "detach":
                self.action_detach()
            elif value == "stop":
                self.desk.soon(self._stop_and_quit())

        answers = [
            ("d", "detach", "detach: leave, the run goes on"),
            ("s", "stop", "stop it and leave"),
            ("esc", "stay", "stay"),
        ]
        run = self.state.run
        if run is not None and run.info.id in self.out_of_reach:
            del answers[1]
        self.ask("A run goes on.", answers, answer)

    async def _stop_and_quit(self) -> None:
        try:
            for run in self.state.active:
                if run.info.id not in self.out_of_reach:
                    await asyncio.wait_for(self.engine_of(run).cancel(run.info.id), 5)
        finally:
            self._quit()

    def action_detach(self) -> None:
        """Leave at once; a run goes on."""
        run = self.state.run
        if run is not None and run.active:
            self._quit(f"run {run.info.id} goes on; `tui-eval attach` comes back to it")
        else:
            self._quit()

    def _quit(self, message: str = "") -> None:
        self._remember()
        self.exit(0, message=Text(message) if message else None)

    def action_copy_or_quit(self) -> None:
        """Copy what is selected, else ask to quit."""
        selected = self.screen.get_selected_text()
        if selected:
            self.say(clipboard.copied(self, selected, "selection"))
        elif self.running:
            self._ask_quit()
        else:
            self.ask(
                "Quit?",
                [("y", "quit", "quit"), ("n", "stay", "stay")],
                lambda v: self._quit() if v == "quit" else None,
            )

    def action_suspend_process(self) -> None:
        """To the shell, where there is one that can bring us back."""
        if os.getpgrp() == os.getsid(0):
            self.say("there is no shell behind the app to go to; Q leaves, runs go on")
        else:
            super().action_suspend_process()

    def _leave_by_signal(self, code: int) -> None:
        self._remember()
        self.exit(return_code=code)

    def _handle_exception(self, error: Exception) -> None:
        """What a handler or a painter raises is reported, and the app lives; one that cannot begin, or whose
        errors follow each other without end, is left with a report."""
        if self.begun and len(self._screen_stack) > 1 and not self.screen.children:
            self.call_later(self._leave_unopened, self.screen)
        if not self.begun or not self.faults.survive(error):
            super()._handle_exception(error)
        elif self.is_headless and self._exception is None:
            # Tests are to fail of it.
            self._exception = error
            self._exception_event.set()

    async def _leave_unopened(self, screen: Screen[Any]) -> None:
        """A screen that could not be made shows nothing, not even what went wrong."""
        if self.screen is screen and not screen.children:
            await self.pop_screen()

    def _fatal_error(self) -> None:
        """Textual's own prints the values of variables; ours is a line that says what, and where the rest is."""
        if self.crash is None:  # what goes wrong in taking things down is not what happened
            self.crash = sys.exc_info()[1] or self._exception or RuntimeError("unknown")
            goes_on = "\nThe run goes on; `tui-eval attach` comes back to it." if self.running else ""
            self._exit_renderables.append(Text(f"tui-eval: {crash_line(self.crash)}{goes_on}"))
        self._close_messages_no_wait()

    async def on_unmount(self) -> None:
        """Leave the engine to itself."""
        for follower in self.followers.values():
            follower.stop()
        for client in [self._engine, *self._attached.values()]:
            if client is not None:
                with suppress(Exception):
                    await client.close()


def stop_reading(app: App[Any]) -> None:
    """End Textual's thread that reads keys, once the app has ended.

    Where the terminal went away meanwhile, Textual 8.2.8 may leave it reading nothing, over and over, and the
    process stays for it.
    """
    ended = getattr(app._driver, "exit_event", None)
    if isinstance(ended, Event):
        ended.set()
