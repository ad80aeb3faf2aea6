"""What the text of a query alone tells: whether it limits, orders or joins its rows, whether they change by themselves,
and where its statement ends. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlglot import exp

_CHANGING = re.compile(
    r"\b(?:limit|fetch|offset)\b|\bcurrent_(date|time|timestamp)\b|\blocaltime|\b(now|today|random|get_current_timestamp)\s*\(",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\bcurrent_(?:date|time|timestamp)\b|\blocaltime\w*|\b(?:now|today|get_current_timestamp)\s*\(",
    re.IGNORECASE,
)
_SQLITE_NOW = re.compile(
    r"\b(?:date|time|datetime|julianday|unixepoch|strftime)\s*\(\s*(?:'[^']*'\s*,\s*)?'now'", re.IGNORECASE
)
_SQLITE_CLOCK = re.compile(r"\b(date|time|datetime|julianday|unixepoch)\s*\(\s*\)", re.IGNORECASE)
"""Without a moment they take this one; DuckDB and PostgreSQL have none that can stand so."""
_LIMIT = "{} without ORDER BY: which rows come is left to the database"
_NOW = "{} changes what is expected from day to day"
_RANDOM = "{} changes what is expected from run to run"
_NO_WORDS = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
"""Comments and texts of a query."""
_LIMITS = re.compile(
    r"\b(?:limit|top|fetch|sample|tablesample|qualify|row_number|rank|dense_rank|ntile|(?:arg_)?(?:min|max)(?:_by)?\s*\([^()]*,)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\b(?:limit|fetch|offset)\b", re.IGNORECASE)
_CHANCE = re.compile(
    r"\b(?:random|rand|uuid|gen_random_uuid|uuidv4|uuidv7)\s*\(|\btablesample\b|\busing\s+sample\b",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"\brepeatable\s*\(", re.IGNORECASE)
_JOINS = re.compile(r"\b(?:join|unnest|lateral)\b", re.IGNORECASE)
_INNERMOST = re.compile(r"\([^()]*\)")
_ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
_SECOND = re.compile(
    r"(?:\bcurrent_timestamp\b|\b(?:now|get_current_timestamp|clock_timestamp)\s*\(\s*\))(?!\s*(?:::|as)\s*date\b)",
    re.IGNORECASE,
)
"""The time of day; among the columns, for what is filtered by it is mostly the same for a while."""
_STATEMENT_PART = re.compile(
    r"""(?P<nothing>\s+|--[^\n\r]*)|(?P<comment>/\*)|(?P<end>;)
    |[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$|[^\W\d][\w$]*|\w+|.""",
    re.DOTALL | re.VERBOSE,
)
_COMMENT_PART = re.compile(r"/\*|\*/")


def without_texts(sql: str) -> str:
    """A query with a blank for each of its comments and texts: what is in these says nothing of its rows."""
    return _NO_WORDS.sub(" ", sql)


_DIVIDES = re.compile(
    r"[/^]|\b(?:avg|sqrt|cbrt|exp|ln|log(?:10)?|pow(?:er)?|div|percentile_cont|(?:stddev|var|covar|corr|regr)\w*)\s*\(",
    re.IGNORECASE,
)


def divides(sql: str) -> bool:
    """Whether a query has a word that gives numbers with more digits than its columns have; a view's are not known."""
    return bool(_DIVIDES.search(without_texts(sql)))


def may_take_part(sql: str) -> bool:
    """Whether a query, or one inside of it, has a word by which it takes a part of its rows."""
    return bool(_PARTS.search(sql))


def limits_rows(sql: str | None) -> bool | None:
    """Whether a query takes the first of its rows only, by LIMIT or as by ROW_NUMBER; None: there is no query."""
    if not sql or not sql.strip():
        return None
    return bool(_LIMITS.search(without_texts(sql)))


def orders_rows(sql: str) -> bool:
    """Whether a query that cannot be read says an order for all of its rows: outside of parentheses."""
    plain, before = without_texts(sql), ""
    while plain != before:
        plain, before = _INNERMOST.sub(" ", plain), plain
    return bool(_ORDER.search(plain))


_READ_ONLY = re.compile(r"\bfor\s+read\s+only\s*(?=[);\s]*$)", re.IGNORECASE)
_USING = re.compile(
    r"\busing\s*(?:operator\s*\(\s*(?:pg_catalog\s*\.\s*)?([<>])\s*\)|([<>]))"
    r"(?=\s*(?:$|[,);]|nulls\b|limit\b|offset\b|fetch\b|for\b))",
    re.IGNORECASE,
)


def read_query(sql: str, dialect: str) -> exp.Expr:
    """A query's tree, without brackets around all of it: its order is that within these. PostgreSQL's `ORDER
    BY k USING >` and `FOR READ ONLY`, which sqlglot does not read, as what they mean.

    Raises:
        Exception: it cannot be read, whatever sqlglot says then.
    """
    import sqlglot
    from sqlglot import errors

    try:
        tree = sqlglot.parse_one(sql, read=dialect)
    except errors.ParseError:
        plain = _USING.sub(
            lambda by: "DESC" if ">" in by.groups() else "ASC", _READ_ONLY.sub("", _NO_WORDS_END.sub("", sql))
        )
        if dialect != "postgres" or plain == sql:
            raise
        tree = sqlglot.parse_one(plain, read=dialect)
    return _outermost(tree)


_NO_WORDS_END = re.compile(r"(?:\s*(?:--[^\n]*|/\*(?:(?!\*/).)*\*/))+\s*$", re.DOTALL)
"""Comments at the end of a query."""


def _outermost(tree: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    while isinstance(tree, exp.Subquery) and isinstance(inner := tree.this, exp.Query):
        parts = {name: part for name, part in tree.args.items() if part and name != "this"}
        # LIMIT outside is the query's own, as if it stood within.
        if parts.keys() - {"limit", "offset"} or any(
            inner.args.get(part) for part in ("limit", "offset") if parts
        ):
            break
        inner.pop()
        for name, part in parts.items():
            inner.set(name, part)
        tree = inner
    return tree


def changes_each_time(sql: str | None) -> bool:
    """Whether a query gives other rows each time it is run: by chance, or by the second."""
    if not sql:
        return False
    plain = without_texts(sql)
    return bool(_CHANCE.search(plain) or _SECOND.search(_FROM.split(plain, maxsplit=1)[0]))


OwnQuery = Literal["", "joinless", "right"]
"""What is known of the agent's query: that it joins nothing, or gives the right rows."""


def joins_rows(sql: str | None) -> bool | None:
    """Whether a query puts rows of several sources side by side; None: it is not known."""
    if not sql or not sql.strip():
        return None
    plain = without_texts(sql)
    if _JOINS.search(plain):
        return True
    if "," not in _FROM.split(plain, maxsplit=1)[-1]:
        return False
    import sqlglot
    from sqlglot import errors, exp

    for dialect in ("duckdb", "postgres"):
        with suppress(errors.SqlglotError, RecursionError, ValueError, LookupError):
            return sqlglot.parse_one(sql, read=dialect).find(exp.Join) is not None
    return None


def known_of(sql: str) -> dict[str, bool | None]:
    """What a conclusion keeps of the agent's query, for `know_queries`."""
    return {"limited": limits_rows(sql), "joins": joins_rows(sql)}


def changing(sql: str) -> Iterator[str]:
    """What of a query gives another answer tomorrow, or another one each time."""
    if _SQLITE_NOW.search(sql):
        yield _NOW.format("'now'")
    plain = without_texts(sql)
    if (clock := _SQLITE_CLOCK.search(plain)) is not None:
        yield _NOW.format(f"{clock[1]}()")
    if (chance := _CHANCE.search(plain)) is not None and not _REPEATED.search(plain):
        yield _RANDOM.format(re.sub(r"\s*\($", "()", " ".join(chance[0].split())))
    if not _CHANGING.search(sql):
        return
    try:
        import sqlglot
        from sqlglot import expressions as node

        tree = sqlglot.parse_one(sql, read="duckdb")
    except Exception:
        return  # what is wrong with it is said where it is executed
    for query in tree.find_all(node.Query):
        limit, offset, order = (query.args.get(part) for part in ("limit", "offset", "order"))
        if (limit is None and offset is None) or order is not None:
            continue
        if not _at_most_one_row(query):
            yield _LIMIT.format(limit_word(limit) if limit is not None else "OFFSET")
            break
    clocks = (
        node.CurrentTimestamp, node.CurrentDate, node.CurrentTime, node.CurrentDatetime, node.Localtime, node.Localtimestamp,
    )  # fmt: skip
    functions = {call.name.lower() for call in tree.find_all(node.Anonymous)}
    if tree.find(*clocks) is not None or functions & {"now", "today", "get_current_timestamp", "localtime"}:
        word = _CLOCK.search(sql)
        yield _NOW.format(re.sub(r"\s*\($", "()", word[0]) if word else "the time of day")


def _at_most_one_row(query: object) -> bool:
    """Whether a query has one row anyway: aggregates without groups, or LIMIT 0."""
    from sqlglot import expressions as node

    if not isinstance(query, node.Select) or query.args.get("group") is not None:
        return False
    return bool(query.expressions) and all(
        one.find(node.AggFunc) is not None and one.find(node.Window) is None for one in query.expressions
    )


def limit_word(limit: exp.Expr | None) -> str:
    """What the clause that ends a query's rows is called in it."""
    return "FETCH" if limit is not None and limit.key == "fetch" else "LIMIT"


def place_of(value: exp.Expr, query: exp.Query, columns: list[str]) -> int | None:
    """Which column of its result a query is sorted by: by place, by name, or as it is written there."""
    from sqlglot import exp

    if isinstance(value, exp.Literal) and value.is_int and 0 < int(value.this) <= len(columns):
        return int(value.this) - 1
    lower = [name.casefold() for name in columns]
    if isinstance(value, exp.Column) and not value.table and value.name.casefold() in lower:
        return lower.index(value.name.casefold())
    if isinstance(query, exp.Select) and len(query.selects) == len(columns):
        return next((at for at, one in enumerate(query.selects) if one.unalias() == value), None)
    return None


def bare_statement(sql: str, *, keep_open: bool = False) -> str:
    """A statement without the semicolons, blanks and comments after its last word: it can stand in brackets then.
    Several statements stay several. `keep_open`: a comment without an end stays too, which its database is to refuse
    (SQLite takes it)."""
    at = end = 0
    ended = False
    while found := _STATEMENT_PART.match(sql, at):
        at = found.end()
        if found["comment"]:
            after = _after_comment(sql, at)
            if after is None and keep_open:
                return sql.strip()
            at = _after_flat_comment(sql, at) if after is None else after
        elif found["end"]:
            ended = True
        elif not found["nothing"]:
            if ended:
                return sql.strip()
            end = at
    return sql[:end].strip()


def _after_comment(sql: str, at: int) -> int | None:
    """Where a comment ends whose beginning ends at `at`; there may be comments within it. None: nowhere."""
    depth = 1
    while depth and (found := _COMMENT_PART.search(sql, at)):
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return None if depth else at


def _after_flat_comment(sql: str, at: int) -> int:
    """The same where there are none within it, as in SQLite, and the text's end ends it."""
    end = sql.find("*/", at)
    return len(sql) if end < 0 else end + 2
