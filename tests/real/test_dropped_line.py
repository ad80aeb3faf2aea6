"""The line drops in the middle of a run, in every way there is: the run goes on, the app opened again follows it, and
the last line of every screen says how far it is."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.real.test_ssh import Server, server, state_of  # noqa: F401 - a fixture of the module
from tests.support.terminal import Terminal
from tui_eval.store.run_folders import Store, StoreError

pytestmark = pytest.mark.real
CASES = 12
SHOWN = Path(os.environ.get("TUI_EVAL_CAPTURES", "/nonexistent"))
"""Where the screens that were seen are kept, for whoever wants to look at them."""


class Agent:
    """A server that answers as often as it is allowed to, so that a run lasts as long as a test wants it to."""

    def __init__(self) -> None:
        self._allowed = threading.Semaphore(0)
        self._over = threading.Event()
        agent = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                agent.wait()
                body = json.dumps({"reply": "said so"}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self) -> None:
        """Until one more answer is allowed, or all are."""
        while not self._over.is_set() and not self._allowed.acquire(timeout=0.05):
            pass

    def allow(self, answers: int) -> None:
        """So many more answers."""
        self._allowed.release(answers)

    def all(self) -> None:
        """As many as there are."""
        self._over.set()


@pytest.fixture
def agent() -> Iterator[Agent]:
    made = Agent()
    yield made
    made.all()
    made.server.shutdown()


@pytest.fixture
def project(tmp_path: Path, agent: Agent) -> Path:
    """Cases of which one fails."""
    folder = tmp_path / "project"
    folder.mkdir()
    url = f"http://127.0.0.1:{agent.server.server_address[1]}/"
    (folder / "tui_eval.yaml").write_text(
        f"agents: {{helper: {{type: http, url: '{url}', timeout: 600}}}}\nrun: {{concurrency: 2, timeout: 600}}\n"
    )
    cases = "".join(
        f"  - {{name: case {n:02}, input: hello {n}, expected: {{should_contain: ['{'never' if n == 1 else 'said'}']}}}}\n"
        for n in range(1, CASES + 1)
    )
    (folder / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{cases}")
    return folder


def until(condition: Callable[[], bool], app: Terminal | None = None, seconds: float = 90.0) -> None:
    """Wait until something is so, reading what the terminal sends."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, app.text if app is not None else "waited too long"
        if app is not None:
            app.read(0.05)
        else:
            time.sleep(0.05)


def run_of(folder: Path) -> Path:
    found = list(Store(folder).run_folders())
    return found[0] if len(found) == 1 else Path()


def done(folder: Path) -> int:
    """How many attempts of the one run have ended."""
    run = run_of(folder)
    try:
        return state_of(run)[1] if run.name else 0
    except StoreError:
        return 0  # it is just being begun


def shown(app: Terminal, name: str) -> None:
    """Keep what is seen."""
    if SHOWN.is_dir():
        (SHOWN / f"{name}.txt").write_text(app.text)


def last_line(app: Terminal) -> str:
    lines = [line for line in app.text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def kill_ssh(app: Terminal, _: Path) -> None:
    """As when the network goes: nothing is said."""
    app.kill(signal.SIGKILL)
    until(lambda: gone(app), app)


def leave_at_once(app: Terminal, _: Path) -> None:
    app.send("Q")
    assert app.wait() == 0
    assert "goes on" in app.text and "tui-eval attach" in app.text


def stop_the_client(app: Terminal, _: Path) -> None:
    """A closed laptop: the client is there, and reads and says nothing."""
    app.kill(signal.SIGSTOP)


def kill_the_pane(app: Terminal, socket: Path) -> None:
    subprocess.run(["tmux", "-S", str(socket), "kill-pane", "-t", "app"], check=True)
    app.wait()


def gone(app: Terminal) -> bool:
    app.read(0.05)
    pid, status = os.waitpid(app.pid, os.WNOHANG)
    if pid:
        app.status = os.waitstatus_to_exitcode(status)
    return bool(pid)


WAYS = {
    "kill -9 of ssh": kill_ssh,
    "Q": leave_at_once,
    "SIGSTOP of the client": stop_the_client,
    "a killed tmux pane": kill_the_pane,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_run_goes_on_and_is_followed(server: Server, agent: Agent, project: Path, way: str) -> None:  # noqa: F811
    socket = project.parent / "tmux"
    if way == "a killed tmux pane":
        if shutil.which("tmux") is None:
            pytest.skip("no tmux here")
        app = server.open_in_tmux(project, socket, ".")
    else:
        app = server.open(project, ".")
    agent.allow(3)
    again: Terminal | None = None
    try:
        app.until(f"{CASES} cases")
        app.send("a")
        until(lambda: done(project) == 3, app)
        app.until(f"3/{CASES}")
        shown(app, f"before, {way}")
        WAYS[way](app, socket)
        agent.allow(2)
        until(lambda: done(project) == 5)  # nobody is there, and the run goes on
        assert state_of(run_of(project))[0] == "running"
        again = server.open(project, ".")
        follow(again, agent, project, way)
        if way == "SIGSTOP of the client":
            app.kill(signal.SIGCONT)  # the laptop is opened again: it is where it was, and knows the end
            app.until(f"{CASES}/{CASES}")
            shown(app, "the client that was stopped")
            app.send("Q")
            assert app.wait() == 0
    finally:
        if app.status is None:
            app.kill(signal.SIGCONT)
        app.close()
        if again is not None:
            again.close()
        if socket.exists():
            subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False)


def follow(app: Terminal, agent: Agent, project: Path, way: str) -> None:
    """The app opened again: how far the run is stands in the last line of every screen, until it has ended."""
    far = f"5/{CASES}"
    app.until(far)
    for keys, name, sign in (
        ("", "suites", f"1 suite · {CASES} cases"),
        ("]\r", "a case", "1 Transcript"),
        ("\x1b", "suites", f"1 suite · {CASES} cases"),
        ("H", "runs", "Runs"),
        ("\x1b", "suites", f"1 suite · {CASES} cases"),
        (",", "settings", "Settings"),
        ("\x1b", "suites", f"1 suite · {CASES} cases"),
        ("?", "help", "Help: "),
        ("\x1b", "suites", f"1 suite · {CASES} cases"),
        ("l", "the log", "Log"),
        ("\x1b", "suites", f"1 suite · {CASES} cases"),
    ):
        app.send(keys)
        until(lambda sign=sign: sign in app.text and far in last_line(app), app)
        shown(app, f"again, {way}, {name}")
    agent.allow(1)
    until(lambda: f"6/{CASES}" in last_line(app), app)
    app.send("L")
    app.until(f"6/{CASES}")
    shown(app, f"again, {way}, the run")
    agent.all()
    app.until("finished")
    app.until(f"{CASES}/{CASES}")
    app.send("U")
    until(lambda: f"/{CASES}" not in last_line(app), app)
    shown(app, f"again, {way}, at the end")
    assert state_of(run_of(project)) == ("finished", CASES)
    app.send("q")
    assert app.wait() == 0
