"""Small questions over the screen: a choice by one key, the run dialog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Key as KeyEvent
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui_eval.guard.text import visible


class AskScreen(ModalScreen[str | None]):
    """A question with answers that are one key each; Escape answers nothing."""

    BINDINGS = [Binding("escape", "leave", "leave", show=False)]
    DEFAULT_CSS = """
    AskScreen { align: center middle; background: $background 60%; }
    AskScreen Vertical { width: auto; min-width: 40; max-width: 76; height: auto; max-height: 100%; padding: 1 2; background: $panel; border: round $primary; }
    AskScreen Static { width: auto; min-width: 34; max-width: 70; height: auto; }
    AskScreen.-short Vertical { padding: 0 1; }
    AskScreen.-narrow Vertical { max-width: 100%; }
    AskScreen.-narrow Static { max-width: 56; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]

    def __init__(
        self, question: str, answers: Sequence[tuple[str, str, str]], details: Sequence[str] = ()
    ) -> None:
        """`answers` are (key, value, words)."""
        super().__init__()
        self._question = question
        self._answers = list(answers)
        self._details = list(details)

    def compose(self) -> ComposeResult:
        """The question, details, answers."""
        answers = Text()
        for number, (key, _, words) in enumerate(self._answers):
            answers.append("\n" if number else "")
            answers.append(f"  {key:<5}", style="bold")
            answers.append(words)
        with Vertical():
            yield Static(Text(visible(self._question), style="bold"))
            if self._details:
                yield Static(Text("\n".join(map(visible, self._details))), classes="details")
            yield Static("", markup=False, classes="gap")
            yield Static(answers, classes="answers")

    def on_resize(self) -> None:
        """The details give way where there is no room for them: what can be answered is always seen."""
        for details in self.query(".details"):
            box = self.query_one(Vertical)
            others = [part for part in self.query(Static) if part is not details]
            rest = sum(max(1, part.get_content_height(box.size, self.size, 70)) for part in others)
            details.styles.max_height = max(
                1, self.size.height - rest - (2 if self.has_class("-short") else 4)
            )

    def action_leave(self) -> None:
        """No answer."""
        self.dismiss(None)

    def on_key(self, event: KeyEvent) -> None:
        """One key is the answer."""
        for key, value, _ in self._answers:
            if event.character == key or event.key == key:
                event.stop()
                event.prevent_default()
                self.dismiss(value)
                return
        if event.key != "escape":
            event.stop()
            event.prevent_default()


@dataclass(slots=True)
class RunChoice:
    """What the run dialog asks for. Empty texts leave it to suites and configuration."""

    agents: str = ""
    models: str = ""
    attempts: str = ""
    threshold: str = ""
    concurrency: str = ""
    max_cost: str = ""
    filter: str = ""


FIELDS: tuple[tuple[str, str, str], ...] = (
    ("agents", "agent", "the suite's own; several with commas"),
    ("models", "model", "the agent's own; provider:model, several with commas"),
    ("attempts", "attempts", "what each case says"),
    ("threshold", "must pass", "all; or a share such as 0.8"),
    ("concurrency", "at once", "as configured"),
    ("max_cost", "cost limit", "none; USD"),
    ("filter", "filter", "failed tag:y text"),
)


class RunDialog(ModalScreen[RunChoice | None]):
    """Agent, attempts, limits and filter of the next run, and how much that is."""

    BINDINGS = [
        Binding("escape", "leave", "leave", show=False),
        Binding("ctrl+s", "start", "start", show=False),
    ]
    DEFAULT_CSS = """
    RunDialog { align: center middle; background: $background 60%; }
    RunDialog > Vertical { width: 74; max-width: 100%; height: auto; max-height: 100%; padding: 1 2; background: $panel; border: round $primary; }
    RunDialog Horizontal { height: 1; }
    RunDialog .title { text-style: bold; margin-bottom: 1; }
    RunDialog .label { width: 12; color: $text-muted; }
    RunDialog Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    RunDialog Input:focus { background: $surface-lighten-2; }
    RunDialog .estimate { margin-top: 1; height: auto; }
    RunDialog .keys { color: $text-muted; margin-top: 1; }
    RunDialog.-short > Vertical { padding: 0 1; }
    RunDialog.-short .title { margin: 0; }
    RunDialog.-short .estimate { margin: 0; }
    RunDialog.-short .keys { margin: 0; }
    RunDialog.-short .agents { max-height: 1; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]

    def __init__(
        self, choice: RunChoice, agents: Sequence[str], estimate: Callable[[RunChoice], tuple[str, bool]]
    ) -> None:
        """`estimate` says in words what a choice comes to, and whether it can be started."""
        super().__init__()
        self._choice = choice
        self._agents = list(agents)
        self._estimate = estimate

    def compose(self) -> ComposeResult:
        """One line per field."""
        with Vertical():
            yield Static("Run", classes="title", markup=False)
            for name, label, hint in FIELDS:
                with Horizontal():
                    yield Static(label, classes="label", markup=False)
                    entry = Input(getattr(self._choice, name), placeholder=hint, compact=True, name=name)
                    entry.cursor_blink = False
                    yield entry
            if self._agents:
                names = visible(", ".join(self._agents), newlines=False)
                yield Static(Text(f"agents here: {names}"), classes="keys agents")
            yield Static("", classes="estimate", markup=False)
            yield Static("enter runs   tab next field   esc leaves", classes="keys", markup=False)

    def on_mount(self) -> None:
        """The first field."""
        self._say()
        self.query(Input).first().focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Count anew."""
        if event.input.name:
            setattr(self._choice, event.input.name, event.value.strip())
        self._say()

    def on_input_submitted(self) -> None:
        """Enter runs."""
        self.action_start()

    def on_key(self, event: KeyEvent) -> None:
        """Up and down go from field to field too."""
        if event.key in ("down", "up"):
            event.stop()
            (self.focus_next if event.key == "down" else self.focus_previous)(Input)

    def action_leave(self) -> None:
        """Run nothing."""
        self.dismiss(None)

    def action_start(self) -> None:
        """Run, if that can be done."""
        if self._estimate(self._choice)[1]:
            self.dismiss(self._choice)

    def _say(self) -> None:
        words, fine = self._estimate(self._choice)
        shown: Any = Text(words, style="" if fine else "bold")
        self.query_one(".estimate", Static).update(shown)
