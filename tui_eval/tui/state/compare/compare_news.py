"""What runs, or has ended, of cases that are compared: a rerun while one looks at two attempts or runs. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tui_eval.tui.state.runs.run_group import RunGroup

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


def news_of(group: RunGroup | None, case_id: str, known: Collection[tuple[str, int]]) -> CompareNews:
    """Attempts of a case in the runs in front that are not known yet, whatever agent they ask."""
    working, ended, outcome = 0, [], ""
    for run in group.runs if group is not None else ():
        for ref in run.refs.get(case_id, ()):
            for row in run.attempts_of(ref):
                if row.state != "done":
                    working += run.active
                elif row.outcome not in _NO_ANSWER and (run.info.id, row.id) not in known:
                    ended.append((run.info.id, row.id))
                    outcome = row.outcome or ""
    return CompareNews(working, tuple(ended), outcome)


def news_since(group: RunGroup | None, compared: Collection[str]) -> dict[str, CompareNews]:
    """By case what runs that began after those compared, and do not count with them, have of it."""
    found: dict[str, CompareNews] = {}
    for run in group.runs if group is not None else ():
        if not compared or run.info.id in compared or run.info.id < max(compared):
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
