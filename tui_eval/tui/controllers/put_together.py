"""The controllers, each made of what it needs, and the one table of what keys do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tui_eval.tui.controllers.appearance import Appearance, MouseController
from tui_eval.tui.controllers.comparing import CompareController
from tui_eval.tui.controllers.editing import EditController, SavedElsewhere
from tui_eval.tui.controllers.first_steps import ShardsToCome, TourController
from tui_eval.tui.controllers.front_run import FrontRun, OtherEngines
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.quit import QuitController
from tui_eval.tui.controllers.recorded import AcceptController, NoteController, RecordedController
from tui_eval.tui.controllers.runs import RunController
from tui_eval.tui.controllers.save_conversation import SaveController
from tui_eval.tui.controllers.step_by_step import StepController
from tui_eval.tui.controllers.suites import SuiteController
from tui_eval.tui.controllers.watch import WatchController
from tui_eval.tui.handlers import Handlers
from tui_eval.tui.keys import ALL_KEYS
from tui_eval.tui.services import AppServices, Core, Window

RUNNING = (
    "run.all",
    "run.dialog",
    "case.rerun",
    "case.once_more",
    "run.failed",
    "case.step",
    "case.judge_again",
)
"""Keys that let a project do what it wants: a question of trust that was put off is asked before."""
OF_ALL = ("run.all", "run.dialog")
"""Those of them that mean all that is shown, whatever line the cursor is on."""


class Controllers:
    """All of an app's, with the services that its screens are given."""

    def __init__(
        self,
        window: Window,
        core: Core,
        paths: Sequence[Path],
        appearance: Appearance,
        untouched: Callable[[], bool],
    ) -> None:
        """`paths`: where suites are looked for; `untouched`: whether no key has been pressed yet."""
        self._window, self._core, self._appearance = window, core, appearance
        self.handlers = Handlers(window, ALL_KEYS, lambda: core.notices.say("not here"))
        self.places = places = PlaceController(window, core)
        self.suites = SuiteController(core, places, paths)
        self.front_run = FrontRun(window, core, places, self.suites.ask_trust)
        self.runs = RunController(core, places, self.suites, self.front_run)
        recorded = RecordedController(core, places, self.runs)
        notes = NoteController(core, places, recorded)
        self.other_engines = OtherEngines(core, self.front_run, notes.read_again)
        self.watching = WatchController(core, places, self.suites, self.runs, recorded, self.front_run)
        self.services = services = AppServices(
            **vars(core),
            ask=places.ask,
            places=places,
            suites=self.suites,
            runs=self.runs,
            notes=notes,
            do=self.handlers.do,
            take_settings=self._take_settings,
            status=self._status,
        )
        self.saved = SavedElsewhere(core, self.suites)
        self.suites.on_read.append(self.saved.begin)
        self.saved.others = self.watching.followed
        editing = EditController(services, self.saved)
        saving = SaveController(services, recorded, self.saved, lambda *line: places.suites.bring(*line))
        self.suites.on_read.append(saving.read)
        self.mouse = MouseController(window, core)
        tour = TourController(core, places, untouched)
        self.suites.on_read.append(tour.read)
        self.suites.on_answered.append(tour.answered)
        self.shards = ShardsToCome(core, places, self.front_run, paths)
        self.suites.on_read.append(self.shards.read)
        self.quit = QuitController(window, core, places, self.runs, self._remember)
        for controller in (
            places,
            self.runs,
            StepController(core, places, self.suites, self.front_run, self.runs),
            recorded,
            self.watching,
            editing,
            saving,
            CompareController(services),
            AcceptController(services, recorded, self.saved, editing.edit_case),
            self.mouse,
            tour,
            self.quit,
        ):
            handlers = controller.handlers()
            running = {
                name: self.suites.before_running(
                    handlers[name],
                    of_list=True,
                    at_cursor=name not in OF_ALL,
                    of_row=name not in (*OF_ALL, "run.failed"),
                    of_case=name == "case.step",
                )
                for name in RUNNING
                if name in handlers
            }
            self.handlers.add({**handlers, **running})

    def _take_settings(self) -> None:
        """The settings file has changed."""
        self._appearance.take_settings()
        self.mouse.take_settings()

    def _status(self) -> str:
        """The end of every footer: what runs, and what is watched."""
        return "  ".join(words for words in (self.watching.words, self.front_run.status.words) if words)

    def _remember(self) -> None:
        """How things are looked at, for the next time."""
        self._core.memory.keep({**self._appearance.remembered(), **self.suites.remembered()})
