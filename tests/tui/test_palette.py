"""The palette: what begins with the typed text stands first, cases before actions that write."""

from __future__ import annotations

import pytest
from textual.command import CommandList

from tests.support.app_host import running_app, until
from tests.support.live_run import project
from tui_eval.tui.palette import rank

SUITE = """agent: offline
test_cases:
  - {name: unsafe save, input: a, expected: {should_contain: [x]}}
  - {name: save my order, input: b, expected: {should_contain: [x]}}
  - {name: a very excellent star, input: c, expected: {should_contain: [x]}}
"""


@pytest.mark.parametrize(
    ("needle", "text", "found"),
    [("sav", "Save it", 4), ("sav", "to save", 3), ("av", "to save", 2), ("sv", "to save", 1), ("", "x", 0)],
)
def test_what_begins_with_it_goes_before_what_holds_it(needle, text, found):
    assert rank(needle, text, 0.5) == found


async def test_cases_stand_before_actions_that_write_and_scattered_letters_last(tmp_path):
    root = project(tmp_path, {"suites/support.yaml": SUITE})
    async with running_app(root, (120, 40)) as (app, pilot):
        await until(lambda: len(app.screen.shown_entries()) == 3, pilot)
        await pilot.press("colon", *"save")

        def listed() -> list[str]:
            found = app.screen.query(CommandList)
            return [str(option.prompt) for option in found.first().options] if found else []

        await until(lambda: any("Save the conversation" in line for line in listed()), pilot)
        await until(lambda: any("unsafe save" in line for line in listed()), pilot)
        lines = listed()
        first = next(i for i, line in enumerate(lines) if line.startswith("save my order"))
        writes = next(i for i, line in enumerate(lines) if "Save the conversation" in line)
        holds = next(i for i, line in enumerate(lines) if line.startswith("unsafe save"))
        assert first < writes < holds
