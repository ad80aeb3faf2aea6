"""The files that a pattern of a suite matches, as the tool's own `glob` walks folders, in bounded time.

Python's `glob` follows links below `**`: two that lead to their own folder are a trillion paths, and while none of
them matches nothing says so.
"""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

_MAGIC = re.compile(r"[*?[]")
_ANY_FOLDERS = "**"


class TooLong(Exception):
    """There is more to look through than the time allows."""


def matching(pattern: str, start: Path, seconds: float) -> Iterator[str]:
    """The paths that a pattern matches, as it names them (from `start` where it is relative); a folder that several
    links lead to is looked at once, by one of its names.

    Names that begin with a dot match where the pattern says the dot. `**` follows no links, but one that stands in a
    folder below the first part of the pattern leads to what is in it.

    Raises:
        TooLong: it takes longer than `seconds`.
    """
    parts: list[str] = []
    for part in pattern.split("/"):
        if part not in ("", ".") and not (part == _ANY_FOLDERS and parts[-1:] == [part]):
            parts.append(part)
    top = "/" if pattern.startswith("/") else ""
    until, seen = time.monotonic() + seconds, set[tuple[int, int, int, bool]]()
    waiting = [(top, 0, True)]  # a path so far, the part that comes next, and whether `**` may go on below it
    while waiting:
        path, at, deeper = waiting.pop()
        while at < len(parts) and _MAGIC.search(parts[at]) is None:
            path, at, deeper = os.path.join(path, parts[at]), at + 1, True
        where = os.path.join(start, path)
        if at == len(parts):
            if os.path.lexists(where):
                yield path
            continue
        if time.monotonic() > until:
            raise TooLong
        try:
            found = os.stat(where)
            key = (found.st_dev, found.st_ino, at, deeper)
            if key in seen:
                continue
            seen.add(key)
            with os.scandir(where) as entries:
                named = [(entry.name, _is_folder(entry), entry.is_symlink()) for entry in entries]
        except OSError:
            continue
        part, last = parts[at], at + 1 == len(parts)
        if part != _ANY_FOLDERS:
            matches = _matcher(part)
            for name, is_folder, _ in named:
                if matches(name) and (last or is_folder):
                    waiting.append((os.path.join(path, name), at + 1, True))
            continue
        waiting += [(path, at + 1, True)] if not last else []
        for name, is_folder, is_link in named:
            if name.startswith("."):
                continue
            below = os.path.join(path, name)
            if last:
                yield below
            if is_folder and deeper and (at or not is_link):
                waiting.append((below, at, not is_link))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle
        return False


@lru_cache(1000)
def _matcher(part: str) -> Callable[[str], bool]:
    found = re.compile(fnmatch.translate(part)).match
    hidden = part.startswith(".")
    return lambda name: (hidden or not name.startswith(".")) and found(name) is not None


__all__ = ["TooLong", "matching"]
