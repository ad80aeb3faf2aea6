"""Step: a case run one turn at a time. Before each turn it stops and shows what would be sent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import Resize
from textual.widgets import TextArea

from tui_eval.guard.text import visible
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import StoreError
from tui_eval.store.schema import AttemptRow
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.front import LiveText, Question, RunChanged
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import KEYS, Key, bindings
from tui_eval.tui.screens.place import Place, keys_in, keys_of
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.runs.step_view import StepView, column_of, expected, step_view, would_be_sent
from tui_eval.tui.state.text.fitting import shorten
from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.lines_pane import LinesPane

INTERRUPTED = "interrupted: its engine has ended (the log, l, says more); b begins anew"
NOTHING = "Nothing has been sent yet: below is what would be, once enter sends it."


EDITING = "editing what would be sent"


class StepMessage(TextArea):
    """What would be sent; looked at, or edited in place."""

    BINDINGS = [
        Binding("escape", "leave", "done", show=False),
        Binding("shift+enter,ctrl+j", "new_line", "new line", show=False),  # ctrl+j is another code of it
    ]

    def action_new_line(self) -> None:
        """As enter does."""
        if not self.read_only:
            self.insert("\n")

    def say_what_is_below(self) -> None:
        """How many lines are below those in sight, on its lower border; the cursor goes there while it is edited."""
        below = self.wrapped_document.height - round(self.scroll_y) - self.content_size.height
        lines = f"{below:,} more line{'s' * (below != 1)}: e goes there"
        self.border_subtitle = lines if self.read_only and self.content_size.height and below > 0 else None

    def on_resize(self) -> None:
        """Other lines are in sight."""
        self.call_after_refresh(self.say_what_is_below)

    def action_leave(self) -> None:
        """Editing is done; the text stays."""
        screen = self.screen
        if isinstance(screen, StepScreen):
            screen.editing_done()


class StepConversation(LinesPane):
    """Stays at its end while more is said, unless the person has gone up."""

    _at_end = True

    def show(
        self,
        paragraphs: Sequence[tuple[str, str]],
        lines: Sequence[Line] = (),
        brief: Sequence[Line] | None = None,
    ) -> None:
        """Show other paragraphs."""
        at_end, top = self._at_end, self.top
        super().show(paragraphs, lines, brief)
        self._stay(at_end, top)

    def on_resize(self, event: Resize) -> None:
        """The message below comes and goes."""
        at_end, top = self._at_end, self.top
        super().on_resize(event)
        self._stay(at_end, top)

    def scrolled(self) -> None:
        """Look whether this is the end."""
        self._at_end = self.top == self.max_scroll_y

    def _stay(self, at_end: bool, top: int) -> None:
        self.show_from(self.max_scroll_y if at_end else top)
        self._at_end = at_end


class StepScreen(Place, inherit_bindings=False):
    """Follows one stepped attempt and hands the person's decisions to the engine."""

    TITLE = "Step"
    kind = "step"
    BINDINGS = bindings("step")
    KEY_SECTIONS = (("Before a turn", keys_in("step")), ("Moving", keys_in("moving")))
    DEFAULT_CSS = """
    StepScreen StepConversation { height: 1fr; }
    StepScreen StepMessage { height: auto; max-height: 50%; min-height: 3; border: round $primary; padding: 0 1; background: $surface; }
    StepScreen StepMessage.-hidden { display: none; }
    StepScreen.-editing StepMessage { border: round $warning; }
    """

    def __init__(self, run_id: str, pointer: CasePointer, name: str) -> None:
        super().__init__()
        self.run_id = run_id
        self.pointer = pointer
        self._case_name = name
        self.view = StepView()
        self._shown_turn = 0
        self._decided = 0
        self._reading = False
        self.attempt: Attempt | None = None
        self._followed: RunView | None = None

    def compose(self) -> ComposeResult:
        """What was said, what would be sent, keys."""
        yield FactsBar()
        yield StepConversation()
        box = StepMessage("", soft_wrap=True, show_line_numbers=False, read_only=True, classes="-hidden")
        box.cursor_blink = False
        box.can_focus = False
        yield box
        yield KeyHints(self._keys())

    def on_mount(self) -> None:
        """The keys move in the conversation."""
        self.query_one(StepConversation).focus()

    def on_screen_resume(self) -> None:
        """What is known already, or has happened while help or the log stood before it."""
        self.renew()

    @property
    def ended(self) -> bool:
        """Whether no turn is to come."""
        return self.view.done

    def current(self) -> CasePointer | None:
        """The case that is stepped through."""
        row = self._row()
        return CasePointer(
            self.pointer.case_id, self.pointer.agent, self.pointer.model, self.run_id, row.id if row else None
        )

    @on(LiveText)
    def _live_text(self) -> None:
        self.renew()

    @on(RunChanged)
    def _run_changed(self) -> None:
        self.renew()

    def _run(self) -> RunView | None:
        # Once it has ended, it is no longer among those that are followed.
        self._followed = self.services.state.find_run(self.run_id) or self._followed
        return self._followed

    def _row(self) -> AttemptRow | None:
        run = self._run()
        return next(iter(run.attempts.values()), None) if run is not None else None

    def renew(self) -> None:
        # Widgets go before their screen, also when the whole app ends.
        if not stands(self) or not self.query(StepConversation):
            return
        run, row = self._run(), self._row()
        if run is None or row is None:
            self._show_facts("dim", "begins")
            return
        if row.state != "done" and not run.active:
            self._interrupted()
            return
        if row.state == "done" and self.attempt is None:
            self._read(run, row)
        # What it said last stays until the attempt itself is read.
        if row.state == "done" and self.attempt is None and self.view.paragraphs:
            return
        self.view = view = step_view(row, run.live.get(row.id), self.attempt)
        waits = view.waits if view.waits != self._decided else 0
        item = self.services.state.by_id.get(self.pointer.case_id)
        asked = expected(item.case if item is not None else None, waits)
        said = view.paragraphs or ([("dim", NOTHING)] if waits else [])
        box = self.query_one(StepMessage)
        if waits and waits != self._shown_turn:
            self._shown_turn = waits
            box.load_text(view.text)
            box.scroll_home(animate=False)
            box.border_title = None
            box.call_after_refresh(box.say_what_is_below)
        raw = bool(waits) and (not box.read_only or self._edited is not None)
        messages = would_be_sent(view.text) if waits and not raw else []
        self.query_one(StepConversation).show([*said, *messages, *asked])
        box.set_class(not waits or bool(messages), "-hidden")
        if waits:
            state = ("warn", f"turn {waits}{self._of} would be sent" if box.read_only else EDITING)
        elif view.done:
            state = ("title", f"ended: {view.outcome}")
        elif view.begun or self._decided:
            state = ("running", f"turn {row.turn or 1}{self._of} runs")
        else:
            state = ("dim", visible(row.detail, newlines=False) or "begins")
        self._show_facts(*state)
        self.query_one(KeyHints).show(self._keys())

    def _interrupted(self) -> None:
        """The engine has ended in the middle: what was said last stays in sight."""
        view = self.view
        if not view.done:
            view.waits, view.done, view.outcome = 0, True, "interrupted"
            view.paragraphs = [*view.paragraphs, ("text", ""), ("bad", INTERRUPTED)]
        self._set_editing(False)
        self.query_one(StepConversation).show(view.paragraphs)
        self.query_one(StepMessage).set_class(True, "-hidden")
        self._show_facts("bad", "interrupted")
        self.query_one(KeyHints).show(self._keys())

    @property
    def _of(self) -> str:
        item = self.services.state.by_id.get(self.pointer.case_id)
        turns = len(item.case.turns) if item is not None and item.case is not None else 0
        return f" of {turns}" if turns > 1 and self.view.waits <= turns else ""

    def _show_facts(self, style: str, words: str) -> None:
        name = visible(self._case_name, newlines=False)
        run = self._run()
        case = next(iter(run.cases.values()), None) if run is not None else None
        column = column_of(case, name) if case is not None else ""

        def fitted(width: int) -> list[list[tuple[str, str]]]:
            room = max(width - cell_len(f"step   {words}"), 12)
            if not column:
                return [[("title", "step "), ("text", shorten(name, room)), (style, f"  {words}")]]
            # Which column it is matters as much as which test: each has half where there is no room for both.
            dot = self.services.symbols.dot
            half = max((room - len(dot)) // 2, 6)
            test = shorten(name, max(room - len(dot) - cell_len(column), half))
            told = shorten(column, max(room - len(dot) - cell_len(test), 6))
            return [[("title", "step "), ("text", test), ("dim", f"{dot}{told}"), (style, f"  {words}")]]

        self.query_one(FactsBar).show_fitted(fitted)

    def _keys(self) -> list[Key]:
        table = {key.id: key for key in KEYS}
        if self.has_class("-editing"):
            return [replace(table["back"], label="done"), replace(table["step.send_edited"], label="send")]
        if self.view.outcome == "interrupted":
            return [replace(table["case.step"], label="step anew"), replace(table["back"], label="back"),
                    table["help"]]  # fmt: skip
        if self.view.done:
            labels = {"step.send": "open", "case.save": "save as a case", "back": "back", "help": "help"}
            return [replace(table[name], label=label) for name, label in labels.items()]
        if not self._waits:
            return [replace(table["case.cancel"], label="cancel it"), replace(table["back"], label="leave"),
                    table["help"]]  # fmt: skip
        return [*(key for key in KEYS if key.place == "step" and key.label), *keys_of("help")]

    def _read(self, run: RunView, row: AttemptRow) -> None:
        if self._reading:
            return
        self._reading = True

        def read() -> Attempt:
            with suppress(StoreError), closing(RunReader(run.folder)) as reader:
                if (attempt := reader.attempt(row.id)) is not None:
                    return attempt
            # Nothing was sent, so nothing is remembered (or somebody has deleted the run): how it ended is known.
            return Attempt(self.pointer.case_id, row.attempt, row.outcome or "cancelled", message=row.message)

        def take(attempt: Attempt) -> None:
            self.attempt = attempt
            self.renew()

        run_in_thread(self.app, read, take, name="step")

    # -- what the person decides

    @property
    def _waits(self) -> bool:
        return bool(self.view.waits) and self.view.waits != self._decided

    @property
    def _edited(self) -> str | None:
        """What the person made of what would be sent; None where it is as it was."""
        text = self.query_one(StepMessage).text
        same = text == self.view.text.replace("\r\n", "\n").replace("\r", "\n")
        return None if same else text

    def _decide(self, action: str, text: str | None = None) -> None:
        row, run = self._row(), self._run()
        if not self._waits or row is None or run is None:
            self.services.notices.say(
                "no turn waits" if not self.view.done else "it has ended: esc goes back"
            )
            return
        self._decided = self.view.waits
        self._set_editing(False)
        self.services.tasks.soon(self._ask_engine(run, row, action, text))
        self.renew()

    async def _ask_engine(self, run: RunView, row: AttemptRow, action: str, text: str | None) -> None:
        try:
            await self.services.engines.of(run).step(self.run_id, row.id, action, text)
        except Exception:
            self._decided = 0  # it did not arrive: the turn waits still
            self.renew()
            raise

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "step.send": self._send,
            "step.send_edited": self._send,
            "step.edit": self._edit,
            "step.edit_outside": self._edit_outside,
            "step.skip": self._skip,
            "step.run_on": self._run_on,
        }

    def _send(self) -> None:
        """Send it, as it stands."""
        if self.view.done:
            self._open()
            return
        self._decide("send", self._edited)

    def _edit(self) -> None:
        """Edit it in place."""
        if not self._waits:
            self.services.notices.say("no turn waits")
            return
        self._set_editing(True)

    def editing_done(self) -> None:
        """Back to the keys; what was typed stays."""
        self._set_editing(False)

    def _set_editing(self, editing: bool) -> None:
        box = self.query_one(StepMessage)
        if editing == (not box.read_only):
            return
        box.read_only = not editing
        box.can_focus = editing
        self.set_class(editing, "-editing")
        if editing:
            box.set_class(False, "-hidden")
        (box if editing else self.query_one(StepConversation)).focus()
        box.call_after_refresh(box.say_what_is_below)
        if editing:
            box.move_cursor(box.document.end)
        elif self._waits:
            self.renew()
        waits = f"turn {self.view.waits} would be sent"
        self._show_facts("warn", EDITING if editing else waits)
        self.query_one(KeyHints).show(self._keys())

    def _edit_outside(self) -> None:
        """Edit it in $EDITOR."""

        if not self._waits:
            self.services.notices.say("no turn waits")
            return
        box = self.query_one(StepMessage)
        handle, path = tempfile.mkstemp(prefix="turn-", suffix=".md")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(box.text)
            trouble = self.services.editor.edit(path)
            if trouble:
                self.services.notices.problem(trouble)
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError as error:
            self.services.notices.problem(f"{path}: {error.strerror or error}")
            return
        finally:
            with suppress(OSError):
                os.unlink(path)
        # Editors end a text with a line break of their own.
        if not box.text.endswith("\n"):
            text = text.removesuffix("\n")
        box.load_text(text)
        self.renew()

    def _skip(self) -> None:
        """Leave this turn out."""
        self._decide("skip")

    def _run_on(self) -> None:
        """Ask no more."""
        self._decide("run_on")

    def back(self) -> bool:
        """Esc: where the attempt goes on, ask what is to become of it; where nothing was sent or edited, nothing is
        lost with it."""
        if self.has_class("-editing"):
            self._set_editing(False)
            return True
        if self.view.done or self._row() is None:
            return False
        if self._waits and not self.view.paragraphs and self._edited is None:
            self._leave("stop")
            return True
        first = self._stop_asked()
        self.services.ask(first.question, first.answers, self._leave, renewed=self._stop_asked)
        return True

    def _stop_asked(self) -> Question:
        stay = ("n", "no", "stay")
        if self.view.done:
            return Question("The case has ended.", [("o", "on", "leave"), stay])
        answers = [("y", "stop", "stop it here"), ("o", "on", "leave, and let it run on"), stay]
        return Question("Stop this case?", answers)

    def _leave(self, answer: str | None) -> None:
        row, run = self._row(), self._run()
        if answer not in ("stop", "on"):
            return
        if row is not None and run is not None and row.state != "done":
            if self._waits:
                self._decide("stop" if answer == "stop" else "run_on")
            elif answer == "stop":
                self.services.runs.cancel([row.id], self.run_id)
        self.call_later(partial(self._close, self.app))

    def _close(self, app: object) -> None:
        if self.is_current:
            self.services.places.pop()

    def _open(self) -> None:
        pointer = self.current()
        self.services.places.pop()
        if pointer is not None:
            self.services.places.open_case(pointer)
