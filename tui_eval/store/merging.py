"""Runs that are parts of one plan as one run: the shards of `run --shard`, or parts that somebody has cut otherwise.

What does not belong together is refused; what stands in several parts counts once; what is missing is said.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tui_eval.config.project import find_root, state_dir
from tui_eval.guard import private
from tui_eval.guard.spelling import some_of
from tui_eval.store import judged_under, shard_runs
from tui_eval.store.column_names import suites_in_columns
from tui_eval.store.imported.results_entries import case_edited, own_content
from tui_eval.store.missing_cases import PROBLEMS, beside_kept, unread_of_parts
from tui_eval.store.printed_commands import resume_command
from tui_eval.store.reader import AttemptCount, RunReader
from tui_eval.store.run_folders import Store, StoreError, is_alive, projects_in
from tui_eval.store.schema import (
    CUT_OFF,
    CUT_OFF_PARTS,
    KEEPS_ANSWERS,
    NOTED,
    PLACE_LOST,
    UNREAD,
    RunInfo,
    RunState,
    StoredCase,
)
from tui_eval.store.shard_runs import PlannedShard

_NAMES = 8
_LEFT_OUT = 4
_COMMANDS = 3
"""By which shards that were cut off go on, that are written out."""
_AT_ONCE = 500
"""Cases whose attempts are read in one go."""
_NO_ATTEMPT = AttemptCount(0, 0, 0)


class MergeError(Exception):
    """Runs that are no parts of one plan; one line that says what differs."""


@dataclass(slots=True)
class MergePart:
    """One run of several: its cases, and how many attempts each has (`AttemptCount`). What these say is read when it is
    copied. `label` is what a person called it. Close its reader."""

    label: str
    reader: RunReader
    info: RunInfo
    shard: PlannedShard | None
    cases: list[StoredCase]
    counts: dict[int, AttemptCount] = field(default_factory=dict)

    @classmethod
    def of(cls, label: str, folder: Path) -> MergePart:
        """The run of a folder.

        Raises:
            StoreError: it cannot be read.
        """
        reader = RunReader(folder)
        try:
            info = reader.info()
            return cls(
                label, reader, info, shard_runs.shard_of(info), reader.cases(), reader.attempt_counts()
            )
        except StoreError:
            reader.close()
            raise

    @property
    def name(self) -> str:
        """What it is called in a message."""
        return self.label if self.shard is None else f"{self.label} (shard {self.shard.name})"

    @property
    def judged(self) -> int:
        """How many of its attempts have a verdict."""
        return sum(count.judged for count in self.counts.values())

    def count(self, case: StoredCase) -> AttemptCount:
        """How many attempts a case has, and how they stand."""
        return self.counts.get(case.id, _NO_ATTEMPT)


class MergedColumn(NamedTuple):
    """A case of a part with one agent and model: what stands once in the whole."""

    part: MergePart
    case: StoredCase

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What it is in every part."""
        return self.case.case_id, self.case.agent, self.case.model

    @property
    def rank(self) -> tuple[int, tuple[bool, float, str]]:
        """By which it counts rather than the same in another part."""
        return counting(self.part.count(self.case).judged, self.part.info)

    @property
    def is_open(self) -> bool:
        """Whether attempts of it have not ended."""
        count = self.part.count(self.case)
        return count.ended < max(self.case.attempts, count.planned)


@dataclass(slots=True)
class Whole:
    """Several parts as one. `columns` are in the plan's order, each once. `twice` are the names of cases that
    stand in several parts; `missing_shards` those of which there is no part; `missing` counts the cases of
    the plan that no part has, of which `missing_names` are known; `open_names` are cases with attempts that
    have not ended, and `cut_off` the parts that are why. `unjudged`: some were cancelled or skipped."""

    parts: list[MergePart]
    columns: list[MergedColumn]
    twice: list[str]
    missing_shards: list[int]
    missing: int
    missing_names: list[str]
    open_names: list[str]
    cut_off: list[MergePart]
    unjudged: bool

    @property
    def complete(self) -> bool:
        """Whether everything of the plan has ended."""
        return not self.missing and not self.open_names


def whole_of(parts: Sequence[MergePart]) -> Whole:
    """The parts as one.

    Raises:
        MergeError: they do not belong together.
    """
    parts = once_each(parts)
    _check(parts)
    chosen: dict[tuple[str, str, str | None], MergedColumn] = {}
    twice: dict[str, None] = {}
    for part in parts:
        for case in part.cases:
            new = MergedColumn(part, case)
            old = chosen.get(new.key)
            if old is not None:
                twice[case.case_id] = None
            if old is None or new.rank > old.rank:
                chosen[new.key] = new
    places = _places(parts)
    known = len(places)
    columns = sorted(chosen.values(), key=lambda one: places.get(one.case.case_id, known))
    return Whole(
        parts,
        columns,
        list(twice),
        *missing(parts, {one.case.case_id for one in columns}),
        list(dict.fromkeys(one.case.case_id for one in columns if one.is_open)),
        cut_off(parts, (one.part for one in columns if one.is_open)),
        any(count.judged < count.ended for count in (one.part.count(one.case) for one in columns)),
    )


def once_each(parts: Iterable[MergePart]) -> list[MergePart]:
    """Of a run that is given more than once (a file of before it went on, a copy that CI kept), the one with most
    verdicts, else the first."""
    found: dict[str, MergePart] = {}
    for part in parts:
        kept = found.get(part.info.id)
        if kept is None or part.judged > kept.judged:
            found[part.info.id] = part
    return list(found.values())


def cut_off(parts: Sequence[MergePart], unfinished: Iterable[MergePart]) -> list[MergePart]:
    """Those of `unfinished` that nobody executes any more, and that no other one does again; in the order of
    `parts`."""
    again = {part.shard.number for part in parts if part.shard and part.info.state in ("running", "paused")}
    ids = {
        part.info.id
        for part in unfinished
        if part.info.state == "interrupted"
        and not (part.shard and part.shard.number in again)
        and not shard_runs.merged_of(part.info.provenance)
    }
    return [part for part in parts if part.info.id in ids]


def counting(judged: int, info: RunInfo) -> tuple[int, tuple[bool, float, str]]:
    """Of what stands in several parts that counts of which more has a verdict (what was cancelled or skipped
    has none), else what was begun last: the largest of these."""
    return judged, order_begun(info)


def order_begun(info: RunInfo) -> tuple[bool, float, str]:
    """Sorts runs by when they began. A start that is ahead of the clock is of a clock that was, and since set right: of
    before every other one."""
    return info.started_at <= time.time(), info.started_at, info.id


def _places(parts: Sequence[MergePart]) -> dict[str, int]:
    """Where each case stands in the whole, from 0, as far as the parts know; else part by part."""
    plan = _largest_plan(parts)
    for part in parts if plan is not None else ():
        ids, _ = part.reader.whole_plan()
        if plan is not None and len(ids) == plan.cases:
            return {case_id: place for place, case_id in enumerate(ids)}
    found: dict[str, int] = {}
    for part in parts:
        ids = sorted({row.case_id for row in part.cases})
        if part.shard is not None and len(ids) == len(part.shard.places):
            found.update(zip(ids, part.shard.places, strict=True))
    if len(found) == len({row.case_id for part in parts for row in part.cases}):
        return found
    suites = {row.suite: None for part in parts for row in part.cases}
    order = {suite: number for number, suite in enumerate(sorted(suites))}
    rows = sorted((row for part in parts for row in part.cases), key=lambda row: order[row.suite])
    return {case_id: place for place, case_id in enumerate(dict.fromkeys(row.case_id for row in rows))}


def _largest_plan(parts: Sequence[MergePart]) -> PlannedShard | None:
    """The plan that holds those of all parts: they are the same, but of what had failed (`_failed_differ`)."""
    shards = [part.shard for part in parts if part.shard is not None]
    return max(shards, key=lambda shard: shard.cases, default=None)


def missing(parts: Sequence[MergePart], there: set[str]) -> tuple[list[int], int, list[str]]:
    """The shards that are missing, how many cases are, and their ids as far as they are known."""
    first = _largest_plan(parts)
    if first is None:
        return [], 0, []
    numbers = {part.shard.number for part in parts if part.shard is not None}
    without = [n for n in range(1, first.of + 1) if n not in numbers and first.sizes[n - 1]]
    for part in parts:
        ids, _ = part.reader.whole_plan()
        if len(ids) == first.cases:
            names = [case_id for case_id in ids if case_id not in there]
            return without, len(names), names
    return without, max(0, first.cases - len(there)), []


def _check(parts: Sequence[MergePart]) -> None:
    """Raises: MergeError."""
    if not parts:
        raise MergeError("nothing to merge")
    for part in parts:
        try:
            check_part(part)
        except MergeError as error:
            raise MergeError(f"{error}: leave it out") from None
        if part.info.state in ("running", "paused") or is_alive(part.reader.folder):
            raise MergeError(
                f"{part.name} is being executed: wait for its end, or look at them meanwhile: tui-eval FOLDER"
            )
    for other in parts[1:]:
        check_pair(parts[0], other)
    _check_content(parts)


def check_part(part: MergePart) -> None:
    """See that a run can be a part of a plan.

    Raises:
        MergeError: it is a part of another run.
    """
    if adds_to_another(part):
        of = f" ({part.info.linked_to})" if part.info.linked_to else ""
        raise MergeError(
            f"{part.name} runs or judges a part of another run{of} again and is no part of a plan"
        )


def adds_to_another(part: MergePart) -> bool:
    """Whether it runs or judges a part of another run again."""
    given = part.info.options
    return bool(
        part.info.linked_to or given.get("step") or given.get("continue_from") or given.get("rescores")
    )


def check_pair(first: MergePart, other: MergePart) -> None:
    """See that two runs are of one plan.

    Raises:
        MergeError: they are not; one line that says what differs.
    """
    if first is not other and (difference := _difference(first, other)):
        raise MergeError(f"{first.name} and {other.name} are no parts of one plan: {difference}")


def merged_before(parts: Sequence[MergePart]) -> list[MergePart]:
    """Those of some runs that were merged of shards: they are no part beside shards."""
    if all(part.shard is None for part in parts):
        return []
    return [part for part in parts if part.shard is None and shard_runs.merged_of(part.info.provenance)]


def beside_shards(parts: Sequence[MergePart]) -> list[MergePart]:
    """Those of some runs that are no shards, where others are: they are no part of these others' plan."""
    if all(part.shard is None for part in parts):
        return []
    return [part for part in parts if part.shard is None]


def that_add(labels: Sequence[str]) -> str:
    """`a and b`, which add to other runs, as what is left out."""
    does = "run or judge parts of others" if len(labels) > 1 else "runs or judges a part of another"
    return f"left out: {some_of(labels, _LEFT_OUT)}, which {does} again"


def that_are_no_shards(labels: Sequence[str]) -> str:
    """The same of runs that are none, beside shards."""
    what = "are no shards, or do" if len(labels) > 1 else "is no shard, or does"
    return f"left out: {some_of(labels, _LEFT_OUT)}, which {what} not say of what"


def same_plan(first: MergePart, other: MergePart) -> bool:
    """Whether two shards are of one plan, as far as their facts say: their readers may be closed."""
    a, b = first.shard, other.shard
    if a is None or b is None or (a.of, a.asked) != (b.of, b.asked) or _agents_differ(first, other):
        return False
    if shard_runs.FAILED in a.asked and (a.cases, a.content) != (b.cases, b.content):
        return True
    return (a.cases, a.content) == (b.cases, b.content) and not shard_runs.asked_otherwise(a, b)


def _difference(first: MergePart, other: MergePart) -> str:
    """What keeps two parts from being of one plan; empty where nothing does."""
    a, b = first.shard, other.shard
    if a is None and b is None:
        return _asked_otherwise(first, other) or _agents_differ(first, other) or _columns_differ(first, other)
    if a is None or b is None:
        which = first if a is None else other
        if shard_runs.merged_of(which.info.provenance):
            return f"{which.label} was merged of others: leave it out, and merge its parts"
        return f"{which.label} is no shard, or does not say of what"
    if a.of != b.of:
        return f"one is cut in {a.of:,} shards, the other in {b.of:,}"
    if difference := _options_differ(a.asked, b.asked):
        return difference
    if shard_runs.FAILED in a.asked and a.cases != b.cases:
        return _failed_differ(first, other) or _agents_differ(first, other)
    if a.cases != b.cases:
        return f"the suites have {a.cases:,} cases there and {b.cases:,} here (or were selected otherwise)"
    if a.content != b.content:
        return _content_differs(first, other)
    return shard_runs.asked_otherwise(a, b) or _agents_differ(first, other)


def _content_differs(first: MergePart, other: MergePart) -> str:
    ours, theirs = (set(part.reader.whole_plan()[0]) for part in (first, other))
    only = sorted(ours ^ theirs)
    if ours and theirs and only:
        return f"the suites' content differs, for example {only[0]}, which only one of them has"
    return "the suites' content differs: cases were edited between them"


def _failed_differ(first: MergePart, other: MergePart) -> str:
    """Of what had failed when the one began, the other may find some passed by shards that ended meanwhile,
    and no more."""
    ours, theirs = (set(part.reader.whole_plan()[0]) for part in (first, other))
    if not ours or not theirs or ours <= theirs or theirs <= ours:
        return ""
    return f"other cases had failed, for example {min(ours ^ theirs)}, which only one of them has"


def _asked_otherwise(first: MergePart, other: MergePart) -> str:
    asked = [shard_runs.asked_in(part.info) for part in (first, other)]
    if asked[0] is None or asked[1] is None:
        return ""  # an older results file does not say
    return _options_differ(asked[0], asked[1])


def _options_differ(first: dict[str, Any], other: dict[str, Any]) -> str:
    for name in [*first, *(name for name in other if name not in first)]:
        if first.get(name) != other.get(name):
            said = [_said(options.get(name)) for options in (first, other)]
            return f"{name} is {said[0]} there and {said[1]} here"
    return ""


def _said(value: Any) -> str:
    if value is None:
        return "not given"
    if value is True:
        return "given"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _agents_differ(first: MergePart, other: MergePart) -> str:
    """By the hashes of the agents that both have asked; those of other versions are made otherwise."""
    if first.info.version != other.info.version:
        return ""
    ours, theirs = (part.info.provenance.get("agents") for part in (first, other))
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return ""
    for name in ours.keys() & theirs.keys():
        for part, words in (("config", "is configured otherwise"), ("files", "has other files")):
            marks = [
                given.get(part) if isinstance(given, dict) else None for given in (ours[name], theirs[name])
            ]
            if None not in marks and marks[0] != marks[1]:
                return f"agent {name} {words} there than here"
    return ""


def _columns_differ(first: MergePart, other: MergePart) -> str:
    """The columns of a suite that both have. They may differ where tests choose their own."""
    ours, theirs = (_columns(part) for part in (first, other))
    for suite in ours.keys() & theirs.keys():
        if ours[suite] != theirs[suite]:
            one, two = (", ".join(sorted(found[suite] - rest[suite])) or "fewer" for found, rest in
                        ((ours, theirs), (theirs, ours)))  # fmt: skip
            return f"{suite} was asked of {one} there and of {two} here"
    return ""


def _columns(part: MergePart) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    chosen = suites_in_columns(part.reader, part.cases)
    for row in part.cases:
        if row.suite not in chosen:
            found.setdefault(row.suite, set()).add(f"{row.agent} {row.model or ''}".strip())
    return found


def _check_content(parts: Sequence[MergePart]) -> None:
    """Raises: MergeError: a case that stands in several parts was edited between them."""
    seen: dict[str, tuple[str, MergePart]] = {}
    for part in parts:
        for row in part.cases:
            if not own_content(row.content_hash):
                continue
            hashed, before = seen.setdefault(row.case_id, (row.content_hash, part))
            if case_edited(hashed, row.content_hash):
                raise MergeError(
                    f"{before.name} and {part.name} are no parts of one plan: the suites' content differs: "
                    f"{row.case_id} was edited between them"
                )


def projects_with_shards(folder: Path) -> int:
    """How many projects in a folder have run a shard last: checkouts of one project, each on a disk of its own."""
    found = 0
    for project in projects_in(folder):
        with contextlib.suppress(StoreError, OSError):
            newest = next(Store(project).run_folders(), None)
            if newest is None:
                continue
            with contextlib.closing(RunReader(newest)) as reader:
                found += shard_runs.shard_of(reader.info()) is not None
    return found


def facts(whole: Whole, run_id: str, version: str, newer: str = "") -> RunInfo:
    """A merged run's own facts; `newer` says which results of runs that add to its parts are not in it."""
    infos = [part.info for part in whole.parts]
    state: RunState = "finished" if whole.complete else "interrupted"
    if whole.complete and whole.unjudged and any(info.state == "cancelled" for info in infos):
        state = "cancelled"
    provenance = {
        name: value
        for name, value in infos[0].provenance.items()
        if name not in (
            shard_runs.KEY, shard_runs.GAP, shard_runs.COST_LIMIT, UNREAD, PLACE_LOST, PROBLEMS, NOTED, CUT_OFF, CUT_OFF_PARTS, "command", "missing",
        )
    } | shard_runs.provenance_of_parts(infos)  # fmt: skip
    provenance |= unread_of_parts(infos) | beside_kept(infos)
    if any(info.provenance.get(KEEPS_ANSWERS) is True for info in infos):
        provenance[KEEPS_ANSWERS] = True
    suites = [(part.info, {case.suite for case in part.cases}) for part in whole.parts]
    if any(judged_under.KEY in info.provenance for info in infos):
        judged: dict[str, str] = {}
        for info, own in suites:
            judged |= dict(zip(own, map(judged_under.compat_of(info), own), strict=True))
        if all(judged.values()):
            provenance[judged_under.KEY] = judged_under.remembered(judged.items())
    provenance[judged_under.SETTINGS] = judged_under.settings_of_parts(suites)
    merged = [{"id": part.info.id, "shard": part.shard.name if part.shard else None} for part in whole.parts]
    lacked = [part.info.provenance.get("missing") for part in _lacking(whole)]
    count = whole.missing + max((one for one in lacked if isinstance(one, int)), default=0)
    missing_cases = {"missing": count} if count else {}
    left_out = ("shard", "select", "case_ids", "cells", "failed_only", "changed_only")
    gap = {} if whole.complete else {shard_runs.GAP: missing_line(whole)}
    names = [(part.shard.name if part.shard else part.label, part.info) for part in whole.parts]
    rests_on = judged_under.means_differ(
        [(name, info, own) for (name, info), (_, own) in zip(names, suites, strict=True)]
    )
    # What a part says that it lacks, this one has, or says itself.
    # What no case counts of, as it was run again in another part, has nothing to say of the whole.
    counted = {id(one.part) for one in whole.columns}
    cut_off_before = [
        count
        for part in whole.parts
        if id(part) in counted
        for count in shard_runs.counts_in(part.info, CUT_OFF)
    ]
    cut_off_now = [_under_way(whole, part) for part in whole.cut_off if _was_killed(part.info)]
    counting_infos = [part.info for part in whole.parts if id(part) in counted or not part.cases]
    of_parts = shard_runs.of_an_older_batch(infos), shard_runs.commits_differ(names), rests_on
    of_whole = [note for note in (newer, *of_parts) if note]
    noted = [*of_whole, *shard_runs.noted_of_parts(counting_infos)]
    return RunInfo(
        id=run_id,
        state=state,
        version=version,
        started_at=min(info.started_at for info in infos),
        finished_at=max((info.finished_at or 0.0 for info in infos), default=0.0) or None,
        paths=list(dict.fromkeys(path for info in infos for path in _paths(info))),
        options={
            name: value for name, value in shard_runs.options_in(infos[0]).items() if name not in left_out
        },
        agents=list(dict.fromkeys(agent for info in infos for agent in info.agents)),
        note="; ".join([*gap.values(), *of_whole, *shard_runs.notes_of_parts(counting_infos)])[:1000],
        scripted=any(info.scripted for info in infos),
        provenance={
            **provenance,
            shard_runs.MERGED: merged,
            **missing_cases,
            **gap,
            **({NOTED: noted} if noted else {}),
            **({CUT_OFF: cut_off_before} if cut_off_before else {}),
            **({CUT_OFF_PARTS: cut_off_now} if cut_off_now else {}),
        },
    )


def _paths(info: RunInfo) -> list[str]:
    """Where its cases were looked for. A run that is known from a results file stands as that file, which is none of
    this project's suites."""
    return (shard_runs.paths_in(info) if shard_runs.PATHS in info.provenance else []) or info.paths


def _was_killed(info: RunInfo) -> bool:
    """Whether an interrupted run was killed, or lost its place: others have put back what they had begun."""
    return (info.finished_at is None and info.paused_at is None) or bool(info.provenance.get(PLACE_LOST))


def _under_way(whole: Whole, part: MergePart) -> int:
    """How many attempts of a part that was killed had begun, of cases that count: they are asked once more."""
    if isinstance(lost := part.info.provenance.get(PLACE_LOST), int) and lost:
        return lost
    refs = [one.case.id for one in whole.columns if one.part is part and one.is_open]
    found = 0
    for start in range(0, len(refs), _AT_ONCE):
        for rows in part.reader.attempts_of(refs[start : start + _AT_ONCE]).values():
            found += sum(row.state in ("running", "retrying") for row in rows)
    return found


def missing_line(whole: Whole) -> str:
    """What of the plan has no result, in one line; empty where all has."""
    parts: list[str] = []
    if whole.cut_off:
        parts.append(_cut_off_words(whole.cut_off))
    if whole.missing:
        numbers = ", ".join(str(number) for number in whole.missing_shards[:20])
        more = ", …" if len(whole.missing_shards) > 20 else ""
        which = f"shard{'s' * (len(whole.missing_shards) > 1)} {numbers}{more} missing: " if numbers else ""
        parts.append(f"{which}{counted_names(whole.missing, whole.missing_names, 'no part has')}")
    lacking = _lacking(whole)
    parts += dict.fromkeys(str(part.info.provenance[shard_runs.GAP]) for part in lacking)
    said = {case.case_id for part in lacking for case in part.cases}
    if names := [case_id for case_id in whole.open_names if case_id not in said]:
        parts.append(counted_names(len(names), names, "not run to the end"))
    return "; ".join(parts)


def _lacking(whole: Whole) -> list[MergePart]:
    """The parts that were merged before, with gaps that nothing has filled: each says itself what it lacks."""
    still = set(whole.open_names)
    return [
        part
        for part in whole.parts
        if part.info.provenance.get(shard_runs.GAP) and any(case.case_id in still for case in part.cases)
    ]


def _cut_off_words(parts: Sequence[MergePart]) -> str:
    """`shard 2/3 was cut off: tui-eval resume RUN`. What is known from a results file alone cannot go on."""
    names = some_of([f"{part.shard.number}/{part.shard.of}" for part in parts if part.shard], _NAMES)
    shards = sum(part.shard is not None for part in parts)
    others = [part.label for part in parts if part.shard is None]
    said = [f"shard{'s' * (shards > 1)} {names}"] if shards else []
    said += [some_of(others, _NAMES)] if others else []
    line = f"{' and '.join(said)} {'was' if len(parts) == 1 else 'were'} cut off"
    kept = [part for part in parts if not part.reader.folder.is_relative_to(private.cache_home())]
    commands = [resume_command(as_typed(part.reader.folder), part.info.options) for part in kept[:_COMMANDS]]
    more = ["…"] if len(kept) > _COMMANDS else []
    return f"{line}: {', '.join([*commands, *more])}" if commands else line


def as_typed(folder: Path) -> str:
    """A run as a person types it here: the id of one of this project's, else its path."""
    here = Path.cwd()
    absolute = Path(os.path.abspath(folder))
    if absolute.parent.parent == state_dir(find_root([here])[0]):
        return absolute.name
    near = str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)
    return f"./{near}" if near.startswith("-") else near


def counted_names(count: int, names: Sequence[str], what: str) -> str:
    """`3 cases WHAT (a, b and 1 more)`."""
    cases = f"{count:,} case{'' if count == 1 else 's'} {what}"
    if not names:
        return cases
    return f"{cases} ({some_of(names, _NAMES, count)})"
