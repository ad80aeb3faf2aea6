"""What a database's SQL does not know although the parser, which is lenient, reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tui_eval.assertions.promptfoo import sql_words

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
        (r"\bARRAY (?:\[|\"\?\")", "mysql mariadb sqlite transactsql"),
        (r" == ", _EVERY - {"sqlite"}),
        (r"\bIN \( \)", _EVERY - {"sqlite"}),
        (r"\bIS (?:NOT )?DISTINCT FROM\b", "mysql mariadb"),
        (r"\bGROUPING SETS\b", "mysql mariadb sqlite"),
        (r"\bPIVOT \(", "mysql mariadb postgresql sqlite"),
        (r"\b(?:OUTER|CROSS) APPLY\b", _EVERY - {"transactsql"}),
        (r"\bSTRAIGHT_JOIN\b", _EVERY - {"mysql", "mariadb"}),
        (r"\bAT TIME ZONE\b", "mysql mariadb sqlite"),
        (r"\bSTRUCT \( [^()]* AS\b", "mysql mariadb postgresql sqlite transactsql snowflake"),
        (r"\bALTER COLUMN \S+ TYPE\b", "mysql mariadb sqlite transactsql"),
        (r"\bINSERT OR \w+ INTO\b", _EVERY - {"sqlite"}),
        (r"^CREATE .* AUTOINCREMENT\b", "mysql mariadb postgresql transactsql bigquery"),
        (r"^CREATE .* AUTO_INCREMENT\b", "transactsql bigquery"),
        (r"^DROP INDEX (?:IF EXISTS )?\S+(?: ;)*$", "mysql mariadb transactsql"),
        (r" ->>? ", "mariadb transactsql bigquery"),
        (r"^CREATE TABLE \S+ LIKE\b", "postgresql sqlite"),
        (r"^DESC(?:RIBE)? ", "postgresql"),
        (r" : ?= ", _EVERY - {"mysql", "mariadb"}),
        (r"\bAGAINST \(", "postgresql sqlite transactsql bigquery snowflake"),
        (r"\bCONVERT \( [^()]* USING\b", "postgresql sqlite bigquery snowflake"),
        (r"\bINTO \S+ FROM\b", "sqlite bigquery"),
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
    return sql_words.misused(database, given)


def is_command(database: str, statement_words: str) -> bool:
    """Whether a database knows a statement that the parser does not look into."""
    return any(database in who and pattern.match(statement_words) for pattern, who in _COMMANDS)
