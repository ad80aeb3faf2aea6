"""The Case screen under the keys of a person, on real run folders."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support import mostly_real
from tests.support.attempts import (
    START,
    agent_error,
    case_for,
    huge,
    judged,
    missing_row,
    text_failure,
    wrong_cell,
)
from tests.support.case_host import HostApp, host, loaded, screen_text, sees, until, write_run
from tests.support.settling import rested
from tui_eval.model import Attempt, DataDetails
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import AttemptRow, LiveRow, RunInfo, RunState
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.front import LiveText, RunChanged
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.tools_tab import ToolsTab
from tui_eval.tui.inspector.transcript import Outline
from tui_eval.tui.keys import CASE_KEYS, KEYS, SHARED_KEYS
from tui_eval.tui.loaders.case_loader import load
from tui_eval.tui.state.app_state import CaseItem, CasePointer, Where
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.terminal import clipboard, pager
from tui_eval.tui.terminal import editor as editing
from tui_eval.tui.widgets.text_pane import SEARCHING, TextPane

SIZES = mostly_real([(80, 24), (120, 40)], (80, 24))


@pytest.mark.parametrize("size", SIZES)
async def test_it_opens_at_the_turn_that_failed(tmp_path: Path, size: tuple[int, int]) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        text = screen_text(app)
        assert "✗ failed" in text.splitlines()[0] and "late refund › attempt 1 of 1" in text.splitlines()[0]
        assert 'lacks "Refund policy"; has "escalat"' in text.splitlines()[1]
        assert "turn 3" in text and "✗ failed   should_not_contain" in text
        block = screen.query_one(TextPane).block
        assert block is not None and block.key == "t3"
        assert screen.query_one(Outline).display is (size[0] >= 100)
        assert screen.query_one(TextPane).has_focus


async def test_the_difference_of_an_error_is_where_it_broke(tmp_path: Path) -> None:
    app = host(tmp_path, agent_error())
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("5", "d")
        await until(pilot, lambda: "── turn 1" in screen_text(app))
        assert "nothing failed here" not in screen_text(app)


async def test_turns_calls_and_attempts_are_one_key_away(tmp_path: Path) -> None:
    second = text_failure()
    second.outcome, second.message = "passed", "passed"
    app = host(tmp_path, [text_failure(), second])
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await loaded(pilot)
        pane = screen.query_one(TextPane)
        await pilot.press("left_curly_bracket")
        assert pane.block is not None and pane.block.key == "t2"
        await pilot.press("right_parenthesis")
        assert pane.block.key == "e6"
        await pilot.press("left_parenthesis", "left_parenthesis")
        await sees(pilot, "no earlier tool call")
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: screen.content.state == "passed")
        await sees(pilot, "attempt 2 of 2")
        await pilot.press("greater_than_sign")
        await sees(pilot, "no later attempt")
        await pilot.press("less_than_sign")
        await until(pilot, lambda: screen.content.state == "failed")


async def test_the_outline_leads_through_the_text(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        outline, pane = screen.query_one(Outline), screen.query_one(TextPane)
        await pilot.press("tab")
        assert outline.display and outline.has_focus
        await pilot.press("g")
        await until(pilot, lambda: pane.block is not None and pane.block.key == "t1")
        await pilot.press("j")
        await until(pilot, lambda: pane.block is not None and pane.block.key == "e2")
        await pilot.press("enter")
        assert pane.has_focus
        await pilot.press("tab", "shift+tab")
        assert pane.has_focus and not outline.display
        await pilot.press("z")
        assert not outline.display
        assert screen.back() and not screen.back()


async def test_tab_goes_on_to_the_tabs_that_have_something_to_show(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())  # no rows: Data is empty
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        seen = [screen.tab_shown]
        for _ in range(12):
            await pilot.press("tab")
            await until(
                pilot, lambda: screen.tab.main.has_focus or any(p.has_focus for p in screen.tab.panes())
            )
            if screen.tab_shown != seen[-1]:
                seen.append(screen.tab_shown)
            if seen[-1] == 4:
                break
        assert seen == [0, 1, 2, 4]
        await pilot.press("shift+tab")
        await until(pilot, lambda: screen.tab_shown == 2)
        await pilot.press("4")
        await sees(pilot, "No rows are compared in this case.")


async def test_long_parts_unfold_and_fold(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await loaded(pilot)
        pane = screen.query_one(TextPane)
        pane.jump_to_key("e1")
        before = pane.row_count
        await pilot.press("enter")
        assert pane.row_count > before
        await sees(pilot, "So offer a repair.")
        await pilot.press("left")
        assert pane.row_count == before
        await pilot.press("right")
        assert pane.row_count > before


async def test_find_reaches_folded_text_and_says_how_often(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("g", "slash", *"repair", "enter")
        await sees(pilot, "1 of 3")
        await sees(pilot, "So offer a repair.")
        await pilot.press("n", "n")
        await sees(pilot, "3 of 3")
        await pilot.press("N")
        await sees(pilot, "2 of 3")
        await pilot.press("slash", *"zzz", "enter")
        await sees(pilot, "not here: zzz")
        assert screen.query_one(TextPane).has_focus


async def test_wrap_raw_and_only(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("o")
        assert any(
            "**88231**" in line for block in screen.query_one(TextPane).blocks for line in block.text()
        )
        await pilot.press("o", "i")
        assert {block.turn for block in screen.query_one(TextPane).blocks} == {3}
        await pilot.press("3")
        assert "passed" not in screen_text(app).split("Raw")[1]
        await pilot.press("i", "w")
        await sees(pilot, "lines do not wrap")


async def test_d_goes_to_the_cell_or_to_the_verdict(tmp_path: Path) -> None:
    app = host(tmp_path, wrong_cell(), text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("d")
        await until(pilot, lambda: isinstance(screen.tab, DataTab) and screen.tab.view is not None)
        await sees(pilot, "off by 0.75, allowed")
        screen.go_to(app.pointers[1])
        await until(pilot, lambda: screen.tab_shown == 0)  # there are no rows in it
        await pilot.press("d")
        await sees(pilot, "wanted  Refund policy")
        pane = screen.tab.text
        assert pane is not None
        await until(pilot, lambda: pane.block is not None and pane.block.key == "v1")
        await pilot.press("right_curly_bracket")
        assert pane.block is not None and pane.block.key == "v2"


@pytest.mark.real
@pytest.mark.parametrize("size", SIZES)
async def test_data_shows_differences_and_the_sql(tmp_path: Path, size: tuple[int, int]) -> None:
    app = host(tmp_path, missing_row())
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        await pilot.press("4")
        tab = screen.tab
        assert isinstance(tab, DataTab)
        await until(pilot, lambda: tab.view is not None)
        text = screen_text(app)
        assert "− 1 missing" in text and "+ 1 extra" in text and "no such row" not in text
        await pilot.press("i")
        assert tab.grid.row_count == 3
        await sees(pilot, "only differences")
        await pilot.press("g", "right_curly_bracket", "right_curly_bracket", "right_curly_bracket")
        await sees(pilot, "no later difference")
        await pilot.press("left_curly_bracket", "i", "right", "left")
        assert tab.grid.row_count == 5
        await sees(pilot, "verified", "GROUP BY")  # there is room for the SQL
        await pilot.press("s")
        await until(pilot, lambda: "verified" not in screen_text(app))
        await pilot.press("s")
        await sees(pilot, "verified", "GROUP BY")
        await pilot.press("slash", *"centre", "enter")
        await until(
            pilot,
            lambda: (
                tab.view is not None
                and "centre" in "".join(s.text for s in tab.view.explain(tab.grid.cursor, tab.grid.column)[1])
            ),
        )


@pytest.mark.real
async def test_a_hundred_thousand_rows_scroll(tmp_path: Path) -> None:
    attempt = wrong_cell()
    rows = [{"id": n, "name": f"row {n}", **{f"c{i}": n * i for i in range(12)}} for n in range(100_000)]
    attempt.data = DataDetails(
        rows, [*rows[:-2], {**rows[-2], "c11": -1}, rows[-1]], list(rows[0]), settings={"key": ["id"]}
    )
    app = host(tmp_path, attempt)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("4")
        tab = screen.tab
        assert isinstance(tab, DataTab)
        await until(pilot, lambda: tab.view is not None, 60)
        assert tab.grid.cursor == 99_998 and tab.grid.first_column > 0
        await sees(pilot, "c11 in row 99,999")
        await pilot.press("g")
        assert tab.grid.cursor == 0
        await sees(pilot, "← ")


@pytest.mark.real
async def test_tools_show_a_call_and_its_trouble(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2")
        tab = screen.tab
        assert isinstance(tab, ToolsTab)
        assert tab.table.cursor == 2
        await sees(pilot, "404: no plan")
        await pilot.press("k")
        await sees(pilot, "within 30 days of purchase")
        await pilot.press("slash", *"kettle", "enter")
        await until(pilot, lambda: tab.table.cursor == 0)
        await pilot.press("right_parenthesis")
        assert tab.table.cursor == 1
        await pilot.press("tab")
        assert tab.text.has_focus


@pytest.mark.real
async def test_what_y_copies_and_Y_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/x,1,0")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await loaded(pilot)
        await pilot.press("y")
        await sees(pilot, "copy", "transcript")
        await pilot.press("e")
        await until(pilot, lambda: app.clipboard_texts == ["Refund policy"])
        assert "set-clipboard on" in app._notifications.__iter__().__next__().message
        assert screen.query_one(TextPane).has_focus
        await pilot.press("y", "r")
        assert len(app.clipboard_texts) == 1
        await pilot.press("y", "c")
        await until(pilot, lambda: len(app.clipboard_texts) == 2)
        assert app.clipboard_texts[1].startswith("tui-eval run suites/refunds.yaml")
        screen.content.called = "kettle"  # as lists call a row that its file gives no name
        await pilot.press("Y", "t")
        await until(pilot, lambda: bool(list(tmp_path.glob("tui-eval-kettle-transcript-*.txt"))))
        written = next(iter(tmp_path.glob("tui-eval-*.txt")))
        assert (
            "Hi, I bought a kettle" in written.read_text() and stat.S_IMODE(written.stat().st_mode) == 0o600
        )


def test_a_copy_fits_into_one_sequence() -> None:
    assert clipboard.fitting("x" * 10) == "x" * 10
    assert clipboard.sequence_length(clipboard.fitting("日" * 200_000)) <= clipboard.LIMIT


@pytest.mark.real
async def test_another_case_keeps_the_tab_where_it_has_something_in_it(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure(), judged(), agent_error())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("3")
        screen.go_to(app.pointers[1])
        await sees(pilot, "Bonsoir")
        assert screen.current() == app.pointers[1]
        screen.go_to(app.pointers[2])
        await sees(pilot, "HTTP 503")
        assert screen.tab_shown == 0  # nothing was judged: an empty tab would hide why
        screen.go_to(app.pointers[1])
        await sees(pilot, "Bonsoir")
        assert screen.tab_shown == 2
        screen.go_to(app.pointers[2])
        await until(pilot, lambda: screen.tab_shown == 0)
        await pilot.press("3")  # who asks for it gets it
        await sees(pilot, "No verdicts: the attempt ended")


async def test_a_case_that_never_ran_says_so(tmp_path: Path) -> None:
    app = HostApp(tmp_path, [CasePointer("suites/refunds.yaml::late refund")])
    case = case_for(text_failure())
    app.state.by_id[case.case_id] = CaseItem(case.case_id, case.name, case.suite, case.format, case=case)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "not run yet: r runs it")
        for key in "2345":
            await pilot.press(key)
        assert not app.errors


async def test_a_lost_run_is_said(tmp_path: Path) -> None:
    app = HostApp(tmp_path, [CasePointer("a::b", run_id="gone")])
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "not a run")


@pytest.mark.real
async def test_many_turns_open_at_once(tmp_path: Path) -> None:
    app = host(tmp_path, huge(200, 1_000_000))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("G", "g", "right_curly_bracket")
        pane = screen.query_one(TextPane)
        assert pane.find("delivered") == SEARCHING
        await until(pilot, lambda: not pane.searching)
        assert pane.find_next(0)[1] == 1600
        assert len(screen.tab.whole_text()) > 3_000_000


# -- while it runs


def on_a_running(tmp_path: Path, attempt: Attempt) -> tuple[HostApp, RunWriter, int, Callable[[], list]]:
    """The app on an attempt that runs, what writes it, its id, and what reads the run anew and says what changed."""
    info = RunInfo("run1", started_at=START)
    writer = RunWriter(Store(tmp_path).create_folder("run1"), info)
    (refs,) = writer.plan([PlannedCase(case_for(attempt), attempt.agent, attempt.model, 1, 1)])
    writer.started(refs[0], START)
    writer.flush()
    view = RunView(info, writer.home)

    def read() -> list:
        with closing(RunReader(writer.home)) as reader:
            view.apply_cases(reader.cases())
            rows = reader.changes(0)
        view.apply_attempts(rows)
        return rows

    app = HostApp(tmp_path, [CasePointer(attempt.case_id, run_id="run1")])
    app.state.run = view
    read()
    return app, writer, refs[0], read


async def test_a_running_attempt_streams_and_then_shows_its_verdicts(tmp_path: Path) -> None:
    attempt = text_failure()
    app, writer, ref, read = on_a_running(tmp_path, attempt)
    view = app.state.run
    assert view is not None
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await sees(pilot, "● running")
            screen = app.case_screen
            rows = [LiveRow(1, ref, "user", "", "A kettle broke.", "", "", START)]
            rows += [LiveRow(2 + n, ref, "assistant", "", f"word {n}\n", "", "", START) for n in range(60)]
            view.apply_live(rows)
            app.screen.post_message(LiveText({ref}))
            await sees(pilot, "word 59")
            await pilot.press("t", "g")
            view.apply_live([LiveRow(100, ref, "assistant", "", "the end", "", "", START)])
            app.screen.post_message(LiveText({ref}))
            await rested(pilot)
            assert "A kettle broke." in screen_text(app) and "the end" not in screen_text(app)
            writer.done(ref, attempt)
            writer.flush()
            app.screen.post_message(RunChanged(read()))
            await until(pilot, lambda: "✗ failed" in screen_text(app).splitlines()[0])
            assert screen.content.attempt is not None
            assert any(block.kind == "verdict" for block in screen.query_one(TextPane).blocks)
    finally:
        writer.close()


def test_an_attempt_that_ends_while_it_is_read_is_not_said_to_have_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row was read before its run's state: `not run` stood under `run finished: 1 failed`."""
    attempt = text_failure()
    writer = RunWriter(Store(tmp_path).create_folder("run1"), RunInfo("run1", started_at=START))
    (refs,) = writer.plan([PlannedCase(case_for(attempt), attempt.agent, attempt.model, 1, 1)])
    writer.started(refs[0], START)
    writer.flush()
    read = RunReader.attempts

    def ends_meanwhile(reader: RunReader, case_ref: int) -> list[AttemptRow]:
        rows = read(reader, case_ref)
        monkeypatch.setattr(RunReader, "attempts", read)
        writer.done(refs[0], attempt)
        writer.state("finished", START)
        writer.close()
        return rows

    monkeypatch.setattr(RunReader, "attempts", ends_meanwhile)
    content = load(Where(CasePointer(attempt.case_id, run_id="run1"), writer.home))
    assert content.row is not None and content.row.state == "running" and content.running


@pytest.mark.parametrize(("keys", "tab"), [((), 2), (("1",), 0)], ids=["as before", "the transcript"])
async def test_the_tab_that_was_open_comes_back_when_a_rerun_has_ended(
    tmp_path: Path, keys: tuple[str, ...], tab: int
) -> None:
    """While it runs there are no verdicts, so that what it says stands in their place; unless that is wanted."""
    attempt = text_failure()
    app, writer, ref, read = on_a_running(tmp_path, attempt)
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await sees(pilot, "● running")
            screen = app.case_screen
            screen.services.memory.case_view = {"tab": 2}
            await pilot.press(*keys)
            assert screen.tab_shown == 0
            writer.done(ref, attempt)
            writer.flush()
            app.screen.post_message(RunChanged(read()))
            await until(pilot, lambda: "✗ failed" in screen_text(app).splitlines()[0])
            assert screen.tab_shown == tab
    finally:
        writer.close()


async def test_the_last_attempt_of_a_run_is_never_shown_as_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end of its run and the reading of its record the head said `◌ not run`."""
    attempt = text_failure()
    app, writer, ref, read = on_a_running(tmp_path, attempt)
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await sees(pilot, "● running")
            screen, heads = app.case_screen, list[str]()
            show = screen.show_head

            def spied() -> None:
                heads.append(screen.content.state)
                show()

            monkeypatch.setattr(screen, "show_head", spied)
            writer.done(ref, attempt)
            writer.state("finished", START + 5)
            writer.flush()
            rows = read()
            run = app.state.run
            assert run is not None
            run.info = msgspec.structs.replace(run.info, state="finished")
            app.screen.post_message(RunChanged(rows, True))
            await until(pilot, lambda: "✗ failed" in screen_text(app).splitlines()[0])
            assert set(heads) <= {"running", "failed"}
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("finished", "its run ended before it did: r runs it, u in Runs (H) goes on with the run"),
        ("interrupted", "interrupted: r runs it, u in Runs (H) goes on with the run"),
    ],
)
async def test_an_attempt_whose_run_ended_before_it_waits_for_nothing(
    tmp_path: Path, state: RunState, why: str
) -> None:
    """It stood there as `◌ waiting`, of a run that a cost limit had ended as `interrupted`, with `t follow` below."""
    attempt = text_failure()
    folder = Store(tmp_path).create_folder("run1")
    info = RunInfo("run1", started_at=START)
    writer = RunWriter(folder, info)
    (refs,) = writer.plan([PlannedCase(case_for(attempt), attempt.agent, attempt.model, 2, 2)])
    writer.started(refs[0], START)
    writer.done(refs[0], attempt)
    writer.flush()
    view = RunView(info, folder)
    pointer = CasePointer(attempt.case_id, run_id="run1", attempt_ref=refs[1])
    app = HostApp(tmp_path, [pointer])
    app.state.run = view
    reader = RunReader(folder)
    view.apply_cases(reader.cases())
    view.apply_attempts(reader.changes(0))
    reader.close()
    async with app.run_test(size=(120, 24)) as pilot:
        await sees(pilot, "◌ waiting")
        assert app.case_screen.content.running
        writer.state(state, START + 5)
        writer.close()
        view.info = msgspec.structs.replace(info, state=state)
        app.screen.post_message(RunChanged([], True))
        await sees(pilot, "◌ not run")
        await until(pilot, lambda: why in screen_text(app))
        assert "waiting" not in screen_text(app) and "follow" not in screen_text(app)
        app.case_screen.go_to(replace(pointer, attempt_ref=refs[0]))
        await sees(pilot, "✗ failed")
        app.case_screen.go_to(pointer)  # opened anew it says the same
        await sees(pilot, "◌ not run")
        assert why in screen_text(app)


async def test_a_rerun_replaces_what_is_shown(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    again = text_failure()
    again.outcome, again.message = "passed", "passed"
    folder = write_run(tmp_path, [[again]], "20260602-120000-bbbb")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        reader = RunReader(folder)
        view = RunView(reader.info(), folder)
        view.apply_cases(reader.cases())
        view.apply_attempts(reader.changes(0))
        reader.close()
        app.state.run = view
        screen.post_message(RunChanged([], opened=True))
        await until(pilot, lambda: "✓ passed" in screen_text(app).splitlines()[0])
        assert screen.current().run_id == "20260602-120000-bbbb"  # type: ignore[union-attr]


# -- keys, pager, editor


def test_the_keys_do_not_clash() -> None:
    moving = [key for key in KEYS if key.place in ("everywhere", "moving")]
    taken: dict[str, str] = {}
    for key in (*moving, *CASE_KEYS, *SHARED_KEYS):
        for name in key.keys.split(","):
            assert name not in taken, f"{name}: {taken.get(name)} and {key.id}"
            taken[name] = key.id
    ids = [key.id for key in (*KEYS, *CASE_KEYS)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("editor", "arguments"),
    [
        ("vim", ["+12", "f.yaml"]),
        ("nano -w", ["-w", "+12", "f.yaml"]),
        ("hx", ["f.yaml:12"]),
        ("code", ["--wait", "--goto", "f.yaml:12"]),
        ("odd", ["f.yaml"]),
    ],
)
def test_the_editor_is_given_the_line_its_own_way(
    editor: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / editor.split()[0]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VISUAL", editor)
    command = editing.editor_command("f.yaml", 12)
    assert command is not None and command[1:] == arguments
    monkeypatch.setenv("VISUAL", "missing")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("EDITOR", raising=False)
    assert editing.editor_command("f.yaml", 12) is None


async def test_the_pager_gets_the_whole_text_made_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    program = tmp_path / "mypager"
    program.write_text(f'#!/bin/sh\ncp "$1" {kept}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PAGER", str(program))
    monkeypatch.setattr(pager, "suspended", lambda app: __import__("contextlib").nullcontext())
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("p")
        await until(pilot, kept.exists)
        assert "So offer a repair." in kept.read_text()
    monkeypatch.setenv("PAGER", "nothing-here")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pager.pager_command() is None
    assert "no pager found" in pager.show(app, "x")
    await asyncio.sleep(0)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("tui-eval-case")]


@pytest.mark.real
async def test_letters_stand_for_glyphs_without_utf8(tmp_path: Path) -> None:
    from tui_eval.tui.state.text.formatting import Symbols

    app = host(tmp_path, wrong_cell())
    app.services = replace(app.services, symbols=Symbols(False))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        for key in "12345":
            await pilot.press(key)
            if isinstance(tab := screen.tab, DataTab):
                await until(pilot, lambda tab=tab: tab.view is not None)
            lines = screen_text(app).splitlines()[:-1]
            assert all(line.rstrip("▁▂▃▄▅▆▇█▕").isascii() for line in lines), lines


@pytest.mark.real
async def test_a_search_through_many_rows_lets_keys_in_and_gets_there(tmp_path: Path) -> None:
    rows = [{"id": number, "name": f"row {number}"} for number in range(6000)]
    attempt = wrong_cell()
    attempt.data = DataDetails(
        columns=["id", "name"], expected=rows, actual=[*rows[:-1], {"id": 5999, "name": "far"}]
    )
    app = host(tmp_path, attempt)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("4")
        tab = screen.tab
        assert isinstance(tab, DataTab)
        await until(pilot, lambda: tab.view is not None)
        await pilot.press("g", "slash", *"row 5500", "enter")
        await until(pilot, lambda: tab.grid.cursor == 5500)
        await sees(pilot, "row 5,501 of 6,000")
        await pilot.press("j", "slash", *"row 5500", "enter")  # the only one, above: it comes round
        await until(pilot, lambda: tab.grid.cursor == 5500)
        await pilot.press("n")
        await sees(pilot, "row 5,501 of 6,000")
        assert tab.grid.cursor == 5500
        await pilot.press("g", "slash", *"nowhere", "enter")
        await sees(pilot, "not here: nowhere")
        await pilot.press("slash", "enter")
        await pilot.press("j", "j")
        assert tab.grid.cursor == 2
