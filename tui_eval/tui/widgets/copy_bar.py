"""The line at the foot that asks what to copy, after `y` or `Y`."""

from __future__ import annotations

from textual.events import Key
from textual.message import Message

from tui_eval.tui.state.copying import CHOICES
from tui_eval.tui.state.lines import Span
from tui_eval.tui.widgets.line_label import LineLabel


class CopyBar(LineLabel, can_focus=True):
    """Shows the choices and takes one key; any other key closes it."""

    DEFAULT_CSS = """
    CopyBar { dock: bottom; display: none; background: $panel; padding: 0 1; }
    CopyBar.-open { display: block; }
    """

    class Chosen(Message):
        """A key was pressed; `choice` is None where it names nothing."""

        def __init__(self, choice: str | None, to_file: bool) -> None:
            super().__init__()
            self.choice = choice
            self.to_file = to_file

    def __init__(self) -> None:
        super().__init__()
        self._to_file = False

    def ask(self, to_file: bool) -> None:
        """Open the line and take the keys."""
        self._to_file = to_file
        spans = [Span("write  " if to_file else "copy  ", "heading")]
        for key, words in CHOICES.items():
            spans += [Span(key, "role-tool_call"), Span(f" {words}   ")]
        self.add_class("-open")
        self.set_lines([tuple(spans)])
        self.focus()

    def on_key(self, event: Key) -> None:
        """One key decides; none goes on to the app."""
        event.stop()
        event.prevent_default()
        self._close(event.character if event.character in CHOICES else None)

    def on_blur(self) -> None:
        """The keys went elsewhere."""
        self.remove_class("-open")

    def _close(self, choice: str | None) -> None:
        self.remove_class("-open")
        self.post_message(self.Chosen(choice, self._to_file))
