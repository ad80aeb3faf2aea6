"""Ports for what is told its number beforehand."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A port that nothing listens on, outside the range from which the system gives ports to others."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
