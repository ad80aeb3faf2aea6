"""Runs that are listed together, while a thread makes a list of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.store.summary import summarise
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.lists.entries import run_entries
from tui_eval.tui.state.runs.run_group import RunGroup, key_of
from tui_eval.tui.state.runs.run_view import RunView


def case(ref: int, name: str) -> StoredCase:
    return StoredCase(ref, f"s::{name}", "s", name, "nao", "bot", None, "h", 1, 1)


def attempt(ref: int, number: int = 1, outcome: Any = "passed", case_ref: int | None = None, **more: Any):
    return AttemptRow(
        ref, case_ref or ref, number, "done" if outcome else "running", outcome, None, "", 1.0, 5.0, None, None, None,
        None, None, 1, "", changed=1, **more,
    )  # fmt: skip


def view(number: int, names: str, outcome: Any = "passed") -> RunView:
    run = RunView(RunInfo(f"r{number}", "finished", started_at=float(number)), Path(f"r{number}"))
    run.apply_cases(case(ref, name) for ref, name in enumerate(names, 1))
    run.apply_attempts(attempt(ref, outcome=outcome) for ref in run.cases)
    return run


class Peeping(dict[Any, Any]):
    """Calls `peep` before each of its items is told, and after each is set, as a thread might look in."""

    peep: Any = staticmethod(lambda: None)

    def items(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        for item in super().items():
            self.peep()
            yield item

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.peep()


def test_whoever_reads_a_group_while_a_run_is_taken_in_finds_every_case():
    """Its cases were emptied and filled again: `KeyError: 's::a…'` as a notice, a list that was never made, and the
    head of a rerun of thousands `2,190/3,564 of 0 ✓0 ✗0`."""
    first, state = view(1, "abc"), AppState(Path("."))
    group = RunGroup([first])
    listed: list[int] = []

    def peep() -> None:
        listed.append(len(run_entries(group, state)))

    first.cases = Peeping(first.cases)
    first.cases.peep = peep
    group.add(view(2, "bc"))
    group.renew()
    assert len(listed) == 6 and set(listed) == {3}


def test_a_list_that_is_being_made_keeps_a_run_that_is_left_out_meanwhile():
    group = RunGroup([view(1, "ab"), view(2, "bc")])
    before = group.as_now()
    group.drop("r2")
    assert len(before.cases) == 3 and before.newest(key_of(case(2, "b")))[0].info.id == "r2"
    assert len(group.cases) == 2


def test_an_attempt_that_comes_while_a_list_is_made_is_whole_or_not_there_yet():
    run = view(1, "ab")
    seen: list[int] = []

    def peep() -> None:
        seen.append(len(run.attempts_of(1)))

    for name in ("attempts", "by_case"):
        held = Peeping(getattr(run, name))
        held.peep = peep
        setattr(run, name, held)
    before = run.by_case[1]
    run.apply_attempts([attempt(4, 3, "failed", 1), attempt(3, 2, "failed", 1)])
    assert seen == [1, 2, 2, 3] and before == [1]
    assert [row.attempt for row in run.attempts_of(1)] == [1, 2, 3]


def test_a_case_waits_where_earlier_runs_have_its_done_attempts_and_one_more_waits():
    """`● 1 running` stood above `waiting for workers`; in its own run a case is running until its last
    attempt is done."""
    first, more = view(1, "a"), view(2, "")
    more.info = msgspec.structs.replace(more.info, state="running")
    more.apply_cases([case(1, "a")])
    waits = msgspec.structs.replace(attempt(1, 2, None), state="waiting", changed=2)
    more.apply_attempts([waits])
    group = RunGroup([first, more])
    (key,) = group.cases
    assert group.status(key) == "waiting"
    more.apply_attempts([msgspec.structs.replace(waits, state="running", changed=3)])
    assert group.status(key) == "running"
    more.apply_attempts([attempt(2, 3, case_ref=1), msgspec.structs.replace(waits, changed=4)])
    assert group.status(key) == "running"


def cut(outcomes: list[Any], required: int = 3, threshold_of: int = 3) -> RunView:
    """A run that a limit ended: of its one case these attempts ended, of which None never began."""
    run = RunView(RunInfo("r1", "finished", started_at=1.0), Path("r1"))
    one = msgspec.structs.replace(case(1, "a"), attempts=threshold_of, required=required)
    run.apply_cases([one])
    rows = (attempt(n, n, outcome or "passed", 1) for n, outcome in enumerate(outcomes, 1))
    run.apply_attempts(
        row if outcome else msgspec.structs.replace(row, state="waiting", outcome=None)
        for row, outcome in zip(rows, outcomes, strict=True)
    )
    return run


@pytest.mark.parametrize(
    ("outcomes", "required", "status"),
    [
        (["passed", "failed", None], 3, "failed"),
        (["failed", None, None], 2, "failed"),
        (["error", None, None], 3, "error"),
        (["passed", "passed", None], 3, "not-run"),
        (["passed", "passed", None], 2, "passed"),
        ([None, None, None], 3, "not-run"),
        (["passed", "cancelled", None], 3, "cancelled"),
        (["skipped", "failed", "passed"], 3, "failed"),
    ],
)
def test_a_case_of_a_run_that_was_cut_is_what_every_command_says_of_it(outcomes, required, status):
    """One that failed before `--fail-fast` ended the run was `not run` in the app, failed everywhere else, and `R`
    left it out."""
    run = cut(outcomes, required)
    group = RunGroup([run])
    (key,) = group.cases
    assert group.status(key) == run.status(1) == status
    assert (summarise(run.cases[1], run.attempts_of(1)).outcome or "not-run") == status
    entry = run_entries(group, AppState(Path(".")))[0]
    assert entry.status == status


def test_while_the_run_goes_on_such_a_case_is_still_running():
    run = cut(["failed", None, None])
    run.info = msgspec.structs.replace(run.info, state="running")
    group = RunGroup([run])
    (key,) = group.cases
    assert group.status(key) == run.status(1) == "running" and run.outcome(1) is None
