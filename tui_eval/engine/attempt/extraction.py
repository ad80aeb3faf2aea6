"""The agent's answer as rows: its backend's verification, else one more turn asking for them.

The prompt is the one that nao's documentation states; the reply is asked for in a JSON schema where
the agent's protocol has one, and a reply that cannot be read gets one repair turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tui_eval.agents.base import AgentError, Request
from tui_eval.agents.loose_json import one_line, text_of
from tui_eval.assertions.judge_input import RowsAnswer
from tui_eval.events import Finished
from tui_eval.model import Reply
from tui_eval.yaml.yaml_lines import KeyTwice, load_json

PROMPT = (
    "Based on your previous analysis, provide the final answer to the original question.\n"
    "Format the data with these columns: {columns}\n"
    "Return the data as an array of rows, where each row is an object with the column names as keys.\n"
    "If you cannot answer, set data to null."
)
_REPAIR_BEGINS = "That could not be read: "
_REPAIR = (
    _REPAIR_BEGINS + "{problem}. Reply with nothing but one JSON object of the form "
    '{{"data": [{{...}}, ...]}} with the columns {columns}, or {{"data": null}}.'
)
_ASKED = "(?s)" + re.escape(PROMPT).replace(r"\{columns\}", "(.*)")
_BLOCK = re.compile(
    r"""(?msx) (?<![`~]) (?P<fence>(?>`{3,}|~{3,}))
    (?: (?P<inline>[^\n`~]++)(?P=fence)
    | [ \t]*+ (?:[\w{.][^\s`~]*+)?+ (?:[ \t]++[\w-]++=[^\n`~]*+)?+ [ \t]*+ \r?\n
      (?P<inside>.*?) (?: ^[ \t]*(?P=fence) | (?<![`~])(?P=fence)[`~]*+[ \t]*+\r?$ | \Z ) )"""
)
"""A fenced block of any language, one after the other: what ends a block of SQL, or code among words, begins
none. No part of a reply is looked at again from each of its places: an agent can say what takes minutes
else."""

Ask = Callable[[Request], Awaitable[Reply]]


def schema(columns: list[str]) -> dict[str, Any]:
    """The JSON schema of the reply: `{data: [row, …] | null}`, a row holding every column."""
    cell = {"type": ["string", "number", "boolean", "null"]}
    row = {
        "type": "object",
        "properties": {name: cell for name in columns},
        "required": list(columns),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"data": {"anyOf": [{"type": "array", "items": row}, {"type": "null"}]}},
        "required": ["data"],
        "additionalProperties": False,
    }


def verified(reply: Reply) -> RowsAnswer:
    """The rows that the agent's own backend verified."""
    return RowsAnswer(
        rows=reply.rows,
        error=reply.rows_error,
        sql=reply.rows_sql,
        expected=reply.expected_rows,
        columns=reply.rows_columns,
        source="verification",
    )


def asked_columns(text: str) -> str | None:
    """The columns, as they stand in the prompt, that an extra turn asked for; empty of a repair turn, None of
    what is no such turn."""
    found = re.fullmatch(_ASKED, text)
    return found[1] if found is not None else "" if text.startswith(_REPAIR_BEGINS) else None


def listed(columns: list[str]) -> str:
    """Columns as the prompt lists them."""
    return ", ".join(columns)


async def extract(ask: Ask, turn: int, columns: list[str]) -> RowsAnswer:
    """Ask for the final answer as rows with these columns; `turn` is the number of the extra turn.

    A reply that is not readable after one repair turn is an answer with `rows` None and an error.
    """
    reply = await ask(Request(turn=turn, text=PROMPT.format(columns=listed(columns)), schema=schema(columns)))
    answer, problem = read_answer(reply, columns)
    if not problem:
        return answer
    text = _REPAIR.format(problem=problem, columns=listed(columns))
    return read_answer(await ask(Request(turn=turn + 1, text=text, schema=schema(columns))), columns)[0]


def read_answer(reply: Reply, columns: list[str]) -> tuple[RowsAnswer, str]:
    """The answer in the reply to an extra turn, and why it could not be read (empty: it could)."""
    if reply.rows is not None and not reply.verified:
        return RowsAnswer(rows=reply.rows, source="extraction", columns=columns), ""
    value, problem = _answered(reply, columns)
    if isinstance(value, dict) and (said := value.get("error")):
        # The agent says itself that this is no answer, whatever rows stand beside it: nothing to repair.
        return RowsAnswer(error=f"the agent reported an error: {one_line(text_of(said), 200)}"), ""
    rows = None
    if problem is None:
        rows, problem = _rows_in(value)
    if problem is not None:
        told = f"no data returned: the agent's rows could not be read: {problem}"
        return RowsAnswer(error=told), problem
    error = None if rows is not None else "the agent could not answer (data is null)"
    return RowsAnswer(rows=rows, error=error, source="extraction", columns=columns), ""


def _answered(reply: Reply, columns: list[str]) -> tuple[Any, str | None]:
    """The JSON value that a reply is or holds, also inside a fenced block, and what is wrong with it (None:
    nothing). Of several the last one counts, below a block an object as it is asked for: an agent corrects itself.
    Where the last one is cut off, or only quoted perhaps, the one above it is no answer either."""
    if reply.output is not None:
        return reply.output, None
    alone: list[Any] = []
    quoted: list[Any] = []
    broken = False
    for found in _candidates(reply.text, columns):
        try:
            value = load_json(found.text)
        except KeyTwice as doubled:
            if found.where == "below" and not _OF_AN_OBJECT.search(found.text):
                continue
            return None, str(doubled)
        except (ValueError, RecursionError):
            broken = broken or found.meant
            continue
        if found.where == "below" and not _corrects(value):
            continue  # braces among words, or rows that these speak of
        if value is not None and not isinstance(value, dict | list):
            alone.append(value)  # a number in a block of text
        elif found.in_sentence:
            quoted.append(value)
        elif broken and found.where != "words":
            return None, "below rows that can be read stands JSON that cannot"
        elif any(_meaning(other) != _meaning(value) for other in quoted):
            return None, "below its rows a sentence has others, or none"
        else:
            return value, None
    if quoted or alone:
        return (quoted or alone)[0], None
    return None, "it is not JSON"


def _meaning(value: Any) -> tuple[Any, Any]:
    """What an answer says: its error, its rows."""
    return value.get("error") if isinstance(value, dict) else None, _rows_in(value)


def _corrects(value: Any) -> bool:
    """Whether a value below a block is an answer as it is asked for, not a chart's data or an error that was none."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(row, dict) for row in value)
    if not isinstance(value, dict):
        return False
    if value.get("error"):
        return True
    return "data" in value and (value.keys() <= {"data", "error"} or _rows_in(value)[1] is None)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What of a reply may be its answer: a fenced block, an object below one, or something among words. `meant`: it is
    JSON, though it may be cut off; `in_sentence`: words stand before it in its line, and do not lead up to it, or it is
    a list alone, as which an example is shown, too."""

    text: str
    where: Literal["block", "below", "words"]
    meant: bool = False
    in_sentence: bool = False


def _candidates(text: str, columns: list[str]) -> Iterator[_Candidate]:
    """What of a reply may be its answer, the likeliest first."""
    blocks, end = list(_BLOCK.finditer(text)), len(text)
    for block in reversed(blocks):
        yield from reversed(list(_objects(text, block.end(), end, columns)))
        inline, inside = block["inline"], block["inside"] or ""
        meant = _MEANT_AS_JSON.match(inside) is not None
        yield _Candidate(inline or inside, "block", meant, bool(inline) and _in_sentence(text, block.start()))
        end = block.start()
    yield _Candidate(text, "words")
    for found in _outermost(text):
        yield _Candidate(found, "words")


_READING = json.JSONDecoder()
_OBJECT = re.compile(r'(?P<listed>(?<!":)(?<!": )\[\s*)?\{\s*"')
_MEANT_AS_JSON = re.compile(r"""\s*(?:\[\s*)?\{\s*["'}]""")
_MOST_BROKEN = 5
"""Objects that cannot be read, of those below a block: each may be looked at to the end of the reply."""


def _objects(text: str, begin: int, end: int, columns: list[str]) -> Iterator[_Candidate]:
    """The objects among the words of a part of a reply, and lists of them that no sentence holds and that have one of
    the columns: others are no rows."""
    left = _MOST_BROKEN
    part = text[begin:end]
    at = 0
    while left and (found := _OBJECT.search(part, at)) is not None:
        start = found.start()
        sentence = _in_sentence(text, begin + start)
        listed = (
            found["listed"] is not None and not sentence and _has_one(part[start : start + _KEYS], columns)
        )
        if found["listed"] is not None and not listed:
            start = found.end("listed")
        try:
            _, at = _READING.raw_decode(part, start)
        except (ValueError, RecursionError):
            left -= 1
            at = found.end()
            meant = (listed or _OF_AN_OBJECT.match(part, at - 1) is not None) and not sentence
            yield _Candidate(part[start:], "below", meant)
        else:
            yield _Candidate(part[start:at], "below", in_sentence=sentence or listed)


_KEYS = 2_000
"""Characters of a list in which one of the columns is looked for."""


def _has_one(text: str, columns: list[str]) -> bool:
    text = text.casefold()
    return not columns or any(f'"{name.casefold()}"' in text for name in columns)


_LOOKED_AT = 200


def _in_sentence(text: str, at: int) -> bool:
    """Whether words stand before a place in its line that do not lead up to it, as `Correct:` does."""
    before = text[max(0, at - _LOOKED_AT) : at].rpartition("\n")[2].strip(" \t\r*_>-")
    return bool(before) and before[-1] not in ":："


def _rows_in(value: Any) -> tuple[list[dict[str, Any]] | None, str | None]:
    """Rows of the object `{data: …}` or of a list alone, and what is wrong with them."""
    if isinstance(value, dict):
        if "data" not in value:
            return None, "it has no key `data`"
        value = value["data"]
    if value is None:
        return None, None
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        return None, "`data` is not a list of objects"
    return value, None


_OF_AN_OBJECT = re.compile(r"""["'](?:data|error)["']\s*:""")

_BEGUN = re.compile(r"""\[\s*\{\s*["'}]|\{\s*["'](?:data|error)["']\s*:""")
"""Rows, or an object of them, that begin."""


def _outermost(text: str) -> list[str]:
    """What could be the list or the object that stands among words, the one that begins first before the other. A list
    beside `"data":` is none: it is of an object that cannot be read, which may say more, or there is one, too. Nor is
    what stands above another that is cut off."""
    ends = [(text.find(begins), text.rfind(ends)) for begins, ends in ("{}", "[]")]
    if _OF_AN_OBJECT.search(text, 0, max(ends[1][0], 0)) or _OF_AN_OBJECT.search(text, max(ends[1][1], 0)):
        del ends[1]
    return [
        text[start : end + 1]
        for start, end in sorted(ends)
        if 0 <= start < end and _BEGUN.search(text, end) is None
    ]


async def last_reply(events: AsyncIterator[Any], take: Callable[[Any], None]) -> Reply:
    """Run a turn to its end, handing each event to `take`; the reply of its `Finished`."""
    reply: Reply | None = None
    try:
        async for event in events:
            take(event)
            if isinstance(event, Finished):
                reply = event.reply
    except AgentError as error:
        if error.spent is not None:
            take(error.spent)
        raise
    return reply or Reply(turn=0)
