"""What a case usually takes, from its results in past runs: shown beside its budgets."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Literal

from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import CaseHistory

RUNS = 5

Kind = Literal["input_tokens", "output_tokens"]


def usual_tokens(runs: Sequence[Sequence[int]]) -> tuple[int, int, int] | None:
    """The lowest and the highest count and the number of runs they are from; `runs` are the attempts'
    counts by run, newest first. None below two runs that know them."""
    known = [counts for counts in runs if counts][:RUNS]
    if len(known) < 2:
        return None
    every = [count for counts in known for count in counts]
    return min(every), max(every), len(known)


def past_tokens(store: Store, history: Sequence[CaseHistory], kind: Kind) -> list[list[int]]:
    """The counts of a case's attempts in its last runs, by run; `history` is newest first and of one agent
    and model. Runs that are gone are left out."""
    found: list[list[int]] = []
    for item in history:
        with contextlib.suppress(StoreError):
            reader = RunReader(store.folder_of(item.run_id))
            with contextlib.closing(reader):
                same = [
                    row.id
                    for row in reader.cases_of(item.case_id)
                    if (row.agent, row.model) == (item.agent, item.model)
                ]
                rows = [row for ref in same for row in reader.attempts(ref) if not row.judges]
            counts = [count for row in rows if (count := getattr(row, kind)) is not None]
            if counts:
                found.append(counts)
        if len(found) == RUNS:
            break
    return found


def usual_text(found: tuple[int, int, int] | None) -> str:
    """`usually 1,204–1,560 (last 5 runs)`; empty where it is not known."""
    if found is None:
        return ""
    low, high, runs = found
    return f"usually {low:,}{f'–{high:,}' if high != low else ''} (last {runs} runs)"
