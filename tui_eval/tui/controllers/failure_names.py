"""The judge names how the attempts of a run failed: how far it is, whatever screen is in front."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tui_eval.guard.figures import usd
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.services import Core, Suites
from tui_eval.tui.state import run_requests
from tui_eval.tui.state.text.lines import one_line

LOOK = 0.15
"""Seconds between two looks at how far the judge is."""


@runtime_checkable
class ShowsNaming(Protocol):
    """A screen that says how far the judge is."""

    def naming_changed(self, run_id: str = "") -> None:
        """Show how far it is; with a run, that its failures have other names now."""
        ...


class FailureNames:
    """One run's failures at a time are named; the engine does it, and goes on when a screen is left."""

    def __init__(self, core: Core, places: PlaceController, suites: Suites) -> None:
        self._core, self._places, self._suites = core, places, suites
        self.run_id = ""
        """The run whose failures are being named."""
        self.words = ""
        """How far the judge is."""

    def stop(self) -> None:
        """Have the judge stop."""
        self._core.tasks.soon(self._core.engines.own.naming(self.run_id, cancel=True))

    async def begin(self, folder: Path) -> None:
        """Ask what the judge wants, which no suite need have, say what it costs and ask, then begin; nothing is asked
        where it is free."""

        def go() -> None:
            self._core.tasks.soon(self._ask(folder), opens=True)

        self._suites.trusted_first(run_requests.failures_named(), go)

    async def _ask(self, folder: Path) -> None:
        state, engine = self._core.state, self._core.engines.own
        plan: dict[str, Any] = await engine.plan_naming(folder, state.trusted, state.agreed)
        total = int(plan["questions"])
        if plan["free"]:
            self._core.tasks.soon(self._have_named(folder, total))
            return
        price = plan["cost"]
        costs = "what it costs is not known" if price is None else f"about {usd(price)}"
        questions = f"{total} question{'s' * (total != 1)}"

        def answer(value: str | None) -> None:
            if value == "name":
                self._core.tasks.soon(self._have_named(folder, total))

        self._places.ask(
            "Have the judge name how the attempts failed?",
            [("y", "name", "ask the judge"), ("n", "no", "no")],
            answer,
            [f"{one_line(plan['judge'], 50)}: {questions}, {costs}"],
        )

    async def _have_named(self, folder: Path, total: int) -> None:
        state, engine, run_id = self._core.state, self._core.engines.own, folder.name
        if self.run_id:
            return
        self.run_id = run_id
        self._say_how_far(0, total)
        try:
            await engine.name_failures(folder, total, state.trusted, state.agreed)
            while not (facts := await engine.naming(run_id))["ended"]:
                self._say_how_far(facts["done"], total)
                await asyncio.sleep(LOOK)
        finally:
            self.run_id = self.words = ""
            self._tell(run_id)
        if facts["error"]:
            self._core.notices.problem(f"failures of run {run_id} were not named: {facts['error']}")
        else:
            self._core.notices.say("the judge has named how the attempts failed")

    def _say_how_far(self, done: int, total: int) -> None:
        words = f"the judge names failures {done}/{total}, n stops"
        if words != self.words:
            self.words = words
            self._tell()

    def _tell(self, run_id: str = "") -> None:
        for screen in self._places.stack:
            if isinstance(screen, ShowsNaming):
                screen.naming_changed(run_id)
