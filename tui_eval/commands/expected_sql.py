"""The expected SQL of nao tests, executed once for everything that `check` asks of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tui_eval.config.project import Config, ConfigError, database, rule_for
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Assertion, Case

if TYPE_CHECKING:
    from tui_eval.frames.sql import SqlResult

SECONDS = 10.0
"""What `check` gives one query."""
ROWS = 200
"""Rows of a result that are kept."""
_TOGETHER = 100
"""Queries on one connection: an open DuckDB file keeps others from writing it."""


class ExpectedSql:
    """Executes on the configured databases, read-only, and remembers both rows and refusals."""

    def __init__(self, config: Config, trust: Trust) -> None:
        self._config, self._trust = config, trust
        self._known: dict[tuple[str | None, str], SqlResult | Exception] = {}

    def try_all(self, cases: Iterable[Case], progress: Callable[[int, int], None]) -> None:
        """Execute what these cases expect, many on one connection; `progress` is called with how many of how many have
        been."""
        wanted: dict[str | None, dict[str, None]] = {}
        for case in cases:
            if (key := self._key(case)) is not None and key not in self._known:
                wanted.setdefault(key[0], {})[key[1]] = None
        total, done = sum(map(len, wanted.values())), 0
        for name, queries in wanted.items():
            listed = list(queries)
            for start in range(0, len(listed), _TOGETHER):
                for _ in self._execute(name, listed[start : start + _TOGETHER]):
                    done += 1
                    progress(done, total)

    def rows_of(self, case: Case) -> SqlResult | None:
        """The first rows that a case expects; None where it expects none.

        Raises:
            SqlError: the SQL cannot be executed on the database there is.
            ConfigError, NeedsTrust, OSError: there is no database to execute it on.
        """
        key = self._key(case)
        if key is None:
            return None
        if key not in self._known:
            list(self._execute(key[0], [key[1]]))
        found = self._known[key]
        if isinstance(found, Exception):
            raise found
        return found

    def name_of(self, case: Case) -> str | None:
        """The database that a case asks for, None where neither it nor `suites:` says."""
        rule = rule_for(self._config, case.suite)
        return case.database or (rule.database if rule else None)

    def _key(self, case: Case) -> tuple[str | None, str] | None:
        wanted = sql_of(case)
        if wanted is None or not isinstance(wanted.value, str):
            return None
        name = self.name_of(case)
        if name not in self._config.databases and len(self._config.databases) == 1 and self._config.nao:
            name = None  # nao takes its only database whatever the test calls it
        return name, wanted.value

    def _execute(self, name: str | None, queries: list[str]) -> Iterable[str]:
        from tui_eval.frames.sql import SqlError, execute_all

        try:
            spec = database(self._config, name, self._trust)
            found = execute_all(spec, queries, timeout=SECONDS, limit=ROWS)
            for query, result in zip(queries, found, strict=False):
                self._known[name, query] = result
                yield query
        except (SqlError, ConfigError, NeedsTrust, OSError) as problem:
            for query in queries:
                if (name, query) not in self._known:
                    self._known[name, query] = problem
                    yield query


def sql_of(case: Case) -> Assertion | None:
    """The assertion that holds a nao test's SQL."""
    return next((one for one in case.assertions if one.type == "sql"), None)
