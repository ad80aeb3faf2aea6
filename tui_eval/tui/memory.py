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

_MOST_QUERIES, _LONGEST_QUERY = 100, 20_000


class ProjectMemory:
    """What was remembered of a project, and what is to be."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._values = recall(root)
        seen = self._values.get("case_view")
        self.case_view: dict[str, Any] = seen if isinstance(seen, dict) else {}
        """How a case was looked at last: its tab, and whether that was zoomed."""
        stored = self._values.get("filters")
        self.filters: dict[str, str] = (
            {str(name): str(text) for name, text in stored.items()} if isinstance(stored, dict) else {}
        )
        """Filters that the person keeps, by name."""
        tried = self._values.get("queries")
        self.queries: list[str] = [str(sql) for sql in tried] if isinstance(tried, list) else []
        """Queries that the person tried, the last one at the end."""

    def get(self, name: str, otherwise: Any = None) -> Any:
        """A value as it was remembered; from a file that anybody may have written."""
        return self._values.get(name, otherwise)

    def by_now(self, name: str, otherwise: Any = None) -> Any:
        """A value as another app may have left it since."""
        return recall(self._root).get(name, otherwise)

    def keep(self, values: dict[str, Any]) -> None:
        """Remember these for the next time, besides how cases are looked at."""
        remember(self._root, {"case_view": self.case_view, "queries": self.queries, **values})

    def keep_query(self, sql: str) -> None:
        """Remember a query that was tried, once, as the last one."""
        if len(sql) <= _LONGEST_QUERY:
            self.queries = [*(one for one in self.queries if one != sql), sql][-_MOST_QUERIES:]


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
