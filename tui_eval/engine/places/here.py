"""`here`: attempts on the engine's own loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tui_eval.engine.attempt.attempt import execute
from tui_eval.engine.places.attempt_place import AttemptLog, Made

if TYPE_CHECKING:
    from tui_eval.engine.attempt.stepping import Stepper
    from tui_eval.engine.run_context import RunContext
    from tui_eval.engine.schedule import Ticket
    from tui_eval.model import Attempt


class Here:
    """The engine's own loop. With a `stepper` a person decides on each turn."""

    words = note = ""
    begun_at_loss = 0

    def __init__(
        self, environment: RunContext, log: AttemptLog | None, stepper: Stepper | None = None
    ) -> None:
        self._environment = environment
        self._log = log
        self._stepper = stepper

    async def open(self, changed: Callable[[], None]) -> None:
        """It is ready."""

    async def attempt(self, ticket: Ticket, ends: float | None, left: dict[int, Attempt]) -> Made:
        """See `AttemptPlace`."""
        return Made(
            await execute(
                ticket.job,
                ticket.number,
                ticket.attempt_ref,
                self._environment,
                self._log,
                ends,
                self._stepper,
                left,
            )
        )

    async def close(self) -> None:
        """The run's context is its own, and closed by who made it."""
