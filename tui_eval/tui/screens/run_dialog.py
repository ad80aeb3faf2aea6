"""The run dialog: agent, attempts, limits and filter of the next run, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Key as KeyEvent
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui_eval.guard.spelling import some_of, within
from tui_eval.guard.text import visible
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.screens.prompt import Completing, TypedLine
from tui_eval.tui.state.run_requests import RunChoice

AGENTS_ROOM = 130
"""Characters for the agents' names: below them stands what the run would cost, which is to be seen."""
FIELDS: tuple[tuple[str, str, str], ...] = (
    ("agents", "agent", "the suite's own; several with commas"),
    ("models", "model", "the agent's own; several with commas"),
    ("attempts", "attempts", "what each case says"),
    ("threshold", "must pass", "all; or a share such as 0.8"),
    ("concurrency", "at once", "as configured"),
    ("max_cost", "cost limit", "none; USD"),
    ("answers", "answers", "as configured; cache: kept; ask: no cache"),
    ("on", "on", "as configured; here, ray, or an address"),
    ("filter", "filter", "failed tag:y text"),
)


def name_completed(text: str, names: Sequence[str]) -> str | None:
    """A list of names with its last one completed; None where there is nothing to add."""
    begun = text.rpartition(",")[2].lstrip()
    if not begun:
        return None
    return next(
        (text + name[len(begun) :] for name in names if name.startswith(begun) and name != begun), None
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
    RunDialog .estimate.-wrong { color: $text-error; text-style: bold; }
    RunDialog .keys { color: $text-muted; margin-top: 1; }
    RunDialog.-short > Vertical { padding: 0 1; }
    RunDialog.-short .title { margin: 0; }
    RunDialog.-short .estimate { margin: 0; }
    RunDialog.-short .keys { margin: 0; }
    RunDialog.-short .agents { text-wrap: nowrap; text-overflow: ellipsis; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]
    """With blanks between its parts it has 21 lines, and 23 where agents and estimate take two each."""

    def __init__(
        self,
        choice: RunChoice,
        agents: Sequence[str],
        estimate: Callable[[RunChoice], tuple[str, bool]],
        what: str = "",
        beside: bool = False,
    ) -> None:
        """`estimate` says in words what a choice comes to, and whether it can be started, `beside` the app
        (in a thread) where that takes its time; `what` which cases it is about."""
        super().__init__()
        self._beside = beside
        self._at_work = False
        """Whether a thread counts."""
        self._due = False
        """Whether another choice was typed meanwhile."""
        self._starts = False
        """Whether enter was pressed meanwhile."""
        self._fine = False
        self._what = what
        self.choice = choice
        self._agents = list(agents)
        self._estimate = estimate

    def compose(self) -> ComposeResult:
        """One line per field."""
        with Vertical():
            yield Static(f"Run {self._what}".rstrip(), classes="title", markup=False)
            for name, label, hint in FIELDS:
                with Horizontal():
                    yield Static(label, classes="label", markup=False)
                    entry = TypedLine(
                        getattr(self.choice, name),
                        placeholder=hint,
                        compact=True,
                        name=name,
                        suggester=Completing(self._agent) if name == "agents" else None,
                    )
                    entry.cursor_blink = False
                    yield entry
            if self._agents:
                names = some_of(self._agents, within(self._agents, AGENTS_ROOM))
                yield Static(Text(f"agents here: {names}"), classes="keys agents")
            yield Static("", classes="estimate", markup=False)
            yield Static(classes="keys named", markup=False)

    def _agent(self, text: str) -> str | None:
        return name_completed(text, self._agents)

    def on_mount(self) -> None:
        """The first field."""
        self._say()
        self.query(Input).first().focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Count anew."""
        if event.input.name:
            setattr(self.choice, event.input.name, event.value.strip())
        self._starts = False
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
        if self._at_work:
            self._starts = True
        elif self._fine:
            self.dismiss(self.choice)

    def _say(self) -> None:
        more = "→ completes   " if self._agent(self.choice.agents) is not None else ""
        self.query_one(".named", Static).update(f"enter runs   tab next field   {more}esc leaves")
        if self._at_work:
            self._due = True
        elif self._beside:
            self._at_work = True
            self._tell("counting", True)
            count = partial(self._estimate, replace(self.choice))
            run_in_thread(self.app, count, self._counted, self._not_counted, name="estimate")
        else:
            self._tell(*self._estimate(self.choice))

    def _counted(self, told: tuple[str, bool]) -> None:
        """The thread has counted; once more where another choice was typed."""
        self._at_work = False
        if not stands(self):
            return
        if self._due:
            self._due = False
            self._say()
            return
        self._tell(*told)
        if self._starts:
            self._starts = False
            self.action_start()

    def _not_counted(self, error: Exception) -> None:
        self._counted((str(error), False))

    def _tell(self, words: str, fine: bool) -> None:
        self._fine = fine
        shown = self.query_one(".estimate", Static)
        shown.set_class(not fine, "-wrong")
        shown.update(Text(visible(words, newlines=False)))
