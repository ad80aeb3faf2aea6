"""Two runs (or two columns of one) against each other as lines: worst first, honest about chance. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec import structs

from tui_eval.case_names import told_apart
from tui_eval.reports.run_comparison import (
    CHANGES,
    COLUMN_WORDS,
    EDITED,
    GLYPHS,
    WORDS,
    CaseChange,
    Change,
    RunComparison,
    chance,
    steadiness,
)
from tui_eval.store.summary import CaseSummary, share
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.case.verdict_lines import GLYPHS as OUTCOME_GLYPHS
from tui_eval.tui.state.lists.case_entry import reason_in_line
from tui_eval.tui.state.lists.telling_apart import RowName, row_names
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.fitting import cell_len
from tui_eval.tui.state.text.formatting import cost, counted, duration
from tui_eval.tui.state.text.lines import Line, Span, fit, one_line, width_of

_NAMED, _TOLD = 16, 10
"""Cells that the names of a list have at least where its rows say why, and below which a reason says nothing."""
_NO_ANSWER = ("cancelled", "skipped", None)


class CompareNews(NamedTuple):
    """Of one case: how many attempts wait or run, which have ended (run and attempt, oldest first) and what
    came of the newest."""

    working: int = 0
    ended: tuple[tuple[str, int], ...] = ()
    outcome: str = ""

    @property
    def words(self) -> str:
        """In two words; empty where there is nothing new."""
        return "runs anew" if self.working else f"since {self.outcome}" if self.outcome else ""

    @property
    def style(self) -> str:
        """The style of these words."""
        return "running" if self.working else self.outcome


def runs_now(state: AppState) -> list[RunView]:
    """The runs in front and those beside them, also those that have ended there: they are news in a comparison all the
    same."""
    front = state.group.runs if state.group is not None else ()
    others = {run.info.id: run for run in (*state.put_away, *state.aside.runs)}
    return [*front, *(run for name, run in others.items() if all(name != one.info.id for one in front))]


def news_of(runs: Iterable[RunView], case_id: str, known: Collection[tuple[str, int]]) -> CompareNews:
    """Attempts of a case in these runs that are not known yet, whatever agent they ask."""
    working, ended, outcome = 0, [], ""
    for run in runs:
        for ref in run.refs.get(case_id, ()):
            for row in run.attempts_of(ref):
                if row.state != "done":
                    working += run.active
                elif row.outcome not in _NO_ANSWER and (run.info.id, row.id) not in known:
                    ended.append((run.info.id, row.id))
                    outcome = row.outcome or ""
    return CompareNews(working, tuple(ended), outcome)


def news_since(
    runs: Iterable[RunView], compared: Collection[str], known: Collection[str] = ()
) -> dict[str, CompareNews]:
    """By case what those of these runs that began after those compared, and do not count with them, have of
    it; those `known` before are no news: a third run that was in front is not what the two are compared
    for."""
    found: dict[str, CompareNews] = {}
    for run in runs:
        if not compared or run.info.id in compared or run.info.id in known or run.info.id < max(compared):
            continue
        for case_id, refs in run.refs.items():
            before = found.get(case_id, CompareNews())
            rows = [row for ref in refs for row in run.attempts_of(ref)]
            done = [row for row in rows if row.state == "done" and row.outcome not in _NO_ANSWER]
            working = sum(run.active for row in rows if row.state != "done")
            if not done and not working:
                continue
            found[case_id] = CompareNews(
                before.working + working,
                (*before.ended, *((run.info.id, row.id) for row in done)),
                (done[-1].outcome or "") if done else before.outcome,
            )
    return found


_STYLES: dict[Change, str] = {
    "regressed": "failed", "now an error": "error", "fixed": "passed", "an error no more": "note", "flaky": "note",
    "not run": "note", "new": "running", "gone": "muted", "unchanged": "muted",
}  # fmt: skip
GLYPH: dict[Change, tuple[str, str]] = {change: (GLYPHS[change], _STYLES[change]) for change in CHANGES}
"""Glyph and style of each change."""
OTHER_ANSWER = "≠"
"""Glyph of an unchanged case that was answered differently."""


class CompareRow(NamedTuple):
    """A heading of a change (`case` None) or one case; `news` is what was run of it since."""

    change: Change
    case: CaseChange | None
    number: int = 0
    words: str = ""
    name: RowName = RowName("")
    """With what tells the case from others of its name: prompt and agent, its suite."""
    news: CompareNews | None = None
    once: bool = False
    """Whether every case of both runs has one attempt at most: the outcomes say all."""
    widest: int = 0
    """Cells that the longest name of these cases takes, where one of them says why it does not pass."""

    @property
    def key(self) -> tuple[str, ...]:
        """The same whenever the same thing is shown again."""
        if self.case is None:
            return (self.change,)
        one = self.case.after or self.case.before
        return (self.change, self.case.case_id, one.agent if one else "", (one.model if one else "") or "")


def rows(
    comparison: RunComparison,
    *,
    only_changed: bool = False,
    agents: bool = False,
    name_of: Callable[[str, str], str] = lambda _, name: name,
) -> list[CompareRow]:
    """Headings with their cases, regressed first; `only_changed` leaves out what is as it was, `agents`
    says that two agents are compared, `name_of` what lists call a case of this id and name."""
    by_change: dict[Change, list[CaseChange]] = {change: [] for change in CHANGES}
    for case in comparison.cases:
        by_change[case.change].append(case)
    groups: list[tuple[CompareRow, list[CaseChange], list[RowName]]] = []
    widest, told = 0, False
    once = all(
        one is None or one.attempts < 2 for case in comparison.cases for one in (case.before, case.after)
    )
    for change, cases in by_change.items():
        if not cases or (only_changed and change == "unchanged"):
            continue
        words = (COLUMN_WORDS if agents else WORDS)[change]
        if (edited := comparison.edited(change)) and change != "unchanged":
            words += f"; {edited:,} {EDITED}"
        if change == "unchanged" and comparison.other_answers:
            words += f"; of {OTHER_ANSWER} {comparison.other_answers:,} the answer differs"
        names = _names(cases, name_of)
        told = told or any(map(reason_of, cases))
        widest = max(widest, max(map(_named, names)))
        groups.append((CompareRow(change, None, len(cases), words), cases, names))
    found: list[CompareRow] = []
    for heading, cases, names in groups:
        found.append(heading)
        found += [
            CompareRow(heading.change, case, 0, "", name, once=once, widest=widest if told else 0)
            for name, case in zip(names, cases, strict=True)
        ]
    return found


def _named(name: RowName) -> int:
    """Cells that a whole name takes in its row."""
    return cell_len(name.name) + (cell_len(name.variant) + 3 if name.variant else 0)


def reason_of(case: CaseChange) -> str:
    """Why a case does not pass, as its row says it: in the second run, else in the first."""
    bad = next((one for one in (case.after, case.before) if one and one.outcome != "passed"), None)
    return reason_in_line(bad.cause, bad.message) if bad is not None else ""


def _names(cases: Sequence[CaseChange], name_of: Callable[[str, str], str]) -> list[RowName]:
    """What lists call these: that takes less to tell apart than the names that runs recorded."""
    shown = [
        structs.replace(one, name=called(case, name_of)) for case in cases if (one := case.named) is not None
    ]
    marks = [
        mark or (case.mark if one.name == case.name else "")
        for case, one, mark in zip(cases, shown, told_apart(shown), strict=True)
    ]
    return row_names((one.name, mark, one.suite) for one, mark in zip(shown, marks, strict=True))


def folded(heading: CompareRow) -> CompareRow:
    """A heading whose cases are not shown."""
    return heading._replace(words=f"… {heading.words}; enter or → shows them")


def summary_lines(
    comparison: RunComparison, before: str, after: str, width: int, *, agents: bool = False
) -> list[Line]:
    """What the two are and what they come to as wholes."""
    lost, won = comparison.count("regressed"), comparison.count("fixed")
    labels = ("first  ", "second ") if agents else ("before ", "after  ")
    lines: list[Line] = []
    for label, name, (rate, low, high) in zip(labels, (before, after), comparison.pass_rates, strict=True):
        words = f"  {share(rate)} of cases ({share(low)} to {share(high)})"
        room = max(width - len(label) - len(words), 8)
        lines.append((Span(label, "label"), *fit((Span(one_line(name)),), room), Span(words, "muted")))
    style = "failed" if lost > won else "passed" if won > lost else "strong"
    words = f"{counted(lost, 'case')} regressed, {comparison.told}"
    if comparison.nothing_common:
        words = f"{comparison.nothing_common}: > < take another"
    told: Line = (Span(words, style),)
    if comparison.p_value is not None and lost + won:
        told = (*told, Span(f": {chance(comparison.p_value)}", "muted"))
    lines.append(told)
    if comparison.rules_differ:
        lines.append((Span(comparison.rules_differ, "note"),))
    if comparison.cached_words:
        lines.append((Span(comparison.cached_words, "note"),))
    taken = usual_line(comparison)
    return [fit(line, width) for line in (*lines, *([taken] if taken else []))]


def usual_line(comparison: RunComparison) -> Line:
    """What an attempt takes, before and after, of the cases that both have; empty where none says it."""
    usual = comparison.usual
    parts: list[str] = []
    for pair, show in (
        (usual.latency, duration),
        (usual.tokens, lambda value: f"{value:,.0f}"),
        (usual.cost, cost),
    ):
        if pair is None:
            continue
        old, new = pair
        change = round((new - old) / old * 100) if old else 0
        unit = " tokens" if pair is usual.tokens else ""
        parts.append(f"{show(old)} → {show(new)}{unit}" + (f" ({change:+d}%)" if change else ""))
    return (Span("an attempt  ", "label"), Span(" · ".join(parts), "muted")) if parts else ()


def called(change: CaseChange, name_of: Callable[[str, str], str]) -> str:
    """What lists call a case that both runs recorded under its name."""
    return name_of(change.case_id, change.name)


def ratio(one: CaseSummary | None) -> str:
    """Attempts passed of those that came to a verdict: `2/3`."""
    return f"{one.passed}/{one.judged}" if one is not None else "–"


def row_line(row: CompareRow, width: int) -> Line:
    """A heading, or a case: its name, attempts passed before and after, how sure that is, why it fails."""
    glyph, style = GLYPH[row.change]
    if row.case is None:
        words = f"  {row.words or WORDS[row.change]}"
        return fit((Span(f" {glyph} {row.number:,} {row.change}", style), Span(words, "muted")), width)
    case = row.case
    before, after = case.before, case.after
    other = case.only_the_answer
    if other:
        glyph, style = OTHER_ANSWER, "note"
    numbers = f"{ratio(before):>6} → {ratio(after):<6}" if not row.once else " → "
    told = steadiness(after) if not other else "differs"
    if other and width >= 90:
        told = "answer differs"
    told_by = case.p_value if row.change != "unchanged" else None
    took = "" if told_by is None else f" p={told_by:.2f}" if told_by >= 0.005 else " p<0.01"
    right: Line = (
        *_outcome(before),
        Span(numbers, "muted"),
        *_outcome(after),
        Span(
            f" {told:<7}" if width >= 70 and (told or not row.once) else "",
            "note" if other or told == "flaky" else "muted",
        ),
        Span(f"{took:<7}" if width >= 90 and not other and not row.once else "", "muted"),
    )
    free = width - width_of(right) - 6
    reason = one_line(reason_of(case), 200) if row.widest else ""
    room = max(min(max(row.widest, _NAMED), width * 2 // 5, free) if row.widest else free, 8)
    news: Line = (Span(f" {row.news.words}", row.news.style),) if row.news is not None else ()
    if case.edited:
        news = (Span(" · case edited" if width >= 70 else " · edited", "note"), *news)
    own = row.name if row.name.name else RowName(one_line(case.name), one_line(case.mark))
    cut_name, cut_mark = own.fitted(max(room - width_of(news) - 3 * bool(own.variant), 0))
    mark: Line = (*((Span(f" · {cut_mark}", "label"),) if cut_mark else ()), *news)
    name: Line = (Span(cut_name),)
    pad = Span(" " * max(room - width_of(name) - width_of(mark), 0))
    line: Line = (Span(f"   {glyph} ", style), *name, *mark, pad, Span(" "), *right)
    if reason and free - room >= _TOLD:
        line = (*line, Span(f" {reason}", "muted"))
    return fit(line, width)


def _outcome(one: CaseSummary | None) -> Line:
    outcome = one.outcome if one is not None else None
    return (Span(OUTCOME_GLYPHS.get(outcome or "", "·"), outcome or "muted"),)
