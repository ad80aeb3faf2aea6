"""Rows of text have one foundation: one place that cuts and wraps by cells."""

from __future__ import annotations

import ast

from tests.support import ROOT

TUI = ROOT / "tui_eval" / "tui"
CUTTING = {"set_cell_size", "chop_cells", "split_text", "split_graphemes"}
CUTTERS = {
    "state/text/fitting.py",
    "terminal/renderer.py",  # not of texts: of what the terminal shows, cell by cell
}


def test_text_is_cut_by_cells_in_one_place() -> None:
    """One fit, one wrap: who needs one takes it from `state/text/fitting` or, for styled text, `state/text/lines`."""
    others = {
        str(path.relative_to(TUI))
        for path in TUI.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module in ("rich.cells", "textwrap")
        and (node.module == "textwrap" or CUTTING & {name.name for name in node.names})
    }
    assert others == CUTTERS


def test_what_fits_and_wraps_is_defined_once() -> None:
    defined = {
        (name, str(path.relative_to(TUI)))
        for path in TUI.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and (name := node.name.strip("_")) in ("fit", "wrap", "shorten")
    }
    text, styled = "state/text/fitting.py", "state/text/lines.py"
    assert defined == {("fit", text), ("wrap", text), ("shorten", text), ("fit", styled), ("wrap", styled)}
