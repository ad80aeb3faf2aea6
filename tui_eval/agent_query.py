"""The SQL behind an agent's answer, as its attempt was recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tui_eval.model import Attempt, DataDetails, Entry, Reply

Source = Literal["verification", "tool", "reply"]
_ARGUMENTS = ("sql_query", "sql", "query", "statement")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)")
_LANGUAGES = ("sql", "duckdb", "postgres", "postgresql", "sqlite", "snowflake", "bigquery", "mysql")
_BEGINS = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:select|with|from|values)\b", re.IGNORECASE)
_MOST = 1_000_000
_RESULT_NAME = re.compile(r"query_[0-9a-f]{6,}", re.IGNORECASE)
_WITH = re.compile(r"((?:\s|--[^\n]*\n|/\*.*?\*/)*)with\b(\s+recursive\b)?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class AgentQuery:
    """A query and where it was found: what the agent's server verified (`verification`), its last call of a
    tool that runs SQL (`tool`, whose name is `tool`), or a fenced block of its reply (`reply`). `call_id` is that of
    the call."""

    sql: str
    source: Source
    tool: str = ""
    call_id: str | None = field(default=None, compare=False)


ROW_NAMES = ("rows", "data", "records", "results", "result")
"""What tools call the rows of a result."""
_CUT = ("is_preview", "truncated", "has_more", "applied_limit")
_COUNTS = ("row_count", "rowCount", "total_rows", "total")


def rows_given(attempt: Attempt, query: AgentQuery) -> list[dict[str, Any]] | None:
    """The rows that a query of the agent gave when it was run, all of them, as its server verified them or its tool's
    result has them; None where the record does not have these."""
    return rows_recorded(attempt.transcript, attempt.data, query)


def rows_recorded(
    transcript: Sequence[Entry], data: DataDetails | None, query: AgentQuery
) -> list[dict[str, Any]] | None:
    """As `rows_given`, of what an attempt is made of."""
    if query.source == "verification" and data is not None and data.settings.get("source") == "verification":
        return data.actual
    if query.source != "tool" or query.call_id is None:
        return None
    results = [
        entry
        for entry in transcript
        if entry.kind == "tool_result" and entry.call_id == query.call_id and not entry.error
    ]
    if len(results) != 1:
        return None
    value = results[0].result
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    counted, columns = None, None
    if isinstance(value, dict):
        if any(value.get(name) for name in _CUT):
            return None
        counted = next((value[name] for name in _COUNTS if isinstance(value.get(name), int)), None)
        columns = value.get("columns")
        value = next((value[name] for name in ROW_NAMES if isinstance(value.get(name), list)), None)
    if not isinstance(value, list) or not value or (counted is not None and counted != len(value)):
        return None
    if isinstance(columns, list) and all(isinstance(row, list) and len(row) == len(columns) for row in value):
        names = [one.get("name") if isinstance(one, dict) else one for one in columns]
        value = [dict(zip(map(str, names), row, strict=True)) for row in value]
    if not all(isinstance(row, dict) for row in value):
        return None
    # so many rows and not a word on whether these are all: a tool may have given no more
    return None if counted is None and len(value) >= 10 and len(value) % 10 == 0 else value


def agent_query(attempt: Attempt) -> AgentQuery | None:
    """The query whose rows the answer should be; None: the record has none. It can be run on the database: where
    the server verified over the results of earlier calls, those are written into it as their queries.

    A call that failed counts only where none went well; of several that did the one that was found when the answer was
    judged, else the last one; of several fenced blocks the last one.
    """
    verified = attempt.data.verification_sql if attempt.data is not None else None
    kept = attempt.data.settings.get("conclusion") if attempt.data is not None else None
    if isinstance(kept, Mapping) and isinstance(kept.get("query"), str):
        for found in queries_called(attempt.transcript):
            if found.sql == kept["query"]:
                return found
    return query_behind(attempt.transcript, attempt.replies, verified, attempt.response_text)


def queries_run(attempt: Attempt) -> int:
    """How many different queries the agent ran that did not fail."""
    failed = {entry.call_id for entry in attempt.transcript if entry.kind == "tool_result" and entry.error}
    asked = (
        _sql_of(entry.arguments)
        for entry in attempt.transcript
        if entry.kind == "tool_call" and not entry.error and entry.call_id not in failed
    )
    return len({" ".join(sql.split()) for sql in asked if sql is not None})


def query_behind(
    transcript: list[Entry], replies: Sequence[Reply], verified: str | None = None, text: str = ""
) -> AgentQuery | None:
    """As `agent_query`, of what an attempt is made of: `verified` is the query that the server verified (else that
    of the last reply counts), `text` what was answered where there are no `replies`."""
    if not verified and replies:
        verified = replies[-1].rows_sql
    if verified and verified.strip() and (whole := _on_the_database(verified, transcript)) is not None:
        return AgentQuery(whole, "verification")
    return _called(transcript) or _fenced([reply.text for reply in reversed(replies)] or [text])


def _on_the_database(verified: str, transcript: list[Entry]) -> str | None:
    """A verification query with the results that it reads, `query_3e957ee4` (formats/nao.md 4), as the queries that
    gave them; None: it reads a result whose query is not in the record."""
    queries = _results(transcript)
    words = {word.lower() for word in re.findall(r"\w+", verified)}
    read = [name for name in queries if name in words]
    if any(_RESULT_NAME.fullmatch(word) and word not in queries for word in words):
        return None
    if not read:
        return verified
    if len(read) == 1 and re.fullmatch(
        rf'\s*select\s+\*\s+from\s+"?{re.escape(read[0])}"?\s*;?\s*', verified, re.IGNORECASE
    ):
        return queries[read[0]]
    tables = ",\n".join(f"{name} AS (\n{queries[name]}\n)" for name in read)
    begins = _WITH.match(verified)
    if begins is None:
        return f"WITH {tables}\n{verified.strip()}"
    return f"{begins[1].lstrip()}WITH{begins[2] or ''} {tables},{verified[begins.end() :].rstrip()}"


def _results(transcript: list[Entry]) -> dict[str, str]:
    """The queries of the calls that went well, by the id of their result, in small letters."""
    asked = {
        entry.call_id: sql
        for entry in transcript
        if entry.kind == "tool_call" and entry.call_id and (sql := _sql_of(entry.arguments)) is not None
    }
    from tui_eval.frames.query_words import bare_statement

    found: dict[str, str] = {}
    for entry in transcript:
        if entry.kind != "tool_result" or entry.error or entry.call_id not in asked:
            continue
        result = _object(entry.result)
        name = result.get("id") if isinstance(result, dict) else None
        if isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name):
            found[name.lower()] = bare_statement(asked[entry.call_id])
    return found


def _object(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def verifies_others(query: AgentQuery, transcript: Sequence[Entry]) -> bool:
    """Whether a query is none that the agent ran but what its server made of the results of those."""
    ran = {" ".join(one.sql.split()).rstrip("; ") for one in queries_called(transcript)}
    return (
        query.source == "verification" and bool(ran) and " ".join(query.sql.split()).rstrip("; ") not in ran
    )


def _called(transcript: list[Entry]) -> AgentQuery | None:
    return next(queries_called(transcript), None)


def queries_called(transcript: Sequence[Entry]) -> Iterator[AgentQuery]:
    """The queries of calls that went well, the last one first; where none did, the last one that failed."""
    failed = {entry.call_id for entry in transcript if entry.kind == "tool_result" and entry.error}
    last: AgentQuery | None = None
    well = False
    for entry in reversed(transcript):
        if entry.kind != "tool_call" or not re.search("sql|query", entry.name, re.IGNORECASE):
            continue
        sql = _sql_of(entry.arguments)
        if sql is None or ("sql" not in entry.name.lower() and not _BEGINS.match(sql)):
            continue
        found = AgentQuery(sql, "tool", entry.name, entry.call_id)
        if not entry.error and (entry.call_id is None or entry.call_id not in failed):
            well = True
            yield found
        last = last or found
    if last is not None and not well:
        yield last


def _sql_of(arguments: Any) -> str | None:
    arguments = _object(arguments)
    if isinstance(arguments, dict):
        return next((arguments[key] for key in _ARGUMENTS if _is_text(arguments.get(key))), None)
    return arguments if _is_text(arguments) and _BEGINS.match(arguments) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _fenced(texts: Sequence[str]) -> AgentQuery | None:
    for text in texts:
        found = None
        for language, block in _blocks(text[-_MOST:]):
            if block and (language in _LANGUAGES or (not language and _BEGINS.match(block))):
                found = block
        if found is not None:
            return AgentQuery(found, "reply")
    return None


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a Markdown text that are closed: language in small letters, and what is inside."""
    fence, language, inside = "", "", list[str]()
    for line in text.splitlines():
        if fence:
            bare = line.strip()
            if len(bare) >= len(fence) and not bare.strip(fence[0]):
                yield language, "\n".join(inside).strip()
                fence = ""
            else:
                inside.append(line)
        elif found := _FENCE.match(line):
            fence, language, inside = found[1], found[2].lower(), []
