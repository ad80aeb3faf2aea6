"""Which agent? Asked once where a suite names one that is not configured, and for a first suite."""

from __future__ import annotations

from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui_eval.config.entry_line import HINT, EntryError, entry_for
from tui_eval.guard.text import clip, visible
from tui_eval.tui.screens.prompt import TypedLine


class AgentLine(ModalScreen[Any]):
    """A question, a line to type an agent in, what may be typed. Those derived say what becomes of the line."""

    BINDINGS = [Binding("escape", "leave", "leave", show=False)]
    DEFAULT_CSS = """
    AgentLine { align: center middle; background: $background 60%; }
    AgentLine > Vertical { width: 76; max-width: 100%; height: auto; max-height: 100%; padding: 1 2; background: $panel; border: round $primary; }
    AgentLine .title { text-style: bold; }
    AgentLine Static { height: auto; }
    AgentLine Input { height: 1; border: none; padding: 0; margin: 1 0; background: $surface-lighten-2; }
    AgentLine .keys { color: $text-muted; }
    AgentLine .said.-wrong { color: $text-error; text-style: bold; }
    AgentLine.-short > Vertical { padding: 0 1; }
    AgentLine.-short Input { margin: 0; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]
    PLACEHOLDER = "openai:gpt-4.1"
    KEYS = "enter writes it   esc not now"

    def __init__(self, title: str, words: str) -> None:
        super().__init__()
        self._heading = visible(title, newlines=False)
        self._words = visible(words)

    def compose(self) -> ComposeResult:
        """The question, a line to type in, what may be typed."""
        with Vertical():
            yield Static(self._heading, classes="title", markup=False)
            yield Static(self._words, markup=False)
            entry = TypedLine(placeholder=self.PLACEHOLDER, compact=True)
            entry.cursor_blink = False
            yield entry
            yield Static(HINT, classes="keys said", markup=False)
            yield Static(self.KEYS, classes="keys", markup=False)

    def on_mount(self) -> None:
        """Keys go to the line."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take it, or say what may be typed."""
        try:
            self.dismiss(self.taken(event.value.strip()))
        except EntryError as error:
            said = self.query_one(".said", Static)
            said.set_class(True, "-wrong")
            said.update(Text(visible(str(error))))

    def taken(self, text: str) -> Any:
        """What the line means.

        Raises:
            EntryError: nothing.
        """
        raise NotImplementedError

    def action_leave(self) -> None:
        """Not now."""
        self.dismiss(None)


class AgentQuestion(AgentLine):
    """Answers with the agent's entry; None: not now."""

    KEYS = "enter writes it there and runs   esc not now"

    def __init__(self, name: str, file: str, cases: int, named: bool = True) -> None:
        """`named`: whether a suite calls it so; else it is what suites ask that name none."""
        many = f"{cases:,} cases ask" if cases != 1 else "The case asks"
        none = f"{cases:,} cases name" if cases != 1 else "The case names"
        super().__init__(
            f"Which agent is {clip(name, 60)}?",
            f"{many} for it, and there is none in {clip(file, 60)}."
            if named
            else f"{none} no agent; one called {clip(name, 60)} is asked then.",
        )

    def taken(self, text: str) -> dict[str, str]:
        """The agent's entry."""
        return entry_for(text)


class FirstAgent(AgentLine):
    """Answers with what was typed, empty for a scripted agent; None: not now."""

    PLACEHOLDER = "a scripted one: no model, no key, no network"

    def __init__(self, *, servers: str = "") -> None:
        """`servers`: what a plain address means for the suite's format."""
        words = "Leave the line empty to begin with a scripted one, which answers from a file."
        super().__init__("Which agent is to be tested?", f"{words}{servers and chr(10)}{servers}")

    def taken(self, text: str) -> str:
        """The text, where it names an agent."""
        if text:
            entry_for(text)
        return text
