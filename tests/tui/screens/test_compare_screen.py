"""Compare in the app: linked runs, two agents, another run, finding."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, LiveRun, project
from tests.tui.screens.test_runs_screen import NAMES, SIZES, sees, to_runs, write_runs
from tui_eval.config.project import load as load_config
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case, Entry, Turn, Usage
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui import background
from tui_eval.tui.loaders import compare_loader
from tui_eval.tui.loaders.compare_loader import CompareChoice, Half, Sides, newest_right
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.compare_screen import CompareScreen
from tui_eval.tui.screens.sides import SidesScreen
from tui_eval.tui.state.app_state import CasePointer


def run_of_agents(root: Path, outcomes: dict[str, Any], run_id: str = "20260101-000009-aaaa") -> Path:
    """A run of the same cases with several agents."""
    folder = Store(root).create_folder(run_id)
    writer = RunWriter(folder, RunInfo(run_id, started_at=1_760_000_000.0, agents=list(outcomes)))
    cases = [
        Case(f"suites/support.yaml::{name}", name, "suites/support.yaml", "start_to_agent", turns=[Turn("x")])
        for name in NAMES
    ]
    planned = [PlannedCase(case, agent, "m", 1, 1) for agent in outcomes for case in cases]
    told = [outcome for of_agent in outcomes.values() for outcome in of_agent]
    for one, (ref,), outcome in zip(planned, writer.plan(planned), told, strict=True):
        said = [Entry(1, "user", text="hello"), Entry(1, "assistant", text=f"{one.agent} says {outcome}")]
        writer.done(
            ref,
            Attempt(
                one.case.case_id, 1, outcome, agent=one.agent, model="m", message=f"{one.agent} {outcome}",
                transcript=said, usage=Usage(10, 10), cost=0.01, duration_ms=1000.0,
            ),
        )  # fmt: skip
    writer.state("finished", 1_760_000_060.0)
    writer.close()
    return folder


def case_under_cursor(screen: CompareScreen) -> str:
    pointer = screen.current()
    return pointer.case_id if pointer is not None else ""


async def compared(app, pilot) -> CompareScreen:
    await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
    await pilot.pause()
    return app.screen


async def test_what_takes_long_says_how_far_it_is_and_another_time_that_it_goes_on(tmp_path, monkeypatch):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed", "passed", "passed"])
    go_on, whole = threading.Event(), compare_loader.compare

    def slow(before, after):
        assert go_on.wait(20)
        return whole(before, after)

    monkeypatch.setattr(compare_loader, "compare", slow)
    monkeypatch.setattr(background, "SLOW", 0.05)
    async with running_app(root, notices=True) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("c")
        await sees(app, pilot, "Comparing 3 with 3 cases")
        go_on.set()
        await compared(app, pilot)
        await sees(app, pilot, "1 regressed")
        go_on.clear()
        await pilot.press("s")
        await sees(app, pilot, "comparing (", "1 regressed")  # the others are shown still
        go_on.set()
        await sees(app, pilot, "1 fixed")


@pytest.mark.real
@SIZES
async def test_two_agents_of_one_run_by_key(tmp_path, size):
    root = project(tmp_path)
    run_of_agents(
        root,
        {"first": ["passed"] * 3, "second": ["failed", "passed", "passed"], "third": ["error"] * 3},
    )
    async with running_app(root, size) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("c")
        await sees(app, pilot, "Compare which?", "first, m against second, m", "first, m against third, m")
        await pilot.press("1")
        screen = await compared(app, pilot)
        await sees(app, pilot, "two agents of", "first  first, m", "second second, m", "1 regressed")
        await sees(app, pilot, "passes with the first, not with the second", "✓ → ✗")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        sides = app.screen.sides
        assert [sides.choices[i].agent for i in (sides.left, sides.right)] == ["first", "second"]
        await pilot.press("escape", "greater_than_sign")
        await until(lambda: screen.before.agent == "third", pilot)
        await sees(app, pilot, "2 fixed")
        await pilot.press("greater_than_sign")
        await until(lambda: screen.before.agent == "first" and "1 regressed" in screen_text(app), pilot)


@pytest.mark.real
async def test_agents_without_a_case_in_common_are_not_offered(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3)
    run_id = "20260202-000000-two0"
    folder = Store(root).create_folder(run_id)
    writer = RunWriter(folder, RunInfo(run_id, started_at=1_760_000_000.0, agents=["a", "b"]))
    cases = [Case(f"{name}.yaml::x", name, f"{name}.yaml", "nao", turns=[Turn("x")]) for name in "ab"]
    for case, (ref,) in zip(
        cases, writer.plan([PlannedCase(c, c.name, None, 1, 1) for c in cases]), strict=True
    ):
        writer.done(ref, Attempt(case.case_id, 1, "passed", agent=case.name))
    writer.state("finished", 1_760_000_060.0)
    writer.close()
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        screen = app.screen
        await pilot.press("c")
        await until(
            lambda: any("no run before it has a case of it" in line[2] for line in app.notices.lines), pilot
        )
        assert app.screen is screen


@pytest.mark.real
async def test_a_run_of_a_part_that_is_linked_to_none_hides_no_regression(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["passed"] * 3)
    part = LiveRun(root, NAMES[:1])  # of a broken agent, say
    part.all_done(["failed"])
    broken = LiveRun(root, NAMES[:3])
    broken.all_done(["failed", "passed", "passed"])
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("g", "c")
        screen = await compared(app, pilot)
        assert screen.after.folder == broken.folder and screen.before.folder != part.folder
        await sees(app, pilot, "1 case regressed", "✓ → ✗")


async def test_one_case_is_no_plural(tmp_path):
    root = project(tmp_path)
    for _ in range(2):
        LiveRun(root, NAMES[:1]).all_done(["passed"])
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("g", "c")
        await compared(app, pilot)
        await sees(app, pilot, "Compare  1 case")
        assert "1 cases" not in screen_text(app)


@pytest.mark.real
async def test_a_rerun_counts_with_the_run_it_belongs_to(tmp_path):
    root = project(tmp_path)
    old, new = write_runs(root, ["passed"] * 3, ["failed", "passed", "passed"])
    again = LiveRun(root, NAMES[:1], linked_to=new.name)
    again.all_done(["passed"])
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("g", "space", "j", "space", "c")  # the rerun stands between them, under its run
        screen = await compared(app, pilot)
        assert [half.folder for half in (screen.before, screen.after)] == [old, new]
        await sees(app, pilot, "0 cases regressed, 0 fixed", "+1 linked", "3 unchanged")
        # the run itself against its rerun: what the rerun changed, the other cases as they were
        await pilot.press("escape", "g", "space", "space", "c")
        screen = await compared(app, pilot)
        assert [half.folder for half in (screen.before, screen.after)] == [new, again.folder]
        await sees(app, pilot, "1 fixed", "2 unchanged", "✗ → ✓")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        sides = app.screen.sides
        assert [sides.choices[i].run_id for i in (sides.left, sides.right)] == [new.name, again.info.id]


async def test_side_by_side_is_headed_by_what_lists_call_the_case(tmp_path):
    suite = "prompts: ['{{city}}']\nproviders: [echo]\ntests: [{vars: {city: Oslo}}, {vars: {city: Bern}}]\n"
    root = project(tmp_path, {"promptfooconfig.yaml": suite})
    cases = reading.load(root / "promptfooconfig.yaml", load_config([root]), Trust()).cases
    assert [case.name for case in cases] == ["Row #1", "Row #2"]
    for number in (1, 2):
        run_id = f"20260101-00000{number}-aaaa"
        writer = RunWriter(Store(root).create_folder(run_id), RunInfo(run_id, started_at=1_760_000_000.0))
        planned = [PlannedCase(case, "echo", None, 1, 1) for case in cases]
        for one, (ref,) in zip(planned, writer.plan(planned), strict=True):
            writer.done(ref, Attempt(one.case.case_id, 1, "passed", agent="echo"))
        writer.state("finished", 1_760_000_060.0)
        writer.close()
    async with running_app(root, (100, 24)) as (app, pilot):
        await until(lambda: len(app.state.rows[0].history) == 2, pilot)
        app.services.places.open_case(CasePointer(cases[1].case_id))
        await pilot.press("c")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        await until(lambda: screen_text(app).splitlines()[0].startswith("Bern"), pilot)


@pytest.mark.real
async def test_an_older_run_takes_the_place(tmp_path):
    root = project(tmp_path)
    first, second, third = write_runs(root, ["failed"] * 3, ["passed"] * 3, ["passed", "failed", "passed"])
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("c")
        screen = await compared(app, pilot)
        assert (screen.before.folder, screen.after.folder) == (second, third)
        await pilot.press("less_than_sign")
        await until(lambda: screen.before.folder == first and "2 fixed" in screen_text(app), pilot)
        await pilot.press("less_than_sign")
        await until(lambda: any("no earlier run" in text for _, _, text in app.notices.lines), pilot)
        await pilot.press("greater_than_sign")
        await until(lambda: screen.before.folder == second and "1 regressed" in screen_text(app), pilot)


@pytest.mark.real
@SIZES
async def test_what_an_attempt_takes_and_finding(tmp_path, size):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed", "passed", "failed"])
    async with running_app(root, size) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("c")
        screen = await compared(app, pilot)
        await sees(app, pilot, "an attempt  1.0s → 1.0s · 30 → 30 tokens · $0.0100 → $0.0100")
        await pilot.press("slash")
        await pilot.press(*"angry", "enter")
        await until(lambda: case_under_cursor(screen).endswith("angry customer"), pilot)
        await pilot.press("slash", *["backspace"] * 5, *"went wrong", "enter", "n")
        await until(lambda: case_under_cursor(screen).endswith("refund is approved"), pilot)
        await pilot.press("n")
        await until(lambda: case_under_cursor(screen).endswith("angry customer"), pilot)
        await pilot.press("slash", "escape")
        assert isinstance(app.screen, CompareScreen) and screen.finder.found == ""


@pytest.mark.real
async def test_a_run_that_cannot_be_read_is_said(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    older, newer = sorted((root / ".tui-eval" / "runs").glob("2*"))
    with sqlite3.connect(older / "run.db") as connection:
        connection.execute("DROP TABLE attempts")
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await app.push_screen(CompareScreen(Half(older), Half(newer)))
        await sees(app, pilot, "Cannot be compared: ")
        assert any("no such table" in text for _, _, text in app.notices.lines)


@pytest.mark.real
async def test_only_one_run_has_the_case(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3)
    run_of_agents(root, {"offline": ["failed"] * 3}, "20250101-000000-old0")
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("c")
        await compared(app, pilot)
        await sees(app, pilot, "3 fixed")
        await pilot.press("i", "i", "enter")
        await until(lambda: isinstance(app.screen, SidesScreen | CaseScreen), pilot)


def test_the_words_are_of_the_kind_that_is_compared():
    from tui_eval.reports.run_comparison import CHANGES
    from tui_eval.tui.state.compare.compare_view import COLUMN_WORDS, WORDS

    assert set(WORDS) == set(COLUMN_WORDS) == set(CHANGES)
    assert not any("before" in words or "now" in words for words in COLUMN_WORDS.values())


@pytest.mark.real
@SIZES
async def test_the_cases_of_a_change_are_folded_and_unfolded(tmp_path, size):
    root = project(tmp_path)
    write_runs(root, ["passed", "passed", "failed"], ["failed", "passed", "passed"])
    async with running_app(root, size) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("c")
        screen = await compared(app, pilot)
        await until(lambda: len(screen.table.rows) == 6, pilot)
        await pilot.press("left")
        await sees(app, pilot, "1 regressed", "enter or → shows")
        assert [row.change for row in screen.table.rows] == [
            "regressed",
            "fixed",
            "fixed",
            "unchanged",
            "unchanged",
        ]
        assert screen.table.cursor == 0
        await pilot.press("enter")
        await until(lambda: len(screen.table.rows) == 6, pilot)
        await pilot.press("enter", "j", "enter")
        await until(lambda: len(screen.table.rows) == 4 and screen.table.cursor == 1, pilot)
        await pilot.press("right")
        await until(lambda: len(screen.table.rows) == 5, pilot)
        assert app.screen is screen


@pytest.mark.real
async def test_help_says_what_enter_does_here(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("question_mark")
        await sees(app, pilot, "Help: Runs", "open or follow the run")
        await pilot.press("escape", "c")
        await compared(app, pilot)
        await pilot.press("question_mark")
        await sees(
            app, pilot, "Help: Compare", "both transcripts side by side", "fold the cases of this change"
        )


def standing(app) -> list[str]:
    """The runs whose attempts stand at the left and at the right."""
    sides = app.screen.sides
    return [sides.choices[at].run_id for at in (sides.left, sides.right)]


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("key", ["r", "full_stop"])
async def test_a_case_run_or_judged_anew_beside_its_old_attempt_stands_at_the_right(tmp_path, key):
    root = project(tmp_path)
    old, new = write_runs(root, ["passed"] * 3, ["failed", "passed", "passed"])
    engine = FakeEngine(root)
    async with running_app(root, (120, 40), engine=engine) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("space", "space", "c")
        await compared(app, pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        assert standing(app) == [old.name, new.name]
        await pilot.press(key)
        await sees(app, pilot, "● a new attempt runs")
        assert standing(app) == [old.name, new.name]
        live = engine.live
        assert live is not None
        live.start(0)
        live.done(0, "passed", said="quite another answer")
        live.finish()
        await until(lambda: standing(app) == [new.name, live.info.id], pilot)
        await sees(app, pilot, "quite another answer")
        assert "a new attempt runs" not in screen_text(app)
        await pilot.press("less_than_sign")
        await until(lambda: standing(app) == [old.name, live.info.id], pilot)
        # the list says it too, and opens the newest against what the second run had
        await pilot.press("escape")
        await sees(app, pilot, "since passed")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        assert standing(app) == [new.name, live.info.id]


async def test_a_third_run_in_front_does_not_take_the_place_of_those_compared(tmp_path):
    root = project(tmp_path)
    old, new, third = write_runs(root, ["passed"] * 3, ["failed", "passed", "passed"], ["error"] * 3)
    async with running_app(root, (120, 40)) as (app, pilot):
        app.front_run.follow(third)
        await until(lambda: app.state.group is not None, pilot)
        await to_runs(app, pilot)
        await pilot.press("j", "space", "j", "space", "c")
        screen = await compared(app, pilot)
        assert [half.folder.name for half in (screen.before, screen.after)] == [old.name, new.name]
        await sees(app, pilot, "1 case regressed")
        assert "since" not in screen_text(app)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        assert standing(app) == [old.name, new.name]


@pytest.mark.real
async def test_a_rerun_that_belongs_to_a_compared_run_counts_when_it_has_ended(tmp_path):
    root = project(tmp_path)
    _, new = write_runs(root, ["passed"] * 3, ["failed", "passed", "passed"])
    async with running_app(root, (120, 40)) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("space", "space", "c")
        await compared(app, pilot)
        await sees(app, pilot, "1 case regressed", "✓ → ✗")
        again = LiveRun(root, NAMES[:1], linked_to=new.name)
        app.front_run.follow(again.folder)
        await sees(app, pilot, "runs anew")
        again.all_done(["passed"])
        await sees(app, pilot, "0 cases regressed, 0 fixed", "+1 linked")
        assert "runs anew" not in screen_text(app) and "since passed" not in screen_text(app)


@pytest.mark.real
@pytest.mark.usually(2)
@pytest.mark.parametrize("front", ["before", "after"])
@pytest.mark.parametrize("key", ["r", "b"])
@pytest.mark.parametrize("inside", [False, True], ids=["list", "sides"])
async def test_what_is_run_from_here_never_takes_the_place_of_what_it_is_measured_by(
    tmp_path, front, key, inside
):
    """With the first run in front it adds to none, and is told of; with the second, to that one."""
    root = project(tmp_path)
    old, new = write_runs(root, ["passed"] * 3, ["failed", "passed", "passed"])
    engine = FakeEngine(root)
    async with running_app(root, (120, 40), engine=engine) as (app, pilot):
        app.front_run.follow(old if front == "before" else new)
        await until(lambda: app.state.group is not None, pilot)
        await to_runs(app, pilot)
        await pilot.press("space", "space", "c")
        await compared(app, pilot)
        if inside:
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        place = app.screen
        await pilot.press(key)
        await until(lambda: engine.live is not None and app.state.active, pilot)
        assert engine.requests[-1].linked_to == (new.name if front == "after" else None)
        if key == "b" or front == "after":
            return
        assert app.state.run.info.id == old.name and app.screen is place
        live = engine.live
        live.start(0)
        live.done(0, "passed", said="quite another answer")
        live.finish()
        await until(lambda: not app.state.active, pilot)
        if inside:
            await until(lambda: standing(app) == [new.name, live.info.id], pilot)
            await pilot.press("escape")
        await sees(app, pilot, "1 case regressed", "since passed")
        await until(lambda: not app.state.aside.runs, pilot)  # put away: it is told of all the same
        app.screen.redraw()
        await sees(app, pilot, "1 case regressed", "since passed")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        assert standing(app)[1] == live.info.id


def test_only_attempts_of_new_runs_take_the_right_side():
    row: Any = SimpleNamespace(id=1)
    other: Any = SimpleNamespace(id=2)
    choices = [
        CompareChoice(run, row, agent, None)
        for run, agent in [("a", "x"), ("b", "x"), ("c", "x"), ("c", "y")]
    ]
    sides = Sides("s::a", choices, 0, 1)
    assert newest_right(sides, {"a", "b", "c"}) is None
    found = newest_right(sides, {"a", "b"})
    assert found is not None and (found.left, found.right) == (1, 2)
    assert found.choices[found.right].agent == "x"
    # another attempt of the same new run: what was looked at stays at the left
    more = Sides("s::a", [*choices, CompareChoice("c", other, "x", None)], 1, 2)
    found = newest_right(more, {"a", "b"})
    assert found is not None and (found.left, found.right) == (1, 4)
