"""A case that was edited after it was judged says so: in the lists, beside them, and where it is open. Words about
reading an attempt stand no longer than it is read."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import SUITE, LiveRun, project
from tui_eval.formats.promptfoo.promptfoo_format import PromptfooFormat
from tui_eval.tui.screens import case_reader
from tui_eval.tui.state.app_state import CasePointer

NAMES = ["refund is approved", "greets by name", "calms an angry customer"]


def judged(root: Path, hashes: dict[str, str]) -> None:
    """A run in which all cases passed, as they are in the file now."""
    run = LiveRun(root, NAMES, hashes=hashes)
    run.all_done(["passed"] * 3)


@pytest.mark.real
async def test_what_was_edited_after_it_passed_is_marked_until_it_is_judged_again(tmp_path: Path) -> None:
    root = project(tmp_path)
    file = root / "suites" / "support.yaml"
    async with running_app(root, size=(100, 30)) as (app, pilot):
        hashes = {item.name: item.case.content_hash for item in app.state.rows}
        judged(root, hashes)
        app.front_run.refresh_history()
        await until(lambda: all(item.history for item in app.state.rows), pilot)
        await until(lambda: "3 passed" in screen_text(app), pilot)
        assert "edited" not in screen_text(app)

        file.write_text(SUITE.replace("[Anna]", "[Bert]"))
        app.services.suites.reload([str(file)])
        await until(lambda: "1 edited" in screen_text(app), pilot)  # of the three, whose line is folded
        await pilot.press("g", "j", "j", "right", "j", "j")
        await until(lambda: "edited since" in screen_text(app), pilot)
        (line,) = [one for one in screen_text(app).splitlines() if " edited " in one and NAMES[1] in one]
        assert "✓" in line
        await pilot.press("enter")
        await until(lambda: "· edited since" in screen_text(app).splitlines()[0], pilot)
        await pilot.press("3")
        assert "· edited since" in screen_text(app).splitlines()[0]

        file.write_text(SUITE)  # as it was judged
        app.services.suites.reload([str(file)])
        await until(lambda: "edited" not in screen_text(app), pilot)
        await pilot.press("escape")
        await until(lambda: "3 passed" in screen_text(app) and "edited" not in screen_text(app), pilot)


async def test_cases_that_hooks_make_are_not_said_to_be_edited(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(PromptfooFormat, "hook_files", lambda self, settings: ["file://hooks.py:hook"])
    suite = "providers: [echo]\nprompts: ['{{q}}']\ntests: [{description: one, vars: {q: a}}]\n"
    root = project(tmp_path, {"promptfooconfig.yaml": suite, "suites/support.yaml": SUITE})
    async with running_app(root) as (app, _):
        by_suite = {item.suite: item for item in app.state.rows}
        assert by_suite["suites/support.yaml"].edited_since("0" * 16)
        assert not by_suite["promptfooconfig.yaml"].edited_since("0" * 16)


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (140, 30)], (80, 24)))
async def test_it_is_not_said_to_be_read_once_it_has_been(tmp_path: Path, monkeypatch, size) -> None:
    root = project(tmp_path)
    LiveRun(root, NAMES).all_done(["passed", "failed", "passed"])
    load = case_reader.load

    shown = threading.Event()

    def slow(where):
        shown.wait(20)
        return load(where)

    monkeypatch.setattr(case_reader, "load", slow)
    async with running_app(root, size=size) as (app, pilot):
        await until(lambda: any(item.history for item in app.state.rows), pilot)
        item = app.state.rows[1]
        app.places.open_case(CasePointer(item.case_id, "offline", None, item.history[0].run_id))
        await until(lambda: "reading the attempt…" in screen_text(app), pilot)
        shown.set()
        await until(lambda: app.screen.content.attempt is not None, pilot)
        await pilot.pause()
        assert "reading the attempt…" not in screen_text(app)
