"""Only the folders of the formats know which format a case has: others ask its `Format`."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tui_eval"
LEFT = 7
"""Comparisons of a case's format outside the folders that are still to become members of `Format`; only ever less."""


def compared() -> list[str]:
    """Where `….format` is compared with something, from the package."""
    found: list[str] = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if place.parts[0] == "formats":
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                sides = (node.left, *node.comparators)
                if any(isinstance(side, ast.Attribute) and side.attr == "format" for side in sides):
                    found.append(f"{place}:{node.lineno}")
    return found


def test_nobody_outside_compares_a_format() -> None:
    found = compared()
    assert len(found) <= LEFT, found
    assert len(found) == LEFT, f"fewer than were left: write {len(found)}"


def test_each_format_is_one_object_of_its_folder() -> None:
    from tui_eval import formats

    for one in formats.our_formats():
        assert (PACKAGE / "formats" / one.name / "__init__.py").is_file()
        assert one is formats.format_of(one.name) and one.title and one.first_suite() is not None
    assert formats.format_of("of somebody else").handler("contains") is None
