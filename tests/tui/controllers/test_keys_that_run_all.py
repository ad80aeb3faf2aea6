"""A key that runs everything says what it will run where that is not in sight, and is never the end of another one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, LiveRun, project
from tests.tui.terminal.test_type_ahead import type_at_once
from tui_eval.formats import reading
from tui_eval.tui.app import EvalApp
from tui_eval.tui.loaders import suites_loader
from tui_eval.tui.screens import list_arrangement
from tui_eval.tui.screens.dialogs import AskScreen


@pytest.mark.real
async def test_a_in_runs_asks_what_it_would_run_and_runs_it(tmp_path: Path) -> None:
    root = project(tmp_path)
    LiveRun(root, ["refund is approved"]).all_done(["passed"])
    async with running_app(root, (100, 30)) as (app, pilot):
        requests = app.services.engines.own.requests
        await pilot.press("H", "a")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        text = screen_text(app)
        assert (
            "Run all that Suites shows?" in text and "3 cases, 3 attempts" in text and "with offline" in text
        )
        await pilot.press("n")
        assert not requests
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("y")
        await until(lambda: requests, pilot)
        assert len(requests[0].case_ids or []) == 3
        app.services.engines.own.live.finish()


@pytest.mark.real
async def test_y_on_a_list_copies_of_the_case_and_what_follows_runs_nothing(tmp_path: Path) -> None:
    root = project(tmp_path)
    LiveRun(root, ["refund is approved"]).all_done(["failed"])
    async with running_app(root, (100, 30)) as (app, pilot):
        await until(lambda: app.state.rows[0].last is not None, pilot)
        await pilot.press("G")
        app.places.suites.go_to(app.places.suites.pointer_of(app.places.suites.shown_entries()[0]))
        await pilot.press("y", "a")
        await until(lambda: "no actual to copy" in screen_text(app), pilot)
        await pilot.press("y", "i")
        await until(lambda: "id: " in screen_text(app), pilot)
        assert app.clipboard == app.state.rows[0].case_id
        assert not app.services.engines.own.requests


@pytest.mark.real
@pytest.mark.parametrize(
    ("keys", "words"), [("ya", "Copy"), ("yc", "Copy"), ("mr", "verdict"), ("mx", "verdict")]
)
async def test_the_second_of_two_keys_does_nothing_else_on_a_line_that_is_no_case(
    tmp_path: Path, keys: str, words: str
) -> None:
    root = project(tmp_path)
    async with running_app(root, (100, 30)) as (app, pilot):
        await until(lambda: len(app.state.rows) == 3, pilot)
        await pilot.press("g")  # the suite's own line
        await pilot.press(*keys)
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        assert f"{words}: put the cursor on a case first." in screen_text(app)
        await pilot.press("escape")
        await until(lambda: app.screen is app.places.suites, pilot)
        assert not app.services.engines.own.requests


@pytest.mark.real
async def test_a_verdict_on_a_case_that_never_ran_runs_nothing(tmp_path: Path) -> None:
    root = project(tmp_path)
    async with running_app(root, (100, 30)) as (app, pilot):
        await until(lambda: len(app.state.rows) == 3, pilot)
        app.places.suites.go_to(app.places.suites.pointer_of(app.places.suites.shown_entries()[0]))
        await pilot.press("enter", "m", "r")
        await until(lambda: "no finished attempt to note" in screen_text(app), pilot)
        await pilot.press("escape", "escape", "m", "r")
        await until(lambda: "no finished attempt to note" in screen_text(app), pilot)
        assert not app.services.engines.own.requests


# -- pressed while the suites are read

NAMES = [f"says {number}" for number in range(6)]
MANY = pytest.mark.parametrize("many", [4_000, 1], ids=["few", "many"])
"""Whether the list is made on the loop, or in a thread."""


@asynccontextmanager
async def half_read(
    root: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> AsyncIterator[tuple[Any, Pilot[Any], Event]]:
    """The app on six suites of one case each, of which four are shown; the others are read when the event is set."""
    case = "agent: offline\ntest_cases:\n  - name: {}\n    input: hi\n"
    project(root, {f"suites/s{number}.yaml": case.format(name) for number, name in enumerate(NAMES)})
    go, load, read = Event(), reading.load, list[Path]()

    def slow(path: Path, *others: Any) -> Any:
        read.append(path)
        if len(read) == 4:  # the last two are handed over with the end of the reading
            monkeypatch.setattr(suites_loader, "PORTION", 3600.0)
        if len(read) == 5:
            assert go.wait(60)
        return load(path, *others)

    monkeypatch.setattr(reading, "load", slow)
    monkeypatch.setattr(suites_loader, "PORTION", 0.0)
    monkeypatch.setattr(list_arrangement, "MANY", many)
    engine: Any = FakeEngine(root)
    app = EvalApp([root], root=root, engine=engine, unicode=True)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        try:
            await until(lambda: len(app.places.suites.shown_entries()) == 4, pilot, 8)
            yield app, pilot, go
        finally:
            go.set()
            if engine.live is not None:
                engine.live.finish()


@pytest.mark.real
@MANY
async def test_a_pressed_while_the_suites_are_read_runs_the_last_of_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    """It ran those that were shown when the reading ended, and said nothing of the others."""
    async with half_read(tmp_path, monkeypatch, many) as (app, pilot, go):
        requests = app.services.engines.own.requests
        await pilot.press("a")
        await until(lambda: "reading the suites:" in str(app.services.notices.lines), pilot)
        assert not requests
        go.set()
        await until(lambda: requests, pilot)
        assert sorted(one.partition("::")[2] for one in requests[0].case_ids or []) == NAMES


@pytest.mark.real
@MANY
async def test_the_run_dialog_asked_for_while_the_suites_are_read_is_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    async with half_read(tmp_path, monkeypatch, many) as (app, pilot, go):
        await pilot.press("A")
        go.set()
        await until(lambda: "the 6 shown" in screen_text(app), pilot)


@pytest.mark.real
@MANY
async def test_a_filter_chosen_while_the_suites_are_read_holds_for_the_last_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    async with half_read(tmp_path, monkeypatch, many) as (app, pilot, go):
        requests = app.services.engines.own.requests
        app.places.suites.set_filter("name:5")
        await pilot.press("a")
        go.set()
        await until(lambda: requests, pilot)
        assert sorted(one.partition("::")[2] for one in requests[0].case_ids or []) == [NAMES[5]]


@contextmanager
def slow_list(place: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """While inside, the thread that makes the rows of a list does not end."""
    made, make = Event(), place.source.maker

    def slowly() -> Any:
        entries = make()

        def rows() -> Any:
            assert made.wait(60)
            return entries()

        return rows

    monkeypatch.setattr(place.source, "maker", slowly)
    try:
        yield
    finally:
        made.set()


@pytest.mark.real
async def test_a_pressed_while_a_thread_makes_the_list_of_what_was_read_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with half_read(tmp_path, monkeypatch, 1) as (app, pilot, go):
        requests, place = app.services.engines.own.requests, app.places.suites
        with slow_list(place, monkeypatch):
            go.set()
            await until(lambda: not app.state.loading and place.arrangement.busy, pilot)
            await pilot.press("a")
            await until(lambda: "reading the suites:" in str(app.services.notices.lines), pilot)
            assert not requests
        await until(lambda: requests, pilot)
        assert len(requests[0].case_ids or []) == len(NAMES)


@pytest.mark.real
async def test_one_row_is_run_while_the_list_is_put_in_order_and_what_means_several_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 5,000 cases each rerun puts them in order for seconds: `+ + +` ran one, and said that suites were read."""
    async with half_read(tmp_path, monkeypatch, 1) as (app, pilot, go):
        requests, place, told = app.services.engines.own.requests, app.places.suites, app.services.notices
        go.set()
        await until(
            lambda: not app.state.loading and place.is_whole() and len(place.shown_entries()) == 6, pilot
        )
        place.case_list.go_to(place.shown_entries()[2].key)
        with slow_list(place, monkeypatch):
            place.arrangement.remake()
            assert place.arrangement.busy
            await pilot.press("r")
            await until(lambda: requests, pilot)
            assert [one.partition("::")[2] for one in requests[0].case_ids or []] == [NAMES[2]]
            await pilot.press("a")
            await until(lambda: "putting the list in order" in str(told.lines), pilot)
            assert len(requests) == 1 and "reading the suites" not in str(told.lines)


@pytest.mark.real
async def test_a_filter_typed_while_a_thread_makes_the_list_keeps_none_of_the_last_suites_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the thread made was dropped, and nothing made it anew."""
    async with half_read(tmp_path, monkeypatch, 1) as (app, pilot, go):
        place = app.places.suites
        with slow_list(place, monkeypatch):
            go.set()
            await until(lambda: not app.state.loading and place.arrangement.busy, pilot)
            place.set_filter("name:5", at_once=True)
        await until(lambda: [row.name for row in place.shown_entries()] == [NAMES[5]], pilot, 20)


@pytest.mark.real
@pytest.mark.parametrize("key", ["*", "space"])
async def test_what_is_marked_while_a_filter_is_being_applied_is_what_it_lets_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """`f` words enter `*` `r`: all that had been shown before were marked and run."""
    async with half_read(tmp_path, monkeypatch, 1) as (app, pilot, go):
        go.set()
        place, requests = app.places.suites, app.services.engines.own.requests
        await until(
            lambda: not app.state.loading and place.is_whole() and len(place.shown_entries()) == 6, pilot
        )
        await pilot.press("g")
        made, build = Event(), list_arrangement.build

        def slowly(*arguments: Any) -> Any:
            assert made.wait(60)
            return build(*arguments)

        monkeypatch.setattr(list_arrangement, "build", slowly)
        try:
            await pilot.press("f", *"says 5", "enter")
            type_at_once(app, key, "r")
            await pilot.pause()
            assert not place.marked()
        finally:
            made.set()
        await until(lambda: requests, pilot)
        assert [one.partition("::")[2] for one in requests[0].case_ids or []] == [NAMES[5]]
