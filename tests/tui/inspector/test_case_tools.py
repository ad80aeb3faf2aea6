"""Tab 2: what was expected of calls beside what they were given, bars over time, calls of megabytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import mostly_real
from tests.support.attempts import START, agent_error, hallucinated_argument, multi_agent_in_time
from tests.support.case_host import host, loaded, screen_text, sees, until
from tests.support.judged_evidence import evidenced
from tests.support.work import calls_of
from tests.tui.state.case.test_case_why import said
from tui_eval.model import Attempt, Entry, Evidence, Reply, Verdict
from tui_eval.tui.inspector.tools_tab import ToolsTab
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.case_tabs import badges, filled
from tui_eval.tui.state.case.tools_view import detail, rows
from tui_eval.tui.state.case.waterfall import SpanBar, bar_line, bars, label_width, span_of

SIZES = mostly_real([(80, 24), (120, 40), (60, 16)], (60, 16))


def called(*verdicts: Verdict) -> Attempt:
    transcript = [
        Entry(1, "user", text="go", started_at=START),
        Entry(1, "tool_call", name="search", arguments={"query": "ketle", "page": 1}, call_id="1"),
        Entry(1, "tool_result", name="search", result=[{"id": 1}], call_id="1"),
        Entry(1, "tool_call", name="lookup", arguments='{"id": 8}', call_id="2"),
        Entry(1, "tool_result", name="lookup", error="404", call_id="2"),
    ]
    return Attempt("s::called", 1, "failed", transcript=transcript, verdicts=list(verdicts))


@pytest.mark.parametrize(
    ("verdict", "lines"),
    [
        # nao
        (Verdict("tool_call", False, "tools", {"tool": "search", "args": {"query": "kettle", "max": 5}}, turn=1),
         ['query: "kettle"  ≠ "ketle"', "max: 5  ≠ not given", "page: not asked for"]),
        # StartToAgent
        (Verdict("tools_used", False, "tools", "serch", ["search"]), ["✗ serch was not called; the nearest name is search"]),
        (Verdict("max_tool_calls", False, "tools", 1, 2, reason="max_tool_calls: 2 > 1"), ["2 > 1 tool calls"]),
        # promptfoo: its judge's own pieces
        (Verdict("trajectory:tool-args-match", False, "text", {"name": "lookup", "args": {"id": 7}}, evidence=[
            Evidence("call", "wrong-arguments", text="lookup", call=1, path="id", expected=7, actual=8)]), ["id: 7  ≠ 8"]),
        (Verdict("trajectory:tool-sequence", False, "text", {"steps": ["search", "refund"]}, evidence=[
            Evidence("step", "called", text="search", call=1, row=0, actual=[1]),
            Evidence("step", "not-in-order", text="refund", row=1, actual=[])]),
         ["✓ search was step 1", "✗ refund not after step 1"]),
        (Verdict("not-trajectory:tool-used", False, "text", "search", reason="search was used", evidence=[
            Evidence("step", "forbidden-call", text="search", call=1, actual=[1])]), ["search called"]),
    ],
)  # fmt: skip
def test_what_is_expected_of_calls_stands_beside_them(verdict: Verdict, lines: list[str]) -> None:
    attempt = evidenced(called(verdict))
    shown = [
        line for row in rows(attempt) for block in detail(attempt, row) for line in said(block.lines())
    ] + [block.label for row in rows(attempt) for block in detail(attempt, row)]
    for line in lines:
        assert any(line in one for one in shown), shown


def test_tools_that_only_the_metadata_names_are_shown_as_reported() -> None:
    """Agents of the guide's kind report names and a count; "No tools were called." was said of them."""
    replies = [
        Reply(1, "a", metadata={"tools_used": ["search", "search", {"name": "look"}, 1.5, None]}),
        Reply(2, "b", metadata={"tools_used": [], "tool_call_count": 1}),
        Reply(3, "c", metadata={"tools_used": [], "tool_call_count": 0}),
        Reply(4, "d", metadata={"tools_used": ["seen"], "tool_call_count": 1}),
    ]
    transcript = [Entry(4, "tool_call", name="seen", call_id="1")]
    attempt = Attempt("s::x", 1, "passed", replies=replies, transcript=transcript)
    blocks = {block.label: said(block.lines()) for block in detail(attempt, None)}
    source = "by the reply's metadata, which has no arguments or results"
    assert blocks == {
        "reported · turn 1": ["search ×2", "look", "1.5", "an entry without a name", source],
        "reported · turn 2": [f"1 call counted; {source}"],
    }
    assert badges(attempt)[1] == "7", "those that were seen are some of them"
    attempt.transcript.clear()
    content = CaseContent(CasePointer("s::x"), "x", "s.yaml")
    content.attempt = attempt
    assert badges(attempt)[1] == "7" and filled(content)[1]


def results_of(size: int) -> tuple[str, int]:
    """What is shown of the size of a result of so many rows, twenty times, and how many calls that takes."""
    big = {"rows": [{"id": n, "name": f"name {n}", "nested": {"a": [1, 2, 3]}} for n in range(size)]}
    attempt = called()
    attempt.transcript = [
        entry
        for n in range(20)
        for entry in (
            Entry(n, "tool_call", name="read", arguments={"n": n}, call_id=str(n)),
            Entry(n, "tool_result", name="read", result=big, call_id=str(n)),
        )
    ]

    def shown() -> str:
        calls = rows(attempt)
        assert [block.head() for block in detail(attempt, calls[0])]
        return calls[0].size

    return calls_of(shown)


def test_a_megabyte_of_json_makes_no_delay() -> None:
    (few, calls), (many, more) = results_of(160), results_of(16_000)
    assert few != many and many.endswith("k")
    assert more < 2 * calls, "what is not shown is not gone through"


def test_a_call_without_end_and_one_of_no_length_are_told_apart() -> None:
    transcript = [
        Entry(1, "tool_call", name="zero", call_id="1", started_at=START),
        Entry(1, "tool_result", name="zero", call_id="1", result=1, started_at=START),
        Entry(1, "tool_call", name="lost", call_id="2", started_at=START + 1),
        Entry(1, "tool_call", name="hour", call_id="3", started_at=START + 2),
        Entry(1, "tool_result", name="hour", call_id="3", result=1, started_at=START + 3602),
        Entry(1, "tool_call", name="timeless", call_id="4"),
    ]
    shown = bars(Attempt("s::x", 1, "passed", transcript=transcript, started_at=START))
    total, width = span_of(shown), 60
    lines = {bar.label: said([bar_line(bar, total, width, label_width(shown, width))])[0] for bar in shown}
    assert "0ms ▏" in lines["zero"] and "– ▏" in lines["lost"]
    assert lines["lost"].startswith("!") and "1h00m" in lines["hour"] and "█" * 20 in lines["hour"]
    assert lines["timeless"].rstrip().endswith("–")
    assert all(len(line) <= width for line in lines.values())


def test_bars_say_whose_call_it_is_and_what_was_wrong_with_it() -> None:
    shown = bars(multi_agent_in_time())
    calls = {bar.label: bar for bar in shown if bar.call is not None}
    assert [(bar.label, bar.depth) for bar in shown] == [
        ("→ baggage", 0),
        ("find_rule", 1),
        ("baggage", 1),
        ("→ fees", 0),
        ("fee_table", 1),
        ("airline_policy", 0),
    ]
    told_of_no_hand_off = multi_agent_in_time()
    del told_of_no_hand_off.transcript[1:3]
    shown = bars(told_of_no_hand_off)
    calls = {bar.label: bar for bar in shown if bar.call is not None}
    line = said([bar_line(calls["find_rule"], span_of(shown), 80, label_width(shown, 80))])[0]
    assert "find_rule baggage" in line
    wrong = SpanBar("x", "tool_call", 0, 0.0, 5.0, wrong=True)
    assert said([bar_line(wrong, 10.0, 60, 10)])[0].startswith("✗ x")
    only_one = bars(hallucinated_argument())
    assert [(bar.agent, bar.failed, bar.wrong) for bar in only_one] == [("", False, True)]


async def test_bars_of_a_helper_fold_by_their_keys(tmp_path: Path) -> None:
    app = host(tmp_path, multi_agent_in_time())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2", "s", "g", "j")
        tab = screen.tab
        assert isinstance(tab, ToolsTab)
        await until(pilot, lambda: len(tab.table.bars) == 6 and tab.table.cursor == 1)
        await pilot.press("left")
        await sees(pilot, "→ baggage ▸")
        assert [bar.label for bar in tab.table.bars] == ["→ baggage", "→ fees", "fee_table", "airline_policy"]
        await pilot.press("right_parenthesis")
        await until(pilot, lambda: tab.table.call is not None and len(tab.table.bars) == 6)
        await pilot.press("g", "left")
        await until(pilot, lambda: len(tab.table.bars) == 4)
        await pilot.press("right")
        await until(pilot, lambda: len(tab.table.bars) == 6)
        await pilot.press("left", "left")
        await sees(pilot, "nothing to fold here")


async def test_the_table_of_calls_is_indented_under_who_called_and_folds(tmp_path: Path) -> None:
    app = host(tmp_path, multi_agent_in_time())
    async with app.run_test(size=(100, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2")
        tab = screen.tab
        assert isinstance(tab, ToolsTab)
        await until(pilot, lambda: len(tab.table.bars) == 4 and not tab.table.timed)
        lines = screen_text(app).splitlines()
        handed = next(line for line in lines if "1  → baggage" in line)
        assert handed.rstrip().endswith("19  = As special baggage.")
        assert any("1    1    find_rule" in line for line in lines), "indented"
        await pilot.press("g", "left")
        await sees(pilot, "→ baggage ▸")
        assert len(tab.table.bars) == 3
        await sees(pilot, "answered As special baggage.")
        await pilot.press("right_parenthesis")  # from call to call, unfolded if need be
        await until(pilot, lambda: tab.table.call is not None and len(tab.table.bars) == 4)
        await pilot.press("s")
        await until(pilot, lambda: tab.table.timed)


async def test_a_helper_folds_in_the_transcript_and_a_search_unfolds_it(tmp_path: Path) -> None:
    app = host(tmp_path, multi_agent_in_time())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        pane = screen.tab.text
        assert pane is not None and pane.jump_to_key("e3")
        await sees(pilot, "find_rule", "answered As special baggage.")
        await pilot.press("left")
        await until(pilot, lambda: pane.block is not None and pane.block.key == "e1")
        await pilot.press("left")
        await sees(pilot, "2 parts folded: → unfolds")
        assert "find_rule" not in screen_text(app)
        await pilot.press("slash", *"find_rule", "enter")
        await sees(pilot, 'find_rule  {"item"')
        assert pane.jump_to_key("e1")
        await pilot.press("enter")
        await sees(pilot, "2 parts folded: → unfolds")
        await pilot.press("enter")
        await until(pilot, lambda: "parts folded" not in screen_text(app))


@pytest.mark.parametrize("size", SIZES)
async def test_the_foot_and_the_keys_of_tools(tmp_path: Path, size: tuple[int, int]) -> None:
    app = host(tmp_path, multi_agent_in_time())
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2")
        tab = screen.tab
        assert isinstance(tab, ToolsTab)
        await until(pilot, lambda: "s times" in screen_text(app))
        assert "? help" in screen_text(app)
        await pilot.press("g", "right_parenthesis", "right_parenthesis")
        assert tab.table.call_index == 1
        await pilot.press("left_parenthesis", "s")
        assert tab.table.timed and tab.table.call_index == 0
        await pilot.press("right_parenthesis")
        await sees(pilot, "no table of 2026")
        assert max(len(line) for line in screen_text(app).splitlines()) <= size[0]


@pytest.mark.real
async def test_what_a_key_says_is_so_and_ends_with_its_tab(tmp_path: Path) -> None:
    app = host(tmp_path, multi_agent_in_time(), agent_error())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2", "s")
        await sees(pilot, "bars over time: s shows the table")
        await pilot.press("3")
        await until(pilot, lambda: "bars over time" not in screen_text(app))
        await pilot.press("2", "s")
        screen.go_to(app.pointers[1])
        await until(pilot, lambda: screen.content.pointer == app.pointers[1])
        await pilot.press("2", "s")
        await sees(pilot, "no calls: nothing took time here")


@pytest.mark.parametrize("size", SIZES)
async def test_the_call_that_failed_is_in_sight(tmp_path: Path, size: tuple[int, int]) -> None:
    attempt = called()
    attempt.transcript = [
        entry
        for n in range(60)
        for entry in (
            Entry(1, "tool_call", name=f"call_{n}", call_id=str(n), started_at=START + n),
            Entry(
                1, "tool_result", name=f"call_{n}", call_id=str(n), error="500" if n == 40 else None, result=1
            ),
        )
    ]
    app = host(tmp_path, attempt)
    async with app.run_test(size=size) as pilot:
        await loaded(pilot)
        await pilot.press("2")
        await sees(pilot, "41    1  call_40")
        await pilot.press("s")
        await until(
            pilot, lambda: any(line.startswith("! call_40") for line in screen_text(app).splitlines())
        )


def test_bars_begin_with_the_first_turn_not_with_what_was_loaded_before_it() -> None:
    attempt = Attempt("c", 1, "passed", started_at=1_000.0)
    attempt.transcript = [
        Entry(turn=1, kind="user", text="q", started_at=1_040.0),
        Entry(turn=1, kind="tool_call", name="look", call_id="1", started_at=1_040.5, duration_ms=200.0),
        Entry(turn=1, kind="tool_result", name="look", call_id="1", started_at=1_040.7),
    ]
    assert [(bar.start, bar.end) for bar in bars(attempt)] == [(500.0, 700.0)]


def test_arguments_are_cut_by_the_screen_and_not_before() -> None:
    query = "SELECT " + ", ".join(f"column_{n}" for n in range(14)) + " FROM orders"
    called_with = Entry(1, "tool_call", name="execute_sql", arguments={"sql_query": query}, call_id="1")
    (row,) = rows(Attempt("s::called", 1, "failed", transcript=[called_with]))
    assert query in row.arguments and len(query) > 150
