"""Tab 3: every verdict, with expected against actual and a judge's words."""

from __future__ import annotations

from types import MappingProxyType

from tui_eval.tui.inspector.tab import TextTab
from tui_eval.tui.state.case.assertions_view import build
from tui_eval.tui.state.case.case_content import CaseContent, deciding


class AssertionsTab(TextTab):
    """One pane of verdicts; `} {` go from one to the next."""

    EMPTY = "Verdicts stand here when the attempt is done."
    foot_words = MappingProxyType({"turn.next": "next verdict", "turn.previous": "previous verdict"})

    _wanted: str | None = None

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show an attempt's verdicts, from the one that decided on."""
        attempt, past = content.attempt, content.past
        if past is not None and content.row is not None:
            past = past.without(content.run_id, content.row.id)
        blocks = []
        if attempt is not None:
            blocks = build(
                attempt,
                rendered=self.rendered,
                only_failing=self.only,
                past=past,
                known=content.explained,
                case=content.case,
                room=self.size.height // 2,
            )
        self.text.set_blocks(blocks, keep=keep)
        self.post_message(self.Shown())
        if self._wanted is not None:
            self.text.jump_to_key(self._wanted)
            self._wanted = None
        elif not keep and attempt is not None:
            self.to_deciding(content)

    def to_verdict(self, key: str) -> None:
        """Go to a verdict, by its block's key; as soon as there is something to see."""
        if not self.text.jump_to_key(key):
            self._wanted = key

    def to_deciding(self, content: CaseContent) -> None:
        """Go to the verdict that made the case fail."""
        index = deciding(content.attempt.verdicts) if content.attempt else None
        if index is not None:
            self.text.jump_to_key(f"v{index}")

    def has_turn(self, step: int) -> bool:
        """Whether a verdict stands below (or above)."""
        return self.text.place_of(step, ("verdict",), failing=self.only) is not None

    def turn(self, step: int) -> str:
        """To the next or previous verdict."""
        if self.text.jump(step, ("verdict",), failing=self.only):
            return ""
        return "no later verdict" if step > 0 else "no earlier verdict"
