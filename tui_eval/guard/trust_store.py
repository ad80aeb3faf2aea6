"""The folders whose code the person has said may run, remembered outside of any project.

Kept in `$XDG_STATE_HOME/tui-eval/trusted.json` (readable by the person alone), so that no project
can grant itself trust. Trust is for exactly the folder asked about: what is cloned below a trusted
folder later on has to be asked for again.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from tui_eval.guard.trust import Trust


def state_home() -> Path:
    """The folder for what the program remembers about the person: `$XDG_STATE_HOME/tui-eval`."""
    given = os.environ.get("XDG_STATE_HOME", "")
    home = Path(given) if given and Path(given).is_absolute() else Path.home() / ".local" / "state"
    return home / "tui-eval"


def folders() -> list[str]:
    """The trusted folders, absolute, sorted. An unreadable or damaged file trusts nothing."""
    try:
        stored = json.loads((state_home() / "trusted.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    listed = stored.get("folders") if isinstance(stored, dict) else None
    return sorted({item for item in listed if isinstance(item, str)}) if isinstance(listed, list) else []


def is_trusted(folder: Path) -> bool:
    """Whether the person trusts this folder."""
    return _name(folder) in folders()


def trust_for(folder: Path, given: bool = False) -> Trust:
    """The trust that suites of a project have: remembered, or `given` for this time (`--trust`)."""
    return Trust(granted=given or is_trusted(folder))


def grant(folder: Path) -> None:
    """Remember that this folder is trusted.

    Raises:
        OSError: the state folder cannot be written.
    """
    _write({*folders(), _name(folder)})


def revoke(folder: Path) -> None:
    """Forget that this folder is trusted; nothing happens where it is not.

    Raises:
        OSError: the state folder cannot be written.
    """
    remaining = set(folders())
    if _name(folder) in remaining:
        _write(remaining - {_name(folder)})


def _name(folder: Path) -> str:
    return str(folder.resolve())


def _write(trusted: set[str]) -> None:
    home = state_home()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=home, prefix="trusted-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"folders": sorted(trusted)}, file, indent=1)
        os.replace(temporary, home / "trusted.json")
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
