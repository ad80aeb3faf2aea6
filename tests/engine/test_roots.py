"""A recorded run keeps the root it was made with, whatever lies above it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.waiting import until
from tui_eval.engine.after.rescoring import rescore
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow
from tui_eval.tui.state import run_requests

SUITE = "prompts: ['{{q}}']\nproviders: ['file://bot.py']\ntests: [{vars: {q: a}, assert: [{type: equals, value: a}]}]\n"
BOT = """
import pathlib, time

def call_api(prompt, options, context):
    while not pathlib.Path(__file__).with_name("go").exists():
        time.sleep(0.02)
    return {"output": prompt}
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite outside of the folder that one works in, which has another project above it."""
    folder = tmp_path / "suites" / "deep"
    here = tmp_path / "other" / "project" / "below"
    folder.mkdir(parents=True)
    here.mkdir(parents=True)
    (tmp_path / "other" / "tui_eval.yaml").write_text("agents: {}\n", "utf-8")
    (folder / "promptfooconfig.yaml").write_text(SUITE, "utf-8")
    (folder / "bot.py").write_text(BOT, "utf-8")
    monkeypatch.chdir(here)
    return folder


def rows(folder: Path) -> list[AttemptRow]:
    reader = RunReader(folder)
    try:
        return reader.attempts()
    finally:
        reader.close()


def outcomes(folder: Path) -> list[str | None]:
    return [row.outcome for row in rows(folder)]


def states(folder: Path) -> list[str]:
    return [row.state for row in rows(folder)]


async def test_judged_again_and_resumed_it_finds_its_files(suite: Path) -> None:
    request = RunRequest(paths=[str(suite)], trust=True)
    active = await asyncio.to_thread(prepare, request)
    assert active.writer is not None
    folder = active.writer.folder
    going_on = asyncio.create_task(active.execute())
    await until(lambda: states(folder) == ["running"])
    await active.runner.interrupt()
    await going_on
    assert outcomes(folder) == [None]

    (suite / "go").touch()
    resumed = await asyncio.to_thread(resume, folder, overrides=RunRequest(trust=True))
    await resumed.execute()
    assert outcomes(folder) == ["passed"]

    bot = suite / "bot.py"
    bot.unlink()  # judging asks no agent, and must find today's assertions all the same
    bot.write_text("raise RuntimeError('not asked')\n", "utf-8")
    text = (suite / "promptfooconfig.yaml").read_text("utf-8")
    (suite / "promptfooconfig.yaml").write_text(text.replace("value: a", "value: bb"), "utf-8")
    again = await asyncio.to_thread(rescore, folder, overrides=RunRequest(paths=[str(suite)], trust=True))
    await again.execute()
    assert again.writer is not None and outcomes(again.writer.folder) == ["failed"]
    assert again.config.root == active.config.root == Path.cwd()


async def test_what_the_app_asks_for_is_of_its_project_whatever_lies_nearer(tmp_path: Path) -> None:
    suite = "agent: helper\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: [hi]}}\n"
    (tmp_path / "inner" / "tests").mkdir(parents=True)
    (tmp_path / "inner" / "tests" / "s.yaml").write_text(suite)
    for folder in (tmp_path, tmp_path / "inner"):
        (folder / "tui_eval.yaml").write_text("agents: {helper: {type: echo}}\n")
    case = run_requests.RunAsked("inner/tests/s.yaml::one", "inner/tests/s.yaml")
    project = run_requests.Project(tmp_path)
    requests = [
        run_requests.chosen(project, [case], run_requests.RunChoice()),
        run_requests.one_attempt(project, case, None),
    ]
    for request in requests:
        active = await asyncio.to_thread(prepare, request)
        await active.execute()
        assert active.config.root == tmp_path and active.writer is not None
        assert "root" not in active.writer.info.options  # a record says it by where it lies
        linked = run_requests.one_more(
            project,
            [case],
            run_requests.RunChoice(),
            run_requests.Run(active.writer.info.id, tmp_path),
            2,
            [],
        )
        added = await asyncio.to_thread(prepare, linked)
        await added.execute()
    assert not (tmp_path / "inner" / ".tui-eval").exists()
