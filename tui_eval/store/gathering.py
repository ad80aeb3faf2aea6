"""A folder of shards looked at as one run while they are written: what they write is copied, a few times a second, into
a run of the person's cache folder, which everything reads as any other run. The shards are only read."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tui_eval import __version__
from tui_eval.guard import private
from tui_eval.store import merging
from tui_eval.store.encoding import encode_json
from tui_eval.store.merging import MergePart, Whole, order_begun, with_frames
from tui_eval.store.missing_cases import missing_cases, write_missing
from tui_eval.store.pending import storable_rows, write_live
from tui_eval.store.run_folders import DATABASE, RunLock, StoreError, new_run_id
from tui_eval.store.schema import SCHEMA_VERSION, TABLES, AttemptRow, StoredCase
from tui_eval.store.write_thread import connect

SECONDS = 0.5
"""Between two looks at the shards."""
_LOOKED_AT = 200
_ROWS = (
    "INSERT OR REPLACE INTO attempts (id, case_ref, attempt, state, outcome, score, message, started_at, duration_ms,"
    " input_tokens, output_tokens, cached_tokens, cost, tool_calls, turn, detail, changed, answer, ends_at,"
    f" asserted_nothing, judges, cached, saved, cause, alike, judge_calls, judge_tokens,"
    f" judge_cost, judge_cached) VALUES ({','.join('?' * 29)})"
)
_Key = tuple[str, str, str | None]


def holds_runs(folder: Path) -> bool:
    """Whether a folder is one of runs (it, or the folders in it, have some), by a short look."""
    return any((one / DATABASE).is_file() for child in _folders(folder) for one in (child, *_folders(child)))


def _folders(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for number, one in enumerate(entries):
            if number >= _LOOKED_AT:
                return
            if not one.name.startswith(".") and one.is_dir(follow_symlinks=False):
                yield Path(one.path)


class _Source:
    """One shard: how far it is read, and what its ids are here."""

    def __init__(self, part: MergePart) -> None:
        self.part = part
        self.changed = 0
        self.seq = 0
        self.keys: dict[int, _Key] = {}
        self.attempts: dict[int, int] = {}


class Gathering:
    """The runs in a folder as one. `place` is the folder of that run.

    Args:
        folder: Where the shards are, or will be.
        waits: Whether shards that are not there yet are waited for.

    Raises:
        StoreError: there is no run in it that can be read, or the cache folder cannot be written.
    """

    def __init__(self, folder: Path, *, waits: bool) -> None:
        self._folder = folder
        self._waits = waits
        self._missing_written = False
        self._sources: dict[Path, _Source] = {}
        self._refused: dict[Path, str] = {}
        self._unreadable: dict[Path, str] = {}
        self._beginning: set[Path] = set()
        self._owners: dict[_Key, tuple[_Source, int]] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._changed = 0
        self._seen: list[object] = []
        self._going = True
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        home = private.cache_home() / "gathered"
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._made = Path(tempfile.mkdtemp(dir=home))
        except OSError as error:
            raise StoreError(f"{home}: cannot be written: {error.strerror or error}") from None
        atexit.register(shutil.rmtree, self._made, True)
        self._id = new_run_id()
        self.place = self._made / ".tui-eval" / "runs" / self._id
        self.place.mkdir(parents=True, mode=0o700)
        self._lock: RunLock | None = RunLock(self.place)
        self._connection = connect(self.place)
        self._connection.executescript(TABLES)
        self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._connection.close()
        if not self.look():
            self._end()
        if not self._sources:
            why = next(iter((*self._refused.values(), *self._unreadable.values())), "no run in this folder")
            self.close()
            raise StoreError(f"{folder}: {why}")

    def start(self) -> None:
        """Go on looking, in a thread, until all has ended."""
        if self._lock is not None:
            self._thread = threading.Thread(target=self._go_on, name="store-gathering", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)
        self._end()

    def _end(self) -> None:
        for source in self._sources.values():
            source.part.reader.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _go_on(self) -> None:
        going = True
        while going and not self._stop.wait(SECONDS):
            try:
                going = self.look()
            except (StoreError, sqlite3.Error, OSError):
                # Nothing of it was written: all of it again at the next look, under the same ids.
                self._seen = []
                for source in self._sources.values():
                    source.changed = 0
                    source.keys.clear()
        if not going:
            self._end()

    def look(self) -> bool:
        """Take over what is new; whether more may come."""
        self._find()
        if not self._sources:
            return False
        states = {path: source.part.reader.info() for path, source in self._sources.items()}
        stamps = [source.part.reader.stamp() for source in self._sources.values()]
        seen = [*map(encode_json, states.values()), stamps, list(self._refused), list(self._unreadable)]
        if seen == self._seen:
            return self._going
        with contextlib.closing(connect(self.place)) as self._connection:
            self._connection.execute("BEGIN")
            for path, source in self._sources.items():
                source.part.info = states[path]
                self._take(source)
            whole = self._whole()
            active = any(info.state in ("running", "paused") for info in states.values())
            waiting = self._waits and bool(whole.missing_shards)
            info = merging.facts(whole, self._id, __version__)
            if active or waiting:
                info.state, info.finished_at = "running" if active else "paused", None
            note = [f"left out: {why}" for why in (*self._refused.values(), *self._unreadable.values())]
            info.note = "; ".join(filter(None, [info.note, *note]))[:1000]
            if not active and not self._waits and not self._missing_written:
                # Nothing more is looked for: what no part has stands there as not run.
                self._missing_written = True
                places = len(self._owners), len(self._numbers)
                write_missing(self._connection, missing_cases(whole), *places)
            row = ("info", encode_json(info).decode())
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
            self._connection.execute("COMMIT")
        self._seen, self._going = seen, active or waiting
        return self._going

    def _find(self) -> None:
        for path in merging.runs_under(self._folder):
            if path in self._sources or path in self._refused:
                continue
            try:
                part = MergePart.of(path.name, path)
            except StoreError as error:
                if self._waits and path not in self._beginning:
                    self._beginning.add(path)  # readable at the next look, unless it is damaged
                else:
                    self._unreadable[path] = str(error)
                continue
            self._unreadable.pop(path, None)
            first = next((one.part for one in self._sources.values()), part)
            try:
                merging.check_part(part)
                merging.check_pair(first, part)
            except merging.MergeError as error:
                self._refused[path] = str(error)
                part.reader.close()
                continue
            self._sources[path] = _Source(part)

    def _take(self, source: _Source) -> None:
        reader = source.part.reader
        rows = reader.changes(source.changed)
        if any(row.case_ref not in source.keys for row in rows):
            source.part.cases = reader.cases()
            for case in source.part.cases:
                if case.id not in source.keys:
                    source.keys[case.id] = key = case.case_id, case.agent, case.model
                    self._own(source, key, case)
        done = [row.id for row in rows if row.state == "done"]
        bodies = reader.packed_attempts(done)
        for row in rows:
            source.changed = max(source.changed, row.changed)
            owner, case_ref = self._owners[source.keys[row.case_ref]]
            if owner is source:
                self._put(source, row, case_ref, bodies.get(row.id))
        live = reader.live(source.seq, limit=20_000)
        known = [one for one in live if one.attempt_ref in source.attempts]
        write_live(
            self._connection,
            [(source.attempts[one.attempt_ref], one.kind, one.agent, one.text, one.name, one.call_id, one.at) for one in known],
        )  # fmt: skip
        source.seq = live[-1].seq if live else source.seq

    def _own(self, source: _Source, key: _Key, row: StoredCase) -> None:
        """The case is this shard's, unless one that began later has it, too."""
        known = self._owners.get(key)
        if known is None or known[0] is source:
            ref = known[1] if known is not None else len(self._owners) + 1
            values = (
                ref, row.case_id, row.suite, row.name, row.format, row.agent, row.model, row.content_hash, row.attempts,
                row.required, source.part.reader.packed_case(row.id), row.variant,
            )  # fmt: skip
            self._connection.execute(
                f"INSERT OR REPLACE INTO cases VALUES ({','.join('?' * 12)})", storable_rows([values])[0]
            )
            self._owners[key] = source, ref
        elif order_begun(known[0].part.info) < order_begun(source.part.info):
            self._owners[key] = source, known[1]

    def _put(self, source: _Source, row: AttemptRow, case_ref: int, body: bytes | None) -> None:
        self._changed += 1
        ref = self._numbers.setdefault((case_ref, row.attempt), len(self._numbers) + 1)
        source.attempts[row.id] = ref
        values = (
            ref, case_ref, row.attempt, row.state, row.outcome, row.score, row.message, row.started_at, row.duration_ms,
            row.input_tokens, row.output_tokens, row.cached_tokens, row.cost, row.tool_calls, row.turn, row.detail,
            self._changed, row.answer, row.ends_at, row.asserted_nothing, row.judges, row.cached, row.saved, row.cause,
            row.alike, row.judge_calls, row.judge_tokens, row.judge_cost, row.judge_cached,
        )  # fmt: skip
        self._connection.execute(_ROWS, storable_rows([values])[0])
        if row.state == "done":
            self._connection.execute("DELETE FROM live WHERE attempt_ref = ?", (ref,))
            if body is not None:
                kept = with_frames(source.part.reader.folder, row.id, self.place, ref, body)
                self._connection.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?)", (ref, kept))

    def _whole(self) -> Whole:
        parts = [source.part for source in self._sources.values()]
        there = {key[0] for key in self._owners}
        statement = (
            "SELECT DISTINCT case_id FROM attempts JOIN cases ON cases.id = case_ref WHERE state != 'done'"
        )
        unfinished = [name for (name,) in self._connection.execute(statement)]
        return Whole(parts, [], [], *merging.missing(parts, there), unfinished)


def gathered(folder: Path) -> Path:
    """The folder of a run that is all runs in a folder as they are now.

    Raises:
        StoreError: there is none in it that can be read.
    """
    gathering = Gathering(folder, waits=False)
    gathering.start()
    return gathering.place
