"""What a regular expression of an assertion matched in a reply, so that it can be marked there.

Patterns come from suites and may backtrack without end, so they are looked for in a thread, by polars' engine,
whose time grows with the text only. What that engine does not know (lookaround, backreferences) Python's `re`
looks for, in a process of its own that is ended after `PATIENCE`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.reply import reply_text

LONGEST = 200_000
"""Characters of a reply that are looked through."""
MOST = 200
"""Different texts of one pattern that are kept."""
PATIENCE = 1.0
"""Seconds for all patterns of an attempt that need backtracking."""
_KEPT = 500


class Matches(NamedTuple):
    """The different texts that a pattern matched, in their order; and where not every place of a text is one
    (lookaround), which of its places are, counted from 0."""

    texts: tuple[str, ...]
    places: dict[str, frozenset[int]] | None = None


_found: dict[tuple[str, str], Matches | None] = {}


def pattern_of(verdict: Verdict) -> str | None:
    """The pattern of a verdict on a text's regular expression; None for other assertions."""
    regex = verdict.type.removeprefix("not-") == "regex" and verdict.target.split(".")[0] in ("text", "")
    return verdict.expected if regex and isinstance(verdict.expected, str) and verdict.expected else None


def look(attempt: Attempt) -> None:
    """Look for the attempt's patterns in its replies. Imports polars and may take long: call it in a thread."""
    left: list[tuple[str, str]] = []
    for verdict in attempt.verdicts:
        pattern = pattern_of(verdict)
        if pattern is None:
            continue
        text = reply_text(attempt, verdict)
        if (pattern, text) not in _found:
            while len(_found) >= _KEPT:
                _found.pop(next(iter(_found)))
            _found[pattern, text] = _search(pattern, text[:LONGEST])
            if _found[pattern, text] is None:
                left.append((pattern, text))
    for key, matches in zip(left, _backtracking(left), strict=False):
        _found[key] = matches


def found_by(pattern: str, text: str) -> Matches | None:
    """What a pattern matched; None where that is not known."""
    return _found.get((pattern, text))


def _search(pattern: str, text: str) -> Matches | None:
    import polars as pl
    from polars.exceptions import PolarsError

    try:
        places = pl.Series([text]).str.extract_all(pattern)[0].to_list()
    except PolarsError:
        return None
    return Matches(tuple(list(dict.fromkeys(place for place in places if place))[:MOST]))


_CHILD = """
import json, re, sys
for line in sys.stdin:
    pattern, text = json.loads(line)
    try:
        spans = [m.span() for m in re.finditer(pattern, text, re.ASCII) if m.end() > m.start()][:2000]
    except (re.error, RecursionError, OverflowError):
        spans = None
    print(json.dumps(spans), flush=True)
"""


def _backtracking(asked: Sequence[tuple[str, str]]) -> Iterable[Matches | None]:
    """What Python makes of patterns, in their order, as far as it gets in time."""
    if not asked or not sys.executable:
        return
    lines = "".join(json.dumps([_as_python(pattern), text[:LONGEST]]) + "\n" for pattern, text in asked)
    command = [sys.executable, "-I", "-S", "-c", _CHILD]
    said: Any
    try:
        said = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=PATIENCE).stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    except OSError:
        return
    for (_, text), line in zip(asked, said.decode().splitlines(), strict=False):
        spans = json.loads(line)
        yield None if spans is None else _matches(text, spans)


def _as_python(pattern: str) -> str:
    """JavaScript's way of naming groups in Python's."""
    return re.sub(r"\\k<(\w+)>", r"(?P=\1)", re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern))


def _matches(text: str, spans: Sequence[tuple[int, int]]) -> Matches:
    places: dict[str, set[int]] = {}
    for start, end in spans:
        found = text[start:end]
        if found in places or len(places) < MOST:
            places.setdefault(found, set()).add(_number(text, found, start))
    return Matches(tuple(places), {found: frozenset(numbers) for found, numbers in places.items()})


def _number(text: str, found: str, start: int) -> int:
    """How many places of a text come before this one, counted as a search goes from one to the next."""
    number, at = 0, text.find(found)
    while 0 <= at < start:
        number, at = number + 1, text.find(found, at + len(found))
    return number
