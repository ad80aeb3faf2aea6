"""Over the screen: a question that one key answers, and a change to a file, shown as a diff before it is written."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Click
from textual.events import Key as KeyEvent
from textual.screen import ModalScreen
from textual.widgets import Static

from tui_eval.guard.text import visible
from tui_eval.tui.front import Question
from tui_eval.tui.state.text.fitting import fit, wrap
from tui_eval.tui.widgets.lines_pane import LinesPane

PAUSE = 1.0
"""Seconds without a key after which a question that nobody asked for is taken to have been seen."""
TOO_SOON = "  What was typed before this could be read is no answer."
MOST_LINES = 12
"""Lines of a list in a question, where there is room."""
RENEWED = 0.5
"""Seconds after which a question about what goes on is asked anew."""
_HANGING = "    "


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
        after_reading: Collection[str] = (),
        unasked: bool = False,
        renewed: Callable[[], Question] | None = None,
    ) -> None:
        """`answers` are (key, value, words). `renewed` gives the question as it stands by now, where it is
        about what goes on. `items` are shown whole, wrapped; where there is no room for all of their lines
        these are counted, and moved through. The values of `after_reading` can be answered once the last line
        has been in sight. A question that came `unasked` takes no key before a pause: what is typed on was
        meant for what lies below it."""
        super().__init__()
        self._typed = time.monotonic() if unasked else -math.inf
        """When the last key came that was not meant for the question."""
        self._question = question
        self._answers = list(answers)
        self._details = list(details)
        self._items = [visible(item, newlines=False) for item in items]
        self._first = 0
        """The first line of the items in sight."""
        self._page = 1
        self._lines: tuple[int, list[str]] = (0, [])
        """The items' lines, and the width that they were wrapped at."""
        self._after_reading = frozenset(after_reading)
        self._all_read = False
        self._told_to_read = False
        self._renewed = renewed

    def compose(self) -> ComposeResult:
        """The question, details, answers."""
        with Vertical():
            yield Static(self._asked, classes="question")
            if self._details or self._renewed is not None:
                details = Static(self._said, classes="details")
                details.display = bool(self._details)
                yield details
            if self._items:
                yield Static("", markup=False, classes="items")
            yield Static("", markup=False, classes="gap")
            yield Static(self._offered, classes="answers")

    def on_mount(self) -> None:
        """What goes on changes what is asked; the pause begins when it can be seen."""
        if self._typed > -math.inf:
            self.call_after_refresh(self._painted)
        if self._renewed is not None:
            self.set_interval(RENEWED, self._renew)

    def _painted(self) -> None:
        if self._typed > -math.inf:
            self._typed = max(self._typed, time.monotonic())

    def _renew(self) -> None:
        assert self._renewed is not None
        asked = self._renewed()
        now = asked.question, list(asked.answers), list(asked.details)
        if now == (self._question, self._answers, self._details):
            return
        self._question, self._answers, self._details = now
        for name, text in (("question", self._asked), ("details", self._said), ("answers", self._offered)):
            self.query_one(f".{name}", Static).update(text)
        self.query_one(".details").display = bool(self._details)
        self.on_resize()

    @property
    def _asked(self) -> Text:
        return Text(visible(self._question), style="bold")

    @property
    def _said(self) -> Text:
        return Text("\n".join(map(visible, self._details)))

    @property
    def _offered(self) -> Text:
        answers = Text()
        for number, (key, _, words) in enumerate(self._answers):
            answers.append("\n" if number else "")
            shown = key if self._only is None else "enter "
            answers.append(f"  {shown:<5}", style="bold")
            answers.append(words)
        return answers

    @property
    def _only(self) -> str | None:
        """The key of the answer that is offered alone: enter takes it."""
        return self._answers[0][0] if len(self._answers) == 1 else None

    def on_resize(self) -> None:
        """Items, else details give way where there is no room for them: what can be answered is always seen."""
        for part in self.query(".items" if self._items else ".details").results(Static):
            others = [other for other in self.query(Static) if other is not part]
            # The classes of the breakpoints may come later than this.
            width = min(56 if self.size.width < 80 else 70, max(self.size.width - 6, 10))
            rest = sum(
                max(1, other.get_content_height(self.query_one(Vertical).size, self.size, width))
                for other in others
            )
            room = max(1, self.size.height - rest - (2 if self.size.height < 24 else 4))
            if self._items:
                part.update(Text("\n".join(self._listed(min(room, MOST_LINES), width))))
            else:
                part.styles.max_height = room

    def _listed(self, room: int, width: int) -> list[str]:
        """So many of the items' lines; the last says how many more there are."""
        if self._lines[0] != width:
            self._lines = (width, [line for item in self._items for line in _wrapped(item, width)])
        lines = self._lines[1]
        self._page = len(lines) if len(lines) <= room else max(room - 1, 1)
        left = len(lines) - self._page
        self._first = min(max(self._first, 0), left)
        below = left - self._first
        self._all_read = self._all_read or not below
        shown = lines[self._first : self._first + self._page]
        if not left:
            return shown
        more = f"and {left:,} more {'line' if left == 1 else 'lines'} (j k: {self._first:,} above)"
        if self._told_to_read and not self._all_read:
            more = f"first read on: {below:,} more {'line' if below == 1 else 'lines'} (pgdn)"
        return [*shown, fit(f"  {more}", width)]

    def action_leave(self) -> None:
        """No answer."""
        self.dismiss(None)

    def on_key(self, event: KeyEvent) -> None:
        """One key is the answer."""
        if self._too_soon(event.time):
            event.stop()
            event.prevent_default()
            return
        for key, value, _ in self._answers:
            if event.character == key or event.key == key or (event.key == "enter" and key == self._only):
                event.stop()
                event.prevent_default()
                self._take(value)
                return
        if self._items and (place := self._moved(event.key)) is not None:
            self._first = place
            self.on_resize()
        if event.key != "escape":
            event.stop()

    def on_click(self, event: Click) -> None:
        """Where the app has the mouse, a click on an answer is its key."""
        place = event.get_content_offset(self.query_one(".answers"))
        if place is None or not place.y < len(self._answers) or self._too_soon(event.time):
            return
        key, value, _ = self._answers[place.y]
        self._take(None if key == "esc" else value)

    def _too_soon(self, at: float) -> bool:
        """Whether what comes now was meant for what lies below the question."""
        if at - self._typed < PAUSE:
            self._typed = max(self._typed, at)
            self.query_one(".gap", Static).update(TOO_SOON)
            return True
        self._typed = -math.inf
        return False

    def _take(self, value: str | None) -> None:
        """This is the answer, where what is asked about was read."""
        if value in self._after_reading and self._items and not self._all_read:
            self._told_to_read = True
            self.on_resize()
        else:
            self.dismiss(value)

    def _moved(self, key: str) -> int | None:
        """The first line in sight after this key; None where it moves nothing."""
        if key in ("g", "home"):
            return 0
        if key in ("G", "end"):
            return len(self._lines[1])
        half = max(self._page // 2, 1)
        steps = {
            "j": 1, "down": 1, "k": -1, "up": -1, "ctrl+d": half, "ctrl+u": -half,
            "pagedown": self._page, "space": self._page, "pageup": -self._page,
        }  # fmt: skip
        return self._first + steps[key] if key in steps else None


def _wrapped(item: str, width: int) -> list[str]:
    """An item's lines, those after the first set in; nothing of it is left out."""
    first, *rest = wrap(item, max(width - len(_HANGING), 1))
    return [f"  {first}", *(f"{_HANGING}{line}" for line in rest)]


class ChangeScreen(ModalScreen[str | None]):
    """A change to a file before it is written; answers `write`, `edit` (where `edits`) or nothing."""

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
        """The diff and what else is said, a style and a text each."""
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
