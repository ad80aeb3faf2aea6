"""Interrupting a run from outside: exit codes 130 and 143, what has finished is kept, resume goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tui_eval.commands import recorded_runs

SUITE = """\
agent: helper
test_cases:
  - {name: quick, input: quick, expected: {should_contain: ["done"]}}
  - {name: slow, input: slow, expected: {should_contain: ["done"]}}
"""
SLOW = "rules:\n  - {match: slow, steps: [{say: begun}, {wait: 60}]}\ndefault: done\n"


def begin(
    project: Path, *arguments: str, slow: str = "60", first: Callable[[], object] | None = None
) -> subprocess.Popen[str]:
    (project / "suite.yaml").write_text(SUITE)
    (project / "agent.script.yaml").write_text(SLOW.replace("60", slow))
    return subprocess.Popen(
        [sys.executable, "-m", "tui_eval", "run", ".", "-j", "1", *arguments],
        cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
        preexec_fn=first,
    )  # fmt: skip


def until_the_first_is_done(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if "[1/2]" in line:
            break
    return seen


@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_keeps_and_resumes(cli: Cli, project: Path, number: signal.Signals, code: int) -> None:
    process = begin(project)
    until_the_first_is_done(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err and "tui-eval resume" in err
    assert "1 passed" in out and "1 not run" in out
    (row,) = cli("runs", "--json").json
    assert row["state"] == "interrupted"
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: done\n")
    resumed = cli("resume", "--display", "json")
    assert resumed.code == 0
    assert [json.loads(line)["case_id"] for line in resumed.out.splitlines()] == ["suite.yaml::slow"]
    assert cli("runs", "--json").json[0]["state"] == "finished"


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_whoever_started_it_ignores_stops_nothing(
    cli: Cli, project: Path, number: signal.Signals
) -> None:
    """`nohup tui-eval run … &`: the line drops, and the run was gone with it."""
    process = begin(project, slow="2", first=lambda: signal.signal(number, signal.SIG_IGN))
    until_the_first_is_done(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "1 passed, 1 failed, 2 total" in out, err


def test_a_ctrl_c_that_is_ignored_is_while_the_program_is_imported(project: Path) -> None:
    code = """
import signal, sys
class Looks:
    def find_spec(self, name, *_):
        if name == "tui_eval.cli":
            print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)
            sys.exit()
sys.meta_path.insert(0, Looks())
from tui_eval.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], text=True, capture_output=True, timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr


@pytest.mark.real
def test_a_ctrl_c_that_is_forwarded_too_is_one(cli: Cli, project: Path) -> None:
    """npm, make and docker forward what the terminal sends to all."""
    process = begin(project, "-o", "out.json")
    until_the_first_is_done(process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err and "go on with: tui-eval resume" in err
    assert (project / "out.json").exists()
    assert cli("runs", "--json").json[0]["state"] == "interrupted"


STUCK = """
import sys
from tui_eval import cli
from tui_eval.commands import run_suites
from tui_eval.engine import active_run

def provenance(*_):
    open("reached", "w").close()
    return open("pipe").read()  # nobody ever writes

active_run.provenance = provenance
run_suites._SAME_PRESS = 0  # both are meant
cli.main(sys.argv[1:])
"""


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(("times", "number", "code"), [(1, signal.SIGTERM, 143), (2, signal.SIGINT, 130)])
def test_a_thread_that_reads_what_never_answers_holds_up_no_end(
    cli: Cli, project: Path, times: int, number: signal.Signals, code: int
) -> None:
    (project / "suite.yaml").write_text(SUITE)
    (project / "agent.script.yaml").write_text(SLOW)
    (project / "stuck.py").write_text(STUCK)
    os.mkfifo(project / "pipe")
    process = subprocess.Popen(
        [sys.executable, "stuck.py", "run", "suite.yaml", "-j", "1", "-o", "out.json"],
        cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    try:
        until_the_first_is_done(process)
        assert (project / "reached").exists()
        process.send_signal(number)
        if times == 2:
            assert process.stderr is not None
            assert any("stopping: " in line for line in process.stderr)
            process.send_signal(number)
        _, err = process.communicate(timeout=40)
    finally:
        process.kill()
    assert process.returncode == code and "Traceback" not in err
    if times == 1:
        found = json.loads((project / "out.json").read_text())
        assert [result["outcome"] for result in found["results"]] == ["passed"]
    else:
        assert "left at once, without out.json; go on with: tui-eval resume" in err
    assert cli("runs", "--json").json[0]["state"] == "interrupted"


SIGNALLED = """
import os, signal, sys
import tui_eval.{module} as room
was = room.{name}

def signalled(*given):
    {before}
    os.kill(os.getpid(), signal.{number})
    return was(*given)

room.{name} = signalled
from tui_eval.__main__ import main
main()
"""


def signalled(project: Path, code: str, *arguments: str, **values: str) -> subprocess.CompletedProcess[str]:
    """The command in a process that sends itself a signal at that place."""
    (project / "signalled.py").write_text(code.format(**values))
    command = [sys.executable, "signalled.py", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60)


@pytest.mark.usually(1)
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_after_the_last_attempt_lets_the_files_be_written(
    project: Path, number: str, code: int
) -> None:
    place = {"module": "commands.run_suites", "name": "write_files", "before": "pass"}
    done = signalled(project, SIGNALLED, "run", ".", "-o", "out.json", number=number, **place)
    assert done.returncode == code and "Traceback" not in done.stderr, done
    assert "stopping once the results are written" in done.stderr
    assert len(json.loads((project / "out.json").read_text())["results"]) == 3


@pytest.mark.usually(1)
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_during_an_export_leaves_no_half(cli: Cli, project: Path, number: str, code: int) -> None:
    cli("run", ".")
    before = "given[1].write_text('half')"
    place = {"module": "reports.results", "name": "write", "before": before}
    done = signalled(project, SIGNALLED, "export", "last", "-o", "out.json", number=number, **place)
    assert done.returncode == code and "Traceback" not in done.stderr, done
    assert not [*project.glob(".*.part"), *project.glob("out.json")]


def test_ctrl_c_while_the_program_is_imported_says_nothing(project: Path) -> None:
    code = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "tui_eval.commands.options":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from tui_eval.__main__ import main
main()
"""
    done = signalled(project, code, "list", ".")
    assert (done.returncode, done.stderr, done.stdout) == (130, "", "")


def test_interrupted_without_a_store_offers_no_resume(project: Path) -> None:
    process = begin(project, "--no-store")
    until_the_first_is_done(process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "resume" not in err
    assert not (project / ".tui-eval").exists()


def test_an_interrupted_run_whose_files_had_errors_ends_attach_as_show(cli: Cli, project: Path) -> None:
    """It gave 1, and not a word about the file."""
    (project / "broken.yaml").write_text("test_cases: [")
    process = begin(project)
    until_the_first_is_done(process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert cli("show").code == 4
    followed = cli("attach", "--display", "plain")
    assert followed.code == 4 and "not all of its files could be read" in followed.err
    assert "the run was interrupted; go on with: tui-eval resume" in followed.err


def test_a_run_of_another_terminal_is_followed_and_cancelled(cli: Cli, project: Path) -> None:
    process = begin(project)
    until_the_first_is_done(process)
    assert "cancelled: 1 attempt had not ended" in cli("cancel").out
    followed = cli("attach")
    assert followed.code == 1 and "1 passed, 0 failed, 1 cancelled, 2 total" in followed.out
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and "stopped: cancelled" in out
    assert cli("cancel").code == 4, "it has ended"


def test_a_reader_that_goes_away_is_no_error(project: Path) -> None:
    command = f"{sys.executable} -m tui_eval list . | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_a_terminal_that_goes_away_stops_the_run_and_the_files_are_written(cli: Cli, project: Path) -> None:
    ours, theirs = os.openpty()
    (project / "suite.yaml").write_text(SUITE)
    (project / "agent.script.yaml").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "tui_eval", "run", ".", "-j", "1", "-o", "results.json"],
        cwd=project, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    try:
        os.close(theirs)
        seen = b""
        while b"/2]" not in seen:
            seen += os.read(ours, 4096)
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=60) == 129
    finally:
        process.kill()
    (row,) = cli("runs", "--json").json
    assert row["state"] == "interrupted"
    assert json.loads((project / "results.json").read_text())["summary"]["not_run"] == 1


@pytest.mark.parametrize("display", ["plain", "json"])
def test_a_run_that_outlives_its_terminal_ends_as_its_cases_did(
    cli: Cli, project: Path, display: str
) -> None:
    ours, theirs = os.openpty()
    (project / "suite.yaml").write_text(SUITE)
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: done\n")
    os.close(ours)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tui_eval", "run", ".", "--display", display, "-o", "results.json"],
            cwd=project, stdin=theirs, stdout=theirs, stderr=theirs, timeout=60,
        )  # fmt: skip
    finally:
        os.close(theirs)
    assert done.returncode == 0, "all passed, and is kept"
    assert json.loads((project / "results.json").read_text())["summary"]["passed"] == 2
    assert cli("runs", "--json").json[0]["state"] == "finished"


@pytest.mark.parametrize("display", ["plain", "json"])
def test_where_stdout_goes_is_full_and_all_is_run_and_written(cli: Cli, project: Path, display: str) -> None:
    (project / "suite.yaml").write_text(SUITE)
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: done\n")
    command = [sys.executable, "-m", "tui_eval", "run", ".", "--display", display, "-o", "results.json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=project, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 4, "what stdout was to have is not there"
    assert done.stderr.count("stdout cannot be written: No space left on device") == 1
    assert "internal error" not in done.stderr
    assert json.loads((project / "results.json").read_text())["summary"]["passed"] == 2
    assert cli("runs", "--json").json[0]["state"] == "finished"


@pytest.mark.usually(2)
@pytest.mark.parametrize("words", ["--help", "--version", "run --help", ". --help"])
def test_help_that_cannot_be_printed_ends_as_all_else_that_cannot_be(words: str) -> None:
    """It was an internal error with a crash report; and 1 where a reader (head) had enough."""
    program = f"{sys.executable} -m tui_eval {words}"
    full = subprocess.run(
        ["bash", "-c", f"{program} > /dev/full"], capture_output=True, text=True, timeout=60
    )
    assert full.returncode == 4
    assert full.stderr == "stdout cannot be written: No space left on device; it lacks what follows\n"
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run(program.split(), stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert (gone.returncode, gone.stderr) == (0, "")


@pytest.mark.usually(1)
@pytest.mark.parametrize("closed", ["2>/dev/full", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_whose_progress_nobody_sees_is_a_run(project: Path, closed: str) -> None:
    (project / "suite.yaml").write_text(SUITE)
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: done\n")
    command = f"{sys.executable} -m tui_eval run . -o results.json {closed}"
    done = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads((project / "results.json").read_text())["summary"]["passed"] == 2


@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("given", "letters"),
    [
        ({"PYTHONIOENCODING": "ascii"}, True),
        ({"LANG": "C"}, True),  # Python itself writes UTF-8 there
        ({"LC_ALL": "POSIX"}, True),
        ({}, False),  # as in most containers
        ({"LANG": "C.UTF-8"}, False),
        ({"LANG": "C", "PYTHONUTF8": "1"}, False),
    ],
)
def test_a_terminal_without_utf8_gets_letters(project: Path, given: dict[str, str], letters: bool) -> None:
    (project / "suite.yaml").write_text(SUITE.replace("slow", "quick too"))
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: done\n")
    named = ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONUTF8", "PYTHONIOENCODING")
    env = {name: value for name, value in os.environ.items() if name not in named} | given
    done = subprocess.run(
        [sys.executable, "-m", "tui_eval", "run", "."], cwd=project, capture_output=True, env=env, timeout=60
    )
    assert done.returncode == 0
    assert (b"P passed" in done.stdout and max(done.stdout) < 128) == letters
    assert ("✓ passed".encode() in done.stdout) != letters


@pytest.mark.real
def test_a_run_whose_process_is_stopped_does_not_hold_who_cancels_it(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_runs, "_ENGINE_ANSWERS_WITHIN", 1.0)
    process = begin(project)
    try:
        until_the_first_is_done(process)
        process.send_signal(signal.SIGSTOP)
        told = cli("cancel")
        assert told.code == 4 and "does not answer" in told.err and told.err.count("\n") == 1
    finally:
        process.kill()
        process.communicate()


@pytest.mark.real
def test_going_on_with_a_run_whose_file_had_an_error_is_no_success(cli: Cli, project: Path) -> None:
    """Whether a process was killed in between changes nothing of what could not be read."""
    process = begin(project)
    until_the_first_is_done(process)
    process.kill()
    process.communicate(timeout=60)
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: done\n")
    assert cli("resume").code == 0
    (project / "suite.yaml").write_text(SUITE + "  - {name: odd, inptu: x}\n")
    (project / "agent.script.yaml").write_text(SLOW)
    again = subprocess.Popen(
        [sys.executable, "-m", "tui_eval", "run", ".", "-j", "1"],
        cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    until_the_first_is_done(again)
    again.kill()
    again.communicate(timeout=60)
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: done\n")
    for command in ("resume", "resume", "attach"):
        told = cli(command, *(["--display", "plain"] if command == "attach" else []))
        assert told.code == 4, command
        assert "could be read when the run was begun (1 error)" in told.err
