"""The expected SQL of nao tests, executed once for everything that `check` asks of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_eval.config import Config, ConfigError, database, rule_for
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Assertion, Case

if TYPE_CHECKING:
    from tui_eval.frames.sql import SqlResult

_SECONDS = 10.0


class ExpectedSql:
    """Executes on the configured databases, read-only, and remembers both rows and refusals."""

    def __init__(self, config: Config, trust: Trust) -> None:
        self._config, self._trust = config, trust
        self._known: dict[tuple[str | None, str], SqlResult | Exception] = {}

    def rows_of(self, case: Case) -> SqlResult | None:
        """The rows that a case expects; None where it expects none.

        Raises:
            SqlError: the SQL cannot be executed on the database there is.
            ConfigError, NeedsTrust, OSError: there is no database to execute it on.
        """
        wanted = sql_of(case)
        if wanted is None or not isinstance(wanted.value, str):
            return None
        rule = rule_for(self._config, case.suite)
        name = case.database or (rule.database if rule else None)
        if name not in self._config.databases:
            name = None  # nao takes its only database whatever the test calls it
        key = (name, wanted.value)
        if key not in self._known:
            self._known[key] = self._execute(*key)
        found = self._known[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _execute(self, name: str | None, query: str) -> SqlResult | Exception:
        from tui_eval.frames.sql import SqlError, execute

        try:
            return execute(database(self._config, name, self._trust), query, timeout=_SECONDS)
        except (SqlError, ConfigError, NeedsTrust, OSError) as problem:
            return problem


def sql_of(case: Case) -> Assertion | None:
    """The assertion that holds a nao test's SQL."""
    return next((one for one in case.assertions if one.type == "sql"), None)
