"""A case over its runs: linked attempts, history, notes, bars over time, whole frames."""

from __future__ import annotations

import asyncio
import csv
import io
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from tests.support import mostly_real
from tests.support.attempts import START, case_for, missing_row, multi_agent, text_failure, wrong_cell
from tests.support.case_host import host, loaded, screen_text, sees, until
from tests.tui.state.case.test_case_why import past_attempt, said
from tui_eval.engine.request import RunRequest
from tui_eval.guard.masker import Masker
from tui_eval.model import Attempt, DataDetails, Entry
from tui_eval.reports import results
from tui_eval.store import frames
from tui_eval.store.linked import family
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.history import HistoryTab
from tui_eval.tui.inspector.tools_tab import ToolsTab
from tui_eval.tui.loaders.case_loader import load_past
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case import history_view
from tui_eval.tui.state.case.case_history import CasePast, changes, columns, note_words
from tui_eval.tui.state.case.waterfall import bar_line, bars, label_width, scale_line, span_of
from tui_eval.tui.state.data.comparison_modes import disagreement
from tui_eval.tui.state.data.data_view import make
from tui_eval.tui.state.runs.run_group import Placed, stability, together
from tui_eval.tui.state.text.lines import plain

LATER = "20260601-130000-bbbb"


def add_run(
    root: Path,
    attempt: Attempt,
    *,
    linked: str | None,
    number: int = 1,
    run_id: str = LATER,
    compat: str = "documented",
) -> Path:
    """One more run of the attempt's case."""
    folder = Store(root).create_folder(run_id)
    attempt.attempt = number
    writer = RunWriter(
        folder, RunInfo(run_id, started_at=START + 3600, linked_to=linked, provenance={"compat": compat})
    )
    planned = PlannedCase(case_for(attempt), attempt.agent, attempt.model, 1, 1, first_attempt=number)
    ((ref,),) = writer.plan([planned])
    writer.started(ref, START + 3600)
    writer.done(ref, attempt)
    writer.state("finished", START + 3660)
    writer.close()
    return folder


# -- pure


def test_an_answer_from_the_cache_costs_what_it_cost_when_it_was_given() -> None:
    first, known = past_attempt(1, cost=0.004), past_attempt(2, cost=0.0)
    known.row.cached, known.row.saved = 1, 0.004
    assert [one.cost for one in history_view.groups([first, known], 9)[0]] == [0.004, 0.004]
    line = plain(history_view.row_line(known, "", "", 100))
    assert "$0.0040" in line and "cached" in line


def test_a_judgement_adds_no_answer_to_what_the_history_counts_and_draws() -> None:
    """An answer that was judged three times is one; each judgement stays in a line of its own."""
    first = past_attempt(1, duration_ms=100.0, input_tokens=7)
    judged = [past_attempt(n, duration_ms=100.0, input_tokens=7, outcome="failed") for n in (2, 3, 4)]
    for one in judged:
        one.row.judges = "run1/1"
    judged[2].row.outcome = "cancelled"
    later = past_attempt(5, duration_ms=300.0, input_tokens=9)
    past = CasePast([first, *judged, later])
    assert [one.run_id for one in past.answers()] == ["run3", "run5"]
    assert said(history_view.plots(past, 80, 1))[0].split() == ["outcome", "✗✓", "1", "of", "2", "passed"]
    assert past.values("latency") == [100.0, 300.0]
    assert len(history_view.rows(past)) == 5


def test_linked_runs_are_a_family_whichever_one_asks() -> None:
    links = {"a": None, "b": "a", "c": "b", "d": None, "e": "gone"}
    assert family(links, "c") == family(links, "a") == ["a", "b", "c"]
    assert family(links, "d") == ["d"] and family(links, "e") == ["e"]
    assert family({"a": "b", "b": "a"}, "a") == ["a", "b"]


def test_a_rerun_begins_anew_and_one_more_attempt_adds() -> None:
    rows = [past_attempt(n).row for n in (1, 2, 1, 2)]
    placed = [Placed(run, row) for run, row in zip("aabc", rows, strict=True)]
    assert together(placed, "a") == placed[:2] and together(placed, "c") == placed[2:]
    assert stability(["failed", "passed", "failed"]) == "1/3 flaky"
    assert stability(["failed", "error"]) == "0/2 broken" and stability(["passed", "cancelled"]) == ""


def test_changes_between_attempts_are_named() -> None:
    made = [
        past_attempt(1, content_hash="a", answer="x", agent="one"),
        past_attempt(2, content_hash="b", answer="x", agent="one"),
        past_attempt(3, content_hash="b", answer="y", agent="two"),
    ]
    assert changes(made) == ["", "case", "agent, answer"]
    blocks = history_view.detail(CasePast(made), list(reversed(made)), 0, "answer")
    assert [block.label for block in blocks] == ["attempt", "changed", "before", "answer"]


def test_plots_fit_and_leave_gaps_where_nothing_is_known() -> None:
    assert columns([0, 4, None, 8], 1) == ["▁▄ █"] and columns([1, 2], 2) == [" █", "██"]
    made = CasePast([past_attempt(n, duration_ms=100.0 * n, outcome="failed") for n in range(1, 9)])
    lines = said(history_view.plots(made, 60, 2))
    assert lines[0].startswith("outcome  ✗✗✗✗✗✗✗✗  0 of 8") and any(line.startswith("time") for line in lines)
    assert all(len(line) <= 60 for line in lines)


def test_where_there_is_nothing_to_plot_the_large_plots_say_so() -> None:
    made = CasePast([past_attempt(n, duration_ms=100.0, outcome="failed") for n in range(2)])
    assert len(history_view.plots(made, 80, 3)) == 1
    assert "begin with the third answer" in said(history_view.plots(made, 80, 3, whole=True))[1]


def test_plots_say_how_many_attempts_they_leave_out_and_the_large_ones_hold_all() -> None:
    outcomes = ["passed", "passed", "failed"]
    made = CasePast(
        [past_attempt(n, duration_ms=100.0 + n % 7, outcome=outcomes[n % 3], cost=0.001) for n in range(600)]
    )
    for width in (60, 80, 120):
        few = said(history_view.plots(made, width, 1))
        room = width - history_view.LABEL - history_view.SCALE
        assert f" of {room} passed of 600, z: all" in few[0] and all(len(line) <= width for line in few)
        assert [line.split()[0] for line in few] == ["outcome", "time", "cost"]
        assert len(history_view.plots(made, width, 1, most=2)) == 2
        whole = said(history_view.plots(made, width, 3, whole=True))
        assert any(line.startswith("passed") and "400 of 600 passed, " in line for line in whole)
        assert all(len(line) <= width for line in whole) and "time" in "".join(whole)
    some = CasePast(made.attempts[:5])
    assert "of 5 passed" in said(history_view.plots(some, 80, 1, whole=True))[0]
    cut = CasePast([*made.attempts[:3], past_attempt(3, duration_ms=9e6, outcome="cancelled")])
    lines = said(history_view.plots(cut, 80, 1))
    assert "2 of 3 passed" in lines[0] and "most 102ms" in lines[1], (
        "what was cut short is no outcome and no time"
    )
    assert cut.values("latency") == [100.0, 101.0, 102.0]
    shown, per = history_view.groups(made.attempts[:7], 3)
    assert per == 3 and [round(one.passed, 2) for one in shown] == [0.67, 0.67, 1.0]
    assert shown[0].duration_ms == 101.0 and shown[0].tokens is None


def test_a_results_file_does_not_know_whether_the_case_changed() -> None:
    hashes = ("file-a", "own1", "own2", "file-b", "file-a")
    made = [past_attempt(n, content_hash=hashed) for n, hashed in enumerate(hashes)]
    assert changes(made) == ["", "", "case", "", ""]


def test_another_answer_is_known_by_its_fingerprint_where_texts_were_not_read() -> None:
    made = [past_attempt(n) for n in range(4)]
    for one, mark in zip(made, ("a", "b", "b", ""), strict=True):
        one.row.answer = mark
    assert changes(made) == ["", "answer", "", ""]
    made[1].answer, made[2].answer = "x", "y"
    assert changes(made) == ["", "answer", "answer", ""]


@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24), (120, 40)], (60, 16)))
async def test_the_answer_of_an_old_attempt_is_read_when_it_is_looked_at(
    tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_eval.tui.loaders.case_loader.ANSWERS", 1)
    app = host(tmp_path, text_failure())
    old = text_failure()
    old.response_text = "the answer in the old run"
    add_run(tmp_path, old, linked=None, run_id="20260501-130000-bbbb")
    read = [one.answer for one in load_past(tmp_path, old.case_id).attempts]
    assert read[0] is None and read[1] is not None
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        await pilot.press("h")
        tab = screen.tab
        assert isinstance(tab, HistoryTab)
        await until(pilot, lambda: tab.table.row_count == 2)
        await until(pilot, lambda: app.focused is tab.table)
        await pilot.press("G")
        await until(pilot, lambda: tab.table.rows[-1].answer == "the answer in the old run")
        if size != (60, 16):
            await sees(pilot, "the answer in the old run")


def test_the_history_goes_by_when_attempts_began_not_by_their_runs(tmp_path: Path) -> None:
    """A merged run is younger than what it is merged of, and a run that went on has newer ones than one between."""
    for run_id, began in {
        "20260601-120000-aaaa": 300.0,
        "20260601-130000-bbbb": 200.0,
        "20260601-140000-cccc": 100.0,
        "20260601-150000-dddd": 0.0,
        "20260601-160000-eeee": 400.0,
    }.items():
        attempt = text_failure()
        attempt.started_at = began and START + began  # not every results file says when
        add_run(tmp_path, attempt, linked=None, run_id=run_id)
    past = load_past(tmp_path, text_failure().case_id)
    assert "".join(one.run_id[-1] for one in past.attempts) == "cdbae"


def test_notes_in_words() -> None:
    note = HumanNote("r", 1, "c", "wrong", "too long", True)
    assert note_words(note) == "★ wrong: too long" and note_words(None) == ""


def test_calls_and_hand_offs_as_bars_beside_each_other() -> None:
    attempt = Attempt(
        "s::n", 1, "passed", started_at=START,
        transcript=[
            Entry(1, "hand_off", agent="front", name="a", started_at=START),
            Entry(1, "hand_off", agent="front", name="b", started_at=START),
            Entry(1, "tool_call", agent="front.a", name="look", call_id="1", started_at=START + 1),
            Entry(1, "tool_call", agent="front.b", name="see", call_id="2", started_at=START + 1),
            Entry(1, "tool_result", agent="front.a", call_id="1", started_at=START + 3),
            Entry(1, "tool_result", agent="front.b", call_id="2", started_at=START + 4, error="no"),
            Entry(1, "assistant", agent="front", text="done", started_at=START + 4, duration_ms=1000),
        ],
    )  # fmt: skip
    shown = bars(attempt)
    assert [(bar.label, bar.start, bar.end, bar.depth) for bar in shown] == [
        ("→ a", 0, 3000, 0),
        ("look", 1000, 3000, 1),
        ("→ b", 0, 4000, 0),
        ("see", 1000, 4000, 1),
        ("front", 4000, 5000, 0),
    ]
    total, label = span_of(shown), label_width(shown, 60)
    lines = said(bar_line(bar, total, 60, label) for bar in shown)
    assert all(len(line) <= 60 for line in lines) and lines[3].startswith("!")
    assert lines[1].index("█") == lines[3].index("█") < lines[4].index("█")
    assert said([scale_line(total, 60, label)])[0].rstrip().endswith("5.0s")
    assert "reports no times" in said([scale_line(span_of(bars(Attempt("s", 1, "passed"))), 60, 9)])[0]


# -- frames


def large(folder: Path, rows: int = 30_000) -> DataDetails:
    """Details of a comparison whose rows are beside the run's database."""
    expected = pl.DataFrame({"id": range(rows), "value": [n * 1.5 for n in range(rows)]})
    actual = expected.with_columns(
        pl.when(pl.col("id") == rows - 7).then(-1.0).otherwise(pl.col("value")).alias("value")
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = frames.save(folder, 1, {"expected": expected, "actual": actual}, Masker(()))
    settings = {"truncated": {"expected": rows, "actual": rows}, "frames": paths, "key": ["id"]}
    return DataDetails(
        expected.head(10).to_dicts(), actual.head(10).to_dicts(), ["id", "value"], settings=settings
    )


def test_whole_frames_are_shown_where_they_were_kept(tmp_path: Path) -> None:
    details = large(tmp_path)
    view = make(details, tmp_path)
    assert (view.total, len(view.differing), view.truncated) == (30_000, 1, {})
    assert view.row(int(view.differing[0])).cells[1].actual == "-1.0"
    assert view.frozen == 1
    without = make(details, tmp_path / "elsewhere")
    assert without.total == 10 and without.truncated == {"expected": 30_000, "actual": 30_000}


def test_the_difference_as_csv() -> None:
    attempt = missing_row()
    assert attempt.data is not None
    rows = list(csv.DictReader(io.StringIO("".join(make(attempt.data).csv()))))
    assert {row["status"] for row in rows} == {"different", "missing", "extra"}
    changed = next(row for row in rows if row["status"] == "different")
    assert (changed["column"], changed["expected"], changed["actual"]) == ("revenue", "1006.5", "1007.25")


def test_both_comparisons_are_shown_where_they_disagree() -> None:
    rows = [{"id": 1, "price": 10.004}, {"id": 2, "price": 3.0}]
    other = [{"id": 1, "price": 10.001}, {"id": 2, "price": 3.0}]
    attempt = wrong_cell()
    attempt.data = DataDetails(rows, other, ["id", "price"], settings={"compat": "documented"})
    lines = said(disagreement(attempt))
    assert lines[0].startswith("✗ documented: values differ") and lines[0].endswith("counted here")
    assert lines[1].startswith("✓ reference: match") and lines[1].endswith("would say otherwise")
    assert disagreement(wrong_cell()) == []


# -- stored


def test_the_past_is_read_from_all_runs_and_people_s_notes(tmp_path: Path) -> None:
    host(tmp_path, multi_agent())
    later = multi_agent()
    later.response_text = "Bicycles cost 50 €."
    add_run(tmp_path, later, linked=None)
    notes = Notes(tmp_path)
    notes.put(HumanNote(LATER, 1, later.case_id, "right"))
    past = load_past(tmp_path, later.case_id)
    assert [one.run_id for one in past.attempts][1] == LATER and past.attempts[
        1
    ].answer == "Bicycles cost 50 €."
    assert past.attempts[1].note is not None and past.agreement == {"gpt-4.1-mini": (0, 1)}
    assert load_past(tmp_path, later.case_id, "nobody").attempts == []


# -- on the screen


@pytest.mark.real
async def test_linked_attempts_are_one_row_of_attempts(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    passed = text_failure()
    passed.outcome, passed.message = "passed", "passed"
    add_run(tmp_path, passed, linked=app.pointers[0].run_id, number=2)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await loaded(pilot)
        await sees(pilot, "attempt 1 of 2 ✗✓ 1/2 flaky")
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: screen.content.run_id == LATER and screen.content.state == "passed")
        await sees(pilot, "attempt 2 of 2")
        await pilot.press("less_than_sign")
        await until(pilot, lambda: screen.content.state == "failed")


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24), (120, 40)], (60, 16)))
async def test_history_shows_attempts_and_opens_one(tmp_path: Path, size: tuple[int, int]) -> None:
    app = host(tmp_path, text_failure())
    passed = text_failure()
    passed.outcome, passed.message, passed.response_text = "passed", "passed", "All is well."
    add_run(tmp_path, passed, linked=None)
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        await pilot.press("h")
        tab = screen.tab
        assert isinstance(tab, HistoryTab)
        await until(pilot, lambda: tab.table.row_count == 2)
        await sees(pilot, "1 of 2 passed", "here")
        begun = [time.localtime(one.row.started_at) for one in tab.table.rows]
        await sees(pilot, *(time.strftime("%d %b %H:%M:%S ", one) for one in begun))
        await until(pilot, lambda: app.focused is tab.table)
        await pilot.press("g")
        await sees(pilot, "answer")
        await pilot.press("enter")
        await until(pilot, lambda: screen.content.run_id == LATER and screen.tab_shown == 0)


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24), (120, 40)], (60, 16)))
async def test_a_verdict_by_the_rules_of_the_original_tool_says_so(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = host(tmp_path, text_failure())
    passed = text_failure()
    passed.outcome, passed.message = "passed", "passed"
    add_run(tmp_path, passed, linked=app.pointers[0].run_id, number=2, compat="reference")
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        assert "reference" not in screen_text(app)
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: screen.content.run_id == LATER)
        await sees(pilot, "· reference")
        await pilot.press("h")
        tab = screen.tab
        assert isinstance(tab, HistoryTab)
        await until(pilot, lambda: tab.table.row_count == 2)
        await until(pilot, lambda: sum("reference" in line for line in screen_text(app).splitlines()) == 2)


async def test_a_person_s_verdict_is_kept_and_shown(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("m", "w")
        await until(pilot, lambda: screen.content.note is not None)
        await pilot.press("m", "n", *"too terse", "enter")
        await until(pilot, lambda: bool(screen.content.note and screen.content.note.text))
        await sees(pilot, "attempt 1 of 1 · wrong …")
        await pilot.press("h")
        await sees(pilot, "wrong: too terse")
        assert Notes(tmp_path).of_case(screen.current().case_id)[0].verdict == "wrong"
        assert app.state.notes[screen.current().case_id][0].text == "too terse"
        await pilot.press("m", "x")
        await until(pilot, lambda: screen.content.note is None)
        assert not app.state.notes


@pytest.mark.parametrize("leaves", ["J", "escape"])
async def test_a_verdict_kept_after_the_person_went_on_is_in_the_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves: str
) -> None:
    """On a slow disk: the note was kept, and no list showed it until the project was opened again."""
    goes_on, put = threading.Event(), Notes.put

    def slow_put(self: Notes, note: HumanNote, seen: HumanNote | None = None) -> None:
        goes_on.wait(30)
        put(self, note, seen)

    monkeypatch.setattr(Notes, "put", slow_put)
    app = host(tmp_path, text_failure(), missing_row())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await loaded(pilot)
        noted = screen.current().case_id
        monkeypatch.setattr("textual.pilot.wait_for_idle", _at_once)
        await pilot.press("m", "w")
        if leaves == "J":
            screen.content.pointer = app.pointers[1]
        else:
            app.pop_screen()
        goes_on.set()
        await until(pilot, lambda: bool(app.state.notes.get(noted)))
        assert app.state.notes[noted][0].verdict == "wrong"


async def _at_once(*_: object) -> None:
    """The pilot does not wait for the disk."""
    await asyncio.sleep(0.05)


async def test_a_note_is_on_the_attempt_that_was_seen_when_it_was_asked_for(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await loaded(pilot)
        first = screen.content.run_id
        await pilot.press("m", "n", *"too te")
        add_run(tmp_path, text_failure(), linked=first, number=2)  # a rerun ends, and is shown
        screen.go_to(CasePointer(screen.current().case_id, run_id=LATER))
        await until(pilot, lambda: screen.content.run_id == LATER)
        await pilot.press(*"rse", "enter")
        await until(pilot, lambda: bool(Notes(tmp_path).of_case(screen.current().case_id)))
        (note,) = Notes(tmp_path).of_case(screen.current().case_id)
        assert (note.run_id, note.text) == (first, "too terse")


async def test_bars_over_time_keep_the_call(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2", "g", "j", "s")
        tab = screen.tab
        assert isinstance(tab, ToolsTab) and tab.table.bars
        call = tab.table.call
        assert call is not None and call.name == "search_knowledge_base"
        await pilot.press("right_parenthesis")
        assert tab.table.call is not None and tab.table.call.name == "get_plan"
        await pilot.press("s")
        assert not tab.table.bars and tab.table.cursor == 2


@pytest.mark.real
async def test_a_hundred_thousand_rows_scroll_and_the_modes_are_told(tmp_path: Path) -> None:
    attempt = wrong_cell()
    app = host(tmp_path, attempt)
    run_id = app.pointers[0].run_id
    assert run_id is not None
    attempt.data = large(Store(tmp_path).runs_folder / LATER, 100_000)
    (Store(tmp_path).runs_folder / LATER / "frames").rename(tmp_path / "kept")
    (Store(tmp_path).runs_folder / LATER).rmdir()
    folder = add_run(tmp_path, attempt, linked=None)
    (tmp_path / "kept").rename(folder / "frames")
    app.pointers[0] = type(app.pointers[0])(attempt.case_id, run_id=LATER)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("4")
        tab = screen.tab
        assert isinstance(tab, DataTab)
        await until(pilot, lambda: tab.view is not None)
        await sees(pilot, "of 100,000 rows", "key: id (given)")
        assert tab.view is not None and tab.grid.cursor == 99_993
        await pilot.press("v", "g")
        await sees(pilot, "value in row 1 ")
        await pilot.press("right_curly_bracket")
        assert tab.grid.cursor == 99_993


async def test_an_error_before_the_first_turn_has_no_turn(tmp_path: Path) -> None:
    attempt = Attempt(
        "s.yaml::n", 1, "error", transcript=[Entry(0, "error", text="no connection")], error="no connection"
    )
    app = host(tmp_path, attempt)
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await sees(pilot, "before the first turn", "no connection")
        assert "turn 0" not in screen_text(app)


def test_exports_hold_the_notes(tmp_path: Path) -> None:
    assert results.note_entry(HumanNote("r", 1, "c", "right", "ok", True, 3.0)) == {
        "verdict": "right",
        "text": "ok",
        "star": True,
        "at": 3.0,
    }


class Desk:
    """Remembers what it was asked to send."""

    def __init__(self) -> None:
        self.sent: list[RunRequest] = []

    def request(self, entries, choice) -> RunRequest:
        """The request for the entries."""
        return RunRequest(paths=[entry.suite for entry in entries], case_ids=[e.case_id for e in entries])

    def send(self, request: RunRequest, show: bool, said: str) -> None:
        """Remember it."""
        assert not show and said
        self.sent.append(request)


async def test_the_recorded_answer_is_judged_again_and_a_case_run_from_a_turn(tmp_path: Path) -> None:
    app = host(tmp_path, text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        assert screen.judge_again()  # `.` is a key of the app, which this host is not
        assert app.from_turn == [(screen.content.run_id, None)]
        await pilot.press("left_curly_bracket", "B")
        await until(pilot, lambda: len(app.from_turn) == 2)
        assert app.from_turn[1] == (screen.content.run_id, 2)


def test_a_reason_is_said_once_where_it_is_the_same_for_several() -> None:
    listed = [
        past_attempt(4 - n, outcome=outcome)
        for n, outcome in enumerate(("failed", "failed", "passed", "error"))
    ]
    for one, message in zip(listed, ("no refund", "no refund", "", "x"), strict=True):
        one.row.message = message
    assert history_view.reasons(listed) == ["no refund", "″", "", "x"]
    line = history_view.row_line(listed[0], "answer", "no refund", 100, here=True)
    assert "here answer changed · no refund" in plain(line)
