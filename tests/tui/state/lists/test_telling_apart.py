"""No two rows of different cases read the same: whatever the matrix, the grouping, the order and the width."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tui_eval.store.schema import RunSummary
from tui_eval.tui.state.compare.grid_view import grid
from tui_eval.tui.state.compare.grid_view import row_line as grid_row
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import GROUPINGS, View
from tui_eval.tui.state.lists.entries import _told_apart
from tui_eval.tui.state.lists.run_line import RunLine, begun_apart, row_line
from tui_eval.tui.state.lists.telling_apart import (
    NOT_AT_ALL,
    cut,
    differences,
    heads_apart,
    listed,
    named_together,
    row_names,
)
from tui_eval.tui.state.lists.tree_lines import build
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.widgets.case_lines import CaseLines

WORDS = ("refund", "the capital of France", "17 * 23", "größe", "日本の首都", "x" * 30)
BEGINNINGS = ("", "What is ", "Answer in one sentence, as politely as you can and without any apology: ")
PROMPTS = ("brief.txt", "polite.txt", "chat.json")
AGENTS = ("openai:gpt-4.1", "openai:gpt-4.1-mini", "http")
STATUSES = ("passed", "failed", "error", "waiting", "running", "")
CAUSES = ('lacks "2 years"', "178 < 140 is false", "refused :8941")
SUITES = ("shop/promptfooconfig.yaml", "desk/promptfooconfig.yaml", "desk/old.yaml")


def test_a_name_from_which_another_goes_on_uses_the_room_and_so_does_that() -> None:
    names = ["Knows the order in the next turn", "Knows the order in the next turn (saved)"]
    differs = differences(names)
    assert [cut(name, differs[name], 25) for name in names] == [
        "Knows the order in the n…", "Knows the order… (saved)",
    ]  # fmt: skip
    assert cut(names[1], differs[names[1]], 35) == "Knows the order in the nex… (saved)"
    assert [cut(name, differs[name], 14) for name in names] == ["Knows the ord…", "Knows… (saved)"]


def test_numbered_names_keep_all_of_their_number_before_more_of_their_end() -> None:
    names = [f"Customer question number {number:04d} which is about the warranty" for number in range(334)]
    differs = differences(names)
    assert cut(names[9], differs[names[9]], 10) == "Cust…0009…"
    for width in (9, 10, 11, 14):
        shown = {cut(name, differs[name], width) for name in names}
        assert len(shown) == len(names) and all(cell_len(text) <= width for text in shown)


def test_heads_begin_with_what_tells_them_apart() -> None:
    prompts = ["support_answer_terse", "support_answer_friendly", "support_chat"]
    assert heads_apart(prompts, 8) == ["terse", "friendly", "chat"]
    assert heads_apart(prompts, 6) == ["terse", "frien…", "chat"]
    assert heads_apart(prompts, 10) == ["…terse", "…friendly", "…chat"]
    assert heads_apart(prompts, 30) == prompts
    assert heads_apart(["terse", *prompts], 7) == ["terse", "…_terse", "…iendly", "…t_chat"]
    assert heads_apart(["gpt-4.1-mini", "gpt-4.5-mini", "gpt-4.1-mini"], 9) == [
        "…4.1-mini",
        "…4.5-mini",
        "…4.1-mini",
    ]
    assert heads_apart(["atlas", "atlas-mini", "borealis-large"], 7) == ["atlas", "…mini", "boreal…"]
    one_agent = ["customer_support", "writer", "customer_support · claude-4"]
    assert heads_apart(one_agent, 16) == ["customer_support", "writer", "…claude-4"]
    assert heads_apart(one_agent, 8) == ["custome…", "writer", "claude-4"]
    assert heads_apart(["echo-a", "echo-b", "a rather long label"], 8) == ["echo-a", "echo-b", "a rathe…"]


@pytest.mark.real
@settings(max_examples=300, deadline=None)
@given(
    names=st.lists(
        st.lists(st.sampled_from(("support", "answer", "4.1", "x" * 9, "größe", "日本の首都", "7")), min_size=1, max_size=5).map("_".join),
        min_size=1, max_size=7,
    ),
    width=st.sampled_from((8, 9, 14, 30)),
)  # fmt: skip
def test_no_two_heads_read_the_same(names: list[str], width: int) -> None:
    heads = heads_apart(names, width)
    assert all(cell_len(head) <= width and "……" not in head for head in heads)
    assert len(set(heads)) == len(set(names))


@st.composite
def matrices(draw: st.DrawFn) -> list[CaseRow]:
    """Tests of several suites, some of the same name, by prompts and agents; each came out in some way."""
    rows: list[CaseRow] = []
    beginning = draw(st.sampled_from(BEGINNINGS))
    names = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5, unique=True))
    prompts = PROMPTS[: draw(st.integers(1, 3))]
    agents = AGENTS[: draw(st.integers(1, 3))]
    for suite in SUITES[: draw(st.integers(1, 3))]:
        for name in names:
            for prompt in prompts:
                for agent in agents:
                    status = draw(st.sampled_from(STATUSES))
                    cause = draw(st.sampled_from(CAUSES)) if status in ("failed", "error") else ""
                    called = f"{beginning}{name}?"
                    case_id = f"{suite}::{called}::{prompt}"
                    variant = prompt if len(prompts) > 1 else ""
                    rows.append(
                        CaseRow(
                            f"{case_id}\n{agent}", case_id, called, suite, "promptfoo", status, agent,
                            cause=cause, alike=cause, variant=variant,
                        )
                    )  # fmt: skip
    return _told_apart(rows)


views = st.builds(
    View,
    sort=st.sampled_from(("file", "name", "outcome")),
    failures_first=st.booleans(),
    grouping=st.sampled_from(GROUPINGS),
)


@pytest.mark.real
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=matrices(), view=views, unfolded=st.booleans(), width=st.sampled_from((80, 120)))
def test_no_two_lines_of_a_list_read_the_same(
    rows: list[CaseRow], view: View, unfolded: bool, width: int
) -> None:
    """Under the line that holds them: the same row may stand under two causes or suites, which are seen."""
    tree = build(rows, [], view)
    while unfolded and any(line.folded for line in tree.lines):
        view.unfolded |= {line.key for line in tree.lines if line.folded}
        tree = build(rows, [], view)
    painted = CaseLines("run", Symbols())
    painted.cases = tree
    seen: dict[tuple[str, str], str] = {}
    for line in tree.lines:
        holder = line.above[-1].key if line.above else ""
        # Outcome and reason may be alike: what stands before the reason has to differ.
        text = plain(painted.tree_line(line, width)).strip()
        assert (holder, text) not in seen, (text, seen[holder, text], line.key)
        seen[holder, text] = line.key


@pytest.mark.real
@settings(max_examples=100, deadline=None)
@given(rows=matrices(), width=st.sampled_from((80, 120)))
def test_no_two_rows_of_a_grid_are_called_the_same(rows: list[CaseRow], width: int) -> None:
    rows = [
        one for one in rows if PROMPTS[0] in one.case_id
    ]  # each case is a row: prompts are columns of promptfoo's
    for one in rows:
        one.status = "passed"
    found = grid(rows)
    texts = [plain(grid_row(found, test, width, 0)).partition("✓")[0] for test in found.tests]
    assert len(set(texts)) == len(texts), texts


@pytest.mark.real
@settings(max_examples=200, deadline=None)
@given(
    beginning=st.sampled_from(BEGINNINGS),
    middle=st.lists(st.integers(0, 300), min_size=2, max_size=12, unique=True),
    end=st.sampled_from(("", "?", " of the northern hemisphere, as of the first of January")),
    width=st.integers(24, 60),
)
def test_names_that_differ_are_cut_where_they_do_not(
    beginning: str, middle: list[int], end: str, width: int
) -> None:
    names = [f"{beginning}{number}{end}" for number in middle]
    told = differences(names)
    shown = [cut(name, told.get(name, NOT_AT_ALL), width) for name in names]
    assert len(set(shown)) == len(shown), shown
    assert all(cell_len(text) <= width for text in shown)


def test_runs_that_read_the_same_say_when_they_began() -> None:
    def run(number: int, **more: object) -> RunLine:
        facts = RunSummary(
            f"20260101-00000{number}-aaa{number}", "finished", 1_760_000_000.0 + number, None, ". (48 cases)",
            "a", 48, 13, 29, 6, 0, None, None,
        )  # fmt: skip
        return RunLine(msgspec.structs.replace(facts, **more))

    runs = [run(1), run(2), run(2, id="20260101-000002-bbbb"), run(3, passed=14)]
    begun = begun_apart(runs)
    texts = [plain(row_line(one, 80, 1_760_009_999.0, (), begun.get(one.run.id, ""))) for one in runs]
    assert len(set(texts)) == len(texts) and runs[3].run.id not in begun
    # A rerun of a rerun stands beside it in the list.
    first = run(4, linked_to=runs[0].run.id)
    chain = [runs[0], first, run(5, linked_to=first.run.id)]
    assert set(begun_apart(chain)) == {one.run.id for one in chain[1:]}


MATRIX = [f"{model} {prompt}" for model in ("mini", "large") for prompt in ("terse", "friendly", "chat")]


def together(rows: list[str], siblings: list[str]) -> str:
    return "".join(named_together(rows, siblings))


def test_a_line_that_is_too_narrow_for_all_names_says_how_many_more_there_are():
    names = named_together(
        ["mini terse", "mini friendly", "mini chat"], ["mini terse", "mini friendly", "mini chat", "x"]
    )
    assert listed(names, 40) == "mini terse, friendly, chat"
    assert listed(names, 25) == "mini terse, friendly +1"
    assert listed(names, 15) == "mini terse +2"
    assert listed(names, 9) == "mini … +2"
    assert listed(["atlas-mini"], 6) == "atlas…"
    assert listed(names, 0) == listed(names, -3) == ""


@pytest.mark.parametrize(
    ("width", "cause", "said"),
    [
        (60, "judge: rude", "fast terse, friendly +1  judge: rude"),
        (60, "judge: never says sorry", "fast terse, friendly +1  judge: never say…"),
        (72, "judge: rude", "fast terse, friendly; large chat  judge: rude"),
        (80, "judge: never says sorry", "fast terse, friendly; large chat  judge: never says so…"),
    ],
)
def test_which_columns_came_out_alike_is_cut_after_why(width: int, cause: str, said: str) -> None:
    columns = [f"{model} {prompt}" for model in ("fast", "large") for prompt in ("terse", "friendly", "chat")]
    failed = {"fast terse", "fast friendly", "large chat"}
    rows = [
        CaseRow(
            one, one, "Refund", "s.yaml", "promptfoo", "failed" if one in failed else "passed", variant=one
        )
        for one in columns
    ]
    for row in rows:
        row.cause = cause if row.status == "failed" else ""
        row.duration_ms, row.finished_at = 900.0, 1.0
    painted = CaseLines("suites", Symbols())
    painted.cases = build(rows, [], View())
    fold = next(line for line in painted.cases.lines if line.kind == "fold")
    assert f"3 × {said} " in plain(painted.tree_line(fold, width))


def test_rows_that_stand_together_are_called_by_the_model_or_prompt_they_share():
    mini, large = MATRIX[:3], MATRIX[3:]
    assert together(mini, MATRIX) == "mini"
    assert together([mini[1], large[1]], MATRIX) == "friendly"
    assert together(large[:2], MATRIX) == "large terse, friendly"
    assert together([*mini, large[0]], MATRIX) == "mini; large terse"
    assert together(MATRIX[:-1], MATRIX) == "all but large chat"
    assert together(MATRIX, MATRIX) == "6 cases"
    assert together(["terse", "chat"], ["terse", "chat", "friendly"]) == "terse, chat"
    assert together(mini, [*MATRIX, "other terse"]) == "mini terse, friendly, chat"
    assert together(["mini terse", "large terse"], [*MATRIX, "other terse"]) == "mini terse, large terse"


def test_rows_of_one_value_are_called_by_it_whatever_model_and_prompt_they_have():
    values = ["q=a [mid]", "q=b", "q=c"]
    rows = [f"{row} {value}" for value in values for row in MATRIX]
    assert together(rows[:6], rows) == "q=a [mid]"
    assert together(rows[:9], rows) == "q=a [mid], mini q=b"
    assert together(rows[:8], rows) == "q=a [mid], mini terse q=b, mini friendly q=b"
    assert together([row for row in rows if "terse" in row], rows) == "terse"
    assert together([row for row in rows if "mini chat" in row], rows) == "mini chat"
    assert (
        together([*rows[:6], *(row for row in rows[6:] if "large" in row)], rows) == "large, mini q=a [mid]"
    )


@pytest.mark.real
@given(st.data())
def test_different_rows_of_a_test_with_variables_are_never_called_the_same(data: st.DataObject):
    models = data.draw(st.lists(st.sampled_from(["a", "b c", "c"]), min_size=2, unique=True))
    prompts = data.draw(st.lists(st.sampled_from(["x", "y z", "z"]), min_size=2, unique=True))
    values = data.draw(st.lists(st.sampled_from(["v=1", "v=a", "v=x z"]), min_size=2, unique=True))
    rows = [f"{model} {prompt} {value}" for value in values for model in models for prompt in prompts]
    some = st.lists(st.sampled_from(rows), min_size=1, unique=True)
    one, other = data.draw(some), data.draw(some)
    if {*one} != {*other} and len(one) == len(other):
        assert together(one, rows) != together(other, rows)


@pytest.mark.real
@given(st.data())
def test_different_rows_of_a_test_are_never_called_the_same(data: st.DataObject):
    models = data.draw(st.lists(st.sampled_from(["a", "b c", "c", "a · b"]), min_size=1, unique=True))
    prompts = data.draw(st.lists(st.sampled_from(["x", "y z", "z", "c"]), min_size=1, unique=True))
    rows = list(dict.fromkeys(f"{model} {prompt}" for model in models for prompt in prompts))
    some = st.lists(st.sampled_from(rows), min_size=1, unique=True)
    one, other = data.draw(some), data.draw(some)
    if {*one} != {*other} and len(one) == len(other):
        assert together(one, rows) != together(other, rows)


def test_of_names_that_differ_at_once_little_is_kept_so_that_the_prompt_is_seen_whole():
    names = row_names(
        [
            ("Nothing, at length", "atlas friendly", "s"),
            ("Refund of the lamp", "atlas friendly", "s"),
            ("Refund of the torch", "atlas friendly", "s"),
        ]
    )
    assert names[0].fitted(23) == ("Nothing,…", "atlas friendly")
    one, other = (name.fitted(23) for name in names[1:])
    assert one != other and "lamp" in one[0] and "torch" in other[0]


def test_what_tells_names_apart_is_kept_where_their_beginning_has_no_room() -> None:
    """`fail c…11 of …where` stood for the cases of three files: the end that all share was kept instead."""
    names = [
        f"fail case {one} of file {file} with a rather long name somewhere"
        for one in (1, 11, 16)
        for file in "012"
    ]
    found = differences(names)
    for width in (14, 16, 18, 24):
        told = [cut(name, found[name], width) for name in names]
        assert len(set(told)) == len(names) and all(cell_len(one) <= width for one in told)
    assert cut(names[3], found[names[3]], 18) == "fail…11 of file 0…"
