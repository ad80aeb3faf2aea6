"""Only the folders of the formats know which format a case has: others ask its `Format`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from tests.support.source import nodes_of
from tui_eval import formats
from tui_eval.formats.format import Format, ReaderFormat, UnknownFormat

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tui_eval"
NAMES = frozenset(one.name for one in formats.our_formats())
AGENT_TYPES = frozenset({"nao"})
"""Names of formats that are names of agents' types, too (`type: nao`)."""
NAMING = (
    "formats/__init__.py",  # where they are listed
    "javascript/node_host.py",  # the package of node whose modules suites' code may import
)
INSIDE: dict[str, str] = {
    "reports/promptfoo_json.py": "promptfoo",  # the kind of report that is promptfoo's own results file
}
"""Who knows a format's inside; no module joins them."""


def outside() -> Iterator[tuple[str, tuple[ast.AST, ...]]]:
    """The modules that are in no format's folder, from the package."""
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if place.parts[0] != "formats" or len(place.parts) == 2:
            yield place.as_posix(), nodes_of(file)


def test_nobody_outside_compares_a_format() -> None:
    found = [
        f"{place}:{node.lineno}"
        for place, nodes in outside()
        for node in nodes
        if isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Attribute) and side.attr == "format"
            for side in (node.left, *node.comparators)
        )
    ]
    assert found == []


def test_nobody_outside_names_a_format() -> None:
    found = [
        f"{place}:{node.lineno}: {node.value}"
        for place, nodes in outside()
        if place not in NAMING and not place.startswith("agents/")  # some of whose options are promptfoo's
        for node in nodes
        if isinstance(node, ast.Constant) and node.value in NAMES - AGENT_TYPES
    ]
    assert found == []


def test_nobody_outside_reads_the_options_of_a_case() -> None:
    """What one format needs of a case is its own: others hand `Case.options` on as a whole, and ask its `Format`."""
    found = [
        f"{place}:{value.lineno}"
        for place, nodes in outside()
        for node in nodes
        for value in (
            [node.value]
            if isinstance(node, ast.Attribute | ast.Subscript)
            else node.comparators
            if isinstance(node, ast.Compare)
            else []
        )
        if isinstance(value, ast.Attribute)
        and value.attr == "options"
        and isinstance(value.value, ast.Name | ast.Attribute)
        and (value.value.id if isinstance(value.value, ast.Name) else value.value.attr) == "case"
    ]
    assert found == []


def test_nobody_outside_imports_a_formats_inside() -> None:
    found: set[tuple[str, str]] = set()
    for place, nodes in outside():
        for node in nodes:
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            found |= {
                (place, name) for one in modules for name in NAMES if f"tui_eval.formats.{name}." in f"{one}."
            }
    assert found == set(INSIDE.items())


def test_each_format_is_one_object_of_its_folder() -> None:
    for one in formats.our_formats():
        assert (PACKAGE / "formats" / one.name / "__init__.py").is_file()
        assert one is formats.format_of(one.name) and one.title and one.first_suite() is not None
    assert formats.format_of("of somebody else").handler("contains") is None


def test_each_member_is_asked_by_somebody() -> None:
    """What a format says and nobody asks for is no rule of this program."""
    members = {name for name in vars(Format) if not name.startswith("_")}
    asked = {
        node.attr
        for place, nodes in outside()
        if place != "formats/format.py"
        for node in nodes
        if isinstance(node, ast.Attribute)
    }
    own = {
        "handler",
        "handler_for",
        "settle",
        "check_beforehand",
    }  # asked by `judge_case` and `before_asking`
    assert members - asked - own == set()


def test_a_format_of_another_kind_changes_no_other() -> None:
    """Members have a default, so that a format says only what is its own."""
    for name, member in vars(Format).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            for kind in (ReaderFormat, UnknownFormat):
                theirs = getattr(kind, name)
                assert (
                    inspect.signature(theirs).parameters.keys() == inspect.signature(member).parameters.keys()
                )


def test_a_fifth_format_uses_only_what_its_page_names() -> None:
    """The example of `help/extending.md` imports what the page says a package may import."""
    page = (PACKAGE / "help" / "extending.md").read_text("utf-8")
    tree = ast.parse((ROOT / "tests" / "data" / "fifth_format" / "talks.py").read_text("utf-8"))
    used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    ours = {module for module in used if module.startswith("tui_eval")}
    assert ours and {module for module in ours if f"`{module}`" not in page} == set()
