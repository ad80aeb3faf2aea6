"""What every database of a project has: where it is, what comes of a query, and how one fails."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.config.project import DatabaseSpec
from tui_eval.guard.text import clip

if TYPE_CHECKING:
    import polars as pl


class SqlError(Exception):
    """SQL that could not be executed, or a database that could not be opened; one clear line.

    `detail` is all that the database said: its candidates, and a caret under the place.
    """

    def __init__(self, message: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class NoDatabase(SqlError):
    """The database could not be opened or holds nothing; one clear line that names it."""


class BadDatabase(NoDatabase):
    """What the configuration names is not there, or is no database; another one than what cannot be reached now."""


class MissingDatabase(BadDatabase):
    """There is no such file or folder."""


class WrongQuery(SqlError):
    """The server refuses the query itself, and says so by its code; what it says does not begin with that, as
    DuckDB's does."""


class TooLate(SqlError):
    """The time was up: while the tables were loaded, or while the query ran."""


@dataclass(slots=True)
class SqlResult:
    """Rows of a query. `types` are DuckDB's names by column; `ordered`: there is a top-level ORDER BY, by the
    result columns `order_columns` where they could be found (empty: all). `places`: the place of each row in
    that order, one for all that tie, where the database was asked for it (None: it was not). `renamed`: the
    columns that the query calls as another one before them, by their name here, with that. `dialect` is that
    of the database which ran it, as sqlglot calls it."""

    columns: list[str]
    frame: pl.DataFrame
    ordered: bool = False
    types: dict[str, str] = field(default_factory=dict)
    order_columns: tuple[str, ...] = ()
    places: pl.Series | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    dialect: str = "duckdb"


def distinct_names(names: list[str]) -> list[str]:
    """The names of columns, a number behind those that stand twice."""
    taken: set[str] = set()
    made: list[str] = []
    for name in names:
        number, fresh = 1, name
        while fresh in taken or (fresh != name and fresh in names):
            fresh, number = f"{name}_{number}", number + 1
        taken.add(fresh)
        made.append(fresh)
    return made


def one_line(problem: BaseException | str) -> str:
    """The first line of a database's error, without the picture of where it happened."""
    lines = [line.strip() for line in str(problem).strip().splitlines() if line.strip()]
    return clip(lines[0] if lines else type(problem).__name__, 500)


def existing_path(database: DatabaseSpec) -> Path:
    """Where the database is.

    Raises:
        MissingDatabase: it is not there.
        BadDatabase: it is nothing that can be one.
    """
    if not database.path:
        raise BadDatabase(f"database {database.name!r} has no path")
    path = Path(database.path)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingDatabase(f"database {database.name!r}: there is no {path}") from None
    except OSError as error:
        raise BadDatabase(f"database {database.name!r}: {path}: {error.strerror}") from None
    if not path.is_file() and not path.is_dir():
        raise BadDatabase(f"database {database.name!r}: {path} is no ordinary file (a pipe or a device)")
    return path


def kind_of_file(path: Path) -> str:
    """Whose file it is by how it begins, `sqlite` or `duckdb`; "" where that is neither's, or cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError:
        return ""
    return "sqlite" if head == b"SQLite format 3\0" else "duckdb" if head[8:12] == b"DUCK" else ""


def copies_of(process: int) -> str:
    """How the folders are called in which a process makes copies of databases."""
    return f"tui-eval-db-{process}-"


def forget_copies(process: int) -> None:
    """Remove the copies of databases that a process was making when it was ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{copies_of(process)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def quoted(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'
