"""Clocks that were ahead: which results of a project ended later than it is, and when they are taken to have ended.

Results are in the order of their ends. An end that is ahead of the clock was recorded while the clock was
ahead, and is no time: such a result counts as of when the run after it began, else as of when the index saw
that. A run that begins, or goes on, keeps which ends were ahead of its clock then (`seen_ahead`): later they
are no more, and say nothing of it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from math import isfinite
from typing import Any

import msgspec

from tui_eval.store.digests import undone
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, is_alive, touched
from tui_eval.store.schema import RunInfo

_AHEAD, _AFTER = "seen_ahead", "went_on_after"
"""Under which the provenance of a run keeps what the clock that it began, or went on, by says of other runs."""


def seen_ahead(store: Store, info: RunInfo, moment: float, *, goes_on: bool = False) -> dict[str, Any]:
    """What a run that begins or goes on at this moment keeps in its provenance: results of other runs that ended later
    than that, under another clock, as `(moment, run, first end, last end)`; of one that goes on, the newest run there
    is, which its results come after. Only runs that were written later are read."""
    kept = ahead_of(info)
    found: list[Any] = json.loads(kept) if kept else []
    newest = ""
    for folder in store.run_folders():
        newest = newest or folder.name
        if folder.name == info.id or touched(folder)[0] / 1e9 < moment + 1.0 or is_alive(folder):
            continue
        with contextlib.suppress(StoreError, OSError), contextlib.closing(RunReader(folder)) as reader:
            ends = [
                end
                for row in reader.attempts()
                if row.state == "done"
                and (end := (row.started_at or 0.0) + (row.duration_ms or 0.0) / 1000) > moment
            ]
            if ends:
                found.append([moment, folder.name, min(ends), max(ends)])
    after = {_AFTER: newest} if goes_on and newest > info.id else {}
    return {**({_AHEAD: found} if found else {}), **after}


def ahead_of(info: RunInfo) -> str:
    """What a run has `seen_ahead`, as JSON; empty where that is nothing, or cannot be."""
    given = info.provenance.get(_AHEAD)
    found = [one for one in given if _is_seen(one, info)] if isinstance(given, list) else []
    return json.dumps(found) if found else ""


def _is_seen(one: Any, info: RunInfo) -> bool:
    """A record may come from anywhere: a run says nothing of what was before it."""
    if not (isinstance(one, list) and len(one) == 4 and isinstance(one[1], str)):
        return False
    times = (one[0], one[2], one[3])
    return all(type(at) in (int, float) and isfinite(at) for at in times) and one[0] >= info.started_at - 1.0


def went_on_after(info: RunInfo) -> str:
    given = info.provenance.get(_AFTER)
    return given if isinstance(given, str) else ""


def ends_ahead(connection: sqlite3.Connection) -> list[tuple[float, str, float, float]]:
    """The moments at which an end was ahead of the clock: when, of which run, between which times.

    Raises:
        sqlite3.DatabaseError: they are none that tui-eval writes.
    """
    found: list[tuple[float, str, float, float]] = []
    for (ahead,) in connection.execute("SELECT ahead FROM runs WHERE ahead != ''"):
        try:
            found += msgspec.json.decode(ahead, type=list[tuple[float, str, float, float]])
        except (TypeError, msgspec.MsgspecError) as error:
            raise sqlite3.DatabaseError(f"it holds what tui-eval does not write: {error}") from None
    return sorted(found)


def mend_times(connection: sqlite3.Connection) -> None:
    """Give results whose ends are ahead of the clock the ends that the module's docstring says. The run after theirs is
    told by its id, which is behind those of all runs that were there when it began (`Store.next_run`); what was merged
    has the times of its parts.

    Raises:
        sqlite3.OperationalError: the index cannot be written.
    """
    for moment, run_id, first, last in ends_ahead(connection):
        which = (moment, run_id, moment, first - 1.0, last + 1.0)
        where = "run_id = ? AND finished_at > ? AND finished_at BETWEEN ? AND ?"
        if connection.execute(f"SELECT 1 FROM results WHERE {where} LIMIT 1", which[1:]).fetchone():
            connection.execute(f"UPDATE results SET finished_at = ? WHERE {where}", which)
    now = {"now": time.time()}
    if connection.execute("SELECT 1 FROM runs WHERE last_end > :now LIMIT 1", now).fetchone() is None:
        return
    begun = (
        "SELECT min(started_at) FROM runs WHERE started_at <= :now AND merged = '' AND id > max(results.run_id,"
        " (SELECT went_on_after FROM runs AS own WHERE own.id = results.run_id))"
    )
    connection.execute("BEGIN IMMEDIATE")
    with undone(connection):
        connection.execute(
            f"UPDATE results SET finished_at = coalesce(({begun}), :now) WHERE finished_at > :now", now
        )
        connection.execute("UPDATE runs SET last_end = :now WHERE last_end > :now", now)
        connection.execute("COMMIT")
