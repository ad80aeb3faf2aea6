"""Attempts of one case over a run and the runs linked to it (`+`, `R`): which belong together, and
what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tui_eval.store.schema import AttemptRow


class Placed(NamedTuple):
    """An attempt and the run it is in; attempts' ids are unique within a run only."""

    run_id: str
    row: AttemptRow

    @property
    def state(self) -> str:
        """The outcome, or what it is doing: `running`, `waiting`."""
        state = self.row.outcome or self.row.state
        return "running" if state == "retrying" else state


def merged(own: Sequence[Placed], run_id: str, rows: Iterable[AttemptRow]) -> list[Placed]:
    """The attempts with those of one run taken anew, in the order of runs."""
    fresh = [Placed(run_id, row) for row in rows]
    others = [one for one in own if one.run_id != run_id]
    return sorted([*others, *fresh], key=lambda one: one.run_id)


def together(placed: Sequence[Placed], run_id: str) -> list[Placed]:
    """Of all attempts of a family, those that count together with a run's: a run that begins at attempt 1
    is a rerun and begins anew, one that begins later adds to the attempts before."""
    groups: list[list[Placed]] = []
    seen = ""
    for one in placed:
        if not groups or (one.run_id != seen and one.row.attempt == 1):
            groups.append([])
        seen = one.run_id
        groups[-1].append(one)
    return next((group for group in groups if any(one.run_id == run_id for one in group)), list(placed))


def stability(states: Sequence[str]) -> str:
    """What several attempts come to: `2/3 flaky`, `0/3 broken`, `3/3 steady`; nothing where fewer than
    two have ended. Attempts that were cancelled or skipped say nothing."""
    told = [state for state in states if state in ("passed", "failed", "error")]
    if len(told) < 2:
        return ""
    passed = told.count("passed")
    word = "steady" if passed == len(told) else "broken" if not passed else "flaky"
    return f"{passed}/{len(told)} {word}"
