"""`/`, n and N in Tools: this call first, then the others, which are looked through in a thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.attempts import START
from tests.support.case_host import host, loaded, screen_text, sees, until
from tests.tui.inspector.test_case_large import happens
from tui_eval.model import Attempt, Entry
from tui_eval.tui.inspector import tools_tab
from tui_eval.tui.inspector.tools_tab import ToolsTab, next_with
from tui_eval.tui.state.case.tools_view import rows
from tui_eval.tui.state.text.lines import pattern

TEXTS = {0: "a kettle and a kettle", 3: "a kettle", 5: "a spoon", 7: "one more kettle"}


def talk(calls: int = 9) -> Attempt:
    transcript = [
        entry
        for number in range(calls)
        for entry in (
            Entry(number + 1, "tool_call", name=f"read_{number}", call_id=str(number), started_at=START),
            Entry(number + 1, "tool_result", name="read", result=TEXTS.get(number, "-"), call_id=str(number)),
        )
    ]
    return Attempt("s::talk", 1, "passed", transcript=transcript)


def test_the_nearest_other_call_comes_first_and_round_the_end() -> None:
    attempt = talk()
    calls, wanted = rows(attempt), pattern("kettle")
    assert [next_with(attempt, calls, here, 1, wanted) for here in (0, 3, 7, -1)] == [3, 7, 0, 0]
    assert [next_with(attempt, calls, here, -1, wanted) for here in (0, 3, 7)] == [7, 0, 3]
    assert next_with(attempt, calls, 5, 1, pattern("spoon")) is None
    told: list[tuple[int, int]] = []
    stop = next_with(
        attempt, calls, 0, 1, wanted, progress=lambda *so_far: told.append(so_far) or len(told) < 2
    )  # type: ignore[func-returns-value]
    assert stop is None and told == [(0, 9), (1, 9)]


async def test_find_goes_from_call_to_call(tmp_path: Path) -> None:
    app = host(tmp_path, talk())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2")
        tab = screen.tab
        assert isinstance(tab, ToolsTab)
        await until(pilot, lambda: bool(tab.table.rows))
        screen.finder.look_for("kettle")
        await sees(pilot, "1 of 2")
        for key, call, words in (
            ("n", 0, "2 of 2"), ("n", 3, "1 of 1"), ("n", 7, "1 of 1"), ("n", 0, "1 of 2"), ("N", 7, "1 of 1"),
        ):  # fmt: skip
            await pilot.press(key)
            await until(pilot, lambda call=call: tab.table.call_index == call and not tab.searching)
            await sees(pilot, words, TEXTS[call])
        screen.finder.look_for("spoon")
        await until(pilot, lambda: tab.table.call_index == 5)
        await sees(pilot, "1 of 1", "a spoon")
        await pilot.press("n")  # the only place
        await until(pilot, lambda: not tab.searching)
        await sees(pilot, "1 of 1", "a spoon")
        screen.finder.look_for("no such thing")
        await sees(pilot, "not here: no such thing")
        assert tab.table.call_index == 5


async def test_looking_through_the_calls_leaves_the_screen_its_keys(tmp_path: Path, monkeypatch: Any) -> None:
    held = threading.Event()
    monkeypatch.setattr(tools_tab, "TELL", 0.0)

    def held_up(*given: Any, progress: Any, **more: Any) -> Any:
        def told(done: int, total: int) -> bool:
            return progress(done, total) and (done != 2 or held.wait(60))

        return next_with(*given, progress=told, **more)

    monkeypatch.setattr(tools_tab, "next_with", held_up)
    app = host(tmp_path, talk())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2")
        tab = screen.tab
        assert isinstance(tab, ToolsTab)
        await until(pilot, lambda: bool(tab.table.rows))
        screen.finder.look_for("spoon")
        await happens(lambda: tab.searching and "searching… 2 of 9 calls" in screen_text(app))
        tab.table.move_to(1)  # who goes elsewhere is not taken away
        await happens(lambda: not tab.searching)
        held.set()
        await pilot.pause()
        assert tab.table.call_index == 1
        screen.finder.look_for("spoon")
        await sees(pilot, "1 of 1", "a spoon")


@pytest.mark.parametrize("many", [False, True])
async def test_many_calls_are_made_ready_in_a_thread(tmp_path: Path, monkeypatch: Any, many: bool) -> None:
    made_in: list[str] = []

    def told(attempt: Attempt) -> Any:
        made_in.append(threading.current_thread().name)
        return rows(attempt)

    monkeypatch.setattr(tools_tab, "rows", told)
    monkeypatch.setattr(tools_tab, "MANY", 1 if many else 1000)
    monkeypatch.setattr(tools_tab, "AT_ONCE", 10 if many else 1000)
    app = host(tmp_path, talk())
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("2")
        await sees(pilot, "read_0", "a kettle and a kettle")
        assert made_in == ["tui-calls" if many else "MainThread"]
        await pilot.press("j", "j", "j")
        await sees(pilot, "── 4 read_3")
