"""Ports for what is told its number beforehand."""

from __future__ import annotations

import os
import random
import socket


def free_port() -> int:
    """A port that nothing listens on, outside the range from which the system gives ports to others; each
    process of one run of the tests has a range of its own, so that no other is told the same."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    first = 20_000 + 1000 * (int(worker) % 11 + 1 if worker.isdecimal() else 0)
    while True:
        port = random.randrange(first, first + 1000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
