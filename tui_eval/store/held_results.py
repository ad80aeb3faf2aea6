"""What a run has reported since it began, held in memory until it ends: its database can be damaged, emptied or taken
away meanwhile, and is written anew from here then."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.model import Attempt, Entry
from tui_eval.store.encoding import pack
from tui_eval.store.pending import Ended, Pending
from tui_eval.store.planned_cases import Plan
from tui_eval.store.schema import SCHEMA_VERSION, TABLES

_BODIES_KEPT = 8 * 2**20  # bytes of packed transcripts: those of most runs, the newest of a large one
_encoder = msgspec.msgpack.Encoder()
_WITHOUT = "its transcript is lost: the run's database was damaged while the run went on"


class HeldResults:
    """Rows of cases and attempts, and of the newest attempts that ended also their transcripts. Used by one
    thread at a time."""

    def __init__(self) -> None:
        self._before: dict[str, list[dict[str, Any]]] = {}
        self._plans: list[Plan] = []
        self._ended: dict[int, bytes | Ended] = {}
        self._bodies: dict[int, bytes] = {}
        self._meta: dict[str, Any] = {}
        self._whose: dict[int, tuple[str, int, str, str | None]] = {}  # case, attempt, agent, model
        self._earlier: set[int] = set()
        self._size = 0

    def __len__(self) -> int:
        """How many attempts have a result."""
        return len(self._ended) + len(self._earlier)

    def clear(self) -> None:
        """The run is over, and where it is to stay."""
        for part in (self._before, self._plans, self._ended, self._bodies, self._whose, self._earlier):
            part.clear()

    def begin_with(self, connection: sqlite3.Connection) -> None:
        """Take what an earlier process wrote of this run, transcripts apart."""
        for table in ("cases", "attempts"):
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [one[0] for one in cursor.description]
            self._before[table] = [dict(zip(names, row, strict=True)) for row in cursor]
        cases = {row["id"]: row for row in self._before["cases"]}
        for row in self._before["attempts"]:
            if (case := cases.get(row["case_ref"])) is not None:
                self._whose[row["id"]] = case["case_id"], row["attempt"], case["agent"], case["model"]
        self._earlier = {row["id"] for row in self._before["attempts"] if row["state"] == "done"}
        for key, value in connection.execute("SELECT key, value FROM meta"):
            self._meta[key] = value

    def planned(self, plan: Plan) -> None:
        """Cases with the attempts that are to come."""
        self._plans.append(plan)

    def model(self, case_ref: int, model: str) -> None:
        """The model of a case that an earlier process wrote is called so now."""
        for row in self._before["cases"]:
            if row["id"] == case_ref:
                row["model"] = model
        for row in self._before["attempts"]:
            if row["case_ref"] == case_ref and (whose := self._whose.get(row["id"])) is not None:
                self._whose[row["id"]] = (*whose[:3], model)

    def said(self, key: str, value: Any) -> None:
        """A value of `meta`."""
        self._meta[key] = value

    def again(self, ref: int) -> None:
        """The attempt waits again; its result does not count."""
        self._ended.pop(ref, None)
        self._size -= len(self._bodies.pop(ref, b""))
        self._earlier.discard(ref)

    def ended(self, attempt: Ended) -> None:
        """An attempt has ended."""
        ref = attempt.ref
        self._earlier.discard(ref)  # a resumed run compares it with columns that have only now ended
        self._ended[ref] = _small(attempt)
        self._size += len(attempt.body) - len(self._bodies.pop(ref, b""))
        self._bodies[ref] = attempt.body
        while self._size > _BODIES_KEPT and self._bodies:
            self._size -= len(self._bodies.pop(next(iter(self._bodies))))

    def stands_in(self, database: Path, without: int) -> bool:
        """Whether the database has a row and a body for every attempt with a result (`without`: how many of them
        could not be written) and every case."""
        location = f"{database.absolute().as_uri()}?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(location, uri=True, timeout=5)) as connection:
                done, bodies, cases = connection.execute(
                    "SELECT (SELECT count(*) FROM attempts WHERE state = 'done'), (SELECT count(*) FROM bodies),"
                    " (SELECT count(*) FROM cases)"
                ).fetchone()
        except sqlite3.Error:
            return False
        # An attempt of an earlier process may have been left without a body by hand: its row counts.
        return (
            done >= len(self) - without
            and bodies >= len(self._ended) - without
            and (cases >= sum(len(plan.cases) for plan in self._plans) or without > 0)
        )

    def missing_from(self, database: Path) -> set[int]:
        """The attempts with a result of which the database has none, by id: all of them where nobody can read it."""
        done: set[int] = set()
        bodies: set[int] = set()
        location = f"{database.absolute().as_uri()}?mode=ro"
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(location, uri=True, timeout=5)) as connection,
        ):
            done.update(ref for (ref,) in connection.execute("SELECT id FROM attempts WHERE state = 'done'"))
            bodies.update(ref for (ref,) in connection.execute("SELECT attempt_ref FROM bodies"))
        return (self._earlier - done) | (self._ended.keys() - (done & bodies))

    def write(self, connection: sqlite3.Connection, old: Path | None, lost: dict[int, str]) -> int:
        """Make the whole run in an empty database; transcripts that are not held come from the old one where there is
        one that still has them. How many have none; `lost` as in `Pending.write_each`.

        Raises:
            sqlite3.Error, OSError: it cannot be written.
        """
        connection.executescript(TABLES)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", self._meta.items())
        for table, rows in self._before.items():
            for row in rows:
                names, marks = ", ".join(row), ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))
        for plan in self._plans:
            count = 0
            for ref, _, item, number, _ in plan.attempts():
                self._whose[ref] = item.case.case_id, number, item.agent, item.model
                count += 1
            plan.write(connection, count)
        again = [row["id"] for row in self._before.get("attempts", []) if row["id"] not in self._earlier]
        connection.executemany(
            "UPDATE attempts SET state = 'waiting', outcome = NULL WHERE id = ?", [(ref,) for ref in again]
        )
        bare = 0
        earlier = {row["id"]: row for row in self._before.get("attempts", []) if row["id"] in self._earlier}
        with contextlib.closing(_reading(old)) as source:
            for one, known in self._whole(source):
                bare += not known
                Pending(ended=[one]).write_each(connection, lost)
            for ref, row in earlier.items():
                body = _body_of(source, ref)
                bare += body is None
                body = body or self._bare_body(ref, row["outcome"] or "error", row["message"])
                connection.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?)", (ref, body))
        connection.commit()
        return bare

    def _whole(self, source: sqlite3.Connection) -> Iterator[tuple[Ended, bool]]:
        """What has ended, with a body each; whether it is the one that it had."""
        for ref, kept in self._ended.items():
            one = _whole(kept)
            body = self._bodies.get(ref) or _body_of(source, ref)
            if body is not None:
                yield msgspec.structs.replace(one, body=body), True
                continue
            yield (
                msgspec.structs.replace(
                    one, body=self._bare_body(ref, one.values[0] or "error", one.values[2])
                ),
                False,
            )

    def _bare_body(self, ref: int, outcome: Any, message: str | None) -> bytes:
        case_id, number, agent, model = self._whose[ref]
        note = Entry(turn=1, kind="note", text=_WITHOUT)
        return pack(Attempt(case_id, number, outcome, agent, model, message=message or "", transcript=[note]))


def _small(attempt: Ended) -> bytes | Ended:
    """An attempt without its body, in a third of the memory; as it is where something in it cannot be packed."""
    try:
        return _encoder.encode((attempt.turn, *attempt.values))
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError):
        return msgspec.structs.replace(attempt, body=b"")


def _whole(kept: bytes | Ended) -> Ended:
    if isinstance(kept, Ended):
        return kept
    turn, *values = msgspec.msgpack.decode(kept)
    return Ended(tuple(values), b"", turn)


def _reading(database: Path | None) -> sqlite3.Connection:
    """What is left of a database; an empty one where nothing can be read."""
    if database is not None:
        with contextlib.suppress(sqlite3.Error):
            return sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    return sqlite3.connect(":memory:")


def _body_of(source: sqlite3.Connection, ref: int) -> bytes | None:
    try:
        row = source.execute("SELECT body FROM bodies WHERE attempt_ref = ?", (ref,)).fetchone()
    except sqlite3.Error:
        return None
    return row[0] if row is not None and isinstance(row[0], bytes) else None
