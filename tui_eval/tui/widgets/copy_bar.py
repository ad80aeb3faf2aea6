"""The foot of the Case screen: its keys, or, after `y`, `Y` or `m`, a question that one key answers."""

from __future__ import annotations

from collections.abc import Mapping

from textual.events import Key
from textual.message import Message
from textual.strip import Strip

from tui_eval.tui.state.text.lines import letters
from tui_eval.tui.widgets.bars import KeyHints
from tui_eval.tui.widgets.painting import line


class CopyBar(KeyHints):
    """Shows keys like any foot; while it asks it takes one key, and any that names nothing ends it.

    It never takes the focus: Textual repaints the whole screen whenever that moves.
    """

    class Chosen(Message):
        """A key was pressed; `choice` is None where it names nothing. `purpose` is the question's."""

        def __init__(self, purpose: str, choice: str | None) -> None:
            super().__init__()
            self.purpose = purpose
            self.choice = choice

    asking = False
    _purpose = ""
    _choices: Mapping[str, str] = {}

    def ask(self, purpose: str, choices: Mapping[str, str]) -> None:
        """Ask, by key what it means; the screen hands the next key to `take`."""
        self._purpose, self._choices = purpose, choices
        self.asking = True
        self.refresh()

    def take(self, event: Key) -> None:
        """One key decides; none goes on to the app."""
        event.stop()
        event.prevent_default()
        choice = event.character if event.character in self._choices else None
        self.post_message(self.Chosen(self._purpose, choice))
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
        styles = {"key": key_style, "label": label_style}
        parts = question(self._purpose, self._choices, self.size.width - 2)
        return line([(letters(text), styles[name]) for name, text in parts], self.size.width, self.rich_style)


def question(purpose: str, choices: Mapping[str, str], width: int) -> list[tuple[str, str]]:
    """The question in parts (`key` or `label`, text): all choices are there however narrow it is, their
    words shorter where there is no room for them."""
    parts: list[tuple[str, str]] = []
    for gap, most in ((2, 99), (1, 99), (1, 9), (1, 7), (1, 5), (1, 3)):
        parts = [("label", purpose[:most] + " " * gap)]
        for key, words in choices.items():
            parts += [("key", key), ("label", f" {words[:most].rstrip()}{' ' * gap}")]
        if sum(len(text) for _, text in parts) - gap <= width:
            break
    return parts
