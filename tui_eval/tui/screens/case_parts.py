"""What the Case screen does besides showing: finding in the tab in front, and copying out of it."""

from __future__ import annotations

import threading
import time
from functools import partial

from textual import on
from textual.events import Key
from textual.widgets import Input

from tui_eval.guard.text import clip
from tui_eval.model import Verdict
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.inspector.assertions import AssertionsTab
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.place import Place
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.copying import CHOICES, text_of
from tui_eval.tui.state.case.transcript_view import build
from tui_eval.tui.state.data.data_export import ExportEnded
from tui_eval.tui.state.text.block_layout import MOST_HITS
from tui_eval.tui.terminal import clipboard
from tui_eval.tui.widgets.copy_bar import CopyBar
from tui_eval.tui.widgets.text_pane import SEARCHING, TELL, TextPane, whole_text

CSV_COPIED = 2_000
"""Differing rows that `y d` copies; `Y d` writes all of them."""


ASSERTIONS, DATA, HISTORY = 2, 3, 5
"""Tabs by their place."""


class CasePart(Place, inherit_bindings=False):
    """What the parts of the Case screen share."""

    def __init__(self, pointer: CasePointer, tabs: tuple[InspectorTab, ...]) -> None:
        super().__init__()
        self.pointer = pointer
        self.content = CaseContent(pointer)
        self.query_text = ""
        self._tabs = tabs
        self._active = 0
        self._shown: set[int] = set()
        self._generation = 0
        self._fresh = False
        self._runs_seen: set[str] = set()
        self._reading_past: CasePointer | None = None
        self._writing: threading.Event | None = None

    @property
    def tab(self) -> InspectorTab:
        """The tab in front."""
        return self._tabs[self._active]

    def say(self, words: str) -> None:
        """A few words for the person."""
        raise NotImplementedError

    def action_tab(self, index: int) -> None:
        """Bring a tab to the front."""
        raise NotImplementedError

    def show_head(self) -> None:
        """Show outcome, reason and tabs as they are now."""
        raise NotImplementedError

    def show_tab(self, *, keep: bool) -> None:
        """Give the tab in front what was loaded, once."""
        raise NotImplementedError

    def keep_view(self) -> None:
        """Keep the tab and the zoom for the next case, and the next time."""
        self.services.memory.case_view = {"tab": self._active, "zoomed": self.tab.has_class("-zoomed")}

    @property
    def run_id(self) -> str | None:
        """The run looked at: the pointer's, else the one in front."""
        run = self.services.state.run
        return self.pointer.run_id or (run.info.id if run is not None else None)

    def announce(self, words: str) -> None:
        """Something to be read again in the log: beside the tabs, where that has room, else over the screen."""
        self.services.notices.log("note", words)
        if not stands(self) or not self.notice(words):
            self.app.notify(words, markup=False)

    def refuse(self, error: Exception) -> None:
        """What could not be written, in one line."""
        self.services.notices.problem(str(error))

    def focus_main(self) -> None:
        """Give the keys to the tab's main pane."""
        main = self.tab.main
        if main.display:
            main.focus(scroll_visible=False)


class CaseFinding(CasePart, inherit_bindings=False):
    """`/`, `n` and `N` in the tab in front."""

    async def action_find(self) -> None:
        """Ask what to look for. Ends when the prompt has the focus: keys typed ahead belong to it."""
        if not self.query(Prompt):
            last = clip(self.query_text, 40)
            hint = f"enter: {last} again, esc: marks away" if last else "text in this tab"
            prompt = Prompt("find", "", hint)
            await self.mount(prompt)
            self.set_focus(prompt.query_one(Input), scroll_visible=False)

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        event.stop()

    @on(Prompt.Left)
    def _left(self, event: Prompt.Left) -> None:
        if event.purpose != "find":
            return
        event.stop()
        for prompt in self.query(Prompt):
            prompt.remove()
        self.focus_main()
        self.query_text = (event.text or self.query_text) if event.kept else ""
        count = self.tab.find(self.query_text)
        if not self.query_text:
            self.say("")
        elif count == SEARCHING:
            self.say("searching…")
        else:
            self.say(self._found(self.tab.find_next(0)) if count else self._found((0, 0)))

    async def action_find_next(self, step: int) -> None:
        """The next or previous place."""
        if not self.query_text:
            await self.action_find()
            return
        found = self.tab.find_next(step)
        self.say("searching…" if self.tab.searching and not found[1] else self._found(found))

    @on(TextPane.Searched)
    def _searched(self, event: TextPane.Searched) -> None:
        event.stop()
        if event.pane is self.tab.text:
            number, count = event.pane.places
            so_far = f"{number:,} of {count:,}, " if event.words and count else ""
            self.say(so_far + event.words if event.words else self._found((number, count)))

    def _found(self, place: tuple[int, int]) -> str:
        more = " or more" if place[1] >= MOST_HITS else ""
        if place[1] and not place[0]:
            return f"{place[1]:,}{more} places: n goes to the next"
        return f"{place[0]:,} of {place[1]:,}{more}" if place[1] else f"not here: {self.query_text}"


class CaseCopying(CasePart, inherit_bindings=False):
    """`y` and `Y`, then a letter."""

    def action_copy(self) -> None:
        """Ask what to copy."""
        self.query_one(CopyBar).ask("copy", CHOICES)

    def action_write(self) -> None:
        """Ask what to write to a file."""
        self.query_one(CopyBar).ask("write", CHOICES)

    def on_key(self, event: Key) -> None:
        """While the foot asks, the next key is its answer."""
        bar = self.query_one(CopyBar)
        if bar.asking:
            bar.take(event)

    @on(CopyBar.Chosen)
    def _chosen(self, event: CopyBar.Chosen) -> None:
        if event.purpose not in ("copy", "write") or event.choice is None:
            return
        event.stop()
        what, to_file = CHOICES[event.choice], event.purpose == "write"
        if event.choice == "d" and isinstance(self.tab, DataTab):
            self._rows_out(self.tab, to_file)
            return
        text = self._text_of(event.choice)
        if not text:
            self.say(f"there is no {what} to copy")
        elif to_file:
            run_in_thread(
                self.app,
                partial(clipboard.write_file, text, f"{self.content.name}-{what}"),
                lambda path: self.announce(f"{what}: {len(text):,} characters written to {path}"),
                self.refuse,
                name="write",
            )
        else:
            self.announce(clipboard.copied(self.app, text, what))

    def _rows_out(self, tab: DataTab, to_file: bool) -> None:
        """The differing cells as CSV, made in a thread: there may be millions. It says how far it is, esc ends it."""
        view = tab.view
        if view is None:
            self.say("no rows here")
            return
        if self._writing is not None:
            self.say("rows are being written already: esc ends that")
            return
        self._writing = writing = threading.Event()
        told = time.monotonic()

        def progress(done: int, total: int) -> bool:
            nonlocal told
            if time.monotonic() - told > TELL:
                told = time.monotonic()
                self.app.call_later(self._so_far, writing, done, total)
            return not writing.is_set()

        def write() -> str:
            if not to_file:
                return "".join(view.csv(CSV_COPIED, progress))
            path = clipboard.write_pieces(view.csv(None, progress), f"{self.content.name}-difference", ".csv")
            return f"difference: {len(view.differing):,} rows written to {path}"

        def written(said: str) -> None:
            self._writing = None
            self.announce(said if to_file else clipboard.copied(self.app, said, "difference"))

        def failed(error: Exception) -> None:
            self._writing = None
            if isinstance(error, ExportEnded):
                total = len(view.differing)
                self.announce(f"difference: ended after {error.rows:,} of {total:,} rows, nothing is written")
            else:
                self.refuse(error)

        run_in_thread(self.app, write, written, failed, name="write")

    def _so_far(self, writing: threading.Event, done: int, total: int) -> None:
        if writing is self._writing and not writing.is_set() and stands(self):
            self.say(f"writing… {done:,} of {total:,} rows; esc ends it")

    def end_writing(self) -> bool:
        """Let what is being written be; False where nothing is."""
        if self._writing is None or self._writing.is_set():
            return False
        self._writing.set()
        return True

    def _text_of(self, choice: str) -> str:
        """The text behind a letter; in Data the cell's, in Assertions the verdict's under the cursor."""
        if choice in "ae" and isinstance(self.tab, DataTab):
            cell = self.tab.cell()
            if cell is not None:
                return (cell.expected if choice == "e" else cell.actual) or ""
        return text_of(
            self.content, choice, self._verdict_here(), self._transcript() if choice == "t" else ""
        )

    def _verdict_here(self) -> Verdict | None:
        block = self.tab.text.block if isinstance(self.tab, AssertionsTab) and self.tab.text else None
        if block is None or not block.key.startswith("v") or self.content.attempt is None:
            return None
        return self.content.attempt.verdicts[int(block.key[1:])]

    def _transcript(self) -> str:
        """The whole transcript as text; of a running attempt what it has said so far."""
        if self.content.attempt is not None:
            return whole_text(build(self.content.attempt).blocks)
        return self.query(TextPane).first().rows_text()
