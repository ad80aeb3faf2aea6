"""All cases of a suite: those of large tables stay rows until somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tui_eval.model import Case
from tui_eval.suites.promptfoo.blocks import CaseList, RowCases
from tui_eval.suites.promptfoo.cases import CaseMaker
from tui_eval.suites.promptfoo.csv import Rows
from tui_eval.suites.promptfoo.lazy import Block, LazyCases
from tui_eval.suites.promptfoo.tests import Test, merged

SMALLEST_LAZY = 1_000
"""Rows; the cases of smaller tables are made at once."""


def all_cases(maker: CaseMaker, chunks: Iterable[Sequence[Test]], default: Test | None) -> Sequence[Case]:
    """The cases of all tests. Large tables stay rows until their cases are asked for."""
    blocks: list[Block] = []
    for tests in chunks:
        if isinstance(tests, Rows) and (block := _rows(maker, tests, default)) is not None:
            maker.number += len(tests)
            maker.combination += len(tests)
            blocks.append(block)
        else:
            blocks.append(CaseList([case for test in tests for case in maker.cases(test, default)]))
    cases = LazyCases(blocks)
    return cases if any(isinstance(block, RowCases) for block in blocks) else list(cases)


def _rows(maker: CaseMaker, rows: Rows, default: Test | None) -> RowCases | None:
    """The rows as a block, where each is one case per column; None where they need a closer look."""
    given = default.vars.values() if default is not None else ()
    expanding = any(isinstance(v, list) or str(v).startswith("file://") for v in given)
    if len(rows) < SMALLEST_LAZY or expanding or rows.mentions_files():
        return None
    first = merged(rows[0], default)
    options = first.options or {}
    if options.get("transformVars") is not None:
        return None
    cols, attempts = maker.columns_of(first), maker.attempts(first, options)
    return RowCases(maker, rows, default, cols, attempts, (maker.number, maker.combination))
