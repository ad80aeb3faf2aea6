"""Tab 1: the conversation, with an outline at its left and the verdicts beside their turns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.widget import Widget

from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.front import Said
from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.live_transcript import LiveTranscript
from tui_eval.tui.state.case.transcript_view import (
    OutlineItem,
    Transcript,
    build,
    is_large,
    prepared,
    where_it_failed,
)
from tui_eval.tui.state.runs.run_view import LiveAttempt
from tui_eval.tui.state.runs.search_view import SoughtPlace, find_in
from tui_eval.tui.state.text.lines import Line, Span, fit, width_of
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.text_pane import TextPane

MANY = 1_000
"""Parts from which on a transcript's rows are made in a thread."""


class TranscriptTab(InspectorTab):
    """Outline and text. The text's cursor leads; the outline shows where it is, and the other way
    round while the outline has the keys."""

    DEFAULT_CSS = """
    TranscriptTab Outline { width: 32; border-right: vkey $surface-lighten-2; }
    TranscriptTab.-zoomed Outline { display: none; }
    """

    def foot_of(self, content: CaseContent) -> tuple[str, ...]:
        """What is said just now can be followed."""
        return ("case.follow", "turn.next") if content.running else self.foot

    class VerdictOpened(Message):
        """Enter on a verdict, by its block's key: all of it stands in Assertions."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Marked(Message):
        """Words are marked where a search found them; n and N go on from there."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    def __init__(self, sought: SoughtPlace | None = None) -> None:
        """`sought` is where to begin in the first attempt that is shown."""
        super().__init__()
        self._sought = sought
        self.view = Transcript()
        self._content: CaseContent | None = None
        self._live = LiveTranscript()
        self._generation = 0
        self._again: tuple[CaseContent, int] | None = None

    def compose(self) -> ComposeResult:
        """Outline, text."""
        yield Outline()
        yield TextPane(empty="Nothing was said.")

    @property
    def main(self) -> LinePane:
        """The text."""
        return self.query_one(TextPane)

    @property
    def text(self) -> TextPane:
        """The text."""
        return self.query_one(TextPane)

    def panes(self) -> list[Widget]:
        """The text, then the outline too where it is only hidden for want of room."""
        return [self.text] if self.has_class("-zoomed") else [self.text, self.query_one(Outline)]

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show an attempt's transcript; what a running one has said comes through `show_live`."""
        same_content = self._content is not None and keep
        self._content = content
        if not same_content:
            self._live = LiveTranscript()
            self.text.following = content.running
        if content.attempt is None:
            self.show_live(None)
            return
        self.text.following = self.text.following and keep
        self._generation += 1
        made = content.transcript if self.rendered and not self.only else None
        if made is None and is_large(content.attempt):
            make = partial(prepared, content.attempt, rendered=self.rendered, only_failing=self.only)
            run_in_thread(self.app, make, partial(self._made, self._generation, keep), name="transcript")
            return
        view = made or build(content.attempt, rendered=self.rendered, only_failing=self.only)
        if len(view.blocks) > MANY and not keep:
            laid_out = partial(self._made, self._generation, keep)
            run_in_thread(self.app, partial(_laid_out, self.text, view), laid_out, name="transcript")
            return
        self.view = view
        self._draw(keep=keep)

    def _made(self, generation: int, keep: bool, view: Transcript) -> None:
        if generation == self._generation and stands(self):
            self.view = view
            self._draw(keep=keep)

    def show_live(self, live: LiveAttempt | None) -> None:
        """Show what a running attempt has said so far."""
        content = self._content
        if content is None or content.attempt is not None:
            return
        self.view = self._live.update(live, content.why or content.state)
        self._draw(keep=True)

    def _draw(self, *, keep: bool) -> None:
        self.text.set_blocks(self.view.blocks, keep=keep)
        self.post_message(self.Shown())
        self.query_one(Outline).set_items(self.view.outline)
        if self._sought is not None and self._content is not None and self._content.attempt is not None:
            self._to_sought(self._sought)
        elif self._to_turn_again():
            pass
        elif not keep:
            self._to_failure()
        self._follow()

    def begin_at(self, content: CaseContent, turn: int) -> None:
        """Begin at a turn in the attempt that comes after this one: the case is run again from there."""
        self._again = (content, turn)

    def _to_turn_again(self) -> bool:
        content = self._content
        if self._again is None or content is None or content.attempt is None:
            return False
        before, turn = self._again
        if content.run_id == before.run_id:
            return False
        self._again = None
        blocks = enumerate(self.view.blocks)
        at = next((i for i, one in blocks if one.kind == "turn" and one.turn == turn), None)
        if at is None or content.pointer.case_id != before.pointer.case_id:
            return False
        self.text.jump_to(at)
        return True

    def _to_sought(self, sought: SoughtPlace) -> None:
        """Begin at a place that a search found, once."""
        self._sought = None
        at, words = find_in(self.view.blocks, sought)
        if at is not None:
            self.text.jump_to(at)
        if words:
            self.text.find(words)
            self.post_message(self.Marked(words))

    def _to_failure(self) -> None:
        """Start where it went wrong: at the turn, so that the reply and its first failing verdicts (or the
        error) are seen together."""
        found = where_it_failed(self.view.blocks, self.text.size.height // 2)
        if found is not None:
            self.text.show_through(*found)

    def _follow(self) -> None:
        self.query_one(Outline).follow([block.key for block in self.view.blocks], self.text.block_index)

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        outline = self.query_one(Outline)
        if event.pane is not outline:
            self._follow()
        elif outline.has_focus and event.row < len(outline.items):
            self.text.jump_to_key(outline.items[event.row].key)

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        if isinstance(event.pane, Outline) and event.row < len(self.view.outline):
            self.text.jump_to_key(self.view.outline[event.row].key)
            self.text.focus()
        elif event.pane is self.text:
            block = self.text.block
            if block is not None and block.kind == "verdict":
                self.post_message(self.VerdictOpened(block.key))
            else:
                self.post_message(Said("nothing to unfold here"))

    def has_turn(self, step: int) -> bool:
        """Whether one stands below (or above)."""
        return self.text.place_of(step, ("turn",)) is not None

    def has_call(self, step: int) -> bool:
        """Whether one stands below (or above)."""
        return self.text.place_of(step, ("tool_call", "hand_off")) is not None

    def turn(self, step: int) -> str:
        """To the next or previous turn."""
        if self.text.jump(step, ("turn",)):
            return ""
        return "no later turn" if step > 0 else "no earlier turn"

    def call(self, step: int) -> str:
        """To the next or previous tool call."""
        if self.text.jump(step, ("tool_call", "hand_off")):
            return ""
        return "no later tool call" if step > 0 else "no earlier tool call"


def _laid_out(text: TextPane, view: Transcript) -> Transcript:
    """The same, its rows made at the pane's width."""
    text.prepare(view.blocks)
    return view


# -- The outline of a transcript: turns, tool calls, hand-offs and errors, one row each.


class Outline(LinePane):
    """A list that leads through a transcript. Moving in it moves the text beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.items: Sequence[OutlineItem] = ()

    def set_items(self, items: Sequence[OutlineItem]) -> None:
        """Show other items, keeping the cursor on the same one."""
        key = self.items[self.cursor].key if self.cursor < len(self.items) else None
        self.items = items
        self.set_row_count(len(items))
        at = next((i for i, item in enumerate(items) if item.key == key), None)
        if at is not None:
            self.cursor = at

    def relayout(self) -> None:
        """The width changed."""
        self.set_row_count(len(self.items))

    def row_line(self, row: int) -> Line:
        """Glyph, text and, at the right, the duration."""
        item = self.items[row]
        width = self.text_width
        room = width - cell_len(item.right) - 1
        head: Line = (Span(f"{item.glyph or ' '} ", item.style), Span("  " * item.depth))
        weight = "strong" if item.depth == 0 else item.style
        left = fit((*head, Span(item.text, weight)), room if item.right else width)
        return (
            *left,
            Span(" " * max(width - width_of(left) - cell_len(item.right), 0)),
            Span(item.right, "muted"),
        )

    def follow(self, keys: Sequence[str], index: int) -> None:
        """Put the cursor on the last item at or before a block (`keys`: the blocks' keys in order),
        without notifying anyone."""
        places = {key: i for i, key in enumerate(keys)}
        starts = [places.get(item.key, -1) for item in self.items]
        at = bisect_right(starts, index) - 1
        if 0 <= at < self.row_count and at != self.cursor:
            before, self.cursor = self.cursor, at
            self.show_cursor()
            self.refresh_row(before, at)
