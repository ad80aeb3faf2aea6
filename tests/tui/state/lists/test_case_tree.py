"""Trees of tests: what folds by itself, what a test's line says, grouping by cause and agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, LiveRun, project
from tui_eval.case_names import names_by_values
from tui_eval.model import Attempt, Case, Entry, Problem, Suite
from tui_eval.store.writer import PlannedCase
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import Tree, View
from tui_eval.tui.state.lists.entries import not_passed, suite_entries
from tui_eval.tui.state.lists.tree_lines import build


def row(
    name: str, variant: str, status: str, cause: str = "", agent: str = "", suite: str = "s.yaml"
) -> CaseRow:
    key = f"{suite}::{name}::{variant}"
    return CaseRow(key, key, name, suite, "promptfoo", status, variant=variant, cause=cause, agent=agent)


ROWS = [
    row("Two", "terse · http", "failed", 'lacks "2 years"'),
    row("Two", "chat · http", "failed", 'lacks "2 years"'),
    row("Three", "terse · http", "failed", "178 < 140 is false"),
    row("Three", "chat · http", "passed"),
    row("Three", "friendly · http", "passed"),
    row("Four", "terse · http", "passed"),
    row("Four", "chat · http", "passed"),
    row("Five", "", "passed"),
    row("Six", "", "waiting"),
    row("Seven", "", "waiting"),
]


def seen(tree: Tree) -> list[tuple[str, str]]:
    """Each line as it is indented, with what stands beside its name."""
    told = []
    for line in tree.lines:
        summary = line.summary if line.kind in ("test", "fold") else None
        beside = f"{summary.variant} {summary.cause}".strip() if summary else ""
        told.append((f"{'  ' * line.depth}{line.name}", beside))
    return told


def test_alike_rows_fold_and_what_passed_or_waits_stands_in_one_line_at_the_end():
    assert seen(build(ROWS, [], View())) == [
        ("s.yaml", ""),
        ("  Two", 'all 2 lacks "2 years"'),
        ("  Three", "1 of 3"),
        ("    terse · http", ""),
        ("    2 × chat · http, friendly · http", ""),
        ("  2 waiting", ""),
        ("  2 tests, 3 passed", ""),
    ]


def test_a_fold_says_what_its_rows_share_where_their_reasons_differ_in_figures():
    rows = [row("Two", f"p{n}", "failed", f"lacks x; {n} < 4 is false") for n in (5, 6)]
    for one in rows:
        one.alike = "lacks x"
    assert seen(build(rows, [], View()))[1] == ("  Two", "all 2 lacks x")


@pytest.mark.parametrize(
    ("alike", "causes", "said"),
    [
        ("judge: not met", ["judge: rude", 'judge: rude; lacks "5; x"', "judge: rude"], "judge: rude"),
        ("judge: not met", ["judge: rude", "judge: rather rude"], "judge: not met"),
        ("judge: not met", ["judge: rude; lacks x", "judge: cold; lacks x"], "judge: not met"),
        ("latency > 6 s", ["49 s > 6 s", "105 s > 6 s; lacks x", "24.5 s > 6 s"], "24.5–105 s > 6 s"),
        ("latency > 500 ms", ["1.2 s > 500 ms", "850 ms > 500 ms"], "850 ms–1.2 s > 500 ms"),
        ("cost > $0.0010", ["$0.0500 > $0.0010", "$0.0100 > $0.0010"], "$0.0100–$0.0500 > $0.0010"),
        ("turns > 2", ["9 > 2 turns", "1,203 > 2 turns"], "9–1,203 > 2 turns"),
        ("lacks x", ["lacks x; 212 < 140 is false", "lacks x; 178 < 140 is false"], "lacks x"),
    ],
)
def test_rows_that_failed_alike_are_told_by_what_all_of_them_say(alike: str, causes: list[str], said: str):
    rows = [row("Two", f"p{n}", "failed", cause) for n, cause in enumerate(causes)]
    for one in rows:
        one.alike = alike
    assert seen(build(rows, [], View()))[1] == ("  Two", f"all {len(rows)} {said}")
    assert seen(build(rows, [], View(grouping="cause")))[0][0] == f"{len(rows)} × {said}"


def test_of_a_test_that_is_shown_in_part_the_line_says_of_how_many():
    rows = [row("Two", str(n), "failed" if n < 2 else "passed", "lacks x") for n in range(4)]
    for view in (View(accept=lambda one, _: one.status == "failed"), View(grouping="cause")):
        assert ("  Two", "2 of 4 lacks x") in seen(build(rows, [], view))


def test_a_model_that_is_called_as_its_agent_stands_once_in_the_line_of_both():
    rows = [row("One", "", "failed", agent="atlas"), row("Two", "", "failed", agent="atlas")]
    rows[0].model = "atlas"
    assert seen(build(rows, [], View(grouping="agent"))) == [("atlas", ""), ("  One", ""), ("  Two", "")]


def test_rows_under_a_line_of_their_agent_do_not_name_it_again() -> None:
    rows = [
        row("One", f"atlas {prompt}", status, agent="atlas")
        for prompt, status in (("terse", "passed"), ("chat", "failed"))
    ]
    for one in rows:
        one.case = Case(one.case_id, "s.yaml", "promptfoo", "One", column_name="atlas")
    assert [line.name for line in build(rows, [], View(grouping="agent")).lines[2:]] == ["terse", "chat"]
    assert [line.name for line in build(rows, [], View(grouping="test")).lines[1:]] == [
        "atlas terse",
        "atlas chat",
    ]


def test_the_line_of_a_test_counts_all_that_did_not_pass():
    rows = [
        row("Two", str(n), status, status) for n, status in enumerate(["failed", "error", "error", "passed"])
    ]
    assert seen(build(rows, [], View()))[1] == ("  Two", "3 of 4")
    assert seen(build(rows[:3], [], View()))[1] == ("  Two", "all 3")


def test_what_is_folded_unfolds_and_is_found():
    tree = build(ROWS, [], View())
    four = next(one for one in ROWS if one.name == "Four")
    line = tree.stands_for(four.key)
    assert line is not None and line.name == "2 tests, 3 passed"
    opened = build(ROWS, [], View(unfolded=set(tree.hiding(four.key))))
    assert "    Four" in [name for name, _ in seen(opened)]
    assert opened.index[four.key] > opened.index[line.key]


@pytest.mark.parametrize("outcome", ["waiting", ""])
def test_a_fold_stands_for_rows_of_one_outcome_also_until_the_list_is_made_anew(outcome: str):
    rows = [row("Two", f"{model} {p}", outcome) for model in ("fast", "large") for p in ("chat", "terse")]
    rows += [row("Two", "third chat", "failed", "lacks x"), row("Two", "third terse", "passed")]
    rows += [row(name, "", "waiting") for name in ("Six", "Seven")]
    tree = build(rows, [], View())
    fold, ended = (line for line in tree.lines if line.kind == "fold")

    def becomes(number: int, status: str) -> tuple[str, str, str, list[str]]:
        one, before = rows[number], rows[number].status
        one.status, one.cause = status, "lacks y" if status == "failed" else ""
        tree.update(one.key, before, status)
        line = fold if number < 4 else ended
        told = line.summary
        return told.status, told.name, told.variant + told.cause, [row.variant for row in line.standing]

    assert fold.summary.name == "4 × fast, large"
    left = ["fast terse", "large chat", "large terse"]
    assert becomes(0, "failed") == (outcome, "3 × fast terse; large", "", left)
    for number in (1, 2, 3):
        told = becomes(number, "running")
    assert told == ("running", "3 × fast terse; large", "", left)
    assert becomes(6, "failed")[:2] == ("waiting", "1 waiting")
    assert becomes(7, "running")[0] in ("running", "failed") and len(ended.standing) == 1


def test_a_fold_has_something_to_say_while_its_last_rows_change():
    """A row has its new status a moment before it is counted: the line may be painted between the two."""
    rows = [row(name, "", "waiting") for name in ("Six", "Seven")]
    tree = build([row("Five", "", "failed", "lacks x"), *rows], [], View())
    (fold,) = (line for line in tree.lines if line.kind == "fold")
    rows[0].status = "running"
    tree.update(rows[0].key, "waiting", "running")
    rows[1].status = "running"
    assert fold.summary.status == "running" and fold.telling is rows[0]


def test_what_never_began_folds_as_not_run_and_is_run_again():
    rows = [row(name, "", "not-run") for name in ("Eight", "Nine")]
    assert seen(build([*ROWS, *rows], [], View()))[-2:] == [("  2 not run", ""), ("  2 tests, 3 passed", "")]
    assert not_passed(rows) == rows


def test_what_is_wrong_in_the_configuration_stands_before_all_suites():
    wrong = Suite("tui_eval.yaml", "", problems=[Problem("tui_eval.yaml", 3, "run.concurency", "not a key")])  # type: ignore[arg-type]
    told = seen(build([row("One", "", "passed", suite="deep/a.yaml"), *ROWS], [wrong], View()))
    assert [name for name, _ in told][:2] == ["tui_eval.yaml", "  not a key"]


def test_every_case_is_in_the_tree_once_in_every_grouping():
    for grouping in ("file", "test", "agent", "cause"):
        for first in (False, True):
            tree = build(ROWS, [], View(grouping=grouping, failures_first=first))
            assert sorted(one.key for one in tree.shown) == sorted(one.key for one in ROWS)
            assert all(tree.stands_for(one.key) is not None for one in ROWS)


def test_no_two_lines_of_different_cases_read_the_same():
    for grouping in ("file", "test", "agent", "cause"):
        tree = build(ROWS, [], View(grouping=grouping))
        told = [
            (tuple(above.name for above in line.above), line.name, line.entry.variant if line.entry else "")
            for line in tree.lines
        ]
        assert len(told) == len(set(told))


def test_causes_are_the_largest_first_and_one_alone_has_no_line_of_its_own():
    rows = [row(f"n{n}", "", "failed", "refused :8941") for n in range(3)]
    rows += [row(f"m{n}", "", "error", "20 s > 8 s") for n in range(4)] + [row("one", "", "failed", "≠ 391")]
    assert [name for name, _ in seen(build(rows, [], View(grouping="cause")))] == [
        "4 × 20 s > 8 s",
        "  m0",
        "  m1",
        "  m2",
        "  m3",
        "3 × refused :8941",
        "  n0",
        "  n1",
        "  n2",
        "one",
    ]


def test_a_held_case_is_not_folded_away():
    held = ROWS[7].key
    names = [name for name, _ in seen(build(ROWS, [], View(held={held: 3})))]
    assert "  Five" in names and "  2 passed" not in names


def test_many_rows_make_few_lines():
    rows = [row(f"t{n // 6}", f"p{n % 6}", "failed", "same") for n in range(6_000)]
    tree = build(rows, [], View(failures_first=True))
    assert len(tree.lines) == 1_000 and len(tree.shown) == 6_000


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([{"q": "What is 2+2?"}, {"q": "What is 3+3?"}], ["What is 2+2?", "What is 3+3?"]),
        ([{"q": "Hi", "lang": "de"}, {"q": "Hi", "lang": "en"}], ["Hi · de", "Hi · en"]),
        ([{"q": "Hi"}, {"q": "Hi"}], ["Hi · Row #1", "Hi · Row #2"]),
        ([{"q": ""}, {"q": "x"}], ["Row #1", "x"]),
    ],
)
def test_a_row_without_a_name_is_called_by_its_variables(values, names):
    cases = [Case(f"s::{n}", f"Row #{n + 1}", "s", "promptfoo", vars=one) for n, one in enumerate(values)]
    assert names_by_values(cases) == names


def test_rows_of_a_file_are_called_by_their_variables_in_every_list():
    """promptfoo gives a row of a CSV file its number as a description too."""
    cases = [
        Case(f"s::{n}", f"Row #{n}", "s", "promptfoo", description=f"Row #{n}", vars={"q": f"What is {n}?"})
        for n in (1, 2)
    ]
    state = AppState(Path("."))
    state.set_suites([Suite("s", "promptfoo", cases=cases)])
    rows = suite_entries(state)
    assert [(row.name, row.test) for row in rows] == [("What is 1?", "Row #1"), ("What is 2?", "Row #2")]
    assert state.name_of("s::1", "Row #1") == "What is 1?" and state.name_of("gone", "Row #7") == "Row #7"


async def test_moving_shows_the_attempt_beside_the_list_and_keys_of_a_test_mean_all_its_rows(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, ["one", "two"])
    run.all_done(["failed", "failed"])
    async with running_app(root, (120, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and len(app.screen.shown_entries()) == 2, pilot)
        await until(lambda: "case 0 went wrong" in screen_text(app), pilot)
        await pilot.press("j")
        await until(lambda: "case 1 went wrong" in screen_text(app), pilot)
        await pilot.press("o")
        await until(lambda: "just now" in screen_text(app), pilot)


@pytest.mark.real
async def test_one_key_shows_the_answers_of_all_rows_of_a_test_one_after_the_other(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, [])
    cases = LiveRun(root, ["a case"]).cases
    refs = run.writer.plan([PlannedCase(cases[0], "offline", model, 1, 1, 1) for model in ("m1", "m2", "m3")])
    for number, (ref,) in enumerate(refs):
        said = [Entry(1, "user", text="hello"), Entry(1, "assistant", text=f"I am m{number + 1}")]
        outcome = "failed" if number else "passed"
        run.writer.done(ref, Attempt(cases[0].case_id, 1, outcome, agent="offline", transcript=said))
    run.finish()
    async with running_app(root, (120, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and len(app.screen.shown_entries()) == 3, pilot)
        await until(lambda: "I am m2" in screen_text(app), pilot)  # the first of those that stand worst
        assert "I am m3" not in screen_text(app)
        await pilot.press("O")
        await until(lambda: all(f"I am m{n}" in screen_text(app) for n in (1, 2, 3)), pilot)
        await pilot.press("O")
        await until(lambda: "I am m3" not in screen_text(app), pilot)
        for name in ("enter fold", "enter unfold", "enter open"):  # at last on the case that tells of it
            await until(lambda name=name: name in screen_text(app).splitlines()[-1], pilot)
            await pilot.press("enter")


async def test_a_group_says_its_cause_once_and_a_flaky_row_how_often_it_passed(tmp_path):
    root = project(tmp_path)
    names = ["refund is approved", "greets by name", "calms an angry customer"]
    run = LiveRun(root, names, attempts=2)
    for number in range(3):
        run.done(number, "failed", "it lacks the year", 0)
        run.done(number, "passed" if number == 2 else "failed", "it lacks the year", 1)
    run.finish()
    async with running_app(root, (80, 24)) as (app, pilot):
        await until(lambda: "flaky 1/2" in screen_text(app), pilot)
        assert all("it lacks the year" in line_with(app, name) for name in names)
        assert screen_text(app).count("flaky") == 1
        await pilot.press("I", "I", "I")
        await until(lambda: "3 × it lacks the year" in screen_text(app), pilot)
        assert line_with(app, "it lacks the year").count("3") == 1
        assert all("lacks" not in line_with(app, f"✗ {name}") for name in names[:2])


@pytest.mark.real
async def test_keys_on_the_line_of_a_test_act_on_all_its_rows(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, [])
    case = LiveRun(root, ["refund is approved"]).cases[0]
    refs = run.writer.plan([PlannedCase(case, "offline", model, 1, 1, 1) for model in ("m1", "m2", "m3")])
    engine = FakeEngine(root)
    async with running_app(root, (120, 40), open_run=run.folder, engine=engine) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and len(app.screen.shown_entries()) == 3, pilot)
        await until(lambda: app.services.engines.out_of_reach, pilot)
        app.services.engines.out_of_reach.clear()  # as if this app had started it
        await pilot.press("x")
        await until(lambda: engine.cancelled, pilot, 5)
        assert engine.cancelled == [(run.info.id, [ref for (ref,) in refs])]
        for (ref,) in refs:
            run.writer.done(ref, Attempt(case.case_id, 1, "failed", agent="offline", message="no"))
        run.finish()
        await until(lambda: "all 3" in screen_text(app) and not app.state.run.active, pilot)
        await pilot.press("full_stop")
        await until(lambda: engine.rescored, pilot)
        ((_, request),) = engine.rescored
        assert sorted(one.model or "" for one in request.cells or ()) == ["m1", "m2", "m3"]


def line_with(app, words: str) -> str:
    return next((line for line in screen_text(app).splitlines() if words in line), "")
