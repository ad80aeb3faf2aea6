"""Transcripts with results of a megabyte: shown without reading all of them, searched without the screen waiting."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import mostly_real
from tests.support.attempts import START, text_failure
from tests.support.case_host import host, loaded, screen_text, sees, until
from tests.support.examples import examples
from tui_eval.model import Attempt, Entry, Exchange, Verdict
from tui_eval.tui.inspector import raw, transcript
from tui_eval.tui.inspector.assertions import AssertionsTab
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.state.case.transcript_view import prepared
from tui_eval.tui.state.text import block_layout, blocks, json_lines, lines
from tui_eval.tui.state.text.blocks import ABOVE, CLIP, Block
from tui_eval.tui.state.text.json_lines import value_lines
from tui_eval.tui.state.text.lines import Span, pattern, plain, text_lines
from tui_eval.tui.widgets import text_pane
from tui_eval.tui.widgets.text_pane import TextPane

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
    max_leaves=60,
)


@pytest.mark.real
@examples(200)
@given(st.lists(values, min_size=1, max_size=12), st.integers(10, 4000), st.booleans())
def test_the_lines_of_a_beginning_are_those_of_the_whole(value: Any, cut: int, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    head = json_lines.first_lines(text[:cut], json_lines.json_lines) if cut < len(text) else []
    whole = list(json_lines.json_lines(json.loads(text)))
    assert head == whole[: len(head)]


def rows_of(count: int) -> list[dict[str, Any]]:
    return [
        {"id": number, "text": f"parcel {number} was weighed", "tags": ["a", "b"]} for number in range(count)
    ]


@pytest.mark.real
def test_the_beginning_of_a_long_result_is_made_without_reading_the_rest(monkeypatch) -> None:
    text = json.dumps(rows_of(5000))
    whole = list(value_lines(text))
    assert whole == list(json_lines.json_lines(json.loads(text)))
    read: list[int] = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: read.append(len(text)) or loads(text))
    assert list(islice(value_lines(text), 10)) == whole[:10]
    assert read and max(read) <= json_lines.PIECES[0] + 20


def test_a_long_text_that_only_begins_as_json_is_said_to_be_none() -> None:
    text = json.dumps(rows_of(1000))[:-4] + "oops}]"
    lines = [plain(line) for line in value_lines(text)]
    at = lines.index("… from here on it is no JSON; as it came:")
    assert at > 10 and lines[at + 1] == text
    flat = "x" * 30_000
    assert [plain(line) for line in value_lines(flat)] == [flat]


def large(results: int = 6, last: str = "") -> Attempt:
    attempt = text_failure()
    text = json.dumps(rows_of(5000))
    attempt.transcript = [Entry(1, "user", text="Where are they?", started_at=START)]
    for number in range(results):
        call_id = f"c{number}"
        attempt.transcript += [
            Entry(1, "tool_call", name="list_parcels", arguments={"page": number}, call_id=call_id),
            Entry(1, "tool_result", name="list_parcels", result=text[:-1] + f", {{\"needle{number}\": 1}}]", call_id=call_id),
        ]  # fmt: skip
    attempt.transcript.append(Entry(1, "assistant", text=f"Everywhere. {last}"))
    attempt.verdicts = []
    attempt.outcome = "passed"
    return attempt


async def happens(condition: Any) -> None:
    """Wait for something while a thread is held up: the pilot waits for threads."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        await asyncio.sleep(0.01)


async def test_a_search_in_much_text_leaves_the_screen_its_keys(tmp_path: Path, monkeypatch) -> None:
    held, find_all = threading.Event(), text_pane.find_all
    monkeypatch.setattr(text_pane, "find_all", lambda *a, **k: held.wait(60) and find_all(*a, **k))
    app = host(tmp_path, large())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        pane = screen.query_one(TextPane)
        await until(pilot, lambda: pane.row_count > 20)
        screen.finder.look_for("needle3")
        await happens(lambda: pane.searching and "searching…" in screen_text(app))
        await screen.finder.find_next(1)
        assert pane.cursor == 0
        held.set()
        await sees(pilot, "1 of 1", '{"needle3": 1}')
        assert pane.block is not None and pane.block.kind == "tool_result"


@pytest.mark.real
async def test_what_was_found_so_far_can_be_gone_through(tmp_path: Path, monkeypatch) -> None:
    held = threading.Event()
    monkeypatch.setattr(text_pane, "TELL", 0.0)
    held_at = 11

    def held_up(blocks: Any, wanted: Any, progress: Any) -> Any:
        def told(done: int, total: int, hits: Any) -> bool:
            return progress(done, total, hits) and (done != held_at or held.wait(60))

        return block_layout.find_all(blocks, wanted, progress=told)

    monkeypatch.setattr(text_pane, "find_all", held_up)
    app = host(tmp_path, large())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        pane = screen.query_one(TextPane)
        await until(pilot, lambda: pane.row_count > 20)
        screen.finder.look_for("parcel 17 was")
        await happens(lambda: pane.places[1] == 4 and "1 of 4, searching… 11 of" in screen_text(app))
        await screen.finder.find_next(1)
        await happens(lambda: "2 of 4" in screen_text(app))
        held.set()
        await sees(pilot, "2 of 6")


async def test_who_has_moved_on_is_not_taken_to_the_first_place(tmp_path: Path, monkeypatch) -> None:
    held, find_all = threading.Event(), text_pane.find_all
    monkeypatch.setattr(text_pane, "find_all", lambda *a, **k: held.wait(60) and find_all(*a, **k))
    app = host(tmp_path, large(last="needle3"))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        pane = screen.query_one(TextPane)
        await until(pilot, lambda: pane.row_count > 20)
        screen.finder.look_for("needle3")
        await happens(lambda: pane.searching)
        pane.move_by(2)
        held.set()
        await sees(pilot, "2 places: n goes to the next")
        assert pane.cursor == 2
        await pilot.press("n")
        await sees(pilot, "1 of 2")


@pytest.mark.real
def test_what_is_not_shown_for_its_length_is_searched_and_shown_when_found() -> None:
    text = "\n".join(f"line {number}" for number in range(60_000))
    block = Block("e1", "tool_result", "result", lambda: text_lines(text), fold=8, size=len(text), raw=text)
    assert len(block.lines()) < 10_000 and block.clipped
    assert block.shows(5) and not block.shows(40_000)
    hits = text_pane.find_all([block], pattern("line 40000"))
    assert [hit.line for hit in hits] == [40_000]
    block.show(block.about(40_000))
    numbers = [block.number_of(index) for index in range(len(block.lines()))]
    assert numbers[:8] == [*range(8)] and numbers[8] == block.gap[1] < 40_000
    assert [plain(line) for line in block.lines()] == [f"line {number}" for number in numbers]
    assert block.shows(40_000) and not block.shows(20_000) and not block.shows(59_999) and block.clipped
    # no more than ABOVE characters before it and CLIP after it
    assert sum(len(plain(line)) for line in block.lines()) <= ABOVE + CLIP + 200
    assert [hit.line for hit in text_pane.find_all([block], pattern("line 2000"))][:2] == [2000, 20_000]
    block.show(block.about(59_999))
    assert block.shows(59_999) and not block.clipped
    block.back_to_the_beginning()
    assert block.shows(5) and plain(block.lines()[100]) == "line 100" and not block.shows(59_999)


@examples(100)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=300), st.integers(0, 10), st.data())
def test_a_place_far_down_is_shown_with_what_stands_about_it(
    lengths: list[int], fold: int, data: st.DataObject
) -> None:
    texts = [f"{number} {'x' * length}" for number, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CLIP", 900)
        patch.setattr(blocks, "ABOVE", 200)
        block = Block("k", "part", "", lambda: text_lines("\n".join(texts)), fold=fold, limit=900)
        for number in data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=4)):
            there = text_pane.reached(block, number)
            if there is not None:
                block.show(there)
            shown = {block.number_of(index): plain(line) for index, line in enumerate(block.lines())}
            assert shown[number] == texts[number] and block.shows(number)
            assert all(texts[at].startswith(text[:900]) for at, text in shown.items())
            assert len(shown) == len(block.lines())
            last = max(shown)
            assert block.clipped == (last < len(texts) - 1 or shown[last] != texts[last])
            missing = [at for at in range(max(shown)) if at not in shown]
            assert missing == [*range(*block.gap)]


@pytest.mark.real
def test_folded_blocks_that_are_searched_keep_no_lines() -> None:
    view = prepared(large())
    assert len(text_pane.find_all(view.blocks, pattern("parcel 4999"))) == 6
    assert all(not block.has_lines for block in view.blocks if block.kind == "tool_result")


@pytest.mark.real
async def test_raw_opens_and_finds_in_bodies_of_a_megabyte(tmp_path: Path) -> None:
    attempt = large(0)
    body = json.dumps({"rows": rows_of(8000), "end": "the very end"})
    attempt.exchanges = [
        Exchange(1, f"POST /chat\nhost: x\n\n{{\"page\": {number}}}", f"HTTP/1.1 200\ncontent-type: application/json\n\n{body}", 200, START, 12.0)
        for number in range(20)
    ]  # fmt: skip
    app = host(tmp_path, attempt)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("5")
        await sees(pilot, "exchange 1 · turn 1", '"rows": [')
        await pilot.press("slash", *"the very end", "enter")
        await sees(pilot, "1 of 20", '"end": "the very end"')
        assert screen.tab.text is not None and not screen.tab.text.searching


def _verdict_in_front(screen: CaseScreen) -> str:
    tab = screen.tab
    shown = isinstance(tab, AssertionsTab) and tab.text.row_count > 3 and tab.text.block is not None
    return tab.text.block.key if shown and tab.text is not None and tab.text.block is not None else ""


@pytest.mark.real
async def test_enter_on_a_verdict_opens_it_in_assertions_and_elsewhere_says_why_not(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        pane = screen.query_one(TextPane)
        verdicts = [i for i, block in enumerate(pane.blocks) if block.kind == "verdict"]
        for at in verdicts[:2]:
            await pilot.press("1")
            pane.jump_to(at)
            await pilot.press("enter")
            await until(
                pilot, lambda: isinstance(screen.tab, AssertionsTab) and screen.tab.text.row_count > 3
            )
            assert screen.tab.text is not None and screen.tab.text.block is not None
            assert screen.tab.text.block.key == pane.blocks[at].key
        await pilot.press("1", "g", "enter")
        await sees(pilot, "nothing to unfold here")
        await pilot.press("right")
        await sees(pilot, "all of this is shown")
        await pilot.press("left")
        await sees(pilot, "too short to fold")


@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24)], (60, 16)))
async def test_assertions_open_at_the_first_that_failed_with_all_of_it_in_view(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    attempt = text_failure()
    passed = [Verdict("should_contain", True, "text", f"word {number}") for number in range(30)]
    attempt.verdicts = [*passed, *attempt.verdicts]
    app = host(tmp_path, attempt)
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        await pilot.press("3")
        await until(pilot, lambda: _verdict_in_front(screen) == "v31")
        await sees(pilot, "should_contain", 'lacks "Refund policy"', "wanted  Refund policy")


@pytest.mark.real
async def test_what_is_long_is_unfolded_and_made_ready_in_threads(tmp_path: Path, monkeypatch: Any) -> None:
    made_in: dict[str, str] = {}

    def told(name: str, function: Any) -> Any:
        def called(*given: Any, **more: Any) -> Any:
            if name != "lines" or not given[0].has_lines:
                made_in[name] = threading.current_thread().name
            return function(*given, **more)

        return called

    monkeypatch.setattr(raw, "LARGE", 10)
    monkeypatch.setattr(raw, "build", told("raw", raw.build))
    monkeypatch.setattr(Block, "lines", told("lines", Block.lines))
    attempt = large(2)
    attempt.exchanges = [Exchange(1, "POST /chat\n\n{}", json.dumps(rows_of(5000)), 200, START, 12.0)]
    app = host(tmp_path, attempt)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        pane = screen.query_one(TextPane)
        await until(pilot, lambda: pane.row_count > 10)
        pane.jump_to(next(i for i, block in enumerate(pane.blocks) if block.kind == "tool_result"))
        rows, made_in["lines"] = pane.row_count, ""
        await pilot.press("right")
        await until(pilot, lambda: pane.row_count > rows + 500)
        assert made_in["lines"] == "tui-unfold"
        await pilot.press("left")
        await until(pilot, lambda: pane.row_count == rows)
        await pilot.press("5")
        await sees(pilot, "exchange 1 · turn 1", '"id": 0')
        assert made_in["raw"] == "tui-raw"


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_the_lines_of_a_long_text_are_those_of_a_short_one(monkeypatch: Any, ends: str) -> None:
    text = ends.join(["a\tb", "", "\x1b[31mred\r", "x\ry", "日本", "\r", ""])
    at_once = list(text_lines(text, "muted"))
    monkeypatch.setattr(lines, "AT_ONCE", 3)
    assert list(text_lines(text, "muted")) == at_once
    assert list(text_lines("", "muted")) == [(Span("", "muted"),)]


async def test_the_rows_of_many_parts_are_made_in_a_thread(tmp_path: Path, monkeypatch: Any) -> None:
    made_in: list[str] = []
    prepare = TextPane.prepare
    monkeypatch.setattr(transcript, "MANY", 3)
    monkeypatch.setattr(
        TextPane,
        "prepare",
        lambda pane, of: made_in.append(threading.current_thread().name) or prepare(pane, of),
    )
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await until(pilot, lambda: screen.query_one(TextPane).row_count > 10)
        assert made_in == ["tui-transcript"]
        await sees(pilot, "should_contain")
