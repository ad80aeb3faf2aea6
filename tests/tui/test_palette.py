"""The palette: what begins with the typed text stands first, cases before actions that write."""

from __future__ import annotations

import pytest
from textual.command import CommandList

from tests.support.app_host import running_app, until
from tests.support.live_run import project
from tui_eval.tui.palette import rank, row_title
from tui_eval.tui.state.lists.telling_apart import row_names

SUITE = """agent: offline
test_cases:
  - {name: unsafe save, input: a, expected: {should_contain: [x]}}
  - {name: save my order, input: b, expected: {should_contain: [x]}}
  - {name: a very excellent star, input: c, expected: {should_contain: [x]}}
"""
OTHER = """agent: offline
test_cases:
  - {name: rerun of an order, input: a, expected: {should_contain: [x]}}
"""


@pytest.mark.parametrize(
    ("needle", "text", "found"),
    [("sav", "Save it", 4), ("sav", "to save", 3), ("av", "to save", 2), ("sv", "to save", 1), ("", "x", 0)],
)
def test_what_begins_with_it_goes_before_what_holds_it(needle, text, found):
    assert rank(needle, text, 0.5) == found


@pytest.mark.real
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


@pytest.mark.real
async def test_a_suite_is_named_where_cases_of_several_are_found_and_what_costs_stands_behind_them(tmp_path):
    root = project(tmp_path, {"suites/support.yaml": SUITE, "suites/orders.yaml": OTHER})
    async with running_app(root, (120, 40)) as (app, pilot):
        await until(lambda: len(app.screen.shown_entries()) == 4, pilot)
        await pilot.press("colon", *"order")

        def listed() -> list[str]:
            found = app.screen.query(CommandList)
            return [str(option.prompt) for option in found.first().options] if found else []

        await until(lambda: "rerun of an order · suites/orders.yaml" in listed(), pilot)
        assert "save my order · suites/support.yaml" in listed()
        await pilot.press(*["backspace"] * 5, *"rerun")
        await until(lambda: "rerun of an order" in listed(), pilot)
        await until(lambda: any("Rerun what" in line for line in listed()), pilot)
        lines = listed()
        assert lines.index("rerun of an order") < next(
            i for i, line in enumerate(lines) if "Rerun what" in line
        )


def test_a_suite_that_has_no_room_is_left_out_whole():
    [name] = row_names([("a case with a name of some length", "", "s")])
    told = [row_title(name, "suites/orders.yaml", " · ", width).plain for width in (60, 50, 40)]
    assert told == [f"{name.name} · suites/orders.yaml", f"{name.name} · orders.yaml", name.name]
