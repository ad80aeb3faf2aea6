"""The patterns of a JSON schema, which are JavaScript's with the flag `u`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tui_eval.assertions.evidence import CannotJudge, Evidence
from tui_eval.assertions.promptfoo import code
from tui_eval.assertions.promptfoo.script_context import ScriptFailed
from tui_eval.javascript.regex import translated

Matches = Callable[[str, str], bool]
"""Whether a pattern is found in a text."""

# Escapes that mean the same with the flag: there, a backslash before anything else is an error.
_SAME_WITH_FLAG = re.compile(r"(?:[^\\]|\\[dDwWsSbBnrtfv^$\\.*+?()\[\]{}|/])*+")
_TEST = """
const found = {};
for (const pattern of context.patterns) {
  try {
    const expression = new RegExp(pattern, 'u');
    found[pattern] = context.texts.map((text) => expression.test(text));
  } catch (error) {
    return {invalid: error.message, pattern};
  }
}
return {found};
"""


def simple(pattern: str, text: str, *, unknown: bool = True) -> bool:
    """Without an isolate: patterns that mean the same in Python; any other gives `unknown`."""
    known = _here(pattern)
    return unknown if known is None else known.search(text) is not None


def of(schema: Any) -> set[str]:
    """The patterns of a schema that only JavaScript can decide."""
    return {pattern for pattern in _patterns(schema) if _here(pattern) is None}


async def matcher(patterns: set[str], values: Sequence[Any], evidence: Evidence) -> Matches:
    """`Matches` for every text within values, decided at once in the isolate.

    Raises:
        CannotJudge: a pattern is invalid, or there is no isolate.
    """
    if not patterns:
        return simple
    texts = sorted({text for value in values for text in _texts(value)})
    context = {"patterns": sorted(patterns), "texts": texts}
    try:
        answer = await code.run_javascript(_TEST, {"output": "", "context": context}, evidence)
    except ScriptFailed as error:
        raise CannotJudge(f"the schema's patterns could not be tried: {error}") from error
    if "invalid" in answer:
        raise CannotJudge(f"Invalid regular expression: /{answer['pattern']}/u: {answer['invalid']}")
    known = {
        pattern: dict(zip(texts, found, strict=True)) for pattern, found in dict(answer["found"]).items()
    }
    return lambda pattern, text: known[pattern][text] if pattern in known else simple(pattern, text)


def _here(pattern: str) -> re.Pattern[str] | None:
    if not _SAME_WITH_FLAG.fullmatch(pattern):
        return None
    found = translated(pattern)
    # Python's search cannot be stopped; what repeats without end twice may take too long.
    return found[0] if found and found[1] <= 1 else None


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _patterns(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "pattern" and isinstance(value, str):
                yield value
            elif key == "patternProperties" and isinstance(value, dict):
                yield from value
            yield from _patterns(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
