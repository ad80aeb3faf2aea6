"""Runs that belong together: a rerun, one more attempt or a new judgement is a run of its own, linked to the
run that it builds on. Which runs those are, and what they come to as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from math import ceil
from pathlib import Path
from typing import NamedTuple

import msgspec

from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.runs import Store
from tui_eval.store.schema import AttemptRow, CaseRow, RunInfo
from tui_eval.store.summary import CaseSummary, summarise, summarise_run

_JUDGED = ("passed", "failed", "error")


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


def counting_folders(root: Path, folder: Path, other: Path | None = None) -> list[Path]:
    """As `counting`, for runs' folders; one that is not of this project stands alone."""
    if folder.absolute().parent != Store(root).runs_folder.absolute():
        return [folder]
    found = counting(Index(root).links(), folder.name, other.name if other is not None else "")
    return [folder if name == folder.name else folder.with_name(name) for name in found]


class Part(NamedTuple):
    """The cases and attempts of a run, its id, and whose place its attempt takes."""

    cases: Sequence[CaseRow]
    attempts: Sequence[AttemptRow]
    run_id: str = ""
    instead: tuple[str, int] | None = None


def replaced_by(info: RunInfo) -> tuple[str, int] | None:
    """The run and the attempt in it whose place a run's one attempt takes, since it judges that one again
    or goes on from one of its turns; None for other runs."""
    given = info.options.get("continue_from")
    if not isinstance(given, dict) or not isinstance(given.get("attempt"), int):
        return None
    return str(given.get("run", "")).rstrip("/").rpartition("/")[2], given["attempt"]


def summarise_together(parts: Sequence[Part]) -> list[CaseSummary]:
    """What several runs say of each case, oldest run first, as if they were one: a run that begins a case at
    attempt 1 has run it anew and takes the place of those before, one that begins later adds to them, and an
    attempt judged again takes the place of what it was. A run in which nothing of a case was judged
    (cancelled, cut off) changes nothing of it.
    """
    parts = [Part(*part) for part in parts]
    if len(parts) == 1:
        return summarise_run(parts[0].cases, parts[0].attempts)
    rows: dict[tuple[str, str, str], CaseRow] = {}
    placed: dict[tuple[str, str, str], list[tuple[str, AttemptRow]]] = {}
    shares: dict[tuple[str, str, str], float] = {}
    for cases, attempts, run_id, instead in parts:
        by_case: dict[int, list[AttemptRow]] = {}
        for row in attempts:
            by_case.setdefault(row.case_ref, []).append(row)
        for case in cases:
            key = (case.case_id, case.agent, case.model or "")
            own = [(run_id, row) for row in by_case.get(case.id, [])]
            before = placed.get(key, [])
            at = next((i for i, (run, row) in enumerate(before) if (run, row.id) == instead), None)
            if key not in rows:
                shares[key] = case.required / case.attempts if case.attempts else 1.0
            elif not any(row.state == "done" and row.outcome in _JUDGED for _, row in own):
                continue
            elif at is not None:
                own = [*before[:at], *own, *before[at + 1 :]]
            elif min(row.attempt for _, row in own) > 1:
                own = [*before, *own]
            rows[key], placed[key] = case, own
    return [_summary(case, [row for _, row in placed[key]], shares[key]) for key, case in rows.items()]


def _summary(case: CaseRow, rows: Sequence[AttemptRow], share: float) -> CaseSummary:
    """A case by the share of attempts that it had to pass when it was run as a whole."""
    if len(rows) != case.attempts:
        required = ceil(round(share * len(rows), 9))
        case = msgspec.structs.replace(case, attempts=len(rows), required=required)
    return summarise(case, rows)


def load_together(folders: Sequence[Path]) -> list[CaseSummary]:
    """The same, read from the runs' folders.

    Raises:
        StoreError: one of them cannot be read.
    """
    parts: list[Part] = []
    for folder in folders:
        with closing(RunReader(folder)) as reader:
            parts.append(Part(reader.cases(), reader.attempts(), folder.name, replaced_by(reader.info())))
    return summarise_together(parts)
