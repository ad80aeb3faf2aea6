"""One table: the id of a key -> what it does. Bindings and the palette ask here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol, runtime_checkable

from textual.app import App
from textual.screen import Screen

from tui_eval.tui.keys import Key

Handler = Callable[[], Any]
"""What a key does; may be a coroutine function."""


@runtime_checkable
class HasHandlers(Protocol):
    """A place, or a widget in it, that says what some keys do there."""

    def handlers(self) -> Mapping[str, Handler]:
        """Handlers by the ids of keys."""
        ...


class ShowsScreens(Protocol):
    """An app, as far as keys go."""

    @property
    def screen(self) -> Screen[Any]:
        """The screen in front."""
        ...


class Handlers:
    """Filled once, when the app is put together."""

    def __init__(self, window: ShowsScreens, keys: Iterable[Key], not_here: Callable[[], Any]) -> None:
        """`keys` is the whole table. Those that work everywhere wait for a controller's handler; the others are
        done by what has the focus, or by the screen in front; `not_here` says that neither does anything."""
        self._window = window
        self._not_here = not_here
        self._known: set[str] = set()
        self._table: dict[str, Handler] = {}
        for key in keys:
            self._known.add(key.id)
            if key.place != "everywhere":
                self.add({key.id: partial(self._in_front, key)})

    @property
    def missing(self) -> set[str]:
        """Keys that nothing would do."""
        return self._known - self._table.keys()

    def add(self, handlers: Mapping[str, Handler]) -> None:
        """What a controller does.

        Raises:
            ValueError: no such key, or it has a handler: one key does one thing.
        """
        for key_id, handler in handlers.items():
            if key_id not in self._known:
                raise ValueError(f"{key_id}: no key of that id")
            if key_id in self._table:
                raise ValueError(f"{key_id}: has a handler")
            self._table[key_id] = handler

    async def do(self, key_id: str) -> None:
        """Do what the key of this id does."""
        done = self._table[key_id]()
        if isawaitable(done):
            await done

    async def _in_front(self, key: Key) -> None:
        """What the key does in this place: asked are what has the focus, what it is in, and the screen."""
        screen = self._window.screen
        for node in (*(screen.focused.ancestors_with_self if screen.focused else ()), screen):
            if isinstance(node, App):
                break  # what it does is in this table
            handler = node.handlers().get(key.id) if isinstance(node, HasHandlers) else None
            if handler is not None:
                done = handler()
                if isawaitable(done):
                    await done
                return
        self._not_here()
