"""Where a conversation is saved as a case: its format, file and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Key as KeyEvent
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui_eval.guard.text import visible
from tui_eval.tui.screens.prompt import TypedLine
from tui_eval.tui.state.case.copying import SaveChoice, SaveOffer

LOW = 20
"""Lines of the screen below which the dialog has no empty ones at its edges."""


class FormatRow(Static, can_focus=True):
    """One of the formats, changed by left and right or space."""

    BINDINGS = [
        Binding("left,h", "change(-1)", show=False),
        Binding("right,l,space", "change(1)", show=False),
        Binding("enter", "screen.save", show=False),
    ]

    def __init__(self, form: str, titles: Mapping[str, str]) -> None:
        """`titles` are what the formats that there are, are called."""
        super().__init__("", markup=False)
        self.form = form
        self._titles = titles

    def on_mount(self) -> None:
        """Show it."""
        self.update(Text(f"‹ {self._titles[self.form]} ›"))

    def action_change(self, step: int) -> None:
        """The next format."""
        formats = list(self._titles)
        self.form = formats[(formats.index(self.form) + step) % len(formats)]
        self.on_mount()
        screen = self.screen
        if isinstance(screen, SaveDialog):
            screen.format_changed(self.form)


class SaveDialog(ModalScreen[SaveChoice | None]):
    """Format, file and name; what will be written is shown as a change afterwards."""

    BINDINGS = [
        Binding("escape", "leave", "leave", show=False),
        Binding("ctrl+s", "save", "save", show=False),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW, "-high")]
    DEFAULT_CSS = """
    SaveDialog { align: center middle; background: $background 60%; }
    SaveDialog > Vertical { width: 100%; max-width: 90; height: auto; max-height: 100%; padding: 1 2; background: $panel; border: round $primary; }
    SaveDialog Horizontal { height: 1; }
    SaveDialog .title { text-style: bold; margin-bottom: 1; }
    SaveDialog .label { width: 8; color: $text-muted; }
    SaveDialog.-low > Vertical { padding: 0 1; }
    SaveDialog FormatRow { width: 1fr; height: 1; }
    SaveDialog FormatRow:focus { background: $surface-lighten-2; }
    SaveDialog FormatRow:ansi:focus { text-style: reverse; }
    SaveDialog Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    SaveDialog Input:focus { background: $surface-lighten-2; }
    SaveDialog .of-file { width: 1fr; height: 1; color: $text-muted; }
    SaveDialog .problem { color: $text-error; height: auto; margin-top: 1; }
    SaveDialog .keys { color: $text-muted; margin-top: 1; height: auto; }
    """

    def __init__(
        self,
        offer: SaveOffer,
        problem: str = "",
    ) -> None:
        """`problem`: why what was typed before cannot be."""
        super().__init__()
        self._offer, self._problem = offer, problem
        self._choice = replace(offer.choice)

    @property
    def form(self) -> str:
        """The format that is chosen."""
        return self._choice.form

    def compose(self) -> ComposeResult:
        """A line for each."""
        with Vertical():
            yield Static("Save the conversation as a case", classes="title", markup=False)
            with Horizontal():
                yield Static("format", classes="label", markup=False)
                yield FormatRow(self._choice.form, self._offer.titles)
            for label, value in (("file", self._choice.file), ("name", self._choice.name)):
                with Horizontal():
                    yield Static(label, classes="label", markup=False)
                    entry = TypedLine(value, compact=True, name=label, select_on_focus=False)
                    entry.cursor_blink = False
                    yield entry
                    if label == "name":
                        yield Static("that of its file", classes="of-file", markup=False)
            yield Static(visible(self._problem, newlines=False), classes="problem", markup=False)
            yield Static(classes="keys", markup=False)

    def on_mount(self) -> None:
        """The file first: the format is the case's own."""
        self.query_one(".problem").display = bool(self._problem)
        self.query(Input).first().focus()
        self._name_or_none()
        self.call_after_refresh(self._to_the_ends)

    def _name_or_none(self) -> None:
        """Nobody is asked for a name that no file of the format can hold."""
        by_file = self._choice.form in self._offer.by_file
        self.query(Input).last().display = not by_file
        self.query_one(".of-file").display = by_file

    def on_descendant_focus(self) -> None:
        """What the keys do differs from line to line."""
        on_format = isinstance(self.focused, FormatRow)
        keys = "enter shows the change  " + ("← → format  " if on_format else "") + "tab ↓ ↑ line  esc leaves"
        words = f"a file that exists gets the case added ({', '.join(self._offer.several)})\n"
        self.query_one(".keys", Static).update(Text(words + keys))

    def _to_the_ends(self) -> None:
        """Of texts longer than their lines the end is in sight, where the cursor is."""
        for entry in self.query(Input):
            entry.cursor_position = 0
            entry.action_end()

    def format_changed(self, form: str) -> None:
        """Another format has another kind of file."""
        self._choice.form = form
        self.query(Input).first().value = self._offer.files[form]
        self._name_or_none()
        self.call_after_refresh(self._to_the_ends)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_save()

    def on_key(self, event: KeyEvent) -> None:
        """Up and down go from line to line too."""
        if event.key in ("down", "up"):
            event.stop()
            (self.focus_next if event.key == "down" else self.focus_previous)("Input, FormatRow")

    def action_save(self) -> None:
        """Go on with what was typed."""
        values = {str(entry.name): entry.value.strip() for entry in self.query(Input)}
        if not values["file"] or not values["name"]:
            problem = self.query_one(".problem", Static)
            problem.update(Text("file and name are needed"))
            problem.display = True
            return
        self.dismiss(SaveChoice(self._choice.form, values["file"], values["name"]))

    def action_leave(self) -> None:
        """Save nothing."""
        self.dismiss(None)
