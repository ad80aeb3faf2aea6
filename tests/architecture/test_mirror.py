"""Tests mirror the tree: a test of a room stands in the folder of the room's name."""

from __future__ import annotations

from tests.support import ROOT, TESTS

ACROSS = {
    "architecture": "the walls of the house",
    "benchmarks": "timings",
    "real": "real servers, terminals, clusters",
    "reliability": "what goes wrong, in all rooms at once",
    "seeds": "the statements of the four documents",
    "servers": "servers on loopback that tests ask",
    "support": "hosts of the app, projects, waiting",
    "data": "files that tests read",
    "vectors": "recorded verdicts of the tools",
}
"""Folders of tests that belong to no one room, and why."""


def test_every_folder_of_tests_has_the_name_of_a_room() -> None:
    strangers = []
    for file in sorted(TESTS.rglob("test_*.py")):
        folder = file.parent.relative_to(TESTS)
        if folder.parts and folder.parts[0] not in ACROSS and not (ROOT / "tui_eval" / folder).is_dir():
            strangers.append(str(file.relative_to(ROOT)))
        if not folder.parts:
            strangers.append(f"{file.name}: in no folder")
    assert not strangers


def test_every_package_of_the_house_has_tests() -> None:
    """Of its own, or in a folder below."""
    # `help` is text; what its pages promise is tested with the commands.
    without = [
        str(package.parent.relative_to(ROOT))
        for package in sorted((ROOT / "tui_eval").rglob("__init__.py"))
        if not any((TESTS / package.parent.relative_to(ROOT / "tui_eval")).rglob("test_*.py"))
    ]
    assert without == WITHOUT


WITHOUT = ["tui_eval/help"]


def test_what_hosts_tests_is_in_one_place() -> None:
    """A module that is no test, outside the folders that belong to no room, is a host in the wrong place."""
    own = {"__init__.py", "conftest.py"}
    wrong = [
        str(file.relative_to(TESTS))
        for file in sorted(TESTS.rglob("*.py"))
        if file.name not in own
        and not file.name.startswith("test_")
        and file.relative_to(TESTS).parts[0] not in ACROSS
    ]
    assert wrong == ["same_results.py"]  # run by hand: python -m tests.same_results
