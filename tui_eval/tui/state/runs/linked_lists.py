"""Attempts of one case over a run and the runs linked to it (`+`, `R`): which belong together, and
what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from tui_eval.store.linked import Placed, generations
from tui_eval.store.schema import AttemptRow


def merged(
    own: Sequence[Placed], run_id: str, rows: Iterable[AttemptRow], instead: tuple[str, int] | None = None
) -> list[Placed]:
    """The attempts with those of one run taken anew, in the order of runs."""
    fresh = [Placed(run_id, row, instead) for row in rows]
    others = [one for one in own if one.run_id != run_id]
    return sorted([*others, *fresh], key=lambda one: one.run_id)


def together(placed: Sequence[Placed], run_id: str) -> list[Placed]:
    """Of all attempts of a family, those that count together with a run's (`store.linked.generations`)."""
    runs = [list(own) for _, own in groupby(placed, lambda one: one.run_id)]
    groups = generations(runs)
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
