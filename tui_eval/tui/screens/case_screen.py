"""The Case screen: one attempt of one case, from the line that says why to the bytes on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.timer import Timer
from textual.widget import Widget

from tui_eval.store.linked import replaced_by
from tui_eval.store.runs import Store
from tui_eval.tui import pager
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.case_loader import Where, load
from tui_eval.tui.case_past import load_past
from tui_eval.tui.inspector.assertions import AssertionsTab
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.history import HistoryTab
from tui_eval.tui.inspector.raw import RawTab
from tui_eval.tui.inspector.tab import InspectorTab, Said
from tui_eval.tui.inspector.tools import ToolsTab
from tui_eval.tui.inspector.transcript import TranscriptTab
from tui_eval.tui.keys import Key, bindings
from tui_eval.tui.keys_case import CASE_KEYS, SHARED_KEYS
from tui_eval.tui.messages import LiveText, RunChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.case_again import CaseAgain
from tui_eval.tui.screens.case_notes import CaseNoting
from tui_eval.tui.screens.case_parts import CaseCopying, CaseFinding
from tui_eval.tui.screens.place import keys_in, keys_of
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state.case_content import CaseContent, deciding, foreseen, head, tab_line
from tui_eval.tui.state.lines import Span, fit, width_of
from tui_eval.tui.state.linked import merged
from tui_eval.tui.state.past import CasePast
from tui_eval.tui.state.verdict_lines import about_rows
from tui_eval.tui.widgets.copy_bar import CopyBar
from tui_eval.tui.widgets.line_label import LineLabel

ASSERTIONS, DATA, HISTORY = 2, 3, 5
WIDE = 100
"""Columns from which on the outline stands beside the text."""
WORDS_STAY = 5.0
"""Seconds for which `say`'s words stand."""


class CaseScreen(CaseCopying, CaseFinding, CaseNoting, CaseAgain, inherit_bindings=False):
    """Shows what a pointer leads to. `go_to` replaces it in place: the tab stays."""

    TITLE = "Case"
    BINDINGS: ClassVar = [*bindings("case", CASE_KEYS), *bindings("screen", SHARED_KEYS)]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    KEY_SECTIONS = (
        ("The case", CASE_KEYS),
        ("Moving", (*keys_in("moving"), *SHARED_KEYS)),
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
        super().__init__()
        self.pointer = pointer
        self.content = CaseContent(pointer)
        self.content.suite, _, self.content.name = pointer.case_id.partition("::")
        self._generation = 0
        self._active = 0
        self._shown: set[int] = set()
        self._words = ""
        self._fresh = False
        self._runs_seen: set[str] = set()
        self._reading_past: CasePointer | None = None
        self.query_text = ""
        self._timer: Timer | None = None
        self._tabs: tuple[InspectorTab, ...] = (
            TranscriptTab(),
            ToolsTab(),
            AssertionsTab(),
            DataTab(),
            RawTab(),
            HistoryTab(),
        )

    def compose(self) -> ComposeResult:
        """Head, tabs, the tab in front, keys."""
        yield LineLabel(classes="head")
        yield LineLabel(classes="tabs")
        with Container():
            yield from self._tabs
        yield CopyBar(self.hints())

    def on_mount(self) -> None:
        """Show the tab that was open the last time and read the attempt."""
        run = self.eval_app.state.run
        if run is not None:
            self._runs_seen.add(run.info.id)
        seen = getattr(self.app, "case_view", {})
        tab = seen.get("tab", 0)
        self._active = min(max(tab if isinstance(tab, int) else 0, 0), len(self._tabs) - 1)
        self._to_front()
        self.tab.set_class(bool(seen.get("zoomed")), "-zoomed")
        # Textual's own breakpoints come with the first resize: a frame too late
        self.set_class(self.app.size.width < WIDE, "-narrow")
        self.content = self._foreseen()
        self._head()
        self.tab.main.focus()
        self._load(keep=False)

    def hints(self) -> Sequence[Key]:
        """Seven keys of a debugger."""
        own = {key.id: key for key in CASE_KEYS}
        mine = [own[name] for name in ("case.difference", "turn.next", "attempt.next")]
        return [*mine, *keys_of("failure.next", "case.rerun", "case.edit", "help")]

    # -- what is shown

    @property
    def tab(self) -> InspectorTab:
        """The tab in front."""
        return self._tabs[self._active]

    def current(self) -> CasePointer | None:
        """The case and attempt looked at."""
        return self.pointer

    def go_to(self, pointer: CasePointer) -> None:
        """Show another case, or another attempt, in the same tab."""
        if pointer != self.pointer:
            self._fresh = False
            self.pointer = pointer
            self._load(keep=False)

    def reload(self) -> None:
        """Read the same attempt again, the cursor staying where it is."""
        self._load(keep=True)

    def _foreseen(self) -> CaseContent:
        """What the lists know, for the first frame: over a slow line the reason comes with it."""
        app, pointer = self.eval_app, self.pointer
        item = app.state.by_id.get(pointer.case_id)
        return foreseen(pointer, app.attempts_of(pointer), item.last if item is not None else None)

    def _where(self) -> Where:
        state = self.eval_app.state
        item = state.by_id.get(self.pointer.case_id)
        case = item.case if item is not None else None
        run = state.run
        if run is not None and self.pointer.run_id in (None, run.info.id):
            ref = run.find(self.pointer.case_id, self.pointer.agent, self.pointer.model)
            if ref is not None:
                return Where(self.pointer, run.folder, ref, case, state.root)
        if self.pointer.run_id is None:
            return Where(self.pointer, None, None, case, state.root)
        folder = Store(state.root).runs_folder / self.pointer.run_id
        return Where(self.pointer, folder, None, case, state.root)

    def _load(self, *, keep: bool) -> None:
        self._generation += 1
        loaded = partial(self._loaded, self._generation, keep)
        first = self._generation == 1
        run_in_thread(self.app, partial(load, self._where()), loaded, name="case", opens=first)

    def _loaded(self, generation: int, keep: bool, content: CaseContent) -> None:
        if generation != self._generation or not self.is_mounted:
            return
        content.fresh = self._fresh
        self.content = content
        self._reading_past = None
        self._shown = set()
        self._words = ""
        self._show_tab(keep=keep)
        self._head()

    def _show_tab(self, *, keep: bool) -> None:
        """Give the tab in front what was loaded, once."""
        if self._active in self._shown:
            return
        self._shown.add(self._active)
        self.tab.present(self.content, keep=keep)
        if isinstance(self.tab, TranscriptTab) and self.content.running:
            self._show_live()
        if self._active in (ASSERTIONS, HISTORY) and self.content.past is None:
            self._read_past()

    def _read_past(self) -> None:
        """What became of the case in all runs; only these two tabs show it."""
        if self._reading_past == self.pointer:
            return
        self._reading_past = self.pointer
        content = self.content
        column = (content.agent or self.pointer.agent, content.model or self.pointer.model)
        run_in_thread(
            self.app,
            partial(load_past, self.eval_app.state.root, self.pointer.case_id, *column),
            partial(self._past_read, content),
            name="past",
        )

    def _past_read(self, content: CaseContent, past: CasePast) -> None:
        if content is not self.content or not self.is_mounted:
            return
        content.past = past
        self._shown -= {ASSERTIONS, HISTORY}
        if self._active in (ASSERTIONS, HISTORY):
            self._shown.add(self._active)
            self.tab.present(content, keep=self._active == ASSERTIONS)
            if self._active == HISTORY:
                # what was hidden cannot be focused before the styles are looked at again
                self.call_after_refresh(self.focus_main)

    def noted(self) -> None:
        """The notes have changed: the head and the history show them."""
        past = self.content.past
        for one in past.attempts if past is not None else ():
            one.note = self.content.notes.get((one.run_id, one.row.id))
        self._shown.discard(HISTORY)
        if self._active == HISTORY:
            self._show_tab(keep=True)
        self._head()

    @on(HistoryTab.Chosen)
    def _attempt_chosen(self, event: HistoryTab.Chosen) -> None:
        event.stop()
        one = event.attempt
        self.go_to(CasePointer(self.pointer.case_id, one.agent, one.model, one.run_id, one.row.id))
        self.action_tab(0)

    def _head(self) -> None:
        width = self.size.width or 80
        lines = head(self.content, width, 3 if self.size.height >= 32 else 2)
        box = self.query_one(".head", LineLabel)
        box.styles.height = len(lines)
        box.set_lines(lines)
        tabs = tab_line(self._active, self.content.attempt, width)
        words = Span(self._words, "note")
        if self._words:
            room = max(width - width_of((words,)) - 1, 0)
            tabs = fit(tabs, room - 1)
            tabs = (*tabs, Span(" " * (room - width_of(tabs))), words)
        self.query_one(".tabs", LineLabel).set_lines([tabs])

    def say(self, words: str) -> None:
        """A few words at the right of the tabs, for some seconds or until the next ones."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(WORDS_STAY, partial(self.say, "")) if words else None
        if words != self._words:
            self._words = words
            self._head()

    def notice(self, words: str) -> bool:
        """Beside the tabs, or over them: a toast would cover what is looked at."""
        room = self.size.width - 1
        if width_of((Span(words),)) > room:
            return False
        self.say(words)
        return True

    def on_resize(self) -> None:
        """The head depends on the width."""
        self._head()

    # -- news of the run

    @on(LiveText)
    def _live_text(self, event: LiveText) -> None:
        if self.content.row is not None and self.content.row.id in event.attempts:
            self._show_live()

    def _show_live(self) -> None:
        run, row = self.eval_app.state.run, self.content.row
        if self._active == 0 and run is not None and row is not None and run.info.id == self._run_id():
            tab = self._tabs[0]
            if isinstance(tab, TranscriptTab) and tab.size.width:
                tab.show_live(run.live.get(row.id))

    def _run_id(self) -> str | None:
        run = self.eval_app.state.run
        return self.pointer.run_id or (run.info.id if run is not None else None)

    @on(RunChanged)
    def _run_changed(self, event: RunChanged) -> None:
        state = self.eval_app.state
        run = state.run
        if event.run_id and state.group is not None:
            run = state.group.find_run(event.run_id)
        if run is None:
            return
        ref = run.find(self.pointer.case_id, self.pointer.agent, self.pointer.model)
        if ref is None:
            return
        if event.opened and run.info.id not in self._runs_seen and run.info.id != self.pointer.run_id:
            # The case was run again: the new attempt is what the person waits for.
            self._runs_seen.add(run.info.id)
            self.pointer = CasePointer(
                self.pointer.case_id, self.pointer.agent, self.pointer.model, run.info.id
            )
            self._fresh = True
            self._load(keep=False)
            return
        if run.info.id != self._run_id() or not any(row.case_ref == ref for row in event.changed):
            return
        here = self.content.row
        rows = run.attempts_of(ref)
        fresh = next((row for row in rows if here is not None and row.id == here.id), None)
        self.content.rows = rows
        self.content.family = merged(self.content.family, run.info.id, rows, replaced_by(run.info))
        if fresh is None or (fresh.state == "done" and self.content.attempt is None):
            self.reload()
        elif self.content.attempt is None:
            self.content.row = fresh
        self._head()

    def on_screen_resume(self) -> None:
        """What happened meanwhile."""
        if self._shown and (self.content.running or self.content.row is None):
            self.reload()

    # -- tabs and panes

    def action_tab(self, index: int) -> None:
        """Bring a tab to the front."""
        if index == self._active:
            return
        self.tab.remove_class("-front")
        self._active = index
        self._to_front()
        self._words = ""
        self._show_tab(keep=False)
        self._head()
        self.focus_main()
        self._keep_view()

    def _to_front(self) -> None:
        self.tab.add_class("-front")
        self.set_class(self._active == DATA, "-rows")  # notices then keep off the explained cell

    def _keep_view(self) -> None:
        """Keep the tab and the zoom for the next case, and the next time."""
        self.eval_app.case_view = {"tab": self._active, "zoomed": self.tab.has_class("-zoomed")}

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
        """Close the question at the foot, or leave the zoom; False where there is neither."""
        prompts = self.query(Prompt)
        if prompts:
            prompts.first().leave()
            return True
        if self.tab.has_class("-zoomed"):
            self.action_zoom()
            return True
        return False

    # -- keys

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
            CasePointer(old.case_id, old.agent, old.model, placed.run_id or self._run_id(), placed.row.id)
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
        self._show_tab(keep=True)
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
        self._keep_view()

    def action_wrap(self) -> None:
        """Wrap lines or not."""
        self.say(self.tab.toggle_wrap())

    def action_sql(self) -> None:
        """The SQL behind the rows; in Tools, the calls as bars over time."""
        if isinstance(self.tab, DataTab):
            self.say(self.tab.toggle_sql())
        elif isinstance(self.tab, ToolsTab):
            self.say(self.tab.toggle_times())
        else:
            self.say("s shows the SQL in Data: 4, times in Tools: 2")

    def action_freeze(self) -> None:
        """Columns of rows that stay while one goes sideways."""
        self.say(self.tab.toggle_freeze() if isinstance(self.tab, DataTab) else "v keeps columns in Data: 4")

    def action_pager(self) -> None:
        """The tab's whole text in the pager."""
        self.say(pager.show(self.app, self.tab.whole_text(), "case"))

    @on(Said)
    def _said(self, event: Said) -> None:
        event.stop()
        self.say(event.words)
