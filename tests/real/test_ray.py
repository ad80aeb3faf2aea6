"""A run on Ray: what every place does, what happens when parts of a cluster go, and what Ray keeps of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")

from tests.real.ray_cluster import GatedServer, RayCluster, kill, without_proxies, workers_of_this_machine
from tests.support import place_contract
from tests.support.place_contract import contract
from tests.support.waiting import until
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.places.ray_place import RayPlace
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store

pytestmark = pytest.mark.real
SECRET = "sk-of-the-environment-5d2f81"
AT_ONCE = 8
CASES = 120


@pytest.fixture(scope="module", autouse=True)
def direct() -> Iterator[None]:
    with without_proxies():
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "RAY_gcs_rpc_server_reconnect_timeout_s", "20"
        )  # else everything waits a minute for a head
        made = RayCluster()
        try:
            yield made
        finally:
            made.end()


@pytest.fixture
def server() -> Iterator[GatedServer]:
    with GatedServer() as running:
        yield running


def project(folder: Path, server: GatedServer, cases: int = CASES) -> Path:
    """Cases that are told apart by their message, of an agent whose key is in the environment."""
    (folder / "tui_eval.yaml").write_text(
        f"agents:\n  helper: {{type: openai, base_url: '{server.base}', model: m, api_key: '${{RAY_TEST_KEY}}'}}\n"
    )
    lines = "".join(
        f"  - {{name: case {n}, input: message {n}, expected: {{should_contain: [message {n}]}}}}\n"
        for n in range(cases)
    )
    (folder / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{lines}")
    return folder


def ended(folder: Path) -> dict[str, str | None]:
    """The messages whose attempts have ended, with their outcomes."""
    reader = RunReader(folder)
    try:
        names = {case.id: case.name for case in reader.cases()}
        done = [row for row in reader.attempts() if row.state == "done"]
        return {names[row.case_ref].replace("case", "message"): row.outcome for row in done}
    finally:
        reader.close()


async def test_ray_is_a_place(tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        run = given.run
        assert run.writer is not None
        run.runner.place = RayPlace("", 2, run.environment, run.writer, shared=True)
        await run.runner.place.open(lambda: None)
        try:
            await place_contract.executes_to_the_end(given)
            await place_contract.cancels_and_keeps_what_there_was(given)
            await place_contract.ends_in_time(given)
            words = run.runner.place.words
            made = await run.runner.place.attempt(run.tickets[0], None, {})
        finally:
            await run.runner.place.close()
            await run.environment.close()
        assert words.startswith("ray · 1 node · ")
        assert made.attempt.ran_on.startswith("worker ")


async def test_workers_and_nodes_come_and_go_and_nothing_that_ended_is_asked_again(
    cluster: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TEST_KEY", SECRET)
    first = cluster.add_node()
    request = RunRequest(
        paths=[str(project(tmp_path, server))],
        on=cluster.address,
        concurrency=AT_ONCE,
        trust=True,
        timeout=600,
    )
    run = await asyncio.to_thread(prepare, request)
    assert run.writer is not None
    folder = run.writer.folder
    server.allowed = 20
    running = asyncio.ensure_future(run.execute())
    await until(lambda: running.done() or len(ended(folder)) >= 20, 240)
    before = dict(server.asks)
    done = set(ended(folder))
    assert len(done) == 20
    assert len(before) == 20 + AT_ONCE

    for process in workers_of_this_machine():
        kill(process)
    await until(lambda: running.done() or server.asks.total() >= 20 + 2 * AT_ONCE, 240)  # given back
    server.allowed = 50
    await until(lambda: running.done() or len(ended(folder)) >= 50, 240)
    assert {message: server.asks[message] for message in done} == dict.fromkeys(done, 1)
    done = set(ended(folder))
    asked = {message: server.asks[message] for message in done}

    cluster.add_node()
    await until(lambda: running.done() or "2 workers" in run.runner.place.words, 240)
    assert run.runner.place.words == "ray · 3 nodes · 2 workers"
    cluster.remove_node(first)
    server.allowed = 10**6
    assert await asyncio.wait_for(running, 240) == "finished"
    assert {message: server.asks[message] for message in done} == asked
    assert max(server.asks.values()) <= 3
    outcomes = ended(folder)
    assert len(outcomes) == CASES
    assert set(outcomes.values()) == {"passed"}
    reader = RunReader(folder)
    assert reader.info().place.startswith("ray · ")
    reader.close()


def test_ray_keeps_no_secret(cluster: RayCluster) -> None:
    """After a run with one: neither in its logs nor in the rest of its session's folder."""
    session = Path(cluster.session)
    files = [path for path in session.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 10
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


async def test_a_head_that_is_gone_interrupts_the_run_and_it_is_gone_on_with_elsewhere(
    cluster: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TEST_KEY", SECRET)
    cluster.add_node()
    request = RunRequest(
        paths=[str(project(tmp_path, server))],
        on=cluster.address,
        concurrency=AT_ONCE,
        trust=True,
        timeout=600,
    )
    run = await asyncio.to_thread(prepare, request)
    assert run.writer is not None
    folder = run.writer.folder
    server.allowed = 20
    running = asyncio.ensure_future(run.execute())
    await until(lambda: running.done() or len(ended(folder)) >= 20, 240)
    done = set(ended(folder))
    cluster.end_head()
    assert await asyncio.wait_for(running, 240) == "interrupted"
    assert run.runner.stopped_because is not None
    assert run.runner.stopped_because.startswith("ray: ")
    assert set(ended(folder)) == done
    server.allowed = 10**6
    again = await asyncio.to_thread(
        resume, folder, overrides=RunRequest(on="here", trust=True, concurrency=AT_ONCE)
    )
    assert await again.execute() == "finished"
    outcomes = ended(folder)
    assert len(outcomes) == CASES
    assert set(outcomes.values()) == {"passed"}
    assert {message: server.asks[message] for message in done} == dict.fromkeys(done, 1)


def test_a_run_whose_engine_is_killed_is_gone_on_with_here(
    server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TEST_KEY", SECRET)
    project(tmp_path, server, 40)
    server.allowed = 10
    command = [sys.executable, "-m", "tui_eval", "run", ".", "--trust", "--on", "ray", "-j", "4"]
    errors = tmp_path.parent / "errors.txt"
    with open(errors, "wb") as file:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=file, stderr=file)
    folders = Store(tmp_path).runs_folder

    def ten() -> bool:
        found = list(folders.glob("*/run.db"))
        return process.poll() is not None or (bool(found) and len(ended(found[0].parent)) >= 10)

    asyncio.run(until(ten, 240))
    assert process.poll() is None, errors.read_text()
    process.kill()
    process.wait()
    folder = next(folders.glob("*/run.db")).parent
    done = set(ended(folder))
    asyncio.run(until(lambda: not workers_of_this_machine(), 60))
    server.allowed = 10**6
    command = [sys.executable, "-m", "tui_eval", "resume", "--trust", "--on", "here"]
    finished = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=dict(os.environ)
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert len(ended(folder)) == 40
    assert {message: server.asks[message] for message in done} == dict.fromkeys(done, 1)
    # Nothing of what Ray says has come to the terminal.
    said = errors.read_text("utf-8").splitlines()
    assert [line for line in said if not line.startswith(("[", "40 attempts with helper"))] == []
    assert not any("raylet" in line or "INFO" in line or "WARN" in line for line in said)
