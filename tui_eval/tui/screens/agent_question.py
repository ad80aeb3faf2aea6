"""Which agent? Asked once where a suite names one that is not configured."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui_eval.guard.text import clip, visible
from tui_eval.tui.state.agent_entry import HINT, AgentEntryError, entry_for


class AgentQuestion(ModalScreen[dict[str, str] | None]):
    """Answers with the agent's entry; None: not now."""

    BINDINGS = [Binding("escape", "leave", "leave", show=False)]
    DEFAULT_CSS = """
    AgentQuestion { align: center middle; background: $background 60%; }
    AgentQuestion > Vertical { width: 76; max-width: 100%; height: auto; padding: 1 2; background: $panel; border: round $primary; }
    AgentQuestion .title { text-style: bold; }
    AgentQuestion Static { height: auto; }
    AgentQuestion Input { height: 1; border: none; padding: 0; margin: 1 0; background: $surface-lighten-2; }
    AgentQuestion .keys { color: $text-muted; }
    AgentQuestion.-short > Vertical { padding: 0 1; }
    AgentQuestion.-short Input { margin: 0; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]

    def __init__(self, name: str, file: str, cases: int) -> None:
        super().__init__()
        self._name = visible(clip(name, 60), newlines=False)
        self._file = visible(clip(file, 60), newlines=False)
        self._cases = cases

    def compose(self) -> ComposeResult:
        """The question, a line to type in, what may be typed."""
        with Vertical():
            many = f"{self._cases:,} cases ask" if self._cases != 1 else "The case asks"
            yield Static(f"Which agent is {self._name}?", classes="title", markup=False)
            yield Static(f"{many} for it, and there is none in {self._file}.", markup=False)
            entry = Input(placeholder="openai:gpt-4.1", compact=True)
            entry.cursor_blink = False
            yield entry
            yield Static(HINT, classes="keys said", markup=False)
            yield Static("enter writes it there and runs   esc not now", classes="keys", markup=False)

    def on_mount(self) -> None:
        """Keys go to the line."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take it, or say what may be typed."""
        try:
            self.dismiss(entry_for(event.value))
        except AgentEntryError as error:
            self.query_one(".said", Static).update(str(error))

    def action_leave(self) -> None:
        """Not now."""
        self.dismiss(None)
