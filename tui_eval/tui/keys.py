"""The one table of keys. Screens and widgets make their bindings from it, `?` lists it.

A row's `id` is what a settings file remaps. `place` says where the key works: `everywhere`,
`moving` (every list and pane), `list` (lists of cases), `screen` (both screens with a
list), `run` (the live run), `settings`, `step` (a case run step by step). The Case screen's rows are in `keys_case`,
those of Runs, Compare and the grid in `keys_runs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `keys` in Textual's names, comma-separated; `words` for `?`; `label` for the footer (empty: not shown
    there). What it does is the handler of its `id` (`handlers`)."""

    id: str
    keys: str
    words: str
    place: str
    label: str = ""

    @property
    def shown(self) -> str:
        """The first of its keys as a person writes it."""
        return written(self.pressed.split(",")[0])

    @property
    def pressed(self) -> str:
        """Its keys as they are now: the table's, or those of the settings file."""
        return _REMAPPED.get(self.id, self.keys)

    @property
    def all_shown(self) -> str:
        """All of its keys as a person writes them."""
        return " ".join(written(key) for key in self.pressed.split(","))


_REMAPPED: dict[str, str] = {}


def remap(keymap: dict[str, str]) -> None:
    """Let help and footer show these keys (by id) instead of the table's."""
    _REMAPPED.clear()
    _REMAPPED.update(keymap)


_WRITTEN = {
    "plus": "+",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "right_curly_bracket": "}",
    "left_curly_bracket": "{",
    "right_parenthesis": ")",
    "left_parenthesis": "(",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "asterisk": "*",
    "full_stop": ".",
    "comma": ",",
    "exclamation_mark": "!",
    "escape": "esc",
    "backspace": "bksp",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
}


def written(key: str) -> str:
    """A key of Textual's names as a person writes it: `question_mark` is `?`."""
    return _WRITTEN.get(key, key)


KEYS: tuple[Key, ...] = (
    # -- everywhere: what is done to cases and runs
    Key("run.all", "a", "run all shown", "everywhere", "run all"),
    Key("run.dialog", "A", "run dialog: agent, attempts, limits", "everywhere"),
    Key("case.rerun", "r", "run the case, or the marked ones", "everywhere", "run"),
    Key("case.once_more", "plus", "one more attempt of the case", "everywhere"),
    Key(
        "case.judge_again",
        "full_stop",
        "judge the recorded answer again, sending nothing",
        "everywhere",
    ),
    Key("run.failed", "R", "rerun what did not pass", "everywhere", "rerun failed"),
    Key("run.pause", "P", "pause or resume the run", "everywhere", "pause"),
    Key("case.cancel", "x", "cancel the case", "everywhere", "cancel"),
    Key("run.cancel", "X", "cancel the run (asks)", "everywhere"),
    Key("failure.next", "right_square_bracket", "next failing case", "everywhere", "next ✗"),
    Key("failure.previous", "left_square_bracket", "previous failing case", "everywhere"),
    Key("case.next", "J", "next case", "everywhere"),
    Key("case.previous", "K", "previous case", "everywhere"),
    Key("case.edit", "e", "edit the case in $EDITOR", "everywhere", "edit"),
    Key("agent.edit", "E", "edit the agent's files", "everywhere"),
    Key("case.step", "b", "step: one turn at a time, each editable before it is sent", "everywhere"),
    Key("watch", "W", "watch: on save judge again, then rerun; a folder: both", "everywhere"),
    Key("case.accept", "exclamation_mark", "the answer is right: change the case", "everywhere"),
    Key("case.take_back", "Z", "take the last accepted answer back", "everywhere"),
    Key("case.save", "C", "save the conversation as a new case", "everywhere"),
    Key("place.run", "L", "the live run", "everywhere"),
    Key("place.suites", "U", "all suites", "everywhere"),
    Key("place.runs", "H", "all runs: figures, search, compare", "everywhere"),
    Key(
        "compare",
        "c",
        "compare with the last passing attempt; in Runs two runs",
        "everywhere",
        "compare",
    ),
    Key("place.grid", "M", "grid: tests by prompts and agents", "everywhere", "list"),
    Key("place.settings", "comma", "your settings: theme, keys, filters", "everywhere"),
    Key("mouse", "T", "take the mouse, or leave it to the terminal", "everywhere"),
    Key("tour", "ctrl+g", "the tour: the five keys of the loop", "everywhere"),
    Key("log", "l", "log: errors with details", "everywhere"),
    Key("help", "question_mark", "help for this place", "everywhere", "help"),
    Key("redraw", "ctrl+l", "paint the screen anew, where something wrote over it", "everywhere"),
    Key("suspend", "ctrl+z", "to the shell (`fg` comes back); runs go on", "everywhere"),
    Key("palette", "ctrl+p,colon", "palette: every action, case and place", "everywhere"),
    Key("back", "escape,backspace", "one step back", "everywhere", "back"),
    Key("quit", "q", "close, or quit (asks while a run goes on)", "everywhere", "quit"),
    Key("detach", "Q", "quit at once; the run goes on", "everywhere"),
    Key("copy_or_quit", "ctrl+c", "copy the selection, else ask to quit", "everywhere"),
    # -- lists of cases
    Key("list.down", "j,down", "down", "moving"),
    Key("list.up", "k,up", "up", "moving"),
    Key("list.half_down", "ctrl+d", "half a page down", "moving"),
    Key("list.half_up", "ctrl+u", "half a page up", "moving"),
    Key("list.page_down", "pagedown", "page down", "moving"),
    Key("list.page_up", "pageup", "page up", "moving"),
    Key("list.top", "g,home", "to the top", "moving"),
    Key("list.bottom", "G,end", "to the bottom", "moving"),
    Key("list.open", "enter", "open the case, unfold a folder", "list", "open"),
    Key("list.unfold", "right", "unfold", "list"),
    Key("list.fold", "left", "fold, or to the parent", "list"),
    Key("list.find", "slash", "find here", "screen"),
    Key("list.find_next", "n", "next match", "screen"),
    Key("list.find_previous", "N", "previous match", "screen"),
    Key("list.filter", "f", "filter: failed agent:x tag:y text", "screen", "filter"),
    Key("list.clear", "F", "clear the filter", "screen", "clear filter"),
    Key("list.mark", "space", "mark the case", "list"),
    Key("list.mark_all", "asterisk", "mark all shown, or none", "list"),
    Key("list.sort", "s", "sort by the next column", "screen"),
    Key("list.reverse", "S", "reverse the order", "screen"),
    Key("list.failures_first", "i", "failures first, or file order", "screen"),
    Key("list.grouping", "I", "group by file, test, agent or cause", "screen"),
    Key("list.definition", "o", "the attempt, or how the case is defined", "screen"),
    Key("list.siblings", "O", "the answers of all rows of its test, one after the other", "screen"),
    Key("list.pane_size", "V", "what is under the cursor: more of it, nothing, as it was", "screen"),
    Key("list.difference", "d", "the difference that made it fail", "screen"),
    Key("list.history", "h", "the history of the case", "screen"),
    Key("list.note", "m", "your verdict, a note or a star on its answer", "screen"),
    Key("pane.next", "tab", "next pane", "screen"),
    Key("pane.previous", "shift+tab", "previous pane", "screen"),
    # -- the live run
    Key("stream.pin", "v", "pin the case's streaming pane", "run", "pin"),
    Key("stream.zoom", "z", "zoom the pane", "run", "zoom"),
    Key("stream.follow", "t", "follow the tail", "run", "follow"),
    # -- the settings
    Key("settings.edit", "e", "the settings file in $EDITOR", "settings", "edit file"),
    Key("settings.theme", "t", "the theme: other colours", "settings", "theme"),
    # -- a case run step by step
    Key("step.send", "enter", "send the turn as it stands", "step", "send"),
    # While a message is edited enter is a line break.
    Key("step.send_edited", "ctrl+s", "send what was edited", "step"),
    Key("step.edit", "e", "edit the turn in place", "step", "edit"),
    Key("step.edit_outside", "E", "edit the turn in $EDITOR", "step", "$EDITOR"),
    Key("step.skip", "s", "leave the turn out", "step", "skip"),
    Key("step.run_on", "o", "run on, without asking again", "step", "run on"),
)


def bindings(place: str, keys: tuple[Key, ...] = KEYS) -> list[BindingType]:
    """Textual's bindings for one place, in the table's order."""
    return [
        Binding(
            key.keys,
            f"app.do('{key.id}')",
            key.label or key.words,
            show=bool(key.label),
            id=key.id,
            tooltip=key.words,
        )
        for key in keys
        if key.place == place
    ]
