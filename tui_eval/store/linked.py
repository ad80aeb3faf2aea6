"""Runs that belong together: a rerun, one more attempt or a new judgement is a run of its own, linked to the
run that it builds on. Which runs those are, and what they come to as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tui_eval.causes import is_of_file
from tui_eval.model import JUDGED
from tui_eval.store.judged_under import compat_of
from tui_eval.store.missing_cases import never_beside
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, project_of_run
from tui_eval.store.schema import AttemptRow, RunInfo, RunSummary, StoredCase
from tui_eval.store.summary import CaseSummary, summarise, summarise_run

if TYPE_CHECKING:
    from tui_eval.store.merging import MergePart, Whole


def family(links: Mapping[str, str | None], run_id: str) -> list[str]:
    """The runs that a run belongs together with, itself among them, oldest first.

    Args:
        links: Which run each run is linked to (`Index.links`).
        run_id: Any run of the family.
    """
    root, seen = run_id, {run_id}
    while (above := links.get(root)) and above in links and above not in seen:
        seen.add(above)
        root = above
    below: dict[str, list[str]] = {}
    for child, parent in links.items():
        if parent:
            below.setdefault(parent, []).append(child)
    found, waiting = {run_id}, [root]
    while waiting:
        here = waiting.pop()
        found.add(here)
        waiting.extend(child for child in below.get(here, ()) if child not in found)
    return sorted(found)


def counting(links: Mapping[str, str | None], run_id: str, other: str = "") -> list[str]:
    """The runs whose attempts count for a run that is compared with `other`, oldest first.

    A run counts with all that was added to it since; one that adds to another stands for what they had come
    to when it ended. Two of the same family stand for that, both.
    """
    together = family(links, run_id)
    if other not in together and not links.get(run_id):
        return together
    return together[: together.index(run_id) + 1]


MOST_LISTED = 1_000
"""Runs that a list of them has, the newest."""


_WHAT = r"(?s)(.*) \((\d+) cases?(?:, ([^()]+))?\)"


def places_of(run: RunSummary) -> str:
    """The paths that were run, without how many cases that were."""
    found = re.fullmatch(_WHAT, run.what)
    return found[1] if found else run.what


def cases_of(run: RunSummary) -> str:
    """How many cases were run, as text; empty where that is not known."""
    found = re.fullmatch(_WHAT, run.what)
    return found[2] if found else ""


def shard_in(run: RunSummary) -> str:
    """Which part of the plan it is, as `shard_words` has it; empty for a run that is none."""
    found = re.fullmatch(_WHAT, run.what)
    return found[3] or "" if found else ""


def parts(runs: Iterable[RunSummary], cases: Mapping[str, frozenset[int]]) -> dict[str, str]:
    """By id the runs that are a part of another, and of which: a run that is linked to none, of fewer than half of the
    cases of the last whole run before it that had all of its own, by agents that were among that one's. A case that is
    run again while no run is in front is such a one, and of however few cases one that was stepped through.

    Args:
        runs: Those that are listed.
        cases: Which cases each has.
    """
    found: dict[str, str] = {}
    whole: list[tuple[set[str], RunSummary]] = []
    for run in sorted(runs, key=lambda one: one.id):
        own = cases.get(run.id)
        if run.linked_to or not own:
            continue
        agents = set(run.agents.split(", "))
        last = next(
            (other for others, other in reversed(whole) if agents <= others and own <= cases[other.id]), None
        )
        if last is not None and (run.stepped or 2 * len(own) < len(cases[last.id])):
            found[run.id] = last.id
        elif not run.stepped:
            whole.append((agents, run))
    return found


class Placed(NamedTuple):
    """An attempt and the run it is in; attempts' ids are unique within a run only. `instead` names the run
    and the attempt whose place it takes: it goes on from one of its turns."""

    run_id: str
    row: AttemptRow
    instead: tuple[str, int] | None = None

    @property
    def answer(self) -> str:
        """The recorded answer that it is, or judges again: `RUN/ATTEMPT` where that was first recorded."""
        return self.row.judges or answer_name(self.run_id, self.row.id)

    @property
    def state(self) -> str:
        """The outcome, or what it is doing: `running`, `waiting`."""
        state = self.row.outcome or self.row.state
        return "running" if state == "retrying" else state


def answer_name(run_id: str, attempt_ref: int) -> str:
    """What an answer is called in other runs that judge it."""
    return f"{run_id}/{attempt_ref}"


def generations(runs: Iterable[Sequence[Placed]]) -> list[list[Placed]]:
    """The attempts of one case and column in runs that are linked, oldest run first, by which of them count
    together; the last of these lists is what counts now.

    A run that begins at attempt 1 has run the case anew, one that begins later adds to the attempts before. One
    that goes on from a turn of an attempt stands where that stood. A judgement takes the place of the one before
    it of the same answer, with the tokens and the cost that the answer had: the agent was asked once. Judgements
    that were cancelled change nothing, nor do those of answers that are known no more, or of a results file that lacks
    what judging needs.
    """
    found: list[list[Placed]] = []
    for own in runs:
        if not own:
            continue
        if found and any(one.row.judges for one in own):
            for one in own:
                _judge(found, one)
        elif own[0].instead is not None and (at := _find(found, own[0].instead)) is not None:
            group, index = at
            group[index : index + 1] = own
        elif found and own[0].row.attempt > 1:
            found[-1].extend(own)
        else:
            found.append(list(own))
    return found


def _find(groups: Sequence[list[Placed]], wanted: tuple[str, int]) -> tuple[list[Placed], int] | None:
    """Where an attempt stands, or what judges its answer by now."""
    name = answer_name(*wanted)
    for group in groups:
        for index, one in enumerate(group):
            if (one.run_id, one.row.id) == wanted or one.answer == name:
                return group, index
    return None


def _is_judged(row: AttemptRow) -> bool:
    """Whether an attempt has ended with something to say of its case."""
    lacks = bool(row.judges) and is_of_file(row.alike)
    return row.state == "done" and row.outcome in JUDGED and not lacks


def _judge(groups: Sequence[list[Placed]], one: Placed) -> None:
    """Put a judgement where the one before it of the same answer stands."""
    if one.row.state == "done" and not _is_judged(one.row):
        return
    for group in groups:
        for index, before in enumerate(group):
            if before.answer == one.answer:
                old = before.row
                row = msgspec.structs.replace(
                    one.row,
                    input_tokens=old.input_tokens,
                    output_tokens=old.output_tokens,
                    cached_tokens=old.cached_tokens,
                    cost=old.cost,
                )
                group[index] = one._replace(row=row)
                return


class Part(NamedTuple):
    """The cases and attempts of a run, its id, whose place its attempt takes, and by a suite the rules that it was
    judged by."""

    cases: Sequence[StoredCase]
    attempts: Sequence[AttemptRow]
    run_id: str = ""
    instead: tuple[str, int] | None = None
    compat: Callable[[str], str] = lambda suite: ""


def replaced_by(info: RunInfo) -> tuple[str, int] | None:
    """The run and the attempt in it whose place a run's one attempt takes, since it goes on from one of its
    turns, or judges that one alone again (as earlier versions did); None for other runs."""
    given = info.options.get("continue_from")
    if not isinstance(given, dict) or not isinstance(given.get("attempt"), int):
        return None
    return str(given.get("run", "")).rstrip("/").rpartition("/")[2], given["attempt"]


def summarise_together(parts: Sequence[Part]) -> list[CaseSummary]:
    """What several runs say of each case, oldest run first, as if they were one (`generations`). A run in which
    nothing of a case was judged (cancelled, cut off) changes nothing of it.
    """
    parts = [Part(*part) for part in parts]
    if len(parts) == 1:
        found = summarise_run(parts[0].cases, parts[0].attempts)
        for summary in found:
            summary.compat = parts[0].compat(summary.suite)
        return found
    return [one.summary() for one in _counted(parts)]


class _Counted(NamedTuple):
    """A case in several runs: what counts of it, the share of attempts that has to pass, and the rules."""

    case: StoredCase
    placed: Sequence[Placed]
    share: float
    rules: str

    def summary(self) -> CaseSummary:
        """What they come to."""
        found = _summary(self.case, [one.row for one in self.placed], self.share)
        found.compat = self.rules
        return found


def _counted(parts: Sequence[Part]) -> list[_Counted]:
    rows: dict[tuple[str, str, str], StoredCase] = {}
    runs: dict[tuple[str, str, str], list[list[Placed]]] = {}
    shares: dict[tuple[str, str, str], float] = {}
    rules: dict[tuple[str, str, str], str] = {}
    for cases, attempts, run_id, instead, compat in parts:
        by_case: dict[int, list[AttemptRow]] = {}
        for row in attempts:
            by_case.setdefault(row.case_ref, []).append(row)
        for case in cases:
            key = (case.case_id, case.agent, case.model or "")
            own = [Placed(run_id, row, instead) for row in by_case.get(case.id, [])]
            if key not in rows:
                shares[key] = case.required / case.attempts if case.attempts else 1.0
            elif not any(_is_judged(one.row) for one in own):
                continue
            rows[key] = case
            rules[key] = compat(case.suite)
            runs.setdefault(key, []).append(own)
    return [
        _Counted(
            case, [one for group in generations(runs[key])[-1:] for one in group], shares[key], rules[key]
        )
        for key, case in rows.items()
    ]


def _summary(case: StoredCase, rows: Sequence[AttemptRow], share: float) -> CaseSummary:
    """A case by the share of attempts that it had to pass when it was run as a whole."""
    if len(rows) != case.attempts:
        required = ceil(round(share * len(rows), 9))
        case = msgspec.structs.replace(case, attempts=len(rows), required=required)
    return summarise(case, rows)


def lacking_beside(folders: Iterable[Path]) -> str:
    """Which cases never ran where those failed that these runs ran again (`never_beside`), in words; empty: none.

    Raises:
        StoreError: a run cannot be read.
    """
    for folder in folders:
        with closing(RunReader(folder)) as reader:
            if words := never_beside(reader.info()):
                return words
    return ""


def load_together(folders: Sequence[Path]) -> list[CaseSummary]:
    """The same, read from the runs' folders.

    Raises:
        StoreError: one of them cannot be read.
    """
    return summarise_together(_parts_of(folders))


class ToldCase(NamedTuple):
    """A case in runs that count together, and the run and the attempt in it that tells its outcome; None where there is
    one run, or nothing has ended."""

    summary: CaseSummary
    by: tuple[str, int] | None = None


def told_together(folders: Sequence[Path]) -> list[ToldCase]:
    """The same, with who says it: of the newest run with an attempt of that outcome the first.

    Raises:
        StoreError: one of them cannot be read.
    """
    parts = _parts_of(folders)
    if len(parts) == 1:
        return [*map(ToldCase, summarise_together(parts))]
    found: list[ToldCase] = []
    for one in _counted(parts):
        summary = one.summary()
        ended = [placed for placed in one.placed if placed.row.state == "done"]
        telling = [placed for placed in ended if placed.row.outcome == summary.outcome] or ended
        newest = max((placed.run_id for placed in telling), default="")
        by = next(((newest, placed.row.id) for placed in telling if placed.run_id == newest), None)
        found.append(ToldCase(summary, by))
    return found


def _parts_of(folders: Sequence[Path]) -> list[Part]:
    parts: list[Part] = []
    for folder in folders:
        with closing(RunReader(folder)) as reader:
            info = reader.info()
            parts.append(
                Part(reader.cases(), reader.attempts(), folder.name, replaced_by(info), compat_of(info))
            )
    return parts


# -- What came, since they ended, of the cases of runs that are put together.


_AT_ONCE = 500  # cases whose attempts are read in one question


def changed_since(
    store: Store, links: Mapping[str, str | None], whole: Whole, adding: Sequence[MergePart]
) -> list[str]:
    """Of the cases of parts those that have newer results in runs that add to them: first, with both
    outcomes, where these differ, then by their ids alone.

    Args:
        store: Where the parts are put together; their own projects are looked into, too.
        links: Which run each run there is linked to (`Index.links`).
        adding: Such runs that were found beside the parts.
    """
    above = {part.info.id: part.info.linked_to for part in adding}
    folders = {part.info.id: part.reader.folder for part in adding}
    for run_id, linked_to in links.items():
        above.setdefault(run_id, linked_to)
        folders.setdefault(run_id, store.folder_of(run_id))
    for root in dict.fromkeys(project_of_run(part.reader.folder) for part in whole.parts):
        for run_id, linked_to, folder in _links(root) if root not in (None, store.root) else ():
            above.setdefault(run_id, linked_to)
            folders.setdefault(run_id, folder)
    same: dict[str, None] = {}
    changed: dict[str, str] = {}
    for part in whole.parts:
        ids = [run_id for run_id in family(above, part.info.id) if run_id != part.info.id]
        for name, before, now in _since(whole, part, [folders[one] for one in ids if one in folders]):
            if before == now:
                same[name] = None
            else:
                changed[name] = f"{name}: {before}, {now} since"
    return [*changed.values(), *(name for name in same if name not in changed)]


def _links(root: Path) -> Iterator[tuple[str, str | None, Path]]:
    """The runs of a project of others, in which nothing is written, and to which each is linked."""
    for folder in Store(root).run_folders():
        with suppress(StoreError, OSError), closing(RunReader(folder)) as reader:
            yield folder.name, reader.info().linked_to, folder


def _since(whole: Whole, part: MergePart, folders: Sequence[Path]) -> Iterator[tuple[str, str, str]]:
    """Of the cases that count as a part has them those that runs which add to it have newer results of: the
    case, what came of it in the part, and what came of it since."""
    own = {one.key: one.case for one in whole.columns if one.part is part} if folders else {}
    parts: list[Part] = []
    newer: set[tuple[str, str, str | None]] = set()
    for folder in folders:
        with suppress(StoreError, OSError), closing(RunReader(folder)) as reader:
            cases = [case for case in reader.cases() if (case.case_id, case.agent, case.model) in own]
            attempts = _attempts_of(reader, cases)
            judged = {row.case_ref for row in attempts if _is_judged(row)}
            newer |= {(case.case_id, case.agent, case.model) for case in cases if case.id in judged}
            parts.append(Part(cases, attempts, folder.name, replaced_by(reader.info())))
    first = [own[key] for key in own if key in newer]
    ended = Part(first, _attempts_of(part.reader, first), part.info.id)
    before = {(one.case_id, one.agent, one.model): one.outcome for one in summarise_together([ended])}
    for item in summarise_together([ended, *parts]) if newer else ():
        key = item.case_id, item.agent, item.model
        if key in before:
            yield item.case_id, before[key] or "not run", item.outcome or "not run"


def _attempts_of(reader: RunReader, cases: Sequence[StoredCase]) -> list[AttemptRow]:
    found: list[AttemptRow] = []
    for start in range(0, len(cases), _AT_ONCE):
        for rows in reader.attempts_of([case.id for case in cases[start : start + _AT_ONCE]]).values():
            found += rows
    return found
