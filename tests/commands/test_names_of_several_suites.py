"""Cases of one name in several suites are told apart in everything that is printed, as in the app's lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tui_eval.commands import progress
from tui_eval.reports.console_table import RunTable
from tui_eval.store.schema import StoredCase

CASES = [
    {"name": "greets", "input": "hello", "expected": {"should_contain": ["zzz"]}},
]


@pytest.fixture
def suites(project: Path) -> Path:
    for folder in ("de", "en"):
        (project / folder).mkdir()
        (project / folder / "s.yaml").write_text(json.dumps({"agent": "helper", "test_cases": CASES}))
    only = [{**CASES[0], "name": "only here"}]
    (project / "en" / "other.yaml").write_text(json.dumps({"agent": "helper", "test_cases": only}))
    return project


@pytest.mark.parametrize("many", [False, True])
def test_the_suite_is_said_where_names_repeat(
    cli: Cli, suites: Path, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    if many:
        monkeypatch.setattr(progress, "_NAMED_TOGETHER", 1)
    told = cli("run", "de", "en", "-o", "x.md")
    for end in ("de", "en"):
        assert f"\ngreets [{end}] " in told.out and f"✗ failed: greets [{end}]\n" in told.out
        assert f"| greets · {end} | helper |" in (suites / "x.md").read_text()
        assert f"greets · {end}, attempt 1 with helper" in cli("show", "last", "greets").out
    if many:  # by the suite, whatever the name: the cases are packed
        assert "greets · de/s.yaml [helper]" in told.err and "only here · en/other.yaml [helper]" in told.err
    else:
        assert "greets · de [helper]" in told.err and "only here [helper]" in told.err
    assert "\nonly here  " in told.out and "✗ failed: only here\n" in told.out
    assert "| only here | helper |" in (suites / "x.md").read_text()


@pytest.mark.parametrize("width", [80, 200])
def test_a_long_mark_is_cut_where_it_tells_nothing(width: int) -> None:
    table, cases = RunTable(), []
    for number, end in enumerate(("v1", "v2")):
        suite = f"the_regressions_of_the_whole_shop_in_one_file_{end}.yaml"
        name = "a case with a name that is long too"
        cases.append(
            StoredCase(number, f"{suite}::{name}", suite, name, "start_to_agent", "bot", None, "", 1, 1)
        )
        table.add(cases[-1], [])
    table.tell_apart(lambda: ((case, ()) for case in cases))
    lines = list(table.lines(width))
    assert "v1.yaml]" in lines[2] and "v2.yaml]" in lines[3] and lines[2].startswith("a case")
