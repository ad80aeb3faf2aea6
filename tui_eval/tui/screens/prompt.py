"""The one-line question at the bottom of a list: find, filter."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static


class Completing(Suggester):
    """Offers the text as it could go on."""

    def __init__(self, complete: Callable[[str], str | None]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        """The whole text."""
        return self._complete(value)


class Line(Input):
    """Tab takes what is offered, as → does."""

    BINDINGS = [Binding("tab", "cursor_right", show=False)]


class Prompt(Horizontal):
    """A label and an input. Posts `Typed` while the person types, and `Left` at the end."""

    DEFAULT_CSS = """
    Prompt { height: 1; width: 1fr; dock: bottom; background: $panel; }
    Prompt Static { width: auto; padding: 0 1; color: $accent; text-style: bold; }
    Prompt Input { width: 1fr; background: $panel; border: none; padding: 0; height: 1; }
    """

    class Typed(Message):
        """The text changed."""

        def __init__(self, purpose: str, text: str) -> None:
            super().__init__()
            self.purpose = purpose
            self.text = text

    class Left(Message):
        """Enter (`kept`) or Escape."""

        def __init__(self, purpose: str, text: str, kept: bool) -> None:
            super().__init__()
            self.purpose = purpose
            self.text = text
            self.kept = kept

    def __init__(
        self,
        purpose: str,
        text: str = "",
        hint: str = "",
        complete: Callable[[str], str | None] | None = None,
    ) -> None:
        """`complete` gives the text with its last word completed, or None."""
        super().__init__()
        self._complete = complete
        self.purpose = purpose
        self._text = text
        self._hint = hint

    def compose(self) -> ComposeResult:
        """The label and the input."""
        yield Static(self.purpose, markup=False)
        suggester = Completing(self._complete) if self._complete is not None else None
        entry = Line(
            self._text, placeholder=self._hint, compact=True, select_on_focus=False, suggester=suggester
        )
        entry.cursor_blink = False
        yield entry

    def on_mount(self) -> None:
        """Keys go to the input."""
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell the list."""
        event.stop()
        self.post_message(self.Typed(self.purpose, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self.post_message(self.Left(self.purpose, event.value, True))

    def leave(self) -> None:
        """Escape."""
        self.post_message(self.Left(self.purpose, self.query_one(Input).value, False))
