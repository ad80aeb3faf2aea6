"""Python tools of a model agent: a process for each attempt, as its judging code and python agents have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tui_eval.agents.base import Services, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.models.tool_loop import AttemptTools, Toolbox
from tui_eval.config.project import AgentSpec
from tui_eval.guard.trust import Trust
from tui_eval.scripting.script_host import PROCESSES

TOOLS = """
import os, time
cart = []

def add(item):
    cart.append(item)
    time.sleep(0.02)
    return {"cart": cart, "process": os.getpid()}

def hang(seconds):
    time.sleep(seconds)

def leave():
    os._exit(3)
"""


def toolbox(root: Path) -> Toolbox:
    (root / "tools.py").write_text(TOOLS)
    tools: list[dict[str, Any]] = [
        {"type": "python", "function": "tools.py:add"},
        {"type": "python", "function": "tools.py:hang", "timeout": 0.2},
        {"type": "python", "function": "tools.py:leave"},
    ]
    given = Services(root, Trust(True))
    return Toolbox(Options(AgentSpec("it", "openai", {"tools": tools}), given, frozenset({"tools"})), given)


def attempt(box: Toolbox, number: int) -> AttemptTools:
    return box.for_attempt(SessionContext("case", number, str(number)))


@pytest.mark.real
async def test_what_a_tool_keeps_is_its_attempts_alone(tmp_path: Path) -> None:
    box = toolbox(tmp_path)
    await box.load()

    async def shop(number: int) -> tuple[list[str], set[int]]:
        mine = attempt(box, number)
        try:
            told = [(await mine.call("add", {"item": f"{number}.{place}"})).result for place in range(4)]
        finally:
            mine.close()
        return told[-1]["cart"], {one["process"] for one in told}

    try:
        found = await asyncio.gather(*map(shop, range(PROCESSES)))
    finally:
        await box.close()
    for number, (cart, processes) in enumerate(found):
        assert len(processes) == 1, "an attempt's tools run in one process"
        assert cart[-4:] == [f"{number}.{place}" for place in range(4)], "and nobody else's do meanwhile"
    assert len({next(iter(processes)) for _, processes in found}) == PROCESSES


async def test_each_process_has_loaded_the_tools_before_the_first_call(tmp_path: Path) -> None:
    """What they import may take seconds, which are not the agent's."""
    box = toolbox(tmp_path)
    with (tmp_path / "tools.py").open("a") as file:
        file.write("\nopen('loaded.txt', 'a').write(f'{os.getpid()} ')\n")
    await box.load()
    both = [attempt(box, 1), attempt(box, 2)]
    try:
        for one in both:
            await one.get_ready()
        loaded = (tmp_path / "loaded.txt").read_text().split()
        told = [(await one.call("add", {"item": "x"})).result for one in both]
    finally:
        for one in both:
            one.close()
        await box.close()
    assert box.preparing == "loading tools"
    assert {str(one["process"]) for one in told} <= set(loaded)
    assert len({one["process"] for one in told}) == 2
    assert (tmp_path / "loaded.txt").read_text().split() == loaded


@pytest.mark.real
async def test_sixty_four_attempts_share_no_more_than_eight_processes_and_all_end(tmp_path: Path) -> None:
    box = toolbox(tmp_path)
    await box.load()

    async def shop(number: int) -> int:
        mine = attempt(box, number)
        try:
            told = [await mine.call("add", {"item": number}) for _ in range(3)]
        finally:
            mine.close()
        assert not any(one.error for one in told)
        return told[0].result["process"]

    try:
        async with asyncio.timeout(60):
            processes = await asyncio.gather(*map(shop, range(64)))
    finally:
        await box.close()
    assert len(set(processes)) <= PROCESSES


@pytest.mark.real
@pytest.mark.parametrize(("tool", "arguments"), [("hang", {"seconds": 60}), ("leave", {})])
async def test_a_tool_that_hangs_or_ends_its_process_costs_no_other_attempt(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    box = toolbox(tmp_path)
    await box.load()
    bad, good = attempt(box, 1), attempt(box, 2)
    try:
        async with asyncio.timeout(30):
            before = await good.call("add", {"item": "kept"})
            assert (await bad.call(tool, arguments)).error
            after = await good.call("add", {"item": "too"})
            assert after.error is None and after.result["cart"][-2:] == ["kept", "too"]
            assert after.result["process"] == before.result["process"]
            again = [await bad.call("add", {"item": "mine"}) for _ in range(2)]
            assert again[-1].error is None, "told once at most, then it goes on in another process"
    finally:
        bad.close()
        good.close()
        await box.close()
