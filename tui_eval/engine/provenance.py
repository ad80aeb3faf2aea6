"""Where a run's results come from: versions, command, git commit, hashes of agents' configuration."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any

from tui_eval import __version__
from tui_eval.config import Config
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.git_state import git_state
from tui_eval.engine.plan import Job
from tui_eval.guard.secrets import Masker
from tui_eval.guard.trust import Trust


def provenance(config: Config, trust: Trust, jobs: list[Job], command: str, masker: Masker) -> dict[str, Any]:
    """JSON-able facts; never fails. Reads git, the agents' files and those that cases name: call it in a thread."""
    specs = {job.spec.name: job.spec for job in jobs if job.spec is not None}
    marks = Fingerprints(config, trust)
    files = marks.of_jobs(jobs)
    return {
        "tui_eval": __version__,
        "python": platform.python_version(),
        "platform": sys.platform,
        "command": masker.text(command),
        "git": _git(config.root),
        "agents": {name: marks.agent(spec) for name, spec in specs.items()},
        **({"files": files} if files else {"too_many_files": True} if files is None else {}),
    }


def _git(root: Path) -> dict[str, Any] | None:
    state = git_state(root)
    return {"commit": state.commit, "dirty": state.dirty} if state is not None else None
