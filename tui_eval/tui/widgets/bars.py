"""The lines at the top and bottom of every screen: facts and keys. Only cells that changed are sent."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui_eval.tui.keys import Key
from tui_eval.tui.widgets.painting import changed_cells, ink, line

Part = tuple[str, str]
"""A style's name and a text."""


class FactsBar(Widget):
    """One or more lines of styled parts."""

    NAMES = ("title", "text", "dim", "good", "bad", "warn", "running", "bar", "key")
    COMPONENT_CLASSES = {f"bar--{name}" for name in NAMES}
    DEFAULT_CSS = """
    FactsBar { height: auto; width: 1fr; background: $panel; color: $foreground; padding: 0 1; }
    FactsBar .bar--title { text-style: bold; color: $primary; }
    FactsBar .bar--dim { color: $text-muted; }
    FactsBar:ansi .bar--dim { text-style: dim; }
    FactsBar .bar--good { color: $text-success; }
    FactsBar .bar--bad { color: $text-error; text-style: bold; }
    FactsBar .bar--warn { color: $text-warning; }
    FactsBar .bar--running { color: $text-primary; }
    FactsBar .bar--bar { color: $primary; }
    FactsBar .bar--key { color: $text-accent; }
    """

    def __init__(self, lines: int = 1, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.styles.height = lines
        self._lines: list[list[Part]] = [[] for _ in range(lines)]

    def show(self, *lines: Sequence[Part]) -> None:
        """Show these parts; repaints from the first character that differs to the last."""
        for y, parts in enumerate(lines[: len(self._lines)]):
            fresh = list(parts)
            if fresh == self._lines[y]:
                continue
            before = self._strip(y)
            self._lines[y] = fresh
            span = changed_cells(before, self._strip(y))
            if span is not None:
                self.refresh(Region(span[0], y, span[1] - span[0], 1))

    def render_line(self, y: int) -> Strip:
        """One line."""
        return self._strip(y)

    def _strip(self, y: int) -> Strip:
        base = self.rich_style
        parts = [
            (text, Style() if name == "text" else ink(self.get_component_rich_style(f"bar--{name}")))
            for name, text in (self._lines[y] if y < len(self._lines) else [])
        ]
        return line(parts, self.size.width, base)


class KeyHints(Widget):
    """The footer: at most seven keys of this place."""

    MOST = 7
    COMPONENT_CLASSES = {"hints--key", "hints--label"}
    DEFAULT_CSS = """
    KeyHints { height: 1; width: 1fr; dock: bottom; background: $panel; padding: 0 1; }
    KeyHints .hints--key { color: $text-accent; text-style: bold; }
    KeyHints .hints--label { color: $text-muted; }
    """

    def __init__(self, keys: Sequence[Key] = (), *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.keys = list(keys)[: self.MOST]

    def show(self, keys: Sequence[Key]) -> None:
        """Other keys."""
        fresh = list(keys)[: self.MOST]
        if fresh != self.keys:
            self.keys = fresh
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The keys in a row, as many as fit whole."""
        key_style = ink(self.get_component_rich_style("hints--key"))
        label_style = ink(self.get_component_rich_style("hints--label"))
        parts: list[tuple[str, Style]] = []
        services = getattr(self.app, "services", None)  # of ours, not of any app that shows a footer
        status = services.status() if services is not None else ""
        left = self.size.width - (cell_len(status) + 2 if status else 0)
        keys, gap = self._fitting(left)
        for key in keys:
            parts += [(key.shown, key_style), (f" {key.label}{' ' * gap}", label_style)]
        if status:
            used = sum(cell_len(text) for text, _ in parts)
            parts += [(" " * max(0, self.size.width - used - cell_len(status)), label_style)]
            parts.append((status, key_style))
        return line(parts, self.size.width, self.rich_style)

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
