"""Folders that are another person's alone (root's, of a container; a database's): what does not need them goes on, and
what does says so. Everything ended with `internal error: PermissionError`."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_eval.guard.paths import no_file

_DROP = 24  # PR_CAPBSET_DROP
CONFIG = (
    "agents:\n  it: {type: echo, files: [data]}\n  own: {type: python, function: 'closed/bot.py:answer'}\n"
)
SUITE = "agent: it\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: hi}}\n"


def _as_others() -> None:
    """Root that may not look into what is closed."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(_DROP, capability, 0, 0, 0)


def run(root: Path, *arguments: str) -> tuple[int, str]:
    """A command of a person who is not root, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "tui_eval", *arguments],
        cwd=root, preexec_fn=_as_others, text=True, capture_output=True, timeout=120,
        env={**os.environ, "XDG_STATE_HOME": str(root / "state"), "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "tui_eval.yaml").write_text(CONFIG)
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "own.yaml").write_text(SUITE.replace("agent: it", "agent: own"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to("../closed/data")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    yield tmp_path
    for one in (closed, *(tmp_path / ".tui-eval").glob("runs/*"), *(tmp_path / ".tui-eval").glob("runs")):
        one.chmod(0o700)


@pytest.mark.real
def test_a_run_of_another_person_closes_no_others(root: Path) -> None:
    """`sudo tui-eval run` once, and nothing worked any more."""
    assert run(root, "run", "suite.yaml", "--display", "none")[0] == 0
    (first,) = (root / ".tui-eval" / "runs").iterdir()
    assert run(root, "run", "suite.yaml", "--display", "none")[0] == 0
    first.chmod(0)
    code, said = run(root, "runs")
    assert code == 0 and "internal error" not in said and said.count("finished") == 1
    assert f"not known is what is in {first}, which cannot be read" in said
    assert run(root, "run", "suite.yaml", "--failed", "--display", "none")[0] == 5
    for one in (root / ".tui-eval" / "runs").iterdir():
        one.chmod(0)
    code, said = run(root, "runs")
    assert code == 5 and "not known is what is in" in said


@pytest.mark.real
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["check", "suite.yaml"], 0, "0 errors"),
        (["check", "own.yaml"], 4, "closed/bot.py cannot be read: Permission denied"),
        (["run", "suite.yaml", "--agent", "closed/bot.py:answer"], 4, "cannot be read: Permission denied"),
        (["run", "closed/suite.yaml"], 4, "closed/suite.yaml: cannot be read: Permission denied"),
        (["run", "suite.yaml", "--config", "closed/tui_eval.yaml"], 4, "tui_eval.yaml: Permission denied"),
        (["show", "closed/run"], 4, "closed/run: Permission denied"),
        (["merge", "closed"], 4, "Permission denied"),
        (["closed/suite.yaml"], 4, "closed/suite.yaml: Permission denied"),
    ],
)
def test_what_needs_a_closed_folder_says_so(root: Path, arguments: list[str], code: int, words: str) -> None:
    found, said = run(root, *arguments)
    assert "internal error" not in said
    assert found == code and words in said


@pytest.mark.real
def test_a_folder_whose_names_alone_can_be_read_is_not_passed_over(root: Path) -> None:
    (root / "closed").chmod(0o700)
    (root / "closed" / "suite.yaml").write_text(SUITE)
    (root / "closed").chmod(0o600)
    code, said = run(root, "check", ".")
    assert code != 0 and "closed/suite.yaml: cannot be read: Permission denied" in said


@pytest.mark.real
def test_runs_that_cannot_be_written_are_kept_elsewhere(root: Path) -> None:
    """Root's `.tui-eval/runs` in a store of one's own: the run was refused."""
    (root / ".tui-eval").mkdir()
    (root / ".tui-eval" / "runs").mkdir(mode=0o500)
    code, said = run(root, "run", "suite.yaml", "--display", "none")
    assert code == 0 and "the run is kept in" in said
    assert "finished" in run(root, "runs")[1]


def test_a_file_that_is_not_there_is_said_to_be_not_there(tmp_path: Path) -> None:
    assert no_file(tmp_path / "none.py", "none.py") == "there is no file none.py"
    assert no_file(tmp_path / "none.py" / "\0", "it") == "there is no file it"


def test_a_run_puts_nothing_of_its_store_into_the_systems_folder_for_files_of_a_while(tmp_path: Path) -> None:
    """SQLite kept pages of a run's database there while a statement wrote many rows: transcripts, a second time, in
    a folder that may be full where the project's disk has room."""
    aside = tmp_path / "aside"
    aside.mkdir()
    project = tmp_path / "project"
    project.mkdir()
    lines = (f"question {i} {'word ' * 100},contains:question {i}\n" for i in range(300))
    (project / "tests.csv").write_text("q,__expected\n" + "".join(lines))
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ntests: file://tests.csv\n"
    )
    before = aside.stat().st_mtime_ns  # of a folder in which a file came and went, it is another
    done = subprocess.run(
        [sys.executable, "-m", "tui_eval", "run", "."],
        cwd=project, text=True, capture_output=True, timeout=120,
        env={
            **os.environ, "SQLITE_TMPDIR": str(aside), "XDG_STATE_HOME": str(tmp_path / "state"),
            "PYTHONPATH": str(Path.cwd()),
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert aside.stat().st_mtime_ns == before
