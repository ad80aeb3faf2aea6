"""Programs of people's own that flood, that leave children behind, and children that must not outlive them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.agents import agent, talk
from tests.support.waiting import until
from tui_eval.agents.base import AgentError


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return Path("/proc").is_dir() is False and _signalled(pid)
    return state != "Z"


def _signalled(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _script(folder: Path, code: str) -> list[str]:
    path = folder / "agent.py"
    path.write_text(textwrap.dedent(code), encoding="utf-8")
    return [sys.executable, str(path)]


CHILD = "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']{more})\n"


@pytest.mark.parametrize("more", ["", ", start_new_session=True"])
async def test_an_answer_is_kept_when_a_grandchild_holds_the_output(tmp_path: Path, more: str) -> None:
    code = CHILD.format(more=more) + "print('the answer', child.pid, flush=True)\n"
    it = agent("command", tmp_path, command=_script(tmp_path, code))
    _, replies = await talk(it, "hello")
    await it.close()
    said, pid = replies[-1].text.rsplit(" ", 1)
    assert said == "the answer"
    if more:
        os.kill(int(pid), 9)  # it left on purpose, as a service would: nothing of ours may wait for it
    await until(lambda: not _alive(int(pid)))


async def test_what_a_grandchild_still_says_counts(tmp_path: Path) -> None:
    late = "import time; time.sleep(0.1); print(' and more', flush=True); time.sleep(600)"
    code = f"import subprocess, sys\nprint('first', end='', flush=True)\nsubprocess.Popen([sys.executable, '-c', {late!r}])\n"
    it = agent("command", tmp_path, command=_script(tmp_path, code))
    _, replies = await talk(it, "hello")
    await it.close()
    assert replies[-1].text.startswith("first")


FLOOD = """
import asyncio, sys
from tests.support.agents import agent, talk
from tui_eval.agents.base import AgentError

async def main():
    it = agent("command", "/", command=[sys.executable, "-c", sys.argv[1]])
    for _ in range(2):
        try:
            await talk(it, "hello")
        except AgentError as error:
            print(error)
    await it.close()

asyncio.run(main(), debug=False)
"""


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    "code",
    [
        "import os\nwhile True: os.write(1, b'x' * 65536)",
        "import os\nwhile True: os.write(2, b'x' * 65536)",
        "import os\nwhile True: os.write(1, b'x' * 65536); os.write(2, b'x' * 65536)",
        "import os\nos.close(0)\nwhile True: os.write(2, b'x\\n' * 30000)",
    ],
)
def test_floods_leave_one_line_and_no_traceback(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", FLOOD, code],
        capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert [line.rpartition(" wrote ")[2] for line in done.stdout.splitlines()] == ["more than 64 MB"] * 2


async def test_errors_of_a_program_are_kept_from_both_ends(tmp_path: Path) -> None:
    code = "import sys\nsys.stderr.write('begin' + 'x' * 5_000_000 + '\\nthe reason')\nsys.exit(3)\n"
    it = agent("command", tmp_path, command=_script(tmp_path, code))
    with pytest.raises(AgentError, match="exit code 3: the reason"):
        await talk(it, "hello")
    await it.close()


PYTHON = """
import subprocess, sys
def answer(message):
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    children = [subprocess.Popen(sleeping), subprocess.Popen(sleeping, start_new_session=True)]
    # one whose parent is gone
    shell = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=subprocess.DEVNULL).pid)"
    orphan = subprocess.run([sys.executable, "-c", shell, *sleeping], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
    return " ".join([*(str(child.pid) for child in children), orphan.stdout])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
async def test_children_of_a_python_agent_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PYTHON, encoding="utf-8")
    it = agent("python", tmp_path, function="mine.py:answer")
    _, replies = await talk(it, "hello")
    children = [int(pid) for pid in replies[-1].text.split()]
    assert len(children) == 3 and all(_alive(pid) for pid in children)
    await it.close()
    await until(lambda: not any(_alive(pid) for pid in children))


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_children_of_a_python_agent_end_when_the_engine_is_killed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PYTHON, encoding="utf-8")
    code = """
import asyncio, os, sys
from tests.support.agents import agent, talk
async def main():
    it = agent("python", sys.argv[1], function="mine.py:answer")
    _, replies = await talk(it, "hello")
    print(replies[-1].text, flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE, text=True, timeout=120, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    children = [int(pid) for pid in done.stdout.split()]
    assert len(children) == 3

    async def gone() -> None:
        await until(lambda: not any(_alive(pid) for pid in children))

    asyncio.run(gone())
