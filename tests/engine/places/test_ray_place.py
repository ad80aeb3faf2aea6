"""What of a project is sent to the machines of a cluster, and what is said of attempts whose worker is lost."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import shutil
import socket
import sys
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import msgspec
import pytest

from tests.support.waiting import until
from tui_eval import __version__
from tui_eval.causes import cause_of
from tui_eval.config.config_schema import Wrong, where
from tui_eval.config.project import AgentSpec, Config, ConfigError
from tui_eval.engine import plan
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.places import ray_driver, ray_place, ray_worker, sent_project
from tui_eval.engine.places import ray_messages as messages
from tui_eval.engine.places.chosen_place import Here, what_runs_here
from tui_eval.engine.places.ray_driver import NoCluster
from tui_eval.engine.places.ray_place import RayPlace
from tui_eval.engine.places.ray_worker import EventLog, FarContext, RayWorker, WorkerStart
from tui_eval.engine.places.sent_project import OwnFiles, check_size, packed_project
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.guard.masker import Masker
from tui_eval.guard.trust import Trust, fingerprint
from tui_eval.model import Attempt
from tui_eval.store.answer_cache import AnswerCache
from tui_eval.store.encoding import unpack
from tui_eval.store.reader import RunReader
from tui_eval.store.writer import RunWriter

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
        names = ["suite.yaml", "within.yaml", "below/checks.py", messages.MANIFEST]
        assert package.namelist() == [f"{messages.SENT_IN}/{name}" for name in names]
    assert sent.words.startswith(f"ray: 3 files of {root} are sent (")
    assert sent.words.endswith("; left out, for a secret in them: notes.txt")
    assert sent.left_out == ["notes.txt"]


def test_the_same_files_are_the_same_package(root: Path, tmp_path: Path) -> None:
    """Ray then has it already."""
    bodies = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        bodies.append(packed_project(Config(root=root), Masker([]), tmp_path / name).file.read_bytes())
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("known", [f"{'.' * 2**20}{SECRET}".encode(), SECRET.encode("utf-16-le")])
def test_a_secret_is_found_in_a_large_file_and_in_utf_16(root: Path, tmp_path: Path, known: bytes) -> None:
    (root / "calls.jsonl").write_bytes(known)
    sent = packed_project(Config(root=root), Masker([SECRET]), tmp_path)
    assert sent.left_out == ["calls.jsonl", "notes.txt"]


def test_no_link_brings_along_what_is_not_sent_and_no_configuration_goes(root: Path, tmp_path: Path) -> None:
    """Also where another configuration is the run's: its literal secrets nobody has looked for."""
    (root / "prod.yaml").write_text("agents: {}")
    for name, target in {
        "a.txt": ".env",
        "b.txt": ".git/config",
        "c.txt": "tui_eval.yaml",
        "d.txt": "prod.yaml",
    }.items():
        (root / name).symlink_to(target)
    sent = packed_project(Config(root=root, file=root / "prod.yaml"), Masker([SECRET]), tmp_path)
    with zipfile.ZipFile(sent.file) as package:
        names = ["suite.yaml", "within.yaml", "below/checks.py", messages.MANIFEST]
        assert package.namelist() == [f"{messages.SENT_IN}/{name}" for name in names]


def test_a_worker_has_links_to_folders_empty_folders_and_files_of_any_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`data/current -> v2`: what an agent reads there it did not find on a cluster."""
    names = [b"caf\xe9.txt", b"with\\it.txt", b"c:it.txt", b"below/new\nline.txt"]
    for name in names:
        (root / os.fsdecode(name)).write_bytes(name)
    (root / "data" / "v2").mkdir(parents=True)
    (root / "data" / "v2" / "facts.json").write_text("{}")
    (root / "data" / "empty" / "below").mkdir(parents=True)
    (root / "data" / "current").symlink_to("v2")
    (root / "all").symlink_to(root)
    (root / "elsewhere").symlink_to(tmp_path)
    (root / "history").symlink_to(".git")
    sent = packed_project(Config(root=root, file=root / "tui_eval.yaml"), Masker([SECRET]), tmp_path)
    folder = tmp_path / "working_dir_files" / "_ray_pkg_1"
    with zipfile.ZipFile(sent.file) as package:
        members = package.namelist()
        package.extractall(folder)
    # Ray passes over such names (its `unzip_package`).
    assert not [name for name in members if "\\" in name or name[1:2] == ":"]
    assert {name.partition("/")[0] for name in members} == {
        messages.SENT_IN
    } and not messages.SENT_IN.isidentifier()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    files = OwnFiles("run")
    _, own = files.take()
    assert [(own / os.fsdecode(name)).read_bytes() for name in names] == names
    assert (own / "data" / "current").is_symlink() and (own / "data/current/facts.json").read_text() == "{}"
    assert (own / "data" / "empty" / "below").is_dir()
    assert (own / "all").resolve() == own.resolve()
    assert not (own / "elsewhere").is_symlink() and not (own / "history").is_symlink()
    files.leave()
    assert not own.exists() and (root / "data" / "v2" / "facts.json").exists()


def test_what_was_agreed_to_holds_where_the_project_stands_elsewhere(root: Path, tmp_path: Path) -> None:
    """An agent that is named by its absolute path was `needs trust` there, though just that had been agreed to."""
    own = str(tmp_path / "own")
    given = f"run {root}/bin/agent --with={root}/x (the agent a)"
    for agreed in (given, fingerprint(given)):
        trust = ray_worker.trust_of_home(Trust(agreed=frozenset({agreed})), str(root), own)
        assert trust.covers(given.replace(str(root), own, 1)) and trust.covers(given)
        assert not trust.covers(f"run {own}/bin/other (the agent a)")


def test_too_much_is_refused_before_it_is_read(root: Path, tmp_path: Path) -> None:
    (root / "large").mkdir()
    with (root / "large" / "data.parquet").open("wb") as file:
        file.truncate(2**40)  # no memory holds it
    with pytest.raises(OSError, match=r"more than 200 MB \(most of it in large\).*files: shared") as refused:
        packed_project(Config(root=root), Masker([]), tmp_path)
    assert sent_project.LARGEST == 200 * 2**20
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
    sent = folder / messages.SENT_IN
    (sent / "below").mkdir(parents=True)
    (sent / "a.txt").write_text("one")
    (sent / "below" / "b.txt").write_text("four")
    (sent / messages.MANIFEST).write_text('{"sizes": {"a.txt": 3, "below/b.txt": 4}}')
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

    monkeypatch.setattr(sent_project.time, "sleep", waits)
    files = OwnFiles("run")
    _, own = files.take()
    assert len(tries) == 3 and (own / "a.txt").read_text() == "one"
    files.leave()


def test_files_that_never_become_whole_are_no_worker(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_project, "_PATIENCE", 0.0)
    (unpacked / messages.SENT_IN / "a.txt").unlink()
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


def test_what_a_configuration_names_goes_and_only_what_is_the_machines_stays(tmp_path: Path) -> None:
    """By its exact name: what is withheld makes a run ask another endpoint, and its default may be green."""
    root = tmp_path / "project"
    agents = {
        "chat": AgentSpec("chat", "http", {"url": "http://${USER}/${RAY_CLUSTER:-none}/$${HOME}"}),
        "code": AgentSpec("code", "python", variables=["LD_LIBRARY_PATH"]),
    }
    sent = ray_worker.sent_environment(
        {
            **dict.fromkeys(
                ("NVIDIA_DEPLOYMENT", "NVIDIA_API_KEY", "CONDA_TOKEN", "SSH_KEY", "PYTHONHASHSEED"), "1"
            ),
            **dict.fromkeys(("USER", "RAY_CLUSTER", "LD_LIBRARY_PATH"), "named"),
            **dict.fromkeys(
                ("PATH", "HOME", "RAY_ADDRESS", "NVIDIA_VISIBLE_DEVICES", "SSH_AUTH_SOCK"), "the machine's"
            ),
            "PYTHONPATH": f"{root / 'src'}:/opt/of-the-machine:{root}-other",
        },
        Config(root=root, agents=agents),
    )
    assert sent == {
        **dict.fromkeys(
            ("NVIDIA_DEPLOYMENT", "NVIDIA_API_KEY", "CONDA_TOKEN", "SSH_KEY", "PYTHONHASHSEED"), "1"
        ),
        **dict.fromkeys(("USER", "RAY_CLUSTER", "LD_LIBRARY_PATH"), "named"),
        "PYTHONPATH": str(root / "src"),
    }


@pytest.mark.parametrize("held_as_they_are", [plan.HELD_AS_THEY_ARE, 0])
def test_what_suites_name_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_as_they_are: int
) -> None:
    """Whether cases are held packed or not; else a template says one thing here and another there, and both pass."""
    monkeypatch.setattr(plan, "HELD_AS_THEY_ARE", held_as_they_are)
    monkeypatch.chdir(tmp_path)
    told = ("TZ", "DISPLAY", "TERM", "LC_ALL", "USER", "LANG", "LOGNAME", "HOST", "SHELL", "XDG_DATA_HOME")
    for name in told:
        monkeypatch.setenv(name, f"the engine's {name}")
    (tmp_path / "prompt.txt").write_text("{{env.TZ}} {% include 'part.txt' %} {{env.SHELL}}")
    (tmp_path / "part.txt").write_text('{{ env["DISPLAY"] }}')
    (tmp_path / "of-a-variable.txt").write_text("{{ env.TERM }}")
    (tmp_path / "rows.csv").write_text('question\n"{{ env.LOGNAME }}"\n')
    (tmp_path / "more.yaml").write_text(
        "- {vars: {question: file://of-a-variable.txt, plain: env.XDG_DATA_HOME}}\n"
    )
    (tmp_path / "promptfooconfig.yaml").write_text(
        """
prompts: [file://prompt.txt]
env: {SHELL: its own}
providers: [{id: openai:chat:m, config: {apiBaseUrl: 'http://127.0.0.1:1/${USER}'}}]
defaultTest: {assert: [{type: javascript, value: process.env.LC_ALL}, {type: llm-rubric, value: x, provider: 'openai:${LANG}'}]}
tests: [file://rows.csv, file://more.yaml]
"""
    )
    monkeypatch.setattr(ray_place, "check_ray", lambda address: None)  # which need not be installed
    run = prepare(RunRequest(paths=["."], trust=True, on="10.0.0.4:6379"))
    place = run.runner.place
    assert isinstance(place, RayPlace) and run.writer is not None
    sent = place._start().environ
    run.writer.close()
    assert {name for name in told if name in sent} == {*told} - {"SHELL", "HOST", "XDG_DATA_HOME"}


async def test_a_worker_finds_the_projects_folders_of_pythonpath_in_its_own(
    unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    monkeypatch.setattr(ray_worker.os, "dup2", lambda *_: None)  # or this process writes nowhere
    monkeypatch.setenv("NOTES", "")
    monkeypatch.setenv("KEY", "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.path.append(str(unpacked))
    given = {"PYTHONPATH": f"{root}/src", "NOTES": f"{root}/notes.txt", "KEY": f"not {root}"}
    worker = RayWorker(1)
    await worker.begin(
        pickle.dumps(WorkerStart(Config(root=root), Trust(True), "run", None, given, False)), "10.0.0.4"
    )
    own = Path.cwd()
    assert own.parent == unpacked.parent and own != unpacked
    assert os.environ["PYTHONPATH"] == f"{own}/src:/elsewhere"  # as at home, not the project itself
    assert sys.path[-1] == f"{own}/src" and str(unpacked) not in sys.path
    assert (os.environ["NOTES"], os.environ["KEY"]) == (f"{own}/notes.txt", f"not {root}")
    await worker.end()


async def test_what_a_suite_says_of_a_file_is_where_the_project_is_on_a_worker(
    unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`env: {DATA: /home/me/project/data}`, or a filter by its whole path: they led to where nothing is on
    another machine."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "prompt.txt").write_text("{{ env.DATA | length }}")
    suite = "prompts: ['file://prompt.txt']\nproviders: [echo]\ntests: [{vars: {q: one}}]\nenv: {DATA: '%s/data'}\n"
    (root / "promptfooconfig.yaml").write_text(suite % root)
    (job,) = prepare(RunRequest(paths=[str(root)], trust=True, root=str(root))).jobs
    monkeypatch.setattr(ray_worker.os, "dup2", lambda *_: None)  # or this process writes nowhere
    worker = RayWorker(1)
    start = WorkerStart(Config(root=root), Trust(True), "run", None, {}, False)
    await worker.begin(pickle.dumps(start), "10.0.0.4")
    bare = msgspec.structs.replace(job, settings={})
    ticket = ray_worker.SentTicket(1, 1, bare, None, None, [])
    await worker.give(pickle.dumps({job.suite: job.settings}), pickle.dumps([ticket]))
    ended: list[messages.LoggedEvent] = []
    while not ended:
        ended = [one for one in messages.events_of(await worker.take()) if one.what == "done"]
    assert unpack(ended[0].given[0], Attempt).response_text == str(len(f"{Path.cwd()}/data"))
    await worker.end()


async def test_where_few_files_may_be_open_fewer_attempts_are_made_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers began all that they were given: `too many open files`, of which here there are fewer at once."""
    at_once: list[int] = []
    full, going = asyncio.Event(), asyncio.Event()
    now = 0

    async def execute(job: plan.Job, number: int, *_: object) -> Attempt:
        nonlocal now
        now += 1
        at_once.append(now)
        if now == 2:
            full.set()
        await going.wait()
        now -= 1
        return Attempt(job.case.case_id, number, "passed", job.agent, job.model)

    async def imported(*_: object) -> None:
        """Nothing is waited for in a thread."""

    monkeypatch.setattr(ray_worker, "execute", execute)
    monkeypatch.setattr(ray_worker, "import_first", imported)
    monkeypatch.setattr(ray_worker, "within_open_files", lambda _: 2)
    monkeypatch.setattr(ray_worker.os, "dup2", lambda *_: None)  # or this process writes nowhere
    (tmp_path / "promptfooconfig.yaml").write_text(_JUDGED)
    job = prepare(RunRequest(paths=[str(tmp_path)], trust=True, root=str(tmp_path))).jobs[1]
    worker = RayWorker(1)
    await worker.begin(
        pickle.dumps(WorkerStart(Config(root=tmp_path), Trust(True), "run", None, {}, True)), "10.0.0.4"
    )
    tickets = [ray_worker.SentTicket(ref, 1, job, None, None, []) for ref in range(1, 9)]
    await worker.give(b"", pickle.dumps(tickets))
    await full.wait()
    for _ in range(200):  # the others would begin by then
        await asyncio.sleep(0)
    going.set()
    done = 0
    while done < len(tickets):
        done += sum(one.what == "done" for one in messages.events_of(await worker.take()))
    assert max(at_once) == 2
    await worker.end()


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
    """In the place of the process that holds the connection to Ray: worker 1 is lost with the two attempts
    that it is given, worker 2 executes them."""

    executes, node = 2, "10.0.0.5"
    left_out: ClassVar[list[str]] = []

    def __init__(self, run) -> None:
        self.stdin, self.returncode = self, None
        self.stdout = asyncio.StreamReader()
        self.worker = RayWorker(self.executes)
        self.root: Path = run.config.root
        self._start = WorkerStart(run.config, run.environment.trust, run.run_id, None, {}, True)
        self.given: dict[int, list[int]] = {}
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
            if isinstance(message, messages.Connect):
                self.say(messages.Nodes(1))
                await self.connected()
            elif isinstance(self, TwoWork):
                await self.answers(message)
            elif isinstance(message, messages.Give):
                refs = [ticket.ref for ticket in pickle.loads(message.tickets)]
                self.given.setdefault(message.worker, []).extend(refs)
                if message.worker == self.executes:
                    await self.executes_them(message)
                else:
                    await self.has(message.worker, refs)

    async def executes_them(self, message: messages.Give) -> None:
        await self.worker.give(message.settings, message.tickets)

    async def connected(self) -> None:
        self.say(messages.WorkerUp(1, "10.0.0.4"))

    async def has(self, worker: int, refs: list[int]) -> None:
        """A worker has been given these attempts."""
        self.begins(worker, refs)
        if len(self.given[worker]) == 2:
            self.say(messages.WorkerDown(worker, "it was killed"))
            await self.begin()

    async def begin(self) -> None:
        """Have the worker that executes what it is given."""
        await self.worker.begin(pickle.dumps(self._start), self.node)
        self._tasks.append(asyncio.ensure_future(self._take()))
        self.say(messages.WorkerUp(self.executes, self.node))

    def begins(self, worker: int, refs: list[int]) -> None:
        """A worker says that it has begun these attempts."""
        events = [messages.LoggedEvent(ref, "started", [1.0]) for ref in refs]
        self.say(messages.Happened(worker, messages.batch_of(events)))

    async def _take(self) -> None:
        while True:
            self.say(messages.Happened(self.executes, await self.worker.take()))

    def close(self) -> None:
        self.returncode = 0
        self.stdout.feed_eof()
        for task in self._tasks:
            task.cancel()

    async def wait(self) -> int:
        return 0


@asynccontextmanager
async def executed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cluster: type[Cluster],
    tickets: int,
    told: list[str],
    ends: str = "finished",
    project: dict[str, str] | None = None,
    said: list[str] | None = None,
) -> AsyncIterator[tuple[RunReader, Cluster]]:
    """A run on that cluster, of that project or of `tickets` cases of a scripted agent, at its end: as it is kept."""
    clusters: list[Cluster] = []
    root = tmp_path / "run"
    root.mkdir(exist_ok=True)
    cases = "".join(
        f"  - {{name: case {n}, input: hello {n}, expected: {{should_contain: [hi]}}}}\n"
        for n in range(tickets)
    )
    for name, text in (
        project
        or {
            "tui_eval.yaml": "agents:\n  helper: {type: scripted, script: agent.script.yaml}\n",
            "agent.script.yaml": "default: {say: hi there}\n",
            "suite.yaml": f"agent: helper\ntest_cases:\n{cases}",
        }
    ).items():
        (root / name).write_text(text)
    run = prepare(RunRequest(paths=[str(root)], trust=True, concurrency=tickets))
    assert run.writer is not None
    folder = run.writer.folder

    async def started(*_: object, **__: object) -> Cluster:
        clusters.append(cluster(run))
        return clusters[0]

    monkeypatch.setattr(ray_place.asyncio, "create_subprocess_exec", started)
    monkeypatch.setattr(ray_worker.os, "dup2", lambda *_: None)  # or this process writes nowhere
    run.runner.place = RayPlace("", tickets, run.environment, run.writer, shared=True, say=told.append)
    run.runner.place.left_out = cluster.left_out
    run.on_word = said.append if said is not None else None
    assert await asyncio.wait_for(run.execute(), 30) == ends
    with closing(RunReader(folder)) as reader:
        yield reader, clusters[0]


@pytest.mark.real
async def test_attempts_that_begin_anew_since_their_worker_was_lost_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have been asked, and paid, twice: on the console, in the run's note and in their transcripts."""
    told: list[str] = []
    async with executed(tmp_path, monkeypatch, Cluster, 2, told) as (reader, _):
        note = "2 attempts were begun anew, since 1 worker was lost; what they cost before is not known"
        assert note in reader.info().note
        attempts = [reader.attempt(row.id) for row in reader.attempts()[:2]]
    (line,) = told
    assert line == (
        "ray: worker 1 on 10.0.0.4 is gone (it was killed); 2 attempts begin anew, what they cost before is not known; "
        "no worker is left, waiting for another one"
    )
    for attempt in attempts:
        assert attempt is not None and (attempt.outcome, attempt.ran_on) == ("passed", "worker 2 on 10.0.0.5")
        assert [one.kind for one in attempt.transcript][:2] == ["note", "user"]
        assert (
            "begun anew" in attempt.transcript[0].text
            and "worker 1 on 10.0.0.4" in attempt.transcript[0].text
        )


class LateCluster(Cluster):
    """Another worker is there after a while."""

    async def begin(self) -> None:
        await asyncio.sleep(0.5)
        await super().begin()


async def test_what_was_lost_with_a_worker_is_no_time_of_a_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """neuro-san's limit: `no answer in 1 s`, without having been asked anew."""
    test = """{"agent": "travel", "timeout_in_seconds": 1,
     "interactions": [{"text": "hi", "response": {"text": {"keywords": ["there"]}}}]}"""
    project = {
        "tui_eval.yaml": "agents:\n  neuro-san: {type: scripted, script: agent.script.yaml}\n",
        "agent.script.yaml": "default: {say: hi there}\n",
        "one.hocon": test,
        "two.hocon": test,
    }
    async with executed(tmp_path, monkeypatch, LateCluster, 2, [], project=project) as (reader, _):
        assert [row.message for row in reader.attempts()] == ["passed"] * 2


class TwoWork(Cluster):
    """Both workers execute what they are given."""

    said: ClassVar[list[str]] = []

    def __init__(self, run) -> None:
        super().__init__(run)
        self.workers = {1: RayWorker(1), 2: self.worker}
        self.said.clear()
        run.environment.tell = self.said.append

    async def connected(self) -> None:
        for number, worker in self.workers.items():
            await worker.begin(pickle.dumps(self._start), f"10.0.0.{number}")
            self._tasks.append(asyncio.ensure_future(self._taken(number, worker)))
        for number in self.workers:
            self.say(messages.WorkerUp(number, f"10.0.0.{number}"))

    async def _taken(self, number: int, worker: RayWorker) -> None:
        while True:
            self.say(messages.Happened(number, await worker.take()))

    async def has(self, worker: int, refs: list[int]) -> None:
        raise AssertionError("each executes its own")

    async def answers(self, message: messages.FromEngine) -> None:
        match message:
            case messages.Give():
                await self.workers[message.worker].give(message.settings, message.tickets)
            case messages.Granted():
                await self.workers[message.worker].granted(message.asked, message.seconds)
            case _:
                pass


_JUDGE = """
import os, time
def answer(message):
    name = f"asked/{os.getpid()}-{time.time_ns()}"
    open(name, "x").close()
    time.sleep(0.05)
    with open("at_once.txt", "a") as file:
        file.write(f"{len(os.listdir('asked'))}\\n")
    os.remove(name)
    return '{"pass": true, "score": 1, "reason": "fine"}'
"""


@pytest.mark.real
async def test_a_judge_is_asked_by_all_workers_together_as_often_at_once_as_its_entry_lets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of which a single question is to be asked at a time was asked as many as there are workers."""
    tests = "".join(
        f"  - {{vars: {{q: '{n}'}}, assert: [{{type: llm-rubric, value: polite}}]}}\n" for n in range(8)
    )
    project = {
        "tui_eval.yaml": "judge: {type: python, function: 'judge.py:answer', concurrency: 1}\n",
        "judge.py": _JUDGE,
        "promptfooconfig.yaml": f"prompts: ['{{{{q}}}}']\nproviders: [echo]\ntests:\n{tests}",
    }
    (tmp_path / "run" / "asked").mkdir(parents=True)
    async with executed(tmp_path, monkeypatch, TwoWork, 8, [], project=project) as (reader, cluster):
        made = [reader.attempt(row.id) for row in reader.attempts()]
        assert {one.ran_on for one in made if one is not None} == {
            f"worker {n} on 10.0.0.{n}" for n in (1, 2)
        }
        assert {one.outcome for one in made if one is not None} == {"passed"}
        assert (cluster.root / "at_once.txt").read_text().split() == ["1"] * 8


_HANDED_ON = """
prompts: ['{{q}}']
providers: [echo]
tests:
  - {vars: {q: 'token {{env.SHOP_TOKEN}}'}, options: {storeOutputAs: known}}
  - {vars: {q: 'with {{known}}'}, assert: [{type: regex, value: '^with token [a-z0-9-]{20}$'}]}
"""


async def test_what_a_row_hands_on_is_what_was_answered_not_what_is_recorded_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next row was asked with ••• in the place of a secret, and failed on Ray alone."""
    monkeypatch.setenv("SHOP_TOKEN", "shop-0123456789abcde")
    project = {"tui_eval.yaml": "{}\n", "promptfooconfig.yaml": _HANDED_ON}
    async with executed(tmp_path, monkeypatch, TwoWork, 2, [], project=project) as (reader, _):
        made = [one for row in reader.attempts() if (one := reader.attempt(row.id)) is not None]
        assert [(one.outcome, one.response_text) for one in made] == [
            ("passed", "token •••"),
            ("passed", "with token •••"),
        ]
        assert {one.ran_on[:6] for one in made} == {"worker"}


class Says(TwoWork):
    """Each of its workers says the same."""

    async def connected(self) -> None:
        await super().connected()
        lines = [("told", "openai grades"), ("said", "loading the agent")]
        events = [messages.LoggedEvent(0, what, [line]) for what, line in lines]
        for number in self.workers:
            self.say(messages.Happened(number, messages.batch_of(events)))


async def test_what_is_said_once_of_a_run_is_said_where_the_person_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a model grades which nobody has named, and is paid, was said by workers to nobody."""
    said: list[str] = []
    async with executed(tmp_path, monkeypatch, Says, 2, [], said=said):
        assert Says.said == ["openai grades"]
        assert said == ["loading the agent"]


async def test_a_judge_that_is_typed_as_a_file_is_the_one_below_the_persons_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--judge judge.py:answer`: workers looked for it below their own folder."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "judge.py").write_text("def answer(message):\n    return ''\n")
    (tmp_path / "promptfooconfig.yaml").write_text(_JUDGED)
    (tmp_path / "tui_eval.yaml").write_text("run: {files: shared}\n")
    monkeypatch.setattr(ray_place, "check_ray", lambda address: None)  # which need not be installed
    monkeypatch.chdir(tmp_path / "here")
    request = RunRequest(paths=[".."], judge="judge.py:answer", trust=True, on="10.0.0.4:6379")
    run = prepare(request)
    place = run.runner.place
    assert isinstance(place, RayPlace) and run.writer is not None
    start: WorkerStart = pickle.loads(pickle.dumps(place._start()))
    run.writer.close()
    monkeypatch.chdir(tmp_path)
    context = FarContext(start.config, start.trust, EventLog(tmp_path), {})
    context.typed_judge, context.judge_typed = start.judge, start.typed_judge
    spec = context.judge_spec("judge.py:answer")
    assert spec is not None and spec.base == str(tmp_path / "here")
    await context.close()


async def test_a_worker_passes_on_what_is_said_once(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    context = FarContext(Config(root=tmp_path), Trust(True), log, {})
    for _ in range(2):
        context.tell_once("openai grades")
        context.say_once("loading the agent")
    events = [(one.ref, one.what, one.given) for one in messages.events_of(await log.take())]
    assert events == [(0, "told", ["openai grades"]), (0, "said", ["loading the agent"])]
    await context.close()


class HeadDies(Cluster):
    """Its head dies when worker 1 has begun two of the three attempts that it is given: without a word, or with one of
    the worker before."""

    worker_first = False

    async def has(self, worker: int, refs: list[int]) -> None:
        if len(self.given[worker]) < 3:
            return
        self.begins(worker, self.given[worker][:2])
        if self.worker_first:
            self.say(messages.WorkerDown(worker, "its machine is gone"))
        self.say(messages.Gone("the cluster at 10.0.0.3:6379 is gone"))
        self.say(messages.Gone("it is gone still"))


@pytest.mark.parametrize("worker_first", [False, True])
async def test_attempts_that_were_under_way_when_the_cluster_was_lost_are_told_and_so_is_who_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker_first: bool
) -> None:
    """They are asked, and paid, twice: as with a worker that is lost, it is on the console and in the run's note."""
    monkeypatch.setattr(HeadDies, "worker_first", worker_first)
    begun = "2 attempts were under way when the cluster was lost and begin anew when the run goes on, what they cost before is not known"
    gone = "ray: the cluster at 10.0.0.3:6379 is gone"
    async with executed(tmp_path, monkeypatch, HeadDies, 3, told := [], "interrupted") as (reader, _):
        assert reader.info().note == f"{gone}; {begun}"
        assert told[-1] == f"ray: {begun}" and len(told) == 1 + worker_first
        folder = reader.folder
    again = await asyncio.to_thread(resume, folder, overrides=RunRequest(on="here", trust=True))
    asked = (
        "asked again: at least 2 attempts that were under way when the run was cut off; what they cost before is not "
        "known"
    )
    assert again.said_first == [asked]
    assert await again.execute() == "finished"
    with closing(RunReader(folder)) as reader:
        assert reader.info().note == asked


async def test_a_cluster_that_is_lost_before_anything_began_is_no_reason_to_tell_of_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NeverThere(Cluster):
        async def connected(self) -> None:
            self.say(messages.Gone("no cluster answers"))

    async with executed(tmp_path, monkeypatch, NeverThere, 1, told := [], "interrupted") as (reader, _):
        assert reader.info().note == "ray: no cluster answers"
        folder = reader.folder
    again = await asyncio.to_thread(resume, folder, overrides=RunRequest(on="here", trust=True))
    assert (told, again.said_first) == ([], [])
    assert await again.execute() == "finished"


class ThreeAreLost(Cluster):
    """Workers 1 and 2 are lost with the two attempts that they have begun, worker 3 with one of them."""

    executes = 4

    async def has(self, worker: int, refs: list[int]) -> None:
        self.begins(worker, refs if worker < 3 else [ref for ref in refs if ref == self.given[1][0]])
        if len(self.given[worker]) == 2:
            self.say(messages.WorkerDown(worker, "it was killed"))
            if worker < 3:
                self.say(messages.WorkerUp(worker + 1, f"10.0.1.{worker}"))
            else:
                await self.begin()


@pytest.mark.real
async def test_an_attempt_that_is_lost_several_times_is_one_and_its_end_as_an_error_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with executed(tmp_path, monkeypatch, ThreeAreLost, 2, []) as (reader, _):
        note = (
            "2 attempts were begun anew, of which 1 ended as an error, since 3 workers were lost; what they cost before "
            "is not known"
        )
        assert note in reader.info().note
        assert sorted(str(row.outcome) for row in reader.attempts()) == ["error", "passed"]


class DyingMachine(Cluster):
    """Workers 1 and 2 are on a machine that dies, which is heard of them one after the other; 4 comes on it and does
    nothing."""

    executes = 3

    async def connected(self) -> None:
        self.held: list[messages.Give] | None = []
        await self.begin()
        for worker in (1, 2):
            self.say(messages.WorkerUp(worker, "10.0.0.4"))

    async def executes_them(self, message: messages.Give) -> None:
        if self.held is None:
            return await super().executes_them(message)
        self.held.append(message)
        await self.dies()

    async def has(self, worker: int, refs: list[int]) -> None:
        self.begins(worker, refs)
        await self.dies()

    async def dies(self) -> None:
        """Once each worker has two."""
        if self.held is None or sorted(map(len, self.given.values())) != [2, 2, 2]:
            return
        for number in (1, 2):
            self.say(messages.WorkerDown(number, "its machine is gone"))
            await asyncio.sleep(0.05)
        self.say(messages.WorkerUp(4, "10.0.0.4"))
        held, self.held = self.held, None
        for message in held:
            await super().executes_them(message)


@pytest.mark.real
async def test_a_machine_that_dies_is_one_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its first worker had is not given to its second, of which it is not yet known."""
    told: list[str] = []
    async with executed(tmp_path, monkeypatch, DyingMachine, 6, told) as (reader, cluster):
        note = "4 attempts were begun anew, since 2 workers were lost; what they cost before is not known"
        assert note in reader.info().note
        rows = [row for row in reader.attempts() if row.state == "done"]
        attempts = [reader.attempt(row.id) for row in rows]
    anew = [
        sum("begun anew" in entry.text for entry in one.transcript) for one in attempts if one is not None
    ]
    assert sorted(anew) == [0, 0, 1, 1, 1, 1]
    assert {one.ran_on for one in attempts if one is not None} == {"worker 3 on 10.0.0.5"}
    assert (len(cluster.given[1]), len(cluster.given[2]), len(cluster.given[3])) == (2, 2, 6)


class NeverBegins(Cluster):
    """Each worker is lost with what it is given, which has not begun."""

    executes = 0

    async def has(self, worker: int, refs: list[int]) -> None:
        self.say(messages.WorkerDown(worker, ""))
        self.say(messages.WorkerUp(worker + 1, "10.0.0.4"))


async def test_what_has_not_begun_is_not_begun_anew_and_not_given_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_place, "_MOMENT", 0.0)
    async with executed(tmp_path, monkeypatch, NeverBegins, 1, told := []) as (reader, cluster):
        assert reader.info().note == ""
        (attempt,) = [reader.attempt(row.id) for row in reader.attempts() if row.state == "done"]
    assert attempt is not None
    assert (attempt.outcome, attempt.error) == ("error", "worker lost, 10 times: worker 10 on 10.0.0.4")
    assert len(cluster.given) == 10
    assert not [line for line in told if "anew" in line]


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


class RayError(Exception):
    """In the place of Ray's own."""


NO_FILES = RayError(
    "Failed to set up runtime environment.\nCould not create the actor because its associated runtime env failed to be created.\n"
    "Traceback (most recent call last):\n  File agent.py\nOSError: Failed to download runtime_env file package gcs://1.zip"
)


def test_why_a_worker_could_not_begin_is_never_nothing() -> None:
    imports = (
        "The actor died because of an error raised in its creation task, ray::RayWorker.__init__()\n"
        "RuntimeError: The actor with name RayWorker failed to import on the worker. This may be so:\n\n"
        "Traceback (most recent call last):\nModuleNotFoundError: No module named 'tui_eval.engine'"
    )
    for error, why in (
        (NO_FILES, "OSError: Failed to download runtime_env file package gcs://1.zip"),
        (
            RayError(imports),
            "RuntimeError: The actor with name RayWorker failed to import on the worker. This may be so: "
            "ModuleNotFoundError: No module named 'tui_eval.engine'",
        ),
        (
            RayError("The actor died unexpectedly.\n\tpid: 1\nIts process has ended."),
            "Its process has ended.",
        ),
        (RayError("The actor died unexpectedly."), "The actor died unexpectedly."),
        (RayError("its node has died"), "its machine is gone"),
        (RayError(""), "RayError"),
        (ray_driver.NoWorker("it has tui-eval 1"), "it has tui-eval 1"),
    ):
        assert ray_driver.why_not(error, RayError) == why


class FakeRay:
    """Two machines of one processor each; where `bad`, workers end with that before they say where they are, else as
    `good` lets them."""

    def __init__(self, bad: dict[str, Exception]) -> None:
        self.exceptions = SimpleNamespace(RayError=RayError)
        self.bad, self.good = bad, asyncio.Event()
        self.tried: list[str] = []
        self.answers, self.free = True, 2.0
        self.frozen = ""
        self._spread = 0

    def available_resources(self) -> dict[str, float]:
        return {"CPU": self.free} if self.free else {}

    def nodes(self) -> list[dict[str, object]]:
        if not self.answers:
            raise RayError("Failed to connect to GCS")
        return [
            {
                "NodeID": node * 40,
                "NodeManagerAddress": f"10.0.0.{node}",
                "Alive": True,
                "Resources": {"CPU": 1.0},
            }
            for node in "45"
        ]

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(get_node_id=lambda: "4" * 40)

    def remote(self, _: type) -> SimpleNamespace:
        return SimpleNamespace(
            options=lambda **given: SimpleNamespace(remote=lambda _: self._worker(**given))
        )

    def kill(self, _: object) -> None:
        pass

    def _worker(self, *, scheduling_strategy: object, **_: object) -> SimpleNamespace:
        if scheduling_strategy == "SPREAD":
            self._spread += 1
            node = "45"[self._spread % 2]
        else:
            node = str(scheduling_strategy)[0]
        self.tried.append(node)

        async def where() -> str:
            if node in self.bad:
                raise self.bad[node]
            return f"10.0.0.{node} (node {node * 6})"

        async def begin(*_: object) -> dict[str, str]:
            await self.good.wait()
            return {"version": __version__, "lacks": ""}

        async def stream() -> AsyncIterator[asyncio.Future[bytes]]:
            await asyncio.Event().wait()
            yield asyncio.Future()

        async def works() -> None:
            if node == self.frozen:
                await asyncio.Event().wait()

        async def end() -> None:
            pass

        calls = {"where": where, "begin": begin, "stream": stream, "works": works, "end": end}
        return SimpleNamespace(**{name: SimpleNamespace(remote=call) for name, call in calls.items()})


@asynccontextmanager
async def driven(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[messages.ToEngine]]:
    """What a driver says."""
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: node)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)  # pyright: ignore[reportArgumentType]
    monkeypatch.setattr(ray_driver, "_LOOK", 0.001)
    monkeypatch.setattr(ray_driver, "_PAUSE", 0.002)
    said: list[messages.ToEngine] = []
    driver = ray_driver.Driver(ray, messages.Connect("10.0.0.3:6379", 2, "", b""), io.BytesIO())
    monkeypatch.setattr(driver, "_say", said.append)
    reader = asyncio.StreamReader()
    serving = asyncio.ensure_future(driver.serve(reader))
    try:
        yield said
    finally:
        reader.feed_eof()
        await serving


async def test_a_machine_where_no_worker_can_begin_is_said_once_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often it is tried while another one is still starting."""
    ray = FakeRay({"4": NO_FILES})
    async with driven(ray, monkeypatch) as said:
        await until(lambda: ray.tried.count("4") >= 5, 20)
        ray.good.set()
        await until(lambda: any(isinstance(one, messages.WorkerUp) for one in said), 20)
    refused = messages.MachineRefuses(
        "10.0.0.4 (node 444444)", "OSError: Failed to download runtime_env file package gcs://1.zip"
    )
    up = messages.WorkerUp(ray.tried.index("5") + 1, "10.0.0.5 (node 555555)")
    assert said == [messages.Nodes(2), refused, up]


async def test_a_head_that_does_not_answer_is_said_while_its_workers_work_and_that_it_answers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a minute all read as if it were well."""
    monkeypatch.setattr(ray_driver, "_SILENT", 0.02)
    ray = FakeRay({})
    ray.good.set()
    async with driven(ray, monkeypatch) as said:
        await until(lambda: sum(isinstance(one, messages.WorkerUp) for one in said) == 2, 20)
        ray.answers = False
        await until(lambda: sum(isinstance(one, messages.Silent) for one in said) >= 2, 20)
        ray.answers = True
        await until(lambda: said[-1] == messages.Silent(0.0), 20)
    seconds = [one.seconds for one in said if isinstance(one, messages.Silent)]
    assert seconds[:-1] == sorted(seconds[:-1]) and seconds[0] > 0
    assert not any(isinstance(one, messages.Gone) for one in said)


async def test_a_worker_that_stands_still_is_lost_but_not_while_the_head_is_silent_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its attempts had no time limit any more, nothing was said, and the run never ended."""
    for name, seconds in (("_ASKED", 0.001), ("_FROZEN", 0.05), ("_SILENT", 0.02)):
        monkeypatch.setattr(ray_driver, name, seconds)
    ray = FakeRay({})
    ray.good.set()
    async with driven(ray, monkeypatch) as said:
        await until(lambda: sum(isinstance(one, messages.WorkerUp) for one in said) == 2, 20)
        ray.answers = False
        await until(lambda: any(isinstance(one, messages.Silent) for one in said), 20)
        ray.frozen = "5"
        await asyncio.sleep(0.3)
        assert not any(isinstance(one, messages.WorkerDown) for one in said)
        ray.answers = True
        await until(lambda: any(isinstance(one, messages.WorkerDown) for one in said), 20)
    up = next(one for one in said if isinstance(one, messages.WorkerUp) and "10.0.0.5" in one.node)
    down = next(one for one in said if isinstance(one, messages.WorkerDown))
    assert down == messages.WorkerDown(up.worker, "it does not answer any more, for 0 s")


async def test_that_all_processors_are_in_use_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_driver, "_BUSY", 0.0)
    ray = FakeRay({})
    ray.free = 0.0
    waits = messages.Waits(
        "waiting for workers: all 2 processors are in use, by others or by workers that are being started"
    )
    async with driven(ray, monkeypatch) as said:
        await until(lambda: waits in said, 20)
        ray.good.set()
        await until(lambda: sum(isinstance(one, messages.WorkerUp) for one in said) == 2, 20)
    assert said.count(waits) == 1


class Silence(Cluster):
    """Its head is silent for a while, and no processor was free before."""

    async def connected(self) -> None:
        self.say(messages.Waits("waiting for workers: all 2 processors are in use"))
        self.say(messages.WorkerUp(1, "10.0.0.4"))

    async def has(self, worker: int, refs: list[int]) -> None:
        if len(self.given[worker]) == 2:
            for seconds in (15.0, 30.0, 0.0):
                self.say(messages.Silent(seconds))
            self.say(messages.WorkerDown(worker, ""))
            await self.begin()


@pytest.mark.real
async def test_where_a_run_is_says_what_is_waited_for_and_that_the_head_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[str] = []
    update = RunWriter.update_info

    def kept(writer: RunWriter) -> None:
        if writer.info.place not in words[-1:]:
            words.append(writer.info.place)
        update(writer)

    monkeypatch.setattr(RunWriter, "update_info", kept)
    async with executed(tmp_path, monkeypatch, Silence, 2, told := []):
        pass
    worker = "ray · 1 node · 1 worker"
    begin = words.index("ray · waiting for workers")
    assert words[begin : begin + 7] == [
        "ray · waiting for workers",
        "ray · waiting for workers: all 2 processors are in use",
        worker,
        f"{worker} · its head does not answer, since 15 s",
        f"{worker} · its head does not answer, since 30 s",
        worker,
        "ray · waiting for workers",
    ]
    assert told[:3] == [
        "ray: waiting for workers: all 2 processors are in use",
        "ray: the cluster's head does not answer, since 15 s; what its workers have goes on until it is given up",
        "ray: the cluster's head answers again",
    ]


async def test_no_worker_can_begin_says_why_in_rays_own_words_where_there_are_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = FakeRay(
        {"4": NO_FILES, "5": RayError("The actor died unexpectedly.\n\tpid: 1\nIts process has ended.")}
    )
    async with driven(ray, monkeypatch) as said:
        await until(lambda: any(isinstance(one, messages.Gone) for one in said), 20)
    ends = next(one for one in said if isinstance(one, messages.Gone))
    assert ends.why in (
        "no worker can begin: OSError: Failed to download runtime_env file package gcs://1.zip",
        "no worker can begin: Its process has ended.",
    )
    assert sum(isinstance(one, messages.MachineRefuses) for one in said) == 2


def test_a_machine_that_refuses_is_tried_ever_more_seldom_and_one_worker_at_a_time() -> None:
    machines = ray_driver.Machines()
    machines.seen([ray_driver.Machine("4" * 40, "", 3), ray_driver.Machine("5" * 40, "", 1)])
    machines.started(1, "")
    assert machines.next(0) == ""  # as Ray likes
    machines.on(1, "10.0.0.4 (node 444444)")
    machines.refused(1, 0.0, for_good=False)
    machines.ended(1)
    assert machines.next(0) == "5" * 40
    machines.started(2, "5" * 40)
    machines.begun(2)
    tried: list[int] = []
    for second in range(200):
        if machines.next(second) == "4" * 40:
            tried.append(second)
            machines.started(10 + second, "4" * 40)
            assert machines.next(second) is None
            machines.refused(10 + second, second, for_good=False)
            machines.ended(10 + second)
    assert tried == [1, 3, 7, 15, 31, 63, 123, 183]
    machines.started(3, "4" * 40)
    machines.begun(3)
    assert machines.next(200) == ""


async def test_a_worker_of_another_version_says_which_and_reads_nothing_that_it_may_not_understand() -> None:
    found = await RayWorker(1).begin(b"nothing that this version knows", "10.0.0.4", "0.0.1")
    assert found["version"] == __version__


async def test_a_machine_without_the_shared_folder_or_with_a_copy_of_it_is_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would swallow the run: its attempts, without their files, are errors at once."""
    monkeypatch.setattr(ray_worker, "_LATE", 0.0)
    copy = tmp_path / "copy"
    copy.mkdir()
    for root, mark in ((tmp_path / "none", ""), (copy, str(copy / ".tui-eval" / "runs" / "1"))):
        start = WorkerStart(Config(root=root), Trust(True), "1", None, {"PWD": "never set"}, True, mark)
        found = await RayWorker(1).begin(pickle.dumps(start), "10.0.0.4")
        assert found["lacks"] == (
            f"it does not have the project at {root}, or only a copy of it (`files: shared`: one folder of all machines)"
        )
        assert os.environ.get("PWD") != "never set"


def test_of_a_shared_folder_the_runs_own_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("agents:\n  helper: {type: scripted, script: a.yaml}\n")
    (tmp_path / "suite.yaml").write_text("agent: helper\ntest_cases: [{name: a, input: b}]\n")
    run = prepare(RunRequest(paths=[str(tmp_path)], trust=True))
    assert run.writer is not None
    marks = [
        RayPlace(address, 1, run.environment, run.writer, shared=shared)._start().mark
        for address, shared in (("10.0.0.4:6379", True), ("10.0.0.4:6379", False), ("", True))
    ]
    run.writer.close()
    assert marks == [str(run.writer.folder), "", ""] and run.writer.folder.name == run.run_id


class LacksAFile(Cluster):
    """What the agent is made of was not sent."""

    left_out: ClassVar = ["agent.script.yaml", *(f"{n}.txt" for n in range(5))]

    async def connected(self) -> None:
        (self.root / "agent.script.yaml").unlink()
        await self.begin()


async def test_a_file_that_was_left_out_is_the_error_and_stands_in_the_runs_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`there is no file …` was no truth: here there is."""
    async with executed(tmp_path, monkeypatch, LacksAFile, 1, []) as (reader, _):
        assert reader.info().note == (
            "not sent to the cluster, for a secret in them: agent.script.yaml, 0.txt, 1.txt, 2.txt, 3.txt and 1 more"
        )
        (row,) = [row for row in reader.attempts() if row.state == "done"]
        attempt = reader.attempt(row.id)
    why = "agent.script.yaml was not sent to the cluster: a secret stands in it ("
    assert attempt is not None and attempt.outcome == "error"
    assert str(attempt.error).startswith(why) and str(row.message).startswith(why)
    assert cause_of(attempt).startswith(why)  # what the table has


@pytest.mark.parametrize(
    ("error", "file", "names"),
    [
        ("agents.odd.function: there is no file /p/below/odd.py", "below/odd.py", True),
        ("ModuleNotFoundError: No module named 'odd'", "below/odd.py", True),
        ("No module named 'below.odd'", "below/odd.py", True),
        ("No module named 'numpy'", "below/odd.py", False),
        ("there is no file /p/not-odd.py", "odd.py", False),
        ("cut off after 4 s", "s.txt", False),
    ],
)
def test_which_errors_are_about_a_file(error: str, file: str, names: bool) -> None:
    assert sent_project.is_about(error, file) is names


@pytest.mark.parametrize("where_it_stands", ["odd.py", "below/keys.py"])
def test_an_agents_file_with_a_secret_is_refused_before_a_run_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where_it_stands: str
) -> None:
    """Also where it is but imported; of an agent that is not asked it is no matter."""
    monkeypatch.setenv("ODD_API_KEY", SECRET)
    monkeypatch.setattr(ray_place, "check_ray", lambda address: None)  # which need not be installed
    (tmp_path / "below").mkdir()
    texts = {"odd.py": "import below.keys\n\n\ndef answer(m):\n    return m\n", "below/keys.py": ""}
    texts[where_it_stands] += f"KEY = '{SECRET}'\n"
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  odd: {type: python, function: 'odd.py:answer'}\n  plain: {type: echo}\n"
        "judge: {type: openai, model: m, api_key: '${ODD_API_KEY}'}\n"
    )
    (tmp_path / "suite.yaml").write_text("agent: odd\ntest_cases: [{name: a, input: b}]\n")
    with pytest.raises(ConfigError) as refused:
        prepare(RunRequest(paths=[str(tmp_path)], trust=True, on="10.0.0.4:6379"))
    assert str(refused.value).startswith(
        f"agents.odd: {where_it_stands} is not sent to a cluster: a secret stands in it; "
    )
    assert "\n" not in str(refused.value) and not (tmp_path / ".tui-eval" / "runs").exists()
    for request in (
        RunRequest(paths=[str(tmp_path)], trust=True, on="10.0.0.4:6379", agents=["plain"]),
        RunRequest(paths=[str(tmp_path)], trust=True, on="ray"),
    ):
        run = prepare(request)
        assert run.writer is not None
        run.writer.close()


class OneRefuses(Cluster):
    """A machine where no worker can begin, beside one that has one."""

    async def connected(self) -> None:
        self.say(messages.MachineRefuses("10.0.0.4", "it has tui-eval 0.1, and this is 1"))
        await self.begin()


async def test_a_machine_without_a_worker_is_told_and_stands_in_the_runs_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with executed(tmp_path, monkeypatch, OneRefuses, 2, told := []) as (reader, _):
        assert reader.info().note == "no worker could begin on 10.0.0.4: it has tui-eval 0.1, and this is 1"
    assert told == ["ray: no worker could begin on 10.0.0.4: it has tui-eval 0.1, and this is 1"]


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
    assert ray_driver.why_ended(code, address, bool(nodes), log) == told
    if not nodes:
        with log.open("a") as more:
            more.write(
                "*** StackTrace Information ***\n/x/_raylet.so(+0x129) [0x7f] ray::RayLog::~RayLog()\n"
            )
        assert ray_driver.why_ended(code, address, False, log) == told
        log.write_text(
            "Traceback (most recent call last):\n  File 'x'\nModuleNotFoundError: No module named 'ray'\n"
        )
        raised = "there is no connection: ModuleNotFoundError: No module named 'ray'"
        assert ray_driver.why_ended(code, address, False, log) == raised


@pytest.mark.parametrize("on", ["ray:10", "here:2", "host:0", "ray://host:99999"])
def test_what_is_no_place_says_what_is_expected(on: str) -> None:
    with pytest.raises(Wrong, match=r"must be here, ray .*HOST:PORT") as wrong:
        where(on)
    assert ("-j" in str(wrong.value)) == on.startswith(("ray:1", "here"))


def test_hosts_with_ports_are_places() -> None:
    for on in ("here", "ray", "ray://ray:10001", "10.0.0.4:6379", "[::1]:6379"):
        assert where(on) == on


_JUDGED = """
prompts: ["{{q}}"]
providers: [echo]
tests:
  - {vars: {q: one}, assert: [{type: llm-rubric, value: polite}]}
  - {vars: {q: two}, assert: [{type: contains, value: two}]}
"""


@pytest.mark.parametrize(
    ("judge", "anew", "here"),
    [
        ("", False, [None, None]),
        (", cache: true", False, ["attempts with answers that are kept", None]),
        ("", True, ["attempts with answers that are kept"] * 2),
    ],
)
def test_what_has_kept_answers_or_replaces_them_is_asked_where_these_are(
    tmp_path: Path, judge: str, anew: bool, here: list[str | None]
) -> None:
    """Judges' answers too: on Ray each was asked, and paid, again, and `--failed` left the answer that was
    kept as it was."""
    (tmp_path / "tui_eval.yaml").write_text(
        f"judge: {{type: openai, model: m, base_url: 'http://127.0.0.1:9/v1'{judge}}}\n"
    )
    (tmp_path / "promptfooconfig.yaml").write_text(_JUDGED)
    with closing(AnswerCache(tmp_path)) as cache:
        cache.put(b"key", b"{}")
    run = prepare(RunRequest(paths=[str(tmp_path)], trust=True, anew=anew))
    assert [what_runs_here(job, run.environment) for job in run.jobs] == here


@pytest.mark.parametrize(
    ("cache", "said"),
    [(True, "ray is not used: attempts with answers that are kept run on this machine"), (None, None)],
)
def test_a_run_of_which_nothing_goes_to_a_worker_waits_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: bool | None, said: str | None
) -> None:
    """Starting Ray takes half a minute and more; where no cluster answered, what needs none ended the run."""
    monkeypatch.setattr(ray_place, "check_ray", lambda address: None)
    (tmp_path / "promptfooconfig.yaml").write_text(_JUDGED)
    run = prepare(RunRequest(paths=[str(tmp_path)], trust=True, on="ray", cache=cache))
    assert run.said_first == ([said] if said else [])
    assert isinstance(run.runner.place, Here if said else RayPlace)
