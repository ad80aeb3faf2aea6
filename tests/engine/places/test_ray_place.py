"""What of a project is sent to the machines of a cluster, and what is said of attempts whose worker is lost."""

from __future__ import annotations

import asyncio
import pickle
import zipfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.place_contract import contract
from tui_eval.config.project import Config
from tui_eval.engine.places import ray_messages as messages
from tui_eval.engine.places import ray_place, ray_worker
from tui_eval.engine.places.ray_place import RayPlace, packed_project
from tui_eval.engine.places.ray_worker import RayWorker, WorkerStart
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
        assert package.namelist() == ["suite.yaml", "within.yaml", "below/checks.py"]
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
