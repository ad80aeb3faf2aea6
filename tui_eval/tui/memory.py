"""What comes back the next time: theme, cursor, filter, sort and folds, per project.

Kept in the person's state folder, never in the project; a damaged or unwritable file is no memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tui_eval.guard.trust_store import state_home


def _file(root: Path) -> Path:
    return state_home() / "places" / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.json"


def recall(root: Path) -> dict[str, Any]:
    """What was remembered of this project."""
    try:
        stored = json.loads(_file(root).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def remember(root: Path, values: dict[str, Any]) -> None:
    """Remember this for the next time; nothing is said where it cannot be written."""
    file = _file(root)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(values), "utf-8")
        os.replace(temporary, file)
    except OSError:
        return
