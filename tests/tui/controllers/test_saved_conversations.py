"""A conversation saved as a case in the app: in each format it is read, found under the cursor, run, and passes."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_host import running_app, screen_text, until
from tui_eval.config.project import load, rule_for
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.tui.screens.dialogs import ChangeScreen
from tui_eval.tui.screens.save_case import FormatRow, SaveDialog
from tui_eval.tui.screens.step_screen import StepScreen
from tui_eval.tui.state.app_state import CasePointer

SUITE = """\
# ours
agent: helper   # the one

test_cases:
  # the first
  - name: talks
    messages: ["what is the price?", "and for two?"]   # in order
    expected: {should_contain: ["159"], tools_used: [look_up], max_tool_calls: 3}
"""
WRONG = SUITE.replace('["159"]', '["nowhere", "never"]')
SCRIPT = r"""
rate: 50000
rules:
  - {match: '/^(?!what)[\s\S]*two/', say: "That makes **159** euros: {{message}}"}
  - match: price
    steps:
      - {call: look_up, arguments: {what: price}, result: 79}
      - {say: "It is 79.50 euros."}
"""
CONFIG = """\
# agents of ours
agents:
  helper: {type: scripted, script: agent.script.yaml}   # offline
run: {concurrency: 2}
"""
FORMATS: tuple[str, ...] = ("start_to_agent", "promptfoo", "neuro_san", "nao")


@asynccontextmanager
async def app_on(root: Path, suite: str = SUITE, script: str = SCRIPT):
    for name, text in (("suite.yaml", suite), ("agent.script.yaml", script), ("tui_eval.yaml", CONFIG)):
        (root / name).write_text(text)
    client = EngineClient(root)
    try:
        async with running_app(root, engine=client) as (app, pilot):
            app.places.suites.go_to(CasePointer("suite.yaml::talks"))
            await pilot.pause()
            yield app, pilot
    finally:
        with suppress(EngineError):
            await client.shutdown()
        await client.close()


async def ran(app: Any, pilot: Any, before: str = "") -> Any:
    await until(lambda: app.state.run and app.state.run.info.id != before and not app.state.run.active, pilot)
    return app.state.run


def under_cursor(app: Any) -> str | None:
    line = app.places.suites.case_list.current_line
    return line.key if line is not None else None


async def asked_where(app: Any, pilot: Any) -> None:
    """Run the case under the cursor, and press `C` on its answer."""
    await pilot.press("r")
    await ran(app, pilot)
    await pilot.press("C")
    await until(lambda: isinstance(app.screen, SaveDialog), pilot)


async def save_as(app: Any, pilot: Any, form: str, *typed: str) -> Path:
    """Press `C`, go to this format, type into the file's line, write; the file."""
    await pilot.press("C")
    await until(lambda: isinstance(app.screen, SaveDialog), pilot)
    dialog = app.screen
    await pilot.press("up")
    while dialog.form != form:
        await pilot.press("right")
    await pilot.press("down", *typed, "enter")
    await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
    name = re.search(r"\+\+\+ b/(\S+)", app.screen.diff)
    assert name is not None
    await pilot.press("enter")
    path = app.state.root / name[1]
    await until(path.exists, pilot)
    return path


def check(root: Path) -> str:
    """What `tui-eval check` says of the folder."""
    command = [sys.executable, "-m", "tui_eval", "check", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("stepped", "form"),
    [
        pytest.param(True, "start_to_agent", id="stepped-start_to_agent"),
        *(pytest.param(True, form, id=f"stepped-{form}", marks=pytest.mark.real) for form in FORMATS[1:]),
        # What is written does not depend on where the conversation came from: each format once.
        pytest.param(False, "start_to_agent", id="recorded-start_to_agent", marks=pytest.mark.real),
        *(pytest.param(False, form, id=f"recorded-{form}", marks=pytest.mark.real) for form in FORMATS[1:]),
    ],
)
async def test_it_is_read_found_run_and_passes(tmp_path: Path, form: str, stepped: bool) -> None:
    async with app_on(tmp_path) as (app, pilot):
        if stepped:
            await pilot.press("b")
            for turn in (1, 2):
                await until(lambda turn=turn: isinstance(app.screen, StepScreen)
                            and app.screen.view.waits == turn, pilot)  # fmt: skip
                await pilot.pause()
                await pilot.press("e", "end", "!", "ctrl+s") if turn == 2 else await pilot.press("enter")
            await until(lambda: app.screen.attempt is not None, pilot)
        else:
            await pilot.press("r")
        if not stepped:
            await ran(app, pilot)
        own = ["ctrl+u", *"again.yaml"] if form == "start_to_agent" else []
        path = await save_as(app, pilot, form, *own)
        suite = path.relative_to(tmp_path).as_posix()
        await until(lambda: any(item.suite == suite for item in app.state.rows), pilot)
        if stepped:
            await pilot.press("U")
        item = next(item for item in app.state.rows if item.suite == suite)
        await until(lambda: under_cursor(app) == item.case_id, pilot)
        assert "written:" in "".join(words for _, _, words in app.notices.lines)
        # A step is in front where nothing else was, until it is put away: it is not the run that `r` starts.
        first = app.state.run.info.id if app.state.run else ""
        await pilot.press("r")
        run = await ran(app, pilot, first)
        (row,) = run.attempts.values()
        assert row.outcome == "passed", row.message
        assert [case.agent for case in run.cases.values()] == ["helper"]
    assert "0 errors" in check(tmp_path)
    asked = path.read_text()
    assert ("and for two?!" in asked) == stepped
    if form == "nao":
        text = (tmp_path / "tui_eval.yaml").read_text()
        assert text.startswith(CONFIG), "comments and layout stay"
        rule = rule_for(load([tmp_path]), suite)
        assert rule is not None and rule.agent == "helper"
    else:
        assert (tmp_path / "tui_eval.yaml").read_text() == CONFIG


@pytest.mark.real
async def test_into_an_existing_file_comments_stay(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await asked_where(app, pilot)
        await pilot.press("enter")  # its own suite is what the dialog begins with
        await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
        assert "One more case in suite.yaml" in screen_text(app)
        await pilot.press("enter")
        await until(lambda: "suite.yaml::talks (saved)" in app.state.by_id, pilot)
        await until(lambda: under_cursor(app) == "suite.yaml::talks (saved)", pilot)
    assert (tmp_path / "suite.yaml").read_text().startswith(SUITE)


@pytest.mark.real
async def test_of_a_wrong_answer_the_expectations_are_the_cases_own(tmp_path: Path) -> None:
    async with app_on(tmp_path, WRONG) as (app, pilot):
        await pilot.press("r")
        first = (await ran(app, pilot)).info.id
        await save_as(app, pilot, "start_to_agent")
        await until(lambda: under_cursor(app) == "suite.yaml::talks (saved)", pilot)
        ours, new = (app.state.by_id[f"suite.yaml::talks{end}"].case for end in ("", " (saved)"))
        stated = [[(one.type, one.value) for one in case.assertions] for case in (ours, new)]
        assert stated[0] == stated[1]
        await pilot.press("r")
        run = await ran(app, pilot, first)
        assert [row.outcome for row in run.attempts.values()] == ["failed"]
        # Once more: the name is free.
        app.places.suites.go_to(CasePointer("suite.yaml::talks"))
        await pilot.press("C")
        await until(lambda: isinstance(app.screen, SaveDialog), pilot)
        assert "talks (saved 2)" in screen_text(app)


@pytest.mark.real
async def test_without_an_answer_nobody_is_asked_where_to_save_it(tmp_path: Path) -> None:
    async with app_on(tmp_path, script="default: {steps: [{error: the tool broke}]}\n") as (app, pilot):
        told = lambda words: any(words in text for _, _, text in app.notices.lines)  # noqa: E731
        await pilot.press("r")
        await ran(app, pilot)
        await pilot.press("C")
        await until(lambda: isinstance(app.screen, SaveDialog) or told("no answered conversation"), pilot)
        assert told("there is no answered conversation to save") and not isinstance(app.screen, SaveDialog)


@pytest.mark.real
async def test_the_dialog_calls_formats_as_the_lists_do(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("r")
        await ran(app, pilot)
        await pilot.press("C")
        await until(lambda: "‹ StartToAgent ›" in screen_text(app), pilot)
        assert "start_to_agent" not in screen_text(app)
        await pilot.press("up", "right")
        await until(lambda: "StartToAgent ›" not in screen_text(app), pilot)
        assert "›" in screen_text(app) and app.screen.form != "start_to_agent"
        assert "talks (saved)" in screen_text(app)
        while app.screen.form != "neuro_san":
            await pilot.press("right")
        await until(lambda: "that of its file" in screen_text(app), pilot)
        assert "talks (saved)" not in screen_text(app)
        await pilot.press("down", "down")  # over the name, which there is none of
        await until(lambda: app.screen.focused is app.screen.query_one(FormatRow), pilot)
        await pilot.press("escape")


@pytest.mark.real
async def test_in_another_format_nothing_is_proposed_from_a_wrong_answer(tmp_path: Path) -> None:
    async with app_on(tmp_path, WRONG) as (app, pilot):
        await asked_where(app, pilot)
        await pilot.press("up")
        while app.screen.form != "promptfoo":
            await pilot.press("right")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
        text = screen_text(app)
        assert "it expects nothing yet" in text and "should_contain" in text
        assert "assert:" not in app.screen.diff


@pytest.mark.real
async def test_the_dialogs_keys_are_those_of_the_line_and_a_refusal_keeps_what_was_typed(
    tmp_path: Path,
) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await asked_where(app, pilot)
        await until(lambda: "tab ↓ ↑ line" in screen_text(app), pilot)
        assert "← → format" not in screen_text(app)  # there they move in the text
        await pilot.press("up")
        await until(lambda: "← → format" in screen_text(app), pilot)
        before = app.screen
        await pilot.press("down", "ctrl+u", *"../out.yaml", "enter")
        await until(lambda: app.screen is not before and isinstance(app.screen, SaveDialog), pilot)
        await until(lambda: "../out.yaml is outside the project" in screen_text(app), pilot)
        assert "talks (saved)" in screen_text(app)
        await pilot.press("ctrl+u", "enter")
        await until(lambda: "file and name are needed" in screen_text(app), pilot)
        await pilot.press("escape")
        await until(lambda: not isinstance(app.screen, SaveDialog), pilot)


@pytest.mark.real
async def test_what_could_not_be_read_of_the_case_is_said_before_it_is_saved_without_it(
    tmp_path: Path,
) -> None:
    slipped = SUITE.replace('should_contain: ["159"]', 'should_contian: ["never"]')
    async with app_on(tmp_path, slipped) as (app, pilot):
        await pilot.press("b")  # a run does not ask the agent for a case that is an error all the same
        for turn in (1, 2):
            await until(lambda turn=turn: isinstance(app.screen, StepScreen)
                        and app.screen.view.waits == turn, pilot)  # fmt: skip
            await pilot.press("enter")
        await until(lambda: app.screen.attempt is not None, pilot)
        await pilot.press("C")
        await until(lambda: isinstance(app.screen, SaveDialog), pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
        text = " ".join(screen_text(app).split())
        assert "left out: suite.yaml:8" in text and "assertion 'should_contian'" in text
        added = [line for line in app.screen.diff.splitlines() if line.startswith("+")]
        assert any("tools_used" in line for line in added) and not any("contian" in line for line in added)


COLUMNS = """\
prompts: ['{{q}}', 'or {{q}}']
providers: [helper, echo]
tests:
- {description: fruit, vars: {q: fig}, assert: [{type: contains, value: never}]}
scenarios:
- config: [{vars: {q: what is the price}}]
  tests: [{description: other, assert: [{type: contains, value: x}]}]
"""


@pytest.mark.real
async def test_the_cursor_goes_to_the_new_case_in_the_column_of_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(COLUMNS)
    async with app_on(tmp_path) as (app, pilot):
        app.places.suites.go_to(CasePointer("promptfooconfig.yaml::fruit::echo::prompt1"))
        await pilot.pause()
        await asked_where(app, pilot)
        assert "promptfooconfig.yaml" in screen_text(app)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
        await pilot.press("enter")
        new = "promptfooconfig.yaml::fruit (saved)::echo::prompt1"  # whose answer was looked at
        await until(lambda: new in app.state.by_id, pilot)
        await pilot.press("U")
        await until(lambda: under_cursor(app) == new, pilot)
