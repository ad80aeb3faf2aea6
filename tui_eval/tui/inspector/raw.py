"""Tab 5: what went over the wire."""

from __future__ import annotations

from textual.app import ComposeResult

from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.state.case_content import CaseContent
from tui_eval.tui.state.raw_view import build
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.text_pane import TextPane


class RawTab(InspectorTab):
    """One pane; `} {` go from exchange to exchange."""

    def compose(self) -> ComposeResult:
        """The pane."""
        yield TextPane(empty="Requests and responses stand here when the attempt is done.")

    @property
    def main(self) -> LinePane:
        """The pane."""
        return self.query_one(TextPane)

    @property
    def text(self) -> TextPane:
        """The pane."""
        return self.query_one(TextPane)

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show what was sent and received."""
        blocks = build(content.attempt, rendered=self.rendered) if content.attempt else []
        self.text.set_blocks(blocks, keep=keep)

    def turn(self, step: int) -> str:
        """To the next or previous exchange."""
        if self.text.jump(step, ("turn",)):
            return ""
        return "no later exchange" if step > 0 else "no earlier exchange"
