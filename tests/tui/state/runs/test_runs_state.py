"""Runs without a screen: lines, plots, distributions, search results, the grid."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.attempts import HOSTILE
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.model import Case, Turn
from tui_eval.store.failure_modes import Assessment, FailedAttempt, FailureMode
from tui_eval.store.full_text import Hit
from tui_eval.store.indexed_run import name_of_cases
from tui_eval.store.schema import RunInfo, RunSummary, StoredCase
from tui_eval.tui.keys import COMPARE_KEYS, GRID_KEYS, KEYS, RUN_PLACES, RUNS_KEYS, SIDES_KEYS
from tui_eval.tui.screens import run_plots
from tui_eval.tui.screens.run_plots import plot_lines
from tui_eval.tui.state.compare.grid_view import (
    cell_line,
    grid,
    heads,
    metric_lines,
    title_lines,
    total_line,
    widths,
)
from tui_eval.tui.state.compare.grid_view import row_line as grid_row
from tui_eval.tui.state.lists import run_line
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.run_line import (
    RunLine,
    adding_to,
    alike,
    begun_apart,
    holds,
    names_apart,
    outcome_sign,
    points,
    row_line,
    titles,
    under_their_runs,
    with_hidden,
)
from tui_eval.tui.state.runs.runs_view import RunFacts, action_of, detail_rows
from tui_eval.tui.state.runs.search_view import FoundEntry, began_at, excerpt
from tui_eval.tui.state.runs.search_view import row_line as found_line
from tui_eval.tui.state.runs.trends import (
    Point,
    condensed,
    distribution_lines,
    histogram,
    percentile,
    share,
    trend_lines,
)
from tui_eval.tui.state.text.lines import letters, plain, width_of

NOW = 1_790_000_000.0
BAD = {chr(code) for code in CONTROL_TABLE} - {"\n"}


def run(
    number: int = 1, state: Any = "finished", passed=8, failed=2, linked_to=None, what="suites (10 cases)"
):
    return RunLine(
        RunSummary(
            f"2026060{number}-120000-abcd", state, NOW - 3600 * (10 - number), NOW - 3600 * (10 - number) + 90,
            what, "support", passed + failed, passed, failed, 0, 0, 0.0123, linked_to,
        ),
        1200.0,
        4567,
    )  # fmt: skip


@pytest.mark.parametrize("keys", [RUNS_KEYS, COMPARE_KEYS, SIDES_KEYS, GRID_KEYS])
def test_no_key_of_a_place_clashes(keys):
    pressed = [part for key in keys for part in key.keys.split(",")]
    taken = [part for key in KEYS if key.place in ("everywhere", "moving") for part in key.keys.split(",")]
    assert len(set(pressed)) == len(pressed) and not set(pressed) & set(taken)
    assert len({key.id for key in (*KEYS, *RUN_PLACES)}) == len(KEYS) + len(RUN_PLACES)


@pytest.mark.parametrize("width", [60, 78, 120])
def test_a_run_says_its_age_counts_rate_and_state_in_words(width):
    text = plain(row_line(run(3), width, NOW))
    assert len(text) <= width
    for part in ("✗", "7h", "8", "2", "80%", "$0.0123", "suites"):
        assert part in text
    assert "interrupted" in plain(row_line(run(state="interrupted"), width, NOW))
    assert plain(row_line(run(), width, NOW, [run().run.id])).startswith("*")
    assert "↳" in plain(row_line(run(linked_to="x"), width, NOW))


@pytest.mark.parametrize("width", [76, 90])
def test_agents_are_counted_whose_names_have_no_room(width):
    """A run with 500 of them read `6 agents`: those whose names had room in 60 characters."""
    replace, many = msgspec.structs.replace, run(what="s.yaml (20 cases)")
    names = [f"agent{number:03}" for number in range(500)]
    many = replace(many, run=replace(many.run, agents=", ".join(names)))
    assert "500 agents" in plain(row_line(many, width, NOW))
    rows = [plain(row.line) for row in detail_rows(many, None, [], 78)]
    assert any("more" in row for row in rows[:8]) and not any("agent400" in row for row in rows)
    few = replace(many, run=replace(many.run, agents=", ".join(names[:30])))
    assert "agent029" in " ".join(plain(row.line) for row in detail_rows(few, None, [], 78))


def test_lines_that_read_the_same_are_made_once(monkeypatch):
    lines, texts = [run(number, what="s.yaml (3 cases)") for number in range(1, 10)], {}
    first, whole = begun_apart(lines, 78, texts=texts), begun_apart(lines, texts=texts)
    assert first == begun_apart(lines, 78) and whole == begun_apart(lines)
    assert [holds(one, "finished s.yaml", whole[one.run.id], texts) for one in lines] == [True] * 9
    monkeypatch.setattr(run_line, "row_line", None)  # is not called again
    assert (begun_apart(lines, 78, texts=texts), begun_apart(lines, texts=texts)) == (first, whole)
    assert not any(holds(one, "failed:9", whole[one.run.id], texts) for one in lines)


def test_where_no_cost_is_known_what_was_run_has_its_room():
    name = "Do you ship to Norway"
    free = run(linked_to="x", what="suite.yaml (1 case)")
    replace = msgspec.structs.replace
    free = replace(free, run=replace(free.run, cost=None, stepped=True, only=name))
    assert name in plain(row_line(free, 64, NOW, priced=False)) and name not in plain(row_line(free, 64, NOW))
    for priced in (True, False):
        row = plain(row_line(run(), 90, NOW, priced=priced))
        assert row.index("suites") == plain(titles(90, priced=priced)).index("what")


def test_what_can_be_done_with_a_run_depends_on_its_state():
    assert "attaches" in action_of(run(state="running"), ())
    assert "follows" in action_of(run(state="running"), {run().run.id})
    assert "u goes on" in action_of(run(state="interrupted"), ())


@pytest.mark.parametrize("width", [60, 70, 80, 110, 160])
def test_a_path_loses_its_folders_before_its_name_is_cut(width):
    one = run(what="deep/folder/of/suites/customer_support.yaml (13 cases)")
    text = plain(row_line(one, width, NOW))
    assert width_of(row_line(one, width, NOW)) <= width and (one.places[0], one.cases) == ("d", "13")
    if width >= 70:
        assert "customer_support" in text
    assert ("deep/folder" in text) == (width >= 110)
    assert ("(13 cases) · support" in text) == (width >= 110)
    assert run(what="no count").cases == "" and run(what="a, b (1 case)").places == "a, b"


@pytest.mark.parametrize(
    ("width", "words"), [(58, "58 cases"), (70, "58 cases · support"), (80, "58 cases · support")]
)
def test_a_run_of_many_files_is_called_by_its_cases_not_by_the_first_of_its_files(width, words):
    """`…/accents … (58)` read as a run of that file."""
    one = run(what="tests/accents.yml, tests/actual_empty.yml, tests/agent_bad_sql.yml … (58 cases)")
    text = plain(row_line(one, width, NOW))
    assert text.endswith(words) and "accents" not in text and width_of(row_line(one, width, NOW)) <= width
    assert "accents.yml, tests/actual_empty.yml" in plain(row_line(one, 160, NOW))


def test_answers_from_the_cache_are_said_apart_from_what_was_spent():
    summary = RunSummary(
        "20260601-120000-abcd", "finished", NOW, NOW, "a", "", 3, 3, 0, 0, 0, 0.02, None, 2, 0.5
    )
    text = "\n".join(plain(row.line) for row in detail_rows(RunLine(summary), None, [], 78))
    assert "$0.0200 · 2 cached, $0.5000 saved" in text


def test_a_cached_run_is_no_cheaper_nor_faster_in_the_plots():
    summary = msgspec.structs.replace(run(1).run, cost=0.0, saved=0.04, cached=4, cost_of=4)
    (point,) = points([msgspec.structs.replace(run(1), run=summary)])
    assert (point.cost, point.whole_cost, point.seconds) == (0.01, 0.04, None)


@pytest.mark.parametrize(("width", "height"), [(80, 20), (60, 9)])
def test_an_attempt_costs_what_those_cost_whose_cost_is_known(width, height):
    """Ten attempts, of four of which it is known: it was divided by ten, and Compare divided by four."""
    lines = [run(1), run(2)]
    known = msgspec.structs.replace(run(3).run, cost=0.04, cost_of=4, tokens_of=10)
    lines.append(msgspec.structs.replace(run(3), run=known))
    found = points(lines)
    assert found[-1].cost == 0.01 and found[-1].tokens == 456.7
    text = "\n".join(map(plain, plot_lines(found, width, height, found[-1].run_id)))
    assert "$0.0100 (of 4 known)" in text and text.count("known") == 1
    narrow = "\n".join(map(plain, trend_lines(found, 50, 2, found[-1].run_id)))
    assert "this run $0.0100" in narrow and "of 4" not in narrow and "…" not in narrow


@pytest.mark.parametrize("width", [60, 80, 120])
def test_two_reruns_of_one_case_say_which_and_by_whose_rules(width):
    def line(only: str, rules: str = "") -> str:
        one = run(4, passed=1, failed=0, linked_to="x", what="deep/promptfooconfig.yaml (1 case)")
        facts = msgspec.structs.replace(one.run, only=only, rules=rules)
        return plain(row_line(msgspec.structs.replace(one, run=facts), width, NOW))

    assert "greets" in line("greets") and "says bye" in line("says bye")
    assert ("promptfooconfig" in line("greets")) == (width > 60)
    marked = line("greets", "reference")
    assert ("reference " if width > 60 else "ref ") in marked and "greets" in marked
    assert len(line("greets " * 40)) <= width


def test_cases_of_one_name_are_called_by_what_tells_them_apart_and_by_their_file_where_that_does():
    def line(only: str, file: str, width: int) -> str:
        facts = [
            msgspec.structs.replace(run(n).run, only=name, what=f"{path} (1 case)")
            for n, (name, path) in enumerate(
                [("second", "a/guide.yaml"), ("second", "b/other.yaml"), (only, file)]
            )
        ]
        lines = [RunLine(one) for one in facts]
        return plain(row_line(lines[-1], width, NOW, (), "", names_apart(lines)[facts[-1].id]))

    assert "guide" in line("second", "a/guide.yaml", 60) and "other" in line("second", "b/other.yaml", 60)
    assert "fruit · mini terse" in line("fruit · mini terse", "pf/promptfooconfig.yaml", 66)
    assert "promptfooconfig" in line("fruit · mini terse", "pf/promptfooconfig.yaml", 100)


@pytest.mark.parametrize(
    ("variants", "ids", "name"),
    [
        (["mini terse"], [""], "fruit · mini terse"),
        (["mini terse", "mini chatty", "mini terse"], ["", "", ""], "fruit · mini terse, chatty"),
        (["mini terse", "large chatty"], ["", ""], "fruit · mini terse, large chatty"),
        (["a", "b", "c", "d"], [""] * 4, "fruit"),
        ([""], ["#2"], "fruit · #2"),
        (["", ""], ["", "::x#2"], "fruit · #2"),
        ([], [], ""),
    ],
)
def test_what_the_cases_of_a_run_of_one_name_are_called(variants, ids, name):
    cases = [
        StoredCase(
            1, f"pf/a.yaml::fruit{end}", "pf/a.yaml", "fruit", "promptfoo", "x", None, "", 1, 1, variant
        )
        for variant, end in zip(variants, ids, strict=True)
    ]
    assert name_of_cases(cases) == name


def test_a_run_of_one_case_below_a_folder_says_its_suite():
    one = msgspec.structs.replace(run(what="suites (1 case)").run, only="second", suite="suites/guide.yaml")
    assert one.told == "suites/guide.yaml (1 case) › second"
    assert "suites/guide.yaml › second" in plain(row_line(RunLine(one), 100, NOW))


def test_agents_that_the_name_of_a_case_says_are_not_said_twice():
    def told(only: str, agents: str) -> str:
        return msgspec.structs.replace(run().run, only=only, agents=agents).other_agents

    assert told("fruit · atlas-mini terse", "openai:chat:atlas-mini") == ""
    assert told("fruit · mini terse, large chatty", "mini, large") == ""
    assert told("fruit · terse", "mini") == "mini" and told("mini", "mini") == "mini" and told("", "a") == "a"


def test_what_judges_took_is_said_beside_what_the_agents_took():
    summary = RunSummary(
        "20260601-120000-abcd", "finished", NOW, NOW, "a", "", 3, 3, 0, 0, 0, 0.02, None, judge_tokens=15_096, judge_cost=0.2
    )  # fmt: skip
    text = "\n".join(plain(row.line) for row in detail_rows(RunLine(summary), None, [], 78))
    assert "$0.0200 · judges: 15,096 tokens, $0.2000" in text


def damaged():
    return RunLine(RunSummary(
        "20260601-120000-abcd", "damaged", NOW - 3600, None, "/x/run.db: damaged: not a database", "",
        0, 0, 0, 0, 0, None, None,
    ))  # fmt: skip


@pytest.mark.parametrize("width", [52, 60, 78])
def test_a_damaged_run_says_why_and_what_to_do(width):
    text = plain(row_line(damaged(), width, NOW))
    assert "! " in text and "damaged 20260601-120000-abcd" in text and ("not a" in text or width < 60)
    rows = detail_rows(damaged(), None, points([run(2), run(1)]), width)
    text = "\n".join(plain(row.line) for row in rows)
    assert "not a database" in text and "D deletes it" in text and "over the runs" not in text
    assert points([damaged(), run(1)]) == points([run(1)])


def test_a_run_of_a_newer_version_is_kept_for_it():
    one = RunLine(
        msgspec.structs.replace(damaged().run, state="newer", what="written by a newer tui-eval (schema 2)")
    )
    assert "newer 20260601-120000-abcd" in plain(row_line(one, 78, NOW))
    text = "\n".join(plain(row.line) for row in detail_rows(one, None, [], 78))
    assert "! newer" in text and "update this one to open it" in text and "D deletes" not in text


def test_a_run_that_was_cut_off_says_how_much_is_left():
    one = run(3, state="interrupted", passed=8, failed=2)
    cut_off = RunLine(msgspec.structs.replace(one.run, total=40, cancelled=5))
    text = "\n".join(plain(row.line) for row in detail_rows(cut_off, None, [], 78))
    assert "25 of 40 attempts not run" in text and "8 of 10 attempts passed" in text
    assert "5 of 40 attempts cancelled" in text, (
        "else it seems to be another run than the one whose table says 8 of 15"
    )


def test_plots_are_of_runs_of_the_same_suites_and_of_an_attempt():
    other = run(4, what="prompts (20 cases)")
    runs = [other, run(3, what="suites (11 cases)"), run(2), run(1)]
    assert alike(runs, runs[1]) == runs[1:]
    assert alike(runs, other) == runs and alike(runs, None) == runs
    rows = detail_rows(run(3), None, points(runs[1:]), 78, same=True)
    assert "3 of the same suites, s: all" in "\n".join(plain(row.line) for row in rows)
    point = points([run(1)])[0]
    assert (point.cost, point.tokens, point.whole_cost, point.whole_tokens) == (
        pytest.approx(0.00123), 456.7, 0.0123, 4567,
    )  # fmt: skip
    assert point.seconds == pytest.approx(90)
    assert run_plots.figures(points(runs)) == [
        "pass rate", "latency", "tokens", "cost", "all tokens", "all cost", "time taken",
    ]  # fmt: skip
    for only, said in (
        ("all tokens", "4,567"),
        ("tokens", "457"),
        ("time taken", "1m30s"),
        ("cost", "$0.0012"),
    ):
        for width, height in ((118, 38), (58, 14)):
            lines = plot_lines(points(runs), width, height, run(2).run.id, only=only)
            text = "\n".join(plain(line) for line in lines)
            assert only in text and said in text, (only, text)


def test_a_scale_names_no_half_that_reads_as_its_top():
    def cheap(number: int) -> RunLine:
        return msgspec.structs.replace(run(number), run=msgspec.structs.replace(run(number).run, cost=0.001))

    lines = [plain(line) for line in plot_lines(points([cheap(1), cheap(2)]), 80, 30, only="cost")]
    assert sum("$0.0001┤" in line for line in lines) == 1 and any("$0.0000┤" in line for line in lines)


def test_a_share_is_never_rounded_to_all_or_nothing():
    assert [share(v) for v in (0.0, 0.001, 0.5, 0.999, 1.0)] == ["0%", "1%", "50%", "99%", "100%"]


def test_details_tell_interval_failures_and_distribution():
    mode = FailureMode("should_contain: refund", 2, 1.0, 2, [FailedAttempt(7, "s::a", 1, "no")])
    facts = RunFacts(
        RunInfo("x"), [float(i * 100) for i in range(1, 11)], [10.0] * 10, Assessment(10, 8, [mode])
    )
    rows = detail_rows(run(3), facts, points([run(3), run(2), run(1)]), 60)
    text = "\n".join(plain(row.line) for row in rows)
    assert "8 of 10 attempts passed, 80% (49% to 94% at 95%)" in text
    assert "2 100%  should_contain: refund in 2 cases" in text
    assert "median 500ms" in text and "▲" in text and "tokens" in text
    assert all(width_of(row.line) <= 60 for row in rows)
    assert [row.example.attempt_ref for row in rows if row.example] == [7]
    assert "cannot" in plain(detail_rows(run(), RunFacts(problem="cannot be read"), [], 60)[-1].line)


def test_linked_runs_are_not_points_of_their_own():
    assert [p.run_id for p in points([run(3, linked_to="x"), run(2), run(1)])] == [
        run(1).run.id,
        run(2).run.id,
    ]


def of(line: RunLine, what: str, **changes: Any) -> RunLine:
    summary = msgspec.structs.replace(line.run, what=what, **changes)
    return msgspec.structs.replace(line, run=summary)


def test_reruns_of_a_part_stand_under_their_run_and_are_no_points():
    whole = [of(run(number), "s.yaml (100 cases)") for number in (1, 2)]
    above = whole[1].run.id
    part = [of(run(3), "s.yaml (1 case)", part_of=above), of(run(4), "s.yaml (49 cases)", part_of=above)]
    other = of(run(6), "other.yaml (1 case)")
    step = of(run(7), "s.yaml (1 case)", passed=0, failed=0, errors=0, part_of=whole[0].run.id)
    runs = [*whole, *part, other, step]
    assert [point.run_id for point in points(runs)] == [one.run.id for one in (*whole, other)]
    listed = under_their_runs(runs[::-1])
    assert [one.run.id for one in listed] == [one.run.id for one in (whole[0], step, other, whole[1], *part)]
    assert ["↳" in plain(row_line(one, 80, NOW)) for one in listed] == [0, 1, 0, 0, 1, 1]
    (detail,) = [row for row in detail_rows(listed[1], None, [], 80) if "a part of" in plain(row.line)]
    assert whole[0].run.id in plain(detail.line)


def test_a_rerun_whose_run_is_deleted_does_not_read_as_one_of_the_run_above_it():
    whole, gone = of(run(2), "s.yaml (9 cases)"), of(run(1, linked_to="deleted"), "s.yaml (3 cases)")
    again = of(run(3, linked_to=whole.run.id), "s.yaml (1 case)")
    told = [plain(row_line(one, 80, NOW)) for one in under_their_runs([again, whole, gone])]
    assert ["its run is gone" in one for one in told] == [False, False, True]


def test_a_step_is_called_one_and_not_one_that_did_not_run():
    step = of(run(7), "s.yaml (1 case)", passed=0, failed=0, errors=0, total=1)
    assert "1 of 1 attempts not run" in words_of(detail_rows(step, None, [], 80))
    facts = RunFacts(info=RunInfo("x", options={"step": True}))
    said = words_of(detail_rows(step, facts, [], 80))
    assert (
        "stepped through turn by turn: what was changed by hand is no result" in said
        and "not run" not in said
    )


def words_of(rows: list) -> str:
    return "\n".join(plain(row.line) for row in rows)


def test_a_step_says_that_it_is_one_and_is_no_point_of_the_plots():
    first = run(1, what="s.yaml (1 case)")
    again = run(2, what="s.yaml (1 case)")
    step = RunLine(msgspec.structs.replace(run(3, what="s.yaml (1 case)").run, stepped=True))
    below = of(step, "s.yaml (1 case)", part_of=first.run.id)
    assert "↳ step s.yaml" in plain(row_line(below, 80, NOW))
    assert " step s.yaml" in plain(row_line(step, 80, NOW)) and "step" not in plain(row_line(again, 80, NOW))
    assert [one.whole for one in (first, step, below, again)] == [True, False, False, True]
    assert len(points([step])) == 0 and len(points([first, step, again])) == 2


@pytest.mark.parametrize(("linked", "words"), [(1, "1 run adds to it"), (2, "2 runs add to it")])
def test_how_many_runs_add_to_one(linked: int, words: str):
    assert words in words_of(detail_rows(msgspec.structs.replace(run(1), linked=linked), None, [], 80))


def test_a_rerun_of_a_rerun_adds_to_the_first_run_too():
    def summary(run_id: str, linked_to: str | None) -> RunSummary:
        return msgspec.structs.replace(run(1).run, id=run_id, linked_to=linked_to)

    first, again, third = summary("a", None), summary("b", "a"), summary("c", "b")
    assert adding_to([third, first, again]) == {"a": 2, "b": 1}
    assert adding_to([summary("a", "b"), summary("b", "a")]) == {"a": 1, "b": 1}  # a ring ends


def test_details_wrap_what_is_wider_than_they_are():
    agents = "openai:chat:atlas-large, openai:chat:desk-with-a-long-name, scripted:third"
    one = msgspec.structs.replace(run(1), run=msgspec.structs.replace(run(1).run, agents=agents))
    trend = [Point("a", 0, 0.5, None, None, None), Point("b", 1, 0.5, None, None, None)]
    said = [plain(row.line) for row in detail_rows(one, None, trend, 40, same=True)]
    assert all(width_of(row.line) <= 40 for row in detail_rows(one, None, trend, 40, same=True))
    text = " ".join(" ".join(said).split())
    assert "openai:chat:desk-with-a-long-name" in text and "scripted:third" in text
    assert "2 of the same suites, s: all" in text
    mode = FailureMode("should_contain: refund", 2, 1.0, 2, [FailedAttempt(7, "s::a", 1, "no")])
    facts = RunFacts(RunInfo("x"), [], [], Assessment(10, 8, [mode]))
    rows = detail_rows(one, facts, trend, 40)
    assert "enter example, n names" in " ".join(" ".join(plain(row.line) for row in rows).split())
    assert all(width_of(row.line) <= 40 for row in rows)


def test_bars_stand_apart_and_say_how_cases_came_out():
    ended = [("failed", 0.5), ("passed", 1.0), ("error", 0.2)]
    runs = [
        Point(str(n), n, rate, None, None, None, outcome=outcome) for n, (outcome, rate) in enumerate(ended)
    ]
    bars, signs = [plain(line) for line in trend_lines(runs, 60, 1, "1")]
    assert [len(bar) for bar in bars[11:23].split()] == [3, 3, 3]
    assert signs[11:].split() == ["✗", "✓▲", "!", "▲", "this", "run"] and signs[15:17] == "✓▲"
    many = [Point(str(n), n, 0.5, None, None, None, outcome="failed") for n in range(25)]
    *_, signs, pointer = [plain(line) for line in trend_lines(many, 60, 1, "3")]
    assert signs[11:36] == "✗" * 25 and pointer.index("▲") == 14


def test_a_pass_rate_has_its_scale_up_to_all():
    lines = trend_lines([Point("a", 0, 0.5, None, None, None), Point("b", 1, 0.5, None, None, None)], 60, 2)
    assert plain(lines[0])[10:18].strip() == "" and "top 100%" in plain(lines[0])
    assert all(width_of(line) <= 60 for line in lines)
    assert trend_lines([], 60, 2) == []


def test_only_runs_that_fit_are_plotted_and_gaps_stay_gaps():
    many = [Point(str(i), i, i / 500, None, None if i % 2 else 5.0, 3) for i in range(500)]
    for line in [*trend_lines(many, 80, 3, "499"), *plot_lines(many, 80, 30, "499")]:
        assert width_of(line) <= 80
    alone = plain(plot_lines(many[:1], 110, 30, of=", of the same suites (s: all)")[0])
    assert alone.startswith("Plots begin with the second run, of the same suites (s: all); a rerun of a part")


def many_points(number: int) -> list[Point]:
    return [Point(f"r{i}", 1.7e9 + i * 7200, i / number, 0.01 * i, 100.0 + i, i) for i in range(number)]


@pytest.mark.parametrize(("width", "height"), [(118, 38), (78, 22), (58, 14)])
@pytest.mark.parametrize("only", ["", "tokens"])
def test_large_plots_hold_all_runs_in_the_room_there_is(width, height, only):
    found = plot_lines(many_points(300), width, height, "r7", only=only)
    text = "\n".join(plain(line) for line in found)
    assert all(width_of(line) <= width for line in found) and len(found) <= height
    assert "300 runs" in text and ("means of" in text or width < 60)
    assert "tokens" in text and ("latency" in text) == (not only)
    axes = (height // (1 if only else 4)) >= run_plots.LEAST_HEIGHT
    assert ("┤" in text) == axes
    shown = "this run" in text
    assert shown and (f"{run_plots.series(many_points(300))[2].values[7]:.0f}" in text)


def test_plots_without_glyphs_have_no_axes_and_stay_readable():
    found = plot_lines(many_points(40), 78, 38, unicode=False)
    text = letters("\n".join(plain(line) for line in found))
    assert "┤" not in text and "?" not in text and "#" in text and text.isascii()


def test_columns_are_means_and_the_run_pointed_at_keeps_its_name():
    points, per = condensed(many_points(10), 4, "r4")
    assert per == 3 and [point.run_id for point in points] == ["r0", "r4", "r6", "r9"]
    assert points[0].latency_ms == 101.0 and points[1].tokens == 4
    gap = [Point("a", 0, None, None, 5.0, None), Point("b", 0, None, None, None, None)]
    assert condensed(gap, 1)[0][0][2:6] == (None, None, 5.0, None)
    assert condensed(gap, 9) == (gap, 1)


def test_a_plot_of_equal_or_no_values():
    same = [Point(str(i), 0.0, 0.0, 0.0, None, None) for i in range(5)]
    assert "pass rate" in "\n".join(plain(line) for line in plot_lines(same, 100, 40, "2"))
    none = [Point(str(i), 0.0, None, None, None, None) for i in range(5)]
    assert "Plots begin" in plain(plot_lines(none, 100, 40)[0])


def test_what_was_found_stands_in_view():
    hit = Hit(3, 2, "tool_result", "word " * 40 + "the \x02refund\x03 policy\nsays")
    row = StoredCase(1, "s::a", "s", "a", "start_to_agent", "x", None, "", 1, 1)
    line = found_line(FoundEntry(hit, row, 1, "failed"), 1, 60)
    assert "refund policy says" in plain(line) and width_of(line) <= 60
    wide = Hit(3, 2, "user", "日本語" * 40 + " \x02refund\x03 policy")
    line = found_line(FoundEntry(wide, row, 1, "failed"), 1, 60)
    assert "refund policy" in plain(line) and width_of(line) <= 60


def test_runs_of_one_minute_are_told_apart_among_what_was_found():
    ids = ["20260715-101530-ab12", "20260715-101544-cd34", "20260716-090000-ef56", "20260716-090000-9a78"]
    told = began_at([*ids, "20260801-120000-aaaa", "20260801-120100-bbbb", ids[0]])
    assert [told[one] for one in ids] == [
        "07-15 10:15:30",
        "07-15 10:15:44",
        "07-16 09:00:00 ef56",
        "07-16 09:00:00 9a78",
    ]
    assert told["20260801-120000-aaaa"] == "08-01 12:00" and len(set(told.values())) == len(told)
    row = StoredCase(1, "s::a", "s", "a", "start_to_agent", "x", None, "", 1, 1)
    hits = [FoundEntry(Hit(3, 2, "user", "\x02refund\x03"), row, 1, "failed", one) for one in ids]
    lines = {plain(found_line(one, 0, 80, begun=told[one.run_id])) for one in hits}
    assert len(lines) == len(ids)


def test_a_test_with_a_provider_of_its_own_stands_in_its_column_and_says_who_answered():
    def cell(column: str, prompt: str) -> CaseRow:
        case = Case(
            f"s::own::{column}::{prompt}",
            "own",
            "s",
            "promptfoo",
            agent="special",
            prompt=prompt,
            column=column,
        )
        return CaseRow("", case.case_id, "own", "s", "promptfoo", "passed", "special", case=case)

    found = grid([cell(column, prompt) for column in ("echo", "other") for prompt in ("p", "q")])
    assert [column[0] for column in found.columns] == ["echo", "echo", "other", "other"]
    assert len(found.tests) == 1 and len(found.tests[0].cells) == 4
    assert "passed" in plain(cell_line(cell("echo", "p"))) and "special" in plain(
        cell_line(cell("echo", "p"))
    )


def test_the_connections_of_a_network_are_columns_of_its_test() -> None:
    """As in the lists, which count one test: the grid counted two, each with a column left empty."""

    def cell(name: str, connection: str, several: bool, status: str = "passed") -> CaseRow:
        case = Case(f"{name}::{connection}", name, f"{name}.hocon", "neuro_san", connection=connection)
        case.variant = connection if several else ""
        return CaseRow("", case.case_id, name, case.suite, case.format, status, "net", case=case)

    found = grid([
        cell("trip", "direct", True), cell("trip", "http", True, "failed"), cell("budget", "http", False),
    ])  # fmt: skip
    assert [(test.called, len(test.cells)) for test in found.tests] == [("trip", 2), ("budget", 1)]
    assert heads(found) == [["direct", "http"]]
    assert [test.called for test in found.differing] == ["trip"]


def test_histograms_count_every_value_once():
    values = [1.0, 2.0, 2.0, 9.0, 10.0]
    bars = histogram(values, 3)
    assert [bar.number for bar in bars] == [3, 0, 2] and bars[0].low == 1 and bars[-1].high == 10
    assert histogram([]) == [] and histogram([4.0, 4.0])[0].number == 2
    assert percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.5) == 5 and percentile(values, 0.9) == 10
    assert all(width_of(line) <= 50 for line in distribution_lines("x", values, str, 50))


def test_found_words_are_marked():
    hit = Hit(3, 2, "tool_result", "the \x02refund\x03 policy\nsays")
    assert [(span.text, span.style) for span in excerpt(hit)][1] == ("refund", "hit")
    row = StoredCase(1, "s::a", "s", "a", "nao", "x", None, "h", 1, 1)
    assert "attempt 2, turn 2, result" in plain(found_line(FoundEntry(hit, row, 2, "failed"), 0, 80))


def promptfoo(name: str, prompt: str, agent: str = "echo", **facts) -> CaseRow:
    case = Case(
        f"{name}{prompt}", name, "p.yaml", "promptfoo", prompt=prompt, turns=[Turn("x")], vars={"n": name}
    )
    return CaseRow(
        f"{name}{prompt}{agent}", case.case_id, name, "p.yaml", "promptfoo", agent=agent, case=case, **facts
    )


def test_one_test_with_several_prompts_and_agents_is_one_row():
    entries = [promptfoo(n, p, a) for n in ("t1", "t2") for a in ("x", "y") for p in ("short", "long")]
    found = grid(entries)
    assert [test.name for test in found.tests] == ["t1", "t2"] and len(found.columns) == 4 and found.worth_it
    agents, prompts = map(plain, title_lines(found, 120, 0, 0))
    assert agents.split() == ["test", "x", "y"] and agents.index("y") == prompts.rindex("short")
    assert prompts.split() == ["short", "long"] * 2
    assert width_of(grid_row(found, found.tests[0], 60, 1)) <= 60
    plain_case = grid(
        [CaseRow("k", "s::a", "a", "s", "nao", agent="x"), CaseRow("l", "s::a", "a", "s", "nao", agent="y")]
    )
    assert len(plain_case.tests) == 1 and not grid([entries[0]]).worth_it


@pytest.mark.parametrize("width", [60, 80, 120])
def test_columns_are_told_apart_and_no_time_is_cut(width):
    entries = [
        promptfoo("a test of some length", prompt, "copywriter", status="failed", duration_ms=684.0)
        for prompt in ("terse", "friendly")
    ]
    for agent in ("analyst", "customer_support"):
        entries.append(
            promptfoo("other", "terse", agent, status="passed", attempts="ppp", duration_ms=61_000.0)
        )
    found = grid(entries)
    agents, prompts = map(plain, title_lines(found, width, 0, 0))
    assert "copywriter" in agents and "terse" in prompts and "friendly" in prompts
    assert "→" not in agents
    row = plain(grid_row(found, found.tests[0], width, 0))
    assert "684ms" in row and "684…" not in row
    assert all(
        width_of(line) <= width
        for line in (*title_lines(found, width, 0, 0), grid_row(found, found.tests[0], width, 0))
    )


def test_seven_columns_stand_in_eighty_cells_with_outcome_figure_and_pass_rate():
    entries = [
        promptfoo("a test whose name is longer than there is room", prompt, who, status="failed", duration_ms=684.0, cost=0.0123)
        for who in ("openai:chat:gpt-4.1", "openai:chat:gpt-4.1-mini", "anthropic:claude-sonnet-4-20250514")
        for prompt in ("prompts/terse.txt", "prompts/polite.txt", "prompts/chat.json")
    ][:7]  # fmt: skip
    found = grid(entries)
    # A table has a column of the screen less: that of its scroll bar.
    assert widths(found, 79, 0)[2] == 7 and widths(found, 59, 0)[2] == 5
    heads = [plain(line) for line in title_lines(found, 80, 0, 0)]
    assert len(heads) == 2 and not any("→" in head for head in heads)
    assert heads[1].split() == ["terse", "polite", "chat", "terse", "polite", "chat", "terse"]
    assert heads[0].split() == ["test", "gpt-4.1", "gpt-4.1-mini", "claude-…"]
    row = plain(grid_row(found, found.tests[0], 80, 0))
    assert row.count("✗ 684ms") == 7 and len(row) <= 80
    assert plain(grid_row(found, found.tests[0], 80, 0, figure="cost")).count("✗ 0.0123") == 7
    assert plain(total_line(found, 80, 0)).count("0/1 0%") == 7
    assert list(found.figures) == ["time", "cost"]


def test_a_long_name_of_a_test_leaves_room_for_the_heads():
    name = "a question with a name that is much longer than those of the others"
    prompts = ("support_answer_friendly.txt", "support_answer_tersely.txt", "support_chatting.txt")
    found = grid([promptfoo(name, prompt, who) for who in ("x", "y") for prompt in prompts])
    assert plain(title_lines(found, 119, 0, 0)[-1]).split() == ["…friendly", "…tersely", "…chatting"] * 2
    assert widths(found, 119, 0)[0] >= 30


def test_a_long_name_has_the_room_that_no_cell_takes():
    """With one column half of a wide screen was empty, and names were cut."""
    name = "a question with a name that is much longer than those of the others, and goes on"
    found = grid([promptfoo(name, "support.txt", "x")])
    left, each, fits = widths(found, 119, 0)
    assert name in plain(grid_row(found, found.tests[0], 119, 0)) and left + each * fits <= 117


def test_prompts_with_a_label_are_called_by_it():
    entries = []
    for label, prompt in (("Terse", "Terse: p/a.txt: You are"), ("Chat", "Chat: p/b.txt: You are")):
        for language in ("de", "en"):
            entries.append(promptfoo(language, prompt, status="passed"))
            entries[-1].case.variant = f"{label} lang={language}"
    found = grid(entries)
    assert plain(title_lines(found, 80, 0, 0)[0]).split() == ["test", "Terse", "Chat"]


def test_a_provider_that_is_called_as_its_model_is_named_once():
    entries = [
        promptfoo("a test", prompt, f"openai:chat:{model}", status="passed", model=model)
        for model in ("atlas-mini", "atlas-large")
        for prompt in ("a.txt", "b.txt")
    ]
    head = plain(title_lines(grid(entries), 120, 0, 0)[0])
    assert head.split() == ["test", "atlas-mini", "atlas-large"]


def test_where_a_column_has_no_room_for_both_its_pass_rate_is_said_and_of_others_how_many_of_which():
    entries = [
        promptfoo(f"test {number}", f"p{column}.txt", "echo", status="passed" if number % 2 else "failed")
        for number in range(12)
        for column in range(7)
    ]
    assert plain(total_line(grid(entries), 80, 0)).split() == ["12", "tests", *["50%"] * 7]
    entries[0].status = "running"
    assert plain(total_line(grid(entries), 80, 0)).split() == ["12", "tests", "6/11", *["6/12"] * 6]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_pass_rates_of_many_tests_never_run_together(width: int):
    entries = [
        promptfoo(f"test {number}", f"p{column}.txt", "echo", status="passed" if number % 9 else "failed")
        for number in range(105)
        for column in range(6)
    ]
    found = grid(entries)
    _, each, fits = widths(found, width, 0)
    said = plain(total_line(found, width, 0)).removeprefix("105 tests").split("  ")
    words = [one.strip() for one in said if one.strip()]
    if len(words) == 1:  # a space between each and the next
        words = words[0].split(" ")
    assert words in ([form] * fits for form in ("93/105 89%", "93/105", "89%")), words
    assert max(map(len, words)) < each


@pytest.mark.parametrize("figure", ["time", "tokens"])
def test_figures_of_a_column_end_below_one_another(figure):
    times = {"a": (95.0, 7), "b": (1200.0, 12_345), "c": (None, None)}
    found = grid([
        promptfoo(name, "p", status=status, duration_ms=ms, tokens=tokens)
        for (name, (ms, tokens)), status in zip(times.items(), ("passed", "error", "failed"), strict=True)
    ])  # fmt: skip
    lines = [plain(grid_row(found, test, 60, 0, figure=figure)).rstrip() for test in found.tests]
    assert len(lines[0]) == len(lines[1]) > len(lines[2]) and lines[2].endswith("✗ failed")


def test_the_line_above_a_histogram_is_whole_at_any_width():
    for width in (20, 50, 80):
        lines = distribution_lines(
            "latency", [1000.0, 2000.0, 3000.0], lambda value: f"{value / 1000:.1f}s", width
        )
        assert "median 2.0s, p90 3.0s, most 3.0s of 3" in " ".join(" ".join(map(plain, lines)).split())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("names", [("openai:chat:good", "openai:chat:sloppy"), ("a:" + "x" * 40 + "1", "a:" + "x" * 40 + "2")])  # fmt: skip
def test_heads_say_where_providers_differ(width, names):
    """Their short names as in lists, agent over prompt; of long ones the end that differs."""
    found = grid([promptfoo("t", prompt, who) for who in names for prompt in ("p1.txt", "p2.txt")])
    agents, prompts = map(plain, title_lines(found, width, 0, 0))
    shown = agents.replace("→", "").split()[1:]
    assert len(shown) == 2 and len(prompts.split()) == 4
    assert shown[0] != shown[1] and names[0].endswith(shown[0].lstrip("…"))
    assert names[1].endswith(shown[1].lstrip("…")) and prompts.split()[:2] == ["p1", "p2"]


def test_a_cell_says_outcome_and_attempts():
    text = plain(cell_line(promptfoo("t", "p", status="failed", attempts="ppf", duration_ms=1200.0)))
    assert text == "✗ failed 2/3 1.2s" and plain(cell_line(None)) == "–"


def test_named_scores_are_means_and_derived_ones_stand_beside():
    column = {"agent": "x", "prompt": "p", "named_scores": {"tone": 3.0}, "named_weights": {"tone": 4},
              "derived": {"f1": 0.5}}  # fmt: skip
    assert plain(metric_lines([column, {"agent": "y"}], 80)[0]) == "x · p  tone 0.75, of sums: f1 = 0.5"


def test_hostile_text_is_pictures_everywhere():
    one = RunLine(RunSummary("i", "finished", NOW, NOW, HOSTILE, HOSTILE, 1, 0, 1, 0, 0, None, HOSTILE[:9]))
    mode = FailureMode(HOSTILE, 1, 1.0, 1, [], HOSTILE)
    facts = RunFacts(RunInfo("x", note=HOSTILE), [], [], Assessment(1, 0, [mode], HOSTILE))
    lines = [row_line(one, 200, NOW), *(row.line for row in detail_rows(one, facts, [], 200))]
    row = StoredCase(1, HOSTILE, HOSTILE, HOSTILE, "nao", HOSTILE, None, "h", 1, 1)
    found = FoundEntry(Hit(1, 1, "user", HOSTILE + "\x02" + HOSTILE + "\x03"), row, 1, "failed")
    lines += [found_line(found, 0, 300), found_line(found, 1, 300)]
    bad = grid([promptfoo(HOSTILE, HOSTILE, HOSTILE, status="failed"), promptfoo(HOSTILE, "p")])
    lines += [*title_lines(bad, 300, 0, 0), grid_row(bad, bad.tests[0], 300, 0)]
    lines += metric_lines([{"agent": HOSTILE, "named_scores": {HOSTILE: 1}}], 300)
    for line in lines:
        assert not BAD & set(plain(line)), line


def test_reruns_stand_under_their_run_and_a_glyph_says_how_the_cases_came_out():
    def line(
        run_id: str,
        linked: str = "",
        passed: int = 0,
        failed: int = 0,
        errors: int = 0,
        state: Any = "finished",
    ):
        total = passed + failed + errors
        return RunLine(
            RunSummary(
                run_id, state, 0.0, None, "", "", total, passed, failed, errors, 0, None, linked or None
            )
        )

    lines = [
        line("5", "2", passed=1),
        line("4", passed=2),
        line("3", failed=1, passed=9),
        line("2", errors=1, passed=9),
        line("1", "gone", state="interrupted"),
    ]
    assert [one.run.id for one in under_their_runs(lines)] == ["2", "5", "4", "3", "1"]
    assert [outcome_sign(one.run)[0] for one in lines] == ["✓", "✓", "✗", "!", "!"]
    assert outcome_sign(line("6").run)[0] == "–"


@pytest.mark.parametrize(
    ("counts", "sign", "said"),
    [
        ({"passed": 2, "total": 6}, "◌", "4 not run"),  # ended by its cost limit
        ({"passed": 2, "failed": 1, "total": 6}, "✗", "3 not run"),
        ({"passed": 2, "total": 2}, "✓", ""),
        ({"passed": 2, "cancelled": 1, "total": 3}, "⊘", ""),
        ({"total": 3}, "◌", "3 not run"),
        # Cases that passed by their threshold failed none of it.
        ({"passed": 1, "failed": 2, "total": 3, "cases_failed": 0, "cases_errors": 0}, "✓", ""),
        ({"passed": 1, "failed": 1, "total": 4, "cases_failed": 0, "cases_errors": 0}, "◌", "2 not run"),
        ({"passed": 3, "failed": 3, "total": 6, "cases_failed": 1, "cases_errors": 0}, "✗", ""),
        ({"passed": 2, "total": 3, "stepped": True}, "✓", ""),  # one was changed by hand
        ({"passed": 2, "total": 3, "state": "running"}, "●", ""),
    ],
)
def test_a_run_of_which_not_all_has_run_is_none_that_passed(
    counts: dict[str, Any], sign: str, said: str
) -> None:
    known = {"state": "finished", "passed": 0, "failed": 0, "cancelled": 0} | counts
    one = RunLine(
        RunSummary("1", started_at=0.0, finished_at=1.0, what="", agents="", errors=0, cost=None, linked_to=None, **known)
    )  # fmt: skip
    assert outcome_sign(one.run)[0] == sign
    shown = plain(row_line(one, 100, NOW))
    assert said in shown and ("not run" in shown) == bool(said)
    head = plain(detail_rows(one, None, (), 100)[0].line)
    assert head.startswith(sign)
    assert (action_of(one, ()) == "not all has run: u goes on with it; enter opens it") == bool(said)
    if one.judged and one.whole:  # and no green one among the plots
        runs = points([one, msgspec.structs.replace(one, run=msgspec.structs.replace(one.run, id="0"))])
        for lines in (trend_lines(runs, 60, 1), plot_lines(runs, 80, 30, "0")):
            shown = [span for line in lines for span in line if span.text in ("✗", "◌", "✓", "⊘", "●")]
            assert [(span.text, "passed" in span.style) for span in shown][-len(runs) :] == [
                (sign, sign == "✓")
            ] * len(runs)


def test_a_run_that_lacks_what_it_holds_no_rows_of_is_none_that_passed() -> None:
    known = {"state": "finished", "passed": 2, "failed": 0, "errors": 0, "cancelled": 0, "total": 2}
    one = RunLine(
        RunSummary("1", started_at=0.0, finished_at=1.0, what="", agents="", cost=None, linked_to=None, lacks="others never ran", **known)
    )  # fmt: skip
    assert outcome_sign(one.run)[0] == "◌"
    assert "not whole" in plain(row_line(one, 100, NOW))


@pytest.mark.parametrize(("width", "words"), [(80, "not whole 12:54 66 cases"), (66, "◌ 12:54 66 cases"), (60, "◌ 12:54 66 cases"), (56, "66 …")])  # fmt: skip
def test_what_was_run_is_said_of_a_run_that_is_not_whole_in_a_narrow_list_too(width: int, words: str) -> None:
    """Its list said `not whole 12:54 …/tra…`, of all runs of the project the same."""
    known = {"state": "finished", "passed": 26, "failed": 39, "errors": 3, "cancelled": 0, "total": 68}
    what = "net/travel.hocon, pf/promptfooconfig.yaml, s/broken.yaml … (66 cases)"
    summary = RunSummary("1", started_at=0.0, finished_at=1.0, what=what, agents="off, slow", cost=0.0, linked_to=None, lacks="1 error", **known)  # fmt: skip
    line = row_line(RunLine(summary), width, NOW, (), "12:54")
    assert words in plain(line) and width_of(line) <= width


def test_a_rerun_whose_run_the_filter_hides_is_not_taken_for_another_ones():
    listed = under_their_runs([run(1), run(2, linked_to=run(1).run.id), run(3)])
    below = next(one for one in listed if one.above)
    assert "not shown" not in "".join(plain(row_line(one, 100, NOW)) for one in with_hidden(listed))
    left = with_hidden([one for one in listed if one.run.id != run(1).run.id])
    told = {one.run.id: plain(row_line(one, 100, NOW)) for one in left}
    assert "↳ its run is not shown · " in told[below.run.id]
    assert [one.hidden for one in with_hidden([*left, run(1)])] == [False] * 3, (
        "the filter lets it through again"
    )


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize(
    "what", ["evals/of/a/team/suite.yaml (9 cases, shard 3/7)", "evals (9 cases, shard 3/7)"]
)
def test_a_shard_says_its_number_at_every_width(width: int, what: str):
    """`↳ evals (9 cases, …/7)`: its number was taken for a path."""
    words = plain(row_line(run(2, what=what), width, NOW))
    assert ("shard 3/7" if width > 60 else " 3/7") in words and "(…" not in words


def test_shards_are_plotted_apart_and_what_they_were_merged_to_with_whole_runs():
    whole, merged = run(1, what="evals (9 cases)"), run(2, what="evals (9 cases, of 7 shards)")
    shards = [run(n, what=f"evals (2 cases, shard {n}/7)") for n in (3, 4)]
    again = run(5, what="evals (2 cases, shard 4/7)")
    assert alike([whole, merged, *shards, again], whole) == [whole, merged]
    assert alike([whole, merged, *shards, again], again) == [shards[1], again]
    assert whole.places == merged.places == shards[0].places == "evals" and shards[0].cases == "2"
