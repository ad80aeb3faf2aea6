"""The expected SQL of nao tests, executed once for everything that `check` asks of its rows; and what it says of the
queries: one that does not execute, asks for a database that is not there, or lacks the columns or the order that
count; and one whose expected values are given away in the prompt, the agent's system prompt or the project's rules
(seed 000, "Avoid overfitting and leakage")."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tui_eval.commands.readiness import declared_in, needed_by
from tui_eval.config.project import (
    AgentSpec,
    Config,
    ConfigError,
    DatabaseSpec,
    VariableNotSet,
    database,
    rule_for,
)
from tui_eval.formats import format_of
from tui_eval.frames.query_words import changing
from tui_eval.frames.sql_faults import fault_of
from tui_eval.guard.paths import confine, read_words
from tui_eval.guard.spelling import close_to
from tui_eval.guard.text import clip
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Assertion, Case, Problem, Suite
from tui_eval.suites.read_values import problem_of

if TYPE_CHECKING:
    from tui_eval.frames.sql import SqlError, SqlResult

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


# -- Where in a file an expected query is faulty.


def shown(detail: str) -> str:
    """A database's error without its first line: the candidates, and the line with its caret."""
    lines = detail.strip().splitlines()[1:]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def line_in_file(file: Path, key_line: int, sql: str, row: int) -> int:
    """The line of the YAML file on which line `row` of a query stands whose key is on `key_line`; that of the key
    where the query does not stand there line by line (folded, escaped)."""
    try:
        lines = read_words(file, "replace").splitlines()
    except OSError:
        return key_line
    at = key_line + row
    block = 0 < key_line <= len(lines) and re.search(r"[:\s]\|[-+0-9]*\s*(#.*)?$", lines[key_line - 1])
    wanted = sql.splitlines()[row - 1].rstrip()
    return at if block and at <= len(lines) and lines[at - 1].rstrip().endswith(wanted) else key_line


def problems_of(cases: Sequence[Case], expected: ExpectedSql, config: Config) -> Iterable[Problem]:
    """An error for each query with which its case will err whatever the agent answers, a note for one that may.

    A database file that is not there is one error for all that need it; a server that cannot be reached, a variable
    that is not set or trust that is not given one note: the machine that checks need not be the one that runs.
    """
    from tui_eval.frames.comparison_rules import names_repeated
    from tui_eval.frames.databases import BadDatabase, MissingDatabase, NoDatabase
    from tui_eval.frames.sql import SqlError

    untried: dict[tuple[str, str], list[Case]] = {}
    unset: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        wanted = sql_of(case)
        if wanted is not None and isinstance(wanted.value, str):
            for why in changing(wanted.value):
                yield problem_of(case, wanted, why, level="note")
        if (misnamed := _misnamed(case, expected, config)) is not None:
            yield misnamed
            if misnamed.level == "error":
                continue
        try:
            result = expected.rows_of(case)
        except VariableNotSet as problem:
            unset.setdefault((problem.key, problem.what), []).append(case)
        except (NoDatabase, ConfigError, NeedsTrust, OSError) as problem:
            cure = ""
            if isinstance(problem, BadDatabase):
                cure = "make it, or mend " if isinstance(problem, MissingDatabase) else "mend "
                cure += _configured(case, expected, config)
            untried.setdefault((str(problem), cure), []).append(case)
        except SqlError as problem:
            yield _faulty(case, problem, config)
        else:
            if result is not None:
                yield from _keys(case, result.columns, config)
                yield from _unordered(case, result, config)
                for why in names_repeated(result.renamed) if wanted is not None else ():
                    yield problem_of(case, wanted, why, "give each column a name of its own", level="note")
    for (key, what), waiting in unset.items():
        spec = _database_of(waiting[0], expected, config)
        yield Problem(
            declared_in(spec, config), spec.line, key, f"{what}; {needed_by(waiting)}", level="note"
        )
    for (reason, cure), waiting in untried.items():
        more = f" (and that of {len(waiting) - 1} more)" if len(waiting) > 1 else ""
        first, asserted = waiting[0], sql_of(waiting[0])
        if cure:
            yield problem_of(first, asserted, f"its query{more} cannot be executed: {reason}", cure)
        else:
            message = f"its query{more} cannot be tried here: {reason}"
            yield problem_of(first, asserted, message, level="note")


def _configured(case: Case, expected: ExpectedSql, config: Config) -> str:
    """Where the database of a test is configured: key, file and line."""
    spec = _database_of(case, expected, config)
    return f"databases.{spec.name} in {declared_in(spec, config)}" + (f":{spec.line}" if spec.line else "")


def _database_of(case: Case, expected: ExpectedSql, config: Config) -> DatabaseSpec:
    return config.databases.get(expected.name_of(case) or "") or next(iter(config.databases.values()))


def _misnamed(case: Case, expected: ExpectedSql, config: Config) -> Problem | None:
    """What is wrong with the name of the database that a test asks for."""
    name, there = expected.name_of(case), list(config.databases)
    if sql_of(case) is None or name is None or name in there or not there:
        return None
    place = Problem(case.path, _line_of("database", case, config), "database", "")
    known = ", ".join(there)
    slip = close_to(name, there)
    if len(there) == 1 and config.nao is not None and slip is None:
        message = f"there is no database {name!r}: {known} is taken, as in nao, which has no other"
        return msgspec.structs.replace(place, message=message, level="note")
    if config.nao is not None and config.nao.withheld.get("databases"):
        message = f"there is no database {name!r} among those whose names may be read; there is: {known}"
        cure = "the names of others are variables, which need trust"
        return msgspec.structs.replace(place, message=message, cure=cure, level="note")
    if slip is None:
        from difflib import get_close_matches  # imported late: few suites are wrong

        slip = next(iter(get_close_matches(name, there, 1)), None)
    cure = f"did you mean {slip!r}? There is: {known}" if slip else f"there is: {known}"
    return msgspec.structs.replace(place, message=f"there is no database {name!r}", cure=cure)


def _faulty(case: Case, problem: SqlError, config: Config) -> Problem:
    """A query that does not execute, shown where it is faulty."""
    from tui_eval.frames.databases import TooLate

    wanted = sql_of(case)
    found = problem_of(case, wanted, f"does not execute: {problem}", "mend the query")
    sql = wanted.value if wanted is not None and isinstance(wanted.value, str) else ""
    place = fault_of(sql, str(problem), problem.detail)
    found = msgspec.structs.replace(found, picture=shown(problem.detail))
    if not place.line:
        if isinstance(problem, TooLate):
            cure = f"check gives one query {SECONDS:g} s; a run gives it more"
            return msgspec.structs.replace(
                found, message=f"was not tried to its end: {problem}", cure=cure, level="note"
            )
        return found
    row, column = place.line, place.column
    line = line_in_file(config.root / found.path, found.line, sql, row)
    message = f"{found.message} (line {row}, column {column} of the query)"
    return msgspec.structs.replace(found, line=line, message=message)


def _keys(case: Case, columns: Sequence[str], config: Config) -> Iterable[Problem]:
    """An error for each column of `comparison.key` that the query does not give."""
    from tui_eval.frames.comparison_rules import keys_not_given

    for key, message in keys_not_given((case.comparison or {}).get("key") or (), columns).items():
        slip = close_to(key, columns)
        cure = f"did you mean {slip!r}?" if slip else f"it gives: {', '.join(columns)}"
        line = _line_of("comparison", case, config) or case.line
        yield Problem(case.path, line, "comparison.key", message, cure)


def _unordered(case: Case, result: SqlResult, config: Config) -> Iterable[Problem]:
    """A note where the order of rows counts and the query says none: another answer's is then wrong by chance."""
    if (case.comparison or {}).get("ordered") is not True or result.ordered or len(result.frame) < 2:
        return
    line = _line_of("comparison", case, config) or case.line
    message = "the query has no ORDER BY: the order that counts is the one in which its rows happen to come"
    yield Problem(case.path, line, "comparison.ordered", message, "sort the query", level="note")


def _line_of(key: str, case: Case, config: Config) -> int:
    """The line of a key at a test's root; that of the test where it stands elsewhere (`suites:`)."""
    try:
        lines = read_words(config.root / case.suite, "replace").splitlines()
    except OSError:
        return case.line
    return next(
        (n for n, line in enumerate(lines, 1) if re.match(rf"[\"']?{key}[\"']?\s*:", line)), case.line
    )


# -- Expected values that are given away.


_SHORTEST_TEXT = 4
_LEAST_DIGITS = 3
_NUMBER = re.compile(r"(?<![\w.,])-?\d[\d,. \u00a0\u202f]*")


@dataclass(frozen=True, slots=True)
class _Place:
    """A text that an agent sees; `line` is that of its beginning in the file."""

    name: str
    text: str
    line: int = 1


def leaks(
    loaded: Sequence[Suite], config: Config, trust: Trust, expected: ExpectedSql | None = None
) -> list[Problem]:
    """A note for each test whose expected values stand in what its agent is given. Tests whose SQL
    cannot be executed here are passed over: `expected_sql.problems_of` says what is wrong."""
    expected = expected or ExpectedSql(config, trust)
    shared: dict[str, list[_Place]] = {}
    notes: list[Problem] = []
    for suite in loaded:
        for case in suite.cases if format_of(suite.format).checks_queries else ():
            values = _expected(case, expected)
            if not values:
                continue
            agent = _agent(case, config)
            key = agent.name if agent is not None else ""
            if key not in shared:
                told = format_of(suite.format).told_files(config)
                shared[key] = _told(agent, config, trust, told)
            prompt = [_Place(case.suite, turn.text or "", turn.line) for turn in case.turns]
            notes.extend(_notes(case, values, [*prompt, *shared[key]]))
    return notes


def _notes(case: Case, values: list[str | float], places: list[_Place]) -> Iterable[Problem]:
    asserted = sql_of(case)
    line = asserted.line if asserted is not None else case.line
    for place in places:
        found = [hit for value in values if (hit := _find(value, place)) is not None]
        if not found:
            continue
        shown, at = found[0]
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield Problem(
            path=case.suite,
            line=line,
            key="sql",
            message=f"the expected value {clip(shown, 60)}{more} stands in {place.name}:{at}",
            cure="an agent can answer from there without the data",
            level="note",
        )


def _find(value: str | float, place: _Place) -> tuple[str, int] | None:
    """A value as it stands in a text, and the line; numbers also grouped and with other decimals."""
    if isinstance(value, str):
        match = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", place.text, re.IGNORECASE)
    else:
        match = next((m for m in _NUMBER.finditer(place.text) if value in _readings(m[0])), None)
    if match is None:
        return None
    return match[0].strip(" ,.\u00a0\u202f"), place.line + place.text.count("\n", 0, match.start())


def _readings(text: str) -> set[float]:
    """The numbers that a text of digits, points and commas may mean."""
    text = re.sub(r"[ \u00a0\u202f](?=\d{3}(?!\d))", "", text).strip(" ,.\u00a0\u202f").partition(" ")[0]
    found: set[float] = set()
    for plain in (text.replace(",", ""), text.replace(".", "").replace(",", ".")):
        try:
            found.add(float(plain))
        except ValueError:
            continue
    return found


def _expected(case: Case, expected: ExpectedSql) -> list[str | float]:
    """The values of the expected rows that are distinctive; none where every one is common."""
    from tui_eval.frames.sql import SqlError, rows

    try:
        result = expected.rows_of(case)
    except (SqlError, ConfigError, NeedsTrust, OSError):
        return []
    cells = (cell for row in rows(result, ROWS) for cell in row.values()) if result is not None else ()
    return list(dict.fromkeys(value for cell in cells if (value := _distinctive(cell)) is not None))


def _distinctive(cell: object) -> str | float | None:
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, (int, float)):
        digits = sum(letter.isdigit() for letter in f"{float(cell):.10g}".strip("0"))
        whole = f"{abs(int(cell))}" if abs(cell) < 1e300 else ""
        return float(cell) if max(digits, len(whole)) >= _LEAST_DIGITS else None
    text = str(cell).strip()
    return text if len(text) >= _SHORTEST_TEXT else None


def _agent(case: Case, config: Config) -> AgentSpec | None:
    """The configured agent that the case runs with by default."""
    rule = rule_for(config, case.suite)
    return config.agents.get(case.agent or (rule.agent if rule and rule.agent else ""))


def _told(agent: AgentSpec | None, config: Config, trust: Trust, files: Iterable[Path]) -> list[_Place]:
    """The agent's system prompt and the project's rules."""
    places: list[_Place] = []
    for file in files:
        name = str(file.relative_to(config.root)) if file.is_relative_to(config.root) else file.name
        places.append(_Place(name, _text(file)))
    system = agent.options.get("system") if agent is not None else None
    if agent is None or not isinstance(system, str):
        return places
    if system.startswith("file://"):
        given = system.removeprefix("file://")
        base = Path(agent.base) if agent.base else config.root
        with contextlib.suppress(NeedsTrust, ValueError, OSError):
            places.append(_Place(given, _text(confine(config.root, given, trust, base))))
    else:
        place = config.file.name if config.file is not None else "tui_eval.yaml"
        places.append(_Place(f"{place} (system of {agent.name})", system, agent.line or 1))
    return places


def _text(path: Path) -> str:
    try:
        return read_words(path, "replace")
    except OSError:
        return ""
