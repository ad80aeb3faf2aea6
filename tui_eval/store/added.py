"""Columns that the tables of a run have got since its version was written."""

from __future__ import annotations

import sqlite3

from tui_eval.store.schema import ADDED


def missing_columns(connection: sqlite3.Connection) -> list[str]:
    """Those of `ADDED` that the run's attempts do not have."""
    there = {row[1] for row in connection.execute("PRAGMA table_info(attempts)")}
    return [name for name in ADDED if name not in there]


def add_columns(connection: sqlite3.Connection) -> None:
    """Give the run's attempts what they do not have."""
    for name in missing_columns(connection):
        connection.execute(f"ALTER TABLE attempts ADD COLUMN {name} {ADDED[name]}")


def added_columns(connection: sqlite3.Connection) -> str:
    """`ADDED` as a statement selects them, with the default of each that is missing."""
    missing = missing_columns(connection)
    return ", ".join(
        (ADDED[name].partition("DEFAULT ")[2] or "NULL") if name in missing else name for name in ADDED
    )
