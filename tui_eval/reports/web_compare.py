"""Two runs against each other in a browser: what both are, how sure the difference is, the cases by change.
Only reads, without a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tui_eval.case_names import column_label
from tui_eval.reports.html_templates import dollars, minute, render, seconds
from tui_eval.reports.run_comparison import (
    CHANGES,
    COLUMN_WORDS,
    GLYPHS,
    WORDS,
    CaseChange,
    Change,
    RunComparison,
    chance,
    compare,
    document,
    steadiness,
)
from tui_eval.store.index import Index
from tui_eval.store.linked import load_together
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunSummary, StoredCase
from tui_eval.store.summary import CaseSummary

OPEN = 200
"""Cases of one change up to which they are unfolded."""


class PageNotThere(Exception):
    """What is asked for is not in this project; one clear line."""


class Side(NamedTuple):
    """A run with those that count with it, oldest first, and the number of one of its agents (None: all)."""

    run: RunSummary
    folders: list[Path]
    column: int | None
    agent: str
    cases: list[CaseSummary]


class Both(NamedTuple):
    """Two sides and what came of comparing them."""

    before: Side
    after: Side
    comparison: RunComparison

    @property
    def columns(self) -> bool:
        """Whether two agents of one run are compared."""
        return self.before.run.id == self.after.run.id

    def address(self, path: str = "/compare", **more: str) -> str:
        """Where these two are shown."""
        query = {"before": self.before.run.id, "after": self.after.run.id}
        if self.before.column is not None and self.after.column is not None:
            query |= {"left": str(self.before.column), "right": str(self.after.column)}
        return f"{path}?{urlencode(query | more)}"


def read(root: Path, query: dict[str, str]) -> Both:
    """The two sides that a page is asked for: `after` (else the newest run), `before` (else the one it is best
    compared with), and `left` and `right`, the numbers of two of a run's agents.

    Raises:
        NotThere: there is no such run or agent, or none to compare with.
        StoreError: one of them cannot be read.
    """
    index = Index(root)
    runs = {run.id: run for run in index.runs() if not run.unread}
    after = query.get("after") or next(iter(runs), "")
    before = query.get("before") or index.before(after) or ""
    for name in (after, before):
        if name not in runs:
            raise PageNotThere(f"no run {name}" if name else "no other run has a case of this one")
    left, right = (_number(query.get(name)) for name in ("left", "right"))
    return _compared(root, runs[before], runs[after], left, right)


def _number(text: str | None) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise PageNotThere("an agent is given by its number")
    return int(text)


def _compared(root: Path, before: RunSummary, after: RunSummary, left: int | None, right: int | None) -> Both:
    store = Store(root)
    first, second = (
        _side(root, store, one, other, column)
        for one, other, column in ((before, after, left), (after, before, right))
    )
    return Both(first, second, compare(first.cases, second.cases))


def _side(root: Path, store: Store, run: RunSummary, other: RunSummary, column: int | None) -> Side:
    against = store.folder_of(other.id) if other.id != run.id else None
    counting = Index(root).counting_folders(store.folder_of(run.id), against)
    cases = load_together(counting)
    agent = ""
    if column is not None:
        known = columns_of(cases)
        if column >= len(known):
            raise PageNotThere(f"run {run.id} has no agent {column}")
        cases = [case for case in cases if (case.agent, case.model) == known[column]]
        agent = column_label(*known[column])
    return Side(run, counting, column, agent, cases)


def api(root: Path, query: dict[str, str]) -> dict[str, Any]:
    """The same as `tui-eval compare --json`."""
    both = read(root, query)
    return document(both.comparison, [[folder.name for folder in side.folders] for side in both[:2]])


# -- the page of a comparison


class SideChoice(NamedTuple):
    """What one of the two sides may be instead: values with their texts."""

    word: str
    name: str
    options: list[tuple[str, str]]
    chosen: str


class ChangeShown(NamedTuple):
    """A case, where both attempts of it are shown, why it did not pass, and what else is said of it."""

    change: CaseChange
    address: str
    why: str
    more: str


class ChangeGroup(NamedTuple):
    """The cases of one change."""

    change: Change
    glyph: str
    words: str
    unfolded: bool
    cases: list[ChangeShown]


Fact = tuple[str, Sequence[str], str]
"""A name, what it is on both sides, and by how much it changed."""


def comparison_page(root: Path, query: dict[str, str]) -> str:
    """Both runs and their cases by change."""
    both = read(root, query)
    found = both.comparison
    lost = found.count("regressed")
    worse, better = (
        (f"{lost:,} regressed", f", {found.told}")
        if found.common
        else (found.nothing_common.capitalize() or "No case", "")
    )
    return render(
        "comparison.html.j2",
        both=both,
        lost=lost,
        worse=worse,
        better=better,
        turned=Both(both.after, both.before, both.comparison).address(),
        as_json=both.address("/api/compare"),
        sure=_sure(found),
        hidden=("before", "after") if both.columns else (),
        choices=_agents(both) if both.columns else _runs(root, both),
        words=("first", "second") if both.columns else ("before", "after"),
        facts=[] if both.columns else _facts(both),
        rates=[[round(value * 100, 1) for value in rate] for rate in found.pass_rates],
        usual=_usual(found),
        groups=[group for change in CHANGES if (group := _group(both, change)).cases],
    )


def _sure(found: RunComparison) -> str:
    words = chance(found.p_value) if found.count("regressed") + found.count("fixed") else ""
    other = (
        f"{found.other_answers:,} unchanged cases were answered differently." if found.other_answers else ""
    )
    rules = f"{found.rules_differ[:1].upper()}{found.rules_differ[1:]}." if found.rules_differ else ""
    said = [
        f"That {words}, by McNemar's exact test on the cases that both have." if words else "",
        other,
        rules,
        f"{cached[:1].upper()}{cached[1:]}." if (cached := found.cached_words) else "",
    ]
    return " ".join(part for part in said if part)


def _runs(root: Path, both: Both) -> list[SideChoice]:
    """Other runs to compare: those that have cases of the one after."""
    index = Index(root)
    shared = index.sharing(both.after.run.id)
    runs = [run for run in index.runs() if run.id in shared or run.id == both.before.run.id]
    options = [(run.id, _option(run)) for run in runs]
    return [
        SideChoice(name, name, options, side.run.id)
        for name, side in zip(("before", "after"), both[:2], strict=True)
    ]


def _option(run: RunSummary) -> str:
    return f"{minute(run.started_at)} · {places(run)} · {run.agents} · {run.passed}/{run.total}"


def _agents(both: Both) -> list[SideChoice]:
    """Other agents of the run to compare."""
    with closing(RunReader(both.after.folders[-1])) as reader:
        known = columns_of(reader.cases())
    options = [(str(number), column_label(*one)) for number, one in enumerate(known)]
    sides = (("first", "left", both.before), ("second", "right", both.after))
    return [SideChoice(word, name, options, str(side.column)) for word, name, side in sides]


def columns_of(cases: Sequence[StoredCase | CaseSummary]) -> list[tuple[str, str | None]]:
    """The agents of a run with their models, in its order: those that `left` and `right` number."""
    return list(dict.fromkeys((case.agent, case.model) for case in cases))


def _facts(both: Both) -> list[Fact]:
    """What both runs are."""
    facts: list[Fact] = [
        ("What", [side.run.what for side in both[:2]], ""),
        ("Agents", [side.run.agents for side in both[:2]], ""),
    ]
    linked = [len(side.folders) - 1 for side in both[:2]]
    if any(linked):
        facts.append(("Counted with it", [f"{many} linked" if many else "" for many in linked], ""))
    return facts


def _usual(found: RunComparison) -> list[Fact]:
    """What an attempt takes."""
    figures: list[tuple[str, tuple[float, float] | None, Callable[[float], str]]] = [
        ("Time of an attempt", found.usual.latency, seconds),
        ("Tokens", found.usual.tokens, lambda value: f"{value:,.0f}"),
        ("Cost", found.usual.cost, dollars),
    ]
    facts: list[Fact] = []
    for name, pair, show in figures:
        if pair is not None:
            change = round((pair[1] - pair[0]) / pair[0] * 100) if pair[0] else 0
            facts.append((name, [show(value) for value in pair], f"{change:+d} %" if change else ""))
    return facts


def _group(both: Both, change: Change) -> ChangeGroup:
    cases = [_case(both, case) for case in both.comparison.cases if case.change == change]
    words = (COLUMN_WORDS if both.columns else WORDS)[change]
    return ChangeGroup(change, GLYPHS[change], words, change != "unchanged" and len(cases) <= OPEN, cases)


def _case(both: Both, case: CaseChange) -> ChangeShown:
    one = case.after or case.before
    assert one is not None
    address = ""
    if case.before is not None and case.after is not None:
        address = both.address("/compare/case", case=case.case_id, agent=one.agent, model=one.model or "")
    more = [f"p = {case.p_value:.2g}" if case.p_value is not None and case.change != "unchanged" else ""]
    more += [steadiness(case.after), "other answer" if case.only_the_answer else ""]
    more += ["the case was edited" if case.edited else ""]
    bad = next((item for item in (case.after, case.before) if item and item.outcome != "passed"), None)
    why = bad.cause or bad.message if bad is not None else ""
    return ChangeShown(case, address, why, " · ".join(part for part in more if part))


def places(run: RunSummary) -> str:
    """The paths that were run, without how many cases that were."""
    return run.what.rpartition(" (")[0] or run.what
