"""What the text of a query alone says of its rows: whether it limits them, whether they change by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_eval.model import DataDetails

_CHANGING = re.compile(
    r"\blimit\b|\bcurrent_(date|time|timestamp)\b|\blocaltime|\b(now|today|random|get_current_timestamp)\s*\(",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\bcurrent_(?:date|time|timestamp)\b|\blocaltime\w*|\b(?:now|today|get_current_timestamp)\s*\(",
    re.IGNORECASE,
)
_LIMIT = "LIMIT without ORDER BY: which rows come is left to the database"
_NOW = "{} changes what is expected from day to day"
_RANDOM = "random() changes what is expected from run to run"
_NO_WORDS = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
"""Comments and texts of a query."""
_LIMITS = re.compile(
    r"\b(?:limit|top|fetch|sample|tablesample|qualify|row_number|rank|dense_rank|ntile|(?:arg_)?(?:min|max)(?:_by)?\s*\([^()]*,)",
    re.IGNORECASE,
)

_CHANCE = re.compile(
    r"\b(?:random|rand|uuid|gen_random_uuid|uuidv4|uuidv7)\s*\(|\btablesample\b|\busing\s+sample\b",
    re.IGNORECASE,
)
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
_SECOND = re.compile(
    r"(?:\bcurrent_timestamp\b|\b(?:now|get_current_timestamp|clock_timestamp)\s*\(\s*\))(?!\s*(?:::|as)\s*date\b)",
    re.IGNORECASE,
)
"""The time of day; among the columns, for what is filtered by it is mostly the same for a while."""


def limits_rows(sql: str | None) -> bool | None:
    """Whether a query takes the first of its rows only, by LIMIT or as by ROW_NUMBER; None: there is no query."""
    if not sql or not sql.strip():
        return None
    return bool(_LIMITS.search(_NO_WORDS.sub(" ", sql)))


def changes_each_time(sql: str | None) -> bool:
    """Whether a query gives other rows each time it is run: by chance, or by the second."""
    if not sql:
        return False
    plain = _NO_WORDS.sub(" ", sql)
    return bool(_CHANCE.search(plain) or _SECOND.search(_FROM.split(plain, maxsplit=1)[0]))


def limited_sides(details: DataDetails) -> tuple[bool | None, bool | None]:
    """As `Difference.limited` has it, of a recorded comparison."""
    kept = details.settings.get("conclusion")
    own = kept.get("limited") if isinstance(kept, Mapping) else None
    return limits_rows(details.reference_sql), own if isinstance(own, bool) else None


def changing(sql: str) -> Iterator[str]:
    """What of a query gives another answer tomorrow, or another one each time."""
    if not _CHANGING.search(sql):
        return
    try:
        import sqlglot
        from sqlglot import expressions as node

        tree = sqlglot.parse_one(sql, read="duckdb")
    except Exception:
        return  # what is wrong with it is said where it is executed
    for query in tree.find_all(node.Query):
        if query.args.get("limit") is None or query.args.get("order") is not None:
            continue
        if not _at_most_one_row(query):
            yield _LIMIT
            break
    clocks = (node.CurrentTimestamp, node.CurrentDate, node.CurrentTime, node.CurrentDatetime)
    functions = {call.name.lower() for call in tree.find_all(node.Anonymous)}
    if tree.find(*clocks) is not None or functions & {"now", "today", "get_current_timestamp", "localtime"}:
        word = _CLOCK.search(sql)
        yield _NOW.format(re.sub(r"\s*\($", "()", word[0]) if word else "the time of day")
    if tree.find(node.Rand) is not None or "random" in functions:
        yield _RANDOM


def _at_most_one_row(query: object) -> bool:
    """Whether a query has one row anyway: aggregates without groups, or LIMIT 0."""
    from sqlglot import expressions as node

    if not isinstance(query, node.Select) or query.args.get("group") is not None:
        return False
    return bool(query.expressions) and all(
        one.find(node.AggFunc) is not None and one.find(node.Window) is None for one in query.expressions
    )
