"""One run in the list of runs: its line, what it holds, and the point that it is in the plots. Pure."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tui_eval.store import linked
from tui_eval.store.run_folders import DATABASE
from tui_eval.store.schema import RunSummary
from tui_eval.store.summary import per_known, share
from tui_eval.tui.state.lists.telling_apart import NOT_AT_ALL, Differs, cut, differences
from tui_eval.tui.state.runs.trends import MARKS, Point
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.lines import Line, Span, fit, one_line, plain, width_of

STATES: dict[str, tuple[str, str]] = {
    "running": ("●", "running"),
    "paused": ("●", "running"),
    "waiting": ("●", "muted"),
    "finished": ("✓", "muted"),
    "cancelled": ("⊘", "cancelled"),
    "interrupted": ("!", "error"),
    "damaged": ("!", "error"),
    "newer": ("!", "error"),
}
"""Glyph and style of each state of a run."""
SHORT = "◌"
"""Stands for what an ended run is short of."""
NARROW = 70
"""Columns below which the name of a case needs all there is."""
_NAME = 200
"""Characters of a name."""
_WHOLE = 1_000
"""Columns in which a line has everything."""
_ENDING = re.compile(r"\.(ya?ml|hocon|json|csv)(?=, |$)")


class RunLine(msgspec.Struct, frozen=True):
    """One line of the list: the summary, mean latency in ms, tokens, and how many runs add to it. `orphan`:
    the run that it stands under is gone; `hidden`: a filter hides that."""

    run: RunSummary
    latency_ms: float | None = None
    tokens: int | None = None
    linked: int = 0
    orphan: bool = False
    hidden: bool = False
    """Whether the run that it adds to is not there any more."""

    @property
    def above(self) -> str:
        """The run that it stands under; empty: a whole one."""
        return self.run.linked_to or self.run.part_of

    @property
    def whole(self) -> bool:
        """Whether it is neither a part of another run nor a step."""
        return not self.above and not self.run.stepped

    @property
    def judged(self) -> int:
        """Attempts that passed, failed or erred."""
        return self.run.passed + self.run.failed + self.run.errors

    @property
    def pass_rate(self) -> float | None:
        """Share of those that passed (0–1); None while there are none."""
        return self.run.passed / self.judged if self.judged else None

    @property
    def active(self) -> bool:
        """Whether an engine is at work on it."""
        return self.run.state in ("running", "paused", "waiting")

    @property
    def unread(self) -> bool:
        """Whether it cannot be read; its `what` says why."""
        return self.run.unread

    @property
    def places(self) -> str:
        """The paths that were run, without how many cases that were."""
        return linked.places_of(self.run)

    @property
    def cases(self) -> str:
        """How many cases, as text; empty where that is not known."""
        return linked.cases_of(self.run)

    @property
    def plan(self) -> tuple[str, str]:
        """What it is a run of: its paths, and which shard of them."""
        return self.places, self.part if self.part.startswith("shard ") else ""

    @property
    def part(self) -> str:
        """`shard 3/20` of a run that is one; empty for any other."""
        return linked.shard_in(self.run)


def outcome_sign(run: RunSummary) -> tuple[str, str]:
    """Glyph and style of a run: while it goes on, or where it was cut off, its state; where it has ended, how its
    cases came out, the worst first: attempts that failed of a case that passed all the same are none."""
    if run.state != "finished":
        return STATES.get(run.state, ("?", "muted"))
    for number, sign in (
        (run.failed if run.cases_failed is None else run.cases_failed, ("✗", "failed")),
        (run.errors if run.cases_errors is None else run.cases_errors, ("!", "error")),
        (run.cancelled, STATES["cancelled"]),
        (bool(run.short_of), (SHORT, "error")),
        (run.passed, ("✓", "passed")),
    ):
        if number:
            return sign
    return "–", "muted"


def adding_to(runs: Iterable[RunSummary]) -> Counter[str]:
    """How many runs add to each, by its id: a rerun of a rerun adds to the first run too, under which it stands."""
    linked_to = {run.id: run.linked_to for run in runs if run.linked_to}
    found: Counter[str] = Counter()
    for run_id in linked_to:
        seen, above = {run_id}, linked_to[run_id]
        while above and above not in seen:
            found[above] += 1
            seen.add(above)
            above = linked_to.get(above)
    return found


def _root(one: RunLine, by_id: Mapping[str, RunLine]) -> str:
    """The run that it stands under in the list, itself where it stands under none: a rerun of a rerun stands
    beside it."""
    seen = {one.run.id}
    while one.above in by_id and one.above not in seen:
        one = by_id[one.above]
        seen.add(one.run.id)
    return one.run.id


def under_their_runs(lines: Sequence[RunLine]) -> list[RunLine]:
    """Reruns and steps below the run they belong to, in the order they were made; the runs by the newest of what
    belongs to each, newest first. One whose run is not listed stands by itself."""
    listed = {one.run.id for one in lines}
    lines = [
        msgspec.structs.replace(one, orphan=True) if one.above and one.above not in listed else one
        for one in lines
    ]
    by_id = {one.run.id: one for one in lines}
    groups: dict[str, list[RunLine]] = {}
    for one in sorted(lines, key=lambda line: line.run.id):
        groups.setdefault(_root(one, by_id), []).append(one)
    newest_first = sorted(groups.values(), key=lambda group: group[-1].run.id, reverse=True)
    return [one for group in newest_first for one in group]


def with_hidden(shown: Sequence[RunLine]) -> list[RunLine]:
    """Those that are shown, with which of them stand under a run that is not: no other is taken for it."""
    ids = {one.run.id for one in shown}
    return [
        one if one.hidden == (hidden := bool(one.above) and not one.orphan and one.above not in ids)
        else msgspec.structs.replace(one, hidden=hidden)
        for one in shown
    ]  # fmt: skip


def titles(width: int, *, priced: bool = True) -> Line:
    """The line above the runs, of none of which a cost is known where they are not `priced`."""
    money = f"{'cost':>9} " if priced else ""
    head = f"   {'age':>4} {'passed':>6} {'failed':>6} {'error':>5} {'rate':>4} {money} what"
    return fit((Span(head, "muted"),), width)


Texts = dict[tuple[Hashable, ...], str]
"""Texts of runs' lines that were made already: of a thousand runs they take a quarter of a second."""


def begun_apart(
    lines: Sequence[RunLine],
    width: int = _WHOLE,
    names: Mapping[str, RunName] | None = None,
    texts: Texts | None = None,
) -> dict[str, str]:
    """When runs began that would read the same in so many columns but for their age, by id; with seconds
    where it takes them, else the end of the id. `names`: what their cases are called (`names_apart`); `texts`
    are kept between calls."""
    texts = texts if texts is not None else {}
    by_id = {one.run.id: one for one in lines}
    names = names if names is not None else names_apart(lines)
    alike: dict[tuple[str, str], list[RunLine]] = {}
    for one in lines:
        # Reruns of one case below different runs are told apart by these.
        above = _root(one, by_id) if one.above and one.run.only else ""
        alike.setdefault((_said(one, width, names, texts), above), []).append(one)
    found: dict[str, str] = {}
    for form in ("%H:%M", "%H:%M:%S", ""):
        again: dict[tuple[str, str], list[RunLine]] = {}
        for (_, above), group in alike.items():
            for one in group if len(group) > 1 else ():
                began = time.strftime(form, time.localtime(one.run.started_at)) if form else one.run.id[-5:]
                found[one.run.id] = began
                again.setdefault((_said(one, width, names, texts, began), above), []).append(one)
        alike = again
    return found


def _said(
    one: RunLine,
    width: int,
    names: Mapping[str, RunName],
    texts: Texts,
    begun: str = "",
    *,
    whole: bool = False,
) -> str:
    """Its line without its age; `whole`: with all that it is found by."""
    run, name = one.run, names.get(one.run.id)
    key = (run.id, width, begun, name, one.orphan, one.hidden, whole)
    if (known := texts.get(key)) is not None:
        return known
    said = plain(row_line(one, width, run.started_at, (), begun, name))
    if whole:
        said = f"{run.id} {run.state} {run.what} {run.agents} {run.linked_to or ''} {said}".casefold()
    texts[key] = said
    return said


class RunName(NamedTuple):
    """What the case of a run is called where there is no room for more, and where that differs from the others'."""

    text: str = ""
    differs: Differs = NOT_AT_ALL


def names_apart(lines: Iterable[RunLine]) -> dict[str, RunName]:
    """What the cases of these runs are called beside each other, by the run's id: with the file where there are others
    of that name."""
    named = [(one.run.id, one_line(one.run.only, _NAME), _file(one)) for one in lines if one.run.only]
    files: dict[str, set[str]] = {}
    for _, name, file in named:
        files.setdefault(name, set()).add(file)
    told = {run_id: f"{file} › {name}" if len(files[name]) > 1 else name for run_id, name, file in named}
    found = differences(list(told.values()))
    return {run_id: RunName(name, found.get(name, NOT_AT_ALL)) for run_id, name in told.items()}


def _file(one: RunLine) -> str:
    """The names of what was run, without folders and endings."""
    return _ENDING.sub(
        "",
        ", ".join(
            place.rpartition("/")[2] for place in one_line(one.run.suite or one.places, _NAME).split(", ")
        ),
    )


def row_line(
    one: RunLine,
    width: int,
    now: float,
    marks: Collection[str] = (),
    begun: str = "",
    name: RunName | None = None,
    *,
    priced: bool = True,
) -> Line:
    """One run: mark, state, age, attempts by outcome, pass rate, cost (where any is `priced`), what and with which
    agent; `begun` is when, where another reads the same, and `name` what its case is called beside the others."""
    run = one.run
    glyph, style = outcome_sign(run)
    line: Line = (
        Span("*" if run.id in marks else " ", "note"),
        Span(f"{glyph} ", style),
        Span(f"{formatting.age(now - run.started_at):>4} ", "muted"),
    )
    if one.unread:
        reason = run.what.partition(f"{DATABASE}: ")[2] or run.what
        line = (*line, Span(f"{run.state} ", style), Span(f"{one_line(run.id)}: {one_line(reason)}", "muted"))
        return fit(line, width)
    rate = share(one.pass_rate) if one.pass_rate is not None else ""
    line = (
        *line,
        Span(f"{run.passed:>6,} ", "passed" if run.passed else "muted"),
        Span(f"{run.failed:>6,} ", "failed" if run.failed else "muted"),
        Span(f"{run.errors:>5,} ", "error" if run.errors else "muted"),
        Span(f"{rate:>4} "),
        Span(f"{formatting.cost(run.cost):>9}  " if priced else " ", "muted"),
    )
    if run.state != "finished":
        line = (*line, Span(f"{run.state} ", style))
    elif run.short_of:
        short = outcome_sign(run)[0] if width < NARROW else ""  # the name of what was run needs the room
        line = (*line, Span("" if short == SHORT else f"{SHORT if short else run.short_of} ", "error"))
    if begun:
        line = (*line, Span(f"{begun} ", "muted"))
    if one.above:
        where = "its run is gone · " if one.orphan else "its run is not shown · " if one.hidden else ""
        line = (*line, Span(f"↳ {where}", "note"))
    if run.stepped:
        line = (*line, Span("step ", "note"))
    if run.rules:
        word = run.rules.partition(" ")[0]
        line = (*line, Span(f"{word if width >= NARROW else word[:3]} ", "note"))
    return fit(
        (*line, *_what(one, width - width_of(line), name or RunName(one_line(run.only, _NAME)))), width
    )


def _what(one: RunLine, room: int, name: RunName) -> Line:
    """What was run with which agent, in the longest form for which there is room: a path loses its folders,
    and its ending, before its file's name is cut."""
    agents = one_line(one.run.other_agents, 60)
    known = one.run.other_agents.split(", ")  # all of them, not those for whose names there is room
    many = f"{len(known):,} agents" if len(known) > 1 else agents
    places = one_line(one.run.suite or one.places, 200)
    names = [place.rpartition("/") for place in places.split(", ")]
    short = ", ".join(f"…/{name}" if folder else name for folder, _, name in names)
    bare = _ENDING.sub("", short)
    cases = one_line(one.cases)
    part = f", {one.part}" if one.part else ""
    long = f" ({cases} case{'s' * (cases != '1')}{part})" if cases else ""
    brief = f" ({cases}{part})" if cases else ""
    if one.run.only and cases:
        only = one_line(one.run.only, _NAME)
        long = f" › {only}{long if cases != '1' or part else ''}"
        brief = f" › {only} ({one.part})" if part else f" › {only}"
    forms = [
        *((path, cases, who) for who in (agents, many) for path, cases in ((places, long), (places, brief))),
        (short, brief, many),
        *((path, cases, "") for path, cases in ((places, long), (places, brief), (short, brief))),
        (bare, brief, ""),
        # Of several files the name of one is not what was run.
        *(("", long.strip(" ()"), who) for _ in names[1:2] if long for who in (many, "")),
        *((bare, f" ({one.part})", "") for _ in part[:1]),
        (bare, "", ""),
    ]
    if names[1:] and long and not part and not one.run.only:
        forms.append(("", long.strip(" ()"), ""))  # cut, if need be
    if part:  # which one it is says more than the end of a name
        number = f" {one.part.removeprefix('shard ')}"
        forms[-1:] = [(bare, number, ""), (one_line(bare, max(room - len(number), 4)), number, "")]
    if one.run.only and cases:  # of one case its name says more than its file's
        forms[-1:] = [(cut(name.text, name.differs, room), "", "")]
    lines: list[Line] = [
        (Span(path), Span(cases, "muted"), Span(f" · {who}" if who else "", "muted"))
        for path, cases, who in forms
    ]
    return next((line for line in lines if width_of(line) <= room), lines[-1])


def holds(one: RunLine, words: str, begun: str = "", texts: Texts | None = None) -> bool:
    """Whether a run's id, state, what, agents, or anything else that its line says but its age, hold every one of the
    words. `texts` are kept between calls."""
    said = _said(one, _WHOLE, {}, texts if texts is not None else {}, begun, whole=True)
    return all(word in said for word in words.casefold().split())


def points(lines: Sequence[RunLine]) -> list[Point]:
    """The runs for the plots, oldest first: whole ones. Those that add to others are left out, steps, and reruns of a
    part of the cases."""
    return [_point(one) for one in sorted(lines, key=lambda line: line.run.id) if one.whole and one.judged]


def _point(one: RunLine) -> Point:
    run, tokens = one.run, one.tokens
    sign, _ = outcome_sign(run)
    return Point(
        run.id,
        run.started_at,
        one.pass_rate,
        per_known(run.price, run.cost_of, one.judged),
        one.latency_ms,
        per_known(tokens, run.tokens_of, one.judged),
        run.price,
        tokens,
        None if run.cached else run.took,
        next((name for name, mark in MARKS.items() if mark == sign), ""),
        tuple(
            (name, f"of {known:,} known")
            for name, known in (("cost", run.cost_of), ("tokens", run.tokens_of))
            if 0 < known < one.judged
        ),
    )


def alike(lines: Sequence[RunLine], one: RunLine | None) -> list[RunLine]:
    """The runs of the same suites as this one: only of those do the figures say what became better. All,
    where there are not two to compare."""
    if one is None:
        return list(lines)
    found = [other for other in lines if other.plan == one.plan]
    return found if len(points(found)) > 1 else list(lines)
