"""Tab 2: the tool calls, and the selected one's arguments and result."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer

from tui_eval.model import Attempt
from tui_eval.tui.inspector.tab import REST, InspectorTab
from tui_eval.tui.state.case_content import CaseContent
from tui_eval.tui.state.entry_blocks import entry_block
from tui_eval.tui.state.lines import pattern, plain
from tui_eval.tui.state.span_view import span_blocks, spans_of
from tui_eval.tui.state.tools_view import CallRow, detail, rows
from tui_eval.tui.state.waterfall import bars
from tui_eval.tui.widgets.call_table import CallTable
from tui_eval.tui.widgets.line_label import LineLabel
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.text_pane import TextPane


class ToolsTab(InspectorTab):
    """Table (or bars, spans among them) above, one call below; `) (` and `} {` go from call to call."""

    DEFAULT_CSS = """
    ToolsTab Vertical { height: 1fr; }
    ToolsTab CallTable { height: 3; }
    ToolsTab TextPane { height: 1fr; }
    ToolsTab.-zoomed CallTable, ToolsTab.-zoomed LineLabel, ToolsTab.-empty CallTable, ToolsTab.-empty LineLabel { display: none; }
    """

    foot = ("case.sql", "call.next")
    foot_words = MappingProxyType({"case.sql": "times", "call.next": "next call"})

    def __init__(self) -> None:
        super().__init__()
        self._content: CaseContent | None = None
        self._attempt: Attempt | None = None
        self._calls: list[CallRow] = []
        self.timed = False
        self._resting: Timer | None = None

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

    def panes(self) -> list:
        """Both."""
        return [pane for pane in (self.table, self.text) if pane.display]

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show an attempt's calls, from the first that failed or was not as expected."""
        self._content = content
        if content.attempt is not self._attempt:
            self._attempt = content.attempt
            self._calls = rows(content.attempt) if content.attempt else []
        calls = self._calls
        first = next((i for i, row in enumerate(calls) if row.verdict in ("failed", "error") or row.error), 0)
        # Without calls there is nothing but spans to show.
        timed = self.timed or (not calls and content.attempt is not None and bool(spans_of(content.attempt)))
        shown = bars(content.attempt, calls) if content.attempt and timed else []
        if not calls and not shown and self.table.has_focus:
            self.text.focus()
        self.set_class(not calls and not shown, "-empty")
        self.table.set_rows(calls, None if keep else first)
        if shown:
            self.table.set_bars(shown)
            if not keep and calls:
                self.table.move_to_call(first)
        self._sized()
        self._detail(keep=keep)

    def toggle_times(self) -> str:
        """Bars over time instead of the table, or the table again; what to say."""
        if self._content is None or self._content.attempt is None:
            return "times stand here when the attempt is done"
        here = self.table.call_index
        self.timed = not self.timed
        self.show(self._content, keep=True)
        if here >= 0:
            self.table.move_to_call(here)
        return "bars over time: s shows the table" if self.timed else ""

    def _sized(self) -> None:
        """The table takes as many rows as there are calls, up to a third of the tab; bars up to two."""
        table = self.table
        most = self.size.height * 2 // 3 if table.bars else self.size.height // 3
        table.styles.height = max(1, min(table.row_count, most))
        self.query_one(LineLabel).set_lines([self.table.title(self.size.width)])
        self.call_after_refresh(table.reveal)

    def on_resize(self) -> None:
        """Titles depend on the width."""
        super().on_resize()
        self._sized()

    def _detail(self, *, keep: bool) -> None:
        attempt = self._content.attempt if self._content else None
        if attempt is None:
            self.text.set_blocks([], keep=False)
            return
        row, bar = self.table.call, self.table.bar
        if bar is not None and bar.span is not None:
            self.text.set_blocks(span_blocks(bar.span, rendered=self.rendered), keep=keep)
            return
        if row is None and bar is not None and bar.entry >= 0:
            entry = attempt.transcript[bar.entry]
            block = entry_block(bar.entry, entry, {}, rendered=self.rendered, several=True)
            self.text.set_blocks([block], keep=keep)
            return
        blocks = detail(attempt, row, rendered=self.rendered, only_failing=self.only)
        self.text.set_blocks(blocks, keep=keep)

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        event.stop()
        if isinstance(event.pane, CallTable):
            # a key that is held costs its two rows; what stands below follows when it rests
            if self._resting is not None:
                self._resting.stop()
            self._resting = self.set_timer(REST, partial(self._detail, keep=False))

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        if isinstance(event.pane, CallTable):
            self.text.focus()

    def call(self, step: int) -> str:
        """To the next or previous call."""
        wanted = self.table.call_index + step
        if not self.table.rows or not 0 <= wanted < len(self.table.rows):
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

    def find(self, query: str) -> int:
        """Look for a text in this call, else go to the next call that has it."""
        self._query = query
        found = self.text.find(query)
        return found or (1 if self._next_with(1) else 0)

    def find_next(self, step: int) -> tuple[int, int]:
        """The next place in this call, or the next call with one."""
        number, count = self.text.find_next(step)
        if count and not (number == 1 and step > 0 and len(self.table.rows) > 1) and number:
            return number, count
        if self._next_with(step):
            return self.text.find_next(0) if self.text.find(self._query) else (0, 0)
        return number, count

    def _next_with(self, step: int) -> bool:
        """Go to the nearest other call whose name, arguments or result hold the text."""
        attempt = self._content.attempt if self._content else None
        wanted = pattern(getattr(self, "_query", "") or "\0")
        if attempt is None:
            return False
        count = len(self.table.rows)
        here = max(self.table.call_index, 0)
        for offset in range(1, count):
            index = (here + step * offset) % count
            blocks = detail(attempt, self.table.rows[index], rendered=self.rendered)
            if any(wanted.search(plain(line)) for block in blocks for line in block.lines()):
                self.table.move_to_call(index)
                self._detail(keep=False)
                self.text.find(self._query)
                return True
        return False
