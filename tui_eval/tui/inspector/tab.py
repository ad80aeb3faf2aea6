"""What every tab of the inspector offers to the screen; most of it means its main text pane. One that
is nothing but this pane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget

from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.text.blocks import whole_text
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.text_pane import TextPane

REST = 0.1
"""Seconds for which a cursor rests before what stands below it is drawn."""


class InspectorTab(Horizontal):
    """One tab. `show` gives it an attempt; it draws it when it is in front."""

    DEFAULT_CSS = """
    InspectorTab { height: 1fr; width: 1fr; }
    """
    only = False
    """Only what matters is shown."""
    rendered = True
    """Texts are made readable rather than shown as they came."""
    foot: tuple[str, ...] = ("case.difference", "turn.next")
    """Ids of keys that stand first in the footer while the tab is in front."""
    foot_words: Mapping[str, str] = MappingProxyType({})
    """What keys of the footer do here, by their ids, where that is not what the table says."""

    _waiting: tuple[CaseContent, bool] | None = None

    class Shown(Message):
        """What was read is shown: other keys may do something now."""

    def foot_of(self, content: CaseContent) -> tuple[str, ...]:
        """Those that do something with this attempt: none where there is nothing of it yet."""
        return () if content.running else self.foot

    def present(self, content: CaseContent, *, keep: bool) -> None:
        """`show`, as soon as the tab has a size: rows are laid out to a width."""
        if self.size.width:
            self._waiting = None
            self.show(content, keep=keep)
        else:
            before = self._waiting  # what was opened anew stays so, whatever of it is read meanwhile
            self._waiting = (content, keep and (before is None or before[1]))

    def on_resize(self) -> None:
        """The first size."""
        if self._waiting is not None and self.size.width:
            (content, keep), self._waiting = self._waiting, None
            self.show(content, keep=keep)

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show an attempt; `keep` leaves the cursor where it was (the same attempt, again)."""
        raise NotImplementedError

    @property
    def main(self) -> LinePane:
        """The pane that has the keys when the tab comes to the front."""
        raise NotImplementedError

    @property
    def text(self) -> TextPane | None:
        """The pane that is searched and wrapped."""
        return None

    def panes(self) -> list[Widget]:
        """What tab goes through: the panes that are shown and take keys."""
        return [pane for pane in self.query(LinePane) if pane.display and pane.can_focus]

    def turn(self, step: int) -> str:
        """To the next or previous turn; what to say where there is none."""
        return "no turns here"

    def call(self, step: int) -> str:
        """To the next or previous tool call; what to say where there is none."""
        return "no tool calls here"

    def has_turn(self, step: int) -> bool:
        """Whether there is a next (or previous) turn to go to."""
        return False

    def has_call(self, step: int) -> bool:
        """Whether there is a next (or previous) tool call to go to."""
        return False

    @property
    def searching(self) -> bool:
        """Whether a search goes on in a thread."""
        return self.text is not None and self.text.searching

    def find(self, query: str) -> int:
        """Look for a text; how often it is there."""
        return self.text.find(query) if self.text is not None else 0

    def find_next(self, step: int) -> tuple[int, int]:
        """To the next or previous place; its number and how many there are."""
        return self.text.find_next(step) if self.text is not None else (0, 0)

    def toggle_wrap(self) -> str:
        """Wrap lines or not; what to say."""
        if self.text is None:
            return ""
        return "lines wrap" if self.text.toggle_wrap() else "lines do not wrap: ← → go sideways"

    def zoom(self) -> None:
        """Give the main pane the whole tab, or take it back."""
        self.toggle_class("-zoomed")

    def whole_text(self) -> str:
        """Everything in it, for the pager and the clipboard."""
        return self.text_maker()()

    def text_maker(self) -> Callable[[], str]:
        """What makes all of it as it stands now; to be called in a thread, as it may be megabytes or millions
        of cells."""
        if self.text is not None:
            return partial(whole_text, list(self.text.blocks))
        text = self.main.rows_text()
        return lambda: text


class TextTab(InspectorTab):
    """The pane has the keys, is searched and wrapped; `EMPTY` stands in it while there is nothing to show."""

    EMPTY: ClassVar[str]

    def compose(self) -> ComposeResult:
        """The pane."""
        yield TextPane(empty=self.EMPTY)

    @property
    def main(self) -> LinePane:
        """The pane."""
        return self.query_one(TextPane)

    @property
    def text(self) -> TextPane:
        """The pane."""
        return self.query_one(TextPane)
