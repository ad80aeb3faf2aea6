"""The suite's own template filters: `nunjucksFilters`, a name and the JavaScript file of each."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.guard.paths import confine
from tui_eval.guard.trust import Trust, script

if TYPE_CHECKING:
    from tui_eval.scripting.node_host import NodeHost

TIME_LIMIT = 20.0
"""Seconds that one application of a filter may take."""


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter. Equal ones are interchangeable, so that templates stay compiled."""

    host: NodeHost
    file: Path
    base: Path
    root: Path
    trust: Trust

    def __call__(self, *args: Any) -> Any:
        """The file's export, applied; called from a thread.

        Raises:
            ScriptError: it fails.
            NeedsTrust: the folder is not trusted.
        """
        self.trust.require(script(self.file, self.root))
        file = confine(self.root, self.file, self.trust)
        return self.host.call_sync(file, "", list(args), timeout=TIME_LIMIT, cwd=self.base).value

    def __hash__(self) -> int:
        return hash((id(self.host), id(self.trust), self.file))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return False
        return self.host is other.host and self.trust is other.trust and self.file == other.file


def suite_filters(
    given: Any, base: Path, root: Path, trust: Trust, host: NodeHost
) -> dict[str, Callable[..., Any]]:
    """The filters by name. A path may be a pattern: the last file that matches counts."""
    if not isinstance(given, Mapping):
        return {}
    return {
        str(name): Filter(host, path, base, root, trust)
        for name, value in given.items()
        if isinstance(value, str) and (path := filter_file(value, base)) is not None
    }


def filter_file(value: str, base: Path) -> Path | None:
    """The file that a filter's path means, None if there is none."""
    plain = value.removeprefix("file://")
    try:
        found = sorted(glob.glob(str(base / plain)))
    except (OSError, ValueError):
        return None
    return Path(found[-1]) if found else None
