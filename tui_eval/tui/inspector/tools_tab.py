"""Tab 2: the tool calls, and the selected one's arguments and result."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import MappingProxyType

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer

from tui_eval.model import Attempt
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.front import Said
from tui_eval.tui.inspector.tab import REST, InspectorTab
from tui_eval.tui.state.case.agent_tree import answer_to
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.entry_blocks import entry_block, prompt_blocks
from tui_eval.tui.state.case.span_view import span_blocks, spans_of
from tui_eval.tui.state.case.tools_view import CallRow, detail, rows
from tui_eval.tui.state.case.transcript_view import is_large
from tui_eval.tui.state.case.verdict_lines import GLYPHS
from tui_eval.tui.state.case.waterfall import (
    SpanBar,
    bar_line,
    bars,
    calls_by_agent,
    label_width,
    members,
    scale_line,
    span_of,
    unfolded,
)
from tui_eval.tui.state.text.block_layout import find_all
from tui_eval.tui.state.text.blocks import Block, with_heads
from tui_eval.tui.state.text.formatting import duration, size
from tui_eval.tui.state.text.lines import Line, Span, fit, pattern, width_of
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane
from tui_eval.tui.widgets.text_pane import AT_ONCE, SEARCHING, TELL, TextPane

MANY = 400
"""Entries of a transcript from which on its calls are made ready in a thread."""


class ToolsTab(InspectorTab):
    """Table (or bars, spans among them) above, one call below; `) (` and `} {` go from call to call."""

    DEFAULT_CSS = """
    ToolsTab Vertical { height: 1fr; }
    ToolsTab CallTable { height: 3; }
    ToolsTab TextPane { height: 1fr; }
    ToolsTab.-zoomed CallTable, ToolsTab.-zoomed LineLabel, ToolsTab.-empty CallTable, ToolsTab.-empty LineLabel { display: none; }
    """

    foot = ("case.sql", "call.next")
    foot_words = MappingProxyType(
        {"case.sql": "times", "call.next": "next call", "call.previous": "prev call"}
    )

    def foot_of(self, content: CaseContent) -> tuple[str, ...]:
        """Without calls there is nothing to go through."""
        attempt = content.attempt
        kinds = {entry.kind for entry in attempt.transcript} if attempt is not None else ()
        called = "tool_call" in kinds or "hand_off" in kinds
        return super().foot_of(content) if called else ()

    def __init__(self) -> None:
        super().__init__()
        self._content: CaseContent | None = None
        self._attempt: Attempt | None = None
        self._calls: list[CallRow] = []
        self.timed = False
        self._resting: Timer | None = None
        self._generation = 0
        self._detailing = 0
        self._detailed: tuple[CallRow | None, SpanBar | None] = (None, None)
        self._query = ""
        self._search = 0
        self._looking = False
        self._then = 0
        self._found_in: CallRow | None = None

    def compose(self) -> ComposeResult:
        """Titles, calls, detail."""
        with Vertical():
            yield LineLabel()
            yield CallTable()
            yield TextPane(empty="Tool calls stand here when the attempt is done.")

    @property
    def table(self) -> CallTable:
        """The calls."""
        return self.query_one(CallTable)

    @property
    def main(self) -> LinePane:
        """The calls, or the text where there are none."""
        return self.text if self.has_class("-empty") or self.has_class("-zoomed") else self.table

    @property
    def text(self) -> TextPane:
        """The selected call."""
        return self.query_one(TextPane)

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show an attempt's calls, from the first that failed or was not as expected; many, or large ones, are
        made ready in a thread."""
        self._content = content
        attempt = content.attempt
        self._generation += 1
        self._end_search()
        if attempt is None or attempt is self._attempt:
            self._attempt, self._calls = attempt, self._calls if attempt is not None else []
            self._draw(keep=keep)
        elif is_large(attempt) or len(attempt.transcript) > MANY:
            made = partial(self._made, self._generation, attempt, keep)
            run_in_thread(self.app, partial(rows, attempt), made, name="calls", opens=not keep)
        else:
            self._made(self._generation, attempt, keep, rows(attempt))

    def _made(self, generation: int, attempt: Attempt, keep: bool, calls: list[CallRow]) -> None:
        if generation == self._generation and stands(self):
            self._attempt, self._calls = attempt, calls
            self.table.closed.clear()
            self._draw(keep=keep)

    def _draw(self, *, keep: bool) -> None:
        calls, attempt = self._calls, self._attempt
        first = next((i for i, row in enumerate(calls) if row.verdict in ("failed", "error") or row.error), 0)
        # Without calls there is nothing but spans to show.
        timed = self.timed or (not calls and attempt is not None and bool(spans_of(attempt)))
        handed = attempt is not None and any(entry.kind == "hand_off" for entry in attempt.transcript)
        shown = bars(attempt, calls) if attempt is not None and (timed or handed) else []
        shown = shown if timed else calls_by_agent(shown)
        if not calls and not shown and self.table.has_focus:
            self.text.focus()
        self.set_class(not calls and not shown, "-empty")
        self.table.set_rows(calls, None if keep else first)
        self.post_message(self.Shown())
        if shown:
            self.table.set_bars(shown, timed=timed)
            if not keep and calls:
                self.table.move_to_call(first)
        self._sized()
        self._detail(keep=keep)

    def toggle_times(self) -> str:
        """Bars over time instead of the table, or the table again; what to say."""
        if self._content is None or self._attempt is None or self._content.attempt is not self._attempt:
            return "times stand here when the attempt is done"
        if not self.table.rows and not self.timed:  # spans stand over time whatever is chosen
            return "no calls: spans have no table" if self.table.bars else "no calls: nothing took time here"
        here = self.table.call_index
        self.timed = not self.timed
        self.foot_words = {**self.foot_words, "case.sql": "table" if self.timed else "times"}
        self.show(self._content, keep=True)
        if here >= 0:
            self.table.move_to_call(here)
        return "bars over time: s shows the table" if self.timed else ""

    def _sized(self) -> None:
        """The table takes as many rows as there are calls, up to a third of the tab; bars up to two."""
        table = self.table
        most = self.size.height * 2 // 3 if table.timed else self.size.height // 3
        table.styles.height = max(1, min(table.row_count, most))
        self.query_one(LineLabel).set_lines([self.table.title(self.size.width)])
        self.call_after_refresh(table.reveal)

    def on_resize(self) -> None:
        """Titles depend on the width."""
        super().on_resize()
        self._sized()

    def _detail(self, *, keep: bool) -> None:
        attempt, row, bar = self._attempt, self.table.call, self.table.bar
        self._detailed = (row, bar)
        self._detailing += 1
        rendered, only = self.rendered, self.only
        make: Callable[[], list[Block]]
        if attempt is None:
            self.text.set_blocks([], keep=False)
            return
        if bar is not None and bar.span is not None:
            make = partial(span_blocks, bar.span, rendered=rendered)
        elif row is None and bar is not None and bar.entry >= 0:
            make = partial(_of_entry, bar.entry, attempt, rendered)
        else:
            make = partial(detail, attempt, row, rendered=rendered, only_failing=only)
        if row is None or row.length <= AT_ONCE:
            self._show_detail(self._detailing, keep, make())
            return
        shown = partial(self._show_detail, self._detailing, keep)
        run_in_thread(self.app, partial(with_heads, make), shown, name="call", opens=not keep)

    def _show_detail(self, detailing: int, keep: bool, blocks: list[Block]) -> None:
        if detailing != self._detailing or not stands(self):
            return
        self.text.set_blocks(blocks, keep=keep)
        if self._found_in is not None and self._found_in is self.table.call:
            self._found_in = None
            if self.text.find(self._query) != SEARCHING:
                self.post_message(TextPane.Searched(self.text))

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        if isinstance(event.pane, CallTable):
            # a key that is held costs its two rows; what stands below follows when it rests
            if self._resting is not None:
                self._resting.stop()
            self._resting = self.set_timer(REST, self._rested)

    def _rested(self) -> None:
        if self._detailed != (self.table.call, self.table.bar):
            self._end_search()
            self._detail(keep=False)

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        if isinstance(event.pane, CallTable):
            self.text.focus()

    def has_call(self, step: int) -> bool:
        """Whether a call stands below (or above)."""
        return self.table.call_from_here(step) is not None

    def call(self, step: int) -> str:
        """To the next or previous call, as they stand there."""
        wanted = self.table.call_from_here(step)
        if wanted is None:
            return "no later tool call" if step > 0 else "no earlier tool call"
        self.table.move_to_call(wanted)
        return ""

    def turn(self, step: int) -> str:
        """To the first call of the next or previous turn that has one."""
        calls = self.table.rows
        if not calls:
            return "no tool calls here"
        here = calls[max(self.table.call_index, 0)].turn
        turns = [row.turn for row in calls if (row.turn > here if step > 0 else row.turn < here)]
        if not turns:
            return "no calls in a later turn" if step > 0 else "no calls in an earlier turn"
        wanted = min(turns) if step > 0 else max(turns)
        self.table.move_to_call(next(i for i, row in enumerate(calls) if row.turn == wanted))
        return ""

    # -- finding

    @property
    def searching(self) -> bool:
        """Whether this call or the others are looked through in a thread."""
        return self._looking or self.text.searching

    def find(self, query: str) -> int:
        """Look for a text in this call, else in the others: the next that has it is gone to."""
        self._end_search()
        self._query = query
        found = self.text.find(query)
        if not query or found not in (0, SEARCHING):
            return found
        if found == 0:
            self._look_on(1)
        else:
            self._then = 1
        return SEARCHING if self.searching else 0

    def find_next(self, step: int) -> tuple[int, int]:
        """The next place in this call, or the next call with one."""
        before = self.text.places[0]
        number, count = self.text.find_next(step)
        round_the_end = number <= before if step > 0 else number >= before
        if step and self._query and not self.text.searching and (not count or (before and round_the_end)):
            self._look_on(step)
            return (0, 0) if self._looking else (number, count)
        return number, count

    @on(TextPane.Searched)
    def _searched(self, event: TextPane.Searched) -> None:
        """Nothing in this call: on to the others."""
        if not event.words and self._then and not self.text.places[1]:
            event.stop()
            self._look_on(self._then)
        if not event.words:
            self._then = 0

    def _end_search(self) -> None:
        self._search += 1
        self._looking, self._then, self._found_in = False, 0, None

    def _look_on(self, step: int) -> None:
        """Look through the other calls in a thread."""
        attempt, calls = self._attempt, self._calls
        self._end_search()
        if attempt is None or not calls or (len(calls) == 1 and self.table.call is not None):
            return
        self._looking, number, told = True, self._search, time.monotonic()

        def progress(done: int, total: int) -> bool:
            nonlocal told
            if time.monotonic() - told > TELL and number == self._search:
                told = time.monotonic()
                words = f"searching… {done:,} of {total:,} calls"
                self.app.call_later(self._tell, number, words)
            return number == self._search

        here = self.table.call_index if self.table.call is not None else -1
        work = partial(
            next_with,
            attempt,
            calls,
            here,
            step,
            pattern(self._query),
            rendered=self.rendered,
            progress=progress,
        )
        run_in_thread(self.app, work, partial(self._looked, number), name="find")

    def _tell(self, number: int, words: str) -> None:
        if number == self._search and stands(self):
            self.post_message(TextPane.Searched(self.text, words))

    def _looked(self, number: int, index: int | None) -> None:
        if number != self._search or not stands(self):
            return
        self._looking = False
        if index is None:
            self.post_message(TextPane.Searched(self.text))
            return
        self._found_in = self._calls[index]
        self.table.move_to_call(index)
        self._detail(keep=False)


def _of_entry(index: int, attempt: Attempt, rendered: bool) -> list[Block]:
    entry = attempt.transcript[index]
    answer = answer_to(attempt.transcript, index) if entry.kind == "hand_off" else None
    messages = prompt_blocks(index, entry, rendered)
    return messages or [entry_block(index, entry, {}, rendered=rendered, several=True, answer=answer)]


# -- The table of tool calls: number, turn, name, duration, size, arguments or error; or bars over time.


class CallTable(LinePane):
    """One row per call; the cursor's row is the call shown below. In a network of agents hand-offs have rows too, and
    what a helper called stands indented below the hand-off to it. `timed`: bars over time are drawn instead."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[CallRow] = ()
        self.bars: Sequence[SpanBar] = ()
        self.timed = False
        self._all_bars: Sequence[SpanBar] = ()
        self.closed: set[int] = set()
        """Hand-offs, by their entries' places, whose helpers are folded away."""
        self._name_width = 10
        self._label = 10
        self._total = 0.0

    def set_bars(self, shown: Sequence[SpanBar], *, timed: bool) -> None:
        """Show hand-offs and calls instead, what helpers did below the hand-offs to them; `timed`: as bars over time,
        replies and spans among them."""
        self.timed = timed
        self._all_bars, self.bars = shown, unfolded(shown, self.closed)
        if not timed:
            names = (width_of((Span(bar.label),)) + 2 * min(bar.depth, 4) + 2 for bar in shown)
            self._name_width = min(max(names, default=4), 28)
        self.relayout()

    @property
    def call(self) -> CallRow | None:
        """The call under the cursor; None where there is none, or a hand-off or span."""
        if self.bars:
            return self.bars[self.cursor].call
        return self.rows[self.cursor] if self.rows else None

    @property
    def bar(self) -> SpanBar | None:
        """The bar under the cursor; None where calls are shown."""
        return self.bars[self.cursor] if self.bars else None

    def move_to_call(self, index: int) -> None:
        """Put the cursor on a call, unfolded if need be."""
        if self.bars:
            wanted = self.rows[index]
            if self.closed and not any(
                bar.call is not None and bar.call.number == wanted.number for bar in self.bars
            ):
                self.closed.clear()
                self.set_bars(self._all_bars, timed=self.timed)
            index = next(
                (
                    i
                    for i, bar in enumerate(self.bars)
                    if bar.call is not None and bar.call.number == wanted.number
                ),
                self.cursor,
            )
        self.move_to(index)

    def call_from_here(self, step: int) -> int | None:
        """The number, from 0, of the next or previous call as they are shown, folded ones too; None: there is none."""
        if not self.bars:
            return wanted if 0 <= (wanted := self.cursor + step) < len(self.rows) else None
        here = next(
            (i for i, bar in enumerate(self._all_bars) if bar.entry == self.bars[self.cursor].entry), 0
        )
        places = range(here + 1, len(self._all_bars)) if step > 0 else range(here - 1, -1, -1)
        calls = (call for place in places if (call := self._all_bars[place].call) is not None)
        found = next(calls, None)
        return found.number - 1 if found is not None else None

    @property
    def call_index(self) -> int:
        """The number, from 0, of the call under the cursor or the last one before it; -1: none."""
        if not self.bars:
            return self.cursor if self.rows else -1
        calls = [bar.call for bar in self.bars[: self.cursor + 1] if bar.call is not None]
        return next((i for i, row in enumerate(self.rows) if calls and row.number == calls[-1].number), -1)

    def set_rows(self, rows: Sequence[CallRow], cursor: int | None = None) -> None:
        """Show other calls."""
        self.rows, self.bars, self._all_bars, self.timed = rows, (), (), False
        self._name_width = min(max((cell_len(row.name) for row in rows), default=4), 28)
        if cursor is not None:
            self.cursor = max(0, min(cursor, len(rows) - 1))
        self.relayout()

    def unfold(self) -> None:
        """Show again what a helper did."""
        bar = self.bar
        if bar is None or not bar.closed:
            self.post_message(Said("all of this is shown"))
            return
        self.closed.discard(bar.entry)
        self.set_bars(self._all_bars, timed=self.timed)

    def fold(self) -> None:
        """Fold away what the helper did to whom this is a hand-off, or whose part this is."""
        bar = self.bar
        if bar is None or bar.closed:
            self.post_message(Said("nothing to fold here"))
            return
        here = next((i for i, one in enumerate(self._all_bars) if one is bar), 0)
        head = (
            here
            if members(self._all_bars, here)
            else next((i for i in range(here - 1, -1, -1) if here in members(self._all_bars, i)), None)
        )
        if head is None:
            self.post_message(Said("nothing to fold here"))
            return
        place = self._all_bars[head].entry
        self.closed.add(place)
        self.set_bars(self._all_bars, timed=self.timed)
        self.move_to(next((i for i, one in enumerate(self.bars) if one.entry == place), 0))

    def reveal(self) -> None:
        """Bring the cursor into view, once the height is known."""
        self.show_cursor()

    def relayout(self) -> None:
        """The width changed."""
        self._label = label_width(self.bars, self.text_width)
        self._total = span_of(self.bars)
        self.set_row_count(len(self.bars) or len(self.rows))

    def title(self, width: int) -> Line:
        """The line above the rows, at the width that the tab has."""
        if self.timed:
            return scale_line(self._total, self.text_width, self._label)
        return self._line(
            "", "#", "turn", "tool", "time", "size", (Span("arguments", "muted"),), "muted", "muted", width
        )

    def row_line(self, row: int) -> Line:
        """One call, or one bar."""
        if self.timed:
            return bar_line(self.bars[row], self._total, self.text_width, self._label)
        bar = self.bars[row] if self.bars else None
        call = bar.call if bar is not None else self.rows[row]
        if bar is not None and call is None:
            return self._hand_off_line(bar)
        assert call is not None
        last: Line = (Span(f"! {call.error}", "error"),) if call.error else (Span(call.arguments, "muted"),)
        return self._line(
            GLYPHS.get(call.verdict, ""),
            str(call.number),
            str(call.turn),
            "  " * min(bar.depth if bar is not None else 0, 4) + call.name,
            call.took,
            call.size,
            last,
            call.verdict,
            "strong",
        )

    def _hand_off_line(self, bar: SpanBar) -> Line:
        """What was asked of the helper, and its answer; where what it did is folded away, how that came out."""
        outcome = "error" if bar.failed else "failed" if bar.wrong else ""
        took = duration(bar.end - bar.start) if bar.start is not None and bar.end is not None else ""
        head = f"{'  ' * min(bar.depth, 4)}{bar.label}{' ▸' if bar.closed else ''}"
        asked = Span(f"{bar.asked}  " if bar.asked else "", "muted")
        answer = (Span("= ", "muted"), Span(bar.answered)) if bar.answered else ()
        size_of = size(bar.length) if bar.length else ""
        glyph = GLYPHS.get(outcome, "")
        return self._line(glyph, "", str(bar.turn), head, took, size_of, (asked, *answer), outcome, "agent")

    def _line(
        self,
        glyph: str,
        number: str,
        turn: str,
        name: str,
        took: str,
        size: str,
        last: Line,
        outcome: str,
        weight: str,
        width: int = 0,
    ) -> Line:
        width = width or self.text_width
        name_span = fit((Span(name, weight),), self._name_width)
        pad = " " * (self._name_width - width_of(name_span))
        line: Line = (
            Span(f"{glyph:<1} ", outcome),
            Span(f"{number:>3} {turn:>4}  ", "muted"),
            *name_span,
            Span(f"{pad} {took:>9} {size:>7}  ", "muted"),
        )
        return (*line, *fit(last, max(width - width_of(line), 4)))


def next_with(
    attempt: Attempt,
    calls: Sequence[CallRow],
    here: int,
    step: int,
    wanted: re.Pattern[str],
    *,
    rendered: bool = True,
    progress: Callable[[int, int], bool] | None = None,
) -> int | None:
    """The nearest other call, round the end, whose name, arguments or result hold a text; with much of it
    that takes long.

    Args:
        here: The call to begin after, by its place among `calls`; -1: there is none.
        step: 1 for later calls first, -1 for earlier ones.
        progress: Told how many calls of how many were looked at; the answer False ends the search.
    """
    count = len(calls)
    for offset in range(1, count if here >= 0 else count + 1):
        if progress is not None and not progress(offset - 1, count):
            return None
        index = (here + step * offset) % count
        if find_all(detail(attempt, calls[index], rendered=rendered, alone=True), wanted, 1):
            return index
    return None
