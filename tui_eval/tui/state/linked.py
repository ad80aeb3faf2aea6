"""Attempts of one case over a run and the runs linked to it (`+`, `R`): which belong together, and
what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tui_eval.store.schema import AttemptRow


class Placed(NamedTuple):
    """An attempt and the run it is in; attempts' ids are unique within a run only. `instead` names the run
    and the attempt whose place it takes: it judges that one again, or goes on from one of its turns."""

    run_id: str
    row: AttemptRow
    instead: tuple[str, int] | None = None

    @property
    def state(self) -> str:
        """The outcome, or what it is doing: `running`, `waiting`."""
        state = self.row.outcome or self.row.state
        return "running" if state == "retrying" else state


def merged(
    own: Sequence[Placed], run_id: str, rows: Iterable[AttemptRow], instead: tuple[str, int] | None = None
) -> list[Placed]:
    """The attempts with those of one run taken anew, in the order of runs."""
    fresh = [Placed(run_id, row, instead) for row in rows]
    others = [one for one in own if one.run_id != run_id]
    return sorted([*others, *fresh], key=lambda one: one.run_id)


def together(placed: Sequence[Placed], run_id: str) -> list[Placed]:
    """Of all attempts of a family, those that count together with a run's: a run that begins at attempt 1
    is a rerun and begins anew, one that begins later adds to the attempts before, and an attempt judged
    again stands where it stood before."""
    groups: list[list[Placed]] = []
    seen = ""
    for one in placed:
        if one.instead is not None and _replaced(groups, one):
            continue
        if not groups or (one.run_id != seen and one.row.attempt == 1):
            groups.append([])
        seen = one.run_id
        groups[-1].append(one)
    return next((group for group in groups if any(one.run_id == run_id for one in group)), list(placed))


def _replaced(groups: list[list[Placed]], one: Placed) -> bool:
    """Put an attempt where the one stood that it takes the place of; False where that is not known."""
    for group in groups:
        for at, other in enumerate(group):
            if (other.run_id, other.row.id) == one.instead:
                group[at] = one
                return True
    return False


def stability(states: Sequence[str]) -> str:
    """What several attempts come to: `2/3 flaky`, `0/3 broken`, `3/3 steady`; nothing where fewer than
    two have ended. Attempts that were cancelled or skipped say nothing."""
    told = [state for state in states if state in ("passed", "failed", "error")]
    if len(told) < 2:
        return ""
    passed = told.count("passed")
    word = "steady" if passed == len(told) else "broken" if not passed else "flaky"
    return f"{passed}/{len(told)} {word}"
