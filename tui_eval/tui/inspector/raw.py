"""Tab 5: what was sent: a row's prompt beside its template and vars, and what went over the wire."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType

from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.inspector.tab import TextTab
from tui_eval.tui.state.case import prompt_view
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.raw_view import build
from tui_eval.tui.state.case.transcript_view import LARGE
from tui_eval.tui.state.text.blocks import Block, with_heads


class RawTab(TextTab):
    """One pane; `} {` go from exchange to exchange."""

    EMPTY = "Requests and responses stand here when the attempt is done."
    foot_words = MappingProxyType({"turn.next": "next exchange", "turn.previous": "previous exchange"})

    _content: CaseContent | None = None
    _width = 0
    _generation = 0

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show what was sent and received, much of it made ready in a thread; the prompt's columns depend on the
        width."""
        self._content, self._width = content, self.size.width
        case, attempt = content.case, content.attempt
        prompt = []
        if prompt_view.has_prompt(case, attempt):
            room = self.text.text_width - self.text.gutter_width
            prompt = prompt_view.build(case, attempt, room, rendered=self.rendered)
        self._generation += 1
        make = partial(build, attempt, rendered=self.rendered, prompt=prompt) if attempt else lambda: prompt
        if attempt is None or sum(len(e.request) + len(e.response) for e in attempt.exchanges) <= LARGE:
            self._made(self._generation, keep, make())
        else:
            made = partial(self._made, self._generation, keep)
            run_in_thread(self.app, partial(with_heads, make), made, name="raw", opens=not keep)

    def _made(self, generation: int, keep: bool, blocks: list[Block]) -> None:
        if generation == self._generation and stands(self):
            self.text.set_blocks(blocks, keep=keep)
            self.post_message(self.Shown())

    def on_resize(self) -> None:
        """Lay the columns out anew."""
        super().on_resize()
        if self._content is not None and self.size.width not in (0, self._width):
            self.show(self._content, keep=True)

    def has_turn(self, step: int) -> bool:
        """Whether an exchange stands below (or above)."""
        return self.text.place_of(step, ("turn",)) is not None

    def turn(self, step: int) -> str:
        """To the next or previous exchange."""
        if self.text.jump(step, ("turn",)):
            return ""
        return "no later exchange" if step > 0 else "no earlier exchange"
