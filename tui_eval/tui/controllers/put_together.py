"""The controllers, each made of what it needs, and the one table of what keys do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from tui_eval.tui.controllers.accept_answer import AcceptController
from tui_eval.tui.controllers.appearance import Appearance
from tui_eval.tui.controllers.comparing import CompareController
from tui_eval.tui.controllers.editing import EditController
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.controllers.human_notes import NoteController
from tui_eval.tui.controllers.mouse import MouseController
from tui_eval.tui.controllers.other_engines import OtherEngines
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.quit import QuitController
from tui_eval.tui.controllers.recorded import RecordedController
from tui_eval.tui.controllers.runs import RunController
from tui_eval.tui.controllers.save_conversation import SaveController
from tui_eval.tui.controllers.saved_elsewhere import SavedElsewhere
from tui_eval.tui.controllers.step_case import StepController
from tui_eval.tui.controllers.suites import SuiteController
from tui_eval.tui.controllers.tour import TourController
from tui_eval.tui.controllers.watch import WatchController
from tui_eval.tui.handlers import Handlers
from tui_eval.tui.keys import KEYS
from tui_eval.tui.keys_case import CASE_KEYS, QUERY_KEYS
from tui_eval.tui.keys_runs import RUN_PLACES
from tui_eval.tui.services import AppServices, Core


class Controllers:
    """All of an app's, with the services that its screens are given."""

    def __init__(
        self,
        app: App[Any],
        core: Core,
        paths: Sequence[Path],
        appearance: Appearance,
        untouched: Callable[[], bool],
    ) -> None:
        """`paths`: where suites are looked for; `untouched`: whether no key has been pressed yet."""
        self._app, self._core, self._appearance = app, core, appearance
        keys = (*KEYS, *CASE_KEYS, *QUERY_KEYS, *RUN_PLACES)
        self.handlers = Handlers(app, keys, lambda: core.notices.say("not here"))
        self.places = places = PlaceController(app, core)
        self.suites = SuiteController(core, places, paths)
        self.front_run = FrontRun(app, core, places, self.suites)
        self.other_engines = OtherEngines(core, self.front_run)
        self.runs = RunController(core, places, self.suites, self.front_run)
        recorded = RecordedController(core, places, self.runs)
        self.watching = WatchController(core, places, self.suites, self.runs, recorded)
        self.services = services = AppServices(
            **vars(core),
            ask=places.ask,
            places=places,
            suites=self.suites,
            runs=self.runs,
            notes=NoteController(core, places, recorded),
            do=self.handlers.do,
            take_settings=self._take_settings,
            status=self._status,
        )
        self.saved = SavedElsewhere(core, self.suites)
        self.saved.others = self.watching.followed
        editing = EditController(services, self.saved)
        saving = SaveController(services, recorded, self.saved, lambda *line: places.suites.bring(*line))
        self.suites.on_read.append(saving.read)
        self.mouse = MouseController(app, core)
        tour = TourController(core, places, untouched)
        self.suites.on_read.append(tour.read)
        self.suites.on_answered.append(tour.answered)
        self.quit = QuitController(app, core, places, self.runs, self._remember)
        for controller in (
            places,
            self.runs,
            recorded,
            self.watching,
            editing,
            saving,
            CompareController(services),
            AcceptController(services, recorded, self.saved, editing.edit_case),
            StepController(core, places, self.runs, self.front_run),
            self.mouse,
            tour,
            self.quit,
        ):
            self.handlers.add(controller.handlers())

    def _take_settings(self) -> None:
        """The settings file has changed."""
        self._appearance.take_settings()
        self.mouse.take_settings()

    def _status(self) -> str:
        """The end of every footer: what runs, unless the screen is about that, and what is watched."""
        place = self.places.place
        running = "" if place is not None and place.kind == "run" else self.front_run.status.words
        return "  ".join(words for words in (self.watching.words, running) if words)

    def _remember(self) -> None:
        """How things are looked at, for the next time."""
        self._core.memory.keep({"theme": self._app.theme, **self.suites.remembered()})
