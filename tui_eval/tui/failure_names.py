"""The judge names how the attempts of a run failed: how far it is, whatever screen is in front."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tui_eval.tui.state.text.lines import one_line

if TYPE_CHECKING:
    from tui_eval.tui.app import EvalApp

LOOK = 0.15
"""Seconds between two looks at how far the judge is."""


@runtime_checkable
class ShowsNaming(Protocol):
    """A screen that says how far the judge is."""

    def naming_changed(self, run_id: str = "") -> None:
        """Show how far it is; with a run, that its failures have other names now."""
        ...


class FailureNamesQuestion:
    """One run's failures at a time are named; the engine does it, and goes on when a screen is left."""

    def __init__(self, app: EvalApp) -> None:
        self._app = app
        self.run_id = ""
        """The run whose failures are being named."""
        self.words = ""
        """How far the judge is."""

    def stop(self) -> None:
        """Have the judge stop."""
        self._app.desk.soon(self._app.engine.naming(self.run_id, cancel=True))

    async def begin(self, folder: Path) -> None:
        """Say what it costs and ask, then begin; nothing is asked where it is free."""
        app = self._app
        plan: dict[str, Any] = await app.engine.plan_naming(folder, app.state.trusted, app.state.agreed)
        total = int(plan["questions"])
        if plan["free"]:
            app.desk.soon(self._have_named(folder, total))
            return
        price = plan["cost"]
        costs = "what it costs is not known" if price is None else f"about ${price:.4f}"
        questions = f"{total} question{'s' * (total != 1)}"

        def answer(value: str | None) -> None:
            if value == "name":
                app.desk.soon(self._have_named(folder, total))

        app.ask(
            "Have the judge name how the attempts failed?",
            [("y", "name", "ask the judge"), ("n", "no", "no")],
            answer,
            [f"{one_line(plan['judge'], 50)}: {questions}, {costs}"],
        )

    async def _have_named(self, folder: Path, total: int) -> None:
        app, run_id = self._app, folder.name
        if self.run_id:
            return
        self.run_id = run_id
        self._say_how_far(0, total)
        try:
            await app.engine.name_failures(folder, total, app.state.trusted, app.state.agreed)
            while not (facts := await app.engine.naming(run_id))["ended"]:
                self._say_how_far(facts["done"], total)
                await asyncio.sleep(LOOK)
        finally:
            self.run_id = self.words = ""
            self._tell(run_id)
        if facts["error"]:
            app.problem(f"failures of run {run_id} were not named: {facts['error']}")
        else:
            app.say("the judge has named how the attempts failed")

    def _say_how_far(self, done: int, total: int) -> None:
        words = f"the judge names failures {done}/{total}, n stops"
        if words != self.words:
            self.words = words
            self._tell()

    def _tell(self, run_id: str = "") -> None:
        for screen in self._app.screen_stack:
            if isinstance(screen, ShowsNaming):
                screen.naming_changed(run_id)
