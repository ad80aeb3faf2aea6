"""Where a run's results come from: versions, command, git commit, hashes of agents' configuration."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import __version__
from tui_eval.config import AgentSpec
from tui_eval.engine.git_state import git_state
from tui_eval.engine.plan import Job
from tui_eval.guard.paths import inside, read_plain
from tui_eval.guard.secrets import Masker

_FILE_LIMIT = 200  # files of one agent that are hashed
_SIZE_LIMIT = 16 * 1024 * 1024  # bytes of one of them
_SEEN_LIMIT = 20_000  # entries of a folder that are looked at


def provenance(root: Path, jobs: list[Job], command: str, masker: Masker) -> dict[str, Any]:
    """JSON-able facts; never fails. Reads git and the agents' files: call it in a thread."""
    specs = {job.spec.name: job.spec for job in jobs if job.spec is not None}
    return {
        "tui_eval": __version__,
        "python": platform.python_version(),
        "platform": sys.platform,
        "command": masker.text(command),
        "git": _git(root),
        "agents": {name: agent_marks(spec, root) for name, spec in specs.items()},
    }


def agent_marks(spec: AgentSpec, root: Path) -> dict[str, Any]:
    """An agent's type with hashes of its configuration and its files: the same wherever the project lies."""
    base = Path(spec.base or root)
    placed = msgspec.structs.replace(spec, base=os.path.relpath(base, root))
    digest = hashlib.sha256(msgspec.json.encode(placed, enc_hook=str)).hexdigest()[:16]
    files = hashlib.sha256()
    for path in agent_files(spec, base)[:_FILE_LIMIT]:
        with contextlib.suppress(OSError):
            if not inside(root, path):
                continue  # a hash, too, says something about a file of another place
            files.update(os.path.relpath(path, root).encode("utf-8", "surrogateescape"))
            files.update(read_plain(path.resolve(), _SIZE_LIMIT))
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
            found.update(entry for entry in islice(path.rglob("*"), _SEEN_LIMIT) if entry.is_file())
        elif path.is_file():
            found.add(path)
    return sorted(found)


def _git(root: Path) -> dict[str, Any] | None:
    state = git_state(root)
    return {"commit": state.commit, "dirty": state.dirty} if state is not None else None
