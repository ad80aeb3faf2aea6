"""The time limit of what runs is seen before it strikes: in panes, in the list, beside it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.tui.state.lists.test_list_state import attempt_row
from tui_eval.store.schema import LiveRow, RunInfo, StoredCase
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.case.case_details import describe_entry
from tui_eval.tui.state.lists.entries import run_entries
from tui_eval.tui.state.lists.telling_apart import RowName, row_names
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.formatting import Symbols, is_late, span
from tui_eval.tui.state.text.stream_text import StreamText
from tui_eval.tui.widgets.stream_pane import Pane, head_text

SYMBOLS = Symbols()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "0.5s"),
        (5, "5s"),
        (30, "30s"),
        (60, "1m"),
        (90, "1m30s"),
        (600, "10m"),
        (3600, "1h"),
        (5400, "1h30m"),
    ],
)
def test_limits_are_written_short(seconds, words):
    assert span(seconds) == words


def test_the_last_fifth_is_late():
    assert not is_late(100.0, 130.0, 123.0) and is_late(100.0, 130.0, 124.0)
    assert not is_late(None, 130.0, 129.0) and not is_late(100.0, None, 500.0)


def running(**values) -> RunView:
    view = RunView(RunInfo("r", started_at=1.0), Path("r"))
    view.apply_cases([StoredCase(1, "s::a", "s", "a case", "nao", "bot", None, "h", 1, 1)])
    view.apply_attempts([attempt_row(1, started_at=100.0, ends_at=130.0, **values)])
    return view


@pytest.mark.parametrize(
    ("width", "now", "end"),
    [
        (80, 112.0, "turn 1 · 12s of 30s"),
        (36, 112.0, "12s/30s"),
        (80, 126.0, "26s · 4s left"),
        (36, 126.0, "26s · 4s left"),
        (36, 140.0, "40s · 0s left"),
    ],
)
def test_a_pane_tells_its_limit_and_what_is_left(width, now, end):
    pane = Pane(1, (0, 0, width, 10), StreamText(width))
    head = head_text(pane, running(), SYMBOLS, now, False)
    assert head.endswith(end) and cell_len(head) <= width
    assert pane.status(running(), now) == ("late" if now > 124 else "running")


def test_a_turn_after_the_first_is_told_in_narrow_panes_too():
    pane = Pane(1, (0, 0, 36, 10), StreamText(36))
    assert " t3 · " in head_text(pane, running(turn=3), SYMBOLS, 112.0, False)


@pytest.mark.parametrize("width", [36, 50, 80])
def test_a_head_names_its_case_while_a_tool_is_at_work(width):
    view, pane = running(), Pane(1, (0, 0, width, 10), StreamText(width))
    view.apply_live([LiveRow(1, 1, "tool_call", "", "{}", "get_order", "c1", 110.0)])
    head = head_text(pane, view, SYMBOLS, 112.0, False)
    assert head.startswith("● a case") and head.count("get_order 2s") == 1


@pytest.mark.parametrize("width", [36, 44, 80])
def test_a_head_keeps_what_tells_its_case_from_others_longest(width):
    pane = Pane(1, (0, 0, width, 10), StreamText(width))
    (name,) = row_names([("Backpack headline names the volume", "warm", "")])
    head = head_text(pane, running(), SYMBOLS, 112.0, False, name)
    assert head.startswith("● Back") and " · warm  " in head and cell_len(head) <= width


@pytest.mark.parametrize("width", [36, 44, 74])
def test_heads_of_rows_of_one_test_are_told_apart(width):
    pane = Pane(1, (0, 0, width, 10), StreamText(width))
    rows = [
        f"atlas-{size} {prompt}" for size in ("mini", "large") for prompt in ("terse", "friendly", "chat")
    ]
    name = "How long can I return an item?"
    names = row_names((name, row, "") for row in rows)
    heads = [head_text(pane, running(), SYMBOLS, 112.0, False, one) for one in names]
    assert len(set(heads)) == len(rows) and all("● H" in head and "12s" in head for head in heads)
    assert all(row in head for row, head in zip(rows, heads, strict=True))
    long = [
        f"{model} {prompt}" for model in ("gpt-4.1-mini-2025", "gpt-4.1-2025") for prompt in ("terse", "warm")
    ]
    names = row_names(("How long is it?", one, "") for one in long)
    told = {head_text(pane, running(), SYMBOLS, 112.0, False, one) for one in names}
    assert len(told) == len(long)


@pytest.mark.parametrize("width", [30, 36, 44])
def test_a_narrow_head_leaves_facts_out_and_cuts_none(width):
    view = running(output_tokens=1234)
    pinned = head_text(Pane(1, (0, 0, width, 10), StreamText(width)), view, SYMBOLS, 112.0, True)
    assert pinned.endswith("pinned") and cell_len(pinned) <= width
    pane = Pane(1, (0, 0, width, 10), StreamText(width), follow=False)
    assert head_text(pane, view, SYMBOLS, 112.0, True).endswith("t follows")


@pytest.mark.parametrize("width", [36, 50, 80])
def test_a_retry_says_why_and_when_wherever_it_fits(width):
    view = running()
    view.apply_attempts(
        [
            attempt_row(
                1,
                state="retrying",
                changed=2,
                detail="429, again in 12 s",
                started_at=100.0,
            )
        ]
    )
    head = head_text(Pane(1, (0, 0, width, 10), StreamText(width)), view, SYMBOLS, 112.0, False)
    assert "429, again in 12 s" in head and cell_len(head) <= width


def test_the_detail_tells_the_limit():
    (entry,) = run_entries(RunGroup([running()]), AppState(Path(".")))
    assert (entry.started_at, entry.ends_at) == (100.0, 130.0)
    assert any("time limit 30s" in text for _, text in describe_entry(entry, SYMBOLS, 112.0))


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40), (60, 16)], (60, 16)))
async def test_the_list_tells_it_and_warns(tmp_path, size):
    root = project(tmp_path)
    run = LiveRun(root, ["refund is approved", "greets by name"])
    async with running_app(root, size, open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        for number, limit in ((0, 3600.0), (1, 0.5)):
            ref = run.start(number)
            run.writer.limit(ref, time.time() + limit)
        await until(lambda: "s/1h" in screen_text(app), pilot)
        await until(lambda: any(mark in screen_text(app) for mark in ("s/0.5s!", "s!")), pilot)
        style = app.screen.case_list.style("retrying")
        line = next(line for line in app.screen.case_list.cases.lines if line.entry.name == "greets by name")
        words, late = app.screen.case_list.time_words(line.entry, 9)
        assert late and words.endswith("!") and style.color is not None
        run.finish()


@pytest.mark.real
async def test_the_clocks_of_running_cases_go_on_in_suites(tmp_path, monkeypatch):
    root = project(tmp_path)
    run = LiveRun(root, ["refund is approved"])
    run.start(0)
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await until(lambda: app.state.run is not None and app.state.run.counts.running, pilot)
        await pilot.press("U")
        await until(lambda: " running" in screen_text(app), pilot)
        cases = app.screen.case_list
        real = cases.now
        monkeypatch.setattr(cases, "now", lambda: real() + 75.0)
        await until(lambda: "1m1" in screen_text(app), pilot)
        run.finish()


def test_a_finished_pane_ends_with_its_verdict_and_one_line():
    pane = Pane(1, (0, 0, 36, 12), StreamText(35))
    row = attempt_row(
        1, state="done", outcome="failed", message="should_contain: 'x' not found. " * 9, duration_ms=5.0
    )
    pane.add_verdict(row, SYMBOLS)
    assert len(pane.text.lines) == 2 and pane.text.lines[1][1].endswith("…")
    assert cell_len(pane.text.lines[1][1]) <= 35
    pane.text.add("bad", "timed out after 30 s")
    pane.add_verdict(attempt_row(2, state="done", outcome="error", message="timed out after 30 s"), SYMBOLS)
    assert [text for _, text in pane.text.lines].count("timed out after 30 s") == 1


def test_figures_stay_within_their_column():
    for spent, limit in ((0, 30), (599, 600), (3600, 7200), (35999, 36000)):
        assert len(f"{formatting.clock(spent)}/{span(limit)}!") <= 14


def test_a_head_names_the_agent_where_there_are_several_and_nothing_else_does():
    view, pane = running(), Pane(1, (0, 0, 80, 10), StreamText(80))
    view.cases[1] = StoredCase(1, "s::a", "s", "a case", "nao", "bot", None, "h", 1, 1)
    for agents, called, told in (
        (["bot"], None, False),
        (["bot", "other"], None, True),
        (["bot", "other"], RowName("a case", "bot terse"), False),
        (["bot", "other"], RowName("a case", "terse"), True),
    ):
        view.info.agents = agents
        head = head_text(pane, view, SYMBOLS, 112.0, False, called)
        assert ("bot · turn 1" in head) is told and head.count("bot") <= 1, head


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"state": "waiting", "started_at": None, "turn": 0},
        {"state": "retrying", "detail": "429: slow down, again in 4 s"},
        {"state": "retrying", "detail": "429", "started_at": None, "turn": 0},
        {"state": "done", "outcome": "failed"},
    ],
)
def test_no_head_ends_with_a_separator_that_nothing_follows(values):
    view = RunView(RunInfo("r", started_at=1.0, agents=["analyst", "clerk"]), Path("r"))
    view.apply_cases([StoredCase(1, "s::a", "s", "a case", "nao", "analyst", None, "h", 1, 1, "tone=dry")])
    view.apply_attempts([attempt_row(1, **{"started_at": 100.0, "ends_at": 130.0, **values})])
    for width in range(12, 121):
        head = head_text(Pane(1, (0, 0, width, 10), StreamText(width)), view, SYMBOLS, 112.0, False)
        assert "·  " not in f"{head}  ", (width, head)
        assert cell_len(head) <= width, (width, head)
