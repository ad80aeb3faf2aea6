"""How many requests a minute an agent takes (`rate: {requests: N}`), shared by all its attempts."""

from __future__ import annotations

import time


class Pace:
    """Hands out the moments at which requests may be sent, evenly: `per_minute` of them in a minute, at
    most those of a tenth of a second at once. None: no limit. One event loop only."""

    def __init__(self, per_minute: float | None) -> None:
        self._between = 60 / per_minute if per_minute else 0.0
        self._ahead = max(0.0, 0.1 - self._between) if per_minute else 0.0
        self._next = 0.0
        self._reserved = 0

    def seconds(self) -> float:
        """How long until another request may be sent; 0: now. Takes nothing."""
        return max(0.0, self._next - self._ahead - time.monotonic()) if self._between else 0.0

    def reserve(self) -> None:
        """Take the next moment for a request that is about to be made: the next `claim` waits for none."""
        if self._between:
            self._take()
            self._reserved += 1

    def claim(self) -> float:
        """Take a moment; the seconds to wait for it."""
        if not self._between:
            return 0.0
        if self._reserved:
            self._reserved -= 1
            return 0.0
        wait = self.seconds()
        self._take()
        return wait

    async def claimed(self) -> float:
        """As `claim`; elsewhere than in the engine, it is asked."""
        return self.claim()

    def _take(self) -> None:
        self._next = max(self._next, time.monotonic()) + self._between
