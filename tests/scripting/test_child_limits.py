"""A script that allocates without end ends, and says why; the machine and its neighbours go on. What runs
ends with us."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tui_eval.agents.programs.command import run_program
from tui_eval.javascript.node_host import NodeHost
from tui_eval.scripting import child_limits, script_process
from tui_eval.scripting.python.python_host import PythonHost
from tui_eval.scripting.python.python_worker_memory import RESERVE, lowered
from tui_eval.scripting.python.python_worker_watcher import descendants, kill
from tui_eval.scripting.script_host import ScriptError

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits other processes")

GIGABYTES = 0.4
SAID = "the script needs more than 0.4 GB of memory (run.script_memory)"
PYTHON = """
import os, resource, subprocess, sys

KEPT = []


def large():
    kept = []
    while True:
        kept.append(bytearray(10_000_000))


def small():
    while True:
        KEPT.append([len(KEPT)])


def aborts():  # as Rust's and C++'s allocators end
    os.write(2, b"memory allocation of 8000 bytes failed\\n")
    os.abort()


def starts():
    code = "kept = []\\nwhile True: kept.append(bytearray(10_000_000))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    return done.stderr.decode().splitlines()[-1]


def reserves():  # as a library does that uses little of it
    import mmap

    return len(mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=0))


def fine():
    return os.getpid()


def core():
    return resource.getrlimit(resource.RLIMIT_CORE)[0]
"""
NODE = """
const kept = [];
exports.buffers = () => { while (true) kept.push(Buffer.alloc(10_000_000, 1)); };
exports.heap = () => { while (true) kept.push(new Array(1000).fill(Math.random())); };
exports.fine = () => 1;
"""


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("function", ["large", "small", "aborts"])
async def test_python_without_end_is_an_error_of_its_own(tmp_path: Path, function: str) -> None:
    file = tmp_path / "it.py"
    file.write_text(PYTHON, "utf-8")
    host = PythonHost(tmp_path, GIGABYTES)
    try:
        before = (await host.call(file, "fine")).value
        with pytest.raises(ScriptError) as failed:
            await host.call(file, function)
        assert SAID in str(failed.value) and failed.value.code == "script-memory-limit"
        assert (await host.call(file, "fine")).value != before  # what it may hold is given back
    finally:
        await asyncio.to_thread(host.close)


@pytest.mark.real
async def test_what_python_starts_has_the_limit_too_and_address_space_is_free(tmp_path: Path) -> None:
    file = tmp_path / "it.py"
    file.write_text(PYTHON, "utf-8")
    host = PythonHost(tmp_path, GIGABYTES)
    try:
        assert (await host.call(file, "starts")).value == "MemoryError"
        assert (await host.call(file, "reserves")).value == 64 << 30
        assert (await host.call(file, "core")).value == 0  # gigabytes into the project's folder
    finally:
        await asyncio.to_thread(host.close)


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
@pytest.mark.parametrize("function", ["buffers", "heap"])
async def test_node_without_end_is_an_error_of_its_own(tmp_path: Path, function: str) -> None:
    file = tmp_path / "it.js"
    file.write_text(NODE, "utf-8")
    host = NodeHost(tmp_path, GIGABYTES)
    try:
        with pytest.raises(ScriptError) as failed:
            await host.call(file, function)
        assert SAID in str(failed.value) and failed.value.code == "script-memory-limit"
        assert (await host.call(file, "fine")).value == 1
    finally:
        await asyncio.to_thread(host.close)


async def test_a_command_has_the_limit_too(tmp_path: Path) -> None:
    code = "import sys; sys.stdin.read()\nkept = []\nwhile True: kept.append(bytearray(10_000_000))"
    status, _, errors = await run_program([sys.executable, "-c", code], b"", tmp_path, {}, GIGABYTES)
    assert status == 1 and errors.decode().rstrip().endswith("MemoryError")


async def test_an_answer_is_taken_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_process, "LARGEST", 1_000_000)
    file = tmp_path / "it.py"
    file.write_text("def it(size):\n    return 'x' * size\n", "utf-8")
    host = PythonHost(tmp_path)
    try:
        assert len((await host.call(file, "it", [900_000])).value) == 900_000
        with pytest.raises(ScriptError, match="an answer of more than 1 MB"):
            await host.call(file, "it", [2_000_000])
        assert (await host.call(file, "it", [1])).value == "x"
    finally:
        await asyncio.to_thread(host.close)


def test_the_usual_limit_is_half_of_the_machine_and_no_limit_is_raised() -> None:
    assert child_limits.limit_of(None) >= child_limits.LEAST
    assert child_limits.limit_of(3) == 3 << 30
    none = resource.RLIM_INFINITY
    assert lowered((none, none), 100) == (100, 100 + RESERVE)
    assert lowered((50, none), 100) == (50, 100 + RESERVE)
    assert lowered((50, 80), 100) == (50, 80)
    assert lowered((200, none), 100) == (100, 100 + RESERVE)


def test_what_node_says_of_its_own_heap_is_no_limit_of_ours() -> None:
    said = b"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"
    assert "--max-old-space-size" in child_limits.spent(1 << 30, said)


SLEEPS = "providers: ['exec: sh -c \"sleep 3600; echo\"']\ntests: [{vars: {x: 1}}]\n"
LOOPS = "providers: ['file://loop.js']\ntests: [{vars: {x: 1}}]\n"
MATCHES = """
providers: [echo]
tests: [{vars: {x: 1}, assert: [{type: javascript, value: "/^(a+)+$/.test('a'.repeat(60) + 'b')"}]}]
"""
LOOP = "module.exports = class { id() { return 'p' } async callApi() { while (true) {} } };\n"


def _stat(pid: int) -> tuple[str, str, int]:
    """What a process is called, its state, and the hundredths of a second that it has worked; nothing of one
    that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", "", 0
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return name, rest[0], int(rest[11]) + int(rest[12])


def _until(there: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + 60
    while not (found := there()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return found


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("suite", "program"), [(SLEEPS, "sleep"), (LOOPS, "node"), (MATCHES, "")], ids=["exec", "node", "isolate"]
)
def test_what_runs_ends_when_its_engine_is_killed(tmp_path: Path, suite: str, program: str) -> None:
    """It went on for good (`sleep 3600`, a loop at 100 %), and the resumed run started it a second time."""
    if program and shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    (tmp_path / "promptfooconfig.yaml").write_text(f"prompts: ['{{{{x}}}}']\n{suite}")
    (tmp_path / "loop.js").write_text(LOOP)
    with subprocess.Popen(
        [sys.executable, "-m", "tui_eval", "run", ".", "--trust", "--no-store"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as run:  # fmt: skip

        def at_work() -> list[int]:
            stats = {pid: _stat(pid) for pid in descendants(run.pid)}
            return [pid for pid, (name, _, spent) in stats.items() if name == "sleep" or spent > 100]

        try:
            working = _until(at_work, "it never began")
        finally:
            run.kill()
        run.wait()
        try:
            _until(lambda: all(_stat(pid)[1] in ("", "Z") for pid in working), "it goes on")
        finally:
            kill(working)


def test_a_shell_that_was_ended_is_replaced_and_knows_all_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    spawn = os.posix_spawn

    def spawned(*given: Any, **more: Any) -> int:
        begun.append(spawn(*given, **more))
        return begun[-1]

    pipes: list[tuple[int, int]] = []
    pipe = os.pipe

    def piped() -> tuple[int, int]:
        pipes.append(pipe())
        return pipes[-1]

    groups = child_limits.Groups()
    sleeping = [subprocess.Popen(["sleep", "3600"], start_new_session=True) for _ in range(3)]
    monkeypatch.setattr(os, "posix_spawn", spawned)
    monkeypatch.setattr(os, "pipe", piped)
    try:
        groups.add(sleeping[0].pid)
        os.kill(begun[0], signal.SIGKILL)
        os.waitpid(begun[0], 0)
        groups.add(sleeping[1].pid)
        groups.add(sleeping[2].pid)
        groups.remove(sleeping[1].pid)
        assert len(begun) == 2
        os.close(pipes[-1][1])  # as when this process ends
        assert os.waitpid(begun[1], 0)[1] == 0
        assert [sleeping[0].wait(20), sleeping[2].wait(20)] == [-signal.SIGKILL] * 2
        assert sleeping[1].poll() is None
    finally:
        for one in sleeping:
            one.kill()
            one.wait()
