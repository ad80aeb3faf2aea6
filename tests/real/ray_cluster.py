"""A Ray cluster of several nodes on this machine, and an agent that counts what it was asked."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from tests.servers.openai import OpenAIServer

T = TypeVar("T")
STORE = 80 * 2**20
"""Bytes of each node's object store: the least that Ray takes."""
_TRIES = 6


class RayCluster:
    """A head without processors and nodes with one each; `address` is what `--on` takes."""

    def __init__(self) -> None:
        made = import_module("ray.cluster_utils").Cluster
        self._cluster: Any = _patiently(
            lambda: made(
                initialize_head=True,
                head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False},
            )
        )
        self.address: str = self._cluster.address
        self.session: str = self._cluster.head_node.get_session_dir_path()

    def add_node(self) -> Any:
        """One more node with a processor. In the main thread: Ray sets a signal."""
        return _patiently(lambda: self._cluster.add_node(num_cpus=1, object_store_memory=STORE, wait=False))

    def remove_node(self, node: Any) -> None:
        """Take a node away, as when its machine is switched off."""
        self._cluster.remove_node(node, allow_graceful=False)

    def end_head(self) -> None:
        """Take the head away, with what knows all nodes."""
        self._cluster.head_node.kill_gcs_server(check_alive=False)
        self._cluster.remove_node(self._cluster.head_node, allow_graceful=False)

    def end(self) -> None:
        """End what is left of it."""
        with suppress(Exception):
            self._cluster.shutdown()


def _patiently(start: Callable[[], T]) -> T:
    """Ray gives each of its nodes 30 seconds, in which a busy machine does not always start one."""
    for _ in range(_TRIES - 1):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return start()


@contextmanager
def without_proxies() -> Iterator[None]:
    """Ray's own connections must not go through one."""
    kept = {name: os.environ.pop(name) for name in list(os.environ) if "proxy" in name.lower()}
    try:
        yield
    finally:
        os.environ.update(kept)


class GatedServer(OpenAIServer):
    """Answers `allowed` messages and keeps the others waiting; counts how often each was asked and answered."""

    def __init__(self) -> None:
        super().__init__(log=False)
        self.allowed = 0
        self.asks: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """One answer, when it is its turn."""
        message = (await request.json())["messages"][-1]["content"]
        self.asks[message] += 1
        # Another thread opens the gate.
        while self.answers.total() >= self.allowed:
            await asyncio.sleep(0.02)
            if request.transport is None or request.transport.is_closing():  # who asked has been killed
                return web.Response()
        self.answers[message] += 1
        return await super().complete(request)


def workers_of_this_machine() -> list[int]:
    """The process ids of the workers that run here."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and (folder / "cmdline").read_bytes().startswith(b"ray::RayWorker"):
                found.append(int(folder.name))
    return found


def kill(process: int) -> None:
    """As the kernel does when memory runs out."""
    os.kill(process, signal.SIGKILL)
