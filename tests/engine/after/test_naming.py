"""Failures of a run that has ended, named by the judge: through the engine's process and on the command line."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import Any

import pytest

from tests.commands.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.engine.test_runs import go, suite_of
from tui_eval.engine.after.failure_naming import name_failures, plan_naming
from tui_eval.engine.selection import NothingToRun
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.store.reader import RunReader

CONFIG = """
agents: {helper: {type: scripted, script: agent.script.yaml}}
judge: {type: scripted, script: judge.script.yaml}
"""
NAMED = "The answer lacks the letter."
JUDGE = f"default: {{say: '{NAMED}'}}\n"
SLOW = "default: {steps: [{wait: 60}, {say: x}]}\n"


def names(folder) -> list[str | None]:
    with closing(RunReader(folder)) as reader:
        return [mode.name for mode in reader.assessment().modes]


async def ended(client: EngineClient, run_id: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            facts = await client.naming(run_id)
            if facts["ended"]:
                return facts
            await asyncio.sleep(0.02)


async def run_of(project, judge: str = JUDGE, config: str = CONFIG, say: str = "k"):
    files = {"judge.script.yaml": judge}
    root = project(suite=suite_of("a", "b"), script=f"default: {{say: {say}}}\n", config=config, **files)
    _, reader = await go(root)
    reader.close()
    return root, reader.folder


async def test_what_it_comes_to_is_known_before_and_the_names_are_kept(project) -> None:
    _, folder = await run_of(project)
    plan = await plan_naming(folder)
    assert (plan.questions, plan.free, plan.cost) == (1, True, 0.0)
    assert names(folder) == [None]
    answered: list[int] = []
    await name_failures(folder, on_answer=lambda: answered.append(1))
    assert names(folder) == [NAMED] and answered == [1]


async def test_a_judge_of_a_known_price_says_what_it_costs(project) -> None:
    config = CONFIG.replace("scripted, script: judge", "openai, model: gpt-4.1-mini, api_key: k, x: judge")
    config = config.replace(", x: judge.script.yaml", "")
    _, folder = await run_of(project, config=config)
    plan = await plan_naming(folder)
    assert not plan.free and plan.cost is not None and 0 < plan.cost < 0.01 and "gpt-4.1-mini" in plan.judge


async def test_without_a_judge_or_a_failure_one_line_says_so(project) -> None:
    _, folder = await run_of(project, config=CONFIG.partition("judge:")[0])
    with pytest.raises(NothingToRun, match="no judge is configured"):
        await plan_naming(folder)
    _, folder = await run_of(project, say="o")
    with pytest.raises(NothingToRun, match="nothing failed"):
        await plan_naming(folder)


@pytest.mark.real
async def test_what_was_agreed_to_for_this_time_counts_for_the_judge(project) -> None:
    config = CONFIG.partition("judge:")[0] + "judge: {type: command, command: [./judge.sh]}\n"
    root, folder = await run_of(project, config=config)
    (root / "judge.sh").write_text(f"#!/bin/sh\ncat > /dev/null\necho '{NAMED}'\n", "utf-8")
    (root / "judge.sh").chmod(0o755)
    client = EngineClient(root)
    try:
        await client.name_failures(folder, 1)
        await ended(client, folder.name)
        assert names(folder) == [None]
        with closing(RunReader(folder)) as reader:
            note = reader.assessment().note
        asked = note.partition("needs trust: ")[2].partition(" (run with")[0]
        assert asked.startswith("run ./judge.sh"), note
        assert (await client.plan_naming(folder, agreed=[asked]))["questions"] == 1
        await client.name_failures(folder, 1, agreed=[asked])
        assert (await ended(client, folder.name))["error"] == "" and names(folder) == [NAMED]
    finally:
        await client.shutdown()
        await client.close()


@pytest.mark.real
async def test_the_engine_names_and_stops(project) -> None:
    root, folder = await run_of(project)
    client = EngineClient(root)
    try:
        plan = await client.plan_naming(folder)
        await client.name_failures(folder, plan["questions"])
        facts = await ended(client, folder.name)
        assert (facts["error"], facts["done"], names(folder)) == ("", 1, [NAMED])
        (root / "judge.script.yaml").write_text(SLOW)
        await client.name_failures(folder, 1)
        with pytest.raises(EngineError, match="being named already"):
            await client.name_failures(folder, 1)
        await client.naming(folder.name, cancel=True)
        facts = await ended(client, folder.name)
        assert facts["error"] == "cancelled" and names(folder) == [NAMED]
    finally:
        await client.shutdown()
        await client.close()


async def test_the_command_line(project, cli: Cli, monkeypatch) -> None:  # noqa: F811
    root, folder = await run_of(project)
    monkeypatch.chdir(root)
    done = await asyncio.to_thread(cli, "assess", folder.name)
    assert done.code == 0 and NAMED in done.out and "1 question" in done.err
    done = await asyncio.to_thread(cli, "assess", folder.name, "--json")
    assert json.loads(done.out)["modes"][0]["name"] == NAMED


@pytest.mark.parametrize("judge", [True, False])
async def test_where_nothing_failed_there_is_nothing_to_group(
    project,
    cli: Cli,  # noqa: F811
    monkeypatch,
    judge: bool,
) -> None:
    root, folder = await run_of(project, say="ok")
    config = root / "tui_eval.yaml"
    config.write_text(
        "\n".join(line for line in config.read_text().splitlines() if judge or "judge" not in line)
    )
    monkeypatch.chdir(root)
    done = await asyncio.to_thread(cli, "assess", folder.name)
    assert done.code == 5 and "nothing failed, so there is nothing to" in done.err


async def test_without_a_judge_the_groups_are_printed_as_they_are(project, cli: Cli, monkeypatch) -> None:  # noqa: F811
    root, folder = await run_of(project)
    config = root / "tui_eval.yaml"
    config.write_text("\n".join(line for line in config.read_text().splitlines() if "judge" not in line))
    monkeypatch.chdir(root)
    done = await asyncio.to_thread(cli, "assess", folder.name)
    assert done.code == 0 and 'lacks "o"' in done.out and "no judge is configured" in done.err
    done = await asyncio.to_thread(cli, "assess", folder.name, "--json")
    assert json.loads(done.out)["modes"][0]["name"] is None
