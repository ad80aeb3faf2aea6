"""Patterns match what the tool's own `glob` matches, and end in a folder of whatever kind."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tui_eval.guard.paths import TooLong, matching


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("real/a.csv", "real/sub/b.csv", "tests/c.csv", "tests/.hidden/d.csv", "tests/[x].csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", "utf-8")
    (tmp_path / "tests" / "lnk").symlink_to("../real")
    (tmp_path / "top").symlink_to("real")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),  # as `glob` 13.0.7 of node, which promptfoo uses, answers
    [
        ("**/*.csv", "real/a.csv real/sub/b.csv tests/[x].csv tests/c.csv"),
        ("tests/**/*.csv", "tests/[x].csv tests/c.csv tests/lnk/a.csv"),
        ("top/**/*.csv", "top/a.csv top/sub/b.csv"),
        ("*/*.csv", "real/a.csv tests/[x].csv tests/c.csv top/a.csv"),
        ("tests/*/**/*.csv", "tests/lnk/a.csv tests/lnk/sub/b.csv"),
        ("tests/**/**/sub/*.csv", "tests/lnk/sub/b.csv"),
        ("tests/.*/*.csv", "tests/.hidden/d.csv"),
        ("tests/[[]x].csv", "tests/[x].csv"),
        ("./tests/../real/?.csv", "tests/../real/a.csv"),
        ("tests/c.csv", "tests/c.csv"),
        ("none/*.csv", ""),
    ],
)
def test_links_below_any_folders_are_followed_as_the_tool_does(tree: Path, pattern: str, found: str) -> None:
    wanted = {(tree / name).resolve() for name in found.split()}
    assert {(tree / name).resolve() for name in matching(pattern, tree, 10)} == wanted
    whole = f"{tree}/{pattern}"
    if not pattern.startswith("**"):  # which follows no link where it stands first
        assert {Path(name).resolve() for name in matching(whole, Path("/"), 10)} == wanted


@pytest.mark.parametrize("pattern", ["**/*.csv", "a/**/x/*.csv", "/".join(["*"] * 60), "**/" * 40 + "*.txt"])
def test_links_that_lead_in_circles_are_walked_once(tmp_path: Path, pattern: str) -> None:
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(".")
    (tmp_path / "c").symlink_to("c")
    deep = tmp_path.joinpath(*["d"] * 40)
    deep.mkdir(parents=True)
    began = time.monotonic()
    assert len(list(matching(pattern, tmp_path, 60))) < 100
    assert time.monotonic() - began < 10


def test_what_takes_too_long_says_so(tree: Path) -> None:
    with pytest.raises(TooLong):
        list(matching("**/*.csv", tree, -1))
