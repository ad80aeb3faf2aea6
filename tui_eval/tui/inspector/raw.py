"""Tab 5: what was sent: a row's prompt beside its template and vars, and what went over the wire."""

from __future__ import annotations

from types import MappingProxyType

from tui_eval.tui.inspector.text_tab import TextTab
from tui_eval.tui.state import prompt_view
from tui_eval.tui.state.case_content import CaseContent
from tui_eval.tui.state.raw_view import build


class RawTab(TextTab):
    """One pane; `} {` go from exchange to exchange."""

    EMPTY = "Requests and responses stand here when the attempt is done."
    foot_words = MappingProxyType({"turn.next": "next exchange"})

    _content: CaseContent | None = None
    _width = 0

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show what was sent and received; the prompt's columns depend on the width."""
        self._content, self._width = content, self.size.width
        case, attempt = content.case, content.attempt
        prompt = []
        if prompt_view.has_prompt(case, attempt):
            room = self.text.text_width - self.text.gutter_width
            prompt = prompt_view.build(case, attempt, room, rendered=self.rendered)
        blocks = build(attempt, rendered=self.rendered, prompt=prompt) if attempt else prompt
        self.text.set_blocks(blocks, keep=keep)

    def on_resize(self) -> None:
        """Lay the columns out anew."""
        super().on_resize()
        if self._content is not None and self.size.width not in (0, self._width):
            self.show(self._content, keep=True)

    def turn(self, step: int) -> str:
        """To the next or previous exchange."""
        if self.text.jump(step, ("turn",)):
            return ""
        return "no later exchange" if step > 0 else "no earlier exchange"
