"""Two runs against each other in a browser: what both are, how sure the difference is, the cases by change.
Only reads, without a script."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tui_eval.reports import page
from tui_eval.reports.html_templates import dollars, seconds
from tui_eval.reports.page_text import safe
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
from tui_eval.reports.web_home import places
from tui_eval.store.index import Index
from tui_eval.store.linked import counting_folders, load_together
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunSummary, StoredCase
from tui_eval.store.summary import CaseSummary

_CLASS: dict[Change, str] = {
    "regressed": "failed", "fixed": "passed", "flaky": "error", "new": "muted", "gone": "muted", "unchanged": "muted",
}  # fmt: skip
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
    runs = {run.id: run for run in index.runs() if run.state != "damaged"}
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
    folders = Store(root).runs_folder
    first, second = (
        _side(root, folders, one, other, column)
        for one, other, column in ((before, after, left), (after, before, right))
    )
    return Both(first, second, compare(first.cases, second.cases))


def _side(root: Path, folders: Path, run: RunSummary, other: RunSummary, column: int | None) -> Side:
    against = folders / other.id if other.id != run.id else None
    counting = counting_folders(root, folders / run.id, against)
    cases = load_together(counting)
    agent = ""
    if column is not None:
        known = columns_of(cases)
        if column >= len(known):
            raise PageNotThere(f"run {run.id} has no agent {column}")
        cases = [case for case in cases if (case.agent, case.model) == known[column]]
        agent = ", ".join(part for part in known[column] if part)
    return Side(run, counting, column, agent, cases)


def api(root: Path, query: dict[str, str]) -> dict[str, Any]:
    """The same as `tui-eval compare --json`."""
    both = read(root, query)
    return document(both.comparison, [[folder.name for folder in side.folders] for side in both[:2]])


# -- the page of a comparison


def comparison_page(root: Path, query: dict[str, str]) -> str:
    """Both runs and their cases by change."""
    both = read(root, query)
    found = both.comparison
    lost, won = found.count("regressed"), found.count("fixed")
    worse, better = (
        (f"{lost:,} regressed", f", {won:,} fixed")
        if found.common
        else (found.nothing_common.capitalize() or "No case", "")
    )
    parts = [
        _above(both),
        f'<h1><span class="{"failed" if lost else "muted"}">{worse}</span>{better}</h1>',
        _sure(found),
        _agents(both) if both.columns else _choice(root, both),
        _facts(both),
        *(_group(both, change) for change in CHANGES),
    ]
    return page.document(f"Compare: {worse}{better}", "".join(parts))


def _above(both: Both) -> str:
    """Where one can go from here."""
    turned = Both(both.after, both.before, both.comparison).address()
    return (
        f'<nav><a href="/">All runs</a> · <a href="{safe(turned)}">the other way round</a> · '
        f'<a href="{safe(both.address("/api/compare"))}">as JSON</a></nav>'
    )


def _sure(found: RunComparison) -> str:
    words = chance(found.p_value) if found.count("regressed") + found.count("fixed") else ""
    other = (
        f"{found.other_answers:,} unchanged cases were answered differently." if found.other_answers else ""
    )
    said = [f"That {words}, by McNemar's exact test on the cases that both have." if words else "", other]
    return f'<p class="muted">{" ".join(part for part in said if part)}</p>'


def _choice(root: Path, both: Both) -> str:
    """Other runs to compare: those that have cases of the one after."""
    index = Index(root)
    shared = index.sharing(both.after.run.id)
    runs = [run for run in index.runs() if run.id in shared or run.id == both.before.run.id]
    selects = ""
    for name, side in (("before", both.before), ("after", both.after)):
        options = "".join(
            f'<option value="{safe(run.id)}"{" selected" if run.id == side.run.id else ""}>{_option(run)}</option>'
            for run in runs
        )
        selects += f'<label>{name} <select name="{name}">{options}</select></label> '
    return f'<form class="choice" action="/compare" method="get">{selects}<button>Compare</button></form>'


def _agents(both: Both) -> str:
    """Other agents of the run to compare."""
    with closing(RunReader(both.after.folders[-1])) as reader:
        known = columns_of(reader.cases())
    selects = ""
    for name, word, side in (("left", "first", both.before), ("right", "second", both.after)):
        options = "".join(
            f'<option value="{number}"{" selected" if number == side.column else ""}>'
            f"{safe(', '.join(part for part in one if part), 120)}</option>"
            for number, one in enumerate(known)
        )
        selects += f'<label>{word} <select name="{name}">{options}</select></label> '
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{safe(both.after.run.id)}">'
        for name in ("before", "after")
    )
    return f'<form class="choice" action="/compare" method="get">{hidden}{selects}<button>Compare</button></form>'


def columns_of(cases: Sequence[StoredCase | CaseSummary]) -> list[tuple[str, str | None]]:
    """The agents of a run with their models, in its order: those that `left` and `right` number."""
    return list(dict.fromkeys((case.agent, case.model) for case in cases))


def _option(run: RunSummary) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    return safe(f"{when} · {places(run)} · {run.agents} · {run.passed}/{run.total}", 120)


def _facts(both: Both) -> str:
    found = both.comparison
    words = ("first", "second") if both.columns else ("before", "after")
    heads = "".join(
        f'<th>{word}<br><a href="/runs/{safe(side.run.id)}">{safe(side.agent or side.run.id)}</a>'
        for word, side in zip(words, both[:2], strict=True)
    )
    rows: list[tuple[str, Sequence[str], str]] = []
    if not both.columns:
        rows.append(("What", [safe(side.run.what, 200) for side in both[:2]], ""))
        rows.append(("Agents", [safe(side.run.agents, 200) for side in both[:2]], ""))
        linked = [len(side.folders) - 1 for side in both[:2]]
        if any(linked):
            rows.append(("Counted with it", [f"{many} linked" if many else "" for many in linked], ""))
    rows.append(("Cases passed", [_interval(rate) for rate in found.pass_rates], ""))
    figures: list[tuple[str, tuple[float, float] | None, Callable[[float], str]]] = [
        ("Time of an attempt", found.usual.latency, seconds),
        ("Tokens", found.usual.tokens, lambda value: f"{value:,.0f}"),
        ("Cost", found.usual.cost, dollars),
    ]
    for name, pair, show in figures:
        if pair is not None:
            change = round((pair[1] - pair[0]) / pair[0] * 100) if pair[0] else 0
            rows.append((name, [show(value) for value in pair], f"{change:+d} %" if change else ""))
    body = "".join(
        f'<tr><th scope="row">{name}{"".join(f"<td>{value}" for value in values)}<td class="number">{more}</tr>'
        for name, values, more in rows
    )
    return f'<div class="scroll"><table class="both"><tr><th>{heads}<th></tr>{body}</table></div>'


def _interval(rate: tuple[float, float, float]) -> str:
    """A share with its interval, drawn and in figures."""
    share, low, high = (round(value * 100, 1) for value in rate)
    return (
        f"{share:.0f} % <span class=muted>({low:.0f} to {high:.0f} at 95 %)</span>"
        '<svg class="interval" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="range" x="{low}" y="2" width="{max(high - low, 0.5)}" height="4"/>'
        f'<rect x="{max(share - 0.4, 0)}" y="0" width=".8" height="8" fill="currentColor"/></svg>'
    )


def _group(both: Both, change: Change) -> str:
    cases = [case for case in both.comparison.cases if case.change == change]
    if not cases:
        return ""
    words = (COLUMN_WORDS if both.columns else WORDS)[change]
    rows = "".join(_case(both, case) for case in cases)
    unfolded = " open" if change != "unchanged" and len(cases) <= OPEN else ""
    return (
        f'<details class="group"{unfolded}><summary><h2><span class="{_CLASS[change]}">{GLYPHS[change]} '
        f'{len(cases):,} {change}</span> <span class="muted">{words}</span></h2></summary>'
        f'<div class="scroll"><table class="changes">{rows}</table></div></details>'
    )


def _case(both: Both, case: CaseChange) -> str:
    one = case.after or case.before
    assert one is not None
    name = f"<strong>{safe(case.name, 300)}</strong>"
    if case.before is not None and case.after is not None:
        address = both.address("/compare/case", case=case.case_id, agent=one.agent, model=one.model or "")
        name = f'<a href="{safe(address)}">{name}</a>'
    told = safe(" · ".join(part for part in (case.mark, case.suite) if part), 400)
    more = [f"p = {case.p_value:.2g}" if case.p_value is not None and case.change != "unchanged" else ""]
    more += [steadiness(case.after), "other answer" if case.only_the_answer else ""]
    why = next((item.message for item in (case.after, case.before) if item and item.outcome != "passed"), "")
    return (
        f'<tr><td class="number">{_ratio(case.before)} → {_ratio(case.after)}<td>{name} '
        f'<span class="muted">{told}</span>{f"<br><span class=why>{safe(why, 300)}</span>" if why else ""}'
        f'<td class="muted">{" · ".join(part for part in more if part)}</tr>'
    )


def _ratio(one: CaseSummary | None) -> str:
    if one is None:
        return "–"
    return f'<span class="{safe(one.outcome or "not")}">{one.passed}/{one.attempts}</span>'
