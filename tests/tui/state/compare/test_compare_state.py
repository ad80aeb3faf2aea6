"""Comparisons without a screen: honest words, aligned transcripts, differing words."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.attempts import HOSTILE, text_failure
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.model import Attempt, Entry
from tui_eval.reports.run_comparison import chance, compare
from tui_eval.store.summary import CaseSummary
from tui_eval.tui.state.compare.compare_view import row_line, rows, summary_lines
from tui_eval.tui.state.compare.sides_view import STACKED, as_text, joined, layout, pairs
from tui_eval.tui.state.text.lines import plain, width_of

BAD = {chr(code) for code in CONTROL_TABLE} - {"\n"}


def case(name: str, passed: int, attempts: int = 1, agent: str = "x") -> CaseSummary:
    outcome = "passed" if passed == attempts else "failed"
    return CaseSummary(
        f"s::{name}", name, "s", agent, None, outcome, attempts, attempts, passed, attempts,
        passed / attempts, 0 < passed < attempts, f"why {name}",
    )  # fmt: skip


BEFORE = [case("worse", 3, 3), case("better", 0), case("shaky", 1, 3), case("same", 1), case("old", 1)]
AFTER = [case("worse", 0, 3), case("better", 1), case("shaky", 2, 3), case("same", 1), case("new", 1)]


def test_worst_comes_first_and_flaky_is_told_from_broken():
    found = rows(compare(BEFORE, AFTER))
    headings = [row.change for row in found if row.case is None]
    assert headings == ["regressed", "fixed", "flaky", "new", "gone", "unchanged"]
    text = [plain(row_line(row, 120)) for row in found]
    assert "3/3 → 0/3" in text[1] and "broken" in text[1] and "p=0.10" in text[1] and "why worse" in text[1]
    assert any("1/3 → 2/3" in line and "flaky" in line for line in text)
    assert any("1/1 → –" in line for line in text)
    assert "unchanged" not in {row.change for row in rows(compare(BEFORE, AFTER), only_changed=True)}
    (_, sure) = rows(compare([case("x", 9, 9)], [case("x", 0, 9)]))
    assert "p<0.01 " in plain(row_line(sure, 120)), "p=0.00 is no probability"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_and_keep_their_numbers(width):
    comparison = compare(BEFORE, AFTER)
    for row in rows(comparison):
        line = row_line(row, width)
        assert width_of(line) <= width
    assert "3/3 → 0/3" in plain(row_line(rows(comparison)[1], width))
    assert all(width_of(line) <= width for line in summary_lines(comparison, "a", "b", width))


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_line_says_why_a_case_fails_too(width):
    found = rows(compare([*BEFORE, case("a name", 1)], [*AFTER, case("a name", 0)]))
    lines = [plain(row_line(row, width)) for row in found if row.case and row.case.change == "regressed"]
    assert len(lines) == 2 and "why worse" in lines[0] and "why a name" in lines[1]
    assert lines[0].index("why ") == lines[1].index("why "), "reasons stand below each other"
    assert all(width_of(row_line(row, width)) <= width for row in found)
    long = "a name that takes all the room that it can have, and more of it than there is"
    (_, passed) = rows(compare([case(long, 1)], [case(long, 1)]))
    assert len(plain(row_line(passed, width)).split("…")[0]) > width - 20, "where nothing fails names have it"


def test_few_cases_prove_nothing():
    lines = [plain(line) for line in summary_lines(compare(BEFORE, AFTER), "first", "second", 100)]
    assert "first  60% of cases (23% to 88%)" in lines[0] and "second  60% of cases" in lines[1]
    assert "may well be chance (p=1.00)" in lines[2]
    assert chance(0.2) == "may well be chance (p=0.20)" and "hardly" in chance(0.03)
    assert chance(None) == "" and "p<0.0001" in chance(1e-9)


def attempt(*entries: Entry, message: str = "") -> Attempt:
    return Attempt("s::a", 1, "failed" if message else "passed", transcript=list(entries), message=message)


def test_entries_that_belong_together_stand_together():
    before = attempt(
        Entry(1, "user", text="hello"),
        Entry(1, "tool_call", name="find", arguments={"id": 1}),
        Entry(1, "assistant", text="your order ships today"),
    )
    after = attempt(
        Entry(1, "user", text="hello"),
        Entry(1, "assistant", text="your order ships tomorrow"),
        Entry(2, "user", text="more"),
        message="wrong",
    )
    found = pairs(before, after)
    assert [(pair.kind, pair.differs) for pair in found] == [
        ("user", False), ("tool_call", True), ("assistant", True), ("user", True), ("note", True),
    ]  # fmt: skip
    assert found[1].right is None and found[3].left is None
    marked = {span.text for line in found[2].right or [] for span in line if span.style == "added"}
    assert marked and not any("order" in text for text in marked)
    text = as_text(found, ("before", "after"))
    assert "- your order ships today" in text and "+ your order ships tomorrow" in text


@pytest.mark.parametrize("width", [60, 80, 118])
def test_both_sides_have_the_same_rows_and_fit(width):
    other = text_failure()
    other.transcript[-1].text = "Something else, and 日本語のテキスト " * 6
    found = pairs(text_failure(), other)
    both = layout(found, width)
    assert all(width_of(joined(row, width)) <= width for row in both)
    alone = [row.left for row in layout(found, width, side=1)]
    assert all(width_of(line) <= width for line in alone)
    stacked = [row.left for row in layout(found, width, side=STACKED)]
    assert all(width_of(line) <= width for line in stacked) and len(stacked) > len(both) / 2
    only = layout(found, width, only_differing=True)
    assert 0 < len(only) < len(both) and all(row.pair < 0 or found[row.pair].differs for row in only)


def test_below_each_other_what_is_the_same_stands_once_and_words_are_marked():
    before = attempt(
        Entry(1, "assistant", text="Hello\nyour order ships today\nbye"), Entry(1, "note", text="old")
    )
    after = attempt(Entry(1, "assistant", text="Hello\nyour order ships tomorrow\nbye"), message="wrong")
    rows = [row.left for row in layout(pairs(before, after), 60, side=STACKED)]
    text = [plain(line).rstrip() for line in rows]
    for line in (
        "  Hello",
        "− your order ships today",
        "+ your order ships tomorrow",
        "  bye",
        "▎note  ≠ only before",
    ):
        assert text.count(line) == 1, text
    assert text.index("− your order ships today") + 1 == text.index("+ your order ships tomorrow")
    assert "− passed" in text and "+ wrong" in text
    marked = {span.text for line in rows for span in line if span.style in ("removed", "added")}
    assert not any("order" in part for part in marked) and {"morr", "passed", "wrong"} & marked
    for row in layout(pairs(attempt(Entry(1, "user", text=HOSTILE)), after), 60, side=STACKED):
        assert not BAD & set(plain(row.left))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_cases_of_the_same_name_are_told_apart_and_the_mark_is_not_cut(width):
    def one(prompt: str, passed: int) -> CaseSummary:
        long = "a name that is far too long for the column that it has on any screen at all"
        return msgspec.structs.replace(case(long, passed), case_id=f"s::{long}::{prompt}")

    found = compare([one("terse", 1), one("kind", 1)], [one("terse", 0), one("kind", 1)])
    assert [item.mark for item in found.cases] == ["terse", "kind"]
    lines = [plain(row_line(row, width)) for row in rows(found) if row.case]
    assert "… · terse " in lines[0] and "… · kind " in lines[1]
    assert all(item.mark == "" for item in compare(BEFORE, AFTER).cases)


def test_runs_without_a_case_in_common_say_so():
    found = compare([case("a", 1)], [case("b", 1)])
    lines = [plain(line) for line in summary_lines(found, "x", "y", 80)]
    assert "no case in common" in lines[2] and found.common == 0


def test_the_same_has_no_difference():
    found = pairs(text_failure(), text_failure())
    assert not any(pair.differs for pair in found) and layout(found, 80, only_differing=True) == []


def test_hostile_text_is_pictures():
    before = attempt(
        Entry(1, "assistant", text=HOSTILE, name=HOSTILE, arguments={"a": HOSTILE}), message=HOSTILE
    )
    after = attempt(Entry(1, "assistant", text=HOSTILE[::-1], name=HOSTILE, error=HOSTILE), message="x")
    found = pairs(before, after)
    for row in layout(found, 100):
        assert not BAD & set(plain(joined(row, 100)))
    bad = case(HOSTILE, 0)
    comparison = compare([case(HOSTILE, 1)], [bad])
    for line in [row_line(rows(comparison)[1], 300), *summary_lines(comparison, HOSTILE, HOSTILE, 300)]:
        assert not BAD & set(plain(line))
