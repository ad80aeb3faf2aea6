"""`y` and `Y` on the Case screen, then a letter: what is looked at, to the clipboard or to a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import partial

from tui_eval.model import Verdict
from tui_eval.tui.handlers import Handler
from tui_eval.tui.inspector.assertions import AssertionsTab
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.screens.case_front import CaseFront
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.case.copying import CHOICES, text_of
from tui_eval.tui.state.case.transcript_view import build
from tui_eval.tui.state.data.data_export import ExportEnded
from tui_eval.tui.terminal import clipboard
from tui_eval.tui.widgets.text_pane import TELL, whole_text

CSV_COPIED = 2_000
"""Differing rows that `y d` copies; `Y d` writes all of them."""


class CaseCopier:
    """Asks what to copy; files are written in threads."""

    def __init__(self, screen: CaseFront, services: AppServices) -> None:
        self._screen, self._services = screen, services
        self._writing: threading.Event | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {"case.copy": self.copy, "case.write": self.write}

    def copy(self) -> None:
        """Ask what to copy."""
        self._screen.foot.ask("copy", CHOICES, partial(self._chosen, False))

    def write(self) -> None:
        """Ask what to write to a file."""
        self._screen.foot.ask("write", CHOICES, partial(self._chosen, True))

    def _chosen(self, to_file: bool, choice: str) -> None:
        what = CHOICES[choice]
        if choice == "d" and isinstance(self._screen.tab, DataTab):
            self._rows_out(self._screen.tab, to_file)
            return
        text = self._text_of(choice)
        if not text:
            self._screen.say(f"there is no {what} to copy")
        elif to_file:
            self._services.tasks.thread(
                partial(clipboard.write_file, text, f"{self._screen.content.name}-{what}"),
                lambda path: self._screen.announce(f"{what}: {len(text):,} characters written to {path}"),
                self._refuse,
                name="write",
            )
        else:
            self._screen.announce(self._screen.copy_text(text, what))

    def _rows_out(self, tab: DataTab, to_file: bool) -> None:
        """The differing cells as CSV, made in a thread: there may be millions. It says how far it is, esc ends it."""
        view = tab.view
        if view is None:
            self._screen.say("no rows here")
            return
        if self._writing is not None:
            self._screen.say("rows are being written already: esc ends that")
            return
        self._writing = writing = threading.Event()
        told = time.monotonic()

        def progress(done: int, total: int) -> bool:
            nonlocal told
            if time.monotonic() - told > TELL:
                told = time.monotonic()
                self._services.tasks.later(self._so_far, writing, done, total)
            return not writing.is_set()

        def write() -> str:
            if not to_file:
                return "".join(view.csv(CSV_COPIED, progress))
            path = clipboard.write_pieces(
                view.csv(None, progress), f"{self._screen.content.name}-difference", ".csv"
            )
            return f"difference: {len(view.differing):,} rows written to {path}"

        def written(said: str) -> None:
            self._writing = None
            self._screen.announce(said if to_file else self._screen.copy_text(said, "difference"))

        def failed(error: Exception) -> None:
            self._writing = None
            if isinstance(error, ExportEnded):
                total = len(view.differing)
                self._screen.announce(
                    f"difference: ended after {error.rows:,} of {total:,} rows, nothing is written"
                )
            else:
                self._refuse(error)

        self._services.tasks.thread(write, written, failed, name="write")

    def _so_far(self, writing: threading.Event, done: int, total: int) -> None:
        if writing is self._writing and not writing.is_set() and self._screen.has():
            self._screen.say(f"writing… {done:,} of {total:,} rows; esc ends it")

    def end_writing(self) -> bool:
        """Let what is being written be; False where nothing is."""
        if self._writing is None or self._writing.is_set():
            return False
        self._writing.set()
        return True

    def _text_of(self, choice: str) -> str:
        """The text behind a letter; in Data the cell's, in Assertions the verdict's under the cursor."""
        if choice in "ae" and isinstance(self._screen.tab, DataTab):
            cell = self._screen.tab.cell()
            if cell is not None:
                return (cell.expected if choice == "e" else cell.actual) or ""
        return text_of(
            self._screen.content, choice, self._verdict_here(), self._transcript() if choice == "t" else ""
        )

    def _verdict_here(self) -> Verdict | None:
        block = (
            self._screen.tab.text.block
            if isinstance(self._screen.tab, AssertionsTab) and self._screen.tab.text
            else None
        )
        if block is None or not block.key.startswith("v") or self._screen.content.attempt is None:
            return None
        return self._screen.content.attempt.verdicts[int(block.key[1:])]

    def _transcript(self) -> str:
        """The whole transcript as text; of a running attempt what it has said so far."""
        if self._screen.content.attempt is not None:
            return whole_text(build(self._screen.content.attempt).blocks)
        return self._screen.live_text()

    def _refuse(self, error: Exception) -> None:
        """What could not be written, in one line."""
        self._services.notices.problem(str(error))
