"""A tab of the inspector that is one pane of text."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult

from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.text_pane import TextPane


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
