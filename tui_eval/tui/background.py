"""Work that would make a key press wait, done in a daemon thread.

Not Textual's thread workers: those delay the exit until they return, and only as many run at once
as there are processors.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from textual._context import active_app
from textual.app import App, ScreenStackError
from textual.css.query import NoMatches
from textual.dom import NoScreen
from textual.timer import Timer
from textual.widget import Widget

from tui_eval.tui.notices import Notices
from tui_eval.tui.terminal.type_ahead import keys_wait

SLOW = 3.0
"""Seconds after which work that a key asked for is said to go on, each time."""
T = TypeVar("T")
_QUEUES: WeakKeyDictionary[App[Any], dict[str, threading.Thread]] = WeakKeyDictionary()
"""The last thread of each queue."""


def run_in_thread(
    app: App[Any],
    function: Callable[[], T],
    on_done: Callable[[T], Any] | None = None,
    on_error: Callable[[Exception], Any] | None = None,
    *,
    name: str = "background",
    opens: bool = False,
    queue: str = "",
) -> threading.Thread:
    """Call `function` in a daemon thread and give its result to `on_done` on the app's loop.

    An exception goes to `on_error`; without one, to the app's log and a short notice
    (`app.background_failed`). A result that arrives after the app has closed is dropped. Whoever
    starts work that may be overtaken by newer work compares a generation of its own in `on_done`.

    `opens`: a key was pressed to see what comes of this; keys typed ahead wait for it (`type_ahead`).
    `queue`: of works of the same name each begins when the one before it has given its result.
    """
    opened = keys_wait(app) if opens else None
    queues = _QUEUES.setdefault(app, {})
    before = queues.get(queue) if queue else None

    def work() -> None:
        if before is not None:
            before.join()
        try:
            result = function()
        except Exception as error:
            failed = on_error or getattr(app, "background_failed", None)
            if failed is not None:
                app.call_later(failed, error)
        else:
            if on_done is not None:
                app.call_later(_give, on_done, result)
        if opened is not None:
            app.call_later(opened)

    thread = threading.Thread(target=work, name=f"tui-{name}", daemon=True)
    if queue:
        queues[queue] = thread
    thread.start()
    return thread


def _give(on_done: Callable[[T], Any], result: T) -> Any:
    """Hand on a result; one for a screen that is being taken away, whose widgets go first, is for nobody."""
    try:
        return on_done(result)
    except NoMatches as error:
        if for_nobody(error):
            return None
        raise
    except ScreenStackError:
        return None  # the app is closing


def stands(widget: Widget) -> bool:
    """Whether a widget is there with all it holds, for what a thread has read: not before it is mounted, nor
    while its screen is taken away."""
    try:
        return widget.is_mounted and widget.screen in widget.app.screen_stack
    except NoScreen:
        return False


def for_nobody(error: Exception) -> bool:
    """Whether a widget was missed by one that is being taken away, whose own widgets go first, or never come where it
    is left while it is being mounted; or the screen in front by what a timer does in an app that is being closed."""
    if isinstance(error, ScreenStackError):
        return not active_app.get()._running
    if not isinstance(error, NoMatches):
        return False
    step = error.__traceback__
    while step is not None:
        owner = step.tb_frame.f_locals.get("self")
        if isinstance(owner, Widget) and _leaves(owner):
            return True
        step = step.tb_next
    return False


def _leaves(widget: Widget) -> bool:
    try:
        return widget.screen not in widget.app.screen_stack or any(
            node._pruning or node._closing for node in widget.ancestors_with_self
        )
    except NoScreen:
        return True


class Tasks:
    """Work beside the app's loop and on it, for whoever has no widget to hang it on."""

    def __init__(self, app: App[Any], notices: Notices) -> None:
        self._app, self._notices = app, notices
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def at_work(self) -> bool:
        """Whether anything goes on that `soon` began."""
        return bool(self._running)

    def thread(
        self,
        function: Callable[[], T],
        on_done: Callable[[T], Any] | None = None,
        on_error: Callable[[Exception], Any] | None = None,
        *,
        name: str = "background",
        opens: bool = False,
        queue: str = "",
        slow: str = "",
    ) -> None:
        """See `run_in_thread`. `slow` is said again and again where it takes long."""
        work = self._said_to_go_on(function, slow) if slow else function
        run_in_thread(self._app, work, on_done, on_error, name=name, opens=opens, queue=queue)

    def _said_to_go_on(self, function: Callable[[], T], words: str) -> Callable[[], T]:
        began = time.monotonic()

        def say() -> None:
            self._notices.say(f"{words} ({time.monotonic() - began:.0f} s)")

        timer = self._app.set_interval(SLOW, say)

        def work() -> T:
            try:
                return function()
            finally:
                self._app.call_later(timer.stop)

        return work

    def later(self, callback: Callable[..., Any], *arguments: Any) -> None:
        """Call this on the app's loop; may be called in a thread."""
        self._app.call_later(callback, *arguments)

    def after(self, seconds: float, callback: Callable[[], Any]) -> Timer:
        """Call this once, so many seconds from now."""
        return self._app.set_timer(seconds, callback)

    def every(self, seconds: float, callback: Callable[[], Any]) -> Timer:
        """Call this again and again."""
        return self._app.set_interval(seconds, callback)

    def soon(self, work: Coroutine[Any, Any, Any], *, opens: bool = False) -> None:
        """Do this without anything waiting for it; an engine's refusal is said and logged. `opens`: it
        shows what a key asked for, and keys typed ahead wait for that."""
        opened = keys_wait(self._app) if opens else None

        async def guarded() -> None:
            from tui_eval.engine.service.client import EngineError

            try:
                await work
            except EngineError as error:
                self._notices.problem(str(error))
            except OSError as error:
                self._notices.problem(f"engine: {error}")
            except ScreenStackError:
                pass  # the app has closed meanwhile: what would be shown is for nobody
            except Exception as error:  # nobody waits for this task: what it raises would never be seen
                self._app._handle_exception(error)
            finally:
                if opened is not None:
                    opened()

        task = asyncio.create_task(guarded())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
