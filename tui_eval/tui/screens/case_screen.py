"""The Case screen: one attempt of one case, from the line that says why to the bytes on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.timer import Timer
from textual.widget import Widget

from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.front import LiveText, RunChanged, Said, SuitesChanged
from tui_eval.tui.handlers import Handler
from tui_eval.tui.inspector.assertions import AssertionsTab
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.history import HistoryTab
from tui_eval.tui.inspector.raw import RawTab
from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.inspector.tools_tab import ToolsTab
from tui_eval.tui.inspector.transcript import TranscriptTab
from tui_eval.tui.keys import CASE_KEYS, CASE_OPEN_KEYS, SHARED_KEYS, Key, bindings
from tui_eval.tui.screens.case_actions import CaseCopier, CaseFinder, CaseNotes
from tui_eval.tui.screens.case_reader import CaseReader, place_of_fault
from tui_eval.tui.screens.place import Place, keys_in, keys_of
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case.case_content import CaseContent, deciding, head
from tui_eval.tui.state.case.case_tabs import filled, next_filled, tab_at, tab_line
from tui_eval.tui.state.case.verdict_lines import about_rows
from tui_eval.tui.state.runs.search_view import SoughtPlace
from tui_eval.tui.state.text.lines import Line, Span, width_of
from tui_eval.tui.terminal import clipboard, pager
from tui_eval.tui.widgets.bars import CopyBar, KeyHints
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane
from tui_eval.tui.widgets.text_pane import TextPane

TRANSCRIPT, ASSERTIONS, DATA, HISTORY = 0, 2, 3, 5
"""Tabs by their place."""
WIDE = 100
"""Columns from which on the outline stands beside the text."""
WORDS_STAY = 5.0
"""Seconds for which `say`'s words stand."""
PAGING = "making the text…"


Begin = Literal["as before", "difference", "history"]


class CaseScreen(Place, inherit_bindings=False):
    """Shows what a pointer leads to. `go_to` replaces it in place: the tab stays."""

    AUTO_FOCUS = ""  # what comes first is a pane of a tab that need not be in front
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

    def __init__(
        self, pointer: CasePointer, sought: SoughtPlace | None = None, *, begin: Begin = "as before"
    ) -> None:
        """`sought` is where in its transcript to begin, `begin` what else to begin with than the tab that was open
        the last time."""
        super().__init__()
        services = self.services
        self.reader = CaseReader(self, services, pointer)
        self.finder = CaseFinder(self)
        self.copier = CaseCopier(self, services)
        self._notes = CaseNotes(self, services)
        self._sought = sought
        self._begin: Begin = begin
        self._was_running = False
        """Whether what was read last was still being made: the transcript may stand in the place of an empty tab."""
        self._strip: Line = ()
        """The line of tabs as it is shown."""
        self._tabs = (TranscriptTab(sought), ToolsTab(), AssertionsTab(), DataTab(), RawTab(), HistoryTab())
        self._active = 0
        self._shown: set[int] = set()
        """Tabs that were given what was read."""
        self._words = ""
        self._timer: Timer | None = None

    @property
    def one_column(self) -> bool:
        """What keys do here they do for the column that is shown, whatever others the case has."""
        return True

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do, those of its parts, and keys of lists that mean the same here."""
        return {
            **self.finder.handlers(),
            **self.copier.handlers(),
            **self._notes.handlers(),
            "case.tab_1": partial(self.open_tab, 0),
            "case.tab_2": partial(self.open_tab, 1),
            "case.tab_3": partial(self.open_tab, ASSERTIONS),
            "case.tab_4": partial(self.open_tab, DATA),
            "case.tab_5": partial(self.open_tab, 4),
            "case.tab_6": partial(self.open_tab, HISTORY),
            "case.difference": self._to_difference,
            "turn.next": partial(self._to_turn, 1),
            "turn.previous": partial(self._to_turn, -1),
            "call.next": partial(self._to_call, 1),
            "call.previous": partial(self._to_call, -1),
            "attempt.next": partial(self._to_attempt, 1),
            "attempt.previous": partial(self._to_attempt, -1),
            "case.only": self._toggle_only,
            "case.from_turn": self._from_turn,
            "case.follow": self._toggle_follow,
            "case.zoom": self._toggle_zoom,
            "case.wrap": self._toggle_wrap,
            "case.raw": self._toggle_raw,
            "case.sql": self._show_sql,
            "case.query": self._try_query,
            "case.freeze": self._freeze,
            "case.pager": self._page,
            "pane.next": partial(self._pane, 1),
            "pane.previous": partial(self._pane, -1),
        }

    def compose(self) -> ComposeResult:
        """Head, tabs, the tab in front, keys."""
        yield LineLabel(classes="head")
        yield LineLabel(classes="tabs")
        with Container():
            yield from self._tabs
        yield CopyBar()

    def on_mount(self) -> None:
        """Show the tab that was open the last time and read the attempt."""
        memory = self.services.memory
        if self._sought is not None:
            memory.case_view = {**memory.case_view, "tab": 0}
        seen = memory.case_view
        tab = seen.get("tab", 0)
        self._active = min(max(tab if isinstance(tab, int) else 0, 0), len(self._tabs) - 1)
        self._to_front()
        self.tab.set_class(bool(seen.get("zoomed")), "-zoomed")
        self.reader.foresee()
        self.show_head()
        self.tab.main.focus()
        self.reader.load(keep=False)

    def hints(self) -> Sequence[Key]:
        """Seven keys of a debugger, in the words of the tab in front; the way back where these leave room for it."""
        own = {key.id: key for key in (*CASE_KEYS, *CASE_OPEN_KEYS)}
        words = self.tab.foot_words
        names = [
            self._useful(name) for name in (*self.tab.foot_of(self.content), "attempt.next", "case.copy")
        ]
        mine = [replace(own[name], label=words.get(name, own[name].label)) for name in names if name]
        keys = [*mine[:3], *self._everywhere()]
        return [*keys, *keys_of(*(["back"] if len(keys) < KeyHints.MOST - 1 else []), "help")]

    def _useful(self, name: str) -> str:
        """The id of a key that would do something: this one, or that of the other way; else nothing."""
        tab, content = self.tab, self.content
        there = {
            "turn.next": tab.has_turn,
            "call.next": tab.has_call,
            "attempt.next": lambda step: content.step(step) is not None,
        }.get(name)
        if there is not None and not there(1):
            return name.replace("next", "previous") if there(-1) else ""
        attempt = content.attempt
        if name == "case.difference":
            index = deciding(attempt.verdicts) if attempt is not None else None
            if attempt is None or index is None:
                return ""
            rows = about_rows(attempt.verdicts[index]) and attempt.data is not None
            return "" if self._active == (DATA if rows else ASSERTIONS) else name
        if name == "case.copy":
            return name if attempt is not None or content.case is not None else ""
        return name

    def _everywhere(self) -> list[Key]:
        """What may be done with the case itself, and where to go from it."""
        services, pointer = self.services, self.reader.pointer
        known, names = services.state, list[str]()
        place = services.places.list_in_front
        if place is not None and place.other_failing(pointer):
            names.append("failure.next")
        run = known.find_run(self.reader.run_id)
        if self.content.running and run is not None and run.active:
            names += ["case.cancel"] if run.info.id not in services.engines.out_of_reach else []
        elif pointer.case_id in known.by_id:
            names.append("case.rerun")
        if pointer.case_id in known.by_id or pointer.case_id in known.gone:
            names.append("case.edit")
        return keys_of(*names)

    @on(LinePane.Moved)
    @on(InspectorTab.Shown)
    def _moved(self) -> None:
        """What is further on hangs on where the cursor is."""
        if self.has(CopyBar, LinePane):
            self.foot.show(self.hints())

    # -- what is shown

    @property
    def content(self) -> CaseContent:
        """What was read of the attempt."""
        return self.reader.content

    @property
    def tab(self) -> InspectorTab:
        """The tab in front."""
        return self._tabs[self._active]

    @property
    def tab_shown(self) -> int:
        """The number, from 0, of the tab in front."""
        return self._active

    @property
    def foot(self) -> CopyBar:
        """The keys, or a question that one key answers."""
        return self.query_one(CopyBar)

    def current(self) -> CasePointer:
        """The case and attempt looked at."""
        return self.reader.pointer

    def go_to(self, pointer: CasePointer) -> None:
        """Show another case, or another attempt, in the same tab."""
        self.reader.go_to(pointer)

    def loaded(self, keep: bool) -> None:
        """Show what was read."""
        self._shown = set()
        self._words = ""
        ended, self._was_running = self._was_running and not self.content.running, self.content.running
        tab = self._active
        if not keep or ended:
            self._to_what_there_is()
        self.show_tab(keep=keep and tab == self._active)
        self.show_head()
        if self.content.running and self._begin == "difference":
            return  # there is none before the attempt's end
        begin, self._begin = self._begin, "as before"
        if begin == "difference":
            self._to_difference()
        elif begin == "history":
            self.open_tab(HISTORY)

    def _to_what_there_is(self) -> None:
        """The tab that was chosen last, where this attempt has something in it; else what was said."""
        chosen = self.services.memory.case_view.get("tab")
        place = chosen if isinstance(chosen, int) and 0 <= chosen < len(self._tabs) else self._active
        place = place if filled(self.content)[place] else 0
        if place != self._active:
            self._bring(place)
            self.focus_home()

    def past_read(self) -> None:
        """Show what became of the case in all runs: two tabs do."""
        self.foot.show(self.hints())
        self._shown -= {ASSERTIONS, HISTORY}
        if self._active in (ASSERTIONS, HISTORY):
            self._shown.add(self._active)
            self.tab.present(self.content, keep=self._active == ASSERTIONS)
            if self._active == HISTORY:
                # what was hidden cannot be focused before the styles are looked at again
                self.call_after_refresh(self.focus_home)

    def show_tab(self, *, keep: bool) -> None:
        """Give the tab in front what was loaded, once."""
        if self._active in self._shown:
            return
        self._shown.add(self._active)
        self.tab.present(self.content, keep=keep)
        if isinstance(self.tab, TranscriptTab) and self.content.running:
            self._show_live()
        if self._active in (ASSERTIONS, HISTORY) and self.content.past is None:
            self.reader.read_past()

    def _show_live(self) -> None:
        run, row = self.services.state.find_run(self.reader.run_id), self.content.row
        tab = self.tab
        if isinstance(tab, TranscriptTab) and run is not None and row is not None and tab.size.width:
            tab.show_live(run.live.get(row.id))

    def live_text(self) -> str:
        """What a running attempt has said so far."""
        return self.query(TextPane).first().rows_text()

    def copy_text(self, text: str, what: str) -> str:
        """Copy to the terminal's clipboard; what to say of it."""
        return clipboard.copied(self.app, text, what)

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
        self.foot.show(self.hints())
        width = self.size.width or 80
        lines = head(self.content, width, 3 if self.size.height >= 32 else 2)
        box = self.query_one(".head", LineLabel)
        box.styles.height = len(lines)
        box.set_lines(lines)
        tabs = tab_line(self._active, self.content, width)
        words = Span(self._words, "note")
        if self._words:
            room = max(width - width_of((words,)) - 1, 0)
            tabs = tab_line(self._active, self.content, room - 1)
            tabs = (*tabs, Span(" " * (room - width_of(tabs))), words)
        self._strip = tabs
        self.query_one(".tabs", LineLabel).set_lines([tabs])

    @on(events.Click, ".tabs")
    def _tab_clicked(self, event: events.Click) -> None:
        index = tab_at(self._strip, event.x)
        if index is not None:
            self.open_tab(index)

    def say(self, words: str) -> None:
        """A few words at the right of the tabs, or in the footer where they would take the tabs' names, for some
        seconds or until the next ones."""
        self.foot.say("")
        beside = (*tab_line(self._active, self.content, 2 * len(words) + 999), Span(f"  {words}"))
        if words and width_of(beside) > self.size.width and self.foot.say(words, WORDS_STAY):
            words = ""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(WORDS_STAY, partial(self.say, "")) if words else None
        if words != self._words:
            self._words = words
            self.show_head()

    def unsay(self, words: str) -> None:
        """Take these words away, where they still stand."""
        if words in (self._words, self.foot.said):
            self.say("")

    def place_to_edit(self) -> tuple[str, int] | None:
        """Where the expected query failed, in the file as it is now."""
        return place_of_fault(self.content, self.services.state.root)

    def notice(self, words: str) -> bool:
        """Beside the tabs, or over them: a toast would cover what is looked at."""
        room = self.size.width - 1
        if not self.has(CopyBar) or width_of((Span(words),)) > room:
            return False  # a run may end while this opens or is left
        self.say(words)
        return True

    def announce(self, words: str) -> None:
        """Something to be read again in the log: beside the tabs, where that has room, else over the screen."""
        self.services.notices.log("note", words)
        if not stands(self) or not self.notice(words):
            self.app.notify(words, markup=False)

    def on_resize(self) -> None:
        """The head depends on the width."""
        self.show_head()

    # -- tabs and panes

    def open_tab(self, index: int) -> None:
        """Bring a tab to the front."""
        if index == self._active:
            self._keep_view()  # it may stand in the place of another, and is what is wanted now
            return
        self._bring(index)
        self.say("")  # what a key did in the tab before
        self.show_tab(keep=False)
        self.show_head()
        self.focus_home()
        self._keep_view()

    def _try_query(self) -> None:
        """Where rows are, on the database that they are of."""
        if isinstance(self.tab, DataTab):
            self.tab.try_query()
        else:
            self.say("S tries a query in Data: 4")

    def _to_front(self) -> None:
        self.tab.add_class("-front")
        self.foot.show(self.hints())
        self.set_class(self._active == DATA, "-rows")  # notices then keep off the explained cell

    def _bring(self, index: int) -> None:
        self.tab.remove_class("-front")
        self._active = index
        self._to_front()

    def _pane(self, step: int) -> None:
        """The next or previous pane of the tab; from the last one the next tab that has something to show, from the
        first one the previous."""
        panes = self.tab.panes()
        at = next((i for i, pane in enumerate(panes) if pane.has_focus), -1)
        if at >= 0 and 0 <= at + step < len(panes):
            self._focus_pane(panes[at + step])
        elif (other := next_filled(self.content, self._active, step)) != self._active:
            self.open_tab(other)
        elif panes:
            self._focus_pane(panes[(at + step) % len(panes)])

    def _focus_pane(self, pane: Widget) -> None:
        pane.add_class("-asked")
        pane.focus(scroll_visible=False)
        for other in self.tab.panes():
            if other is not pane:
                other.remove_class("-asked")

    def focus_home(self) -> None:
        """Give the keys to the tab's main pane."""
        main = self.tab.main
        if main.display:
            main.focus(scroll_visible=False)

    def _keep_view(self) -> None:
        """Keep the tab and the zoom for the next case, and the next time."""
        self.services.memory.case_view = {"tab": self._active, "zoomed": self.tab.has_class("-zoomed")}

    def back(self) -> bool:
        """Close the question at the foot, end what is being written, or leave the zoom; False where there is none
        of them."""
        if super().back() or self.copier.end_writing():
            return True
        if self.tab.has_class("-zoomed"):
            self._toggle_zoom()
            return True
        return False

    # -- keys that look at it

    def _to_turn(self, step: int) -> None:
        """Next or previous turn; in Data difference, in Assertions verdict, in Raw exchange."""
        self.say(self.tab.turn(step))

    def _to_call(self, step: int) -> None:
        """Next or previous tool call."""
        self.say(self.tab.call(step))

    def _to_attempt(self, step: int) -> None:
        """Next or previous attempt."""
        if not self.reader.step(step):
            self.say("no later attempt" if step > 0 else "no earlier attempt")

    def _toggle_only(self) -> None:
        """Only what matters, in all tabs."""
        only = not self.tab.only
        for tab in self._tabs:
            tab.only = only
        self._again("only what matters: i shows all" if only else "everything")

    def _toggle_raw(self) -> None:
        """Raw or rendered, in all tabs; on the rows of Data, one table or side by side."""
        if isinstance(self.tab, DataTab) and self.tab.grid.has_focus:
            self.say(self.tab.toggle_sides())
            return
        rendered = not self.tab.rendered
        for tab in self._tabs:
            tab.rendered = rendered
        self._again("rendered" if rendered else "raw: o renders")

    def _again(self, words: str) -> None:
        """Show what is loaded anew, in another way."""
        self._shown = set()
        self.show_tab(keep=True)
        self.say(words)

    def _to_difference(self) -> None:
        """The difference that made it fail."""
        attempt = self.content.attempt
        index = deciding(attempt.verdicts) if attempt else None
        if attempt is not None and index is None and attempt.outcome == "error":
            self.open_tab(TRANSCRIPT)  # where the turn that broke stands with its error, the last of it
            if self.tab.text is not None:
                self.tab.text.show_tail()
            return
        if attempt is None or index is None:
            self.say("nothing failed here")
            return
        if about_rows(attempt.verdicts[index]) and attempt.data is not None:
            self.open_tab(DATA)
            return
        self.open_tab(ASSERTIONS)
        tab = self.tab
        if isinstance(tab, AssertionsTab) and tab.size.width:
            tab.to_deciding(self.content)

    def _toggle_follow(self) -> None:
        """Follow the tail of a running attempt, or stop."""
        text = self.tab.text
        if text is None or self._active != 0:
            self.say("t follows the transcript: 1")
            return
        text.following = not text.following
        if text.following:
            text.show_tail()
        self.say("following the tail" if text.following else "not following")

    def _toggle_zoom(self) -> None:
        """The main pane alone, or beside its others."""
        self.tab.zoom()
        self.focus_home()
        self._keep_view()

    def _toggle_wrap(self) -> None:
        """Wrap lines or not."""
        self.say(self.tab.toggle_wrap())

    def _show_sql(self) -> None:
        """The SQL behind the rows; in Tools, the calls as bars over time."""
        if isinstance(self.tab, DataTab):
            self.say(self.tab.toggle_sql())
        elif isinstance(self.tab, ToolsTab):
            self.say(self.tab.toggle_times())
            self.show_head()
        else:
            self.say("s shows the SQL in Data: 4, times in Tools: 2")

    def _freeze(self) -> None:
        """Columns of rows that stay while one goes sideways."""
        self.say(self.tab.toggle_freeze() if isinstance(self.tab, DataTab) else "v keeps columns in Data: 4")

    def _page(self) -> None:
        """The tab's whole text in the pager; made in a thread, and not shown to who has gone on meanwhile."""
        tab, pointer = self.tab, self.content.pointer

        def show(text: str) -> None:
            self.unsay(PAGING)
            if self.is_current and self.tab is tab and self.content.pointer == pointer:
                self.say(pager.show(self.app, text, "case"))

        self.say(PAGING)
        run_in_thread(self.app, tab.text_maker(), show, name="pager", opens=True)

    # -- keys that ask for another attempt

    def judge_again(self) -> bool:
        """Judge the recorded answers of the column that is shown, those of all its attempts, by the case as it is
        now; nothing is sent to the agent."""
        self._record(None)
        return True

    def _from_turn(self) -> None:
        """Run the case again from the turn under the cursor on; those before it are taken as recorded."""
        block = self.tab.text.block if self.tab.text is not None else None
        turn = block.turn if block is not None else 0
        if turn < 1:
            self.say("put the cursor on a turn first")
        elif self._record(turn):
            self.query_one(TranscriptTab).begin_at(self.content, turn)

    def _record(self, turn: int | None) -> bool:
        """Ask for it; says so where there is no finished attempt to begin from."""
        content = self.content
        row = content.row
        if row is None or row.state != "done" or content.attempt is None:
            self.say("there is no finished attempt to begin from")
            return False
        self.services.runs.from_recorded(content, turn)
        return True

    # -- news

    def on_key(self, event: events.Key) -> None:
        """While the foot asks, the next key is its answer."""
        if self.foot.asking:
            self.foot.take(event)

    @on(CopyBar.Chosen)
    async def _chosen(self, event: CopyBar.Chosen) -> None:
        event.stop()
        done = event.answer(event.choice)
        if isawaitable(done):
            await done

    @on(TextPane.Searched)
    def _searched(self, event: TextPane.Searched) -> None:
        event.stop()
        self.finder.searched(event.pane, event.words)

    @on(TranscriptTab.VerdictOpened)
    def _verdict_opened(self, event: TranscriptTab.VerdictOpened) -> None:
        event.stop()
        self.open_tab(ASSERTIONS)
        tab = self.tab
        if isinstance(tab, AssertionsTab):
            tab.to_verdict(event.key)

    @on(TranscriptTab.Marked)
    def _searched_for(self, event: TranscriptTab.Marked) -> None:
        event.stop()
        self.finder.sought = event.words

    @on(HistoryTab.Chosen)
    def _attempt_chosen(self, event: HistoryTab.Chosen) -> None:
        event.stop()
        one = event.attempt
        case_id = self.reader.pointer.case_id
        self.go_to(CasePointer(case_id, one.agent, one.model, one.run_id, one.row.id))
        self.open_tab(0)

    @on(LiveText)
    def _live_text(self, event: LiveText) -> None:
        if self.content.row is not None and self.content.row.id in event.attempts:
            self._show_live()

    @on(SuitesChanged)
    def _suites_changed(self) -> None:
        """The case may be another now than the one that was judged."""
        item = self.services.state.by_id.get(self.reader.pointer.case_id)
        if item is not None and item.content != self.content.today:
            self.content.today = item.content
            self.show_head()
        self._notes.look()

    @on(RunChanged)
    def _run_changed(self, event: RunChanged) -> None:
        self.reader.run_changed(event)

    def on_screen_resume(self) -> None:
        """What happened meanwhile."""
        if self._shown and self.content.attempt is None:
            self.reader.reload()

    @on(Said)
    def _said(self, event: Said) -> None:
        event.stop()
        self.say(event.words)
