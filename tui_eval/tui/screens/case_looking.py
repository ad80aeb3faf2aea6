"""The Case screen's keys that look at an attempt: from place to place, in other ways, in the pager."""

from __future__ import annotations

from textual import on

from tui_eval.tui.inspector.assertions import AssertionsTab
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.tools_tab import ToolsTab
from tui_eval.tui.inspector.transcript import TranscriptTab
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.case_parts import ASSERTIONS, DATA, CasePart
from tui_eval.tui.state.case.case_content import deciding
from tui_eval.tui.state.case.verdict_lines import about_rows
from tui_eval.tui.terminal import pager


class CaseLooking(CasePart, inherit_bindings=False):
    """Nothing here changes anything but what is seen."""

    def action_turn(self, step: int) -> None:
        """Next or previous turn; in Data difference, in Assertions verdict, in Raw exchange."""
        self.say(self.tab.turn(step))

    def action_call(self, step: int) -> None:
        """Next or previous tool call."""
        self.say(self.tab.call(step))

    def action_attempt(self, step: int) -> None:
        """Next or previous attempt."""
        placed = self.content.step(step)
        if placed is None:
            self.say("no later attempt" if step > 0 else "no earlier attempt")
            return
        old, fresh = self.pointer, self._fresh
        self.go_to(
            CasePointer(old.case_id, old.agent, old.model, placed.run_id or self.run_id, placed.row.id)
        )
        self._fresh = fresh and placed.run_id == old.run_id

    def action_only(self) -> None:
        """Only what matters, in all tabs."""
        only = not self.tab.only
        for tab in self._tabs:
            tab.only = only
        self._again("only what matters: i shows all" if only else "everything")

    def action_raw(self) -> None:
        """Raw or rendered, in all tabs."""
        rendered = not self.tab.rendered
        for tab in self._tabs:
            tab.rendered = rendered
        self._again("rendered" if rendered else "raw: o renders")

    def _again(self, words: str) -> None:
        """Show what is loaded anew, in another way."""
        self._shown = set()
        self.show_tab(keep=True)
        self.say(words)

    def action_difference(self) -> None:
        """The difference that made it fail."""
        attempt = self.content.attempt
        index = deciding(attempt.verdicts) if attempt else None
        if attempt is None or index is None:
            self.say("nothing failed here")
            return
        if about_rows(attempt.verdicts[index]) and attempt.data is not None:
            self.action_tab(DATA)
            return
        self.action_tab(ASSERTIONS)
        tab = self.tab
        if isinstance(tab, AssertionsTab) and tab.size.width:
            tab.to_deciding(self.content)

    @on(TranscriptTab.VerdictOpened)
    def _verdict_opened(self, event: TranscriptTab.VerdictOpened) -> None:
        event.stop()
        self.action_tab(ASSERTIONS)
        tab = self.tab
        if isinstance(tab, AssertionsTab):
            tab.to_verdict(event.key)

    def action_follow(self) -> None:
        """Follow the tail of a running attempt, or stop."""
        text = self.tab.text
        if text is None or self._active != 0:
            self.say("t follows the transcript: 1")
            return
        text.following = not text.following
        if text.following:
            text.show_tail()
        self.say("following the tail" if text.following else "not following")

    def action_zoom(self) -> None:
        """The main pane alone, or beside its others."""
        self.tab.zoom()
        self.focus_main()
        self.keep_view()

    def action_wrap(self) -> None:
        """Wrap lines or not."""
        self.say(self.tab.toggle_wrap())

    def action_sql(self) -> None:
        """The SQL behind the rows; in Tools, the calls as bars over time."""
        if isinstance(self.tab, DataTab):
            self.say(self.tab.toggle_sql())
        elif isinstance(self.tab, ToolsTab):
            self.say(self.tab.toggle_times())
            self.show_head()
        else:
            self.say("s shows the SQL in Data: 4, times in Tools: 2")

    def action_freeze(self) -> None:
        """Columns of rows that stay while one goes sideways."""
        self.say(self.tab.toggle_freeze() if isinstance(self.tab, DataTab) else "v keeps columns in Data: 4")

    def action_pager(self) -> None:
        """The tab's whole text in the pager."""
        self.say(pager.show(self.app, self.tab.whole_text(), "case"))
