"""What lists need so that no two rows of different cases read the same, however narrow they are. Pure.

A name that is cut keeps the part in which it differs from its neighbours; rows of the same name in different
suites say which suite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from tui_eval.tui.state.text.fitting import cell_len, end_of, shorten

_ALIKE = 4
"""Characters that names must have in common at their beginning before what they share is left out."""


_SEEN = 3
"""Characters from which on a difference at the end of a cut name is seen as one."""


class Differs(NamedTuple):
    """Where a name differs from the others it stands among: from the character `own` on from every one of them, from
    `shared` on from any of those that begin alike."""

    own: int = 0
    shared: int = 0


NOT_AT_ALL = Differs()


def differences(names: Sequence[str]) -> dict[str, Differs]:
    """Of each of these names where it differs from the others; those that differ at once are left out."""
    ordered = sorted(set(names))
    alike = [_common(one, other) for one, other in pairwise(ordered)]
    found: dict[str, Differs] = {}
    first = 0
    for number in range(len(ordered)):
        if number < len(alike) and alike[number] >= _ALIKE:
            continue
        shared = min(alike[first:number], default=0)
        for at in range(first, number + 1) if number > first else ():
            own = max(alike[at - 1] if at > first else 0, alike[at] if at < number else 0)
            found[ordered[at]] = Differs(own, shared)
        first = number + 1
    return found


def _common(one: str, other: str) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def cut(text: str, differs: Differs, width: int) -> str:
    """The text in at most `width` cells; what is left out does not tell it from the others, where there is room for
    what does."""
    if cell_len(text) <= width:
        return text
    if width < 6 or cell_len(text[: differs.own + _SEEN]) < width:
        return shorten(text, width)
    if not (rest := text[differs.shared :]):  # the others go on after it
        return shorten(text, width)
    front = shorten(text, max((width - 1) // 3, _ALIKE, width - 1 - cell_len(rest)), sign="").rstrip()
    rest = text[max(differs.shared, len(front)) :]
    room = width - cell_len(front) - 1
    if cell_len(rest) > room:
        half = max((room - 1) // 2, 1)
        front, rest = f"{front}…{shorten(rest, room - 1 - half, sign='')}", end_of(rest, half, sign="")
    return f"{front}…{rest}"


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """How many cells each of several texts gets of the room: the longest give way first."""
    given = list(wanted)
    while sum(given) > max(room, 0):
        longest = max(given)
        number = len(given) - 1 - given[::-1].index(longest)
        below = max((one for one in given if one < longest), default=0)
        given[number] = max(below, longest - (sum(given) - max(room, 0)))
        if given[number] == longest:
            given[number] -= 1
    return given


NAMED = 8
"""Rows that are named in one line."""
_GAP = re.compile(r" · | ")


def named_together(rows: Sequence[str], siblings: Sequence[str]) -> str:
    """Some of a test's rows in one line, `siblings` being all of them: where these are each model with each prompt,
    `atlas-mini` are all of its prompts, `terse` is that prompt with all models, and all of them are so many cases."""
    crossed = _crossed(tuple(siblings)) if len(rows) > 1 else None
    if crossed is None:
        return _with_beginning(rows)
    chosen = set(rows)
    if len(chosen) == len(siblings):
        return f"{len(siblings)} cases"
    left = [one for one in siblings if one not in chosen]
    if len(left) == 1 and len(rows) > 2:
        return f"all but {left[0]}"
    by_first: dict[str, list[str]] = {}
    by_second: dict[str, list[str]] = {}
    for first, second in (crossed[one] for one in rows):
        by_first.setdefault(first, []).append(second)
        by_second.setdefault(second, []).append(first)
    many = len({second for _, second in crossed.values()})
    if all(len(seconds) == many for seconds in by_first.values()):
        return _list(by_first)
    if all(len(firsts) == len(siblings) // many for firsts in by_second.values()):
        return _list(by_second)
    parts = (
        first if len(seconds) == many else f"{first} {_list(seconds)}" for first, seconds in by_first.items()
    )
    return "; ".join(islice(parts, NAMED))


def _with_beginning(rows: Sequence[str]) -> str:
    """The rows, the words that all begin with said once: `atlas-mini terse, friendly`."""
    begin = ""
    for gap in _GAP.finditer(rows[0]):
        if len(rows) > 1 and all(row.startswith(rows[0][: gap.end()]) for row in rows):
            begin = rows[0][: gap.end()]
    return begin + _list(row.removeprefix(begin) for row in rows)


def _list(names: Iterable[str]) -> str:
    return ", ".join(islice(names, NAMED))


@lru_cache(maxsize=256)
def _crossed(labels: tuple[str, ...]) -> dict[str, tuple[str, str]] | None:
    """Both parts of each of these labels, where they are each of some names with each of some others."""
    every = set(labels)
    if len(every) < 4 or len(every) != len(labels):
        return None
    for gap in _GAP.finditer(labels[0]):
        begin, end = labels[0][: gap.end()], labels[0][gap.start() :]
        firsts = [label.removesuffix(end) for label in labels if label.endswith(end)]
        seconds = [label.removeprefix(begin) for label in labels if label.startswith(begin)]
        found = {f"{one}{gap[0]}{other}": (one, other) for one in firsts for other in seconds}
        if min(len(firsts), len(seconds)) > 1 and found.keys() == every and not {*firsts} & {*seconds}:
            return found
    return None


def suites_apart(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Of each of these rows (name, what tells it from others of its suite, suite) as much of the end of its suite's path
    as tells it from rows of other suites that read the same; empty where there are none."""
    same: dict[tuple[str, str], set[str]] = {}
    for name, variant, suite in rows:
        same.setdefault((name, variant), set()).add(suite)
    ends: dict[tuple[str, str], dict[str, str]] = {
        key: _ends(suites) for key, suites in same.items() if len(suites) > 1
    }
    return [ends.get((name, variant), {}).get(suite, "") for name, variant, suite in rows]


def _ends(paths: set[str]) -> dict[str, str]:
    """Of each path one part that no other has at its place from the end, else the shortest end that differs."""
    parts = {path: path.split("/") for path in paths}
    for depth in range(1, max(map(len, parts.values())) + 1):
        at = {path: of[-depth] if len(of) >= depth else "" for path, of in parts.items()}
        if len(set(at.values())) == len(at) and all(at.values()):
            return at
    deepest = max(map(len, parts.values()))
    for depth in range(1, deepest + 1):
        ends = {path: "/".join(of[-depth:]) for path, of in parts.items()}
        if len(set(ends.values())) == len(ends):
            return ends
    return {path: path for path in paths}
