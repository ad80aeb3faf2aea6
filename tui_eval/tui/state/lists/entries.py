"""The entries of the two lists of cases: of the suites (with their past) and of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from tui_eval.case_names import told_apart, variant_of, which_test
from tui_eval.formats import title_of
from tui_eval.guard import figures
from tui_eval.model import JUDGED
from tui_eval.store import case_state
from tui_eval.store.case_state import Column
from tui_eval.store.schema import CaseHistory
from tui_eval.store.summary import why_not
from tui_eval.tui.state.app_state import AppState, CaseItem, CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow, EntryColumn
from tui_eval.tui.state.lists.filtering import Subject, tags_of
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import NOT_RUN
from tui_eval.tui.state.text import formatting

OF_COLUMN = "\x1f"
"""What stands in the key of an entry before its column, where its case has several."""
NOT_PASSED = ("failed", "error", "cancelled", "skipped", NOT_RUN)
"""Statuses of a case that did not pass when it was run."""
_STATES = {"waiting": "w", "running": "r", "retrying": "t"}
ATTEMPT_STATUSES = {
    "p": "passed",
    "f": "failed",
    "e": "error",
    "c": "cancelled",
    "s": "skipped",
    "w": "waiting",
    "r": "running",
    "t": "retrying",
}
"""What the letters of `Entry.attempts` stand for."""


def suite_entries(state: AppState) -> list[CaseRow]:
    """One entry per case of the suites and column that it was asked in, with its last result, or what the runs in
    front make of it. May be called in a thread: what changes meanwhile is reported again."""
    return _told_apart([entry for item in state.rows for entry in entries_of(item, state)])


def entries_of(item: CaseItem, state: AppState) -> list[CaseRow]:
    """The entries of one case, one for each of its columns. Runs in front and beside it count while they are at
    work, newer than what is known of the past, or the ones the newest result is from."""
    past = case_state.by_column(item.history)
    found: dict[Column, CaseRow] = {}
    for column, results in past.items():
        found[column] = _of_past(_blank(item, state), item, results)
    newest = max((results[0].finished_at for results in past.values()), default=0.0)
    for group in [group.as_now() for group in (state.group, state.aside) if group is not None]:
        for key in group.keys(item.case_id):
            run, row = group.newest(key)
            column = Column(row.agent, row.model or "")
            results = past.get(column)
            last = results[0] if results else None
            if group.status(key) == NOT_RUN or (last is not None and group.status(key) == "skipped"):
                continue  # cut off, or by hand, no result: what there was still counts
            if last is None and not run.active and newest > run.info.started_at and item.history:
                continue  # of a column that is no more, or of a run that came to nothing
            if (
                last is None
                or run.active
                or group.find_run(last.run_id) is not None
                or (last.finished_at < run.info.started_at and last.run_id < run.info.id)
            ):
                _from_group(found.setdefault(column, _blank(item, state)), group, key, item)
    if len(found) > 1:  # what was said of one column's answer says nothing of the others'
        notes = state.notes.get(item.case_id, ())
        for column, entry in found.items():
            entry.note = next((one for one in notes if one.is_of(*column)), None)
    entries = _in_columns(found, past) if found else [_blank(item, state)]
    if item.case is not None:
        for entry in entries:
            entry.named = item.named(entry.agent)
            entry.variant = f"{item.variant(entry.agent)} {entry.variant}".strip()
    return entries


def _blank(item: CaseItem, state: AppState) -> CaseRow:
    """The entry of a case of which nothing is known yet."""
    return CaseRow(
        item.case_id,
        item.case_id,
        item.name,
        item.suite,
        item.format,
        agent=item.agent or "",
        model=item.model or "",
        case=item.case,
        note=next(iter(state.notes.get(item.case_id, ())), None),
        test=item.test,
    )


def _of_past(entry: CaseRow, item: CaseItem, results: Sequence[CaseHistory]) -> CaseRow:
    """What the results of a column, newest first, say of it."""
    last = results[0]
    entry.status = last.outcome
    entry.flaky = case_state.flaky(last)
    entry.ratio = (last.passed, last.judged)
    entry.trend = tuple(
        old.passed / old.judged if old.judged else 0.0
        for old in case_state.over_runs(results)
        if old.outcome != "cancelled"
    )
    entry.finished_at = last.finished_at
    entry.duration_ms = last.duration_ms
    entry.tokens = last.tokens
    entry.cost = last.cost
    entry.cached, entry.compat = last.cached, last.compat
    entry.edited = int(item.edited_since(last.content_hash))
    entry.message, entry.cause, entry.alike = last.message, last.cause, last.alike
    entry.agent, entry.answered = last.agent or entry.agent, last.model or ""
    entry.answered_in = last.judges or last.run_id
    return entry


def _in_columns(found: Mapping[Column, CaseRow], past: case_state.Results) -> list[CaseRow]:
    """The entries of a case's columns, its own first; where there are several each says which it is, and has a key
    of its own."""
    own = {column for column in found if column in past and case_state.is_own(past[column])}
    if len(found) == 1:
        ((column, entry),) = found.items()
        if column not in own and column in past:
            entry.column = EntryColumn(*column, False, 1)
            entry.agent, entry.model = column.agent, column.model
        return [entry]
    names = case_state.column_names(list(found))
    entries: list[CaseRow] = []
    for column in sorted(found, key=lambda one: (one not in own, one)):
        entry = found[column]
        entry.column = EntryColumn(*column, column in own, len(found))
        entry.key = f"{entry.case_id}{OF_COLUMN}{column.agent}{OF_COLUMN}{column.model}"
        entry.agent, entry.model, entry.variant = column.agent, column.model, names[column]
        entries.append(entry)
    return entries


def run_entries(group: RunGroup, state: AppState) -> list[CaseRow]:
    """One entry per case and column of the runs in front. May be called in a thread, as `suite_entries`."""
    group = group.as_now()
    return _told_apart([run_entry(group, key, state) for key in group.cases])


def run_entry(group: RunGroup, key: str, state: AppState) -> CaseRow:
    """The entry of one case of the runs in front as it stands now."""
    run, row = group.newest(key)
    item = state.by_id.get(row.case_id)
    case = item.case if item else None
    named = bool(
        case_state.arguments(row.case_id, Column(row.agent, row.model or ""), run.info.options)
        if case is not None and case.column
        else ()
    )
    entry = CaseRow(
        key,
        row.case_id,
        state.name_of(row.case_id, row.name),
        row.suite,
        row.format,
        agent=row.agent,
        model=row.model or "",
        case=case,
        variant=row.variant or (variant_of(case, row.agent, named=named) if case is not None else ""),
        named=named,
        test=item.test if item is not None else which_test(row.case_id, row.suite, row.name),
    )
    _from_group(entry, group, key, item)
    notes = state.notes.get(row.case_id, ())
    shown = {(one.run.info.id, one.row.id) for one in group.attempts(key)} if notes else set()
    entry.note = next((one for one in notes if (one.run_id, one.attempt_ref) in shown), None)
    return entry


def _from_group(entry: CaseRow, group: RunGroup, key: str, item: CaseItem | None) -> None:
    """Put what the runs say of a case into its entry."""
    run, case = group.newest(key)
    placed = group.attempts(key)
    rows = [one.row for one in placed]
    entry.case_ref = case.id
    entry.run_id = run.info.id
    entry.agent, entry.answered = case.agent or entry.agent, case.model or ""
    entry.status = group.status(key)
    done = [row for row in rows if row.state == "done"]
    passed = sum(row.outcome == "passed" for row in done)
    entry.flaky = 0 < passed < sum(row.outcome in JUDGED for row in done)
    entry.attempts = "".join(
        (row.outcome or "c")[0] if row.state == "done" else _STATES[row.state] for row in rows
    )
    working = [row for row in rows if row.state in ("running", "retrying")]
    oldest = min(working, key=lambda row: row.started_at or inf, default=None)
    entry.started_at = oldest.started_at if oldest is not None else None
    entry.ends_at = oldest.ends_at if oldest is not None else None
    timed = [(row.outcome, row.duration_ms) for row in done if row.duration_ms is not None]
    times = [took for outcome, took in timed if outcome in JUDGED] or [took for _, took in timed]
    entry.duration_ms = sum(times) / len(times) if times else None
    ends = [(row.started_at or 0.0) + (row.duration_ms or 0.0) / 1000 for row in done]
    entry.finished_at = max(ends, default=0.0) or None
    tokens = [
        figures.tokens(row.input_tokens, row.output_tokens)
        for row in rows
        if row.input_tokens is not None or row.output_tokens is not None
    ]
    entry.tokens = figures.total(tokens, "tokens")
    scores = [row.score for row in done if row.score is not None]
    entry.score = sum(scores) / len(scores) if scores else None
    costs = [row.cost for row in rows if row.cost is not None]
    entry.cost = sum(costs) if costs else None
    entry.cached = sum(row.cached > 0 for row in done)
    judged = placed[-1].run if placed else run
    entry.answered_in = (placed[-1].row.judges or "").partition("/")[0] if placed else ""
    entry.answered_in = entry.answered_in or judged.info.id
    entry.compat = judged.compat(entry.suite) if done else ""
    entry.edited = int(bool(done) and item is not None and item.edited_since(case.content_hash))
    bad = [one for one in placed if one.row.state == "done" and one.row.outcome != "passed"]
    why = why_not([one.row for one in bad if one.run is placed[-1].run] or [one.row for one in bad])
    entry.cause, entry.alike = why.cause, why.alike
    entry.message = why.message if why.telling is not None else done[0].message if done else ""
    entry.detail = next((row.detail for row in working if row.detail), "")


def subject(entry: CaseRow, *, differs: bool = False) -> Subject:
    """What a filter sees of an entry; `differs`: the rows of its test came out differently."""
    case = entry.case

    def tags() -> list[str]:
        return tags_of(case.metadata) if case else []

    def text() -> str:
        """All that its row, and the lines above it, say: each word that stands there finds it. Not its age, which is
        another every minute."""
        parts: list[str] = [
            entry.message,
            entry.cause,
            entry.alike,
            entry.detail,
            entry.variant,
            entry.agent,
            entry.whom.model,
            entry.suite,
            entry.status,
            title_of(entry.format),
            *_figures_said(entry),
        ]
        if entry.note is not None:
            parts += [entry.note.text, entry.note.verdict or ""]
        if case is not None:
            parts += [case.description, case.name]
            parts.extend(turn.text for turn in case.turns if turn.text)
            parts.extend(tags())
        return "\n".join(parts)

    return Subject(
        entry.status,
        entry.flaky,
        entry.name,
        entry.case_id,
        entry.suite,
        entry.format,
        entry.agent,
        entry.whom.model,
        (case.prompt or "") if case else "",
        tags,
        text,
        entry.duration_ms / 1000 if entry.duration_ms is not None else None,
        entry.cost,
        entry.tokens,
        entry.note,
        differs,
    )


def differing_tests(entries: Iterable[CaseRow]) -> set[tuple[str, str]]:
    """The tests whose rows, of those that have ended, came out differently, or one of whose rows did."""
    outcomes: dict[tuple[str, str], str] = {}
    found: set[tuple[str, str]] = set()
    for entry in entries:
        if entry.status in ("passed", "failed", "error") and (
            outcomes.setdefault(entry.of_test, entry.status) != entry.status or entry.flaky
        ):
            found.add(entry.of_test)
    return found


def _figures_said(entry: CaseRow) -> list[str]:
    """The figures of a row as lists write them."""
    said = [formatting.duration(entry.duration_ms)] if entry.duration_ms is not None else []
    said += ["cached"] if entry.cached else []
    if entry.flaky:
        passed, of = entry.passed_of
        said.append(f"flaky {passed}/{of}")
    if entry.tokens is not None:
        said.append(formatting.count(entry.tokens))
    if entry.cost is not None:
        said.append(formatting.cost(entry.cost))
    return said


def meant(entry: CaseRow, pointer: CasePointer) -> bool:
    """Whether a pointer means this entry: the case, and its agent and model where both say them."""
    return (
        entry.case_id == pointer.case_id
        and (not pointer.agent or not entry.agent or entry.agent == pointer.agent)
        and (not pointer.model or not entry.model or pointer.model in (entry.model, entry.answered))
    )


def failing(entry: CaseRow) -> bool:
    """What `]` and `[` stop at: failed, in error, or flaky."""
    return entry.status in ("failed", "error") or entry.flaky


def why_none_again(entries: Sequence[CaseRow], elsewhere: int) -> str:
    """Why `R` runs none of these again, for a person; `elsewhere` are those of other lines that it would."""
    at_work = sum(one.status in _STATES for one in entries)
    never = sum(not one.status for one in entries)
    if at_work:
        return f"nothing has failed so far: {at_work:,} not ended"
    if elsewhere:
        return f"nothing to rerun on this line: on a case's row R runs all {elsewhere:,} that did not pass"
    if not entries:
        return "there are no cases here"
    if never:
        return f"nothing shown has failed; {never:,} never ran (r runs a case, a all shown)"
    return "everything shown has passed"


def not_passed(entries: Iterable[CaseRow]) -> list[CaseRow]:
    """What `R` runs again."""
    return [one for one in entries if one.flaky or one.status in NOT_PASSED]


def _told_apart(entries: list[CaseRow]) -> list[CaseRow]:
    """Give those with the same name in one suite what tells them apart."""
    for entry, variant in zip(entries, told_apart(entries), strict=True):
        entry.variant = variant
    return entries
