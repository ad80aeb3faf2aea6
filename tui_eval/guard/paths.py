"""Files that suites name: inside the project for everybody, outside it only with trust."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from tui_eval.guard.trust import Trust

LARGEST = 512 << 20
"""Bytes of a file that somebody names, at most: what is larger is none that a person wrote."""
_NO_FILE = "it is no ordinary file (a pipe or a device)"


def confine(root: Path, path: str | Path, trust: Trust, base: Path | None = None) -> Path:
    """The absolute path of a file that a suite names, links followed.

    Args:
        root: The project root.
        path: As the file gives it; a relative one is relative to `base`.
        trust: Asked where the file lies outside the root.
        base: The folder of the file that names it; the root if absent.

    Returns:
        The resolved path; whether anything exists there is for the caller to see.

    Raises:
        NeedsTrust: it lies outside the root, also by way of a link, in a folder not trusted.
        OSError: it cannot be a path (a NUL in it, links in a circle), or is a pipe or a device: reading it
            might never end.
    """
    target = resolve(path, base or root)
    if not inside(root, target):
        trust.require(f"read {target}")
    try:
        kind = os.stat(target).st_mode
    except OSError:
        return target
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise OSError(errno.EINVAL, _NO_FILE, str(target))
    return target


def inside(root: Path, path: Path) -> bool:
    """Whether an absolute path is the root or below it, links followed."""
    return resolve(path, root).is_relative_to(resolve(root, Path.cwd()))


def leads_out(root: Path, path: Path) -> bool:
    """Whether a path is a link to something outside the root. What a link in a circle leads to is outside."""
    try:
        return path.is_symlink() and not inside(root, path)
    except OSError:
        return True


def resolve(path: str | Path, base: Path) -> Path:
    """The path absolute and with links followed.

    Raises:
        OSError: it cannot be a path (a NUL or lone surrogate in it, links in a circle).
    """
    try:
        return (base / path).resolve()
    except OSError:
        raise
    except (ValueError, RuntimeError) as error:  # a NUL or lone surrogate; a circle before Python 3.13
        raise OSError(errno.EINVAL, f"not a usable path ({error})", repr(str(path))) from None


def read_file(path: Path, limit: int = LARGEST) -> bytes:
    """The bytes of a file, also through links; never waiting for what is no file (a pipe, a device).

    Raises:
        OSError: there is none, it is no ordinary file, or larger than `limit` bytes.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, _NO_FILE, str(path))
        data = file.read(limit + 1) if found.st_size <= limit else b""
        if found.st_size > limit or len(data) > limit:
            raise OSError(errno.EFBIG, f"larger than {limit >> 20} MB", str(path))
        return data


def read_plain(path: Path, limit: int | None = None) -> bytes:
    """The bytes of a regular file, `limit` of them at most; never through a link in its last part, and never
    waiting for what is no file (a pipe, a device).

    Raises:
        OSError: there is none, or it is a link or no regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read(limit) if limit is not None else file.read()
