"""Files and folders that are their owner's alone, and never reached through a link.

A project's folder can come from anywhere: a link in the place of what we write would have us write elsewhere, and a
database in the place of ours can hold views without end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import stat
import tempfile
from pathlib import Path

_OTHERS = 0o077


def home() -> Path:
    """The person's folder. A user whom the system does not know (a number that a container runs as) has none:
    the temporary one then, or none in which anything is found or written."""
    try:
        return Path.home()
    except RuntimeError:
        with contextlib.suppress(OSError):
            return temporary_home()
        return Path(os.devnull)


def of_person(variable: str, *usual: str) -> Path:
    """The folder that a variable names, else one below the person's; the temporary one where ours in that is
    not there and cannot be made (`/` is the home of a container's number, `.cache` root's in many images), or
    is closed."""
    given = os.environ.get(variable, "")
    if given and Path(given).is_absolute():
        return Path(given)
    place = home().joinpath(*usual)
    ours = place / "tui-eval"
    there = next(one for one in (ours, place, *place.parents) if os.path.isdir(one))
    if os.access(there, os.R_OK | os.X_OK if there == ours else os.W_OK):
        return place
    with contextlib.suppress(OSError):
        return temporary_home().joinpath(*usual)
    return place


def cache_home() -> Path:
    """`$XDG_CACHE_HOME/tui-eval`, else below `~/.cache`."""
    return of_person("XDG_CACHE_HOME", ".cache") / "tui-eval"


def temporary_home() -> Path:
    """A folder of this user alone among the files for a while, always the same one.

    Raises:
        OSError: it cannot be made, or is somebody else's.
    """
    return _of_this_user(Path(tempfile.gettempdir()) / f"tui-eval-{os.getuid()}")


def memory_home() -> Path:
    """The same in the machine's memory, for what no disk has room for: gone when it is switched off.

    Raises:
        OSError: there is no such place, or it is somebody else's.
    """
    return _of_this_user(MEMORY / f"tui-eval-{os.getuid()}")


MEMORY = Path("/dev/shm")


def socket_home() -> Path:
    """A folder of this user alone for sockets: the temporary one, or one in the person's cache folder where somebody
    else has made that, or its name is too long.

    Raises:
        OSError: none can be made.
    """
    usual = Path(tempfile.gettempdir()) / f"tui-eval-{os.getuid()}"
    for place in (usual, cache_home() / "run"):
        with contextlib.suppress(OSError):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _for_sockets(place)
    return _for_sockets(Path("/tmp", usual.name))


def runtime_folder() -> Path:
    """A folder of this user alone for sockets, short enough for their names; where the system has one for what runs, in
    that, unless somebody else (root, by `su`) has made ours there.

    Raises:
        OSError: there is none to be had.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isdir(base) and os.access(base, os.W_OK):
        with contextlib.suppress(OSError):
            return _for_sockets(Path(base) / "tui-eval")
    return socket_home()


_SOCKET_PATH = 104
"""Bytes of a socket's path that every system takes."""
_SOCKET_NAME = 32


def _for_sockets(path: Path) -> Path:
    if len(os.fsencode(path)) > _SOCKET_PATH - _SOCKET_NAME:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(path))
    return _of_this_user(path)


def _of_this_user(path: Path) -> Path:
    make_folder(path)
    found = os.lstat(path)
    if found.st_uid != os.getuid() or found.st_mode & _OTHERS:
        raise OSError(errno.EPERM, "must belong to you alone (mode 700)", str(path))
    return path


def _own(path: Path) -> Path:
    """The path, or what it links to where the link is ours: runs from elsewhere are looked at through links in
    the person's cache folder."""
    if path.is_symlink() and Path(os.path.abspath(path)).is_relative_to(cache_home() / "folders"):
        return Path(os.readlink(path))
    return path


def make_folder(path: Path) -> None:
    """Make a folder of mode 700, or see that what is there is one and no link; its parent must be there.

    Raises:
        OSError: it cannot be made, or is something else.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise _refused(path, found)
    _close(path, found, 0o700)


def open_file(path: Path, flags: int) -> int:
    """A handle of a file, made with mode 600 where `flags` say that it is made.

    Raises:
        OSError: it cannot be opened, is a link, or is no file.
    """
    path = _own(path)
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _refused(path, os.lstat(path)) from None
        raise
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise _refused(path, found)
    _close(path, found, 0o600)
    return handle


def write_file(path: Path, content: bytes) -> None:
    """Write a file of mode 600.

    Raises:
        OSError: it cannot be written, or is a link.
    """
    with open(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(content)


def prepare_database(path: Path) -> None:
    """Make an SQLite file of mode 600 before SQLite does, which gives its journals the same mode.

    Raises:
        sqlite3.OperationalError: it cannot be made, is a link, or is no file; or so is what SQLite reads beside it.
    """
    _check_beside(path)
    try:
        os.close(open_file(path, os.O_RDWR | os.O_CREAT))
    except PermissionError:
        pass  # SQLite says what it makes of that
    except OSError as error:
        raise _as_sqlite(error) from None


def check_database(path: Path) -> None:
    """See that an SQLite file is none that a link leads to.

    Raises:
        sqlite3.OperationalError: it is a link, or no file; or so is what SQLite reads beside it.
    """
    _check_beside(path)
    with contextlib.suppress(OSError):
        found = os.lstat(_own(path))
        if not stat.S_ISREG(found.st_mode):
            raise _as_sqlite(_refused(path, found))


_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def _check_beside(path: Path) -> None:
    """See that what lies beside an SQLite file, which SQLite opens by itself, leads it nowhere else: for a pipe in the
    place of a journal it waits for ever, deaf to signals, and it deletes the file that a journal of several databases
    names. Ours never are of several.

    Raises:
        sqlite3.OperationalError: it is a link or no file, or names another file.
    """
    for ending in ("-journal", "-wal", "-shm"):
        beside = path.with_name(path.name + ending)
        try:
            found = os.lstat(beside)
            names_another = ending == "-journal" and _names_another(beside, found)
        except OSError:
            continue  # there is none, or it is gone by now
        if not stat.S_ISREG(found.st_mode):
            why = _refused(beside, found).strerror
        elif names_another:
            why = "names another file, which SQLite would delete; remove it"
        else:
            continue
        raise _as_sqlite(OSError(errno.EINVAL, f"{beside.name} beside it {why}", str(beside)))


def _names_another(journal: Path, found: os.stat_result) -> bool:
    """Whether a journal ends with the name of one for several databases, as SQLite reads it (`readSuperJournal`)."""
    if not stat.S_ISREG(found.st_mode) or found.st_size < 16:
        return False
    handle = os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.pread(handle, 8, found.st_size - 8) == _JOURNAL_MAGIC
    finally:
        os.close(handle)


def keep_in_memory(connection: sqlite3.Connection) -> None:
    """See that what SQLite puts aside while a statement writes many rows is in no file: it is pages of the database,
    and would be written once more, to a folder of the system's that may be full."""
    connection.execute("PRAGMA temp_store = MEMORY")


def refuse_programs(connection: sqlite3.Connection) -> None:
    """See that a database holds nothing that works by itself when a table is read or written.

    Raises:
        sqlite3.DatabaseError: it holds a view, a trigger or something that is computed: none of ours does.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    try:
        made = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    except UnicodeDecodeError:  # SQLite says which name in it is damaged
        raise sqlite3.DatabaseError("its schema is malformed") from None
    # A generated column is computed for each row that is read, and may be as large as SQLite allows.
    computed = (
        "SELECT 1 FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c "
        "WHERE m.type = 'table' AND c.hidden IN (2, 3) LIMIT 1"
    )
    what = ""
    if any(kind in ("view", "trigger") for kind, _, _ in made):
        what = "views or triggers"
    elif connection.execute(computed).fetchone():
        what = "generated columns"
    elif any(_computes(kind, name, sql) for kind, name, sql in made if sql):
        what = "conditions, or values that are computed"
    if what:
        raise sqlite3.DatabaseError(f"it holds {what}, which tui-eval does not make")


_PLAIN_INDEX = re.compile(r"(?i)CREATE\s+INDEX\s+(?:IF NOT EXISTS\s+)?\w+\s+ON\s+\w+\s*\([\w\s,]+\)\s*")
_WORDS_OF_TEXTS = re.compile(r"CREATE VIRTUAL TABLE words USING fts5 \([\w\s,]+, tokenize = '[\w\s]+'\)")
"""The one virtual table that is ours: of `search.db`."""


def _computes(kind: str, name: str, sql: str) -> bool:
    """Whether something is computed whenever a row is written to what the statement makes: one such function may go on
    for hours, and nothing ends it, no signal either."""
    if kind == "index":
        return _PLAIN_INDEX.fullmatch(sql) is None
    if re.match(r"(?i)CREATE\s+VIRTUAL", sql):
        return name != "words" or _WORDS_OF_TEXTS.fullmatch(sql) is None
    # Quotes only around single words, and no comments: in either a condition could seem to be part of a text.
    plain = re.sub(r"(?i)\bDEFAULT\s+(?:'\w*'|-?\d+|NULL)(?!\w)", "", sql)
    plain = re.sub(r"\"(\w+)\"|'(\w+)'", r"\1\2", plain)
    return re.fullmatch(r"[\w\s,()]+", plain) is None or bool(re.search(r"(?i)\b(?:CHECK|DEFAULT)\b", plain))


def close_to_others(folder: Path) -> None:
    """Take from others what they may do with a folder and all in it; nothing where it is closed already. What
    belongs to somebody else stays as it is, and no link is followed."""
    try:
        found = os.lstat(folder)
    except OSError:
        return
    if not stat.S_ISDIR(found.st_mode) or not found.st_mode & _OTHERS or found.st_uid != os.geteuid():
        return
    for _, folders, files, handle in os.fwalk(folder, follow_symlinks=False, onerror=None):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):
                one = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if stat.S_ISREG(one.st_mode) or stat.S_ISDIR(one.st_mode):
                    os.chmod(name, one.st_mode & ~_OTHERS & 0o7777, dir_fd=handle)
    with contextlib.suppress(OSError):  # last: what was not reached now is reached next time
        os.chmod(folder, 0o700)


def _close(path: Path, found: os.stat_result, mode: int) -> None:
    if found.st_mode & _OTHERS and found.st_uid == os.geteuid():
        with contextlib.suppress(OSError):
            os.chmod(path, found.st_mode & ~_OTHERS & 0o7777 | mode & 0o600)


def _refused(path: Path, found: os.stat_result) -> OSError:
    what = "a link, which is not followed" if stat.S_ISLNK(found.st_mode) else "not what tui-eval keeps there"
    return OSError(errno.EINVAL, f"is {what}; remove it", str(path))


def _as_sqlite(error: OSError) -> sqlite3.OperationalError:
    made = sqlite3.OperationalError(f"{error.strerror or error}")
    made.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN  # nothing is said of the file
    return made
