"""The SQL behind an agent's answer, as its attempt was recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tui_eval.model import Attempt, Entry

Source = Literal["verification", "tool", "reply"]
_ARGUMENTS = ("sql_query", "sql", "query", "statement")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)")
_LANGUAGES = ("sql", "duckdb", "postgres", "postgresql", "sqlite", "snowflake", "bigquery", "mysql")
_BEGINS = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:select|with|from|values)\b", re.IGNORECASE)
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class AgentQuery:
    """A query and where it was found: what the agent's server verified (`verification`), its last call of a
    tool that runs SQL (`tool`, whose name is `tool`), or a fenced block of its reply (`reply`)."""

    sql: str
    source: Source
    tool: str = ""


def agent_query(attempt: Attempt) -> AgentQuery | None:
    """The query whose rows the answer should be; None: the record has none.

    A call that failed counts only where none went well; of several fenced blocks the last one.
    """
    verified = attempt.data.verification_sql if attempt.data is not None else None
    if not verified and attempt.replies:
        verified = attempt.replies[-1].rows_sql
    if verified and verified.strip():
        return AgentQuery(verified, "verification")
    return _called(attempt.transcript) or _fenced(attempt)


def _called(transcript: list[Entry]) -> AgentQuery | None:
    failed = {entry.call_id for entry in transcript if entry.kind == "tool_result" and entry.error}
    last: AgentQuery | None = None
    for entry in reversed(transcript):
        if entry.kind != "tool_call" or not re.search("sql|query", entry.name, re.IGNORECASE):
            continue
        sql = _sql_of(entry.arguments)
        if sql is None or ("sql" not in entry.name.lower() and not _BEGINS.match(sql)):
            continue
        found = AgentQuery(sql, "tool", entry.name)
        if not entry.error and (entry.call_id is None or entry.call_id not in failed):
            return found
        last = last or found
    return last


def _sql_of(arguments: Any) -> str | None:
    if isinstance(arguments, str) and arguments.lstrip().startswith("{"):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    if isinstance(arguments, dict):
        return next((arguments[key] for key in _ARGUMENTS if _is_text(arguments.get(key))), None)
    return arguments if _is_text(arguments) and _BEGINS.match(arguments) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _fenced(attempt: Attempt) -> AgentQuery | None:
    texts = [reply.text for reply in reversed(attempt.replies)] or [attempt.response_text]
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
