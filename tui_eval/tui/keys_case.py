"""The Case screen's own keys; the rest of the table is in `keys`."""

from __future__ import annotations

from tui_eval.tui.keys import KEYS, Key

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
