"""The lines at the top and bottom of every screen: facts and keys. Only cells that changed are sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.timer import Timer

from tui_eval.tui.keys import Key
from tui_eval.tui.state.text.fitting import shorten
from tui_eval.tui.state.text.lines import Line, Span, fit, letters, line_of, width_of
from tui_eval.tui.widgets.looks import Look
from tui_eval.tui.widgets.row_view import RowView

Part = tuple[str, str]
"""A style's name and a text."""


class FactsBar(RowView, can_focus=False):
    """One or more lines of styled parts."""

    DEFAULT_CSS = """
    FactsBar { height: auto; width: 1fr; background: $panel; color: $foreground; padding: 0 1; }
    """
    LOOKS: ClassVar[Mapping[str, Look]] = {
        "title": Look("$primary", "bold"),
        "bad": Look("$text-error", "bold"),
    }
    has_cursor = False

    def __init__(self, lines: int = 1, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.styles.height = lines
        self._lines: list[Line] = [()] * lines
        self._made: Callable[[int], Sequence[Sequence[Part]]] | None = None
        self._made_for = 0

    @property
    def row_count(self) -> int:
        """Its lines."""
        return len(self._lines)

    def show(self, *lines: Sequence[Part]) -> None:
        """Show these parts, whatever the width."""
        self._made = None
        self._show(lines)

    def show_fitted(self, make: Callable[[int], Sequence[Sequence[Part]]]) -> None:
        """Show what this makes of a width, now and whenever the width is another."""
        self._made = make
        self.relayout()

    def relayout(self) -> None:
        """The width is another, or what is made of it."""
        self._show(self._fitted())

    def _fitted(self) -> Sequence[Sequence[Part]]:
        self._made_for = self.size.width
        return self._made(self._made_for) if self._made is not None and self._made_for else ()

    def _show(self, lines: Sequence[Sequence[Part]]) -> None:
        """What looks as before is not painted again."""
        self.repaint(self._take(lines))

    def _take(self, lines: Sequence[Sequence[Part]]) -> list[int]:
        """Keep these; those that look different."""
        fresh = [line_of(Span(text, word) for word, text in parts) for parts in lines[: len(self._lines)]]
        changed = [y for y, line in enumerate(fresh) if line != self._lines[y]]
        self._lines[: len(fresh)] = fresh
        return changed

    def row_line(self, row: int) -> Line:
        """One line; a sign at its end where there is no room for all of it. A frame that comes before word of the width
        is fitted to it too."""
        if self._made is not None and self._made_for != self.size.width:
            self._take(self._fitted())
        return fit(self._lines[row], self.text_width)


KEPT = ("help", "quit", "back")
"""Keys that a footer never leaves out for others."""


class KeyHints(RowView, can_focus=False):
    """The footer: at most seven keys of this place. Of more the last go, but for help and the way out."""

    MOST = 7
    DEFAULT_CSS = """
    KeyHints { height: 1; width: 1fr; dock: bottom; background: $panel; padding: 0 1; }
    """
    LOOKS: ClassVar[Mapping[str, Look]] = {"key": Look("$text-accent", "bold")}
    has_cursor = False

    def __init__(self, keys: Sequence[Key] = (), *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.keys = self._most(keys)
        self._said = ""
        self._timer: Timer | None = None

    def say(self, words: str, seconds: float = 3.0) -> bool:
        """Say these words in the place of the keys for so long, or until the next ones: nothing that is looked at
        is covered. False where there is no room for them."""
        if words and cell_len(words) > self._room():
            return False
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(seconds, partial(self.say, "")) if words else None
        if words != self._said:
            self._said = words
            self.refresh()
        return True

    @property
    def said(self) -> str:
        """The words that stand in the place of the keys."""
        return self._said

    def show(self, keys: Sequence[Key]) -> None:
        """Other keys."""
        fresh = self._most(keys)
        if fresh != self.keys:
            self.keys = fresh
            self.refresh()

    def _most(self, keys: Sequence[Key]) -> list[Key]:
        kept = sum(key.id in KEPT for key in keys)
        others = [key for key in keys if key.id not in KEPT][: self.MOST - kept]
        return [key for key in keys if key.id in KEPT or key in others]

    @property
    def row_count(self) -> int:
        """One line."""
        return 1

    def row_line(self, row: int) -> Line:
        """The keys in a row, as many as fit whole."""
        status = self._status()
        keys, gap = self._fitting(self._room())
        # The status may have grown since it was said.
        spans: list[Span] = [Span(shorten(self._said, self._room()), "note")] if self._said else []
        idle = self.screen is not self.app.screen  # a question stands over it, which takes all keys
        for key in () if self._said or idle else keys:
            spans += [Span(key.shown, "key"), Span(f" {key.label}{' ' * gap}", "label")]
        if status:
            room = self.size.width - width_of(tuple(spans)) - cell_len(status)
            spans += [Span(" " * max(0, room), "label"), Span(status, "key")]
        return line_of(spans)

    def _status(self) -> str:
        services = getattr(self.app, "services", None)  # of ours, not of any app that shows a footer
        return services.status() if services is not None else ""

    def _room(self) -> int:
        """Cells beside the status."""
        status = self._status()
        return self.size.width - (cell_len(status) + 2 if status else 0)

    def _fitting(self, width: int) -> tuple[list[Key], int]:
        """The keys that fit whole, and the spaces between them: three, or two where not all fit with three.
        Help, which lists the others, is the last to go."""
        keys = list(self.keys)

        def room(gap: int) -> int:
            return sum(cell_len(key.shown) + 1 + cell_len(key.label) + gap for key in keys) - gap

        gap = 3 if room(3) <= width else 2
        while keys and room(gap) > width:
            keys.remove(next((key for key in reversed(keys) if key.id != "help"), keys[-1]))
        return keys, gap

    def on_click(self, event: events.Click) -> None:
        """A key that is clicked is pressed."""
        place = event.get_content_offset(self)
        key = self.key_at(place.x) if place is not None else None
        if key is not None:
            event.stop()
            self.app.simulate_key(key.pressed.split(",")[0])

    def key_at(self, x: int) -> Key | None:
        """The key that stands in a column."""
        if self._said or self.screen is not self.app.screen:
            return None
        keys, gap = self._fitting(self._room())
        left = 0
        for key in keys:
            right = left + cell_len(key.shown) + 1 + cell_len(key.label)
            if left <= x < right:
                return key
            left = right + gap
        return None


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

    def say(self, words: str, seconds: float = 3.0) -> bool:
        """As any footer, but not over a question."""
        return not (words and self.asking) and super().say(words, seconds)

    def ask(self, purpose: str, choices: Mapping[str, str], answer: Callable[[str], Any]) -> None:
        """Ask, by key what it means; the screen hands the next key to `take`, and what it says to `answer`."""
        self._purpose, self._choices, self._answer = purpose, choices, answer
        self.asking = True
        self.refresh()

    def take(self, event: events.Key) -> None:
        """One key decides; none goes on to the app."""
        event.stop()
        event.prevent_default()
        if event.character is not None and event.character in self._choices:
            self.post_message(self.Chosen(event.character, self._answer))
        self.cancel()

    def key_at(self, x: int) -> Key | None:
        """None of the place while it asks."""
        return None if self.asking else super().key_at(x)

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
