"""What of a project is sent to the machines of a cluster, and what is said of attempts whose worker is lost."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import shutil
import socket
import zipfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.place_contract import contract
from tui_eval.config.config_schema import Wrong, where
from tui_eval.config.project import Config, ConfigError
from tui_eval.engine.places import ray_driver, ray_place, ray_worker
from tui_eval.engine.places import ray_messages as messages
from tui_eval.engine.places.ray_driver import NoCluster
from tui_eval.engine.places.ray_place import RayPlace, check_size, packed_project
from tui_eval.engine.places.ray_worker import OwnFiles, RayWorker, WorkerStart
from tui_eval.guard.secrets import Masker
from tui_eval.store.reader import RunReader

SECRET = "sk-known-0123456789abcdef"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in {
        "tui_eval.yaml": "agents: {}",
        "suite.yaml": "agent: a",
        "below/checks.py": "1",
        ".env": f"KEY={SECRET}",
        ".env.local": "",
        ".git/config": "",
        ".tui-eval/runs/1/run.db": "",
        "node_modules/a.js": "",
        "own_env/pyvenv.cfg": "",
        "own_env/lib.py": "",
        "notes.txt": f"the key is {SECRET}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "outside.txt").write_text("not of the project")
    (folder / "out.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "within.yaml").symlink_to("suite.yaml")
    return folder


def test_what_belongs_to_a_machine_leads_out_or_holds_a_secret_stays(root: Path, tmp_path: Path) -> None:
    sent = packed_project(Config(root=root, file=root / "tui_eval.yaml"), Masker([SECRET]), tmp_path)
    with zipfile.ZipFile(sent.file) as package:
        assert package.namelist() == ["suite.yaml", "within.yaml", "below/checks.py", messages.MANIFEST]
    assert sent.words.startswith(f"ray: 3 files of {root} are sent (")
    assert sent.words.endswith("; left out, for a secret in them: notes.txt")


def test_the_same_files_are_the_same_package(root: Path, tmp_path: Path) -> None:
    """Ray then has it already."""
    bodies = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        bodies.append(packed_project(Config(root=root), Masker([]), tmp_path / name).file.read_bytes())
    assert bodies[0] == bodies[1]


def test_too_much_is_refused_before_it_is_read(root: Path, tmp_path: Path) -> None:
    (root / "large").mkdir()
    with (root / "large" / "data.parquet").open("wb") as file:
        file.truncate(2**40)  # no memory holds it
    with pytest.raises(OSError, match=r"more than 200 MB \(most of it in large, .*files: shared") as refused:
        packed_project(Config(root=root), Masker([]), tmp_path)
    assert ray_place.LARGEST == 200 * 2**20
    assert "\n" not in str(refused.value)


def test_a_project_that_is_too_large_is_refused_before_a_run_is_made(root: Path) -> None:
    """One line, and no run of which nothing has run."""
    with (root / "data.parquet").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(
        ConfigError, match=r"cannot be sent to a cluster: they are more than 200 MB"
    ) as refused:
        check_size(Config(root=root))
    assert "\n" not in str(refused.value)


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that Ray starts a worker in, with two files."""
    folder = tmp_path / "working_dir_files" / "_ray_pkg_1"
    (folder / "below").mkdir(parents=True)
    (folder / "a.txt").write_text("one")
    (folder / "below" / "b.txt").write_text("four")
    (folder / messages.MANIFEST).write_text('{"a.txt": 3, "below/b.txt": 4}')
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}/elsewhere")
    return folder


def test_a_worker_has_files_that_ray_does_not_take_away(unpacked: Path) -> None:
    """They are there as long as one of the run's workers is, and no longer."""
    first, second = OwnFiles("run"), OwnFiles("run")
    _, own = first.take()
    os.chdir(unpacked)
    assert second.take() == (unpacked, own)
    shutil.rmtree(unpacked)
    assert Path.cwd() == own and (own / "below" / "b.txt").read_text() == "four"
    first.leave()
    assert second.there() and own.is_dir()
    second.leave()
    assert list(unpacked.parent.iterdir()) == [] and not second.there()


def test_a_worker_waits_until_the_files_that_are_unpacked_anew_are_whole(
    unpacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {path: path.read_text() for path in unpacked.rglob("*") if path.is_file()}
    shutil.rmtree(unpacked)
    tries: list[float] = []

    def waits(seconds: float) -> None:
        tries.append(seconds)
        for path, text in list(kept.items())[: len(tries)]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(ray_worker.time, "sleep", waits)
    files = OwnFiles("run")
    _, own = files.take()
    assert len(tries) == 3 and (own / "a.txt").read_text() == "one"
    files.leave()


def test_files_that_never_become_whole_are_no_worker(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_worker, "_PATIENCE", 0.0)
    (unpacked / "a.txt").unlink()
    with pytest.raises(OSError, match="not whole"):
        OwnFiles("run").take()
    assert list(unpacked.parent.iterdir()) == [unpacked]


def test_what_a_killed_worker_left_goes_with_the_next(unpacked: Path) -> None:
    left = unpacked.parent / "tui-eval-left"
    left.mkdir()
    files = OwnFiles("run")
    files.take()
    assert not left.exists()
    files.leave()


def test_an_address_at_which_nothing_answers_is_said_early_and_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray itself waits there for ever."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(ray_driver, "_LOOK", 0.01)
    monkeypatch.setattr(ray_driver, "_SEARCH", 0.1)
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        said: list[messages.ToEngine] = []
        with pytest.raises(NoCluster, match=rf"^no cluster answers at {address} \(Connection refused\)$"):
            ray_driver.find_cluster(address, said.append)
        assert said == [messages.Waits(f"no cluster answers at {address} so far (Connection refused)")]


def test_a_worker_that_is_gone_is_told_without_rays_own_words() -> None:
    class RayError(Exception):
        pass

    for error, why in (
        (RayError("The actor 5d2f is unavailable: RpcError: rpc_code: 14"), ""),
        (
            RayError("died unexpectedly\nThe actor died because its node has died. Node Id: 1"),
            "its machine is gone",
        ),
        (
            RayError("1 worker(s) were killed due to the node running low on memory."),
            "its machine ran out of memory",
        ),
        (RuntimeError("it has tui-eval 1"), "RuntimeError: it has tui-eval 1"),
    ):
        assert ray_driver.why_gone(error, RayError) == why


class Cluster:
    """In the place of the process that holds the connection to Ray: worker 1 is lost with all that it is given, worker 2
    executes it."""

    def __init__(self, run) -> None:
        self.stdin, self.returncode = self, None
        self.stdout = asyncio.StreamReader()
        self.worker = RayWorker(2)
        self._start = WorkerStart(run.config, run.environment.trust, run.run_id, None, {}, True)
        self._lost = 0
        self._asked = asyncio.StreamReader()
        self._tasks = [asyncio.ensure_future(self._answer())]

    def is_closing(self) -> bool:
        return self.returncode is not None

    def write(self, data: bytes) -> None:
        self._asked.feed_data(data)

    def say(self, message: messages.ToEngine) -> None:
        self.stdout.feed_data(messages.frame(message))

    async def _answer(self) -> None:
        while (message := await messages.read_from_engine(self._asked)) is not None:
            match message:
                case messages.Connect():
                    self.say(messages.Nodes(1))
                    self.say(messages.WorkerUp(1, "10.0.0.4"))
                case messages.Give(worker=1):
                    self._lost += len(pickle.loads(message.tickets))
                    if self._lost < 2:
                        continue
                    self.say(messages.WorkerDown(1, "it was killed"))
                    await self.worker.begin(pickle.dumps(self._start), "10.0.0.5")
                    self._tasks.append(asyncio.ensure_future(self._take()))
                    self.say(messages.WorkerUp(2, "10.0.0.5"))
                case messages.Give():
                    await self.worker.give(message.settings, message.tickets)

    async def _take(self) -> None:
        while True:
            self.say(messages.Happened(2, await self.worker.take()))

    def close(self) -> None:
        self.returncode = 0
        self.stdout.feed_eof()
        for task in self._tasks:
            task.cancel()

    async def wait(self) -> int:
        return 0


async def test_attempts_that_begin_anew_since_their_worker_was_lost_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have been asked, and paid, twice: on the console, in the run's note and in their transcripts."""
    told: list[str] = []
    with contract(tmp_path) as given:
        run = given.run
        assert run.writer is not None
        folder = run.writer.folder

        async def started(*_: object, **__: object) -> Cluster:
            return Cluster(run)

        monkeypatch.setattr(ray_place.asyncio, "create_subprocess_exec", started)
        monkeypatch.setattr(
            ray_worker,
            "os",
            SimpleNamespace(dup2=lambda *_: None, open=lambda *_: 0, environ={}, devnull="", O_RDWR=0),
        )
        run.runner.place = RayPlace("", 2, run.environment, run.writer, shared=True, say=told.append)
        del run.tickets[2:]
        assert await asyncio.wait_for(run.execute(), 20) == "finished"
    (line,) = told
    assert line == (
        "ray: worker 1 on 10.0.0.4 is gone (it was killed); 2 attempts begin anew, what they cost before is not known; "
        "no worker is left, waiting for another one"
    )
    with closing(RunReader(folder)) as reader:
        note = "2 attempts were begun anew, since 1 worker was lost; what they cost before is not known"
        assert note in reader.info().note
        attempts = [reader.attempt(row.id) for row in reader.attempts()[:2]]
    for attempt in attempts:
        assert attempt is not None and (attempt.outcome, attempt.ran_on) == ("passed", "worker 2 on 10.0.0.5")
        assert [one.kind for one in attempt.transcript][:2] == ["note", "user"]
        assert (
            "begun anew" in attempt.transcript[0].text
            and "worker 1 on 10.0.0.4" in attempt.transcript[0].text
        )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionError("ray client connection timeout"), "went away while the connection to it was made"),
        (json.JSONDecodeError("Expecting value", "", 0), "does not speak as Ray does"),
    ],
)
def test_a_cluster_that_goes_away_while_the_connection_is_made_is_told_in_a_persons_words(
    error: Exception, told: str
) -> None:
    """Ray's own came to the terminal."""

    def fails() -> None:
        raise error

    with pytest.raises(NoCluster, match=f"10.0.0.4:6379 {told}") as failed:
        ray_driver.attach("10.0.0.4:6379", fails)
    assert str(error) not in str(failed.value)


def test_a_server_of_a_cluster_that_was_too_slow_is_asked_once_more() -> None:
    why = [ConnectionAbortedError("initialization failure"), ConnectionAbortedError("no such package")]

    def slow() -> None:
        if why:
            raise why.pop(0)

    with pytest.raises(ConnectionAbortedError, match="no such package"):
        ray_driver.attach("ray://head:10001", slow)
    ray_driver.attach("ray://head:10001", slow)


@pytest.mark.parametrize(
    ("address", "nodes", "code", "told"),
    [
        ("10.0.0.4:6379", 2, 1, "the cluster at 10.0.0.4:6379 is gone"),
        ("", 1, 1, "Ray on this machine has ended"),
        ("10.0.0.4:6379", 2, -9, "the connection has ended (code -9)"),
        (
            "10.0.0.4:6379",
            0,
            1,
            "there is no connection: the cluster at 10.0.0.4:6379 went away while it was made (code 1)",
        ),
        ("", 0, 1, "Ray has ended on this machine before there was a connection (code 1)"),
    ],
)
def test_a_connection_that_ends_is_told_in_a_persons_words(
    address: str, nodes: int, code: int, told: str, tmp_path: Path
) -> None:
    """Ray says it with the place in its sources and a link."""
    log = tmp_path / "ray.log"
    log.write_text(
        "[2026-11-27 18:04:11,802 E 29983 30034] rpc_client.h:204: Failed to connect to GCS within 60 s. "
        "See https://docs.ray.io/en/master/ray-observability\n"
    )
    assert ray_place.why_ended(code, address, bool(nodes), log) == told
    if not nodes:
        with log.open("a") as more:
            more.write(
                "*** StackTrace Information ***\n/x/_raylet.so(+0x129) [0x7f] ray::RayLog::~RayLog()\n"
            )
        assert ray_place.why_ended(code, address, False, log) == told
        log.write_text(
            "Traceback (most recent call last):\n  File 'x'\nModuleNotFoundError: No module named 'ray'\n"
        )
        raised = "there is no connection: ModuleNotFoundError: No module named 'ray'"
        assert ray_place.why_ended(code, address, False, log) == raised


@pytest.mark.parametrize("on", ["ray:10", "here:2", "host:0", "ray://host:99999"])
def test_what_is_no_place_says_what_is_expected(on: str) -> None:
    with pytest.raises(Wrong, match=r"must be here, ray .*HOST:PORT") as wrong:
        where(on)
    assert ("-j" in str(wrong.value)) == on.startswith(("ray:1", "here"))


def test_hosts_with_ports_are_places() -> None:
    for on in ("here", "ray", "ray://ray:10001", "10.0.0.4:6379", "[::1]:6379"):
        assert where(on) == on
