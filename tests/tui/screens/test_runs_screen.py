"""Runs, Search, Compare and the grid in the app."""

from __future__ import annotations

import os
import threading
import time

import msgspec
import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.attempts import HOSTILE
from tests.support.live_run import FakeEngine, LiveRun, project
from tests.support.settling import rested
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import RunStarted
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.model import Attempt, Case, Outcome, Turn
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.loaders import runs_loader
from tui_eval.tui.loaders.runs_loader import find_everywhere, load_runs
from tui_eval.tui.screens import run_deletion
from tui_eval.tui.screens import runs_screen as runs_screen
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.compare_screen import CompareScreen
from tui_eval.tui.screens.grid import GridScreen
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.search_screen import SearchScreen
from tui_eval.tui.screens.sides import SidesScreen
from tui_eval.tui.state.lists.entries import suite_entries
from tui_eval.tui.state.runs.runs_view import RunFacts

NAMES = ["refund is approved", "greets by name", "calms an angry customer"]
BAD = {chr(code) for code in CONTROL_TABLE} - {"\n"}
SIZES = pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))


def write_runs(root, *outcomes, names=NAMES):
    """Runs, each a second later by its id; oldest first."""
    found = []
    for number, of_run in enumerate(outcomes):
        run = LiveRun(root, names)
        run.all_done(of_run)
        folder = run.folder.with_name(f"20260101-00000{number}-{run.folder.name[-4:]}")
        run.folder.rename(folder)
        import sqlite3

        with sqlite3.connect(folder / "run.db") as connection:
            connection.execute(
                "UPDATE meta SET value = replace(value, ?, ?) WHERE key = 'info'", (run.info.id, folder.name)
            )
        found.append(folder)
    return found


async def to_runs(app, pilot) -> RunsScreen:
    await pilot.press("H")
    await until(lambda: isinstance(app.screen, RunsScreen) and app.screen.table.rows, pilot)
    await pilot.pause()
    return app.screen


async def sees(app, pilot, *texts: str) -> None:
    try:
        await until(lambda: all(text in screen_text(app) for text in texts), pilot)
    except AssertionError:
        raise AssertionError(f"not on the screen: {texts}\n{screen_text(app)}") from None


@pytest.mark.real
@SIZES
async def test_runs_show_figures_and_open_an_example_of_a_failure(tmp_path, size):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"], ["failed", "failed", "passed"])
    async with running_app(root, size) as (app, pilot):
        screen = await to_runs(app, pilot)
        await sees(app, pilot, "Runs  2", "33%", "$0.0300")
        await pilot.press("tab")
        await sees(app, pilot, "1 of 3 attempts passed", "how they failed", "over the runs")
        row = next(i for i, row in enumerate(screen.detail.rows) if row.example is not None)
        screen.detail.move_to(row)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
        assert app.screen.content.attempt.outcome == "failed"
        await pilot.press("escape", "escape", "v")
        await sees(app, pilot, "pass rate")
        await pilot.press("escape", "escape")
        assert not isinstance(app.screen, RunsScreen)


@pytest.mark.parametrize(
    ("agent", "said"), [("theirs", "sums · {{q}} theirs"), ("openai:titan", "sums · titan {{q}}\n")]
)
async def test_the_example_of_a_failure_is_called_by_who_was_asked(tmp_path, agent, said):
    """With `--agent`, or `providers:` in tui_eval.yaml, it had the name of the suite's provider, which was
    not asked."""
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}', 'Please: {{q}}']\nproviders: [openai:atlas, openai:titan]\n"
        "tests: [{description: sums, vars: {q: a}}]\n"
    )
    async with running_app(tmp_path, (120, 40)) as (app, pilot):
        case = next(item.case for item in app.state.by_id.values() if "titan" in item.case.column_name)
        folder = Store(tmp_path).create_folder("20260101-0000001")
        writer = RunWriter(folder, RunInfo(folder.name, started_at=1_760_000_000.0, agents=["mine", agent]))
        (refs,) = writer.plan([PlannedCase(case, agent, None, 1, 1)])
        writer.done(refs[0], Attempt(case.case_id, 1, "failed", agent=agent))
        writer.state("finished", 1_760_000_060.0)
        writer.close()
        await to_runs(app, pilot)
        await sees(app, pilot, said)
        assert ("titan" in screen_text(app)) == ("titan" in said)


async def test_the_example_of_a_case_that_is_in_no_suite_here_is_called_as_in_lists(tmp_path):
    """A test without a name was `vars-1f2e3d4c::openai:atlas::prompt1`, of a run whose suites are not here."""
    case = Case(
        "gone.yaml::vars-1f2e3d4c::openai:atlas::prompt1",
        "Row #1",
        "gone.yaml",
        "promptfoo",
        vars={"q": "the colour"},
    )
    folder = Store(tmp_path).create_folder("20260101-0000001")
    writer = RunWriter(folder, RunInfo(folder.name, started_at=1_760_000_000.0, agents=["atlas"]))
    (refs,) = writer.plan([PlannedCase(case, "atlas", None, 1, 1)])
    writer.done(refs[0], Attempt(case.case_id, 1, "failed", agent="atlas"))
    writer.state("finished", 1_760_000_060.0)
    writer.close()
    async with running_app(tmp_path, (120, 40)) as (app, pilot):
        await to_runs(app, pilot)
        await sees(app, pilot, "the colour")
        assert "vars-1f2e3d4c" not in screen_text(app)


async def test_enter_opens_the_run_and_escape_comes_back(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"])
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
        await pilot.press("escape")
        assert isinstance(app.screen, RunsScreen)


@pytest.mark.real
async def test_search_opens_the_case_at_the_turn(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"])
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("slash")
        await sees(app, pilot, "what was said and called; names and reasons: / in the run")
        await pilot.press(*"hel", "enter")
        await until(lambda: isinstance(app.screen, SearchScreen), pilot)
        await sees(app, pilot, "3 places in 3 cases", "turn 1, user")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
        await until(lambda: app.screen.tab.text and app.screen.tab.text.places[1], pilot)
        assert app.screen.tab.text.block.turn == 1
        await pilot.press("escape", "escape", "slash", *"zzz", "enter")
        await sees(app, pilot, "No transcript of it holds")


@pytest.mark.real
async def test_search_in_all_runs_and_back_in_one(tmp_path, monkeypatch):
    root = project(tmp_path)
    folders = write_runs(root, ["failed", "passed", "error"], ["passed", "passed", "failed"])
    broken = folders[0].parent / "20200101-000000-dead"
    broken.mkdir()
    (broken / "run.db").write_bytes(b"no database at all")
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("slash", *"hel", "enter")
        await sees(app, pilot, "3 places in 3 cases", "a all runs")
        await pilot.press("a")
        await sees(app, pilot, "Search in all runs: hel", "6 places in 2 of 3 runs, 1 cannot be read")
        await sees(app, pilot, "a this run")
        rows = app.screen.table.rows
        assert [row[0].run_id for row in rows[::6]] == [
            folder.name for folder in sorted(folders, reverse=True)
        ]
        assert app.screen.current().run_id == rows[0][0].run_id
        await pilot.press("G", "enter")
        await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
        assert app.screen.content.run_id == min(folder.name for folder in folders)
        await until(lambda: app.screen.finder.sought == "hel", pilot)
        await pilot.press("n")
        await sees(app, pilot, "of ")
        await pilot.press("escape", "a")
        await sees(app, pilot, "3 places in 3 cases")
        await pilot.press("slash", "ctrl+u", *"zzz", "enter")
        await sees(app, pilot, "a looks in all runs")
        await pilot.press("a")
        await sees(app, pilot, "No transcript of 3 runs, 1 cannot be read holds")


def test_a_search_through_all_runs_can_be_ended(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["passed"] * 3)
    told = []

    def progress(run, runs, done, total):
        told.append((run, runs))
        return run < 1

    found = find_everywhere(root, "hello", progress)
    assert found.runs == 1 and len(found.found) == 3
    assert told[0] == (0, 2) and told[-1] == (1, 2)


@pytest.mark.real
async def test_deleting_asks_and_only_marked_runs_go(tmp_path):
    root = project(tmp_path)
    folders = write_runs(root, ["passed"] * 3, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        screen = await to_runs(app, pilot)
        await pilot.press("j", "space", "D")
        await sees(app, pilot, f"Delete run {folders[1].name}")
        await pilot.press("n")
        assert folders[1].exists()
        await pilot.press("D", "y")
        await until(lambda: not folders[1].exists() and len(screen.lines) == 2, pilot)
        await pilot.press("g", "O", "y")
        await until(lambda: not screen.lines, pilot)
        await sees(app, pilot, "No run yet")
        assert list(Store(root).run_folders()) == []


async def test_a_run_that_goes_on_stays_and_an_interrupted_one_is_taken_up(tmp_path):
    class Engine(FakeEngine):
        resumed = None

        async def resume_run(self, folder, overrides):
            self.resumed = folder
            assert overrides.agents == []  # nobody typed any here
            return RunStarted(folder.name, folder, 2, [])

    root = project(tmp_path)
    going_on = LiveRun(root, NAMES)
    async with running_app(root, engine=Engine(root)) as (app, pilot):
        screen = await to_runs(app, pilot)
        await sees(app, pilot, "1 going on", "running")
        await pilot.press("D", "u")
        await pilot.pause()
        assert (
            not app.services.engines.own.resumed
            and going_on.folder.exists()
            and isinstance(app.screen, RunsScreen)
        )
        going_on.writer.close()  # the engine is gone, the run has not ended
        screen.load()
        await until(lambda: screen.table.current.run.state == "interrupted", pilot)
        await pilot.press("u")
        await until(lambda: app.services.engines.own.resumed == going_on.folder, pilot)
        await until(lambda: isinstance(app.screen, RunScreen), pilot)


async def test_the_run_under_the_cursor_is_the_one_to_cancel(tmp_path):
    """Of two that went on it was the other one, and the question named an id that the list does not show."""
    root = project(tmp_path)
    older, newer = LiveRun(root, NAMES[:1]), LiveRun(root, NAMES[1:])
    engine = FakeEngine(root)
    async with running_app(root, (120, 40), engine=engine) as (app, pilot):
        for run in (older, newer):
            run.start(0)
            app.front_run.follow(run.folder)
            await until(lambda run=run: (known := app.state.find_run(run.info.id)) and known.attempts, pilot)
        screen = await to_runs(app, pilot)
        await until(lambda: len(screen.table.rows) == 2, pilot)
        await pilot.press("end")
        await until(lambda: screen.chosen.run.id == older.info.id, pilot)
        app.services.engines.out_of_reach.clear()  # the app's engine executes them
        await pilot.press("X")
        await until(lambda: "Cancel the run?" in screen_text(app), pilot)
        assert f"({NAMES[0]})" in screen_text(app)
        await pilot.press("y")
        await until(lambda: engine.cancelled == [(older.info.id, None)], pilot)
        older.all_done(["passed"])
        screen.load()
        await until(lambda: not screen.chosen.active, pilot)
        await pilot.press("P")
        await until(lambda: engine.paused == [True], pilot)  # the one that goes on
        elsewhere = LiveRun(root, NAMES[2:])  # nobody here follows it
        screen.load()
        await until(lambda: len(screen.table.rows) == 3, pilot)
        await pilot.press("home")
        await until(lambda: screen.chosen.run.id == elsewhere.info.id, pilot)
        await pilot.press("X")
        await until(lambda: "enter attaches to it" in screen_text(app), pilot)
        assert "Cancel the run?" not in screen_text(app) and len(engine.cancelled) == 1


async def test_what_goes_on_in_the_session_that_typed_its_agents_has_them_still(tmp_path):
    class Engine(FakeEngine):
        agents = None

        async def resume_run(self, folder, overrides):
            self.agents = overrides.agents
            return RunStarted(folder.name, folder, 2, [])

    root = project(tmp_path)
    async with running_app(root, engine=Engine(root)) as (app, pilot):
        app.runs.send(RunRequest(agents=["bot.py:answer"], case_ids=["suites/support.yaml::one"]), show=False)
        await until(lambda: app.services.engines.own.live is not None and app.state.run is not None, pilot)
        app.services.engines.own.live.writer.close()  # its engine is killed
        screen = await to_runs(app, pilot)
        screen.load()
        await sees(app, pilot, "interrupted")
        await pilot.press("u")
        await until(lambda: app.services.engines.own.agents is not None, pilot)
        assert app.services.engines.own.agents == ["bot.py:answer"]


KEYED = "  keyed: {type: openai, base_url: 'http://127.0.0.1:9/v1', model: m, api_key: '${LAB_KEY}'}\n"


async def test_what_the_agents_of_a_run_want_is_asked_before_it_goes_on(tmp_path, monkeypatch):
    """It went on, its attempts ended as errors that need trust, and the question came after them."""
    monkeypatch.setenv("LAB_KEY", "k")
    root = project(tmp_path)
    file = root / "tui_eval.yaml"
    file.write_text(file.read_text() + KEYED)
    run = LiveRun(root, NAMES, agent="keyed")
    run.start(0)
    run.writer.close()
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        await to_runs(app, pilot)
        await sees(app, pilot, "interrupted")
        await pilot.press("u")
        await sees(app, pilot, "LAB_KEY", "Do you trust")
        assert not app.services.engines.own.resumed
        await pilot.press("o")
        await until(lambda: app.services.engines.own.resumed, pilot)
        ((folder, request),) = app.services.engines.own.resumed
        assert folder == run.folder and ["LAB_KEY" in what for what in request.agreed] == [True]


async def test_what_an_agent_wants_is_asked_before_a_case_is_stepped_through(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_KEY", "k")
    root = project(tmp_path)
    file = root / "tui_eval.yaml"
    file.write_text(file.read_text() + KEYED)
    LiveRun(root, NAMES, options={"agents": ["keyed"]}, agent="keyed").all_done(["failed"] * 3)
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.shown_entries(), pilot)
        await pilot.press("G", "b")
        await sees(app, pilot, "LAB_KEY", "Do you trust")
        assert not app.services.engines.own.requests
        await pilot.press("o")
        await until(lambda: app.services.engines.own.requests, pilot)
        (request,) = app.services.engines.own.requests
        assert request.step and ["LAB_KEY" in what for what in request.agreed] == [True]


@SIZES
async def test_two_marked_runs_are_compared_and_transcripts_stand_side_by_side(tmp_path, size):
    root = project(tmp_path)
    first, _, last = write_runs(
        root, ["passed", "passed", "error"], ["passed"] * 3, ["failed", "passed", "passed"]
    )
    async with running_app(root, size) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("space", "G", "space", "c")
        await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
        assert (app.screen.before.folder, app.screen.after.folder) == (first, last)
        await sees(app, pilot, "1 regressed", "1 fixed", "may well be chance", "✓ → ✗")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        await sees(app, pilot, "1 of 3 entries differ", "case 0 went wrong")
        await pilot.press("tab")
        await sees(app, pilot, "compared with")
        await pilot.press("i", "escape", "s")
        await until(lambda: app.screen.before.folder == last, pilot)


async def test_c_compares_a_case_with_its_last_passing_attempt(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        await pilot.press("G", "c")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        sides = app.screen.sides
        assert (sides.choices[sides.left].row.outcome, sides.right) == ("passed", 2)
        await pilot.press("greater_than_sign")
        await until(lambda: app.screen.sides.left == 1, pilot)
        assert app.screen.current().run_id == sides.choices[2].run_id


async def test_one_run_alone_has_nothing_to_compare(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3)
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("c")
        await until(lambda: any("mark two runs" in text for _, _, text in app.notices.lines), pilot)
        assert isinstance(app.screen, RunsScreen)


@pytest.mark.parametrize("kind", ["same cases", "a matrix", "cases of their own"])
async def test_c_is_named_where_two_agents_of_a_run_answered_the_same_cases(tmp_path, kind):
    """Providers of a promptfoo configuration answer the same tests."""
    one = "agent: %s\ntest_cases:\n- {name: one, input: hi, expected: {should_contain: [hi]}}\n"
    matrix = "prompts: ['{{x}}']\nproviders: [echo, {id: echo, label: other}]\ntests: [{vars: {x: a}}]\n"
    files = {
        "same cases": {"suite.yaml": one % "echo"},
        "a matrix": {"promptfooconfig.yaml": matrix},
        "cases of their own": {"suite.yaml": one % "echo", "other.yaml": one % "other"},
    }
    root, shared = project(tmp_path, files[kind]), kind != "cases of their own"
    agents = "agents:\n  echo: {type: echo}\n  other: {type: echo}\n"
    (root / "tui_eval.yaml").write_text(agents)
    active = prepare(RunRequest(paths=[str(root)], agents=["echo", "other"] if kind == "same cases" else []))
    await active.execute()
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await until(lambda: app.screen.facts, pilot)
        await until(lambda: any(key.id == "compare" for key in app.screen.hints()) == shared, pilot)
        assert len(app.screen.lines) == 1 and ", " in app.screen.lines[0].run.agents


async def test_an_agent_that_was_named_has_one_column_also_of_tests_that_have_it_of_their_own(tmp_path):
    """They stood in the column, and under the name, of the provider that it replaced."""
    config = (
        "prompts: ['{{x}}']\nproviders: [{id: echo, label: left}, {id: echo, label: right}]\ntests:\n"
        "  - {description: plain, vars: {x: a}}\n  - {description: own, provider: echo, vars: {x: b}}\n"
    )
    root = project(tmp_path, {"promptfooconfig.yaml": config})
    active = prepare(RunRequest(paths=[str(root)], agents=["echo"]))
    await active.execute()
    async with running_app(root, (120, 40), open_run=active.writer.folder) as (app, pilot):
        await until(
            lambda: app.state.run is not None and all(item.history for item in app.state.rows[::2]), pilot
        )
        await pilot.press("L", "M")
        await until(lambda: isinstance(app.screen, GridScreen) and len(app.screen.grid.tests) == 2, pilot)
        assert [column[0] for column in app.screen.grid.columns] == ["echo"]
        rows = suite_entries(app.state)
        assert [(row.name, row.variant) for row in rows if row.agent == "echo" and row.named] == [
            ("plain", ""), ("own", ""),
        ]  # fmt: skip


async def test_the_grid_of_a_run_whose_suite_is_not_here_has_its_tests_across(tmp_path):
    """Of promptfoo's results files, say, and of tests that a hook adds: each cell was a test of its own."""
    config = (
        "prompts: ['short {{x}}', 'long {{x}}']\nproviders: [echo, {id: echo, label: loud}]\ntests:\n"
        "  - {description: one, vars: {x: [a, b]}}\n  - {description: two, vars: {x: c}}\n"
    )
    root = project(tmp_path, {"promptfooconfig.yaml": config})
    active = prepare(RunRequest(paths=[str(root)]))
    await active.execute()
    (root / "promptfooconfig.yaml").unlink()
    async with running_app(root, (120, 40), open_run=active.writer.folder) as (app, pilot):
        await until(lambda: app.state.run is not None and len(app.state.run.cases) == 12, pilot)
        await pilot.press("L", "M")
        await until(lambda: isinstance(app.screen, GridScreen) and app.screen.grid.tests, pilot)
        assert [test.called for test in app.screen.grid.tests] == ["one · a", "one · b", "two"]
        assert [column[::2] for column in app.screen.grid.columns] == [
            (agent, prompt) for agent in ("echo", "loud") for prompt in ("short {{x}}", "long {{x}}")
        ]
        assert all(len(test.cells) == 4 for test in app.screen.grid.tests)
        await pilot.press("enter")
        await sees(app, pilot, "short a")


async def test_a_grid_without_cases_says_what_to_press(tmp_path):
    """Below it stood that a test has no case in this column, though there is none."""
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("L", "M")
        await until(lambda: isinstance(app.screen, GridScreen), pilot)
        await sees(app, pilot, "No case is shown: M goes back to the list, U to the suites.")
        await pilot.press("enter")
        assert "no case in this column" not in screen_text(app)
        assert "no case in this column" not in " ".join(text for _, _, text in app.notices.lines)


@SIZES
async def test_the_grid_shows_prompts_across(tmp_path, size):
    config = (
        "prompts: ['short {{x}}', 'long {{x}}']\nproviders: [echo]\ntests:\n"
        "  - {description: one, vars: {x: a}}\n  - {description: two, vars: {x: b}}\n"
    )
    root = project(tmp_path, {"promptfooconfig.yaml": config})
    async with running_app(root, size) as (app, pilot):
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen), pilot)
        await sees(app, pilot, "2 tests × 2", "short {{x}}", "long {{x}}", "not run")
        before = app.screen.current()
        await pilot.press("tab", "j")
        assert app.screen.current() != before
        await pilot.press("M")
        assert not isinstance(app.screen, GridScreen)


@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24)], (60, 16)))
async def test_a_wide_grid_with_many_scores_keeps_its_tests_and_says_which_columns_are_in_sight(
    tmp_path, size, monkeypatch
):
    """Six lines of scores left five of 41 tests at 80x24, and one of nine columns was not said to be missing."""
    prompts = ", ".join(f"'p{n} {{{{x}}}}'" for n in range(9))
    config = f"prompts: [{prompts}]\nproviders: [echo]\ntests:\n" + "".join(
        f"  - {{description: test {n}, vars: {{x: a{n}}}}}\n" for n in range(12)
    )
    root = project(tmp_path, {"promptfooconfig.yaml": config})
    scores = {f"some measure {n}": n for n in range(4)}
    metrics = [{"agent": "echo", "prompt": f"p{n} {{{{x}}}}", "named_scores": scores} for n in range(9)]
    monkeypatch.setattr("tui_eval.tui.screens.grid.metrics_of", lambda runs: (metrics, ""))
    async with running_app(root, size) as (app, pilot):
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen) and app.screen.grid.tests, pilot)
        await sees(app, pilot, "12 tests × 9", " of 9", "some measure 0", "more")
        tests = app.screen.table.size.height
        assert tests >= 7, tests
        await pilot.press("V")
        await sees(app, pilot, "Scores of echo · p0", "some measure 3 3")
        await pilot.press("V", "V")
        await pilot.press(*["right"] * 8)
        await sees(app, pilot, "-9 of 9", "p8")
        assert app.screen.column == 8
        await pilot.resize_terminal(150, 40)
        await sees(app, pilot, "12 tests × 9", "p0", "p8", "some measure 3")
        await until(lambda: " of 9" not in screen_text(app), pilot, 5)


@pytest.mark.real
async def test_nothing_is_sent_while_nothing_happens(tmp_path, monkeypatch):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root, (120, 40)) as (app, pilot):
        await to_runs(app, pilot)
        await sees(app, pilot, "how they failed")
        await rested(pilot)
        painted: list[object] = []
        monkeypatch.setattr(type(app), "_display", lambda self, screen, update: painted.append(update))
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            await pilot.pause(0.05)
        assert not painted


@pytest.mark.real
@SIZES
async def test_hostile_names_are_pictures_on_every_screen(tmp_path, size):
    root = project(tmp_path)
    name = HOSTILE.encode("utf-8", "replace").decode()
    write_runs(root, ["passed"], ["failed"], names=[name])
    async with running_app(root, size) as (app, pilot):
        await to_runs(app, pilot)

        def clean() -> None:
            assert not BAD & set(screen_text(app))

        for keys in (["tab"], ["tab", "v"], ["v", "c"], ["enter"], ["tab"], ["escape", "escape"]):
            await pilot.press(*keys)
            await rested(pilot)
            clean()
        await pilot.press("slash", *"hello", "enter")
        await rested(pilot)
        clean()


@pytest.mark.real
@SIZES
async def test_search_again_from_the_results_a_result_is_one_step(tmp_path, size):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"])
    async with running_app(root, size) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("slash", *"zzz", "enter")
        await sees(
            app, pilot, "No transcript of it holds all these words; a looks in all runs, / asks again."
        )
        await pilot.press("slash", *["backspace"] * 3, *"hello", "enter")
        await sees(app, pilot, "Search: hello", "3 places in 3 cases")
        first = app.screen.current()
        await pilot.press("j")
        assert app.screen.current() != first and app.screen.table.cursor == 2
        await pilot.press("G", "k", "k")
        assert app.screen.current() == first and app.screen.table.cursor == 0
        await pilot.press("slash", "escape")
        assert isinstance(app.screen, SearchScreen)


@pytest.mark.real
async def test_a_long_search_says_how_far_it_is_and_ends_when_it_is_left(tmp_path, monkeypatch):
    from tui_eval.tui.screens import search_screen as place

    asked: list[bool] = []
    go_on, over = threading.Event(), threading.Event()

    def slowly(folder, words, progress):
        asked.append(progress(1_000, 20_000))
        go_on.wait(20)
        asked.append(progress(2_000, 20_000))
        over.set()
        return [], 0

    monkeypatch.setattr(place, "find", slowly)
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3)
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        app.push_screen(SearchScreen(root, "hello"))
        await sees(app, pilot, "Reading the transcripts: 1,000 of 20,000 attempts.")
        app.pop_screen()
        await until(lambda: isinstance(app.screen, RunsScreen), pilot)
        await pilot.pause()
        go_on.set()
        await until(over.is_set, pilot)
        assert asked == [True, False]


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24), (120, 40)], (60, 16)))
async def test_plots_of_all_runs_and_of_one_figure(tmp_path, size):
    root = project(tmp_path)
    name = HOSTILE.encode("utf-8", "replace").decode()
    write_runs(root, ["passed"], ["failed"], ["passed"], names=[name])
    async with running_app(root, size) as (app, pilot):
        screen = await to_runs(app, pilot)
        await pilot.press("greater_than_sign")
        await until(lambda: any("v shows the plots" in text for _, _, text in app.notices.lines), pilot)
        await pilot.press("v")
        await sees(app, pilot, "over the runs", "3 runs, oldest at the left", "pass rate", "cost", "v list")
        assert ("┤" in screen_text(app)) == (size == (120, 40))
        for figure in ("pass rate", "latency", "tokens", "cost", "all tokens", "all cost", "time taken"):
            await pilot.press("greater_than_sign")
            await sees(app, pilot, f" {figure}  ", "3 runs, oldest")
            assert "┤" in screen_text(app) and not BAD & set(screen_text(app))
        await pilot.press("greater_than_sign", "less_than_sign")
        await sees(app, pilot, " time taken  ", "3 runs, oldest")
        await pilot.press("escape")
        await until(lambda: screen.table.has_focus and "what" in screen_text(app), pilot)


@pytest.mark.real
async def test_what_is_read_after_the_screen_has_gone_is_for_nobody(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        screen = await to_runs(app, pilot)
        lines = screen.lines
        await pilot.press("c")
        await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
        other = app.screen
        await pilot.press("escape", "escape")
        await until(lambda: not screen.is_attached and not other.is_attached, pilot)
        screen.show_runs(lines)
        other.redraw()
        assert not screen.has(".titles")


@pytest.mark.real
@SIZES
async def test_runs_are_filtered_by_their_words(tmp_path, size):
    root = project(tmp_path)
    folders = write_runs(root, ["passed"] * 3, ["failed"] * 3, ["passed"] * 3)
    async with running_app(root, size) as (app, pilot):
        screen = await to_runs(app, pilot)
        await pilot.press("f", *"offline 000001", "enter")
        await until(lambda: [one.run.id for one in screen.table.rows] == [folders[1].name], pilot)
        await sees(app, pilot, "filter: offline 000001 (1)")
        await pilot.press("f", *"zzz", "enter")
        await sees(app, pilot, "No run holds these words: F clears the filter")
        await pilot.press("F")
        await until(lambda: len(screen.table.rows) == 3, pilot)
        await pilot.press("f", *"000002")
        await until(lambda: len(screen.table.rows) == 1, pilot)
        await pilot.press("escape")
        await until(lambda: len(screen.table.rows) == 3 and not screen.filter, pilot)
        await pilot.press("f", *"000002", "enter", "escape")
        await until(lambda: not screen.filter, pilot)
        assert app.screen is screen


async def test_the_grid_leaves_only_tests_whose_columns_differ(tmp_path):
    config = (
        "prompts: ['short {{x}}', 'long {{x}}']\nproviders: [echo]\ntests:\n"
        "  - {description: alike, vars: {x: a}}\n  - {description: unlike, vars: {x: b}}\n"
    )
    root = project(tmp_path, {"promptfooconfig.yaml": config})
    async with running_app(root) as (app, pilot):
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen), pilot)
        grid = app.screen
        for test, outcomes in zip(grid.grid.tests, (("passed", "passed"), ("passed", "failed")), strict=True):
            for cell, outcome in zip(test.cells.values(), outcomes, strict=True):
                cell.status = outcome
        await pilot.press("i")
        await sees(app, pilot, "1 differ (i shows all)", "unlike")
        assert [test.name for test in grid.table.rows] == ["unlike"] and grid.current() is not None
        for test in grid.grid.tests:
            for cell in test.cells.values():
                cell.status = "passed"
        await pilot.press("i", "i")
        await sees(app, pilot, "No test came out differently: i shows all.")
        await pilot.press("i")
        await until(lambda: len(grid.table.rows) == 2, pilot)


@pytest.mark.real
async def test_the_grid_s_cursor_stays_on_its_cell(tmp_path):
    """`r` ran another column's case when a filter took columns away, or another test's of the same name."""
    config = (
        "prompts: ['short {{x}}', 'long {{x}}']\nproviders: [echo]\ntests:\n"
        "  - {description: same, vars: {x: a}}\n  - {description: same, vars: {x: b}}\n"
    )
    root = project(tmp_path, {"promptfooconfig.yaml": config})
    async with running_app(root, (120, 30)) as (app, pilot):
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen) and len(app.screen.grid.columns) == 2, pilot)
        grid = app.screen
        await pilot.press("tab", "j")
        here = grid.current()
        assert here is not None and grid.cell.case.vars == {"x": "b"}
        await pilot.press("F")  # the same cases anew, as while a run goes on
        assert grid.current() == here
        await pilot.press("f", *"long", "enter")
        await until(lambda: len(grid.grid.columns) == 1, pilot)
        assert grid.current() == here
        await pilot.press("F")
        await until(lambda: len(grid.grid.columns) == 2, pilot)
        assert grid.current() == here


async def test_a_window_that_changes_its_size_while_the_grid_closes(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen), pilot)
        grid = app.screen
        await pilot.press("escape")
        await until(lambda: not grid.is_running, pilot)
        grid.to_column(0)  # what its resize had asked for


@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24), (120, 40)], (60, 16)))
async def test_a_damaged_run_stands_in_the_list_and_can_be_deleted(tmp_path, size):
    root = project(tmp_path)
    folders = write_runs(root, ["passed"] * 3, ["failed"] * 3)
    broken = folders[0].with_name("20260101-000009-bad0")
    broken.mkdir()
    (broken / "run.db").write_bytes(b"garbage" * 500)
    async with running_app(root, size) as (app, pilot):
        screen = await to_runs(app, pilot)
        await sees(app, pilot, "Runs  2", "1 damaged", f"damaged {broken.name}")
        await pilot.press("enter")
        await until(lambda: any("file is not a database" in line[2] for line in app.notices.lines), pilot)
        assert app.screen is screen
        await pilot.press("D")
        await sees(app, pilot, f"Delete run {broken.name}")
        await pilot.press("y")
        await until(lambda: not broken.exists() and len(screen.lines) == 2, pilot)
        assert "1 damaged" not in screen_text(app) and broken.name not in screen_text(app)


@pytest.mark.real
async def test_a_reading_begun_before_a_deletion_does_not_bring_the_run_back(tmp_path, monkeypatch):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        screen = await to_runs(app, pilot)
        before, go_on, late = load_runs(root), threading.Event(), threading.Event()

        def slow(root):
            go_on.wait(20)
            late.set()
            return before

        monkeypatch.setattr(runs_screen, "load_runs", slow)
        screen.load()
        monkeypatch.undo()
        await pilot.press("D", "y")
        await until(lambda: len(screen.lines) == 1, pilot)
        go_on.set()
        await until(late.is_set, pilot)
        await until(lambda: not any(one.name == "tui-runs" for one in threading.enumerate()), pilot)
        await pilot.pause()
        assert len(screen.lines) == 1


@pytest.mark.real
async def test_figures_read_while_a_run_went_on_are_read_anew(tmp_path, monkeypatch):
    """They stayed as they were then, beside a line of the run as it had ended."""
    root = project(tmp_path)
    write_runs(root, ["failed"] * 3)
    async with running_app(root, (120, 40)) as (app, pilot):
        screen = await to_runs(app, pilot)
        run_id = screen.lines[0].run.id
        await until(lambda: run_id in screen.facts, pilot)
        go_on, read, whole = threading.Event(), [], runs_screen.load_facts

        def slow(folder):
            read.append(folder)
            if len(read) > 1:
                return whole(folder)
            assert go_on.wait(60)
            return RunFacts(problem="half of it")

        monkeypatch.setattr(runs_screen, "load_facts", slow)
        lines = screen.lines
        replace = msgspec.structs.replace
        screen.show_runs([replace(lines[0], run=replace(lines[0].run, state="running", passed=1))])
        await until(lambda: len(read) == 1, pilot)
        screen.show_runs(lines)
        go_on.set()
        await until(lambda: len(read) == 2 and run_id in screen.facts, pilot)
        assert not screen.facts[run_id].problem


@pytest.mark.real
async def test_of_more_runs_than_are_listed_it_says_that_these_are_the_newest(tmp_path, monkeypatch):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3, ["failed"] * 3)
    for module in (runs_screen, runs_loader, run_deletion):
        monkeypatch.setattr(module, "MOST_LISTED", 2)
    async with running_app(root, (120, 40)) as (app, pilot):
        await to_runs(app, pilot)
        await sees(app, pilot, "Runs  the newest 2")
        await pilot.press("O")
        await sees(app, pilot, "Delete these 2 runs", "older runs that are not listed stay")
        await pilot.press("n")


async def test_figures_that_cannot_be_read_are_said_to_be_so(tmp_path, monkeypatch):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3)

    def broken(folder):
        raise RuntimeError("no figures today")

    monkeypatch.setattr(runs_screen, "load_facts", broken)
    async with running_app(root, (120, 40)) as (app, pilot):
        await to_runs(app, pilot)
        await sees(app, pilot, "no figures today")
        await until(lambda: "Reading its figures" not in screen_text(app), pilot)
        assert any("no figures today" in line[2] for line in app.notices.lines)


def write_suite_run(root, run_id, suite, outcome: Outcome = "passed"):
    """A finished run of one case of another suite."""
    folder = Store(root).create_folder(run_id)
    writer = RunWriter(folder, RunInfo(run_id, started_at=1_760_000_000.0, paths=[suite], agents=["other"]))
    case = Case(f"{suite}::x", "x", suite, "nao", turns=[Turn("x")])
    ((ref,),) = writer.plan([PlannedCase(case, "other", None, 1, 1)])
    writer.done(ref, Attempt(case.case_id, 1, outcome, agent="other"))
    writer.state("finished", 1_760_000_060.0)
    writer.close()
    return folder


@pytest.mark.real
async def test_c_takes_the_run_before_it_of_the_same_cases(tmp_path):
    root = project(tmp_path)
    first, last = write_runs(root, ["passed"] * 3, ["failed", "passed", "passed"])
    write_suite_run(root, "20260101-0000005", "elsewhere.yaml")
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("c")
        await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
        assert (app.screen.before.folder, app.screen.after.folder) == (first, last)
        await pilot.press("less_than_sign")
        await until(
            lambda: any("no earlier run to compare with" in line[2] for line in app.notices.lines), pilot
        )


@pytest.mark.real
async def test_marks_are_gone_when_they_were_compared(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        screen = await to_runs(app, pilot)
        await pilot.press("space", "space", "c")
        await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
        await pilot.press("escape")
        await until(lambda: app.screen is screen, pilot)
        assert not screen.marks and "marked" not in screen_text(app)


@pytest.mark.real
@SIZES
async def test_plots_are_of_the_same_suites_until_s_asks_for_all(tmp_path, size):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    for number in range(3):
        write_suite_run(root, f"20260102-00000{number}", "elsewhere.yaml")
    async with running_app(root, size) as (app, pilot):
        await to_runs(app, pilot)
        await pilot.press("G", "v")
        await sees(app, pilot, "2 runs, oldest at the left, of the same suites (s: all)")
        await pilot.press("s")
        await sees(app, pilot, "5 runs, oldest at the left")
        await pilot.press("s")
        await sees(app, pilot, "2 runs, oldest at the left")


@pytest.mark.real
async def test_large_plots_begin_at_their_top_wherever_the_figures_were(tmp_path):
    root = project(tmp_path)
    write_runs(root, *[["failed", "passed", "error"]] * 3)
    async with running_app(root, (80, 16)) as (app, pilot):
        screen = await to_runs(app, pilot)
        await pilot.press("tab")
        await sees(app, pilot, "how they failed")
        await pilot.press("G")
        await until(lambda: screen.detail.scroll_offset.y > 0, pilot)
        await pilot.press("tab", "v")
        await sees(app, pilot, "3 runs, oldest at the left")
        assert screen.detail.scroll_offset.y == 0


@pytest.mark.real
async def test_a_run_that_is_damaged_since_it_was_listed_says_so_and_what_to_do(tmp_path):
    root = project(tmp_path)
    (folder,) = write_runs(root, ["failed", "passed", "error"])
    async with running_app(root) as (app, pilot):
        await to_runs(app, pilot)
        await sees(app, pilot, "33%")
        os.truncate(folder / "run.db", 20_000)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.case_list.empty, pilot)
        await sees(app, pilot, "This run cannot be read.")
        words = " ".join(screen_text(app).split())
        assert "damaged: database disk image is malformed" in words and "or delete it" in words
        assert "Starting." not in words and "starting" not in words
        await pilot.press("escape")
        await sees(app, pilot, "1 damaged")


@pytest.mark.real
@pytest.mark.parametrize("pane", ["tab", "v"])
async def test_a_prompt_that_is_left_gives_the_keys_to_what_is_in_sight(tmp_path, pane):
    root = project(tmp_path)
    LiveRun(root, ["greets by name"]).all_done(["failed"])
    async with running_app(root) as (app, pilot):
        await pilot.press("H")
        await until(lambda: app.screen.kind == "runs" and app.screen.table.rows, pilot)
        screen = app.screen
        await pilot.press(pane)
        await until(lambda: screen.detail.has_focus and not screen.table.is_on_screen, pilot)
        await pilot.press("f", "escape")
        await until(lambda: app.focused in (screen.table, screen.detail) and app.focused.is_on_screen, pilot)
        await pilot.press("j")
        assert app.focused is not None and app.focused.is_on_screen
