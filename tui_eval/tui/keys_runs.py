"""Keys of the screens around whole runs: Runs, Compare, side by side, the search's results, the grid."""

from __future__ import annotations

from dataclasses import replace

from tui_eval.tui.keys import KEYS, Key

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
    Key("sides.next", "right_curly_bracket,n", "next difference", "sides", "difference"),
    Key("sides.previous", "left_curly_bracket,N", "previous difference", "sides", "previous"),
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

PANE_KEYS: tuple[Key, ...] = tuple(key for key in KEYS if key.id == "list.pane_size")
"""The key of the pane with the attempt under the cursor."""

RUN_PLACES: tuple[Key, ...] = (*RUNS_KEYS, *COMPARE_KEYS, *SIDES_KEYS, *SEARCH_KEYS, *GRID_KEYS)


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
