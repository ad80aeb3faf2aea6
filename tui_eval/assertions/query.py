"""What a query can be told without running it."""

from __future__ import annotations

import re

_MAY_READ = re.compile(r"\b(?:from|join|table|describe|summarize|show|pivot|unpivot)\b", re.IGNORECASE)

_TEXT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_READS = re.compile(r'\bfrom\s+[\w"]', re.IGNORECASE)
_NAMES_ROWS = re.compile(
    r"\b(?:with|values|unnest|range|generate_series|extract|substring|trim|distinct)\b", re.IGNORECASE
)


def reads_no_table(sql: str) -> bool:
    """Whether a query (DuckDB's dialect) makes its rows of literals alone, as `SELECT 7` does, which proves
    nothing of the data. False where it cannot be parsed."""
    bare = _TEXT.sub("''", sql)
    if not _MAY_READ.search(bare):
        return bool(sql.strip())
    if _READS.search(bare) and not _NAMES_ROWS.search(bare):
        return False  # most queries: parsing them would cost a run its time
    import sqlglot
    from sqlglot import errors, exp

    try:
        statements = [found for found in sqlglot.parse(sql, read="duckdb") if found is not None]
    except (errors.SqlglotError, RecursionError):
        return False
    if not statements or not all(isinstance(found, exp.Query) for found in statements):
        return False
    own = {cte.alias.lower() for found in statements for cte in found.find_all(exp.CTE)}
    return all(
        isinstance(table.this, exp.Identifier) and not table.db and table.name.lower() in own
        for found in statements
        for table in found.find_all(exp.Table)
    )


def columns_named(sql: str) -> list[str]:
    """The columns that a query (DuckDB's dialect) names, in order; none where it has a star, names one not at all, or
    cannot be parsed."""
    import sqlglot
    from sqlglot import errors, exp

    try:
        found = sqlglot.parse_one(sql, read="duckdb")
    except (errors.SqlglotError, RecursionError):
        return []
    if not isinstance(found, exp.Query):
        return []
    names = found.named_selects
    return [] if not all(names) or "*" in names or len(set(names)) < len(names) else list(names)
