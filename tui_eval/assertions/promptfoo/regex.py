"""JavaScript regular expressions: a safe subset on Python's `re`, everything else in the isolate.

Only patterns whose meaning is the same and whose time is bounded run in this process: a pattern
that backtracks without end would stop everything else, and only the isolate can be killed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from functools import lru_cache

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import code
from tui_eval.assertions.promptfoo.call import Call, Result, invariant
from tui_eval.assertions.promptfoo.script_context import ScriptFailed

_SPACE = "\\t-\\r \\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
_LINE_ENDS = "\\n\\r\\u2028\\u2029"
_SAME_ESCAPES = "dDwWbBnrtfv"
_PUNCTUATION = "\\^$.*+?()[]{}|/-\"'#%&,:;<=>@!`~ "
_COUNT = re.compile(r"\{(\d{1,3})(,(\d{0,3}))?\}")
_STEPS = 20_000_000

_TEST = """
try {
  return {matches: new RegExp(context.pattern).test(output)};
} catch (error) {
  return {invalid: error.message};
}
"""


async def _in_isolate(pattern: str, text: str, call: Call) -> tuple[bool, str | None]:
    try:
        answer = await code.run_javascript(
            _TEST, {"output": text, "context": {"pattern": pattern}}, call.evidence
        )
    except ScriptFailed as error:
        raise CannotJudge(f"{call.assertion.type}: {error}") from error
    return bool(answer.get("matches")), answer.get("invalid")


def regex(call: Call) -> Result | Awaitable[Result]:
    """Search with a JavaScript pattern without flags; one that is invalid fails, inverted or not."""
    pattern = call.value
    invariant(isinstance(pattern, str) and pattern, f'"{call.kind}" assertion type must have a string value')
    compiled = translated(pattern)
    if compiled is not None:
        expression, unbounded = compiled
        cheap = (len(call.text) + 1) ** (unbounded + 1) <= _STEPS
        astral = not call.text.isascii() and max(call.text, default="") > "\uffff"
        if cheap and not astral:
            return _result(call, expression.search(call.text) is not None)
    return _later(call)


async def _later(call: Call) -> Result:
    matches, invalid = await _in_isolate(call.value, call.text, call)
    if invalid is not None:
        if not invalid.startswith("Invalid regular expression"):
            invalid = f"Invalid regular expression: /{call.value}/: {invalid}"
        return Result(False, 0.0, f"Invalid regex pattern: {invalid}", actual=call.text)
    return _result(call, matches)


def _result(call: Call, matches: bool) -> Result:
    return call.result(
        matches,
        f'Expected output to match regex "{call.value}"',
        f'Expected output to not match regex "{call.value}"',
    )


@lru_cache(maxsize=1024)
def translated(pattern: str) -> tuple[re.Pattern[str], int] | None:
    """A JavaScript pattern for `re`, with its number of open-ended repeats; None: the isolate must decide."""
    if len(pattern) > 2000 or pattern.startswith("*") or max(pattern, default="") > "\uffff":
        return None
    out: list[str] = []
    place, unbounded, atom, depth = 0, 0, False, 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "\\":
            piece = _escape(pattern, place, inside=False)
            if piece is None:
                return None
            out.append(piece)
            atom = pattern[place + 1] not in "bB"
            place += 2
        elif letter == "[":
            found = _class(pattern, place)
            if found is None:
                return None
            piece, place = found
            out.append(piece)
            atom = True
        elif letter in "*+?{":
            match = _COUNT.match(pattern, place)
            # A repeated group is where backtracking explodes: the isolate takes it.
            if not atom or (letter == "{" and not match) or out[-1] == ")":
                return None
            if letter == "{" and match:
                low, comma, high = match.groups()
                if high and int(high) < int(low):
                    return None
                unbounded += bool(comma) and (not high or int(high) > 16)
                out.append(match.group())
                place = match.end()
            else:
                unbounded += letter in "*+"
                out.append(letter)
                place += 1
            if pattern[place : place + 1] == "?":
                out.append("?")
                place += 1
            atom = False
        elif letter == "(":
            if pattern[place + 1 : place + 2] == "?":
                opening = pattern[place : place + 3]
                if opening not in ("(?:", "(?=", "(?!"):
                    return None
                out.append(opening)
                place += 3
            else:
                out.append("(")
                place += 1
            depth += 1
            atom = False
        elif letter == ")":
            if depth == 0:
                return None
            depth -= 1
            out.append(")")
            place += 1
            atom = True
        elif letter in "]}":
            return None
        else:
            out.append({".": f"[^{_LINE_ENDS}]", "$": r"\Z"}.get(letter, letter))
            atom = letter not in "^$|"
            place += 1
    if depth:
        return None
    try:
        return re.compile("".join(out), re.ASCII), unbounded
    except re.error:
        return None


def _escape(pattern: str, place: int, *, inside: bool) -> str | None:
    letter = pattern[place + 1 : place + 2]
    if not letter:
        return None
    if letter == "s":
        return _SPACE if inside else f"[{_SPACE}]"
    if letter == "S":
        return None if inside else f"[^{_SPACE}]"
    if letter in _SAME_ESCAPES and not (inside and letter in "bB"):
        return f"\\{letter}"
    if letter in _PUNCTUATION:
        return re.escape(letter)
    return None


def _class(pattern: str, place: int) -> tuple[str, int] | None:
    out = ["["]
    place += 1
    if pattern[place : place + 1] == "^":
        out.append("^")
        place += 1
    start = place
    everything = {"\\s\\S", "\\S\\s", "\\d\\D", "\\w\\W"}
    if pattern[place : place + 4] in everything and pattern[place + 4 : place + 5] == "]":
        return ("[\\d\\D]", place + 5) if len(out) == 1 else None
    while place < len(pattern) and pattern[place] != "]":
        letter = pattern[place]
        if letter == "\\":
            piece = _escape(pattern, place, inside=True)
            if piece is None:
                return None
            out.append(piece)
            place += 2
        elif letter in "[&~|":
            out.append(f"\\{letter}")
            place += 1
        else:
            out.append(letter)
            place += 1
    if place >= len(pattern) or place == start or "--" in pattern[start:place]:
        return None
    out.append("]")
    return "".join(out), place + 1
