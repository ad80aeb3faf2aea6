"""What the real servers share: virtual environments made once and kept, processes, ports, waiting."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tui-eval-tests"


class NotHere(Exception):
    """Why a server cannot be had on this machine."""


def environment(**more: str) -> dict[str, str]:
    """This process's variables without proxies, which know nothing of loopback, and some more."""
    around = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return {**around, **more}


def virtual_environment(name: str, base: Path | str, packages: Sequence[str]) -> Path:
    """The Python of a virtual environment with these packages (`name==version`, extras allowed).

    Raises:
        NotHere: they cannot be installed.
    """
    folder = CACHE / name
    python = folder / "bin" / "python"
    if python.exists() and all(_there(python, package) for package in packages):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run([base, "-m", "venv", folder], check=True, capture_output=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        last = (done.stderr.strip().splitlines() or ["no word why"])[-1]
        raise NotHere(f"pip cannot install {' '.join(packages)}: {last}")
    return python


def _there(python: Path, package: str) -> bool:
    name, _, version = package.partition("==")
    asked = f"from importlib.metadata import version; print(version({name.partition('[')[0]!r}))"
    return subprocess.run([python, "-c", asked], capture_output=True, text=True).stdout.strip() == version


@contextmanager
def ended_after(*processes: subprocess.Popen[Any], by: signal.Signals = signal.SIGTERM) -> Iterator[None]:
    """Ends the processes, by force where they do not listen."""
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(by)
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until_healthy(url: str, process: subprocess.Popen[Any], log: Path | None = None) -> None:
    """Wait until a server answers; fails with the end of its log where it ended instead."""
    end = time.monotonic() + 240
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        assert process.poll() is None, _end_of(log)
        time.sleep(0.05)
    raise AssertionError(f"{url} does not answer: {_end_of(log)}")


def _end_of(log: Path | None) -> str:
    return log.read_text(errors="replace")[-3000:] if log else ""
