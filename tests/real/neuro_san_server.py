"""The real neuro-san server on loopback, its model played by the recipe's mock."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

RECIPE = Path(__file__).parent.parent / "vectors" / "neurosan_recipe"
VERSION = "0.6.98"
PACKAGES = (f"neuro-san=={VERSION}", "leaf-common==1.3.6")


class NotHere(Exception):
    """Why the server cannot be had on this machine."""


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
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tui-eval-tests"
    folder = cache / f"neuro-san-{VERSION}"
    python = folder / "bin" / "python"
    if _works(python):
        return python
    base = interpreter()
    shutil.rmtree(folder, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    subprocess.run([base, "-m", "venv", folder], check=True, capture_output=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        last = (done.stderr.strip().splitlines() or ["no word why"])[-1]
        raise NotHere(f"pip cannot install neuro-san {VERSION}: {last}")
    return python


def _works(python: Path) -> bool:
    if not python.exists():
        return False
    asked = "from importlib.metadata import version; print(version('neuro-san'), version('leaf-common'))"
    said = subprocess.run([python, "-c", asked], capture_output=True, text=True).stdout.split()
    return said == [package.partition("==")[2] for package in PACKAGES]


@contextmanager
def serving(log: Path) -> Iterator[Running]:
    """The server with the recipe's networks; both processes are stopped at the end.

    Raises:
        NotHere: there is no Python for it, or no way to install it.
    """
    python = library()
    with log.open("wb") as out:
        mock_port, port = _free_port(), _free_port()
        mock = subprocess.Popen(
            [sys.executable, RECIPE / "mock_llm.py", str(mock_port)], stdout=out, stderr=out
        )
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        for proxy in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            environment.pop(proxy, None)
        server = subprocess.Popen(
            ["sh", RECIPE / "start_server.sh", python, str(port), str(mock_port)],
            stdout=out, stderr=out, cwd=log.parent, env=environment,
        )  # fmt: skip
        try:
            _until_healthy(f"http://127.0.0.1:{mock_port}/", mock, log)
            _until_healthy(f"http://127.0.0.1:{port}/healthz", server, log)
            yield Running(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{mock_port}/v1", python)
        finally:
            for process in (server, mock):
                process.terminate()
            for process in (server, mock):
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        time.sleep(0.05)
    raise AssertionError(f"{url} does not answer: {log.read_text(errors='replace')[-3000:]}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
