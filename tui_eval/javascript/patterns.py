r"""JavaScript's regular expressions: judged in one place, and what they matched told from there.

A safe subset runs on Python's `re`, everything else in an isolate. Only patterns whose meaning is the same
(`\w`, `\d`, `\b` and case are ASCII's, `\s` is JavaScript's, `.` stops at four line ends, `$` at the very end)
and whose time is bounded run in this process: a pattern that backtracks without end would stop everything
else, and only the isolate can be killed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

MOST = 200
"""Matches of one pattern that are reported."""
LONGEST = 200_000
"""Characters of a text in which all matches are reported; of a longer one the first."""
STEPS = 4_000_000
"""Steps that a pattern may take in this process."""

_SPACE = "\\t-\\r \\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
_LINE_ENDS = "\\n\\r\\u2028\\u2029"
_SAME_ESCAPES = "dDwWbnrtfv"
_PUNCTUATION = "\\^$.*+?()[]{}|/-\"'#%&,:;<=>@!`~ "
_COUNT = re.compile(r"\{(\d{1,3})(,(\d{0,3}))?\}")

FIRST = """
try {
  const found = new RegExp(context.pattern).exec(output);
  return found ? {start: found.index, end: found.index + found[0].length} : {};
} catch (error) {
  return {invalid: error.message};
}
"""
"""JavaScript that looks for `context.pattern` in `output`: `{}`, the first match's place, or why it is invalid."""
ALL = """
const expression = new RegExp(context.pattern, 'g'), found = [];
for (const match of output.matchAll(expression)) {
  if (match[0]) found.push([match.index, match.index + match[0].length]);
  if (found.length >= context.most) break;
}
return found;
"""
"""JavaScript that gives the places of `context.pattern` in `output`, but empty ones."""

Place = tuple[int, int]
"""Where a match begins and ends, in code points."""


def within_time(expression: tuple[re.Pattern[str], int], text: str) -> re.Pattern[str] | None:
    """The pattern that `translated` gave where it may be tried on a text in this process."""
    compiled, unbounded = expression
    cheap = (len(text) + 1) ** (unbounded + 1) <= STEPS
    astral = not text.isascii() and max(text, default="") > "\uffff"
    return compiled if cheap and not astral else None


def places(expression: re.Pattern[str], text: str, most: int = MOST) -> list[Place]:
    """Where a pattern matches, as `matchAll` walks through a text; empty matches are left out."""
    found: list[Place] = []
    at = 0
    while len(found) < most and (match := expression.search(text, at)) is not None:
        start, end = match.span()
        if end > start:
            found.append((start, end))
        at = end if end > start else end + 1
        if at > len(text):
            break
    return found


def from_units(text: str, found: Any) -> list[Place]:
    """Places that an isolate counted in UTF-16 units, in code points; a half pair belongs to its letter."""
    if not found or text.isascii() or max(text) <= "\uffff":
        return [(int(start), int(end)) for start, end in found]
    wanted = sorted({int(unit) for place in found for unit in place})
    at, units, points = 0, 0, dict[int, int]()
    for unit in wanted:
        while units < unit and at < len(text):
            units += 2 if text[at] > "\uffff" else 1
            at += 1
        points[unit] = at
    return [(points[int(start)], points[int(end)]) for start, end in found]


@lru_cache(maxsize=256)
def constant(pattern: str, flags: str = "") -> re.Pattern[str]:
    """A pattern of promptfoo's own code.

    Raises:
        ValueError: it means something else in Python.
    """
    found = translated(pattern, flags)
    if found is None:
        raise ValueError(f"/{pattern}/{flags} means something else in Python")
    return found[0]


@lru_cache(maxsize=1024)
def translated(pattern: str, flags: str = "") -> tuple[re.Pattern[str], int] | None:
    """A JavaScript pattern for `re`, with its number of open-ended repeats; None: an isolate must decide.

    `flags` may be `i`.
    """
    if flags not in ("", "i") or (flags and not pattern.isascii()):
        return None
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
        return re.compile("".join(out), re.ASCII | (re.IGNORECASE if flags else 0)), unbounded
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
    if letter == "B" and not inside:
        return r"(?!\b)"  # Python's own does not match an empty text
    if letter in _SAME_ESCAPES and not (inside and letter == "b"):
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
