"""Full-text search over the transcripts of a run (SQLite FTS5).

The words are gathered into `search.db` in the run's folder when a run is searched first, and again
for attempts that came since. A run that cannot be written is searched from memory.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from tui_eval.store.encoding import encode_json
from tui_eval.store.reader import RunReader

_TABLES = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    body, attempt_ref UNINDEXED, turn UNINDEXED, kind UNINDEXED, tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE IF NOT EXISTS done (attempt_ref INTEGER PRIMARY KEY);
"""
_LONGEST = 200_000  # characters of one entry that are searched


class Hit(msgspec.Struct):
    """Where the words were found: an entry's turn and kind in an attempt, and its text around them,
    the words between \\x02 and \\x03."""

    attempt_ref: int
    turn: int
    kind: str
    excerpt: str


def search(reader: RunReader, words: str, limit: int = 200) -> list[Hit]:
    """Entries of finished attempts that hold all the words (each also as the beginning of a longer
    one), best first. Blocking; for a thread.

    Raises:
        StoreError: the run cannot be read.
    """
    query = " ".join(f'"{word.replace(chr(34), chr(34) * 2)}"*' for word in words.split())
    if not query:
        return []
    with closing(_open(reader.folder)) as connection:
        _catch_up(connection, reader)
        rows = connection.execute(
            "SELECT attempt_ref, turn, kind, snippet(words, 0, char(2), char(3), '…', 24) FROM words"
            " WHERE words MATCH ? ORDER BY rank LIMIT ?",
            (query, limit),
        ).fetchall()
    return [Hit(*row) for row in rows]


def _open(folder: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(folder / "search.db", timeout=10)
        connection.executescript(_TABLES)
        return connection
    except sqlite3.Error:
        connection = sqlite3.connect(":memory:")
        connection.executescript(_TABLES)
        return connection


def _catch_up(connection: sqlite3.Connection, reader: RunReader) -> None:
    known = {row[0] for row in connection.execute("SELECT attempt_ref FROM done")}
    fresh = [row.id for row in reader.attempts() if row.state == "done" and row.id not in known]
    for ref in fresh:
        attempt = reader.attempt(ref)
        if attempt is None:
            continue
        entries = [
            (
                _words(entry.text, entry.name, entry.arguments, entry.result, entry.error),
                ref,
                entry.turn,
                entry.kind,
            )
            for entry in attempt.transcript
        ]
        with connection:
            connection.executemany(
                "INSERT INTO words VALUES (?, ?, ?, ?)", [row for row in entries if row[0]]
            )
            connection.execute("INSERT INTO done VALUES (?)", (ref,))


def _words(*parts: object) -> str:
    texts = [
        part if isinstance(part, str) else encode_json(part).decode()
        for part in parts
        if part not in (None, "")
    ]
    return "\n".join(texts)[:_LONGEST].encode("utf-8", "replace").decode()
