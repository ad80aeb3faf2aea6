"""The line in which a query is typed: the queries before it with ↑ and ↓, a pasted one on one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Paste
from textual.widgets import Input, Static

from tui_eval.tui.screens.prompt import Prompt

_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|/\*.*?\*/|--([^\n]*)|\s+|.", re.DOTALL)


def on_one_line(sql: str) -> str:
    """A query on one line that means the same: texts stay, a comment to the end of a line becomes one that ends."""

    def piece(found: re.Match[str]) -> str:
        if found[1] is not None:
            return f"/*{found[1].rstrip().replace('*/', '* /')} */"
        return " " if found[0].isspace() else found[0]

    return _PIECE.sub(piece, sql.strip()).strip()


class TypedQuery(Input):
    """`↑ ↓` go through the queries before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "before(1)", show=False),
        Binding("down", "before(-1)", show=False),
    ]

    def __init__(self, before: Sequence[str], hint: str) -> None:
        super().__init__(placeholder=hint, compact=True, select_on_focus=False)
        self.cursor_blink = False
        self._before = [on_one_line(sql) for sql in before]
        self._at = 0
        self._typed = ""

    def action_before(self, step: int) -> None:
        """An earlier query, or a later one; below the last stands what was being typed."""
        at = min(max(self._at + step, 0), len(self._before))
        if at == self._at:
            return
        if self._at == 0:
            self._typed = self.value
        self._at = at
        self.value = self._before[-at] if at else self._typed
        self.cursor_position = len(self.value)

    def ran(self, sql: str) -> None:
        """A query was run: it is the last of those before."""
        self._before = [*(one for one in self._before if one != sql), sql]
        self._at = 0

    def _on_paste(self, event: Paste) -> None:
        """Every line of what is pasted."""
        event.prevent_default()
        event.stop()
        self.insert_text_at_cursor(on_one_line(event.text))


class QueryPrompt(Prompt):
    """Stays open while queries are tried."""

    def __init__(self, before: Sequence[str]) -> None:
        """`before`: queries to go through, the last one first."""
        super().__init__("SQL", replaces=False)
        self._queries = before

    def compose(self) -> ComposeResult:
        """The label and the line."""
        with Horizontal():
            yield Static(self.purpose, markup=False, classes="label")
            yield TypedQuery(
                self._queries, "a SELECT; enter runs it, ↑ the case's and earlier ones, esc leaves"
            )

    @property
    def line(self) -> TypedQuery:
        """Where it is typed."""
        return self.query_one(TypedQuery)
