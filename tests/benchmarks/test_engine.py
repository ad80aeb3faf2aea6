"""What a run costs headless (design.md, Budgets): `pytest -m benchmark tests/benchmarks`."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.benchmarks.support import Cost, measure, mock, openai, project, tell, tui_eval

pytestmark = pytest.mark.benchmark


def runs(folder: Path, *options: str, times: int = 3) -> list[Cost]:
    """Several measured runs, after one that is not counted."""
    command = tui_eval("run", ".", *options)
    costs = [measure(command, folder) for _ in range(times + 1)][1:]
    assert {cost.code for cost in costs} == {0}, (folder / "measured.log").read_text()[-2000:]
    return costs


@pytest.mark.parametrize(
    ("name", "agent", "server", "budget"),
    [
        ("streamed in 4 pieces", "", (), 1.2),
        ("streamed in 20 pieces", "", ("--chunks", "20"), 1.5),
        ("plain JSON", ", stream: false", (), 1.2),
    ],
)
def test_cpu_of_a_case(
    tmp_path: Path, capfd: object, name: str, agent: str, server: tuple[str, ...], budget: float
) -> None:
    with mock("openai", *server) as url:
        folder = project(tmp_path / "many", 1000, openai(url, agent))
        costs = runs(folder, "-j", "32")
        single = runs(project(tmp_path / "one", 1, openai(url, agent)))
    cpu = statistics.median(cost.cpu for cost in costs)
    start = statistics.median(cost.cpu for cost in single)
    tell(
        capfd,
        f"1,000 cases, agent of 0 ms, {name}, 32 connections: {cpu:.2f} ms CPU a case "
        f"({cpu - start:.2f} without start-up), wall {statistics.median(c.wall for c in costs):.2f} s, "
        f"{max(c.memory for c in costs):.0f} MB",
    )
    assert cpu <= budget  # 1,000 cases: seconds of the process are milliseconds of a case


def test_slow_agent_with_many_connections(tmp_path: Path, capfd: object) -> None:
    with mock("openai", "--delay", "0.2") as url:
        costs = runs(project(tmp_path, 1000, openai(url)), "-j", "100")
    wall = statistics.median(cost.wall for cost in costs)
    tell(capfd, f"1,000 cases, agent of 200 ms, 100 connections: {wall:.2f} s, {wall / 2.0:.2f} × ideal")
    assert wall <= 1.4 * 2.0


def test_one_case_start_to_end(tmp_path: Path, capfd: object) -> None:
    with mock("openai") as url:
        costs = runs(project(tmp_path, 1, openai(url)), times=7)
    wall = statistics.median(cost.wall for cost in costs)
    tell(capfd, f"one case, start to end: {wall:.2f} s ({statistics.median(c.cpu for c in costs):.2f} s CPU)")
    assert wall <= 0.6
