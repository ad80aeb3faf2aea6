"""Rows of text have one foundation: one place that cuts and wraps by cells."""

from __future__ import annotations

import ast

from tests.support import ROOT
from tests.support.source import nodes_of, tree_of

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
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom)
        and node.module in ("rich.cells", "textwrap")
        and (node.module == "textwrap" or CUTTING & {name.name for name in node.names})
    }
    assert others == CUTTERS


def test_what_fits_and_wraps_is_defined_once() -> None:
    defined = {
        (name, str(path.relative_to(TUI)))
        for path in TUI.rglob("*.py")
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef) and (name := node.name.strip("_")) in ("fit", "wrap", "shorten")
    }
    text, styled = "state/text/fitting.py", "state/text/lines.py"
    assert defined == {("fit", text), ("wrap", text), ("shorten", text), ("fit", styled), ("wrap", styled)}


PAINTING = {"render_line", "render_lines"}
PAINTERS = {("widgets/row_view.py", "RowView")}
MAKERS_OF_OTHER_STRIPS = {
    "terminal/renderer.py",  # cells that are painted already, as the terminal shows them
    "terminal/terminal_guard.py",  # looks through what Textual painted, whoever made it
    "terminal/frame_app.py",  # what stands in the place of a widget that cannot be drawn
}
STYLING = {"get_component_rich_style", "get_component_styles", "COMPONENT_CLASSES"}


def test_one_class_paints_rows() -> None:
    """Who shows rows derives from `RowView` or holds one, and says what a row shows: it makes no strips of cells, and
    keeps no window and no cursor of its own."""
    painters: set[tuple[str, str]] = set()
    scrollers: set[tuple[str, str]] = set()
    for path in TUI.rglob("*.py"):
        name = str(path.relative_to(TUI))
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                if PAINTING & {one.name for one in node.body if isinstance(one, ast.FunctionDef)}:
                    painters.add((name, node.name))
                if any(isinstance(base, ast.Name) and base.id == "ScrollView" for base in node.bases):
                    scrollers.add((name, node.name))
    assert painters == scrollers == PAINTERS


def test_strips_are_made_in_one_place() -> None:
    """A line with style words becomes cells in `row_view`; the others have their reasons."""
    makers = {
        str(path.relative_to(TUI))
        for path in TUI.rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and node.module in ("textual.strip", "rich.segment")
    }
    assert makers == {"widgets/row_view.py", *MAKERS_OF_OTHER_STRIPS}


def test_there_is_one_system_of_styles() -> None:
    """Style words and the table in `widgets/looks`; component classes would be a second one."""
    others = {
        str(path.relative_to(TUI))
        for path in TUI.rglob("*.py")
        for node in nodes_of(path)
        if (isinstance(node, ast.Name) and node.id in STYLING)
        or (isinstance(node, ast.Attribute) and node.attr in STYLING)
    }
    assert others == set()
