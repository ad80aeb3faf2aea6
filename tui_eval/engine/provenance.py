"""Where a run's results come from: versions, command, git commit, hashes of agents' configuration."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import __version__
from tui_eval.config.project import Config
from tui_eval.engine.changed import VerdictSettings, marked_as
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.plan import Job
from tui_eval.guard.masker import Masker
from tui_eval.guard.paths import read_plain
from tui_eval.guard.trust import Trust
from tui_eval.store import judged_under

# -- The commit a folder is at, and whether it was changed since, without obeying the folder's configuration.


_SMALL = 64 * 1024
_PACKED = 64 * 1024 * 1024
_SECONDS = 3.0
_MEMORY = 1024 * 1024 * 1024
_LINKS = 5
_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_REF = r"refs/[^\x00-\x20\x7f~^:?*\[\\]+"
_HARMLESS = (
    r"(?im)^\s*(filemode|symlinks|ignorecase|trustctime|checkstat|autocrlf|eol|precomposeunicode)"
    r"\s*=\s*(true|false|input|default|minimal|lf|crlf|native)\s*$"
)
_WORKTREE = r"(?im)^\s*worktree\s*=\s*(\S.*?)\s*$"


class GitState(msgspec.Struct, frozen=True):
    """`dirty`: tracked files differ from the commit; None where that could not be found out."""

    commit: str
    dirty: bool | None


class _Repository(msgspec.Struct, frozen=True):
    """`own` holds HEAD and the index, `common` objects and references; they differ in a linked work tree."""

    root: Path
    own: Path
    common: Path


def git_state(folder: Path) -> GitState | None:
    """The state of the repository around a folder; None where there is none, no commit, or one that is kept in a
    way not read here (reftable). Blocks, for at most some seconds; never raises."""
    try:
        for root in (folder, *folder.parents):
            if os.path.lexists(root / ".git"):
                repository = _repository(root)
                commit = _commit(repository) if repository is not None else None
                if repository is None or commit is None:
                    return None
                return GitState(commit, _dirty(repository, commit))
    except (OSError, ValueError):
        pass
    return None


def _repository(root: Path) -> _Repository | None:
    """What `.git` of a folder stands for. A link is not followed, and a file that points elsewhere only where the
    other end points back: else a clone could name any repository of this machine."""
    mark = root / ".git"
    if mark.is_symlink():
        return None
    if mark.is_dir():
        return _Repository(root, mark, mark)
    said = _text(mark)
    if said is None or not said.startswith("gitdir:"):
        return None
    own = Path(os.path.abspath(root / said.removeprefix("gitdir:").strip()))
    back = _text(own / "gitdir")
    if back is not None and _same(own / back.strip(), mark):
        common = _text(own / "commondir")
        return _Repository(root, own, Path(os.path.abspath(own / common.strip())) if common else own)
    tree = re.search(_WORKTREE, _text(own / "config") or "")
    if tree is not None and _same(own / tree[1].strip('"'), root):
        return _Repository(root, own, own)
    return None


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _text(path: Path, limit: int = _SMALL) -> str | None:
    try:
        return read_plain(path, limit).decode("utf-8", "surrogateescape")
    except OSError:
        return None


def _commit(repository: _Repository) -> str | None:
    said = _text(repository.own / "HEAD")
    for _ in range(_LINKS):
        if said is None:
            return None
        line = said.strip()
        if re.fullmatch(_COMMIT, line):
            return line
        name = line.removeprefix("ref:").strip()
        if not line.startswith("ref:") or not re.fullmatch(_REF, name) or ".." in name:
            return None
        said = _text(repository.own / name) or _text(repository.common / name) or _packed(repository, name)
    return None


def _packed(repository: _Repository, name: str) -> str | None:
    for line in (_text(repository.common / "packed-refs", _PACKED) or "").splitlines():
        commit, _, reference = line.partition(" ")
        if reference == name:
            return commit
    return None


def _dirty(repository: _Repository, commit: str) -> bool | None:
    git = _program(repository.root)
    index = repository.own / "index"
    objects = repository.common / "objects"
    if git is None or index.is_symlink() or not index.is_file() or objects.is_symlink():
        return None
    with tempfile.TemporaryDirectory(prefix="tui-eval-git-") as made:
        own = Path(made)
        (own / "objects").mkdir()
        (own / "refs").mkdir()
        (own / "HEAD").write_text(f"{commit}\n", "ascii")
        (own / "config").write_text(_config(repository, commit), "ascii")
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": made,
            "XDG_CONFIG_HOME": made,
            "LC_ALL": "C",
            "GIT_DIR": made,
            "GIT_WORK_TREE": str(repository.root),
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        command = [git, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"]
        return _said(command, environment, made)


def _said(command: list[str], environment: dict[str, str], folder: str) -> bool | None:
    """Whether git printed anything; None where it failed, took too long or needed too much memory."""
    with subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        if hasattr(resource, "prlimit"):
            with contextlib.suppress(OSError, ValueError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        try:
            printed, _ = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return None
    return bool(printed.strip()) if process.returncode == 0 else None


def _program(root: Path) -> str | None:
    """The person's git; never one that lies in the folder asked about, or is found by a relative `PATH`."""
    found = shutil.which("git")
    if found is None or not os.path.isabs(found):
        return None
    real = Path(os.path.realpath(found))
    return None if real.is_relative_to(os.path.realpath(root)) else found


def _config(repository: _Repository, commit: str) -> str:
    """A configuration of our own: how files are compared, from the repository's by a list of what is harmless."""
    lines = ["[core]", "repositoryformatversion = 1", "bare = false", "hooksPath = /dev/null"]
    lines += [
        f"{key.lower()} = {value.lower()}"
        for key, value in re.findall(_HARMLESS, _text(repository.common / "config") or "")
    ]
    if len(commit) == 64:
        lines += ["[extensions]", "objectFormat = sha256"]
    return "\n".join(lines) + "\n"


def provenance(config: Config, trust: Trust, jobs: list[Job], command: str, masker: Masker) -> dict[str, Any]:
    """JSON-able facts; never fails. Reads git, the agents' files and those that cases name: call it in a thread."""
    specs = {marked_as(job, config): job.spec for job in jobs if job.spec is not None}
    marks = Fingerprints(config, trust)
    named = marks.of_jobs(jobs)
    files, sets = named or ({}, {})
    return {
        "tui_eval": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "platform": sys.platform,
        "command": masker.text(command),
        "git": _git(config.root),
        "agents": {name: marks.agent(spec) for name, spec in specs.items()},
        **({"too_many_files": True} if named is None else {"files": files} if files else {}),
        **({judged_under.FILE_SETS: sets} if sets else {}),
        judged_under.SETTINGS: VerdictSettings(marks).of_jobs(jobs),
    }


def agents_asked(agents: dict[str, Any], config: Config, trust: Trust, jobs: list[Job]) -> dict[str, Any]:
    """The marks of a run's agents at its end: of one that is another by now nobody knows which of the two has
    answered, so that `--changed` runs its cases. Reads their files: call it in a thread."""
    specs = {marked_as(job, config): job.spec for job in jobs if job.spec is not None}
    marks = Fingerprints(config, trust)
    return {
        name: {**known, "files": "changed while it ran"}
        if name in specs and isinstance(known, dict) and marks.agent(specs[name]) != known
        else known
        for name, known in agents.items()
    }


def rewritten(
    facts: dict[str, Any], config: Config, trust: Trust, jobs: list[Job], since: float
) -> list[str]:
    """Those of a run's agents with files, and of the files that its cases name, that were written since it
    began: whatever they are now, what some of it rests on may be another. Looks at files: call it in a
    thread."""
    specs = {marked_as(job, config): job.spec for job in jobs if job.spec is not None}
    marks = Fingerprints(config, trust)
    files = facts.get("files")
    named = {path: [config.root / path] for path in (files if isinstance(files, dict) else ())}
    asked = {name: marks.files_of_agent(spec) for name, spec in specs.items()}
    return sorted(
        name
        for name, found in (*asked.items(), *named.items())
        if any(_written_since(file, since) for file in found)
    )


def _written_since(file: Path, since: float) -> bool:
    """Whether a file was written, or put in its place, since then; not as a clock that was ahead has it."""
    with contextlib.suppress(OSError):
        status = file.stat()
        return any(since < at <= time.time() for at in (status.st_mtime, status.st_ctime))
    return False


def _git(root: Path) -> dict[str, Any] | None:
    state = git_state(root)
    return {"commit": state.commit, "dirty": state.dirty} if state is not None else None
