"""is-sql and contains-sql: syntax by dialect, allowed tables and columns."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.javascript import values as js
from tui_eval.model import Evidence

# -- What a database's SQL does not know although the parser, which is lenient, reads it.


# -- Words that a database keeps for itself: without quotes they name no column, no table and no alias.


_NEARLY_ALL = """
    ADD ALL ALTER AND AS ASC BETWEEN BY CALL CASE CREATE CURRENT_USER DELETE DESC DISTINCT DROP ELSE EXISTS EXPLAIN
    FALSE FROM FULL GROUP HAVING IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER RECURSIVE
    RENAME RIGHT SELECT SET SHOW TABLE THEN TRUE UNION UPDATE USING WHEN WHERE WITH
"""
_MOST = "CONTAINS END GLOBAL LOCAL SESSION_USER TRUNCATE"
_MORE = {
    "mysql": """
        ANALYZE BEFORE BIGINT BLOB BOOLEAN BOTH CASCADE CHAR CHECK COLLATE CONDITION CONSTRAINT CONTINUE CONVERT CROSS
        CURSOR DATABASE DATABASES DEC DECIMAL DECLARE DEFAULT DESCRIBE DIV DOUBLE EXCEPT FETCH FLOAT FOR FOREIGN
        FUNCTION GRANT GROUPS IGNORE INT INTEGER INTERSECT INTERVAL KEY KEYS LATERAL LEADING LOAD LOCK MATCH MOD
        NATURAL NUMERIC OF OPTION OUT OVER PARTITION PRECISION PRIMARY PROCEDURE RANGE RANK READ REAL REFERENCES REGEXP
        REPLACE RESTRICT RETURN REVOKE RLIKE ROW ROWS ROW_NUMBER SCHEMA SEPARATOR SMALLINT SQL TINYINT TO TRIGGER
        UNIQUE UNSIGNED USAGE USE VALUES VARCHAR WINDOW XOR
    """,
    "mariadb": f"{_MOST} BOOLEAN CASCADE CROSS EXCEPT FOR INTERSECT JSON KEY LATERAL NATURAL READ SESSION STATUS VALUES",
    "postgresql": f"{_MOST} AT CONSTRAINT EXCEPT ILIKE INTERSECT JSON NULLS OFFSET PARTITION SESSION WINDOW",
    "sqlite": f"{_MOST} COUNT READ SESSION VALUES",
    "transactsql": f"{_MOST} CROSS FOR JSON KEY READ SESSION VALUES",
    "bigquery": f"{_MOST} ARRAY CROSS EXCEPT FOR INTERSECT JSON PARTITION READ UNNEST VALUES WINDOW",
    "snowflake": f"{_MOST} JSON NULLS OFFSET SESSION WINDOW",
    "athena": f"{_MOST} CROSS JSON READ SESSION UNNEST VALUES",
    "redshift": f"{_MOST} EXCEPT INTERSECT JSON NULLS OFFSET SESSION WINDOW",
    "hive": f"{_MOST} CROSS JSON KEY READ SESSION VALUES",
    "trino": f"{_MOST} DESCRIBE JSON NULLS OFFSET ROW ROWS SESSION WINDOW",
    "db2": f"{_MOST} EXCEPT FETCH JSON KEY OFFSET READ SESSION TYPE VALUES",
    "noql": f"{_MOST} EXCEPT INTERSECT JSON NULLS OFFSET SESSION WINDOW",
    "flinksql": _MOST,
}
_LESS = {"transactsql": {"RIGHT"}, "bigquery": {"RIGHT"}}
_RESERVED = {
    database: frozenset(_NEARLY_ALL.split()) - _LESS.get(database, set()) | frozenset(more.split())
    for database, more in _MORE.items()
}
# These know by the place that a table (or an alias) is named.
_ANY_TABLE = ("bigquery", "snowflake")
_ANY_ALIAS = ("snowflake",)
_NO_ALIAS = frozenset({"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "JOIN", "UNION"})


def misused(database: str, statements: Iterable[Any]) -> bool:
    """Whether a statement names something by a word of the language; `database` in lower case."""
    return any(
        str(name.this).upper() in _RESERVED[database]
        for statement in statements
        for name in _names(database, statement)
    )


def _names(database: str, statement: Any) -> Iterable[Any]:
    """The names without quotes, save those after a dot, which may be any word."""
    from sqlglot import exp

    for name in statement.find_all(exp.Identifier):
        around = name.parent
        if name.args.get("quoted") or name.find_ancestor(exp.DataType):
            continue
        if isinstance(around, exp.Column):
            if around.parts[0] is name and not isinstance(around.parent, exp.Limit):
                yield name
        elif isinstance(around, exp.Table):
            if around.parts[0] is name and database not in _ANY_TABLE:
                yield name
        elif isinstance(around, exp.Alias | exp.TableAlias):
            if database not in _ANY_ALIAS or str(name.this).upper() in _NO_ALIAS:
                yield name
        elif isinstance(around, exp.ColumnDef) and database != "sqlite":
            yield name


_EVERY_LIST = """mysql mariadb postgresql transactsql sqlite bigquery snowflake athena redshift hive trino db2
    flinksql noql"""
_EVERY = frozenset(_EVERY_LIST.split())
_OUTSIDE = r"[^();]*(?:\([^();]*\)[^();]*)*"  # what stands in no bracket, or passes over one
_UNITS = "MICROSECOND|SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR"
# Patterns of the statements' words, `'?'` for any text and `"?"` for any quoted name, and who refuses them.
_FOREIGN = tuple(
    (re.compile(pattern), frozenset(databases.split()) if isinstance(databases, str) else databases)
    for pattern, databases in (
        (r"\bSELECT(?: DISTINCT)? (?:FROM\b|;|\))|\bSELECT$", _EVERY),
        (r", (?:,|\)|FROM\b|WHERE\b|GROUP\b|ORDER\b|;)|,$", _EVERY - {"bigquery"}),
        (r"\{ \{", _EVERY),
        (r"<=>", _EVERY - {"mysql", "mariadb"}),
        (r"\bNULLS (?:FIRST|LAST)\b", "mysql mariadb transactsql sqlite bigquery athena hive db2 flinksql"),
        (r"\bILIKE\b", "mysql mariadb sqlite transactsql bigquery"),
        (r"\bFETCH (?:FIRST|NEXT)\b", _EVERY - {"transactsql", "db2"}),
        (r"(?<!\bROWS )\bFETCH NEXT\b|\bFROM \S+(?: \. \S+)* FETCH\b", "transactsql"),
        (r"\bRETURNING\b", "mysql transactsql bigquery"),
        (r"\bON CONFLICT\b", "mysql mariadb transactsql bigquery snowflake hive"),
        (r"\bON DUPLICATE KEY\b", "postgresql transactsql bigquery snowflake hive redshift"),
        (r"(?:^|; )UPDATE [^();]* SET [^();]* FROM\b", "mysql mariadb sqlite athena hive db2 flinksql"),
        (rf"\bINTERVAL '\?'(?! (?:{_UNITS})\b)", "mysql mariadb"),
        (rf"[-+] INTERVAL '\?'(?! (?:{_UNITS})\b)", "transactsql sqlite bigquery athena hive db2"),
        (r"\bUNNEST \(", "mysql mariadb sqlite transactsql"),
        (r"\) FILTER \(", "mysql mariadb transactsql bigquery"),
        (r"\bWITHIN GROUP\b", "mysql sqlite bigquery"),
        (r"\bTABLESAMPLE\b", "mysql mariadb sqlite"),
        (r"\bQUALIFY\b", "mysql mariadb postgresql sqlite transactsql"),
        (r"\bSAFE_CAST \(", "mysql mariadb postgresql sqlite transactsql snowflake redshift"),
        (r"\* (?:EXCEPT|EXCLUDE|REPLACE) \(", "mysql mariadb postgresql sqlite transactsql"),
        (r"\bLIMIT ALL\b", "mysql mariadb sqlite transactsql bigquery"),
        (r"\bLIMIT \S+ ,", "postgresql snowflake redshift transactsql"),
        (r"\b(?:RLIKE|REGEXP)\b", "postgresql transactsql bigquery"),
        (r"\bWITH ROLLUP\b", "postgresql sqlite bigquery"),
        (r"\bDIV\b", "postgresql sqlite transactsql"),
        (r"\bMERGE INTO\b", _EVERY),
        (r"\bFROM \S+ \. \S+ \. ", "mysql mariadb sqlite"),
        (r"\bFOR UPDATE\b", _EVERY - {"mysql", "mariadb"}),
        (r"'\?' ::", "mysql mariadb sqlite transactsql"),
        (r"\) ::", "mysql mariadb transactsql sqlite bigquery athena hive db2"),
        (r"\bJSONB\b", "mysql mariadb transactsql"),
        (r"\bGENERATED ALWAYS AS IDENTITY\b", "mysql mariadb sqlite transactsql"),
        (r"\bEXTRACT \(", "sqlite transactsql"),
        (r"\bARRAY (?:\[|\"\?\")", "mysql mariadb sqlite transactsql"),
        (r" == ", _EVERY - {"sqlite"}),
        (r"\bIN \( \)", _EVERY - {"sqlite"}),
        (r"\bIS (?:NOT )?DISTINCT FROM\b", "mysql mariadb"),
        (r"\bGROUPING SETS\b", _EVERY),
        (r"\bPIVOT \(", "mysql mariadb postgresql sqlite"),
        (r"\b(?:OUTER|CROSS) APPLY\b", _EVERY - {"transactsql"}),
        (r"\bSTRAIGHT_JOIN\b", _EVERY - {"mysql", "mariadb"}),
        (r"\bAT TIME ZONE\b", "mysql mariadb sqlite"),
        (r"\bSTRUCT \( [^()]* AS\b", "mysql mariadb postgresql sqlite transactsql snowflake"),
        (r"\bALTER COLUMN \S+ TYPE\b", "mysql mariadb sqlite transactsql"),
        (r"\bINSERT OR \w+ INTO\b", _EVERY - {"sqlite"}),
        (r"^CREATE .* AUTOINCREMENT\b", "mysql mariadb postgresql transactsql bigquery"),
        (r"^CREATE .* AUTO_INCREMENT\b", "transactsql bigquery"),
        (
            r"^DROP INDEX (?:IF EXISTS )?\S+(?: ;)*$",
            "mysql mariadb transactsql sqlite bigquery athena hive db2 flinksql",
        ),
        (r"^DROP INDEX \S+ ON\b", "postgresql snowflake redshift trino noql"),
        (r" ->>? ", "mariadb transactsql bigquery"),
        (r"^CREATE TABLE \S+ LIKE\b", "postgresql sqlite"),
        (r"^DESC(?:RIBE)? ", "postgresql"),
        (r" : ?= ", _EVERY - {"mysql", "mariadb"}),
        (r"\bAGAINST \(", "postgresql sqlite transactsql bigquery snowflake"),
        (r"\bCONVERT \( [^()]* USING\b", "postgresql sqlite bigquery snowflake"),
        (r"\bINTO \S+ FROM\b", "sqlite bigquery"),
        (r"\bRANK (?:FROM|,)", "mysql"),
        (r"\bGROUP BY(?:$| (?:;|\)|ORDER\b|HAVING\b|LIMIT\b))", _EVERY),
        (r"\bGROUP BY ALL\b", _EVERY - {"snowflake"}),
        # A place that was not filled in.
        (r"\{ [^{}]* \}|[=<>,(] % S\b", _EVERY),
        (r"[=<>,(] \?(?!['\"])", _EVERY - {"mysql", "mariadb", "sqlite", "trino"}),
        (r"(?:^|; )DELETE (?!FROM\b)\S+(?: WHERE\b| ;|$)", _EVERY - {"bigquery", "transactsql"}),
        (r"\bDELETE FROM \S+ USING\b", _EVERY),
        (r"^DELETE FROM \S+(?: ;)*$", "snowflake"),
        (rf"(?:^|; )(?:DELETE FROM|UPDATE) {_OUTSIDE}\bLIMIT\b", _EVERY - {"mysql", "sqlite", "bigquery"}),
        (r"\bSUBSTRING \( [^()]* FROM\b", _EVERY - {"flinksql"}),
        (r"\bCOUNT \( DISTINCT [^()]* ,", _EVERY - {"mysql", "mariadb", "athena"}),
        (r"\bNATURAL JOIN\b", "mysql mariadb"),
        (r"\b(?:RIGHT|FULL)(?: OUTER)? JOIN\b", "sqlite"),
        (r"\b(?:EXCEPT|INTERSECT) SELECT\b", "transactsql sqlite bigquery snowflake athena hive trino"),
        (r"\bUSE INDEX \(", _EVERY),
        (r"\bWINDOW \S+ AS \(", "mariadb transactsql sqlite athena hive db2 flinksql"),
        (r"\bROWS BETWEEN\b", "sqlite db2 flinksql"),
        (r"\bESCAPE '\?'", "transactsql bigquery athena hive db2"),
        (r"\bAS '\?'", "postgresql redshift"),
        (
            r"^CREATE (?:UNIQUE )?INDEX IF NOT EXISTS\b",
            "mysql mariadb bigquery snowflake athena redshift hive trino db2 flinksql noql",
        ),
        (r"^CREATE (?:UNIQUE )?INDEX\b", "bigquery athena hive db2"),
        (
            r"^CREATE TABLE \S+ AS SELECT\b",
            "mariadb transactsql athena redshift hive trino db2 flinksql noql",
        ),
        (r"^DROP DATABASE\b", _EVERY - {"mysql", "mariadb"}),
        (r"^DROP VIEW\b", "bigquery snowflake athena redshift hive trino db2 flinksql noql"),
        (r"^GRANT\b", "sqlite bigquery snowflake athena hive trino db2 flinksql"),
        (r"^EXPLAIN ANALYZE\b", _EVERY),
        (r"(?:^|; )TABLE \S+(?: ;)*$", _EVERY - {"transactsql"}),
    )
)
_COMMANDS = tuple(
    (re.compile(pattern), frozenset(databases.split()) if isinstance(databases, str) else databases)
    for pattern, databases in (
        (r"CALL \S", _EVERY),
        # What the parser does not look into, its tokens hold as one text.
        (r"REPLACE (?:INTO|'\?')", "mysql mariadb sqlite"),
        (r"(?:RENAME|LOCK|UNLOCK|LOAD)\b", "mysql mariadb"),
        (r"START TRANSACTION", "mysql mariadb postgresql redshift"),
        (r"EXPLAIN ", "postgresql redshift"),
        (r"SHOW ", "postgresql redshift snowflake"),
        (r"EXEC \S", "transactsql"),
    )
)


def words(tokens: Iterable[Any]) -> str:
    """The tokens of sqlglot in capitals, one space between them; texts and quoted names without what they say."""
    names = {"STRING": "'?'", "NATIONAL_STRING": "'?'", "IDENTIFIER": '"?"'}
    return " ".join(names.get(str(token.token_type.name)) or str(token.text).upper() for token in tokens)


def refuses(database: str, statement_words: str, statements: Iterable[Any]) -> bool:
    """Whether a database refuses statements that were read; `database` in lower case."""
    from sqlglot import exp

    if any(database in who and pattern.search(statement_words) for pattern, who in _FOREIGN):
        return True
    given = list(statements)
    if any(
        isinstance(alias.this, exp.Star) for statement in given for alias in statement.find_all(exp.Alias)
    ):
        return True
    if any(_other_count(insert) for statement in given for insert in statement.find_all(exp.Insert)):
        return True
    return misused(database, given)


def _other_count(insert: Any) -> bool:
    """Whether a row that is inserted has more or fewer values than columns are named."""
    from sqlglot import exp

    named, rows = insert.this, insert.expression
    if not isinstance(named, exp.Schema) or not named.expressions or not isinstance(rows, exp.Values):
        return False
    return any(
        isinstance(row, exp.Tuple) and len(row.expressions) != len(named.expressions)
        for row in rows.expressions
    )


def is_command(database: str, statement_words: str) -> bool:
    """Whether a database knows a statement that the parser does not look into."""
    return any(database in who and pattern.match(statement_words) for pattern, who in _COMMANDS)


# promptfoo's names of databases (any case), and sqlglot's. DuckDB is not among promptfoo's.
_DIALECTS = {
    "mysql": "mysql",
    "mariadb": "mysql",
    "postgresql": "postgres",
    "transactsql": "tsql",
    "sqlite": "sqlite",
    "bigquery": "bigquery",
    "snowflake": "snowflake",
    "athena": "athena",
    "redshift": "redshift",
    "hive": "hive",
    "trino": "trino",
    "db2": "",
    "flinksql": "",
    "noql": "",
}
_WITH_BRACKETS = ("tsql", "postgres", "bigquery", "snowflake", "athena", "trino", "hive", "redshift", "")
_STATEMENTS = (
    "Select SetOperation Subquery Insert Update Delete Create Drop Alter Merge TruncateTable Use Set Show Describe "
    "Transaction Commit Rollback Grant With Semicolon"
)
_FENCE = re.compile(r"[ \t]{0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<tag>.*)")
_LONGEST = 200_000


def is_sql(call: AssertionCall) -> Result:
    """The whole text is SQL of the database and touches only what is allowed."""
    fault = _fault(call, call.text)
    words = "The output SQL statement is valid"
    fenced = any(True for _ in _blocks(call.text)) if fault is not None else False
    return call.result(
        fault is None, fault or "", words, evidence=_told(call, fault, call.text, fenced=fenced)
    )


def contains_sql(call: AssertionCall) -> Result:
    """A fenced block tagged `sql` or untagged is valid; without such blocks the whole text is tried."""
    blocks = list(_blocks(call.text))
    fault: str | None = None
    for block in blocks or [call.text]:
        fault = _fault(call, block)
        if fault is None:
            break
    words = "The output SQL statement is valid"
    told = _told(call, fault, (blocks or [call.text])[0], len(blocks))
    return call.result(fault is None, fault or "", words, evidence=told)


def _told(
    call: AssertionCall, fault: str | None, text: str, tried: int | None = None, *, fenced: bool = False
) -> list[Evidence]:
    """Where a statement stops being SQL, or the tables and columns that are not allowed. `tried` counts the
    fenced blocks (None: the whole reply alone), `fenced` says that it stands in one and may not."""
    if fault is None or call.inverse:
        return [seen.rule("is-sql" if fault is None and call.inverse else "holds")]
    if isinstance(fault, _NotAllowed):
        return [
            Evidence("sql", "sql-not-allowed", text=seen.cut(name), rule=fault.kind) for name in fault.names
        ][: seen.MOST]
    more: dict[str, Any] = {"rule": "fenced" if fenced else "", "call": tried}
    database, _, _ = _settings(call)
    place = None if fenced else _place(text[:_EXPLAINED], _DIALECTS.get(database.lower(), ""))
    if place is None:
        words = "it stands in a fenced block" if fenced else ""
        return [Evidence("sql", "not-sql", text=words, actual=seen.cut(text.strip()), **more)]
    offset, words = place
    return [seen.broken("sql", "not-sql", text, offset, words, **more)]


_EXPLAINED = 20_000
"""Characters of a statement in which a parser looks for the place."""


class _NotAllowed(str):
    """A fault of tables or columns (`kind`) that are not allowed, `names`."""

    kind: str = ""
    names: Sequence[str] = ()


def _place(statement: str, dialect: str) -> tuple[int, str] | None:
    """The offset at which a parser stops, and why; None where it finds nothing wrong."""
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        found: list[Any] = sqlglot.parse(statement, read=dialect or None)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, column = int(first.get("line") or 1), int(first.get("col") or 1)
        begins = sum(len(one) + 1 for one in statement.split("\n")[: line - 1])
        return begins + column - 1, str(first.get("description") or "")
    except (SqlglotError, RecursionError, ValueError) as error:
        return 0, str(error).split("\n")[0]
    if any(type(one).__name__ in ("Alias", "Column", "Command") for one in found if one is not None):
        word = statement.split()[0] if statement.split() else ""
        return max(statement.find(word) + len(word) - 1, 0), f"{word} begins no statement"
    return None


def _blocks(text: str) -> Iterator[str]:
    """The fenced blocks tagged `sql` or untagged; one that does not end is none."""
    mark, wanted, lines = "", False, list[str]()
    for line in re.split(r"\r\n?|\n", text):
        fence = _FENCE.fullmatch(line)
        if not mark:
            if fence:
                mark, wanted, lines = fence["mark"], js.trim(fence["tag"]).lower() in ("", "sql"), []
        elif fence and not js.trim(fence["tag"]) and fence["mark"].startswith(mark):
            if wanted:
                yield "\n".join(lines).strip()
            mark = ""
        else:
            lines.append(line)


def _settings(call: AssertionCall) -> tuple[str, list[str], list[str]]:
    value = call.value
    if value is UNSET or not value or isinstance(value, list):
        return "MySQL", [], []
    if not isinstance(value, dict):
        raise CannotJudge(f"{call.kind} assertion must have a object value.", "bad-assertion")
    tables, columns = value.get("allowedTables") or [], value.get("allowedColumns") or []
    if not isinstance(tables, list) or not isinstance(columns, list):
        raise CannotJudge(
            f"{call.kind} assertion: allowedTables and allowedColumns must be lists", "bad-assertion"
        )
    return (
        js.string(value.get("databaseType") or "MySQL"),
        list(map(js.string, tables)),
        list(map(js.string, columns)),
    )


def _fault(call: AssertionCall, text: str) -> str | None:
    database, tables, columns = _settings(call)
    wrong = f"SQL statement does not conform to the provided {database} database syntax."
    if database.lower() not in _DIALECTS or not text.strip():
        return wrong
    if len(text) > _LONGEST:
        raise CannotJudge(f"{call.kind}: the text is longer than {_LONGEST:,} characters")
    series = database == "MySQL" and re.search(r"\bgenerate_series\s*\(", text, re.IGNORECASE)
    if text.count("`") % 2 or series:
        return wrong
    statements = _parsed(text, database.lower())
    if not statements:
        return wrong
    used_tables, used_columns = _used(statements, named_too=call.evidence.reference)
    # A column that names its table may be written without it.
    bare = [re.sub(r"^([^:]*)::[^:]+::", r"\1::null::", rule) for rule in columns]
    for kind, used, allowed, rules in (
        ("table", used_tables, tables, tables),
        ("column", used_columns, columns, columns + bare),
    ):
        if allowed and not all(any(_allows(rule, name) for rule in rules) for name in used):
            said = _NotAllowed(
                f"SQL references unauthorized {kind}(s). Found: [{', '.join(used)}]. "
                f"Allowed: [{', '.join(allowed)}]."
            )
            said.kind = kind
            said.names = [name for name in used if not any(_allows(rule, name) for rule in rules)]
            return said
    return None


def _allows(rule: str, name: str) -> bool:
    try:
        expression = re.compile(rule, re.IGNORECASE)
    except re.error as error:
        raise CannotJudge(f"{rule} is not a pattern: {error}", "bad-assertion") from error
    return expression.fullmatch(name[:500]) is not None


def _parsed(text: str, database: str) -> list[Any] | None:
    """The statements; None where the text is no SQL, which two columns without a comma are not either."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    # It warns of what it does not know, on stderr; here that is simply no statement.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    dialect = _DIALECTS[database]
    if dialect in ("postgres", "redshift", "snowflake", "athena", "trino", ""):
        # The parser that promptfoo uses takes backticks for every database.
        text = text.replace("`", '"')
    try:
        tokens = sqlglot.tokenize(text, read=dialect or None)
        if dialect not in _WITH_BRACKETS and any(token.text == "[" for token in tokens):
            return None
        statements = [
            statement for statement in sqlglot.parse(text, read=dialect or None) if statement is not None
        ]
    except (SqlglotError, RecursionError, ValueError):
        return None
    said = words(tokens)
    if is_command(database, said):
        return statements
    known = tuple(getattr(exp, name) for name in _STATEMENTS.split() if hasattr(exp, name))
    if not all(isinstance(statement, known) for statement in statements):
        return None
    if dialect == "mysql":
        said = _MODIFIERS.sub("SELECT ", said)
    if refuses(database, said, statements) or _SPACE_FOR_COMMA.search(said):
        return None
    return statements


_SPACE_FOR_COMMA = re.compile(
    r"\bSELECT (?:(?:ALL|DISTINCT|DISTINCTROW) )*(?!(?:ALL|DISTINCT|DISTINCTROW|NOT)\b)[A-Z_]\w* [A-Z_]\w* FROM\b",
    re.ASCII,
)
_MODIFIERS = re.compile(r"\bSELECT (?:(?:HIGH_PRIORITY|STRAIGHT_JOIN|SQL_[A-Z_]+) )+")
"""What MySQL takes between SELECT and the first column."""


def _used(statements: list[Any], *, named_too: bool) -> tuple[list[str], list[str]]:
    """Tables and columns as `action::schema::name`.

    Columns that are looked at belong to `select` whatever the statement does; those that it writes
    belong to it. `named_too` counts the names of a WITH clause as tables, as promptfoo does.
    """
    from sqlglot import exp

    tables: dict[str, None] = {}
    columns: dict[str, None] = {}
    for statement in statements:
        action = _ACTIONS.get(type(statement).__name__, "select")
        with_names = {query.alias_or_name for query in statement.find_all(exp.CTE)}
        found = [
            table for table in statement.find_all(exp.Table) if named_too or table.name not in with_names
        ]
        written = _written(statement)
        aliases = {table.alias_or_name: table.name for table in found}
        for table in found:
            own = action if table is written or action not in ("insert", "update", "delete") else "select"
            tables[f"{own}::{table.db or 'null'}::{table.name}"] = None
        if action == "show":
            tables["show::null::null"] = None
        columns.update(dict.fromkeys(_changed(statement, action, written)))
        for column in statement.find_all(exp.Column):
            around: Any = column.parent
            if action == "update" and around.parent is statement and around.args.get("this") is column:
                continue
            name = "(.*)" if isinstance(column.this, exp.Star) else column.name
            columns[f"select::{aliases.get(column.table, column.table) or 'null'}::{name}"] = None
        for query in statement.find_all(exp.Select):
            if any(isinstance(chosen, exp.Star) for chosen in query.expressions):
                columns["select::null::(.*)"] = None
    return list(tables), list(columns)


def _written(statement: Any) -> Any:
    """The table that a statement writes to."""
    from sqlglot import exp

    target = statement.this
    return target.this if isinstance(target, exp.Schema) else target


def _changed(statement: Any, action: str, written: Any) -> list[str]:
    """The columns that a statement writes, or defines."""
    from sqlglot import exp

    if action == "delete":
        return [f"delete::{written.name}::(.*)"] if isinstance(written, exp.Table) else []
    if action == "insert":
        listed = statement.this.expressions if isinstance(statement.this, exp.Schema) else []
        return [f"insert::{written.name}::{column.name}" for column in listed] or [
            f"insert::{written.name}::(.*)"
        ]
    if action == "update":
        changes = (change.this for change in statement.expressions if isinstance(change, exp.EQ))
        return [f"update::null::{column.name}" for column in changes if isinstance(column, exp.Column)]
    defined = [column.name for column in statement.find_all(exp.ColumnDef)]
    return [f"{kind}::null::{name}" for name in defined for kind in ("select", "create")]


_ACTIONS = {
    "Insert": "insert",
    "Update": "update",
    "Delete": "delete",
    "Drop": "drop",
    "TruncateTable": "truncate",
    "Create": "create",
    "Alter": "alter",
    "Show": "show",
}
