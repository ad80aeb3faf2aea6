"""The tour: by itself on the very first start, once there are suites to show it over; from the palette always."""

from __future__ import annotations

from collections.abc import Callable

from tui_eval.tui import tour_seen
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.services import Core, PlaceStack


class TourController:
    """`untouched` says whether the person has pressed no key yet: who works already needs no tour."""

    def __init__(self, core: Core, places: PlaceStack, untouched: Callable[[], bool]) -> None:
        self._core, self._places, self._untouched = core, places, untouched
        self._looked = self._waits = False

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"tour": self.show}

    def read(self, loaded: Loaded) -> None:
        """Suites were read."""
        if not loaded.done or self._looked or not self._core.state.rows:
            return
        self._looked = True

        def take(wanted: bool) -> None:
            front = self._places.list_in_front
            if not wanted or not self._untouched() or front is None or front.kind != "suites":
                return
            self._waits = self._places.front is not front
            if not self._waits:
                self.show()

        self._core.tasks.thread(tour_seen.is_wanted, take, name="tour")

    def answered(self) -> None:
        """What the project may do was answered: two dialogs over each other would hide the question."""
        front = self._places.list_in_front
        if self._waits and self._places.front is front:
            self._waits = False
            self.show()

    def show(self) -> None:
        """The tour, dismissed for good by whatever key."""
        self._places.show("tour", len(self._core.state.rows), answer=lambda _: self._seen())

    def _seen(self) -> None:
        self._core.tasks.thread(tour_seen.seen, name="tour")
