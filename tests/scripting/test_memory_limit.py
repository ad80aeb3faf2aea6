"""A script that allocates without end ends, and says why; the machine and its neighbours go on."""

from __future__ import annotations

import asyncio
import resource
import shutil
import sys
from pathlib import Path

import pytest

from tui_eval.agents.programs.command import run_program
from tui_eval.javascript.node_host import NodeHost
from tui_eval.scripting import memory_limit, script_process
from tui_eval.scripting.python.python_host import PythonHost
from tui_eval.scripting.python.python_worker_memory import RESERVE, lowered
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
    assert memory_limit.limit_of(None) >= memory_limit.LEAST
    assert memory_limit.limit_of(3) == 3 << 30
    none = resource.RLIM_INFINITY
    assert lowered((none, none), 100) == (100, 100 + RESERVE)
    assert lowered((50, none), 100) == (50, 100 + RESERVE)
    assert lowered((50, 80), 100) == (50, 80)
    assert lowered((200, none), 100) == (100, 100 + RESERVE)


def test_what_node_says_of_its_own_heap_is_no_limit_of_ours() -> None:
    said = b"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"
    assert "--max-old-space-size" in memory_limit.spent(1 << 30, said)
