"""The usual mistakes of a query, each with the query without it: what gives the expected rows then was the cause.

Pure: the caller runs what is made here (`frames.sql.execute`: read-only, limited) and compares its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import errors, exp

_LONGEST = 20_000
_MOST = 4
"""Queries that are tried."""
_ROW = "row_of_it"
_SHOWN = 60
"""Characters of a clause that are named."""
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
    return _made(
        own,
        expected,
        dialect,
        lambda tree, wanted: [*_sorted(tree, wanted, dialect, ordered), *_counted_once(tree, dialect)],
    )


def with_clauses(own: str, expected: str, dialect: str = "duckdb") -> list[MendedQuery]:
    """An agent's query with one clause of the expected one in place of its own: LIMIT and OFFSET, WHERE, or HAVING."""
    return _made(own, expected, dialect, lambda tree, wanted: list(_as_expected(tree, wanted, dialect)))


def _made(
    own: str, expected: str, dialect: str, make: Callable[[exp.Expr, exp.Expr], list[MendedQuery]]
) -> list[MendedQuery]:
    if len(own) + len(expected) > _LONGEST:
        return []
    try:
        tree, wanted = (sqlglot.parse_one(sql, read=dialect) for sql in (own, expected))
        return make(tree, wanted)[:_MOST]
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return []


# -- how many of the rows, and which


def _as_expected(own: exp.Expr, expected: exp.Expr, dialect: str) -> Iterator[MendedQuery]:
    if not isinstance(own, exp.Select) or not isinstance(expected, exp.Select):
        return
    for parts in (("limit", "offset"), ("where",), ("having",)):
        changed = [part for part in parts if not _same_clause(own.args.get(part), expected.args.get(part))]
        if not changed:
            continue
        made = own.copy()
        for part in changed:
            clause = expected.args.get(part)
            made.set(part, None if clause is None else _in_its_names(clause, own, expected))
        if (made.args.get("limit") or made.args.get("offset")) and not _sorts_as(own, expected):
            continue  # which rows it takes is chance then, or not its only mistake
        has, needs = (_clauses(query, changed, dialect) for query in (own, made))
        has, needs = _cut(has, needs)
        lacks = _lacks(own, changed[0])
        yield MendedQuery(
            made.sql(dialect), f"it has {has}" if has else lacks, f"with {needs}" if needs else "without it"
        )


def _same_clause(one: exp.Expr | None, other: exp.Expr | None) -> bool:
    """Whether both are the same but for names of tables, quotes and comments."""

    def bare(clause: exp.Expr) -> str:
        made = clause.copy()
        for column in made.find_all(exp.Column):
            column.replace(exp.column(column.name.lower()))
        return made.sql(comments=False)

    return one is other if one is None or other is None else bare(one) == bare(other)


def _in_its_names(clause: exp.Expr, own: exp.Select, expected: exp.Select) -> exp.Expr:
    """A clause of the expected query, each table called as the agent's query calls it, or by no name."""
    ours, theirs = ({name.lower(): table for name, table in _sources(one).items()} for one in (own, expected))
    called: dict[str, list[str]] = {}
    for name, table in ours.items():
        called.setdefault(table.name.lower(), []).append(name)
    made = clause.copy()
    inside = {one.alias_or_name.lower() for one in made.find_all(exp.Table, exp.Subquery)}
    for column in list(made.find_all(exp.Column)):
        name = column.table.lower()
        if not name or name in inside:
            continue
        table = theirs.get(name)
        names = called.get(table.name.lower(), []) if isinstance(table, exp.Table) else [name]
        known = names[0] if len(names) == 1 and names[0] in ours else None
        if column.find_ancestor(exp.Select) is not None:  # by no name it would be a column of the inner query
            known = next(iter(ours)) if len(ours) == 1 else known or name
        elif len(ours) == 1:
            known = None
        column.replace(exp.column(column.this.copy(), table=known))
    return made


def _sorts_as(own: exp.Select, expected: exp.Select) -> bool:
    """Whether a query sorts by all that the expected one sorts by."""
    order, wanted = own.args.get("order"), expected.args.get("order")
    if order is None or wanted is None:
        return False
    fewer = len(order.expressions) < len(wanted.expressions)
    return not fewer and _order_words(order, own, wanted, expected) is None


def _lacks(own: exp.Select, part: str) -> str:
    elsewhere = any(one.args.get(part) is not None for one in own.find_all(exp.Query))
    return f"{'its outermost SELECT' if elsewhere else 'it'} has no {part.upper()}"


def _clauses(query: exp.Select, parts: Sequence[str], dialect: str) -> str:
    nodes = [query.args[part] for part in parts if query.args.get(part) is not None]
    plain = [node.transform(lambda one: _as_people_negate(one, dialect)) for node in nodes]
    return " ".join(" ".join(node.sql(dialect, comments=False).split()) for node in plain)


def _as_people_negate(node: exp.Expr, dialect: str) -> exp.Expr:
    """`x IS NOT NULL` and `x NOT IN (…)` as they are written, not sqlglot's `NOT x IS NULL`."""
    within = node.this if isinstance(node, exp.Not) else None
    if not isinstance(within, exp.Is | exp.In | exp.Between | exp.Like | exp.ILike):
        return node
    whole, value = (one.sql(dialect, comments=False) for one in (within, within.this))
    if not whole.startswith(f"{value} "):
        return node
    rest = whole[len(value) + 1 :]
    return exp.var(f"{value} {'IS NOT' + rest[2:] if isinstance(within, exp.Is) else f'NOT {rest}'}")


def _cut(has: str, needs: str) -> tuple[str, str]:
    """Both with their difference to be seen, where they are long."""
    if has and needs and max(len(has), len(needs)) > _SHOWN:
        words = [one.split(" ") for one in (has, needs)]
        alike = next((at for at, (a, b) in enumerate(zip(*words, strict=False)) if a != b), 0)
        if alike > 3:  # the name of the clause, and some words before the difference
            has, needs = (" ".join([one[0], "…", *one[alike - 2 :]]) for one in words)
    return _short(has), _short(needs)


def _short(words: str) -> str:
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"


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


def _terms(order: exp.Expr, query: exp.Select) -> list[tuple[str, bool, bool]]:
    """By what a query sorts: its name, whether descending, whether nulls come first."""
    return [
        (_name(term, query), bool(term.args.get("desc")), bool(term.args.get("nulls_first")))
        for term in order.expressions
    ]


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
        ), f"sorted by {_term(*right[0][:2])}"
    given = _terms(order, own)
    if len(own.selects) == len(expected.selects):  # one column may be called otherwise by both
        called = dict(zip(_names(expected), _names(own), strict=True))
        right = [(called.get(name, name), descending, first) for name, descending, first in right]
    for mine, other in zip(given, right, strict=False):
        if mine == other:
            continue
        if mine[:2] == other[:2]:
            nulls = [f"nulls {'first' if first else 'last'}" for first in (mine[2], other[2])]
            return f"it sorts by {_term(*mine[:2])}, {nulls[0]}", nulls[1]
        if mine[0] == other[0]:
            return f"it sorts by {_term(*mine[:2])}", _direction(other[1])
        return f"it sorts by {_term(*mine[:2])}", f"by {_term(*other[:2])}"
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
