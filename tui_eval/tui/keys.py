"""The one table of keys. Screens and widgets make their bindings from it, `?` lists it.

A row's `id` is what a settings file remaps. `place` says where the key works: `everywhere`,
`moving` (every list and pane), `list` (lists of cases), `screen` (both screens with a
list), `run` (the live run), `settings`, `step` (a case run step by step), `case`, `query`, and the screens
around whole runs: `runs`, `compare`, `sides`, `search`, `grid`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    Key("run.all", "a", "run all shown; asks where they are not in sight", "everywhere", "run all"),
    Key("run.dialog", "A", "run dialog: agent, attempts, limits", "everywhere"),
    Key("case.rerun", "r", "run the case, or the marked ones", "everywhere", "run"),
    Key("case.once_more", "plus", "one more attempt of the case", "everywhere"),
    Key(
        "case.judge_again",
        "full_stop",
        "judge the recorded answer again, sending nothing",
        "everywhere",
    ),
    Key("run.failed", "R", "rerun what did not pass (of a line: below it)", "everywhere", "rerun failed"),
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
    Key("list.copy", "y", "copy of the case: actual, expected, prompt, id…", "screen"),
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


CASE_KEYS: tuple[Key, ...] = (
    Key("case.tab_1", "1", "transcript", "case"),
    Key("case.tab_2", "2", "tools", "case"),
    Key("case.tab_3", "3", "assertions", "case"),
    Key("case.tab_4", "4", "data", "case"),
    Key("case.tab_5", "5", "raw: requests and responses", "case"),
    Key("case.tab_6", "6,h", "history: this case over its runs", "case"),
    Key("case.difference", "d", "the difference that made it fail", "case", "difference"),
    Key(
        "turn.next",
        "right_curly_bracket",
        "next turn; in Data difference, in Assertions verdict, in Raw exchange",
        "case",
        "next turn",
    ),
    Key("turn.previous", "left_curly_bracket", "the previous one", "case", "previous turn"),
    Key("call.next", "right_parenthesis", "next tool call", "case", "call"),
    Key("call.previous", "left_parenthesis", "previous tool call", "case", "previous call"),
    Key("attempt.next", "greater_than_sign", "next attempt", "case", "attempt"),
    Key("attempt.previous", "less_than_sign", "previous attempt", "case", "earlier attempt"),
    Key("case.only", "i", "only what matters: failing verdicts, differing rows", "case"),
    Key("case.from_turn", "B", "run again from this turn on", "case"),
    Key("case.follow", "t", "follow the tail", "case", "follow"),
    Key("case.zoom", "z", "zoom the pane", "case", "zoom"),
    Key("case.wrap", "w", "wrap lines, or not", "case"),
    Key("case.raw", "o", "raw or rendered; on the rows of Data one table or side by side", "case"),
    Key("case.sql", "s", "in Data: the SQL; in Tools: bars over time", "case", "SQL"),
    Key("case.query", "S", "in Data: try a query on the case's database", "case", "try SQL"),
    Key("case.freeze", "v", "in Data: the columns up to this one stay", "case"),
    Key("case.note", "m", "your verdict, a note or a star on the attempt", "case"),
    Key("case.pager", "p", "the pane's whole text in $PAGER", "case"),
    Key(
        "case.copy",
        "y",
        "copy: then a actual, e expected, p prompt, t transcript, i id, c command, d diff",
        "case",
        "copy",
    ),
    Key("case.write", "Y", "the same to a file; in Data d is CSV", "case"),
)

QUERY_KEYS: tuple[Key, ...] = (
    Key("query.pane", "tab,shift+tab", "the prompt, or the rows", "query", "prompt or rows"),
    Key(
        "query.compare",
        "c",
        "compare with the expected rows, or the rows alone",
        "query",
        "compare",
    ),
    Key("query.next", "right_curly_bracket", "next difference", "query", "next ≠"),
    Key("query.previous", "left_curly_bracket", "previous difference", "query"),
    Key("query.only", "i", "only differing rows, or all", "query"),
)
"""Keys of a query that is tried, while its rows have the focus."""

_SHARED = ("list.find", "list.find_next", "list.find_previous", "pane.next", "pane.previous")
SHARED_KEYS: tuple[Key, ...] = tuple(key for key in KEYS if key.id in _SHARED)
"""Keys of lists that mean the same on the Case screen."""

FIND_KEYS: tuple[Key, ...] = tuple(
    replace(key, label="find" if key.id == "list.find" else "")
    for key in KEYS
    if key.id in ("list.find", "list.find_next", "list.find_previous")
)
"""Those of them that find: in help, log, manual and settings, and in the grid."""

CASE_OPEN_KEYS: tuple[Key, ...] = (
    Key(
        "list.open",
        "enter",
        "fold or unfold; in Tools the call's text, in History that attempt",
        "case",
    ),
    Key("list.unfold", "right", "unfold; in Data and in long lines to the right", "case"),
    Key("list.fold", "left", "fold; in Data and in long lines to the left", "case"),
)
"""Keys of panes in the words of the Case screen, for `?`; their bindings are the panes' own."""


RUNS_KEYS: tuple[Key, ...] = (
    Key("runs.search", "slash", "search all transcripts of the run", "runs", "search"),
    Key("runs.mark", "space", "mark the run (two of them: c compares)", "runs", "mark"),
    Key("runs.resume", "u", "go on with an interrupted run", "runs", "go on"),
    Key("runs.name", "n", "the judge names how attempts failed; again: stops", "runs"),
    Key("runs.delete", "D", "delete the run, or the marked ones (asks)", "runs"),
    Key("runs.prune", "O", "delete this run and all before it (asks)", "runs"),
    Key("runs.plots", "v", "plots over all runs, large; or small again", "runs", "plots"),
    Key(
        "runs.figure",
        "greater_than_sign",
        "in the plots: the next figure alone",
        "runs",
        "one figure",
    ),
    Key("runs.figure_back", "less_than_sign", "in the plots: the figure before", "runs"),
    Key("runs.alike", "s", "plots: runs of all suites, or only of the same", "runs", "all runs"),
    Key("runs.filter", "f", "filter: words of what, agent, state or id", "runs", "filter"),
    Key("runs.clear", "F", "clear the filter", "runs", "clear filter"),
    Key("runs.linked", "i", "runs that add to others too, or only whole ones", "runs"),
    Key("runs.pane", "tab,shift+tab", "the list, or the run's figures", "runs"),
)
"""Keys of the list of runs."""

COMPARE_KEYS: tuple[Key, ...] = (
    Key(
        "compare.changed",
        "i",
        "only what changed, only other answers, or everything",
        "compare",
        "only changed",
    ),
    Key("compare.swap", "s", "the other way round", "compare", "swap"),
    Key(
        "compare.later",
        "greater_than_sign",
        "against a later run, or the next agent",
        "compare",
        "other run",
    ),
    Key(
        "compare.earlier",
        "less_than_sign",
        "against an earlier run, or the agent before",
        "compare",
        "earlier run",
    ),
    Key("compare.find", "slash", "find in names and reasons", "compare", "find"),
    Key("compare.find_next", "n", "next match", "compare"),
    Key("compare.find_previous", "N", "previous match", "compare"),
)
"""Keys of a comparison."""

SIDES_KEYS: tuple[Key, ...] = (
    Key("sides.other", "tab,shift+tab", "one side alone, the other, both", "sides", "side"),
    Key("sides.next", "right_curly_bracket", "next difference", "sides", "difference"),
    Key("sides.previous", "left_curly_bracket", "previous difference", "sides", "previous"),
    Key("sides.find", "slash", "find in both, or in their rows", "sides"),
    Key("sides.find_next", "n", "next match; where nothing is looked for, difference", "sides"),
    Key("sides.find_previous", "N", "the one before", "sides"),
    Key("sides.later", "greater_than_sign", "against a later attempt", "sides", "attempt"),
    Key("sides.earlier", "less_than_sign", "against an earlier attempt", "sides", "earlier"),
    Key("sides.only", "i", "only what differs, or everything", "sides", "only diff"),
    Key("sides.rows", "d", "the rows of both as one table, or the transcripts", "sides", "rows"),
    Key("sides.beside", "o", "rows as one table, or beside each other", "sides"),
    Key("sides.freeze", "v", "in the table, the columns up to this one stay", "sides"),
    Key("sides.pager", "p", "the whole text in $PAGER", "sides"),
)
"""Keys of two transcripts against each other."""

SEARCH_KEYS: tuple[Key, ...] = (
    Key("search.again", "slash", "search for other words", "search", "search again"),
    Key("search.runs", "a", "in all runs, or only in this one", "search", "all runs"),
)
"""Keys of a search's results."""

GRID_KEYS: tuple[Key, ...] = (
    Key("grid.next", "tab", "next column (→ too)", "grid", "column"),
    Key("grid.previous", "shift+tab", "previous column (← too)", "grid", "column"),
    Key(
        "grid.differing",
        "i",
        "only tests whose columns differ, or all",
        "grid",
        "only differing",
    ),
    Key("grid.figure", "s", "the figure in the cells: time, cost, score, tokens", "grid", "figure"),
)
"""Keys of the grid."""

FILTER_KEYS: tuple[Key, ...] = tuple(key for key in KEYS if key.id in ("list.filter", "list.clear"))
"""The keys of a list's filter, on a screen that shows the list's cases otherwise."""

PANE_KEYS: tuple[Key, ...] = tuple(key for key in KEYS if key.id == "list.pane_size")
"""The key of the pane with the attempt under the cursor."""

RUN_PLACES: tuple[Key, ...] = (*RUNS_KEYS, *COMPARE_KEYS, *SIDES_KEYS, *SEARCH_KEYS, *GRID_KEYS)
"""Keys of the screens around whole runs."""

ALL_KEYS: tuple[Key, ...] = (*KEYS, *CASE_KEYS, *QUERY_KEYS, *RUN_PLACES)
"""The whole table."""

_PLACES = {
    "list": ("in lists of cases", "place.suites"),
    "screen": ("in lists of cases", "place.suites"),
    "run": ("in the live run", "place.run"),
    "case": ("in a case that is open", "list.open"),
    "runs": ("in Runs", "place.runs"),
    "compare": ("in a comparison", "compare"),
    "sides": ("in a comparison", "compare"),
    "grid": ("in the grid", "place.grid"),
}
"""Where keys work that are not everywhere's, and the key by which one gets there."""


def elsewhere(key: str) -> str:
    """Where a key of Textual's name, which is none here, does what; empty: nowhere."""
    found = next((one for one in ALL_KEYS if one.place in _PLACES and key in one.pressed.split(",")), None)
    if found is None or len(written(key)) > 1:
        return ""
    where, by = _PLACES[found.place]
    way = next(one.shown for one in KEYS if one.id == by)
    return f"{written(key)} works {where} ({way}): {found.words.partition(';')[0]}"


def _said(words: dict[str, str]) -> tuple[Key, ...]:
    """Rows of the key table with what they do in one of these places, in the order of the words."""
    rows = {key.id: key for key in KEYS}
    return tuple(replace(rows[name], words=said) for name, said in words.items())


RUNS_OPEN_KEYS = _said(
    {
        "list.open": "open or follow the run; in its figures, an example of a failure",
        "compare": "two marked runs, or this one with the last of the same cases; agents",
    }
)
OPEN_KEYS = _said({"list.open": "open the case where the words are"})
GRID_OPEN_KEYS = _said({"list.open": "open the case of the cell", "place.grid": "back to the list"})
COMPARE_OPEN_KEYS = _said(
    {
        "list.open": "both transcripts side by side; on a heading, fold or unfold",
        "list.fold": "fold the cases of this change",
        "list.unfold": "unfold the cases of this change",
    }
)
