"""The engine is killed in the middle: the app says so wherever one is, and the next run has a new engine."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_host import running_app, screen_text, until
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.step_screen import StepScreen
from tui_eval.tui.state.app_state import CasePointer

SUITE = """\
agent: helper
test_cases:
  - {name: talks, messages: [one, two], expected: {should_contain: [done]}}
"""
SLOW = "rate: 5000\nrules: [{match: two, steps: [{say: begin}, {wait: 60}]}]\ndefault: fine\n"
QUICK = "rate: 5000\ndefault: done\n"


@asynccontextmanager
async def app_on(root: Path, script: str):
    (root / "suite.yaml").write_text(SUITE)
    (root / "agent.script.yaml").write_text(script)
    (root / "tui_eval.yaml").write_text("agents: {helper: {type: scripted, script: agent.script.yaml}}\n")
    client = EngineClient(root)
    try:
        async with running_app(root, engine=client) as (app, pilot):
            app.places.suites.go_to(CasePointer("suite.yaml::talks"))
            await pilot.pause()
            yield app, pilot, client
    finally:
        with suppress(EngineError):
            await client.shutdown()
        await client.close()


async def kill(client: EngineClient) -> None:
    os.kill((await client.state())["pid"], signal.SIGKILL)


def logged(app: Any, words: str) -> bool:
    return any(words in text for _, _, text in app.notices.lines)


@pytest.mark.real
async def test_while_a_case_is_looked_at(tmp_path: Path) -> None:
    async with app_on(tmp_path, SLOW) as (app, pilot, client):
        await pilot.press("r")
        await until(lambda: app.state.run is not None and app.state.run.active, pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CaseScreen) and "begin" in screen_text(app), pilot)
        await kill(client)
        await until(lambda: logged(app, "was interrupted"), pilot)
        await until(lambda: "interrupted: r runs it" in screen_text(app), pilot)
        assert "running" not in screen_text(app).splitlines()[0]
        # Opened anew it says the same.
        await pilot.press("escape", "enter")
        await until(lambda: isinstance(app.screen, CaseScreen) and "interrupted: r runs it" in screen_text(app),
                    pilot)  # fmt: skip
        (tmp_path / "agent.script.yaml").write_text(QUICK)
        killed = app.state.run.info.id
        await pilot.press("r")
        await until(lambda: app.state.run.info.id != killed and not app.state.run.active, pilot)
        await until(lambda: "✓ passed" in screen_text(app), pilot)


@pytest.mark.real
async def test_a_run_that_is_resumed_streams_what_is_said_now(tmp_path: Path) -> None:
    async with app_on(tmp_path, SLOW) as (app, pilot, client):
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, RunScreen) and "begin" in screen_text(app), pilot)
        await kill(client)
        await until(lambda: logged(app, "was interrupted"), pilot)
        (tmp_path / "agent.script.yaml").write_text(SLOW.replace("begin", "anew"))
        await pilot.press("H")
        await until(lambda: isinstance(app.screen, RunsScreen) and "u goes on" in screen_text(app), pilot)
        await pilot.press("u")
        await until(lambda: isinstance(app.screen, RunScreen) and "anew" in screen_text(app), pilot)
        assert "begin" not in screen_text(app), "what the dead engine's attempt said is past"
        await pilot.press("x")
        await until(lambda: not app.state.run.active, pilot)
        assert app.state.run.counts.cancelled == 1


@pytest.mark.real
async def test_while_a_turn_waits_for_the_person(tmp_path: Path) -> None:
    async with app_on(tmp_path, QUICK) as (app, pilot, client):
        await pilot.press("b")
        await until(lambda: isinstance(app.screen, StepScreen) and app.screen.view.waits == 1, pilot)
        await pilot.press("enter")
        await until(lambda: app.screen.view.waits == 2, pilot)
        await kill(client)
        await until(lambda: "b begins anew" in screen_text(app), pilot)
        text = screen_text(app)
        assert "> one" in text and "done" in text, "what was said stays in sight"
        assert "b step anew" in text.splitlines()[-1]
        await until(lambda: "two" not in screen_text(app), pilot)
        await pilot.press("b")
        await until(lambda: isinstance(app.screen, StepScreen) and app.screen.view.waits == 1, pilot)
        assert sum(isinstance(screen, StepScreen) for screen in app.screen_stack) == 1
        await pilot.press("o")
        await until(lambda: app.screen.attempt is not None and app.screen.attempt.outcome == "passed", pilot)
