"""Rows that tie where the LIMIT of a query ends or its OFFSET starts: which of them come is left to the database, and
others may be as right.

Pure: the caller runs the queries that are made here (`frames.sql.execute`: read-only, limited).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tui_eval.frames.query_words import limit_word, may_take_part, place_of, read_query, without_texts
from tui_eval.guard.spelling import some_of

if TYPE_CHECKING:
    from sqlglot import exp

    from tui_eval.frames.comparison_rules import ComparisonSettings
    from tui_eval.frames.databases import SqlResult

_LONGEST = 20_000
_MOST = 10_000
"""Rows that are read to find those that tie."""
_VALUE = 40


@dataclass(frozen=True, slots=True)
class TiesAsked:
    """The query for all rows that an expected one, which skips the first `offset` and gives `count`, may
    give. `terms` are what it sorts by, as a person calls it; their values are the columns that follow its
    own, then come the first and the last place of the rows that are sorted alike. `ends` is its word for
    where its rows end."""

    sql: str
    offset: int
    count: int
    columns: tuple[str, ...]
    terms: tuple[str, ...]
    ends: str


@dataclass(frozen=True, slots=True)
class CutTies:
    """All rows that an expected query may give. Of each group (from row, to row, how many) any as many are right, all
    others must be there. `line` says so."""

    rows: SqlResult
    groups: tuple[tuple[int, int, int], ...]
    count: int
    line: str

    def allow(
        self, given: Any, settings: ComparisonSettings | None = None, columns: Sequence[str] | None = None
    ) -> bool:
        """Whether rows are as right as those that are expected: all the sure ones, filled up with some that tie."""
        from tui_eval.frames.difference import align

        found = align(self.rows, given, settings, columns)
        e_rows, a_rows = found.aligned()
        if found.missing_columns or found.lengths[1] != self.count or e_rows.null_count():
            return False
        if found.differing_cells():
            return False
        left_out = e_rows.filter(a_rows.is_null())
        lacking = [
            (int(((left_out >= start) & (left_out < end)).sum()), end - start - some)
            for start, end, some in self.groups
        ]
        return all(one == most for one, most in lacking) and len(left_out) == sum(one for one, _ in lacking)


def query_of_ties(expected: str, given: SqlResult, dialect: str = "duckdb") -> TiesAsked | None:
    """A query for all rows that an expected one, which gave these, may give; None: it takes not a part of its
    rows in an order, there are too many, or it cannot be read.

    How many it takes is what it gave: a number, a share, or all that tie at its end."""
    if not 0 < given.frame.height < _MOST or len(expected) > _LONGEST or not may_take_part(expected):
        return None
    from sqlglot import errors

    try:
        tree = read_query(expected, dialect)
        return _asked(tree, given.columns, given.frame.height, dialect)
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return None


def inner_limits(expected: str, dialect: str = "duckdb") -> list[str]:
    """The queries inside of one that take a part of their rows, each as one that can be run; none where it cannot be
    read."""
    if len(expected) > _LONGEST or not may_take_part(expected):
        return []
    import sqlglot
    from sqlglot import errors, exp

    try:
        tree = sqlglot.parse_one(expected, read=dialect)
        found: list[str] = []
        for query in tree.find_all(exp.Query):
            cut = query.args.get("limit") is not None or query.args.get("offset") is not None
            if query is tree or isinstance(query, exp.Subquery) or not cut:
                continue
            if isinstance(query.parent, exp.Exists):
                continue  # whichever of its rows there are
            made, tables = query.copy(), tree.args.get("with_")
            if tables is not None and made.args.get("with_") is None:
                made.set("with_", tables.copy())
            found.append(made.sql(dialect))
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return []
    return found[:_MOST_INNER]


_MOST_INNER = 3


def query_of_places(expected: str, given: SqlResult, dialect: str = "duckdb") -> str | None:
    """A query for the place of each row that an expected one gave, one for all that its ORDER BY does not
    tell apart: which of these comes first is left to the database, though nothing of that is in the rows.
    None: it cannot be read, or the rows say it themselves. Texts do not: the collation of their column may
    not tell `a` from `A`."""
    if not given.ordered or not given.frame.height or len(expected) > _LONGEST:
        return None
    import polars as pl

    if given.order_columns and not any(given.frame.schema[one] == pl.String for one in given.order_columns):
        return None
    from sqlglot import errors

    try:
        found = _ranked(read_query(expected, dialect), given.columns, dialect)
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return None
    if found is None:
        return None
    ranked, offset, _ = found
    return (
        f"SELECT first_place FROM (\n{ranked}\n) AS ranked ORDER BY first_place "
        f"LIMIT {given.frame.height} OFFSET {offset}"
    )


def with_places(expected: SqlResult, found: SqlResult) -> SqlResult:
    """Expected rows with what `query_of_places` gave."""
    places = found.frame.to_series(0)
    return replace(expected, places=places) if len(places) == expected.frame.height else expected


def _asked(tree: exp.Expr, columns: list[str], count: int, dialect: str) -> TiesAsked | None:
    limit = tree.args.get("limit")
    found = _ranked(tree, columns, dialect)
    if found is None or (limit is None and not found[1]):
        return None
    ranked, offset, names = found
    sql = (
        f"SELECT * FROM (\n{ranked}\n) AS ranked WHERE first_place <= {offset + count} AND last_place > {offset} "
        f"ORDER BY first_place LIMIT {_MOST + 1}"
    )
    return TiesAsked(sql, offset, count, tuple(columns), tuple(names), limit_word(limit))


def _ranked(tree: exp.Expr, columns: list[str], dialect: str) -> tuple[str, int, list[str]] | None:
    """A query for all rows of one that is ordered, with the first and the last place of those that are sorted
    alike; how many of them it skips, and what it sorts by."""
    from sqlglot import exp

    if not isinstance(tree, exp.Query):
        return None
    order, skipped = (tree.args.get(part) for part in ("order", "offset"))
    offset = _number(skipped.expression) if isinstance(skipped, exp.Offset) else 0
    if offset is None:
        return None
    sorted_by = order.expressions if order is not None else []
    distinct = tree.args.get("distinct") if isinstance(tree, exp.Select) else None
    if distinct is not None and distinct.args.get("on") is not None:
        return None  # its order says which rows there are
    inner = tree.copy()
    inner.set("order", None)
    inner.set("limit", None)
    inner.set("offset", None)
    places: list[int] = []
    names: list[str] = []
    for term in sorted_by:
        at = place_of(term.this, tree, columns)
        if at is None:
            if not isinstance(inner, exp.Select) or distinct is not None:
                return None
            inner.select(exp.alias_(term.this.copy(), f"sorted_by_{len(places)}"), copy=False)
            at = len(inner.selects) - len(tree.selects) - 1 + len(columns)
        places.append(at)
        names.append(columns[at] if at < len(columns) else term.this.sql(dialect))
    width = max([len(columns), *(at + 1 for at in places)])
    called = [f"c{at}" for at in range(width)]
    terms = [
        exp.Ordered(
            this=exp.column(called[at]), desc=term.args.get("desc"), nulls_first=term.args.get("nulls_first")
        ).sql(dialect)
        for at, term in zip(places, sorted_by, strict=True)
    ]
    shown = [*called[: len(columns)], *(called[at] for at in places)]
    one = [f"{name} AS v{number}" for number, name in enumerate(shown)]
    by = f"OVER (ORDER BY {', '.join(terms)})" if terms else "OVER ()"  # without an order all rows tie
    ranked = f"SELECT {', '.join(one)}, RANK() {by} AS first_place, COUNT(*) {by} AS last_place\nFROM "
    if dialect == "sqlite":  # which gives the columns of a CTE names, those of a subquery not
        cte = f"tui_eval_rows({', '.join(called)}) AS (\n{inner.sql(dialect)}\n)"
        ranked = f"WITH {cte}\n{ranked}tui_eval_rows"
    else:
        ranked += f"(\n{inner.sql(dialect)}\n) AS q({', '.join(called)})"
    return ranked, offset, names


def _number(value: exp.Expr) -> int | None:
    """A whole number that is written out or worked out of such, as a page times its size."""
    from sqlglot import exp
    from sqlglot.optimizer.simplify import simplify

    found = simplify(value.copy()).unnest()
    return int(found.this) if isinstance(found, exp.Literal) and found.is_int else None


def cut_ties(asked: TiesAsked, given: SqlResult) -> CutTies | None:
    """What the query of ties gave; None: no ties are cut through, or these are too many to be read."""
    frame, width = given.frame, len(asked.columns)
    if not asked.count < frame.height <= _MOST:
        return None
    first, last = (frame.to_series(frame.width - back) for back in (2, 1))
    start, end = asked.offset, asked.offset + asked.count
    groups: dict[tuple[int, int, int], list[str]] = {}
    for at, cut, word in ((0, int(first[0]) <= start, "OFFSET"), (-1, int(last[-1]) > end, asked.ends)):
        if cut:
            here = (first == first[at]).arg_true()
            some = min(int(last[at]), end) - max(int(first[at]) - 1, start)
            groups.setdefault((here[0], here[-1] + 1, some), []).append(word)
    parts: list[str] = []
    for (low, high, some), words in groups.items():
        values = [
            _shown(frame.to_series(width + n)[low], given.types.get(given.columns[width + n], ""))
            for n in range(len(asked.terms))
        ]
        shared = some_of([f"{name}={value}" for name, value in zip(asked.terms, values, strict=True)], 3)
        right = "any of them is right" if some == 1 else f"any {some:,} of them are right"
        if not shared:
            one = "any {} is" if some == 1 else "any {} are"
            every = f"of {high - low:,} rows" if some == 1 else f"{some:,} of {high - low:,} rows"
            parts.append(f"{' and '.join(words)} without ORDER BY: {one.format(every)} right")
            continue
        cuts = f"{' and '.join(words)} cut{'s' if len(words) == 1 else ''} through ties"
        parts.append(f"{cuts if not parts else words[0]}: {high - low:,} rows share {shared}, {right}")
    line = f"{_OWN}{'; its '.join(parts)}"
    kept = frame.select(frame.columns[:width])
    kept.columns = list(asked.columns)
    types = [given.types.get(name, "") for name in given.columns[:width]]
    rows = replace(
        given,
        columns=list(asked.columns),
        frame=kept,
        types=dict(zip(asked.columns, types, strict=True)),
        ordered=False,
        order_columns=(),
        places=None,
    )
    return CutTies(rows, tuple(groups), asked.count, line)


# -- what else is left to the database: looked for before a query is called wrong

Chance = Generator[str, "SqlResult | None", str]
"""Queries to be run; what each gave is sent (None: it cannot be run)."""


def chance_in(sql: str, expected: SqlResult, dialect: str = "duckdb") -> Chance:
    """What of an expected query takes any of several rows, so that others than these may be as right, in
    words; "" where nothing does. Ties at its own LIMIT are no such thing where all of them are known
    (`CutTies`)."""
    tied = f"{_IN}more rows tie at its LIMIT than can be read"
    if _takes_part(sql, dialect) and expected.frame.height:
        asked = query_of_ties(sql, expected, dialect)
        every = (yield asked.sql) if asked is not None else None
        if every is None or every.frame.height > _MOST:
            return tied
    for inner in inner_limits(sql, dialect):
        given = yield inner
        if given is not None and not given.frame.height:
            continue
        asked = query_of_ties(inner, given, dialect) if given is not None else None
        every = (yield asked.sql) if asked is not None else None
        if asked is None or every is None or every.frame.height > _MOST:
            return f"{_INSIDE}a LIMIT may cut through ties"
        if (ties := cut_ties(asked, every)) is not None:
            return f"{_INSIDE}{ties.line.removeprefix(_OWN)}"
    width = expected.frame.width
    for query, word in _other_ways(sql, dialect):
        given = yield query
        if given is None or _counted(given, width) != _counted(expected, width):
            return f"{_IN}{word} may take others of rows that tie"
    return ""


_OWN = "the expected query's "
_IN, _INSIDE = "in the expected query ", "inside of the expected query "


def _counted(rows: SqlResult, width: int) -> Counter[str]:
    return Counter(repr(row[:width]) for row in rows.frame.iter_rows())


def _takes_part(sql: str, dialect: str) -> bool:
    """Whether a query itself has a LIMIT or an OFFSET."""
    if not may_take_part(sql):
        return False
    import sqlglot
    from sqlglot import errors

    try:
        tree = sqlglot.parse_one(sql, read=dialect)
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return True
    return any(tree.args.get(part) is not None for part in ("limit", "offset"))


_PICKS = re.compile(
    r"\b(?:over|distinct\s+on|any_value|first|last|arbitrary|(?:arg_)?(?:min|max)(?:_by)?)\b",
    re.IGNORECASE,
)


def _other_ways(sql: str, dialect: str) -> list[tuple[str, str]]:
    """A query that takes one of several rows, as by ROW_NUMBER or `any_value`, so that it takes others where
    some tie, and the word for it: where it gives the same all the same, none did."""
    if not _PICKS.search(without_texts(sql)) or len(sql) > _LONGEST:
        return []
    import sqlglot
    from sqlglot import errors, exp
    from sqlglot.transforms import eliminate_distinct_on

    word = ""

    def other(node: exp.Expr, last: bool) -> exp.Expr:
        nonlocal word
        if isinstance(node, exp.Select) and (found := _in_total_order(node, last, dialect)):
            word = word or found
        if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):
            node = node.this
        if isinstance(node, exp.AnyValue | exp.First | exp.Last | exp.ArgMax | exp.ArgMin):
            word = word or type(node).sql_name()
            return _picked(node, last)
        return node

    def without(node: exp.Expr) -> exp.Expr:
        nonlocal word
        distinct = node.args.get("distinct") if isinstance(node, exp.Select) else None
        if distinct is None or distinct.args.get("on") is None:
            return node
        word = word or "DISTINCT ON"
        return eliminate_distinct_on(node)

    try:
        tree = sqlglot.parse_one(sql, read=dialect).transform(without)
        ways = dict.fromkeys(tree.transform(other, last).sql(dialect) for last in (False, True))
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return []
    return [(way, word) for way in ways] if word else []


def _in_total_order(query: exp.Select, last: bool, dialect: str) -> str:
    """Lets the window functions of a query that go by the order of single rows find those that tie in the
    order of all else that they hold, the least or the greatest first: rows that tie there too are the same.
    Returns the first of them, "" where it has none."""
    from sqlglot import exp

    single = (exp.RowNumber, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Ntile)
    named = {one.name.casefold(): one for one in query.args.get("windows") or ()}
    word = ""
    for window in list(query.find_all(exp.Window)):
        if window.args.get("over") is None or window.parent_select is not query:
            continue
        call = (
            window.this.this if isinstance(window.this, exp.IgnoreNulls | exp.RespectNulls) else window.this
        )
        whole = window
        if (
            base := named.get(window.args["alias"].name.casefold() if window.args.get("alias") else "")
        ) is not None:
            whole = base
        spec = window.args.get("spec") or whole.args.get("spec")
        by_rows = (
            spec is not None
            and str(spec.args.get("kind")).upper() == "ROWS"
            and isinstance(call, exp.AggFunc)
        )
        if not isinstance(call, single) and not by_rows:
            continue
        word = word or f"{call.sql_name()}()"
        given = window.args.get("order") or whole.args.get("order")
        terms = [term.copy() for term in given.expressions] if given is not None else []
        apart = _told_apart_by(query, dialect)
        ties = [exp.Ordered(this=one.copy(), desc=last, nulls_first=last) for one in apart]
        window.set(
            "partition_by",
            [one.copy() for one in whole.args.get("partition_by") or window.args.get("partition_by") or ()],
        )
        window.set("order", exp.Order(expressions=[*terms, *ties]))
        window.set("spec", spec.copy() if spec is not None else None)
        window.set("alias", None)
    return word


def _told_apart_by(query: exp.Select, dialect: str) -> list[exp.Expr]:
    """What tells the rows of a query apart that its window functions see: its groups, else the rows of what
    it reads."""
    from sqlglot import exp

    group = query.args.get("group")
    if group is not None:
        plain = [one.unalias() for one in query.selects if one.find(exp.AggFunc, exp.Window) is None]
        if group.args.get("all"):
            return plain
        called = {one.alias.casefold(): one.unalias() for one in query.selects if one.alias}
        found: list[exp.Expr] = []
        for one in group.expressions:
            if isinstance(one, exp.Literal) and one.is_int and 0 < int(one.this) <= len(query.selects):
                one = query.selects[int(one.this) - 1].unalias()
            elif isinstance(one, exp.Column) and not one.table:
                one = called.get(one.name.casefold(), one)
            found.append(one)
        return found
    sources = [query.args.get("from_"), *(query.args.get("joins") or ()), *(query.args.get("laterals") or ())]
    rows: list[exp.Expr] = []
    for number, one in enumerate(sources):
        source = one.this if isinstance(one, exp.From | exp.Join) else one
        if isinstance(source, exp.Subquery) and not source.alias:
            source.set("alias", exp.TableAlias(this=exp.to_identifier(f"rows_{number}")))
        given = source.args.get("alias") if source is not None else None
        name = (
            given.this
            if isinstance(given, exp.TableAlias)
            else source.this
            if isinstance(source, exp.Table)
            else None
        )
        if isinstance(name, exp.Identifier) and dialect == "sqlite":  # where a row is no value
            rows.append(exp.column("rowid", table=name.copy()))
        elif isinstance(name, exp.Identifier):
            rows.append(exp.Column(this=name.copy()))
        elif source is not None:  # a row that has no name
            rows += [column for column in query.find_all(exp.Column) if column.parent_select is query]
    return rows


def _picked(call: exp.Expr, last: bool) -> exp.Expr:
    """An aggregate that takes the value of one row, so that of those that tie it takes the least or the greatest."""
    from sqlglot import exp

    value, order = call.this.copy(), []
    if isinstance(value, exp.Order):
        value, order = value.this, list(value.expressions)
    if isinstance(call, exp.ArgMax | exp.ArgMin):
        order = [
            exp.Ordered(this=call.expression.copy(), desc=isinstance(call, exp.ArgMax), nulls_first=False)
        ]
    if not order:
        return exp.Max(this=value) if last else exp.Min(this=value)
    terms = exp.Order(this=value, expressions=[*order, exp.Ordered(this=value.copy(), desc=last)])
    return exp.Last(this=terms) if isinstance(call, exp.Last) else exp.First(this=terms)


def _shown(value: Any, kind: str) -> str:
    from tui_eval.frames.cells import cell_text
    from tui_eval.frames.numbers import MIXED, mixed_cell
    from tui_eval.frames.value_texts import plain_moment
    from tui_eval.guard.text import clip

    text = " ".join(cell_text(mixed_cell(value) if kind == MIXED else value).split())
    return clip(plain_moment(text, kind == "DATE") or text, _VALUE)
