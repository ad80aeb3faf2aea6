"""What stands below the rows of a difference: the queries behind both sides, or one cell in full."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_eval.model import DataDetails
from tui_eval.tui.state.blocks import Block
from tui_eval.tui.state.json_lines import parsed, value_lines
from tui_eval.tui.state.lines import Line, text_lines, wrap
from tui_eval.tui.state.sql_lines import sql_lines
from tui_eval.tui.state.text_difference import difference

if TYPE_CHECKING:
    from tui_eval.frames.cells import Cell


def sql_blocks(details: DataDetails, rendered: bool = True) -> list[Block]:
    """The queries behind both sides, and the comparison in words."""
    same = details.reference_sql == details.verification_sql
    queries = (
        [("both", details.reference_sql)]
        if same
        else [("expected", details.reference_sql), ("actual", details.verification_sql)]
    )
    blocks = [
        Block(label, "part", label, partial(sql_lines, sql, rendered=rendered), 0, "role-note")
        for label, sql in queries
        if sql
    ]
    if details.comparison:
        blocks.append(
            Block(
                "words", "part", "in words", partial(text_lines, details.comparison), 0, "role-note", fold=10
            )
        )
    return blocks


def cell_blocks(cell: Cell, rendered: bool = True) -> list[Block]:
    """Both values of a cell in full; texts that are alike with the words that differ marked."""
    expected, actual = cell.expected, cell.actual
    sides: list[tuple[str, str | None, str]] = [("expected", expected, "muted"), ("actual", actual, "muted")]
    marked: dict[str, list[Line]] = {}
    if expected and actual and not cell.same and set(cell.kinds) == {"text"}:
        marked["expected"], marked["actual"] = difference(expected, actual)
    blocks: list[Block] = []
    for label, text, style in sides:
        if text is None:
            continue
        value = parsed(text) if rendered and label not in marked else text
        source = (
            partial(iter, marked[label])
            if label in marked
            else partial(value_lines, value, rendered=rendered)
        )
        blocks.append(Block(label, "part", label, source, 0, style, size=len(text)))
    return blocks


def rows_of(blocks: list[Block], width: int) -> int:
    """How many rows of the screen blocks take at a width, folded ones as they are folded."""
    lines = [line for block in blocks for line in (block.head() if block.fold else block.lines())]
    return sum(len(wrap(line, width, most=40)) for line in lines)
