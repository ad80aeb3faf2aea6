"""What a database's SQL does not know although the parser, which is lenient, reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_EVERY_LIST = """mysql mariadb postgresql transactsql sqlite bigquery snowflake athena redshift hive trino db2
    flinksql noql"""
_EVERY = frozenset(_EVERY_LIST.split())
_UNITS = "MICROSECOND|SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR"
# Patterns of the statements' words, `'?'` for any text and `"?"` for any quoted name, and who refuses them.
_FOREIGN = tuple(
    (re.compile(pattern), frozenset(databases.split()) if isinstance(databases, str) else databases)
    for pattern, databases in (
        (r"\bSELECT(?: DISTINCT)? (?:FROM\b|;|\))|\bSELECT$", _EVERY),
        (r", (?:,|\)|FROM\b|WHERE\b|GROUP\b|ORDER\b|;)|,$", _EVERY - {"bigquery"}),
        (r"\{ \{", _EVERY),
        (r"<=>", _EVERY - {"mysql", "mariadb"}),
        (r"\bNULLS (?:FIRST|LAST)\b", "mysql mariadb transactsql"),
        (r"\bILIKE\b", "mysql mariadb sqlite transactsql bigquery"),
        (r"\bFETCH (?:FIRST|NEXT)\b", "mysql sqlite bigquery"),
        (r"\bRETURNING\b", "mysql transactsql bigquery"),
        (r"\bON CONFLICT\b", "mysql mariadb transactsql bigquery snowflake hive"),
        (r"\bON DUPLICATE KEY\b", "postgresql transactsql bigquery snowflake hive redshift"),
        (r"^UPDATE [^()]* SET [^()]* FROM\b", "mysql mariadb"),
        (rf"\bINTERVAL '\?'(?! (?:{_UNITS})\b)", "mysql mariadb"),
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
        (r"\bMERGE INTO\b", "mysql mariadb sqlite"),
        (r"\bFROM \S+ \. \S+ \. ", "mysql mariadb sqlite"),
        (r"\bFOR UPDATE\b", "sqlite bigquery transactsql"),
        (r"'\?' ::", "mysql mariadb sqlite transactsql"),
        (r"\bJSONB\b", "mysql mariadb transactsql"),
        (r"\bGENERATED ALWAYS AS IDENTITY\b", "mysql mariadb sqlite transactsql"),
        (r"\bEXTRACT \(", "sqlite transactsql"),
        (r"\bARRAY \[", "mysql mariadb sqlite transactsql"),
        (r"\bRANK (?:FROM|,)", "mysql"),
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
# Every database keeps these for itself, so that they name no column and no table without quotes.
_RESERVED = frozenset({"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "JOIN", "UNION"})


def words(tokens: Iterable[Any]) -> str:
    """The tokens of sqlglot in capitals, one space between them; texts and quoted names without what they say."""
    names = {"STRING": "'?'", "NATIONAL_STRING": "'?'", "IDENTIFIER": '"?"'}
    return " ".join(names.get(str(token.token_type.name)) or str(token.text).upper() for token in tokens)


def refuses(database: str, statement_words: str, statements: Iterable[Any]) -> bool:
    """Whether a database refuses statements that were read; `database` in lower case."""
    from sqlglot import exp

    if any(database in who and pattern.search(statement_words) for pattern, who in _FOREIGN):
        return True
    names = (name for statement in statements for name in statement.find_all(exp.Identifier))
    return any(not name.args.get("quoted") and str(name.this).upper() in _RESERVED for name in names)


def is_command(database: str, statement_words: str) -> bool:
    """Whether a database knows a statement that the parser does not look into."""
    return any(database in who and pattern.match(statement_words) for pattern, who in _COMMANDS)
