"""Which queries a PostgreSQL server is asked: one query, that names nothing with which it would reach the server's
files, programs, settings, passwords or other sessions, all read as the server itself reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_eval.frames.databases import SqlError, one_line
from tui_eval.frames.query_words import bare_statement


@dataclass(frozen=True, slots=True)
class PostgresQuery:
    """One query, without what ends it, and what its names say of it: why it is `refused`, and `of_role`, what another
    role sees otherwise, as the end of a sentence; "" where there is none."""

    text: str
    refused: str
    of_role: str


def read_postgres(sql: str) -> PostgresQuery:
    """Read a statement. That it is a query, and not only begins as one, the server says.

    Raises:
        SqlError: it is none, or several.
    """
    if "\0" in sql:  # where the library would end it
        raise SqlError("the query holds a NUL, which is no part of SQL")
    text = bare_statement(sql, keep_open=True)
    parts = list(_parts(text))
    _only_a_query([part for part, _ in parts])
    names = list(_names(parts))
    return PostgresQuery(text, _refused(names), _of_another_role(names))


_QUERIES = ("SELECT", "VALUES", "WITH", "TABLE")
_CALLS = re.compile(
    r"""
    pg_read_(?:binary_)?file\w* | pg_ls_\w+ | pg_stat_file | pg_file_\w+ | pg_logdir_ls | pg_hba_file_\w+ | pg_ident_file_\w+
    | pg_show_all_file_settings | lo_(?:import|export|creat|create|from_bytea|put|open|unlink|truncate|truncate64) | lowrite
    | set_config | pg_terminate_\w+ | pg_cancel_\w+ | pg_reload_conf | pg_rotate_\w+ | pg_promote | pg_switch_\w+
    | pg_create_\w+ | pg_drop_\w+ | pg_copy_\w+ | pg_logical_\w+ | pg_replication_(?:origin|slot)_\w+ | pg_wal_replay_\w+
    | pg_backup_\w+ | pg_start_backup | pg_stop_backup | pg_stat_reset\w* | pg_stat_statements_reset | pg_log_\w+
    | pg_(?:try_)?advisory_\w+ | pg_notify | pg_export_snapshot | pg_import_\w+ | pg_execute_\w+
    | autoprewarm_\w+ | brin_(?:de)?summarize_\w+ | gin_clean_pending_list
    | dblink\w* | postgres_fdw_\w+ | http_(?:get|head|post|put|patch|delete)
    """,
    re.VERBOSE,
)
"""Functions that reach the server's files, programs, settings, other sessions or servers."""
_READ_BY_TEXT = re.compile(
    r"""(?:query|cursor|table|schema|database)_to_xml(?:schema|_and_xmlschema)? | ts_stat | ts_rewrite
    | crosstab(?:\d|n|_hash)? | connectby | xpath_table""",
    re.VERBOSE,
)
"""Functions that run SQL out of a text or read what a text names, which could name one of the others in pieces."""
_SECRETS = re.compile(
    r"""pg_authid | pg_shadow | _?pg_user_mappings? | user_mapping_options | pg_subscription | pg_hba_file_rules
    | pg_ident_file_mappings | pg_file_settings | aws_(?:s3|lambda|commons)""",
    re.VERBOSE,
)
"""Relations that hold passwords or the server's files, and schemas whose functions reach other servers."""
_OWN_ROWS = re.compile(
    r"information_schema|pg_settings|pg_stat_(?:activity|replication|wal_receiver|ssl|gssapi|subscription|statements|progress_\w+)"
)
_OWN_CALLS = re.compile(
    r"has_\w+_privilege|pg_has_role|row_security_active|pg_show_all_settings|current_user|session_user|getpgusername"
    r"|pg_stat_get_(?:activity|progress_info|wal_senders|wal_receiver|subscription|backend_\w+)"
)
_OWN_WORDS = frozenset({"current_user", "current_role", "session_user", "system_user", "user"})
"""What is, without a word, another thing for another role."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A name or word of a query as the server reads it; whether it stands where a function does that is called."""

    text: str
    called: bool
    quoted: bool
    after: str


_PART = re.compile(
    r"""(?P<nothing>[ \t\n\r\f\v]+|--[^\n\r]*)|(?P<comment>/\*)
    |(?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')|(?P<text>'(?:[^']|'')*')
    |\$(?P<tag>(?:[A-Za-z_\x80-\U0010ffff][A-Za-z_0-9\x80-\U0010ffff]*)?)\$.*?\$(?P=tag)\$
    |(?P<name>[uU]&"|"(?:[^"]|"")*"|[A-Za-z_\x80-\U0010ffff][A-Za-z_0-9$\x80-\U0010ffff]*)|[0-9]+|.""",
    re.DOTALL | re.VERBOSE,
)
_GOES_ON = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_COMMENT_END = re.compile(r"/\*|\*/")


def _parts(sql: str) -> Iterator[tuple[str, bool]]:
    """The parts of a query without blanks and comments, and whether each is a name, exactly as PostgreSQL's own lexer
    tells them apart: what it takes for a name and this for a text would be a way in. (A carriage return ends a comment,
    `€$$` is a name, and a text behind an `E'…'` is more of it.)"""
    at = 0
    escaped = False
    while at < len(sql):
        found = (_GOES_ON.match(sql, at) if escaped else None) or _PART.match(sql, at)
        assert found is not None
        at = found.end()
        if found.re is _GOES_ON:
            yield found[0], False
        elif found["comment"]:
            depth = 1
            while depth and (mark := _COMMENT_END.search(sql, at)):
                depth += 1 if mark[0] == "/*" else -1
                at = mark.end()
            if depth:
                return
        elif not found["nothing"]:
            escaped = found["escaped"] is not None
            yield found[0], found["name"] is not None


def _names(parts: Sequence[tuple[str, bool]]) -> Iterator[_Name]:
    for place, (part, is_name) in enumerate(parts):
        if is_name:
            before = parts[place - 1][0] if place else ""
            after = parts[place + 1][0] if place + 1 < len(parts) else ""
            quoted = part.startswith('"')
            text = part[1:-1].replace('""', '"') if quoted else part.lower()
            # `('/etc/passwd'::text).pg_read_file` is a call, too.
            yield _Name(text, after == "(" or before == ".", quoted, before.lower())


def _refused(names: Sequence[_Name]) -> str:
    """Why a query is refused for a name in it; "" where it is not."""
    for name in names:
        if name.text.lower() == 'u&"':
            return 'a name written as U&"…" is refused: write it as it is'
        if name.called and _READ_BY_TEXT.fullmatch(name.text):
            return f"{name.text} is refused: it runs SQL out of a text, or reads what a text names, which is not looked into"
        if _SECRETS.fullmatch(name.text) or (name.called and _CALLS.fullmatch(name.text)):
            return (
                f"{name.text} is refused: a query has no access to the server's files, programs, settings, "
                "passwords and other sessions"
            )
    return ""


def _of_another_role(names: Sequence[_Name]) -> str:
    """What a query names that another role sees otherwise, as the end of a sentence; "" where there is none."""
    for name in names:
        if _OWN_ROWS.fullmatch(name.text):
            return f"which sees other rows of {name.text}"
        word = not name.quoted and name.text in _OWN_WORDS and name.after not in (".", "as")
        if word or (name.called and _OWN_CALLS.fullmatch(name.text)):
            return f"for which {name.text} is another"
    return ""


def _only_a_query(parts: Sequence[str]) -> None:
    first = next((part for part in parts if part != "("), "")
    if not first:
        raise SqlError("there is no SQL statement")
    if ";" in parts:
        raise SqlError("only one SQL statement is allowed")
    if first.upper() not in _QUERIES:
        raise SqlError(f"only SELECT is allowed, not {one_line(first).upper()}")
