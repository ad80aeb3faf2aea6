"""Where a run's results come from: versions, command, git commit, hashes of agents' configuration."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import __version__
from tui_eval.config import AgentSpec
from tui_eval.engine.plan import Job
from tui_eval.guard.secrets import Masker

_FILE_LIMIT = 200  # files of one agent that are hashed


def provenance(root: Path, jobs: list[Job], command: str, masker: Masker) -> dict[str, Any]:
    """JSON-able facts; never fails. Reads git and the agents' files: call it in a thread."""
    specs = {job.spec.name: job.spec for job in jobs if job.spec is not None}
    return {
        "tui_eval": __version__,
        "python": platform.python_version(),
        "platform": sys.platform,
        "command": masker.text(command),
        "git": _git(root),
        "agents": {name: _agent(spec, root) for name, spec in specs.items()},
    }


def _agent(spec: AgentSpec, root: Path) -> dict[str, Any]:
    digest = hashlib.sha256(msgspec.json.encode(spec, enc_hook=str)).hexdigest()[:16]
    base = Path(spec.base or root)
    files = hashlib.sha256()
    for path in agent_files(spec, base)[:_FILE_LIMIT]:
        try:
            files.update(str(path).encode("utf-8", "surrogateescape"))
            files.update(path.read_bytes())
        except OSError:
            continue
    return {"type": spec.type, "config": digest, "files": files.hexdigest()[:16]}


def agent_files(spec: AgentSpec, base: Path) -> list[Path]:
    """The files an agent is made of: `files:`, and those its own keys name, sorted."""
    named = list(spec.files)
    for key in ("function", "script", "system"):
        value = spec.options.get(key)
        if isinstance(value, str) and (key != "system" or value.startswith("file://")):
            named.append(value.removeprefix("file://"))
    found: set[Path] = set()
    for name in named:
        path = base / name
        if not path.exists() and ":" in name:
            path = base / name.rpartition(":")[0]
        if path.is_dir():
            found.update(entry for entry in path.rglob("*") if entry.is_file())
        elif path.is_file():
            found.add(path)
    return sorted(found)


def _git(root: Path) -> dict[str, Any] | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}

    def ask(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *arguments],
                capture_output=True, text=True, timeout=3, env=environment, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "dirty": bool(ask("status", "--porcelain", "--untracked-files=no"))}
