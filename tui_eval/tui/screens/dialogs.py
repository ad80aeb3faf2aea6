"""A question over the screen, answered by one key."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import chop_cells
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Key as KeyEvent
from textual.screen import ModalScreen
from textual.widgets import Static

from tui_eval.guard.text import visible

MOST_ITEMS = 12
"""Lines of a list in a question, where there is room."""


class AskScreen(ModalScreen[str | None]):
    """A question with answers that are one key each; Escape answers nothing."""

    BINDINGS = [Binding("escape", "leave", "leave", show=False)]
    DEFAULT_CSS = """
    AskScreen { align: center middle; background: $background 60%; }
    AskScreen Vertical { width: auto; min-width: 40; max-width: 76; height: auto; max-height: 100%; padding: 1 2; background: $panel; border: round $primary; }
    AskScreen Static { width: auto; min-width: 34; max-width: 70; height: auto; }
    AskScreen .answers, AskScreen .items { text-wrap: nowrap; text-overflow: ellipsis; }
    AskScreen.-short Vertical { padding: 0 1; }
    AskScreen.-narrow Vertical { max-width: 100%; }
    AskScreen.-narrow Static { max-width: 56; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]

    def __init__(
        self,
        question: str,
        answers: Sequence[tuple[str, str, str]],
        details: Sequence[str] = (),
        items: Sequence[str] = (),
    ) -> None:
        """`answers` are (key, value, words); `items` begin each on a line of its own and are never cut: what is
        agreed to can be read. Where there is no room for all their lines these are counted, and moved through."""
        super().__init__()
        self._question = question
        self._answers = list(answers)
        self._details = list(details)
        self._items = [visible(item, newlines=False) for item in items]
        self._first = 0
        """The first line of the items in sight."""

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
            if self._items:
                yield Static("", markup=False, classes="items")
            yield Static("", markup=False, classes="gap")
            yield Static(answers, classes="answers")

    def on_resize(self) -> None:
        """Items, else details give way where there is no room for them: what can be answered is always seen."""
        for part in self.query(".items" if self._items else ".details").results(Static):
            others = [other for other in self.query(Static) if other is not part]
            # The classes of the breakpoints may come later than this.
            width = min(56 if self.size.width < 80 else 70, max(self.size.width - 4, 10))
            rest = sum(
                max(1, other.get_content_height(self.query_one(Vertical).size, self.size, width))
                for other in others
            )
            room = max(1, self.size.height - rest - (2 if self.size.height < 24 else 4))
            if self._items:
                part.update(Text("\n".join(self._listed(min(room, MOST_ITEMS), width))))
            else:
                part.styles.max_height = room

    def _listed(self, lines: int, width: int) -> list[str]:
        """The items in so many lines; the last says how many more there are."""
        wrapped: list[str] = []
        for item in self._items:
            first, *rest = chop_cells(item, max(width - 4, 1)) or [""]
            wrapped += [f"  {first}", *(f"    {part}" for part in rest)]
        many = len(wrapped) if len(wrapped) <= lines else max(lines - 1, 1)
        left = len(wrapped) - many
        self._first = min(max(self._first, 0), left)
        shown = wrapped[self._first : self._first + many]
        more = "line" if left == 1 else "lines"
        return [*shown, f"  and {left:,} more {more} (j k: {self._first:,} above)"] if left else shown

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
        step = {"j": 1, "down": 1, "k": -1, "up": -1}.get(event.key, 0)
        if step and self._items:
            self._first += step
            self.on_resize()
        if event.key != "escape":
            event.stop()
            event.prevent_default()
