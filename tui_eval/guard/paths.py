"""Files that suites name: inside the project for everybody, outside it and where secrets are kept only with trust."""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from tui_eval.guard.trust import Trust, from_root

LARGEST = 512 << 20
"""Bytes of a file that somebody names, at most: what is larger is none that a person wrote."""
_LARGEST_WORDS = 64 << 20
_SECRET_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".tui-eval", ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker",
    }
)  # fmt: skip
"""Folders of a project that its tools fill, not its suites: addresses with tokens, keys, earlier answers."""
_SECRET_FILES = (
    ".env", ".env.*", ".envrc", "*.env", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore",
    "tui_eval.yaml", "tui_eval.yml",
)  # fmt: skip
"""Names of files in which secrets are kept, the program's own configuration among them."""
_NO_FILE = "it is no ordinary file (a pipe or a device)"


def confine(root: Path, path: str | Path, trust: Trust, base: Path | None = None) -> Path:
    """The absolute path of a file that a suite names, links followed.

    Args:
        root: The project root.
        path: As the file gives it; a relative one is relative to `base`.
        trust: Asked where the file lies outside the root, or is one in which secrets are kept.
        base: The folder of the file that names it; the root if absent.

    Returns:
        The resolved path; whether anything exists there is for the caller to see.

    Raises:
        NeedsTrust: it lies outside the root or keeps secrets, also by way of a link, in a folder not trusted: what
            suites read is sent to hosts that they name.
        OSError: it cannot be a path (a NUL in it, links in a circle), or is a pipe or a device: reading it
            might never end.
    """
    target = resolve(path, base or root)
    secret = any(_keeps_secrets(root, one) for one in (target, Path(base or root, path)))
    if secret or not inside(root, target):
        trust.require(f"read {from_root(target, root)}")
    try:
        kind = os.stat(target).st_mode
    except OSError:
        return target
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise OSError(errno.EINVAL, _NO_FILE, str(target))
    return target


def _keeps_secrets(root: Path, path: Path) -> bool:
    """Whether a path inside the root is, by its name, of a file or folder in which secrets are kept."""
    named = os.path.abspath(path)
    for top in (os.path.abspath(root), os.path.realpath(root)):
        if not named.startswith(top.rstrip(os.sep) + os.sep):
            continue
        parts = os.path.relpath(named, top).lower().split(os.sep)
        if not _SECRET_FOLDERS.isdisjoint(parts):
            return True
        return any(fnmatch.fnmatchcase(parts[-1], pattern) for pattern in _SECRET_FILES)
    return False


def inside(root: Path, path: Path) -> bool:
    """Whether an absolute path is the root or below it, links followed."""
    return resolve(path, root).is_relative_to(resolve(root, Path.cwd()))


def leads_out(root: Path, path: Path) -> bool:
    """Whether a path is a link to something outside the root. What a link in a circle leads to is outside."""
    try:
        return path.is_symlink() and not inside(root, path)
    except OSError:
        return True


def no_file(path: Path, named: str | Path) -> str:
    """That there is no file at a path, by the name that a person gave it; nobody knows of what lies in a
    closed folder."""
    try:
        os.stat(path)
    except PermissionError as error:
        return f"{named} cannot be read: {error.strerror}"
    except (OSError, ValueError):
        pass
    return f"there is no file {named}"


def can_be_path(text: str) -> bool:
    """Whether a text can be a path: no file has a name of 300 letters, or NUL in it, and to look for one raises."""
    try:
        os.lstat(text)
    except ValueError:
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def resolve(path: str | Path, base: Path) -> Path:
    """The path absolute and with links followed.

    Raises:
        OSError: it cannot be a path (a NUL or lone surrogate in it, links in a circle).
    """
    try:
        found = (base / path).resolve()
    except OSError:
        raise
    except (ValueError, RuntimeError) as error:  # a NUL or lone surrogate; a circle before Python 3.13
        raise OSError(errno.EINVAL, f"not a usable path ({error})", repr(str(path))) from None
    if sys.version_info >= (3, 13):  # which leaves the links of a circle as they are
        try:
            circle = stat.S_ISLNK(os.lstat(found).st_mode)
        except OSError as error:
            circle = error.errno == errno.ELOOP
        if circle:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(found))
    return found


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


def read_words(path: Path, errors: str = "strict") -> str:
    """The text of a file that a person wrote (UTF-8, with or without a byte order mark), each end of a line as `\\n`.

    Raises:
        OSError: as `read_file`; what is larger than 64 MB nobody wrote.
        UnicodeDecodeError: it is not UTF-8, and that is not to be passed over (`errors`).
    """
    text = read_file(path, _LARGEST_WORDS).decode("utf-8-sig", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


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


# -- Patterns of names, as node's `glob` walks folders, in bounded time. Python's follows links below `**`: two that
# lead to their own folder are a trillion paths, and while none of them matches nothing says so.


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
