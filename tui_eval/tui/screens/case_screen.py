"""The Case screen: one attempt of one case, from the line that says why to the bytes on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.timer import Timer
from textual.widget import Widget

from tui_eval.tui.inspector.assertions import AssertionsTab
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.history import HistoryTab
from tui_eval.tui.inspector.raw import RawTab
from tui_eval.tui.inspector.tools_tab import ToolsTab
from tui_eval.tui.inspector.transcript import TranscriptTab
from tui_eval.tui.keys import Key, bindings
from tui_eval.tui.keys_case import CASE_KEYS, CASE_OPEN_KEYS, SHARED_KEYS
from tui_eval.tui.messages import Said
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.case_again import CaseAgain
from tui_eval.tui.screens.case_looking import CaseLooking
from tui_eval.tui.screens.case_notes import CaseNoting
from tui_eval.tui.screens.case_parts import DATA, HISTORY, CaseCopying, CaseFinding
from tui_eval.tui.screens.case_reading import CaseReading
from tui_eval.tui.screens.place import keys_in, keys_of
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state.case.case_content import head, tab_line
from tui_eval.tui.state.text.lines import Span, width_of
from tui_eval.tui.widgets.copy_bar import CopyBar
from tui_eval.tui.widgets.line_label import LineLabel

WIDE = 100
"""Columns from which on the outline stands beside the text."""
WORDS_STAY = 5.0
"""Seconds for which `say`'s words stand."""


class CaseScreen(
    CaseReading, CaseLooking, CaseCopying, CaseFinding, CaseNoting, CaseAgain, inherit_bindings=False
):
    """Shows what a pointer leads to. `go_to` replaces it in place: the tab stays."""

    TITLE = "Case"
    BINDINGS: ClassVar = [*bindings("case", CASE_KEYS), *bindings("screen", SHARED_KEYS)]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    KEY_SECTIONS = (
        ("The case", CASE_KEYS),
        ("Moving", (*CASE_OPEN_KEYS, *keys_in("moving"), *SHARED_KEYS)),
    )
    DEFAULT_CSS = """
    CaseScreen .head { height: 2; background: $panel; }
    CaseScreen .tabs { background: $panel; }
    CaseScreen Container { height: 1fr; }
    CaseScreen InspectorTab { display: none; }
    CaseScreen InspectorTab.-front { display: block; layout: horizontal; }
    CaseScreen.-rows ToastRack { dock: top; margin-top: 4; }
    CaseScreen.-narrow Outline { display: none; }
    CaseScreen.-narrow Outline.-asked { display: block; width: 30; }
    """

    def __init__(self, pointer: CasePointer) -> None:
        tabs = (TranscriptTab(), ToolsTab(), AssertionsTab(), DataTab(), RawTab(), HistoryTab())
        super().__init__(pointer, tabs)
        self._words = ""
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Head, tabs, the tab in front, keys."""
        yield LineLabel(classes="head")
        yield LineLabel(classes="tabs")
        with Container():
            yield from self._tabs
        yield CopyBar(self.hints())

    def on_mount(self) -> None:
        """Show the tab that was open the last time and read the attempt."""
        run = self.services.state.run
        if run is not None:
            self._runs_seen.add(run.info.id)
        seen = self.services.memory.case_view
        tab = seen.get("tab", 0)
        self._active = min(max(tab if isinstance(tab, int) else 0, 0), len(self._tabs) - 1)
        self._to_front()
        self.tab.set_class(bool(seen.get("zoomed")), "-zoomed")
        # Textual's own breakpoints come with the first resize: a frame too late
        self.set_class(self.app.size.width < WIDE, "-narrow")
        self.content = self._foreseen()
        self.show_head()
        self.tab.main.focus()
        self._load(keep=False)

    def hints(self) -> Sequence[Key]:
        """Seven keys of a debugger, in the words of the tab in front."""
        own = {key.id: key for key in (*CASE_KEYS, *CASE_OPEN_KEYS)}
        words = self.tab.foot_words
        names = (*self.tab.foot_of(self.content), "attempt.next")
        mine = [replace(own[name], label=words.get(name, own[name].label)) for name in names]
        run = "case.cancel" if self.content.running else "case.rerun"
        return [*mine, *keys_of("failure.next", run, "case.edit", "help")]

    # -- what is shown

    def noted(self) -> None:
        """The notes have changed: the head and the history show them."""
        past = self.content.past
        for one in past.attempts if past is not None else ():
            one.note = self.content.notes.get((one.run_id, one.row.id))
        self._shown.discard(HISTORY)
        if self._active == HISTORY:
            self.show_tab(keep=True)
        self.show_head()

    def show_head(self) -> None:
        """Outcome, reason and tabs; words for the person at the right of the tabs."""
        self.query_one(CopyBar).show(self.hints())
        width = self.size.width or 80
        lines = head(self.content, width, 3 if self.size.height >= 32 else 2)
        box = self.query_one(".head", LineLabel)
        box.styles.height = len(lines)
        box.set_lines(lines)
        tabs = tab_line(self._active, self.content.attempt, width)
        words = Span(self._words, "note")
        if self._words:
            room = max(width - width_of((words,)) - 1, 0)
            tabs = tab_line(self._active, self.content.attempt, room - 1)
            tabs = (*tabs, Span(" " * (room - width_of(tabs))), words)
        self.query_one(".tabs", LineLabel).set_lines([tabs])

    def say(self, words: str) -> None:
        """A few words at the right of the tabs, for some seconds or until the next ones."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(WORDS_STAY, partial(self.say, "")) if words else None
        if words != self._words:
            self._words = words
            self.show_head()

    def notice(self, words: str) -> bool:
        """Beside the tabs, or over them: a toast would cover what is looked at."""
        room = self.size.width - 1
        if width_of((Span(words),)) > room:
            return False
        self.say(words)
        return True

    def on_resize(self) -> None:
        """The head depends on the width."""
        self.show_head()

    # -- tabs and panes

    @property
    def tab_shown(self) -> int:
        """The number, from 0, of the tab in front."""
        return self._active

    def action_tab(self, index: int) -> None:
        """Bring a tab to the front."""
        if index == self._active:
            return
        self.tab.remove_class("-front")
        self._active = index
        self._to_front()
        self._words = ""
        self.show_tab(keep=False)
        self.show_head()
        self.focus_main()
        self.keep_view()

    def _to_front(self) -> None:
        self.tab.add_class("-front")
        self.query_one(CopyBar).show(self.hints())
        self.set_class(self._active == DATA, "-rows")  # notices then keep off the explained cell

    def action_pane(self, step: int) -> None:
        """The next or previous pane of the tab."""
        panes = self.tab.panes()
        if not panes:
            return
        at = next((i for i, pane in enumerate(panes) if pane.has_focus), -1)
        self._focus_pane(panes[(at + step) % len(panes)])

    def _focus_pane(self, pane: Widget) -> None:
        pane.add_class("-asked")
        pane.focus(scroll_visible=False)
        for other in self.tab.panes():
            if other is not pane:
                other.remove_class("-asked")

    def back(self) -> bool:
        """Close the question at the foot, end what is being written, or leave the zoom; False where there is none
        of them."""
        prompts = self.query(Prompt)
        if prompts:
            prompts.first().leave()
            return True
        if self.end_writing():
            return True
        if self.tab.has_class("-zoomed"):
            self.action_zoom()
            return True
        return False

    @on(Said)
    def _said(self, event: Said) -> None:
        event.stop()
        self.say(event.words)
