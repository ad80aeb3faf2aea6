"""A run on Ray: what every place does, what happens when parts of a cluster go, and what Ray keeps of it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")

from tests.real.ray_cluster import RayCluster, StartedHead, connections, environment, kill, raylet_of, workers
from tests.servers.gated import GatedServer
from tests.support import place_contract
from tests.support.app_host import running_app, screen_text
from tests.support.app_host import until as in_app
from tests.support.place_contract import contract
from tests.support.waiting import until
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.places.ray_place import RayPlace
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import NeverBegun, Store

pytestmark = pytest.mark.real
SECRET = "sk-of-the-environment-5d2f81"
AT_ONCE = 8
CASES = 120
LONG = 240
"""Seconds for what is a matter of seconds: a busy machine."""


@pytest.fixture(scope="module", autouse=True)
def direct() -> Iterator[None]:
    with environment():
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
        f"agents:\n  helper: {{type: openai, base_url: '{server.base}', model: m, api_key: '${{HELPER_KEY}}'}}\n"
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


def finished(root: Path) -> int:
    """How many runs of a project have."""
    count = 0
    for folder in Store(root).run_folders():
        # One that begins at this moment has no facts yet.
        with suppress(NeverBegun), closing(RunReader(folder)) as reader:
            count += reader.info().state == "finished"
    return count


def states(root: Path) -> list[str]:
    """Of the attempts of a project's only run."""
    (folder,) = Store(root).run_folders()
    with closing(RunReader(folder)) as reader:
        return [row.state for row in reader.attempts()]


@pytest.fixture
def processors(cluster: RayCluster) -> RayCluster:
    """The cluster with one node of two processors."""
    cluster.have_node(processors=2)
    return cluster


async def test_ray_is_a_place(processors: RayCluster, tmp_path: Path) -> None:
    """That of a cluster; one on this machine is started by the run whose engine is killed, below."""
    with contract(tmp_path) as given:
        run = given.run
        assert run.writer is not None
        run.runner.place = RayPlace(processors.address, 2, run.environment, run.writer, shared=False)
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
        assert words.startswith("ray · 2 nodes · ")
        assert made.attempt.ran_on.startswith("worker ")


@pytest.mark.parametrize("promise", place_contract.RUNS, ids=lambda promise: promise.__name__)
async def test_runs_on_a_cluster(promise, processors: RayCluster, tmp_path: Path) -> None:
    await promise(place_contract.There(tmp_path, processors.address, processors=2))


async def test_an_agent_has_the_variables_and_the_modules_that_it_has_here(
    processors: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables that are called like one of a machine are not withheld, and folders of the project are found
    as here; not files that are called like modules of Python's, nor what Python runs at its start."""
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    (tmp_path / "cmd.py").write_text("raise SystemExit")
    (tmp_path / "src" / "shopbot").mkdir(parents=True)
    (tmp_path / "src" / "shopbot" / "__init__.py").touch()
    (tmp_path / "src" / "shopbot" / "agent.py").write_text(
        "import os\n\n\ndef answer(message):\n    return os.environ['NVIDIA_DEPLOYMENT']\n"
    )
    (tmp_path / "tui_eval.yaml").write_text(
        'agents:\n  code: {type: python, function: "shopbot.agent:answer"}\n'
    )
    (tmp_path / "suite.yaml").write_text(
        "agent: code\ntest_cases:\n  - {name: case 0, input: hi, expected: {should_contain: [staging]}}\n"
    )
    monkeypatch.setenv("NVIDIA_DEPLOYMENT", "staging")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'src'}{os.pathsep}{os.environ['PYTHONPATH']}")
    request = RunRequest(paths=[str(tmp_path)], on=processors.address, trust=True)
    run = await asyncio.to_thread(prepare, request)
    assert run.writer is not None
    folder = run.writer.folder
    assert await asyncio.wait_for(run.execute(), LONG) == "finished"
    with closing(RunReader(folder)) as reader:
        (attempt,) = [reader.attempt(row.id) for row in reader.attempts()]
    assert attempt is not None
    assert (attempt.outcome, attempt.error) == ("passed", None)
    assert not (tmp_path / "run").exists()


async def test_a_shared_folder_is_the_project_and_a_copy_of_it_is_none(
    processors: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELPER_KEY", SECRET)
    server.allowed = 10**6
    root = project(tmp_path, server, 2)
    with (root / "tui_eval.yaml").open("a") as file:
        file.write("run: {files: shared}\n")
    request = RunRequest(paths=[str(root)], on=processors.address, concurrency=2, trust=True)
    run = await asyncio.to_thread(prepare, request)
    assert run.writer is not None
    folder = run.writer.folder
    assert await asyncio.wait_for(run.execute(), LONG) == "finished"
    assert ended(folder) == {"message 0": "passed", "message 1": "passed"}
    run = await asyncio.to_thread(prepare, request)
    assert run.writer is not None and isinstance(run.runner.place, RayPlace)
    start = run.runner.place._start()
    start.mark = f"{start.mark}-elsewhere"  # as where the folder is a copy, without this run
    monkeypatch.setattr(run.runner.place, "_start", lambda: start)
    assert await asyncio.wait_for(run.execute(), LONG) == "interrupted"
    assert f"it does not have the project at {root}, or only a copy" in str(run.runner.stopped_because)


def test_what_a_try_to_start_ray_left_behind_has_ended_before_the_next(tmp_path: Path) -> None:
    """In a process of its own: it ends all that it has started."""
    code = """
import subprocess
import psutil
from tui_eval.engine.places.ray_driver import end_children, patiently
shells, below = [], []
def start():
    shell = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    shells.append(shell.pid)
    below.append(int(shell.stdout.readline()))
    if len(shells) < 3:
        raise RuntimeError("timed out during startup")
def alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
patiently(start, lambda: None)
print([alive(pid) for pid in shells], [alive(pid) for pid in below])
end_children()
"""
    code = f"import ray\n{code}"  # it brings psutil
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG)
    assert done.stdout == "[False, False, True] [False, False, True]\n", done.stderr
    assert done.stderr.count("RuntimeError: timed out during startup") == 2


async def planned(root: Path, on: str, at_once: int) -> tuple[ActiveRun, Path]:
    """A run of a project on a cluster, that is yet to be executed, and its folder."""
    request = RunRequest(paths=[str(root)], on=on, concurrency=at_once, trust=True, timeout=600)
    run = await asyncio.to_thread(prepare, request)
    assert run.writer is not None
    return run, run.writer.folder


async def test_a_process_with_the_connection_that_is_killed_interrupts_the_run(
    processors: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds nothing that is not with the engine: the run goes on there, with another one."""
    monkeypatch.setenv("HELPER_KEY", SECRET)
    run, folder = await planned(project(tmp_path, server, 12), processors.address, 4)
    server.allowed = 4
    running = asyncio.ensure_future(run.execute())
    await until(lambda: running.done() or len(ended(folder)) >= 4, LONG)
    (connection,) = connections()
    kill(connection)
    assert await asyncio.wait_for(running, LONG) == "interrupted"
    assert str(run.runner.stopped_because).startswith("ray: the connection has ended (code -9)")
    done = set(ended(folder))
    server.allowed = 10**6
    again = await asyncio.to_thread(resume, folder, overrides=RunRequest(on=processors.address, trust=True))
    assert await again.execute() == "finished"
    assert set(ended(folder).values()) == {"passed"}
    assert len(ended(folder)) == 12
    assert {message: server.asks[message] for message in done} == dict.fromkeys(done, 1)


def test_an_attempt_that_loses_worker_after_worker_is_an_error_and_ray_says_nothing(
    processors: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given back twice; what another terminal sees meanwhile is the run as it is."""
    monkeypatch.setenv("HELPER_KEY", SECRET)
    project(tmp_path, server, 2)
    arguments = ["run", ".", "--trust", "--on", processors.address, "-j", "1"]
    with (tmp_path.parent / "said.txt").open("w+b") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tui_eval", *arguments], cwd=tmp_path, stdout=said, stderr=said
        )
        attached = None
        try:
            for asked in (1, 2, 3):
                asyncio.run(
                    until(
                        lambda asked=asked: (
                            process.poll() is not None
                            or (
                                server.asks["message 0"] >= asked
                                and workers()
                                and "running" in states(tmp_path)
                            )
                        ),
                        LONG,
                    )
                )
                assert process.poll() is None
                if attached is None:
                    command = [sys.executable, "-m", "tui_eval", "attach", "--display", "plain"]
                    attached = subprocess.Popen(
                        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                    )
                for worker in workers():
                    kill(worker)
            server.allowed = 10**6
            assert process.wait(LONG) == 1
            assert attached is not None
            seen, _ = attached.communicate(timeout=LONG)
        finally:
            for one in (process, attached):
                if one is not None and one.poll() is None:
                    one.kill()
        said.seek(0)
        text = said.read().decode()
    (folder,) = Store(tmp_path).run_folders()
    assert ended(folder) == {"message 0": "error", "message 1": "passed"}
    assert server.asks == {"message 0": 3, "message 1": 1}
    assert "worker lost, 3 times: worker 3 on " in text
    assert "1 passed, 0 failed, 1 error" in text
    assert [word for word in ("raylet", "INFO", "WARN", "Traceback", "(pid=") if word in text] == []
    assert "case 1" in seen and "passed" in seen


async def test_the_app_runs_adds_and_runs_again_on_ray(
    processors: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real engine, and `run: {on: …}` in tui_eval.yaml."""
    monkeypatch.setenv("HELPER_KEY", SECRET)
    server.allowed = 10**6
    root = project(tmp_path, server, 1)
    with (root / "tui_eval.yaml").open("a") as file:
        file.write(f"run: {{on: '{processors.address}', concurrency: 1}}\n")
    engine = EngineClient(root)
    try:
        async with running_app(root, (140, 40), engine=engine, trust=True) as (app, pilot):
            await pilot.press("a")
            await in_app(
                lambda: app.state.run is not None and "· ray · 2 nodes · " in screen_text(app), pilot, LONG
            )
            await in_app(lambda: app.state.run.counts.done == 1 and not app.state.run.active, pilot, LONG)
            await in_app(lambda: finished(root) == 1 and not app.runs.running, pilot, LONG)
            for key, runs in (("plus", 2), ("r", 3)):
                await pilot.press(key)
                await in_app(lambda runs=runs: finished(root) == runs and not app.runs.running, pilot, LONG)
    finally:
        with suppress(EngineError):
            await engine.shutdown()
        await engine.close()
    attempts = []
    for folder in Store(root).run_folders():
        reader = RunReader(folder)
        attempts += [reader.attempt(row.id) for row in reader.attempts()]
        reader.close()
    assert len(attempts) == 3
    assert {(one.outcome, one.ran_on[:7]) for one in attempts if one is not None} == {("passed", "worker ")}


async def test_workers_and_nodes_come_and_go_and_nothing_that_ended_is_asked_again(
    cluster: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELPER_KEY", SECRET)
    first = cluster.have_node()
    run, folder = await planned(project(tmp_path, server), cluster.address, AT_ONCE)
    server.allowed = 20
    running = asyncio.ensure_future(run.execute())
    await until(
        lambda: running.done() or (len(ended(folder)), server.asks.total()) == (20, 20 + AT_ONCE), LONG
    )
    done = set(ended(folder))
    assert len(done) == 20

    for process in workers():
        kill(process)
    await until(lambda: running.done() or server.asks.total() >= 20 + 2 * AT_ONCE, LONG)  # given back
    server.allowed = 50
    await until(lambda: running.done() or len(ended(folder)) >= 50, LONG)
    assert {message: server.asks[message] for message in done} == dict.fromkeys(done, 1)
    done = set(ended(folder))
    asked = {message: server.asks[message] for message in done}

    cluster.add_node()
    # Ray goes on counting a node of an earlier test for the seconds in which it might yet answer.
    three = "ray · 3 nodes · 2 workers"
    await until(lambda: running.done() or run.runner.place.words == three, LONG)
    assert run.runner.place.words == three
    cluster.remove_node(first)
    server.allowed = 10**6
    assert await asyncio.wait_for(running, LONG) == "finished"
    assert {message: server.asks[message] for message in done} == asked
    assert max(server.asks.values()) <= 3
    outcomes = ended(folder)
    assert len(outcomes) == CASES
    assert set(outcomes.values()) == {"passed"}
    reader = RunReader(folder)
    assert reader.info().place.startswith("ray · ")
    reader.close()


async def test_a_machine_with_several_workers_that_dies_is_one_loss(
    cluster: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one of them had goes to the other machine, not to its neighbours, which are gone as well."""
    monkeypatch.setenv("HELPER_KEY", SECRET)
    first = cluster.have_node(3)
    run, folder = await planned(project(tmp_path, server, 56), cluster.address, 28)
    server.allowed = 0
    running = asyncio.ensure_future(run.execute())

    def has(workers: int) -> bool:
        words = run.runner.place.words
        return running.done() or (words.endswith(f"{workers} workers") and server.asks.total() == 28)

    await until(lambda: has(3), LONG)
    cluster.add_node()  # only now: what there is to do goes to whoever is there first
    await until(lambda: has(4), LONG)
    assert not running.done(), run.runner.stopped_because
    await asyncio.sleep(1)  # that they have begun is said
    cluster.remove_node(first)
    await until(lambda: running.done() or "begun anew" in run.runner.place.note, LONG)
    server.allowed = 10**6
    assert await asyncio.wait_for(running, LONG) == "finished"
    assert list(ended(folder).values()) == ["passed"] * 56
    assert max(server.asks.values()) <= 2
    twice = sum(asked == 2 for asked in server.asks.values())
    with closing(RunReader(folder)) as reader:
        assert f"{twice} attempts were begun anew, since " in reader.info().note


def test_a_node_that_comes_takes_no_files_from_the_workers_there_are(
    cluster: RayCluster, tmp_path: Path
) -> None:
    """Of several nodes on one machine each new one unpacks the project anew, in the place where it is: no attempt may
    miss a file, or fail, by that. The engine is a process of its own: to add a node keeps this one busy."""
    cluster.have_node()
    (tmp_path / "tui_eval.yaml").write_text('agents:\n  code: {type: python, function: "code.py:answer"}\n')
    (tmp_path / "code.py").write_text(
        "import time\n\n\ndef answer(message):\n    time.sleep(0.02)\n    import words\n"
        "    return words.first(open('data.txt').read()) + message\n"
    )
    (tmp_path / "words.py").write_text("def first(text):\n    return text.split()[0]\n")
    (tmp_path / "data.txt").write_text("answer to")
    (tmp_path / "a").mkdir()
    for number in range(3000):  # what takes a moment to take away and to unpack
        (tmp_path / "a" / f"{number}.txt").write_text("more")
    count = 10 * CASES
    cases = "".join(
        f"  - {{name: case {n}, input: message {n}, expected: {{should_contain: [answermessage {n}]}}}}\n"
        for n in range(count)
    )
    (tmp_path / "suite.yaml").write_text(f"agent: code\ntest_cases:\n{cases}")
    command = [sys.executable, "-m", "tui_eval", "run", ".", "--trust", "--on", cluster.address, "-j", "2"]
    errors = tmp_path.parent / "nodes.txt"
    with open(errors, "wb") as file:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=file, stderr=file)
    try:
        folders = Store(tmp_path).runs_folder

        def some() -> bool:
            found = list(folders.glob("*/run.db"))
            return process.poll() is not None or (bool(found) and len(ended(found[0].parent)) >= 10)

        asyncio.run(until(some, LONG))
        assert process.poll() is None, errors.read_text()
        cluster.add_node()
        assert process.wait(LONG) == 0, errors.read_text()[-3000:]
    finally:
        if process.poll() is None:
            process.kill()
    (folder,) = Store(tmp_path).run_folders()
    assert list(ended(folder).values()) == ["passed"] * count
    with closing(RunReader(folder)) as reader:
        assert "nodes · 2 workers" in reader.info().place
        assert reader.info().note == ""


@pytest.mark.parametrize("before", ["", "ray://"])
def test_an_address_at_which_no_cluster_is_ends_the_run_with_a_line(
    before: str, tmp_path: Path, server: GatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens, or something that is no cluster."""
    monkeypatch.setenv("HELPER_KEY", SECRET)
    project(tmp_path, server, 2)
    with socket.create_server(("127.0.0.1", 0)) as free:
        nothing = free.getsockname()[1]
    for port, why in ((nothing, "Connection refused"), (server.port, "does not speak as Ray does")):
        address = f"{before}127.0.0.1:{port}"
        command = [sys.executable, "-m", "tui_eval", "run", ".", "--trust", "--on", address]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG)
        assert done.returncode == 1, done.stderr
        assert f"ray: no cluster answers at {address} so far" in done.stderr and why in done.stderr
        assert f"ray: no cluster answers at {address} (" in done.stderr
        assert (done.stdout + done.stderr).count(f"no cluster answers at {address} (") == 1


def test_ray_keeps_no_secret(cluster: RayCluster) -> None:
    """After a run with one: neither in its logs nor in the rest of its session's folder."""
    session = Path(cluster.session)
    files = [path for path in session.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 10
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


async def test_a_head_that_is_gone_interrupts_the_run_and_it_is_gone_on_with_elsewhere(
    cluster: RayCluster, server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELPER_KEY", SECRET)
    cluster.have_node()
    run, folder = await planned(project(tmp_path, server), cluster.address, AT_ONCE)
    server.allowed = 20
    running = asyncio.ensure_future(run.execute())
    await until(lambda: running.done() or len(ended(folder)) >= 20, LONG)
    done = set(ended(folder))
    cluster.end_head()
    assert await asyncio.wait_for(running, LONG) == "interrupted"
    assert run.runner.stopped_because is not None
    assert run.runner.stopped_because.startswith(f"ray: the cluster at {cluster.address} is gone")
    assert "\n" not in run.runner.stopped_because and "GCS" not in run.runner.stopped_because
    assert set(ended(folder)) == done
    with closing(RunReader(folder)) as reader:
        assert f"{AT_ONCE} attempts were under way when the cluster was lost" in reader.info().note
    server.allowed = 10**6
    again = await asyncio.to_thread(
        resume, folder, overrides=RunRequest(on="here", trust=True, concurrency=AT_ONCE)
    )
    assert await again.execute() == "finished"
    with closing(RunReader(folder)) as reader:
        assert reader.info().note.startswith(f"asked again: at least {AT_ONCE} attempts that were under way")
    outcomes = ended(folder)
    assert len(outcomes) == CASES
    assert set(outcomes.values()) == {"passed"}
    assert {message: server.asks[message] for message in done} == dict.fromkeys(done, 1)
    assert sum(asks == 2 for asks in server.asks.values()) == AT_ONCE


async def test_rays_client_and_an_address_of_a_machine_that_was_started_by_hand(
    server: GatedServer,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`ray://` streams, loses a worker, and is gone; the run goes on at the address of the machine."""
    head = StartedHead(tmp_path_factory.mktemp("token"))
    try:
        monkeypatch.setenv("HELPER_KEY", SECRET)
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(head.token))
        run, folder = await planned(project(tmp_path, server, 40), head.client, AT_ONCE)
        server.allowed = 10
        running = asyncio.ensure_future(run.execute())
        await until(
            lambda: running.done() or (len(ended(folder)), server.asks.total()) == (10, 10 + AT_ONCE), LONG
        )
        assert not running.done(), run.runner.stopped_because
        for worker in workers():
            kill(worker)
        await until(lambda: running.done() or server.asks.total() == 10 + 2 * AT_ONCE, LONG)  # given back
        server.allowed = 20
        await until(lambda: running.done() or len(ended(folder)) >= 20, LONG)
        done = set(ended(folder))
        asked = {message: server.asks[message] for message in done}
        assert set(ended(folder).values()) == {"passed"}
        head.end_client_servers()
        assert await asyncio.wait_for(running, LONG) == "interrupted"
        assert set(ended(folder)) == done
        server.allowed = 10**6
        overrides = RunRequest(on=head.address, trust=True, concurrency=AT_ONCE)
        again = await asyncio.to_thread(resume, folder, overrides=overrides)
        assert await again.execute() == "finished"
        outcomes = ended(folder)
        assert len(outcomes) == 40
        assert set(outcomes.values()) == {"passed"}
        assert {message: server.asks[message] for message in done} == asked
    finally:
        head.end()


def test_a_raylet_that_is_killed_ends_the_run_with_a_line_and_it_is_gone_on_with_here(
    server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray on this machine has no other: nobody comes any more."""
    monkeypatch.setenv("HELPER_KEY", SECRET)
    project(tmp_path, server, 12)
    server.allowed = 4
    command = [sys.executable, "-m", "tui_eval", "run", ".", "--trust", "--on", "ray", "-j", "4"]
    errors = tmp_path.parent / "raylet.txt"
    with open(errors, "wb") as file:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=file)
    try:
        folders = Store(tmp_path).runs_folder

        def four() -> bool:
            found = list(folders.glob("*/run.db"))
            return process.poll() is not None or (bool(found) and len(ended(found[0].parent)) >= 4)

        asyncio.run(until(four, LONG))
        assert process.poll() is None, errors.read_text()
        (connection,) = connections()
        kill(raylet_of(connection))
        assert process.wait(LONG) == 1
    finally:
        if process.poll() is None:
            process.kill()
    said = errors.read_text("utf-8")
    (folder,) = Store(tmp_path).run_folders()
    # Its worker ends with it. That this is said, too, depends on which of the two is heard of first.
    assert f"has ended; go on with: tui-eval resume {folder.name}" in said
    assert [word for word in ("INFO", "WARN", "Traceback", "(pid=") if word in said] == []
    with closing(RunReader(folder)) as reader:
        info = reader.info()
    assert info.state == "interrupted"
    # What one worker had may have been given to the other one before that was gone, too.
    assert info.note.startswith("ray: the raylet that this machine is connected to has ended")
    done = set(ended(folder))
    assert done
    server.allowed = 10**6
    command = [sys.executable, "-m", "tui_eval", "resume", "--trust", "--on", "here"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert set(ended(folder).values()) == {"passed"}
    assert len(ended(folder)) == 12
    assert {message: server.asks[message] for message in done} == dict.fromkeys(done, 1)


def test_a_run_whose_engine_is_killed_is_gone_on_with_here(
    server: GatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELPER_KEY", SECRET)
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

    asyncio.run(until(ten, LONG))
    assert process.poll() is None, errors.read_text()
    process.kill()
    process.wait()
    folder = next(folders.glob("*/run.db")).parent
    done = set(ended(folder))
    asyncio.run(until(lambda: not workers(), 60))
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
