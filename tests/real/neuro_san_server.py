"""The real neuro-san server on loopback, its model played by the recipe's mock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real.processes import (
    NotHere,
    ended_after,
    environment,
    until_healthy,
    virtual_environment,
)
from tests.support.ports import free_port

RECIPE = Path(__file__).parent.parent / "vectors" / "neurosan_recipe"
VERSION = "0.6.98"
PACKAGES = (f"neuro-san=={VERSION}", "leaf-common==1.3.6")


@dataclass(frozen=True)
class Running:
    """Addresses of the server and of the mock model behind it, and the Python that has neuro-san."""

    url: str
    model_url: str
    python: Path


def interpreter() -> Path:
    """A Python that neuro-san runs on (3.12 or later), on PATH or from pyenv."""
    names = [shutil.which(f"python3.{minor}") for minor in range(12, 16)]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [Path(name) for name in names if name]
    for minor in range(12, 16):
        found.extend(sorted(versions.glob(f"3.{minor}.*/bin/python")))
    for path in found:
        # A pyenv shim exists for versions that are not switched on.
        asked = subprocess.run([path, "-c", "import sys, venv; print(sys.version)"], capture_output=True)
        if asked.returncode == 0:
            return path
    raise NotHere("neuro-san needs Python 3.12 or later; none on PATH, none from pyenv")


def library() -> Path:
    """The Python of a virtual environment with neuro-san, made once and kept."""
    return virtual_environment(f"neuro-san-{VERSION}", interpreter(), PACKAGES)


@contextmanager
def serving(log: Path) -> Iterator[Running]:
    """The server with the recipe's networks; both processes are stopped at the end.

    Raises:
        NotHere: there is no Python for it, or no way to install it.
    """
    python = library()
    mock_port, port = free_port(), free_port()
    with log.open("wb") as out:
        mock = subprocess.Popen(
            [sys.executable, RECIPE / "mock_llm.py", str(mock_port)], stdout=out, stderr=out
        )
        server = subprocess.Popen(
            ["sh", RECIPE / "start_server.sh", python, str(port), str(mock_port)],
            stdout=out, stderr=out, cwd=log.parent, env=environment(PYTHONDONTWRITEBYTECODE="1"),
        )  # fmt: skip
    with ended_after(server, mock):
        until_healthy(f"http://127.0.0.1:{mock_port}/", mock, log)
        until_healthy(f"http://127.0.0.1:{port}/healthz", server, log)
        yield Running(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{mock_port}/v1", python)
