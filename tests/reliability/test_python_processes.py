"""A Python agent's processes: what one attempt's code does to its own costs no other attempt."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_runs import go
from tests.support.agents import agent, context
from tests.support.waiting import until
from tui_eval.agents import AgentError, Request
from tui_eval.agents.base import Session
from tui_eval.events import Finished
from tui_eval.model import Attempt
from tui_eval.scripting.python.python_host import PythonHost, printed
from tui_eval.scripting.script_host import PROCESSES

BOT = """
import asyncio, os, signal, time
turns = {}

async def answer(message, session):
    word = message.split()[0]
    turns[session["session_id"]] = turns.get(session["session_id"], 0) + 1
    if word in ("exit", "crash"):
        yield "bye"
        await asyncio.sleep(0.5)
        os._exit(3) if word == "exit" else os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(1000)  # a signal may reach another thread first
    if word == "block":
        time.sleep(1000)
    if word == "gate":
        open("reached", "a").write("x")
        while not os.path.exists("gate"):
            await asyncio.sleep(0.01)
    await asyncio.sleep(1 if word == "slow" else 0)
    yield f"fine {os.getpid()} {turns[session['session_id']]}"

async def edited(message, session):
    yield f"first {os.getpid()}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    return tmp_path


async def say(session: Session, turn: int, text: str) -> str:
    """The answer to one turn."""
    answer = ""
    async for event in session.send(Request(turn, text)):
        if isinstance(event, Finished):
            answer = event.reply.text
    return answer


async def attempts_of(project: Callable[..., Path], words: list[str], **more) -> dict[str, Attempt]:
    """What a run of one case a word ends with."""
    cases = "".join(f"  - {{name: {word}, input: {word} now, timeout_seconds: 60}}\n" for word in words)
    config = "agents:\n  helper: {type: python, function: 'bot.py:answer'}\n"
    root = project(suite=f"agent: helper\ntest_cases:\n{cases}", config=config, **{"bot.py": BOT})
    _, reader = await go(root, trust=True, **more)
    names = {case.id: case.name for case in reader.cases()}
    found = {names[row.case_ref]: reader.attempt(row.id) for row in reader.attempts()}
    return {name: attempt for name, attempt in found.items() if attempt is not None}


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("fault", ["exit", "crash"])
async def test_code_that_ends_its_process_costs_no_other_attempt(
    project: Callable[..., Path], fault: str
) -> None:
    neighbours = [f"slow{number}" for number in range(4)]
    found = await attempts_of(project, [fault, *(f"slow {name}" for name in neighbours)], concurrency=6)
    assert found[fault].outcome == "error"
    assert "the Python process ended" in found[fault].message
    assert "ran in the same process" not in found[fault].message
    assert {found[f"slow {name}"].outcome for name in neighbours} == {"passed"}


@pytest.mark.real
async def test_an_async_agent_that_blocks_takes_no_time_of_others(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:answer")
    blocking, other = await it.open(context(1)), await it.open(context(2))
    blocked = asyncio.create_task(say(blocking, 1, "gate"))
    await until((folder / "reached").exists)
    (folder / "gate").touch()
    await blocked
    blocked = asyncio.create_task(say(blocking, 2, "block"))
    async with asyncio.timeout(60):
        assert (await say(other, 1, "hello")).startswith("fine")
        assert not blocked.done()
    blocked.cancel()
    await asyncio.gather(blocked, return_exceptions=True)
    await blocking.close()
    # Whoever comes next does not get the process that is still blocked.
    following = await it.open(context(3))
    async with asyncio.timeout(60):
        assert (await say(following, 1, "hello")).startswith("fine")
    await it.close()


@pytest.mark.real
async def test_a_conversation_stays_in_its_process_and_attempts_share_few(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:answer")
    sessions = [await it.open(context(number)) for number in range(PROCESSES + 4)]
    first = [(await say(session, 1, "hello")).split()[1:] for session in sessions]
    second = [(await say(session, 2, "hello")).split()[1:] for session in reversed(sessions)][::-1]
    assert [pid for pid, _ in first] == [pid for pid, _ in second]
    assert {turn for _, turn in second} == {"2"}
    processes = [pid for pid, _ in first]
    assert len(set(processes)) == PROCESSES and max(map(processes.count, processes)) == 2
    for session in sessions:
        await session.close()
    again = await it.open(context(99))
    assert (await say(again, 1, "hello")).split()[1] in processes, "processes are used again"
    await it.close()


async def test_one_after_the_other_uses_one_process(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:answer")
    used = set()
    for number in range(5):
        session = await it.open(context(number))
        used.add((await say(session, 1, "hello")).split()[1])
        await session.close()
    assert len(used) == 1
    await it.close()


@pytest.mark.real
async def test_a_process_that_ends_between_two_turns_is_an_error_of_the_next(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:answer")
    session = await it.open(context())
    pid = int((await say(session, 1, "hello")).split()[1])
    os.kill(pid, 9)
    for turn in (2, 3):
        with pytest.raises(AgentError, match=r"the agent's process ended between two turns \(SIGKILL\)"):
            await say(session, turn, "and then?")
    await session.close()
    other = await it.open(context(2))
    assert (await say(other, 1, "hello")).endswith(" 1")
    await it.close()


DIES = """
import asyncio, os, threading
def die(seconds):
    threading.Timer(float(seconds), os._exit, [9]).start()
def begin(message):
    if message.startswith("die"):
        die(message.split()[1])
    return message
class Bot:
    def __call__(self, message, session):
        return begin(message)
bot = Bot()
def one(message):
    return begin(message)
def two(message, session):
    return begin(message)
async def later(message, session):
    return begin(message)
def pieces(message, session):
    yield begin(message)
async def later_pieces(message):
    yield begin(message)
"""


@pytest.mark.usually(2)
@pytest.mark.parametrize("function", ["one", "two", "later", "pieces", "later_pieces", "bot"])
async def test_a_process_that_ends_itself_between_two_turns_is_an_error_for_every_kind_of_function(
    tmp_path: Path, function: str
) -> None:
    (tmp_path / "dies.py").write_text(DIES)
    it = agent("python", tmp_path, function=f"dies.py:{function}")
    session = await it.open(context())
    assert await say(session, 1, "die 0.3") == "die 0.3"
    process = session.lease.process  # type: ignore[attr-defined]
    await until(lambda: process.ended)
    for turn in (2, 3):
        with pytest.raises(AgentError, match=r"the agent's process ended between two turns \(exit code 9\)"):
            await say(session, turn, "hello")
    await session.close()
    await it.close()


@pytest.mark.parametrize("seconds", ["0", "0.001", "0.01"])
async def test_whenever_a_process_ends_it_is_an_error_and_no_other_process_goes_on(
    tmp_path: Path, seconds: str
) -> None:
    (tmp_path / "dies.py").write_text(DIES)
    it = agent("python", tmp_path, function="dies.py:two")
    session = await it.open(context())
    with pytest.raises(AgentError, match=r"process ended.*\(exit code 9\)"):
        await say(session, 1, f"die {seconds}")
        for turn in range(2, 100_000):
            await say(session, turn, "hello")
    await session.close()
    await it.close()


async def test_a_timer_of_one_attempt_ends_no_later_one(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(DIES)
    it = agent("python", tmp_path, function="dies.py:two")
    first = await it.open(context(1))
    await say(first, 1, "die 0.5")
    process = first.lease.process  # type: ignore[attr-defined]
    await first.close()
    second = await it.open(context(2))
    await say(second, 1, "hello")
    await until(lambda: process.ended)
    assert await say(second, 2, "hello") == "hello"
    await it.close()


@pytest.mark.real
async def test_an_answer_counts_where_the_process_ends_after_the_last_turn(
    project: Callable[..., Path],
) -> None:
    suite = "agent: helper\ntest_cases:\n  - {name: a, input: die 0, expected: {should_contain: [die]}}\n"
    config = "agents:\n  helper: {type: python, function: 'dies.py:later'}\n"
    code = DIES.replace(
        "return begin(message)\ndef pieces",
        "asyncio.get_running_loop().call_later(0.05, os._exit, 9)\n    return message\ndef pieces",
    )
    root = project(suite=suite, config=config, **{"dies.py": code})
    _, reader = await go(root, trust=True)
    assert [row.outcome for row in reader.attempts()] == ["passed"]


JUDGES = """
import os, re, signal, sys, time
def judge(output, context=None):
    word = output.split()[0]
    if word == "exit":
        time.sleep(0.5)
        os._exit(7)
    if word == "crash":
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(100)
    if word == "block":
        re.match("(a+)+$", "a" * 60 + "b")
    if word == "slow":
        time.sleep(1.5)
    return word
"""


@pytest.fixture
async def judges(tmp_path: Path):
    (tmp_path / "judge.py").write_text(JUDGES)
    host = PythonHost(tmp_path)
    yield lambda word: host.call(tmp_path / "judge.py", "judge", [word], timeout=60)
    await asyncio.to_thread(host.close)


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("fault", ["exit", "crash"])
@pytest.mark.parametrize("neighbours", [5, PROCESSES + 5])
async def test_judging_code_that_ends_its_process_costs_no_other_call(
    judges: Callable[..., Any], fault: str, neighbours: int
) -> None:
    calls = [judges("slow") for _ in range(neighbours)]
    found = await asyncio.gather(judges(fault), *calls, return_exceptions=True)
    assert "the Python process ended" in str(found[0]) and "same process" not in str(found[0])
    assert [getattr(one, "value", one) for one in found[1:]] == ["slow"] * neighbours


async def test_judging_code_that_holds_the_interpreter_takes_no_time_of_others(
    judges: Callable[..., Any],
) -> None:
    blocked = asyncio.create_task(judges("block"))
    async with asyncio.timeout(30):
        for _ in range(5):
            assert (await judges("fine")).value == "fine"
    assert not blocked.done()
    blocked.cancel()
    await asyncio.gather(blocked, return_exceptions=True)


async def test_short_calls_share_few_processes(judges: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text("import os\ndef judge(output): return os.getpid()")
    found = await asyncio.gather(*(judges("x") for _ in range(16)))
    assert len({one.value for one in found}) < PROCESSES


@pytest.mark.real
async def test_a_call_that_was_lost_by_another_says_that_it_was_made_again(
    judges: Callable[..., Any],
) -> None:
    kept: list[str] = []
    token = printed.set(kept.append)
    await asyncio.gather(
        *(judges("slow") for _ in range(PROCESSES)),
        *(judges("exit") for _ in range(PROCESSES)),
        return_exceptions=True,
    )
    printed.reset(token)
    assert any("called again in a process of its own" in text for text in kept)


async def test_an_edit_counts_for_the_next_attempt_not_within_a_conversation(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:edited")
    session = await it.open(context())
    before = await say(session, 1, "hello")
    (folder / "bot.py").write_text(BOT.replace("first", "second"))
    other = await it.open(context(2))
    assert (await say(other, 1, "hello")).startswith("second")
    assert await say(session, 2, "hello") == before
    await it.close()


@pytest.mark.real
async def test_where_processes_are_shared_the_error_names_who_else_ran_there(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:answer")
    holding = [await it.open(context(number)) for number in range(PROCESSES)]
    for session in holding:
        await say(session, 1, "hello")
    late = await it.open(context(77))
    shared = (await say(late, 1, "hello")).split()[1]
    pids = [(await say(session, 2, "hello")).split()[1] for session in holding]
    victim = holding[pids.index(shared)]
    waiting = asyncio.create_task(say(victim, 3, "gate"))
    await until((folder / "reached").exists)
    with pytest.raises(AgentError, match=r"the Python process ended \(exit code 3\)"):
        await say(late, 2, "exit")
    with pytest.raises(AgentError, match=r"it may not be this call's doing: s::c \(attempt 77\) ran in"):
        await waiting
    await it.close()


STARTS = """
import os, re, subprocess, time
def answer(message):
    if message == "flood":
        child = subprocess.Popen("exec yes to the disk", shell=True, start_new_session=True)
        note(child.pid)
        while not os.path.exists("gate"):
            time.sleep(0.01)
        child.kill()
        child.wait()
        print("ended")
        return "fine"
    # Out of the group, and its parent gone: only who adopts it can find it.
    subprocess.run(["setsid", "sh", "-c", "sleep 7778 & echo $! > note.new"])
    note(int(open("note.new").read()), os.getpid())
    if message == "exit":
        os._exit(3)
    re.match("(a+)+$", "a" * 60 + "b")
def note(*pids):
    with open("note.next", "w") as file:
        file.write(" ".join(map(str, pids)))
    os.rename("note.next", "note")
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def noted(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "note").read_text().split()]


async def test_what_left_the_group_ends_with_a_process_that_ends_by_itself(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(STARTS)
    it = agent("python", tmp_path, function="bot.py:answer")
    session = await it.open(context())
    with pytest.raises(AgentError, match=r"the Python process ended \(exit code 3\)"):
        await say(session, 1, "exit")
    pids = noted(tmp_path)
    await until(lambda: not any(alive(pid) for pid in pids), 10)
    await it.close()


async def test_nothing_stays_of_a_killed_engine_while_code_holds_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(STARTS)
    engine = (
        "from pathlib import Path; from tui_eval.scripting.python.python_host import PythonHost\n"
        f"PythonHost(Path({str(tmp_path)!r})).call_sync(Path({str(tmp_path / 'bot.py')!r}), 'answer', ['gil'])\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", engine, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    )
    await until((tmp_path / "note").exists)
    pids = noted(tmp_path)
    assert all(alive(pid) for pid in pids)
    process.kill()
    await process.wait()
    await until(lambda: not any(alive(pid) for pid in pids), 20)


async def test_a_program_that_floods_its_output_fills_no_disk(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(STARTS)
    it = agent("python", tmp_path, function="bot.py:answer")
    session = await it.open(context())
    kept: list[str] = []
    token = printed.set(kept.append)
    asked = asyncio.create_task(say(session, 1, "flood"))
    printed.reset(token)
    await until((tmp_path / "note").exists)
    output = f"/proc/{noted(tmp_path)[0]}/fd/1"
    before = 0
    shrinks = 0
    async with asyncio.timeout(60):
        while shrinks < 3:  # it is cut again and again
            size = os.stat(output).st_size
            shrinks, before = shrinks + (size < before), size
            await asyncio.sleep(0.01)
    (tmp_path / "gate").touch()
    assert await asked == "fine"
    assert "to the disk" in kept[0] and len(kept[0]) < 1_100_000
    await it.close()
