"""The expected query and the agent's own side by side, differences marked, and what came of running the agent's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tui_eval.agent_query import AgentQuery
from tui_eval.model import DataDetails
from tui_eval.tui.state.data.data_blocks import place_lines, rows_of, sql_blocks, sql_lines
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.lines import Line, Span, dotted, fit, one_line, width_of, wrap
from tui_eval.tui.state.text.text_difference import difference

if TYPE_CHECKING:
    from tui_eval.frames.queries import Conclusion, QueryLine

SOME = 12
"""Rows of the screen from which on the queries stand beside each other though not all of them fit."""
NARROW = 44
"""Columns of the screen below which the lines of both queries stand under each other."""
_LONGEST = 400
_BEFORE = "SQL "


@dataclass(frozen=True, slots=True)
class Queries:
    """Both queries of a case, formatted alike: `lines` are those of both, line beside line (empty where there is no
    expected query), `own` the agent's and where it was found."""

    expected: str
    own: AgentQuery
    lines: Sequence[QueryLine] = ()

    @property
    def source(self) -> str:
        """Where the agent's query was found, in a few words."""
        where = {"verification": "verified by its server", "reply": "in its reply"}
        return where.get(self.own.source) or f"by {one_line(self.own.tool, 24)}"

    @property
    def same(self) -> bool:
        """Whether both are one query."""
        return bool(self.lines) and all(line.same for line in self.lines)


def concluded(conclusion: Conclusion | None, width: int = 0) -> list[Line]:
    """The line that says where the answer went wrong: in the query, or in what was made of its rows.

    Args:
        width: Columns of a screen that has few rows: what does not fit into one is said in fewer words (0:
            all is said).
    """
    if conclusion is None:
        return []
    if not conclusion.line:
        return []
    style = {"unknown": "muted", "lucky": "muted", "neither": "passed"}.get(conclusion.blame, "strong")
    words = one_line(conclusion.line, _LONGEST)
    if width and cell_len(words) + len(_BEFORE) > width:
        words = one_line(conclusion.short, _LONGEST)
    return [(Span(_BEFORE, "note"), Span(words, style))]


def sql_below(
    details: DataDetails,
    queries: Queries | None,
    conclusion: Conclusion | None,
    width: int,
    room: int | None,
    rendered: bool = True,
) -> tuple[list[Block], int]:
    """The SQL that stands below rows, and how many rows of the screen it is to have.

    Args:
        room: How many there are, where it is shown only if they are enough; None: it is asked for.
    """
    beside = query_blocks(queries, width) if queries is not None and rendered else ()
    failed: list[Block] = []
    if conclusion is not None and conclusion.place:
        source = partial(place_lines, conclusion.place, width)
        failed = [Block(f"failed{width}", "part", "failed", source, 0, "role-note")]
    blocks = [*failed, *sql_blocks(details, rendered, beside)]
    wanted = rows_of(blocks, width)
    if room is None or wanted <= room:
        return blocks, wanted
    if beside and room >= SOME:  # what does not fit of both queries is scrolled to
        return blocks, room
    blocks = [*failed, *sql_blocks(details, rendered)]  # as it is written takes fewer lines
    return blocks, rows_of(blocks, width)


def query_blocks(queries: Queries, width: int) -> list[Block]:
    """Both queries for a pane whose text has so many columns; one where they do not differ, or where there is no
    expected one."""
    if not queries.lines or queries.same:
        label = "both" if queries.same else "agent's"
        text = "\n".join(line.expected or "" for line in queries.lines) or queries.own.sql
        return [Block("queries", "part", label, partial(sql_lines, text), 0, "role-note")]
    source = partial(_stacked if width < NARROW else _beside, queries, width)
    return [Block(f"queries{width}", "part", "SQL", source, 0, "role-note")]


def _beside(queries: Queries, width: int) -> Iterator[Line]:
    half = (width - 3) // 2
    yield (
        Span("expected".ljust(half), "heading"),
        Span(" │ ", "muted"),
        *fit((Span(f"the agent's, {queries.source}", "heading"),), half),
    )
    for line in queries.lines:
        left, right = _sides(line)
        rows = [[piece for _, _, piece in wrap(side, half)] for side in (left, right)]
        for index in range(max(map(len, rows))):
            e, a = (side[index] if index < len(side) else () for side in rows)
            bar = Span(" │ ", "muted") if line.same else Span(" ≠ ", "differs")
            yield (*e, Span(" " * max(half - width_of(e), 0)), bar, *a)


def _stacked(queries: Queries, width: int) -> Iterator[Line]:
    yield (Span("− expected  + the agent's", "muted"),)
    for line in queries.lines:
        left, right = _sides(line)
        if line.same:
            yield (Span("  "), *left)
            continue
        if line.expected is not None:
            yield (Span("− ", "missing"), *left)
        if line.actual is not None:
            yield (Span("+ ", "extra"), *right)


def _sides(line: QueryLine) -> tuple[Line, Line]:
    """A line of both queries; of two that differ, the words that do are marked."""
    if line.same or line.expected is None or line.actual is None:
        left, right = _coloured(line.expected), _coloured(line.actual)
        return left, right
    left, right = line.expected.lstrip(" "), line.actual.lstrip(" ")
    first, second = difference(dotted(left), dotted(right))
    return _indented(line.expected, left, first), _indented(line.actual, right, second)


def _indented(whole: str, text: str, marked: Sequence[Line]) -> Line:
    """How far a formatted line is put in is no difference to be pointed at."""
    return (Span(" " * (len(whole) - len(text))), *(marked[0] if marked else ()))


def _coloured(text: str | None) -> Line:
    return next(sql_lines(text, rendered=False), ()) if text else ()
