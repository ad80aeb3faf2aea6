"""What a screen and a controller may use: values, notices, and the few things that others do for them.

`Core` needs nothing but the terminal; `AppServices` adds what controllers do, as protocols: whoever asks for a case
to be opened need not know what opening one takes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from textual.message import Message
from textual.screen import Screen
from textual.theme import Theme
from textual.widget import Widget

from tui_eval.engine.request import RunRequest
from tui_eval.store.notes import HumanNote
from tui_eval.tui.background import Tasks
from tui_eval.tui.engines import Engines
from tui_eval.tui.front import Front, Question
from tui_eval.tui.memory import ProjectMemory
from tui_eval.tui.notices import Notices
from tui_eval.tui.settings import Settings
from tui_eval.tui.state.app_state import AppState, CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.suite_changes import EditedSuite
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.terminal.editor import Editor

if TYPE_CHECKING:
    from tui_eval.tui.state.case.case_content import CaseContent


ASKS_NOTHING = (("esc", "", "go back"),)
"""The answers of a question that says why there is nothing to ask about: the key typed next was an answer,
and does nothing else (`y a` and `m r` run nothing)."""


class Ask(Protocol):
    """A question over the screen, answered by one key."""

    def __call__(
        self,
        question: str,
        answers: Sequence[tuple[str, str, str]],
        on_answer: Callable[[str | None], Any],
        details: Sequence[str] = (),
        items: Sequence[str] = (),
        after_reading: Collection[str] = (),
        *,
        renewed: Callable[[], Question] | None = None,
    ) -> None:
        """See `screens.dialogs.AskScreen`; `on_answer` is given the value, None where the person left."""
        ...


class Window(Protocol):
    """What controllers ask of the app that they are put into, and all that they know of it."""

    theme: Any
    """The name of the theme; one that is not among `available_themes` is refused."""
    app_focus: Any
    """Whether the terminal's window has the focus."""

    @property
    def screen(self) -> Screen[Any]:
        """The screen in front."""
        ...

    @property
    def screen_stack(self) -> Sequence[Screen[Any]]:
        """All screens, the one in front last."""
        ...

    @property
    def focused(self) -> Widget | None:
        """The widget that has the focus."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether anything has been styled yet."""
        ...

    @property
    def available_themes(self) -> Mapping[str, Theme]:
        """The themes by name."""
        ...

    def push_screen(self, screen: Any, callback: Any = None) -> Any:
        """Show a screen; what it is left with goes to `callback`."""
        ...

    def pop_screen(self) -> Any:
        """Take the screen in front away."""
        ...

    def register_theme(self, theme: Theme) -> None:
        """Add a theme."""
        ...

    def set_reactive(self, reactive: Any, value: Any) -> None:
        """Set a value without what follows from it."""
        ...

    def set_keymap(self, keymap: Mapping[str, str]) -> None:
        """Keys by the ids of bindings."""
        ...

    def take_mouse(self, wanted: bool) -> None:
        """Take the mouse from the terminal, or leave it to it."""
        ...

    def copy_to_clipboard(self, text: str) -> None:
        """Send a text to the terminal's clipboard."""
        ...

    def bell(self) -> None:
        """Ring the terminal's bell."""
        ...

    def action_suspend_process(self) -> None:
        """To the shell, until `fg`."""
        ...

    def exit(self, result: int | None = None, return_code: int = 0, message: Any = None) -> None:
        """End, with this exit code and a last line."""
        ...


class PlaceStack(Protocol):
    """The way from screen to screen."""

    @property
    def front(self) -> Screen[Any]:
        """The screen in front, a dialog included."""
        ...

    @property
    def place(self) -> Front | None:
        """The screen in front, where it is one that the person went to."""
        ...

    @property
    def list_in_front(self) -> Front | None:
        """The list of cases one is in, or came from."""
        ...

    def pointer(self) -> CasePointer | None:
        """The case that keys mean."""
        ...

    def stays(self) -> Callable[[], bool]:
        """Says later whether the person is still where they are now, on that case."""
        ...

    def pointers(self) -> Sequence[CasePointer]:
        """The cases that keys mean which act on all rows of a test."""
        ...

    def show(
        self, name: str, *arguments: Any, answer: Callable[[Any], Any] | None = None, **options: Any
    ) -> None:
        """Show a new screen of that name over the one in front (see `screens.screen_names`), made of the rest; a
        dialog's answer goes to `answer`."""
        ...

    def show_themes(self) -> None:
        """The themes by name, one to be taken."""
        ...

    def pop(self) -> None:
        """Back to the screen before."""
        ...

    def post(self, message: Message) -> None:
        """Give a message to the screens in sight."""
        ...

    def open_case(self, pointer: CasePointer) -> None:
        """Show a case in the inspector."""
        ...

    def open_row(self, entry: CaseRow) -> None:
        """Bring a row of the suites under the cursor, and show its case."""
        ...

    def all_cases(self) -> Iterable[CaseRow]:
        """Every case of the suites, shown or not."""
        ...


class Suites(Protocol):
    """The suites' files."""

    def load(self, then: Callable[[], Any] | None = None) -> None:
        """Read everything anew; then do what runs cases, after the question what they may do now."""
        ...

    def reload(self, paths: Iterable[str | Path], then: str | Callable[[EditedSuite], Any] = "") -> bool:
        """Read those suites again that these files belong to; False where there is none. `then` is said where
        nothing is wrong with them, or called with what the edit did."""
        ...

    def before_running(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """What a key does that runs cases: first all is asked about that the suites would do and has no answer yet."""
        ...

    def trusted_first(self, request: RunRequest, run: Callable[[], Any]) -> None:
        """Before it is run, ask what the agents that it names, and a cluster that a record names, want beside what the
        suites do."""
        ...

    def first(self) -> None:
        """Ask what a project without suites is to begin with."""
        ...


class Naming(Protocol):
    """The judge that names how the attempts of a run failed."""

    @property
    def run_id(self) -> str:
        """The run whose failures are being named; empty where none is."""
        ...

    @property
    def words(self) -> str:
        """How far it is."""
        ...

    def stop(self) -> None:
        """Have it stop."""
        ...

    async def begin(self, folder: Path) -> None:
        """Say what it costs, ask, begin."""
        ...


class Runs(Protocol):
    """What is asked of engines."""

    @property
    def opening(self) -> bool:
        """Whether a run is planned, or read for the first time."""
        ...

    @property
    def naming(self) -> Naming:
        """The judge that names failures."""
        ...

    def open(self, folder: Path) -> None:
        """Bring a run to the front and show it."""
        ...

    def take_up(self, folder: Path) -> None:
        """Go on with a run that was cut off, and show it."""
        ...

    def cancel(self, refs: list[int] | None, run_id: str | None = None) -> None:
        """Cancel attempts, or the whole run (in front, or of this id)."""
        ...

    def from_recorded(self, content: CaseContent, turn: int | None) -> None:
        """Run a case from a turn of a recorded attempt on; None: judge its recorded answers again."""
        ...


class NoteKeeping(Protocol):
    """People's notes on answers."""

    def ask(self, pointer: CasePointer, write: Callable[[HumanNote], Any]) -> None:
        """Ask what to note on a case's answer; `write` is given the note whose words are to be typed."""
        ...

    def keep(self, seen: HumanNote, note: HumanNote) -> None:
        """Keep what somebody made of the note that they saw, and show it in the lists."""
        ...


@dataclass(frozen=True)
class Core:
    """Values, and what there is one of."""

    state: AppState
    notices: Notices
    tasks: Tasks
    engines: Engines
    settings: Settings
    memory: ProjectMemory
    symbols: Symbols
    editor: Editor


@dataclass(frozen=True)
class AppServices(Core):
    """All that screens are given."""

    ask: Ask
    places: PlaceStack
    suites: Suites
    runs: Runs
    notes: NoteKeeping
    do: Callable[[str], Awaitable[None]]
    """Do what the key of this id does."""
    take_settings: Callable[[], None]
    """The settings file has changed: what it says holds from now on."""
    status: Callable[[], str]
    """A few words at the end of every footer: what is being watched."""


class HasServices(Protocol):
    """An app that screens can stand in."""

    services: AppServices
