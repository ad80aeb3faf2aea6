"""The first minute: the five keys of the loop, over the person's own suites. Any key closes it."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click
from textual.events import Key as KeyEvent
from textual.screen import ModalScreen
from textual.widgets import Static

from tui_eval.tui.screens.place import keys_of

LOOP = (
    ("run.all", "run", "run them; A asks with whom, how often"),
    ("failure.next", "see", "the next that failed; beside it stands why"),
    ("list.open", "look", "all of it: its turns, tool calls and rows"),
    ("case.edit", "edit", "change the case; E opens its agent's files"),
    ("case.rerun", "again", "run that one again; W does so on every save"),
)
"""The keys of the loop by their ids, what each is for in a word, and in a line."""


class TourScreen(ModalScreen[None]):
    """One panel, small enough for a small terminal; `cases` is how many there are."""

    DEFAULT_CSS = """
    TourScreen { align: center middle; background: $background 60%; }
    TourScreen Vertical { width: 60; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; background: $panel; border: round $primary; }
    TourScreen Static { width: 100%; height: auto; }
    TourScreen ToastRack { margin: 0; }
    TourScreen Toast { margin: 0; }
    """

    def __init__(self, cases: int) -> None:
        super().__init__()
        self._cases = cases

    def compose(self) -> ComposeResult:
        """The loop, where the rest is found, how to close it."""
        many = f"your {self._cases:,} cases" if self._cases != 1 else "your case"
        table = {key.id: key.shown for key in keys_of(*(name for name, _, _ in LOOP), "help", "palette")}
        wide = max(map(cell_len, table.values())) + 1

        def padded(name: str) -> str:
            return table[name] + " " * (wide - cell_len(table[name]))

        text = Text(f"From red to green, on {many}\n", style="bold")
        for name, _, words in LOOP:
            text.append(f"\n{padded(name)}", style="bold")
            text.append(words, style="not bold")
        text.append(f"\n\n{padded('help')}", style="bold")
        text.append("the keys of the place you are in", style="not bold")
        text.append(f"\n{padded('palette')}", style="bold")
        text.append("everything by its name, this tour too", style="not bold")
        text.append("\n\nAny key closes this; it does not come back.", style="not bold dim")
        with Vertical():
            yield Static(text, markup=False)

    def on_key(self, event: KeyEvent) -> None:
        """Any key closes it, and does nothing else."""
        event.stop()
        event.prevent_default()
        self.dismiss(None)

    def on_click(self, event: Click) -> None:
        """So does the mouse."""
        event.stop()
        self.dismiss(None)
