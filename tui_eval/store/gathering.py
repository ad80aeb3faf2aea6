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
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from tui_eval import __version__
from tui_eval.guard.spelling import some_of
from tui_eval.model import JUDGED, NOT_COMPARED
from tui_eval.store import merging
from tui_eval.store.encoding import encode_json
from tui_eval.store.merged_run import with_frames
from tui_eval.store.merging import MergePart, Whole, counting
from tui_eval.store.missing_cases import missing_cases, write_missing
from tui_eval.store.pending import storable_rows, write_live
from tui_eval.store.printed_commands import shell_line
from tui_eval.store.run_folders import DATABASE, STATE, RunLock, StoreError, new_run_id, runs_under
from tui_eval.store.schema import SCHEMA_VERSION, TABLES, AttemptRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import looked_at_home
from tui_eval.store.write_thread import connect

SECONDS = 0.5
"""Between two looks at the shards."""
_AGAIN_SECONDS = 2.0
"""After which a run that was left out is looked at again, where something else was written there."""
_NAMED = 4
"""Plans that are named, and runs of one that are written out in a command."""
_AT_ONCE = 500  # columns
_ROWS = (
    "INSERT OR REPLACE INTO attempts (id, case_ref, attempt, state, outcome, score, message, started_at, duration_ms,"
    " input_tokens, output_tokens, cached_tokens, cost, tool_calls, turn, detail, changed, answer, ends_at,"
    f" asserted_nothing, judges, cached, saved, cause, alike, judge_calls, judge_tokens,"
    f" judge_cost, judge_cached, judge_saved) VALUES ({','.join('?' * 30)})"
)
_Key = tuple[str, str, str | None]


class _Source:
    """One shard: how far it is read, and what its ids are here."""

    def __init__(self, part: MergePart, path: Path) -> None:
        self.part = part
        self.file = _file_of(path)
        self.forget()

    def forget(self) -> None:
        """Begin anew with it."""
        self.changed = 0
        self.seq = 0
        self.keys: dict[int, _Key] = {}
        self.cases: dict[_Key, StoredCase] = {}
        self.judged: dict[_Key, int] = {}
        self.verdicts: set[int] = set()
        self.done: set[int] = set()
        self.attempts: dict[int, tuple[int, _Key]] = {}
        self.works = True

    def unfinished(self) -> set[_Key]:
        """Columns with attempts that have not ended: while nobody executes the shard, none of them runs."""
        return {key for number, (_, key) in self.attempts.items() if number not in self.done}

    def news(self) -> dict[_Key, list[AttemptRow]]:
        """Attempts that have changed, by their column; of a shard that was not read yet all.

        Raises:
            StoreError: it cannot be read.
        """
        rows = self.part.reader.changes(self.changed)
        if any(row.case_ref not in self.keys for row in rows):
            self.part.cases = self.part.reader.cases()
            for case in self.part.cases:
                self.keys[case.id] = key = case.case_id, case.agent, case.model
                self.cases[key] = case
        found: dict[_Key, list[AttemptRow]] = {}
        for row in rows:
            key = self.keys.get(row.case_ref)
            if key is None:
                raise StoreError(f"damaged: attempt {row.id} is of no case")
            found.setdefault(key, []).append(row)
            self.changed = max(self.changed, row.changed)
            done = row.state == "done"
            if done != (row.id in self.done):
                self.done ^= {row.id}
            judged = done and row.outcome in JUDGED and row.message != NOT_COMPARED
            if judged != (row.id in self.verdicts):
                self.judged[key] = self.judged.get(key, 0) + (1 if judged else -1)
                self.verdicts ^= {row.id}
        return found


class _LeftOut(NamedTuple):
    """A run that is not taken in, why, and what its file was when that was found out; `part` is it where it
    could be read (its reader is closed)."""

    why: str
    file: tuple[int, ...]
    looked: float
    part: MergePart | None = None


def _file_of(path: Path) -> tuple[int, ...]:
    """Which file a run's database is; empty where there is none."""
    with contextlib.suppress(OSError):
        found = (path / DATABASE).stat()
        return found.st_dev, found.st_ino
    return ()


def _under(folder: Path, path: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _written(path: Path) -> tuple[int, ...]:
    """Other numbers when something was written into a run's database."""
    numbers: list[int] = []
    for name in (DATABASE, f"{DATABASE}-wal"):
        with contextlib.suppress(OSError):
            found = (path / name).stat()
            numbers += [found.st_ino, found.st_size, found.st_mtime_ns]
    return tuple(numbers)


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
        self._info = RunInfo("")
        self._sources: dict[Path, _Source] = {}
        self._left_out: dict[Path, _LeftOut] = {}
        self._beginning: set[Path] = set()
        self._failed: dict[Path, tuple[int, ...]] = {}
        self._holders: dict[_Key, list[_Source]] = {}
        self._owners: dict[_Key, _Source] = {}
        self._refs: dict[_Key, int] = {}
        self._touched: set[_Key] = set()
        self._numbers: dict[tuple[int, int], int] = {}
        self._changed = 0
        self._seen: list[object] = []
        self._going = True
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        home = looked_at_home()
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._made = Path(tempfile.mkdtemp(dir=home))
        except OSError as error:
            raise StoreError(f"{home}: cannot be written: {error.strerror or error}") from None
        self._remove = partial(shutil.rmtree, self._made, True)
        atexit.register(self._remove)
        self._id = new_run_id()
        self.place = self._made / STATE / "runs" / self._id
        self.place.mkdir(parents=True, mode=0o700)
        self._lock: RunLock | None = RunLock(self.place)
        self._connection = connect(self.place)
        self._connection.executescript(TABLES)
        self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._connection.close()
        if not self.look() and not (self._beginning and self.look()):
            self._end()
        if not self._sources:
            why = next((one.why for one in self._left_out.values()), "no run in this folder")
            self.close()
            self._remove()
            atexit.unregister(self._remove)
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
        lock, self._lock = self._lock, None  # two threads may end it, at the end of the app
        if lock is not None:
            lock.release()

    def _go_on(self) -> None:
        going = True
        while going and not self._stop.wait(SECONDS):
            try:
                going = self.look()
            except (StoreError, sqlite3.Error, OSError):
                # Nothing of it was written: all of it again at the next look, under the same ids.
                self._seen = []
                self._owners.clear()
                self._holders.clear()
                for source in self._sources.values():
                    source.forget()
        if not going:
            self._end()

    def look(self) -> bool:
        """Take over what is new; whether more may come."""
        if self._lock is None:
            return False
        states = self._states()
        self._find(states)
        if not self._sources and not self._owners:
            return False
        stamps = [(source.file, source.part.reader.stamp()) for source in self._sources.values()]
        seen = [*map(encode_json, states.values()), stamps, [one.why for one in self._left_out.values()]]
        if seen == self._seen:
            return self._going
        with contextlib.closing(connect(self.place)) as self._connection:
            self._connection.execute("BEGIN")
            for path, source in self._sources.items():
                source.part.info = states[path]
            self._take()
            active = any(source.part.info.state in ("running", "paused") for source in self._sources.values())
            info = self._facts(active)
            row = ("info", encode_json(info).decode())
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
            self._connection.execute("COMMIT")
        self._seen, self._going = seen, info.state in ("running", "paused")
        return self._going

    def _facts(self, active: bool) -> RunInfo:
        """The facts of the run that the shards are now."""
        whole = self._whole()
        if self._sources:
            self._info = merging.facts(whole, self._id, __version__)
        info = msgspec.structs.replace(self._info)
        waiting = self._waits and not (self._sources and whole.complete)
        if active or waiting:
            info.paused_at = None if active else info.finished_at
            info.state, info.finished_at = "running" if active else "paused", None
        elif not self._missing_written:
            # Nothing more is looked for: what no part has stands there as not run.
            self._missing_written = True
            missing = [
                one
                for one in missing_cases(whole)
                if (one.case.case_id, one.agent, one.model) not in self._refs
            ]
            write_missing(self._connection, missing, len(self._refs), len(self._numbers))
        # First, as it is why others are missing.
        info.note = "; ".join(filter(None, [*self._left_out_words(), info.note]))
        info.note = info.note[:1000]
        return info

    def _states(self) -> dict[Path, RunInfo]:
        """The facts of the shards; those that are other files now, or cannot be read any more, are let go."""
        states: dict[Path, RunInfo] = {}
        for path, source in list(self._sources.items()):
            if (file := _file_of(path)) and file != source.file:
                self._let_go(path)
                continue
            try:
                states[path] = source.part.reader.info()
                source.part.reader.stamp()
            except StoreError as error:
                self._leave_out(path, error)
                continue
            if states[path].id != source.part.info.id:
                del states[path]
                self._let_go(path)
        return states

    def _let_go(self, path: Path) -> None:
        source = self._sources.pop(path)
        source.part.reader.close()
        for key in source.cases:
            if source in (holders := self._holders.get(key, [])):
                holders.remove(source)
            self._touched.add(key)

    def _leave_out(self, path: Path, error: StoreError) -> None:
        """Of a run that cannot be read nothing counts. It may be half copied: one that was taken in is tried
        once more."""
        written = _written(path)
        again = path in self._sources and self._failed.get(path) != written
        if path in self._sources:
            self._let_go(path)
        self._failed[path] = written
        said = f"{_under(self._folder, path)}: {str(error).removeprefix(f'{path / DATABASE}: ')}"
        self._left_out[path] = _LeftOut(said, () if again else written, time.monotonic())

    def _find(self, states: dict[Path, RunInfo]) -> None:
        there = runs_under(self._folder)
        self._left_out = {path: one for path, one in self._left_out.items() if path in there}
        come: list[tuple[Path, MergePart]] = []
        for path in there:
            if path in self._sources or not self._may_be_new(path):
                continue
            try:
                come.append((path, MergePart.of(path.name, path)))
            except StoreError as error:
                if self._waits and path not in self._beginning:
                    self._beginning.add(path)  # readable at the next look, unless it is damaged
                else:
                    self._leave_out(path, error)
        for path, part in sorted(
            come, key=lambda one: one[1].shard is None
        ):  # what was merged of them is none
            first = next((one.part for one in self._sources.values()), part)
            try:
                if merging.merged_before([first, part]):
                    raise merging.MergeError(f"{part.label}, which was merged before")
                merging.check_part(part)
                merging.check_pair(first, part)
            except merging.MergeError as error:
                self._left_out[path] = _LeftOut(str(error), _written(path), time.monotonic(), part)
                part.reader.close()
                continue
            self._left_out.pop(path, None)
            self._sources[path] = _Source(part, path)
            states[path] = part.info

    def _left_out_words(self) -> list[str]:
        """What is said of the runs that are not taken in: those that are so for one reason together."""
        adding: list[str] = []
        alone: list[str] = []
        lines: list[str] = []
        shards = any(source.part.shard is not None for source in self._sources.values())
        for one in self._left_out.values():
            if one.part is None or merging.merged_before([one.part, *self._parts()]):
                lines.append(f"left out: {one.why}")
            elif merging.adds_to_another(one.part):
                adding.append(one.part.label)
            elif shards and one.part.shard is None:
                alone.append(one.part.label)
        if adding:
            lines.append(merging.that_add(adding))
        if alone:
            lines.append(merging.that_are_no_shards(alone))
        if len(plans := self._plans()) > 1:
            (shown, _), *others = (self._plan_words(plan, plans) for plan in plans)
            names = some_of([name for name, _ in others], _NAMED)
            what, why = self._several_plans()
            way = f"to see the other: {others[0][1]}"  # before why: the app has room for a line
            lines.insert(0, f"{what}: shown is {shown}; left out: {names}; {way}; they differ: {why}")
        return lines

    def undecided(self) -> str:
        """That the runs are of several plans, and a command that shows one; empty where all are of one."""
        if len(plans := self._plans()) < 2:
            return ""
        what, why = self._several_plans()
        named = [self._plan_words(plan, plans) for plan in plans]
        return f"{what} ({why}): {some_of([name for name, _ in named], _NAMED)}; name one: {named[0][1]}"

    def _several_plans(self) -> tuple[str, str]:
        """`shards of 2 plans`, and how they differ."""
        what = "shards" if any(part.shard is not None for part in self._parts()) else "runs"
        why = next(one.why for one in self._left_out.values() if self._is_of_another_plan(one))
        return f"{what} of {len(self._plans())} plans", why.partition(": ")[2]

    def _parts(self) -> list[MergePart]:
        return [source.part for source in self._sources.values()]

    def _is_of_another_plan(self, one: _LeftOut) -> bool:
        if one.part is None or merging.adds_to_another(one.part):
            return False
        return one.part.shard is not None or all(part.shard is None for part in self._parts())

    def _plans(self) -> list[list[Path]]:
        """The runs by their plan, that which is shown first."""
        if not self._sources:
            return []
        plans = [list(self._sources)]
        first: list[MergePart] = []
        for path, one in self._left_out.items():
            if one.part is None or not self._is_of_another_plan(one):
                continue
            for number, part in enumerate(first, 1):
                if merging.same_plan(part, one.part):
                    plans[number].append(path)
                    break
            else:
                first.append(one.part)
                plans.append([path])
        return plans

    def _plan_words(self, plan: list[Path], plans: list[list[Path]]) -> tuple[str, str]:
        """What the runs of a plan are called, and the command that shows them alone."""
        count = f" ({len(plan)} runs)" if len(plan) > 1 else ""
        common = Path(os.path.commonpath(plan))
        others = (path for other in plans if other is not plan for path in other)
        if common != self._folder and not any(path.is_relative_to(common) for path in others):
            return f"{_under(self._folder, common)}{count}", shell_line(
                ["tui-eval", "show", merging.as_typed(common)]
            )
        typed = [merging.as_typed(path) for path in plan[:_NAMED]]
        names = some_of([str(_under(self._folder, path)) for path in plan], 1)
        more = " …" if len(plan) > _NAMED else ""
        return names, shell_line(["tui-eval", "merge", *typed]) + more

    def _may_be_new(self, path: Path) -> bool:
        """Whether a run that was left out is to be looked at again: something else is there now."""
        before = self._left_out.get(path)
        if before is None:
            return True
        if time.monotonic() - before.looked < _AGAIN_SECONDS:
            return False
        return before.file != _written(path)

    def _take(self) -> None:
        """Write what is new of each column as its shard has it. Which one that is changes where more of it has ended in
        another (`merging.counting`), or where a shard went."""
        news: dict[_Source, dict[_Key, list[AttemptRow]]] = {}
        fresh = {source for source in self._sources.values() if not source.changed}
        again: set[_Key] = set()
        for path, source in list(self._sources.items()):
            known = len(source.cases)
            try:
                news[source] = source.news()
            except StoreError as error:
                self._leave_out(path, error)
                continue
            for key in list(source.cases)[known:]:
                self._holders.setdefault(key, []).append(source)
            self._touched.update(news[source])
            if source.works != (source.part.info.state in ("running", "paused")):
                source.works = not source.works
                again |= source.unfinished()
        self._touched |= again
        while self._touched:
            touched, self._touched = self._touched, set()
            mine: dict[_Source, list[_Key]] = {}
            moved: set[_Key] = set()
            for key in touched:
                owner = self._owner(key)
                if owner is None:
                    self._empty(key)
                    continue
                if key in again or owner is not self._owners.get(key):
                    moved.add(key)
                mine.setdefault(owner, []).append(key)
            for path, source in list(self._sources.items()):
                keys = mine.get(source, [])
                try:
                    for start in range(0, len(keys), _AT_ONCE):
                        self._put(
                            source, keys[start : start + _AT_ONCE], moved, news[source], source in fresh
                        )
                except StoreError as error:
                    self._leave_out(path, error)
        for source in self._sources.values():
            self._take_live(source)

    def _owner(self, key: _Key) -> _Source | None:
        """Whose a column is."""
        holders = self._holders.get(key, [])
        return max(holders, key=lambda one: counting(one.judged.get(key, 0), one.part.info), default=None)

    def _empty(self, key: _Key) -> None:
        """A column that no shard has any more has not run."""
        if self._owners.pop(key, None) is None:
            return
        ref = self._refs[key]
        numbers = self._connection.execute(
            "SELECT id, attempt FROM attempts WHERE case_ref = ?", (ref,)
        ).fetchall()
        for number, attempt in numbers:
            self._changed += 1
            self._forget(number)
            self._connection.execute("DELETE FROM attempts WHERE id = ?", (number,))
            self._connection.execute(
                "INSERT INTO attempts (id, case_ref, attempt, state, changed) VALUES (?, ?, ?, 'waiting', ?)",
                (number, ref, attempt, self._changed),
            )

    def _put(
        self,
        source: _Source,
        keys: list[_Key],
        moved: set[_Key],
        news: dict[_Key, list[AttemptRow]],
        fresh: bool,
    ) -> None:
        """Write what is new of columns that are a shard's, and all of those that were another's, or nobody's.

        Raises:
            StoreError: the shard cannot be read.
        """
        reader = source.part.reader
        come = [source.cases[key].id for key in keys if key in moved and not fresh]
        every = reader.attempts_of(come) if come else {}
        rows = {
            key: every.get(source.cases[key].id, []) if key in moved and not fresh else news.get(key, [])
            for key in keys
        }
        bodies = reader.packed_attempts(
            [row.id for own in rows.values() for row in own if row.state == "done"]
        )
        for key, own in rows.items():
            ref = self._refs.setdefault(key, len(self._refs) + 1)
            if key in moved:
                case = source.cases[key]
                values = (
                    ref, case.case_id, case.suite, case.name, case.format, case.agent, case.model, case.content_hash,
                    case.attempts, case.required, reader.packed_case(case.id), case.variant,
                )  # fmt: skip
                self._connection.execute(
                    f"INSERT OR REPLACE INTO cases VALUES ({','.join('?' * 12)})", storable_rows([values])[0]
                )
                self._owners[key] = source
            for row in own:
                self._put_row(source, key, row, ref, bodies.get(row.id), anew=key in moved)

    def _put_row(
        self, source: _Source, key: _Key, row: AttemptRow, case_ref: int, body: bytes | None, *, anew: bool
    ) -> None:
        self._changed += 1
        if row.state != "done" and not source.works:
            row = msgspec.structs.replace(row, state="waiting", started_at=None, detail="", ends_at=None)
        ref = self._numbers.setdefault((case_ref, row.attempt), len(self._numbers) + 1)
        source.attempts[row.id] = ref, key
        values = (
            ref, case_ref, row.attempt, row.state, row.outcome, row.score, row.message, row.started_at, row.duration_ms,
            row.input_tokens, row.output_tokens, row.cached_tokens, row.cost, row.tool_calls, row.turn, row.detail,
            self._changed, row.answer, row.ends_at, row.asserted_nothing, row.judges, row.cached, row.saved, row.cause,
            row.alike, row.judge_calls, row.judge_tokens, row.judge_cost, row.judge_cached,
            row.judge_saved,
        )  # fmt: skip
        self._connection.execute(_ROWS, storable_rows([values])[0])
        if row.state == "done" or anew:
            self._forget(ref)
        if row.state == "done" and body is not None:
            kept = with_frames(source.part.reader.folder, row.id, self.place, ref, body)
            self._connection.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?)", (ref, kept))

    def _forget(self, ref: int) -> None:
        """What was said in an attempt, and its body."""
        self._connection.execute("DELETE FROM live WHERE attempt_ref = ?", (ref,))
        self._connection.execute("DELETE FROM bodies WHERE attempt_ref = ?", (ref,))

    def _take_live(self, source: _Source) -> None:
        """The live text of attempts of columns that are a shard's."""
        try:
            live = source.part.reader.live(source.seq, limit=20_000)
        except StoreError:
            return  # what damages it is met again where it counts
        rows: list[tuple[object, ...]] = []
        for one in live:
            ref, key = source.attempts.get(one.attempt_ref, (0, None))
            if key is not None and self._owners.get(key) is source and source.works:
                rows.append((ref, one.kind, one.agent, one.text, one.name, one.call_id, one.at))
        write_live(self._connection, rows)
        source.seq = live[-1].seq if live else source.seq

    def _whole(self) -> Whole:
        parts = [source.part for source in self._sources.values()]
        there = {key[0] for key in self._owners}
        statement = "SELECT DISTINCT case_id, agent, model FROM attempts JOIN cases ON cases.id = case_ref WHERE state != 'done'"
        unfinished = [key for key in self._connection.execute(statement) if key[0] in there]
        names = list(dict.fromkeys(name for name, _, _ in unfinished))
        owners = {
            self._owners[key].part.info.id: self._owners[key].part
            for key in unfinished
            if key in self._owners
        }
        cut_off = merging.cut_off(parts, owners.values())
        unjudged = f"SELECT 1 FROM attempts WHERE state = 'done' AND outcome NOT IN {JUDGED} LIMIT 1"
        left = self._connection.execute(unjudged).fetchone() is not None
        return Whole(parts, [], [], *merging.missing(parts, there), names, cut_off, left)


def gathered(folder: Path) -> Path:
    """The folder of a run that is all runs in a folder as they are now.

    Raises:
        StoreError: there is none in it that can be read, or they are of several plans.
    """
    gathering = Gathering(folder, waits=False)
    if words := gathering.undecided():
        gathering.close()
        raise StoreError(f"{folder}: {words}")
    gathering.start()
    return gathering.place
