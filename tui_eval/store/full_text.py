"""Full-text search over the transcripts of a run (SQLite FTS5).

The words are gathered into `search.db` in the run's folder when a run is searched first, and again
for attempts that came since. A run that cannot be written is searched from memory.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.guard import private
from tui_eval.model import decoded
from tui_eval.store.digests import connect_or_renew
from tui_eval.store.reader import RunReader

_TABLES = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    body, attempt_ref UNINDEXED, turn UNINDEXED, kind UNINDEXED, tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE IF NOT EXISTS done (attempt_ref INTEGER PRIMARY KEY);
"""
_LONGEST = 200_000  # characters of one entry that are searched
_BATCH = 250  # attempts that are gathered in one transaction

Progress = Callable[[int, int], bool]
"""Told how many attempts of how many are gathered; the answer False ends the search."""


class Hit(msgspec.Struct):
    """Where the words were found: an entry's turn and kind in an attempt, and its text around them,
    the words between \\x02 and \\x03."""

    attempt_ref: int
    turn: int
    kind: str
    excerpt: str


class Hits(msgspec.Struct):
    """The best places, and how many there are in all."""

    best: list[Hit]
    total: int = 0


class _Said(msgspec.Struct):
    """What of an entry is searched; values stay the JSON that they are stored as."""

    turn: int
    kind: str
    text: str = ""
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: str | None = None


class _Transcript(msgspec.Struct):
    transcript: list[_Said] = []


def search(reader: RunReader, words: str, limit: int = 200, progress: Progress | None = None) -> Hits:
    """Entries of finished attempts that hold all the words (each also as the beginning of a longer
    one), best first. Blocking; for a thread.

    Raises:
        StoreError: the run cannot be read.
    """
    query = " ".join(f'"{word.replace(chr(34), chr(34) * 2)}"*' for word in words.split())
    if not query:
        return Hits([])
    with closing(_open(reader.folder)) as connection:
        if not _catch_up(connection, reader, progress):
            return Hits([])
        rows = connection.execute(
            "SELECT attempt_ref, turn, kind, snippet(words, 0, char(2), char(3), '…', 48) FROM words"
            " WHERE words MATCH ? ORDER BY rank LIMIT ?",
            (query, limit),
        ).fetchall()
        total = len(rows)
        if total == limit:
            (total,) = connection.execute(
                "SELECT count(*) FROM words WHERE words MATCH ?", (query,)
            ).fetchone()
    return Hits([Hit(*row) for row in rows], total)


def _open(folder: Path) -> sqlite3.Connection:
    path = folder / "search.db"
    with contextlib.suppress(sqlite3.Error, OSError):
        return connect_or_renew(path, lambda: _connect(path))
    return _connect(":memory:")


def _connect(path: Path | str) -> sqlite3.Connection:
    if isinstance(path, Path):
        private.prepare_database(path)
    connection = sqlite3.connect(path, timeout=10, isolation_level=None)
    try:
        private.refuse_programs(connection)
        private.keep_in_memory(connection)
        connection.executescript(_TABLES)
        # Nothing here that the run does not hold: waiting for the disk would cost more than gathering again.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("SELECT count(*) FROM (SELECT 1 FROM words LIMIT 1)").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _catch_up(connection: sqlite3.Connection, reader: RunReader, progress: Progress | None) -> bool:
    """Gather the attempts that are not here yet; False where that was ended."""
    known = {row[0] for row in connection.execute("SELECT attempt_ref FROM done")}
    ended = reader.ended()
    fresh = [ref for ref in ended if ref not in known]
    for start in range(0, len(fresh), _BATCH):
        if progress is not None and not progress(len(ended) - len(fresh) + start, len(ended)):
            return False
        refs = fresh[start : start + _BATCH]
        _gather(connection, reader.bodies_of(refs, _Transcript))
    return True


def _gather(connection: sqlite3.Connection, bodies: Iterator[tuple[int, _Transcript]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for ref, body in bodies:
        # Another search of the same run may have been here meanwhile.
        if not connection.execute("INSERT OR IGNORE INTO done VALUES (?)", (ref,)).rowcount:
            continue
        entries = [(_words(entry), ref, entry.turn, entry.kind) for entry in body.transcript]
        connection.executemany("INSERT INTO words VALUES (?, ?, ?, ?)", [row for row in entries if row[0]])
    connection.execute("COMMIT")


def _words(entry: _Said) -> str:
    parts: Sequence[Any] = (
        entry.text,
        entry.name,
        _plain(entry.arguments),
        _plain(entry.result),
        entry.error,
    )
    return "\n".join(part for part in parts if part)[:_LONGEST].encode("utf-8", "replace").decode()


def _plain(value: msgspec.Raw) -> str:
    """Stored JSON as text; a string without its quotes and escapes."""
    raw = bytes(value)
    if raw[:1] == b'"':
        return msgspec.json.decode(raw, type=str)
    return "" if raw == b"null" else raw.decode("utf-8", "replace")


decoded(_Transcript)
