"""The usual mistakes of a query, each with the query without it: what gives the expected rows then was the cause.

Pure: the caller runs what is made here (`frames.sql.execute`: read-only, limited) and compares its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import errors, exp

_LONGEST = 20_000
_MOST = 4
"""Queries that are tried."""
_ROW = "row_of_it"
MENDING_SECONDS = 5.0
"""Seconds after which no further one is tried."""


@dataclass(frozen=True, slots=True)
class MendedQuery:
    """A query without one mistake: `mistake` says what it did (`it sorts by revenue ascending`), `instead` what was
    changed (`descending`)."""

    sql: str
    mistake: str
    instead: str


def mended(own: str, expected: str, dialect: str = "duckdb", *, ordered: bool = False) -> list[MendedQuery]:
    """An agent's query as it would be without a usual mistake: sorted as the expected one is, where a LIMIT
    takes some of the rows, or where their order is what is wrong (`ordered`); each row of a table counted
    once, where a join repeats it. Empty: there is nothing to mend, or one of them cannot be read."""
    if len(own) + len(expected) > _LONGEST:
        return []
    try:
        tree, wanted = (sqlglot.parse_one(sql, read=dialect) for sql in (own, expected))
        found = [*_sorted(tree, wanted, dialect, ordered), *_counted_once(tree, dialect)]
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return []
    return found[:_MOST]


# -- the wrong end of a sorted result


def _sorted(own: exp.Expr, expected: exp.Expr, dialect: str, ordered: bool) -> Iterator[MendedQuery]:
    """The query with the order of the expected one."""
    if not isinstance(own, exp.Select) or not isinstance(expected, exp.Select):
        return
    limits = [query.args.get("limit") is None for query in (own, expected)]
    if any(limits) and not (ordered and all(limits)):
        return
    order, wanted = own.args.get("order"), expected.args.get("order")
    if not wanted or (order and _terms(order, own) == _terms(wanted, expected)):
        return
    words = _order_words(order, own, wanted, expected)
    if words is None:
        return
    made = own.copy()
    terms = [
        exp.Ordered(
            this=exp.Literal.number(place),
            desc=term.args.get("desc"),
            nulls_first=term.args.get("nulls_first"),
        )
        for place, term in _places(wanted, expected, own)
    ]
    if not terms:
        return
    made.set("order", exp.Order(expressions=terms))
    yield MendedQuery(made.sql(dialect), *words)


def _terms(order: exp.Expr, query: exp.Select) -> list[tuple[str, bool]]:
    return [(_name(term, query), bool(term.args.get("desc"))) for term in order.expressions]


def _name(term: exp.Expr, query: exp.Select) -> str:
    """What a query is sorted by: the name of one of its columns, else as it is written."""
    value = term.this
    if isinstance(value, exp.Literal) and value.is_int and 0 < int(value.this) <= len(query.selects):
        return query.selects[int(value.this) - 1].alias_or_name.lower()
    for one in query.selects:
        if one.unalias() == value and one.alias_or_name:
            return one.alias_or_name.lower()
    return (value.name if isinstance(value, exp.Column) else value.sql("duckdb")).lower()


def _names(query: exp.Select) -> list[str]:
    return [one.alias_or_name.lower() for one in query.selects]


def _places(wanted: exp.Expr, expected: exp.Select, own: exp.Select) -> Iterator[tuple[int, exp.Expr]]:
    """The terms of the expected order with the places of their columns in the agent's query: by name, else by place
    where both have as many columns. One that it does not have ends them."""
    names, others = _names(own), _names(expected)
    for term in wanted.expressions:
        name = _name(term, expected)
        if name in names:
            yield names.index(name) + 1, term
        elif name in others and len(names) == len(others):
            yield others.index(name) + 1, term
        else:
            return


def _order_words(
    order: exp.Expr | None, own: exp.Select, wanted: exp.Expr, expected: exp.Select
) -> tuple[str, str] | None:
    """What the query is sorted by, and what it should be, by the first term in which they differ."""
    right = _terms(wanted, expected)
    if order is None:
        return "it does not sort" + (
            " before its LIMIT" if own.args.get("limit") else ""
        ), f"sorted by {_term(*right[0])}"
    given = _terms(order, own)
    if len(own.selects) == len(expected.selects):  # one column may be called otherwise by both
        called = dict(zip(_names(expected), _names(own), strict=True))
        right = [(called.get(name, name), descending) for name, descending in right]
    for mine, other in zip(given, right, strict=False):
        if mine == other:
            continue
        if mine[0] == other[0]:
            return f"it sorts by {_term(*mine)}", _direction(other[1])
        return f"it sorts by {_term(*mine)}", f"by {_term(*other)}"
    return None


def _term(name: str, descending: bool) -> str:
    shown = " ".join(name.split())
    return f"{shown if len(shown) <= 40 else shown[:39] + '…'} {_direction(descending)}"


def _direction(descending: bool) -> str:
    return "descending" if descending else "ascending"


# -- rows that a join repeats


def _counted_once(own: exp.Expr, dialect: str) -> Iterator[MendedQuery]:
    """The query with each row of one of its tables only once among what it sums up, for each of its tables."""
    for number, query in enumerate(own.find_all(exp.Select)):
        sources = _sources(query)
        if len(sources) < 2 or not _sums_up(query):
            continue
        for name in _summed(query, sources):
            made = own.copy()
            part = list(made.find_all(exp.Select))[number]
            once = _once(part, name, dialect)
            if once is None:
                continue
            if part is made:
                made = once
            else:
                part.replace(once)
            source = sources[name]
            called = source.name if isinstance(source, exp.Table) else name
            yield MendedQuery(
                made.sql(dialect), f"its join repeats rows of {called[:40]}", "each counted once"
            )


def _sources(query: exp.Select) -> dict[str, exp.Expr]:
    """What a query reads, by the name that it has there; empty where one has none."""
    origin = query.args.get("from_")
    if origin is None:
        return {}
    found = [origin.this, *(join.this for join in query.args.get("joins") or ())]
    names = [one.alias_or_name for one in found]
    if not all(names) or not all(isinstance(one, exp.Table | exp.Subquery) for one in found):
        return {}
    return dict(zip(names, found, strict=True))


def _sums_up(query: exp.Select) -> bool:
    """Whether a query has sums over its rows, and nothing for which these must be all there."""
    if any(query.args.get(part) for part in ("distinct", "qualify", "windows", "laterals", "pivots")):
        return False
    sums = [one for select in query.selects for one in select.find_all(exp.AggFunc)]
    odd = any(
        select.find(exp.Star, exp.Window, exp.Subquery) for select in query.selects if not _counts(select)
    )
    return bool(sums) and not odd


def _counts(select: exp.Expr) -> bool:
    """Whether its only star is that of count(*)."""
    stars = list(select.find_all(exp.Star))
    plain = all(isinstance(star.parent, exp.Count) for star in stars)
    return bool(stars) and plain and not select.find(exp.Window, exp.Subquery)


def _summed(query: exp.Select, sources: dict[str, exp.Expr]) -> list[str]:
    """The tables whose columns are summed up; all where that is not said."""
    columns = [
        column
        for select in query.selects
        for one in select.find_all(exp.AggFunc)
        for column in one.find_all(exp.Column)
    ]
    named = dict.fromkeys(column.table for column in columns)
    if columns and all(name in sources for name in named):
        return list(named)
    return list(sources)[:_MOST]


def _once(query: exp.Select, name: str, dialect: str) -> exp.Select | None:
    """A query over its distinct rows of one table, with the columns that it uses."""
    aliases = {one.alias.lower() for one in query.selects if isinstance(one, exp.Alias)}
    outer, columns = query.copy(), dict[str, str]()

    def inner(column: exp.Column) -> exp.Column:
        written = column.sql(dialect)
        return exp.column(columns.setdefault(written, f"value_{len(columns)}"))

    def replaced(node: exp.Expr, *, own_names: bool) -> None:
        for column in list(node.find_all(exp.Column)):
            if own_names and not column.table and column.name.lower() in aliases:
                continue
            column.replace(inner(column))

    selects: list[exp.Expr] = []
    for one in outer.selects:
        called = one.alias_or_name
        value = one.unalias().copy()
        holder = exp.Paren(this=value)
        replaced(holder, own_names=False)
        selects.append(exp.alias_(holder.this, called, quoted=True) if called else holder.this)
    outer.set("expressions", selects)
    for part in ("group", "having", "order"):
        if outer.args.get(part) is not None:
            replaced(outer.args[part], own_names=True)
    body = exp.Select()
    for part in ("from_", "joins", "where"):
        if query.args.get(part) is not None:
            kept = query.args[part]
            body.set(part, [one.copy() for one in kept] if isinstance(kept, list) else kept.copy())
        outer.set(part, None)
    table = _sources(body)[name]
    numbered = f"SELECT ROW_NUMBER() OVER () AS {_ROW}, * FROM {table.sql(dialect)}"
    table.replace(
        exp.alias_(
            exp.Subquery(this=sqlglot.parse_one(numbered, read=dialect)), name, table=True, quoted=True
        )
    )
    body.set(
        "expressions",
        [
            exp.column(_ROW, table=name, quoted=True),
            *(
                exp.alias_(sqlglot.parse_one(written, read=dialect), called)
                for written, called in columns.items()
            ),
        ],
    )
    body.set("distinct", exp.Distinct())
    outer.set("from_", exp.From(this=exp.alias_(exp.Subquery(this=body), "once", table=True)))
    return outer
