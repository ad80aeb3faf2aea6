"""Columns that the tables of a run have got since its version was written."""

from __future__ import annotations

import sqlite3

from tui_eval.store.schema import ADDED


def missing_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """Those of `ADDED` that a table of the run does not have."""
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    return [name for name in ADDED[table] if name not in there]


def add_columns(connection: sqlite3.Connection) -> None:
    """Give the run's tables what they do not have."""
    for table, columns in ADDED.items():
        for name in missing_columns(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {columns[name]}")


def added_columns(connection: sqlite3.Connection, table: str) -> str:
    """A table's `ADDED` as a statement selects them, with the default of each that is missing."""
    missing = missing_columns(connection, table)
    return ", ".join(
        (kind.partition("DEFAULT ")[2] or "NULL") if name in missing else name
        for name, kind in ADDED[table].items()
    )
