"""`n` in Runs: the judge names how the attempts of a run failed, in the engine, with progress; `n` again stops."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from tui_eval.tui.screens.place import Place
from tui_eval.tui.state.lines import one_line
from tui_eval.tui.state.runs_view import RunLine

LOOK = 0.15
"""Seconds between two looks at how far the judge is."""


class RunNaming(Place, inherit_bindings=False):
    """The one derived knows the run under the cursor and shows what came of it (`named`)."""

    def __init__(self) -> None:
        super().__init__()
        self.naming = ""
        """The run whose failures are being named."""
        self.naming_words = ""

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        raise NotImplementedError

    def folder_of(self, run_id: str) -> Path:
        """Where a run is kept."""
        raise NotImplementedError

    def naming_changed(self, run_id: str = "") -> None:
        """Show how far it is; with a run, that its failures have other names now."""
        raise NotImplementedError

    def action_name_failures(self) -> None:
        """Say what it costs and ask, then begin; stop where it goes on."""
        one, desk = self.chosen, self.eval_app.desk
        if self.naming:
            desk.soon(self.eval_app.engine.naming(self.naming, cancel=True))
        elif one is not None and one.active:
            self.eval_app.say("its failures can be named when it has ended")
        elif one is not None:
            desk.soon(self._plan_naming(one.run.id), opens=True)

    async def _plan_naming(self, run_id: str) -> None:
        app = self.eval_app
        plan: dict[str, Any] = await app.engine.plan_naming(self.folder_of(run_id), app.state.trusted)
        total = int(plan["questions"])
        if plan["free"]:
            app.desk.soon(self._have_named(run_id, total))
            return
        price = plan["cost"]
        costs = "what it costs is not known" if price is None else f"about ${price:.4f}"
        questions = f"{total} question{'s' * (total != 1)}"

        def answer(value: str | None) -> None:
            if value == "name":
                app.desk.soon(self._have_named(run_id, total))

        app.ask(
            "Have the judge name how the attempts failed?",
            [("y", "name", "ask the judge"), ("n", "no", "no")],
            answer,
            [f"{one_line(plan['judge'], 50)}: {questions}, {costs}"],
        )

    async def _have_named(self, run_id: str, total: int) -> None:
        app = self.eval_app
        if self.naming:
            return
        self.naming = run_id
        self._say_how_far(0, total)
        changed = partial(self.naming_changed, run_id)
        try:
            await app.engine.name_failures(self.folder_of(run_id), total, app.state.trusted)
            while not (facts := await app.engine.naming(run_id))["ended"]:
                self._say_how_far(facts["done"], total)
                await asyncio.sleep(LOOK)
        finally:
            self.naming = self.naming_words = ""
            changed()
        if facts["error"]:
            app.problem(f"failures of run {run_id} were not named: {facts['error']}")
        else:
            app.say("the judge has named how the attempts failed")

    def _say_how_far(self, done: int, total: int) -> None:
        self.naming_words = f"the judge names failures {done}/{total}, n stops"
        self.naming_changed()
