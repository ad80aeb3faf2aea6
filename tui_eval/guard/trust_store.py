"""What the person has agreed that folders may do, remembered outside of any project.

Kept in `$XDG_STATE_HOME/tui-eval/trusted.json` (readable by the person alone), so that no project
can grant itself trust. Trust is for exactly the folder asked about, and for exactly what was listed: what is cloned
below a trusted folder later on, and what its suites want later on, has to be asked for again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tui_eval.guard.private import of_person
from tui_eval.guard.trust import Trust


def state_home() -> Path:
    """The folder for what the program remembers about the person: `$XDG_STATE_HOME/tui-eval`."""
    return of_person("XDG_STATE_HOME", ".local", "state") / "tui-eval"


def agreements() -> dict[str, frozenset[str]]:
    """By folder (absolute) what was agreed to. An unreadable or damaged file, and folders that an earlier version
    trusted with everything, agree to nothing."""
    try:
        stored = json.loads((state_home() / "trusted.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    listed = stored.get("agreed") if isinstance(stored, dict) else None
    if not isinstance(listed, dict):
        return {}
    return {
        folder: frozenset(what for what in whats if isinstance(what, str))
        for folder, whats in listed.items()
        if isinstance(whats, list)
    }


def agreed(folder: Path) -> frozenset[str]:
    """What the person agreed to for this folder."""
    return agreements().get(_name(folder), frozenset())


def trust_for(folder: Path, given: bool = False, also: Iterable[str] = ()) -> Trust:
    """The trust that suites of a project have: what is remembered and `also` agreed to, or anything, `given` for
    this time (`--trust`)."""
    return Trust(granted=given, agreed=agreed(folder).union(also))


def grant(folder: Path, whats: Iterable[str]) -> None:
    """Remember what was agreed to for this folder, beside what was before.

    Raises:
        OSError: the state folder cannot be written.
    """
    known = agreements()
    _write({**known, _name(folder): known.get(_name(folder), frozenset()).union(whats)})


def _name(folder: Path) -> str:
    return str(folder.resolve())


def _write(known: Mapping[str, frozenset[str]]) -> None:
    home = state_home()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=home, prefix="trusted-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"agreed": {name: sorted(known[name]) for name in sorted(known)}}, file, indent=1)
        os.replace(temporary, home / "trusted.json")
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
