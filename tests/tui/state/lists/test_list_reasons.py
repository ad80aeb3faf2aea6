"""Lines of lists: a name takes the columns that stand free, a reason does not quote the reply."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tui_eval.model import Assertion, Case, Evidence
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.state.case.case_details import assertion_text, describe, describe_entry, entry_head
from tui_eval.tui.state.lists.case_entry import (
    TIMES_FROM,
    CaseRow,
    columns_for,
    extent_of,
    reason_in_line,
    reason_in_pane,
)
from tui_eval.tui.state.lists.case_tree import Tree, TreeLine, View
from tui_eval.tui.state.lists.tree_lines import build
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.fitting import wait_words
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.widgets.case_lines import CaseLines

REPLY = "You must try it's these:\n\n1. Pad thai, at Thip Samai." + " more" * 60
QUOTED = repr(REPLY)[:200] + "…"
PROMPTS = """\
prompts:
  - {raw: 'Be terse about {{thing}}.', label: terse}
  - {raw: 'Be warm about {{thing}}, and say all there is to it.', label: warm}
providers: [echo]
tests:
  - description: Kettle text names the capacity in litres
    vars: {thing: kettle}
"""


def test_a_reason_in_a_list_is_the_cause_and_of_older_runs_the_prose():
    assert reason_in_line('lacks "2 years"', "should_contain: '2 years' not found") == 'lacks "2 years"'
    assert reason_in_line("", "a reason\n of  its own") == "a reason of its own"
    assert reason_in_line("", "x" * 9_000) == "x" * 600
    assert reason_in_pane("", "two\nlines") == "two\nlines"


@pytest.mark.real
async def test_a_run_the_suites_and_a_case_say_the_cause_and_older_attempts_their_prose(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, ["refund is approved", "greets by name"])
    prose = "should_contain: '2 years' not found in response"
    run.start(0)
    run.done(0, "failed", prose, evidence=[Evidence("missing", "not-contained", text="2 years")])
    run.start(1)
    run.done(1, "failed", "an older sentence")
    run.finish()
    async with running_app(root, (140, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        await until(lambda: 'lacks "2 years"' in screen_text(app), pilot)
        assert "an older sentence" in screen_text(app) and "not found" not in screen_text(app)
        entry = next(one for one in app.screen.all_entries() if one.name == "refund is approved")
        assert (entry.cause, entry.alike) == ('lacks "2 years"', 'lacks "2 years"')
        await pilot.press("U")
        await until(lambda: not isinstance(app.screen, RunScreen), pilot)
        await until(
            lambda: any(one.cause == 'lacks "2 years"' for one in app.screen.all_entries()), pilot
        )  # from the index


def test_the_detail_of_suites_gives_the_short_reason():
    why = f"'peanut' unexpectedly found in {QUOTED}"
    entry = CaseRow("s::a@x", "s::a", "a", "s", "nao", status="failed", message=why, cause='has "peanut"')
    told = [text for _, text in describe_entry(entry, Symbols(), 0.0)]
    assert 'has "peanut"' in told and why not in told


@pytest.mark.real
async def test_a_name_with_its_prompt_takes_the_columns_that_stand_free(tmp_path):
    root = project(tmp_path, {"promptfooconfig.yaml": PROMPTS})
    async with running_app(root, (80, 24)) as (app, pilot):
        await until(lambda: "capacity in litres · terse, warm" in screen_text(app), pilot)
        await pilot.press("G", "right")
        await until(lambda: len(app.screen.case_list.cases.lines) > 2, pilot)
        await until(
            lambda: {"terse", "warm"} <= {line.name for line in app.screen.case_list.cases.lines}, pilot
        )


@pytest.mark.real
async def test_a_suite_and_a_folder_name_what_does_not_pass(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name"]).all_done(["failed", "passed"])
    async with running_app(root, (120, 40)) as (app, pilot):
        for key, kind in (("g", "folder"), ("j", "suite")):
            await pilot.press(key)
            await until(lambda wanted=kind: app.screen.case_list.current_line.kind == wanted, pilot)
            await until(lambda: "What does not pass" in screen_text(app), pilot)
            assert "case 0 went wrong" in screen_text(app) and "3 cases · 1 failed, 1 passed" in screen_text(
                app
            )


def test_what_failed_alike_is_one_reason_with_some_of_its_names():
    why = ["b"] + ["a"] * 9 + ["c"] * 2
    entries = [
        CaseRow(f"k{n}", f"k{n}", f"case {n}", "s", "nao", "failed", message=said)
        for n, said in enumerate(why)
    ]
    folder = TreeLine("folder", "s/", 0, "s/", path="s", counts=Counter(failed=12))
    told = [text for _, text in describe(folder, Symbols(), 0.0, lambda: entries)]
    assert told[told.index("What does not pass") + 1 :] == [
        "✗ 9 × a", "  case 1", "  case 2", "  case 3", "  and 6 more",
        "✗ 2 × c", "  case 10", "  case 11",
        "✗ case 0", "  b",
    ]  # fmt: skip


def test_what_failed_alike_is_called_as_in_the_list_by_cause_and_in_runs():
    """It said `2 × lacks "a"`, where these say what all of them lack and have."""
    entries = [
        CaseRow(f"k{n}", f"k{n}", f"case {n}", "s", "nao", "failed", cause=f'{cause} > 6 s; has "b"', alike="latency > 6 s")
        for n, cause in enumerate(("7 s", "9 s"))
    ]  # fmt: skip
    folder = TreeLine("folder", "s/", 0, "s/", path="s", counts=Counter(failed=2))
    told = [text for _, text in describe(folder, Symbols(), 0.0, lambda: entries)]
    assert '✗ 2 × 7–9 s > 6 s; has "b"' in told
    (group, *_) = build(entries, [], View(grouping="cause")).lines
    assert group.name == '2 × 7–9 s > 6 s; has "b"'


def test_many_failures_are_named_in_part():
    entries = [
        CaseRow(f"k{n}", f"k{n}", f"case {n}", "s", "nao", "failed", message=f"no {n}") for n in range(50)
    ]
    folder = TreeLine("folder", "s/", 0, "s/", path="s", counts=Counter(failed=50))
    told = [text for _, text in describe(folder, Symbols(), 0.0, lambda: entries)]
    assert "and 20 more" in told and "✗ case 29" in told and "✗ case 30" not in told


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (100, 24), (120, 40)], (80, 24)))
async def test_reasons_stand_in_one_column(tmp_path, size):
    root = project(tmp_path)
    names = ["short", "a name that is of middling length", "x"]
    run = LiveRun(root, names)
    run.all_done(["failed", "failed", "error"])
    async with running_app(root, size, open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        listed = app.screen.case_list.region

        def reasons() -> list[int]:
            lines = [line[: listed.right] for line in screen_text(app).splitlines()[listed.y : listed.bottom]]
            return [line.index("case ") for line in lines if "case " in line]

        await until(lambda: all(name[:20] in screen_text(app) for name in names), pilot)
        await until(lambda: len(reasons()) == 3, pilot)
        assert len(set(reasons())) == 1


def test_assertions_of_starttoagent_in_words():
    said = [
        assertion_text(Assertion(type=kind, value=value, target=target))
        for kind, value, target in (
            ("tools_used", "search", "tools"),
            ("max_tool_calls", 2, "tools"),
            ("max_output_tokens", 500, "usage.output_tokens"),
            ("should_contain", "x", "text"),
        )
    ]
    assert said == [
        'uses the tool "search"', "calls of tools at most 2", "output tokens at most 500", 'contains "x"',
    ]  # fmt: skip


KETTLE = CaseRow(
    "k1", "s::k1", "Kettle text names the capacity of it in litres", "s", "promptfoo", "failed", attempts="f", duration_ms=4_800.0,
    message='Expected output to not contain "!"', cause='has "!"', variant="friendly",
)  # fmt: skip
LAMP = CaseRow(
    "k2", "s::k2", "lamp", "s", "promptfoo", "passed", attempts="p", duration_ms=430.0, variant="terse"
)
SHAKY = CaseRow(
    "k3", "s::k3", "warranty", "s", "promptfoo", "failed", flaky=True, attempts="pfp", duration_ms=1_000.0,
    message="should_contain: '3 years' not found in response", cause='lacks "3 years"',
)  # fmt: skip


def drawn(width: int, *entries: CaseRow, kind: Literal["suites", "run"] = "run") -> list[str]:
    """The lines of these cases in the list of a run, without an app."""
    lines = CaseLines(kind, Symbols())
    shown = [TreeLine("case", one.key, 0, one.name, one, path=one.suite) for one in entries]
    lines.cases = Tree(shown, list(entries), len(entries), {}, {}, extent_of(entries))
    return [
        "".join(text for text, _ in lines.case_parts(line, line.entry, "", width))
        for line in shown
        if line.entry is not None
    ]


@pytest.mark.parametrize("width", [46, 54, 64, 79, 119])
def test_a_line_of_a_run_gives_its_room_to_name_and_reason(width):
    kettle, lamp, shaky = drawn(width, KETTLE, LAMP, SHAKY)
    assert all(cell_len(line) == width for line in (kettle, lamp, shaky))
    assert "friendly" in kettle and 'has "!"' in kettle
    assert lamp.startswith("✓ lamp · terse ")
    assert "lacks" in shaky and "✓✗✓" in shaky
    # ux.md: an outcome is glyph and colour, the word only where the glyphs are letters
    assert " failed" not in kettle and " passed" not in lamp
    assert (kettle.endswith(" 4.8s"), lamp.endswith(" 430ms")) == (width + 1 >= TIMES_FROM,) * 2
    # one attempt: the glyph in front says it all
    assert kettle.count("✗") == 1 and lamp.count("✓") == 1


@pytest.mark.parametrize("width", [54, 65, 79])
def test_a_name_gives_way_to_the_column_that_it_was_asked_in(width):
    asked = [replace(KETTLE, key=f"k{n}", variant=f"claude-sonnet-4 {said}", cause='lacks "1.7 litres"')
             for n, said in enumerate(("friendly", "terse", "by example"))]  # fmt: skip
    for one, line in zip(asked, drawn(width, *asked), strict=True):
        assert one.variant in line and 'lacks "1.' in line and "Ket" in line
    for one, line in zip(asked, drawn(width, *(replace(one, status="passed") for one in asked)), strict=True):
        assert one.variant in line and "Kettle" in line, line


def test_a_reason_is_not_cut_beside_blanks():
    short = replace(LAMP, status="failed", variant="", cause="delivered→shipped in 1 of 181 rows")
    long, short = drawn(60, replace(KETTLE, variant=""), short)
    assert "delivered→shipped in 1 of 181 rows" in short and 'has "!"' in long
    assert "lamp  status" in drawn(30, replace(LAMP, status="failed", variant="", cause="status " * 9))[0]


def test_outcomes_take_the_cells_of_the_longest():
    assert columns_for("run", 80, extent_of([KETTLE, LAMP])).word == len("failed")
    assert columns_for("run", 80, extent_of([CaseRow("a", "a", "a", "s", "nao", "cancelled")])).word == 9
    assert columns_for("suites", 80, extent_of([KETTLE])).word == len("failed")
    twice = replace(KETTLE, trend=(0.0, 1.0))
    assert columns_for("suites", 80, extent_of([KETTLE, twice])).trend == 2, "the reason has the rest"
    assert columns_for("suites", 80, extent_of([replace(KETTLE, trend=(1.0,) * 9)])).trend == 6
    assert columns_for("suites", 80, extent_of([SHAKY])).word == len("flaky 2/3")
    assert columns_for("suites", 80, extent_of([CaseRow("a", "a", "a", "s", "nao")])).word == 0
    extent = extent_of([LAMP])
    assert extent.widen(CaseRow("a", "a", "a", "s", "nao", "retrying")) and extent.word == len("retrying")


def test_a_trend_of_two_runs_takes_no_room_from_the_reason():
    row = CaseRow("a", "a", "a", "s", "nao", "failed", trend=(0.0, 1.0))
    assert columns_for("suites", 120, extent_of([row])).trend == 2
    row.trend = (1.0,) * 40
    assert columns_for("suites", 120, extent_of([row])).trend == 12
    assert columns_for("suites", 64, extent_of([row])).trend == 6


def test_a_reason_takes_the_trend_s_room_where_there_is_none():
    once = CaseRow("a", "a", "a", "s", "nao", "failed", message="w" * 100)
    often = replace(once, key="b", case_id="b", trend=(0.0,) * 9)
    first, second = drawn(79, once, often, kind="suites")
    assert first.count("w") == second.count("w") + 7 and cell_len(first) == cell_len(second) == 79


def test_a_case_that_was_cancelled_before_it_began_took_no_time():
    lines = CaseLines("run", Symbols())
    row = CaseRow("a", "a", "a", "s", "nao", "cancelled", duration_ms=0.0)
    assert lines.time_words(row, 6) == ("", False)
    row.status = "passed"
    assert lines.time_words(row, 6) == ("0ms", False)


def test_a_file_called_as_all_of_its_kind_is_said_by_its_folder():
    """It was cut to what all of them share: `…ooconfig.yaml`."""
    for width in (46, 60, 79):
        shop, desk = drawn(
            width,
            CaseRow("1", "1", "a kettle in a shop", "shop/promptfooconfig.yaml", "promptfoo", "passed"),
            CaseRow("2", "2", "a kettle on a desk", "evals/desk/promptfooconfig.yaml", "promptfoo", "passed"),
        )
        assert shop.split()[-1] == "shop/" and desk.split()[-1].endswith("desk/")


def test_a_file_that_is_one_case_is_not_said_twice():
    hello = CaseRow("k4", "suites/hello.hocon::hello", "hello", "suites/hello.hocon", "neuro_san", "passed")
    other = CaseRow("k5", "suites/more.hocon::bye", "bye", "suites/more.hocon", "neuro_san", "passed")
    (said, other_said) = drawn(79, hello, other)
    assert said.split() == ["✓", "hello", "suites"] and other_said.split() == [
        "✓",
        "bye",
        "suites/more.hocon",
    ]


def test_several_errors_are_errors():
    assert [formatting.outcomes(number, status) for number, status in ((1, "error"), (3, "error"), (2, "failed"))] == [
        "1 error", "3 errors", "2 failed",
    ]  # fmt: skip


def test_a_network_is_named_and_a_server_that_is_called_as_its_format_once():
    case = Case("s.hocon::s", "s", "s.hocon", "neuro_san", agent="te_team", line=2)
    row = CaseRow("k6", case.case_id, "s", "s.hocon", "neuro_san", "failed", "neuro-san", case=case)
    assert entry_head(row, Symbols())[1] == ("dim", "s.hocon:2 · neuro-san · te_team")


def test_a_long_reason_of_a_retry_leaves_the_name_its_place():
    retrying = replace(
        KETTLE, status="retrying", attempts="t", duration_ms=None, cause="", message="",
        detail="429: the engine is overloaded and asks everybody to come back later, again in 12 s",
    )  # fmt: skip
    for width in (60, 79, 119):
        (line,) = drawn(width, retrying)
        assert "Kettle text" in line and "friendly" in line and "429" in line and "in 12 s" in line, line


@pytest.mark.parametrize(
    ("detail", "width", "said"),
    [
        ("429, again in 3 s", 17, "429, again in 3 s"),
        ("429, again in 3 s", 11, "429 in 3 s"),
        ("429, again in 3 s", 9, "429 3 s"),
        ("429, again in 120 s", 8, "4… 120 s"),
        ("429, again", 6, "429, …"),
        ("no connection to :8941, again in 900 ms", 24, "no connection… in 900 ms"),
        ("429, again in 3 s", 3, "42…"),
    ],
)
def test_of_what_waits_the_time_is_cut_last(detail: str, width: int, said: str):
    assert wait_words(detail, width) == said and cell_len(said) <= width


def test_on_a_small_screen_the_reason_has_more_room_than_figures():
    row = replace(KETTLE, trend=(1.0,) * 9, finished_at=1.0)
    small, large = (columns_for("suites", width, extent_of([row]), words=False) for width in (59, 65))
    assert (small.trend, small.duration, small.age) == (3, 0, 4)
    assert (large.trend, large.duration, large.age) == (6, 6, 4)


def test_a_folder_without_a_case_is_no_unfinished_sentence() -> None:
    """`0 cases ·`: its suite is empty, or cannot be read."""
    told = describe(TreeLine("folder", "empty/", 0, "empty", path="empty"), Symbols(unicode=True), 0.0)
    assert ("text", "0 cases") in told
