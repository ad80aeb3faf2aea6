"""The foot of the Case screen: its keys, or, after `y`, `Y` or `m`, a question that one key answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from textual.events import Key
from textual.message import Message

from tui_eval.tui.state.text.lines import Line, Span, letters, line_of
from tui_eval.tui.widgets.bars import KeyHints


class CopyBar(KeyHints):
    """Shows keys like any foot; while it asks it takes one key, and any that names nothing ends it.

    It never takes the focus: Textual repaints the whole screen whenever that moves.
    """

    class Chosen(Message):
        """A key was pressed that means something: `answer`, of whoever asked, is to be given it."""

        def __init__(self, choice: str, answer: Callable[[str], Any]) -> None:
            super().__init__()
            self.choice = choice
            self.answer = answer

    asking = False
    _purpose = ""
    _choices: Mapping[str, str] = {}
    _answer: Callable[[str], Any] = str

    def ask(self, purpose: str, choices: Mapping[str, str], answer: Callable[[str], Any]) -> None:
        """Ask, by key what it means; the screen hands the next key to `take`, and what it says to `answer`."""
        self._purpose, self._choices, self._answer = purpose, choices, answer
        self.asking = True
        self.refresh()

    def take(self, event: Key) -> None:
        """One key decides; none goes on to the app."""
        event.stop()
        event.prevent_default()
        if event.character is not None and event.character in self._choices:
            self.post_message(self.Chosen(event.character, self._answer))
        self.cancel()

    def cancel(self) -> None:
        """Show the keys again."""
        if self.asking:
            self.asking = False
            self.refresh()

    def row_line(self, row: int) -> Line:
        """The question, or the keys."""
        if not self.asking:
            return super().row_line(row)
        parts = question(self._purpose, self._choices, self.size.width - 2)
        return line_of(Span(letters(text), name) for name, text in parts)


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
