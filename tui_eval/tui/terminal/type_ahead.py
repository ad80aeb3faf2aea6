"""Keys in the order they were typed, each when the one before it has had its effect.

Textual hands every key to what has the focus when the key arrives. On a slow line several keys arrive at
once: the `y` of `Oy` would reach the list of runs, not the question that `O` is about to open. Here a key
waits until the one before it has been handled and what that one opens is there. A key that comes alone is
handled at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.widgets import Input

from tui_eval.tui.terminal.terminal_guard import EscapeAnd

QUIET = 3
"""Rounds from the focus up to the app in which nothing changes before a key counts as handled. What a key
causes may be announced by messages in turn (enter: `Submitted`, then `Left`); each needs a round."""
MOST_ROUNDS = 12
LONGEST = 2.0
"""Seconds after which the next key is handled, whatever the one before it still does."""


class TypingAhead(App[int], inherit_bindings=False):
    """The part of the app that sees each key first."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._typed: deque[events.Key | events.Paste] = deque()
        self.keys_taken = 0
        self.handling = False
        self.openings = 0
        self._patience: asyncio.TimerHandle | None = None

    @property
    def typed_ahead(self) -> bool:
        """Whether a key is being handled or waits."""
        return self.handling or bool(self._typed)

    def opening(self) -> Callable[[], None]:
        """The key being handled asks for something that is shown only when files have been read; keys
        typed until then are meant for it and wait. Call what is returned when it is there, or will not
        come."""
        number = self.keys_taken
        self.openings += 1

        def opened() -> None:
            if number == self.keys_taken:
                self.openings -= 1
                if self.handling and not self.openings:
                    self._climb(number, 0, None, 0)

        return opened

    async def on_event(self, event: events.Event) -> None:
        """Keys and pasted text one after the other, everything else as it comes."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self.handling:
            self._typed.append(event)
        else:
            await self._handle(event)

    def _meant(self, event: EscapeAnd) -> events.Key:
        """`esc`, and the key next; alt and the key where that is bound, moves by a word in what is typed, or (enter, as
        which many terminals send shift+enter) begins a line there."""
        from textual.widgets import TextArea  # read when esc and a key came together: no start needs it

        if event.where_one_types is not None and isinstance(self.focused, Input | TextArea):
            return event.where_one_types
        if event.key in self.active_bindings:
            return events.Key(event.key, None)
        first, then = event.apart
        if then.key == "enter" and isinstance(self.focused, TextArea) and not self.focused.read_only:
            return then
        self._typed.appendleft(then)
        return first

    async def _handle(self, event: events.Event) -> None:
        if isinstance(event, EscapeAnd):
            event = self._meant(event)
        self.handling = True
        self.keys_taken += 1
        self.openings = 0
        number = self.keys_taken
        self._patience = asyncio.get_running_loop().call_later(
            LONGEST, lambda: self.call_later(self.done_with_key, number)
        )
        start = self._start()
        await super().on_event(event)
        self._climb(number, 0, None, 0, start)

    def _start(self) -> MessagePump:
        """Where a round begins: what is just being mounted, else what has the focus."""
        screen = self.screen
        new = next((child for child in screen.children if not child.is_mounted), None)
        return new or self.focused or screen

    def _climb(
        self, number: int, quiet: int, place: Any, rounds: int, node: MessagePump | None = None
    ) -> None:
        """Send word up to the app, in each queue on the way behind what is already waiting there."""
        node = node or self._start()
        while node is not self and node is not None:
            above = node._parent or self
            if node.call_later(self._climb, number, quiet, place, rounds, above):
                return
            node = above
        self.call_later(self._arrived, number, quiet, place, rounds)

    async def _arrived(self, number: int, quiet: int, place: Any, rounds: int) -> None:
        """Word has come up: once more, or the key has been handled."""
        if number != self.keys_taken or not self.handling or self.openings:
            return
        screen = self.screen
        now = (screen, self.focused, len(screen.children))
        quiet = quiet + 1 if now == place else 0
        if rounds >= MOST_ROUNDS:
            await self.done_with_key(number)
        elif quiet < QUIET:
            self._climb(number, quiet, now, rounds + 1)
        elif screen._callbacks:  # of call_after_refresh: the focus may be about to move
            screen.call_after_refresh(self._climb, number, 0, now, rounds + 1)
        else:
            await self.done_with_key(number)

    async def done_with_key(self, number: int) -> None:
        """The turn of the next key."""
        if number != self.keys_taken or not self.handling:
            return
        self.handling = False
        if self._patience is not None:
            self._patience.cancel()
        if self._typed:
            await self._handle(self._typed.popleft())


def keys_wait(app: App[Any]) -> Callable[[], None]:
    """`TypingAhead.opening`, of an app that has it."""
    return app.opening() if isinstance(app, TypingAhead) else _nothing


def _nothing() -> None:
    """An app without it."""
