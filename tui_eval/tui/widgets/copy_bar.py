"""The foot of the Case screen: its keys, or, after `y` or `Y`, the question what to copy."""

from __future__ import annotations

from rich.style import Style
from textual.events import Key
from textual.message import Message
from textual.strip import Strip

from tui_eval.tui.state.copying import CHOICES
from tui_eval.tui.state.lines import letters
from tui_eval.tui.widgets.bars import KeyHints
from tui_eval.tui.widgets.painting import line


class CopyBar(KeyHints):
    """Shows keys like any foot; while it asks it takes one key, and any that names nothing ends it.

    It never takes the focus: Textual repaints the whole screen whenever that moves.
    """

    class Chosen(Message):
        """A key was pressed; `choice` is None where it names nothing."""

        def __init__(self, choice: str | None, to_file: bool) -> None:
            super().__init__()
            self.choice = choice
            self.to_file = to_file

    asking = False
    _to_file = False

    def ask(self, to_file: bool) -> None:
        """Ask; the screen hands the next key to `take`."""
        self._to_file = to_file
        self.asking = True
        self.refresh()

    def take(self, event: Key) -> None:
        """One key decides; none goes on to the app."""
        event.stop()
        event.prevent_default()
        self.post_message(self.Chosen(event.character if event.character in CHOICES else None, self._to_file))
        self.cancel()

    def cancel(self) -> None:
        """Show the keys again."""
        if self.asking:
            self.asking = False
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The question, or the keys."""
        if not self.asking:
            return super().render_line(y)
        key_style = self.get_component_rich_style("hints--key", partial=True)
        label_style = self.get_component_rich_style("hints--label", partial=True)
        parts: list[tuple[str, Style]] = [("write  " if self._to_file else "copy  ", label_style)]
        for key, words in CHOICES.items():
            parts += [(key, key_style), (f" {words}  ", label_style)]
        return line([(letters(text), style) for text, style in parts], self.size.width, self.rich_style)
