"""`--changed`: of the planned columns those whose case, agent or files changed since they last passed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tui_eval.engine.after.row_comparison import compares
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.plan import Job
from tui_eval.engine.shards import group_keys
from tui_eval.store.case_state import Column, column_of
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import CaseHistory

Provenance = Mapping[str, Any]


def changed(
    jobs: Sequence[Job],
    history: Mapping[str, Sequence[CaseHistory]],
    marks: Fingerprints,
    provenance_of: Callable[[str], Provenance],
) -> list[Job]:
    """Those of the jobs that are to run, in their order: what did not pass last time, or never ran, among them. Of
    columns that are compared with each other, and rows that hand on to later ones, all run where one does.

    Args:
        history: The results of each case, newest first (`Index.latest`).
        provenance_of: What a run says of where its results come from, by its id.
    """
    keys = group_keys(job.case for job in jobs)
    wanted: set[str] = set()
    alone: set[int] = set()
    for number, job in enumerate(jobs):
        results = [
            one
            for one in history.get(job.case.case_id, ())
            if column_of(one) == Column(job.agent, job.model or "")
        ]
        if not _as_it_passed(job, results, marks, provenance_of):
            alone.add(number)
            if keys[number].joined or compares(job.case):
                wanted.add(keys[number].text)
    return [
        job
        for number, job in enumerate(jobs)
        if number in alone or (keys[number].text in wanted and (keys[number].joined or compares(job.case)))
    ]


def _as_it_passed(
    job: Job, results: Sequence[CaseHistory], marks: Fingerprints, provenance_of: Callable[[str], Provenance]
) -> bool:
    """Whether a column passed last time, and everything that it rests on is as it was."""
    newest = results[0] if results else None
    if newest is None or job.spec is None or job.problem or newest.outcome != "passed":
        return False
    if (
        newest.content_hash != job.case.content_hash
        or newest.attempts < job.attempts
        or newest.passed < job.required
    ):
        return False
    asked = provenance_of(newest.judges or newest.run_id)  # a judgement asks no agent
    agents = asked.get("agents")
    if not isinstance(agents, dict) or agents.get(job.agent) != marks.agent(job.spec):
        return False
    files = provenance_of(newest.run_id)
    known = files.get("files", {})
    if files.get("too_many_files") or not isinstance(known, dict):
        return False
    return all(known.get(path) == mark for path, mark in marks.case_files(job).items())


def provenance_in(store: Store) -> Callable[[str], Provenance]:
    """What the runs of a store say of where their results come from; nothing where one cannot be read."""

    @functools.cache
    def of(run_id: str) -> Provenance:
        with (
            contextlib.suppress(StoreError),
            contextlib.closing(RunReader(store.folder_of(run_id))) as reader,
        ):
            return reader.info().provenance
        return {}

    return of
