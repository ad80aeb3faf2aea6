"""`f` teaches what can be typed, completes it, and says what is wrong; marks are counted at the top."""

from __future__ import annotations

import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tui_eval.tui.screens.prompt import GRAMMAR, FilterPrompt, Prompt
from tui_eval.tui.state.lists.filtering import ListFilterError, parse

TAGS = """\
agent: offline
test_cases:
  - {name: refund, input: hello, metadata: {level: high}, expected: {should_contain: [x]}}
  - {name: greeting, input: hello, metadata: {level: low}, expected: {should_contain: [x]}}
"""


def told(app) -> str:
    """The two lines at the bottom."""
    return "\n".join(screen_text(app).splitlines()[-3:])


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40), (60, 16)], (60, 16)))
async def test_the_line_above_helps_with_what_is_typed(tmp_path, size):
    root = project(tmp_path, {"suites/a.yaml": TAGS})
    LiveRun(root, ["refund"], suite="suites/a.yaml").all_done(["failed"])
    async with running_app(root, size) as (app, pilot):
        await pilot.press("f")
        await until(lambda: "failed  agent:x  tag:y  -not" in told(app), pilot)
        await pilot.press("f", "l")
        await until(lambda: "flaky  tab takes the first" in told(app), pilot)
        await pilot.press("tab")
        await until(lambda: "filter flaky" in told(app), pilot)
        await pilot.press("ctrl+u", *"dura:>5s")
        await until(lambda: "no dura: to filter by; duration: is meant?" in told(app), pilot)
        assert "tui-eval" in screen_text(app).splitlines()[0]  # what is known stays at the top
        await pilot.press("enter")
        await until(lambda: app.screen.query(FilterPrompt), pilot)  # it cannot be taken, and stays open
        await pilot.press("ctrl+u", *"failed")
        await until(lambda: "is meant" not in told(app), pilot)
        await until(lambda: len(app.screen.shown_entries()) == 1, pilot)
        await pilot.press("enter")
        await until(lambda: not app.screen.query(FilterPrompt), pilot)
        await until(lambda: "filter: failed" in screen_text(app), pilot)


@pytest.mark.real
async def test_saved_filters_are_offered_first(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("f", *"mine=refund", "enter")
        await until(lambda: app.services.memory.filters == {"mine": "refund"}, pilot)
        await pilot.press("F", "f")
        await until(lambda: "@mine  failed" in told(app), pilot)
        await pilot.press(*"@m")
        await until(lambda: "@mine  tab takes the first" in told(app), pilot)
        await pilot.press("tab", "enter")
        await until(lambda: "filter: @mine" in screen_text(app), pilot)
        await until(lambda: len(app.screen.shown_entries()) == 1, pilot)


async def test_a_broken_filter_remembered_is_said_at_the_top(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        app.screen.set_filter("@gone")
        await until(lambda: "no filter @gone" in screen_text(app).splitlines()[0], pilot)


def test_all_that_is_taught_can_be_typed():
    for words in GRAMMAR:
        parse(words.partition("=")[0] if "=" in words else words)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("durration:5", "duration: is meant?"), ("dur:5", "duration:"), ("zz:5", "there are agent: model:")],
)
def test_a_key_that_does_not_exist_names_the_one_meant(typed, meant):
    with pytest.raises(ListFilterError, match=r"no \w+: to filter by") as raised:
        parse(typed)
    assert meant in str(raised.value)


@pytest.mark.parametrize("place", ["suites", "run"])
async def test_marks_are_counted_at_the_top(tmp_path, place):
    root = project(tmp_path)
    run = LiveRun(root, ["refund is approved", "greets by name", "calms an angry customer"])
    run.all_done(["failed", "passed", "passed"])
    async with running_app(root, open_run=run.folder if place == "run" else None) as (app, pilot):
        await until(lambda: "refund is approved" in screen_text(app), pilot)
        await pilot.press("asterisk")
        await until(lambda: "3 marked" in screen_text(app), pilot)
        await pilot.press("g", "G", "space")  # the line of the two that passed
        await until(lambda: "1 marked" in screen_text(app), pilot)
        await pilot.press("escape")
        await until(lambda: "marked" not in screen_text(app), pilot)


@pytest.mark.real
@pytest.mark.parametrize("key", ["slash", "f"])
async def test_what_is_typed_takes_the_place_of_what_was_asked_before(tmp_path, key):
    root = project(tmp_path, {"suites/a.yaml": TAGS})
    async with running_app(root) as (app, pilot):
        await pilot.press(key, *"refund", "enter")
        await until(lambda: not app.screen.query(Prompt), pilot)
        await pilot.press(key)
        await until(lambda: "refund" in told(app).splitlines()[-1], pilot)
        await pilot.press("enter")  # kept as it is
        await until(lambda: not app.screen.query(Prompt), pilot)
        assert (app.screen.finder.found if key == "slash" else app.screen.expression) == "refund"
        await pilot.press(key, *"greet", "enter")
        await until(lambda: not app.screen.query(Prompt), pilot)
        assert (app.screen.finder.found if key == "slash" else app.screen.expression) == "greet"
        await pilot.press(key, "right", *"ing", "enter")  # or it is gone on with
        await until(lambda: not app.screen.query(Prompt), pilot)
        assert (app.screen.finder.found if key == "slash" else app.screen.expression) == "greeting"


@pytest.mark.real
@pytest.mark.parametrize("key", ["slash", "f"])
async def test_where_the_pane_has_all_the_room_the_list_comes_back_to_be_searched(tmp_path, key):
    """The keys went to the list that the pane had hidden, and `esc` did not bring it back."""
    async with running_app(project(tmp_path)) as (app, pilot):
        screen = app.screen
        await pilot.press("tab")
        await until(lambda: not screen.case_list.display, pilot)
        await pilot.press(key, *"greets")
        await until(lambda: screen.case_list.display and "greets" in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: screen.case_list.has_focus, pilot)
        assert screen.case_list.display


@pytest.mark.real
async def test_a_zoomed_pane_gives_its_room_to_the_list_that_is_searched(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, ["greets by name", "refund is approved"])
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: app.screen.kind == "run" and app.state.run is not None, pilot)
        screen = app.screen
        run.start(0)
        await until(lambda: screen.streams.panes, pilot)
        await pilot.press("z")
        await until(lambda: not screen.case_list.display, pilot)
        await pilot.press("slash", *"refund")
        await until(lambda: screen.case_list.display, pilot)
        assert screen.streams.zoomed is None
        run.finish()
