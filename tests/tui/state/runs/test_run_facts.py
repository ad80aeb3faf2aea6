"""The two lines at the head of a run: how far it is, and what it took."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tui_eval.model import Outcome
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.tui.state.runs.run_facts import figures_line
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.formatting import Symbols


def of_two_models() -> RunView:
    """Two cases with each of two agents; one answer of `large` is wrong, one has not come."""
    view = RunView(RunInfo("r1", agents=["small", "large"]), Path())
    view.apply_cases(
        StoredCase(n, f"s::{n}", "s", str(n), "promptfoo", agent, None, "", 1, 1)
        for n, agent in enumerate(("small", "large", "small", "large"), 1)
    )
    outcomes: tuple[Outcome | None, ...] = ("passed", "failed", "passed", None)
    view.apply_attempts(
        AttemptRow(
            n,
            n,
            1,
            "done" if outcome else "running",
            outcome,
            None,
            "",
            1.0,
            1.0,
            None,
            None,
            None,
            None,
            None,
            1,
            "",
            n,
        )
        for n, outcome in enumerate(outcomes, 1)
    )
    return view


def words(view: RunView, width: int, **options: bool) -> str:
    return "".join(text for _, text in figures_line(view, Symbols(), 0.0, width, **options))


def test_where_several_agents_are_asked_each_has_how_many_passed() -> None:
    view = of_two_models()
    assert words(view, 78).endswith("small ✓2/2, large ✓0/1")
    row = view.attempts[4]
    view.apply_attempts([msgspec.structs.replace(row, state="done", outcome="passed", changed=9)])
    again = msgspec.structs.replace(view.attempts[2], state="waiting", outcome=None, changed=10)
    view.apply_attempts([again])
    assert words(view, 78).endswith("small ✓2/2, large ✓1/1")


def test_where_there_is_no_room_or_the_list_holds_other_runs_too_the_agents_stand_alone() -> None:
    view = of_two_models()
    assert words(view, 30).endswith("small, large")
    assert words(view, 78, alone=False).endswith("small, large")
    view.info = msgspec.structs.replace(view.info, agents=["small"])
    assert words(view, 78).endswith("small")
