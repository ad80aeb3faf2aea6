"""From place to place: what each key shows, what it leaves, what is asked over it, and who is told of news."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandPalette

from tests.support.alone import Alone, FakeList, FakePlace, on_project
from tui_eval.tui.front import SuitesChanged
from tui_eval.tui.state.app_state import CasePointer

REFUND, GREETS, CALMS = "refund is approved", "greets by name", "calms an angry customer"


@pytest.fixture
async def alone(tmp_path: Path) -> Alone:
    return await on_project(tmp_path, "failed", "passed", "error")


async def press(alone: Alone, key_id: str) -> None:
    await alone.press(alone.places.handlers(), key_id)


def kinds(alone: Alone) -> list[str]:
    return [getattr(screen, "kind", None) or screen.name for screen in alone.window.stack]


@pytest.mark.parametrize(
    ("key", "shown"),
    [("place.runs", "runs"), ("place.grid", "grid"), ("place.settings", "settings"), ("log", "paper")],
)
async def test_a_place_is_shown_over_the_list_and_once(alone: Alone, key: str, shown: str) -> None:
    await press(alone, key)
    assert kinds(alone) == ["suites", shown]
    if key == "place.grid":
        return  # the same key closes it
    await press(alone, key)
    assert kinds(alone) == ["suites", shown]


async def test_places_that_are_open_are_gone_back_to(alone: Alone) -> None:
    await press(alone, "place.runs")
    alone.places.show("case")
    await press(alone, "place.runs")
    assert kinds(alone) == ["suites", "runs"]
    alone.places.show("case")
    await press(alone, "place.suites")
    assert kinds(alone) == ["suites"]


async def test_the_grid_is_of_the_list_one_came_from_and_the_key_leads_back(alone: Alone) -> None:
    run = FakeList(alone.state, "run")
    alone.window.stack.append(run)
    alone.places.show("case")
    await press(alone, "place.grid")
    assert kinds(alone) == ["suites", "run", "grid"] and alone.window.screen.arguments == (run,)
    await press(alone, "place.grid")
    assert kinds(alone) == ["suites", "run"]


async def test_help_is_about_the_place_in_front_and_the_key_closes_it(alone: Alone) -> None:
    alone.list.KEY_SECTIONS = sections = (("Here", ()),)  # type: ignore[misc]
    alone.list.TITLE = "Suites"  # type: ignore[misc]
    await press(alone, "help")
    assert kinds(alone) == ["suites", "help"]
    assert alone.window.screen.arguments[:2] == ("Suites", sections)
    alone.window.screen.kind = "paper"  # as help and log say of themselves
    await press(alone, "help")
    assert kinds(alone) == ["suites"]


async def test_the_log_has_the_newest_first_and_hostile_text_as_text(alone: Alone) -> None:
    alone.notices.log("note", "first")
    alone.notices.log("error", "went\x1b[31m wrong\nsecond line")
    await press(alone, "log")
    paragraphs: list[tuple[str, str]] = alone.window.screen.arguments[1]()
    (style, newest), (_, more), *_, (_, oldest) = paragraphs
    assert style == "key-bad" and "went" in newest and "\x1b" not in newest and more == "\x00second line"
    assert oldest.endswith("first") or len(paragraphs) > 3


async def test_an_empty_log_says_so(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.notices.lines.clear()
    await press(alone, "log")
    assert alone.window.screen.arguments[1]() == [("dim", "Nothing has been said so far.")]


async def test_the_palette_is_opened_once(alone: Alone) -> None:
    await press(alone, "palette")
    await press(alone, "palette")
    assert [type(screen) for screen in alone.window.stack[1:]] == [CommandPalette]


async def test_one_step_back_is_inside_the_screen_then_out_of_it_and_never_out_of_the_app(
    alone: Alone,
) -> None:
    place = alone.look_at(alone.go_to(REFUND))
    place.steps_back = 1
    await press(alone, "back")
    assert alone.window.screen is place
    await press(alone, "back")
    await press(alone, "back")
    assert alone.window.stack == [alone.list] and alone.window.done == []


async def test_one_step_back_leaves_a_question_unanswered(alone: Alone) -> None:
    answers: list[Any] = []
    alone.places.ask("Sure?", [("y", "yes", "yes")], answers.append)
    await press(alone, "back")
    assert answers == [None] and alone.window.stack == [alone.list]


# -- cases


@pytest.mark.parametrize(
    ("key", "start", "target"),
    [
        ("case.next", REFUND, GREETS),
        ("case.previous", GREETS, REFUND),
        ("failure.next", REFUND, CALMS),
        ("failure.previous", CALMS, REFUND),
    ],
)
async def test_cases_and_failures_are_gone_through_in_the_list_and_where_one_is_looked_at(
    alone: Alone, key: str, start: str, target: str
) -> None:
    pointer = alone.go_to(start)
    await press(alone, key)
    current = alone.list.current()
    assert current is not None and current.case_id.endswith(target)
    alone.go_to(start)
    place = alone.look_at(pointer)
    await press(alone, key)
    assert place.looked_at is not None and place.looked_at.case_id.endswith(target)
    current = alone.list.current()  # the list's cursor comes along
    assert current is not None and current.case_id.endswith(target)


async def test_a_failing_case_is_gone_to_from_places_that_show_none(alone: Alone) -> None:
    alone.go_to(GREETS)
    for kind in ("runs", "search", "settings", "paper"):
        alone.places.show(kind)
        alone.window.screen.kind = kind
    await press(alone, "failure.next")
    current = alone.list.current()
    assert kinds(alone) == ["suites"] and current is not None and current.case_id.endswith(REFUND)
    place = alone.look_at(alone.go_to(CALMS))
    alone.places.show("settings")
    await press(alone, "failure.next")
    assert alone.window.screen is place
    assert place.looked_at is not None and place.looked_at.case_id.endswith(REFUND)


@pytest.mark.parametrize(
    ("key", "words"), [("case.next", "no further case"), ("failure.next", "nothing failed here")]
)
async def test_where_there_is_no_further_one_it_is_said_and_so_is_that_more_is_read(
    alone: Alone, key: str, words: str
) -> None:
    alone.go_to(CALMS)
    await press(alone, key)
    assert alone.said == words
    alone.state.loading = True
    await press(alone, key)
    assert alone.said == f"{words} so far: reading"
    alone.state.loading, alone.list.whole = False, False  # read, and many: the list is made in a thread
    await press(alone, key)
    assert alone.said == f"{words} so far: reading"


async def test_a_row_of_the_suites_is_brought_under_the_cursor_and_shown_also_where_the_filter_hides_it(
    alone: Alone,
) -> None:
    row = next(row for row in alone.list.all_entries() if row.name == CALMS)
    alone.list.expression, alone.list.hidden = "passed", {row.key}
    alone.places.open_row(row)
    assert kinds(alone) == ["suites", "case"] and alone.list.expression == ""
    assert alone.window.screen.arguments == (alone.list.pointer_of(row),)
    assert alone.list.cursor == row.key
    alone.list.expression = "failed"
    alone.places.open_row(row)
    assert alone.list.expression == "failed"  # it shows the row: it stays


async def test_one_step_back_from_a_case_of_the_palette_leads_where_one_came_from(alone: Alone) -> None:
    row = next(row for row in alone.list.all_entries() if row.name == CALMS)
    alone.places.show("runs")
    alone.places.open_row(row)
    assert kinds(alone) == ["suites", "runs", "case"]
    await press(alone, "back")
    assert kinds(alone) == ["suites", "runs"]
    await press(alone, "back")
    run = FakeList(alone.state, "run")
    alone.window.stack.append(run)
    alone.places.open_row(row)
    [in_run] = [one for one in run.all_entries() if one.name == CALMS]
    assert run.cursor == in_run.key and alone.window.screen.arguments == (run.pointer_of(in_run),)
    await press(alone, "back")
    assert kinds(alone) == ["suites", "run"]


# -- the stack


async def test_news_go_to_the_screens_in_sight(alone: Alone) -> None:
    place = alone.look_at(CasePointer("x"))
    alone.places.ask("Sure?", [], print)
    alone.places.post(SuitesChanged())
    assert len(place.heard) == 1 and alone.list.heard == []  # under the question; not what is behind
    alone.window.stack.pop()
    alone.window.stack.pop()
    alone.places.post(SuitesChanged())
    assert len(alone.list.heard) == 1


async def test_a_question_that_comes_by_itself_is_marked_as_such(alone: Alone) -> None:
    alone.places.ask("Sure?", [], print)
    assert alone.dialog.arguments[5] is False
    alone.places.ask("Do you trust this?", [], print, unasked=True)
    assert alone.dialog.arguments[5] is True
    alone.places.late(lambda: alone.places.ask("It costs. Sure?", [], print))
    assert alone.dialog.arguments[5] is True, "its key was pressed long ago"
    alone.places.ask("Sure?", [], print)
    assert alone.dialog.arguments[5] is False


async def test_the_live_run_is_shown_over_the_suites_or_over_what_is_in_front(alone: Alone) -> None:
    alone.places.show("runs")
    alone.places.show_run()
    assert kinds(alone) == ["suites", "run"]
    alone.window.stack = [alone.list, FakePlace("runs")]
    alone.places.run_over()
    assert kinds(alone) == ["suites", "runs", "run"]
    alone.places.show("case")
    alone.places.run_over()
    assert kinds(alone) == ["suites", "runs", "run"]


async def test_all_footers_are_drawn_anew(alone: Alone) -> None:
    place = alone.look_at(CasePointer("x"))
    alone.places.show_status()
    assert (alone.list.footer.drawn, place.footer.drawn) == (1, 1)


async def test_on_a_dialog_there_is_no_place_and_no_case(alone: Alone) -> None:
    alone.places.ask("Sure?", [], print)
    assert alone.places.place is None and alone.places.pointer() is None and alone.places.pointers() == ()
    assert alone.places.list_in_front is alone.list
