"""A folder that bites, watched from outside: which programs are run and which files are opened (`strace`)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.test_git_state import biting, repository
from tests.frames.test_hostile_databases import ENDLESS, sqlite

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

SECRET = "swordfish-of-another-project"
_EXECUTED = re.compile(r'execve\("([^"]+)".*\) = 0$')
_OPENED = re.compile(r'open(?:at)?\((?:AT_FDCWD, |\d+<[^>]*>, )?"([^"]+)", ([A-Z_|]+).* = \d+(?:<([^>]*)>)?')
_SUITE = """\
name: first
prompt: What is there?
sql: SELECT * FROM {table}
"""


def traced(folder: Path, home: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the program in a folder under `strace`; what it did, and the trace."""
    trace = home / "trace"
    state = {"XDG_STATE_HOME": str(home / "state"), "XDG_CACHE_HOME": str(home / "cache"), "HOME": str(home)}
    done = subprocess.run(
        [
            "strace", "-f", "-y", "-o", str(trace), "-e", "trace=execve,execveat,open,openat,creat",
            sys.executable, "-P", "-m", "tui_eval", *arguments,
        ],
        cwd=folder, env={**os.environ, **state}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done, trace.read_text("utf-8", "replace")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project in which everything leads elsewhere or is code."""
    folder, home, secret = tmp_path / "project", tmp_path / "home", tmp_path / "secret"
    home.mkdir()
    secret.mkdir()
    (secret / "keys.csv").write_text(f"password\n{SECRET}\n", "utf-8")
    (secret / "precious").write_text("precious", "utf-8")
    repository(folder)
    for name in ("duckdb", "polars", "msgspec", "httpx", "yaml", "sitecustomize"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'bitten')!r}, 'w')\n", "utf-8")
    (folder / "data").mkdir()
    (folder / "data" / "plain.csv").write_text("id\n1\n", "utf-8")
    (folder / "data" / "leak.csv").symlink_to(secret / "keys.csv")
    sqlite(folder / "shop.db", ENDLESS.format("count(*) AS n"))
    (folder / "tests").mkdir()
    (folder / "tests" / "leak.yaml").write_text("database: data\n" + _SUITE.format(table="leak"), "utf-8")
    (folder / "tests" / "endless.yaml").write_text(
        "database: shop\n" + _SUITE.format(table="endless").replace("first", "second"), "utf-8"
    )
    (folder / "agent.yaml").write_text("replies:\n  - {match: '.*', text: nothing}\n", "utf-8")
    (folder / "tui_eval.yaml").write_text(
        "agents:\n"
        "  offline: {type: scripted, script: agent.yaml}\n"
        "  code: {type: command, command: ['./bite.sh']}\n"
        "databases:\n"
        "  data: {type: files, path: data}\n"
        "  shop: {type: sqlite, path: shop.db}\n"
        "run: {timeout: 3}\n",
        "utf-8",
    )
    biting(folder, tmp_path / "bitten")
    (folder / ".tui-eval").symlink_to(secret)
    (tmp_path / "bitten").unlink(missing_ok=True)
    (folder / "kept.txt").write_text("changed\n", "utf-8")
    return folder


@pytest.mark.parametrize("command", [["run", ".", "--agent", "offline"], ["check", "."], ["list", "."]])
def test_nothing_of_a_hostile_folder_is_run_or_followed(hostile: Path, command: list[str]) -> None:
    home, secret = hostile.parent / "home", hostile.parent / "secret"
    done, trace = traced(hostile, home, *command)
    assert done.returncode in (0, 1, 4), done.stderr
    assert not (hostile.parent / "bitten").exists()
    programs = {
        os.path.realpath(found[1]) for line in trace.splitlines() if (found := _EXECUTED.search(line))
    }
    assert programs, "no trace"
    assert not [one for one in programs if Path(one).is_relative_to(hostile.parent)]
    assert {Path(one).name.split("3")[0].split("-")[0] for one in programs} <= {"python", "git", "node"}
    for line in trace.splitlines():
        if found := _OPENED.search(line):
            name, flags, real = found[1], found[2], found[3] or ""
            place = Path(os.path.realpath(real or hostile / name))
            assert not place.is_relative_to(secret), line
            if "O_WRONLY" in flags or "O_RDWR" in flags or "O_CREAT" in flags:
                inside = place.is_relative_to(hostile) or place.is_relative_to(home)
                assert inside or str(place).startswith(("/tmp/", "/dev/", "/run/", "/proc/")), line
    assert (secret / "precious").read_text("utf-8") == "precious"
    assert sorted(path.name for path in secret.iterdir()) == ["keys.csv", "precious"]
    assert SECRET not in done.stdout + done.stderr
