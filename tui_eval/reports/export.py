"""Which kind of file an ending means. A kind is one function and one line of registration; entry
points of the group `tui_eval.reports` add others (name: the ending; value: `function(reader, path)`)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import importlib
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tui_eval import extensions
from tui_eval.config.project import find_root
from tui_eval.guard import private
from tui_eval.guard.crash_report import leaves
from tui_eval.guard.figures import dropped_figures
from tui_eval.guard.paths import inside
from tui_eval.guard.text import clip, visible
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import StoreError

Writer = Callable[[RunReader, Path], None]

_HERE = "tui_eval.reports"
KINDS: dict[str, str] = {
    ".json": f"{_HERE}.results:write",
    ".jsonl": f"{_HERE}.results:write_lines",
    ".promptfoo.json": f"{_HERE}.promptfoo_json:write",
    ".junit.xml": f"{_HERE}.junit:write",
    ".html": f"{_HERE}.page:write",
    ".csv": f"{_HERE}.tabular:write_csv",
    ".parquet": f"{_HERE}.tabular:write_parquet",
    ".md": f"{_HERE}.tabular:write_markdown",
}
"""Ending → `module:function`, imported on first use."""


_NAME = 60
"""Characters of a file's name that are in that of its half, which has 255 bytes at most."""
_LEFT_SECONDS = 60.0
"""After which a half that nobody holds is one that a process left when it was killed."""
_REASON = 300
"""Characters of why a file cannot be written."""


class ExportError(Exception):
    """A file of unknown kind, or one that cannot be written; one clear line."""


def writer_for(path: Path) -> Writer:
    """The writer for a file by its ending, the longest that fits.

    Raises:
        ExportError: no kind has this ending.
    """
    name = path.name.lower()
    added = {f".{one.lstrip('.').lower()}": one for one in extensions.installed("reports")}
    known = {**added, **KINDS}  # an addition takes none of ours
    fitting = [ending for ending in known if _ends(name, ending)]
    if not fitting:
        endings = ", ".join(sorted(known))
        link = (
            "; a link that has one of them and leads there says which is meant" if is_stream_at(path) else ""
        )
        raise ExportError(f"{path}: unknown kind of file; endings that are known: {endings}{link}")
    ending = max(fitting, key=len)
    if ending not in KINDS:
        return _loaded(added[ending])
    module, _, name = KINDS[ending].partition(":")
    return getattr(importlib.import_module(module), name)


def _ends(name: str, ending: str) -> bool:
    """An ending of two parts may be the whole name: `promptfoo.json`."""
    return name.endswith(ending) or (ending.count(".") > 1 and f".{name}" == ending)


def check_writable(path: Path) -> None:
    """Say before a run, rather than after it, that a file could not be written.

    Raises:
        ExportError: unknown kind, or its folder cannot be made or written.
    """
    writer_for(path)
    try:
        target = _Target.of(path)
        _stay_inside(path, target)
        if target.handle is not None or target.path.exists():
            if target.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if target.is_stream:
                if target.handle is None and not os.access(target.path, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                return
        folder = target.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from None


class _Target(NamedTuple):
    """Where what is written to a path goes. A file takes the place of the one before it, where a link leads to one
    beside that; into a `stream` (a pipe, a device, what this process has open) it is written as it is. `handle` is of
    what is open (`/dev/stdout`)."""

    path: Path
    is_stream: bool = False
    handle: int | None = None

    @classmethod
    def of(cls, path: Path) -> _Target:
        """Raises: OSError: links that lead nowhere."""
        path = path.absolute()
        for _ in range(_LINKS):
            if _OPEN.fullmatch(os.path.realpath(path.parent)) and path.name.isdigit():
                return cls(path, True, int(path.name))
            if not path.is_symlink():
                return cls(path, path.exists() and not path.is_file() and not path.is_dir())
            path = path.parent / os.readlink(path)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def take(self, file: Path) -> None:
        """Have what stands in a file.

        Raises:
            OSError: it cannot be written.
        """
        if not self.is_stream:
            file.replace(self.path)
            return
        sys.stdout.flush()
        handle = _opened(self.path) if self.handle is None else os.dup(self.handle)
        with open(handle, "wb") as stream, open(file, "rb") as written:
            shutil.copyfileobj(written, stream)


def _stay_inside(path: Path, target: _Target) -> None:
    """A project's folder can come from anywhere: a link in it, or in a folder of it, leads to no file outside of it.

    Raises:
        ExportError: it would.
    """
    if target.is_stream:
        return
    root, configured = find_root([path])
    if configured is None and private.home().is_relative_to(root):
        return  # links in a person's own folder (`~/Downloads`) are theirs, under git or not
    if Path(os.path.abspath(path)).is_relative_to(root) and not inside(root, target.path):
        place = os.path.realpath(target.path)
        raise ExportError(
            f"{path}: a link that leaves the project is not written through; name {place} itself"
        )


def _opened(path: Path) -> int:
    """A pipe or a device to be written to. Of a pipe's reader it is waited for a while, and said so: opened as usual it
    would wait for ever, whatever signal comes.

    Raises:
        OSError: nobody reads it, or it cannot be written.
    """
    until, said = time.monotonic() + READER_SECONDS, False
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or not path.is_fifo():
                raise
            if time.monotonic() > until:
                raise OSError(errno.ENXIO, "no program reads this pipe") from None
            if not said:
                said = True
                print(
                    f"{visible(str(path), newlines=False)}: waiting for what reads this pipe", file=sys.stderr
                )
            time.sleep(0.05)
        else:
            os.set_blocking(handle, True)
            return handle


READER_SECONDS = 15.0
"""How long it is waited for a program that reads a named pipe."""
_LINKS = 40
_OPEN = re.compile(rf"/proc/(?:{os.getpid()}|self)/fd|/dev/fd")


def is_stream_at(path: Path) -> bool:
    """Whether what is written to a path goes into a pipe, a device, or what this process has open."""
    with contextlib.suppress(OSError):
        return _Target.of(path).is_stream
    return False


def export(reader: RunReader, path: Path) -> list[str]:
    """Write a run to a file of the kind that its ending means, whole or not at all. A link stays one: what it
    leads to is written. Who may read a file that is there already may read it afterwards.

    Returns:
        What is unknown in it though each of its parts was known: sums that are no figures any more.

    Raises:
        ExportError: unknown kind, or the file cannot be written, whatever the reason: one file's fault is not that
            of the others that are asked for.
    """
    write = writer_for(path)
    with contextlib.ExitStack() as left:
        try:
            target = _Target.of(path)
            _stay_inside(path, target)
            folder = target.path.parent
            if target.is_stream:
                folder = Path(left.enter_context(tempfile.TemporaryDirectory(prefix="tui-eval-")))
            # A name of its own: two that write one file at once do not write, or take away, each other's half.
            part = folder / f".{path.name[:_NAME]}.{secrets.token_hex(4)}.part"
            left.callback(_take_away, part)
            folder.mkdir(parents=True, exist_ok=True)
            mode = None if target.is_stream else _mode_of(target.path)
            if not target.is_stream:
                _sweep(folder, path.name)
            # Who could not read the file before it reads no half of this one.
            held = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
            left.callback(os.close, held)
            with contextlib.suppress(OSError):  # some disks take no locks
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with dropped_figures() as dropped, reader.of_one_moment():
                write(reader, part)
            if mode is not None:
                with contextlib.suppress(OSError):  # some mounts have no modes
                    part.chmod(mode)
            target.take(part)
        except OSError as error:
            raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from None
        except (ExportError, StoreError) as error:
            raise ExportError(f"{path}: {error}" if isinstance(error, StoreError) else str(error)) from error
        except Exception as error:
            reason = clip(" ".join(f"{type(error).__name__}: {error}".split()), _REASON)
            raise ExportError(f"{path}: cannot be written: {reason}") from error
    return [f"{path}: {line}" for line in dropped]


def _mode_of(path: Path) -> int | None:
    """Who may read and write the file in whose place another one is put; None: there is none."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    return None


def _sweep(folder: Path, name: str) -> None:
    """Take away the halves of a file that processes left which were killed."""
    for part in folder.glob(f".{glob.escape(name[:_NAME])}.{'[0-9a-f]' * 8}.part"):
        with contextlib.suppress(OSError), open(private.open_file(part, os.O_RDONLY), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - os.fstat(file.fileno()).st_mtime > _LEFT_SECONDS:
                part.unlink()


def _take_away(part: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only folder refuses that, too
        part.unlink(missing_ok=True)


def _loaded(name: str) -> Writer:
    try:
        write = extensions.load("reports", name)
    except extensions.ExtensionError as error:
        raise ExportError(f"reports: {error}") from error

    def theirs(reader: RunReader, path: Path) -> None:
        try:
            write(reader, path)
        except OSError:
            raise
        except (Exception, SystemExit) as error:  # another package's fault is not ours
            if leaves(error):
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise ExportError(f"reports: {name} cannot write this run: {reason}") from error

    return theirs


def write_beside(reader: RunReader, root: Path, folders: Sequence[Path]) -> list[str]:
    """The results once more in the `outputs` of these folders, where a format's own tool looks for them; what kept them
    from being written, a line each."""
    from tui_eval.reports import results  # imported late, as every kind

    stamp = time.strftime("%Y%m%d_%H%M%S")
    said: list[str] = []
    for folder in folders:
        try:
            (folder / "outputs").mkdir(exist_ok=True)
            if not inside(root, folder / "outputs"):
                raise OSError(errno.EPERM, "a link out of the project")
            file = _own_file(folder / "outputs", f"results_{stamp}")
            try:
                results.write(reader, file)
            except BaseException:
                file.unlink(missing_ok=True)
                raise
        except OSError as error:
            said.append(
                f"{folder / 'outputs'}: {error.strerror or error}; the results file that its own tool reads was not written"
            )
    return said


def _own_file(folder: Path, stem: str) -> Path:
    """A file that nobody else has: runs that end in the same second mean the same name, and each is to be kept. Those
    after the first sort behind it."""
    for name in (f"{stem}.json", *(f"{stem}_{number}.json" for number in range(2, 1000))):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(folder / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return folder / name
    raise FileExistsError(errno.EEXIST, "a thousand runs ended in this second", str(folder / stem))
