"""What an edit did to a suite's cases: which were renamed, which are gone, what is wrong now. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tui_eval.model import Problem, Suite


@dataclass(slots=True)
class EditedSuite:
    """`renamed` is new ids by old ones, `gone` the ids that nothing took the place of. `problems` are the
    errors in the files as they are now."""

    renamed: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The first error, and how many more there are; empty where there is none."""
        if not self.problems:
            return ""
        more = len(self.problems) - 1
        return f"{self.problems[0]}{f' (and {more} more)' if more else ''}"


def edited(before: Iterable[Suite], after: Iterable[Suite]) -> EditedSuite:
    """Compare suites with what they were, by their paths."""
    old = {suite.path: suite for suite in before}
    change = EditedSuite()
    for suite in after:
        change.problems += [problem for problem in suite.problems if problem.level == "error"]
        if suite.path in old:
            _compare(old[suite.path], suite, change)
    return change


def _compare(old: Suite, new: Suite, change: EditedSuite) -> None:
    was, now = [case.case_id for case in old.cases], [case.case_id for case in new.cases]
    known, there = set(was), set(now)
    missing = [case_id for case_id in was if case_id not in there]
    if not missing:
        return
    # As many cases as before: what stands in a case's place took its name from it.
    if len(was) == len(now):
        for ours, theirs in zip(was, now, strict=True):
            if ours not in there and theirs not in known:
                change.renamed[ours] = theirs
    fresh = [case_id for case_id in now if case_id not in known]
    if len(missing) == len(fresh) == 1:
        change.renamed[missing[0]] = fresh[0]
    change.gone.update(case_id for case_id in missing if case_id not in change.renamed)


def first_error(suites: Iterable[Suite], path: str) -> tuple[int, Problem] | None:
    """The first error of the suite of a path, and its number among the suite's problems; None: it has none."""
    for suite in suites:
        if suite.path == path:
            for number, problem in enumerate(suite.problems):
                if problem.level == "error":
                    return number, problem
    return None
