"""What is installed beside us: the optional parts (extras), and what other packages add by entry points of the groups
`tui_eval.formats`, `.agents`, `.assertions`, `.reports`.

Names are read without importing anything; what stands behind one is imported when it is first needed.
`help/extending.md` says what each group expects.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["formats", "agents", "assertions", "reports"]


class ExtensionError(Exception):
    """Another package's addition cannot be loaded; one line that names the package."""


def adding(extra: str) -> str:
    """The command that adds an extra, and where it is given. It never installs us by our name: that is on no
    package index, where anybody may take it."""
    return f"pip install -e '.[{extra}]' in the clone of tui-eval"


@cache
def installed(group: Group) -> Mapping[str, EntryPoint]:
    """The additions of a group by name; the first of two of one name counts."""
    found: dict[str, EntryPoint] = {}
    if not _any_there():
        return found
    for point in _every().select(group=f"tui_eval.{group}"):
        found.setdefault(point.name, point)
    return found


@cache
def _any_there() -> bool:
    """Whether a package may add something, by a look at what it says of its entry points. Python's own reading of all
    packages takes longer than the rest of a small run."""
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except NotADirectoryError:
            return True  # packages in an archive
        except OSError:
            continue
        for name in names:
            if name.lower().endswith((".dist-info", "egg-info")):
                try:
                    with open(os.path.join(place, name, "entry_points.txt"), "rb") as file:
                        if b"[tui_eval." in file.read():
                            return True
                except OSError:
                    continue  # it has none
    return False


@cache
def _every() -> Any:
    """Those of all packages, read once: each reading goes through the files of every package."""
    from importlib.metadata import entry_points  # imported late: it reads mail headers

    return entry_points()


def load(group: Group, name: str) -> Any:
    """What stands behind a name; None where no package adds it.

    Raises:
        ExtensionError: its package cannot be imported or lacks it.
    """
    point = installed(group).get(name)
    if point is None:
        return None
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # a module that is a program, too
        package = point.dist.name if point.dist is not None else point.module
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ExtensionError(f"{name} of the package {package} cannot be loaded: {reason}") from error


def assertion_types(family: str) -> frozenset[str]:
    """The assertion types that other packages add to a format (entry points called `FORMAT.TYPE`)."""
    return frozenset(
        name.partition(".")[2] for name in installed("assertions") if name.partition(".")[0] == family
    )
