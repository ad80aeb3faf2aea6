"""The boundary between a run and where its attempts are executed.

The run chooses what is executed when (`schedule`), and is the one writer of its folder. A place executes what it is
given and reports what happens meanwhile to an `AttemptLog`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from tui_eval.engine.schedule import Ticket
    from tui_eval.model import Attempt
    from tui_eval.store.writer import Packed


class PlaceLost(Exception):
    """Nothing more can be executed there. One clear line; what has no result can be gone on with elsewhere."""


class Made(NamedTuple):
    """An attempt that has ended, secrets taken out, and as it is kept, where that is known already."""

    attempt: Attempt
    packed: Packed | None = None


class AttemptPlace(Protocol):
    """Where attempts are executed. One event loop only."""

    @property
    def words(self) -> str:
        """Where that is, for a person: `ray · 3 nodes · 24 workers`; empty for the engine's own loop."""
        ...

    @property
    def note(self) -> str:
        """What the run's note says of it for good (attempts that were begun anew); empty: nothing."""
        ...

    @property
    def begun_at_loss(self) -> int:
        """How many attempts had begun when the place was lost (`PlaceLost`): they may have been asked, and
        paid, already."""
        ...

    async def open(self, changed: Callable[[], None]) -> None:
        """Make it ready; `changed` is called whenever `words` or the `note` are others.

        Raises:
            PlaceLost: it cannot be.
        """
        ...

    async def attempt(self, ticket: Ticket, ends: float | None, left: dict[int, Attempt]) -> Made:
        """Execute an attempt, which `ends` (loop time) cuts short. Cancelling ends it wherever it runs; what there was
        of it is then in `left`, by its reference.

        Raises:
            PlaceLost: it was not executed to its end, and cannot be.
        """
        ...

    async def close(self) -> None:
        """Release everything. No attempt is being executed any more."""
        ...


UNKNOWN_COST = "what they cost before is not known"


def under_way_at_loss(count: int) -> str:
    """What it means that so many attempts had begun when the place was lost, in words; empty of none."""
    if not count:
        return ""
    said = "1 attempt was" if count == 1 else f"{count} attempts were"
    begin = "begins" if count == 1 else "begin"
    return f"{said} under way when the cluster was lost and {begin} anew when the run goes on, {UNKNOWN_COST}"


class AttemptLog(Protocol):
    """What is reported of attempts while they are executed, by reference (`RunWriter` says what each means)."""

    @property
    def folder(self) -> Path: ...
    def started(self, attempt_ref: int, at: float) -> None: ...
    def limit(self, attempt_ref: int, ends_at: float | None) -> None: ...
    def turn(self, attempt_ref: int, turn: int) -> None: ...
    def retrying(self, attempt_ref: int, detail: str) -> None: ...
    def waits(self, attempt_ref: int, detail: str) -> None: ...
    def running_again(self, attempt_ref: int) -> None: ...
    def progress(self, attempt_ref: int, usage: tuple[int | None, int | None], tool_calls: int) -> None: ...
    def live(
        self, attempt_ref: int, kind: str, text: str, agent: str = "", name: str = "", call_id: str = ""
    ) -> None: ...
