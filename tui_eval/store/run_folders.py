"""Where runs live on disk, what they are called, and whether the engine of one still lives."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain, islice
from pathlib import Path

from tui_eval.config.project import CONFIG_NAME, also_read, closed_to_us, state_dir
from tui_eval.guard import private
from tui_eval.guard.paths import can_be_path
from tui_eval.guard.private import cache_home
from tui_eval.guard.spelling import some_of
from tui_eval.guard.trust_store import state_home

DATABASE = "run.db"
LOCK = "run.lock"
_RESERVED = 4096
_LOOKING_SECONDS = 5.0
_START_LOCK = "start.lock"
_STARTING_SECONDS = 30.0
"""For which an app waits for another one that reads its suites before it begins."""
_SET_BACK_MS = 60_000
ROOM = ": nothing was run; make room on its disk (`tui-eval run --no-store` keeps nothing)"
SET_BACK_MOST = 2 * 86_400
"""Seconds by which a run may be ahead of the clock and still be thought to have been before it."""
STATE = ".tui-eval"
_LOOKED_AT = 200
"""Entries of a folder that are looked at for whether it is one of runs."""
_REPORTS = frozenset({".json", ".jsonl", ".html", ".md", ".xml", ".csv", ".parquet", ".txt", ".log"})
"""Endings of what a CI keeps beside a project's runs."""
_ID = re.compile(r"\d{8}-\d{6}-\d{3}[0-9a-f]{2}")
_id_lock = threading.Lock()
_newest_id = [0]

# File systems on which SQLite's write-ahead log is known to work: shared memory needs one kernel.
_LOCAL_FILE_SYSTEMS = frozenset((
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay", "bcachefs", "jfs", "apfs", "hfs", "ufs",
))  # fmt: skip


GUESTS: dict[str, Path] = {}
"""Runs that this process was given from elsewhere (a run brought home from CI), by id: they are looked at, and
compared with the project's own, as if they were in its store."""


class StoreError(Exception):
    """A run that is not there or cannot be read; one clear line."""


class DamagedRun(StoreError):
    """A run whose database is no longer one: cut short, or overwritten."""


class NeverBegun(StoreError):
    """A run that was cut off before its facts were written: nothing of it ran."""


class NewerRun(StoreError):
    """A run that a newer tui-eval has written."""


class Store:
    """The runs of a project. `root` is the project root; the folder is made when first written.

    Runs are read from `places`: where they are written, and, where the project cannot be written, or could not be for a
    while, from where they were written then."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = state_dir(root)
        self.runs_folder = self.folder / "runs"
        other = also_read(root, self.folder)
        self.places = [self.runs_folder, *([other / "runs"] if other is not None else [])]
        private.close_to_others(self.folder)

    def folder_of(self, run_id: str) -> Path:
        """Where a run of this id is: in this store, else that of a guest."""
        own = self.runs_folder / run_id
        if len(self.places) == 1 and run_id not in GUESTS:
            return own
        there = (one for place in self.places if os.path.isdir(one := place / run_id))
        return next(there, GUESTS.get(run_id, own))

    def holds(self, folder: Path) -> bool:
        """Whether a run's folder is one of this store."""
        above = folder.parent.resolve()
        return any(above == place.resolve() for place in self.places)

    def welcome(self, folder: Path) -> None:
        """Look at this run as a guest, unless it is in this store."""
        if not self.holds(folder):
            GUESTS[folder.name] = folder

    def make(self) -> None:
        """Make the store's own folder, with its `.gitignore`.

        Raises:
            OSError: it cannot be made.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        private.make_folder(self.folder)
        ignore = self.folder / ".gitignore"
        if not os.path.lexists(ignore):
            try:
                private.write_file(ignore, b"*\n")
            except OSError:  # a full disk: an empty one would have git keep the runs from then on
                with contextlib.suppress(OSError):
                    ignore.unlink()
                raise

    def create_folder(self, run_id: str) -> Path:
        """Make the folder of a new run, and the store with its own `.gitignore` before it.

        Raises:
            StoreError: the folder cannot be written.
        """
        folder = self.runs_folder / run_id
        try:
            self.make()
            private.make_folder(self.runs_folder)
            os.mkdir(folder, 0o700)
        except OSError as error:
            full = ROOM if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise StoreError(f"{folder}: cannot be written: {error.strerror or error}{full}") from None
        return folder

    def run_folders(self) -> Iterator[Path]:
        """Folders of all runs, newest first (ids begin with the time)."""
        found: dict[str, Path] = {}
        for place in self.places:
            with contextlib.suppress(OSError), os.scandir(place) as entries:
                for one in entries:
                    if not one.is_symlink():
                        found.setdefault(one.name, place / one.name)
        for name in sorted(found, reverse=True):
            if os.path.isfile(
                found[name] / DATABASE
            ):  # that of another person alone (root's, in a container) is closed
                yield found[name]

    def next_run(self) -> tuple[str, float]:
        """The id of a new run and when it begins (seconds since the epoch): behind all runs that are here, in name and
        in time, also where the clock was set back since, or has an hour twice (the end of summer time)."""
        newest = next((folder for folder in self.run_folders() if _ID.fullmatch(folder.name)), None)
        moment = time.time()
        if newest is None:
            return new_run_id(), moment
        with contextlib.suppress(OSError):
            written = os.stat(newest / DATABASE).st_mtime
            if moment < written < moment + SET_BACK_MOST:
                moment = written
        made = new_run_id() if moment <= time.time() else new_run_id(moment)
        if made > newest.name:
            return made, moment
        try:
            after = datetime.strptime(newest.name[:19], "%Y%m%d-%H%M%S-%f") + timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            return made, moment  # it looks like an id and is no time
        return f"{after:%Y%m%d-%H%M%S}-{after.microsecond // 1000:03d}{made[19:]}", moment

    def none_yet(self, where: Path) -> str:
        """That there is no run, in words, and what to do; not of those that nobody here can look at. Runs are kept in
        the project of what was run: where that is a folder below, it is named."""
        closed = closed_to_us(self.root)
        said = f"no runs yet {'under' if where != self.root else 'in'} {where}{not_known_in(closed)}"
        if below := _with_runs_below(self.root):
            return f"{said}; there are in {some_of(below, 3)}: go there (cd)"
        return f"{said}; start one with `tui-eval run PATH`"

    def find(self, reference: str = "last") -> Path:
        """The folder of a run by id, by a prefix of its id, by path, or `last`: the newest that is no step.

        Raises:
            StoreError: none, or more than one, is meant.
        """
        # A folder of that name is no run meant by `last`: whoever wants it writes `./last`.
        path = Path(reference if reference != "last" else "")
        none = StoreError(f"no run {reference!r} under {self.runs_folder}; `tui-eval runs` lists them")
        if not can_be_path(reference):
            raise none
        if path.name == DATABASE and path.is_file():
            path = path.parent
        if (path / DATABASE).is_file():
            return path.resolve()
        if path.is_file():
            raise StoreError(f"{reference}: not a run; a run's folder opens, and results in a .json file")
        folders = list(self.run_folders())
        if reference in ("", "last"):
            newest = next((folder for folder in folders if not is_step(folder)), None)
            if newest is not None:
                return newest
            raise StoreError(self.none_yet(self.runs_folder))
        matching = [folder for folder in folders if folder.name.startswith(reference)]
        exact = [folder for folder in matching if folder.name == reference]
        if len(exact or matching) == 1:
            return (exact or matching)[0]
        if matching:
            names = ", ".join(folder.name for folder in matching[:5])
            raise StoreError(f"run {reference!r} is not unique: {names}; write more of its id")
        raise none


def _with_runs_below(root: Path) -> list[str]:
    """Folders of this one that are projects with runs of their own."""
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        return sorted(
            one.name
            for one in islice(entries, _LOOKED_AT)
            if one.is_dir(follow_symlinks=False) and os.path.isdir(os.path.join(one.path, STATE, "runs"))
        )
    return []


def not_known_in(closed: Path | None) -> str:
    """That nobody here knows what is in a folder of runs, in words; empty where there is none."""
    return f"; not known is what is in {closed}, which cannot be read" if closed is not None else ""


def is_step(folder: Path) -> bool:
    """Whether a run is a case that a person stepped through: looked at then, and nobody's last run."""
    from tui_eval.store.reader import RunReader  # it reads runs that moved, and needs this module

    try:
        with contextlib.closing(RunReader(folder)) as reader:
            return reader.info().stepped
    except (StoreError, OSError):
        return False


def new_run_id(now: float | None = None) -> str:
    """`YYYYMMDD-HHMMSS-mmmxx` (milliseconds and a random part): sorts by time, does not repeat, also not
    where one process begins two runs in a millisecond, or its clock is set back a little."""
    milliseconds = int((now if now is not None else time.time()) * 1000)
    if now is None:
        with _id_lock:
            earlier = _newest_id[0]
            if 0 <= earlier - milliseconds < _SET_BACK_MS:
                milliseconds = earlier + 1
            _newest_id[0] = milliseconds
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(milliseconds // 1000))
    return f"{stamp}-{milliseconds % 1000:03d}{secrets.token_hex(1)}"


def time_in(run_id: str) -> float:
    """When a run began, by its id; 0 where that does not say."""
    with contextlib.suppress(ValueError, OverflowError):
        begun = time.mktime(time.strptime(run_id[:15], "%Y%m%d-%H%M%S"))
        milliseconds = run_id[16:19]
        return begun + (int(milliseconds) / 1000 if milliseconds.isdecimal() else 0.0)
    return 0.0


class StartLock:
    """Held by an app from before it looks for what is at work until the run that it begins has its folder: of two that
    begin the same at once, one sees the other's."""

    def __init__(self, root: Path) -> None:
        self._store = Store(root)
        self._guard = threading.Lock()
        self._handle, self._over = -1, False

    def take(self) -> None:
        """Blocks while another app begins a run, for so long at most; where the disk takes no lock there is none."""
        try:
            self._store.make()
            handle = private.open_file(self._store.folder / _START_LOCK, os.O_RDWR | os.O_CREAT)
        except OSError:
            return
        ends = time.monotonic() + _STARTING_SECONDS
        while not self._over and time.monotonic() < ends:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)
                continue
            except OSError:
                break
            with self._guard:
                if not self._over:
                    self._handle = handle
                    return
        os.close(handle)

    def release(self) -> None:
        """Let the next one begin. Who waits in another thread (`take`) no longer does."""
        with self._guard:
            self._over = True
            if self._handle >= 0:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
                os.close(self._handle)
                self._handle = -1


class RunLock:
    """The mark that an engine lives for a run's folder. Held until `release` or the process ends,
    also by kill -9, since the operating system keeps it."""

    def __init__(self, folder: Path) -> None:
        try:
            self._handle = private.open_file(folder / LOCK, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(f"{folder / LOCK}: {error.strerror or error}") from None
        try:
            taken = _taken(self._handle)
        except OSError as error:  # Lustre, some network file systems
            os.close(self._handle)
            raise StoreError(
                f"{folder}: its disk takes no locks ({error.strerror}), without which two could write one run: keep the "
                "project on another disk (`tui-eval run --no-store` keeps nothing)"
            ) from None
        if not taken:
            os.close(self._handle)
            raise StoreError(f"run {folder.name} is being executed by another process")
        if os.fstat(self._handle).st_size < _RESERVED:
            self.moved(None)

    def moved(self, folder: Path | None) -> None:
        """Say where the run is kept instead (None: here). There is room for it also when the disk is full:
        it was taken when the run began."""
        said = json.dumps({"moved": str(folder)}) if folder is not None else ""
        with contextlib.suppress(OSError):
            os.pwrite(self._handle, said.encode().ljust(_RESERVED), 0)

    def fileno(self) -> int:
        """The open file, as those of Python's say it."""
        return self._handle

    def release(self) -> None:
        """Say that the run is no longer executed."""
        if self._handle >= 0:
            # A process that is just being started holds all that is open here: closing alone is not enough.
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = -1


def _taken(handle: int) -> bool:
    """Take a run's lock; False where an engine has it. Viewers that look whether one has (`is_alive`) hold
    it for a moment, together: for that moment is waited.

    Raises:
        OSError: the disk takes no locks.
    """
    end = time.monotonic() + _LOOKING_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pass
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(handle, fcntl.LOCK_UN)
        if time.monotonic() > end:
            return False
        time.sleep(0.002)


def rescue_folders(folder: Path) -> Iterator[Path]:
    """Where a run goes whose own disk is full at its end: into the person's state folder; where that cannot be
    written, among files for a while. Their parents need not be there."""
    yield state_home() / "rescued" / folder.name
    with contextlib.suppress(OSError):
        yield private.temporary_home() / "rescued" / folder.name


def memory_folders(folder: Path) -> Iterator[Path]:
    """Where it goes if there is room on no disk: in a container all of these are one."""
    with contextlib.suppress(OSError):
        yield private.memory_home() / "rescued" / folder.name


def put_in_place(folder: Path) -> Iterator[Path]:
    """Where a run goes whose folder was taken away: it is made again; where a link stands in the way, it goes where the
    project's runs are kept then, and every list finds it."""
    root = project_of_run(folder)
    store = Store(root) if root is not None else None
    if store is None or store.runs_folder == folder.parent.absolute():
        with contextlib.suppress(OSError):
            if store is not None:
                store.make()  # all of it may be gone: git would take what has no `.gitignore` above it
        yield folder
        return
    with contextlib.suppress(OSError):
        store.make()
        private.make_folder(store.runs_folder)
        yield store.runs_folder / folder.name


def kept_in(folder: Path) -> str:
    """How a run's note ends that went there."""
    return f": kept in {folder}"


def moved_to(folder: Path) -> Path | None:
    """Where a run is kept whose own disk was full at its end; None where it is here. What a folder that came
    from elsewhere says of other places does not count."""
    try:
        with open(private.open_file(folder / LOCK, os.O_RDONLY), "rb") as file:
            said = file.read(_RESERVED * 4)
        if not said.startswith(b"{"):
            return None
        target = Path(json.loads(said)["moved"])
        known = target in chain(rescue_folders(folder), memory_folders(folder)) and target != folder
        return target if known and os.path.isfile(target / DATABASE) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_alive(folder: Path) -> bool:
    """Whether a living process holds the lock of this run."""
    try:
        with open(private.open_file(folder / LOCK, os.O_RDONLY), "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(file, fcntl.LOCK_UN)
            return False
    except OSError:
        return False


def journal_mode(folder: Path, mounts: str | None = None) -> str:
    """`WAL` on file systems known to be local, else `DELETE`: a write-ahead log fails silently on
    some network and container mounts. `mounts` is the text of /proc/mounts (read where absent)."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(errors="replace")
        except OSError:
            return "DELETE"
    best, kind = "", ""
    resolved = str(folder.resolve())
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return "WAL" if kind in _LOCAL_FILE_SYSTEMS else "DELETE"


def project_of_run(run: Path) -> Path | None:
    """The project in whose store a run's folder is; none has one that is only looked at here."""
    parents = Path(os.path.abspath(run)).parents
    if len(parents) < 3 or parents[1].name != ".tui-eval" or parents[2].is_relative_to(cache_home()):
        return None
    return parents[2]


def holds_runs(folder: Path) -> bool:
    """Whether a folder is surely one of runs (it, or the folders in it, have some), by a short look. Where it
    is not, it is one all the same if there are no suites in it and runs farther down (`runs_beneath`)."""
    if _is_project(folder):
        return False
    found = any(_is_run(one) for child in _folders(folder) for one in (child, *_folders(child)))
    return (found and _holds_little_else(folder)) or _is_artifact(folder) or _holds_artifacts(folder)


def _is_run(folder: Path) -> bool:
    return os.path.isfile(folder / DATABASE)


def _holds_little_else(folder: Path) -> bool:
    """Whether there is nothing but runs, folders of them, and files of results: no room for suites."""
    of_runs = (one for one in _folders(folder) if not _is_run(one))
    return _has_reports(folder) and all(
        _has_reports(one) and all(map(_is_run, _folders(one))) for one in of_runs
    )


def _has_reports(folder: Path) -> bool:
    """Whether the files in a folder, but for hidden ones, are files of results."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        seen = (one for one in islice(entries, _LOOKED_AT) if not one.name.startswith("."))
        return all(one.is_dir() or Path(one.name).suffix in _REPORTS for one in seen)
    return False


def projects_in(folder: Path) -> Iterator[Path]:
    """The folders in a folder that have a store with something in it."""
    return (child for child in _folders(folder) if any(True for _ in _folders(child / STATE / "runs")))


def _is_project(folder: Path) -> bool:
    """Whether a folder is configured, or has runs of its own beside other things: whether suites are among these knows
    who reads them."""
    if os.path.isfile(folder / CONFIG_NAME):
        return True
    return any(map(_is_run, _folders(folder / STATE / "runs"))) and not _is_bare(folder)


def _holds_artifacts(folder: Path) -> bool:
    """A job that has not begun, or had nothing to run, has left nothing yet, or a store without runs."""
    children = list(_folders(folder))
    return any(map(_is_artifact, children)) and all(map(_is_bare, children))


def _is_artifact(folder: Path) -> bool:
    """Whether a folder holds a project's runs and files of results, and nothing else: what a CI keeps of a job."""
    return any(map(_is_run, _folders(folder / STATE / "runs"))) and _is_bare(folder)


def _is_bare(folder: Path) -> bool:
    """Whether a folder holds nothing but a store and files of results."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        others = islice((one for one in entries if one.name != STATE), _LOOKED_AT)
        return all(one.is_file() and Path(one.name).suffix in _REPORTS for one in others)
    return False


def _folders(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for number, one in enumerate(entries):
            if number >= _LOOKED_AT:
                return
            if not one.name.startswith(".") and one.is_dir(follow_symlinks=False):
                yield Path(one.path)


def written_mark(folder: Path) -> int:
    """Another number where a run's database is not as it was: when it was written last, and how large it is;
    its log, and where it is kept instead, count."""
    newest, size = touched(folder)
    return newest ^ size


def touched(folder: Path) -> tuple[int, int]:
    """When a run's database was written last (nanoseconds), and its size."""
    place = moved_to(folder) or folder
    newest = size = 0
    for name in (DATABASE, f"{DATABASE}-wal"):
        with contextlib.suppress(OSError):
            found = os.stat(place / name)
            if found.st_size:  # to look at a run makes an empty log
                newest, size = max(newest, found.st_mtime_ns), size + found.st_size
    return newest, size


_DEPTH, _MOST_FOLDERS = 5, 50_000
_PASSED_OVER = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", "site-packages", ".venv", "venv", ".tox", ".cache"}
)
NO_RUN = (
    f"no run in this folder, nor in what lies in it {_DEPTH} deep (links are not followed); name run folders, results files or "
    "run ids"
)


def runs_under(folder: Path) -> list[Path]:
    """The folders of runs in a folder and what is in it, five levels deep, in the order of their paths. Of
    what is large and never holds any (`node_modules`, `.git` …) nothing is looked at."""
    found: list[Path] = []
    waiting = [(folder, 0)]
    looked = 0
    while waiting and looked < _MOST_FOLDERS:
        place, depth = waiting.pop()
        looked += 1
        if os.path.isfile(place / "run.db"):
            found.append(place)
            continue
        if depth == _DEPTH:
            continue
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            waiting += [
                (Path(one.path), depth + 1)
                for one in entries
                if one.name not in _PASSED_OVER and one.is_dir(follow_symlinks=False)
            ]
    return sorted(found)


def runs_beneath(folder: Path) -> list[Path]:
    """Those of them that are not in a store of the folder's own: such a folder is a project, with runs as any."""
    own = folder / STATE
    return [one for one in runs_under(folder) if not one.is_relative_to(own)]
