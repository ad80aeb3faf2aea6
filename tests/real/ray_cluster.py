"""A Ray cluster of several nodes on this machine."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tui_eval.slow_imports import hide_in

T = TypeVar("T")
NODE = {"object_store_memory": 80 * 2**20}
"""Of each node: the least of an object store that Ray takes."""
HEAD = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
"""No pages, lines of workers or autoscaler: processes of a second each to start."""
_TRIES = 6
_MARK, _HEAD = "RAY_TUI_EVAL_TESTS", "RAY_TUI_EVAL_HEAD"
"""Variables by which processes of these tests, and of one head, are told from others of this machine."""


class RayCluster:
    """A head without processors, and nodes that tests add; `address` is what `--on` takes."""

    def __init__(self) -> None:
        made = import_module("ray.cluster_utils").Cluster
        self._cluster: Any = _patiently(
            lambda: made(
                initialize_head=True,
                head_node_args={"num_cpus": 0, **HEAD, **NODE},
            )
        )
        self._nodes: list[tuple[int, Any]] = []
        self.address: str = self._cluster.address
        self.session: str = self._cluster.head_node.get_session_dir_path()

    def have_node(self, processors: int = 1) -> Any:
        """The node with so many processors, beside no other one."""
        if [count for count, _ in self._nodes] != [processors]:
            for _, node in list(self._nodes):
                self.remove_node(node)
            self.add_node(processors)
        return self._nodes[0][1]

    def add_node(self, processors: int = 1) -> None:
        """One more node. In the main thread: Ray sets a signal."""
        node = _patiently(lambda: self._cluster.add_node(num_cpus=processors, wait=False, **NODE))
        self._nodes.append((processors, node))

    def remove_node(self, node: Any) -> None:
        """Take a node away, as when its machine is switched off."""
        self._nodes = [one for one in self._nodes if one[1] is not node]
        self._cluster.remove_node(node, allow_graceful=False)

    def end_head(self) -> None:
        """Take the head away, with what knows all nodes."""
        self._cluster.head_node.kill_gcs_server(check_alive=False)
        self._cluster.remove_node(self._cluster.head_node, allow_graceful=False)

    def end(self) -> None:
        """End what is left of it."""
        with suppress(Exception):
            self._cluster.shutdown()


class StartedHead:
    """A machine on which `ray start --head` was called, with two processors: `address` and `client` are what `--on`
    takes. It asks for a token, as each does where one lies."""

    def __init__(self, folder: Path) -> None:
        self._folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # a socket's path must be short
        self.token = folder / "token"
        self.token.write_text(secrets.token_hex(32))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--node-ip-address=127.0.0.1", "--port=0",
            f"--ray-client-server-port={port}", "--num-cpus=2", "--include-dashboard=false", f"--temp-dir={self._folder}",
            f"--object-store-memory={NODE['object_store_memory']}", "--disable-usage-stats",
        ]  # fmt: skip
        environ = {name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"}
        environ |= {"RAY_AUTH_TOKEN_PATH": str(self.token), _HEAD: self._folder}

        def start() -> None:
            done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=200)
            if done.returncode:
                self._end_processes()
                raise RuntimeError(f"timed out during startup: {done.stdout}{done.stderr}")

        _patiently(start)
        self.address = Path(self._folder, "ray_current_cluster").read_text()
        self.client = f"ray://127.0.0.1:{port}"

    def end_client_servers(self) -> None:
        """Take away what `ray://` is answered by."""
        for process in self._processes():
            if b"ray.util.client.server" in _command(process):
                kill(process)

    def end(self) -> None:
        """End what was started, and only that."""
        self._end_processes()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end_processes(self) -> None:
        for process in self._processes():
            with suppress(ProcessLookupError):
                kill(process)

    def _processes(self) -> list[int]:
        return _marked(_HEAD, self._folder)


def _patiently(start: Callable[[], T]) -> T:
    """Ray gives each of its nodes 30 seconds, in which a busy machine does not always start one. What it has started
    until then goes on, and would take the next try's time."""
    own = import_module("psutil").Process()
    for _ in range(_TRIES - 1):
        before = own.children(recursive=True)
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            for left in own.children(recursive=True):
                if left not in before:
                    with suppress(Exception):  # it has ended by itself
                        left.kill()
    return start()


@contextmanager
def environment() -> Iterator[None]:
    """Ray's own connections do not go through a proxy, its processes are known as those of these tests, and import
    nothing slow, as those that a run starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if "proxy" in name.lower()]:
            patch.delenv(name)
        patch.setenv(_MARK, str(os.getpid()))
        with tempfile.TemporaryDirectory() as folder:
            hidden = Path(folder) / "hidden"
            hide_in(hidden)
            patch.setenv(
                "PYTHONPATH", os.pathsep.join(filter(None, (str(hidden), os.environ.get("PYTHONPATH"))))
            )
            yield


def workers() -> list[int]:
    """The process ids of the workers of these tests."""
    return [one for one in _marked(_MARK, str(os.getpid())) if _command(one).startswith(b"ray::RayWorker")]


def connections() -> list[int]:
    """The process ids of those that hold the connections of these tests' engines."""
    marked = _marked(_MARK, str(os.getpid()))
    return [one for one in marked if b"tui_eval.engine.places.ray_driver" in _command(one)]


def raylet_of(connection: int) -> int:
    """The process id of the raylet that a connection has started on this machine."""
    started = import_module("psutil").Process(connection).children(recursive=True)
    (found,) = [one.pid for one in started if b"raylet/raylet" in _command(one.pid).split(b"\0")[0]]
    return found


def _marked(name: str, value: str) -> list[int]:
    """The processes that have a variable of this value in their environment."""
    mark = f"{name}={value}".encode()
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def kill(process: int) -> None:
    """As the kernel does when memory runs out."""
    os.kill(process, signal.SIGKILL)
