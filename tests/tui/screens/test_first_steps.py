"""The first minutes and small manners: an empty folder, a missing agent, filters by name, memory."""

from __future__ import annotations

import os

import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import SUITE, FakeEngine, LiveRun, project
from tui_eval.config.entry_line import EntryError, entry_for
from tui_eval.tui.screens.agent_question import AgentQuestion, FirstAgent
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.state.lists import filtering

CONFIG = """\
# who is asked
agents:
    # the old one
    offline: {type: echo}   # stays

run: {concurrency: 2}
"""


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("echo", {"type": "echo"}),
        ("openai:gpt-4.1", {"type": "openai", "model": "gpt-4.1"}),
        ("anthropic:claude-x:1", {"type": "anthropic", "model": "claude-x:1"}),
        ("http://localhost:8000/chat", {"type": "http", "url": "http://localhost:8000/chat"}),
        ("https://host/v1", {"type": "openai", "base_url": "https://host/v1"}),
        ("https://host/v1 tiny:1b", {"type": "openai", "base_url": "https://host/v1", "model": "tiny:1b"}),
        ("agents/mine.py:answer", {"type": "python", "function": "agents/mine.py:answer"}),
    ],
)
def test_what_is_typed_becomes_an_entry(text, entry):
    assert entry_for(text) == entry
    assert "openai:gpt" not in str(entry.get("url", ""))


@pytest.mark.parametrize("text", ["", "gpt", "openai:", "x.py:", "http:/x"])
def test_what_is_no_agent_is_said(text):
    with pytest.raises(EntryError):
        entry_for(text)


async def test_the_missing_agent_is_asked_for_once_and_written(tmp_path):
    root = project(tmp_path, {"suites/support.yaml": SUITE.replace("offline", "helper")})
    (root / "tui_eval.yaml").write_text(CONFIG)
    async with running_app(root) as (app, pilot):
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, AgentQuestion), pilot)
        assert "Which agent is helper?" in screen_text(app) and "3 cases ask" in screen_text(app)
        await pilot.press(*"nope", "enter")
        assert isinstance(app.screen, AgentQuestion) and "not an agent" in screen_text(app)
        await pilot.press("ctrl+u", *"echo", "enter")
        await until(lambda: app.services.engines.own.requests, pilot)
        text = (root / "tui_eval.yaml").read_text()
        assert "    helper: {type: echo}" in text and "# stays" in text and "# the old one" in text
        app.services.engines.own.live.finish()


async def test_leaving_the_question_runs_nothing_and_asks_no_more(tmp_path):
    root = project(tmp_path, {"suites/support.yaml": SUITE.replace("offline", "helper")})
    async with running_app(root) as (app, pilot):
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, AgentQuestion), pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert not app.services.engines.own.requests
        await pilot.press("a")
        await until(lambda: app.services.engines.own.requests, pilot)
        app.services.engines.own.live.finish()


async def test_an_empty_folder_says_what_it_looks_for_and_writes_a_first_suite(tmp_path):
    async with running_app(tmp_path) as (app, pilot):
        text = screen_text(app)
        assert all(name in text for name in ("StartToAgent", "nao", "promptfoo", "neuro-san", "enter writes"))
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("s")
        await until(lambda: isinstance(app.screen, FirstAgent), pilot)
        assert "no model, no key" in screen_text(app)
        await pilot.press("enter")
        await until(lambda: app.state.rows, pilot)
        assert "scripted" in (tmp_path / "tui_eval.yaml").read_text()


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24)], (60, 16)))
async def test_a_first_suite_takes_the_agent_that_is_typed(tmp_path, size):
    async with running_app(tmp_path, size) as (app, pilot):
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        assert "nothing" in screen_text(app)
        await pilot.press("n")
        await until(lambda: isinstance(app.screen, FirstAgent), pilot)
        await until(lambda: "is a nao server" in screen_text(app), pilot)
        assert "esc not now" in screen_text(app) and "FILE.py:function" in screen_text(app)
        await pilot.press(*"nonsense", "enter")
        await until(lambda: "not an agent" in screen_text(app), pilot)
        await pilot.press("ctrl+u", *"http://localhost:5005", "enter")
        await until(lambda: app.state.rows, pilot)
        assert '{type: nao, url: "http://localhost:5005"}' in (tmp_path / "tui_eval.yaml").read_text()


@pytest.mark.real
async def test_a_first_suite_beside_a_configuration_asks_its_agent(tmp_path):
    (tmp_path / "tui_eval.yaml").write_text("agents:\n  mine: {type: echo}\n")
    async with running_app(tmp_path) as (app, pilot):
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("p")
        await until(lambda: app.state.rows, pilot)
        assert app.state.rows[0].agent == "mine"
        assert (tmp_path / "tui_eval.yaml").read_text() == "agents:\n  mine: {type: echo}\n"


async def test_a_problem_in_the_configuration_stands_in_the_tree_and_opens(tmp_path, monkeypatch):
    root = project(tmp_path)
    (root / "tui_eval.yaml").write_text("agents:\n  offline: {type: ekko}\n")
    opened = []
    monkeypatch.setattr(
        "tui_eval.tui.terminal.editor.edit", lambda app, path, line=0, more=(): opened.append((path, line))
    )
    async with running_app(root) as (app, pilot):
        await until(lambda: "ekko" in screen_text(app), pilot)
        lines = app.screen.case_list.cases.lines
        at = next(index for index, line in enumerate(lines) if line.problem is not None)
        app.screen.case_list.move_to(at)
        await pilot.press("enter")
        await pilot.pause()
        assert opened and opened[0][0].name == "tui_eval.yaml" and opened[0][1] == 2


@pytest.mark.real
async def test_a_filter_has_a_name_and_comes_back(tmp_path):
    root = project(tmp_path)
    async with running_app(root) as (app, pilot):
        await pilot.press("f", *"calm=calms", "enter")
        await pilot.pause()
        assert len(app.screen.shown_entries()) == 1 and app.services.memory.filters == {"calm": "calms"}
        await pilot.press("F", "space", "j", "s", "Q")
    async with running_app(root) as (app, pilot):
        await until(lambda: app.screen.case_list.marks, pilot)
        assert app.screen.view.sort == "outcome"
        await pilot.press("escape", "f", *"@calm", "enter")
        await pilot.pause()
        assert len(app.screen.shown_entries()) == 1
        await pilot.press("f", "ctrl+u", *"@none", "enter")
        await pilot.pause()
        assert "no filter @none" in screen_text(app)


def test_numbers_compare_and_names_do_not_go_round():
    def subject(duration=None, cost=None, tokens=None):
        return filtering.Subject("", False, "", "", "", "", "", "", "", list, str, duration, cost, tokens)

    for expression, shown in (
        ("duration:>5s", True),
        ("duration:<500ms", False),
        ("duration:<=1m", True),
        ("cost:>$0.01 tokens:>=1000", True),
        ("-cost:0.5", True),
    ):
        assert filtering.parse(expression).matches(subject(7.5, 0.02, 1000)) is shown
        assert not filtering.parse("cost:>0").matches(subject())
    for bad in ("duration:soon", "cost:>x"):
        with pytest.raises(filtering.ListFilterError):
            filtering.parse(bad)
    with pytest.raises(filtering.ListFilterError):
        filtering.expand("@a", {"a": "@b", "b": "@a"})
    saved = {"slow": "duration:>5s", "two": "failed duration:>5s", "other": "-@slow", "name": '-name:"a b"'}
    assert filtering.expand("failed @slow", saved) == "failed duration:>5s"
    assert filtering.expand("failed -@slow", saved) == "failed -duration:>5s", "it let everything through"
    assert (
        filtering.expand("-@other", saved) == "duration:>5s"
        and filtering.expand("-@name", saved) == 'name:"a b"'
    )
    assert filtering.expand("\"mail @bob\" '@slow' a@slow", saved) == "\"mail @bob\" '@slow' a@slow"
    assert filtering.expand('"a"@slow @slow', saved) == '"a"@slow duration:>5s', "a quote ends no word"
    with pytest.raises(filtering.ListFilterError, match="-@two: @two is several terms"):
        filtering.expand("-@two", saved)
    with pytest.raises(filtering.ListFilterError, match="no filter @none; there are: @slow"):
        filtering.expand("-@none", saved)
    for wrong in (
        "tokens:>1m",
        "tokens:>5s",
        "cost:>1h",
        "tokens:>$5",
        "duration:>$5",
    ):  # the unit was left out
        with pytest.raises(filtering.ListFilterError, match="wants a number"):
            filtering.parse(wrong)
    for right in ("tokens:>=500", "cost:<$0.5", "cost:0.5", "duration:>1.5m", "-duration:=3ms"):
        filtering.parse(right)


async def test_what_was_said_can_be_read_again(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("i", "l")
        await until(lambda: "failures first" in screen_text(app), pilot)
        assert "Log" in screen_text(app)


@pytest.mark.real
async def test_the_notify_command_runs_when_nobody_looks(tmp_path, monkeypatch):
    root = project(tmp_path)
    config = tmp_path / "config" / "tui-eval"
    config.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    said = tmp_path / "said"
    (config / "settings.yaml").write_text(f"notify: printf '%s' \"$TUI_EVAL_SUMMARY\" > {said}\n")
    run = LiveRun(root, ["a"])
    async with running_app(root, open_run=run.folder, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: app.state.run is not None, pilot)
        app.app_focus = False
        run.all_done(["failed"])
        await until(lambda: said.exists() and said.read_text(), pilot)
        assert said.read_text() == "finished: 1 failed"
    assert os.path.exists(said)


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(60, 16), (40, 10)], (40, 10)))
async def test_a_small_terminal_keeps_names_and_outcomes(tmp_path, size):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name"]).all_done(["failed", "passed"])
    async with running_app(root, size) as (app, pilot):
        await until(lambda: "✗ refund is a" in screen_text(app), pilot)
        for keys in ("A", "escape", "question_mark", "escape", "enter", "escape", "ctrl+p", "escape", "l"):
            await pilot.press(keys)
            await pilot.pause()
        assert all(len(line) <= size[0] for line in screen_text(app).splitlines())


async def test_a_folder_that_cannot_be_written_says_where_its_runs_are_kept(tmp_path, monkeypatch):
    root = project(tmp_path, {"suites/one.yaml": SUITE.partition("  - name: greets")[0]})
    kept = tmp_path / "state" / "projects" / "x"
    monkeypatch.setattr("tui_eval.tui.app.state_dir", lambda root: kept)
    async with running_app(root, (120, 40)) as (app, pilot):
        await until(lambda: app.notices.lines, pilot)
        assert f"cannot be written: its runs are kept in {kept}" in app.notices.lines[0][2]
        assert screen_text(app).splitlines()[0].endswith("1 suite · 1 case")


async def test_what_passed_before_a_run_that_cannot_be_read_is_said_to_be_of_before(tmp_path):
    root = project(tmp_path)
    names = ["refund is approved", "greets by name"]
    for _ in range(2):
        run = LiveRun(root, names)
        run.all_done(["passed", "passed"])
    os.truncate(run.folder / "run.db", 5000)
    async with running_app(root, (120, 40)) as (app, pilot):
        said = f"not known is that of a run that cannot be read: {run.folder.name} (H says why)"
        await until(lambda: any(said in line[2] for line in app.notices.lines), pilot)
