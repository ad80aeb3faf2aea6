"""The app through a real sshd on loopback: at 80x24, the connection cut in the middle of a run, attach."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.terminal import LEFT, Terminal
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]


@dataclass
class Server:
    """A running sshd that lets the person who runs the tests in by a key made for it."""

    port: int
    key: Path

    def open(self, folder: Path, *arguments: str) -> Terminal:
        """`tui-eval` in that folder, over ssh, on a terminal of 80x24."""
        return self._login(folder, f"cd {folder} && {_program(folder, *arguments)}")

    def open_in_tmux(self, folder: Path, socket: Path, *arguments: str) -> Terminal:
        """The same in a pane of tmux there, whose server is at this socket; the session is called `app`."""
        program = shlex.quote(f"cd {folder} && {_program(folder, *arguments)}")
        return self._login(folder, f"tmux -S {socket} -f /dev/null new-session -s app {program}")

    def _login(self, folder: Path, remote: str) -> Terminal:
        options = [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "BatchMode=yes",
        ]
        command = ["ssh", "-tt", "-F", "none", "-p", str(self.port), "-i", str(self.key)]
        for option in options:
            command += ["-o", option]
        return Terminal([*command, f"{getpass.getuser()}@127.0.0.1", remote], folder)


def _program(folder: Path, *arguments: str) -> str:
    homes = f"XDG_STATE_HOME={folder}/.state XDG_CONFIG_HOME={folder}/.config"
    environment = f"TUI_EVAL_TOUR=0 PYTHONUTF8=1 PYTHONPATH={ROOT} {homes}"
    return f"{environment} {sys.executable} -m tui_eval {' '.join(arguments)}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("ssh") is None:
        pytest.skip("no sshd here")
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "person"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    port = free_port()
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/person.pub\nStrictModes no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\nAllowTcpForwarding no\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", folder / "config"], stdout=log, stderr=log)
        running = Server(port, folder / "person")
        try:
            end = time.monotonic() + 60
            while True:
                probe = Terminal(
                    ["ssh", "-F", "none", "-p", str(port), "-i", str(running.key), "-o", "BatchMode=yes",
                     "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                     f"{getpass.getuser()}@127.0.0.1", "true"],
                    folder,
                )  # fmt: skip
                code = probe.wait(60)
                probe.close()
                if code == 0:
                    break
                if process.poll() is not None or time.monotonic() > end:
                    pytest.skip(f"sshd lets nobody in: {(folder / 'log').read_text()[-300:]}")
            yield running
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "samples"
    shutil.copytree(ROOT / "sample_suites", target, ignore=shutil.ignore_patterns(".tui-eval", "__pycache__"))
    return target


def state_of(run: Path) -> tuple[str, int]:
    """The run's state, and how many attempts are done."""
    reader = RunReader(run)
    try:
        return reader.info().state, sum(row.state == "done" for row in reader.changes(0))
    finally:
        reader.close()


def test_the_loop_over_ssh_and_a_cut_connection(server: Server, folder: Path) -> None:
    app = server.open(folder, ".")
    try:
        app.until("60 cases", 30)
        app.quiet(1.0)
        assert app.screen.lines == 24
        app.send("a")
        app.until("passed", 20)
        app.kill(signal.SIGKILL)  # the connection is gone, nothing was said
    finally:
        app.close()
    (run,) = Store(folder).run_folders()
    state, done = state_of(run)
    assert state == "running" and done < 71

    again = server.open(folder, "attach", run.name)
    try:
        again.until("running", 20)
        again.until("finished", 60)
        again.until("71/71", 10)
        assert state_of(run)[0] == "finished"
        again.send("]")
        again.quiet(0.5)
        again.send("\r")
        again.until("1 Transcript", 20)
        again.send("Q")
        assert again.wait() == 0 and LEFT in again.output
    finally:
        again.close()


def test_the_terminal_is_put_back_and_the_exit_code_comes_through(server: Server, folder: Path) -> None:
    app = server.open(folder, ".")
    try:
        app.until("60 cases", 30)
        app.send("q")
        assert app.wait() == 0
        end = app.output[app.output.rfind(LEFT) :]
        assert b"\x1b[?25h" in end
    finally:
        app.close()
    wrong = server.open(folder, "no-such-folder")
    try:
        assert wrong.wait() == 4
        assert "no such file" in wrong.text
    finally:
        wrong.close()
