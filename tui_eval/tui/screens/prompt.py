"""The question at the bottom of a screen: find, filter, note. A filter's has a line that helps above it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Paste
from textual.message import Message
from textual.screen import Screen
from textual.suggester import Suggester
from textual.widgets import Input, Static

from tui_eval.guard.text import clip, visible
from tui_eval.tui.state.lists.filtering import Values, completed, offers

GRAMMAR = (
    "failed", "agent:x", "tag:y", "-not", "duration:>5s", '"two words"', "flaky", "differs", "suite:z", "cost:>0.01", "name=keeps it",
)  # fmt: skip
"""What can be typed, the most useful first."""
MOST_OFFERED = 20
_LINE_ENDS = re.compile(r"(?<!\s)[^\S\r\n]*[\r\n]\s*")  # from the first blank on: of many each would be tried


class Completing(Suggester):
    """Offers the text as it could go on."""

    def __init__(self, complete: Callable[[str], str | None]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        """The whole text."""
        return self._complete(value)


class TypedLine(Input):
    """One line to type in. A pasted text is all of its lines, one after the other, not its first alone."""

    def _on_paste(self, event: Paste) -> None:
        event.prevent_default()
        event.stop()
        self.replace(self.pasted(event.text), *self.selection)

    def pasted(self, text: str) -> str:
        """A pasted text as it stands in this line."""
        return _LINE_ENDS.sub(" ", text.strip("\r\n"))


class PromptLine(TypedLine):
    """Tab takes what is offered, as → does."""

    BINDINGS = [Binding("tab", "cursor_right", show=False)]


class Prompt(Vertical):
    """A label and an input. Posts `Typed` while the person types, and `Left` at the end."""

    DEFAULT_CSS = """
    Prompt { height: auto; width: 1fr; dock: bottom; background: $panel; }
    Prompt Horizontal { height: 1; width: 1fr; }
    Prompt .label { width: auto; padding: 0 1; color: $text-accent; text-style: bold; }
    Prompt Input { width: 1fr; background: $panel; border: none; padding: 0; height: 1; }
    Prompt Input:ansi > .input--selection { text-style: reverse; }
    """

    class Typed(Message):
        """The text changed."""

        def __init__(self, purpose: str, text: str) -> None:
            super().__init__()
            self.purpose = purpose
            self.text = text

    class Left(Message):
        """Enter (`kept`) or Escape."""

        def __init__(self, purpose: str, text: str, kept: bool) -> None:
            super().__init__()
            self.purpose = purpose
            self.text = text
            self.kept = kept

    def __init__(
        self,
        purpose: str,
        text: str = "",
        hint: str = "",
        complete: Callable[[str], str | None] | None = None,
        *,
        replaces: bool = True,
    ) -> None:
        """`complete` gives the text with its last word completed, or None. `replaces`: what is typed takes the
        text's place, as in a browser's find; else it goes on from there."""
        super().__init__()
        self._complete = complete
        self.purpose = purpose
        self._text = text
        self._hint = hint
        self._replaces = replaces

    def compose(self) -> ComposeResult:
        """The label and the input."""
        suggester = Completing(self._complete) if self._complete is not None else None
        entry = PromptLine(
            self._text, placeholder=self._hint, compact=True, select_on_focus=False, suggester=suggester
        )
        entry.cursor_blink = False
        with Horizontal():
            yield Static(self.purpose, markup=False, classes="label")
            yield entry

    def on_mount(self) -> None:
        """Keys go to the input."""
        entry = self.query_one(Input)
        entry.focus()
        if self._replaces:
            entry.select_all()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell the list."""
        event.stop()
        self.post_message(self.Typed(self.purpose, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self.post_message(self.Left(self.purpose, event.value, True))

    def leave(self) -> None:
        """Escape."""
        self.post_message(self.Left(self.purpose, self.query_one(Input).value, False))


class FilterPrompt(Prompt):
    """A line above the input says what can be typed, what the word being typed may become, or what is wrong
    with the expression."""

    DEFAULT_CSS = """
    FilterPrompt .help { width: 1fr; height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
    FilterPrompt:ansi .help { text-style: dim; }
    FilterPrompt .help.-wrong { color: $text-error; text-style: none; }
    """

    def __init__(self, text: str, values: Values, saved: Sequence[str]) -> None:
        """`values` is what completes; `saved` the names of saved filters."""
        super().__init__("filter", text, "", partial(completed, values=values))
        self._values = values
        self._saved = [f"@{name}" for name in saved]
        self._wrong = ""

    def compose(self) -> ComposeResult:
        """The help above the rest."""
        yield Static("", markup=False, classes="help")
        yield from super().compose()

    def on_mount(self) -> None:
        """The grammar."""
        super().on_mount()
        self._help()

    def on_resize(self) -> None:
        """What fits now."""
        self._help()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Help with the word being typed."""
        super().on_input_changed(event)
        self._help()

    def tell(self, wrong: str) -> None:
        """What is wrong with the expression; nothing is."""
        if wrong != self._wrong:
            self._wrong = wrong
            self._help()

    def _help(self) -> None:
        for shown in self.query(".help").results(Static):
            found = offers(self.query_one(Input).value, self._values)
            wrong = self._wrong if not found else ""  # a word that is being typed may still become right
            shown.set_class(bool(wrong), "-wrong")
            shown.update(Text(visible(wrong, newlines=False) or self._offered(found)))

    def _offered(self, found: list[str]) -> str:
        words = [visible(clip(word, 40), newlines=False) for word in found[:MOST_OFFERED]]
        tail = "  tab takes the first" if words else ""
        return "  ".join(_that_fit(words or [*self._saved, *GRAMMAR], self.size.width - 2 - len(tail))) + tail


class Prompts:
    """The prompt of one screen, at most one at a time; whoever asks is given what was typed."""

    def __init__(self, screen: Screen[Any], home: Callable[[], Any]) -> None:
        """`home` gives the keys back to the screen when a prompt has been left."""
        self._screen, self._home = screen, home
        self._on_left: Callable[[str, bool], Any] | None = None
        self._on_typed: Callable[[str], Any] | None = None

    @property
    def open(self) -> bool:
        """Whether something is being asked."""
        return bool(self._screen.query(Prompt))

    async def ask(
        self,
        prompt: Prompt,
        on_left: Callable[[str, bool], Any],
        on_typed: Callable[[str], Any] | None = None,
    ) -> None:
        """Ask, unless something is being asked. Ends when the prompt has the focus: keys typed ahead belong to it
        (see `type_ahead`).

        `on_left` is given the text and whether it was kept; where it answers False the prompt stays.
        `on_typed` is given every text on the way there."""
        if not self.open:
            self._on_left, self._on_typed = on_left, on_typed
            await self._screen.mount(prompt)
            self._screen.set_focus(prompt.query_one(Input), scroll_visible=False)

    def leave(self) -> bool:
        """As by escape; False where none is open."""
        prompts = self._screen.query(Prompt)
        if prompts:
            prompts.first().leave()
        return bool(prompts)

    def complain(self, words: str) -> bool:
        """Say what is wrong with the filter where it is typed; False where none is being asked for."""
        prompts = self._screen.query(FilterPrompt)
        if prompts:
            prompts.first().tell(words)
        return bool(prompts)

    def typed(self, event: Prompt.Typed) -> None:
        """For the screen, which hears of it."""
        event.stop()
        if self._on_typed is not None:
            self._on_typed(event.text)

    def left(self, event: Prompt.Left) -> None:
        """For the screen, which hears of it."""
        event.stop()
        if self._on_left is None or self._on_left(event.text, event.kept) is False:
            return
        for prompt in self._screen.query(Prompt):
            prompt.remove()
        self._home()


def _that_fit(words: Sequence[str], width: int) -> list[str]:
    """As many of the words as fit in one line with two spaces between them, the first at any rate."""
    taken: list[str] = []
    for word in words:
        width -= cell_len(word) + 2
        if taken and width < -2:
            break
        taken.append(word)
    return taken
