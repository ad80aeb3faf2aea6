"""The line at the top of the Suites screen, as styled parts. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rich.cells import cell_len

from tui_eval.guard.text import visible
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.lists.case_tree import Tree
from tui_eval.tui.state.text.formatting import Symbols, outcomes

Parts = list[tuple[str, str]]
COUNTED = (
    ("failed", "bad"),
    ("error", "warn"),
    ("retrying", "warn"),
    ("running", "running"),
    ("passed", "good"),
    ("cancelled", "dim"),
)


@dataclass(frozen=True, slots=True)
class SuitesFacts:
    """How the list is looked at: filter expression, what is wrong with it, how many cases are marked, and
    the order where it is not that of the files."""

    expression: str = ""
    error: str = ""
    marks: int = 0
    order: str = ""


def facts_line(
    state: AppState, tree: Tree, symbols: Symbols, looked: SuitesFacts, root: str, width: int
) -> Parts:
    """What is here and how it stands. Where there is no room for everything, the folder goes first, then
    words that glyphs say too, then how many suites there are, then our name; what the person asked for stays."""
    if looked.error:
        return [("bad", visible(looked.error, newlines=False))]
    counts = Counter(entry.status for entry in tree.shown)
    parts: Parts = []
    for words, folder, cases, name in ((1, 1, 1, 1), (0, 1, 1, 1), (0, 0, 1, 1), (0, 0, 0, 1), (0, 0, 0, 0)):
        parts = [("title", "tui-eval"), *([("dim", f"  {root}")] if folder else [])]
        parts += _asked(tree, looked, brief=not folder)
        parts += _read(state, tree, symbols, brief=not cases)
        parts += [
            (
                style,
                f"  {symbols.glyphs[status]}{f' {outcomes(counts[status], status)}' if words else f'{counts[status]:,}'}",
            )
            for status, style in COUNTED
            if counts[status]
        ]
        if not name and len(parts) > 1:
            parts[:2] = [(parts[1][0], parts[1][1].lstrip())]
        if sum(cell_len(text) for _, text in parts) <= width:
            break
    return parts


def _asked(tree: Tree, looked: SuitesFacts, *, brief: bool) -> Parts:
    """What the person asked the list for."""
    parts: Parts = []
    if looked.expression:
        parts.append(("key", f"  filter: {visible(looked.expression, newlines=False)}"))
        parts.append(
            ("dim", f" ({len(tree.shown):,})" if brief else f" ({len(tree.shown):,} shown, F clears)")
        )
    if looked.marks:
        parts.append(("key", f"  {looked.marks:,} marked"))
    if looked.order:
        parts.append(("key", f"  {looked.order}"))
    return parts


def _read(state: AppState, tree: Tree, symbols: Symbols, *, brief: bool) -> Parts:
    """The suites that were read, and what is wrong with them."""
    parts: Parts = []
    files = sum(bool(suite.cases) for suite in state.suites)
    if state.loading and not state.rows:
        parts.append(("dim", "  reading suites"))
    elif not brief:
        parts.append(
            (
                "text",
                f"  {files:,} suite{'s' * (files != 1)}{symbols.dot}{tree.total:,} case{'s' * (tree.total != 1)}",
            )
        )
        if state.loading:
            parts.append(("dim", f"{symbols.dot}reading"))
    problems = sum(problem.level == "error" for suite in state.suites for problem in suite.problems)
    problems += len(state.problems)
    if problems:
        parts.append(("bad", f"  {problems} problem{'s' if problems > 1 else ''}"))
    return parts
