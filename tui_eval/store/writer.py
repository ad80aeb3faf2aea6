"""Writing a run: the one process that executes it reports here what happens; a thread of its own puts it on
disk (`write_thread`), so that calls return at once and a token never costs a commit."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval import causes
from tui_eval.guard import figures
from tui_eval.model import Attempt
from tui_eval.store.encoding import encode_json, pack
from tui_eval.store.held_results import HeldResults
from tui_eval.store.pending import Ended, unkept
from tui_eval.store.planned_cases import Plan, PlannedCase
from tui_eval.store.run_folders import ROOM, RunLock, StoreError, kept_in, moved_to
from tui_eval.store.schema import SCHEMA_VERSION, TABLES, RunInfo, RunState, add_columns
from tui_eval.store.summary import OF_TURNS
from tui_eval.store.write_thread import WriteThread, connect

if TYPE_CHECKING:
    from tui_eval.store.failure_modes import Assessment


class Packed(msgspec.Struct, frozen=True):
    """An attempt as it is kept, and the fingerprint of its answer. `attempt` is the one that was packed: what
    cannot be kept is kept as an error that says why."""

    attempt: Attempt
    body: bytes
    mark: str

    @classmethod
    def of(cls, attempt: Attempt) -> Packed:
        """That of a finished attempt, secrets taken out. For texts of megabytes it takes a second, in any
        thread. Its figures have been checked (`guard.figures`)."""
        try:
            return cls(attempt, pack(attempt), answer_mark(attempt))
        except Exception as error:  # whatever is in it, the other attempts are not to suffer
            failed = unkept(attempt, error)
            return cls(failed, pack(failed), "")


_WAITING: dict[str, str | int | None] = {
    "state": "waiting", "outcome": None, "started_at": None, "detail": "", "turn": 0, "ends_at": None,
    "input_tokens": None, "output_tokens": None, "tool_calls": None,
}  # fmt: skip
"""The columns of an attempt that waits, nothing of it kept."""


class RunWriter:
    """Creates a run's folder and appends to it. One per run; used from one event loop or thread.

    When the disk refuses (full, gone) the run goes on, and what could not be written is tried again, at the
    end in another folder; `home`, the run's own, then says where that is. An attempt that the database does not
    take is kept as an error, the others as they are. `lost` are those, by their ids, of which nothing could be
    written anywhere.

    Raises:
        StoreError: the folder cannot be written, or another process executes the run.
    """

    def __init__(self, folder: Path, info: RunInfo) -> None:
        self.info = info
        self.home = folder
        self._lock = RunLock(folder)
        last_change = 0
        self._next_attempt = 1
        self._next_case = 1
        self._held = HeldResults()
        try:
            connection = connect(folder)
            try:
                if info.state == "running" and not _has_tables(connection):
                    connection.executescript(TABLES)
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                else:
                    last_change = self._continue_from(connection)
                    self._held.begin_with(connection)
                _write_info(connection, info)
                connection.commit()
            finally:
                connection.close()
        except sqlite3.Error as error:
            self._lock.release()
            full = ROOM if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL else ""
            raise StoreError(f"{folder}: {error}{full}") from None
        self._held.said("info", _info_text(info))
        self._thread = WriteThread(folder, self._held, last_change)

    @property
    def folder(self) -> Path:
        """The run's folder; after `close`, where it had to go when its disk was full."""
        return self._thread.folder

    def tell(self, on_error: Callable[[str], None]) -> None:
        """Have a person notified, once and in one line, when the disk refuses; called in a thread."""
        self._thread.on_error = on_error

    @property
    def error(self) -> str | None:
        """What the disk refuses, in one line; None while everything reported is kept."""
        return self._thread.error

    @property
    def behind(self) -> bool:
        """Whether so many ended attempts wait to be written that no other is to begin."""
        return self._thread.behind

    @property
    def lost(self) -> dict[int, str]:
        """Attempts of which nothing could be written, by id, and why."""
        return self._thread.lost

    def _continue_from(self, connection: sqlite3.Connection) -> int:
        row = connection.execute(
            "SELECT (SELECT coalesce(max(id), 0) FROM attempts), (SELECT coalesce(max(id), 0) FROM cases),"
            " (SELECT coalesce(max(changed), 0) FROM attempts)"
        ).fetchone()
        self._next_attempt, self._next_case = row[0] + 1, row[1] + 1
        connection.execute("DELETE FROM live")
        add_columns(connection)
        # Of a process that was killed. It waits before anybody can see this run as one at work again.
        begun = connection.execute(
            "SELECT id FROM attempts WHERE state IN ('running', 'retrying') ORDER BY id"
        )
        statement = (
            f"UPDATE attempts SET changed = ?, {', '.join(f'{name} = ?' for name in _WAITING)} WHERE id = ?"
        )
        changes = [
            (changed, *_WAITING.values(), ref) for changed, (ref,) in enumerate(begun.fetchall(), row[2] + 1)
        ]
        connection.executemany(statement, changes)
        return row[2] + len(changes)

    # What the engine reports

    def plan(self, planned: Sequence[PlannedCase]) -> list[range]:
        """Record what will be executed; returns the attempt ids of each planned case, in order."""
        plan = Plan(list(planned), self._next_case, self._next_attempt)
        references = plan.references()
        count = sum(map(len, references))
        self._next_case += len(plan.cases)
        self._next_attempt += count
        self._held.planned(plan)
        with self._thread.lock:
            changed = self._thread.next_change(count)
            self._thread.add(lambda connection: plan.write(connection, changed))
        return references

    def model(self, case_ref: int, model: str) -> None:
        """The model of a case that an earlier process recorded is called so now."""
        self._held.model(case_ref, model)
        self._thread.add(
            lambda connection: connection.execute(
                "UPDATE cases SET model = ? WHERE id = ?", (model, case_ref)
            )
        )

    def started(self, attempt_ref: int, at: float) -> None:
        """The attempt has begun (`at`: seconds since the epoch)."""
        self._update(attempt_ref, state="running", started_at=at, detail="")

    def waiting(self, attempt_ref: int) -> None:
        """The attempt waits again, nothing of it kept (a resumed run)."""
        self._held.again(attempt_ref)
        self._update(attempt_ref, **_WAITING)

    def limit(self, attempt_ref: int, ends_at: float | None) -> None:
        """The attempt's time limit ends it then (seconds since the epoch; None: nothing does)."""
        self._update(attempt_ref, ends_at=ends_at)

    def turn(self, attempt_ref: int, turn: int) -> None:
        """The attempt sends its turn number `turn`."""
        self._update(attempt_ref, turn=turn, state="running", detail="")

    def retrying(self, attempt_ref: int, detail: str) -> None:
        """The attempt waits before it asks again; `detail` says why and how long."""
        self._update(attempt_ref, state="retrying", detail=detail)

    def waits(self, attempt_ref: int, detail: str) -> None:
        """The attempt goes on when a person says so, or something slow is ready; `detail` says what it waits for."""
        self._update(attempt_ref, state="running", detail=detail)

    def running_again(self, attempt_ref: int) -> None:
        """After a retry, or a wait, the answer is coming."""
        self._update(attempt_ref, state="running", detail="")

    def progress(self, attempt_ref: int, usage: tuple[int | None, int | None], tool_calls: int) -> None:
        """Tokens and tool calls so far of a running attempt."""
        self._update(attempt_ref, input_tokens=usage[0], output_tokens=usage[1], tool_calls=tool_calls)

    def live(
        self, attempt_ref: int, kind: str, text: str, agent: str = "", name: str = "", call_id: str = ""
    ) -> None:
        """Append to what viewers see of a running attempt; pieces of one text are joined."""
        self._thread.live(attempt_ref, kind, text, agent, name, call_id)

    def done(
        self, attempt_ref: int, attempt: Attempt, packed: Packed | None = None, *, waits: bool = False
    ) -> None:
        """The attempt has ended; its live text goes, its body stays. `packed` is what `Packed.of` made of it. One that
        `waits` to be compared with others is kept as it is given, and counts as waiting."""
        packed = packed or Packed.of(figures.attempt(attempt))
        attempt = packed.attempt
        usage = attempt.usage
        values = (
            None if waits else attempt.outcome, attempt.score, attempt.message, attempt.started_at, attempt.duration_ms,
            usage.input_tokens if usage else None, usage.output_tokens if usage else None,
            usage.cached_tokens if usage else None, attempt.cost, attempt.tool_call_count, packed.mark,
            int(attempt.asserted_nothing), attempt.cached, attempt.saved, *_cause(attempt),
            *_judging(attempt),
        )  # fmt: skip
        with self._thread.lock:
            ended = Ended((*values, self._thread.next_change(), attempt_ref), packed.body)
            self._thread.ended(ended)
        self._held.ended(ended)

    def state(self, state: RunState, finished_at: float | None = None) -> None:
        """The run's state changes (`finished_at`: seconds since the epoch, at its end)."""
        info, now = self.info, time.time()
        if state == "paused":
            info.paused_at = info.paused_at or now
        elif info.paused_at is not None:
            info.paused_for += max(0.0, (finished_at or now) - info.paused_at)
            info.paused_at = None
        self.info.state = state
        self.info.finished_at = finished_at
        self._say("info", _info_text(self.info))

    def update_info(self) -> None:
        """Write `info` again after a change of its provenance."""
        self._say("info", _info_text(self.info))

    def whole_plan(self, cases: list[list[Any]]) -> None:
        """Keep the ids and shards of all cases of the whole that this run is a part of."""
        self._say("plan", pack(cases))

    def assessment(self, assessment: Assessment) -> None:
        """Keep how the run's attempts failed, named by a judge."""
        self._say("assessment", encode_json(assessment).decode())

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until everything reported so far is on disk; False when it could not be, or that took too long."""
        return self._thread.flush(timeout)

    def close(self) -> None:
        """Write what is left, end the thread, give the run's lock back."""
        self._thread.close()
        if self.folder != self.home:
            self._lock.moved(self.folder)
            self.info.note = "; ".join(
                filter(None, [self.info.note, f"{self._thread.why}{kept_in(self.folder)}"])
            )
            with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(self.folder)) as connection:
                _write_info(connection, self.info)
        self._lock.release()

    def forget(self) -> None:
        """After `close`: hold nothing of the run any more."""
        self._held.clear()

    def _say(self, key: str, value: Any) -> None:
        self._held.said(key, value)
        self._thread.add(
            lambda connection: connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        )

    def _update(self, attempt_ref: int, **columns: Any) -> None:
        self._thread.update(attempt_ref, columns)


def keep_assessment(folder: Path, assessment: Assessment) -> None:
    """Keep how the attempts of a run that has ended failed, named by a judge.

    Raises:
        StoreError: the folder cannot be written, or the run is being executed.
    """
    lock = RunLock(folder)
    try:
        connection = connect(moved_to(folder) or folder)
        try:
            text = encode_json(assessment).decode()
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('assessment', ?)", (text,))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreError(f"{folder}: {error}") from None
    finally:
        lock.release()


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'attempts'").fetchone() is not None


def _write_info(connection: sqlite3.Connection, info: RunInfo) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('info', ?)", (_info_text(info),))


def _info_text(info: RunInfo) -> str:
    return encode_json(info).decode()


def _cause(attempt: Attempt) -> tuple[str, str]:
    """Why it did not pass, in few words, and what it has in common with others; empty where what another package's
    assertion wrote cannot be told."""
    try:
        return causes.cause_of(attempt), causes.alike(attempt)
    except Exception:  # a reason in few words is never worth an attempt
        return "", ""


def _judging(attempt: Attempt) -> tuple[int, int | None, float | None, int, float | None]:
    used = attempt.judging
    if used is None:
        return 0, None, None, 0, None
    return used.calls, figures.judge_tokens(used), used.cost, used.cached, used.saved


# -- Whether two attempts answered the same, without reading what they answered: a fingerprint in their row.


_SLICE = 1 << 20


def answer_mark(attempt: Attempt) -> str:
    """A fingerprint of what was answered, white space at the ends left out, of a conversation in every turn;
    empty where nothing was answered. That of a conversation begins with `OF_TURNS`: earlier versions knew its
    last turn only."""
    if attempt.outcome not in ("passed", "failed") or not (attempt.replies or attempt.response_text):
        return ""
    mark = hashlib.blake2b(digest_size=8)
    turns = [reply.text for reply in attempt.replies[:-1]]
    for number, text in enumerate((*turns, attempt.response_text)):
        text = text.strip() if text else ""
        if number:
            mark.update(b"\0")
        if len(text) <= _SLICE:
            mark.update(text.encode("utf-8", "surrogatepass"))
            continue
        for start in range(0, len(text), _SLICE):
            mark.update(text[start : start + _SLICE].encode("utf-8", "surrogatepass"))
    return f"{OF_TURNS if turns else ''}{mark.hexdigest()}"
