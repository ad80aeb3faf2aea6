"""People's Python in child processes: answers, errors, edits, kills."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import ROOT
from tui_eval.events import Finished, TextDelta, ToolCall
from tui_eval.scripting.python.python_host import CallResult, PythonHost, ScriptError, ScriptTimeout, printed
from tui_eval.scripting.script_process import calls_in_words

Write = Callable[..., Path]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[PythonHost]:
    host = PythonHost(tmp_path)
    yield host
    host.close()


@pytest.fixture
def script(tmp_path: Path) -> Write:
    def write(text: str, name: str = "agent.py") -> Path:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    return write


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - it looks at another process
            await asyncio.sleep(0.01)


async def test_returns_values_and_what_was_printed(host: PythonHost, script: Write) -> None:
    file = script(
        "import os, sys, subprocess\n"
        "def answer(message, times=1):\n"
        "    print('thinking', file=sys.stderr)\n"
        "    os.write(1, b'raw')\n"
        "    return message * times, {'cwd': os.getcwd(), 'path': sys.path[0]}\n"
    )
    result = await host.call(file, "answer", ["hä\ud800"], {"times": 2})
    assert result.value == ["hä\ud800hä\ud800", {"cwd": str(file.parent), "path": str(file.parent)}]
    assert result.stdout == "thinking\nraw"


async def test_what_a_call_prints_is_known_before_it_ends(host: PythonHost, script: Write) -> None:
    """One that hung until its time was over had printed why, and it was nowhere to be seen."""
    file = script(
        "import pathlib, time\n"
        "def hang():\n"
        "    print('waiting for the lock')\n"
        "    time.sleep(600)\n"
        "def long(go):\n"
        "    print('one')\n"
        "    while not pathlib.Path(go).exists(): time.sleep(0.01)\n"
        "    print('two')\n"
        "    return 'done'\n"
    )
    kept: list[str] = []
    token = printed.set(kept.append)
    hanging = asyncio.ensure_future(host.call(file, "hang"))
    await until(lambda: bool(kept))
    hanging.cancel()
    with suppress(asyncio.CancelledError):
        await hanging
    assert kept == ["waiting for the lock\n"]
    go = file.parent / "go"
    going = asyncio.ensure_future(host.call(file, "long", [str(go)]))
    await until(lambda: kept[1:] == ["one\n"])
    go.touch()
    result = await going
    printed.reset(token)
    assert (result.value, result.stdout, kept[1:]) == ("done", "one\ntwo\n", ["one\n", "two\n"])


async def test_async_functions_run_at_the_same_time(host: PythonHost, script: Write) -> None:
    file = script(
        "import asyncio\n"
        "waiting = []\n"
        "async def meet(name):\n"
        "    print(name)\n"
        "    waiting.append(name)\n"
        "    while len(waiting) < 20: await asyncio.sleep(0)\n"
        "    return name\n"
        "def ready(): pass\n"
    )
    lease = host.lease("one process")
    await host.call(file, "ready", lease=lease)
    calls = (host.call(file, "meet", [i], timeout=60, lease=lease) for i in range(20))
    results = await asyncio.gather(*calls)
    assert [r.value for r in results] == list(range(20))
    assert [r.stdout for r in results] == [f"{i}\n" for i in range(20)]


async def test_plain_functions_run_at_the_same_time(host: PythonHost, script: Write) -> None:
    file = script(
        "import threading\n"
        "barrier = threading.Barrier(10)\n"
        "def meet(name):\n"
        "    print(name)\n"
        "    barrier.wait(20)\n"
        "    print(name)\n"
        "    return name\n"
        "def ready(): pass\n"
    )
    lease = host.lease("one process")
    await host.call(file, "ready", lease=lease)
    calls = (host.call(file, "meet", [i], timeout=60, lease=lease) for i in range(10))
    results = await asyncio.gather(*calls)
    assert [r.stdout for r in results] == [f"{i}\n{i}\n" for i in range(10)]


async def test_plain_calls_one_after_the_other_share_the_main_thread(host: PythonHost, script: Write) -> None:
    file = script(
        "import sqlite3, threading\n"
        "db = sqlite3.connect(':memory:')\n"
        "def ask(): return [db.execute('select 1').fetchone()[0], threading.current_thread() is threading.main_thread()]\n"
    )
    for _ in range(5):
        assert (await host.call(file, "ask")).value == [1, True]


async def test_errors_are_one_line_that_says_where(host: PythonHost, script: Write) -> None:
    file = script(
        "import json, sys\n"
        "def wrong():\n"
        "    print('before')\n"
        "    raise ValueError('first\\nsecond')\n"
        "def deep(): json.loads('{')\n"
        "def leave(): sys.exit(3)\n"
        "def strange(): return {'a': object()}\n"
        "async def later(): raise KeyError('x')\n"
    )
    with pytest.raises(ScriptError) as caught:
        await host.call(file, "wrong")
    assert str(caught.value) == "ValueError: first (agent.py:4)"
    assert "second" in caught.value.traceback and "python_worker" not in caught.value.traceback
    assert caught.value.stdout == "before\n"
    with pytest.raises(ScriptError, match=r"^JSONDecodeError: .* \(agent.py:5\)$"):
        await host.call(file, "deep")
    with pytest.raises(ScriptError, match=r"^SystemExit: 3 \(agent.py:6\)$"):
        await host.call(file, "leave")
    with pytest.raises(ScriptError, match="gives a value of type object, which JSON cannot hold"):
        await host.call(file, "strange")
    with pytest.raises(ScriptError, match=r"^KeyError: no key 'x' \(agent.py:8\)$"):
        await host.call(file, "later")
    with pytest.raises(ScriptError, match=r"agent.py has no function 'missing' \(there is: wrong, deep"):
        await host.call(file, "missing")
    with pytest.raises(ScriptError, match="No such file"):
        await host.call(file.with_name("none.py"), "f")
    with pytest.raises(ScriptError, match="no such folder"):
        await host.call(file.parent / "nowhere" / "none.py", "f")
    with pytest.raises(ScriptError, match=r"^TypeError: "):
        await host.call(file, "wrong", [1, 2, 3])
    broken = script("def f(:\n", "broken.py")
    with pytest.raises(ScriptError, match=r"^SyntaxError: .* \(broken.py:1\)$"):
        await host.call(broken, "f")


async def test_sets_are_lists_in_the_same_order_each_time(host: PythonHost, script: Write) -> None:
    """The guide's harness makes a set of the tools, and agents report one."""
    file = script(
        "def told(): return 'hi', {'tools_used': {'b', 'a', 'c'}, 'one': frozenset({1}), 'two': {(1, 2)}, 'keys': {'k': 1}.keys()}\n"
        "def mixed(): return {'x': {2, 'a'}}\n"
    )
    told = await host.call(file, "told")
    assert told.is_tuple
    assert told.value == ["hi", {"tools_used": ["a", "b", "c"], "one": [1], "two": [[1, 2]], "keys": ["k"]}]
    assert (await host.call(file, "mixed")).value == {"x": ["a", 2]}


async def test_a_file_called_as_a_module_of_pythons_is_not_ours_by_way_of_pythonpath(
    host: PythonHost, script: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty entry is the folder that is run in: `export PYTHONPATH=$PYTHONPATH:lib` makes one."""
    file = script("import sys\ndef path(): return sys.path\n")
    (file.parent / "json.py").write_text("x = 1\n")
    monkeypatch.setenv("PYTHONPATH", f":{tmp_path / 'lib'}")
    own = str(file.parent)
    assert (await host.call(file, "path")).value[:3] == [own, own, str(tmp_path / "lib")]


async def test_generators_stream_events(host: PythonHost, script: Write) -> None:
    file = script(
        "from tui_eval.events import ToolCall, Finished\n"
        "from tui_eval.model import Reply\n"
        "async def agent(message, session):\n"
        "    print('p')\n"
        "    yield 'hello '\n"
        "    yield ToolCall('1', 'search', {'q': message})\n"
        "    yield {'type': 'text', 'text': 'there'}\n"
        "    yield Finished(Reply(1, 'hello there'))\n"
        "def plain(): yield from ['a', 'b']\n"
        "def text(): return 'all'\n"
        "def wrapped(): return plain()\n"
        "def returns():\n"
        "    yield 'a'\n"
        "    return {'escalated': True}\n"
        "def bad(): yield 3\n"
    )
    kept: list[str] = []
    token = printed.set(kept.append)
    events = [e async for e in host.stream(file, "agent", ["m", "s"])]
    printed.reset(token)
    assert events[:3] == [TextDelta("hello "), ToolCall("1", "search", {"q": "m"}), TextDelta("there")]
    assert isinstance(events[3], Finished) and events[3].reply.text == "hello there"
    assert kept == ["p\n"]
    assert [e async for e in host.stream(file, "plain")] == [TextDelta("a"), TextDelta("b")]
    assert [e async for e in host.stream(file, "text")] == [CallResult("all")]
    assert [e async for e in host.stream(file, "wrapped")] == [TextDelta("a"), TextDelta("b")]
    with pytest.raises(ScriptError, match=r"^is a generator, and returns a dict, which nobody would read"):
        _ = [e async for e in host.stream(file, "returns")]
    with pytest.raises(ScriptError, match=r"a value of type int"):
        _ = [e async for e in host.stream(file, "bad")]
    assert (await host.call(file, "plain")).value == ["a", "b"]


async def test_numbers_dates_and_paths_of_pythons_own_are_plain_values(
    host: PythonHost, script: Write
) -> None:
    """A function of the guide's kind may have them in its metadata, which was an error."""
    file = script(
        "import datetime, decimal, pathlib, uuid, types\n"
        "import sys\n"
        "class generic:\n    def item(self): return 7\n"
        "generic.__module__ = 'numpy'\n"
        "class int64(generic): pass\n"
        "def f(): return {'d': [decimal.Decimal(t) for t in ('1.50', '3', '1E+2')], 'n': int64(),\n"
        "    'at': datetime.datetime(2026, 1, 2, 3), 'day': datetime.date(2026, 1, 2),\n"
        "    'p': pathlib.Path('a/b'), 'u': uuid.UUID(int=1), 't': datetime.time(1, 2)}\n"
    )
    assert (await host.call(file, "f")).value == {
        "d": [1.5, 3, 100], "n": 7, "at": "2026-01-02T03:00:00", "day": "2026-01-02", "p": "a/b",
        "u": "00000000-0000-0000-0000-000000000001", "t": "01:02:00",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("decimal.Decimal('1E+99999999')", "a decimal that is too large for a number"),
        ("longdouble()", "a value of type numpy.longdouble, which JSON cannot hold"),
    ],
)
async def test_a_number_that_json_cannot_hold_is_said_at_once(
    host: PythonHost, script: Write, given: str, said: str
) -> None:
    """The first was written out until its time was up, the second was a circle."""
    file = script(
        "import decimal\nclass generic:\n    def item(self): return self\ngeneric.__module__ = 'numpy'\n"
        "class longdouble(generic): pass\nlongdouble.__module__ = 'numpy'\n"
        f"def f(): return {{'n': {given}}}\n"
    )
    with pytest.raises(ScriptError, match=said):
        await host.call(file, "f", timeout=10)


async def test_description(host: PythonHost, script: Write) -> None:
    file = script("async def g(message, session=None, *more):\n    yield ''\ndef f(a, **k): pass\n")
    described = await host.describe(file, "g")
    assert described.parameters == ["message", "session"] and described.optional == ["session"]
    assert described.is_async_gen and described.is_async and described.any_positional
    plain = await host.describe(file, "f")
    assert plain.any_keyword and not plain.is_async


@pytest.mark.real
async def test_an_endless_function_is_killed_with_what_it_started(host: PythonHost, script: Write) -> None:
    file = script(
        "import os, subprocess, time\n"
        "def endless(note):\n"
        "    child = subprocess.Popen(['sleep', '1000'])\n"
        "    open(note + '.new', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "    os.rename(note + '.new', note)\n"
        "    while True: pass\n"
        "def fine(): return os.getpid()\n"
    )
    note = file.parent / "pids"
    for seconds in (0.5, 5, 50):  # a busy machine may need longer before the function has begun
        with pytest.raises(ScriptTimeout, match=rf"agent.py:endless did not end within {seconds} s"):
            await host.call(file, "endless", [str(note)], timeout=seconds)
        if note.exists():
            break
    pids = [int(word) for word in note.read_text().split()]
    await until(lambda: not any(alive(pid) for pid in pids))
    assert (await host.call(file, "fine")).value not in pids


@pytest.mark.real
async def test_killing_one_call_harms_no_other(host: PythonHost, script: Write) -> None:
    file = script(
        "import time, os\n"
        "def endless():\n"
        "    while True: time.sleep(0.01)\n"
        "def slow(gate):\n"
        "    open(gate + '.reached', 'w').close()\n"
        "    while not os.path.exists(gate): time.sleep(0.01)\n"
        "    return os.getpid()\n"
        "def pid(): return os.getpid()\n"
    )
    gate = file.parent / "gate"
    lease = host.lease("one process")
    first = (await host.call(file, "pid", lease=lease)).value
    slow = asyncio.create_task(host.call(file, "slow", [str(gate)], lease=lease))
    await until((file.parent / "gate.reached").exists)
    with pytest.raises(ScriptTimeout):
        await host.call(file, "endless", timeout=0.2, lease=lease)
    lease.release()

    async def renewed() -> bool:
        return (await host.call(file, "pid")).value != first

    async with asyncio.timeout(60):
        while not await renewed():  # noqa: ASYNC110 - it looks at another process
            await asyncio.sleep(0.02)
    gate.touch()
    assert (await slow).value == first
    await until(lambda: not alive(first))


async def test_cancelling_an_async_function_lets_it_clean_up(host: PythonHost, script: Write) -> None:
    file = script(
        "import asyncio, os\n"
        "async def wait(begun, cleaned):\n"
        "    open(begun, 'w').close()\n"
        "    try: await asyncio.sleep(1000)\n"
        "    finally: open(cleaned, 'w').close()\n"
        "def pid(): return os.getpid()\n"
    )
    begun, cleaned = file.parent / "begun", file.parent / "cleaned"
    first = (await host.call(file, "pid")).value
    task = asyncio.create_task(host.call(file, "wait", [str(begun), str(cleaned)]))
    await until(begun.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(cleaned.exists)
    assert (await host.call(file, "pid")).value == first


@pytest.mark.real
async def test_an_edit_counts_for_the_next_call(host: PythonHost, script: Write) -> None:
    helper = script("WORD = 'one'\n", "helper.py")
    file = script("import helper\ndef say(): return helper.WORD\n")
    assert (await host.call(file, "say")).value == "one"
    helper.write_text("WORD = 'two'\n")  # the same size, perhaps the same second
    assert (await host.call(file, "say")).value == "two"
    file.write_text("def say(): return 'three'\n")
    assert (await host.call(file, "say")).value == "three"


@pytest.mark.real
async def test_scripts_of_the_same_name_and_names_of_modules(host: PythonHost, script: Write) -> None:
    one = script("def f(): return 1\n", "a/agent.py")
    two = script("def f(): return 2\n", "b/agent.py")
    three = script("import queue\ndef f(): return hasattr(queue, 'Queue')\n", "json.py")
    assert [(await host.call(file, "f")).value for file in (one, two, three)] == [1, 2, True]


@pytest.mark.real
async def test_a_process_that_ends_fails_its_calls(host: PythonHost, script: Write) -> None:
    file = script(
        "import os\ndef leave(): os._exit(7)\ndef crash(): os.kill(os.getpid(), 11)\ndef fine(): return 1\n"
    )
    with pytest.raises(ScriptError, match=r"the Python process ended \(exit code 7\)"):
        await host.call(file, "leave")
    with pytest.raises(ScriptError, match=r"the Python process ended \(SIGSEGV\)"):
        await host.call(file, "crash")
    assert (await host.call(file, "fine")).value == 1


async def test_close_ends_everything(tmp_path: Path, script: Write) -> None:
    host = PythonHost(tmp_path)
    file = script("import os, time\ndef pid(): return os.getpid()\ndef wait(): time.sleep(1000)\n")
    pid = (await host.call(file, "pid")).value
    waiting = asyncio.create_task(host.call(file, "wait"))
    await asyncio.sleep(0)
    host.close()
    await until(
        lambda: not alive(pid)
    )  # it is its watcher's child: whoever takes it in may be late to reap it
    with pytest.raises(ScriptError):
        await waiting
    with pytest.raises(ScriptError, match="closed"):
        await host.call(file, "pid")
    host.close()


@pytest.mark.real
async def test_a_process_ends_with_its_host(tmp_path: Path, script: Write) -> None:
    file = script("import os\ndef pid(): return os.getpid()\n")
    starter = (
        "import sys, os; from pathlib import Path; from tui_eval.scripting.python.python_host import PythonHost\n"
        f"print(PythonHost(Path({str(tmp_path)!r})).call_sync(Path({str(file)!r}), 'pid').value, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        starter,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    output, _ = await process.communicate()
    pid = int(output)
    await until(lambda: not alive(pid))


@pytest.mark.real
def test_readers_call_from_threads(host: PythonHost, script: Write) -> None:
    file = script("import time\ndef f(n): return n\ndef endless():\n    while True: time.sleep(1)\n")
    assert host.call_sync(file, "f", [{"a": [1, None, 2.5]}]).value == {"a": [1, None, 2.5]}
    with pytest.raises(ScriptTimeout):
        host.call_sync(file, "endless", timeout=0.2)
    with pytest.raises(ScriptError):
        host.call_sync(file, "none")


@pytest.mark.benchmark
async def test_a_warm_call_is_quick(host: PythonHost, script: Write) -> None:
    file = script("def f(n): return n\n")
    await host.call(file, "f", [0])
    times = []
    for number in range(100):
        begun = time.perf_counter()
        await host.call(file, "f", [number])
        times.append(time.perf_counter() - begun)
    assert sorted(times)[10] < 0.005, "the machine may be busy during the other ninety"


@pytest.mark.real
async def test_large_values_and_much_output(host: PythonHost, script: Write) -> None:
    file = script("def f(text):\n    print('x' * 3_000_000)\n    return text\n")
    result = await host.call(file, "f", ["ü" * 2_000_000])
    assert len(result.value) == 2_000_000
    assert len(result.stdout) < 1_100_000 and "more was printed" in result.stdout


@pytest.mark.real
@pytest.mark.parametrize("inside", [True, False], ids=["of the project", "from elsewhere"])
async def test_a_file_from_elsewhere_imports_nothing_of_the_folder_it_is_run_in(
    tmp_path: Path, inside: bool
) -> None:
    """It was trusted by being typed; an import that it tries (`try: import brotli`) ran what lay in the folder."""
    root = tmp_path / "project"
    place = root / "agents" if inside else tmp_path / "mine"
    for folder in (root, place):
        folder.mkdir(exist_ok=True)
    (root / "optional_thing.py").write_text("NAME = 'of the project'\n")
    (place / "agent.py").write_text(
        "try:\n    from optional_thing import NAME\nexcept ImportError:\n    NAME = 'none'\n"
        "def answer(message):\n    return NAME\n"
    )
    given = place / "agent.py" if inside else root / ".." / "mine" / "agent.py"
    host = PythonHost(root)
    try:
        result = await host.call(given, "answer", ("hi",))
    finally:
        host.close()
    assert result.value == ("of the project" if inside else "none")


IN_PACKAGE = "from . import words\nfrom .words import WORD\nimport lib.pk.words\ndef answer():\n    return WORD, lib.pk.words is words, __name__\n"


@pytest.mark.parametrize("beside", [False, True])
async def test_a_function_of_a_package_itself_imports_what_is_in_it(
    host: PythonHost, script: Write, beside: bool
) -> None:
    (script("", "lib/__init__.py").parent / "pk").mkdir()
    script("WORD = 'said'\n", "lib/pk/words.py")
    script("from .words import WORD\ndef answer():\n    return WORD\n", "lib/pk/mod.py")
    file = script(IN_PACKAGE, "lib/pk/__init__.py")
    if beside:  # a module of it first: the package is loaded by then
        assert (await host.call(file.with_name("mod.py"), "answer", [])).value == "said"
    assert (await host.call(file, "answer", [])).value == ["said", True, "lib.pk"]
    assert (await host.call(file.with_name("mod.py"), "answer", [])).value == "said"


@pytest.mark.parametrize("name", ["pk", "json", "a-b", "v1.2"])
async def test_a_package_of_any_name_is_loaded(host: PythonHost, script: Write, name: str) -> None:
    script("WORD = 'said'\n", f"{name}/words.py")
    file = script(
        "import json\nfrom .words import WORD\ndef answer():\n    return json.dumps(WORD)\n",
        f"{name}/__init__.py",
    )
    assert (await host.call(file, "answer", [])).value == '"said"'


async def test_a_module_that_was_loaded_for_its_function_is_found_in_its_package(
    host: PythonHost, script: Write
) -> None:
    script("", "lib/__init__.py")
    first = script("WORD = 'said'\ndef answer():\n    return WORD\n", "lib/mod.py")
    second = script("import lib.mod\ndef answer():\n    return lib.mod.WORD\n", "lib/other.py")
    for file in (first, second):
        assert (await host.call(file, "answer", [])).value == "said"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a"], "a"), (["a", "b", "c", "d", ""], "a, b, c and 2 more"), (["", "a"], "a and 1 more"),
        ([""], "another call"), ([""] * 7, "7 other calls"),
    ],
)  # fmt: skip
def test_calls_that_ran_beside_one_are_told_by_name_or_number(names: list[str], words: str) -> None:
    assert calls_in_words(names) == words


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
async def test_code_may_work_in_processes_of_its_own_however_they_are_started(
    host: PythonHost, script: Write, how: str
) -> None:
    """Those that are started anew took our worker for their program, and a pool of them never came up."""
    file = script(
        "import multiprocessing\n"
        "def twice(number):\n"
        "    print('doubled', flush=True)\n"
        "    return 2 * number\n"
        "def answer(how):\n"
        "    with multiprocessing.get_context(how).Pool(1) as pool:\n"
        "        return pool.map(twice, [1, 2])\n"
    )
    result = await host.call(file, "answer", [how], timeout=60)
    assert (result.value, result.stdout.count("doubled")) == ([2, 4], 2)


@pytest.mark.parametrize("end", ["return 'child'", "raise ValueError('child')", "sys.exit(3)"])
async def test_a_process_that_code_forks_does_not_answer_for_it(
    host: PythonHost, script: Write, end: str
) -> None:
    """Its end was taken for that of the call: what the child returned, or the SystemExit that ended it."""
    file = script(
        "import os, sys\n"
        "def answer():\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        f"        {end}\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
    )
    result = await host.call(file, "answer", [], timeout=60)
    assert result.value == {"return": 0, "raise": 1}.get(end.split()[0], 3)
