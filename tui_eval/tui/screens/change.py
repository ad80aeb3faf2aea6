"""A change to a file, shown as a diff before it is written."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from tui_eval.guard.text import visible
from tui_eval.tui.widgets.lines_pane import LinesPane


class ChangeScreen(ModalScreen[str | None]):
    """Answers `write`, `edit` (where `edits`) or nothing."""

    BINDINGS = [
        Binding("enter,y", "answer('write')", "write it", show=False),
        Binding("e", "answer('edit')", "edit instead", show=False),
        Binding("escape,n,q", "leave", "leave", show=False),
    ]
    DEFAULT_CSS = """
    ChangeScreen { align: center middle; background: $background 60%; }
    ChangeScreen > Vertical { width: 100%; max-width: 110; height: 90%; padding: 0 1; background: $panel; border: round $primary; }
    ChangeScreen Static { height: auto; }
    ChangeScreen .title { text-style: bold; }
    ChangeScreen LinesPane { height: 1fr; }
    """

    def __init__(
        self,
        title: str,
        diff: str,
        notes: Sequence[str] = (),
        *,
        told: Sequence[str] = (),
        edits: bool = False,
        taken_back: str = "",
    ) -> None:
        """`notes` say what cannot be changed, `told` what else to know of what is, `taken_back` is the key
        that undoes it."""
        super().__init__()
        self._told = list(told)
        self._taken_back = taken_back
        self._heading = title
        self.diff = diff
        self._notes = list(notes)
        self._edits = edits

    def compose(self) -> ComposeResult:
        """Title, diff, what could not be changed, keys."""
        with Vertical():
            yield Static(visible(self._heading, newlines=False), classes="title", markup=False)
            yield LinesPane(self.paragraphs())
            back = f" ({self._taken_back} undoes it)" if self._taken_back else ""
            keys = f"enter writes it{back}" if self.diff else ""
            keys += "   e edits the file instead" if self._edits else ""
            yield Static(f"{keys}   esc leaves".strip(), classes="keys", markup=False)

    def on_mount(self) -> None:
        """Keys scroll the diff."""
        self.query_one(LinesPane).focus()

    def paragraphs(self) -> list[tuple[str, str]]:
        shown: list[tuple[str, str]] = []
        begun = False  # a line that is taken away may begin as a head does
        for line in self.diff.removesuffix("\n").split("\n") if self.diff else ():
            text = visible(line.rstrip("\r"), newlines=False) if line else ""
            begun = begun or line.startswith("@@")
            if not begun and line.startswith(("--- ", "+++ ")):
                path = text[4:].removeprefix("b/")
                if line.startswith("+++ ") and path not in self._heading:
                    shown.append(("dim", path))
                continue
            style = "dim" if line.startswith("@@") else "text"
            if style == "text" and line[:1] in "+-" and line:
                style = "good" if line[0] == "+" else "bad"
            shown.append((style, text.replace("␉", "    ")))
        shown += [("warn", visible(note, newlines=False)) for note in self._told]
        if self._notes:
            shown.append(("title", "Not changed"))
            shown += [("item", visible(note, newlines=False)) for note in self._notes]
        return shown

    def action_answer(self, value: str) -> None:
        """Write, or edit."""
        if (value == "write" and self.diff) or (value == "edit" and self._edits):
            self.dismiss(value)

    def action_leave(self) -> None:
        """Leave the file as it is."""
        self.dismiss(None)
