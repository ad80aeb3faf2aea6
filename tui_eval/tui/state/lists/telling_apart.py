"""What lists need so that no two rows of different cases read the same, however narrow they are. Pure.

A name that is cut keeps the part in which it differs from its neighbours; rows of the same name in different
suites say which suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tui_eval.tui.state.text.fitting import cell_len, end_of, shorten

_ALIKE = 4
"""Characters that names must have in common at their beginning before what they share is left out."""


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
    if width < 6 or cell_len(text[: differs.own + 1]) < width:
        return shorten(text, width)
    front = shorten(text, max((width - 1) // 3, _ALIKE), sign="").rstrip()
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
