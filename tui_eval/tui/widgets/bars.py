"""The lines at the top and bottom of every screen: facts and keys. Only cells that changed are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len

from tui_eval.tui.keys import Key
from tui_eval.tui.state.text.lines import Line, Span, line_of, width_of
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

    @property
    def row_count(self) -> int:
        """Its lines."""
        return len(self._lines)

    def show(self, *lines: Sequence[Part]) -> None:
        """Show these parts; what looks as before is not painted again."""
        fresh = [line_of(Span(text, word) for word, text in parts) for parts in lines[: len(self._lines)]]
        changed = [y for y, line in enumerate(fresh) if line != self._lines[y]]
        self._lines[: len(fresh)] = fresh
        self.repaint(changed)

    def row_line(self, row: int) -> Line:
        """One line."""
        return self._lines[row]


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
        spans: list[Span] = []
        services = getattr(self.app, "services", None)  # of ours, not of any app that shows a footer
        status = services.status() if services is not None else ""
        left = self.size.width - (cell_len(status) + 2 if status else 0)
        keys, gap = self._fitting(left)
        for key in keys:
            spans += [Span(key.shown, "key"), Span(f" {key.label}{' ' * gap}", "label")]
        if status:
            room = self.size.width - width_of(tuple(spans)) - cell_len(status)
            spans += [Span(" " * max(0, room), "label"), Span(status, "key")]
        return line_of(spans)

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
