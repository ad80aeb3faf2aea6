"""What lists need so that no two rows of different cases read the same, however narrow they are. Pure.

A name that is cut keeps the part in which it differs from its neighbours; rows of the same name in different
suites say which suite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, islice, pairwise, product
from math import prod
from string import digits
from typing import NamedTuple

from tui_eval.case_names import suites_apart
from tui_eval.tui.state.text.fitting import cell_len, end_of, shorten
from tui_eval.tui.state.text.lines import one_line

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
KEPT_OF_NAME = 14
"""Cells that a name keeps beside what tells it from others of its name, and not from all."""
_BEGINNING = 8
"""The same of a name that differs from the others at its beginning."""


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


def apart_from(name: str, others: Iterable[str]) -> Differs:
    """Where a name differs from these others, of which it may be one."""
    alike = [_common(name, other) for other in others if other != name and other[:_ALIKE] == name[:_ALIKE]]
    alike = [many for many in alike if many >= _ALIKE]
    return Differs(max(alike), min(alike)) if alike else NOT_AT_ALL


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike; by halves, which is quicker than one after the other."""
    alike, end = 0, min(len(one), len(other))
    while alike < end:
        middle = (alike + end + 1) // 2
        if one[alike:middle] == other[alike:middle]:
            alike = middle
        else:
            end = middle - 1
    return alike


def cut(text: str, differs: Differs, width: int) -> str:
    """The text in at most `width` cells; what is left out does not tell it from the others, where there is room for
    what does."""
    if cell_len(text) <= width:
        return text
    if width < 6 or cell_len(text[: differs.own + _SEEN]) < width:
        return shorten(text, width)
    if not (rest := text[differs.shared :]):  # the others go on after it
        return shorten(text, width)
    number = len(text[: differs.shared].rstrip(digits))
    if differs.shared - number <= _ALIKE:  # of a short number no digits are left out: `11` would read `1`
        differs = Differs(differs.own, number)
        rest = text[number:]
    widest = max((width - 1) // 3, _ALIKE, width - 1 - cell_len(rest))
    # All of what tells it from its nearest before more of its end, and of its beginning.
    front = next(
        (
            front
            for cells in (widest, _ALIKE, 0)
            if _needed(text, front := _front(text, cells), differs) <= width - cell_len(front) - 2
        ),
        _front(text, widest),
    )
    rest = text[max(differs.shared, len(front)) :]
    room = width - cell_len(front) - 1
    if cell_len(rest) > room:
        half = max((room - 1) // 2, 1)
        needed = _needed(text, front, differs)
        if needed <= room - 1:
            half = min(half, room - 1 - needed)
        if beginning := shorten(rest, room - 1 - half, sign=""):
            front = f"{front.rstrip('…')}…{beginning.lstrip('…')}"
        rest = end_of(rest, half, sign="") if half else ""
    return f"{front.rstrip('…')}…{rest.lstrip('…')}"


def _front(text: str, cells: int) -> str:
    return shorten(text, cells, sign="").rstrip() if cells else ""


def _needed(text: str, front: str, differs: Differs) -> int:
    """Cells of what tells it from its nearest, behind a beginning."""
    return cell_len(text[max(differs.shared, len(front)) : differs.own + 1])


_WORD_ENDS = re.compile(r"[\s_/:|·-]|(?<!\d)\.")
"""Where a word of a name ends: not within a version, `4.1`."""
_BETWEEN = "· "
"""What stands between an agent and its model: no beginning of a name."""


def heads_apart(names: Sequence[str], width: int) -> list[str]:
    """Each of these names in at most `width` cells, no two of them alike that are not the same. Of those that begin
    alike whole words are left out, and more only where that does not tell them apart."""
    every = list(dict.fromkeys(names))
    found = differences(every)
    told = [
        _without_words(every, found, width),
        [end_of(name, width) if name in found else shorten(name, width) for name in every],
        [cut(name, found.get(name, NOT_AT_ALL), width) for name in every],
    ]
    numbered = [shorten(f"{number} {name}", width) for number, name in enumerate(every, start=1)]
    best = next((one for one in told if len(set(one)) == len(every)), numbered)
    return [dict(zip(every, best, strict=True))[name] for name in names]


def _without_words(names: Sequence[str], found: Mapping[str, Differs], width: int) -> list[str]:
    """The names without the words with which another begins too, with a sign for these where all have room for it."""
    if all(cell_len(name) <= width for name in names):
        return list(names)
    # Those that begin alike keep it where all of them have the room.
    wide = {name[: differs.shared] for name, differs in found.items() if cell_len(name) > width}
    rests = {
        name: name[
            max((end.end() for end in _WORD_ENDS.finditer(name, 0, differs.own + 1)), default=0) :
        ].lstrip(_BETWEEN)
        for name, differs in found.items()
        # One that is the beginning of another has no word of its own: it keeps all of them.
        if name[: differs.shared] in wide and differs.own < len(name)
    }
    sign = "…" if all(cell_len(rest) < width for rest in rests.values()) else ""
    return [
        shorten(name if name not in rests or rests[name] in ("", name) else f"{sign}{rests[name]}", width)
        for name in names
    ]


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """How many cells each of several texts gets of the room: the longest give way first, of equally long ones each."""
    given, left = [0] * len(wanted), max(room, 0)
    shortest_first = sorted(range(len(wanted)), key=lambda number: (wanted[number], -number))
    for waiting, number in zip(range(len(wanted), 0, -1), shortest_first, strict=True):
        given[number] = min(wanted[number], left // waiting)
        left -= given[number]
    return given


_GAP = re.compile(r" · | ")


def named_together(rows: Sequence[str], siblings: Sequence[str]) -> list[str]:
    """What some of a test's rows are called in one line, name by name with the comma before it, `siblings` being all of
    them: where these are each model with each prompt, `atlas-mini` are all of its prompts, `terse` is that prompt with
    all models, and all of them are so many cases. Where variables make rows too, `lang=de` are all of that value."""
    crossed = _crossed(tuple(siblings)) if len(rows) > 1 else None
    if crossed is None:
        return _with_beginning(rows)
    chosen = set(rows)
    if len(chosen) == len(siblings):
        return [f"{len(siblings)} cases"]
    left = [one for one in siblings if one not in chosen]
    if len(left) == 1 and len(rows) > 2:
        return [f"all but {left[0]}"]
    if len(factors := _factors(tuple(siblings))) > 2:
        return _after_commas(_by_what_they_share(rows, factors))
    by_first: dict[str, list[str]] = {}
    by_second: dict[str, list[str]] = {}
    for first, second in (crossed[one] for one in rows):
        by_first.setdefault(first, []).append(second)
        by_second.setdefault(second, []).append(first)
    many = len({second for _, second in crossed.values()})
    if all(len(seconds) == many for seconds in by_first.values()):
        return _after_commas(by_first)
    if all(len(firsts) == len(siblings) // many for firsts in by_second.values()):
        return _after_commas(by_second)
    names: list[str] = []
    for first, seconds in by_first.items():
        own = [first] if len(seconds) == many else [f"{first} {seconds[0]}", *seconds[1:]]
        names += [f"{'; ' if names else ''}{own[0]}", *(f", {one}" for one in own[1:])]
    return names


def _with_beginning(rows: Sequence[str]) -> list[str]:
    """The rows, the words that all begin with said once: `atlas-mini terse`, `friendly`."""
    begin = ""
    for gap in _GAP.finditer(rows[0]):
        if len(rows) > 1 and all(row.startswith(rows[0][: gap.end()]) for row in rows):
            begin = rows[0][: gap.end()]
    return _after_commas([rows[0], *(row.removeprefix(begin) for row in rows[1:])])


def _after_commas(names: Iterable[str]) -> list[str]:
    return [f", {name}" if number else name for number, name in enumerate(names)]


def listed(names: Sequence[str], width: int) -> str:
    """As many of these names (`named_together`) as there is room for, each of them whole, and how many more there
    are: `terse, chat +2`."""
    if width <= 0:
        return ""
    text = "".join(islice(names, width))  # each takes a cell at least
    if cell_len(text) <= width and len(names) <= width:
        return text
    shown, many = "", 0
    while many < len(names) and cell_len(f"{shown}{names[many]} +{len(names):,}") <= width:
        shown += names[many]
        many += 1
    if not many and len(names) > 1:
        shown, many = shorten(names[0], max(width - len(f" +{len(names) - 1:,}"), 1)), 1
    return f"{shown} +{len(names) - many:,}" if many else shorten(names[0], width)


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


@lru_cache(maxsize=256)
def _factors(labels: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """What these labels are made of, where they are each of some names with each of others and so on: models, prompts,
    values of a variable. One of each, with blanks between, is a label, and no word of one is a word of another."""
    crossed = _crossed(labels)
    if crossed is None or any(label != " ".join(pair) for label, pair in crossed.items()):
        return (labels,)
    firsts, seconds = (tuple(dict.fromkeys(pair[part] for pair in crossed.values())) for part in (0, 1))
    words, others = ({word for name in names for word in name.split()} for names in (firsts, seconds))
    return (labels,) if words & others else (firsts, *_factors(seconds))


@lru_cache(maxsize=256)
def _parts(factors: tuple[tuple[str, ...], ...]) -> dict[str, tuple[str, ...]]:
    return {" ".join(parts): parts for parts in product(*factors)}


def _by_what_they_share(rows: Sequence[str], factors: tuple[tuple[str, ...], ...]) -> list[str]:
    """Names of these rows, each of as many as are alike in some factors and are all there is of the others; those that
    stand for most first."""
    left = {label: _parts(factors)[label] for label in rows}
    places = range(len(factors))
    masks = [mask for many in range(1, len(factors)) for mask in combinations(places, many)]
    names: list[str] = []
    for mask in sorted(masks, key=lambda mask: prod(len(factors[place]) for place in mask)):
        alike: dict[str, list[str]] = {}
        for label, parts in left.items():
            alike.setdefault(" ".join(parts[place] for place in mask), []).append(label)
        whole = prod(len(factors[place]) for place in places if place not in mask)
        for name, labels in alike.items():
            if len(labels) == whole:
                names.append(name)
                for label in labels:
                    del left[label]
    return [*names, *left]


class RowName(NamedTuple):
    """What a row of a table of cases is called: its name, what tells it from others of that name, and where each
    differs from those of the other rows."""

    name: str
    variant: str = ""
    differs: Differs = NOT_AT_ALL
    variant_differs: Differs = NOT_AT_ALL
    least: int = 2
    """Cells of the name that are left where there is no room for what stands beside it."""

    def fitted(self, width: int) -> tuple[str, str]:
        """Both, in so many cells together, cut where they tell nothing, the name first."""
        wide, rest = cell_len(self.name), cell_len(self.variant)
        rest = min(rest, max(width - min(wide, self.least), width // 3))
        return cut(self.name, self.differs, width - rest), cut(self.variant, self.variant_differs, rest)


def row_names(rows: Iterable[tuple[str, str, str]]) -> list[RowName]:
    """What these rows (name, what tells it from others of its suite, suite) are called beside each other."""
    told = [(one_line(name), one_line(variant, 200), suite) for name, variant, suite in rows]
    variants = [
        f"{variant} {end}".strip() for (_, variant, _), end in zip(told, suites_apart(told), strict=True)
    ]
    by_name, by_variant = differences([name for name, _, _ in told]), differences(variants)
    apart = len(set(variants)) == len(variants)
    return [
        RowName(
            name,
            variant,
            by_name.get(name, NOT_AT_ALL),
            by_variant.get(variant, NOT_AT_ALL),
            RowName("").least if apart else KEPT_OF_NAME if name in by_name else _BEGINNING,
        )
        for (name, _, _), variant in zip(told, variants, strict=True)
    ]
