"""The two lines at the head of a run: how far it is, and what it took."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tui_eval.model import Outcome, Problem
from tui_eval.store.missing_cases import unread_remembered
from tui_eval.store.schema import AttemptRow, LiveRow, RunInfo, StoredCase
from tui_eval.tui.state.runs.run_facts import figures_line, progress_line, status_words, summary
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.formatting import Symbols


def of_two_models(small: str = "small", large: str = "large") -> RunView:
    """Two cases with each of two agents; one answer of `large` is wrong, one has not come."""
    view = RunView(RunInfo("r1", agents=[small, large]), Path())
    view.apply_cases(
        StoredCase(n, f"s::{n}", "s", str(n), "promptfoo", agent, None, "", 1, 1)
        for n, agent in enumerate((small, large, small, large), 1)
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


def test_a_run_whose_attempts_are_still_made_is_starting_and_not_at_0_of_0() -> None:
    made, none = of_two_models(), RunView(RunInfo("r1", agents=["small"], state="running"), Path())
    assert status_words(none, Symbols(), 0.0) == "● starting L"
    made.info.state = "running"
    assert status_words(made, Symbols(), 2.0).startswith("● 3/4 ✓2 ✗1")


def test_where_several_agents_are_asked_each_has_how_many_passed() -> None:
    view = of_two_models()
    assert words(view, 78).endswith("small ✓2/2, large ✓0/1")
    row = view.attempts[4]
    view.apply_attempts([msgspec.structs.replace(row, state="done", outcome="passed", changed=9)])
    again = msgspec.structs.replace(view.attempts[2], state="waiting", outcome=None, changed=10)
    view.apply_attempts([again])
    assert words(view, 78).endswith("small ✓2/2, large ✓1/1")


def test_agents_are_called_alike_with_and_without_figures() -> None:
    view = of_two_models(large="file://../spans.py")
    assert words(view, 78).endswith("small ✓2/2, spans.py ✓0/1")
    assert words(view, 78, alone=False).endswith("small, spans.py")


def progress(view: RunView, **whole: int) -> str:
    said = {status.replace("_", "-"): number for status, number in whole.items()}
    return "".join(text for _, text in progress_line(view, Symbols(), 110, said))


def test_of_a_list_in_which_a_part_runs_again_the_cases_are_counted_once() -> None:
    view = of_two_models()
    # Its own attempts: 3 of 4 ended; one of these is run again meanwhile.
    said = progress(view, passed=1, failed=1, running=1, waiting=1)
    assert "2/4" in said and "of 4" not in said and "3/4" not in said
    view.info = msgspec.structs.replace(view.info, linked_to="r0")
    assert "3/4 cases  of 9" in progress(view, passed=8, running=1)
    assert " of " not in progress(view, passed=3, running=1)  # all of them run again


def test_a_rerun_of_cases_with_several_attempts_counts_cases() -> None:
    """It was `6/6 cases` of two with three attempts each."""
    view = RunView(RunInfo("r2", "running", linked_to="r0"), Path())
    view.apply_cases(StoredCase(n, f"s::{n}", "s", str(n), "nao", "a", None, "", 3, 3) for n in (1, 2))
    row = of_two_models().attempts[1]
    rows = [
        msgspec.structs.replace(row, id=n, case_ref=1 + n // 4, attempt=(n - 1) % 3 + 1) for n in range(1, 7)
    ]
    waits = [msgspec.structs.replace(one, state="waiting", outcome=None) for one in rows]
    view.apply_attempts([*rows[:3], *waits[3:]])
    assert "1/2 cases  of 9" in progress(view, passed=8, waiting=1)
    view.apply_attempts([msgspec.structs.replace(one, changed=9) for one in rows[3:]])
    assert "2/2 cases  of 9" in progress(view, passed=9)


def test_what_a_cut_run_says_at_its_end_has_what_never_ran() -> None:
    """`run finished: 2 passed` of three attempts, where the command ends with 1, sounded as if all had."""
    view = of_two_models()
    view.info = msgspec.structs.replace(view.info, state="finished")
    waits = msgspec.structs.replace(view.attempts[4], state="waiting", changed=9)
    view.apply_attempts([waits])
    assert summary(view) == "finished: 2 passed, 1 failed, 1 not run"
    view.info = msgspec.structs.replace(view.info, options={"step": True})  # by hand: no result
    assert summary(view) == "finished: 2 passed, 1 failed"


def test_tokens_that_stream_are_estimated_in_the_head() -> None:
    """It said `0 tokens` of 500 cases that streamed 6,000 a second, until the first of them ended."""
    view = of_two_models()
    at_work = [
        msgspec.structs.replace(row, state="running", outcome=None, output_tokens=None, changed=9)
        for row in view.attempts.values()
    ]
    view.apply_attempts(at_work)
    assert words(view, 78).startswith("0 tokens")
    view.apply_live([LiveRow(1, 1, "assistant", "", "x" * 4_000, "", "", 110.0)])
    assert words(view, 78).startswith("~1,000 tokens")
    view.apply_attempts([msgspec.structs.replace(at_work[0], output_tokens=7, input_tokens=3, changed=10)])
    assert words(view, 78).startswith("10 tokens")


def test_tokens_of_an_attempt_whose_row_is_not_there_yet_are_in_the_head() -> None:
    """What is drawn then ended the app."""
    view = of_two_models()
    view.apply_attempts(
        msgspec.structs.replace(row, state="running", outcome=None, output_tokens=None, changed=9)
        for row in list(view.attempts.values())
    )
    view.apply_live([LiveRow(1, 99, "assistant", "", "x" * 4_000, "", "", 110.0)])
    assert words(view, 78).startswith("~1,000 tokens")


def test_tokens_of_attempts_that_did_not_end_stand_beside_those_of_results() -> None:
    view = of_two_models()
    used = [
        msgspec.structs.replace(view.attempts[n], input_tokens=0, output_tokens=n * 1_000, changed=9)
        for n in (1, 4)
    ]
    view.apply_attempts(used)
    assert words(view, 78).startswith("5,000 tokens")  # what is being used counts as it comes
    view.info = msgspec.structs.replace(view.info, state="interrupted")
    view.stand_still()
    assert "1,000 tokens" in words(view, 78) and "4,000 unfinished" in words(view, 78)


def test_what_never_began_of_a_run_that_was_cut_off_has_not_ended() -> None:
    view = of_two_models()
    assert "2/4" in progress(view, passed=1, failed=1, not_run=2)


def test_a_place_that_was_lost_is_named_once() -> None:
    """`ray · ray: the cluster at … is gon…` at 80 columns: the reason was cut for it."""
    view = of_two_models()
    view.info = msgspec.structs.replace(view.info, place="ray", note="ray: the cluster at head:10001 is gone")
    assert "ray: the cluster at head:10001 is gone · " in words(view, 78) and "ray · ray" not in words(
        view, 78
    )
    view.info = msgspec.structs.replace(view.info, note="2 files were not sent")
    assert "ray · 2 files were not sent · " in words(view, 78)


def test_where_there_is_no_room_or_the_list_holds_other_runs_too_the_agents_stand_alone() -> None:
    view = of_two_models()
    assert words(view, 20) == "small, large"
    assert words(view, 78, alone=False).endswith("small, large")
    view.info = msgspec.structs.replace(view.info, agents=["small"])
    assert words(view, 78).endswith("small")


def test_agents_that_report_no_tokens_have_not_used_none() -> None:
    view = of_two_models()
    assert "tokens" not in words(view, 78)
    view.apply_attempts(
        [msgspec.structs.replace(view.attempts[4], state="done", outcome="passed", input_tokens=7, changed=9)]
    )
    assert words(view, 78).startswith("7 tokens")


def test_a_run_that_is_not_whole_says_so() -> None:
    view = of_two_models()
    assert "not whole" not in words(view, 80)
    view.info.provenance = unread_remembered(
        [Problem("s.yaml", 2, "x", "broken"), Problem("t.yaml", 0, "", "gone")]
    )
    assert "not whole: 2 errors in its files" in words(view, 80)


def test_what_judges_took_stands_beside_the_agents_in_the_form_that_fits() -> None:
    view = of_two_models()
    rows = [
        msgspec.structs.replace(
            view.attempts[n], judge_calls=1, judge_tokens=1_200, judge_cost=0.1, changed=9
        )
        for n in (1, 2)
    ]
    view.apply_attempts(rows)
    assert "judges: 2,400 tokens, $0.2000" in words(view, 110)
    assert "judges: $0.2000" in words(view, 30)
    view.info.note = "shard 2 missing: 3 cases no part has (a, b, c)"
    view.info.provenance = {"merged": [{"id": "a", "shard": "1/2"}]}
    assert "judges: 2,400 tokens, $0.2000" in words(view, 130) and view.info.note in words(view, 130)
    assert view.info.note in words(view, 80)
    assert "shard 2 missing" in words(view, 60) and "judges" not in words(view, 60)
    view.info.note, view.info.provenance = "", {}
    view.apply_attempts(
        [
            msgspec.structs.replace(row, judge_calls=0, judge_tokens=None, judge_cost=None, changed=10)
            for row in rows
        ]
    )
    assert "judges" not in words(view, 110)


def test_the_command_by_which_a_shard_goes_on_is_whole_where_there_is_room() -> None:
    view = of_two_models()
    command = "tui-eval resume /shared/shards/0b7f9c1e/evals-1-x7k2p/.tui-eval/runs/20260101-000000-00000"
    view.info.note = f"shard 2/3 was cut off: {command}; 182 cases not run to the end (case 100)"
    assert command in words(view, 200)
